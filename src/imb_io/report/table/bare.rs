//! What our loops cost beside bare ones in C.

use crate::frame::report::columns::Columns;
use crate::frame::report::costs::beside_bare;
use crate::frame::report::text::Page;
use crate::frame::units::format_size;
use crate::imb_io::values::{ImbBareValue, ImbDerived};

pub(super) fn write(page: &mut Page, derived: &ImbDerived) {
    if derived.bare.is_empty() {
        return;
    }
    page.heading("Our loops beside bare C loops of the same calls: time of a call in usec");
    let what = Columns::<&ImbBareValue>::new()
        .left("benchmark", 18, |v| &v.benchmark)
        .right("ranks", 6, |v| v.ranks)
        .right("size", 12, |v| format_size(v.sample_bytes));
    beside_bare(what, [14, 18], |v| v.compared).write(page, &derived.bare);
    page.line("  In turns in one process, slowest rank; medians, the ratio over pairs.");
}
