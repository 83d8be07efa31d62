//! What went wrong or must be known: corruption and warnings.

use crate::b_eff::records::{CommCorruption, CommResult};
use crate::b_eff::report::{is_corrupt, text};
use crate::b_eff::values::CommDerived;
use crate::frame::report::ending;
use crate::frame::report::text::{count, Page};
use crate::frame::units::format_size;

/// Places of corruption shown; all are in the JSON document.
const PLACES: usize = 20;

pub(super) fn corruptions(page: &mut Page, result: &CommResult) {
    if !is_corrupt(result) {
        return;
    }
    page.heading("DATA CORRUPTION");
    let wrong: u64 = result.patterns.iter().map(|p| p.bytes_wrong).sum();
    let checked: u64 = result.patterns.iter().map(|p| p.bytes_checked).sum();
    page.line(format!("  {} of {} compared are wrong", count(wrong, "byte"), format_size(checked)));
    for corruption in result.corruptions.iter().take(PLACES) {
        page.hanging("  - ", &place(corruption));
    }
    let more = result.corruptions.len().saturating_sub(PLACES);
    if more > 0 {
        page.line(format!("  ... and {more} more places in the JSON document"));
    }
    let next_step = if result.config.inject {
        "One byte was turned over on purpose: this shows that it is found."
    } else {
        "Do not trust this MPI library with this transport. Repeat with another transport or library to find out whether \
         the network, the library or the memory of a host is at fault."
    };
    page.hanging("  -> ", next_step);
}

fn place(c: &CommCorruption) -> String {
    format!(
        "{}, {} of {}, repetition {}, iteration {}: from rank {} to rank {} at byte {}: {} ({} wrong; first: expected \
         {:02x}, found {:02x})",
        c.pattern,
        c.method.name(),
        format_size(c.message_bytes),
        c.repetition,
        c.iteration,
        c.sender,
        c.receiver,
        c.offset_bytes,
        c.looks_like,
        count(c.bytes_wrong, "byte"),
        c.expected,
        c.found
    )
}

pub(super) fn warnings(page: &mut Page, result: &CommResult, derived: &CommDerived) {
    ending::warnings(page, derived.warnings.iter().map(|warning| text(warning, &result.config)));
}
