//! Curves over the message sizes.

use crate::b_eff::plan::PatternFamily;
use crate::b_eff::records::CommResult;
use crate::b_eff::values::{CommDerived, PatternCurve, SizeAverage};
use crate::frame::report::html::lines::{self, Abscissa, FramePoint, MarkerStyle};
use crate::frame::report::html::scale::{size, LogScale};
use crate::frame::report::model::{ReportBlock, ReportSection};
use crate::frame::report::picture;
use crate::frame::report::picture::{Frame, Picture};
use crate::frame::report::table::{Table, TableCell};
use crate::frame::units::format_size;
use crate::frame::words::or_hyphen;
use crate::frame::words::rate;

use super::values::mb;

/// Maximum number of drawn sizes; a damaged file may have any number.
const MAX_DRAWN_SIZES: usize = 64;

fn axis(sizes: impl Iterator<Item = u64>) -> Option<Abscissa> {
    Abscissa::log(sizes.take(MAX_DRAWN_SIZES).map(|bytes| (bytes as f64, size(bytes))).collect())
}

type AverageSelector = fn(&SizeAverage) -> Option<f64>;

const CURVES: [(&str, AverageSelector); 4] = [
    ("rings", |s| s.rings_bytes_per_second),
    ("random rings", |s| s.random_bytes_per_second),
    ("both", |s| s.average_bytes_per_second),
    ("ping-pong", |s| s.ping_pong_bytes_per_second),
];

/// Averages over the sizes, and every ring and random ring by its best method.
pub(super) fn section(derived: &CommDerived) -> Option<ReportSection> {
    let sizes = &derived.sizes[..derived.sizes.len().min(MAX_DRAWN_SIZES)];
    let axis = axis(sizes.iter().map(|s| s.message_bytes))?;
    let scale =
        LogScale::around(sizes.iter().flat_map(|s| CURVES.iter().filter_map(move |(_, v)| v(s))).map(|v| v / 1e6))?;
    let curve = |(style, (name, value)): (usize, &(&str, AverageSelector))| {
        let point = |s: &SizeAverage| {
            let y = value(s)? / 1e6;
            let said = format!("{name}, {}: {} MB/s", format_size(s.message_bytes), rate(y, None));
            Some(FramePoint { x: s.message_bytes as f64, y, marker: MarkerStyle::Known, interval: None, tooltip: said })
        };
        lines::FrameCurve { style, points: sizes.iter().filter_map(point).collect() }
    };
    let drawn: Vec<lines::FrameCurve> = CURVES.iter().enumerate().map(curve).collect();
    let said = "MB/s of all processes over message sizes".to_owned();
    let frame = lines::frame("averages, best method each", said, "MB/s", &axis, scale, &drawn);
    let each = [(PatternFamily::Ring, "every ring"), (PatternFamily::Random, "every random ring")];
    let each = each.into_iter().filter_map(|(family, title)| family_frame(derived, family, title, &axis, scale));
    let head = ["message", "rings", "random", "average", "per process", "ping-pong", "best method (patterns)"];
    let best = |s: &SizeAverage| s.best_method.map(|m| format!("{} ({} of {})", m.name(), s.best_in, s.of_patterns));
    let row = |s: &SizeAverage| -> [TableCell; 7] {
        [
            format_size(s.message_bytes).into(),
            mb(s.rings_bytes_per_second),
            mb(s.random_bytes_per_second),
            mb(s.average_bytes_per_second),
            mb(s.per_process_bytes_per_second),
            mb(s.ping_pong_bytes_per_second),
            or_hyphen(best(s)).into(),
        ]
    };
    let table = Table::new("MB/s of all processes", 0, head).with_words().with_rows(derived.sizes.iter().map(row));
    let picture = Picture {
        name: "curves".into(),
        title: "Averages and single patterns".into(),
        keys: CURVES.iter().enumerate().map(|(style, (name, _))| lines::legend_entry(style, *name)).collect(),
        frames: [frame].into_iter().chain(each).collect(),
        table,
    };
    let note = "Rings and random rings: logavg over their patterns, the best method of each size; average: logavg of the two; \
                ping-pong: one direction between two processes.";
    ReportSection::of("curves", "Bandwidth by message size", note, vec![ReportBlock::Picture(picture)])
}

/// All patterns of a family in one frame, thin and without marks.
fn family_frame(
    derived: &CommDerived,
    family: PatternFamily,
    title: &str,
    axis: &Abscissa,
    scale: LogScale,
) -> Option<Frame> {
    let style = usize::from(family == PatternFamily::Random);
    let curve = |c: &PatternCurve| {
        let point = |p: &crate::b_eff::values::SizePoint| {
            let (x, y) = (p.message_bytes as f64, p.bytes_per_second / 1e6);
            let said = format!("{}, {}: {} MB/s", c.pattern, format_size(p.message_bytes), rate(y, None));
            FramePoint { x, y, marker: MarkerStyle::Known, interval: None, tooltip: said }
        };
        lines::FrameCurve { style, points: c.points.iter().take(MAX_DRAWN_SIZES).map(point).collect() }
    };
    let drawn: Vec<lines::FrameCurve> = derived.family(family).take(MAX_DRAWN_SIZES).map(curve).collect();
    let said = format!("{title}: MB/s of all processes over message sizes");
    (!drawn.is_empty()).then(|| lines::frame(title, said, "MB/s", axis, scale, &drawn))
}

pub(super) fn over_ranks(result: &CommResult, derived: &CommDerived) -> Vec<picture::MeasuredPoint> {
    let value = &derived.value;
    let levels = [("b_eff", value.b_eff), ("b_eff at Lmax", value.at_lmax)];
    let all = levels.iter().filter_map(|(name, level)| Some(((*name).to_owned(), level.as_ref()?.bytes_per_second)));
    let each = levels.iter().filter_map(|(name, level)| {
        Some((format!("{name}, per process"), level.as_ref()?.per_process_bytes_per_second))
    });
    let point = |(column, y): (String, f64)| picture::MeasuredPoint {
        row: "b_eff".into(),
        column,
        curve: if result.config.quick { "messages (quick)" } else { "messages" }.into(),
        run: String::new(),
        is_reference: false,
        x: value.processes,
        y: y / 1e6,
    };
    all.chain(each).map(point).collect()
}
