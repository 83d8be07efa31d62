//! Whether the numbers can be trusted: results as recorded, data, order, caches.

use crate::frame::report::ending::Corruption;
use crate::frame::report::text::{count, percent, Page};
use crate::frame::units::{format_seconds, format_size};
use crate::replay::plan::names::shown;
use crate::replay::records::{PassEnd, PassRecord, ReplayCorruption, ReplayResult};
use crate::replay::values::caches::{self, Fetched};
use crate::replay::values::ReplayDerived;

pub(super) fn write(page: &mut Page, result: &ReplayResult, derived: &ReplayDerived) {
    let verdict = &derived.verdict;
    page.heading("Can it be trusted");
    let left_out = match verdict.calls_left_out {
        0 => String::new(),
        calls => format!("; {} left out, see below", count(calls, "call")),
    };
    page.field("as recorded", &format!("{} of {}{left_out}", verdict.calls_as_recorded, count(verdict.calls, "call")));
    let differences = result.passes.iter().flat_map(|p| p.differences.iter().map(move |d| (p, d)));
    page.fields(
        "",
        differences.take(8).map(|(pass, d)| {
            format!(
                "{}, pass {}: other {} in {}, first {} of rank {} at {} ns: recorded {}, replayed {}",
                pass.backend,
                pass.pass,
                d.kind,
                count(d.calls, "call"),
                d.function,
                d.rank,
                d.begin_ns,
                shown(&d.recorded, 100),
                shown(&d.replayed, 100)
            )
        }),
    );
    page.field("data", &data(result, derived));
    page.field("order", &order(result));
    caches(page, result);
}

fn data(result: &ReplayResult, derived: &ReplayDerived) -> String {
    let verdict = &derived.verdict;
    match verdict.checked_share {
        _ if !result.config.verify => "not compared (--verify=off)".to_owned(),
        None => "no bytes to compare".to_owned(),
        Some(share) => format!(
            "{} compared, {} of what was read; {} wrong",
            format_size(verdict.bytes_checked),
            percent(share),
            count(verdict.bytes_wrong, "byte")
        ),
    }
}

fn order(result: &ReplayResult) -> String {
    let profile = &result.setup.profile;
    let waited: f64 = result.passes.iter().map(|p| p.waited_seconds).sum();
    let waits = count(result.passes.iter().map(|p| p.waits).fold(0, u64::saturating_add), "wait");
    let kept = match profile.orderings {
        0 => "no call touches bytes that another rank touched before".to_owned(),
        kept => format!("{} between ranks kept, {waits}, {}", count(kept, "order"), format_seconds(waited)),
    };
    let late = result.passes.iter().filter_map(|p| p.late_seconds).reduce(f64::max);
    let late = late.map_or(String::new(), |s| format!("; at most {} behind a deadline", format_seconds(s)));
    format!("{kept}{late}")
}

/// Bytes from and to storage, then and now.
fn caches(page: &mut Page, result: &ReplayResult) {
    let profile = &result.setup.profile;
    let told = |read: Fetched, written: Option<u64>| {
        let read = read.map_or_else(
            |why| format!("what was fetched past the page cache is not known: {}", shown(&why, 100)),
            |bytes| format!("{} fetched past the page cache", format_size(bytes)),
        );
        written.map_or_else(|| read.clone(), |bytes| format!("{read}, {} to be written", format_size(bytes)))
    };
    page.field("caches", &format!("recorded: {}", told(caches::recorded(result), profile.storage_written_bytes)));
    let line = |pass: &PassRecord| {
        let resident = match (pass.prefilled_bytes, pass.resident_before_bytes) {
            (0, _) => String::new(),
            (_, None) => "; what was in the page cache before is not known".to_owned(),
            (all, Some(bytes)) => {
                format!("; {} of the {} that were there in the page cache before", format_size(bytes), format_size(all))
            }
        };
        let moved = told(caches::replayed(result, pass), pass.storage_written_bytes);
        format!("{}, pass {}: {moved}{resident}", pass.backend, pass.pass)
    };
    // The last pass of each backend; all of them are in the files.
    let last = |backend: &String| {
        result.passes.iter().rfind(|p| &p.backend == backend && !matches!(p.ended, PassEnd::NotRun(_)))
    };
    page.fields("", result.config.backends.iter().filter_map(last).map(line));
}

/// Wrong data in words.
pub(super) fn corruption<'a>(result: &'a ReplayResult, derived: &ReplayDerived) -> Corruption<'a, ReplayCorruption> {
    let verdict = &derived.verdict;
    Corruption {
        title: "WRONG DATA",
        amount: format!("{} of {} compared are wrong", verdict.bytes_wrong, count(verdict.bytes_checked, "byte")),
        places: &result.corruptions,
        place,
        next_step: if result.config.inject {
            "One bit was turned over on purpose: this shows that it is found."
        } else {
            "The replay keeps the order that the profile tells. Repeat it, and with another backend: wrong data that stays with \
             one backend is a fault of it or of the storage; with all of them the profile may not tell the order (clocks of \
             hosts that differ, other programs that wrote)."
        },
    }
}

/// One place of wrong data, in words.
pub(in crate::replay::report) fn place(c: &ReplayCorruption) -> String {
    let file = c.file.map_or_else(|| "an unknown file".to_owned(), |n| format!("file {n}"));
    let offset = c.offset_bytes.map_or_else(String::new, |n| format!(" at byte {n}"));
    format!(
        "{}, pass {}: rank {}, {} at {} ns, {file}{offset} (byte {} of the call): {} (expected {:02x} of {}, found {:02x}); {} in \
         this pass",
        c.backend,
        c.pass,
        c.rank,
        c.function,
        c.begin_ns,
        c.data_offset_bytes,
        c.looks_like,
        c.expected,
        c.expected_from,
        c.found,
        count(c.bytes_wrong, "wrong byte")
    )
}
