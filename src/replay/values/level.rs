//! Recorded beside replayed, at every level that is not a single call.

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::Serialize;

use crate::frame::values::NULL_BACKEND;
use crate::replay::plan::{Both, CallClass, Tally};
use crate::replay::records::{PassEnd, ReplayResult};

/// What one line of results is about.
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

/// Which calls of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Part {
    /// Those that read.
    Reads,
    /// Those that write.
    Writes,
    /// All of them, opening and closing too.
    All,
}

/// One line: a mean over the complete passes of a backend.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Level {
    /// Backend name.
    pub backend: String,
    /// What it is about.
    pub level: LevelKind,
    /// File number, from 1, at level file; None: calls of no file.
    pub file: Option<u64>,
    /// Class, at level function.
    pub class: Option<CallClass>,
    /// Rank, at level process.
    pub rank: Option<u64>,
    /// Which calls.
    pub part: Part,
    /// Passes it is the mean of.
    pub passes: u64,
    /// Calls.
    pub calls: u64,
    /// Bytes recorded.
    pub recorded_bytes: u64,
    /// Bytes replayed, mean.
    pub replayed_bytes: f64,
    /// Time recorded, summed over the processes.
    pub recorded_seconds: f64,
    /// Time replayed, summed over the processes, mean.
    pub replayed_seconds: f64,
    /// Bandwidth per process recorded; None: no bytes or no time.
    pub recorded_bytes_per_second: Option<f64>,
    /// Bandwidth per process replayed.
    pub replayed_bytes_per_second: Option<f64>,
    /// Replayed over recorded: of bandwidths, without bytes of speeds (recorded time over replayed).
    pub ratio: Option<f64>,
    /// Ratio - 1.
    pub deviation: Option<f64>,
    /// Smallest and largest ratio of a single pass; None: one pass.
    pub ratio_range: Option<[f64; 2]>,
}

/// What a line is told from others by, within a backend.
type Key = (LevelKind, Option<u64>, Option<CallClass>, Option<u64>, Part);

pub(super) fn all(result: &ReplayResult) -> Vec<Level> {
    result.config.backends.iter().flat_map(|backend| of_backend(result, backend)).collect()
}

fn of_backend(result: &ReplayResult, backend: &str) -> Vec<Level> {
    // Sums of interrupted passes would be compared with whole ones; they are in the records.
    let complete = result.passes.iter().filter(|p| p.backend == backend && p.ended == PassEnd::Complete);
    let passes: BTreeSet<u64> = complete.map(|p| p.pass).collect();
    let mut lines: BTreeMap<Key, BTreeMap<u64, Both>> = BTreeMap::new();
    let mut add = |key: Key, pass: u64, both: &Both| lines.entry(key).or_default().entry(pass).or_default().add(both);
    for record in result.classes.iter().filter(|r| r.backend == backend && passes.contains(&r.pass)) {
        let (class, pass, both) = (record.class, record.pass, &record.both);
        for part in parts(class) {
            add((LevelKind::Run, None, None, None, part), pass, both);
            add((LevelKind::File, record.file, None, None, part), pass, both);
        }
        add((LevelKind::Function, None, Some(class), None, Part::All), pass, both);
    }
    for record in result.processes.iter().filter(|r| r.backend == backend && passes.contains(&r.pass)) {
        for part in parts(record.class) {
            add((LevelKind::Process, None, None, Some(record.rank), part), record.pass, &record.both);
        }
    }
    lines.into_iter().map(|(key, passes)| level(backend, key, &passes)).collect()
}

fn parts(class: CallClass) -> impl Iterator<Item = Part> {
    let own = match class {
        c if c.is_read() => Some(Part::Reads),
        c if c.is_write() => Some(Part::Writes),
        _ => None,
    };
    own.into_iter().chain([Part::All])
}

fn level(backend: &str, key: Key, passes: &BTreeMap<u64, Both>) -> Level {
    let mut sum = Both::default();
    passes.values().for_each(|both| sum.add(both));
    let count = passes.len().max(1) as f64;
    let rate = |t: &Tally| (t.bytes > 0 && t.seconds > 0.0).then(|| t.bytes as f64 / t.seconds);
    let [recorded_rate, replayed_rate] = [rate(&sum.recorded), rate(&sum.replayed)];
    let ratios: Vec<f64> = passes.values().filter_map(ratio).collect();
    let ends = || ratios.iter().fold([f64::INFINITY, 0.0_f64], |[low, high], r| [low.min(*r), high.max(*r)]);
    // What moves nothing has a time, but no bandwidth that could be compared.
    let moves = backend != NULL_BACKEND;
    let ratio = ratio(&sum).filter(|_| moves);
    let (level, file, class, rank, part) = key;
    Level {
        backend: backend.to_owned(),
        level,
        file,
        class,
        rank,
        part,
        passes: passes.len() as u64,
        calls: (sum.replayed.calls as f64 / count).round() as u64,
        recorded_bytes: (sum.recorded.bytes as f64 / count).round() as u64,
        replayed_bytes: sum.replayed.bytes as f64 / count,
        recorded_seconds: sum.recorded.seconds / count,
        replayed_seconds: sum.replayed.seconds / count,
        recorded_bytes_per_second: recorded_rate,
        replayed_bytes_per_second: replayed_rate.filter(|_| moves),
        ratio,
        deviation: ratio.map(|r| r - 1.0),
        ratio_range: (moves && ratios.len() > 1).then(ends),
    }
}

/// How much faster the replay was.
fn ratio(both: &Both) -> Option<f64> {
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
