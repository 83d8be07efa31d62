//! Frames with a grid of shaded cells over time.

use std::fmt::Write;

use super::escape::escape;
use super::lines::STYLES;
use super::scale::{label, linear};
use super::stacks::truncate_name;
use crate::picture::Frame;

const WIDTH: f64 = 340.0;
const NAME_WIDTH: f64 = 62.0;
const RIGHT: f64 = 8.0;
const ROW_HEIGHT: f64 = 9.0;
/// Up to this number rows are as high as their names, and all are named.
const MAX_NAMED_ROWS: usize = 8;
const NAMED_ROW_HEIGHT: f64 = 16.0;
const BOTTOM: f64 = 24.0;
/// Weaker cells would not be visible.
const MIN_OPACITY: f64 = 0.12;
/// Distance of names of lower rows.
const NAME_STEP: usize = 4;

/// A frame with one row of cells per name, the first at the bottom. Cells are shares of the largest value, 0 to 1; the columns together
/// last `seconds`.
#[must_use]
pub fn frame(title: &str, said: String, style: usize, rows: &[(String, Vec<f64>)], seconds: f64) -> Frame {
    let (height, step_of_names) =
        if rows.len() <= MAX_NAMED_ROWS { (NAMED_ROW_HEIGHT, 1) } else { (ROW_HEIGHT, NAME_STEP) };
    let bottom = 4.0 + height * rows.len().max(1) as f64;
    let inner = WIDTH - NAME_WIDTH - RIGHT;
    let mut body = String::new();
    let (end, step) = linear(seconds);
    let unit = inner / seconds.max(1e-12);
    let mut tick = 0.0;
    while tick <= end && tick * unit <= inner * 1.001 {
        let x = NAME_WIDTH + tick * unit;
        let text = if tick < 1e-12 { "0".to_owned() } else { label(tick) };
        let _ = write!(
            body,
            "<path class=\"a\" d=\"M{x:.1} 0V{bottom}\"/><text class=\"m\" x=\"{x:.1}\" y=\"{}\">{text}</text>",
            bottom + 14.0
        );
        tick += step;
    }
    let _ = write!(body, "<text class=\"u\" x=\"0\" y=\"{}\">seconds</text>", bottom + 14.0);
    for (place, (name, cells)) in rows.iter().enumerate() {
        let y = bottom - height * (place + 1) as f64;
        if place % step_of_names == 0 {
            let _ = write!(body, "<text x=\"0\" y=\"{:.1}\">{}</text>", y + height - 3.0, escape(&truncate_name(name)));
        }
        draw_row(&mut body, style, cells, (y, height, inner));
    }
    Frame { title: title.to_owned(), description: said, width: WIDTH, height: bottom + BOTTOM, body, plot: None }
}

/// Adjacent cells of one shade are one rectangle.
fn draw_row(body: &mut String, style: usize, cells: &[f64], (y, height, inner): (f64, f64, f64)) {
    let shade = |share: f64| if share > 0.0 { (share.min(1.0) * 10.0).ceil() / 10.0 } else { 0.0 };
    let width = inner / cells.len().max(1) as f64;
    let mut first = 0;
    while first < cells.len() {
        let opacity = shade(cells[first]);
        let same = cells[first..].iter().take_while(|share| shade(**share) == opacity).count();
        if opacity > 0.0 {
            let _ = write!(
                body,
                "<rect class=\"p k{}\" x=\"{:.1}\" y=\"{y:.1}\" width=\"{:.1}\" height=\"{}\" opacity=\"{:.2}\"/>",
                style % STYLES,
                NAME_WIDTH + first as f64 * width,
                width * same as f64,
                height - 0.5,
                opacity.max(MIN_OPACITY)
            );
        }
        first += same.max(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn empty_cells_are_not_drawn_and_equal_ones_are_one() {
        let rows =
            vec![("<a>".to_owned(), vec![0.0, 1.0, 1.0, 0.0]), ("b".to_owned(), vec![f64::NAN, 0.01, 0.55, 0.0])];
        let frame = frame("t", String::new(), 1, &rows, 3.7);
        assert_eq!(frame.body.matches("<rect").count(), 3, "{}", frame.body);
        assert!(frame.body.contains("opacity=\"0.12\"") && !frame.body.contains("<a>"), "{}", frame.body);
        let nothing = super::frame("t", String::new(), 0, &[], 0.0);
        assert!(nothing.height > 0.0 && nothing.body.matches("<path").count() < 10);
    }
}
