//! Loops of the harness compared with bare loops, measured alternately: ratio of the pairs and its confidence interval.

use schemars::JsonSchema;
use serde::Serialize;

use crate::frame::records::BareLoopPair;

/// Comparison of pairs of times of the same work, by medians.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct BareLoopRatio {
    /// Number of pairs.
    #[schemars(range(min = 1))]
    pub pairs: u64,
    /// Seconds of an iteration of the harness's loop, median.
    pub harness_seconds: f64,
    /// The same of the bare loop.
    pub bare_seconds: f64,
    /// Harness / bare loop, median over the pairs.
    pub ratio: f64,
    /// 95 % confidence interval of that median by order statistics (sign test); None with fewer than 6 pairs.
    pub interval: Option<[f64; 2]>,
}

/// Compares pairs of loops with `repetitions` iterations each; None without pairs.
pub(crate) fn compare_pairs(pairs: &[BareLoopPair], repetitions: u64) -> Option<BareLoopRatio> {
    let sorted = |value: fn(&BareLoopPair) -> f64| {
        let mut all: Vec<f64> = pairs.iter().map(value).filter(|s| s.is_finite() && *s > 0.0).collect();
        all.sort_by(f64::total_cmp);
        all
    };
    let ratios = sorted(|pair| pair.harness_seconds / pair.bare_seconds);
    let repetitions = repetitions.max(1) as f64;
    Some(BareLoopRatio {
        pairs: ratios.len() as u64,
        harness_seconds: median(&sorted(|pair| pair.harness_seconds))? / repetitions,
        bare_seconds: median(&sorted(|pair| pair.bare_seconds))? / repetitions,
        ratio: median(&ratios)?,
        interval: sign_test_interval(&ratios),
    })
}

fn median(sorted: &[f64]) -> Option<f64> {
    let n = sorted.len();
    (n > 0).then(|| (sorted[(n - 1) / 2] + sorted[n / 2]) / 2.0)
}

/// The k-th smallest and k-th largest value, k from the normal approximation of the binomial distribution.
fn sign_test_interval(sorted: &[f64]) -> Option<[f64; 2]> {
    let n = sorted.len();
    if n < 6 {
        return None;
    }
    let k = ((n as f64 - 1.96 * (n as f64).sqrt()) / 2.0).floor().max(0.0) as usize;
    Some([sorted[k.saturating_sub(1)], sorted[n - k.max(1)]])
}
