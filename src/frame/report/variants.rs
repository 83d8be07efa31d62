//! Variants in reports: their options, and their ratios to their backends.

use beff_statistics::bootstrap::{Interval, Ratio};

use crate::frame::report::machine::direct_policy_text;
use crate::frame::variants::BackendVariant;
use crate::frame::words::NO_VALUE;

/// Explains [`cell`] below a table.
pub(crate) const CELL_NOTE: &str = "= equal: the 95 % interval contains 1; ? not resolved";
/// Explains a disqualification below a table.
pub(crate) const DISQUALIFIED_NOTE: &str = "WRONG DATA: disqualified, because it did not return what was written";

/// A contestant with its options: `posix+deep (direct auto, depth 64)`.
pub(crate) fn contestant_text(name: &str, options: impl Iterator<Item = String>) -> String {
    let all: Vec<String> = options.collect();
    let all = if all.is_empty() { "as its backend".to_owned() } else { all.join(", ") };
    format!("{name} ({all})")
}

/// Hints as options of a contestant.
pub(crate) fn hint_options(hints: &[(String, String)]) -> impl Iterator<Item = String> + '_ {
    hints.iter().map(|(key, value)| format!("{key} = {value}"))
}

/// The variants of a run with their options; None without variants.
pub(crate) fn variants_text(variants: &[BackendVariant]) -> Option<String> {
    let text = |variant: &BackendVariant| {
        let direct = variant.direct.map(|policy| format!("direct {}", direct_policy_text(policy)));
        let depth = variant.queue_depth.map(|depth| format!("depth {depth}"));
        let options = direct.into_iter().chain(depth).chain(hint_options(&variant.hints));
        contestant_text(&variant.backend, options)
    };
    let all: Vec<String> = variants.iter().map(text).collect();
    (!all.is_empty()).then(|| all.join("; "))
}

/// `1.25 1.20-1.31`, with `=` if equal.
pub(crate) fn cell(ratio: Option<&Ratio>, is_disqualified: bool) -> String {
    if is_disqualified {
        return "WRONG DATA".to_owned();
    }
    let Some(ratio) = ratio else { return NO_VALUE.to_owned() };
    match resolved(ratio) {
        Some(i) => {
            let equal = if ratio.equal == Some(true) { " =" } else { "" };
            format!("{:.2} {:.2}-{:.2}{equal}", ratio.value, i.low, i.high)
        }
        None => format!("{:.2} ?", ratio.value),
    }
}

/// The interval, unless it is too wide to say anything.
pub(crate) fn resolved(ratio: &Ratio) -> Option<Interval> {
    ratio.interval.filter(Interval::is_resolved)
}

/// What the ratio of a variant means.
pub(crate) fn verdict(ratio: Option<&Ratio>, is_disqualified: bool) -> &'static str {
    match ratio {
        _ if is_disqualified => "DISQUALIFIED: wrong data",
        None => "not measured",
        Some(Ratio { equal: None, .. }) => "no interval",
        Some(ratio) if resolved(ratio).is_none() => "too much scatter",
        Some(Ratio { equal: Some(true), .. }) => "equal",
        Some(ratio) if ratio.value > 1.0 => "faster",
        Some(_) => "slower",
    }
}
