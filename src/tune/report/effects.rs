//! Effects with their intervals, and all trials.

use beff_tuning::trial::setting_text;

use super::summary::{self, ratio_text};
use crate::frame::report::model::{ReportBlock, ReportSection};
use crate::frame::report::table::Table;
use crate::frame::words::rate;
use crate::tune::records::{TrialRecord, TuneResult};
use crate::tune::values::{SettingEffect, TuneDerived};

pub(super) fn sections(result: &TuneResult, derived: &TuneDerived) -> Vec<ReportSection> {
    let table = |effects: &[SettingEffect]| -> Vec<ReportBlock> {
        if effects.is_empty() {
            return Vec::new();
        }
        vec![ReportBlock::Table(effect_table(effects))]
    };
    let mut keys = table(&derived.keys);
    keys.extend(table(&derived.dropped));
    let trials = vec![ReportBlock::Folded("all trials".into(), vec![ReportBlock::Table(trial_table(&result.trials))])];
    let interval = "Ratios to the default, with intervals of 95 % for all settings of the table together.";
    [
        ReportSection::of("result", "Result", "", summary::blocks(result, derived)),
        ReportSection::of("singles", "One key at a time", interval, table(&derived.singles)),
        ReportSection::of(
            "combinations",
            "Several keys",
            format!("{interval} The fastest half is measured again in each step; the ratio of the best of many is too large."),
            table(&derived.combinations),
        ),
        ReportSection::of(
            "keys",
            "Keys of the best setting",
            "Ratios of the best setting to itself without the key. Keys without an effect were dropped.",
            keys,
        ),
        ReportSection::of("trials", "Trials", "", trials),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn effect_table(effects: &[SettingEffect]) -> Table {
    let row = |effect: &SettingEffect| {
        let listed = |pairs: &[(String, String)]| if pairs.is_empty() { "-".to_owned() } else { setting_text(pairs) };
        [
            setting_text(&effect.setting),
            ratio_text(&effect.ratio),
            effect.ratio.count.to_string(),
            listed(&effect.granted),
            listed(&effect.layout),
        ]
    };
    Table::new("", 1, ["setting", "ratio", "rounds", "other hints in force", "layout"])
        .with_rows(effects.iter().map(row))
}

fn trial_table(trials: &[TrialRecord]) -> Table {
    let row = |(number, trial): (usize, &TrialRecord)| {
        let outcome = &trial.outcome;
        [
            (number + 1).to_string(),
            trial.planned.phase.name().to_owned(),
            trial.planned.round.to_string(),
            setting_text(&trial.planned.setting),
            outcome.refusal.clone().unwrap_or_else(|| rate(outcome.bytes_per_second / 1e6, None)),
            format!("{:.1}", trial.begin_seconds),
        ]
    };
    Table::new("", 1, ["trial", "part", "round", "setting", "MB/s", "at s"])
        .with_rows(trials.iter().enumerate().map(row))
}
