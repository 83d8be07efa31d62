//! The last lines, where the result has one line.

use crate::b_eff::records::CommResult;
use crate::b_eff::values::CommDerived;
use crate::frame::report::text::{count, Page};
use crate::frame::report::{criteria, ending};
use crate::frame::units::format_size;

/// How it ended, and the value with all that qualifies it, on one line for grep.
pub(super) fn end(page: &mut Page, result: &CommResult, derived: &CommDerived) {
    let patterns = count(result.patterns.len() as u64, "pattern");
    let checked = format_size(result.bytes_checked());
    let complete = format!("Run complete: {patterns}, {checked} of data compared with what was sent.");
    ending::reminder(page, result, &complete);
    page.line(value_line(result, derived));
}

fn value_line(result: &CommResult, derived: &CommDerived) -> String {
    let value = derived.value.b_eff.map(|b| {
        let [all, each] = [b.bytes_per_second, b.per_process_bytes_per_second].map(|rate| rate / 1e6);
        format!("{all:.3} MB/s = {each:.3} MB/s per process")
    });
    let machine = &result.setup.machine;
    let quick = if result.config.quick { ", QUICK" } else { "" };
    format!(
        "b_eff = {} on {}, Lmax {}, {}, {}{quick}{}{}",
        value.as_deref().unwrap_or("not measured"),
        count(machine.ranks, "process"),
        format_size(result.setup.lmax_bytes),
        derived.messages_from.words(),
        criteria::verdict(&derived.criteria),
        ending::crowded(machine),
        ending::marks(result)
    )
}
