//! What our loops cost beside bare ones in C (`--bare`).

use crate::b_eff::values::{BareValue, CommDerived};
use crate::frame::report::columns::Columns;
use crate::frame::report::costs::beside_bare;
use crate::frame::report::text::Page;
use crate::frame::units::format_size;
use crate::frame::values::Compared;

pub(super) fn write(page: &mut Page, derived: &CommDerived) {
    if derived.bare.is_empty() {
        return;
    }
    page.heading("Our loops beside bare C loops of the same calls: time of a message in us");
    let what = Columns::<&BareValue>::new()
        .left("pattern", 12, |v| &v.pattern)
        .left("calls", 12, |v| v.method.name())
        .right("message", 11, |v| format_size(v.message_bytes));
    beside_bare(what, [13, 20], beside).write(page, &derived.bare);
    page.line(
        "  In turns in one process, slowest rank; medians, the ratio over pairs. Ping-pong: half of the time there",
    );
    page.line("  and back; Sendrecv: one call.");
}

/// Of one message.
fn beside(v: &BareValue) -> Compared {
    let of_a_message = |seconds: f64| seconds / v.calls as f64;
    Compared {
        ours_seconds: of_a_message(v.compared.ours_seconds),
        bare_seconds: of_a_message(v.compared.bare_seconds),
        ..v.compared
    }
}
