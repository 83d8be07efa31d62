//! A run against the runs of one set-up before it, for `gate`: which of them are its baseline, whether it is slower, and since when.
//!
//! Numbers are the values of the run; a benchmark without values has the geometric mean over its means, for each backend. They are judged by run
//! rules, whose scatter is that from run to run: intervals within runs are smaller. The numbers of a run share the error probability.

use std::collections::BTreeMap;

use beff_statistics::run_rules::{
    median, median_interval, RuleOutcome, RunRules, ERROR_PROBABILITY, MAX_RECENT, MIN_BASELINE,
};
use beff_statistics::step::{largest_step, permutation_probability, Step};
use serde::Serialize;

use super::comparable::{ComparableRun, Fact, FactKind, Quantity, QuantityLevel, QuantityUnit, STORAGE_DRIFT_FACT};
use super::compare::{fact_differences, FactDifference};
use super::doubt::Doubt;

/// Error probability of a step in the baseline of a run that is not slower.
const STEP_ERROR_PROBABILITY: f64 = 0.01;

/// Verdict on the newest run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum HistoryVerdict {
    /// None of its numbers is slower than the baseline.
    Pass,
    /// One is.
    Slower,
    /// The results do not decide it.
    Inconclusive,
    /// Its data was wrong.
    Corrupt,
}

/// Why a run is no part of the baseline.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Exclusion {
    /// Inconclusive itself: shared machine, cut, storage drift, wrong data.
    Inconclusive,
    /// Another definition.
    Definition,
    /// Another set-up.
    SetUp,
    /// Not before the judged run.
    NotBefore,
}

/// A run of the history.
#[derive(Clone, Debug, PartialEq)]
pub struct HistoryRun {
    /// Its file.
    pub file: String,
    /// Its data.
    pub run: ComparableRun,
}

/// Runs that are left out for one reason.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ExcludedRuns {
    /// The reason.
    pub reason: Exclusion,
    /// Their files.
    pub files: Vec<String>,
}

/// A change of the set-up from one run to the next.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SetUpChange {
    /// Start of the first run with it, UTC.
    pub since_utc: String,
    /// The facts that changed.
    pub facts: Vec<FactDifference>,
}

/// A step of a number.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct HistoryStep {
    /// Start of the last run before it, UTC.
    pub last_before_utc: String,
    /// Start of the first run after it, UTC.
    pub first_after_utc: String,
    /// The first run after it is one of those that started in this interval: 95 %.
    pub range_utc: [String; 2],
    /// Speed after it divided by that before it: geometric means.
    pub ratio: f64,
    /// 95 % interval of the ratio.
    pub interval: Option<[f64; 2]>,
    /// Runs of the series in which it was found.
    pub runs: u64,
}

/// A run rule that applies.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct AppliedRule {
    /// Number of newest runs, the judged one included, that are all below the limit.
    pub recent: u64,
    /// The limit, as a share of the speed of the baseline.
    pub below: f64,
}

/// A number of the run and its history.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct HistoryQuantity {
    /// Name.
    pub name: String,
    /// Backend; empty if there is none.
    pub backend: String,
    /// Unit.
    pub unit: QuantityUnit,
    /// In the judged run.
    pub value: f64,
    /// Runs of the baseline.
    pub baseline_runs: u64,
    /// Median of the baseline; None without one.
    pub median: Option<f64>,
    /// Its interval from order statistics, at least 95 %; None with fewer than six runs.
    pub median_interval: Option<[f64; 2]>,
    /// Speed of the run divided by that of the median.
    pub ratio: Option<f64>,
    /// Interval of the ratio for one run: excludes 1 on the lower side if this run alone is slower. None with fewer than three runs.
    pub interval: Option<[f64; 2]>,
    /// The first rule that applies: the number is slower.
    pub slower: Option<AppliedRule>,
    /// If slower, the estimated step; otherwise a significant step of the baseline, in either direction.
    pub step: Option<HistoryStep>,
}

/// Result of the gate.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct History {
    /// Verdict.
    pub verdict: HistoryVerdict,
    /// Start of the judged run, UTC.
    pub started_utc: String,
    /// Evidence in the judged run that it decides nothing.
    pub doubts: Vec<Doubt>,
    /// Start of the first and the last run of the baseline, UTC.
    pub baseline_utc: Option<[String; 2]>,
    /// Numbers of the run.
    pub quantities: Vec<HistoryQuantity>,
    /// Runs that are left out, by reason.
    pub excluded: Vec<ExcludedRuns>,
    /// Changes of the set-up among the runs with the same definition, the newest first.
    pub set_up_changes: Vec<SetUpChange>,
}

/// What is accepted as a baseline, and what counts as slower.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HistoryOptions {
    /// Runs of the baseline.
    pub last: usize,
    /// Runs of other set-ups belong to it too.
    pub any_set_up: bool,
    /// A slower number counts only below this share of the baseline.
    pub limit: f64,
}

/// Judges `newest` by the runs before it, which may be in any order and contain it.
#[must_use]
pub fn judge(newest: &ComparableRun, runs: &[HistoryRun], options: HistoryOptions) -> History {
    let (baseline, excluded) = select(newest, runs, options.any_set_up);
    let own = numbers(newest);
    let mut rules = RunRules::new(options.last, ERROR_PROBABILITY / own.len().max(1) as f64);
    let quantities: Vec<HistoryQuantity> =
        own.iter().map(|(key, number)| judge_number(key, *number, newest, &baseline, &mut rules, options)).collect();
    let doubts: Vec<Doubt> = newest.doubts.iter().filter(|doubt| !doubt.is_of_single_runs()).cloned().collect();
    let verdict = match () {
        () if newest.is_corrupt => HistoryVerdict::Corrupt,
        () if !doubts.is_empty() || quantities.iter().all(|q| q.interval.is_none()) => HistoryVerdict::Inconclusive,
        () if quantities.iter().any(|q| q.slower.is_some()) => HistoryVerdict::Slower,
        () => HistoryVerdict::Pass,
    };
    let used = &baseline[baseline.len().saturating_sub(options.last)..];
    let ends = used.first().zip(used.last());
    History {
        verdict,
        started_utc: newest.started_utc.clone(),
        doubts,
        baseline_utc: ends.map(|(first, last)| [first.started_utc.clone(), last.started_utc.clone()]),
        quantities,
        excluded,
        set_up_changes: set_up_changes(newest, runs),
    }
}

/// The runs of the baseline in order of their start, and those that are not.
fn select<'a>(
    newest: &ComparableRun,
    runs: &'a [HistoryRun],
    any_set_up: bool,
) -> (Vec<&'a ComparableRun>, Vec<ExcludedRuns>) {
    let mut left_out: BTreeMap<Exclusion, Vec<String>> = BTreeMap::new();
    let mut baseline: Vec<&ComparableRun> = Vec::new();
    for HistoryRun { file, run } in runs.iter().filter(|known| known.run.identity != newest.identity) {
        let differs = |kind| differs(run, newest, kind);
        let reason = match () {
            () if run.started_utc >= newest.started_utc => Some(Exclusion::NotBefore),
            () if differs(FactKind::Definition) => Some(Exclusion::Definition),
            () if is_doubtful(run) => Some(Exclusion::Inconclusive),
            () if !any_set_up && differs(FactKind::SetUp) => Some(Exclusion::SetUp),
            () => None,
        };
        match reason {
            Some(reason) => left_out.entry(reason).or_default().push(file.clone()),
            None => baseline.push(run),
        }
    }
    baseline.sort_by(|a, b| a.started_utc.cmp(&b.started_utc));
    (baseline, left_out.into_iter().map(|(reason, files)| ExcludedRuns { reason, files }).collect())
}

pub(super) fn is_doubtful(run: &ComparableRun) -> bool {
    run.is_corrupt || run.doubts.iter().any(|doubt| !doubt.is_of_single_runs())
}

/// Facts of a kind. The steadiness of the storage is evidence about one run, not set-up.
pub(super) fn facts(run: &ComparableRun, kind: FactKind) -> Vec<Fact> {
    run.facts.iter().filter(|fact| fact.kind == kind && fact.name != STORAGE_DRIFT_FACT).cloned().collect()
}

fn differs(run: &ComparableRun, newest: &ComparableRun, kind: FactKind) -> bool {
    !fact_differences(&facts(run, kind), &facts(newest, kind)).is_empty()
}

fn set_up_changes(newest: &ComparableRun, runs: &[HistoryRun]) -> Vec<SetUpChange> {
    let is_before = |run: &&ComparableRun| {
        run.started_utc < newest.started_utc && !is_doubtful(run) && !differs(run, newest, FactKind::Definition)
    };
    let mut series: Vec<&ComparableRun> = runs.iter().map(|known| &known.run).filter(is_before).collect();
    series.sort_by(|a, b| a.started_utc.cmp(&b.started_utc));
    series.push(newest);
    series.windows(2).rev().filter_map(|pair| set_up_change(pair[0], pair[1])).collect()
}

/// The change of the set-up from one run to the next.
pub(super) fn set_up_change(from: &ComparableRun, to: &ComparableRun) -> Option<SetUpChange> {
    let facts = fact_differences(&facts(from, FactKind::SetUp), &facts(to, FactKind::SetUp));
    (!facts.is_empty()).then(|| SetUpChange { since_utc: to.started_utc.clone(), facts })
}

/// Name, backend and unit of a number. Ranks and definition are the same in all runs.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct NumberKey {
    pub(super) name: String,
    pub(super) backend: String,
    pub(super) unit: QuantityUnit,
}

/// Values of the run; if there are none, the geometric mean over the means of each backend.
pub(super) fn numbers(run: &ComparableRun) -> Vec<(NumberKey, f64)> {
    let at = |level| run.quantities.iter().filter(move |q| q.level == level);
    let key = |q: &Quantity, name: String| NumberKey { name, backend: q.backend.clone(), unit: q.unit };
    let values: Vec<(NumberKey, f64)> = at(QuantityLevel::Value).map(|q| (key(q, q.row.clone()), q.value)).collect();
    if !values.is_empty() {
        return values;
    }
    let mut means: Vec<(NumberKey, Vec<f64>)> = Vec::new();
    for quantity in at(QuantityLevel::Group) {
        let key = key(quantity, String::new());
        match means.iter_mut().find(|(known, _)| *known == key) {
            Some((_, own)) => own.push(quantity.value),
            None => means.push((key, vec![quantity.value])),
        }
    }
    let mean = |(key, own): (NumberKey, Vec<f64>)| {
        let logs = own.iter().map(|value| value.ln()).sum::<f64>();
        // The number of means is part of the name: runs with fewer of them are not compared.
        (NumberKey { name: format!("geometric mean of {}", own.len()), ..key }, (logs / own.len() as f64).exp())
    };
    means.into_iter().map(mean).collect()
}

fn judge_number(
    key: &NumberKey,
    value: f64,
    newest: &ComparableRun,
    baseline: &[&ComparableRun],
    rules: &mut RunRules,
    options: HistoryOptions,
) -> HistoryQuantity {
    let log_in = |run: &ComparableRun| {
        let (_, value) = numbers(run).into_iter().find(|(known, _)| known == key)?;
        key.unit.log_speed(value)
    };
    let mut series: Vec<(&str, f64)> = baseline
        .iter()
        .filter_map(|run| Some((run.started_utc.as_str(), log_in(run).filter(|log| log.is_finite())?)))
        .collect();
    let known = series.len();
    let used: Vec<f64> = series[known.saturating_sub(options.last)..].iter().map(|(_, log)| *log).collect();
    let log = key.unit.log_speed(value);
    series.extend(log.map(|log| (newest.started_utc.as_str(), log)));
    let logs: Vec<f64> = series[series.len().saturating_sub(rules.most_runs())..].iter().map(|(_, log)| *log).collect();
    let outcomes = if log.is_some() { rules.apply(&logs) } else { Vec::new() };
    let of_log = |log: f64| match key.unit {
        QuantityUnit::MegabytesPerSecond => log.exp(),
        QuantityUnit::Microseconds => (-log).exp(),
    };
    let middle = (!used.is_empty()).then(|| median(&used));
    let ratio = middle.zip(log).map(|(middle, log)| (log - middle).exp());
    let slower = outcomes.iter().find(|rule| rule.applies).filter(|_| ratio.is_some_and(|ratio| ratio < options.limit));
    let slower = slower.map(|rule| AppliedRule { recent: rule.recent as u64, below: (-rule.allowed).exp() });
    let interval = |rule: &RuleOutcome| ratio.map(|ratio| [ratio * (-rule.allowed).exp(), ratio * rule.allowed.exp()]);
    HistoryQuantity {
        name: key.name.clone(),
        backend: key.backend.clone(),
        unit: key.unit,
        value,
        baseline_runs: used.len() as u64,
        median: middle.map(of_log),
        median_interval: median_interval(&used).map(|ends| in_order(ends.map(of_log))),
        ratio,
        interval: outcomes.first().and_then(interval),
        slower,
        step: if slower.is_some() { step_of_slower(&series, options.last) } else { step_of_baseline(&series, rules) },
    }
}

fn in_order([a, b]: [f64; 2]) -> [f64; 2] {
    [a.min(b), a.max(b)]
}

/// The step to a slower level among the newest runs.
fn step_of_slower(series: &[(&str, f64)], last: usize) -> Option<HistoryStep> {
    let series = &series[series.len().saturating_sub(last + MAX_RECENT)..];
    let logs: Vec<f64> = series.iter().map(|(_, log)| *log).filter(|log| log.is_finite()).collect();
    // Of the value 0 there is no logarithm: the step is at the run itself.
    let step =
        largest_step(&logs, [MIN_BASELINE, 1], |difference| difference < 0.0).filter(|_| logs.len() == series.len())?;
    Some(dated(&step, series))
}

fn step_of_baseline(series: &[(&str, f64)], rules: &RunRules) -> Option<HistoryStep> {
    let series = &series[series.len().saturating_sub(rules.most_runs())..];
    let logs: Vec<f64> = series.iter().map(|(_, log)| *log).collect();
    let sides = [MIN_BASELINE; 2];
    if logs.iter().any(|log| !log.is_finite()) || permutation_probability(&logs, sides) > STEP_ERROR_PROBABILITY {
        return None;
    }
    Some(dated(&largest_step(&logs, sides, |_| true)?, series))
}

fn dated(step: &Step, series: &[(&str, f64)]) -> HistoryStep {
    let start = |at: usize| series[at].0.to_owned();
    HistoryStep {
        last_before_utc: start(step.first_after - 1),
        first_after_utc: start(step.first_after),
        range_utc: step.range.map(start),
        ratio: step.difference.exp(),
        interval: step.interval.map(|ends| ends.map(f64::exp)),
        runs: series.len() as u64,
    }
}

#[cfg(test)]
#[path = "history_tests.rs"]
mod tests;
