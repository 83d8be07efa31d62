//! Comparison of two sides of runs: differing facts, ratios of numbers, and their statistical significance.
//!
//! Numbers are compared as speeds, by their logarithms, so that the factors 2 and 1/2 are equally far from 1. The confidence interval is
//! Student's with the pooled variance of both sides: equal runs have the same variance, and one run on a side is one more sample
//! of it. Welch's interval, with separate variances, has two to four degrees of freedom with three runs per side; with a hundred
//! numbers at once it would detect nothing below a factor of ten.
//!
//! The numbers of one level are tested together and share one family-wise error probability, that any equal number is called different
//! (Holm, Scandinavian Journal of Statistics 6, 1979: hypotheses already rejected no longer count). The intervals have the
//! level at which the procedure stops, so a number is called different if and only if its interval excludes 1.
//!
//! With one run on each side there is no such interval. Its rounds, if any, show the variation within a run, not that from run to run: a
//! difference below the noise stated for the number is *not decided* for any rounds.

use std::collections::{HashMap, HashSet};

use beff_statistics::bootstrap::MIN_ROUNDS;
use beff_statistics::student::{two_sided_probability, two_sided_quantile};
use serde::Serialize;

use super::causes::{causes, pool_contexts, ChangeCause};
use super::comparable::{
    noise_for_level, ComparableRun, Fact, FactKind, MeasurementContext, Quantity, QuantityLevel, QuantityUnit,
};
use super::doubt::Doubt;

/// Family-wise error probability of a level: together 1 %, so that of 20 comparisons of equal runs two or more have anything called
/// different in 2 of 100 cases.
fn error_probability(level: QuantityLevel) -> f64 {
    match level {
        QuantityLevel::Value => 0.005,
        QuantityLevel::Group | QuantityLevel::Detail => 0.0025,
    }
}

/// An interval that contains 1 and lies within this factor on both sides is called equal.
pub const EQUALITY_FACTOR: f64 = 1.05;

/// Logarithms closer than this differ only by the rounding of sums.
const LOG_TOLERANCE: f64 = 1e-9;

/// A fact that differs on the second side.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FactDifference {
    /// Name of the fact.
    pub name: String,
    /// Meaning of the difference.
    pub kind: FactKind,
    /// Value on the first side; None if it is missing.
    pub from: Option<String>,
    /// Value on the second side.
    pub to: Option<String>,
}

/// Basis of an interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum IntervalBasis {
    /// Several runs on each side.
    Runs,
    /// One run on one side, several on the other.
    OneRun,
    /// Rounds within one run on each side.
    Rounds,
    /// One run on each side, without rounds: there is no interval.
    Nothing,
}

/// Verdict on a ratio.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ComparisonVerdict {
    /// The same number, or a narrow interval that contains 1.
    Equal,
    /// The second side is slower.
    Slower,
    /// The second side is faster.
    Faster,
    /// Neither equal nor different.
    NotDecided,
}

impl ComparisonVerdict {
    /// True for slower and faster.
    #[must_use]
    pub fn is_different(self) -> bool {
        matches!(self, Self::Slower | Self::Faster)
    }
}

/// One number on both sides.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ComparedQuantity {
    /// Aggregation level.
    pub level: QuantityLevel,
    /// Backend of each side.
    pub backends: [String; 2],
    /// Ranks of the partition of each side; 0 if there is only one partition.
    pub ranks: [u64; 2],
    /// Name, or row of a table.
    pub row: String,
    /// Column.
    pub column: String,
    /// Unit.
    pub unit: QuantityUnit,
    /// Geometric mean over the runs of each side.
    pub values: [f64; 2],
    /// Runs of each side with this number.
    pub runs: [usize; 2],
    /// Speed of the second side divided by that of the first; of times the first divided by the second. 1 if both values are 0; infinite
    /// (null in JSON) if only the divisor is 0.
    pub ratio: f64,
    /// Confidence interval of the ratio, simultaneous for its level; None if unknown.
    pub interval: Option<[f64; 2]>,
    /// Basis of the interval.
    pub basis: IntervalBasis,
    /// Factor below which a difference of one run on each side is not decided; None with more runs.
    pub noise: Option<f64>,
    /// Verdict.
    pub call: ComparisonVerdict,
    /// Possible causes of the difference.
    pub causes: Vec<ChangeCause>,
    /// A single line based on few calls, with one run per side: its variation is unknown.
    #[serde(skip)]
    pub has_few_calls: bool,
    /// Verdict where a run has the value 0, of which there is no interval.
    #[serde(skip)]
    pub verdict_of_zeros: Option<ComparisonVerdict>,
}

/// A number that only one side has.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct MissingQuantity {
    /// Side that has it: 0 or 1.
    pub side: usize,
    /// Aggregation level.
    pub level: QuantityLevel,
    /// Name.
    pub name: String,
}

/// Evidence of one run that the comparison decides nothing.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SideDoubt {
    /// Side of the run: 0 or 1.
    pub side: usize,
    /// The run, from 0.
    pub run: usize,
    /// The evidence.
    #[serde(flatten)]
    pub doubt: Doubt,
}

/// Comparison of the second side with the first.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Comparison {
    /// Runs of each side.
    pub runs: [usize; 2],
    /// Differing facts, those of the definition first.
    pub differences: Vec<FactDifference>,
    /// Names of facts in which the runs of one side differ among themselves.
    pub mixed: [Vec<String>; 2],
    /// True if all runs of one side started before those of the other: a drift of the machine would appear as a difference.
    pub one_after_the_other: bool,
    /// Evidence of the runs that the comparison decides nothing; empty if there is none.
    pub inconclusive: Vec<SideDoubt>,
    /// True for a side with a run whose data was wrong.
    pub corrupt: [bool; 2],
    /// Numbers of both sides, in the order of the first.
    pub compared: Vec<ComparedQuantity>,
    /// Numbers of one side only.
    pub missing: Vec<MissingQuantity>,
}

impl Comparison {
    /// Differing facts of this kind.
    pub fn differences_of_kind(&self, kind: FactKind) -> impl Iterator<Item = &FactDifference> {
        self.differences.iter().filter(move |d| d.kind == kind)
    }

    /// True if the definition is the same on both sides.
    #[must_use]
    pub fn is_comparable(&self) -> bool {
        self.differences_of_kind(FactKind::Definition).next().is_none()
    }

    /// Numbers of a level.
    pub fn at_level(&self, level: QuantityLevel) -> impl Iterator<Item = &ComparedQuantity> {
        self.compared.iter().filter(move |c| c.level == level)
    }

    /// True if it has one run on each side.
    #[must_use]
    pub fn has_single_runs(&self) -> bool {
        self.runs == [1, 1]
    }
}

/// Names of the facts of a kind in which the runs of one side differ.
#[must_use]
pub fn inconsistent_facts(runs: &[ComparableRun], kind: FactKind) -> Vec<String> {
    let Some((first, others)) = runs.split_first() else { return Vec::new() };
    let mut names: Vec<String> = Vec::new();
    for other in others {
        let found = fact_differences(&first.facts_of(kind), &other.facts_of(kind));
        names.extend(found.into_iter().map(|d| d.name));
    }
    let mut seen = HashSet::new();
    names.retain(|name| seen.insert(name.clone()));
    names
}

/// Compares the second side with the first. `noise` replaces the noise of the quantities. `others` is the number of sides compared with the
/// first: they share the error probability.
#[must_use]
pub fn compare(sides: [&[ComparableRun]; 2], noise: Option<f64>, others: usize) -> Comparison {
    let plain = IgnoredKeyParts::of(sides);
    let pools = sides.map(|runs| pools(runs, plain));
    let found: HashMap<&QuantityKey, usize> = pools[1].iter().enumerate().map(|(at, pool)| (&pool.key, at)).collect();
    let pairs: Vec<[&QuantityPool<'_>; 2]> =
        pools[0].iter().filter_map(|a| found.get(&a.key).map(|at| [a, &pools[1][*at]])).collect();
    let mut compared: Vec<(ComparedQuantity, Option<DifferenceTest>)> =
        pairs.iter().map(|pair| compare_pools(*pair, noise)).collect();
    for level in [QuantityLevel::Value, QuantityLevel::Group, QuantityLevel::Detail] {
        decide_together(
            compared.iter_mut().filter(|(c, _)| c.level == level),
            error_probability(level) / others.max(1) as f64,
        );
    }
    let first = |runs: &[ComparableRun]| runs.first().map(|run| run.facts.clone()).unwrap_or_default();
    let mut differences = fact_differences(&first(sides[0]), &first(sides[1]));
    differences.sort_by_key(|d| d.kind != FactKind::Definition);
    Comparison {
        runs: sides.map(<[ComparableRun]>::len),
        differences,
        mixed: sides.map(|runs| inconsistent_facts(runs, FactKind::SetUp)),
        one_after_the_other: are_sequential(sides),
        inconclusive: side_doubts(sides),
        corrupt: sides.map(|runs| runs.iter().any(|run| run.is_corrupt)),
        compared: compared.into_iter().map(|(compared, _)| compared).collect(),
        missing: missing_quantities(&pools),
    }
}

/// Where a side has several runs, their scatter replaces the intervals within them.
fn side_doubts(sides: [&[ComparableRun]; 2]) -> Vec<SideDoubt> {
    let is_single = sides.iter().all(|runs| runs.len() == 1);
    let of_run = |(side, run, doubts): (usize, usize, &[Doubt])| {
        let counted = doubts.iter().filter(|doubt| is_single || !doubt.is_of_single_runs());
        counted.map(|doubt| SideDoubt { side, run, doubt: doubt.clone() }).collect::<Vec<_>>()
    };
    let runs = |side: usize| sides[side].iter().enumerate().map(move |(at, run)| (side, at, run.doubts.as_slice()));
    runs(0).chain(runs(1)).flat_map(of_run).collect()
}

impl ComparableRun {
    fn facts_of(&self, kind: FactKind) -> Vec<Fact> {
        self.facts.iter().filter(|fact| fact.kind == kind).cloned().collect()
    }
}

pub(super) fn fact_differences(from: &[Fact], to: &[Fact]) -> Vec<FactDifference> {
    let value = |facts: &[Fact], name: &str| facts.iter().find(|fact| fact.name == name).map(|fact| fact.value.clone());
    let mut names: Vec<(&String, FactKind)> = Vec::new();
    for fact in from.iter().chain(to) {
        if !names.iter().any(|(name, _)| *name == &fact.name) {
            names.push((&fact.name, fact.kind));
        }
    }
    let difference = |(name, kind): (&String, FactKind)| {
        let (from, to) = (value(from, name), value(to, name));
        (from != to).then(|| FactDifference { name: name.clone(), kind, from, to })
    };
    names.into_iter().filter_map(difference).collect()
}

/// Compares start times as strings: the lexicographic order of RFC 3339 times in UTC is chronological.
fn are_sequential(sides: [&[ComparableRun]; 2]) -> bool {
    let ends = sides.map(|runs| {
        let starts = || runs.iter().map(|run| run.started_utc.as_str());
        starts().min().zip(starts().max())
    });
    let [Some((first_a, last_a)), Some((first_b, last_b))] = ends else { return false };
    sides.iter().any(|runs| runs.len() > 1) && (last_a < first_b || last_b < first_a)
}

/// Parts of the key to ignore: with one backend (or partition) on each side, the backends (partitions) themselves are compared.
#[derive(Clone, Copy, Debug)]
struct IgnoredKeyParts {
    backend: bool,
    ranks: bool,
}

impl IgnoredKeyParts {
    fn of(sides: [&[ComparableRun]; 2]) -> Self {
        let all = |runs: &[ComparableRun]| {
            let quantities = || runs.iter().flat_map(|run| &run.quantities);
            let backends: HashSet<&str> = quantities().map(|q| q.backend.as_str()).collect();
            let ranks: HashSet<u64> = quantities().map(|q| q.ranks).collect();
            [backends.len() <= 1, ranks.len() <= 1]
        };
        let [a, b] = sides.map(all);
        Self { backend: a[0] && b[0], ranks: a[1] && b[1] }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct QuantityKey {
    level: QuantityLevel,
    backend: String,
    ranks: u64,
    row: String,
    column: String,
}

impl QuantityKey {
    fn of(q: &Quantity, plain: IgnoredKeyParts) -> Self {
        Self {
            level: q.level,
            backend: if plain.backend { String::new() } else { q.backend.clone() },
            ranks: if plain.ranks { 0 } else { q.ranks },
            row: q.row.clone(),
            column: q.column.clone(),
        }
    }

    fn name(&self) -> String {
        let backend = Some(self.backend.clone()).filter(|backend| !backend.is_empty());
        let ranks = (self.ranks > 0).then(|| format!("{} ranks", self.ranks));
        let column = Some(self.column.clone()).filter(|column| !column.is_empty());
        let parts = [backend, ranks, Some(self.row.clone()), column];
        parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
    }
}

/// One number over the runs of a side.
struct QuantityPool<'a> {
    key: QuantityKey,
    quantities: Vec<&'a Quantity>,
    /// Logarithms of the speeds, one for each run; infinite for the value 0.
    logs: Vec<f64>,
}

impl QuantityPool<'_> {
    fn mean(&self) -> f64 {
        self.logs.iter().sum::<f64>() / self.logs.len() as f64
    }

    fn zeros(&self) -> usize {
        self.logs.iter().filter(|log| log.is_infinite()).count()
    }

    fn context(&self) -> MeasurementContext {
        pool_contexts(&self.quantities.iter().map(|q| &q.context).collect::<Vec<_>>())
    }

    fn rounds(&self) -> Vec<f64> {
        let logs = |q: &&Quantity| q.rounds.iter().filter_map(|v| q.unit.log_speed(*v)).collect();
        self.quantities.first().map(logs).unwrap_or_default()
    }
}

/// Pools in order of first occurrence. Of quantities with the same name in one run the first is used.
fn pools(runs: &[ComparableRun], plain: IgnoredKeyParts) -> Vec<QuantityPool<'_>> {
    let mut found: Vec<QuantityPool<'_>> = Vec::new();
    let mut places: HashMap<QuantityKey, usize> = HashMap::new();
    for run in runs {
        let mut seen: HashSet<usize> = HashSet::new();
        for quantity in &run.quantities {
            let Some(log) = quantity.unit.log_speed(quantity.value) else { continue };
            let key = QuantityKey::of(quantity, plain);
            let at = *places.entry(key.clone()).or_insert(found.len());
            if at == found.len() {
                found.push(QuantityPool { key, quantities: Vec::new(), logs: Vec::new() });
            }
            if seen.insert(at) && found[at].quantities.first().is_none_or(|first| first.unit == quantity.unit) {
                found[at].quantities.push(quantity);
                found[at].logs.push(log);
            }
        }
    }
    found
}

fn missing_quantities(pools: &[Vec<QuantityPool<'_>>; 2]) -> Vec<MissingQuantity> {
    let keys = |side: usize| pools[side].iter().map(|pool| &pool.key).collect::<HashSet<&QuantityKey>>();
    let of = |side: usize| {
        let there = keys(1 - side);
        let absent = pools[side].iter().filter(move |pool| !there.contains(&pool.key));
        absent.map(move |pool| MissingQuantity { side, level: pool.key.level, name: pool.key.name() })
    };
    of(0).chain(of(1)).collect()
}

#[derive(Clone, Copy, Debug)]
struct DifferenceTest {
    standard_error: f64,
    degrees: f64,
    p_value: f64,
}

impl DifferenceTest {
    fn new(difference: f64, standard_error: f64, degrees: f64) -> Self {
        // Runs without any variance: any difference is significant.
        let t = if standard_error > 0.0 { difference / standard_error } else { f64::INFINITY };
        let p_value = if difference.abs() <= LOG_TOLERANCE { 1.0 } else { two_sided_probability(t, degrees) };
        Self { standard_error, degrees, p_value }
    }

    /// Two sets of logarithms with the same variance, one of which may have a single element; None if both have, or with a value of 0.
    fn of(a: &[f64], b: &[f64], difference: f64) -> Option<Self> {
        if a.iter().chain(b).any(|log| log.is_infinite()) {
            return None;
        }
        let [of_a, of_b] = [a.len() as f64, b.len() as f64];
        let degrees = of_a + of_b - 2.0;
        let variance = (sum_of_squares(a) + sum_of_squares(b)) / degrees;
        (degrees > 0.0).then(|| Self::new(difference, (variance * (1.0 / of_a + 1.0 / of_b)).sqrt(), degrees))
    }
}

fn sum_of_squares(logs: &[f64]) -> f64 {
    let mean = logs.iter().sum::<f64>() / logs.len() as f64;
    logs.iter().map(|log| (log - mean).powi(2)).sum()
}

/// A side whose runs all have the value 0 differs from one without any 0, beyond all noise; if only some have it, nothing is decided.
fn verdict_of_zeros([a, b]: [&QuantityPool<'_>; 2], difference: f64) -> Option<ComparisonVerdict> {
    let sides = [a, b].map(|pool| (pool.zeros(), pool.logs.len()));
    if sides.iter().all(|(zeros, _)| *zeros == 0) {
        return None;
    }
    let is_mixed = sides.iter().any(|(zeros, runs)| *zeros > 0 && zeros < runs);
    Some(match difference {
        _ if is_mixed => ComparisonVerdict::NotDecided,
        d if d < 0.0 => ComparisonVerdict::Slower,
        d if d > 0.0 => ComparisonVerdict::Faster,
        _ => ComparisonVerdict::Equal,
    })
}

fn compare_pools([a, b]: [&QuantityPool<'_>; 2], noise: Option<f64>) -> (ComparedQuantity, Option<DifferenceTest>) {
    let (first, second) = (a.quantities[0], b.quantities[0]);
    // The difference of two infinite logarithms is not a number.
    let difference = if a.mean() == b.mean() { 0.0 } else { b.mean() - a.mean() };
    let runs = [a.logs.len(), b.logs.len()];
    let (basis, test) = match runs {
        [1, 1] => {
            let rounds = [a.rounds(), b.rounds()];
            let enough = rounds.iter().all(|logs| logs.len() >= MIN_ROUNDS);
            let test = enough.then(|| DifferenceTest::of(&rounds[0], &rounds[1], difference)).flatten();
            (if test.is_some() { IntervalBasis::Rounds } else { IntervalBasis::Nothing }, test)
        }
        [1, _] | [_, 1] => (IntervalBasis::OneRun, DifferenceTest::of(&a.logs, &b.logs, difference)),
        _ => (IntervalBasis::Runs, DifferenceTest::of(&a.logs, &b.logs, difference)),
    };
    let stated = first.noise.max(second.noise).max(1.0);
    let is_few = first.context.few_calls || second.context.few_calls;
    let is_thin = basis == IntervalBasis::Nothing && first.level == QuantityLevel::Detail && is_few && noise.is_none();
    let noise = noise.map_or(stated, |factor| noise_for_level(first.level, factor));
    let ratio = difference.exp();
    let speed = |pool: &QuantityPool<'_>| match first.unit {
        QuantityUnit::MegabytesPerSecond => pool.mean().exp(),
        QuantityUnit::Microseconds => (-pool.mean()).exp(),
    };
    let compared = ComparedQuantity {
        level: first.level,
        backends: [first.backend.clone(), second.backend.clone()],
        ranks: [first.ranks, second.ranks],
        row: first.row.clone(),
        column: first.column.clone(),
        unit: first.unit,
        values: [speed(a), speed(b)],
        runs,
        ratio,
        interval: None,
        basis,
        noise: (runs == [1, 1]).then_some(noise),
        call: ComparisonVerdict::NotDecided,
        causes: causes(&a.context(), &b.context(), ratio),
        has_few_calls: is_thin,
        verdict_of_zeros: verdict_of_zeros([a, b], difference),
    };
    (compared, test)
}

/// Sets intervals and verdicts of numbers that are tested together.
fn decide_together<'a>(
    together: impl Iterator<Item = &'a mut (ComparedQuantity, Option<DifferenceTest>)>,
    probability: f64,
) {
    let mut together: Vec<_> = together.collect();
    let chances: Vec<f64> = together.iter().filter_map(|(_, test)| test.map(|t| t.p_value)).collect();
    let of_each = holm_level(chances, probability);
    for (compared, test) in &mut together {
        let difference = compared.ratio.ln();
        compared.interval = test.map(|t| {
            let half_width =
                if t.standard_error > 0.0 { two_sided_quantile(of_each, t.degrees) * t.standard_error } else { 0.0 };
            [(difference - half_width).exp(), (difference + half_width).exp()]
        });
        compared.call = verdict(compared, difference);
    }
}

/// Holm's procedure: the final level of each test for the family-wise error `probability`. All rejected hypotheses have a smaller p-value.
fn holm_level(mut chances: Vec<f64>, probability: f64) -> f64 {
    chances.sort_by(f64::total_cmp);
    let share = |found: usize| probability / chances.len().saturating_sub(found).max(1) as f64;
    let found = (0..chances.len()).find(|n| chances[*n] > share(*n)).unwrap_or(chances.len());
    share(found)
}

fn verdict(compared: &ComparedQuantity, difference: f64) -> ComparisonVerdict {
    if let Some(decided) = compared.verdict_of_zeros {
        return decided;
    }
    let leaves_out_1 = |[low, high]: [f64; 2]| low > 1.0 || high < 1.0;
    let is_narrow = |[low, high]: [f64; 2]| low >= EQUALITY_FACTOR.recip() && high <= EQUALITY_FACTOR;
    let different = if difference < 0.0 { ComparisonVerdict::Slower } else { ComparisonVerdict::Faster };
    let is_same = difference.abs() <= LOG_TOLERANCE;
    match (compared.noise, compared.interval) {
        (Some(_), _) if is_same => ComparisonVerdict::Equal,
        _ if compared.has_few_calls => ComparisonVerdict::NotDecided,
        (Some(noise), interval) if difference.abs() > noise.ln() && interval.is_none_or(leaves_out_1) => different,
        (Some(_), _) | (None, None) => ComparisonVerdict::NotDecided,
        (None, Some(interval)) if !is_same && leaves_out_1(interval) => different,
        (None, Some(interval)) if is_narrow(interval) => ComparisonVerdict::Equal,
        (None, Some(_)) => ComparisonVerdict::NotDecided,
    }
}

#[cfg(test)]
#[path = "compare_tests.rs"]
mod tests;
