//! Findings that stand out: factors between rates that should be equal, with their causes.

use beff_statistics::bootstrap::Interval;

use super::time_parts::{PartSeconds, TimePart};
use super::totals::TypeRecords;
use super::{cache_share, few_calls, ladder::Ladder, rate};
use crate::b_eff_io::pattern_type::PatternType;
use crate::b_eff_io::records::{PatternRecord, RunResult, StopReason};
use crate::frame::backends;
use crate::frame::records::AccessMethod;
use crate::frame::values::{CACHED_THRESHOLD, NULL_BACKEND};

/// Maximum number of findings.
pub const MAX_FINDINGS: usize = 3;

/// Smallest reported factor between backends and between alignments.
const MIN_FACTOR: f64 = 2.0;

/// Smallest reported factor between types, which always differ somewhat.
const MIN_TYPE_FACTOR: f64 = 4.0;

/// Difference between an unaligned chunk and its aligned neighbour.
const ODD_BYTES: u64 = 8;

/// Bytes read for each byte written from which on these explain slow writes.
const MIN_READ_PER_WRITTEN: f64 = 0.5;

/// Baseline of a comparison.
#[derive(Clone, Debug, PartialEq)]
pub enum Baseline {
    /// The same pattern through this backend, the best.
    Backend(String),
    /// The pattern of the same type whose chunks are 8 bytes smaller, and aligned.
    Aligned,
    /// The fastest type of the same access method.
    Type(PatternType),
}

/// Measured cause.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum FindingCause {
    /// This part of the time accounts for this share of the difference, 0 to 1.
    Part(TimePart, f64),
    /// Bytes read for each byte written.
    ReadToWrite(f64),
}

/// A finding.
#[derive(Clone, Debug, PartialEq)]
pub struct Finding {
    /// The slow backend.
    pub backend: String,
    /// Access method.
    pub access: AccessMethod,
    /// Pattern type, 0 to 4.
    pub pattern_type: PatternType,
    /// Chunk size of the pattern; None: the type as a whole.
    pub chunk_bytes: Option<u64>,
    /// Bytes of a call of the pattern; None: the type as a whole.
    pub call_bytes: Option<u64>,
    /// The baseline.
    pub against: Baseline,
    /// Factor by which it is slower.
    pub factor: f64,
    /// 95 % confidence interval of the factor; None if unknown.
    pub interval: Option<Interval>,
    /// Its cause.
    pub cause: Option<FindingCause>,
    /// True if one of the two is based on few calls.
    pub few_calls: bool,
}

impl Finding {
    /// Factor that is certain: the end of the interval that is closer to 1, or without an interval the factor itself.
    #[must_use]
    pub fn certain_factor(&self) -> f64 {
        self.interval.map_or(self.factor, |interval| interval.low)
    }
}

/// Most important findings on the partition with `ranks` ranks, largest certain factors first, those based on few calls last.
#[must_use]
pub fn findings(result: &RunResult, ladder: &Ladder, ranks: u64) -> Vec<Finding> {
    let sound = sound_patterns(result, ranks);
    let mut kinds =
        [backend_findings(&sound, ladder, ranks), alignment_findings(&sound), type_findings(result, &sound, ranks)];
    kinds.iter_mut().for_each(|found| found.sort_by(order));
    let mut chosen: Vec<Finding> = Vec::new();
    // The first of each kind, then the others: three of one kind are less informative.
    let longest = kinds.iter().map(Vec::len).max().unwrap_or(0);
    for place in 0..longest {
        for finding in kinds.iter().filter_map(|found| found.get(place)) {
            let is_known = |f: &Finding| {
                f.pattern_type == finding.pattern_type
                    && std::mem::discriminant(&f.against) == std::mem::discriminant(&finding.against)
            };
            if chosen.len() < MAX_FINDINGS && !chosen.iter().any(is_known) {
                chosen.push(finding.clone());
            }
        }
    }
    chosen.sort_by(order);
    chosen
}

fn order(a: &Finding, b: &Finding) -> std::cmp::Ordering {
    a.few_calls.cmp(&b.few_calls).then(b.certain_factor().total_cmp(&a.certain_factor()))
}

/// Timed patterns that were completed and whose reads came from storage.
fn sound_patterns(result: &RunResult, ranks: u64) -> Vec<&PatternRecord> {
    let ended = |p: &PatternRecord| {
        matches!(p.ended, StopReason::Time | StopReason::Count | StopReason::Space | StopReason::TimeGuard)
    };
    let stored = |p: &PatternRecord| {
        p.access != AccessMethod::Read || cache_share(result, p).is_some_and(|share| share <= CACHED_THRESHOLD)
    };
    let is_timed = |p: &PatternRecord| p.backend != NULL_BACKEND && p.time_units > 0 && rate(p).is_some();
    result.patterns.iter().filter(|p| p.ranks == ranks && is_timed(p) && ended(p) && stored(p)).collect()
}

/// Compares the slowest backend of each pattern with the best.
fn backend_findings(sound: &[&PatternRecord], ladder: &Ladder, ranks: u64) -> Vec<Finding> {
    let mut found: Vec<Finding> = Vec::new();
    for rung in ladder.patterns.iter().filter(|rung| rung.ranks == ranks) {
        let (Some(best), Some(ratio)) = (&rung.best, rung.ratio) else { continue };
        let factor = 1.0 / ratio.value;
        // A variant and its backend are compared in a table of their own, with intervals of all patterns.
        let is_own_variant = backends::backend_of(&rung.backend) == backends::backend_of(best);
        if is_own_variant || ratio.equal == Some(true) || !(factor.is_finite() && factor >= MIN_FACTOR) {
            continue;
        }
        let of = |backend: &str| {
            let is = |p: &&&PatternRecord| p.backend == backend && (p.access, p.pattern) == (rung.access, rung.pattern);
            sound.iter().find(is).copied()
        };
        let (Some(slow), Some(fast)) = (of(&rung.backend), of(best)) else { continue };
        let interval = ratio.interval.map(|i| Interval { low: 1.0 / i.high, high: 1.0 / i.low });
        let finding = Finding { interval, ..finding(slow, fast, factor, Baseline::Backend(best.clone())) };
        let same = |f: &&mut Finding| {
            f.access == finding.access
                && f.call_bytes == finding.call_bytes
                && f.chunk_bytes == finding.chunk_bytes
                && f.pattern_type == finding.pattern_type
        };
        match found.iter_mut().find(same) {
            Some(known) if known.certain_factor() < finding.certain_factor() => *known = finding,
            Some(_) => {}
            None => found.push(finding),
        }
    }
    found
}

/// Compares chunks that are 8 bytes longer with aligned ones.
fn alignment_findings(sound: &[&PatternRecord]) -> Vec<Finding> {
    let mut found = Vec::new();
    for &slow in sound {
        let is_aligned = |p: &&&PatternRecord| {
            let is_same = (p.backend == slow.backend) && (p.access, p.pattern_type) == (slow.access, slow.pattern_type);
            is_same && p.chunk_bytes.checked_add(ODD_BYTES) == Some(slow.chunk_bytes)
        };
        let of_call = |p: &&&PatternRecord| p.call_bytes.abs_diff(slow.call_bytes);
        let Some(&fast) = sound.iter().filter(is_aligned).min_by_key(of_call) else { continue };
        let Some((slow_rate, fast_rate)) = rate(slow).zip(rate(fast)) else { continue };
        let factor = fast_rate / slow_rate;
        if factor.is_finite() && factor >= MIN_FACTOR {
            found.push(finding(slow, fast, factor, Baseline::Aligned));
        }
    }
    found
}

/// Compares each type with the fastest of the same backend and access method.
fn type_findings(result: &RunResult, sound: &[&PatternRecord], ranks: u64) -> Vec<Finding> {
    let mut found = Vec::new();
    for backend in result.config.backends.iter().filter(|backend| *backend != NULL_BACKEND) {
        for access in AccessMethod::ALL {
            let sides: Vec<(PatternType, SideTotals)> = PatternType::ALL
                .into_iter()
                .filter_map(|t| {
                    let records = TypeRecords::of(result, backend, ranks, access, t);
                    Some((t, sound_type(&records, sound)?))
                })
                .collect();
            let Some((best, fast)) = sides.iter().max_by(|a, b| a.1.rate().total_cmp(&b.1.rate())) else { continue };
            for (pattern_type, slow) in &sides {
                let factor = fast.rate() / slow.rate();
                if !(factor.is_finite() && factor >= MIN_TYPE_FACTOR) {
                    continue;
                }
                found.push(Finding {
                    backend: backend.clone(),
                    access,
                    pattern_type: *pattern_type,
                    chunk_bytes: None,
                    call_bytes: None,
                    against: Baseline::Type(*best),
                    factor,
                    interval: None,
                    cause: slow.cause(fast),
                    few_calls: false,
                });
            }
        }
    }
    found
}

/// Totals of a type if all its patterns are sound.
fn sound_type(records: &TypeRecords<'_>, sound: &[&PatternRecord]) -> Option<SideTotals> {
    let is_sound = |p: &&PatternRecord| p.time_units == 0 || sound.iter().any(|s| std::ptr::eq(*s, *p));
    if records.patterns.is_empty() || !records.patterns.iter().all(is_sound) {
        return None;
    }
    let mut side = SideTotals::default();
    records.patterns.iter().for_each(|p| side.add(p));
    records.files.iter().for_each(|file| side.parts.add_files(file));
    side.rate().is_finite().then_some(side)
}

fn finding(slow: &PatternRecord, fast: &PatternRecord, factor: f64, against: Baseline) -> Finding {
    let [slow_side, fast_side] = [slow, fast].map(|p| {
        let mut side = SideTotals::default();
        side.add(p);
        side
    });
    Finding {
        backend: slow.backend.clone(),
        access: slow.access,
        pattern_type: slow.pattern_type,
        chunk_bytes: Some(slow.chunk_bytes),
        call_bytes: Some(slow.call_bytes),
        against,
        factor,
        interval: None,
        cause: slow_side.cause(&fast_side),
        few_calls: few_calls(slow) || few_calls(fast),
    }
}

#[derive(Clone, Debug, Default)]
struct SideTotals {
    bytes: u64,
    parts: PartSeconds,
    /// For writes: bytes that were read meanwhile, by calls or from storage, whichever is more.
    read_bytes: u64,
}

impl SideTotals {
    fn add(&mut self, p: &PatternRecord) {
        self.bytes = self.bytes.saturating_add(p.moved_bytes);
        self.parts.add_pattern(&p.intervals);
        if p.access != AccessMethod::Read {
            let read = p.call_read_bytes.unwrap_or(0).max(p.storage_read_bytes.unwrap_or(0));
            self.read_bytes = self.read_bytes.saturating_add(read);
        }
    }

    fn rate(&self) -> f64 {
        self.bytes as f64 / self.parts.seconds()
    }

    fn read_per_written(&self) -> f64 {
        self.read_bytes as f64 / self.bytes as f64
    }

    /// Cause of the difference to the fast side: read-modify-write, else the part of the time with most of the difference.
    fn cause(&self, fast: &Self) -> Option<FindingCause> {
        if self.read_per_written() >= MIN_READ_PER_WRITTEN && fast.read_per_written() < MIN_READ_PER_WRITTEN / 2.0 {
            return Some(FindingCause::ReadToWrite(self.read_per_written()));
        }
        let lost = |part: TimePart| self.parts.of(part) / self.bytes as f64 - fast.parts.of(part) / fast.bytes as f64;
        let whole = self.parts.seconds() / self.bytes as f64 - fast.parts.seconds() / fast.bytes as f64;
        let part = TimePart::ALL.into_iter().max_by(|a, b| lost(*a).total_cmp(&lost(*b)))?;
        let share = lost(part) / whole;
        share.is_finite().then(|| FindingCause::Part(part, share.clamp(0.0, 1.0)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::b_eff_io::values::fixture::{edit_pattern, full_run};

    fn of(result: &RunResult) -> Vec<Finding> {
        findings(result, &crate::b_eff_io::values::compare_backends(result), 4)
    }

    /// Reads from storage.
    fn run() -> RunResult {
        let mut result = full_run();
        for p in &mut result.patterns {
            p.storage_read_bytes = (p.access == AccessMethod::Read).then_some(p.moved_bytes);
        }
        result
    }

    fn slower(p: &mut PatternRecord, factor: f64) {
        p.intervals.transfer_seconds += (factor - 1.0) * p.seconds();
    }

    #[test]
    fn where_all_is_alike_nothing_stands_out() {
        assert_eq!(of(&run()), []);
    }

    fn of_chunks(result: &RunResult) -> Vec<Finding> {
        of(result).into_iter().filter(|f| f.against == Baseline::Aligned).collect()
    }

    #[test]
    fn chunks_of_8_bytes_more_are_compared_with_the_aligned_ones() {
        let mut result = run();
        let pattern = result
            .patterns
            .iter()
            .find(|p| p.pattern_type == PatternType::SegmentedCollective && p.chunk_bytes == 1032)
            .unwrap()
            .pattern;
        edit_pattern(&mut result, 4, AccessMethod::Rewrite, pattern, |p| slower(p, 40.0));
        let found = of_chunks(&result);
        assert_eq!(found.len(), 1, "{found:?}");
        let first = &found[0];
        assert_eq!(
            (first.access, first.pattern_type, first.chunk_bytes),
            (AccessMethod::Rewrite, PatternType::SegmentedCollective, Some(1032))
        );
        assert!((first.factor / 40.0 - 1.0).abs() < 0.05, "{first:?}");
        assert!(
            matches!(first.cause, Some(FindingCause::Part(TimePart::Transfer, share)) if share > 0.95),
            "{first:?}"
        );
        // Bytes read in order to write take precedence over a part of the time.
        edit_pattern(&mut result, 4, AccessMethod::Rewrite, pattern, |p| p.call_read_bytes = Some(3 * p.moved_bytes));
        assert_eq!(of_chunks(&result)[0].cause, Some(FindingCause::ReadToWrite(3.0)));
        edit_pattern(&mut result, 4, AccessMethod::Rewrite, pattern, |p| p.calls = 1);
        assert!(of_chunks(&result)[0].few_calls);
        edit_pattern(&mut result, 4, AccessMethod::Rewrite, pattern, |p| p.ended = StopReason::Error);
        assert_eq!(of(&result), []);
    }

    #[test]
    fn what_came_from_a_cache_is_no_finding() {
        let mut result = run();
        let pattern = result
            .patterns
            .iter()
            .find(|p| p.pattern_type == PatternType::SegmentedCollective && p.chunk_bytes == 1032)
            .unwrap()
            .pattern;
        edit_pattern(&mut result, 4, AccessMethod::Read, pattern, |p| slower(p, 40.0));
        assert_eq!(of_chunks(&result).len(), 1);
        edit_pattern(&mut result, 4, AccessMethod::Read, pattern, |p| p.storage_read_bytes = Some(0));
        assert_eq!(of(&result), []);
    }

    /// "86 times slower (2.6 to 5363)" comes after "9 times slower (8 to 10)" and after "4 times slower" of a type.
    #[test]
    fn the_certain_factor_determines_the_order() {
        let of = |factor, interval: Option<(f64, f64)>, few_calls| Finding {
            backend: "mpiio".into(),
            access: AccessMethod::Write,
            pattern_type: PatternType::Scatter,
            chunk_bytes: None,
            call_bytes: None,
            against: Baseline::Aligned,
            factor,
            interval: interval.map(|(low, high)| Interval { low, high }),
            cause: None,
            few_calls,
        };
        let sorted = [
            of(9.0, Some((8.0, 10.0)), false),
            of(4.0, None, false),
            of(86.0, Some((2.6, 5363.0)), false),
            of(99.0, None, true),
        ];
        let mut found = [2, 3, 1, 0].map(|place: usize| sorted[place].clone());
        found.sort_by(order);
        assert_eq!(found, sorted);
    }

    #[test]
    fn a_slow_type_is_compared_with_the_fastest() {
        let mut result = run();
        for p in result
            .patterns
            .iter_mut()
            .filter(|p| p.pattern_type == PatternType::Shared && p.access == AccessMethod::Write)
        {
            p.intervals.sync_seconds += 9.0 * p.seconds();
        }
        let found = of(&result);
        assert_eq!((found.len(), found[0].pattern_type, found[0].chunk_bytes), (1, PatternType::Shared, None));
        assert!(matches!(found[0].against, Baseline::Type(t) if t != PatternType::Shared));
        assert!(matches!(found[0].cause, Some(FindingCause::Part(TimePart::Sync, share)) if share > 0.9), "{found:?}");
    }
}
