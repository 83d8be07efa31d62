//! Verdicts in words: who delivers how much of the best, and where the rest goes.

use beff_statistics::bootstrap::Ratio;

use crate::b_eff_io::records::{PatternRecord, RunResult};
use crate::b_eff_io::values::ladder::{Cost, Verdict};
use crate::b_eff_io::values::{cache_share, Derived, Part};
use crate::frame::config::CachePolicy;
use crate::frame::records::Access;
use crate::frame::values::CACHE_SHARE;

use super::cells::type_cell;
use super::layout::{chunk_label, Spot};
use crate::frame::report::marks::Mark;
use crate::frame::report::text::{count, figure, percent};

/// An equal ratio whose interval is wider than this, high end by low end, says little.
const WIDE: f64 = 1.5;

/// What a verdict is about, without its access method: `type 1 shared`, `type 4 seg-coll, 1 kB+8 (pattern 40)`.
#[must_use]
pub fn about(result: &RunResult, v: &Verdict) -> String {
    let of_type = format!("type {} {}", v.pattern_type, v.pattern_type.name());
    let record = v.pattern.and_then(|p| spot(v, &v.backend).record(result, p));
    match record {
        Some(r) => format!("{of_type}, {} (pattern {})", chunk_label(r.chunk_bytes), r.pattern),
        None => of_type,
    }
}

/// One sentence, and another for each thing that makes the comparison one of something else than storage.
#[must_use]
pub fn sentence(result: &RunResult, derived: &Derived, v: &Verdict) -> String {
    // Where nothing has an interval, it is said once and not in each sentence.
    let note = derived.ladder.verdicts.iter().any(|v| v.ratio.interval.is_some());
    let mut text = comparison(v, note);
    if v.ratio.equal != Some(true) {
        let calls = v.call_seconds.map(|[slow, fast]| format!("a call takes {} against {}; ", time(slow), time(fast)));
        let largest = format!("{} of its time is {}", percent(v.largest.share), noun(v.largest.part));
        text.push_str(&format!(": {}{largest}, {}", calls.unwrap_or_default(), times(&v.largest, &v.best)));
        if let Some(excess) = &v.excess {
            text.push_str(&format!("; it loses most in {}, {}", noun(excess.part), times(excess, &v.best)));
        }
    }
    if let Some(slowest) = &v.slowest {
        let ratio = match slowest.ratio.equal {
            Some(true) => format!("equal too ({})", decimal(&slowest.ratio)),
            _ => format!("with {}", share(&slowest.ratio, &v.best, note)),
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

fn comparison(v: &Verdict, note: bool) -> String {
    let (backend, best) = (&v.backend, &v.best);
    let wide = v.ratio.interval.is_some_and(|i| i.high > WIDE * i.low);
    match (v.ratio.equal, wide) {
        (Some(true), false) => format!("{backend} and {best} are equal ({})", decimal(&v.ratio)),
        (Some(true), true) => format!("{backend} and {best} cannot be told apart ({})", decimal(&v.ratio)),
        _ => format!("{backend} delivers {}", share(&v.ratio, best, note)),
    }
}

/// `3.0 % [2.8, 3.3] of uring`.
fn share(ratio: &Ratio, best: &str, note: bool) -> String {
    let percent = ratio.value * 100.0;
    let decimals = match percent {
        // Close to 100 whole percents would hide that there is a difference.
        p if p >= 95.0 => 1,
        p if p >= 10.0 => 0,
        p if p >= 1.0 => 1,
        _ => 2,
    };
    let Some(interval) = ratio.interval else {
        let note = if note { " (too few rounds for an interval)" } else { "" };
        return format!("{percent:.decimals$} % of {best}{note}");
    };
    let shown = |value: f64, decimals: usize| format!("{:.decimals$}", value * 100.0);
    let narrow = shown(interval.low, decimals) == shown(interval.high, decimals);
    let shown = |value: f64| shown(value, decimals + usize::from(narrow));
    format!("{} % [{}, {}] of {best}", shown(ratio.value), shown(interval.low), shown(interval.high))
}

/// A time in two or three digits.
fn time(seconds: f64) -> String {
    const UNITS: [(f64, &str); 4] = [(1.0, "s"), (1e-3, "ms"), (1e-6, "us"), (1e-9, "ns")];
    let (unit, name) = UNITS.into_iter().find(|(unit, _)| seconds >= *unit).unwrap_or((1e-9, "ns"));
    format!("{} {name}", figure(seconds / unit))
}

/// `ratio 1.02 [0.97, 1.08]`.
fn decimal(ratio: &Ratio) -> String {
    let interval = ratio.interval.map(|i| format!(" [{:.2}, {:.2}]", i.low, i.high)).unwrap_or_default();
    format!("ratio {:.2}{interval}", ratio.value)
}

fn noun(part: Part) -> &'static str {
    match part {
        Part::Open => "opening",
        Part::View => "setting the view",
        Part::Room => "making the file longer",
        Part::Transfer => "transfer",
        Part::Decide => "deciding and waiting",
        Part::Sync => "sync",
        Part::Close => "closing",
    }
}

fn times(cost: &Cost, best: &str) -> String {
    match cost.times {
        None => format!("for which {best} needs no time"),
        Some(times) if times > 1000.0 => format!("more than 1000 times that of {best} per byte"),
        Some(times) if (0.95..1.05).contains(&times) => format!("as much as that of {best} per byte"),
        Some(times) => format!("{} times that of {best} per byte", figure(times)),
    }
}

/// What keeps the two from being compared as ways to the same storage.
fn caveats(result: &RunResult, derived: &Derived, v: &Verdict) -> Vec<String> {
    let sides = [&v.backend, &v.best].map(|backend| (backend.as_str(), records(result, v, backend)));
    let mut found = Vec::new();
    for (backend, _) in &sides {
        let marks = type_cell(result, derived, spot(v, backend), v.pattern_type).marks;
        if v.pattern.is_none() && marks.contains(&Mark::Wrong) {
            found.push(format!("Data of {backend} was wrong"));
        }
        if v.pattern.is_none() && marks.contains(&Mark::Incomplete) {
            found.push(format!("{backend} did not run all patterns of the type"));
        }
    }
    found.extend(source(result, v, &sides));
    found.extend(page_cache(&sides));
    found
}

/// Where a verdict looks at one of its two backends.
fn spot<'a>(v: &Verdict, backend: &'a str) -> Spot<'a> {
    Spot { backend, ranks: v.ranks, access: v.access }
}

fn records<'a>(result: &'a RunResult, v: &Verdict, backend: &'a str) -> Vec<&'a PatternRecord> {
    let of_type = spot(v, backend).records(result).filter(|r| r.pattern_type == v.pattern_type && r.was_run());
    of_type.filter(|r| v.pattern.is_none_or(|p| p == r.pattern)).collect()
}

type Side<'a> = (&'a str, Vec<&'a PatternRecord>);

/// Reads that came from memory, or from nobody knows where.
fn source(result: &RunResult, v: &Verdict, sides: &[Side<'_>]) -> Vec<String> {
    if v.access != Access::Read {
        return Vec::new();
    }
    let shares: Vec<(&str, Option<f64>)> =
        sides.iter().map(|(backend, records)| (*backend, from_memory(result, records))).collect();
    let cached: Vec<(&str, String)> = shares
        .iter()
        .filter_map(|(backend, share)| share.filter(|s| *s > CACHE_SHARE).map(|s| (*backend, percent(s))))
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
    found.extend(read.map(|read| format!("{read}, so this is not about storage: {advice}")));
    if !unknown.is_empty() {
        found.push(format!("Where {} read from is not known", unknown.join(" and ")));
    }
    found
}

/// Share of the bytes that came from memory; None if it is not known of a part of them.
fn from_memory(result: &RunResult, records: &[&PatternRecord]) -> Option<f64> {
    let (mut cached, mut read) = (0.0, 0.0);
    for r in records.iter().filter(|r| r.moved_bytes > 0) {
        cached += cache_share(result, r)? * r.moved_bytes as f64;
        read += r.moved_bytes as f64;
    }
    (read > 0.0).then(|| cached / read)
}

/// Direct transfers against those through the page cache; nothing where a backend cannot tell.
fn page_cache(sides: &[Side<'_>]) -> Option<String> {
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
