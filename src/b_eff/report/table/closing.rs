//! How the run ended: said at the top and at the end, where the result has one line.

use crate::b_eff::records::CommResult;
use crate::b_eff::report::is_corrupt;
use crate::b_eff::values::CommDerived;
use crate::frame::records::Outcome;
use crate::frame::report::text::{count, Page};
use crate::frame::report::{criteria, ending};
use crate::frame::units::format_size;

/// What the reader must know before any number.
pub(super) fn banner(page: &mut Page, result: &CommResult) {
    if let Some(text) = ending::sentence(result.ending.outcome) {
        page.hanging("*** ", text);
    }
    if is_corrupt(result) {
        page.hanging("*** ", "DATA CORRUPTION: messages received were not the messages sent; see below.");
    }
    if result.ending.outcome != Outcome::Complete || is_corrupt(result) {
        page.blank();
    }
}

/// The last lines: how it ended, and the value with all that qualifies it, on one line for grep.
pub(super) fn end(page: &mut Page, result: &CommResult, derived: &CommDerived) {
    page.blank();
    if is_corrupt(result) {
        page.hanging("*** ", "DATA CORRUPTION was found.");
    }
    match ending::sentence(result.ending.outcome) {
        Some(text) => page.hanging("*** ", text),
        None => {
            let checked: u64 = result.patterns.iter().map(|p| p.bytes_checked).sum();
            page.line(format!(
                "Run complete: {}, {} of data compared with what was sent.",
                count(result.patterns.len() as u64, "pattern"),
                format_size(checked)
            ));
        }
    }
    page.line(value_line(result, derived));
}

fn value_line(result: &CommResult, derived: &CommDerived) -> String {
    let value = match derived.value.b_eff {
        Some(b) => format!(
            "{:.3} MB/s = {:.3} MB/s per process",
            b.bytes_per_second / 1e6,
            b.per_process_bytes_per_second / 1e6
        ),
        None => "not measured".to_owned(),
    };
    let ranks = result.setup.machine.ranks;
    let processes = if ranks == 1 { "1 process".to_owned() } else { format!("{ranks} processes") };
    let crowded = result.setup.machine.hosts.iter().any(|h| h.ranks > h.cores);
    let marks = [
        if result.config.quick { ", QUICK" } else { "" },
        if crowded { ", OVERSUBSCRIBED" } else { "" },
        ending::mark(result.ending.outcome),
        if is_corrupt(result) { ", DATA CORRUPTION" } else { "" },
    ];
    format!(
        "b_eff = {value} on {processes}, Lmax {}, {}{}",
        format_size(result.setup.lmax_bytes),
        criteria::verdict(&derived.criteria),
        marks.concat()
    )
}
