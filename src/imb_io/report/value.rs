//! The verdict, and the widest confidence interval of the rows.

use beff_statistics::bootstrap::Interval;

use crate::frame::report::model::{HeadlineValue, TextStyle};
use crate::frame::report::outcome_text;
use crate::frame::report::text::{count, percent};
use crate::frame::units::{format_seconds, format_size};
use crate::imb_io::records::ImbResult;
use crate::imb_io::values::{ImbDerived, ImbVerdict, RepeatedRow, VerificationVerdict};

pub(super) fn verdict(verdict: VerificationVerdict) -> &'static str {
    match verdict {
        VerificationVerdict::Verified => "complete and verified",
        VerificationVerdict::NotVerified => "complete, NOT VERIFIED",
        VerificationVerdict::NotComplete => "NOT complete",
        VerificationVerdict::WrongData => "WRONG DATA",
    }
}

pub(super) fn value(result: &ImbResult, derived: &ImbDerived) -> HeadlineValue {
    let found = &derived.verdict;
    let tone = if found.verdict == VerificationVerdict::Verified { TextStyle::Good } else { TextStyle::Bad };
    let words = verdict(found.verdict);
    let end = format!(
        "{}{}",
        outcome_text::oversubscription_suffix(&result.setup.machine),
        outcome_text::outcome_suffix(result.ending.outcome)
    );
    let rows = rows_by_end(found);
    let said = rows.join(", ");
    HeadlineValue {
        label: "IMB-IO, rows complete".into(),
        value: format!("{} of {}", found.rows_complete, found.rows),
        unit: "",
        verdict: (tone, format!("{words}{end}")),
        numbers: rows.into_iter().skip(1).map(|text| (text, String::new())).collect(),
        screen_line: vec![
            (TextStyle::Plain, "IMB-IO = ".into()),
            (tone, words.into()),
            (TextStyle::Plain, format!(": {said}{end}")),
        ],
        closing_line: format!("IMB-IO = {words}: {said}, {}, {}{end}", compared(found), took(found)),
    }
}

/// Number of rows by outcome, in words.
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

pub(super) fn verified(derived: &ImbDerived) -> Option<String> {
    let found = &derived.verdict;
    (found.bytes_checked > 0 && found.bytes_wrong == 0)
        .then(|| format!("{} read back and compared: all correct", format_size(found.bytes_checked)))
}

/// Widest confidence interval of the repeated rows; None without repetitions.
pub(super) fn repetitions(result: &ImbResult, derived: &ImbDerived) -> Option<String> {
    let again = result.rows.iter().zip(&derived.rows).filter_map(|(record, value)| Some((record, value.repeated?)));
    let again: Vec<_> = again.collect();
    let number = count(again.len() as u64, "row");
    let known = again.iter().filter_map(|(record, found)| Some((*record, found.half_width_share?)));
    let text = match known.max_by(|a, b| a.1.total_cmp(&b.1)) {
        None => format!("{number} repeated, too few times for an interval"),
        Some((record, half_width)) => {
            let size = record.sample_bytes.map_or_else(String::new, |bytes| format!(" {}", format_size(bytes)));
            let least = format!("widest: {}{size}", record.benchmark);
            let is_resolved =
                |found: &RepeatedRow| found.interval_seconds.is_some_and(|ends| Interval::from(ends).is_resolved());
            match again.iter().filter(|(_, found)| found.half_width_share.is_some() && !is_resolved(found)).count() {
                0 => format!("{number} repeated, 95 % within {} ({least})", percent(half_width)),
                wide => format!("{number} repeated; 95 % intervals of {wide} are wider than a factor of 2 ({least})"),
            }
        }
    };
    (!again.is_empty()).then_some(text)
}
