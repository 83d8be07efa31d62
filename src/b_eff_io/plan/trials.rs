//! The work of a trial: a fixed number of calls of each pattern, in files of its own. Pure arithmetic; which setting is tried does not
//! matter here.

use super::patterns::of_type;
use super::{PatternSpec, Role, PATTERNS};
use crate::b_eff_io::pattern_type::PatternType;

/// Calls per rank of each pattern, by its number; 0: it is not run.
pub type PatternCalls = [u64; PATTERNS];

/// Time of a pilot, as a share of the time that its pattern has in a trial.
const PILOT_SHARE: f64 = 1.0 / 8.0;
/// A pilot is long enough with half of that,
const PILOT_LEAST: f64 = 0.5;
/// if it takes this many times the pilot of one call, whose time may be that of the first access or of the sync,
const TIMES_FIRST: f64 = 4.0;
/// and has this many calls.
const PILOT_CALLS: u64 = 16;
/// By how much the next pilot may be longer: a first call may be faster than those that follow.
const PILOT_GROWTH: (f64, f64) = (4.0, 32.0);

/// Limits of all files of a trial.
#[derive(Clone, Copy, Debug)]
pub struct TrialSpace {
    /// Ranks.
    pub ranks: u64,
    /// Bytes of all files; None: only the file offset limits them.
    pub space_bytes: Option<u64>,
    /// Segments are rounded up to a multiple of this.
    pub segment_multiple_bytes: u64,
}

/// A pattern in the file of a trial.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlannedPattern {
    /// Pattern.
    pub spec: PatternSpec,
    /// Bytes of each rank's stream before it.
    pub stream_bytes: u64,
    /// Calls per rank.
    pub calls: u64,
}

/// The file of one type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlannedFile {
    /// Type.
    pub pattern_type: PatternType,
    /// Segment of one rank, types 3 and 4.
    pub segment_bytes: Option<u64>,
    /// All patterns of the type, in order.
    pub patterns: Vec<PlannedPattern>,
}

/// The patterns with time units of these types; with a list of chunk sizes only those of these sizes.
#[must_use]
pub fn select(specs: &[PatternSpec; PATTERNS], types: &[PatternType], chunks_bytes: &[u64]) -> Vec<PatternSpec> {
    let is_chosen = |spec: &&PatternSpec| {
        spec.role == Role::Timed
            && types.contains(&spec.pattern_type)
            && (chunks_bytes.is_empty() || chunks_bytes.contains(&spec.chunk_bytes))
    };
    specs.iter().filter(is_chosen).copied().collect()
}

/// Part of `seconds` of each pattern, by its time units.
#[must_use]
pub fn pattern_seconds(patterns: &[PatternSpec], seconds: f64) -> Vec<f64> {
    let units = |spec: &PatternSpec| f64::from(spec.time_units);
    let all: f64 = patterns.iter().map(units).sum();
    patterns.iter().map(|spec| seconds * units(spec) / all.max(1.0)).collect()
}

/// Calls of the patterns that take `seconds` together if each call takes its `call_seconds`, at least one of each; fewer if the space is
/// not sufficient.
#[must_use]
pub fn calls_within(
    patterns: &[PatternSpec],
    call_seconds: &[f64],
    seconds: f64,
    specs: &[PatternSpec; PATTERNS],
    space: &TrialSpace,
) -> PatternCalls {
    let mut calls = [0; PATTERNS];
    let parts = pattern_seconds(patterns, seconds);
    for ((spec, seconds), call_seconds) in patterns.iter().zip(parts).zip(call_seconds) {
        // Rounded down; a huge number is limited by the space.
        calls[usize::from(spec.number)] = (seconds / call_seconds.max(1e-9)) as u64;
    }
    patterns.iter().for_each(|spec| calls[usize::from(spec.number)] = calls[usize::from(spec.number)].max(1));
    fit(calls, specs, space)
}

/// The same share of all calls, at least one of each, so that the files fit into the space.
#[must_use]
pub fn fit(calls: PatternCalls, specs: &[PatternSpec; PATTERNS], space: &TrialSpace) -> PatternCalls {
    let ranks = u128::from(space.ranks.max(1));
    let of = |spec: &PatternSpec| u128::from(calls[usize::from(spec.number)]) * u128::from(spec.call_bytes);
    let needed: u128 = specs.iter().map(of).sum();
    let beside: u128 = PatternType::ALL
        .into_iter()
        .filter(|t| has_work(of_type(specs, *t), &calls))
        .map(|t| {
            let warm_up = of_type(specs, t).iter().filter(|spec| spec.role == Role::WarmUp);
            let fill_up = if t.has_segments() { space.segment_multiple_bytes } else { 0 };
            warm_up.map(|spec| u128::from(spec.call_bytes)).sum::<u128>() + u128::from(fill_up)
        })
        .sum();
    let limit = space.space_bytes.unwrap_or(i64::MAX as u64).min(i64::MAX as u64);
    let available = (u128::from(limit) / ranks).saturating_sub(beside);
    if needed <= available {
        return calls;
    }
    // A share of a u64.
    calls.map(|calls| if calls == 0 { 0 } else { ((u128::from(calls) * available / needed) as u64).max(1) })
}

fn has_work(specs: &[PatternSpec], calls: &PatternCalls) -> bool {
    specs.iter().any(|spec| spec.role == Role::Timed && calls[usize::from(spec.number)] > 0)
}

/// The files for these calls. The first pattern of each file is its warm-up of one call, as in a run: it absorbs the costs of the first
/// access. Nothing fills up the segments.
#[must_use]
pub fn files(specs: &[PatternSpec; PATTERNS], calls: &PatternCalls, segment_multiple_bytes: u64) -> Vec<PlannedFile> {
    let file = |t: PatternType| {
        let mut stream_bytes = 0;
        let mut place = |spec: &PatternSpec| {
            let calls = if spec.role == Role::WarmUp { 1 } else { calls[usize::from(spec.number)] };
            let planned = PlannedPattern { spec: *spec, stream_bytes, calls };
            stream_bytes += calls * spec.call_bytes;
            planned
        };
        let patterns = of_type(specs, t).iter().map(&mut place).collect();
        let segment_bytes = t.has_segments().then(|| stream_bytes.next_multiple_of(segment_multiple_bytes));
        PlannedFile { pattern_type: t, segment_bytes, patterns }
    };
    PatternType::ALL.into_iter().filter(|t| has_work(of_type(specs, *t), calls)).map(file).collect()
}

/// Calls of the next pilot of a pattern, if `calls` took `seconds` and one call `first_seconds`; None: long enough. In a trial it has
/// `whole_seconds`, which no pilot exceeds by much.
#[must_use]
pub fn longer_pilot(calls: u64, seconds: f64, first_seconds: f64, whole_seconds: f64) -> Option<u64> {
    let wanted_seconds = PILOT_SHARE * whole_seconds;
    let is_typical = calls >= PILOT_CALLS && seconds >= TIMES_FIRST * first_seconds;
    if seconds >= whole_seconds || (is_typical && seconds >= PILOT_LEAST * wanted_seconds) {
        return None;
    }
    let growth = (wanted_seconds / seconds.max(1e-9)).clamp(PILOT_GROWTH.0, PILOT_GROWTH.1);
    Some((calls as f64 * growth) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::b_eff_io::plan::patterns::patterns;
    use crate::frame::units::MIB;
    use proptest::prelude::*;

    const SPACE: TrialSpace = TrialSpace { ranks: 2, space_bytes: None, segment_multiple_bytes: MIB };

    fn numbers(specs: &[PatternSpec]) -> Vec<u8> {
        specs.iter().map(|spec| spec.number).collect()
    }

    #[test]
    fn patterns_are_selected_by_type_and_chunk() {
        let specs = patterns(2 * MIB);
        let all = select(&specs, &[PatternType::Scatter], &[]);
        assert_eq!(numbers(&all), (1..=8).collect::<Vec<_>>(), "without the warm-up");
        assert_eq!(numbers(&select(&specs, &[PatternType::Scatter], &[32768, 32776])), [4, 6]);
        assert_eq!(numbers(&select(&specs, &[PatternType::Scatter], &[MIB])), [2, 3], "twice in type 0");
        let segmented = [PatternType::Segmented, PatternType::SegmentedCollective];
        assert_eq!(numbers(&select(&specs, &segmented, &[1024])), [29, 38]);
        assert!(select(&specs, &[PatternType::Scatter], &[4711]).is_empty());
    }

    #[test]
    fn calls_share_the_time_by_their_units() {
        let specs = patterns(2 * MIB);
        // U is 4 and 2.
        let chosen = [specs[3], specs[4]];
        assert_eq!(pattern_seconds(&chosen, 6.0), [4.0, 2.0]);
        let calls = calls_within(&chosen, &[0.5, 0.25], 6.0, &specs, &SPACE);
        assert_eq!((calls[3], calls[4], calls.iter().sum::<u64>()), (8, 8, 16));
        let slow = calls_within(&chosen, &[50.0, 0.25], 6.0, &specs, &SPACE);
        assert_eq!((slow[3], slow[4]), (1, 8), "one call at least");
        // One call of the warm-up, 10 MiB for the rest, of each rank.
        let space = TrialSpace { space_bytes: Some(22 * MIB), ..SPACE };
        let less = calls_within(&chosen, &[0.5, 0.25], 6.0, &specs, &space);
        assert_eq!((less[3], less[4]), (5, 5));
        let free = calls_within(&chosen, &[0.0, 0.0], 1e9, &specs, &SPACE);
        let bytes = u128::from(free[3]) * u128::from(MIB) + u128::from(free[4]) * u128::from(MIB);
        assert!(bytes * 2 <= i64::MAX as u128 && free[3] > 1 << 30, "no time at all: the offset is the limit");
    }

    #[test]
    fn files_follow_from_the_calls() {
        let specs = patterns(2 * MIB);
        let mut calls = [0; PATTERNS];
        (calls[5], calls[30]) = (3, 7);
        let files = files(&specs, &calls, MIB);
        assert_eq!(
            files.iter().map(|f| f.pattern_type).collect::<Vec<_>>(),
            [PatternType::Scatter, PatternType::Segmented]
        );
        assert_eq!((files[0].segment_bytes, files[0].patterns.len()), (None, 9));
        let places: Vec<(u64, u64)> = files[0].patterns.iter().map(|p| (p.stream_bytes, p.calls)).collect();
        assert_eq!(places[..6], [(0, 1), (MIB, 0), (MIB, 0), (MIB, 0), (MIB, 0), (MIB, 3)]);
        assert_eq!((places[6], places[8]), ((4 * MIB, 0), (4 * MIB, 0)));
        // Seven calls of 32 kB + 8 after the warm-up of 1 MB.
        assert_eq!((specs[30].chunk_bytes, files[1].segment_bytes), (32776, Some(2 * MIB)));
        let fill_up = files[1].patterns[8];
        assert_eq!((fill_up.calls, fill_up.spec.role), (0, Role::FillUp));
    }

    #[test]
    fn pilots_grow_until_they_are_long_enough() {
        // An eighth of 8 s is wanted.
        let next = |calls, seconds, first| longer_pilot(calls, seconds, first, 8.0);
        assert_eq!((next(1, 0.1, 0.1), next(1, 2.0, 2.0), next(1, 8.0, 8.0)), (Some(10), Some(4), None));
        assert_eq!((next(16, 0.5, 0.1), next(15, 0.5, 0.1), next(16, 0.4, 0.1)), (None, Some(60), Some(64)));
        // As long as one call: the first access counts, not the calls.
        assert_eq!((next(64, 2.0, 1.9), next(4096, 7.6, 1.9)), (Some(256), None));
        assert_eq!(next(10, 0.0, 0.0), Some(320));
    }

    proptest! {
        #[test]
        fn all_files_fit(seconds in 0.0_f64..1e4, pace in 1e-9_f64..10.0, space_mib in 200_u64..100_000, ranks in 1_u64..4) {
            let specs = patterns(2 * MIB);
            let space = TrialSpace { ranks, space_bytes: Some(space_mib * MIB * ranks), ..SPACE };
            let chosen = select(&specs, &PatternType::ALL, &[]);
            let calls = calls_within(&chosen, &vec![pace; chosen.len()], seconds, &specs, &space);
            prop_assert!(chosen.iter().all(|spec| calls[usize::from(spec.number)] > 0));
            let rank = |file: &PlannedFile| {
                let last = file.patterns.last().unwrap();
                file.segment_bytes.unwrap_or(last.stream_bytes + last.calls * last.spec.call_bytes)
            };
            let bytes: u64 = files(&specs, &calls, MIB).iter().map(|file| rank(file) * ranks).sum();
            prop_assert!(bytes <= space.space_bytes.unwrap(), "{bytes}");
        }
    }
}
