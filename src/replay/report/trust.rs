//! Whether the numbers can be trusted: what was compared, results as recorded, order, caches, and what was left out.

use serde_json::Value;

use crate::frame::records::Warning;
use crate::frame::report::model::{pairs, Block, Corruption, Pair, Section};
use crate::frame::report::text::{count, percent};
use crate::frame::report::Level;
use crate::frame::units::{format_seconds, format_size};
use crate::frame::values::NULL_BACKEND;
use crate::frame::words::clause;
use crate::replay::plan::names::shown;
use crate::replay::records::{Difference, PassEnd, PassRecord, ReplayCorruption, ReplayResult};
use crate::replay::values::caches::{self, Fetched};
use crate::replay::values::{kinds, ReplayDerived};

use super::plan::leavings;
use super::summary::BACKENDS;

/// Examples of other results.
const DIFFERENCES: usize = 8;

/// In short. What was left out is said on a page by warnings.
pub(super) fn facts(result: &ReplayResult, derived: &ReplayDerived, level: Level) -> Vec<Pair> {
    pairs([
        ("compared", Some(compared(result, derived))),
        ("as recorded", Some(as_recorded(derived))),
        ("caches", Some(storage(result))),
        ("left out", (level == Level::Screen).then(|| left_out(result, derived, Vec::new()).join("; "))),
    ])
}

/// In full.
pub(super) fn section(result: &ReplayResult, derived: &ReplayDerived) -> Section {
    let differences = result.passes.iter().flat_map(|p| p.differences.iter().map(move |d| difference(p, d)));
    let left_out = left_out(result, derived, leavings(&result.setup.leavings).collect());
    let lines = [
        ("compared", vec![compared(result, derived)]),
        ("as recorded", [as_recorded(derived)].into_iter().chain(differences.take(DIFFERENCES)).collect()),
        ("order", vec![order(result)]),
        ("caches", in_caches(result)),
        ("left out", left_out),
    ];
    let lines = lines.into_iter().flat_map(|(label, texts)| texts.into_iter().map(move |text| (label, Some(text))));
    let blocks = vec![Block::Pairs(pairs(lines))];
    Section { name: "trust", title: "Can it be trusted".into(), note: String::new(), blocks }
}

/// How much of the data was compared.
fn compared(result: &ReplayResult, derived: &ReplayDerived) -> String {
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

/// Calls whose errors, bytes, completed requests and answers were the recorded ones.
fn as_recorded(derived: &ReplayDerived) -> String {
    let found = &derived.verdict;
    match found.calls {
        0 => "no calls were made".to_owned(),
        calls if calls == found.calls_as_recorded => format!("all {} had their recorded results", count(calls, "call")),
        calls => format!("{} of {} had their recorded results", found.calls_as_recorded, count(calls, "call")),
    }
}

fn difference(pass: &PassRecord, d: &Difference) -> String {
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
}

fn order(result: &ReplayResult) -> String {
    let waited: f64 = result.passes.iter().map(|p| p.waited_seconds).sum();
    let waits = count(result.passes.iter().map(|p| p.waits).fold(0, u64::saturating_add), "wait");
    let kept = match result.setup.profile.orderings {
        0 => "no call touches bytes that another rank touched before".to_owned(),
        kept => format!("{} between ranks kept, {waits}, {}", count(kept, "order"), format_seconds(waited)),
    };
    let late = result.passes.iter().filter_map(|p| p.late_seconds).reduce(f64::max);
    let late = late.map_or(String::new(), |s| format!("; at most {} behind a deadline", format_seconds(s)));
    format!("{kept}{late}")
}

/// Bytes read that came past the page cache, then and now: of the last complete pass of each backend.
fn storage(result: &ReplayResult) -> String {
    let of =
        |fetched: Fetched| fetched.map_or_else(|_| "not known".to_owned(), |bytes| format_size(bytes.min(1 << 62)));
    let now = result.config.backends.iter().filter(|b| *b != NULL_BACKEND).take(BACKENDS).filter_map(|backend| {
        let pass = result.passes.iter().rfind(|p| &p.backend == backend && p.ended == PassEnd::Complete)?;
        Some(format!("{backend} {}", of(caches::replayed(result, pass))))
    });
    let now: Vec<String> = now.collect();
    let now = if now.is_empty() { String::new() } else { format!("; now {}", now.join(", ")) };
    let read = format_size(result.setup.profile.read_bytes);
    format!("of {read} read from storage: then {}{now}", of(caches::recorded(result)))
}

/// Bytes from and to storage, then and in the last pass of each backend; all of them are in the files.
fn in_caches(result: &ReplayResult) -> Vec<String> {
    let told = |read: Fetched, written: Option<u64>| {
        let read = read.map_or_else(
            |why| format!("what was fetched past the page cache is not known: {}", shown(&why, 100)),
            |bytes| format!("{} fetched past the page cache", format_size(bytes)),
        );
        written.map_or_else(|| read.clone(), |bytes| format!("{read}, {} to be written", format_size(bytes)))
    };
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
    let last = |backend: &String| {
        result.passes.iter().rfind(|p| &p.backend == backend && !matches!(p.ended, PassEnd::NotRun(_)))
    };
    let recorded = told(caches::recorded(result), result.setup.profile.storage_written_bytes);
    let replayed = result.config.backends.iter().filter_map(last).map(line);
    [format!("recorded: {recorded}")].into_iter().chain(replayed).collect()
}

/// What is not replayed: `all` of it, or without that what each backend leaves out most, with the reason.
fn left_out(result: &ReplayResult, derived: &ReplayDerived, all: Vec<String>) -> Vec<String> {
    let is_short = all.is_empty();
    let of = |w: &Warning| {
        let (backend, reason) = (w.backend.as_deref().unwrap_or_default(), clause(w.text("reason")));
        if w.is(&kinds::NOT_RUN) {
            return Some(format!("{backend}: all, not run: {reason}"));
        }
        let calls = w.figures.get("calls").and_then(Value::as_u64).unwrap_or(0);
        let is_told = is_short && w.is(&kinds::LEFT_OUT);
        is_told.then(|| format!("{backend}: {} ({}: {reason})", count(calls, "call"), w.text("function")))
    };
    let cut = result.setup.profile.calls_cut;
    let cut = (cut > 0).then(|| format!("{} behind a collective call that others never made", count(cut, "call")));
    let texts: Vec<String> = cut.into_iter().chain(all).chain(derived.warnings.iter().filter_map(of)).collect();
    if texts.is_empty() {
        vec!["nothing: every call was replayed".to_owned()]
    } else {
        texts
    }
}

/// True if the screen says it as what was left out.
pub(super) fn is_left_out(warning: &Warning) -> bool {
    warning.is(&kinds::LEFT_OUT) || warning.is(&kinds::NOT_RUN)
}

/// Wrong data in words.
pub(super) fn corruption(result: &ReplayResult, derived: &ReplayDerived) -> Corruption {
    let found = &derived.verdict;
    let amount = format!("{} of {} compared are wrong", found.bytes_wrong, count(found.bytes_checked, "byte"));
    let next_step = if result.config.inject {
        "One bit was turned over on purpose: this shows that it is found."
    } else {
        "The replay keeps the order that the profile tells. Repeat it, and with another backend: wrong data that stays with one backend is a \
         fault of it or of the storage; with all of them the profile may not tell the order (clocks of hosts that differ, other programs \
         that wrote)."
    };
    Corruption::of("WRONG DATA", amount, &result.corruptions, place, next_step)
}

/// One place of wrong data, in words.
pub(super) fn place(c: &ReplayCorruption) -> String {
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
