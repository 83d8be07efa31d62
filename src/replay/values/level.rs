//! Recorded and replayed values at every level above single calls.

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::Serialize;

use crate::frame::values::NULL_BACKEND;
use crate::replay::plan::{CallClass, CallTally, TallyPair};
use crate::replay::records::ReplayResult;

/// Level of a line of results.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LevelKind {
    /// All calls.
    Run,
    /// One file.
    File,
    /// One class of functions.
    Function,
    /// One process.
    Process,
}

/// Subset of the calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CallSubset {
    /// Reads.
    Reads,
    /// Writes.
    Writes,
    /// All calls, including open and close.
    All,
}

/// One line: medians over the complete timed repetitions of a backend.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct LevelComparison {
    /// Backend name.
    pub backend: String,
    /// Level.
    pub level: LevelKind,
    /// File number, from 1, at level file; None: calls of no file.
    pub file: Option<u64>,
    /// Class, at level function.
    pub class: Option<CallClass>,
    /// Rank, at level process.
    pub rank: Option<u64>,
    /// Subset of the calls.
    pub part: CallSubset,
    /// Number of repetitions.
    pub repetitions: u64,
    /// Calls.
    pub calls: u64,
    /// Bytes recorded.
    pub recorded_bytes: u64,
    /// Bytes replayed.
    pub replayed_bytes: f64,
    /// Time recorded, summed over the processes; 0 for a workload written by hand.
    pub recorded_seconds: f64,
    /// Time replayed, summed over the processes.
    pub replayed_seconds: f64,
    /// Bandwidth per process recorded; None: no bytes, no time, or a workload written by hand.
    pub recorded_bytes_per_second: Option<f64>,
    /// Bandwidth per process replayed.
    pub replayed_bytes_per_second: Option<f64>,
    /// Replayed over recorded bandwidth; without bytes, recorded over replayed time.
    pub ratio: Option<f64>,
    /// Ratio - 1.
    pub deviation: Option<f64>,
    /// Smallest and largest ratio of a single repetition; None for one repetition.
    pub ratio_range: Option<[f64; 2]>,
}

type LevelKey = (LevelKind, Option<u64>, Option<CallClass>, Option<u64>, CallSubset);

pub(super) fn all_levels(result: &ReplayResult) -> Vec<LevelComparison> {
    result.config.backends.iter().flat_map(|backend| backend_levels(result, backend)).collect()
}

fn backend_levels(result: &ReplayResult, backend: &str) -> Vec<LevelComparison> {
    // Sums of interrupted repetitions would be compared with complete ones; they are in the records.
    let complete = result.repetitions.iter().filter(|p| p.backend == backend && p.is_timed_complete());
    let numbers: BTreeSet<u64> = complete.map(|p| p.repetition).collect();
    let mut lines: BTreeMap<LevelKey, BTreeMap<u64, TallyPair>> = BTreeMap::new();
    let mut add = |key: LevelKey, number: u64, both: &TallyPair| {
        lines.entry(key).or_default().entry(number).or_default().add(both)
    };
    for record in result.classes.iter().filter(|r| r.backend == backend && numbers.contains(&r.repetition)) {
        let (class, number, both) = (record.class, record.repetition, &record.both);
        for part in subsets_of(class) {
            add((LevelKind::Run, None, None, None, part), number, both);
            add((LevelKind::File, record.file, None, None, part), number, both);
        }
        add((LevelKind::Function, None, Some(class), None, CallSubset::All), number, both);
    }
    for record in result.processes.iter().filter(|r| r.backend == backend && numbers.contains(&r.repetition)) {
        for part in subsets_of(record.class) {
            add((LevelKind::Process, None, None, Some(record.rank), part), record.repetition, &record.both);
        }
    }
    let is_handwritten = result.setup.profile.is_handwritten();
    let line = |(key, mut numbers): (LevelKey, BTreeMap<u64, TallyPair>)| {
        // Invented times are compared with nothing.
        numbers.values_mut().filter(|_| is_handwritten).for_each(|both| both.recorded.seconds = 0.0);
        compare_level(backend, key, &numbers)
    };
    lines.into_iter().map(line).collect()
}

fn subsets_of(class: CallClass) -> impl Iterator<Item = CallSubset> {
    let own = match class {
        c if c.is_read() => Some(CallSubset::Reads),
        c if c.is_write() => Some(CallSubset::Writes),
        _ => None,
    };
    own.into_iter().chain([CallSubset::All])
}

fn compare_level(backend: &str, key: LevelKey, by_repetition: &BTreeMap<u64, TallyPair>) -> LevelComparison {
    let rate = |t: &CallTally| (t.bytes > 0 && t.seconds > 0.0).then(|| t.bytes as f64 / t.seconds);
    let all = |value: &dyn Fn(&TallyPair) -> Option<f64>| median(by_repetition.values().filter_map(value).collect());
    let number = |value: &dyn Fn(&TallyPair) -> f64| all(&|both| Some(value(both))).unwrap_or(0.0);
    let ratios: Vec<f64> = by_repetition.values().filter_map(speed_ratio).collect();
    let ends = || ratios.iter().fold([f64::INFINITY, 0.0_f64], |[low, high], r| [low.min(*r), high.max(*r)]);
    // The null backend has a time, but no comparable bandwidth.
    let moves = backend != NULL_BACKEND;
    let ratio = median(ratios.clone()).filter(|_| moves);
    let (level, file, class, rank, part) = key;
    LevelComparison {
        backend: backend.to_owned(),
        level,
        file,
        class,
        rank,
        part,
        repetitions: by_repetition.len() as u64,
        calls: number(&|both| both.replayed.calls as f64).round() as u64,
        recorded_bytes: number(&|both| both.recorded.bytes as f64).round() as u64,
        replayed_bytes: number(&|both| both.replayed.bytes as f64),
        recorded_seconds: number(&|both| both.recorded.seconds),
        replayed_seconds: number(&|both| both.replayed.seconds),
        recorded_bytes_per_second: all(&|both| rate(&both.recorded)),
        replayed_bytes_per_second: all(&|both| rate(&both.replayed)).filter(|_| moves),
        ratio,
        deviation: ratio.map(|r| r - 1.0),
        ratio_range: (moves && ratios.len() > 1).then(ends),
    }
}

/// None without values.
fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    match values.len() % 2 {
        1 => values.get(middle).copied(),
        _ => Some((values.get(middle.checked_sub(1)?)? + values.get(middle)?) / 2.0),
    }
}

/// Speed of the replay relative to the recording.
fn speed_ratio(both: &TallyPair) -> Option<f64> {
    let (recorded, replayed) = (&both.recorded, &both.replayed);
    if recorded.seconds <= 0.0 || replayed.seconds <= 0.0 {
        return None;
    }
    let speed = recorded.seconds / replayed.seconds;
    match (recorded.bytes, replayed.bytes) {
        (0, 0) => Some(speed),
        (0, _) => None,
        (then, now) => Some(speed * (now as f64 / then as f64)),
    }
}
