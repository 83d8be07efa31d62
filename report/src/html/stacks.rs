//! Frames with a bar for each of several things, made of parts.

use std::fmt::Write;

use super::escape::escape;
use super::lines::STYLES;
use super::scale::is_sound;
use crate::picture::{Frame, Key};

const WIDTH: f64 = 340.0;
const NAME: f64 = 62.0;
const TOTAL: f64 = 52.0;
const BAR: f64 = 20.0;
const STEP: f64 = 27.0;
/// Width of a letter of the names in parts.
const LETTER: f64 = 6.2;
/// Letters of a name.
const LETTERS: usize = 9;

/// A bar.
#[derive(Clone, Debug)]
pub struct Bar {
    /// What it is about.
    pub name: String,
    /// What stands at its end.
    pub total: String,
    /// Lengths of its parts, each with what a pointer is told.
    pub parts: Vec<(f64, String)>,
}

/// A frame with bars whose parts have these colours and names; `longest` is as long as there is room.
#[must_use]
pub fn frame(title: &str, said: String, names: &[(usize, &str)], bars: &[Bar], longest: f64) -> Frame {
    let mut body = String::new();
    let room = WIDTH - NAME - TOTAL;
    let unit = if is_sound(longest) { room / longest } else { 0.0 };
    for (place, bar) in bars.iter().enumerate() {
        let y = 4.0 + place as f64 * STEP;
        let _ = write!(body, "<text x=\"0\" y=\"{}\">{}</text>", y + 14.0, escape(&cut(&bar.name)));
        let mut x = NAME;
        for (part, (length, said)) in bar.parts.iter().enumerate() {
            let width = if length.is_finite() { (length * unit).clamp(0.0, (NAME + room - x).max(0.0)) } else { 0.0 };
            if width < 0.05 {
                continue;
            }
            let (style, name) = names.get(part).copied().unwrap_or((part, ""));
            let style = style % STYLES;
            let _ = write!(
                body,
                "<rect class=\"s k{style}\" x=\"{x:.1}\" y=\"{y}\" width=\"{width:.1}\" height=\"{BAR}\"><title>{}</title></rect>",
                escape(said)
            );
            // Named where there is room, so that colours need not be told apart.
            if width > LETTER * name.len() as f64 + 6.0 {
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
        said,
        width: WIDTH,
        height: 8.0 + STEP * bars.len().max(1) as f64,
        body,
        plot: None,
    }
}

/// As much of a name as there is room for.
pub fn cut(name: &str) -> String {
    let plain = crate::plain::line(name);
    if plain.chars().count() <= LETTERS {
        return plain.into_owned();
    }
    plain.chars().take(LETTERS - 1).chain(['…']).collect()
}

/// The legend of a part with this colour.
#[must_use]
pub fn key(style: usize, text: &str) -> Key {
    let style = style % STYLES;
    Key {
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
        let bar = Bar { name: "a very long name<".into(), total: "10 s".into(), parts };
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
                assert!(number("x") + number("width") <= WIDTH - TOTAL + 0.2, "{rect}");
            }
        }
        assert_eq!(cut("a very long name"), "a very l…");
    }
}
