//! Effort: the part of the definition that fits into the time (paper section 4: the last sizes must not blow the total).
//!
//! The definition is 21 sizes x 3 methods x 3 repetitions for every pattern, loops of 2.5 to 5 ms. The effort is reduced in
//! this order: loops down to 2.5 ms; the best method alone for the largest sizes, as the published program does (which
//! omits the repetitions together with the methods); patterns outside the average; shorter loops; the best method alone for
//! all sizes; random rings; the repetitions last, because the best of three keeps disturbances out of the value. From the
//! shorter loops on, the result is no longer that of the definition and is marked. Quick mode is never the definition: it
//! omits the patterns outside the average after shortening the loops, so that a preliminary result covers all patterns.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::random::RANDOM_RINGS;
use super::sizes::SIZE_COUNT;
use super::PatternFamily;

/// Maximum number of iterations of a loop; also the number at the smallest size.
pub const MAX_ITERATIONS: u64 = 300;
/// Number of methods.
pub const METHOD_COUNT: usize = 3;
/// Number of repetitions of the definition.
pub const REPETITIONS: u64 = 3;
/// Index of the first size above 4096 bytes: from it on, sizes may be measured by one loop.
pub const MIN_SINGLE_METHOD_INDEX: u64 = 13;
/// Shortest loop of the definition in seconds.
pub const MIN_LOOP_SECONDS: f64 = 2.5e-3;
/// Target time of a loop in seconds, in the middle of the range of the definition.
pub const TARGET_LOOP_SECONDS: f64 = 3.75e-3;

/// The part of the definition that is measured; the same for all patterns unless the time runs out.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MeasurementEffort {
    /// Target time of a loop; 2.5 to 5 ms by the definition.
    pub loop_seconds: f64,
    /// Sizes from this index on are measured by the best method alone. 21: none.
    pub best_method_from: u64,
    /// Sizes from this index on are measured in one loop of each method, without repetitions. 21: none.
    pub unrepeated_from: u64,
    /// Random rings that are measured, of 30.
    pub random_rings: u64,
    /// Whether patterns outside the average are measured.
    pub extras: bool,
}

/// Times of the pilot measurement on one ring of all ranks: those of the slowest rank, equal on all ranks.
#[derive(Clone, Debug, PartialEq)]
pub struct PilotTimes {
    /// Seconds per iteration by size and method.
    pub iteration_seconds: [[f64; METHOD_COUNT]; SIZE_COUNT],
    /// Messages of a rank in an iteration.
    pub steps: u64,
    /// Overhead of each loop in seconds: barrier and reduction of the times.
    pub loop_overhead_seconds: f64,
    /// Seconds to compare one byte.
    pub verify_seconds_per_byte: f64,
    /// Seconds to wipe one received byte; 0 if nothing is wiped.
    pub wipe_seconds_per_byte: f64,
    /// Message sizes.
    pub sizes_bytes: Vec<u64>,
}

/// Remaining work of one pattern in one repetition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RemainingWork {
    /// Family; random rings are counted in order.
    pub family: PatternFamily,
    /// Index among the random rings.
    pub random: u64,
    /// Largest number of steps of a rank.
    pub steps: u64,
    /// Repetition, from 0.
    pub repetition: u64,
    /// Index of the first unmeasured size.
    pub from_size: usize,
}

impl RemainingWork {
    /// True if the effort includes the pattern.
    #[must_use]
    pub fn is_included(&self, effort: &MeasurementEffort) -> bool {
        let has_sizes = self.repetition < repetitions_at(effort, 0);
        has_sizes
            && match self.family {
                PatternFamily::Ring | PatternFamily::PingPong => true,
                PatternFamily::Random => self.random < effort.random_rings,
                PatternFamily::WorstCycle | PatternFamily::Bisection | PatternFamily::Cartesian => effort.extras,
            }
    }
}

/// Iterations with the smallest message: those of the definition, or fewer if the loops are shorter than defined.
#[must_use]
pub fn smallest_message_iterations(loop_seconds: f64, iteration_seconds: f64) -> u64 {
    if loop_seconds >= MIN_LOOP_SECONDS {
        MAX_ITERATIONS
    } else {
        iterations(loop_seconds, iteration_seconds)
    }
}

/// Iterations of a loop of `loop_seconds`, from the seconds of one iteration.
#[must_use]
pub fn iterations(loop_seconds: f64, iteration_seconds: f64) -> u64 {
    // A quotient of positive numbers; the cast saturates.
    ((loop_seconds / iteration_seconds.max(1e-12)) as u64).clamp(1, MAX_ITERATIONS)
}

impl PilotTimes {
    /// Estimated seconds of the remaining work of a pattern in this repetition.
    #[must_use]
    pub fn pattern_seconds(&self, pattern: &RemainingWork, effort: &MeasurementEffort) -> f64 {
        // A started pattern is always finished.
        if pattern.from_size == 0 && !pattern.is_included(effort) {
            return 0.0;
        }
        (pattern.from_size..SIZE_COUNT).map(|size| self.size_seconds(pattern, effort, size)).sum()
    }

    /// Estimated seconds of one size of a pattern in this repetition.
    #[must_use]
    pub fn size_seconds(&self, pattern: &RemainingWork, effort: &MeasurementEffort, size: usize) -> f64 {
        let scale = pattern.steps as f64 / self.steps.max(1) as f64;
        // A round trip takes about as long as two messages of the slowest pair.
        let ping_pong = pattern.family == PatternFamily::PingPong;
        let ways: &[usize] = if ping_pong { &[0] } else { &[0, 1, 2] };
        let of = |way: usize| self.iteration_seconds[size][way] * if ping_pong { 2.0 } else { scale.max(0.1) };
        if pattern.repetition >= repetitions_at(effort, size) {
            return 0.0;
        }
        let bytes = self.sizes_bytes.get(size).copied().unwrap_or(0) as f64 * pattern.steps as f64;
        let one = |way: usize| {
            let seconds = of(way);
            let count = if size == 0 { smallest_message_iterations } else { iterations };
            let count = count(effort.loop_seconds, seconds) as f64;
            let beside = bytes * self.verify_seconds_per_byte + count * bytes * self.wipe_seconds_per_byte;
            count * seconds + self.loop_overhead_seconds + beside
        };
        let times = ways.iter().map(|way| one(*way));
        if size as u64 >= effort.best_method_from {
            times.fold(f64::INFINITY, f64::min)
        } else {
            times.sum()
        }
    }
}

/// Number of loops of each method with this size.
#[must_use]
pub fn repetitions_at(effort: &MeasurementEffort, size: usize) -> u64 {
    if size as u64 >= effort.unrepeated_from {
        1
    } else {
        REPETITIONS
    }
}

/// All efforts from the whole definition to the least, in the order of trial.
fn effort_levels(quick: bool) -> Vec<MeasurementEffort> {
    let none = SIZE_COUNT as u64;
    let whole = MeasurementEffort {
        loop_seconds: TARGET_LOOP_SECONDS,
        best_method_from: none,
        unrepeated_from: none,
        random_rings: RANDOM_RINGS,
        extras: true,
    };
    let shortest = MeasurementEffort { loop_seconds: MIN_LOOP_SECONDS, ..whole };
    let mut all = vec![whole, shortest];
    all.extend(
        [19, 17, 15, MIN_SINGLE_METHOD_INDEX]
            .map(|single_from| MeasurementEffort { best_method_from: single_from, ..shortest }),
    );
    let last = |all: &[MeasurementEffort]| all[all.len() - 1];
    if !quick {
        all.push(MeasurementEffort { extras: false, ..last(&all) });
    }
    all.extend([1e-3, 4e-4, 2e-4].map(|loop_seconds| MeasurementEffort { loop_seconds, ..last(&all) }));
    all.push(MeasurementEffort { best_method_from: 0, ..last(&all) });
    if quick {
        all.push(MeasurementEffort { extras: false, ..last(&all) });
    }
    all.push(MeasurementEffort { random_rings: 10, ..last(&all) });
    all.extend(
        [MIN_SINGLE_METHOD_INDEX, 0].map(|once_from| MeasurementEffort { unrepeated_from: once_from, ..last(&all) }),
    );
    all.extend([3, 1].map(|random_rings| MeasurementEffort { random_rings, loop_seconds: 1e-4, ..last(&all) }));
    all
}

/// Upper bound of an effort.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum EffortBound {
    /// The whole definition.
    None,
    /// At most this effort.
    AtMost(MeasurementEffort),
    /// At most one step above this effort.
    OneMoreThan(MeasurementEffort),
}

/// Chooses the largest effort within `bound` that fits into `left_seconds`, or the least if none fits, with its
/// estimated seconds. `slowness` is the ratio of elapsed to predicted time so far.
#[must_use]
pub fn choose_effort(
    pilot: &PilotTimes,
    remaining: &[RemainingWork],
    left_seconds: f64,
    slowness: f64,
    (bound, quick): (EffortBound, bool),
) -> (MeasurementEffort, f64) {
    let ladder = effort_levels(quick);
    let place = |effort: MeasurementEffort| ladder.iter().position(|e| *e == effort).unwrap_or(0);
    let begin = match bound {
        EffortBound::None => 0,
        EffortBound::AtMost(current) => place(current),
        EffortBound::OneMoreThan(current) => place(current).saturating_sub(1),
    };
    let seconds =
        |effort: &MeasurementEffort| remaining.iter().map(|r| pilot.pattern_seconds(r, effort)).sum::<f64>() * slowness;
    let fits = ladder[begin..].iter().find(|effort| seconds(effort) <= left_seconds);
    let effort = *fits.unwrap_or(&ladder[ladder.len() - 1]);
    (effort, seconds(&effort))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Latency 1 us, 1e9 bytes/s.
    fn pilot(latency_seconds: f64) -> PilotTimes {
        let mut sizes_bytes: Vec<u64> = (0..13).map(|k| 1 << k).collect();
        sizes_bytes.extend((1..=8).map(|k| 4096_u64 << (2 * k)));
        let mut iteration_seconds = [[0.0; METHOD_COUNT]; SIZE_COUNT];
        for (size, bytes) in sizes_bytes.iter().enumerate() {
            iteration_seconds[size] = [1.0, 2.0, 1.5].map(|f| f * (latency_seconds + *bytes as f64 * 1e-9));
        }
        PilotTimes {
            iteration_seconds,
            steps: 2,
            loop_overhead_seconds: 1e-5,
            verify_seconds_per_byte: 2e-10,
            wipe_seconds_per_byte: 1e-10,
            sizes_bytes,
        }
    }

    fn all() -> Vec<RemainingWork> {
        let mut all = Vec::new();
        for repetition in 0..REPETITIONS {
            let one = |family, random| RemainingWork { family, random, steps: 2, repetition, from_size: 0 };
            all.push(one(PatternFamily::PingPong, 0));
            all.extend((0..6).map(|_| one(PatternFamily::Ring, 0)));
            all.extend((0..30).map(|n| one(PatternFamily::Random, n)));
            all.extend((0..10).map(|_| one(PatternFamily::Cartesian, 0)));
        }
        all
    }

    #[test]
    fn plenty_of_time_is_the_definition() {
        let (effort, seconds) = choose_effort(&pilot(1e-6), &all(), 3600.0, 1.0, (EffortBound::None, false));
        assert_eq!((effort.loop_seconds, effort.best_method_from), (TARGET_LOOP_SECONDS, 21));
        assert_eq!((effort.random_rings, effort.extras), (30, true));
        assert!(seconds > 10.0 && seconds < 3600.0, "{seconds}");
    }

    #[test]
    fn less_time_is_less_effort_and_always_fits_until_nothing_is_left_to_cut() {
        let mut last = f64::INFINITY;
        for left in [3600.0, 400.0, 200.0, 100.0, 50.0, 20.0, 10.0, 5.0, 2.0] {
            let (effort, seconds) = choose_effort(&pilot(1e-6), &all(), left, 1.0, (EffortBound::None, false));
            assert!(seconds <= last, "{left}: {effort:?}");
            let least = effort_levels(false)[effort_levels(false).len() - 1];
            assert!(seconds <= left || effort == least, "{left}: {seconds} {effort:?}");
            last = seconds;
        }
    }

    #[test]
    fn largest_sizes_are_reduced_before_loops_become_shorter_than_the_definition() {
        let whole = choose_effort(&pilot(1e-6), &all(), f64::INFINITY, 1.0, (EffortBound::None, false)).1;
        let (effort, _) = choose_effort(&pilot(1e-6), &all(), whole * 0.4, 1.0, (EffortBound::None, false));
        assert!(effort.best_method_from < 21 && effort.loop_seconds >= MIN_LOOP_SECONDS, "{effort:?}");
    }

    #[test]
    fn effort_grows_in_small_steps_if_at_all() {
        let place = |effort: MeasurementEffort| effort_levels(false).iter().position(|e| *e == effort).unwrap();
        let small = choose_effort(&pilot(1e-6), &all(), 5.0, 1.0, (EffortBound::None, false)).0;
        assert_eq!(choose_effort(&pilot(1e-6), &all(), 3600.0, 1.0, (EffortBound::AtMost(small), false)).0, small);
        let more = choose_effort(&pilot(1e-6), &all(), 3600.0, 1.0, (EffortBound::OneMoreThan(small), false)).0;
        assert_eq!(place(more) + 1, place(small));
        let slow = choose_effort(&pilot(1e-6), &all(), 100.0, 4.0, (EffortBound::None, false));
        assert!(slow.1 <= 100.0);
    }

    #[test]
    fn sizes_without_repetitions_take_no_time_in_later_repetitions() {
        let effort = MeasurementEffort { unrepeated_from: 13, ..effort_levels(false)[0] };
        let of =
            |repetition| RemainingWork { family: PatternFamily::Ring, random: 0, steps: 2, repetition, from_size: 0 };
        let pilot = pilot(1e-6);
        assert!(pilot.size_seconds(&of(0), &effort, 13) > 0.0 && pilot.size_seconds(&of(2), &effort, 12) > 0.0);
        assert_eq!(pilot.size_seconds(&of(1), &effort, 13), 0.0);
        let once = MeasurementEffort { unrepeated_from: 0, ..effort };
        assert!(of(0).is_included(&once) && !of(1).is_included(&once));
    }

    #[test]
    fn iterations_are_at_least_one_and_at_most_those_of_the_smallest_size() {
        assert_eq!(iterations(TARGET_LOOP_SECONDS, 0.0), 300);
        assert_eq!(iterations(TARGET_LOOP_SECONDS, 1e-3), 3);
        assert_eq!(iterations(TARGET_LOOP_SECONDS, 1.0), 1);
    }
}
