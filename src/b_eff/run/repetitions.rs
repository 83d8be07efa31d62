//! Scheduling of further repetitions in the time that remains after the three of the definition. Decisions depend only on times
//! of the slowest rank, which are equal on all ranks, so that all ranks decide alike.
//!
//! A round repeats all patterns, those with the widest intervals first. If no such round fits any more, a round over the
//! patterns of the average follows; if that does not fit either, single patterns, also with the widest intervals first.

use beff_statistics::mean::{round_means, MeanEstimate};

use crate::b_eff::plan::PatternFamily;
use crate::b_eff::records::{LoopRecord, SizeRecord};
use crate::frame::config::RepetitionPolicy;

/// Margin for a visit that takes longer than the previous ones.
const DURATION_MARGIN: f64 = 1.1;

/// Measurements of a pattern so far.
#[derive(Clone, Debug)]
struct PatternHistory {
    index: usize,
    family: PatternFamily,
    /// S of each repetition that has all sizes.
    means: Vec<f64>,
    /// Time of its longest visit: some have fewer sizes.
    seconds: f64,
}

impl PatternHistory {
    /// Half-width of the interval as a share of the mean; infinite if unknown.
    fn half_width_share(&self) -> f64 {
        MeanEstimate::of(self.means.iter().copied()).and_then(|r| r.half_width_share()).unwrap_or(f64::INFINITY)
    }
}

#[derive(Debug)]
pub(super) struct RepetitionScheduler {
    repeat: RepetitionPolicy,
    until_share: Option<f64>,
    limit_seconds: f64,
    patterns: Vec<PatternHistory>,
    rounds_started: u64,
    /// Remaining patterns of the current round, the next one last.
    queue: Vec<usize>,
    is_single_patterns: bool,
}

impl RepetitionScheduler {
    pub(super) fn new(repeat: RepetitionPolicy, until_share: Option<f64>, limit_seconds: f64) -> Self {
        Self {
            repeat,
            until_share,
            limit_seconds,
            patterns: Vec::new(),
            rounds_started: 0,
            queue: Vec::new(),
            is_single_patterns: false,
        }
    }

    /// Adds a visit of the pattern with this index; `mean` is S of its repetition, if it has all sizes.
    pub(super) fn add_measurement(&mut self, index: usize, family: PatternFamily, mean: Option<f64>, seconds: f64) {
        let at = self.patterns.iter().position(|known| known.index == index).unwrap_or(self.patterns.len());
        if at == self.patterns.len() {
            self.patterns.push(PatternHistory { index, family, means: Vec::new(), seconds });
        }
        self.patterns[at].means.extend(mean);
        self.patterns[at].seconds = self.patterns[at].seconds.max(seconds);
    }

    /// Expected upper limit of the time of a visit.
    fn visit_seconds(&self, index: usize) -> f64 {
        self.patterns.iter().filter(|known| known.index == index).map(|known| DURATION_MARGIN * known.seconds).sum()
    }

    /// b_eff of each round over all patterns of the average.
    fn round_values(&self) -> Vec<f64> {
        let family = |family: PatternFamily| {
            self.patterns.iter().filter(|known| known.family == family).map(|known| known.means.as_slice()).collect()
        };
        round_means(&[family(PatternFamily::Ring), family(PatternFamily::Random)])
    }

    fn is_precise_enough(&self) -> bool {
        let Some(share) = self.until_share else { return false };
        MeanEstimate::of(self.round_values()).is_some_and(|found| found.is_precise_enough(share))
    }

    /// Index of the next pattern to measure after `elapsed_seconds`; None at the end of the repetitions.
    pub(super) fn next_pattern(&mut self, elapsed_seconds: f64) -> Option<usize> {
        let left_seconds = self.limit_seconds - elapsed_seconds;
        if self.queue.is_empty() && !self.is_single_patterns {
            if !self.repeat.allows_another(self.rounds_started) || self.is_precise_enough() {
                return None;
            }
            self.begin_round(left_seconds);
        }
        if let Some(index) = self.queue.pop() {
            if self.visit_seconds(index) <= left_seconds {
                return Some(index);
            }
            // The round was slower than expected.
            self.queue.clear();
            self.is_single_patterns = true;
        }
        // Single patterns are not part of a requested number of rounds.
        if !self.is_single_patterns || self.repeat != RepetitionPolicy::Auto {
            return None;
        }
        self.by_uncertainty(|known| DURATION_MARGIN * known.seconds <= left_seconds).pop()
    }

    fn begin_round(&mut self, left_seconds: f64) {
        let all = self.by_uncertainty(|_| true);
        let of_value = self.by_uncertainty(|known| known.family.in_average());
        let fits = |round: &Vec<usize>| {
            !round.is_empty() && round.iter().map(|index| self.visit_seconds(*index)).sum::<f64>() <= left_seconds
        };
        let round = [all, of_value].into_iter().find(fits);
        self.is_single_patterns = round.is_none();
        self.rounds_started += u64::from(round.is_some());
        self.queue = round.unwrap_or_default();
    }

    /// The selected patterns by ascending half-width, ties in reverse order of the plan.
    fn by_uncertainty(&self, which: impl Fn(&PatternHistory) -> bool) -> Vec<usize> {
        let mut found: Vec<&PatternHistory> = self.patterns.iter().filter(|known| which(known)).collect();
        found.sort_by(|a, b| a.half_width_share().total_cmp(&b.half_width_share()).then(b.index.cmp(&a.index)));
        found.into_iter().map(|known| known.index).collect()
    }
}

/// S of one repetition: the mean over the sizes of the best method of each. None if sizes are missing or one has no rate.
pub(super) fn repetition_mean(records: &[SizeRecord], messages: u64, sizes: usize) -> Option<f64> {
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

    /// Six rings, three random rings and a ping-pong after three repetitions; ring 4 has the widest interval.
    fn measured_patterns(
        repeat: RepetitionPolicy,
        until_share: Option<f64>,
        limit_seconds: f64,
    ) -> RepetitionScheduler {
        let mut scheduler = RepetitionScheduler::new(repeat, until_share, limit_seconds);
        let families =
            [PatternFamily::PingPong].into_iter().chain([PatternFamily::Ring; 6]).chain([PatternFamily::Random; 3]);
        for (index, family) in families.enumerate() {
            for repetition in 0..3 {
                let noise = if index == 4 { 0.5 } else { 0.01 } * f64::from(repetition);
                scheduler.add_measurement(index, family, Some(1e9 * (1.0 + noise)), 1.0);
            }
        }
        scheduler
    }

    /// Simulates the repetitions with visits of one second; returns the patterns in order.
    fn simulate(mut scheduler: RepetitionScheduler, mut elapsed: f64) -> Vec<usize> {
        let mut visited = Vec::new();
        while let Some(index) = scheduler.next_pattern(elapsed) {
            visited.push(index);
            elapsed += 1.0;
            assert!(elapsed <= scheduler.limit_seconds, "{elapsed} of {}", scheduler.limit_seconds);
            let family = scheduler.patterns.iter().find(|known| known.index == index).unwrap().family;
            scheduler.add_measurement(index, family, Some(1e9), 1.0);
        }
        visited
    }

    #[test]
    fn rounds_come_first_and_begin_with_the_widest_interval() {
        let visited = simulate(measured_patterns(RepetitionPolicy::Auto, None, 50.0), 25.0);
        assert_eq!(visited[0], 4);
        let count = |index: usize| visited.iter().filter(|of| **of == index).count();
        // 25 s: two rounds of all ten (11 s predicted each), then single patterns, mostly ring 4.
        assert!((0..10).all(|index| count(index) >= 2), "{visited:?}");
        assert_eq!(visited.len(), 24, "{visited:?}");
        assert!(count(4) > 3, "{visited:?}");
    }

    #[test]
    fn patterns_of_the_value_come_first_where_not_all_fit() {
        let visited = simulate(measured_patterns(RepetitionPolicy::Auto, None, 40.0), 30.0);
        assert_eq!(visited.len(), 9);
        assert!(!visited.contains(&0), "the ping-pong is not in b_eff: {visited:?}");
    }

    #[test]
    fn nothing_is_repeated_without_time_or_option() {
        assert!(simulate(measured_patterns(RepetitionPolicy::Auto, None, 40.0), 39.0).is_empty());
        assert!(simulate(measured_patterns(RepetitionPolicy::Off, None, 400.0), 30.0).is_empty());
        assert_eq!(simulate(measured_patterns(RepetitionPolicy::Times(2), None, 400.0), 30.0).len(), 20);
        assert!(
            simulate(measured_patterns(RepetitionPolicy::Times(2), None, 35.0), 30.0).is_empty(),
            "no rounds, and no single patterns"
        );
        assert!(simulate(RepetitionScheduler::new(RepetitionPolicy::Auto, None, 9.0), 1.0).is_empty());
    }

    #[test]
    fn a_narrow_interval_ends_the_repetitions_but_not_before_the_fifth_round() {
        // Three rounds with a spread of some percent, then two more.
        assert_eq!(simulate(measured_patterns(RepetitionPolicy::Auto, Some(0.5), 400.0), 30.0).len(), 20);
        assert!(simulate(measured_patterns(RepetitionPolicy::Auto, Some(0.001), 100.0), 30.0).len() > 60);
    }

    /// The decisions of the run use the same means as the derived values.
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
                repetition_mean(&sizes, record.messages, 21).unwrap()
            };
            let expected = MeanEstimate::of((0..3).map(of)).unwrap();
            let found = curve.repeated.unwrap();
            assert!((found.mean_bytes_per_second / expected.mean - 1.0).abs() < 1e-9, "{}", curve.pattern);
            assert_eq!(found.repetitions, 3);
            assert!((found.half_width_share.unwrap() - expected.half_width_share().unwrap()).abs() < 1e-9);
            assert_eq!(repetition_mean(&record.sizes[1..], record.messages, 21), None);
        }
    }
}
