//! What our loops cost beside bare ones in C (`--bare`).

use crate::b_eff::values::{BareValue, CommDerived};
use crate::frame::report::costs;
use crate::frame::report::text::Page;
use crate::frame::units::format_size;

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
    let interval = costs::interval(v.compared.interval);
    let mark = costs::mark(v.compared.ratio);
    format!(
        "  {:12}{:12}{:>11}{:>13.3}{:>13.3}{:>8.3}  {interval:20}{:>6}{mark}",
        v.pattern,
        v.method.name(),
        format_size(v.message_bytes),
        v.compared.ours_seconds * 1e6 / v.calls as f64,
        v.compared.bare_seconds * 1e6 / v.calls as f64,
        v.compared.ratio,
        v.compared.pairs
    )
}
