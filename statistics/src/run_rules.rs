//! Run rules: is the newest of a series of runs slower than those before?
//!
//! Rules for 1, 2 and 3 runs, as on a control chart (Western Electric, Statistical Quality Control Handbook, 1956): the run is slower if the
//! last k of them, the newest included, all lie below the median of the baseline by more than a multiple of the scatter from run to
//! run. One run finds large steps at once, three runs find small ones; a single bad run before an ordinary one is no step.
//!
//! The baseline of a rule are the runs before its k. Their scatter is the root of the mean square around the medians of up to
//! [`SCATTER_BLOCKS`] blocks of baseline length, without the largest tenth of the squares: a step or drift over months hardly widens it, nor
//! does a bad run. Critical multiples are simulated with normal logarithms and a fixed seed for the number of runs at hand, so that each rule
//! has an equal share of the error probability, whether there are 3 runs or 30.

use std::collections::BTreeMap;

use rand_pcg::rand_core::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;

/// Rules: for 1 up to this number of newest runs.
pub const MAX_RECENT: usize = 3;

/// Smallest baseline.
pub const MIN_BASELINE: usize = 3;

/// Blocks of baseline length that determine the scatter.
pub const SCATTER_BLOCKS: usize = 3;

/// Probability that any rule applies to a run that equals those before: less than 1 %, with a margin for bad nights and slow drift.
pub const ERROR_PROBABILITY: f64 = 0.0075;

const TRIMMED_SHARE: f64 = 0.1;

/// Simulated series below the quantile of a critical multiple: its probability is known to some 10 %.
const TAIL_SAMPLES: f64 = 100.0;
const MAX_SAMPLES: usize = 400_000;
const SEED: u64 = 0x0072_756e_5f72_756c;

/// Logarithms closer than this differ by rounding.
const LOG_TOLERANCE: f64 = 1e-9;

/// One rule applied to the newest runs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RuleOutcome {
    /// Number of newest runs.
    pub recent: usize,
    /// Runs of its baseline.
    pub baseline: usize,
    /// Median of the baseline.
    pub median: f64,
    /// Distance below the median that the rule allows.
    pub allowed: f64,
    /// True if all the newest runs are below it.
    pub applies: bool,
}

/// The rules for one error probability, with their critical multiples as far as computed.
#[derive(Clone, Debug)]
pub struct RunRules {
    baseline: usize,
    error_probability: f64,
    critical: BTreeMap<(usize, usize), f64>,
}

impl RunRules {
    /// Rules with a baseline of at most `baseline` runs, at least [`MIN_BASELINE`].
    #[must_use]
    pub fn new(baseline: usize, error_probability: f64) -> Self {
        Self { baseline: baseline.max(MIN_BASELINE), error_probability, critical: BTreeMap::new() }
    }

    /// Number of runs that the rules use at most, the newest included.
    #[must_use]
    pub fn most_runs(&self) -> usize {
        SCATTER_BLOCKS * self.baseline + MAX_RECENT
    }

    /// Applies each rule for which there is a baseline to logarithms of speeds in order of time, the newest last. The first is for the newest
    /// run alone; none with fewer than [`MIN_BASELINE`] runs before it.
    pub fn apply(&mut self, logs: &[f64]) -> Vec<RuleOutcome> {
        let of_rule = |recent: usize| {
            let past = logs.len().checked_sub(recent).filter(|past| *past >= MIN_BASELINE)?;
            let used = past.min(SCATTER_BLOCKS * self.baseline);
            let series = &logs[past - used..];
            let (distance, scatter) = distance_and_scatter(series, recent, self.baseline);
            let critical = self.critical(used, recent);
            let own = &series[used - used.min(self.baseline)..used];
            let allowed = critical * scatter;
            let applies = distance > allowed + LOG_TOLERANCE;
            Some(RuleOutcome { recent, baseline: own.len(), median: median(own), allowed, applies })
        };
        (1..=MAX_RECENT).filter_map(of_rule).collect()
    }

    /// Multiple of the scatter that `recent` runs, equal to the `past` ones, exceed with the probability of a rule.
    fn critical(&mut self, past: usize, recent: usize) -> f64 {
        let (baseline, probability) = (self.baseline, self.error_probability / MAX_RECENT as f64);
        *self.critical.entry((past, recent)).or_insert_with(|| {
            let samples = ((TAIL_SAMPLES / probability) as usize).clamp(1000, MAX_SAMPLES);
            let mut random = Pcg64Mcg::seed_from_u64(SEED);
            let mut series = vec![0.0; past + recent];
            let simulated = |_| {
                series.iter_mut().for_each(|value| *value = normal(&mut random));
                let (distance, scatter) = distance_and_scatter(&series, recent, baseline);
                distance / scatter
            };
            let mut multiples: Vec<f64> = (0..samples).map(simulated).collect();
            multiples.sort_by(f64::total_cmp);
            let at = ((1.0 - probability) * samples as f64) as usize;
            multiples[at.min(samples - 1)].max(0.0)
        })
    }
}

/// Distance of the fastest of the `recent` runs below the median of the baseline, and the scatter.
fn distance_and_scatter(series: &[f64], recent: usize, baseline: usize) -> (f64, f64) {
    let (past, newest) = series.split_at(series.len() - recent);
    let fastest = newest.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let mut squares = Vec::with_capacity(past.len());
    let mut level = 0.0;
    let mut end = past.len();
    while end > 0 {
        let block = &past[end.saturating_sub(baseline)..end];
        if end == past.len() || block.len() >= MIN_BASELINE {
            let middle = median(block);
            if end == past.len() {
                level = middle;
            }
            squares.extend(block.iter().map(|log| (log - middle).powi(2)));
        }
        end = end.saturating_sub(baseline);
    }
    squares.sort_by(f64::total_cmp);
    let kept = squares.len() - (squares.len() as f64 * TRIMMED_SHARE) as usize;
    let scatter = (squares[..kept].iter().sum::<f64>() / kept as f64).sqrt();
    (level - fastest, scatter)
}

/// Median; of an even number of values the mean of the middle two.
#[must_use]
pub fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let number = sorted.len();
    match number {
        0 => f64::NAN,
        _ => f64::midpoint(sorted[(number - 1) / 2], sorted[number / 2]),
    }
}

/// Interval of the median between two of the values, without assumptions on their distribution: at least 95 %, None with fewer than six.
#[must_use]
pub fn median_interval(values: &[f64]) -> Option<[f64; 2]> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let number = sorted.len();
    // Probability that exactly `below` of the values are below the median.
    let mut probability = 0.5_f64.powi(i32::try_from(number).ok()?);
    let (mut below, mut tail) = (0, probability);
    while tail <= 0.025 && below < number {
        probability *= (number - below) as f64 / (below + 1) as f64;
        below += 1;
        tail += probability;
    }
    let at = below.checked_sub(1)?;
    Some([sorted[at], sorted[number - 1 - at]])
}

/// A normal number (Box and Muller).
pub(crate) fn normal(random: &mut Pcg64Mcg) -> f64 {
    let mut uniform = || ((random.next_u64() >> 11) as f64 + 0.5) / (1_u64 << 53) as f64;
    (-2.0 * uniform().ln()).sqrt() * (std::f64::consts::TAU * uniform()).cos()
}

#[cfg(test)]
#[path = "run_rules_tests.rs"]
mod tests;
