//! The tables of the screen: reads, writes and all calls beside what was recorded, and the classes of functions.

use crate::frame::report::marks::Mark;
use crate::frame::report::model::Block;
use crate::frame::report::table::{Cell, Table};
use crate::frame::report::text::percent;
use crate::frame::units::format_seconds;
use crate::frame::words::or_none;
use crate::frame::words::rate;
use crate::replay::plan::names::shown;
use crate::replay::plan::CallClass;
use crate::replay::records::ReplayResult;
use crate::replay::values::{Level as Line, LevelKind, Part, ReplayDerived};

use super::levels::{is_not_run, of_run};

/// Backends shown; a damaged file may name any number.
pub(super) const BACKENDS: usize = 4;
/// Letters of the name of a backend, in a table and above a column.
const NAME: usize = 9;
const HEADING: usize = 7;
/// Classes at most, by the room there is.
const ROWS: [usize; 4] = [10, 8, 6, 3];
const ROWS_OF_SEVERAL: [usize; 4] = [14, 14, 12, 10];

pub(super) fn blocks(result: &ReplayResult, derived: &ReplayDerived) -> Vec<Block> {
    let several = result.config.backends.len() > 1;
    let classes = classes(result, derived, several);
    let more = if several { "then ratios" } else { "time: its share now" };
    let note = format!("MB/s per process, or time of a call that moves nothing; {more}");
    let classes = [Block::Table(classes), Block::Notes(vec![note])];
    let has_classes = derived.levels.iter().any(|l| l.level == LevelKind::Function);
    [Block::Table(whole(result, derived))].into_iter().chain(classes.into_iter().filter(|_| has_classes)).collect()
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

/// As many letters as there is room for.
fn name(backend: &str, letters: usize) -> String {
    shown(backend, letters).chars().take(letters).collect()
}

/// Reads, writes and all calls: a line for what was recorded, and one for each backend.
fn whole(result: &ReplayResult, derived: &ReplayDerived) -> Table {
    let backends = &result.config.backends;
    let parts = [Part::Reads, Part::Writes, Part::All];
    let speed = |bytes_per_second: Option<f64>| bytes_per_second.map(|r| rate(r / 1e6, None));
    let cell = |text: Option<String>| Cell::number(text, &[]);
    // What was recorded is the same for all that leave nothing out.
    let [reads, writes, all] = parts.map(|part| {
        let lines = backends.iter().filter_map(|backend| of_run(derived, backend, part));
        lines.max_by(|a, b| a.recorded_seconds.total_cmp(&b.recorded_seconds))
    });
    let then = |line: Option<&Line>| cell(speed(line.and_then(|l| l.recorded_bytes_per_second)));
    let seconds = cell(all.map(|l| format_seconds(l.recorded_seconds)));
    let mut table = Table::new("", 1, ["MB/s", "reads", "ratio", "writes", "ratio", "in calls", "ratio"])
        .at_most([BACKENDS + 1; 4])
        .noted("per process: bytes / time in calls, both summed over the processes;")
        .noted("ratio: speed now / recorded, above 1 is faster");
    table.row(["recorded".into(), then(reads), "".into(), then(writes), "".into(), seconds]);
    for backend in backends {
        let marks: &[Mark] = if is_not_run(result, backend) { &[Mark::NotRun] } else { &[] };
        let [reads, writes, all] = parts.map(|part| of_run(derived, backend, part));
        let cells = [
            speed(reads.and_then(|l| l.replayed_bytes_per_second)),
            reads.and_then(|l| l.ratio).map(ratio),
            speed(writes.and_then(|l| l.replayed_bytes_per_second)),
            writes.and_then(|l| l.ratio).map(ratio),
            all.map(|l| format_seconds(l.replayed_seconds)),
            all.and_then(|l| l.ratio).map(ratio),
        ];
        table.row([name(backend, NAME).into()].into_iter().chain(cells.map(|text| Cell::number(text, marks))));
    }
    table
}

/// A line for each class of functions, those with most time first.
fn classes(result: &ReplayResult, derived: &ReplayDerived, several: bool) -> Table {
    let backends = &result.config.backends[..result.config.backends.len().min(BACKENDS)];
    let of = |class: CallClass, backend: &str| {
        derived.levels.iter().find(|l| l.class == Some(class) && l.backend == backend)
    };
    let weight = |class: CallClass| {
        let lines = backends.iter().filter_map(|backend| of(class, backend));
        lines.map(|l| l.recorded_seconds.max(l.replayed_seconds)).fold(0.0, f64::max)
    };
    let mut all = CallClass::ALL.to_vec();
    all.sort_by(|a, b| weight(*b).total_cmp(&weight(*a)));
    let mut head = ["by class", "calls", "recorded"].map(str::to_owned).to_vec();
    if several {
        head.extend(backends.iter().map(|backend| name(backend, HEADING)));
    } else {
        head.extend(["now", "ratio", "time"].map(str::to_owned));
    }
    let mut table = Table::new("", 1, head).at_most(if several { ROWS_OF_SEVERAL } else { ROWS });
    for class in all {
        let Some(first) = backends.iter().find_map(|backend| of(class, backend)) else { continue };
        let then = speed(first.recorded_bytes_per_second, first.recorded_seconds, first.calls);
        let ratio_of = |line: Option<&Line>| or_none(line.and_then(|l| l.ratio).map(ratio));
        let mut row = vec![class.name().to_owned(), calls(first.calls), then];
        if several {
            row.extend(backends.iter().map(|backend| ratio_of(of(class, backend))));
        } else {
            let now = speed(first.replayed_bytes_per_second, first.replayed_seconds, first.calls);
            row.extend([now, ratio_of(Some(first)), or_none(share(derived, first).map(percent))]);
        }
        table.row(row);
    }
    table
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
    let of_a_call = (calls > 0 && seconds.is_finite()).then(|| format_seconds(seconds / calls as f64));
    or_none(bytes_per_second.map(|r| rate(r / 1e6, None)).or(of_a_call))
}

/// Share of the time in all calls of its backend.
fn share(derived: &ReplayDerived, line: &Line) -> Option<f64> {
    let all = of_run(derived, &line.backend, Part::All)?.replayed_seconds;
    (all > 0.0).then(|| line.replayed_seconds / all)
}
