//! Rows in full: one block of sizes for each benchmark, backend, number of ranks, mode and group that is shown.

use beff_statistics::bootstrap::Interval;

use crate::frame::report::model::{ReportBlock, ReportSection};
use crate::frame::report::table::{Table, TableCell, PART_SEPARATOR};
use crate::frame::report::text::count;
use crate::frame::report::DetailLevel;
use crate::frame::words::{or_hyphen, NO_VALUE};
use crate::imb_io::plan::Mode;
use crate::imb_io::records::{ImbResult, IterationTimes, OverlapTimes, RowRecord, RowStatus};
use crate::imb_io::values::{ImbDerived, RowValue};

use super::blocks::{
    blocks, decimals, failure_reason, marks, missing_numbers_reason, mode_name, not_run_reasons, rank_count, usec,
    ColumnSet, RowBlock as Rows,
};

/// Heading of the first column, for benchmarks with sizes.
const SIZE: &str = "#bytes";

pub(super) fn section(result: &ImbResult, derived: &ImbDerived, level: DetailLevel) -> Option<ReportSection> {
    let blocks = blocks(result, derived);
    let notes = Some(notes(&blocks)).filter(|notes| !notes.is_empty()).map(ReportBlock::Notes);
    let each = blocks.iter().map(|rows| ReportBlock::Folded(heading(result, rows), row_blocks(result, rows, level)));
    ReportSection::of("rows", "Rows", "", notes.into_iter().chain(each).collect())
}

/// Heading of a block, with the MPI calls, or the strategy of another backend.
fn heading(result: &ImbResult, rows: &Rows<'_>) -> String {
    let first = rows.first;
    let each = rank_count(first.ranks);
    let on = match (rows.group, first.groups) {
        (Some(group), groups) => format!("group {group} of {groups}, {each} each"),
        (None, 0 | 1) => each,
        (None, groups) if !rows.has_times() => format!("{groups} groups, {each} each"),
        (None, groups) => format!("slowest of {groups} groups, {each} each"),
    };
    let mode = if rows.has_sync() { format!(", {}", mode_name(first.mode)) } else { String::new() };
    let strategy = rows.rows.iter().map(|(r, _)| r.strategy.as_str()).find(|s| !s.is_empty());
    let calls = match rows.benchmark {
        Some(benchmark) if first.backend == "mpiio" => Some(benchmark.calls),
        _ => strategy,
    };
    let others = result.setup.machine.ranks.saturating_sub(first.ranks.saturating_mul(first.groups));
    let waiting = if others > 0 { format!("; {} waiting", count(others, "rank")) } else { String::new() };
    let calls = calls.map_or_else(String::new, |calls| format!(" ({calls})"));
    format!("{}, {}, {on}{mode}{waiting}{calls}", first.benchmark, first.backend)
}

fn row_blocks(result: &ImbResult, rows: &Rows<'_>, level: DetailLevel) -> Vec<ReportBlock> {
    let words = reasons(rows);
    let words = (!words.is_empty()).then_some(ReportBlock::Notes(words));
    let (more, calls) =
        if level == DetailLevel::Details { (bytes_table(rows), calls_used(rows)) } else { (None, None) };
    let tables = [times(result, rows).map(ReportBlock::Table), words, repetition_table(rows).map(ReportBlock::Table)];
    tables.into_iter().chain([more.map(ReportBlock::Table), calls]).flatten().collect()
}

/// A table of these columns; None without rows.
fn table<'h>(
    caption: &str,
    kind: ColumnSet,
    head: impl IntoIterator<Item = &'h str>,
    rows: Vec<Vec<TableCell>>,
) -> Option<Table> {
    let narrow = |name: &str| match name.find(['[', '(']) {
        Some(at) => format!("{}\n{}", &name[..at], &name[at..]),
        None => name.to_owned(),
    };
    let skip = usize::from(kind == ColumnSet::OpenClose);
    let head: Vec<String> = head.into_iter().skip(skip).map(narrow).collect();
    (!rows.is_empty()).then(|| Table::new(caption, 1 - skip, head).with_rows(rows))
}

/// Size of a row for the first column, padded to the widest; None without sizes.
fn size(rows: &Rows<'_>, record: &RowRecord) -> Option<String> {
    let widest = rows.rows.iter().filter_map(|(r, _)| r.sample_bytes).max().unwrap_or(0).to_string().len();
    let width = widest.max(SIZE.len());
    record.sample_bytes.map(|bytes| format!("{bytes:>width$}"))
}

/// The columns of the release, then those of this program.
fn times(result: &ImbResult, rows: &Rows<'_>) -> Option<Table> {
    let ours: &[&str] = match rows.columns {
        ColumnSet::Single | ColumnSet::Several => {
            &["t_median[usec]", "t_p99[usec]", "t_maxrep[usec]", "Mbytes/sec(median)"]
        }
        ColumnSet::OpenClose => &["t_median[usec]", "t_p99[usec]", "t_maxrep[usec]"],
        ColumnSet::Overlap => &["Mbytes/sec(pure)", "t_alone[usec]", "t_CPU(ovrl)[usec]"],
    };
    let release = rows.header();
    let row = |(record, value): &(&RowRecord, &RowValue)| {
        let numbers = rows.numbers(record, value);
        let own = if numbers.is_some() { own_columns(rows.columns, record, value) } else { Vec::new() };
        let mut cells = numbers.unwrap_or_else(|| rows.leading_cells(record));
        cells.resize(release.len(), NO_VALUE.to_owned());
        let marked = cells.pop().map(|last| TableCell::number(Some(last), &marks(result, record, value)));
        let sized = size(rows, record);
        let rest = cells.into_iter().skip(usize::from(sized.is_some()));
        let own = own
            .into_iter()
            .chain(std::iter::repeat(None))
            .take(ours.len())
            .map(|number| TableCell::from(or_hyphen(number)));
        let begin = sized.into_iter().chain(rest).map(TableCell::from).chain(marked);
        begin.chain([TableCell::from(PART_SEPARATOR)]).chain(own).collect::<Vec<TableCell>>()
    };
    let shown = rows.rows.iter().filter(|(record, _)| !matches!(record.ended, RowStatus::NotRun(_)));
    // The columns of Open_Close begin with the iterations.
    let head = (rows.columns == ColumnSet::OpenClose).then_some(SIZE).into_iter().chain(release.iter().copied());
    table(
        "Times and bandwidth",
        rows.columns,
        head.chain([PART_SEPARATOR]).chain(ours.iter().copied()),
        shown.map(row).collect(),
    )
}

fn own_columns(kind: ColumnSet, record: &RowRecord, value: &RowValue) -> Vec<Option<String>> {
    if kind == ColumnSet::Overlap {
        let of = |seconds: fn(OverlapTimes) -> f64| record.overlap.map(|o| usec(seconds(o)));
        let pure = value.pure_mb_per_second.map(decimals);
        return vec![pure, of(|o| o.alone_seconds), of(|o| o.cpu_overlapped_seconds)];
    }
    let of = |seconds: fn(IterationTimes) -> f64| record.iteration_times.map(|t| usec(seconds(t)));
    let median = value.median_mb_per_second.map(decimals);
    vec![of(|t| t.median_seconds), of(|t| t.p99_seconds), of(|t| t.max_seconds), median]
}

/// Reasons why rows have no numbers or were not run.
fn reasons(rows: &Rows<'_>) -> Vec<String> {
    let why = |(record, value): &(&RowRecord, &RowValue)| {
        let is_bare = record.ended == RowStatus::Complete && rows.numbers(record, value).is_none();
        let why = failure_reason(record).or_else(|| is_bare.then(|| missing_numbers_reason(record).to_owned()))?;
        let size = record.sample_bytes.map_or_else(String::new, |bytes| format!("{bytes} bytes, "));
        Some(format!("{size}{} iterations: {why}", record.iterations))
    };
    let not_run = not_run_reasons(rows).into_iter().map(|(reason, sizes)| match sizes == rows.rows.len() {
        true => format!("not run: {reason}"),
        false => format!("not run ({}): {reason}", count(sizes as u64, "size")),
    });
    rows.rows.iter().filter_map(why).chain(not_run).collect()
}

/// The ends of an interval that is narrow enough to be shown.
fn resolved(ends: Option<[f64; 2]>) -> Option<[f64; 2]> {
    ends.filter(|ends| Interval::from(*ends).is_resolved())
}

/// Repeated rows with their confidence intervals.
fn repetition_table(rows: &Rows<'_>) -> Option<Table> {
    let ends =
        |interval: Option<[f64; 2]>, shown: fn(f64) -> String| [0, 1].map(|end| interval.map(|ends| shown(ends[end])));
    let row = |(record, value): &(&RowRecord, &RowValue)| {
        let found = value.repeated?;
        let [low, high] = ends(resolved(found.interval_seconds), usec);
        let is_wide = found.interval_seconds.is_some() && low.is_none();
        let half_width = found.half_width_share.map(|share| format!("{:.1}", 100.0 * share));
        let half_width = if is_wide { Some("wide".to_owned()) } else { half_width };
        let [slow, fast] = ends(resolved(found.interval_mb_per_second), decimals);
        let rates = [found.mean_mb_per_second.map(decimals), slow, fast];
        let rates = rates.into_iter().filter(|_| rows.columns != ColumnSet::OpenClose);
        let times = [Some(found.measurements.to_string()), Some(usec(found.mean_seconds)), low, high, half_width];
        let cells = times.into_iter().chain(rates).map(or_hyphen);
        Some(size(rows, record).into_iter().chain(cells).map(TableCell::from).collect::<Vec<TableCell>>())
    };
    let times = [SIZE, "measured", "t_mean[usec]", "95 %: from", "to", "+-[%]"];
    let rates = ["Mbytes/sec(mean)", "95 %: from", "to"].into_iter().filter(|_| rows.columns != ColumnSet::OpenClose);
    let all = rows.rows.iter().filter_map(row).collect();
    table("Repetitions", rows.columns, times.into_iter().chain(rates), all)
}

fn complete<'r, 'a>(rows: &'r Rows<'a>) -> impl Iterator<Item = (&'a RowRecord, &'a RowValue)> + 'r {
    rows.rows.iter().copied().filter(|(record, _)| record.ended == RowStatus::Complete)
}

/// Details of each size: sync, bytes and sources.
fn bytes_table(rows: &Rows<'_>) -> Option<Table> {
    let row = |(record, value): (&RowRecord, &RowValue)| {
        let [moved, checked, wrong] =
            [record.moved_bytes, record.bytes_checked, record.bytes_wrong].map(|n| n.to_string());
        let storage = or_hyphen(value.cached_share.map(|share| format!("{:.1}", 100.0 * (1.0 - share))));
        let cells = [usec(record.sync_seconds), moved, checked, wrong, storage, decimals(record.real_seconds)];
        size(rows, record).into_iter().chain(cells).map(TableCell::from).collect::<Vec<TableCell>>()
    };
    let head = [SIZE, "sync[usec]", "moved[bytes]", "checked[bytes]", "wrong[bytes]", "storage[%]", "real[s]"];
    table("Bytes and sources", rows.columns, head, complete(rows).map(row).collect())
}

/// The calls of the rows, without duplicates.
fn calls_used(rows: &Rows<'_>) -> Option<ReportBlock> {
    let mut ways: Vec<String> = Vec::new();
    for (record, _) in complete(rows) {
        let cache = match record.direct {
            Some(true) => "direct",
            Some(false) => "through the page cache",
            None => "page cache as in the backend",
        };
        let pure = record.blocking_strategy.as_ref().map_or_else(String::new, |calls| format!("; t_pure: {calls}"));
        let way = format!("{}{pure}; {cache}", record.strategy);
        if !ways.contains(&way) {
            ways.push(way);
        }
    }
    (!ways.is_empty()).then(|| ReportBlock::Pairs(ways.into_iter().map(|way| ("calls".to_owned(), way)).collect()))
}

const ITERATIONS_NOTE: &str =
    "t_median, t_p99, t_maxrep: over the iterations, of the slowest rank of each, all groups.";
const SYNC_NOTE: &str =
    " In aggregate mode the sync after all iterations is in t, not in these and not in Mbytes/sec(median).";
const READ_AHEAD_NOTE: &str =
    "Reads that are not direct: the median iteration may read data that the kernel read ahead, and Mbytes/sec(median) is \
                          then the speed of memory. Waiting for the storage is in t, t_p99 and t_maxrep.";
const OVERLAP_NOTE: &str = "t_pure: the blocking call; t_CPU: a load of the same length, alone; t_ovrl: the non-blocking call with that load \
                       inside, t_CPU(ovrl): the load there; t_alone: the non-blocking call, completed at once. Slowest rank of all \
                       groups. Writes: including the sync after them, which no load can hide.";
const REPETITIONS_NOTE: &str =
    "Repetitions: number of measurements, including the first; mean: geometric, with its 95 % interval by the spread within \
                     this run; wide: its ends differ by more than a factor of two, and it is not shown.";
const PRIVATE_NOTE: &str = "Priv: each rank moves its portion of X in a private file; the portions add up to X.";

fn notes(blocks: &[Rows<'_>]) -> Vec<String> {
    let any = |is: &dyn Fn(&Rows<'_>, &RowRecord, &RowValue) -> bool| {
        blocks.iter().any(|rows| complete(rows).any(|(record, value)| is(rows, record, value)))
    };
    let is_timed = |rows: &Rows<'_>| rows.columns != ColumnSet::Overlap;
    let has_sync = any(&|rows, r, _| is_timed(rows) && rows.has_sync() && r.mode == Mode::Aggregate);
    let read_ahead =
        |r: &RowRecord, v: &RowValue| v.has_source && r.direct != Some(true) && r.iteration_times.is_some();
    let all = [
        (any(&|rows, _, _| is_timed(rows)), ITERATIONS_NOTE.to_owned() + if has_sync { SYNC_NOTE } else { "" }),
        (any(&|_, r, v| read_ahead(r, v)), READ_AHEAD_NOTE.to_owned()),
        (any(&|rows, _, _| !is_timed(rows)), OVERLAP_NOTE.to_owned()),
        (any(&|_, _, v| v.repeated.is_some()), REPETITIONS_NOTE.to_owned()),
        (any(&|_, r, _| r.benchmark.ends_with("_Priv")), PRIVATE_NOTE.to_owned()),
    ];
    all.into_iter().filter_map(|(is_needed, text)| is_needed.then_some(text)).collect()
}
