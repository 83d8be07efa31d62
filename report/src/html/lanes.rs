//! Frames with what happened one after the other, in a lane for each of several things.

use std::fmt::Write;

use super::escape::escape;
use super::lines::STYLES;
use super::scale::{is_sound, label, linear};
use super::stacks::cut;
use crate::picture::Frame;

const WIDTH: f64 = 340.0;
const NAME: f64 = 62.0;
const RIGHT: f64 = 14.0;
const HEIGHT: f64 = 18.0;
const STEP: f64 = 26.0;
const BOTTOM: f64 = 24.0;
/// What is narrower is drawn together with its neighbours.
const NARROW: f64 = 0.6;

/// Something that took time.
#[derive(Clone, Debug)]
pub struct Span {
    /// Colour.
    pub style: usize,
    /// How long.
    pub seconds: f64,
    /// Underlined: it took longer than it should.
    pub is_late: bool,
    /// What a pointer is told.
    pub said: String,
}

/// A frame with a lane for each name.
#[must_use]
pub fn frame(title: &str, said: String, lanes: &[(String, Vec<Span>)]) -> Frame {
    let sum = |spans: &[Span]| spans.iter().map(|s| s.seconds).filter(|s| is_sound(*s)).sum::<f64>();
    let (end, step) = linear(lanes.iter().map(|(_, spans)| sum(spans)).fold(0.0, f64::max));
    let unit = (WIDTH - NAME - RIGHT) / end;
    let bottom = 4.0 + STEP * lanes.len().max(1) as f64;
    let mut body = String::new();
    let mut tick = 0.0;
    while tick <= end * 1.001 {
        let x = NAME + tick * unit;
        let _ = write!(
            body,
            "<path class=\"a\" d=\"M{x:.1} 0V{bottom}\"/><text class=\"m\" x=\"{x:.1}\" y=\"{}\">{}</text>",
            bottom + 14.0,
            label_of(tick)
        );
        tick += step;
    }
    let _ = write!(body, "<text class=\"u\" x=\"0\" y=\"{}\">seconds</text>", bottom + 14.0);
    for (place, (name, spans)) in lanes.iter().enumerate() {
        let y = 4.0 + place as f64 * STEP;
        let _ = write!(body, "<text x=\"0\" y=\"{}\">{}</text>", y + 13.0, escape(&cut(name)));
        lane(&mut body, spans, unit, y);
    }
    Frame { title: title.to_owned(), said, width: WIDTH, height: bottom + BOTTOM, body, plot: None }
}

fn label_of(tick: f64) -> String {
    if tick < 1e-12 {
        "0".to_owned()
    } else {
        // Steps of 0.5 and 2.5 keep their digit.
        if tick >= 1.0 && (tick.round() - tick).abs() > 1e-6 {
            format!("{tick:.1}")
        } else {
            label(tick)
        }
    }
}

fn lane(body: &mut String, spans: &[Span], unit: f64, y: f64) {
    let mut x = NAME;
    // Neighbours that are too narrow: where they begin, how many, whether one of them is late.
    let mut narrow = (x, 0_u64, false);
    let flush = |body: &mut String, (from, number, is_late): (f64, u64, bool), to: f64| {
        if number > 0 {
            rect(body, "g", (from, to - from, y), is_late, &format!("{number} short ones"));
        }
    };
    for span in spans.iter().filter(|s| is_sound(s.seconds)) {
        let width = span.seconds * unit;
        if width < NARROW {
            narrow = (narrow.0, narrow.1 + 1, narrow.2 || span.is_late);
            x += width;
            if x - narrow.0 >= NARROW {
                flush(body, narrow, x);
                narrow = (x, 0, false);
            }
            continue;
        }
        flush(body, narrow, x);
        rect(body, &format!("k{}", span.style % STYLES), (x, width, y), span.is_late, &span.said);
        x += width;
        narrow = (x, 0, false);
    }
    flush(body, narrow, x);
}

fn rect(body: &mut String, class: &str, (x, width, y): (f64, f64, f64), is_late: bool, said: &str) {
    let _ = write!(
        body,
        "<rect class=\"s {class}\" x=\"{x:.1}\" y=\"{y}\" width=\"{width:.1}\" height=\"{HEIGHT}\"><title>{}</title></rect>",
        escape(said)
    );
    if is_late {
        let _ = write!(body, "<path class=\"t\" d=\"M{x:.1} {}h{width:.1}\"/>", y + HEIGHT + 2.5);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spans(seconds: &[f64]) -> Vec<Span> {
        seconds.iter().map(|&seconds| Span { style: 1, seconds, is_late: false, said: "<x>".into() }).collect()
    }

    #[test]
    fn many_short_ones_are_few_blocks() {
        let frame = frame("t", String::new(), &[("posix".into(), spans(&vec![0.01; 10_000]))]);
        let blocks = frame.body.matches("<rect").count();
        assert!((10..=600).contains(&blocks), "{blocks}");
        let frame = super::frame("t", String::new(), &[("<p>".into(), spans(&[1.0, f64::NAN, 2.0, 0.0]))]);
        assert_eq!(frame.body.matches("<rect").count(), 2);
        assert!(!frame.body.contains("<x>") && !frame.body.contains("<p>"));
        assert!(super::frame("t", String::new(), &[]).height > 0.0);
    }
}
