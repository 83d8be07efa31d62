//! The screen: default, best, ratio, what caused it, and what did not matter.

use beff_tuning::effects::EffectRatio;
use beff_tuning::trial::setting_text;

use crate::frame::records::JournaledResult;
use crate::frame::report::model::{labelled_texts, HeadlineValue, ReportBlock, TextStyle};
use crate::frame::report::outcome_text;
use crate::frame::report::text::count;
use crate::frame::units::format_seconds;
use crate::frame::words::rate;
use crate::tune::records::TuneResult;
use crate::tune::values::{Conclusion, OtherWork, SettingEffect, TuneDerived};

/// A ratio with its interval.
pub(super) fn ratio_text(ratio: &EffectRatio) -> String {
    match ratio.high {
        Some(high) => format!("{:.3} [{:.3}, {:.3}]", ratio.ratio, ratio.low, high),
        None => format!("{:.3}", ratio.ratio),
    }
}

/// What was found, in a sentence.
pub(super) fn outcome_line(derived: &TuneDerived) -> String {
    let best = derived.best.as_ref().map(|best| setting_text(best));
    let ratio = derived.confirmed.as_ref().map(ratio_text).unwrap_or_default();
    match (derived.conclusion, best) {
        (Conclusion::Recommended, Some(best)) => format!("{ratio} times as fast with {best}"),
        (Conclusion::NotConfirmed, Some(best)) => {
            format!("no setting is recommended, {best} is not proven")
        }
        (Conclusion::NoCandidate, _) => match derived.smallest_provable_ratio {
            Some(smallest) => {
                format!("no setting is recommended; none can be {smallest:.3} times as fast as the default")
            }
            None => "no setting is recommended; there is none to try".to_owned(),
        },
        (Conclusion::TooShort, _) => {
            let needed = derived.shortest_budget_seconds.map(|seconds| format_seconds((1.5 * seconds).ceil()));
            format!("no setting is recommended; --budget must be {} or more", needed.unwrap_or_else(|| "longer".into()))
        }
        (Conclusion::ReadsFromCache, _) => "no setting is recommended; the reads did not come from storage".to_owned(),
        (Conclusion::DefaultFailed, _) => "the default itself was not measured".to_owned(),
        _ => "the search is incomplete".to_owned(),
    }
}

pub(super) fn value(result: &TuneResult, derived: &TuneDerived) -> HeadlineValue {
    let is_recommended = derived.conclusion == Conclusion::Recommended;
    let tone = if is_recommended { TextStyle::Good } else { TextStyle::Plain };
    let ratio = derived.confirmed.filter(|_| is_recommended);
    let line = format!("tune: {}{}", outcome_line(derived), outcome_text::result_suffix(result));
    HeadlineValue {
        label: "ratio".into(),
        value: ratio.map_or_else(|| "-".to_owned(), |ratio| format!("{:.3}", ratio.ratio)),
        unit: "",
        screen_line: vec![(tone, line.clone())],
        verdict: (tone, outcome_line(derived)),
        numbers: Vec::new(),
        closing_line: line,
    }
}

pub(super) fn blocks(result: &TuneResult, derived: &TuneDerived) -> Vec<ReportBlock> {
    let shown = |bytes_per_second: Option<f64>| {
        bytes_per_second.map(|bytes_per_second| format!("{} MB/s", rate(bytes_per_second / 1e6, None)))
    };
    let best = derived.best.as_ref().map(|best| {
        let rate = shown(derived.best_bytes_per_second).map_or_else(String::new, |rate| format!("{rate} with "));
        format!("{rate}{}", setting_text(best))
    });
    let pairs = labelled_texts([
        ("default", shown(derived.default_bytes_per_second)),
        ("best", best),
        ("ratio", ratio(derived)),
        ("noise", noise(derived)),
        ("caused by", caused_by(derived)),
        ("no effect", no_effect(derived)),
        ("not tried", not_tried(result, derived)),
        ("refused", refused(derived)),
        ("other sizes", others(&derived.others)),
        ("budget", budget(result, derived)),
    ]);
    vec![ReportBlock::Pairs(pairs)]
}

/// Advice for a search that was cut.
pub(super) fn continuation(result: &TuneResult) -> Option<(String, &'static str)> {
    let out = result.config.out.as_ref().filter(|_| result.outcome().is_cut())?;
    Some((format!("the same with --continue {}.jsonl and another --out", out.display()), "to its end"))
}

fn ratio(derived: &TuneDerived) -> Option<String> {
    let found = derived.confirmed?;
    Some(format!("{}, 99.5 % interval of {} on new files", ratio_text(&found), count(u64::from(found.count), "pair")))
}

fn noise(derived: &TuneDerived) -> Option<String> {
    let noise = derived.noise?;
    let smallest =
        derived.smallest_provable_ratio.map_or_else(String::new, |smallest| format!("; provable: {smallest:.3}"));
    Some(format!("default against itself {}{smallest}", ratio_text(&noise)))
}

/// Keys of the best setting, with the ratio to the best setting without each.
fn caused_by(derived: &TuneDerived) -> Option<String> {
    let text = |key: &SettingEffect| format!("{} {}", setting_text(&key.setting), ratio_text(&key.ratio));
    let keys: Vec<String> = derived.keys.iter().map(text).collect();
    (!keys.is_empty() && derived.conclusion == Conclusion::Recommended).then(|| keys.join(", "))
}

/// Single values whose interval contains 1, apart from those of the best setting.
fn no_effect(derived: &TuneDerived) -> Option<String> {
    let best = derived.best.clone().filter(|_| derived.conclusion == Conclusion::Recommended).unwrap_or_default();
    let is_without =
        |effect: &&SettingEffect| effect.ratio.contains_one() && !effect.setting.iter().any(|pair| best.contains(pair));
    let all: Vec<String> =
        derived.singles.iter().filter(is_without).map(|effect| setting_text(&effect.setting)).collect();
    (!all.is_empty()).then(|| format!("{} alone", all.join(", ")))
}

fn not_tried(result: &TuneResult, derived: &TuneDerived) -> Option<String> {
    let mut all: Vec<String> = Vec::new();
    for omitted in &result.setup.omitted {
        match all.iter_mut().find(|text| text.ends_with(&format!(": {}", omitted.reason))) {
            Some(text) => *text = format!("{}, {text}", omitted.key),
            None => all.push(format!("{}: {}", omitted.key, omitted.reason)),
        }
    }
    if derived.untried > 0 {
        all.push(format!("{}: the budget is too short for them", count(derived.untried, "other setting")));
    }
    (!all.is_empty()).then(|| all.join("; "))
}

fn refused(derived: &TuneDerived) -> Option<String> {
    let all: Vec<String> =
        derived.refused.iter().map(|(setting, reason)| format!("{}: {reason}", setting_text(setting))).collect();
    (!all.is_empty()).then(|| all.join("; "))
}

fn others(others: &[OtherWork]) -> Option<String> {
    let all: Vec<String> = others.iter().map(|other| format!("{} {:.2}", other.name, other.ratio)).collect();
    (!all.is_empty()).then(|| format!("{} times the default", all.join(", ")))
}

fn budget(result: &TuneResult, derived: &TuneDerived) -> Option<String> {
    let used = result.trials.last()?.end_seconds;
    let early = match derived.conclusion {
        Conclusion::NoCandidate => "; ended early: no candidate can exceed the smallest provable ratio",
        _ => "",
    };
    let [used, budget] = [used, result.config.budget_seconds].map(format_seconds);
    Some(format!("{used} of {budget}, {}{early}", count(result.trials.len() as u64, "trial")))
}
