//! Frames with stacked bars.

use std::fmt::Write;

use super::escape::escape;
use super::lines::STYLES;
use super::scale::is_plottable;
use crate::picture::{Frame, LegendEntry};

const WIDTH: f64 = 340.0;
const NAME_WIDTH: f64 = 62.0;
const TOTAL_WIDTH: f64 = 60.0;
const BAR_HEIGHT: f64 = 20.0;
const BAR_DISTANCE: f64 = 27.0;
/// Width of a letter of part names.
const LETTER_WIDTH: f64 = 6.2;
const MAX_NAME_LETTERS: usize = 9;

/// A stacked bar.
#[derive(Clone, Debug)]
pub struct StackedBar {
    /// Name.
    pub name: String,
    /// Text at its end.
    pub total: String,
    /// Lengths and tooltips of its parts.
    pub parts: Vec<(f64, String)>,
}

/// A frame with bars whose parts have these colours and names; `longest` is the length that fills the width.
#[must_use]
pub fn frame(title: &str, said: String, names: &[(usize, &str)], bars: &[StackedBar], longest: f64) -> Frame {
    let mut body = String::new();
    let bar_width = WIDTH - NAME_WIDTH - TOTAL_WIDTH;
    let unit = if is_plottable(longest) { bar_width / longest } else { 0.0 };
    for (place, bar) in bars.iter().enumerate() {
        let y = 4.0 + place as f64 * BAR_DISTANCE;
        let _ = write!(body, "<text x=\"0\" y=\"{}\">{}</text>", y + 14.0, escape(&truncate_name(&bar.name)));
        let mut x = NAME_WIDTH;
        for (part, (length, said)) in bar.parts.iter().enumerate() {
            let width = if length.is_finite() {
                (length * unit).clamp(0.0, (NAME_WIDTH + bar_width - x).max(0.0))
            } else {
                0.0
            };
            if width < 0.05 {
                continue;
            }
            let (style, name) = names.get(part).copied().unwrap_or((part, ""));
            let style = style % STYLES;
            let _ = write!(
                body,
                "<rect class=\"s k{style}\" x=\"{x:.1}\" y=\"{y}\" width=\"{width:.1}\" height=\"{BAR_HEIGHT}\"><title>{}</title></rect>",
                escape(said)
            );
            // Named if the name fits, so that colours need not be distinguished.
            if width > LETTER_WIDTH * name.len() as f64 + 6.0 {
                let _ = write!(
                    body,
                    "<text class=\"m i\" x=\"{:.1}\" y=\"{}\">{}</text>",
                    x + width / 2.0,
                    y + 14.0,
                    escape(name)
                );
            }
            x += width;
        }
        let _ = write!(body, "<text x=\"{:.1}\" y=\"{}\">{}</text>", x + 4.0, y + 14.0, escape(&bar.total));
    }
    Frame {
        title: title.to_owned(),
        description: said,
        width: WIDTH,
        height: 8.0 + BAR_DISTANCE * bars.len().max(1) as f64,
        body,
        plot: None,
    }
}

/// Truncates a name.
pub fn truncate_name(name: &str) -> String {
    let plain = crate::terminal_escape::line(name);
    if plain.chars().count() <= MAX_NAME_LETTERS {
        return plain.into_owned();
    }
    plain.chars().take(MAX_NAME_LETTERS - 1).chain(['…']).collect()
}

/// Legend entry of a part with this colour.
#[must_use]
pub fn legend_entry(style: usize, text: &str) -> LegendEntry {
    let style = style % STYLES;
    LegendEntry {
        sample: format!("<rect class=\"s k{style}\" x=\"6\" width=\"14\" height=\"12\"/>"),
        text: text.to_owned(),
        style: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_stay_inside_whatever_the_numbers() {
        let parts = vec![
            (1.0, "a".to_owned()),
            (f64::NAN, String::new()),
            (f64::INFINITY, String::new()),
            (9.0, "<b>".to_owned()),
        ];
        let bar = StackedBar { name: "a very long name<".into(), total: "10 s".into(), parts };
        for longest in [10.0, 5.0, 0.0, f64::NAN] {
            let frame = frame(
                "t",
                String::new(),
                &[(0, "transfer"), (1, "x"), (2, "y"), (3, "sync")],
                std::slice::from_ref(&bar),
                longest,
            );
            assert!(!frame.body.contains("<b>") && !frame.body.contains("name<"));
            for rect in frame.body.split("<rect").skip(1) {
                let number = |name: &str| -> f64 {
                    rect.split(&format!(" {name}=\"")).nth(1).unwrap().split('"').next().unwrap().parse().unwrap()
                };
                assert!(number("x") + number("width") <= WIDTH - TOTAL_WIDTH + 0.2, "{rect}");
            }
        }
        assert_eq!(truncate_name("a very long name"), "a very l…");
    }
}
