//! 95 % confidence intervals of patterns, types and b_eff_io, from the repetitions. The values themselves are those of the first
//! measurement and are not changed here.

use std::collections::HashMap;

use beff_statistics::bootstrap::Interval;
use beff_statistics::repetitions::{relative_interval, MeasuredCell, RelativeInterval, MIN_MEASUREMENTS};
use beff_statistics::student::two_sided_probability;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::sensitivity::ModelledValues;
use super::series::{by_partition, is_measured, log_rate, MeasuredSeries};
use super::{kinds, PartitionValue, TypeValue};
use crate::b_eff_io::config::{Release, RepeatPolicy};
use crate::b_eff_io::pattern_type::PatternType;
use crate::b_eff_io::records::{PatternRecord, RunResult};
use crate::frame::records::{AccessMethod, Warning};
use crate::frame::units::count;
use crate::frame::values::NULL_BACKEND;
use crate::frame::words::figure;

/// Confidence interval of a pattern that was measured more than once.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PatternInterval {
    /// Backend name.
    pub backend: String,
    /// Ranks of the partition.
    pub ranks: u64,
    /// Access method.
    pub access: AccessMethod,
    /// Pattern number, 0 to 42.
    pub pattern: u8,
    /// Number of measurements, including the first.
    pub measurements: u64,
    /// Lower bound, 1e6 bytes/s; None: fewer than three measurements.
    pub low: Option<f64>,
    /// Upper bound.
    pub high: Option<f64>,
    /// Geometric mean of the repetitions, 1e6 bytes/s.
    pub repetitions_mb_per_second: f64,
    /// Repetitions differ systematically from the first measurement: more than from each other, at a significance level of 1 % for the
    /// whole run.
    pub differs: bool,
}

/// Confidence interval of a type, or of b_eff_io by the definition of the run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ValueInterval {
    /// Backend name.
    pub backend: String,
    /// Ranks of the partition.
    pub ranks: u64,
    /// Access method; None: b_eff_io.
    pub access: Option<AccessMethod>,
    /// Pattern type, 0 to 4; None: b_eff_io.
    pub pattern_type: Option<PatternType>,
    /// Lower bound, 1e6 bytes/s.
    pub low: f64,
    /// Upper bound.
    pub high: f64,
    /// T from which its ends are expected to differ by at most a factor of two, if the scatter averages out with the square root of the time;
    /// None if they do. Reports show a wider interval as unknown.
    #[serde(default)]
    pub resolving_time_seconds: Option<f64>,
    /// Value from the repetitions alone, 1e6 bytes/s.
    pub repetitions_mb_per_second: f64,
    /// Share of the variance from patterns with fewer than three measurements, for which the pooled variance of their access method is
    /// used; 0 to 1.
    pub pooled_share: f64,
}

impl ValueInterval {
    /// The interval if it is narrow enough to be shown.
    #[must_use]
    pub fn resolved(&self) -> Option<Interval> {
        Some(Interval { low: self.low, high: self.high }).filter(Interval::is_resolved)
    }
}

/// T with which an interval is expected to be narrow enough to be shown; None if it is with `time_seconds`. The value is of one measurement,
/// whose scatter decreases with the square root of its time if it is independent from call to call.
fn resolving_time_seconds(interval: Interval, time_seconds: f64) -> Option<f64> {
    interval.resolving_factor().map(|factor| time_seconds * factor)
}

/// All confidence intervals.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RepetitionIntervals {
    /// Repeated patterns, by backend, partition and order of measurement.
    pub patterns: Vec<PatternInterval>,
    /// By backend, partition, access, type, as far as known.
    pub types: Vec<ValueInterval>,
    /// By backend and partition, as far as known.
    pub values: Vec<ValueInterval>,
}

impl RepetitionIntervals {
    /// Intervals of the patterns, by backend, ranks, access method and number.
    #[must_use]
    pub fn by_pattern(&self) -> HashMap<(&str, u64, AccessMethod, u8), &PatternInterval> {
        self.patterns.iter().map(|i| ((i.backend.as_str(), i.ranks, i.access, i.pattern), i)).collect()
    }

    /// Interval of a type.
    #[must_use]
    pub fn of_type(
        &self,
        backend: &str,
        ranks: u64,
        access: AccessMethod,
        pattern_type: PatternType,
    ) -> Option<&ValueInterval> {
        self.types.iter().find(|i| {
            i.backend == backend && i.ranks == ranks && i.access == Some(access) && i.pattern_type == Some(pattern_type)
        })
    }

    /// Interval of b_eff_io on a partition.
    #[must_use]
    pub fn value(&self, backend: &str, ranks: u64) -> Option<&ValueInterval> {
        self.values.iter().find(|i| i.backend == backend && i.ranks == ranks)
    }
}

pub(super) fn intervals(result: &RunResult, types: &[TypeValue], partitions: &[PartitionValue]) -> RepetitionIntervals {
    let mut found = RepetitionIntervals::default();
    if result.repetitions.is_empty() {
        return found;
    }
    let release = result.config.release;
    let all = by_partition(result);
    for partition in partitions.iter().filter(|p| p.backend != NULL_BACKEND) {
        let (backend, ranks) = (partition.backend.as_str(), partition.ranks);
        let Some(series) = all.get(&(backend, ranks)).and_then(MeasuredSeries::new) else { continue };
        pattern_intervals(&series, (backend, ranks), &mut found.patterns);
        // Long calls alone give no interval for types and values.
        if result.config.repeat == RepeatPolicy::Rounds {
            continue;
        }
        for value in types.iter().filter(|t| t.backend == backend && t.ranks == ranks && t.complete) {
            let Some(rate) = value.mb_per_second else { continue };
            let of =
                |w: &ModelledValues| w.types[value.access as usize].get(value.pattern_type.index()).copied().flatten();
            let Some((bound, _)) = series.interval(release, of) else { continue };
            let place = (Some(value.access), Some(value.pattern_type));
            found.types.push(scaled_interval((backend, ranks), place, rate, (&bound, result.config.time_seconds)));
        }
        if let (Some(value), Some((bound, _))) =
            (release_value(partition, release), series.interval(release, |w| w.value))
        {
            let of_run = (&bound, result.config.time_seconds);
            found.values.push(scaled_interval((backend, ranks), (None, None), value, of_run));
        }
    }
    found
}

fn release_value(partition: &PartitionValue, release: Release) -> Option<f64> {
    match release {
        Release::R0_5 => partition.values.release_0_5,
        Release::R1 => partition.values.release_1,
        Release::R2_1 => partition.values.release_2_1,
    }
}

fn scaled_interval(
    (backend, ranks): (&str, u64),
    (access, pattern_type): (Option<AccessMethod>, Option<PatternType>),
    value: f64,
    (bound, time_seconds): (&RelativeInterval, f64),
) -> ValueInterval {
    let interval = Interval { low: value * bound.low, high: value * bound.high };
    ValueInterval {
        backend: backend.to_owned(),
        ranks,
        access,
        pattern_type,
        low: interval.low,
        high: interval.high,
        resolving_time_seconds: resolving_time_seconds(interval, time_seconds),
        repetitions_mb_per_second: value * bound.repetition_factor,
        pooled_share: bound.pooled_share,
    }
}

/// Significance level of a run: probability that any pattern is reported as different by chance.
const SIGNIFICANCE: f64 = 0.01;

fn pattern_intervals(series: &MeasuredSeries, (backend, ranks): (&str, u64), found: &mut Vec<PatternInterval>) {
    let repeated = || {
        series.components.iter().zip(&series.cells).filter(|(part, cell)| part.pattern.is_some() && cell.logs.len() > 1)
    };
    let tried = repeated().count() as f64;
    let pools = [0, 1, 2].map(|group| pooled_squares(&series.cells, group));
    for (part, cell) in repeated() {
        let rate = cell.logs[0].exp() / 1e6;
        let bound = (cell.logs.len() >= MIN_MEASUREMENTS)
            .then(|| relative_interval(&[MeasuredCell { weight: 1.0, ..cell.clone() }]))
            .flatten();
        let repetitions = &cell.logs[1..];
        let n = repetitions.len() as f64;
        let mean = repetitions.iter().sum::<f64>() / n;
        found.push(PatternInterval {
            backend: backend.to_owned(),
            ranks,
            access: part.access,
            pattern: part.pattern.unwrap_or_default(),
            measurements: cell.logs.len() as u64,
            low: bound.map(|b| rate * b.low),
            high: bound.map(|b| rate * b.high),
            repetitions_mb_per_second: mean.exp() / 1e6,
            differs: differs(cell.logs[0], repetitions, pools[cell.group.min(2)], SIGNIFICANCE / tried),
        });
    }
}

/// Sum of squares of the repetitions of a group around their means, and its degrees of freedom.
fn pooled_squares(cells: &[MeasuredCell], group: usize) -> (f64, f64) {
    let mut sum = (0.0, 0.0);
    for repetitions in cells.iter().filter(|c| c.group == group && c.logs.len() > 2).map(|c| &c.logs[1..]) {
        let n = repetitions.len() as f64;
        let mean = repetitions.iter().sum::<f64>() / n;
        sum = (sum.0 + repetitions.iter().map(|v| (v - mean).powi(2)).sum::<f64>(), sum.1 + n - 1.0);
    }
    sum
}

/// Smaller differences are not reported, even if significant.
const MIN_DIFFERENCE: f64 = 1.25;

/// Compares one measurement with several by Student's t-test, with the pooled standard deviation of their group or their own if larger. One
/// repetition is not enough.
fn differs(first: f64, repetitions: &[f64], (squares, degrees): (f64, f64), chance: f64) -> bool {
    let n = repetitions.len() as f64;
    if n < 2.0 || degrees < 2.0 {
        return false;
    }
    let mean = repetitions.iter().sum::<f64>() / n;
    let own = repetitions.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / (n - 1.0);
    let error = ((squares / degrees).max(own) * (1.0 + 1.0 / n)).sqrt();
    let off = (first - mean).abs();
    error > 0.0 && off > MIN_DIFFERENCE.ln() && two_sided_probability(off / error, degrees) < chance
}

/// Returns what a run needs to choose the next repetition: for each partition the relative half-width of the interval of b_eff_io (infinity
/// if unknown), then for each type its three access methods with their contributions to the variance. Of several backends the widest
/// interval, and the sum.
#[must_use]
pub fn repetition_needs(result: &RunResult) -> Vec<f64> {
    let records = by_partition(result);
    let mut all = Vec::with_capacity(16 * result.partitions.len());
    for partition in &result.partitions {
        let (mut widest, mut needs) = (0.0_f64, [0.0; 3 * PatternType::COUNT]);
        for backend in result.config.backends.iter().filter(|b| *b != NULL_BACKEND) {
            // A backend without measurements has no interval.
            let Some(own) = records.get(&(backend.as_str(), partition.ranks)).filter(|own| !own.patterns.is_empty())
            else {
                continue;
            };
            let series = MeasuredSeries::new(own);
            let found = series.as_ref().and_then(|p| Some((p, p.interval(result.config.release, |w| w.value)?)));
            let Some((series, (bound, weights))) = found else {
                widest = f64::INFINITY;
                continue;
            };
            widest = widest.max(bound.half_width());
            for ((part, cell), weight) in series.components.iter().zip(&series.cells).zip(&weights) {
                let mean = cell.logs.iter().sum::<f64>() / cell.logs.len() as f64;
                let squares = cell.logs.iter().map(|v| (v - mean).powi(2)).sum::<f64>();
                let variance = squares / (cell.logs.len() as f64 - 1.0).max(1.0);
                needs[3 * part.pattern_type.index() + part.access as usize] += weight * weight * variance;
            }
        }
        all.push(widest);
        all.extend(needs);
    }
    all
}

/// Warning for patterns whose repetitions differ systematically from the first measurement.
pub(super) fn repeats_differ(backend: &str, known: &RepetitionIntervals, result: &RunResult) -> Option<Warning> {
    let own: Vec<&PatternInterval> = known.patterns.iter().filter(|i| i.backend == backend).collect();
    let first = |i: &PatternInterval| {
        let is_it = |p: &&PatternRecord| {
            p.backend == i.backend && p.ranks == i.ranks && p.access == i.access && p.pattern == i.pattern
        };
        result.patterns.iter().find(is_it).map_or(f64::NAN, |p| log_rate(p).exp() / 1e6)
    };
    let factor = |i: &&&PatternInterval| (i.repetitions_mb_per_second / first(i)).ln().abs();
    let differing: Vec<&PatternInterval> = own.iter().copied().filter(|i| i.differs).collect();
    let worst = differing.iter().max_by(|a, b| factor(a).total_cmp(&factor(b)))?;
    let (patterns, of) = (differing.len() as u64, own.len() as u64);
    let (first, then) = (first(worst), worst.repetitions_mb_per_second);
    let warning =
        kinds::REPEATS_DIFFER.warning().for_backend(backend).with_figure("patterns", patterns).with_figure("of", of);
    let warning = warning
        .with_figure("pattern", worst.pattern)
        .with_figure("access", worst.access)
        .with_figure("ranks", worst.ranks);
    Some(warning.with_figure("first_mb_per_second", first).with_figure("repetitions_mb_per_second", then).with_text(
        format!("repetitions of {} differ systematically from the first measurement", count(patterns, "pattern")),
        format!(
            "{backend}: repetitions of {patterns} of {} that were repeated differ systematically from the first measurement; \
             the largest difference, {} and then {} MB/s, in pattern {}, {} on {}.",
            count(of, "pattern"),
            figure(first),
            figure(then),
            worst.pattern,
            worst.access.name(),
            count(worst.ranks, "rank")
        ),
    ))
}

/// Warning that the interval is wider than `--until`.
pub(super) fn interval_too_wide(
    backend: &str,
    known: &RepetitionIntervals,
    result: &RunResult,
    partitions: &[PartitionValue],
) -> Option<Warning> {
    let wanted_percent = result.config.until_percent.filter(|_| result.config.repeat == RepeatPolicy::Auto)?;
    let release = result.config.release;
    let reached = |p: &PartitionValue| {
        let (value, interval) = (release_value(p, release)?, known.value(backend, p.ranks)?);
        Some(100.0 * (interval.high / value - 1.0).max(1.0 - interval.low / value))
    };
    // A backend without measurements has no interval.
    let is_measured =
        |ranks: u64| result.patterns.iter().any(|p| p.backend == backend && p.ranks == ranks && is_measured(p));
    let own = || partitions.iter().filter(|p| p.backend == backend && is_measured(p.ranks));
    own().next()?;
    let reached: Vec<Option<f64>> = own().map(reached).collect();
    let widest = reached.iter().try_fold(0.0_f64, |widest, percent| Some(widest.max((*percent)?)));
    if widest.is_some_and(|widest| widest <= wanted_percent) {
        return None;
    }
    let reaches = widest.map_or_else(|| "is not known".to_owned(), |percent| format!("is +-{percent:.1} %"));
    let cause = match widest {
        Some(_) => format!(
            "{backend}: the confidence interval of b_eff_io {reaches}, not {wanted_percent} % as requested by --until."
        ),
        None => format!(
            "{backend}: the confidence interval of b_eff_io {reaches}, so the {wanted_percent} % of --until are not met: too \
             little time for repetitions of all access methods."
        ),
    };
    let warning = kinds::NOT_NARROW.warning().for_backend(backend).with_figure("requested_percent", wanted_percent);
    Some(
        warning.with_figure("half_width_percent", widest).with_text(
            format!("the interval of b_eff_io {reaches}, not within the {wanted_percent} % of --until"),
            cause,
        ),
    )
}

#[cfg(test)]
#[path = "intervals_tests.rs"]
mod tests;
