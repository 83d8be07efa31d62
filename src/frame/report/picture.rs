//! Pictures of several results together, as SVG: a grid of panels, in each of them curves with points.

use std::collections::{BTreeMap, BTreeSet};

use plotters::coord::Shift;
use plotters::prelude::*;

use crate::frame::plain::line;

/// One measured value in a picture.
#[derive(Clone, Debug, PartialEq)]
pub struct Point {
    /// Row of panels, for example a file system.
    pub row: String,
    /// Panel in the row, for example a class of functions.
    pub column: String,
    /// Curve in the panel.
    pub curve: String,
    /// A value to be compared with: its point is filled.
    pub is_reference: bool,
    /// Place on the abscissa.
    pub x: u64,
    /// Place on the ordinate.
    pub y: f64,
}

/// What stands at the picture.
#[derive(Clone, Copy, Debug)]
pub struct Words {
    /// Above it.
    pub title: &'static str,
    /// At each abscissa.
    pub x: &'static str,
    /// At each ordinate.
    pub y: &'static str,
}

const PANEL: (u32, u32) = (380, 300);
const TITLE_HEIGHT: u32 = 50;
/// Told apart by the colour-blind too (Okabe and Ito); the first is that of references.
const COLOURS: [RGBColor; 6] = [
    RGBColor(0, 0, 0),
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(230, 159, 0),
];

/// The picture: one panel for each row and column of the points, with one scale for a row. Several points of one curve and place
/// are joined to their median.
///
/// # Errors
/// What the drawing reports, in words; there are no points.
pub fn svg(points: &[Point], words: Words) -> Result<String, String> {
    if points.is_empty() {
        return Err("there is nothing to draw".to_owned());
    }
    let plain = |text: &str| line(text).into_owned();
    let shown = |p: &Point| Point { row: plain(&p.row), column: plain(&p.column), curve: plain(&p.curve), ..*p };
    let points: Vec<Point> = points.iter().map(shown).collect();
    let names =
        |of: fn(&Point) -> &String| points.iter().map(of).collect::<BTreeSet<_>>().into_iter().collect::<Vec<_>>();
    let (rows, columns) = (names(|p| &p.row), names(|p| &p.column));
    let size = (PANEL.0 * columns.len() as u32, TITLE_HEIGHT + PANEL.1 * rows.len() as u32);
    let mut text = String::new();
    {
        let root = SVGBackend::with_string(&mut text, size).into_drawing_area();
        let told = |e: DrawingAreaErrorKind<_>| e.to_string();
        root.fill(&WHITE).map_err(told)?;
        let below = root.titled(words.title, ("sans-serif", 20)).map_err(told)?;
        for (place, panel) in below.split_evenly((rows.len(), columns.len())).iter().enumerate() {
            let (row, column) = (rows[place / columns.len()], columns[place % columns.len()]);
            let of_row: Vec<&Point> = points.iter().filter(|p| p.row == *row).collect();
            panel_of(panel, &of_row, column, words).map_err(told)?;
        }
        root.present().map_err(told)?;
    }
    Ok(text)
}

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
type Failed<'a> = DrawingAreaErrorKind<<SVGBackend<'a> as DrawingBackend>::ErrorType>;

fn panel_of<'a>(area: &Area<'a>, of_row: &[&Point], column: &str, words: Words) -> Result<(), Failed<'a>> {
    let highest = of_row.iter().map(|p| p.y).fold(0.0, f64::max) * 1.15;
    let longest = of_row.iter().map(|p| p.x).max().unwrap_or(1).saturating_add(1);
    let of_panel: Vec<&&Point> = of_row.iter().filter(|p| p.column == column).collect();
    let Some(first) = of_panel.first() else { return Ok(()) };
    let mut chart = ChartBuilder::on(area)
        .caption(format!("{}: {column}", first.row), ("sans-serif", 15))
        .margin(8)
        .x_label_area_size(34)
        .y_label_area_size(62)
        .build_cartesian_2d(0..longest, 0.0..if highest > 0.0 { highest } else { 1.0 })?;
    chart
        .configure_mesh()
        .light_line_style(WHITE)
        .x_desc(words.x)
        .y_desc(words.y)
        .x_labels(longest.min(9) as usize)
        .draw()?;
    let mut curves: BTreeMap<(bool, &str), BTreeMap<u64, Vec<f64>>> = BTreeMap::new();
    for point in &of_panel {
        // References come first.
        curves.entry((!point.is_reference, &point.curve)).or_default().entry(point.x).or_default().push(point.y);
    }
    for (number, ((is_replay, name), places)) in curves.into_iter().enumerate() {
        let colour = COLOURS[number % COLOURS.len()];
        let line: Vec<(u64, f64)> = places.into_iter().map(|(x, values)| (x, median(values))).collect();
        let style = |size: i32, at: (u64, f64)| {
            Circle::new(at, size, if is_replay { colour.stroke_width(2) } else { colour.filled() })
        };
        chart.draw_series(LineSeries::new(line.clone(), colour.stroke_width(1)))?;
        chart.draw_series(line.into_iter().map(|at| style(4, at)))?.label(name).legend(move |(x, y)| {
            Circle::new((x + 8, y), 4, if is_replay { colour.stroke_width(2) } else { colour.filled() })
        });
    }
    chart
        .configure_series_labels()
        .position(SeriesLabelPosition::LowerRight)
        .background_style(WHITE.mix(0.8))
        .border_style(BLACK.mix(0.3))
        .draw()
}

/// Of the two in the middle the lower one: a value that was measured.
fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get((values.len().max(1) - 1) / 2).copied().unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const WORDS: Words = Words { title: "A title", x: "processes", y: "MB/s" };

    fn point(row: &str, column: &str, curve: &str, x: u64, y: f64) -> Point {
        let is_reference = curve == "recorded";
        Point { row: row.into(), column: column.into(), curve: curve.into(), is_reference, x, y }
    }

    #[test]
    fn every_panel_and_curve_is_there() {
        let mut points = Vec::new();
        for (row, column) in [("ext4", "read"), ("ext4", "write"), ("nfs", "write")] {
            for x in [1, 2, 4] {
                points.extend([point(row, column, "recorded", x, 10.0), point(row, column, "mpiio", x, x as f64)]);
            }
        }
        let text = svg(&points, WORDS).unwrap();
        for words in ["A title", "processes", "MB/s", "ext4: read", "ext4: write", "nfs: write", "recorded", "mpiio"] {
            assert!(text.contains(words), "{words}\n{text}");
        }
        assert!(!text.contains("nfs: read"), "nothing was measured there");
        // Three panels: each three points of two curves, and a mark in the legend of each.
        assert_eq!(text.matches("<circle").count(), 3 * 2 * (3 + 1));
        let (outside, all) = (2 * PANEL.0, text.matches("cx=\"").count());
        let inside = text
            .split("cx=\"")
            .skip(1)
            .filter(|rest| rest.split('"').next().unwrap().parse::<u32>().unwrap() <= outside);
        assert_eq!(inside.count(), all);
    }

    #[test]
    fn names_are_text_and_no_markup() {
        let text = svg(&[point("<script>", "a&b", "\"x\"", 1, 1.0)], WORDS).unwrap();
        assert!(!text.contains("<script>") && text.contains("&lt;script&gt;: a&amp;b"), "{text}");
    }

    #[test]
    fn repeated_runs_are_one_point() {
        assert_eq!(median(vec![3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(vec![4.0, 1.0]), 1.0);
        assert!(svg(&[], WORDS).is_err());
        let points: Vec<_> = [1.0, 2.0, 9.0].map(|y| point("ext4", "read", "recorded", 2, y)).into();
        assert_eq!(svg(&points, WORDS).unwrap().matches("<circle").count(), 2);
    }
}
