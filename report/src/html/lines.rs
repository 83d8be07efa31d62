//! Frames with curves on a logarithmic ordinate.

use std::fmt::Write;

use super::escape::escape;
use super::scale::{is_plottable, label, LogScale};
use crate::picture::{Frame, LegendEntry};
use crate::picture::{Plot, PlotCurve, PlotPoint};

/// Number of different colours, dashes and marks; further curves reuse them.
pub const STYLES: usize = 8;
/// Maximum number of points of a curve with marks.
const MAX_MARKED_POINTS: usize = 40;
const WIDTH: f64 = 340.0;
const HEIGHT: f64 = 208.0;
const LEFT: f64 = 42.0;
const RIGHT: f64 = 8.0;
const TOP: f64 = 18.0;
const BOTTOM: f64 = 24.0;
const MAX_LABELS: usize = 8;
/// Width of the name of a change.
const NAME_WIDTH: f64 = 14.0;

/// Appearance of a point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MarkerStyle {
    /// Normal: filled.
    Known,
    /// Read from a cache: an open circle.
    Cached,
    /// From few calls: grey.
    Few,
    /// Compared with reference values: open, in the shape of its curve.
    Open,
}

/// A point of a curve.
#[derive(Clone, Debug)]
pub struct FramePoint {
    /// Abscissa: a value, or the index of a name.
    pub x: f64,
    /// Value.
    pub y: f64,
    /// Appearance.
    pub marker: MarkerStyle,
    /// Interval of the value, drawn as a vertical bar.
    pub interval: Option<[f64; 2]>,
    /// Tooltip.
    pub tooltip: String,
}

/// An abscissa at which the circumstances of all curves change.
#[derive(Clone, Debug)]
pub struct FrameChange {
    /// Abscissa.
    pub x: f64,
    /// Its name, a letter or two.
    pub name: String,
    /// Tooltip.
    pub tooltip: String,
}

/// A curve.
#[derive(Clone, Debug)]
pub struct FrameCurve {
    /// Colour, dashes and mark.
    pub style: usize,
    /// Points in ascending order of the abscissa.
    pub points: Vec<FramePoint>,
}

/// Abscissa of a frame.
#[derive(Clone, Debug)]
pub enum Abscissa {
    /// Names at equal distances; curves are interrupted at missing values.
    Names(Vec<String>),
    /// A logarithmic scale and its labels.
    Log(LogScale, Vec<(f64, String)>),
    /// A linear scale between two times in seconds, and its labels.
    Dates([f64; 2], Vec<(f64, String)>),
}

impl Abscissa {
    /// A logarithmic scale over values with names; None without values above zero.
    #[must_use]
    pub fn log(mut values: Vec<(f64, String)>) -> Option<Self> {
        values.retain(|(v, _)| is_plottable(*v));
        values.sort_by(|a, b| a.0.total_cmp(&b.0));
        values.dedup_by(|a, b| a.0 == b.0);
        let scale = LogScale::between(values.iter().map(|(v, _)| *v))?;
        let labels = free_labels(values, |value| scale.position(value));
        Some(Self::Log(scale, labels))
    }

    /// A scale over times in seconds with names; None without two different ones.
    #[must_use]
    pub fn dates(mut values: Vec<(f64, String)>) -> Option<Self> {
        values.retain(|(v, _)| v.is_finite());
        values.sort_by(|a, b| a.0.total_cmp(&b.0));
        values.dedup_by(|a, b| a.0 == b.0);
        let ends = [values.first()?.0, values.last()?.0];
        (ends[0] < ends[1]).then(|| Self::Dates(ends, free_labels(values, |value| share_between(ends, value))))
    }

    fn position(&self, x: f64) -> f64 {
        let share = match self {
            Self::Names(names) => (x + 0.5) / names.len().max(1) as f64,
            // Margins for marks and labels at the ends.
            Self::Log(scale, _) => 0.05 + 0.9 * scale.position(x),
            Self::Dates(ends, _) => 0.05 + 0.9 * share_between(*ends, x),
        };
        LEFT + share.clamp(0.0, 1.0) * (WIDTH - LEFT - RIGHT)
    }
}

fn share_between([low, high]: [f64; 2], value: f64) -> f64 {
    ((value - low) / (high - low)).clamp(0.0, 1.0)
}

/// Labels of which no two are closer than one of [`MAX_LABELS`] equal parts; the first and the last are always shown.
fn free_labels(values: Vec<(f64, String)>, position: impl Fn(f64) -> f64) -> Vec<(f64, String)> {
    let mut labels: Vec<(f64, String)> = Vec::new();
    let last = values.last().cloned();
    let is_free = |a: f64, b: f64| (position(a) - position(b)).abs() >= 0.98 / MAX_LABELS as f64;
    for (value, name) in values {
        let is_clear = labels.last().is_none_or(|(before, _)| is_free(value, *before));
        if is_clear && last.as_ref().is_none_or(|(end, _)| *end == value || is_free(value, *end)) {
            labels.push((value, name));
        }
    }
    labels
}

/// A frame with curves.
#[must_use]
pub fn frame(
    title: &str,
    said: String,
    unit: &str,
    abscissa: &Abscissa,
    ordinate: LogScale,
    curves: &[FrameCurve],
) -> Frame {
    let mut body = String::new();
    axes(&mut body, unit, abscissa, ordinate);
    let y = |value: f64| TOP + (1.0 - ordinate.position(value)) * (HEIGHT - TOP - BOTTOM);
    for curve in curves {
        let style = curve.style % STYLES;
        let points: Vec<&FramePoint> = curve.points.iter().filter(|p| is_plottable(p.y) && p.x.is_finite()).collect();
        let mut path = String::new();
        for (place, point) in points.iter().enumerate() {
            let is_next = match (abscissa, place.checked_sub(1).map(|before| points[before].x)) {
                (_, None) => false,
                (Abscissa::Names(_), Some(before)) => point.x - before <= 1.0,
                (Abscissa::Log(..) | Abscissa::Dates(..), Some(_)) => true,
            };
            let _ =
                write!(path, "{}{:.1} {:.1}", if is_next { 'L' } else { 'M' }, abscissa.position(point.x), y(point.y));
        }
        if !path.is_empty() {
            let _ = write!(body, "<path class=\"c k{style}\" d=\"{path}\"/>");
        }
        draw_intervals(&mut body, style, &points, |x| abscissa.position(x), y);
        for point in points.iter().filter(|_| points.len() <= MAX_MARKED_POINTS) {
            draw_marker(&mut body, style, point.marker, (abscissa.position(point.x), y(point.y)), &point.tooltip);
        }
    }
    let plot = plot_data(unit, abscissa, curves);
    Frame { title: title.to_owned(), description: said, width: WIDTH, height: HEIGHT, body, plot: Some(plot) }
}

/// Adds a label of the abscissa to a frame.
pub fn with_abscissa_label(abscissa: &str, mut frame: Frame) -> Frame {
    let (x, y) = ((LEFT + WIDTH - RIGHT) / 2.0, HEIGHT + 5.0);
    let _ = write!(frame.body, "<text x=\"{x}\" y=\"{y}\" class=\"m\">{}</text>", escape(abscissa));
    Frame { height: HEIGHT + 10.0, ..frame }
}

/// Adds vertical lines with their names to a frame over this abscissa.
#[must_use]
pub fn with_changes(mut frame: Frame, abscissa: &Abscissa, changes: &[FrameChange]) -> Frame {
    let mut free_from = LEFT + NAME_WIDTH;
    for change in changes {
        let x = abscissa.position(change.x);
        let _ = write!(
            frame.body,
            "<path class=\"d\" d=\"M{x:.1} {TOP}V{}\"><title>{}</title></path>",
            HEIGHT - BOTTOM,
            escape(&change.tooltip)
        );
        // Names that would touch are at the pointer and in the list of changes only.
        if x >= free_from {
            let _ = write!(
                frame.body,
                "<text x=\"{x:.1}\" y=\"{}\" class=\"m\">{}</text>",
                TOP - 4.0,
                escape(&change.name)
            );
            free_from = x + NAME_WIDTH;
        }
    }
    if let Some(plot) = &mut frame.plot {
        plot.changes = changes.iter().map(|change| (change.x, change.name.clone())).collect();
    }
    frame
}

/// Bars of the intervals, with ends.
fn draw_intervals(
    body: &mut String,
    style: usize,
    points: &[&FramePoint],
    x: impl Fn(f64) -> f64,
    y: impl Fn(f64) -> f64,
) {
    let mut path = String::new();
    for (point, [low, high]) in points.iter().filter_map(|p| Some((p, p.interval?))) {
        if is_plottable(low) && is_plottable(high) {
            let (x, low, high) = (x(point.x), y(low), y(high));
            let _ = write!(path, "M{:.1} {low:.1}h5m-2.5 0V{high:.1}m-2.5 0h5", x - 2.5);
        }
    }
    if !path.is_empty() {
        let _ = write!(body, "<path class=\"v k{style}\" d=\"{path}\"/>");
    }
}

fn plot_data(unit: &str, abscissa: &Abscissa, curves: &[FrameCurve]) -> Plot {
    let (names, labels) = match abscissa {
        Abscissa::Names(names) => (names.clone(), Vec::new()),
        Abscissa::Log(_, labels) | Abscissa::Dates(_, labels) => (Vec::new(), labels.clone()),
    };
    let is_log = matches!(abscissa, Abscissa::Log(..));
    let is_dates = matches!(abscissa, Abscissa::Dates(..));
    let point = |p: &FramePoint| PlotPoint { x: p.x, y: p.y, interval: p.interval, marker: p.marker as u8 };
    let is_drawn = |p: &&FramePoint| is_plottable(p.y) && (is_plottable(p.x) || (!is_log && p.x.is_finite()));
    let curve =
        |c: &FrameCurve| PlotCurve { style: c.style, points: c.points.iter().filter(is_drawn).map(point).collect() };
    let curves = curves.iter().map(curve).collect();
    Plot { unit: unit.to_owned(), names, labels, is_dates, changes: Vec::new(), curves }
}

fn axes(body: &mut String, unit: &str, abscissa: &Abscissa, ordinate: LogScale) {
    let (right, bottom) = (WIDTH - RIGHT, HEIGHT - BOTTOM);
    let _ = write!(body, "<text x=\"2\" y=\"10\" class=\"u\">{}</text>", escape(unit));
    let mut grid = String::new();
    for tick in ordinate.ticks() {
        let y = TOP + (1.0 - ordinate.position(tick)) * (bottom - TOP);
        let _ = write!(grid, "M{LEFT} {y:.1}H{right}");
        let _ = write!(body, "<text x=\"{}\" y=\"{:.1}\" class=\"e\">{}</text>", LEFT - 5.0, y + 3.5, label(tick));
    }
    let names: Vec<(f64, &str)> = match abscissa {
        Abscissa::Names(names) => {
            let step = names.len().div_ceil(2 * MAX_LABELS).max(1);
            names.iter().enumerate().step_by(step).map(|(i, name)| (i as f64, name.as_str())).collect()
        }
        Abscissa::Log(_, labels) | Abscissa::Dates(_, labels) => {
            labels.iter().map(|(v, name)| (*v, name.as_str())).collect()
        }
    };
    for (x, name) in names {
        let x = abscissa.position(x);
        let _ = write!(grid, "M{x:.1} {bottom}v4");
        let _ = write!(body, "<text x=\"{x:.1}\" y=\"{}\" class=\"m\">{}</text>", bottom + 15.0, escape(name));
    }
    let _ = write!(body, "<path class=\"a\" d=\"{grid}\"/>");
}

fn draw_marker(out: &mut String, style: usize, look: MarkerStyle, (x, y): (f64, f64), said: &str) {
    let class = match look {
        MarkerStyle::Known => format!("p k{style}"),
        MarkerStyle::Cached | MarkerStyle::Open => format!("o k{style}"),
        MarkerStyle::Few => "p g".to_owned(),
    };
    // Cached points are open circles for all curves; other points have the shape of their curve.
    let shape = match style {
        _ if look == MarkerStyle::Cached => None,
        1 => Some("h6v6h-6z"),
        2 => Some("l3.6 6.4h-7.2z"),
        3 => Some("l4 4l-4 4l-4 -4z"),
        4 => Some("h7.2l-3.6 6.4z"),
        5 => Some("h2.4v2.2h2.2v2.4h-2.2v2.2h-2.4v-2.2h-2.2v-2.4h2.2z"),
        6 => Some("h2.6v8h-2.6z"),
        7 => Some("h8v2.6h-8z"),
        _ => None,
    };
    let from = match style {
        1 => (-3.0, -3.0),
        2 => (0.0, -4.0),
        3 => (0.0, -4.0),
        4 => (-3.6, -2.6),
        5 => (-1.2, -3.4),
        6 => (-1.3, -4.0),
        _ => (-4.0, -1.3),
    };
    let title = if said.is_empty() { String::new() } else { format!("<title>{}</title>", escape(said)) };
    let _ = match shape {
        Some(shape) => {
            write!(out, "<path class=\"{class}\" d=\"M{:.1} {:.1}{shape}\">{title}</path>", x + from.0, y + from.1)
        }
        None => write!(out, "<circle class=\"{class}\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3.2\">{title}</circle>"),
    };
}

/// Legend entry of a curve.
#[must_use]
pub fn legend_entry(style: usize, text: impl Into<String>) -> LegendEntry {
    legend_entry_with_marker(style, MarkerStyle::Known, text)
}

/// Legend entry of a curve with another appearance of its marks.
pub fn legend_entry_with_marker(style: usize, look: MarkerStyle, text: impl Into<String>) -> LegendEntry {
    let (style, own) = (style % STYLES, style);
    let mut sample = format!("<path class=\"c k{style}\" d=\"M0 6H26\"/>");
    draw_marker(&mut sample, style, look, (13.0, 6.0), "");
    LegendEntry { sample, text: text.into(), style: Some(own) }
}

/// Legend entries of special marks that are used.
#[must_use]
pub fn marker_legend(curves: &[FrameCurve]) -> Vec<LegendEntry> {
    let has = |look: MarkerStyle| curves.iter().flat_map(|c| &c.points).any(|p| p.marker == look && is_plottable(p.y));
    let mut keys = Vec::new();
    for (look, text) in [(MarkerStyle::Cached, "read from a cache"), (MarkerStyle::Few, "from few calls")] {
        if has(look) {
            let mut sample = String::new();
            draw_marker(&mut sample, 0, look, (13.0, 6.0), "");
            keys.push(LegendEntry { sample, text: text.to_owned(), style: None });
        }
    }
    keys
}

#[cfg(test)]
mod tests {
    use super::*;

    fn curve(style: usize, values: &[(f64, f64)]) -> FrameCurve {
        let point = |&(x, y)| FramePoint { x, y, marker: MarkerStyle::Known, interval: None, tooltip: "<b>".into() };
        FrameCurve { style, points: values.iter().map(point).collect() }
    }

    fn numbers(body: &str, before: &str) -> Vec<f64> {
        let rest = body.split(before).skip(1);
        rest.map(|rest| rest.split('"').next().unwrap().parse().unwrap()).collect()
    }

    #[test]
    fn everything_is_inside_and_gaps_stay_gaps() {
        let names = Abscissa::Names(["1k", "<2k>", "3k", "4k"].map(str::to_owned).to_vec());
        let values = [(0.0, 1.0), (1.0, f64::NAN), (2.0, 1e4), (3.0, 0.0), (3.0, 50.0)];
        let scale = LogScale::around(values.iter().map(|v| v.1)).unwrap();
        let frame = frame("t", "s".into(), "MB/s", &names, scale, &[curve(0, &values)]);
        assert_eq!(frame.body.matches("<circle").count(), 3);
        assert!(!frame.body.contains("<2k>") && !frame.body.contains("<b>"), "{}", frame.body);
        let path = frame.body.split("class=\"c k0\" d=\"").nth(1).unwrap().split('"').next().unwrap();
        assert_eq!((path.matches('M').count(), path.matches('L').count()), (2, 1), "{path}");
        assert!(numbers(&frame.body, "cx=\"").iter().all(|x| (LEFT..=WIDTH).contains(x)));
        assert!(numbers(&frame.body, "cy=\"").iter().all(|y| (0.0..=HEIGHT).contains(y)));
    }

    #[test]
    fn every_style_has_its_mark_and_cached_ones_are_open() {
        let mut shapes: Vec<String> =
            (0..STYLES).map(|style| legend_entry(style, "").sample.replace(&format!("k{style}"), "k")).collect();
        shapes.sort();
        shapes.dedup();
        assert_eq!(shapes.len(), STYLES);
        let mut cached = curve(3, &[(1.0, 1.0)]);
        cached.points[0].marker = MarkerStyle::Cached;
        assert_eq!(marker_legend(&[cached.clone()]).len(), 1);
        let axis = Abscissa::log(vec![(1.0, "1".into()), (2.0, "2".into())]).unwrap();
        let frame = frame("t", "s".into(), "", &axis, LogScale::around([1.0]).unwrap(), &[cached]);
        assert!(frame.body.contains("<circle class=\"o k3\""));
    }

    #[test]
    fn labels_do_not_touch() {
        let sizes: Vec<(f64, String)> = (0..200).map(|i| (f64::from(i), i.to_string())).collect();
        let Some(Abscissa::Log(scale, labels)) = Abscissa::log(sizes) else { panic!() };
        assert!(labels.len() <= MAX_LABELS + 1 && labels.last().unwrap().0 == 199.0, "{labels:?}");
        assert!(labels.windows(2).all(|w| scale.position(w[1].0) - scale.position(w[0].0) > 0.1), "{labels:?}");
        assert!(Abscissa::log(Vec::new()).is_none());
    }
}
