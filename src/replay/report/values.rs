//! Speed relative to the recorded run, the verdict in the lines for grep, and its reasons.

use crate::frame::report::model::{HeadlineValue, TextStyle};
use crate::frame::report::outcome_text;
use crate::frame::report::text::{count, percent};
use crate::frame::units::format_seconds;
use crate::frame::words::rate;
use crate::replay::records::{RepetitionStatus, ReplayResult};
use crate::replay::values::{CallSubset, Fidelity, ReplayDerived};

use super::levels::{is_not_run, run_level};
use super::summary::{format_ratio, shown_backends, MAX_BACKENDS};
use super::trust::corruption_text;

/// Maximum number of backends with a value; a damaged file may name any number.
const MAX_VALUES: usize = 100;

/// A value for each backend; the first one has the lines for grep, which concern all of them.
pub(super) fn values(result: &ReplayResult, derived: &ReplayDerived) -> Vec<HeadlineValue> {
    let mut values: Vec<HeadlineValue> =
        result.config.backends.iter().take(MAX_VALUES).map(|backend| backend_value(result, derived, backend)).collect();
    if values.is_empty() {
        values.push(backend_value(result, derived, "no backend"));
    }
    values[0].screen_line = verdict_line(result, derived);
    values[0].closing_line = closing_line(result, derived);
    values
}

fn backend_value(result: &ReplayResult, derived: &ReplayDerived, backend: &str) -> HeadlineValue {
    let is_handwritten = result.setup.profile.is_handwritten();
    let ratio = |part| Some(format!("{:.3}", run_level(derived, backend, part)?.ratio?));
    let all = ratio(CallSubset::All);
    let numbers = [("reads", CallSubset::Reads), ("writes", CallSubset::Writes)]
        .into_iter()
        .filter_map(|(name, part)| Some((name.to_owned(), format!("{} of recorded", ratio(part)?))));
    let bandwidth = workload_bandwidths(result, derived).find(|(name, _)| is_handwritten && *name == backend);
    let all = bandwidth.map(|(_, speed)| speed).or(all);
    let [label, unit] =
        if is_handwritten { ["bandwidth per process", "MB/s"] } else { ["speed of the recorded run", "times"] };
    HeadlineValue {
        label: format!("{backend}, {label}"),
        unit: if all.is_some() { unit } else { "" },
        value: all.unwrap_or_else(|| "not measured".into()),
        verdict: if is_not_run(result, backend) {
            (TextStyle::Plain, "not run".into())
        } else {
            verdict_with_marks(result, derived)
        },
        numbers: numbers.collect(),
        screen_line: Vec::new(),
        closing_line: String::new(),
    }
}

/// The verdict with marks for oversubscription and the end of the run.
fn verdict_with_marks(result: &ReplayResult, derived: &ReplayDerived) -> (TextStyle, String) {
    let (tone, words) = verdict_text(derived);
    (tone, format!("{words}{}", run_marks(result)))
}

fn verdict_text(derived: &ReplayDerived) -> (TextStyle, &'static str) {
    match derived.verdict.verdict {
        Fidelity::AsRecorded => (TextStyle::Good, "complete, as recorded"),
        Fidelity::NotAsRecorded => (TextStyle::Bad, "complete, NOT all as recorded"),
        Fidelity::NotComplete => (TextStyle::Bad, "NOT complete"),
        Fidelity::WrongData => (TextStyle::Bad, "WRONG DATA"),
    }
}

fn run_marks(result: &ReplayResult) -> String {
    format!(
        "{}{}",
        outcome_text::oversubscription_suffix(&result.setup.machine),
        outcome_text::outcome_suffix(result.ending.outcome)
    )
}

fn backend_ratios<'r>(result: &'r ReplayResult, derived: &'r ReplayDerived) -> impl Iterator<Item = (&'r str, f64)> {
    let backends = shown_backends(result).into_iter().map(String::as_str);
    backends.filter_map(|backend| Some((backend, run_level(derived, backend, CallSubset::All)?.ratio?)))
}

/// Bandwidth per process of all calls of a workload written by hand, in MB/s.
fn workload_bandwidths<'r>(
    result: &'r ReplayResult,
    derived: &'r ReplayDerived,
) -> impl Iterator<Item = (&'r str, String)> {
    let backends = shown_backends(result).into_iter().map(String::as_str);
    let speed = |backend| run_level(derived, backend, CallSubset::All)?.replayed_bytes_per_second;
    backends.filter_map(move |backend| Some((backend, rate(speed(backend)? / 1e6, None))))
}

fn workload_speeds(result: &ReplayResult, derived: &ReplayDerived) -> String {
    let all = workload_bandwidths(result, derived).take(MAX_BACKENDS);
    match all.map(|(backend, speed)| format!("{speed} {backend}")).collect::<Vec<_>>() {
        all if all.is_empty() => "no bandwidth".to_owned(),
        all => format!("MB/s {}", all.join(", ")),
    }
}

fn verdict_line(result: &ReplayResult, derived: &ReplayDerived) -> Vec<(TextStyle, String)> {
    let speeds: Vec<(&str, String)> =
        backend_ratios(result, derived).map(|(b, r)| (b, format_ratio(r))).take(MAX_BACKENDS).collect();
    let speed = match speeds.as_slice() {
        [] if result.setup.profile.is_handwritten() => workload_speeds(result, derived),
        [] => "no speed to compare".to_owned(),
        [(backend, ratio)] => format!("{backend} {ratio} times as fast as recorded"),
        all => format!("speed {}", all.iter().map(|(b, ratio)| format!("{ratio} {b}")).collect::<Vec<_>>().join(", ")),
    };
    let plain = |text: &str| (TextStyle::Plain, text.to_owned());
    vec![plain("replay = "), verdict_with_marks(result, derived), plain(": "), (TextStyle::Strong, speed)]
}

/// The verdict with its counts: last line of the full text.
fn closing_line(result: &ReplayResult, derived: &ReplayDerived) -> String {
    let found = &derived.verdict;
    let mut parts =
        vec![format!("{} of {} complete", found.repetitions_complete, count(found.repetitions, "repetition"))];
    if found.repetitions_not_run > 0 {
        parts.push(format!("{} not run", found.repetitions_not_run));
    }
    if result.setup.profile.is_handwritten() {
        parts.push(workload_speeds(result, derived));
    }
    parts.extend(backend_ratios(result, derived).map(|(backend, ratio)| format!("{backend} {ratio:.3} of recorded")));
    let share = found.checked_share.map_or_else(|| "nothing".to_owned(), percent);
    parts.push(format!("{share} of what was read compared, {} wrong", count(found.bytes_wrong, "byte")));
    let took = found.real_seconds.map(|s| format!("took {}", format_seconds(s)));
    parts.push(took.unwrap_or_else(|| "no end recorded".to_owned()));
    format!("replay = {}: {}{}", verdict_text(derived).1, parts.join(", "), run_marks(result))
}

pub(super) fn verdict_reasons(result: &ReplayResult, derived: &ReplayDerived) -> Vec<String> {
    let found = &derived.verdict;
    let wrong = result
        .corruptions
        .first()
        .map(|c| format!("{}: {}", count(found.bytes_wrong, "wrong byte"), corruption_text(c)));
    let failed = result
        .repetitions
        .iter()
        .filter(|p| {
            matches!(p.ended, RepetitionStatus::Error(_) | RepetitionStatus::Interrupted | RepetitionStatus::Limit)
        })
        .count();
    let broken = if failed > 0 { format!(", {failed} of them failed or interrupted") } else { String::new() };
    let missing =
        found.repetitions.saturating_sub(found.repetitions_complete).saturating_sub(found.repetitions_not_run);
    let not_run = if found.repetitions_complete == 0 { found.repetitions_not_run } else { 0 };
    let with = |number: u64, text: String| (number > 0).then_some(text);
    let calls = |number: u64, what: &str| with(number, format!("{} {what}", count(number, "call")));
    let parts = [
        wrong,
        with(missing, format!("{missing} of {} missing{broken}", count(found.repetitions, "repetition"))),
        with(not_run, format!("{} not run", count(not_run, "repetition"))),
        calls(found.calls.saturating_sub(found.calls_as_recorded), "with another result than recorded"),
        calls(found.calls_omitted, "omitted"),
        calls(result.setup.profile.calls_discarded, "after a collective call that others never made"),
    ];
    parts.into_iter().flatten().collect()
}
