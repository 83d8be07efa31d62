//! The step of a series of runs: between which two of them the level changed.
//!
//! The step is at the split with the largest two-sample statistic (Student's t, pooled variance). Splits that explain the series almost as
//! well give its uncertainty: twice the difference of their log-likelihoods from that of the best is at most [`LIKELIHOOD_LIMIT`].

use rand_pcg::rand_core::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;

use crate::student::two_sided_quantile;

/// The splits within this limit contain the true one in at least 95 of 100 simulated series with a step of two standard deviations or more.
const LIKELIHOOD_LIMIT: f64 = 6.0;

/// Error probability of the interval of the difference.
const ERROR_PROBABILITY: f64 = 0.05;

const PERMUTATIONS: u32 = 999;
const SEED: u64 = 0x7374_6570;

/// Relative residuals smaller than this are rounding.
const TOLERANCE: f64 = 1e-18;

/// A step of the level.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Step {
    /// Index of the first run after it.
    pub first_after: usize,
    /// Range in which that index is, inclusive.
    pub range: [usize; 2],
    /// Mean after it less that before it.
    pub difference: f64,
    /// 95 % interval of the difference, for this split; None with two runs.
    pub interval: Option<[f64; 2]>,
}

/// The split of the series with the largest two-sample statistic, with at least `before` and `after` runs on its sides. `accepts` decides by the
/// difference which splits count. None if there is none.
#[must_use]
pub fn largest_step(logs: &[f64], [before, after]: [usize; 2], accepts: fn(f64) -> bool) -> Option<Step> {
    let number = logs.len();
    let splits = before.max(1)..(number + 1).saturating_sub(after.max(1));
    let found: Vec<Split> = splits
        .map(|at| Split::at(logs, at))
        .filter(|split| split.difference != 0.0 && accepts(split.difference))
        .collect();
    let best = found.iter().copied().reduce(|best, split| if split.residual < best.residual { split } else { best })?;
    let is_near = |split: &&Split| {
        split.residual <= best.residual || number as f64 * (split.residual / best.residual).ln() <= LIKELIHOOD_LIMIT
    };
    let near = || found.iter().filter(is_near).map(|split| split.at);
    let degrees = number as f64 - 2.0;
    let [of_before, of_after] = [best.at as f64, (number - best.at) as f64];
    let interval = (degrees > 0.0).then(|| {
        let error = (best.residual / degrees * (1.0 / of_before + 1.0 / of_after)).sqrt();
        let half_width = two_sided_quantile(ERROR_PROBABILITY, degrees) * error;
        [best.difference - half_width, best.difference + half_width]
    });
    Some(Step { first_after: best.at, range: [near().min()?, near().max()?], difference: best.difference, interval })
}

/// Probability that a series without a step, its runs in random order, has one as large as the largest in either direction.
#[must_use]
pub fn permutation_probability(logs: &[f64], sides: [usize; 2]) -> f64 {
    let Some(observed) = smallest_residual(logs, sides) else { return 1.0 };
    let mut random = Pcg64Mcg::seed_from_u64(SEED);
    let mut shuffled = logs.to_vec();
    let mut as_large = 1;
    for _ in 0..PERMUTATIONS {
        for last in (1..shuffled.len()).rev() {
            shuffled.swap(last, (random.next_u64() % (last as u64 + 1)) as usize);
        }
        as_large += u32::from(smallest_residual(&shuffled, sides).is_some_and(|residual| residual <= observed));
    }
    f64::from(as_large) / f64::from(PERMUTATIONS + 1)
}

fn smallest_residual(logs: &[f64], [before, after]: [usize; 2]) -> Option<f64> {
    let splits = before.max(1)..(logs.len() + 1).saturating_sub(after.max(1));
    splits.map(|at| Split::at(logs, at).residual).reduce(f64::min)
}

#[derive(Clone, Copy, Debug)]
struct Split {
    at: usize,
    difference: f64,
    /// Sum of squares around the means of both sides.
    residual: f64,
}

impl Split {
    fn at(logs: &[f64], at: usize) -> Self {
        let (before, after) = logs.split_at(at);
        let mean = |logs: &[f64]| logs.iter().sum::<f64>() / logs.len() as f64;
        let squares = |logs: &[f64], mean: f64| logs.iter().map(|log| (log - mean).powi(2)).sum::<f64>();
        let (from, to) = (mean(before), mean(after));
        Self { at, difference: to - from, residual: squares(before, from) + squares(after, to) + TOLERANCE }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run_rules::normal;

    fn is_any(_: f64) -> bool {
        true
    }

    #[test]
    fn a_step_by_hand() {
        let step = largest_step(&[1.0, 1.2, 0.8, 1.0, 0.0, 0.2, -0.2], [1, 1], is_any).unwrap();
        assert_eq!((step.first_after, step.range), (4, [4, 4]));
        assert!((step.difference + 1.0).abs() < 1e-12);
        // Residuals 0.08 and 0.08, five degrees of freedom, t = 2.571.
        let half_width = 2.570_58 * (0.16_f64 / 5.0 * (1.0 / 4.0 + 1.0 / 3.0)).sqrt();
        let [low, high] = step.interval.unwrap();
        assert!((low + 1.0 + half_width).abs() < 1e-5 && (high + 1.0 - half_width).abs() < 1e-5, "{step:?}");
        assert_eq!(largest_step(&[1.0, 1.0, 0.5], [2, 1], |d| d > 0.0), None);
        assert_eq!(largest_step(&[1.0, 1.0, 1.0], [1, 1], is_any), None);
        assert_eq!(largest_step(&[1.0], [1, 1], is_any), None);
        let exact = largest_step(&[1.0, 1.0, 0.5], [1, 1], is_any).unwrap();
        assert_eq!((exact.first_after, exact.range), (2, [2, 2]));
        assert_eq!(permutation_probability(&[1.0, 2.0], [3, 3]), 1.0);
    }

    /// The range contains the true night, and few series without a step have a significant one.
    #[test]
    fn the_range_holds_the_true_step() {
        let mut random = Pcg64Mcg::seed_from_u64(21);
        for (size, after) in [(2.0, 3), (3.0, 1), (3.0, 3), (3.0, 6), (6.0, 2)] {
            let (mut held, mut width, series) = (0, 0, 1000);
            for _ in 0..series {
                let night = |n: usize| normal(&mut random) - if n < 13 - after { 0.0 } else { size };
                let logs: Vec<f64> = (0..13).map(night).collect();
                let Some(step) = largest_step(&logs, [3, 1], |d| d < 0.0) else { continue };
                held += u32::from((step.range[0]..=step.range[1]).contains(&(13 - after)));
                width += step.range[1] - step.range[0] + 1;
            }
            println!(
                "step of {size}, {after} runs after it: in {held} of {series}, {:.1} runs",
                f64::from(width as u32) / 1e3
            );
            assert!(held >= 930, "{size} {after}: {held}");
        }
        let found = (0..300).filter(|_| {
            let logs: Vec<f64> = (0..31).map(|_| normal(&mut random)).collect();
            permutation_probability(&logs, [3, 3]) <= 0.01
        });
        let found = found.count();
        assert!(found <= 9, "{found} of 300 equal series");
        let logs: Vec<f64> = (0..31).map(|n| normal(&mut random) - if n < 20 { 0.0 } else { 3.0 }).collect();
        assert!(permutation_probability(&logs, [3, 3]) <= 0.01);
    }
}
