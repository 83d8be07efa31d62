//! The verdict, and how sure the rows are.

use crate::frame::report::ending;
use crate::frame::report::model::{Tone, Value};
use crate::frame::report::text::{count, percent};
use crate::frame::units::{format_seconds, format_size};
use crate::imb_io::records::ImbResult;
use crate::imb_io::values::{ImbDerived, ImbVerdict, Verdict};

/// A verdict in words.
pub(super) fn verdict(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Verified => "complete and verified",
        Verdict::NotVerified => "complete, NOT VERIFIED",
        Verdict::NotComplete => "NOT complete",
        Verdict::WrongData => "WRONG DATA",
    }
}

/// How many rows are complete, and whether their data is right.
pub(super) fn value(result: &ImbResult, derived: &ImbDerived) -> Value {
    let found = &derived.verdict;
    let tone = if found.verdict == Verdict::Verified { Tone::Good } else { Tone::Bad };
    let words = verdict(found.verdict);
    let end = format!("{}{}", ending::crowded(&result.setup.machine), ending::mark(result.ending.outcome));
    let rows = rows_by_end(found);
    let said = rows.join(", ");
    Value {
        label: "IMB-IO, rows complete".into(),
        value: format!("{} of {}", found.rows_complete, found.rows),
        unit: "",
        verdict: (tone, format!("{words}{end}")),
        numbers: rows.into_iter().skip(1).map(|text| (text, String::new())).collect(),
        line: vec![(Tone::Plain, "IMB-IO = ".into()), (tone, words.into()), (Tone::Plain, format!(": {said}{end}"))],
        closing: format!("IMB-IO = {words}: {said}, {}, {}{end}", compared(found), took(found)),
    }
}

/// How many rows there are, and how they ended, in words.
fn rows_by_end(found: &ImbVerdict) -> Vec<String> {
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

fn compared(found: &ImbVerdict) -> String {
    match found.bytes_checked {
        0 => "nothing compared".to_owned(),
        bytes => format!("{} compared, {} wrong", format_size(bytes), count(found.bytes_wrong, "byte")),
    }
}

fn took(found: &ImbVerdict) -> String {
    match (found.real_seconds, found.expected_seconds, found.real_to_expected) {
        (Some(real), Some(expected), Some(ratio)) => {
            format!("took {}, {ratio:.2} of the {} announced", format_seconds(real), format_seconds(expected))
        }
        (Some(real), ..) => format!("took {}", format_seconds(real)),
        (None, ..) => "no end recorded".to_owned(),
    }
}

/// How much of the data was compared, if all of it was right.
pub(super) fn checked(derived: &ImbDerived) -> Option<String> {
    let found = &derived.verdict;
    (found.bytes_checked > 0 && found.bytes_wrong == 0)
        .then(|| format!("{} read back and compared: all as written", format_size(found.bytes_checked)))
}

/// How sure the rows are that were measured again; None: there are none.
pub(super) fn repeats(result: &ImbResult, derived: &ImbDerived) -> Option<String> {
    let again = result.rows.iter().zip(&derived.rows).filter_map(|(record, value)| Some((record, value.repeated?)));
    let again: Vec<_> = again.collect();
    let number = count(again.len() as u64, "row");
    let known = again.iter().filter_map(|(record, found)| Some((*record, found.reach_share?)));
    let text = match known.max_by(|a, b| a.1.total_cmp(&b.1)) {
        None => format!("{number} measured again, too few times for an interval"),
        Some((record, reach)) => {
            let size = record.sample_bytes.map_or_else(String::new, |bytes| format!(" {}", format_size(bytes)));
            let least = format!("least known: {}{size}", record.benchmark);
            format!("{number} measured again, 95 % within {} ({least})", percent(reach))
        }
    };
    (!again.is_empty()).then_some(text)
}
