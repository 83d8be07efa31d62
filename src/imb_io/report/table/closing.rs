//! The last lines, where the verdict has one line.

use crate::frame::report::ending;
use crate::frame::report::text::{count, Page};
use crate::frame::units::{format_seconds, format_size};
use crate::imb_io::records::ImbResult;
use crate::imb_io::values::{ImbDerived, ImbVerdict, Verdict};

/// A verdict in words.
pub(in crate::imb_io::report) fn verdict(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Verified => "complete and verified",
        Verdict::NotVerified => "complete, NOT VERIFIED",
        Verdict::NotComplete => "NOT complete",
        Verdict::WrongData => "WRONG DATA",
    }
}

/// The last lines: how it ended, and the verdict with its counts, on one line for grep.
pub(super) fn end(page: &mut Page, result: &ImbResult, derived: &ImbDerived) {
    page.blank();
    if let Some(text) = ending::sentence(result.ending.outcome) {
        page.hanging("*** ", text);
    }
    page.line(verdict_line(result, &derived.verdict));
}

/// How many rows there are, and how they ended, in words.
pub(in super::super) fn rows_by_end(found: &ImbVerdict) -> Vec<String> {
    let complete = format!("{} of {} complete", found.rows_complete, count(found.rows, "row"));
    let others = [
        (found.rows_not_run, "not run"),
        (found.rows_failed, "failed"),
        (found.rows_interrupted, "interrupted"),
        (found.rows_missing, "not reached"),
        (found.rows_not_verified, "not verified"),
        (found.rows_wrong, "with wrong data"),
    ];
    let others = others.iter().filter(|(number, _)| *number > 0).map(|(number, what)| format!("{number} {what}"));
    std::iter::once(complete).chain(others).collect()
}

fn verdict_line(result: &ImbResult, found: &ImbVerdict) -> String {
    let mut parts = rows_by_end(found);
    let checked = format_size(found.bytes_checked);
    parts.push(match found.bytes_checked {
        0 => "nothing compared".to_owned(),
        _ => format!("{checked} compared, {} wrong", count(found.bytes_wrong, "byte")),
    });
    parts.push(match (found.real_seconds, found.expected_seconds, found.real_to_expected) {
        (Some(real), Some(expected), Some(ratio)) => {
            format!("took {}, {ratio:.2} of the {} announced", format_seconds(real), format_seconds(expected))
        }
        (Some(real), ..) => format!("took {}", format_seconds(real)),
        (None, ..) => "no end recorded".to_owned(),
    });
    let (crowded, outcome) = (ending::crowded(&result.setup.machine), ending::mark(result.ending.outcome));
    format!("IMB-IO = {}: {}{crowded}{outcome}", verdict(found.verdict), parts.join(", "))
}
