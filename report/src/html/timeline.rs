//! Timelines: frames with consecutive spans of time in lanes.

use std::fmt::Write;

use super::escape::escape;
use super::lines::STYLES;
use super::scale::{is_plottable, label, linear};
use super::stacks::truncate_name;
use crate::picture::Frame;

const WIDTH: f64 = 340.0;
const NAME_WIDTH: f64 = 62.0;
const RIGHT: f64 = 14.0;
const HEIGHT: f64 = 18.0;
const STEP: f64 = 26.0;
const BOTTOM: f64 = 24.0;
/// Narrower spans are merged with adjacent ones.
const MIN_SPAN_WIDTH: f64 = 0.6;

/// A span of time.
#[derive(Clone, Debug)]
pub struct TimelineSpan {
    /// Colour.
    pub style: usize,
    /// Duration.
    pub seconds: f64,
    /// Longer than scheduled; underlined.
    pub is_late: bool,
    /// Tooltip.
    pub tooltip: String,
}

/// A frame with a lane for each name.
#[must_use]
pub fn frame(title: &str, said: String, lanes: &[(String, Vec<TimelineSpan>)]) -> Frame {
    let sum = |spans: &[TimelineSpan]| spans.iter().map(|s| s.seconds).filter(|s| is_plottable(*s)).sum::<f64>();
    let (end, step) = linear(lanes.iter().map(|(_, spans)| sum(spans)).fold(0.0, f64::max));
    let unit = (WIDTH - NAME_WIDTH - RIGHT) / end;
    let bottom = 4.0 + STEP * lanes.len().max(1) as f64;
    let mut body = String::new();
    let mut tick = 0.0;
    while tick <= end * 1.001 {
        let x = NAME_WIDTH + tick * unit;
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
        let _ = write!(body, "<text x=\"0\" y=\"{}\">{}</text>", y + 13.0, escape(&truncate_name(name)));
        draw_lane(&mut body, spans, unit, y);
    }
    Frame { title: title.to_owned(), description: said, width: WIDTH, height: bottom + BOTTOM, body, plot: None }
}

fn label_of(tick: f64) -> String {
    if tick < 1e-12 {
        "0".to_owned()
    } else {
        // Steps such as 0.5 and 2.5 keep their decimal.
        if tick >= 1.0 && (tick.round() - tick).abs() > 1e-6 {
            format!("{tick:.1}")
        } else {
            label(tick)
        }
    }
}

fn draw_lane(body: &mut String, spans: &[TimelineSpan], unit: f64, y: f64) {
    let mut x = NAME_WIDTH;
    // Adjacent narrow spans: start, number, whether one of them is late.
    let mut narrow = (x, 0_u64, false);
    let flush = |body: &mut String, (from, number, is_late): (f64, u64, bool), to: f64| {
        if number > 0 {
            rect(body, "g", (from, to - from, y), is_late, &format!("{number} short ones"));
        }
    };
    for span in spans.iter().filter(|s| is_plottable(s.seconds)) {
        let width = span.seconds * unit;
        if width < MIN_SPAN_WIDTH {
            narrow = (narrow.0, narrow.1 + 1, narrow.2 || span.is_late);
            x += width;
            if x - narrow.0 >= MIN_SPAN_WIDTH {
                flush(body, narrow, x);
                narrow = (x, 0, false);
            }
            continue;
        }
        flush(body, narrow, x);
        rect(body, &format!("k{}", span.style % STYLES), (x, width, y), span.is_late, &span.tooltip);
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

    fn spans(seconds: &[f64]) -> Vec<TimelineSpan> {
        seconds
            .iter()
            .map(|&seconds| TimelineSpan { style: 1, seconds, is_late: false, tooltip: "<x>".into() })
            .collect()
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
