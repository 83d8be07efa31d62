//! One screen of a replay: whether it is whole and as recorded, how fast beside the recorded run, a line for each class of functions, what
//! stands out, what can be trusted, what was left out, and what to type next. At most 40 lines of 80 columns for one backend, 60 for
//! several.

mod numbers;
mod words;

use serde_json::Value;

use crate::frame::records::Warning;
use crate::frame::report::sheet::{span, Look, Screen};
use crate::frame::report::text::{count, percent};
use crate::frame::report::{ending, screen, Place};
use crate::frame::units::{format_seconds, format_size};
use crate::frame::values::NULL_BACKEND;
use crate::frame::words::clause;
use crate::replay::records::{PassEnd, PassRecord, ProfileFacts, ReplayResult};
use crate::replay::values::standout::findings;
use crate::replay::values::{caches, kinds, LevelKind, Part, ReplayDerived, VerdictKind};

use super::table::{closing, header, trust};

/// The screen of one replay.
#[must_use]
pub fn screen(result: &ReplayResult, derived: &ReplayDerived, place: &Place) -> Screen {
    let backends = result.config.backends.len();
    Screen::within(place.columns, screen::most_lines(backends), |page| write(page, result, derived, place))
}

fn write(page: &mut Screen, result: &ReplayResult, derived: &ReplayDerived, place: &Place) {
    let (config, setup) = (&result.config, &result.setup);
    let several = config.backends.len() > 1;
    screen::banner(page, result, "WRONG DATA: bytes read were not what the profile says must be there.");
    screen::head(page, &setup.machine, "replay", Some(&setup.storage));
    screen::note(page, &header::profile(&setup.profile));
    screen::note(page, &content(&setup.profile));
    let passes = count(config.repeat.saturating_mul(config.backends.len() as u64), "pass");
    let asked = format!("{passes}, {}", header::pace(config.pace, config.scale));
    screen::times(page, &asked, result.ending.outcome, result.ending.real_seconds);
    screen::settings(page, header::unusual(result));
    verdict(page, result, derived);
    let backends: Vec<&str> = config.backends.iter().map(String::as_str).collect();
    let shown = &backends[..backends.len().min(screen::BACKENDS)];
    numbers::write(page, result, derived, shown);
    screen::not_shown(page, backends.len() - shown.len(), "backend");
    let texts: Vec<String> = findings(result, derived).iter().map(|f| words::sentence(f, several)).collect();
    screen::findings(page, result, &texts);
    page.blank();
    for (label, text) in
        [("compared", compared(result, derived)), ("as recorded", as_recorded(derived)), ("caches", storage(result))]
    {
        page.field(span(Look::Strong, label), &text, Look::Plain, 1);
    }
    page.field(span(Look::Strong, "left out"), &left_out(result, derived), Look::Plain, screen::lines(page));
    screen::trust(page, result, None, others(derived), several);
    screen::end(page, place, screen::has_failed(result), None);
}

/// What is in the profile, in one line.
fn content(profile: &ProfileFacts) -> String {
    format!(
        "{}, {} with data: {} read, {} written, {}, {}",
        count(profile.calls, "call"),
        profile.data_calls,
        format_size(profile.read_bytes),
        format_size(profile.written_bytes),
        count(profile.files.len() as u64, "file"),
        format_seconds(profile.span_seconds)
    )
}

/// The line for grep, and why it is not all as recorded.
fn verdict(page: &mut Screen, result: &ReplayResult, derived: &ReplayDerived) {
    let found = &derived.verdict;
    let look = if found.verdict == VerdictKind::AsRecorded { Look::Good } else { Look::Bad };
    let whole = derived.levels.iter().filter(|l| l.level == LevelKind::Run && l.part == Part::All);
    let speeds: Vec<(&str, String)> =
        whole.filter_map(|l| Some((l.backend.as_str(), numbers::ratio(l.ratio?)))).take(screen::BACKENDS).collect();
    let speed = match speeds.as_slice() {
        [] => "no speed to compare".to_owned(),
        [(backend, ratio)] => format!("{backend} {ratio} times as fast as recorded"),
        all => format!("speed {}", all.iter().map(|(b, ratio)| format!("{ratio} {b}")).collect::<Vec<_>>().join(", ")),
    };
    let (crowded, outcome) = (ending::crowded(&result.setup.machine), ending::mark(result.ending.outcome));
    page.blank();
    page.line([
        span(Look::Plain, "replay = "),
        span(look, closing::words(found.verdict)),
        span(Look::Plain, format!("{crowded}{outcome}: ")),
        span(Look::Strong, speed),
    ]);
    let because = because(result, derived);
    if !because.is_empty() {
        page.field(span(Look::Warn, "because"), &because.join("; "), Look::Plain, screen::lines(page));
    }
}

/// What keeps the verdict from being the best one.
fn because(result: &ReplayResult, derived: &ReplayDerived) -> Vec<String> {
    let found = &derived.verdict;
    let mut parts = Vec::new();
    if let Some(first) = result.corruptions.first() {
        parts.push(format!("{}: {}", count(found.bytes_wrong, "wrong byte"), trust::place(first)));
    }
    let failed = result.passes.iter().filter(|p| matches!(p.ended, PassEnd::Error(_) | PassEnd::Interrupted));
    let failed = failed.count() as u64;
    let missing = found.passes.saturating_sub(found.passes_complete).saturating_sub(found.passes_not_run);
    if missing > 0 {
        let broken = if failed > 0 { format!(", {failed} of them ended early") } else { String::new() };
        parts.push(format!("{missing} of {} missing{broken}", count(found.passes, "pass")));
    }
    if found.passes_not_run > 0 && found.passes_complete == 0 {
        parts.push(format!("{} not run", count(found.passes_not_run, "pass")));
    }
    if found.calls_as_recorded < found.calls {
        let other = found.calls - found.calls_as_recorded;
        parts.push(format!("{} with another result than recorded", count(other, "call")));
    }
    if found.calls_left_out > 0 {
        parts.push(format!("{} left out", count(found.calls_left_out, "call")));
    }
    if result.setup.profile.calls_cut > 0 {
        parts.push(format!(
            "{} behind a collective call that others never made",
            count(result.setup.profile.calls_cut, "call")
        ));
    }
    parts
}

/// How much of the data was compared.
fn compared(result: &ReplayResult, derived: &ReplayDerived) -> String {
    let found = &derived.verdict;
    match found.checked_share {
        _ if !result.config.verify => "nothing (--verify=off)".to_owned(),
        None => "nothing: no bytes were read".to_owned(),
        Some(share) => {
            let wrong = match found.bytes_wrong {
                0 => "all as expected".to_owned(),
                bytes => format!("{} WRONG", count(bytes, "byte")),
            };
            format!("{}, {} of what was read: {wrong}", format_size(found.bytes_checked), percent(share))
        }
    }
}

/// Calls whose errors, bytes, completed requests and answers were the recorded ones.
fn as_recorded(derived: &ReplayDerived) -> String {
    let found = &derived.verdict;
    match found.calls {
        0 => "no calls were made".to_owned(),
        calls if calls == found.calls_as_recorded => format!("all {} had their recorded results", count(calls, "call")),
        calls => format!("{} of {} had their recorded results", found.calls_as_recorded, count(calls, "call")),
    }
}

/// Bytes read that came past the page cache, then and now: of the last complete pass of each backend.
fn storage(result: &ReplayResult) -> String {
    let of = |fetched: caches::Fetched| {
        fetched.map_or_else(|_| "not known".to_owned(), |bytes| format_size(bytes.min(1 << 62)))
    };
    let now =
        result.config.backends.iter().filter(|b| *b != NULL_BACKEND).take(screen::BACKENDS).filter_map(|backend| {
            let is = |p: &&PassRecord| &p.backend == backend && p.ended == PassEnd::Complete;
            let pass = result.passes.iter().rfind(is)?;
            Some(format!("{backend} {}", of(caches::replayed(result, pass))))
        });
    let now: Vec<String> = now.collect();
    let now = if now.is_empty() { String::new() } else { format!("; now {}", now.join(", ")) };
    let read = format_size(result.setup.profile.read_bytes);
    format!("of {read} read from storage: then {}{now}", of(caches::recorded(result)))
}

/// What each backend does not replay, with the reason for most of it.
fn left_out(result: &ReplayResult, derived: &ReplayDerived) -> String {
    let of = |w: &Warning| {
        let (backend, reason) = (w.backend.as_deref().unwrap_or_default(), clause(w.text("reason")));
        if w.is(&kinds::LEFT_OUT) {
            let calls = w.figures.get("calls").and_then(Value::as_u64).unwrap_or(0);
            Some(format!("{backend}: {} ({}: {reason})", count(calls, "call"), w.text("function")))
        } else {
            w.is(&kinds::NOT_RUN).then(|| format!("{backend}: all, not run: {reason}"))
        }
    };
    let cut = match result.setup.profile.calls_cut {
        0 => None,
        calls => Some(format!("{} behind a collective call that others never made", count(calls, "call"))),
    };
    let texts: Vec<String> = cut.into_iter().chain(derived.warnings.iter().filter_map(of)).collect();
    if texts.is_empty() {
        "nothing: every call was replayed".to_owned()
    } else {
        texts.join("; ")
    }
}

/// What has no line of its own.
fn others(derived: &ReplayDerived) -> impl Iterator<Item = &Warning> {
    derived.warnings.iter().filter(|w| !w.is(&kinds::LEFT_OUT) && !w.is(&kinds::NOT_RUN))
}

#[cfg(test)]
mod tests;
