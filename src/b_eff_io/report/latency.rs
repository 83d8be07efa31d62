//! Latencies of single calls, if recorded.

use crate::b_eff_io::plan::PATTERNS;
use crate::b_eff_io::records::PatternRecord;
use crate::frame::records::{AccessMethod, LatencyRecord};
use crate::frame::report::html::lines::{self, Abscissa, FrameCurve, FramePoint, MarkerStyle};
use crate::frame::report::html::scale::LogScale;
use crate::frame::report::html::slug;
use crate::frame::report::model::{ReportBlock, ReportSection};
use crate::frame::report::picture::Picture;
use crate::frame::report::table::Table;
use crate::frame::report::text::count;
use crate::frame::report::DetailLevel;

use super::layout::{access_label, chunk_label};
use super::partition_view::PartitionView;

const PERCENTILES: [&str; 4] = ["p50", "p99", "p99.9", "max"];

fn percentiles(l: &LatencyRecord) -> [u64; 4] {
    [l.p50_ns, l.p99_ns, l.p999_ns, l.max_ns]
}

/// None without records.
pub(super) fn section(shown: &PartitionView, level: DetailLevel) -> Option<ReportSection> {
    let all = shown.result.patterns.iter().filter_map(|p| p.latency.as_ref());
    let scale = LogScale::around(all.flat_map(percentiles).map(|ns| ns as f64 / 1e3));
    let block = |backend: &String| {
        let table = table(shown, backend);
        let is_drawn = level == DetailLevel::Page && !table.is_empty();
        Some(match scale.filter(|_| is_drawn) {
            Some(scale) => ReportBlock::Picture(picture(shown, backend, scale, table)),
            None if table.is_empty() => return None,
            None => ReportBlock::Table(table),
        })
    };
    let only = if let [backend] = shown.backends.as_slice() { format!("{backend}, ") } else { String::new() };
    let title = format!("Latency of single calls, {only}{}", count(shown.ranks, "rank"));
    let note = "All ranks together; p50, p99 and p99.9 are percentiles. Patterns 0 to 8 are \
                scatter, 9 to 16 shared, 17 to 24 separate, 25 to 33 segmented, 34 to 42 seg-coll.";
    let drawn = if level == DetailLevel::Page {
        "Drawn are microseconds, logarithmic, over the numbers of the patterns. "
    } else {
        ""
    };
    ReportSection::of("latency", title, format!("{drawn}{note}"), shown.backends.iter().filter_map(block).collect())
}

fn records<'s>(
    shown: &'s PartitionView,
    backend: &'s str,
    access: AccessMethod,
) -> Vec<(&'s PatternRecord, &'s LatencyRecord)> {
    let of = shown.selector(backend, access).records(&shown.result);
    let mut records: Vec<_> = of.filter_map(|p| Some((p, p.latency.as_ref()?))).collect();
    records.sort_by_key(|(p, _)| p.pattern);
    records
}

fn table(shown: &PartitionView, backend: &str) -> Table {
    let head = ["access", "no", "type", "chunk", "timed", "calls"].into_iter().chain(PERCENTILES);
    let mut table = Table::new(backend, 5, head);
    for access in AccessMethod::ALL {
        for (p, latency) in records(shown, backend, access) {
            let chunk = chunk_label(p.chunk_bytes);
            let names = [access.name().to_owned(), format!("{:>2}", p.pattern), p.pattern_type.label(), chunk];
            let timed = [format!("each {}", latency.of), latency.count.to_string()];
            table.row(names.into_iter().chain(timed).chain(percentiles(latency).map(format_ns)));
        }
        table.end_group();
    }
    table
}

fn picture(shown: &PartitionView, backend: &str, scale: LogScale, table: Table) -> Picture {
    let names: Vec<String> = (0..PATTERNS).map(|n| n.to_string()).collect();
    let frame = |access: AccessMethod| {
        let mut curves: Vec<FrameCurve> =
            (0..PERCENTILES.len()).map(|style| FrameCurve { style, points: Vec::new() }).collect();
        for (p, latency) in records(shown, backend, access) {
            for (curve, ns) in curves.iter_mut().zip(percentiles(latency)) {
                // Too many for tooltips: the table has them.
                let (x, y) = (p.pattern.into(), ns as f64 / 1e3);
                curve.points.push(FramePoint {
                    x,
                    y,
                    marker: MarkerStyle::Known,
                    interval: None,
                    tooltip: String::new(),
                });
            }
        }
        let said = format!("{backend}, {}: microseconds of a call over patterns", access_label(access));
        lines::frame(access_label(access), said, "us", &Abscissa::Names(names.clone()), scale, &curves)
    };
    Picture {
        name: format!("{}-{}-ranks-latency", slug(backend), shown.ranks),
        title: backend.to_owned(),
        keys: PERCENTILES.iter().enumerate().map(|(style, name)| lines::legend_entry(style, *name)).collect(),
        frames: AccessMethod::ALL.into_iter().map(frame).collect(),
        table,
    }
}

/// Three significant digits and the unit, in at most six characters.
fn format_ns(ns: u64) -> String {
    const UNITS: [(f64, &str); 4] = [(1.0, "ns"), (1e3, "us"), (1e6, "ms"), (1e9, "s")];
    let ns = ns as f64;
    // The next unit if the number would be rounded to 1000.
    let (factor, unit) = UNITS.into_iter().find(|(factor, _)| ns / factor < 999.5).unwrap_or((1e9, "s"));
    let value = ns / factor;
    let decimals = match value {
        _ if factor == 1.0 => 0,
        v if v < 9.995 => 2,
        v if v < 99.95 => 1,
        _ => 0,
    };
    format!("{value:.decimals$}{unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_three_digits_and_fit() {
        for (ns, text) in [
            (0, "0ns"),
            (999, "999ns"),
            (1000, "1.00us"),
            (9996, "10.0us"),
            (123_456, "123us"),
            (999_600, "1.00ms"),
            (41_250_000, "41.2ms"),
            (3_600_000_000_000, "3600s"),
        ] {
            assert_eq!(format_ns(ns), text);
            assert!(format_ns(ns).len() <= 6);
        }
    }
}
