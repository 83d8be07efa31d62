//! Tables of the screen: reads, writes and all calls, recorded and replayed, and the classes of functions.

use crate::frame::backends::is_variant;
use crate::frame::report::marks::QualityMark;
use crate::frame::report::model::ReportBlock;
use crate::frame::report::table::{Table, TableCell};
use crate::frame::report::text::percent;
use crate::frame::report::variants;
use crate::frame::units::format_seconds;
use crate::frame::words::or_hyphen;
use crate::frame::words::rate;
use crate::replay::plan::printable::printable;
use crate::replay::plan::CallClass;
use crate::replay::records::ReplayResult;
use crate::replay::values::{CallSubset, LevelComparison as Line, LevelKind, ReplayDerived, ReplayVariant};

use super::levels::{is_not_run, run_level};

/// Backends shown; a damaged file may name any number.
pub(super) const MAX_BACKENDS: usize = 4;
/// Characters of the name of a backend, in a table and above a column.
const NAME_CHARS: usize = 9;
const HEADING_CHARS: usize = 7;
/// Variants shown, by the available lines.
const MAX_VARIANTS: [usize; 4] = [12, 6, 3, 1];
/// Maximum number of classes, by the available lines.
const MAX_ROWS: [usize; 4] = [10, 8, 6, 3];
const MAX_ROWS_OF_SEVERAL: [usize; 4] = [14, 14, 12, 10];

/// The backends without variants, which are compared with their backends only.
pub(super) fn shown_backends(result: &ReplayResult) -> Vec<&String> {
    result.config.backends.iter().filter(|name| !is_variant(name)).collect()
}

pub(super) fn blocks(result: &ReplayResult, derived: &ReplayDerived) -> Vec<ReportBlock> {
    let several = shown_backends(result).len() > 1;
    let is_handwritten = result.setup.profile.is_handwritten();
    let classes = class_table(result, derived, several);
    let more = match (several, is_handwritten) {
        (true, true) => "",
        (true, false) => "; then ratios",
        (false, _) => "; time: its share now",
    };
    let note = format!("MB/s per process, or time per call without data{more}");
    let classes = [ReportBlock::Table(classes), ReportBlock::Notes(vec![note])];
    let has_classes = derived.levels.iter().any(|l| l.level == LevelKind::Function);
    [ReportBlock::Table(run_table(result, derived))]
        .into_iter()
        .chain(classes.into_iter().filter(|_| has_classes))
        .chain(variant_table(derived, false).map(ReportBlock::Table))
        .collect()
}

/// Variants compared with their backends, in full with the verdict in words; None without variants.
pub(super) fn variant_table(derived: &ReplayDerived, is_full: bool) -> Option<Table> {
    let head = ["ratio to its backend", "all calls", "pairs"].into_iter().chain(is_full.then_some("verdict"));
    let row = |v: &ReplayVariant| {
        let (ratio, is_disqualified) = (v.ratio.as_ref(), v.bytes_wrong > 0);
        let pairs = or_hyphen(ratio.map(|ratio| ratio.rounds));
        let verdict = is_full.then(|| variants::verdict(ratio, is_disqualified).to_owned());
        [v.backend.clone(), variants::cell(ratio, is_disqualified), pairs]
            .into_iter()
            .chain(verdict)
            .collect::<Vec<_>>()
    };
    // Wrong data is on a screen in any case.
    let (wrong, others): (Vec<_>, Vec<_>) = derived.variants.iter().partition(|v| v.bytes_wrong > 0);
    let rows = wrong.into_iter().chain(others).map(row);
    let table = Table::new("", 1, head).with_rows(rows).with_note(variants::CELL_NOTE);
    let table = if is_full { table.with_words() } else { table.with_row_limits(MAX_VARIANTS) };
    (!derived.variants.is_empty()).then_some(table)
}

pub(super) fn format_ratio(ratio: f64) -> String {
    match ratio {
        r if r >= 9999.5 || !r.is_finite() => format!("{r:.0e}"),
        r if r >= 99.95 => format!("{r:.0}"),
        r if r >= 9.995 => format!("{r:.1}"),
        r => format!("{r:.2}"),
    }
}

fn format_range([low, high]: [f64; 2]) -> String {
    format!("{}-{}", format_ratio(low), format_ratio(high))
}

/// The name, truncated to this number of characters.
fn fit_name(backend: &str, letters: usize) -> String {
    printable(backend, letters).chars().take(letters).collect()
}

/// Reads, writes and all calls: a line for the recorded run, and one for each backend.
fn run_table(result: &ReplayResult, derived: &ReplayDerived) -> Table {
    let backends = shown_backends(result);
    let parts = [CallSubset::Reads, CallSubset::Writes, CallSubset::All];
    let speed = |bytes_per_second: Option<f64>| bytes_per_second.map(|r| rate(r / 1e6, None));
    let cell = |text: Option<String>| TableCell::number(text, &[]);
    // The recorded values are equal for all backends that omit nothing.
    let [reads, writes, all] = parts.map(|part| {
        let lines = backends.iter().filter_map(|backend| run_level(derived, backend, part));
        lines.max_by(|a, b| a.recorded_seconds.total_cmp(&b.recorded_seconds))
    });
    let then = |line: Option<&Line>| cell(speed(line.and_then(|l| l.recorded_bytes_per_second)));
    let seconds = cell(all.map(|l| format_seconds(l.recorded_seconds)));
    let per_process = "per process: bytes / time in calls, both summed over the processes";
    if result.setup.profile.is_handwritten() {
        return workload_table(result, derived, per_process);
    }
    let mut table = Table::new("", 1, ["MB/s", "reads", "ratio", "writes", "ratio", "in calls", "ratio"])
        .with_row_limits([2 * MAX_BACKENDS + 1; 4])
        .with_note(format!("{per_process};"))
        .with_note("ratio: speed now / recorded, above 1 is faster");
    table.row(["recorded".into(), then(reads), "".into(), then(writes), "".into(), seconds]);
    for backend in backends {
        let marks: &[QualityMark] = if is_not_run(result, backend) { &[QualityMark::NotRun] } else { &[] };
        let [reads, writes, all] = parts.map(|part| run_level(derived, backend, part));
        let cells = [
            speed(reads.and_then(|l| l.replayed_bytes_per_second)),
            reads.and_then(|l| l.ratio).map(format_ratio),
            speed(writes.and_then(|l| l.replayed_bytes_per_second)),
            writes.and_then(|l| l.ratio).map(format_ratio),
            all.map(|l| format_seconds(l.replayed_seconds)),
            all.and_then(|l| l.ratio).map(format_ratio),
        ];
        table.row(
            [fit_name(backend, NAME_CHARS).into()].into_iter().chain(cells.map(|text| TableCell::number(text, marks))),
        );
        let ranges = [reads, writes, all].map(|line| line.and_then(|l| l.ratio_range).map(format_range));
        if ranges.iter().any(Option::is_some) {
            let cells = ranges.into_iter().flat_map(|range| [TableCell::from(""), cell(range)]);
            table.row([TableCell::from("  range")].into_iter().chain(cells));
        }
    }
    table
}

/// The same for a workload written by hand, which is a benchmark of its own.
fn workload_table(result: &ReplayResult, derived: &ReplayDerived, note: &str) -> Table {
    let mut table = Table::new("", 1, ["MB/s", "reads", "writes", "in calls"])
        .with_row_limits([MAX_BACKENDS + 1; 4])
        .with_note(note);
    for backend in shown_backends(result) {
        let marks: &[QualityMark] = if is_not_run(result, backend) { &[QualityMark::NotRun] } else { &[] };
        let [reads, writes, all] =
            [CallSubset::Reads, CallSubset::Writes, CallSubset::All].map(|part| run_level(derived, backend, part));
        let speed = |line: Option<&Line>| line.and_then(|l| l.replayed_bytes_per_second).map(|r| rate(r / 1e6, None));
        let cells = [speed(reads), speed(writes), all.map(|l| format_seconds(l.replayed_seconds))];
        let cells = cells.map(|text| TableCell::number(text, marks));
        table.row([fit_name(backend, NAME_CHARS).into()].into_iter().chain(cells));
    }
    table
}

/// A line for each class of functions, in descending order of time.
fn class_table(result: &ReplayResult, derived: &ReplayDerived, several: bool) -> Table {
    let mut backends = shown_backends(result);
    backends.truncate(MAX_BACKENDS);
    let of = |class: CallClass, backend: &str| {
        derived.levels.iter().find(|l| l.class == Some(class) && l.backend == backend)
    };
    let weight = |class: CallClass| {
        let lines = backends.iter().filter_map(|backend| of(class, backend));
        lines.map(|l| l.recorded_seconds.max(l.replayed_seconds)).fold(0.0, f64::max)
    };
    let mut all = CallClass::ALL.to_vec();
    all.sort_by(|a, b| weight(*b).total_cmp(&weight(*a)));
    let is_handwritten = result.setup.profile.is_handwritten();
    let mut head = vec!["by class", "calls"];
    head.extend((!is_handwritten).then_some("recorded"));
    match (several, is_handwritten) {
        (true, _) => {}
        (false, true) => head.extend(["now", "time"]),
        (false, false) => head.extend(["now", "ratio", "time"]),
    }
    let mut head: Vec<String> = head.into_iter().map(str::to_owned).collect();
    if several {
        head.extend(backends.iter().map(|backend| fit_name(backend, HEADING_CHARS)));
    }
    let mut table = Table::new("", 1, head).with_row_limits(if several { MAX_ROWS_OF_SEVERAL } else { MAX_ROWS });
    for class in all {
        let Some(first) = backends.iter().find_map(|backend| of(class, backend)) else { continue };
        let then = format_speed(first.recorded_bytes_per_second, first.recorded_seconds, first.calls);
        let ratio_of = |line: Option<&Line>| or_hyphen(line.and_then(|l| l.ratio).map(format_ratio));
        let now_of = |line: &Line| format_speed(line.replayed_bytes_per_second, line.replayed_seconds, line.calls);
        let mut row = vec![class.name().to_owned(), format_calls(first.calls)];
        row.extend((!is_handwritten).then_some(then));
        let lines = || backends.iter().map(|backend| of(class, backend));
        match (several, is_handwritten) {
            (true, true) => row.extend(lines().map(|line| or_hyphen(line.map(now_of)))),
            (true, false) => row.extend(lines().map(ratio_of)),
            (false, _) => {
                row.push(now_of(first));
                row.extend((!is_handwritten).then(|| ratio_of(Some(first))));
                row.push(or_hyphen(time_share(derived, first).map(percent)));
            }
        }
        table.row(row);
    }
    table
}

fn format_calls(calls: u64) -> String {
    if calls < 10_000_000 {
        calls.to_string()
    } else {
        format!("{:.1e}", calls as f64)
    }
}

/// Bandwidth, or time per call if nothing is transferred.
fn format_speed(bytes_per_second: Option<f64>, seconds: f64, calls: u64) -> String {
    let of_a_call = (calls > 0 && seconds.is_finite()).then(|| format_seconds(seconds / calls as f64));
    or_hyphen(bytes_per_second.map(|r| rate(r / 1e6, None)).or(of_a_call))
}

fn time_share(derived: &ReplayDerived, line: &Line) -> Option<f64> {
    let all = run_level(derived, &line.backend, CallSubset::All)?.replayed_seconds;
    (all > 0.0).then(|| line.replayed_seconds / all)
}
