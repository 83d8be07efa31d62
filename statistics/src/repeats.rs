//! How sure a value is that was measured once, when the time left was used to measure its parts again: 95 % intervals.
//!
//! A value is made of cells, each of which has one measurement that counts and further ones, its repeats. The interval says where the
//! middle of many such runs lies. The value itself is of one pass, so it scatters as one pass does: repeats tell how much, they do not
//! make the one pass surer. Three widths are worked out, and the largest counts:
//!
//! - *apart*: each cell scatters for itself. Variances of the cells, by their weights; a cell with fewer than three measurements takes
//!   the spread of its group if that is larger than its own (*pooled*).
//! - *together*: all cells of a group are faster or slower in one pass. Variance of whole passes; groups may move together.
//! - *slow*: what changes with time moves neighbours in time alike. The cells are taken apart into what each is and what each eighth of
//!   the time is; if neighbouring eighths are more alike than others, their spread counts as far as it is not evened out in a first pass
//!   that lies in several of them, and a quarter more for what is slower than the time that was watched.
//!
//! Student's quantile has the degrees of freedom of Satterthwaite's approximation. The interval is stretched to where the repeats are,
//! so a first pass that differs from its repeats is not surer than both. What stays the same from begin to end and is another one in the
//! next run (the place on the disk, the neighbours of the day) leaves no trace within one, and is not in the interval.

use std::iter::Take;
use std::slice::Iter;

use crate::student::quantile;

/// Of chance beyond the interval, both sides together.
const CHANCE: f64 = 0.05;
/// With fewer measurements a cell does not know its own spread.
pub const MIN_MEASURED: usize = 3;
/// Degrees of freedom that a group must have before it stands for a cell.
const LEAST_DEGREES: f64 = 2.0;
/// Share of the weight of a group that a pass must have measured.
const WHOLE_PASS: f64 = 0.9;
/// Parts of the time for what moves slowly, and how many of them must have been seen.
const PARTS: usize = 8;
const LEAST_PARTS: usize = 4;
/// Fewer cells cannot be told apart from what moves slowly.
const LEAST_CELLS: usize = 8;
/// Steps between neighbouring parts of the time that have less than this share of the whole spread: it moves slowly.
const ALIKE: f64 = 0.8;
/// What is slower than the run is seen in part only.
const UNSEEN: f64 = 1.25;
/// Degrees of freedom of what moves slowly, at least.
const SLOW_DEGREES: f64 = 3.0;
/// Sweeps of the fit; it converges by more than a half in each.
const SWEEPS: usize = 30;

/// A part of a value, measured one or several times.
#[derive(Clone, Debug, PartialEq)]
pub struct Cell {
    /// Those of one group can stand for each other, and may move together.
    pub group: usize,
    /// By how much the logarithm of the value changes with that of the cell.
    pub weight: f64,
    /// Logarithms of its rates: first the one that counts, then the repeats in their order.
    pub logs: Vec<f64>,
    /// When each was measured, in seconds.
    pub seconds: Vec<f64>,
}

/// A 95 % interval around a value, as factors of it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bound {
    /// Lower end, at most 1.
    pub low: f64,
    /// Upper end, at least 1.
    pub high: f64,
    /// What the repeats alone would give, as a factor of the value; 1 where there are none.
    pub repeats: f64,
    /// Share of the variance that comes from cells without a spread of their own, 0 to 1.
    pub pooled_share: f64,
}

impl Bound {
    /// How far the farther end is from the value, as a share of the value.
    #[must_use]
    pub fn half_width(&self) -> f64 {
        (self.high - 1.0).max(1.0 - self.low)
    }
}

/// A variance with its degrees of freedom.
#[derive(Clone, Copy, Debug, Default)]
struct Variance {
    value: f64,
    /// Sum of squared parts, each divided by its degrees of freedom.
    squares: f64,
}

impl Variance {
    fn add(&mut self, value: f64, degrees: f64) {
        self.value += value;
        self.squares += value * value / degrees.max(1.0);
    }

    fn plus(mut self, value: f64, degrees: f64) -> Self {
        self.add(value, degrees);
        self
    }

    /// Half the width of the interval.
    fn reach(&self) -> f64 {
        if self.value <= 0.0 {
            return 0.0;
        }
        quantile(CHANCE, (self.value * self.value / self.squares).max(1.0)) * self.value.sqrt()
    }
}

/// The interval of the value that these cells make. Cells without weight tell of the spread of their group. None: a group that has weight
/// was not repeated enough, or a cell has no number.
#[must_use]
pub fn bound(cells: &[Cell]) -> Option<Bound> {
    let is_sound = |cell: &Cell| {
        !cell.logs.is_empty()
            && cell.logs.len() == cell.seconds.len()
            && cell.weight.is_finite()
            && cell.logs.iter().chain(&cell.seconds).all(|v| v.is_finite())
    };
    if cells.is_empty() || !cells.iter().all(is_sound) {
        return None;
    }
    let groups = Group::all(cells)?;
    let apart = groups.iter().fold(Variance::default(), |sum, g| Variance {
        value: sum.value + g.apart.value,
        squares: sum.squares + g.apart.squares,
    });
    let pooled: f64 = groups.iter().map(|g| g.pooled).sum();
    let slow = slow(cells).map_or(apart, |(value, degrees)| {
        let weight: f64 = cells.iter().map(|c| c.weight.abs()).sum();
        apart.plus(value * weight * weight, degrees)
    });
    let reach = apart.reach().max(together(&groups).reach()).max(slow.reach());
    let shift: f64 =
        cells.iter().filter(|c| c.logs.len() > 1).map(|c| c.weight * (mean(&c.logs[1..]) - c.logs[0])).sum();
    Some(Bound {
        low: shift.min(-reach).exp(),
        high: shift.max(reach).exp(),
        repeats: shift.exp(),
        pooled_share: if apart.value > 0.0 { pooled / apart.value } else { 0.0 },
    })
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// Variance of single values; NaN for one alone.
fn variance(values: &[f64]) -> f64 {
    let mean = mean(values);
    values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / (values.len() as f64 - 1.0)
}

/// What one group says.
#[derive(Clone, Copy, Debug)]
struct Group {
    /// Sum of its weights, without their signs.
    weight: f64,
    apart: Variance,
    /// Of `apart`, what is pooled.
    pooled: f64,
    /// Variance of whole passes, and their number less one.
    passes: f64,
    degrees: f64,
}

impl Group {
    /// Those that have weight.
    fn all(cells: &[Cell]) -> Option<Vec<Self>> {
        let mut names: Vec<usize> = cells.iter().filter(|c| c.weight != 0.0).map(|c| c.group).collect();
        names.sort_unstable();
        names.dedup();
        names.into_iter().map(|name| Self::of(cells.iter().filter(|c| c.group == name).collect())).collect()
    }

    fn of(cells: Vec<&Cell>) -> Option<Self> {
        let mut pool = Variance::default();
        let mut degrees = 0.0;
        for cell in cells.iter().filter(|c| c.logs.len() > 1) {
            let own = cell.logs.len() as f64 - 1.0;
            pool.value += own * variance(&cell.logs);
            degrees += own;
        }
        if degrees < LEAST_DEGREES {
            return None;
        }
        let pool = pool.value / degrees;
        let (mut apart, mut pooled) = (Variance::default(), 0.0);
        for cell in cells.iter().filter(|c| c.weight != 0.0) {
            let square = cell.weight * cell.weight;
            match cell.logs.len() {
                0..=1 => pooled += square * pool,
                n if n < MIN_MEASURED => pooled += square * pool.max(variance(&cell.logs)),
                n => apart.add(square * variance(&cell.logs), n as f64 - 1.0),
            }
        }
        apart.add(pooled, degrees);
        let passes = passes(&cells);
        let passed = passes.len().saturating_sub(1) as f64;
        Some(Self {
            weight: cells.iter().map(|c| c.weight.abs()).sum(),
            apart,
            pooled,
            passes: if passed > 0.0 { variance(&passes) } else { 0.0 },
            degrees: passed,
        })
    }
}

/// By how much each pass of a group that was measured nearly whole is off the mean of its cells.
fn passes(cells: &[&Cell]) -> Vec<f64> {
    let all: f64 = cells.iter().map(|c| c.weight.abs()).sum();
    let most = cells.iter().map(|c| c.logs.len()).max().unwrap_or(0);
    let mut found = Vec::new();
    for pass in 0..most {
        let own = || cells.iter().filter(|c| c.logs.len() > pass && c.logs.len() > 1);
        let measured: f64 = own().map(|c| c.weight.abs()).sum();
        if measured >= WHOLE_PASS * all && measured > 0.0 {
            let off: f64 = own().map(|c| c.weight * (c.logs[pass] - mean(&c.logs))).sum();
            found.push(off * all / measured);
        }
    }
    found
}

/// Variance of a pass of all groups. A group with fewer than three passes takes what the passes of all groups say if that is more. What
/// the passes of a group spread more than its cells apart from each other, it may share with the other groups.
fn together(groups: &[Group]) -> Variance {
    let degrees: f64 = groups.iter().map(|g| g.degrees).sum();
    let of_unit = |g: &Group| if g.weight > 0.0 { g.passes / (g.weight * g.weight) } else { 0.0 };
    let pool = groups.iter().map(|g| g.degrees * of_unit(g)).sum::<f64>() / degrees.max(1.0);
    let own = |g: &Group| {
        if g.degrees >= LEAST_DEGREES {
            (g.passes, g.degrees)
        } else {
            (g.passes.max(pool * g.weight * g.weight), degrees)
        }
    };
    let mut sum = Variance::default();
    let mut shared = 0.0;
    for g in groups {
        let (value, degrees) = own(g);
        sum.add(value, degrees);
        shared += (value - g.apart.value).max(0.0).sqrt();
    }
    let alone: f64 = groups.iter().map(|g| (own(g).0 - g.apart.value).max(0.0)).sum();
    let fewest = groups.iter().map(|g| own(g).1).fold(f64::INFINITY, f64::min);
    sum.plus((shared * shared - alone).max(0.0), fewest)
}

/// Variance of what moves all cells slowly, of a value of weight 1, and its degrees of freedom. None: nothing such can be seen.
fn slow(cells: &[Cell]) -> Option<(f64, f64)> {
    let cells: Vec<&Cell> = cells.iter().filter(|c| c.logs.len() > 1 && c.weight != 0.0).collect();
    if cells.len() < LEAST_CELLS {
        return None;
    }
    let times = || cells.iter().flat_map(|c| c.seconds.iter().copied());
    let (begin, end) = (times().fold(f64::INFINITY, f64::min), times().fold(f64::NEG_INFINITY, f64::max));
    if end <= begin {
        return None;
    }
    let part = |seconds: f64| (((seconds - begin) / (end - begin) * PARTS as f64) as usize).min(PARTS - 1);
    let mut moved = [0.0; PARTS];
    let weights: [f64; PARTS] = sums(&cells, part, |c| c.weight.abs());
    let of_cell = |c: &Cell, moved: &[f64; PARTS]| {
        c.logs.iter().zip(&c.seconds).map(|(y, t)| y - moved[part(*t)]).sum::<f64>() / c.logs.len() as f64
    };
    for _ in 0..SWEEPS {
        let means: Vec<f64> = cells.iter().map(|c| of_cell(c, &moved)).collect();
        let mut off = [0.0; PARTS];
        for (c, mean) in cells.iter().zip(&means) {
            c.logs.iter().zip(&c.seconds).for_each(|(y, t)| off[part(*t)] += c.weight.abs() * (y - mean));
        }
        for at in (0..PARTS).filter(|at| weights[*at] > 0.0) {
            moved[at] = off[at] / weights[at];
        }
    }
    let noise: [f64; PARTS] = sums(&cells, part, |c| {
        let mean = of_cell(c, &moved);
        let off = |(y, t): (&f64, &f64)| (y - moved[part(*t)] - mean).powi(2);
        let spread = c.logs.iter().zip(&c.seconds).map(off).sum::<f64>() / (c.logs.len() as f64 - 1.0);
        c.weight * c.weight * spread
    });
    let seen: Vec<usize> = (0..PARTS).filter(|at| weights[*at] > 0.0).collect();
    if seen.len() < LEAST_PARTS {
        return None;
    }
    let values: Vec<f64> = seen.iter().map(|at| moved[*at]).collect();
    let noise = mean(&seen.iter().map(|at| noise[*at] / (weights[*at] * weights[*at])).collect::<Vec<_>>());
    let whole = (variance(&values) - noise).max(0.0);
    let steps: Vec<f64> = values.windows(2).map(|w| (w[0] - w[1]).powi(2) / 2.0).collect();
    let steps = (mean(&steps) - noise).max(0.0);
    let alike = 1.0 - steps / whole;
    (whole > 0.0 && alike >= 1.0 - ALIKE).then(|| {
        let first: [f64; PARTS] = sums_of(&cells, |c| c.seconds.iter().take(1), part, |c| c.weight.abs());
        (whole * UNSEEN * UNSEEN * averaged(&first, alike), SLOW_DEGREES)
    })
}

/// Of the variance of one part of the time, what is left in a value that lies in several with these weights, when neighbours have this
/// much in common and others as many times less as they are apart.
fn averaged(weights: &[f64; PARTS], alike: f64) -> f64 {
    let all: f64 = weights.iter().sum();
    let of = |(a, b): (usize, usize)| weights[a] * weights[b] * alike.powi(a.abs_diff(b) as i32);
    (0..PARTS).flat_map(|a| (0..PARTS).map(move |b| (a, b))).map(of).sum::<f64>() / (all * all)
}

/// Over the measurements of all cells, by the part of the time.
fn sums(cells: &[&Cell], part: impl Fn(f64) -> usize, of: impl Fn(&Cell) -> f64) -> [f64; PARTS] {
    sums_of(cells, |c| c.seconds.iter().take(usize::MAX), part, of)
}

fn sums_of<'a>(
    cells: &[&'a Cell],
    measured: impl Fn(&'a Cell) -> Take<Iter<'a, f64>>,
    part: impl Fn(f64) -> usize,
    of: impl Fn(&Cell) -> f64,
) -> [f64; PARTS] {
    let mut sums = [0.0; PARTS];
    for cell in cells {
        let value = of(cell);
        measured(cell).for_each(|seconds| sums[part(*seconds)] += value);
    }
    sums
}

#[cfg(test)]
#[path = "repeats_tests.rs"]
mod tests;
