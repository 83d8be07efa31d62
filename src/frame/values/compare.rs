//! Two sides of runs against each other: what differs in their facts, how their numbers differ, and whether chance alone could have
//! done it.
//!
//! Numbers are compared as speeds, by their logarithms, so that a side twice as fast and one half as fast are as far off. The interval is
//! Student's with the spread of both sides together: runs that are equal scatter alike, and one run beside several is one more of
//! them. Welch's, which lets the sides scatter as they like, has two to four degrees of freedom with three runs a side; with a hundred
//! numbers at once it then finds nothing below a factor of ten.
//!
//! What is tested together, the numbers of one level, shares one probability that a number which is equal is called different
//! anywhere (Holm, Scandinavian Journal of Statistics 6, 1979: numbers that were found to be different no longer count). The
//! intervals have the level at which that came to its end, so a number is called different if and only if its interval leaves out 1.
//!
//! One run on each side has no such interval. Its rounds, if it has some, know what changes within a run, and not what changes from
//! run to run: a difference below the noise stated for the number is *not decided* whatever the rounds say.

use std::collections::{HashMap, HashSet};

use beff_statistics::bootstrap::MIN_ROUNDS;
use beff_statistics::student::{quantile, two_sided};
use serde::Serialize;

use super::causes::{causes, pooled, Cause};
use super::comparable::{noise_at, Comparable, Fact, Kind, Level, Quantity, Told, Unit};

/// Probability that anything of a level is called different which is not: together 1 %, so that of 20 comparisons of equal runs
/// two or more have anything called different in 2 of 100 cases.
fn chance(level: Level) -> f64 {
    match level {
        Level::Value => 0.005,
        Level::Group | Level::Detail => 0.0025,
    }
}

/// An interval that contains 1 and reaches no farther than this factor either way is called equal.
pub const EQUAL_WITHIN: f64 = 1.05;

/// Logarithms closer than this are the same but for the rounding of sums.
const ROUNDING: f64 = 1e-9;

/// A fact that is another one on the second side.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// What.
    pub name: String,
    /// What it means.
    pub kind: Kind,
    /// On the first side; None: there is none.
    pub from: Option<String>,
    /// On the second side.
    pub to: Option<String>,
}

/// What an interval rests on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Basis {
    /// Several runs on each side.
    Runs,
    /// One run on one side, several on the other.
    OneRun,
    /// Rounds within one run on each side.
    Rounds,
    /// One run on each side, without rounds: there is no interval.
    Nothing,
}

/// What is said about a ratio.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Call {
    /// The same number, or an interval that contains 1 and not much else.
    Equal,
    /// The second side is slower.
    Slower,
    /// The second side is faster.
    Faster,
    /// Neither is known.
    NotDecided,
}

impl Call {
    /// True for slower and faster.
    #[must_use]
    pub fn is_different(self) -> bool {
        matches!(self, Self::Slower | Self::Faster)
    }
}

/// One number on both sides.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Compared {
    /// How much it stands for.
    pub level: Level,
    /// Backend of each side.
    pub backends: [String; 2],
    /// Ranks of the partition of each side; 0: not one of several.
    pub ranks: [u64; 2],
    /// Name, or row of a table.
    pub row: String,
    /// Column.
    pub column: String,
    /// What it is measured in.
    pub unit: Unit,
    /// Of each side, over its runs the geometric mean.
    pub values: [f64; 2],
    /// Runs of each side that have it.
    pub runs: [usize; 2],
    /// Speed of the second side divided by that of the first; of times the first divided by the second.
    pub ratio: f64,
    /// Where the true ratio is, for all of its level together; None: nobody knows.
    pub interval: Option<[f64; 2]>,
    /// What the interval rests on.
    pub basis: Basis,
    /// Factor below which a difference of one run on each side is not decided; None: there are more.
    pub noise: Option<f64>,
    /// What is said about it.
    pub call: Call,
    /// What may have made the difference.
    pub causes: Vec<Cause>,
    /// A line of few calls, of one run a side: how far chance takes it nobody knows.
    #[serde(skip)]
    pub is_thin: bool,
}

/// A number that only one side has.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Missing {
    /// Side that has it: 0 or 1.
    pub side: usize,
    /// How much it stands for.
    pub level: Level,
    /// Its name.
    pub name: String,
}

/// The second side against the first.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Comparison {
    /// Runs of each side.
    pub runs: [usize; 2],
    /// Facts that differ, those of the definition first.
    pub differences: Vec<Difference>,
    /// Names of facts in which the runs of one side differ among themselves.
    pub mixed: [Vec<String>; 2],
    /// True if all runs of one side began before those of the other: a drift of the machine would look like a difference.
    pub one_after_the_other: bool,
    /// True for a side with a run whose data was wrong.
    pub corrupt: [bool; 2],
    /// Numbers that both have, in the order of the first side.
    pub compared: Vec<Compared>,
    /// Numbers that one of them does not have.
    pub missing: Vec<Missing>,
}

impl Comparison {
    /// Facts of this kind that differ.
    pub fn of_kind(&self, kind: Kind) -> impl Iterator<Item = &Difference> {
        self.differences.iter().filter(move |d| d.kind == kind)
    }

    /// True if both sides measured the same thing.
    #[must_use]
    pub fn is_fair(&self) -> bool {
        self.of_kind(Kind::Definition).next().is_none()
    }

    /// Numbers of a level.
    pub fn at(&self, level: Level) -> impl Iterator<Item = &Compared> {
        self.compared.iter().filter(move |c| c.level == level)
    }

    /// True if it has one run on each side.
    #[must_use]
    pub fn is_single(&self) -> bool {
        self.runs == [1, 1]
    }
}

/// Names of the facts of a kind in which runs that stand for one side differ.
#[must_use]
pub fn mixed(runs: &[Comparable], kind: Kind) -> Vec<String> {
    let Some((first, others)) = runs.split_first() else { return Vec::new() };
    let mut names: Vec<String> = Vec::new();
    for other in others {
        let found = differences(&first.facts_of(kind), &other.facts_of(kind));
        names.extend(found.into_iter().map(|d| d.name));
    }
    let mut seen = HashSet::new();
    names.retain(|name| seen.insert(name.clone()));
    names
}

/// Compares the second side with the first. `noise` takes the place of the factors that the numbers come with. `others` is how many
/// sides are compared with the first: they share the probability.
#[must_use]
pub fn compare(sides: [&[Comparable]; 2], noise: Option<f64>, others: usize) -> Comparison {
    let plain = Plain::of(sides);
    let pools = sides.map(|runs| pools(runs, plain));
    let found: HashMap<&Key, usize> = pools[1].iter().enumerate().map(|(at, pool)| (&pool.key, at)).collect();
    let pairs: Vec<[&Pool<'_>; 2]> =
        pools[0].iter().filter_map(|a| found.get(&a.key).map(|at| [a, &pools[1][*at]])).collect();
    let mut compared: Vec<(Compared, Option<Test>)> = pairs.iter().map(|pair| one(*pair, noise)).collect();
    for level in [Level::Value, Level::Group, Level::Detail] {
        decide(compared.iter_mut().filter(|(c, _)| c.level == level), chance(level) / others.max(1) as f64);
    }
    let first = |runs: &[Comparable]| runs.first().map(|run| run.facts.clone()).unwrap_or_default();
    let mut differences = differences(&first(sides[0]), &first(sides[1]));
    differences.sort_by_key(|d| d.kind != Kind::Definition);
    Comparison {
        runs: sides.map(<[Comparable]>::len),
        differences,
        mixed: sides.map(|runs| mixed(runs, Kind::SetUp)),
        one_after_the_other: one_after_the_other(sides),
        corrupt: sides.map(|runs| runs.iter().any(|run| run.is_corrupt)),
        compared: compared.into_iter().map(|(compared, _)| compared).collect(),
        missing: missing(&pools),
    }
}

impl Comparable {
    fn facts_of(&self, kind: Kind) -> Vec<Fact> {
        self.facts.iter().filter(|fact| fact.kind == kind).cloned().collect()
    }
}

fn differences(from: &[Fact], to: &[Fact]) -> Vec<Difference> {
    let value = |facts: &[Fact], name: &str| facts.iter().find(|fact| fact.name == name).map(|fact| fact.value.clone());
    let mut names: Vec<(&String, Kind)> = Vec::new();
    for fact in from.iter().chain(to) {
        if !names.iter().any(|(name, _)| *name == &fact.name) {
            names.push((&fact.name, fact.kind));
        }
    }
    let difference = |(name, kind): (&String, Kind)| {
        let (from, to) = (value(from, name), value(to, name));
        (from != to).then(|| Difference { name: name.clone(), kind, from, to })
    };
    names.into_iter().filter_map(difference).collect()
}

/// Times of RFC 3339 in UTC are in the order of their letters.
fn one_after_the_other(sides: [&[Comparable]; 2]) -> bool {
    let ends = sides.map(|runs| {
        let starts = || runs.iter().map(|run| run.started_utc.as_str());
        starts().min().zip(starts().max())
    });
    let [Some((first_a, last_a)), Some((first_b, last_b))] = ends else { return false };
    sides.iter().any(|runs| runs.len() > 1) && (last_a < first_b || last_b < first_a)
}

/// Whether backends and partitions tell numbers apart: with one of them on each side they are what is compared.
#[derive(Clone, Copy, Debug)]
struct Plain {
    backend: bool,
    ranks: bool,
}

impl Plain {
    fn of(sides: [&[Comparable]; 2]) -> Self {
        let all = |runs: &[Comparable]| {
            let quantities = || runs.iter().flat_map(|run| &run.quantities);
            let backends: HashSet<&str> = quantities().map(|q| q.backend.as_str()).collect();
            let ranks: HashSet<u64> = quantities().map(|q| q.ranks).collect();
            [backends.len() <= 1, ranks.len() <= 1]
        };
        let [a, b] = sides.map(all);
        Self { backend: a[0] && b[0], ranks: a[1] && b[1] }
    }
}

/// What tells numbers apart.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Key {
    level: Level,
    backend: String,
    ranks: u64,
    row: String,
    column: String,
}

impl Key {
    fn of(q: &Quantity, plain: Plain) -> Self {
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
struct Pool<'a> {
    key: Key,
    of: Vec<&'a Quantity>,
    /// Logarithms of the speeds, one for each run.
    logs: Vec<f64>,
}

impl Pool<'_> {
    fn mean(&self) -> f64 {
        self.logs.iter().sum::<f64>() / self.logs.len() as f64
    }

    fn told(&self) -> Told {
        pooled(&self.of.iter().map(|q| &q.told).collect::<Vec<_>>())
    }

    /// Of one run its rounds.
    fn rounds(&self) -> Vec<f64> {
        let logs = |q: &&Quantity| q.rounds.iter().filter_map(|v| q.unit.log_speed(*v)).collect();
        self.of.first().map(logs).unwrap_or_default()
    }
}

/// In the order in which they are first met. Of numbers with the same name in one run the first counts.
fn pools(runs: &[Comparable], plain: Plain) -> Vec<Pool<'_>> {
    let mut found: Vec<Pool<'_>> = Vec::new();
    let mut places: HashMap<Key, usize> = HashMap::new();
    for run in runs {
        let mut seen: HashSet<usize> = HashSet::new();
        for quantity in &run.quantities {
            let Some(log) = quantity.unit.log_speed(quantity.value) else { continue };
            let key = Key::of(quantity, plain);
            let at = *places.entry(key.clone()).or_insert(found.len());
            if at == found.len() {
                found.push(Pool { key, of: Vec::new(), logs: Vec::new() });
            }
            if seen.insert(at) && found[at].of.first().is_none_or(|first| first.unit == quantity.unit) {
                found[at].of.push(quantity);
                found[at].logs.push(log);
            }
        }
    }
    found
}

fn missing(pools: &[Vec<Pool<'_>>; 2]) -> Vec<Missing> {
    let keys = |side: usize| pools[side].iter().map(|pool| &pool.key).collect::<HashSet<&Key>>();
    let of = |side: usize| {
        let there = keys(1 - side);
        let absent = pools[side].iter().filter(move |pool| !there.contains(&pool.key));
        absent.map(move |pool| Missing { side, level: pool.key.level, name: pool.key.name() })
    };
    of(0).chain(of(1)).collect()
}

/// A difference of logarithms and how sure it is.
#[derive(Clone, Copy, Debug)]
struct Test {
    error: f64,
    degrees: f64,
    /// Probability that chance alone is that far off.
    chance: f64,
}

impl Test {
    fn new(difference: f64, error: f64, degrees: f64) -> Self {
        // Runs without any spread: what is not the same is different.
        let t = if error > 0.0 { difference / error } else { f64::INFINITY };
        let chance = if difference.abs() <= ROUNDING { 1.0 } else { two_sided(t, degrees) };
        Self { error, degrees, chance }
    }

    /// Of two sets of logarithms that scatter alike, one of which may be a single one; None of two single ones.
    fn of(a: &[f64], b: &[f64], difference: f64) -> Option<Self> {
        let [of_a, of_b] = [a.len() as f64, b.len() as f64];
        let degrees = of_a + of_b - 2.0;
        let variance = (squares(a) + squares(b)) / degrees;
        (degrees > 0.0).then(|| Self::new(difference, (variance * (1.0 / of_a + 1.0 / of_b)).sqrt(), degrees))
    }
}

/// Sum of the squares around the mean.
fn squares(logs: &[f64]) -> f64 {
    let mean = logs.iter().sum::<f64>() / logs.len() as f64;
    logs.iter().map(|log| (log - mean).powi(2)).sum()
}

fn one([a, b]: [&Pool<'_>; 2], noise: Option<f64>) -> (Compared, Option<Test>) {
    let (first, second) = (a.of[0], b.of[0]);
    let difference = b.mean() - a.mean();
    let runs = [a.logs.len(), b.logs.len()];
    let (basis, test) = match runs {
        [1, 1] => {
            let rounds = [a.rounds(), b.rounds()];
            let enough = rounds.iter().all(|logs| logs.len() >= MIN_ROUNDS);
            let test = enough.then(|| Test::of(&rounds[0], &rounds[1], difference)).flatten();
            (if test.is_some() { Basis::Rounds } else { Basis::Nothing }, test)
        }
        [1, _] | [_, 1] => (Basis::OneRun, Test::of(&a.logs, &b.logs, difference)),
        _ => (Basis::Runs, Test::of(&a.logs, &b.logs, difference)),
    };
    let stated = first.noise.max(second.noise).max(1.0);
    let is_few = first.told.few_calls || second.told.few_calls;
    let is_thin = basis == Basis::Nothing && first.level == Level::Detail && is_few && noise.is_none();
    let noise = noise.map_or(stated, |factor| noise_at(first.level, factor));
    let ratio = difference.exp();
    let speed = |pool: &Pool<'_>| match first.unit {
        Unit::MegabytesPerSecond => pool.mean().exp(),
        Unit::Microseconds => (-pool.mean()).exp(),
    };
    let compared = Compared {
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
        call: Call::NotDecided,
        causes: causes(&a.told(), &b.told(), ratio),
        is_thin,
    };
    (compared, test)
}

/// Sets intervals and calls of numbers that are tested together.
fn decide<'a>(together: impl Iterator<Item = &'a mut (Compared, Option<Test>)>, probability: f64) {
    let mut together: Vec<_> = together.collect();
    let chances: Vec<f64> = together.iter().filter_map(|(_, test)| test.map(|t| t.chance)).collect();
    let of_each = shared(chances, probability);
    for (compared, test) in &mut together {
        let difference = compared.ratio.ln();
        compared.interval = test.map(|t| {
            let reach = if t.error > 0.0 { quantile(of_each, t.degrees) * t.error } else { 0.0 };
            [(difference - reach).exp(), (difference + reach).exp()]
        });
        compared.call = call(compared, difference);
    }
}

/// Holm: the probability at which each of these is tested in the end, so that together they have `probability`. All that are
/// different have less.
fn shared(mut chances: Vec<f64>, probability: f64) -> f64 {
    chances.sort_by(f64::total_cmp);
    let share = |found: usize| probability / chances.len().saturating_sub(found).max(1) as f64;
    let found = (0..chances.len()).find(|n| chances[*n] > share(*n)).unwrap_or(chances.len());
    share(found)
}

fn call(compared: &Compared, difference: f64) -> Call {
    let leaves_out_1 = |[low, high]: [f64; 2]| low > 1.0 || high < 1.0;
    let is_narrow = |[low, high]: [f64; 2]| low >= EQUAL_WITHIN.recip() && high <= EQUAL_WITHIN;
    let different = if difference < 0.0 { Call::Slower } else { Call::Faster };
    let is_same = difference.abs() <= ROUNDING;
    match (compared.noise, compared.interval) {
        (Some(_), _) if is_same => Call::Equal,
        _ if compared.is_thin => Call::NotDecided,
        (Some(noise), interval) if difference.abs() > noise.ln() && interval.is_none_or(leaves_out_1) => different,
        (Some(_), _) | (None, None) => Call::NotDecided,
        (None, Some(interval)) if !is_same && leaves_out_1(interval) => different,
        (None, Some(interval)) if is_narrow(interval) => Call::Equal,
        (None, Some(_)) => Call::NotDecided,
    }
}

/// What a limit for speeds says about a comparison.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Gate {
    /// Smallest ratio that is let through.
    pub limit: f64,
    /// Numbers that are called slower, and are below the limit: places in [`Comparison::compared`].
    pub below: Vec<usize>,
    /// Values and groups that only the first side has.
    pub missing: Vec<String>,
    /// Values and groups below the limit of which nobody knows whether they are slower.
    pub undecided: u64,
    /// The data of the second side was wrong.
    pub corrupt: bool,
    /// Nothing is below the limit, missing or wrong.
    pub passed: bool,
}

/// Lets a comparison through, or not.
#[must_use]
pub fn gate(comparison: &Comparison, limit: f64) -> Gate {
    let all = &comparison.compared;
    let below: Vec<usize> =
        (0..all.len()).filter(|at| all[*at].call == Call::Slower && all[*at].ratio < limit).collect();
    let is_lost = |m: &&Missing| m.side == 0 && m.level != Level::Detail;
    let missing: Vec<String> = comparison.missing.iter().filter(is_lost).map(|missing| missing.name.clone()).collect();
    let is_open = |c: &&Compared| c.level != Level::Detail && c.ratio < limit && c.call == Call::NotDecided;
    let undecided = all.iter().filter(is_open).count() as u64;
    let corrupt = comparison.corrupt[1];
    let passed = below.is_empty() && missing.is_empty() && !corrupt && !all.is_empty();
    Gate { limit, below, missing, undecided, corrupt, passed }
}

#[cfg(test)]
#[path = "compare_tests.rs"]
mod tests;
