//! Effects of settings: logarithms of ratios to the default, with confidence intervals.

use std::collections::BTreeMap;

use beff_statistics::student::two_sided_quantile;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::trial::{Setting, Trial};

/// Error probability of the intervals of the search, all candidates together.
const SEARCH_ERROR: f64 = 0.05;
/// Error probability of the confirmation and of the smallest provable ratio: a recommendation costs somebody's time.
pub const CONFIRMATION_ERROR: f64 = 0.005;

/// A ratio with its confidence interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct EffectRatio {
    /// Geometric mean of the ratios of the pairs or rounds.
    pub ratio: f64,
    /// Lower bound; 0 if unknown.
    pub low: f64,
    /// Upper bound; None if unknown.
    pub high: Option<f64>,
    /// Pairs or rounds.
    pub count: u32,
}

impl EffectRatio {
    /// True if the interval contains 1.
    #[must_use]
    pub fn contains_one(&self) -> bool {
        self.low <= 1.0 && self.high.is_none_or(|high| high >= 1.0)
    }
}

/// Mean and variance of differences of logarithms.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Sample {
    /// Number.
    pub count: u32,
    /// Mean.
    pub mean: f64,
    /// Sum of squared deviations.
    pub squares: f64,
}

impl Sample {
    /// Of these values.
    #[must_use]
    pub fn of(values: &[f64]) -> Self {
        let count = values.len() as u32;
        let mean = values.iter().sum::<f64>() / f64::from(count.max(1));
        Self { count, mean, squares: values.iter().map(|value| (value - mean).powi(2)).sum() }
    }

    /// Standard deviation of a value; None below two values.
    #[must_use]
    pub fn deviation(&self) -> Option<f64> {
        (self.count > 1).then(|| (self.squares / f64::from(self.count - 1)).sqrt())
    }

    /// Student's t interval of the mean.
    #[must_use]
    pub fn ratio(&self, error: f64) -> EffectRatio {
        let half = self.deviation().map(|deviation| half_width(deviation, self.count, self.count - 1, error));
        effect_ratio(self.mean, half, self.count)
    }
}

fn half_width(deviation: f64, count: u32, degrees: u32, error: f64) -> f64 {
    two_sided_quantile(error, f64::from(degrees)) * deviation / f64::from(count).sqrt()
}

fn effect_ratio(mean: f64, half: Option<f64>, count: u32) -> EffectRatio {
    EffectRatio {
        ratio: mean.exp(),
        low: half.map_or(0.0, |half| (mean - half).exp()),
        high: half.map(|half| (mean + half).exp()),
        count,
    }
}

/// The smallest ratio whose interval excludes 1, with this scatter of a pair and this number of pairs.
#[must_use]
pub fn smallest_provable(deviation: f64, pairs: u32) -> f64 {
    half_width(deviation, pairs, pairs.saturating_sub(1).max(1), CONFIRMATION_ERROR).exp()
}

/// Effects of settings that were compared with the same default, whose scatter is common.
#[derive(Clone, Debug, Default)]
pub struct Effects {
    samples: BTreeMap<Setting, Vec<f64>>,
}

impl Effects {
    /// Of these trials, in the order of measurement: each candidate against `base` before and after it in its round, interpolated in time.
    #[must_use]
    pub fn of<'a>(trials: impl Iterator<Item = &'a Trial>, base: &[(String, String)]) -> Self {
        let trials: Vec<&Trial> = trials.collect();
        let mut found = Self::default();
        for (place, trial) in trials.iter().enumerate().filter(|(_, trial)| trial.planned.setting != base) {
            let is_base = |other: &&&Trial| {
                other.planned.setting == base
                    && (other.planned.round, other.planned.phase) == (trial.planned.round, trial.planned.phase)
            };
            let before = trials[..place].iter().rev().find(is_base);
            let after = trials[place..].iter().find(is_base);
            let expected = match (before, after) {
                (Some(before), Some(after)) => interpolate(before, after, trial),
                (one, other) => one.or(other).and_then(|base| base.log_rate()),
            };
            if let Some((log_rate, expected)) = trial.log_rate().zip(expected) {
                found.samples.entry(trial.planned.setting.clone()).or_default().push(log_rate - expected);
            }
        }
        found
    }

    /// Adds those of other trials.
    pub fn add(&mut self, other: Self) {
        for (setting, values) in other.samples {
            self.samples.entry(setting).or_default().extend(values);
        }
    }

    /// Mean of a setting; None if it was not measured.
    #[must_use]
    pub fn mean(&self, setting: &[(String, String)]) -> Option<f64> {
        self.samples.get(setting).map(|values| Sample::of(values).mean)
    }

    /// Scatter of a value, common to all settings, and its degrees of freedom; `noise` is another estimate of the same.
    #[must_use]
    pub fn scatter(&self, noise: Sample) -> (f64, u32) {
        let all = self.samples.values().map(|values| Sample::of(values)).chain([noise]);
        let (squares, degrees) =
            all.fold((0.0, 0), |(squares, degrees), s| (squares + s.squares, degrees + s.count.saturating_sub(1)));
        (if degrees == 0 { 0.0 } else { (squares / f64::from(degrees)).sqrt() }, degrees)
    }

    /// Ratio of a setting with an interval that is corrected for the number of settings; None if it was not measured.
    #[must_use]
    pub fn ratio(&self, setting: &[(String, String)], noise: Sample) -> Option<EffectRatio> {
        let sample = Sample::of(self.samples.get(setting)?);
        let (deviation, degrees) = self.scatter(noise);
        let error = SEARCH_ERROR / self.samples.len().max(1) as f64;
        let half = (degrees > 0).then(|| half_width(deviation, sample.count, degrees, error));
        Some(effect_ratio(sample.mean, half, sample.count))
    }

    /// All measured settings, the fastest first.
    #[must_use]
    pub fn ranking(&self) -> Vec<(&Setting, f64)> {
        let mut all: Vec<_> = self.samples.iter().map(|(setting, values)| (setting, Sample::of(values).mean)).collect();
        all.sort_by(|a, b| b.1.total_cmp(&a.1));
        all
    }
}

fn interpolate(before: &Trial, after: &Trial, at: &Trial) -> Option<f64> {
    let (first, last) = (before.log_rate()?, after.log_rate()?);
    let middle = |trial: &Trial| (trial.begin_seconds + trial.end_seconds) / 2.0;
    let span = middle(after) - middle(before);
    let share = if span > 0.0 { (middle(at) - middle(before)) / span } else { 0.5 };
    Some(first + (last - first) * share)
}

/// Differences of the logarithms of pairs: first of a pair minus second, with the sign of the setting that is not `base`. For the default
/// against itself, the odd pairs are reversed.
#[must_use]
pub fn pair_differences(trials: &[&Trial], base: &[(String, String)]) -> Vec<f64> {
    let mut found = Vec::new();
    for pair in trials.chunks_exact(2) {
        let [first, second] = pair else { continue };
        let is_reversed = if first.planned.setting == second.planned.setting {
            first.planned.round % 2 == 1
        } else {
            first.planned.setting == base
        };
        if let Some((first, second)) = first.log_rate().zip(second.log_rate()) {
            found.push(if is_reversed { second - first } else { first - second });
        }
    }
    found
}
