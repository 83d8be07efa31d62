//! Verdicts in words: the share of the best that a backend delivers, and the causes of the difference.

use beff_statistics::bootstrap::{Interval, Ratio};

use crate::b_eff_io::records::{PatternRecord, RunResult};
use crate::b_eff_io::values::ladder::{BackendVerdict, PartCost};
use crate::b_eff_io::values::{cache_share, Derived, TimePart};
use crate::frame::config::CachePolicy;
use crate::frame::records::AccessMethod;
use crate::frame::values::CACHED_THRESHOLD;

use super::cells::type_cell;
use super::layout::{chunk_label, RecordSelector};
use crate::frame::report::marks::QualityMark;
use crate::frame::report::text::{count, figure, percent};

/// Ratio of the bounds above which the interval of an equal ratio is not informative.
const WIDE_RATIO: f64 = 1.5;

/// Subject of a verdict, without its access method: `type 1 shared`, `type 4 seg-coll, 1 kB+8 (pattern 40)`.
#[must_use]
pub fn subject(result: &RunResult, v: &BackendVerdict) -> String {
    let of_type = format!("type {} {}", v.pattern_type, v.pattern_type.name());
    let record = v.pattern.and_then(|p| selector(v, &v.backend).record(result, p));
    match record {
        Some(r) => format!("{of_type}, {} (pattern {})", chunk_label(r.chunk_bytes), r.pattern),
        None => of_type,
    }
}

/// One sentence, and another for each effect other than storage.
#[must_use]
pub fn sentence(result: &RunResult, derived: &Derived, v: &BackendVerdict) -> String {
    // Without any interval, this is stated once and not in each sentence.
    let note = derived.ladder.verdicts.iter().any(|v| v.ratio.interval.is_some());
    let mut text = comparison(v, note);
    if v.ratio.equal != Some(true) {
        let calls = v
            .call_seconds
            .map(|[slow, fast]| format!("a call takes {} against {}; ", format_time(slow), format_time(fast)));
        let largest = format!("{} of its time is {}", percent(v.largest.share), part_noun(v.largest.part));
        text.push_str(&format!(": {}{largest}, {}", calls.unwrap_or_default(), times_text(&v.largest, &v.best)));
        if let Some(excess) = &v.excess {
            text.push_str(&format!("; it loses most in {}, {}", part_noun(excess.part), times_text(excess, &v.best)));
        }
    }
    if let Some(slowest) = &v.slowest {
        let ratio = match slowest.ratio.equal {
            Some(true) => format!("equal too ({})", ratio_text(&slowest.ratio)),
            _ => format!("with {}", share_text(&slowest.ratio, &v.best, note)),
        };
        text.push_str(&format!("; the slowest is {}, {ratio}", slowest.backend));
    }
    for caveat in caveats(result, derived, v) {
        text.push_str(". ");
        text.push_str(&caveat);
    }
    text.push('.');
    text
}

fn comparison(v: &BackendVerdict, note: bool) -> String {
    let (backend, best) = (&v.backend, &v.best);
    let wide = v.ratio.interval.is_some_and(|i| i.high > WIDE_RATIO * i.low);
    match (v.ratio.equal, wide) {
        (Some(true), false) => format!("{backend} and {best} are equal ({})", ratio_text(&v.ratio)),
        (Some(true), true) => format!("{backend} and {best} cannot be distinguished ({})", ratio_text(&v.ratio)),
        _ => format!("{backend} delivers {}", share_text(&v.ratio, best, note)),
    }
}

/// `3.0 % [2.8, 3.3] of uring`.
fn share_text(ratio: &Ratio, best: &str, note: bool) -> String {
    let percent = ratio.value * 100.0;
    let decimals = match percent {
        // Close to 100 whole percents would hide a difference.
        p if p >= 95.0 => 1,
        p if p >= 10.0 => 0,
        p if p >= 1.0 => 1,
        _ => 2,
    };
    let Some(interval) = ratio.interval.filter(Interval::is_resolved) else {
        let note = match ratio.interval {
            Some(_) => " (too much scatter for an interval)",
            None if note => " (too few rounds for an interval)",
            None => "",
        };
        return format!("{percent:.decimals$} % of {best}{note}");
    };
    let shown = |value: f64, decimals: usize| format!("{:.decimals$}", value * 100.0);
    let narrow = shown(interval.low, decimals) == shown(interval.high, decimals);
    let shown = |value: f64| shown(value, decimals + usize::from(narrow));
    format!("{} % [{}, {}] of {best}", shown(ratio.value), shown(interval.low), shown(interval.high))
}

fn format_time(seconds: f64) -> String {
    const UNITS: [(f64, &str); 4] = [(1.0, "s"), (1e-3, "ms"), (1e-6, "us"), (1e-9, "ns")];
    let (unit, name) = UNITS.into_iter().find(|(unit, _)| seconds >= *unit).unwrap_or((1e-9, "ns"));
    format!("{} {name}", figure(seconds / unit))
}

/// `ratio 1.02 [0.97, 1.08]`.
fn ratio_text(ratio: &Ratio) -> String {
    let interval = match ratio.interval {
        Some(i) if i.is_resolved() => format!(" [{:.2}, {:.2}]", i.low, i.high),
        Some(_) => ", too much scatter for an interval".to_owned(),
        None => String::new(),
    };
    format!("ratio {:.2}{interval}", ratio.value)
}

fn part_noun(part: TimePart) -> &'static str {
    match part {
        TimePart::Open => "opening",
        TimePart::View => "setting the view",
        TimePart::Preallocate => "preallocation",
        TimePart::Transfer => "transfer",
        TimePart::Decide => "agreeing and waiting",
        TimePart::Sync => "sync",
        TimePart::Close => "closing",
    }
}

fn times_text(cost: &PartCost, best: &str) -> String {
    match cost.times {
        None => format!("for which {best} needs no time"),
        Some(times) if times > 1000.0 => format!("more than 1000 times that of {best} per byte"),
        Some(times) if (0.95..1.05).contains(&times) => format!("as much as that of {best} per byte"),
        Some(times) => format!("{} times that of {best} per byte", figure(times)),
    }
}

/// Effects that prevent a comparison of the two as interfaces to the same storage.
fn caveats(result: &RunResult, derived: &Derived, v: &BackendVerdict) -> Vec<String> {
    let sides = [&v.backend, &v.best].map(|backend| (backend.as_str(), records(result, v, backend)));
    let mut found = Vec::new();
    for (backend, _) in &sides {
        let marks = type_cell(result, derived, selector(v, backend), v.pattern_type).marks;
        if v.pattern.is_none() && marks.contains(&QualityMark::Wrong) {
            found.push(format!("Data of {backend} was wrong"));
        }
        if v.pattern.is_none() && marks.contains(&QualityMark::Incomplete) {
            found.push(format!("{backend} did not run all patterns of the type"));
        }
    }
    found.extend(source_caveats(result, v, &sides));
    found.extend(page_cache_caveat(&sides));
    found
}

fn selector<'a>(v: &BackendVerdict, backend: &'a str) -> RecordSelector<'a> {
    RecordSelector { backend, ranks: v.ranks, access: v.access }
}

fn records<'a>(result: &'a RunResult, v: &BackendVerdict, backend: &'a str) -> Vec<&'a PatternRecord> {
    let of_type = selector(v, backend).records(result).filter(|r| r.pattern_type == v.pattern_type && r.was_run());
    of_type.filter(|r| v.pattern.is_none_or(|p| p == r.pattern)).collect()
}

type BackendRecords<'a> = (&'a str, Vec<&'a PatternRecord>);

/// Reads from memory or from an unknown source.
fn source_caveats(result: &RunResult, v: &BackendVerdict, sides: &[BackendRecords<'_>]) -> Vec<String> {
    if v.access != AccessMethod::Read {
        return Vec::new();
    }
    let shares: Vec<(&str, Option<f64>)> =
        sides.iter().map(|(backend, records)| (*backend, memory_share(result, records))).collect();
    let cached: Vec<(&str, String)> = shares
        .iter()
        .filter_map(|(backend, share)| share.filter(|s| *s > CACHED_THRESHOLD).map(|s| (*backend, percent(s))))
        .collect();
    let unknown: Vec<String> =
        shares.iter().filter(|(_, share)| share.is_none()).map(|(backend, _)| (*backend).to_owned()).collect();
    let mut found = Vec::new();
    let read = match cached.as_slice() {
        [(a, share), (b, other)] if share == other => Some(format!("{a} and {b} read {share} from memory")),
        [(a, share), (b, other)] => Some(format!("{a} read {share} and {b} {other} from memory")),
        [(a, share)] => Some(format!("{a} read {share} from memory")),
        _ => None,
    };
    let advice = match result.config.cache {
        CachePolicy::Drop => "--cache drop did not help",
        _ => "compare with --cache drop",
    };
    found.extend(read.map(|read| format!("{read}, so this does not compare storage: {advice}")));
    if !unknown.is_empty() {
        found.push(format!("The source of reads of {} is unknown", unknown.join(" and ")));
    }
    found
}

/// Share of the bytes that came from memory; None if unknown for a part of them.
fn memory_share(result: &RunResult, records: &[&PatternRecord]) -> Option<f64> {
    let (mut cached, mut read) = (0.0, 0.0);
    for r in records.iter().filter(|r| r.moved_bytes > 0) {
        cached += cache_share(result, r)? * r.moved_bytes as f64;
        read += r.moved_bytes as f64;
    }
    (read > 0.0).then(|| cached / read)
}

/// Direct against buffered transfers; None if a backend cannot determine it.
fn page_cache_caveat(sides: &[BackendRecords<'_>]) -> Option<String> {
    let direct = |records: &[&PatternRecord]| records.iter().filter(|r| r.direct == Some(true)).count();
    if sides.iter().any(|(_, records)| records.is_empty() || records.iter().any(|r| r.direct.is_none())) {
        return None;
    }
    let [(a, a_records), (b, b_records)] = sides else {
        return None;
    };
    let (in_a, in_b) = (direct(a_records), direct(b_records));
    if in_a == in_b {
        return None;
    }
    if a_records.len() == 1 && b_records.len() == 1 {
        let (past, through) = if in_a > in_b { (a, b) } else { (b, a) };
        return Some(format!("{past} is direct, {through} goes through the page cache"));
    }
    let patterns = count(a_records.len().max(b_records.len()) as u64, "pattern");
    Some(format!("Direct are {in_a} of {patterns} of {a}, {in_b} of {b}"))
}

#[cfg(test)]
#[path = "verdicts_tests.rs"]
mod tests;
