//! How fast beside the recorded run, the verdict in the lines for grep, and what keeps it from being the best one.

use crate::frame::report::ending;
use crate::frame::report::model::{Tone, Value};
use crate::frame::report::text::{count, percent};
use crate::frame::units::format_seconds;
use crate::replay::records::{PassEnd, ReplayResult};
use crate::replay::values::{Part, ReplayDerived, VerdictKind};

use super::levels::{is_not_run, of_run};
use super::summary::{ratio, BACKENDS};
use super::trust::place;

/// Backends with a value; a damaged file may name any number.
const MOST: usize = 100;

/// A value for each backend; the first one has the lines for grep, which are about all of them.
pub(super) fn values(result: &ReplayResult, derived: &ReplayDerived) -> Vec<Value> {
    let mut values: Vec<Value> =
        result.config.backends.iter().take(MOST).map(|backend| value(result, derived, backend)).collect();
    if values.is_empty() {
        values.push(value(result, derived, "no backend"));
    }
    values[0].line = line(result, derived);
    values[0].closing = closing(result, derived);
    values
}

fn value(result: &ReplayResult, derived: &ReplayDerived, backend: &str) -> Value {
    let ratio = |part| Some(format!("{:.3}", of_run(derived, backend, part)?.ratio?));
    let all = ratio(Part::All);
    let numbers = [("reads", Part::Reads), ("writes", Part::Writes)]
        .into_iter()
        .filter_map(|(name, part)| Some((name.to_owned(), format!("{} of recorded", ratio(part)?))));
    Value {
        label: format!("{backend}, speed of the recorded run"),
        unit: if all.is_some() { "times" } else { "" },
        value: all.unwrap_or_else(|| "not measured".into()),
        verdict: if is_not_run(result, backend) { (Tone::Plain, "not run".into()) } else { verdict(result, derived) },
        numbers: numbers.collect(),
        line: Vec::new(),
        closing: String::new(),
    }
}

/// The verdict with what the machine and the end have to say.
fn verdict(result: &ReplayResult, derived: &ReplayDerived) -> (Tone, String) {
    let (tone, words) = words(derived);
    (tone, format!("{words}{}", marks(result)))
}

fn words(derived: &ReplayDerived) -> (Tone, &'static str) {
    match derived.verdict.verdict {
        VerdictKind::AsRecorded => (Tone::Good, "complete, as recorded"),
        VerdictKind::NotAsRecorded => (Tone::Bad, "complete, NOT all as recorded"),
        VerdictKind::NotComplete => (Tone::Bad, "NOT complete"),
        VerdictKind::WrongData => (Tone::Bad, "WRONG DATA"),
    }
}

fn marks(result: &ReplayResult) -> String {
    format!("{}{}", ending::crowded(&result.setup.machine), ending::mark(result.ending.outcome))
}

/// Each backend that has one, and its speed.
fn speeds<'r>(result: &'r ReplayResult, derived: &'r ReplayDerived) -> impl Iterator<Item = (&'r str, f64)> {
    let backends = result.config.backends.iter().map(String::as_str);
    backends.filter_map(|backend| Some((backend, of_run(derived, backend, Part::All)?.ratio?)))
}

/// The line of the screen.
fn line(result: &ReplayResult, derived: &ReplayDerived) -> Vec<(Tone, String)> {
    let speeds: Vec<(&str, String)> = speeds(result, derived).map(|(b, r)| (b, ratio(r))).take(BACKENDS).collect();
    let speed = match speeds.as_slice() {
        [] => "no speed to compare".to_owned(),
        [(backend, ratio)] => format!("{backend} {ratio} times as fast as recorded"),
        all => format!("speed {}", all.iter().map(|(b, ratio)| format!("{ratio} {b}")).collect::<Vec<_>>().join(", ")),
    };
    let plain = |text: &str| (Tone::Plain, text.to_owned());
    vec![plain("replay = "), verdict(result, derived), plain(": "), (Tone::Strong, speed)]
}

/// The verdict with its counts, the last line of the full text.
fn closing(result: &ReplayResult, derived: &ReplayDerived) -> String {
    let found = &derived.verdict;
    let mut parts = vec![format!("{} of {} complete", found.passes_complete, count(found.passes, "pass"))];
    if found.passes_not_run > 0 {
        parts.push(format!("{} not run", found.passes_not_run));
    }
    parts.extend(speeds(result, derived).map(|(backend, ratio)| format!("{backend} {ratio:.3} of recorded")));
    let share = found.checked_share.map_or_else(|| "nothing".to_owned(), percent);
    parts.push(format!("{share} of what was read compared, {} wrong", count(found.bytes_wrong, "byte")));
    let took = found.real_seconds.map(|s| format!("took {}", format_seconds(s)));
    parts.push(took.unwrap_or_else(|| "no end recorded".to_owned()));
    format!("replay = {}: {}{}", words(derived).1, parts.join(", "), marks(result))
}

/// What keeps the verdict from being the best one.
pub(super) fn because(result: &ReplayResult, derived: &ReplayDerived) -> Vec<String> {
    let found = &derived.verdict;
    let wrong = result.corruptions.first().map(|c| format!("{}: {}", count(found.bytes_wrong, "wrong byte"), place(c)));
    let failed = result.passes.iter().filter(|p| matches!(p.ended, PassEnd::Error(_) | PassEnd::Interrupted)).count();
    let broken = if failed > 0 { format!(", {failed} of them ended early") } else { String::new() };
    let missing = found.passes.saturating_sub(found.passes_complete).saturating_sub(found.passes_not_run);
    let not_run = if found.passes_complete == 0 { found.passes_not_run } else { 0 };
    let with = |number: u64, text: String| (number > 0).then_some(text);
    let calls = |number: u64, what: &str| with(number, format!("{} {what}", count(number, "call")));
    let parts = [
        wrong,
        with(missing, format!("{missing} of {} missing{broken}", count(found.passes, "pass"))),
        with(not_run, format!("{} not run", count(not_run, "pass"))),
        calls(found.calls.saturating_sub(found.calls_as_recorded), "with another result than recorded"),
        calls(found.calls_left_out, "left out"),
        calls(result.setup.profile.calls_cut, "behind a collective call that others never made"),
    ];
    parts.into_iter().flatten().collect()
}
