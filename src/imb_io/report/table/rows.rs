//! The rows: one block of sizes for each benchmark, backend, number of ranks, mode and group that is shown.

use beff_backends::Direction;

use crate::frame::report::grid::Grid;
use crate::frame::report::marks::{letters, Legend, Mark};
use crate::frame::report::text::{count, Page};
use crate::frame::values::machine_share::is_shared;
use crate::imb_io::plan::{Benchmark, Mode};
use crate::imb_io::records::{ImbResult, RowEnd, RowRecord};
use crate::imb_io::report::blocks::{
    blocks, cause, decimals, is_wrong, mode, no_numbers, not_run, ranks, usec, Block, Kind,
};
use crate::imb_io::values::{ImbDerived, RowValue};

/// Fewer repetitions than number and volume allow.
const REDUCED: char = 'r';

/// Stands for a number that there is not.
const NONE: &str = "-";

/// What is shown and has to be explained below.
#[derive(Default)]
struct Shown {
    legend: Legend,
    reduced: bool,
    read_ahead: bool,
    /// Times over the repetitions.
    repetitions: bool,
    /// Of these some without the sync behind all repetitions.
    without_sync: bool,
    overlap: bool,
}

impl Shown {
    fn note(&mut self, block: &Block<'_>, record: &RowRecord, value: &RowValue, marks: &[Mark]) {
        let is_overlap = block.kind == Kind::Overlap;
        self.legend.note_marks(marks);
        self.reduced |= is_reduced(record);
        self.read_ahead |= value.has_source && record.direct != Some(true) && record.repetition_times.is_some();
        self.repetitions |= !is_overlap;
        self.without_sync |= !is_overlap && has_sync(block) && record.mode == Mode::Aggregate;
        self.overlap |= is_overlap;
    }
}

pub(super) fn write(page: &mut Page, result: &ImbResult, derived: &ImbDerived, details: bool) {
    let mut shown = Shown::default();
    for block in blocks(result, derived) {
        page.heading(&heading(result, &block));
        let mut grid = Grid::new(header(&block), 11).named("marks");
        for (record, value) in &block.rows {
            if matches!(record.ended, RowEnd::NotRun(_)) {
                continue;
            }
            match (cause(record), block.numbers(record, value)) {
                (Some(cause), _) => grid.line(block.begin(record), cause),
                (None, None) => grid.line(block.begin(record), no_numbers(record)),
                (None, Some(mut cells)) => {
                    let marks = marks(result, record, value);
                    shown.note(&block, record, value, &marks);
                    cells.extend(ours(&block, record, value));
                    let less = if is_reduced(record) { REDUCED.to_string() } else { String::new() };
                    grid.line(cells, letters(&marks) + &less);
                }
            }
        }
        if !grid.is_empty() {
            grid.write(page);
        }
        let all = block.rows.len();
        for (reason, sizes) in not_run(&block) {
            let which = if sizes == all { String::new() } else { format!(" ({})", count(sizes as u64, "size")) };
            page.hanging("  ", &format!("not run{which}: {reason}"));
        }
        again(page, &block);
        if details {
            more(page, &block);
        }
    }
    notes(page, result, &shown);
}

/// Reads and Open_Close have no sync that a mode could move.
fn has_sync(block: &Block<'_>) -> bool {
    let is_write = |b: &Benchmark| b.transfer().is_some_and(|t| t.direction == Direction::Write);
    block.benchmark.is_none_or(is_write)
}

/// What was done in words: the calls of MPI, or of another backend what it says of itself.
fn heading(result: &ImbResult, block: &Block<'_>) -> String {
    let first = block.first;
    let mut parts = vec![first.benchmark.clone(), first.backend.clone()];
    match (block.group, first.groups) {
        (Some(group), groups) => parts.push(format!("group {group} of {groups}, {} each", ranks(first.ranks))),
        (None, 0 | 1) => parts.push(ranks(first.ranks)),
        (None, groups) if !block.has_times() => parts.push(format!("{groups} groups, {} each", ranks(first.ranks))),
        (None, groups) => parts.push(format!("slowest of {groups} groups, {} each", ranks(first.ranks))),
    }
    if has_sync(block) {
        parts.push(mode(first.mode).to_owned());
    }
    let strategy = block.rows.iter().map(|(r, _)| r.strategy.as_str()).find(|s| !s.is_empty());
    let calls = match block.benchmark {
        Some(benchmark) if first.backend == "mpiio" => Some(benchmark.calls),
        _ => strategy,
    };
    let others = result.setup.machine.ranks.saturating_sub(first.ranks.saturating_mul(first.groups));
    let waiting = if others > 0 { format!("; {} waiting", count(others, "rank")) } else { String::new() };
    let calls = calls.map_or_else(String::new, |calls| format!(" ({calls})"));
    format!("{}{waiting}{calls}", parts.join(", "))
}

fn header(block: &Block<'_>) -> Vec<String> {
    let ours: &[&str] = match block.kind {
        Kind::Single | Kind::Several => &["|", "t_median[usec]", "t_p99[usec]", "t_maxrep[usec]", "Mbytes/sec(median)"],
        Kind::OpenClose => &["|", "t_median[usec]", "t_p99[usec]", "t_maxrep[usec]"],
        Kind::Overlap => &["|", "Mbytes/sec(pure)", "t_alone[usec]", "t_CPU(ovrl)[usec]"],
    };
    block.header().iter().chain(ours).map(ToString::to_string).collect()
}

fn ours(block: &Block<'_>, record: &RowRecord, value: &RowValue) -> Vec<String> {
    let or_none = |number: Option<String>| number.unwrap_or_else(|| NONE.to_owned());
    let mut cells = vec!["|".to_owned()];
    if block.kind == Kind::Overlap {
        cells.push(or_none(value.pure_mb_per_second.map(decimals)));
        cells.push(or_none(record.overlap.map(|o| usec(o.alone_seconds))));
        cells.push(or_none(record.overlap.map(|o| usec(o.cpu_overlapped_seconds))));
        return cells;
    }
    let times = record.repetition_times;
    cells.push(or_none(times.map(|t| usec(t.median_seconds))));
    cells.push(or_none(times.map(|t| usec(t.p99_seconds))));
    cells.push(or_none(times.map(|t| usec(t.max_seconds))));
    if block.kind != Kind::OpenClose {
        cells.push(or_none(value.median_mb_per_second.map(decimals)));
    }
    cells
}

/// The marks of a row, those of b_eff_io.
fn marks(result: &ImbResult, record: &RowRecord, value: &RowValue) -> Vec<Mark> {
    let mut marks = Vec::new();
    if is_wrong(result, record) {
        marks.push(Mark::Wrong);
    }
    if value.cached {
        marks.push(Mark::Cache);
    } else if value.has_source && value.storage_bytes.is_none() {
        marks.push(Mark::CacheUnknown);
    }
    marks.extend(is_shared(&record.machine).then_some(Mark::Shared));
    marks
}

fn is_reduced(record: &RowRecord) -> bool {
    record.repetitions < record.repetitions_wanted
}

/// Rows that were measured several times, with their intervals.
fn again(page: &mut Page, block: &Block<'_>) {
    let is_moving = block.kind != Kind::OpenClose;
    let mut names = vec!["measured", "t_mean[usec]", "95 %: from", "to", "+-[%]"];
    if is_moving {
        names.insert(0, "#bytes");
        names.extend(["Mbytes/sec(mean)", "95 %: from", "to"]);
    }
    let mut grid = Grid::new(names.iter().map(ToString::to_string).collect(), 11);
    let or_none = |number: Option<String>| number.unwrap_or_else(|| NONE.to_owned());
    for (record, value) in &block.rows {
        let Some(found) = value.repeated else { continue };
        let [low, high] = [0, 1].map(|end| found.interval_seconds.map(|ends| usec(ends[end])));
        let mut cells: Vec<String> = record.sample_bytes.iter().map(u64::to_string).collect();
        cells.extend([found.measured.to_string(), usec(found.mean_seconds), or_none(low), or_none(high)]);
        cells.push(or_none(found.reach_share.map(|share| format!("{:.1}", 100.0 * share))));
        if is_moving {
            let [low, high] = [0, 1].map(|end| found.interval_mb_per_second.map(|ends| decimals(ends[end])));
            cells.extend([or_none(found.mean_mb_per_second.map(decimals)), or_none(low), or_none(high)]);
        }
        grid.line(cells, "");
    }
    if grid.is_empty() {
        return;
    }
    page.blank();
    grid.write(page);
    page.hanging(
        "  ",
        "measured: how often, the row above being the first; mean: geometric, with its 95 % interval by the spread within this run.",
    );
}

/// What the columns do not show: sync, bytes and sources of each size; then the calls.
fn more(page: &mut Page, block: &Block<'_>) {
    let names = ["#bytes", "sync[usec]", "moved[bytes]", "checked[bytes]", "wrong[bytes]", "storage[%]", "real[s]"];
    let skip = usize::from(block.kind == Kind::OpenClose);
    let mut grid = Grid::new(names[skip..].iter().map(ToString::to_string).collect(), 11);
    for (record, value) in block.rows.iter().filter(|(r, _)| r.ended == RowEnd::Complete) {
        let mut cells: Vec<String> = record.sample_bytes.iter().map(u64::to_string).collect();
        cells.push(usec(record.sync_seconds));
        cells.extend([record.moved_bytes, record.bytes_checked, record.bytes_wrong].map(|n| n.to_string()));
        cells.push(value.cached_share.map_or_else(|| NONE.to_owned(), |share| format!("{:.1}", 100.0 * (1.0 - share))));
        cells.push(decimals(record.real_seconds));
        grid.line(cells, "");
    }
    if grid.is_empty() {
        return;
    }
    page.blank();
    grid.write(page);
    let mut ways: Vec<String> = Vec::new();
    for (record, _) in block.rows.iter().filter(|(r, _)| r.ended == RowEnd::Complete) {
        let cache = match record.direct {
            Some(true) => "direct",
            Some(false) => "through the page cache",
            None => "page cache as the backend chooses",
        };
        let pure = record.blocking_strategy.as_ref().map_or_else(String::new, |calls| format!("; t_pure: {calls}"));
        let way = format!("{}{pure}; {cache}", record.strategy);
        if !ways.contains(&way) {
            ways.push(way);
        }
    }
    for way in ways {
        page.hanging("  calls: ", &way);
    }
}

/// What the columns and marks mean, as far as they are there.
fn notes(page: &mut Page, result: &ImbResult, shown: &Shown) {
    if !shown.repetitions && !shown.overlap {
        return;
    }
    page.blank();
    let marks: Vec<String> = shown
        .legend
        .text()
        .into_iter()
        .chain(shown.reduced.then(|| format!("{REDUCED} fewer repetitions, to keep within the time limit of a row")))
        .collect();
    if !marks.is_empty() {
        page.hanging("  marks: ", &marks.join(",  "));
    }
    if shown.repetitions {
        let sync = if shown.without_sync {
            " In aggregate mode the one sync behind all repetitions is in t, not in these and not in Mbytes/sec(median)."
        } else {
            ""
        };
        let text = "t_median, t_p99, t_maxrep: over the repetitions, of the slowest rank of each, all groups.";
        page.hanging("  ", &format!("{text}{sync}"));
    }
    if shown.read_ahead {
        page.hanging(
            "  ",
            "Reads that are not direct: the median one may find what the kernel has read ahead, and Mbytes/sec(median) is then \
             the speed of memory. The waiting for the storage is in t, t_p99 and t_maxrep.",
        );
    }
    if shown.overlap {
        page.hanging(
            "  ",
            "t_pure: the blocking call; t_CPU: a load as long, alone; t_ovrl: the non-blocking call with that load inside, \
             t_CPU(ovrl): what the load took there; t_alone: the non-blocking call, completed at once. Slowest rank of all \
             groups. Writes: with the sync behind them, which no load can hide.",
        );
    }
    if result.rows.iter().any(|r| r.benchmark.ends_with("_Priv")) {
        page.hanging("  ", "Priv: each rank moves its part of X in a file of its own; the parts add up to X.");
    }
}
