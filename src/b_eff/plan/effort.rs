//! How much of the definition fits into the time (paper section 4: the last sizes must not blow the total).
//!
//! The definition is 21 sizes x 3 methods x 3 repetitions for every pattern, loops of 2.5 to 5 ms. What does not fit is cut
//! in this order: loops down to 2.5 ms; the best method alone for the largest sizes, as the published program does (which
//! gives up the repetitions with the methods); patterns outside the average; shorter loops; the best method alone for all
//! sizes; random rings; at last the repetitions, because the best of three is what keeps a disturbance out of the value.
//! From the shorter loops on it is no longer the definition and is marked. The quick mode is never the definition: it
//! cuts the patterns outside the average after the loops, so that a first look shows all there is.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::random::RANDOM_RINGS;
use super::sizes::SIZES;
use super::Family;

/// Iterations of a loop at most, and at the smallest size.
pub const MOST_ITERATIONS: u64 = 300;
/// Methods.
pub const METHODS: usize = 3;
/// Repetitions.
pub const REPETITIONS: u64 = 3;
/// Sizes from this index on may be measured by one loop: they are those above 4096 bytes.
pub const SINGLE_AT_LEAST: u64 = 13;
/// Shortest loop of the definition in seconds.
pub const SHORTEST_LOOP_SECONDS: f64 = 2.5e-3;
/// What a loop is to take in seconds, in the middle of what the definition allows.
pub const LOOP_SECONDS: f64 = 3.75e-3;

/// How much of the definition the time allows; the same for all patterns unless the time runs out.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Effort {
    /// Time one loop is to take; the definition says 2.5 to 5 ms.
    pub loop_seconds: f64,
    /// Sizes from this index on are measured by the best method alone. 21: none.
    pub single_from: u64,
    /// Sizes from this index on are measured in one loop of each method, without repetitions. 21: none.
    pub once_from: u64,
    /// Random rings that are measured, of 30.
    pub random_rings: u64,
    /// Whether patterns outside the average are measured.
    pub extras: bool,
}

/// Times of a pilot on one ring of all ranks, slowest rank, equal on all ranks.
#[derive(Clone, Debug, PartialEq)]
pub struct Pilot {
    /// Seconds of an iteration by size and method.
    pub iteration_seconds: [[f64; METHODS]; SIZES],
    /// Messages a rank sends in it.
    pub steps: u64,
    /// Seconds beside the iterations of each loop: barrier, common maximum.
    pub loop_seconds: f64,
    /// Seconds to compare one byte.
    pub verify_seconds_per_byte: f64,
    /// Seconds to wipe one byte after it was received; 0: nothing is wiped.
    pub wipe_seconds_per_byte: f64,
    /// Message sizes.
    pub sizes_bytes: Vec<u64>,
}

/// What is left to do of one pattern in one repetition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Remaining {
    /// What it is one of; random rings are counted in order.
    pub family: Family,
    /// Number among the random rings, from 0.
    pub random: u64,
    /// Steps of the rank that has most.
    pub steps: u64,
    /// The repetition, from 0.
    pub repetition: u64,
    /// First size that is not measured yet.
    pub from_size: usize,
}

impl Remaining {
    /// Whether the pattern is measured at all with this effort.
    #[must_use]
    pub fn wanted(&self, effort: &Effort) -> bool {
        let has_sizes = self.repetition < repetitions(effort, 0);
        has_sizes
            && match self.family {
                Family::Ring | Family::PingPong => true,
                Family::Random => self.random < effort.random_rings,
                Family::WorstCycle | Family::Bisection | Family::Cartesian => effort.extras,
            }
    }
}

/// Iterations with the smallest message: those of the definition, or fewer if the effort is not its own.
#[must_use]
pub fn first_iterations(loop_seconds: f64, iteration_seconds: f64) -> u64 {
    if loop_seconds >= SHORTEST_LOOP_SECONDS {
        MOST_ITERATIONS
    } else {
        iterations(loop_seconds, iteration_seconds)
    }
}

/// Iterations of a loop that is to take `loop_seconds`, from the seconds of one.
#[must_use]
pub fn iterations(loop_seconds: f64, iteration_seconds: f64) -> u64 {
    // A quotient of positive numbers; the cast saturates.
    ((loop_seconds / iteration_seconds.max(1e-12)) as u64).clamp(1, MOST_ITERATIONS)
}

impl Pilot {
    /// Seconds of what remains of a pattern in this repetition.
    #[must_use]
    pub fn seconds(&self, pattern: &Remaining, effort: &Effort) -> f64 {
        // One that was begun is finished.
        if pattern.from_size == 0 && !pattern.wanted(effort) {
            return 0.0;
        }
        (pattern.from_size..SIZES).map(|size| self.size_seconds(pattern, effort, size)).sum()
    }

    /// Seconds of one size of a pattern in this repetition.
    #[must_use]
    pub fn size_seconds(&self, pattern: &Remaining, effort: &Effort, size: usize) -> f64 {
        let scale = pattern.steps as f64 / self.steps.max(1) as f64;
        // There and back one after the other is about as long as two messages of the slowest way.
        let ping_pong = pattern.family == Family::PingPong;
        let ways: &[usize] = if ping_pong { &[0] } else { &[0, 1, 2] };
        let of = |way: usize| self.iteration_seconds[size][way] * if ping_pong { 2.0 } else { scale.max(0.1) };
        if pattern.repetition >= repetitions(effort, size) {
            return 0.0;
        }
        let bytes = self.sizes_bytes.get(size).copied().unwrap_or(0) as f64 * pattern.steps as f64;
        let one = |way: usize| {
            let seconds = of(way);
            let count = if size == 0 { first_iterations } else { iterations };
            let count = count(effort.loop_seconds, seconds) as f64;
            let beside = bytes * self.verify_seconds_per_byte + count * bytes * self.wipe_seconds_per_byte;
            count * seconds + self.loop_seconds + beside
        };
        let times = ways.iter().map(|way| one(*way));
        if size as u64 >= effort.single_from {
            times.fold(f64::INFINITY, f64::min)
        } else {
            times.sum()
        }
    }
}

/// Loops of each method with this size.
#[must_use]
pub fn repetitions(effort: &Effort, size: usize) -> u64 {
    if size as u64 >= effort.once_from {
        1
    } else {
        REPETITIONS
    }
}

/// All efforts from the whole definition to the least, in the order they are tried.
fn ladder(quick: bool) -> Vec<Effort> {
    let none = SIZES as u64;
    let whole = Effort {
        loop_seconds: LOOP_SECONDS,
        single_from: none,
        once_from: none,
        random_rings: RANDOM_RINGS,
        extras: true,
    };
    let shortest = Effort { loop_seconds: SHORTEST_LOOP_SECONDS, ..whole };
    let mut all = vec![whole, shortest];
    all.extend([19, 17, 15, SINGLE_AT_LEAST].map(|single_from| Effort { single_from, ..shortest }));
    let last = |all: &[Effort]| all[all.len() - 1];
    if !quick {
        all.push(Effort { extras: false, ..last(&all) });
    }
    all.extend([1e-3, 4e-4, 2e-4].map(|loop_seconds| Effort { loop_seconds, ..last(&all) }));
    all.push(Effort { single_from: 0, ..last(&all) });
    if quick {
        all.push(Effort { extras: false, ..last(&all) });
    }
    all.push(Effort { random_rings: 10, ..last(&all) });
    all.extend([SINGLE_AT_LEAST, 0].map(|once_from| Effort { once_from, ..last(&all) }));
    all.extend([3, 1].map(|random_rings| Effort { random_rings, loop_seconds: 1e-4, ..last(&all) }));
    all
}

/// How far an effort may go.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Bound {
    /// Up to the whole definition.
    None,
    /// No more than this one.
    AtMost(Effort),
    /// At most one step more than this one.
    OneMoreThan(Effort),
}

/// The most effort that fits into `left_seconds` within `bound`, and the seconds it will take. If nothing fits, the least. `slowness` is how much longer than predicted everything took so far.
#[must_use]
pub fn choose(
    pilot: &Pilot,
    remaining: &[Remaining],
    left_seconds: f64,
    slowness: f64,
    (bound, quick): (Bound, bool),
) -> (Effort, f64) {
    let ladder = ladder(quick);
    let place = |effort: Effort| ladder.iter().position(|e| *e == effort).unwrap_or(0);
    let begin = match bound {
        Bound::None => 0,
        Bound::AtMost(current) => place(current),
        Bound::OneMoreThan(current) => place(current).saturating_sub(1),
    };
    let seconds = |effort: &Effort| remaining.iter().map(|r| pilot.seconds(r, effort)).sum::<f64>() * slowness;
    let fits = ladder[begin..].iter().find(|effort| seconds(effort) <= left_seconds);
    let effort = *fits.unwrap_or(&ladder[ladder.len() - 1]);
    (effort, seconds(&effort))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Latency 1 us, 1e9 bytes/s.
    fn pilot(latency_seconds: f64) -> Pilot {
        let mut sizes_bytes: Vec<u64> = (0..13).map(|k| 1 << k).collect();
        sizes_bytes.extend((1..=8).map(|k| 4096_u64 << (2 * k)));
        let mut iteration_seconds = [[0.0; METHODS]; SIZES];
        for (size, bytes) in sizes_bytes.iter().enumerate() {
            iteration_seconds[size] = [1.0, 2.0, 1.5].map(|f| f * (latency_seconds + *bytes as f64 * 1e-9));
        }
        Pilot {
            iteration_seconds,
            steps: 2,
            loop_seconds: 1e-5,
            verify_seconds_per_byte: 2e-10,
            wipe_seconds_per_byte: 1e-10,
            sizes_bytes,
        }
    }

    fn all() -> Vec<Remaining> {
        let mut all = Vec::new();
        for repetition in 0..REPETITIONS {
            let one = |family, random| Remaining { family, random, steps: 2, repetition, from_size: 0 };
            all.push(one(Family::PingPong, 0));
            all.extend((0..6).map(|_| one(Family::Ring, 0)));
            all.extend((0..30).map(|n| one(Family::Random, n)));
            all.extend((0..10).map(|_| one(Family::Cartesian, 0)));
        }
        all
    }

    #[test]
    fn plenty_of_time_is_the_definition() {
        let (effort, seconds) = choose(&pilot(1e-6), &all(), 3600.0, 1.0, (Bound::None, false));
        assert_eq!((effort.loop_seconds, effort.single_from), (LOOP_SECONDS, 21));
        assert_eq!((effort.random_rings, effort.extras), (30, true));
        assert!(seconds > 10.0 && seconds < 3600.0, "{seconds}");
    }

    #[test]
    fn less_time_is_less_effort_and_always_fits_until_nothing_is_left_to_cut() {
        let mut last = f64::INFINITY;
        for left in [3600.0, 400.0, 200.0, 100.0, 50.0, 20.0, 10.0, 5.0, 2.0] {
            let (effort, seconds) = choose(&pilot(1e-6), &all(), left, 1.0, (Bound::None, false));
            assert!(seconds <= last, "{left}: {effort:?}");
            let least = ladder(false)[ladder(false).len() - 1];
            assert!(seconds <= left || effort == least, "{left}: {seconds} {effort:?}");
            last = seconds;
        }
    }

    #[test]
    fn the_largest_sizes_give_way_before_the_loops_become_shorter_than_the_definition() {
        let whole = choose(&pilot(1e-6), &all(), f64::INFINITY, 1.0, (Bound::None, false)).1;
        let (effort, _) = choose(&pilot(1e-6), &all(), whole * 0.4, 1.0, (Bound::None, false));
        assert!(effort.single_from < 21 && effort.loop_seconds >= SHORTEST_LOOP_SECONDS, "{effort:?}");
    }

    #[test]
    fn effort_grows_in_small_steps_if_at_all() {
        let place = |effort: Effort| ladder(false).iter().position(|e| *e == effort).unwrap();
        let small = choose(&pilot(1e-6), &all(), 5.0, 1.0, (Bound::None, false)).0;
        assert_eq!(choose(&pilot(1e-6), &all(), 3600.0, 1.0, (Bound::AtMost(small), false)).0, small);
        let more = choose(&pilot(1e-6), &all(), 3600.0, 1.0, (Bound::OneMoreThan(small), false)).0;
        assert_eq!(place(more) + 1, place(small));
        let slow = choose(&pilot(1e-6), &all(), 100.0, 4.0, (Bound::None, false));
        assert!(slow.1 <= 100.0);
    }

    #[test]
    fn what_is_not_repeated_takes_no_time_in_later_repetitions() {
        let effort = Effort { once_from: 13, ..ladder(false)[0] };
        let of = |repetition| Remaining { family: Family::Ring, random: 0, steps: 2, repetition, from_size: 0 };
        let pilot = pilot(1e-6);
        assert!(pilot.size_seconds(&of(0), &effort, 13) > 0.0 && pilot.size_seconds(&of(2), &effort, 12) > 0.0);
        assert_eq!(pilot.size_seconds(&of(1), &effort, 13), 0.0);
        let once = Effort { once_from: 0, ..effort };
        assert!(of(0).wanted(&once) && !of(1).wanted(&once));
    }

    #[test]
    fn iterations_are_at_least_one_and_at_most_those_of_the_smallest_size() {
        assert_eq!(iterations(LOOP_SECONDS, 0.0), 300);
        assert_eq!(iterations(LOOP_SECONDS, 1e-3), 3);
        assert_eq!(iterations(LOOP_SECONDS, 1.0), 1);
    }
}
