//! Recorded and replayed values, a table for each level.

use crate::frame::report::html::stacks::{self, StackedBar};
use crate::frame::report::marks::QualityMark;
use crate::frame::report::model::{ReportBlock, ReportSection};
use crate::frame::report::picture::Picture;
use crate::frame::report::table::{Table, TableCell};
use crate::frame::report::text::{count, figure};
use crate::frame::report::DetailLevel;
use crate::frame::units::format_seconds;
use crate::frame::words::or_hyphen;
use crate::replay::config::Detail;
use crate::replay::plan::printable::printable;
use crate::replay::plan::CallClass;
use crate::replay::records::{RepetitionStatus, ReplayResult};
use crate::replay::values::{CallSubset, LevelComparison as Line, LevelKind, ReplayDerived};

/// Maximum number of lines of a table: in the text, for each backend, and on a page; the others are in the files.
const MAX_LINES: usize = 40;
const MAX_PAGE_LINES: usize = 2000;
/// Maximum number of classes with a colour; the others are one part.
const MAX_CLASSES: usize = 7;
/// Characters of a path; its end identifies it better than its begin.
const MAX_PATH_CHARS: usize = 24;

pub(super) fn run_level<'d>(derived: &'d ReplayDerived, backend: &str, part: CallSubset) -> Option<&'d Line> {
    derived.levels.iter().find(|l| l.level == LevelKind::Run && l.part == part && l.backend == backend)
}

pub(super) fn is_not_run(result: &ReplayResult, backend: &str) -> bool {
    result.repetitions.iter().any(|p| p.backend == backend && matches!(p.ended, RepetitionStatus::NotRun(_)))
}

pub(super) fn run_section(result: &ReplayResult, derived: &ReplayDerived, level: DetailLevel) -> Option<ReportSection> {
    let section = level_section(result, derived, level, LevelKind::Run, ["run", "How fast"]);
    section.map(|section| ReportSection { note: "All calls, time summed over the processes.".into(), ..section })
}

/// The levels requested for the run; with details and on a page all of them.
pub(super) fn detail_sections(
    result: &ReplayResult,
    derived: &ReplayDerived,
    level: DetailLevel,
) -> Vec<Option<ReportSection>> {
    let detail = if level == DetailLevel::Full { result.config.detail } else { Detail::Process };
    let all = [
        (Detail::File, LevelKind::File, ["files", "By file"]),
        (Detail::Function, LevelKind::Function, ["functions", "By class of function"]),
        (Detail::Process, LevelKind::Process, ["processes", "By process"]),
    ];
    let asked = all.into_iter().filter(|(least, ..)| detail >= *least);
    asked.map(|(_, kind, name)| level_section(result, derived, level, kind, name)).collect()
}

fn level_section(
    result: &ReplayResult,
    derived: &ReplayDerived,
    level: DetailLevel,
    kind: LevelKind,
    [name, title]: [&'static str; 2],
) -> Option<ReportSection> {
    let table = level_table(result, derived, kind, level);
    let is_empty = table.is_empty();
    let folded = |title: &str, table| ReportBlock::Folded(title.to_owned(), vec![ReportBlock::Table(table)]);
    let block = match kind {
        LevelKind::Run => ReportBlock::Table(table),
        LevelKind::Function => time_picture(result, derived, table),
        LevelKind::File => folded("Reads, writes and all calls of each file", table),
        LevelKind::Process => folded("Reads, writes and all calls of each process", table),
    };
    ReportSection::of(name, title, "", vec![block]).filter(|_| !is_empty)
}

/// Recorded and replayed values, the backends of one item below each other.
fn level_table(result: &ReplayResult, derived: &ReplayDerived, kind: LevelKind, level: DetailLevel) -> Table {
    let of = match kind {
        LevelKind::Run => "kind",
        LevelKind::File => "file",
        LevelKind::Function => "class",
        LevelKind::Process => "process",
    };
    let head = [of, "backend", "calls", "MB", "recorded s", "MB/s", "replayed s", "MB/s", "ratio"];
    let mut lines: Vec<&Line> = derived.levels.iter().filter(|l| l.level == kind).collect();
    lines.sort_by_key(|l| (l.file, l.class, l.rank, l.part));
    let most = match level {
        DetailLevel::Page => MAX_PAGE_LINES,
        _ => MAX_LINES.saturating_mul(result.config.backends.len()),
    };
    let caption = "Times are summed over the processes, bandwidths are per process";
    let mut table = Table::new(caption, 2, head).with_rows(lines.iter().take(most).map(|l| level_row(result, l)));
    if kind == LevelKind::Run {
        let not_run = TableCell::number(None, &[QualityMark::NotRun]);
        for backend in result.config.backends.iter().filter(|backend| is_not_run(result, backend)) {
            let [x, y, z] = [(); 3].map(|()| not_run.clone());
            table.row(["all".into(), backend.as_str().into(), "".into(), "".into(), "".into(), "".into(), x, y, z]);
        }
    }
    match lines.len().saturating_sub(most) {
        0 => table,
        more => table.with_note(format!("{} more in PREFIX.csv and PREFIX.json of --out", count(more as u64, "line"))),
    }
}

fn level_row(result: &ReplayResult, line: &Line) -> [TableCell; 9] {
    let rate = |bytes_per_second: Option<f64>| TableCell::rate(bytes_per_second.map(|rate| rate / 1e6), None, &[]);
    let seconds = |seconds: f64| TableCell::from(format!("{seconds:.6}"));
    let is_handwritten = result.setup.profile.is_handwritten();
    let bytes = (line.recorded_bytes > 0).then(|| figure(line.recorded_bytes as f64 / 1e6));
    [
        level_name(result, line).into(),
        line.backend.as_str().into(),
        line.calls.to_string().into(),
        or_hyphen(bytes).into(),
        if is_handwritten { or_hyphen(None::<String>).into() } else { seconds(line.recorded_seconds) },
        rate(line.recorded_bytes_per_second),
        seconds(line.replayed_seconds),
        rate(line.replayed_bytes_per_second),
        or_hyphen(line.ratio.map(|r| format!("{r:.3}"))).into(),
    ]
}

fn level_name(result: &ReplayResult, line: &Line) -> String {
    let part = match line.part {
        CallSubset::Reads => "reads",
        CallSubset::Writes => "writes",
        CallSubset::All => "all",
    };
    match line.level {
        LevelKind::Run => part.to_owned(),
        LevelKind::Function => line.class.map_or("", CallClass::name).to_owned(),
        LevelKind::Process => format!("{} {part}", or_hyphen(line.rank)),
        LevelKind::File => {
            let known = |n: u64| result.setup.profile.files.get(usize::try_from(n).ok()?.checked_sub(1)?);
            let path = line.file.map_or("of no file".to_owned(), |n| {
                let path: Vec<char> = known(n).map_or(String::new(), |f| printable(&f.path, 4096)).chars().collect();
                path[path.len().saturating_sub(MAX_PATH_CHARS)..].iter().collect()
            });
            format!("{path} {part}")
        }
    }
}

/// Recorded and replayed time of each class, with its table; the table alone without any time.
fn time_picture(result: &ReplayResult, derived: &ReplayDerived, table: Table) -> ReportBlock {
    let all: Vec<&Line> = derived.levels.iter().filter(|l| l.level == LevelKind::Function).collect();
    let seconds = |of: fn(&Line) -> f64, is: &dyn Fn(&Line) -> bool| {
        all.iter().filter(|l| is(l)).map(|l| of(l)).filter(|s| s.is_finite()).sum::<f64>()
    };
    let mut classes: Vec<CallClass> = all.iter().filter_map(|l| l.class).collect();
    classes.sort_unstable();
    classes.dedup();
    let weight = |c: CallClass| seconds(|l| l.recorded_seconds + l.replayed_seconds, &|l| l.class == Some(c));
    classes.sort_by(|a, b| weight(*b).total_cmp(&weight(*a)));
    classes.truncate(MAX_CLASSES);
    let names: Vec<&str> = classes.iter().map(|c| c.name()).chain(["others"]).collect();
    let bar = |name: &str, of: fn(&Line) -> f64, backend: &str| {
        let mut parts: Vec<f64> =
            classes.iter().map(|c| seconds(of, &|l| l.backend == backend && l.class == Some(*c))).collect();
        parts.push(seconds(of, &|l| l.backend == backend && !l.class.is_some_and(|c| classes.contains(&c))));
        let total: f64 = parts.iter().sum();
        let said =
            |(class, seconds): (&&str, &f64)| (*seconds, format!("{name}, {class}: {}", format_seconds(*seconds)));
        let parts = names.iter().zip(&parts).map(said).collect();
        (total, StackedBar { name: name.to_owned(), total: format_seconds(total), parts })
    };
    let backends = &result.config.backends;
    let recorded = backends
        .first()
        .filter(|_| !result.setup.profile.is_handwritten())
        .map(|first| bar("recorded", |l| l.recorded_seconds, first));
    let replayed = backends.iter().take(MAX_CLASSES).map(|b| bar(b, |l| l.replayed_seconds, b));
    let (totals, bars): (Vec<f64>, Vec<StackedBar>) = recorded.into_iter().chain(replayed).unzip();
    let longest = totals.into_iter().fold(0.0, f64::max);
    if longest <= 0.0 {
        return ReportBlock::Table(table);
    }
    let styled: Vec<(usize, &str)> = names.iter().copied().enumerate().collect();
    let said = "Seconds of each class of functions, recorded and replayed".to_owned();
    ReportBlock::Picture(Picture {
        name: "time".into(),
        title: "Time in calls, summed over the processes".into(),
        keys: names.iter().enumerate().map(|(part, name)| stacks::legend_entry(part, name)).collect(),
        frames: vec![stacks::frame("", said, &styled, &bars, longest)],
        table,
    })
}
