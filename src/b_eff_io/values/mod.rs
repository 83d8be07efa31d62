//! Derived values: every average of every release, validity and warnings. Pure functions of the records.
//!
//! A value of a type is shown for whatever was measured of it. Averages over types need all of the patterns of all of
//! the types they are made of: without the slow ones they would be values of another benchmark.

pub mod averages;
mod debt;
#[cfg(test)]
pub(super) mod fixture;
mod hints;
mod influence;
mod intervals;
pub mod kinds;
pub mod ladder;
mod model;
mod parts;
mod passes;
mod pattern;
mod played;
mod source;
pub mod standout;
mod times;
mod totals;
mod validity;
mod warning;

pub use averages::{access_average, counted, release_1, release_2_1};
pub use debt::{short_of_time, taken_seconds};
pub use intervals::{judgement, PatternInterval, RepeatedValues, ValueInterval};
pub use ladder::Ladder;
pub use model::{AccessTime, PartitionValue, ReleaseValues, SystemValue, TypeValue, Validity};
pub use parts::{Part, Shares};
pub use pattern::{few_calls, known_digits, rate, PatternValue};
pub use source::{cache_share, has_source, sources, storage_bytes, ReadSource};

use std::panic::resume_unwind;
use std::thread;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use totals::Index;

use crate::b_eff_io::records::RunResult;
use crate::frame::records::Warning;
use crate::frame::values::probe::{self, StorageMove};

/// From so many on a thread of its own is worth it.
const MANY_PATTERNS: usize = 50_000;

/// Everything derived from one result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Derived {
    /// Single patterns, in the order of measurement.
    #[serde(default)]
    pub patterns: Vec<PatternValue>,
    /// By backend, partition, access, type.
    pub types: Vec<TypeValue>,
    /// By backend, partition.
    pub partitions: Vec<PartitionValue>,
    /// By backend.
    pub systems: Vec<SystemValue>,
    /// By backend, partition, access.
    pub times: Vec<AccessTime>,
    /// Where each read came from, in the order of measurement.
    #[serde(default)]
    pub reads: Vec<ReadSource>,
    /// The storage at the end of the run against its start, each direction; empty: not known.
    #[serde(default)]
    pub storage: Vec<StorageMove>,
    /// By backend and release.
    pub validity: Vec<Validity>,
    /// 95 % intervals, of what was measured again.
    #[serde(default)]
    pub intervals: RepeatedValues,
    /// Warnings of the run and those that follow from the records.
    pub warnings: Vec<Warning>,
    /// Backends against each other.
    #[serde(skip)]
    pub ladder: Ladder,
}

/// Derives everything from one result, also from one that ended early.
#[must_use]
pub fn derive(result: &RunResult) -> Derived {
    Derived { ladder: compare_backends(result), ..without_ladder(result) }
}

/// Backends against each other.
#[must_use]
pub fn compare_backends(result: &RunResult) -> Ladder {
    ladder::ladder(result, &Index::new(result))
}

/// Everything but backends against each other, whose intervals take most of the time: for many partitions, of which few are shown.
#[must_use]
pub fn without_ladder(result: &RunResult) -> Derived {
    let of_patterns = || (pattern::values(result), sources(result));
    if result.patterns.len() < MANY_PATTERNS {
        return of_partitions(result, of_patterns());
    }
    thread::scope(|scope| {
        let of_patterns = scope.spawn(of_patterns);
        let others = of_partitions(result, (Vec::new(), Vec::new()));
        let (patterns, reads) = of_patterns.join().unwrap_or_else(|panic| resume_unwind(panic));
        Derived { patterns, reads, ..others }
    })
}

/// What follows from all records together.
fn of_partitions(result: &RunResult, (patterns, reads): (Vec<PatternValue>, Vec<ReadSource>)) -> Derived {
    let index = Index::new(result);
    let types = totals::types(result, &index);
    let partitions = totals::partitions(result, &index, &types);
    let times = times::times(result, &index);
    let intervals = intervals::intervals(result, &types, &partitions);
    Derived {
        systems: totals::systems(result, &partitions),
        validity: validity::validity(result, &types, &partitions),
        warnings: warning::all(result, &partitions, &times, &intervals),
        patterns,
        reads,
        storage: probe::moves(&result.probes),
        intervals,
        types,
        partitions,
        times,
        ladder: Ladder::default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_threads_derive_what_one_does() {
        let mut many = fixture::full_run();
        let own = many.patterns.clone();
        for ranks in 100.. {
            if many.patterns.len() >= MANY_PATTERNS {
                break;
            }
            many.patterns.extend(own.iter().cloned().map(|mut p| {
                p.ranks = ranks;
                p
            }));
        }
        assert_eq!(without_ladder(&many), of_partitions(&many, (pattern::values(&many), sources(&many))));
    }
}
