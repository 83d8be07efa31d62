//! Derived values: every average of every release, validity and warnings. Pure functions of the records.
//!
//! The value of a type is shown for whatever was measured of it. Averages over types need all patterns of all their types: without the slow
//! ones they would be values of another benchmark.

pub(super) mod acceptance;
mod account;
pub mod averages;
mod cache_yardstick;
mod coffee_cup;
mod deducted_time;
#[cfg(test)]
pub(super) mod fixture;
mod hints;
mod intervals;
pub mod kinds;
pub mod ladder;
mod model;
mod orders;
mod pattern;
mod repetitions;
mod sensitivity;
mod series;
mod slow_ranks;
mod source;
pub mod standout;
mod time_parts;
mod times;
mod totals;
mod validity;
mod variants;
mod verified_words;
mod warning;

pub use averages::{access_average, release_0_5_contribution, release_1, release_2_1};
pub use cache_yardstick::{CacheBasis, CacheVerdict, CacheYardstick};
pub use coffee_cup::{CoffeeCup, COFFEE_CUP_SECONDS};
pub use deducted_time::{deducted_seconds, short_of_time};
#[cfg(test)]
pub(super) use fixture::run_of_release;
pub use intervals::{repetition_needs, PatternInterval, RepetitionIntervals, ValueInterval};
pub use ladder::Ladder;
pub use model::{AccessTime, PartitionValue, ReleaseValues, SystemValue, TimeAccount, TypeValue, Validity};
pub use orders::{in_order, OrderValue};
pub use pattern::{few_calls, known_digits, rate, PatternValue};
pub use slow_ranks::{HostValue, SlowRank};
pub use source::{cache_share, has_source, sources, storage_bytes, ReadSource};
pub use time_parts::{TimePart, TimeShares};
pub use validity::TOO_SHORT;
pub use verified_words::{VerifiedWords, WORD_BYTES};

use std::panic::resume_unwind;
use std::thread;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use totals::TypeRecordIndex;

use crate::b_eff_io::records::RunResult;
use crate::frame::records::Warning;
use crate::frame::values::storage_drift::{self, StorageDrift};

/// Number of patterns from which a second thread is used.
const MANY_PATTERNS: usize = 50_000;

/// Everything derived from one result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Derived {
    /// Single patterns, in the order of measurement.
    #[serde(default)]
    pub patterns: Vec<PatternValue>,
    /// Measurements in other orders, in the sequence of measurement.
    #[serde(default)]
    pub orders: Vec<OrderValue>,
    /// By backend, partition, access, type.
    pub types: Vec<TypeValue>,
    /// By backend, partition.
    pub partitions: Vec<PartitionValue>,
    /// By backend.
    pub systems: Vec<SystemValue>,
    /// Coffee-cup rule and balance factor, by backend, partition.
    #[serde(default)]
    pub coffee_cups: Vec<CoffeeCup>,
    /// By backend, partition, access.
    pub times: Vec<AccessTime>,
    /// Account of the wall-clock time; None if not recorded.
    #[serde(default)]
    pub account: Option<TimeAccount>,
    /// Source of each read, in the order of measurement.
    #[serde(default)]
    pub reads: Vec<ReadSource>,
    /// Storage drift: rate at the end of the run against that at its start, for each direction; empty if unknown.
    #[serde(default)]
    pub storage_drift: Vec<StorageDrift>,
    /// Twenty times the cache of the file system, by backend, partition, access: a yardstick for data that is to be on disk.
    #[serde(default)]
    pub cache_yardsticks: Vec<CacheYardstick>,
    /// Patterns whose slowest rank stands out, in the order of measurement.
    #[serde(default)]
    pub slow_ranks: Vec<SlowRank>,
    /// By backend, partition, access, type, host; empty if one host takes part.
    #[serde(default)]
    pub hosts: Vec<HostValue>,
    /// By backend and release.
    pub validity: Vec<Validity>,
    /// 95 % confidence intervals from repetitions.
    #[serde(default)]
    pub intervals: RepetitionIntervals,
    /// Warnings of the run and those derived from the records.
    pub warnings: Vec<Warning>,
    /// Comparison of the backends.
    #[serde(skip)]
    pub ladder: Ladder,
}

/// Derives everything from one result, complete or not.
#[must_use]
pub fn derive(result: &RunResult) -> Derived {
    Derived { ladder: compare_backends(result), ..without_ladder(result) }
}

/// Comparison of the backends.
#[must_use]
pub fn compare_backends(result: &RunResult) -> Ladder {
    let index = TypeRecordIndex::new(result);
    Ladder { variants: variants::variants(result, &index), ..ladder::ladder(result, &index) }
}

/// Derives everything but the comparison of backends, whose intervals take most of the time: for many partitions of which few are shown.
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

/// Derives the values of all records together.
fn of_partitions(result: &RunResult, (patterns, reads): (Vec<PatternValue>, Vec<ReadSource>)) -> Derived {
    let index = TypeRecordIndex::new(result);
    let types = totals::types(result, &index);
    let partitions = totals::partitions(result, &index, &types);
    let times = times::times(result, &index);
    let intervals = intervals::intervals(result, &types, &partitions);
    let systems = totals::systems(result, &partitions);
    Derived {
        cache_yardsticks: cache_yardstick::yardsticks(result, &index),
        coffee_cups: coffee_cup::coffee_cups(result, &partitions, &systems),
        systems,
        validity: validity::validity(result, &types, &partitions),
        warnings: warning::all_warnings(result, &partitions, &times, &intervals),
        patterns,
        reads,
        orders: orders::values(result),
        slow_ranks: slow_ranks::slow_ranks(result),
        hosts: slow_ranks::host_values(result),
        account: account::account(result),
        storage_drift: storage_drift::drift_by_direction(&result.probes),
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
