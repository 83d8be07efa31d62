//! Values over the number of ranks, of one run with several partitions or of several runs.

use std::collections::{BTreeMap, BTreeSet};

use super::lines::{self, Abscissa, Curve, Look};
use super::scale::{is_sound, Log};
use super::{Block, Picture, Section, Table};
use crate::frame::report::picture::Point;
use crate::frame::report::screen::rate;

/// Panels of one picture at most.
const PANELS: usize = 60;

/// A panel for each row and column of the points, a curve for each curve of them; None if all are of one number of ranks and
/// of one run.
#[must_use]
pub fn over_ranks(points: &[Point], runs: usize) -> Option<Section> {
    let points: Vec<Point> = points.iter().filter(|p| is_sound(p.y)).cloned().collect();
    let points = points.as_slice();
    let ranks: BTreeSet<u64> = points.iter().map(|p| p.x).collect();
    if points.is_empty() || (ranks.len() < 2 && runs < 2) {
        return None;
    }
    let axis = Abscissa::log(ranks.iter().map(|&r| (r as f64, r.to_string())).collect())?;
    let mut curves: Vec<&str> = Vec::new();
    let mut panels: Vec<(&str, &str)> = Vec::new();
    for point in points {
        if !curves.contains(&point.curve.as_str()) {
            curves.push(&point.curve);
        }
        if !panels.contains(&(&point.row, &point.column)) {
            panels.push((&point.row, &point.column));
        }
    }
    let is_dense = ranks.len() > 60;
    let mut frames = Vec::new();
    for (row, column) in panels.iter().take(PANELS) {
        let of_panel: Vec<&Point> = points.iter().filter(|p| p.row == *row && p.column == *column).collect();
        let Some(scale) = Log::around(of_panel.iter().map(|p| p.y)) else { continue };
        let drawn = drawn(&of_panel, &curves, is_dense);
        let said = format!("{row}, {column}: MB/s over ranks");
        frames.push(lines::frame(&format!("{row}: {column}"), said, "MB/s", &axis, scale, &drawn));
    }
    let picture = Picture {
        name: "value-over-ranks".into(),
        title: "Values over ranks".into(),
        keys: curves.iter().enumerate().take(lines::STYLES).map(|(style, name)| lines::key(style, *name)).collect(),
        frames,
        table: table(points, &panels, &curves),
    };
    let note = "Both axes are logarithmic. Runs with as many ranks are points above each other; the line goes through their median.";
    let blocks = vec![Block::Picture(picture)];
    Some(Section { name: "ranks", title: "Value over ranks".into(), note: note.into(), blocks })
}

/// The medians as lines, and every value as a point where they can be told apart.
fn drawn(points: &[&Point], curves: &[&str], is_dense: bool) -> Vec<Curve> {
    let mut drawn = Vec::new();
    for (style, name) in curves.iter().enumerate() {
        let mut places: BTreeMap<u64, Vec<f64>> = BTreeMap::new();
        for point in points.iter().filter(|p| p.curve == *name) {
            places.entry(point.x).or_default().push(point.y);
        }
        let point = |x: u64, y: f64| lines::Point {
            x: x as f64,
            y,
            look: Look::Known,
            said: if is_dense { String::new() } else { format!("{name}, {x} ranks: {} MB/s", rate(y, None)) },
        };
        let mut medians = Vec::new();
        for (x, values) in &mut places {
            values.sort_by(f64::total_cmp);
            medians.extend(values.get((values.len() - 1) / 2).map(|y| point(*x, *y)));
            // The others are points without a line.
            let others = values.iter().enumerate().filter(|(place, _)| *place != (values.len() - 1) / 2);
            drawn.extend(others.map(|(_, y)| Curve { style, points: vec![point(*x, *y)] }));
        }
        drawn.push(Curve { style, points: medians });
    }
    drawn
}

fn table(points: &[Point], panels: &[(&str, &str)], curves: &[&str]) -> Table {
    let mut rows: BTreeMap<(u64, usize), Vec<Vec<String>>> = BTreeMap::new();
    let place = |list: &[(&str, &str)], p: &Point| list.iter().position(|(r, c)| (*r, *c) == (&p.row, &p.column));
    for point in points {
        let (Some(panel), Some(curve)) = (place(panels, point), curves.iter().position(|c| *c == point.curve)) else {
            continue;
        };
        let row = rows.entry((point.x, curve)).or_insert_with(|| vec![Vec::new(); panels.len()]);
        row[panel].push(rate(point.y, None));
    }
    let names = panels.iter().map(|(row, column)| format!("{row}: {column}"));
    let mut table = Table::new("MB/s", 2, ["ranks".to_owned(), "of".to_owned()].into_iter().chain(names));
    for ((ranks, curve), cells) in rows {
        let cells = cells.into_iter().map(|values| values.join(", "));
        table.row([ranks.to_string(), curves[curve].to_owned()].into_iter().chain(cells));
    }
    table
}
