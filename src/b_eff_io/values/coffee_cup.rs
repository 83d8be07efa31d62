//! Yardsticks of the paper that relate bandwidth to the machine: the coffee-cup rule (all memory can be written in about ten minutes) and the
//! balance factor (bandwidth divided by the Rmax of LINPACK). No criteria of validity.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{PartitionValue, ReleaseValues, SystemValue};
use crate::b_eff_io::config::Release;
use crate::b_eff_io::records::RunResult;
use crate::frame::values::NULL_BACKEND;

/// Time in which the memory should be written, seconds.
pub const COFFEE_CUP_SECONDS: f64 = 600.0;

/// The memory of a partition and the time to transfer it once.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CoffeeCup {
    /// Backend name.
    pub backend: String,
    /// Ranks of the partition.
    pub ranks: u64,
    /// True for the partition with the value of the system, by the definition of the run.
    pub is_best: bool,
    /// Memory of its ranks: memory of a rank times ranks.
    pub memory_bytes: u64,
    /// Time to write, to rewrite and to read it, at the averages of the access methods (`access_mb_per_second`); None if unknown.
    pub seconds: [Option<f64>; 3],
    /// True if it is written in at most ten minutes; None if unknown.
    pub is_met: Option<bool>,
    /// b_eff_io by the definition of the run divided by the Rmax of LINPACK, in bytes per floating-point operation; None without `--rmax`.
    pub balance_bytes_per_flop: Option<f64>,
}

/// One for each partition of each backend that moves data.
pub(super) fn coffee_cups(
    result: &RunResult,
    partitions: &[PartitionValue],
    systems: &[SystemValue],
) -> Vec<CoffeeCup> {
    let release = result.config.release;
    let own = partitions.iter().filter(|p| p.backend != NULL_BACKEND);
    let cup = |p: &PartitionValue| {
        let memory_bytes = result.manifest.machine.memory_per_rank_bytes.saturating_mul(p.ranks);
        let seconds = p.access_mb_per_second.map(|rate| {
            let seconds = memory_bytes as f64 / (rate? * 1e6);
            seconds.is_finite().then_some(seconds)
        });
        let best = systems.iter().find(|s| s.backend == p.backend).and_then(|s| s.ranks[release_index(release)]);
        let value = release_value(&p.values, release);
        let flops = result.config.rmax_gflops.map(|gflops| gflops * 1e9).filter(|flops| *flops > 0.0);
        CoffeeCup {
            backend: p.backend.clone(),
            ranks: p.ranks,
            is_best: best == Some(p.ranks),
            memory_bytes,
            seconds,
            is_met: seconds[0].map(|seconds| seconds <= COFFEE_CUP_SECONDS),
            balance_bytes_per_flop: value.zip(flops).map(|(value, flops)| value * 1e6 / flops),
        }
    };
    own.map(cup).collect()
}

pub(super) fn release_index(release: Release) -> usize {
    match release {
        Release::R0_5 => 0,
        Release::R1 => 1,
        Release::R2_1 => 2,
    }
}

pub(super) fn release_value(values: &ReleaseValues, release: Release) -> Option<f64> {
    [values.release_0_5, values.release_1, values.release_2_1][release_index(release)]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::b_eff_io::pattern_type::PatternType;
    use crate::b_eff_io::values::derive;
    use crate::b_eff_io::values::fixture::{edit_pattern, full_run, run_of_release};
    use crate::frame::records::AccessMethod;

    /// Rate of a type from the raw records: all bytes of its patterns divided by all time, opening and closing included.
    fn type_rate(result: &RunResult, ranks: u64, access: AccessMethod, t: PatternType) -> f64 {
        let patterns =
            || result.patterns.iter().filter(move |p| p.ranks == ranks && p.access == access && p.pattern_type == t);
        let bytes: u64 = patterns().map(|p| p.moved_bytes).sum();
        let calls: f64 = patterns()
            .map(|p| {
                let i = &p.intervals;
                i.view_seconds + i.preallocate_seconds + i.transfer_seconds + i.decide_seconds + i.sync_seconds
            })
            .sum();
        let files = result.types.iter().filter(|f| f.ranks == ranks && f.access == access && f.pattern_type == t);
        bytes as f64 / (calls + files.map(|f| f.open_seconds + f.close_seconds).sum::<f64>())
    }

    /// Memory of the ranks divided by the average over the types, in which type 0 counts twice.
    fn expected_seconds(result: &RunResult, ranks: u64, access: AccessMethod) -> f64 {
        let [x0, x1, x2, x3, x4] = PatternType::ALL.map(|t| type_rate(result, ranks, access, t));
        let memory = (result.manifest.machine.memory_per_rank_bytes * ranks) as f64;
        memory / ((2.0 * x0 + x1 + x2 + x3 + x4) / 6.0)
    }

    #[test]
    fn the_times_follow_from_the_raw_records() {
        let mut result = full_run();
        // No two access methods and partitions alike.
        for (number, p) in result.patterns.iter_mut().enumerate() {
            p.intervals.transfer_seconds *= 1.0 + (number % 7) as f64 + 3.0 * p.access as usize as f64;
            p.intervals.sync_seconds += 0.25;
        }
        let cups = derive(&result).coffee_cups;
        assert_eq!(cups.iter().map(|c| c.ranks).collect::<Vec<_>>(), [2, 4]);
        for cup in &cups {
            assert_eq!(cup.memory_bytes, cup.ranks * result.manifest.machine.memory_per_rank_bytes);
            for (seconds, access) in cup.seconds.into_iter().zip(AccessMethod::ALL) {
                let expected = expected_seconds(&result, cup.ranks, access);
                assert!((seconds.unwrap() / expected - 1.0).abs() < 1e-9, "{seconds:?} {expected}");
            }
            assert_eq!(cup.is_met, Some(expected_seconds(&result, cup.ranks, AccessMethod::Write) <= 600.0));
        }
        assert_eq!(cups.iter().filter(|c| c.is_best).map(|c| c.ranks).collect::<Vec<_>>(), [4]);
    }

    /// The bound is that of the first write alone.
    #[test]
    fn ten_minutes_are_met_or_not() {
        let of = |memory_bytes: u64| {
            let mut result = full_run();
            result.manifest.machine.memory_per_rank_bytes = memory_bytes;
            for p in result.patterns.iter_mut().filter(|p| p.access != AccessMethod::Write) {
                p.intervals.transfer_seconds *= 100.0;
            }
            derive(&result).coffee_cups.pop().unwrap()
        };
        let one = of(1 << 30);
        let limit_bytes = ((1_u64 << 30) as f64 * 600.0 / one.seconds[0].unwrap()) as u64;
        assert_eq!((of(limit_bytes - (1 << 20)).is_met, of(limit_bytes + (1 << 20)).is_met), (Some(true), Some(false)));
        assert!(of(limit_bytes - (1 << 20)).seconds[2].unwrap() > 6000.0);
    }

    #[test]
    fn what_is_incomplete_is_unknown() {
        let mut result = full_run();
        edit_pattern(&mut result, 4, AccessMethod::Write, 20, |p| {
            p.ended = crate::b_eff_io::records::StopReason::Error
        });
        let cups = derive(&result).coffee_cups;
        assert!(cups[1].seconds[0].is_none() && cups[1].is_met.is_none() && cups[1].seconds[1].is_some(), "{cups:?}");
        assert!(cups[0].is_best && cups[0].is_met.is_some(), "the best of those with a value");
        result.patterns.clear();
        result.types.clear();
        assert!(derive(&result).coffee_cups.iter().all(|c| c.seconds == [None; 3] && !c.is_best));
    }

    #[test]
    fn the_balance_factor_is_the_value_of_the_release_by_rmax() {
        for release in [Release::R0_5, Release::R1, Release::R2_1] {
            let mut result = run_of_release(release);
            assert!(derive(&result).coffee_cups.iter().all(|c| c.balance_bytes_per_flop.is_none()));
            result.config.rmax_gflops = Some(20.0);
            let derived = derive(&result);
            for (cup, p) in derived.coffee_cups.iter().zip(&derived.partitions) {
                let value = match release {
                    Release::R0_5 => p.values.release_0_5,
                    Release::R1 => p.values.release_1,
                    Release::R2_1 => p.values.release_2_1,
                };
                let expected = value.unwrap() * 1e6 / 20e9;
                assert!((cup.balance_bytes_per_flop.unwrap() / expected - 1.0).abs() < 1e-12, "{release:?}");
            }
        }
    }
}
