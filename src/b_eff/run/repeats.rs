//! What is measured again with the time that is left behind the three repetitions of the definition. All that decides is equal on
//! all ranks: times of the slowest rank, so that all come to the same.
//!
//! Rounds over all patterns, in each of them those first that know least about themselves. Where no such round fits any more, one
//! over the patterns that b_eff is made of; where that does not fit either, single patterns, again those first that know least.

use beff_statistics::repeated::{rounds, Repeated};

use crate::b_eff::plan::Family;
use crate::b_eff::records::{LoopRecord, SizeRecord};
use crate::frame::config::Repeat;

/// The next visit of a pattern may take longer than its last one did.
const LONGER: f64 = 1.1;

/// A pattern as far as it was measured.
#[derive(Clone, Debug)]
struct Known {
    index: usize,
    family: Family,
    /// S of each repetition that has all sizes.
    means: Vec<f64>,
    /// What its longest visit took: some have fewer sizes.
    seconds: f64,
}

impl Known {
    /// Infinite where nothing is known.
    fn reach(&self) -> f64 {
        Repeated::of(self.means.iter().copied()).and_then(|r| r.reach()).unwrap_or(f64::INFINITY)
    }
}

/// The repeats of a run.
#[derive(Debug)]
pub(super) struct Repeats {
    repeat: Repeat,
    until_share: Option<f64>,
    limit_seconds: f64,
    known: Vec<Known>,
    /// Rounds that were begun.
    begun: u64,
    /// What is left of the current one, the next one last.
    queue: Vec<usize>,
    /// No whole round fits any more.
    singles: bool,
}

impl Repeats {
    /// Before the first pattern.
    pub(super) fn new(repeat: Repeat, until_share: Option<f64>, limit_seconds: f64) -> Self {
        Self { repeat, until_share, limit_seconds, known: Vec::new(), begun: 0, queue: Vec::new(), singles: false }
    }

    /// A visit of the pattern with this index is over; `mean` is S of its repetition, if it has all sizes.
    pub(super) fn take_in(&mut self, index: usize, family: Family, mean: Option<f64>, seconds: f64) {
        let at = self.known.iter().position(|known| known.index == index).unwrap_or(self.known.len());
        if at == self.known.len() {
            self.known.push(Known { index, family, means: Vec::new(), seconds });
        }
        self.known[at].means.extend(mean);
        self.known[at].seconds = self.known[at].seconds.max(seconds);
    }

    /// What a visit may take.
    fn seconds_of(&self, index: usize) -> f64 {
        self.known.iter().filter(|known| known.index == index).map(|known| LONGER * known.seconds).sum()
    }

    /// b_eff of each round over its patterns.
    fn rounds(&self) -> Vec<f64> {
        let family = |family: Family| {
            self.known.iter().filter(|known| known.family == family).map(|known| known.means.as_slice()).collect()
        };
        rounds(&[family(Family::Ring), family(Family::Random)])
    }

    fn is_narrow(&self) -> bool {
        let Some(share) = self.until_share else { return false };
        Repeated::of(self.rounds()).is_some_and(|found| found.is_known_within(share))
    }

    /// The pattern to measure next, by its index, after `elapsed_seconds`; None: the repeats are over.
    pub(super) fn next(&mut self, elapsed_seconds: f64) -> Option<usize> {
        let left_seconds = self.limit_seconds - elapsed_seconds;
        if self.queue.is_empty() && !self.singles {
            if !self.repeat.goes_on_after(self.begun) || self.is_narrow() {
                return None;
            }
            self.begin_round(left_seconds);
        }
        if let Some(index) = self.queue.pop() {
            if self.seconds_of(index) <= left_seconds {
                return Some(index);
            }
            // It went slower than before.
            self.queue.clear();
            self.singles = true;
        }
        // One at a time belongs to no round that was asked for.
        if !self.singles || self.repeat != Repeat::Auto {
            return None;
        }
        self.by_need(|known| LONGER * known.seconds <= left_seconds).pop()
    }

    fn begin_round(&mut self, left_seconds: f64) {
        let all = self.by_need(|_| true);
        let of_value = self.by_need(|known| known.family.in_average());
        let fits = |round: &Vec<usize>| {
            !round.is_empty() && round.iter().map(|index| self.seconds_of(*index)).sum::<f64>() <= left_seconds
        };
        let round = [all, of_value].into_iter().find(fits);
        self.singles = round.is_none();
        self.begun += u64::from(round.is_some());
        self.queue = round.unwrap_or_default();
    }

    /// Those of the patterns, what knows least last; of equals the first of the plan last.
    fn by_need(&self, which: impl Fn(&Known) -> bool) -> Vec<usize> {
        let mut found: Vec<&Known> = self.known.iter().filter(|known| which(known)).collect();
        found.sort_by(|a, b| a.reach().total_cmp(&b.reach()).then(b.index.cmp(&a.index)));
        found.into_iter().map(|known| known.index).collect()
    }
}

/// S of one repetition: the mean over the sizes of the best method of each. None: not `sizes` of them, or one without a rate.
pub(super) fn mean_of(records: &[SizeRecord], messages: u64, sizes: usize) -> Option<f64> {
    let rate = |size: &SizeRecord, one: &LoopRecord| {
        size.message_bytes as f64 * messages as f64 * one.iterations as f64 / one.seconds
    };
    let best = |size: &SizeRecord| {
        let best = size.loops.iter().map(|one| rate(size, one)).fold(0.0, f64::max);
        (best.is_finite() && best > 0.0).then_some(best)
    };
    if records.len() != sizes || sizes == 0 {
        return None;
    }
    Some(records.iter().map(best).sum::<Option<f64>>()? / sizes as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::b_eff::values::{derive, fixture};

    /// Six rings, three random rings and a ping-pong after three repetitions; ring 4 knows least about itself.
    fn measured(repeat: Repeat, until_share: Option<f64>, limit_seconds: f64) -> Repeats {
        let mut repeats = Repeats::new(repeat, until_share, limit_seconds);
        let families = [Family::PingPong].into_iter().chain([Family::Ring; 6]).chain([Family::Random; 3]);
        for (index, family) in families.enumerate() {
            for repetition in 0..3 {
                let noise = if index == 4 { 0.5 } else { 0.01 } * f64::from(repetition);
                repeats.take_in(index, family, Some(1e9 * (1.0 + noise)), 1.0);
            }
        }
        repeats
    }

    /// Plays the repeats on a machine where a visit takes one second; the patterns in order.
    fn play(mut repeats: Repeats, mut elapsed: f64) -> Vec<usize> {
        let mut visited = Vec::new();
        while let Some(index) = repeats.next(elapsed) {
            visited.push(index);
            elapsed += 1.0;
            assert!(elapsed <= repeats.limit_seconds, "{elapsed} of {}", repeats.limit_seconds);
            let family = repeats.known.iter().find(|known| known.index == index).unwrap().family;
            repeats.take_in(index, family, Some(1e9), 1.0);
        }
        visited
    }

    #[test]
    fn rounds_come_first_and_begin_with_what_is_least_known() {
        let visited = play(measured(Repeat::Auto, None, 50.0), 25.0);
        assert_eq!(visited[0], 4);
        let count = |index: usize| visited.iter().filter(|of| **of == index).count();
        // 25 s: two rounds of all ten (11 s foreseen each), then single ones, ring 4 above all.
        assert!((0..10).all(|index| count(index) >= 2), "{visited:?}");
        assert_eq!(visited.len(), 24, "{visited:?}");
        assert!(count(4) > 3, "{visited:?}");
    }

    #[test]
    fn where_not_all_fits_the_value_comes_first() {
        let visited = play(measured(Repeat::Auto, None, 40.0), 30.0);
        assert_eq!(visited.len(), 9);
        assert!(!visited.contains(&0), "the ping-pong is not in b_eff: {visited:?}");
    }

    #[test]
    fn nothing_is_measured_again_without_time_or_wish() {
        assert!(play(measured(Repeat::Auto, None, 40.0), 39.0).is_empty());
        assert!(play(measured(Repeat::Off, None, 400.0), 30.0).is_empty());
        assert_eq!(play(measured(Repeat::Times(2), None, 400.0), 30.0).len(), 20);
        assert!(play(measured(Repeat::Times(2), None, 35.0), 30.0).is_empty(), "no rounds, and no single ones");
        assert!(play(Repeats::new(Repeat::Auto, None, 9.0), 1.0).is_empty());
    }

    #[test]
    fn a_narrow_interval_ends_the_repeats_and_not_before_the_fifth_round() {
        // Three rounds scatter by some percent; two more make five.
        assert_eq!(play(measured(Repeat::Auto, Some(0.5), 400.0), 30.0).len(), 20);
        assert!(play(measured(Repeat::Auto, Some(0.001), 100.0), 30.0).len() > 60);
    }

    /// What the run decides by is what the values show.
    #[test]
    fn the_mean_of_a_repetition_is_that_of_the_values() {
        let result = fixture::run(1, &|_, _, bytes, method, repetition| {
            1e6 * bytes as f64 * (1.0 + f64::from(repetition)) / (1.0 + method as u8 as f64)
        });
        let derived = derive(&result);
        for (record, curve) in result.patterns.iter().zip(&derived.curves) {
            let of = |repetition: u32| {
                let sizes: Vec<SizeRecord> = record
                    .sizes
                    .iter()
                    .map(|size| SizeRecord {
                        loops: size.loops.iter().filter(|l| l.repetition == repetition).copied().collect(),
                        ..size.clone()
                    })
                    .collect();
                mean_of(&sizes, record.messages, 21).unwrap()
            };
            let expected = Repeated::of((0..3).map(of)).unwrap();
            let found = curve.repeated.unwrap();
            assert!((found.mean_bytes_per_second / expected.mean - 1.0).abs() < 1e-9, "{}", curve.pattern);
            assert_eq!(found.repetitions, 3);
            assert!((found.reach_share.unwrap() - expected.reach().unwrap()).abs() < 1e-9);
            assert_eq!(mean_of(&record.sizes[1..], record.messages, 21), None);
        }
    }
}
