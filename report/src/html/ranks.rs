//! Values over the number of ranks, for one run with several partitions or for several runs.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use super::lines::{self, Abscissa, FrameCurve, MarkerStyle};
use super::scale::{is_plottable, LogScale};
use super::svg::svg_with_columns;
use crate::model::{ReportBlock, ReportSection};
use crate::picture::{Frame, Picture};
use crate::picture::{MeasuredPoint, PictureLabels};
use crate::table::Table;
use crate::words::rate;

const MAX_PANELS: usize = 60;
/// Maximum number of rank counts for which points have tooltips.
const MAX_TOOLTIP_RANKS: usize = 60;

/// Section with a panel for each row and column of the points and a curve for each of their curves; None if all points are of one number of
/// ranks and of one run. Points with different values at one place are named by their runs.
#[must_use]
pub fn ranks_section(points: &[MeasuredPoint], runs: usize) -> Option<ReportSection> {
    let points = named_where_several(plottable(points));
    let points: Vec<&MeasuredPoint> = points.iter().map(AsRef::as_ref).collect();
    if runs < 2 && points.iter().all(|p| p.x == points[0].x) {
        return None;
    }
    let mut panels: Vec<(&str, &str)> = Vec::new();
    for point in &points {
        if !panels.contains(&(&point.row, &point.column)) {
            panels.push((&point.row, &point.column));
        }
    }
    let words = PictureLabels { title: "Values over ranks", x: "ranks", y: "MB/s" };
    let picture = picture(&points, &panels, MAX_PANELS, words)?;
    let note = "Both axes are logarithmic. Different values of several runs with as many ranks are curves of their own, with the names of the runs.";
    let blocks = vec![ReportBlock::Picture(picture)];
    Some(ReportSection { name: "ranks", title: "Value over ranks".into(), note: note.into(), blocks })
}

/// The same as an SVG document with the panels of a column below each other; panels without measurements stay empty. None without points.
#[must_use]
pub fn ranks_svg(points: &[MeasuredPoint], words: PictureLabels) -> Option<String> {
    let points = named_where_several(plottable(points));
    let points: Vec<&MeasuredPoint> = points.iter().map(AsRef::as_ref).collect();
    let names = |of: fn(&MeasuredPoint) -> &str| points.iter().map(|p| of(p)).collect::<BTreeSet<_>>();
    let (rows, columns) = (names(|p| &p.row), names(|p| &p.column));
    let panels: Vec<(&str, &str)> = rows.iter().flat_map(|r| columns.iter().map(move |c| (*r, *c))).collect();
    Some(svg_with_columns(&picture(&points, &panels, panels.len(), words)?, columns.len()))
}

fn plottable(points: &[MeasuredPoint]) -> Vec<&MeasuredPoint> {
    points.iter().filter(|p| is_plottable(p.y)).collect()
}

/// Renames the curves of runs that have a value of their own where others have another, so that no two points of a curve are above each other.
fn named_where_several(points: Vec<&MeasuredPoint>) -> Vec<Cow<'_, MeasuredPoint>> {
    let mut places: BTreeMap<(&str, &str, &str, u64), Vec<&MeasuredPoint>> = BTreeMap::new();
    for point in &points {
        places.entry((&point.row, &point.column, &point.curve, point.x)).or_default().push(point);
    }
    let has_several = |values: &&Vec<&MeasuredPoint>| values.iter().any(|p| p.y != values[0].y);
    let named: BTreeSet<(&str, &str)> = places
        .values()
        .filter(has_several)
        .flatten()
        .map(|p| (p.curve.as_str(), p.run.as_str()))
        .filter(|(_, run)| !run.is_empty())
        .collect();
    let name = |point: &MeasuredPoint| named.contains(&(point.curve.as_str(), point.run.as_str()));
    points
        .iter()
        .map(|&point| match name(point) {
            true => Cow::Owned(MeasuredPoint { curve: format!("{}, {}", point.curve, point.run), ..point.clone() }),
            false => Cow::Borrowed(point),
        })
        .collect()
}

/// Frames of the first panels, with a common scale per row, and a table of all panels.
fn picture(points: &[&MeasuredPoint], panels: &[(&str, &str)], most: usize, words: PictureLabels) -> Option<Picture> {
    let ranks: BTreeSet<u64> = points.iter().map(|p| p.x).collect();
    let axis = Abscissa::log(ranks.iter().map(|&r| (r as f64, r.to_string())).collect())?;
    let mut curves: Vec<&MeasuredPoint> = Vec::new();
    for point in points {
        if curves.iter().all(|known| known.curve != point.curve) {
            curves.push(point);
        }
    }
    curves.sort_by_key(|curve| !curve.is_reference);
    let has_references = curves.iter().any(|curve| curve.is_reference);
    let look =
        |p: &MeasuredPoint| if p.is_reference || !has_references { MarkerStyle::Known } else { MarkerStyle::Open };
    let mark = |p: &MeasuredPoint| {
        let said = format!("{}, {} {}: {} {}", p.curve, p.x, words.x, rate(p.y, None), words.y);
        let said = if ranks.len() > MAX_TOOLTIP_RANKS { String::new() } else { said };
        lines::FramePoint { x: p.x as f64, y: p.y, marker: look(p), interval: None, tooltip: said }
    };
    let frame = |(row, column): &(&str, &str)| {
        let of_row: Vec<&MeasuredPoint> = points.iter().copied().filter(|p| p.row == *row).collect();
        let of_panel: Vec<&MeasuredPoint> = of_row.iter().copied().filter(|p| p.column == *column).collect();
        let Some(scale) = LogScale::around(of_row.iter().map(|p| p.y)).filter(|_| !of_panel.is_empty()) else {
            return Frame::default();
        };
        let said = format!("{row}, {column}: {} over {}", words.y, words.x);
        let drawn = curves_of_panel(&of_panel, &curves, mark);
        lines::with_abscissa_label(
            words.x,
            lines::frame(&format!("{row}: {column}"), said, words.y, &axis, scale, &drawn),
        )
    };
    let keys = curves
        .iter()
        .enumerate()
        .map(|(style, curve)| lines::legend_entry_with_marker(style, look(curve), &*curve.curve));
    Some(Picture {
        name: "value-over-ranks".into(),
        title: words.title.into(),
        keys: keys.collect(),
        frames: panels.iter().take(most).map(frame).collect(),
        table: table(points, panels, &curves, words),
    })
}

/// The points of each curve in the order of their ranks; equal values of several runs are one point.
fn curves_of_panel(
    points: &[&MeasuredPoint],
    curves: &[&MeasuredPoint],
    mark: impl Fn(&MeasuredPoint) -> lines::FramePoint,
) -> Vec<FrameCurve> {
    let curve = |(style, curve): (usize, &&MeasuredPoint)| {
        let mut own: Vec<&MeasuredPoint> = points.iter().copied().filter(|p| p.curve == curve.curve).collect();
        own.sort_by(|a, b| a.x.cmp(&b.x).then(a.y.total_cmp(&b.y)));
        own.dedup_by(|a, b| (a.x, a.y) == (b.x, b.y));
        FrameCurve { style, points: own.into_iter().map(&mark).collect() }
    };
    curves.iter().enumerate().map(curve).collect()
}

fn table(points: &[&MeasuredPoint], panels: &[(&str, &str)], curves: &[&MeasuredPoint], words: PictureLabels) -> Table {
    let mut rows: BTreeMap<(u64, usize), Vec<Vec<String>>> = BTreeMap::new();
    let place =
        |list: &[(&str, &str)], p: &MeasuredPoint| list.iter().position(|(r, c)| (*r, *c) == (&p.row, &p.column));
    for point in points {
        let (Some(panel), Some(curve)) = (place(panels, point), curves.iter().position(|c| c.curve == point.curve))
        else {
            continue;
        };
        let row = rows.entry((point.x, curve)).or_insert_with(|| vec![Vec::new(); panels.len()]);
        row[panel].push(rate(point.y, None));
    }
    let names = panels.iter().map(|(row, column)| format!("{row}: {column}"));
    let mut table = Table::new(words.y, 2, [words.x, "of"].map(str::to_owned).into_iter().chain(names));
    for ((ranks, curve), cells) in rows {
        let cells = cells.into_iter().map(|values| values.join(", "));
        table.row([ranks.to_string(), curves[curve].curve.clone()].into_iter().chain(cells));
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    const WORDS: PictureLabels = PictureLabels { title: "A title", x: "processes", y: "MB/s of each" };

    fn point(row: &str, column: &str, curve: &str, x: u64, y: f64) -> MeasuredPoint {
        let is_reference = curve == "recorded";
        MeasuredPoint {
            row: row.into(),
            column: column.into(),
            curve: curve.into(),
            run: String::new(),
            is_reference,
            x,
            y,
        }
    }

    /// Attributes of the elements that follow `before`.
    fn places(text: &str, before: &str) -> Vec<String> {
        text.split(before).skip(1).map(|rest| rest.split("\" width").next().unwrap().to_owned()).collect()
    }

    #[test]
    fn every_panel_and_curve_is_there() {
        let mut points = Vec::new();
        for (row, column) in [("ext4", "read"), ("ext4", "write"), ("nfs", "write")] {
            for x in [1, 2, 4] {
                points.extend([point(row, column, "mpiio", x, x as f64), point(row, column, "recorded", x, 10.0)]);
            }
        }
        let text = ranks_svg(&points, WORDS).unwrap();
        for (words, times) in
            [("A title", 3), (">processes<", 3), (">MB/s of each<", 3), (">recorded<", 1), (">mpiio<", 1)]
        {
            assert_eq!(text.matches(words).count(), times, "{words}\n{text}");
        }
        for (panel, times) in [("ext4: read", 1), ("ext4: write", 1), ("nfs: write", 1), ("nfs: read", 0)] {
            assert_eq!(
                text.matches(&format!(">{panel}<")).count(),
                times,
                "{panel}: nothing else was measured\n{text}"
            );
        }
        // References are first and filled, compared values are open: three points in three panels, and the legend.
        assert!(text.find(">recorded<") < text.find(">mpiio<"));
        let marks = ["<circle class=\"p k0\"", "<path class=\"o k1\""].map(|mark| text.matches(mark).count());
        assert_eq!(marks, [3 * 3 + 1, 3 * 3 + 1], "{text}");
        // In the second column below the panel of the first row.
        let frames = places(&text, "\n<text class=\"f\" x=\"");
        assert_eq!(frames.len(), 4);
        let x = |frame: &String| frame.split('"').next().unwrap().to_owned();
        assert!(x(&frames[1]) == x(&frames[3]) && x(&frames[0]) != x(&frames[1]));
    }

    #[test]
    fn a_row_has_one_scale() {
        let points =
            [("a", "read", 1.0), ("a", "write", 900.0), ("b", "read", 5.0)].map(|(r, c, y)| point(r, c, "x", 1, y));
        let points: Vec<&MeasuredPoint> = points.iter().collect();
        let panels = [("a", "read"), ("a", "write"), ("b", "read")];
        let frames = picture(&points, &panels, 3, WORDS).unwrap().frames;
        let labels = |frame: &Frame| {
            frame
                .body
                .split("class=\"e\">")
                .skip(1)
                .map(|t| t.split('<').next().unwrap().to_owned())
                .collect::<Vec<_>>()
        };
        assert_eq!(labels(&frames[0]), labels(&frames[1]));
        assert_ne!(labels(&frames[0]), labels(&frames[2]));
    }

    #[test]
    fn names_are_text_and_no_markup() {
        let text = ranks_svg(&[point("<script>", "a&b", "\"x\"\u{1b}", 1, 1.0)], WORDS).unwrap();
        assert!(!text.contains("<script>") && text.contains(">&lt;script&gt;: a&amp;b<"), "{text}");
        assert!(text.contains(">&quot;x&quot;\\u{1b}<"), "{text}");
    }

    /// Values of the curves of a picture, by the names in its legend.
    fn named_values(points: &[MeasuredPoint]) -> Vec<(String, Vec<f64>)> {
        let picture = ranks_section(points, 2).unwrap();
        let picture = picture.pictures()[0].clone();
        let plot = picture.frames[0].plot.as_ref().unwrap();
        let values = |curve: &crate::picture::PlotCurve| curve.points.iter().map(|p| p.y).collect();
        plot.curves.iter().map(|curve| (picture.keys[curve.style].text.clone(), values(curve))).collect()
    }

    #[test]
    fn several_values_at_one_place_are_named() {
        let of =
            |run: &str, x: u64, y: f64| MeasuredPoint { run: run.into(), ..point("b_eff_io", "value", "mpiio", x, y) };
        let named = |all: &[(&str, &[f64])]| -> Vec<(String, Vec<f64>)> {
            all.iter().map(|(name, values)| ((*name).to_owned(), values.to_vec())).collect()
        };
        let one_each = [of("n4", 4, 3.0), of("n2", 2, 1.0)];
        assert_eq!(named_values(&one_each), named(&[("mpiio", &[1.0, 3.0])]));
        // A single run is no curve of its own because others have several values elsewhere.
        let several = [of("n2", 2, 1.0), of("a", 4, 3.0), of("b", 4, 2.0), of("n8", 8, 5.0)];
        let expected: [(&str, &[f64]); 3] = [("mpiio", &[1.0, 5.0]), ("mpiio, a", &[3.0]), ("mpiio, b", &[2.0])];
        assert_eq!(named_values(&several), named(&expected));
        // What was recorded once, or measured equally, is one mark.
        assert_eq!(named_values(&[of("a", 2, 1.0), of("b", 2, 1.0)]), named(&[("mpiio", &[1.0])]));
        assert_eq!(ranks_svg(&[], WORDS), None);
    }
}
