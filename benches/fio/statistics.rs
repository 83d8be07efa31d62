//! Median of the ratios of pairs, with a confidence interval.

/// Resamples of the bootstrap.
const RESAMPLES: usize = 10_000;

/// Median with its 95 % confidence interval.
#[derive(Clone, Copy, Debug)]
pub struct MedianEstimate {
    pub median: f64,
    pub low: f64,
    pub high: f64,
}

impl MedianEstimate {
    /// Median with its percentile bootstrap interval; deterministic for equal values.
    pub fn of(values: &[f64]) -> Self {
        let mut state = 0x9e37_79b9_7f4a_7c15_u64;
        let mut draw = || {
            // xorshift64 suffices to pick one of a few pairs.
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            values[(state >> 11) as usize % values.len()]
        };
        let mut medians: Vec<f64> =
            (0..RESAMPLES).map(|_| median(&(0..values.len()).map(|_| draw()).collect::<Vec<_>>())).collect();
        medians.sort_by(f64::total_cmp);
        let at = |share: f64| medians[((RESAMPLES - 1) as f64 * share).round() as usize];
        Self { median: median(values), low: at(0.025), high: at(0.975) }
    }

    /// Classifies a ratio: `equal` if its interval contains 1.
    pub fn verdict(&self) -> &'static str {
        if self.low > 1.0 {
            "ahead"
        } else if self.high < 1.0 {
            "BEHIND"
        } else {
            "equal"
        }
    }
}

/// Median; of an even number the mean of the two middle values.
pub fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    match sorted.len() {
        0 => f64::NAN,
        len if len % 2 == 1 => sorted[middle],
        _ => (sorted[middle - 1] + sorted[middle]) / 2.0,
    }
}
