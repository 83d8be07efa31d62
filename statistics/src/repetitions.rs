//! 95 % confidence intervals of a value that was measured once, from repetitions of its parts in the remaining time.
//!
//! A value consists of cells, each with one first measurement, which enters the value, and repetitions. The interval is that of the
//! median of many such runs. The value is of one measurement and has the variance of one: repetitions estimate this variance, they do
//! not reduce it. Three half-widths are computed, and the largest is used:
//!
//! - *apart*: independent variation of the cells. Weighted variances of the cells; a cell with fewer than three measurements has the
//!   variance of its group if that is larger than its own (*pooled*).
//! - *together*: common variation of all cells of a group in one measurement. Variance of whole measurements; groups may be correlated.
//! - *slow*: slow variation with time, correlated between neighbouring times. A fit separates the level of each cell from that of each
//!   eighth of the time; if neighbouring eighths are correlated, their variance is added as far as it does not average out in a first
//!   measurement that covers several of them, with a quarter more for changes slower than the observed time.
//!
//! Student's quantile has the degrees of freedom of Satterthwaite's approximation. The interval is widened to contain the repetitions,
//! so that a first measurement that differs from its repetitions has no narrower interval than both. Effects that are constant in a run
//! and differ between runs (location on the disk, other jobs) cannot be observed within one run and are not included.

use std::iter::Take;
use std::slice::Iter;

use crate::student::two_sided_quantile;

/// Two-sided probability of a value outside the interval.
const ERROR_PROBABILITY: f64 = 0.05;
/// Minimum number of measurements for a variance of a cell's own.
pub const MIN_MEASUREMENTS: usize = 3;
/// Minimum degrees of freedom of a group whose variance is used for its cells.
const MIN_DEGREES: f64 = 2.0;
/// Share of the weight of a group that a complete measurement must cover.
const COMPLETE_SHARE: f64 = 0.9;
/// Parts of the time for slow variation, and the minimum number of parts with measurements.
const TIME_BINS: usize = 8;
const MIN_TIME_BINS: usize = 4;
/// Minimum number of cells to separate them from slow variation.
const MIN_CELLS: usize = 8;
/// Variation is slow if the variance of steps between neighbouring parts is below this share of the whole variance.
const MAX_STEP_SHARE: f64 = 0.8;
/// Factor for changes slower than the run, which are observed only in part.
const UNOBSERVED_FACTOR: f64 = 1.25;
const SLOW_DEGREES: f64 = 3.0;
/// Iterations of the fit; each reduces the error by more than a half.
const FIT_SWEEPS: usize = 30;

/// A part of a value with one or several measurements.
#[derive(Clone, Debug, PartialEq)]
pub struct MeasuredCell {
    /// Group: its cells share a variance and may be correlated.
    pub group: usize,
    /// Derivative of the logarithm of the value with respect to that of the cell.
    pub weight: f64,
    /// Logarithms of its rates: the first measurement, then the repetitions in order.
    pub logs: Vec<f64>,
    /// Time of each measurement in seconds.
    pub seconds: Vec<f64>,
}

/// A 95 % interval around a value, as factors of it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RelativeInterval {
    /// Lower end, at most 1.
    pub low: f64,
    /// Upper end, at least 1.
    pub high: f64,
    /// Value by the repetitions alone, as a factor of the value; 1 without repetitions.
    pub repetition_factor: f64,
    /// Share of the variance from cells without a variance of their own, 0 to 1.
    pub pooled_share: f64,
}

impl RelativeInterval {
    /// Half-width: distance of the farther end from the value, as a share of the value.
    #[must_use]
    pub fn half_width(&self) -> f64 {
        (self.high - 1.0).max(1.0 - self.low)
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct Variance {
    value: f64,
    /// Sum of the squared terms, each divided by its degrees of freedom.
    squares_over_degrees: f64,
}

impl Variance {
    fn add(&mut self, value: f64, degrees: f64) {
        self.value += value;
        self.squares_over_degrees += value * value / degrees.max(1.0);
    }

    fn plus(mut self, value: f64, degrees: f64) -> Self {
        self.add(value, degrees);
        self
    }

    fn half_width(&self) -> f64 {
        if self.value <= 0.0 {
            return 0.0;
        }
        two_sided_quantile(ERROR_PROBABILITY, (self.value * self.value / self.squares_over_degrees).max(1.0))
            * self.value.sqrt()
    }
}

/// Interval of the value of these cells. Cells without weight contribute to the variance of their group. None if a weighted group has
/// too few repetitions, or a cell has a value that is not finite.
#[must_use]
pub fn relative_interval(cells: &[MeasuredCell]) -> Option<RelativeInterval> {
    let is_sound = |cell: &MeasuredCell| {
        !cell.logs.is_empty()
            && cell.logs.len() == cell.seconds.len()
            && cell.weight.is_finite()
            && cell.logs.iter().chain(&cell.seconds).all(|v| v.is_finite())
    };
    if cells.is_empty() || !cells.iter().all(is_sound) {
        return None;
    }
    let groups = CellGroup::weighted_groups(cells)?;
    let apart = groups.iter().fold(Variance::default(), |sum, g| Variance {
        value: sum.value + g.independent.value,
        squares_over_degrees: sum.squares_over_degrees + g.independent.squares_over_degrees,
    });
    let pooled: f64 = groups.iter().map(|g| g.pooled_variance).sum();
    let slow = slow_variance(cells).map_or(apart, |(value, degrees)| {
        let weight: f64 = cells.iter().map(|c| c.weight.abs()).sum();
        apart.plus(value * weight * weight, degrees)
    });
    let widest = apart.half_width().max(common_variance(&groups).half_width()).max(slow.half_width());
    let shift: f64 =
        cells.iter().filter(|c| c.logs.len() > 1).map(|c| c.weight * (mean(&c.logs[1..]) - c.logs[0])).sum();
    Some(RelativeInterval {
        low: shift.min(-widest).exp(),
        high: shift.max(widest).exp(),
        repetition_factor: shift.exp(),
        pooled_share: if apart.value > 0.0 { pooled / apart.value } else { 0.0 },
    })
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// Sample variance; NaN for a single value.
fn variance(values: &[f64]) -> f64 {
    let mean = mean(values);
    values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / (values.len() as f64 - 1.0)
}

#[derive(Clone, Copy, Debug)]
struct CellGroup {
    /// Sum of its weights, without their signs.
    weight: f64,
    independent: Variance,
    pooled_variance: f64,
    /// Variance of whole measurements, and their number less one.
    common: f64,
    common_degrees: f64,
}

impl CellGroup {
    fn weighted_groups(cells: &[MeasuredCell]) -> Option<Vec<Self>> {
        let mut names: Vec<usize> = cells.iter().filter(|c| c.weight != 0.0).map(|c| c.group).collect();
        names.sort_unstable();
        names.dedup();
        names.into_iter().map(|name| Self::of(cells.iter().filter(|c| c.group == name).collect())).collect()
    }

    fn of(cells: Vec<&MeasuredCell>) -> Option<Self> {
        let mut pool = Variance::default();
        let mut degrees = 0.0;
        for cell in cells.iter().filter(|c| c.logs.len() > 1) {
            let own = cell.logs.len() as f64 - 1.0;
            pool.value += own * variance(&cell.logs);
            degrees += own;
        }
        if degrees < MIN_DEGREES {
            return None;
        }
        let pool = pool.value / degrees;
        let (mut apart, mut pooled) = (Variance::default(), 0.0);
        for cell in cells.iter().filter(|c| c.weight != 0.0) {
            let square = cell.weight * cell.weight;
            match cell.logs.len() {
                0..=1 => pooled += square * pool,
                n if n < MIN_MEASUREMENTS => pooled += square * pool.max(variance(&cell.logs)),
                n => apart.add(square * variance(&cell.logs), n as f64 - 1.0),
            }
        }
        apart.add(pooled, degrees);
        let offsets = measurement_offsets(&cells);
        let passed = offsets.len().saturating_sub(1) as f64;
        Some(Self {
            weight: cells.iter().map(|c| c.weight.abs()).sum(),
            independent: apart,
            pooled_variance: pooled,
            common: if passed > 0.0 { variance(&offsets) } else { 0.0 },
            common_degrees: passed,
        })
    }
}

/// Deviation of each nearly complete measurement of a group from the mean of its cells.
fn measurement_offsets(cells: &[&MeasuredCell]) -> Vec<f64> {
    let all: f64 = cells.iter().map(|c| c.weight.abs()).sum();
    let most = cells.iter().map(|c| c.logs.len()).max().unwrap_or(0);
    let mut found = Vec::new();
    for number in 0..most {
        let own = || cells.iter().filter(|c| c.logs.len() > number && c.logs.len() > 1);
        let measured: f64 = own().map(|c| c.weight.abs()).sum();
        if measured >= COMPLETE_SHARE * all && measured > 0.0 {
            let off: f64 = own().map(|c| c.weight * (c.logs[number] - mean(&c.logs))).sum();
            found.push(off * all / measured);
        }
    }
    found
}

/// Variance of a measurement of all groups. A group with fewer than three measurements has that of all groups if it is larger. The excess
/// of the variance of a group's measurements over that of its independent cells may be common to all groups.
fn common_variance(groups: &[CellGroup]) -> Variance {
    let degrees: f64 = groups.iter().map(|g| g.common_degrees).sum();
    let of_unit = |g: &CellGroup| if g.weight > 0.0 { g.common / (g.weight * g.weight) } else { 0.0 };
    let pool = groups.iter().map(|g| g.common_degrees * of_unit(g)).sum::<f64>() / degrees.max(1.0);
    let own = |g: &CellGroup| {
        if g.common_degrees >= MIN_DEGREES {
            (g.common, g.common_degrees)
        } else {
            (g.common.max(pool * g.weight * g.weight), degrees)
        }
    };
    let mut sum = Variance::default();
    let mut shared = 0.0;
    for g in groups {
        let (value, degrees) = own(g);
        sum.add(value, degrees);
        shared += (value - g.independent.value).max(0.0).sqrt();
    }
    let alone: f64 = groups.iter().map(|g| (own(g).0 - g.independent.value).max(0.0)).sum();
    let fewest = groups.iter().map(|g| own(g).1).fold(f64::INFINITY, f64::min);
    sum.plus((shared * shared - alone).max(0.0), fewest)
}

/// Variance of the slow variation of all cells for a value of weight 1, with its degrees of freedom. None if there is none.
fn slow_variance(cells: &[MeasuredCell]) -> Option<(f64, f64)> {
    let cells: Vec<&MeasuredCell> = cells.iter().filter(|c| c.logs.len() > 1 && c.weight != 0.0).collect();
    if cells.len() < MIN_CELLS {
        return None;
    }
    let times = || cells.iter().flat_map(|c| c.seconds.iter().copied());
    let (begin, end) = (times().fold(f64::INFINITY, f64::min), times().fold(f64::NEG_INFINITY, f64::max));
    if end <= begin {
        return None;
    }
    let part = |seconds: f64| (((seconds - begin) / (end - begin) * TIME_BINS as f64) as usize).min(TIME_BINS - 1);
    let mut moved = [0.0; TIME_BINS];
    let weights: [f64; TIME_BINS] = sums_by_bin(&cells, part, |c| c.weight.abs());
    let of_cell = |c: &MeasuredCell, moved: &[f64; TIME_BINS]| {
        c.logs.iter().zip(&c.seconds).map(|(y, t)| y - moved[part(*t)]).sum::<f64>() / c.logs.len() as f64
    };
    for _ in 0..FIT_SWEEPS {
        let means: Vec<f64> = cells.iter().map(|c| of_cell(c, &moved)).collect();
        let mut off = [0.0; TIME_BINS];
        for (c, mean) in cells.iter().zip(&means) {
            c.logs.iter().zip(&c.seconds).for_each(|(y, t)| off[part(*t)] += c.weight.abs() * (y - mean));
        }
        for at in (0..TIME_BINS).filter(|at| weights[*at] > 0.0) {
            moved[at] = off[at] / weights[at];
        }
    }
    let noise: [f64; TIME_BINS] = sums_by_bin(&cells, part, |c| {
        let mean = of_cell(c, &moved);
        let off = |(y, t): (&f64, &f64)| (y - moved[part(*t)] - mean).powi(2);
        let spread = c.logs.iter().zip(&c.seconds).map(off).sum::<f64>() / (c.logs.len() as f64 - 1.0);
        c.weight * c.weight * spread
    });
    let seen: Vec<usize> = (0..TIME_BINS).filter(|at| weights[*at] > 0.0).collect();
    if seen.len() < MIN_TIME_BINS {
        return None;
    }
    let values: Vec<f64> = seen.iter().map(|at| moved[*at]).collect();
    let noise = mean(&seen.iter().map(|at| noise[*at] / (weights[*at] * weights[*at])).collect::<Vec<_>>());
    let whole = (variance(&values) - noise).max(0.0);
    let steps: Vec<f64> = values.windows(2).map(|w| (w[0] - w[1]).powi(2) / 2.0).collect();
    let steps = (mean(&steps) - noise).max(0.0);
    let alike = 1.0 - steps / whole;
    (whole > 0.0 && alike >= 1.0 - MAX_STEP_SHARE).then(|| {
        let first: [f64; TIME_BINS] = sums_by_bin_of(&cells, |c| c.seconds.iter().take(1), part, |c| c.weight.abs());
        (whole * UNOBSERVED_FACTOR * UNOBSERVED_FACTOR * averaged_share(&first, alike), SLOW_DEGREES)
    })
}

/// Share of the variance of one part of the time that remains in a value over several parts with these weights, with a correlation of
/// `alike` between neighbours and its powers at larger distances.
fn averaged_share(weights: &[f64; TIME_BINS], alike: f64) -> f64 {
    let all: f64 = weights.iter().sum();
    let of = |(a, b): (usize, usize)| weights[a] * weights[b] * alike.powi(a.abs_diff(b) as i32);
    (0..TIME_BINS).flat_map(|a| (0..TIME_BINS).map(move |b| (a, b))).map(of).sum::<f64>() / (all * all)
}

/// Sums over the measurements of all cells, by part of the time.
fn sums_by_bin(
    cells: &[&MeasuredCell],
    part: impl Fn(f64) -> usize,
    of: impl Fn(&MeasuredCell) -> f64,
) -> [f64; TIME_BINS] {
    sums_by_bin_of(cells, |c| c.seconds.iter().take(usize::MAX), part, of)
}

fn sums_by_bin_of<'a>(
    cells: &[&'a MeasuredCell],
    measured: impl Fn(&'a MeasuredCell) -> Take<Iter<'a, f64>>,
    part: impl Fn(f64) -> usize,
    of: impl Fn(&MeasuredCell) -> f64,
) -> [f64; TIME_BINS] {
    let mut sums = [0.0; TIME_BINS];
    for cell in cells {
        let value = of(cell);
        measured(cell).for_each(|seconds| sums[part(*seconds)] += value);
    }
    sums
}

#[cfg(test)]
#[path = "repetitions_tests.rs"]
mod tests;
