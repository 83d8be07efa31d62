//! The two tables of a screen: reads, writes and all calls beside what was recorded, and the classes of functions.

use crate::frame::report::columns::NONE;
use crate::frame::report::screen;
use crate::frame::report::sheet::{fixed, right, span, Look, Room, Screen};
use crate::frame::report::text::percent;
use crate::frame::units::format_seconds;
use crate::frame::words::clause;
use crate::replay::plan::CallClass;
use crate::replay::records::{PassEnd, ReplayResult};
use crate::replay::values::{Level, LevelKind, Part, ReplayDerived};

/// Widths: name of a backend, a rate, a ratio, a time; name of a class, its calls, a rate or time, a ratio.
const WHO: usize = 10;
const RATE: usize = 9;
const RATIO: usize = 9;
const TIME: usize = 11;
const CLASS: usize = 23;
const CALLS: usize = 9;
const THEN: usize = 10;
const SHARE: usize = 8;
/// Classes at most, by the room there is.
const ROWS: [usize; 4] = [10, 8, 6, 3];
const ROWS_OF_SEVERAL: [usize; 4] = [14, 14, 12, 10];

pub(super) fn write(page: &mut Screen, result: &ReplayResult, derived: &ReplayDerived, backends: &[&str]) {
    whole(page, result, derived, backends);
    classes(page, derived, backends);
}

/// A ratio with three digits.
pub(super) fn ratio(ratio: f64) -> String {
    match ratio {
        r if r >= 9999.5 || !r.is_finite() => format!("{r:.0e}"),
        r if r >= 99.95 => format!("{r:.0}"),
        r if r >= 9.995 => format!("{r:.1}"),
        r => format!("{r:.2}"),
    }
}

fn rate(rate: Option<f64>, width: usize) -> String {
    right(&rate.map_or_else(|| NONE.to_owned(), |r| screen::rate(r / 1e6, None)), width)
}

fn ratio_cell(line: Option<&Level>, width: usize) -> String {
    right(&line.and_then(|l| l.ratio).map_or_else(|| NONE.to_owned(), ratio), width)
}

/// Reads, writes and all calls: a line for what was recorded, and one for each backend.
fn whole(page: &mut Screen, result: &ReplayResult, derived: &ReplayDerived, backends: &[&str]) {
    let of = |backend: &str, part: Part| {
        derived.levels.iter().find(|l| l.level == LevelKind::Run && l.part == part && l.backend == backend)
    };
    page.blank();
    let heads =
        [("reads", RATE), ("ratio", RATIO), ("writes", RATE), ("ratio", RATIO), ("in calls", TIME), ("ratio", RATIO)];
    let heads: String = heads.map(|(text, width)| right(text, width)).concat();
    page.line([span(Look::Quiet, format!("  {}{heads}", fixed("MB/s", WHO)))]);
    let parts = [Part::Reads, Part::Writes, Part::All];
    // What was recorded is the same for all that leave nothing out.
    let most = |part| {
        let lines = backends.iter().filter_map(|backend| of(backend, part));
        lines.max_by(|a, b| a.recorded_seconds.total_cmp(&b.recorded_seconds))
    };
    let [reads, writes, all] = parts.map(most);
    let then = |line: Option<&Level>| rate(line.and_then(|l| l.recorded_bytes_per_second), RATE);
    let time = |seconds: Option<f64>| right(&seconds.map_or_else(|| NONE.to_owned(), format_seconds), TIME);
    let cells = [then(reads), right("", RATIO), then(writes), right("", RATIO), time(all.map(|l| l.recorded_seconds))];
    page.line([span(Look::Plain, format!("  {}{}", fixed("recorded", WHO), cells.concat()))]);
    for backend in backends {
        let not_run = result.passes.iter().find_map(|p| match &p.ended {
            PassEnd::NotRun(reason) if p.backend == *backend => Some(reason),
            _ => None,
        });
        let name = fixed(backend, WHO - 1) + " ";
        if let Some(reason) = not_run {
            page.line([
                span(Look::Plain, format!("  {name}")),
                span(Look::Warn, format!("not run: {}", clause(reason))),
            ]);
            continue;
        }
        let [reads, writes, all] = parts.map(|part| of(backend, part));
        let now = |line: Option<&Level>| rate(line.and_then(|l| l.replayed_bytes_per_second), RATE);
        let cells = [
            now(reads),
            ratio_cell(reads, RATIO),
            now(writes),
            ratio_cell(writes, RATIO),
            time(all.map(|l| l.replayed_seconds)),
        ];
        page.line([
            span(Look::Plain, format!("  {name}{}", cells.concat())),
            span(Look::Strong, ratio_cell(all, RATIO)),
        ]);
    }
    screen::note(page, "per process: bytes / time in calls, both summed over the processes;");
    screen::note(page, "ratio: speed now / recorded, above 1 is faster");
}

/// A line for each class of functions, those with most time first.
fn classes(page: &mut Screen, derived: &ReplayDerived, backends: &[&str]) {
    let lines: Vec<&Level> =
        derived.levels.iter().filter(|l| l.class.is_some() && backends.contains(&l.backend.as_str())).collect();
    let weight = |class: CallClass| {
        let own = lines.iter().filter(|l| l.class == Some(class));
        own.map(|l| l.recorded_seconds.max(l.replayed_seconds)).fold(0.0, f64::max)
    };
    let mut all: Vec<CallClass> =
        CallClass::ALL.into_iter().filter(|c| lines.iter().any(|l| l.class == Some(*c))).collect();
    all.sort_by(|a, b| weight(*b).total_cmp(&weight(*a)));
    if all.is_empty() {
        return;
    }
    let several = backends.len() > 1;
    let most = if several { ROWS_OF_SEVERAL } else { ROWS }[page.room() as usize];
    page.blank();
    let heads = if several {
        backends
            .iter()
            .map(|name| format!(" {}", right(fixed(name, RATIO - 2).trim_end(), RATIO - 1)))
            .collect::<String>()
    } else {
        [("now", THEN), ("ratio", RATIO), ("time", SHARE)].map(|(text, width)| right(text, width)).concat()
    };
    let head = format!("{:CLASS$}{:>CALLS$}{:>THEN$}{heads}", "by class", "calls", "recorded");
    page.line([span(Look::Quiet, format!("  {head}"))]);
    for class in all.iter().take(most) {
        let of = |backend: &str| lines.iter().copied().find(|l| l.class == Some(*class) && l.backend == backend);
        let Some(first) = backends.iter().find_map(|backend| of(backend)) else { continue };
        let mut text = format!("{:CLASS$}{:>CALLS$}{}", class.name(), calls(first.calls), then(first));
        if several {
            backends.iter().for_each(|backend| text.push_str(&ratio_cell(of(backend), RATIO)));
        } else {
            let share = share(derived, first).map_or_else(|| NONE.to_owned(), percent);
            text.push_str(&format!("{}{}{}", now(first), ratio_cell(Some(first), RATIO), right(&share, SHARE)));
        }
        page.line([span(Look::Plain, format!("  {text}"))]);
    }
    screen::not_shown(page, all.len().saturating_sub(most), "class");
    if page.room() != Room::Bare {
        let more = if several { "then ratios" } else { "time: its share now" };
        screen::note(page, &format!("MB/s per process, or time of a call that moves nothing; {more}"));
    }
}

/// Numbers of calls that fit their column.
fn calls(calls: u64) -> String {
    if calls < 10_000_000 {
        calls.to_string()
    } else {
        format!("{:.1e}", calls as f64)
    }
}

/// Bandwidth, or where nothing is moved the time of a call.
fn speed(bytes_per_second: Option<f64>, seconds: f64, calls: u64) -> String {
    match bytes_per_second {
        Some(_) => rate(bytes_per_second, THEN),
        None if calls > 0 && seconds.is_finite() => right(&format_seconds(seconds / calls as f64), THEN),
        None => right(NONE, THEN),
    }
}

fn then(line: &Level) -> String {
    speed(line.recorded_bytes_per_second, line.recorded_seconds, line.calls)
}

fn now(line: &Level) -> String {
    speed(line.replayed_bytes_per_second, line.replayed_seconds, line.calls)
}

/// Share of the time in all calls of its backend.
fn share(derived: &ReplayDerived, line: &Level) -> Option<f64> {
    let is = |l: &&Level| l.level == LevelKind::Run && l.part == Part::All && l.backend == line.backend;
    let all = derived.levels.iter().find(is)?.replayed_seconds;
    (all > 0.0).then(|| line.replayed_seconds / all)
}
