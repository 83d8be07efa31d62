//! Derived values of `tune`: the search is repeated from its trials. Pure functions of the records.

pub mod kinds;

use beff_tuning::confirmation;
use beff_tuning::effects::EffectRatio;
use beff_tuning::search::{Search, SearchEnd};
use beff_tuning::trial::{Phase, Trial};
use schemars::JsonSchema;
use serde::Serialize;

use crate::frame::records::{JournaledResult, RunOutcome, Warning};
use crate::frame::run::trials::TrialPart;
use crate::frame::trials::Setting;
use crate::tune::records::{TrialRecord, TuneResult};

/// Conclusion of a search.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Conclusion {
    /// The best setting is faster than the default, and the interval of the ratio excludes 1.
    Recommended,
    /// The interval of the confirmation contains 1.
    NotConfirmed,
    /// No setting can exceed the smallest ratio that the budget can prove.
    NoCandidate,
    /// The budget is too short.
    TooShort,
    /// The default itself was not measured.
    DefaultFailed,
    /// Reads were to be made fast, and came from a cache, or from an unknown source.
    ReadsFromCache,
    /// The search was cut.
    Incomplete,
}

/// A setting and its ratio to the default.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct SettingEffect {
    /// Setting.
    pub setting: Setting,
    /// Ratio to the default; of keys of the best setting: to the best setting without them. The interval is corrected for the number of
    /// settings.
    pub ratio: EffectRatio,
    /// Hints in force, as the library reports them, that differ from those of the default.
    pub granted: Setting,
    /// Layout of the file as the file system reports it, such as its stripes.
    pub layout: Setting,
}

/// A part of other work.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct OtherWork {
    /// Its name.
    pub name: String,
    /// Ratio of the best setting to the default.
    pub ratio: f64,
}

/// Everything derived from one search.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct TuneDerived {
    /// Conclusion.
    pub conclusion: Conclusion,
    /// Figure of the default: geometric mean of the confirmation, or of the noise before it; None: not measured.
    pub default_bytes_per_second: Option<f64>,
    /// Figure of the best setting in the confirmation.
    pub best_bytes_per_second: Option<f64>,
    /// The best setting found, confirmed or not.
    pub best: Option<Setting>,
    /// Ratio of the best setting to the default in the confirmation, with a 99.5 % interval.
    pub confirmed: Option<EffectRatio>,
    /// Ratio of the default to itself, with a 99.5 % interval.
    pub noise: Option<EffectRatio>,
    /// The smallest ratio to the default that the budget can prove.
    pub smallest_provable_ratio: Option<f64>,
    /// The shortest budget of a search with such trials, in seconds; None without trials.
    pub shortest_budget_seconds: Option<f64>,
    /// Single values, the fastest first.
    pub singles: Vec<SettingEffect>,
    /// Combinations, and single values measured with them, the fastest first.
    pub combinations: Vec<SettingEffect>,
    /// Keys of the best setting, and their effects.
    pub keys: Vec<SettingEffect>,
    /// Keys that were dropped from the best setting, because they have no effect.
    pub dropped: Vec<SettingEffect>,
    /// Settings that were refused, with the reason.
    pub refused: Vec<(Setting, String)>,
    /// Settings with wrong data.
    pub disqualified: Vec<Setting>,
    /// Number of settings for which the budget was too short.
    pub untried: u64,
    /// Other work with the best setting.
    pub others: Vec<OtherWork>,
    /// Warnings of the run and those that follow from the records.
    pub warnings: Vec<Warning>,
}

/// Derives the values of a result, complete or not.
#[must_use]
pub fn derive(result: &TuneResult) -> TuneDerived {
    let trials: Vec<Trial> = result.trials.iter().map(TrialRecord::judged).collect();
    let (mut search, _) = Search::resume(result.setup.search_plan(&result.config), &trials);
    // Without a next trial, the search has ended.
    let _ = search.next_trial();
    let warnings = kinds::warnings(result);
    let is_cached = warnings.iter().any(|warning| warning.is_kind(&kinds::READS_FROM_CACHE));
    let conclusion = match conclusion(result.outcome(), search.end()) {
        Conclusion::Recommended if is_cached => Conclusion::ReadsFromCache,
        found => found,
    };
    let phase = if search.confirmed_ratio().is_some() { Phase::Confirmation } else { Phase::Noise };
    let best = search.best().cloned();
    let effects =
        |phase| search.ratios(phase).into_iter().map(|(setting, ratio)| effect(result, setting, ratio)).collect();
    let keys = |is_dropped: bool| {
        let own = search.key_effects().iter().filter(move |key| key.is_dropped == is_dropped);
        own.map(|key| effect(result, vec![key.pair.clone()], key.ratio)).collect()
    };
    let noise = search.noise();
    TuneDerived {
        conclusion,
        default_bytes_per_second: mean_rate(&trials, phase, &Setting::new()),
        best_bytes_per_second: best.as_ref().and_then(|best| mean_rate(&trials, Phase::Confirmation, best)),
        confirmed: search.confirmed_ratio(),
        noise: (noise.count > 0).then(|| noise.ratio(beff_tuning::effects::CONFIRMATION_ERROR)),
        smallest_provable_ratio: search.smallest_provable_ratio(),
        shortest_budget_seconds: search.shortest_budget_seconds(),
        singles: effects(Phase::Single),
        combinations: effects(Phase::Combination),
        keys: keys(false),
        dropped: keys(true),
        refused: refused(result),
        disqualified: result.corruptions.iter().map(|wrong| wrong.setting.clone()).collect(),
        untried: search.untried().len() as u64,
        others: best.as_ref().map_or_else(Vec::new, |best| others(result, best)),
        best,
        warnings,
    }
}

fn conclusion(outcome: RunOutcome, end: Option<SearchEnd>) -> Conclusion {
    match end {
        _ if outcome != RunOutcome::Complete => Conclusion::Incomplete,
        Some(SearchEnd::Recommended) => Conclusion::Recommended,
        Some(SearchEnd::NotConfirmed) => Conclusion::NotConfirmed,
        Some(SearchEnd::NoCandidate) => Conclusion::NoCandidate,
        Some(SearchEnd::TooShort) => Conclusion::TooShort,
        Some(SearchEnd::DefaultFailed) => Conclusion::DefaultFailed,
        None => Conclusion::Incomplete,
    }
}

/// Geometric mean of the figures of a setting in a phase.
fn mean_rate(trials: &[Trial], phase: Phase, setting: &Setting) -> Option<f64> {
    let own = trials.iter().filter(|trial| trial.planned.phase == phase && trial.planned.setting == *setting);
    let logs: Vec<f64> = own.filter_map(Trial::log_rate).collect();
    (!logs.is_empty()).then(|| (logs.iter().sum::<f64>() / logs.len() as f64).exp())
}

fn effect(result: &TuneResult, setting: Setting, ratio: EffectRatio) -> SettingEffect {
    let of = |setting: &Setting| result.trials.iter().find(|trial| trial.planned.setting == *setting);
    let default = of(&Setting::new());
    let granted = of(&setting).map_or_else(Vec::new, |trial| {
        let is_new = |pair: &&(String, String)| !default.is_some_and(|base| base.outcome.hints_granted.contains(pair));
        trial.outcome.hints_granted.iter().filter(is_new).cloned().collect()
    });
    let layout = of(&setting).map_or_else(Vec::new, |trial| trial.outcome.layout.clone());
    SettingEffect { setting, ratio, granted, layout }
}

fn refused(result: &TuneResult) -> Vec<(Setting, String)> {
    let mut all: Vec<(Setting, String)> = Vec::new();
    for trial in &result.trials {
        if let Some(reason) = &trial.outcome.refusal {
            if all.iter().all(|(setting, _)| *setting != trial.planned.setting) {
                all.push((trial.planned.setting.clone(), reason.clone()));
            }
        }
    }
    all
}

/// Ratios of the parts of other work: geometric means over the pairs.
fn others(result: &TuneResult, best: &Setting) -> Vec<OtherWork> {
    let own = |setting: &Setting| -> Vec<&TrialRecord> {
        let is_own = |trial: &&TrialRecord| {
            trial.planned.phase == Phase::Others && trial.planned.setting == *setting && trial.outcome.refusal.is_none()
        };
        result.trials.iter().filter(is_own).collect()
    };
    let (tuned, default) = (own(best), own(&Setting::new()));
    let Some(first) = default.first() else { return Vec::new() };
    let log_rate = |trials: &[&TrialRecord], name: &str| {
        let rate = |part: &TrialPart| part.bytes as f64 / part.seconds;
        let parts = trials.iter().flat_map(|trial| &trial.outcome.parts).filter(|part| part.name == name);
        let logs: Vec<f64> = parts.map(rate).filter(|rate| rate.is_finite() && *rate > 0.0).map(f64::ln).collect();
        (!logs.is_empty()).then(|| logs.iter().sum::<f64>() / logs.len() as f64)
    };
    let ratio = |part: &TrialPart| {
        let ratio = (log_rate(&tuned, &part.name)? - log_rate(&default, &part.name)?).exp();
        Some(OtherWork { name: part.name.clone(), ratio })
    };
    first.outcome.parts.iter().filter_map(ratio).collect()
}

/// Ratio of the best setting to the default with other work, all parts together.
#[must_use]
pub fn others_ratio(result: &TuneResult) -> Option<EffectRatio> {
    let trials: Vec<Trial> = result.trials.iter().map(TrialRecord::judged).collect();
    confirmation::ratio(&trials, Phase::Others)
}
