//! Our loops beside bare ones, measured in turns: the ratio of the pairs and how sure it is.

use schemars::JsonSchema;
use serde::Serialize;

use crate::frame::records::BarePair;

/// What pairs of times of the same work say, by their medians.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Compared {
    /// Number of pairs.
    #[schemars(range(min = 1))]
    pub pairs: u64,
    /// Seconds of a repetition of ours, median.
    pub ours_seconds: f64,
    /// The same of the bare loop.
    pub bare_seconds: f64,
    /// ours / bare, median over the pairs.
    pub ratio: f64,
    /// 95 % interval of that median by the order of the pairs (sign test); None with fewer than 6.
    pub interval: Option<[f64; 2]>,
}

/// From pairs of loops of so many repetitions; None if there are none.
pub(crate) fn compare(pairs: &[BarePair], repetitions: u64) -> Option<Compared> {
    let sorted = |value: fn(&BarePair) -> f64| {
        let mut all: Vec<f64> = pairs.iter().map(value).filter(|s| s.is_finite() && *s > 0.0).collect();
        all.sort_by(f64::total_cmp);
        all
    };
    let ratios = sorted(|pair| pair.ours_seconds / pair.bare_seconds);
    let repetitions = repetitions.max(1) as f64;
    Some(Compared {
        pairs: ratios.len() as u64,
        ours_seconds: median(&sorted(|pair| pair.ours_seconds))? / repetitions,
        bare_seconds: median(&sorted(|pair| pair.bare_seconds))? / repetitions,
        ratio: median(&ratios)?,
        interval: interval(&ratios),
    })
}

fn median(sorted: &[f64]) -> Option<f64> {
    let n = sorted.len();
    (n > 0).then(|| (sorted[(n - 1) / 2] + sorted[n / 2]) / 2.0)
}

/// The k-th smallest and k-th largest, k from the normal approximation of the binomial distribution.
fn interval(sorted: &[f64]) -> Option<[f64; 2]> {
    let n = sorted.len();
    if n < 6 {
        return None;
    }
    let k = ((n as f64 - 1.96 * (n as f64).sqrt()) / 2.0).floor().max(0.0) as usize;
    Some([sorted[k.saturating_sub(1)], sorted[n - k.max(1)]])
}
