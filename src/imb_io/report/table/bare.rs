//! What our loops cost beside bare ones in C.

use crate::frame::report::costs;
use crate::frame::report::text::Page;
use crate::frame::units::format_size;
use crate::imb_io::values::{ImbBareValue, ImbDerived};

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
    let interval = costs::interval(v.compared.interval);
    let mark = costs::mark(v.compared.ratio);
    format!(
        "  {:18}{:>6}{:>12}{:>14.3}{:>14.3}{:>8.3}  {interval:18}{:>6}{mark}",
        v.benchmark,
        v.ranks,
        format_size(v.sample_bytes),
        v.compared.ours_seconds * 1e6,
        v.compared.bare_seconds * 1e6,
        v.compared.ratio,
        v.compared.pairs
    )
}
