//! 95 % intervals of patterns, types and b_eff_io, from the repeats in the time that was left. The values themselves are those of the
//! first pass; nothing here changes them.

use std::collections::HashMap;

use beff_statistics::repeats::{bound, Bound, Cell, MIN_MEASURED};
use beff_statistics::student::two_sided;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::influence::Worth;
use super::played::{by_partition, is_measured, log_rate, Played};
use super::{kinds, PartitionValue, TypeValue};
use crate::b_eff_io::config::{Release, RepeatPolicy};
use crate::b_eff_io::pattern_type::PatternType;
use crate::b_eff_io::records::{PatternRecord, RunResult};
use crate::frame::records::{Access, Warning};
use crate::frame::units::count;
use crate::frame::values::NULL_BACKEND;
use crate::frame::words::figure;

/// A pattern measured more than once.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PatternInterval {
    /// Backend name.
    pub backend: String,
    /// Ranks of the partition.
    pub ranks: u64,
    /// Access method.
    pub access: Access,
    /// Pattern number, 0 to 42.
    pub pattern: u8,
    /// Measurements, the first pass included.
    pub measured: u64,
    /// Lower end, 1e6 bytes/s; None: fewer than three measurements.
    pub low: Option<f64>,
    /// Upper end.
    pub high: Option<f64>,
    /// Geometric mean of the repeats, 1e6 bytes/s.
    pub repeats_mb_per_second: f64,
    /// The repeats are farther from the first pass than they are from each other: chance alone would do that in one of a hundred runs.
    pub differs: bool,
}

/// A type, or b_eff_io by the definition of the run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ValueInterval {
    /// Backend name.
    pub backend: String,
    /// Ranks of the partition.
    pub ranks: u64,
    /// Access method; None: b_eff_io.
    pub access: Option<Access>,
    /// Pattern type, 0 to 4; None: b_eff_io.
    pub pattern_type: Option<PatternType>,
    /// Lower end, 1e6 bytes/s.
    pub low: f64,
    /// Upper end.
    pub high: f64,
    /// What the repeats alone would give, 1e6 bytes/s.
    pub repeats_mb_per_second: f64,
    /// Share of the variance from patterns with fewer than three measurements, which have the spread of others of their access method; 0 to 1.
    pub pooled_share: f64,
}

/// All that is known.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RepeatedValues {
    /// By backend, partition and order of measurement; those that were measured again.
    pub patterns: Vec<PatternInterval>,
    /// By backend, partition, access, type; those that are known.
    pub types: Vec<ValueInterval>,
    /// By backend and partition; those that are known.
    pub values: Vec<ValueInterval>,
}

impl RepeatedValues {
    /// Those of the patterns, by backend, ranks, access method and number.
    #[must_use]
    pub fn by_pattern(&self) -> HashMap<(&str, u64, Access, u8), &PatternInterval> {
        self.patterns.iter().map(|i| ((i.backend.as_str(), i.ranks, i.access, i.pattern), i)).collect()
    }

    /// Of a type.
    #[must_use]
    pub fn of_type(
        &self,
        backend: &str,
        ranks: u64,
        access: Access,
        pattern_type: PatternType,
    ) -> Option<&ValueInterval> {
        self.types.iter().find(|i| {
            i.backend == backend && i.ranks == ranks && i.access == Some(access) && i.pattern_type == Some(pattern_type)
        })
    }

    /// Of b_eff_io on a partition.
    #[must_use]
    pub fn value(&self, backend: &str, ranks: u64) -> Option<&ValueInterval> {
        self.values.iter().find(|i| i.backend == backend && i.ranks == ranks)
    }
}

/// All intervals of a result.
pub(super) fn intervals(result: &RunResult, types: &[TypeValue], partitions: &[PartitionValue]) -> RepeatedValues {
    let mut found = RepeatedValues::default();
    if result.repeats.is_empty() {
        return found;
    }
    let release = result.config.release;
    let all = by_partition(result);
    for partition in partitions.iter().filter(|p| p.backend != NULL_BACKEND) {
        let (backend, ranks) = (partition.backend.as_str(), partition.ranks);
        let Some(played) = all.get(&(backend, ranks)).and_then(Played::new) else { continue };
        patterns(&played, (backend, ranks), &mut found.patterns);
        // Of the long calls alone nothing follows for the others.
        if result.config.repeat == RepeatPolicy::Rounds {
            continue;
        }
        for value in types.iter().filter(|t| t.backend == backend && t.ranks == ranks && t.complete) {
            let Some(rate) = value.mb_per_second else { continue };
            let of = |w: &Worth| w.types[value.access as usize].get(value.pattern_type.index()).copied().flatten();
            let Some((bound, _)) = played.bound(release, of) else { continue };
            let place = (Some(value.access), Some(value.pattern_type));
            found.types.push(interval((backend, ranks), place, rate, &bound));
        }
        if let (Some(value), Some((bound, _))) = (of_release(partition, release), played.bound(release, |w| w.value)) {
            found.values.push(interval((backend, ranks), (None, None), value, &bound));
        }
    }
    found
}

fn of_release(partition: &PartitionValue, release: Release) -> Option<f64> {
    match release {
        Release::R0_5 => partition.values.release_0_5,
        Release::R1 => partition.values.release_1,
        Release::R2_1 => partition.values.release_2_1,
    }
}

fn interval(
    (backend, ranks): (&str, u64),
    (access, pattern_type): (Option<Access>, Option<PatternType>),
    value: f64,
    bound: &Bound,
) -> ValueInterval {
    ValueInterval {
        backend: backend.to_owned(),
        ranks,
        access,
        pattern_type,
        low: value * bound.low,
        high: value * bound.high,
        repeats_mb_per_second: value * bound.repeats,
        pooled_share: bound.pooled_share,
    }
}

/// Of a hundred runs one may call a pattern different that is not.
const CHANCE: f64 = 0.01;

fn patterns(played: &Played, (backend, ranks): (&str, u64), found: &mut Vec<PatternInterval>) {
    let repeated =
        || played.parts.iter().zip(&played.cells).filter(|(part, cell)| part.pattern.is_some() && cell.logs.len() > 1);
    let tried = repeated().count() as f64;
    let pools = [0, 1, 2].map(|group| pool(&played.cells, group));
    for (part, cell) in repeated() {
        let rate = cell.logs[0].exp() / 1e6;
        let bound = (cell.logs.len() >= MIN_MEASURED).then(|| bound(&[Cell { weight: 1.0, ..cell.clone() }])).flatten();
        let repeats = &cell.logs[1..];
        let n = repeats.len() as f64;
        let mean = repeats.iter().sum::<f64>() / n;
        found.push(PatternInterval {
            backend: backend.to_owned(),
            ranks,
            access: part.access,
            pattern: part.pattern.unwrap_or_default(),
            measured: cell.logs.len() as u64,
            low: bound.map(|b| rate * b.low),
            high: bound.map(|b| rate * b.high),
            repeats_mb_per_second: mean.exp() / 1e6,
            differs: differs(cell.logs[0], repeats, pools[cell.group.min(2)], CHANCE / tried),
        });
    }
}

/// Squares of the repeats of a group around their means, and their degrees of freedom.
fn pool(cells: &[Cell], group: usize) -> (f64, f64) {
    let mut sum = (0.0, 0.0);
    for repeats in cells.iter().filter(|c| c.group == group && c.logs.len() > 2).map(|c| &c.logs[1..]) {
        let n = repeats.len() as f64;
        let mean = repeats.iter().sum::<f64>() / n;
        sum = (sum.0 + repeats.iter().map(|v| (v - mean).powi(2)).sum::<f64>(), sum.1 + n - 1.0);
    }
    sum
}

/// Less is nothing to be warned of, however sure it is.
const LEAST_DIFFERENCE: f64 = 1.25;

/// One against several: Student's test with the spread of their group, or with their own if that is larger. Of one repeat nothing can be said.
fn differs(first: f64, repeats: &[f64], (squares, degrees): (f64, f64), chance: f64) -> bool {
    let n = repeats.len() as f64;
    if n < 2.0 || degrees < 2.0 {
        return false;
    }
    let mean = repeats.iter().sum::<f64>() / n;
    let own = repeats.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / (n - 1.0);
    let error = ((squares / degrees).max(own) * (1.0 + 1.0 / n)).sqrt();
    let off = (first - mean).abs();
    error > 0.0 && off > LEAST_DIFFERENCE.ln() && two_sided(off / error, degrees) < chance
}

/// What a run asks for to choose what it measures again: for each partition how far the farther end of the interval of b_eff_io is from
/// it, as a share (infinity: not known), then for each type its three access methods with their part of the variance. Of several backends the
/// widest interval, and the sum.
#[must_use]
pub fn judgement(result: &RunResult) -> Vec<f64> {
    let records = by_partition(result);
    let mut all = Vec::with_capacity(16 * result.partitions.len());
    for partition in &result.partitions {
        let (mut widest, mut needs) = (0.0_f64, [0.0; 3 * PatternType::COUNT]);
        for backend in result.config.backends.iter().filter(|b| *b != NULL_BACKEND) {
            // One that was left out has nothing to be sure of.
            let Some(own) = records.get(&(backend.as_str(), partition.ranks)).filter(|own| !own.patterns.is_empty())
            else {
                continue;
            };
            let played = Played::new(own);
            let found = played.as_ref().and_then(|p| Some((p, p.bound(result.config.release, |w| w.value)?)));
            let Some((played, (bound, weights))) = found else {
                widest = f64::INFINITY;
                continue;
            };
            widest = widest.max(bound.half_width());
            for ((part, cell), weight) in played.parts.iter().zip(&played.cells).zip(&weights) {
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

/// Patterns that were another thing the first time than later.
pub(super) fn repeats_differ(backend: &str, known: &RepeatedValues, result: &RunResult) -> Option<Warning> {
    let own: Vec<&PatternInterval> = known.patterns.iter().filter(|i| i.backend == backend).collect();
    let first = |i: &PatternInterval| {
        let is_it = |p: &&PatternRecord| {
            p.backend == i.backend && p.ranks == i.ranks && p.access == i.access && p.pattern == i.pattern
        };
        result.patterns.iter().find(is_it).map_or(f64::NAN, |p| log_rate(p).exp() / 1e6)
    };
    let factor = |i: &&&PatternInterval| (i.repeats_mb_per_second / first(i)).ln().abs();
    let differing: Vec<&PatternInterval> = own.iter().copied().filter(|i| i.differs).collect();
    let worst = differing.iter().max_by(|a, b| factor(a).total_cmp(&factor(b)))?;
    let (patterns, of) = (differing.len() as u64, own.len() as u64);
    let (first, then) = (first(worst), worst.repeats_mb_per_second);
    let warning = kinds::REPEATS_DIFFER.warning().of(backend).figure("patterns", patterns).figure("of", of);
    let warning = warning.figure("pattern", worst.pattern).figure("access", worst.access).figure("ranks", worst.ranks);
    Some(warning.figure("first_mb_per_second", first).figure("repeats_mb_per_second", then).told(
        format!("{} measured again were each time another thing than the first time", count(patterns, "pattern")),
        format!(
            "{backend}: {patterns} of {} that were measured again were another thing the first time than all later times; the \
             farthest, {} and then {} MB/s, in pattern {}, {} on {}.",
            count(of, "pattern"),
            figure(first),
            figure(then),
            worst.pattern,
            worst.access.name(),
            count(worst.ranks, "rank")
        ),
    ))
}

/// `--until` was not reached.
pub(super) fn not_narrow(
    backend: &str,
    known: &RepeatedValues,
    result: &RunResult,
    partitions: &[PartitionValue],
) -> Option<Warning> {
    let wanted_percent = result.config.until_percent.filter(|_| result.config.repeat == RepeatPolicy::Auto)?;
    let release = result.config.release;
    let reached = |p: &PartitionValue| {
        let (value, interval) = (of_release(p, release)?, known.value(backend, p.ranks)?);
        Some(100.0 * (interval.high / value - 1.0).max(1.0 - interval.low / value))
    };
    // A backend that was left out has nothing to be sure of.
    let is_measured =
        |ranks: u64| result.patterns.iter().any(|p| p.backend == backend && p.ranks == ranks && is_measured(p));
    let own = || partitions.iter().filter(|p| p.backend == backend && is_measured(p.ranks));
    own().next()?;
    let reached: Vec<Option<f64>> = own().map(reached).collect();
    let widest = reached.iter().try_fold(0.0_f64, |widest, percent| Some(widest.max((*percent)?)));
    if widest.is_some_and(|widest| widest <= wanted_percent) {
        return None;
    }
    let reaches = widest.map_or_else(|| "is not known".to_owned(), |percent| format!("reaches {percent:.1} %"));
    let cause = match widest {
        Some(_) => format!(
            "{backend}: the interval of b_eff_io {reaches} from it, not {wanted_percent} % as asked by --until."
        ),
        None => format!(
            "{backend}: the interval of b_eff_io {reaches}, so it is not as narrow as the {wanted_percent} % of --until: no time \
             was left to measure all access methods again."
        ),
    };
    let warning = kinds::NOT_NARROW.warning().of(backend).figure("wanted_percent", wanted_percent);
    Some(
        warning
            .figure("reached_percent", widest)
            .told(format!("the interval of b_eff_io {reaches}, not within the {wanted_percent} % of --until"), cause),
    )
}

#[cfg(test)]
#[path = "intervals_tests.rs"]
mod tests;
