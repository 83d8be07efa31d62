//! What our loops cost beside bare ones in C (`--bare`).

use crate::report::text::Page;
use crate::stats::comm::{BareValue, CommDerived};
use crate::units::format_size;

/// How far apart two loops of the same calls may be.
const TOLERANCE: f64 = 0.05;

pub(super) fn write(page: &mut Page, derived: &CommDerived) {
    if derived.bare.is_empty() {
        return;
    }
    page.heading("Our loops beside bare C loops of the same calls: time of a message in us");
    page.line(format!(
        "  {:12}{:12}{:>11}{:>13}{:>13}{:>8}  {:20}{:>6}",
        "pattern", "calls", "message", "ours", "bare", "ratio", "[95 %]", "pairs"
    ));
    for value in &derived.bare {
        page.line(row(value));
    }
    page.line(
        "  In turns in one process, slowest rank; medians, the ratio over pairs. Ping-pong: half of the time there",
    );
    page.line("  and back; Sendrecv: one call.");
}

fn row(v: &BareValue) -> String {
    let interval = v.interval.map_or_else(|| "-".to_owned(), |[low, high]| format!("[{low:.3}, {high:.3}]"));
    let verdict = if (v.ratio - 1.0).abs() <= TOLERANCE { "" } else { "  > 5 %" };
    format!(
        "  {:12}{:12}{:>11}{:>13.3}{:>13.3}{:>8.3}  {interval:20}{:>6}{verdict}",
        v.pattern,
        v.method.name(),
        format_size(v.message_bytes),
        v.ours_seconds * 1e6 / v.calls as f64,
        v.bare_seconds * 1e6 / v.calls as f64,
        v.ratio,
        v.pairs
    )
}
