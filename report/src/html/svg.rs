//! A picture as a separate SVG file.

use std::fmt::Write;

use super::escape::escape;
use crate::picture::Picture;

/// Style of pictures in light and dark mode, also used by the page.
pub const STYLE: &str = include_str!("picture.css");

const MAX_FRAMES_PER_ROW: usize = 3;
const GAP: f64 = 16.0;
const EDGE: f64 = 16.0;
const LETTER: f64 = 6.4;

/// The picture as an SVG document that follows the viewer's light or dark mode.
#[must_use]
pub fn standalone_svg(picture: &Picture) -> String {
    svg_with_columns(picture, picture.frames.len().clamp(1, MAX_FRAMES_PER_ROW))
}

/// The same with `across` frames per row.
pub fn svg_with_columns(picture: &Picture, across: usize) -> String {
    let width_of = picture.frames.iter().map(|f| f.width).fold(340.0, f64::max);
    let width = 2.0 * EDGE + across as f64 * (width_of + GAP) - GAP;
    let mut body = String::new();
    let title = escape(&picture.title);
    let _ = write!(body, "<text class=\"f\" x=\"{EDGE}\" y=\"30\">{title}</text>");
    let mut y = legend(&mut body, picture, width, 44.0);
    for row in picture.frames.chunks(across) {
        let height = row.iter().map(|f| f.height).fold(0.0, f64::max);
        for (place, frame) in row.iter().enumerate() {
            let x = EDGE + place as f64 * (width_of + GAP);
            let _ = write!(
                body,
                "\n<text class=\"f\" x=\"{x}\" y=\"{}\">{}</text><svg x=\"{x}\" y=\"{}\" width=\"{}\" height=\"{}\">{}</svg>",
                y + 12.0,
                escape(&frame.title),
                y + 18.0,
                frame.width,
                frame.height,
                frame.body
            );
        }
        y += height + 18.0 + GAP;
    }
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {y}\" width=\"{width}\" height=\"{y}\" role=\"img\" \
         aria-label=\"{title}\"><title>{title}</title><style>{STYLE}</style><rect class=\"z\" width=\"100%\" height=\"100%\"/>{body}</svg>\n"
    )
}

/// Writes the legend in as many lines as needed; returns its lower end.
fn legend(body: &mut String, picture: &Picture, width: f64, top: f64) -> f64 {
    let (mut x, mut y) = (EDGE, top);
    for key in &picture.keys {
        let needed = 34.0 + LETTER * key.text.chars().count() as f64 + GAP;
        if x > EDGE && x + needed > width - EDGE {
            (x, y) = (EDGE, y + 20.0);
        }
        let _ = write!(
            body,
            "<svg x=\"{x}\" y=\"{y}\" width=\"26\" height=\"12\">{}</svg><text x=\"{}\" y=\"{}\">{}</text>",
            key.sample,
            x + 32.0,
            y + 10.0,
            escape(&key.text)
        );
        x += needed;
    }
    if picture.keys.is_empty() {
        top
    } else {
        y + 30.0
    }
}
