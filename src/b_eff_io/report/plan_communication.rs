//! Communication of a planned run as text.

use crate::b_eff_io::plan::communication::PhaseCommunication;
use crate::frame::report::render;
use crate::frame::report::table::Table;
use crate::frame::report::text::TextPage;
use crate::frame::units::format_size;

/// Formats the communication of a run beside its data transfers.
#[must_use]
pub fn text(phases: &[PhaseCommunication]) -> String {
    let mut page = TextPage::default();
    page.heading("Communication beside the data transfers");
    let row = |p: &PhaseCommunication| {
        [p.phase.to_owned(), p.collective_calls.to_string(), format_size(p.rank_bytes), format_size(p.root_bytes)]
    };
    let head = ["phase", "collective calls", "bytes of a rank", "bytes on rank 0"];
    render::table(&mut page, &Table::new("", 1, head).with_rows(phases.iter().map(row)));
    page.hanging(
        "  ",
        "Rank 0 receives them, in binomial trees. Repetitions, other orders and complete verification add records.",
    );
    page.finish()
}
