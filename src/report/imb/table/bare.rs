//! What our loops cost beside bare ones in C.

use crate::report::text::Page;
use crate::stats::imb::{ImbBareValue, ImbDerived};
use crate::units::format_size;

/// How far apart two loops of the same calls may be.
const TOLERANCE: f64 = 0.05;

pub(super) fn write(page: &mut Page, derived: &ImbDerived) {
    if derived.bare.is_empty() {
        return;
    }
    page.heading("Our loops beside bare C loops of the same calls: time of a call in usec");
    page.line(format!(
        "  {:18}{:>6}{:>12}{:>14}{:>14}{:>8}  {:18}{:>6}",
        "benchmark", "ranks", "size", "ours", "bare", "ratio", "[95 %]", "pairs"
    ));
    for value in &derived.bare {
        page.line(row(value));
    }
    page.line("  In turns in one process, slowest rank; medians, the ratio over pairs.");
}

fn row(v: &ImbBareValue) -> String {
    let interval = v.interval.map_or_else(|| "-".to_owned(), |[low, high]| format!("[{low:.3}, {high:.3}]"));
    let verdict = if (v.ratio - 1.0).abs() <= TOLERANCE { "" } else { "  > 5 %" };
    format!(
        "  {:18}{:>6}{:>12}{:>14.3}{:>14.3}{:>8.3}  {interval:18}{:>6}{verdict}",
        v.benchmark,
        v.ranks,
        format_size(v.sample_bytes),
        v.ours_seconds * 1e6,
        v.bare_seconds * 1e6,
        v.ratio,
        v.pairs
    )
}
