//! What pairs tell: the median of their ratios and how sure it is.

/// Resamples of the bootstrap.
const RESAMPLES: usize = 10_000;

/// A median with its 95 % interval.
#[derive(Clone, Copy, Debug)]
pub struct Estimate {
    pub middle: f64,
    pub low: f64,
    pub high: f64,
}

impl Estimate {
    /// Median and percentile bootstrap of it. The same values give the same interval.
    pub fn of(values: &[f64]) -> Self {
        let mut state = 0x9e37_79b9_7f4a_7c15_u64;
        let mut draw = || {
            // xorshift64: good enough to pick one of a few pairs.
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            values[(state >> 11) as usize % values.len()]
        };
        let mut medians: Vec<f64> =
            (0..RESAMPLES).map(|_| median(&(0..values.len()).map(|_| draw()).collect::<Vec<_>>())).collect();
        medians.sort_by(f64::total_cmp);
        let at = |share: f64| medians[((RESAMPLES - 1) as f64 * share).round() as usize];
        Self { middle: median(values), low: at(0.025), high: at(0.975) }
    }

    /// What a ratio says: `equal` when its interval spans 1.
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

/// The middle value; the mean of the two middle ones.
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
