//! Trust in the numbers: compared data, results as recorded, order, caches, and omitted calls.

use serde_json::Value;

use crate::frame::records::Warning;
use crate::frame::report::model::{labelled_texts, CorruptionReport, LabelledText, ReportBlock, ReportSection};
use crate::frame::report::text::{count, percent};
use crate::frame::report::DetailLevel;
use crate::frame::units::{format_seconds, format_size};
use crate::frame::values::NULL_BACKEND;
use crate::frame::words::clause;
use crate::replay::plan::printable::printable;
use crate::replay::records::{
    repetition_name, ProfileRepetition, RepetitionStatus, ReplayCorruption, ReplayResult, ResultDifference,
};
use crate::replay::values::storage_reads::{self, FetchedBytes};
use crate::replay::values::{kinds, ChangeEffect, ReplayDerived};

use super::plan::omission_lines;
use super::summary::{format_ratio, MAX_BACKENDS};

const MAX_DIFFERENCES: usize = 8;

pub(super) fn facts(result: &ReplayResult, derived: &ReplayDerived, level: DetailLevel) -> Vec<LabelledText> {
    labelled_texts([
        ("what-if", derived.what_if.as_ref().map(change_text)),
        ("compared", Some(compared_text(result, derived))),
        ("as recorded", Some(as_recorded_text(result, derived))),
        ("caches", Some(storage_reads_text(result))),
        ("omitted", (level == DetailLevel::Screen).then(|| omission_texts(result, derived, Vec::new()).join("; "))),
    ])
}

pub(super) fn section(result: &ReplayResult, derived: &ReplayDerived) -> ReportSection {
    let differences = result.repetitions.iter().flat_map(|p| p.differences.iter().map(move |d| difference_text(p, d)));
    let left_out = omission_texts(result, derived, omission_lines(&result.setup.omissions).collect());
    let lines = [
        ("what-if", derived.what_if.iter().map(change_text).collect()),
        ("compared", vec![compared_text(result, derived)]),
        (
            "as recorded",
            [as_recorded_text(result, derived)].into_iter().chain(differences.take(MAX_DIFFERENCES)).collect(),
        ),
        ("order", vec![order_text(result)]),
        ("caches", storage_traffic_lines(result)),
        ("omitted", left_out),
    ];
    let lines = lines.into_iter().flat_map(|(label, texts)| texts.into_iter().map(move |text| (label, Some(text))));
    let blocks = vec![ReportBlock::Pairs(labelled_texts(lines))];
    ReportSection { name: "trust", title: "Can it be trusted".into(), note: String::new(), blocks }
}

/// The effect of a change in one line.
fn change_text(effect: &ChangeEffect) -> String {
    let change = printable(&effect.change, 200);
    let Some(ratio) = effect.time_ratio else { return format!("{change}: no pair of complete repetitions") };
    let interval = effect.interval.map(|[low, high]| format!(" [{}, {}]", format_ratio(low), format_ratio(high)));
    let verdict = match effect.is_insignificant {
        Some(true) => ": no difference",
        Some(false) => "",
        None => ": too few for an interval",
    };
    let written = match [effect.unchanged_written_bytes, effect.changed_written_bytes] {
        [before, after] if before == after => String::new(),
        [before, after] => format!("; {} written instead of {}", format_size(after), format_size(before)),
    };
    format!(
        "{change}: {}{} times as long in calls, {}{verdict}{written}",
        format_ratio(ratio),
        interval.unwrap_or_default(),
        count(effect.pairs, "pair")
    )
}

fn compared_text(result: &ReplayResult, derived: &ReplayDerived) -> String {
    let found = &derived.verdict;
    match found.checked_share {
        _ if !result.config.verify => "nothing (--verify=off)".to_owned(),
        None => "nothing: no bytes were read".to_owned(),
        Some(share) => {
            let wrong = match found.bytes_wrong {
                0 => "all as expected".to_owned(),
                bytes => format!("{} WRONG", count(bytes, "byte")),
            };
            format!("{}, {} of what was read: {wrong}", format_size(found.bytes_checked), percent(share))
        }
    }
}

/// Number of calls whose error, bytes, completed requests and returned values were the recorded ones.
fn as_recorded_text(result: &ReplayResult, derived: &ReplayDerived) -> String {
    let found = &derived.verdict;
    let expected = if result.setup.profile.is_handwritten() { "expected" } else { "recorded" };
    match found.calls {
        0 => "no calls were made".to_owned(),
        calls if calls == found.calls_as_recorded => {
            format!("all {} had their {expected} results", count(calls, "call"))
        }
        calls => format!("{} of {} had their {expected} results", found.calls_as_recorded, count(calls, "call")),
    }
}

fn difference_text(record: &ProfileRepetition, d: &ResultDifference) -> String {
    format!(
        "{}: other {} in {}, first {} of rank {} at {} ns: recorded {}, replayed {}",
        repetition_name(&record.backend, record.repetition),
        d.kind,
        count(d.calls, "call"),
        d.function,
        d.rank,
        d.begin_ns,
        printable(&d.recorded, 100),
        printable(&d.replayed, 100)
    )
}

fn order_text(result: &ReplayResult) -> String {
    let waited: f64 = result.repetitions.iter().map(|p| p.wait_seconds).sum();
    let waits = count(result.repetitions.iter().map(|p| p.waits).fold(0, u64::saturating_add), "wait");
    let kept = match result.setup.profile.orderings {
        0 => "no call touches bytes that another rank touched before".to_owned(),
        kept => format!("{} between ranks kept, {waits}, {}", count(kept, "order"), format_seconds(waited)),
    };
    let late = result.repetitions.iter().filter_map(|p| p.late_seconds).reduce(f64::max);
    let late = late.map_or(String::new(), |s| format!("; at most {} after a deadline", format_seconds(s)));
    format!("{kept}{late}")
}

/// Bytes read from storage, recorded and in the last complete repetition of each backend.
fn storage_reads_text(result: &ReplayResult) -> String {
    let of = |fetched: FetchedBytes| {
        fetched.map_or_else(|_| "not known".to_owned(), |bytes| format_size(bytes.min(1 << 62)))
    };
    let now = result.config.backends.iter().filter(|b| *b != NULL_BACKEND).take(MAX_BACKENDS).filter_map(|backend| {
        let record = result.repetitions.iter().rfind(|p| &p.backend == backend && p.is_timed_complete())?;
        Some(format!("{backend} {}", of(storage_reads::replayed(&result.setup.storage.fs_type, record))))
    });
    let now: Vec<String> = now.collect();
    let now = if now.is_empty() { String::new() } else { format!("; now {}", now.join(", ")) };
    let read = format_size(result.setup.profile.read_bytes);
    if result.setup.profile.is_handwritten() {
        return format!("of {read} read from storage{}", now.replacen("; now", ":", 1));
    }
    format!("of {read} read from storage: recorded {}{now}", of(storage_reads::recorded(result)))
}

/// Bytes from and to storage, recorded and in the last repetition of each backend; the files contain all repetitions.
fn storage_traffic_lines(result: &ReplayResult) -> Vec<String> {
    let traffic = |read: FetchedBytes, written: Option<u64>| {
        let read = read.map_or_else(
            |why| format!("bytes fetched from storage are unknown: {}", printable(&why, 100)),
            |bytes| format!("{} fetched from storage", format_size(bytes)),
        );
        written.map_or_else(|| read.clone(), |bytes| format!("{read}, {} to be written", format_size(bytes)))
    };
    let line = |record: &ProfileRepetition| {
        let resident = match (record.prefilled_bytes, record.resident_before_bytes) {
            (0, _) => String::new(),
            (_, None) => "; page-cache residency before the first call is unknown".to_owned(),
            (all, Some(bytes)) => {
                format!("; {} of the initial {} in the page cache before", format_size(bytes), format_size(all))
            }
        };
        let moved =
            traffic(storage_reads::replayed(&result.setup.storage.fs_type, record), record.storage_written_bytes);
        format!("{}: {moved}{resident}", repetition_name(&record.backend, record.repetition))
    };
    let last = |backend: &String| {
        result.repetitions.iter().rfind(|p| &p.backend == backend && !matches!(p.ended, RepetitionStatus::NotRun(_)))
    };
    let recorded = traffic(storage_reads::recorded(result), result.setup.profile.storage_written_bytes);
    let replayed = result.config.backends.iter().filter_map(last).map(line);
    [format!("recorded: {recorded}")].into_iter().chain(replayed).collect()
}

/// Calls not replayed: `all`, or if empty the most frequent omission of each backend, with the reason.
fn omission_texts(result: &ReplayResult, derived: &ReplayDerived, all: Vec<String>) -> Vec<String> {
    let is_short = all.is_empty();
    let of = |w: &Warning| {
        let (backend, reason) = (w.backend.as_deref().unwrap_or_default(), clause(w.text("reason")));
        if w.is_kind(&kinds::NOT_RUN) {
            return Some(format!("{backend}: all, not run: {reason}"));
        }
        let calls = w.figures.get("calls").and_then(Value::as_u64).unwrap_or(0);
        let is_reported = is_short && w.is_kind(&kinds::OMITTED);
        is_reported.then(|| format!("{backend}: {} ({}: {reason})", count(calls, "call"), w.text("function")))
    };
    let cut = result.setup.profile.calls_discarded;
    let cut = (cut > 0).then(|| format!("{} after a collective call that others never made", count(cut, "call")));
    let texts: Vec<String> = cut.into_iter().chain(all).chain(derived.warnings.iter().filter_map(of)).collect();
    if texts.is_empty() {
        vec!["nothing: every call was replayed".to_owned()]
    } else {
        texts
    }
}

pub(super) fn is_omission(warning: &Warning) -> bool {
    warning.is_kind(&kinds::OMITTED) || warning.is_kind(&kinds::NOT_RUN)
}

pub(super) fn corruption(result: &ReplayResult, derived: &ReplayDerived) -> CorruptionReport {
    let found = &derived.verdict;
    let amount = format!("{} of {} compared are wrong", found.bytes_wrong, count(found.bytes_checked, "byte"));
    let next_step = if result.config.inject {
        "One bit was inverted by fault injection: this shows that it is detected."
    } else {
        "The replay preserves the recorded order. Repeat it, also with another backend: wrong data with one backend only is a fault of it \
         or of the storage; with all of them the recorded order may be wrong (different clocks of hosts, other programs \
         that wrote)."
    };
    CorruptionReport::of("WRONG DATA", amount, &result.corruptions, corruption_text, next_step)
}

pub(super) fn corruption_text(c: &ReplayCorruption) -> String {
    let file = c.file.map_or_else(|| "an unknown file".to_owned(), |n| format!("file {n}"));
    let offset = c.offset_bytes.map_or_else(String::new, |n| format!(" at byte {n}"));
    format!(
        "{}: rank {}, {} at {} ns, {file}{offset} (byte {} of the call): {} (expected {:02x} of {}, found {:02x}); {} in \
         this repetition",
        repetition_name(&c.backend, c.repetition),
        c.rank,
        c.function,
        c.begin_ns,
        c.data_offset_bytes,
        c.diagnosis,
        c.expected,
        c.expected_from,
        c.actual,
        count(c.bytes_wrong, "wrong byte")
    )
}
