//! The rows: one block of sizes for each benchmark, backend, number of ranks, mode and group that is shown.

use crate::frame::report::model::{Block, Section};
use crate::frame::report::table::{Cell, Table, BAR};
use crate::frame::report::text::count;
use crate::frame::report::Level;
use crate::frame::words::{or_none, NONE};
use crate::imb_io::plan::Mode;
use crate::imb_io::records::{ImbResult, OverlapTimes, RepetitionTimes, RowEnd, RowRecord};
use crate::imb_io::values::{ImbDerived, RowValue};

use super::blocks::{blocks, cause, decimals, marks, mode, no_numbers, not_run, ranks, usec, Block as Rows, Kind};

/// Heading of the first column, of benchmarks that have sizes.
const SIZE: &str = "#bytes";

pub(super) fn section(result: &ImbResult, derived: &ImbDerived, level: Level) -> Option<Section> {
    let blocks = blocks(result, derived);
    let notes = Some(notes(&blocks)).filter(|notes| !notes.is_empty()).map(Block::Notes);
    let each = blocks.iter().map(|rows| Block::Folded(heading(result, rows), of(result, rows, level)));
    Section::of("rows", "Rows", "", notes.into_iter().chain(each).collect())
}

/// What was done in words: the calls of MPI, or of another backend what it says of itself.
fn heading(result: &ImbResult, rows: &Rows<'_>) -> String {
    let first = rows.first;
    let each = ranks(first.ranks);
    let on = match (rows.group, first.groups) {
        (Some(group), groups) => format!("group {group} of {groups}, {each} each"),
        (None, 0 | 1) => each,
        (None, groups) if !rows.has_times() => format!("{groups} groups, {each} each"),
        (None, groups) => format!("slowest of {groups} groups, {each} each"),
    };
    let mode = if rows.has_sync() { format!(", {}", mode(first.mode)) } else { String::new() };
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

fn of(result: &ImbResult, rows: &Rows<'_>, level: Level) -> Vec<Block> {
    let words = words(rows);
    let words = (!words.is_empty()).then_some(Block::Notes(words));
    let (more, calls) = if level == Level::Details { (more(rows), calls(rows)) } else { (None, None) };
    let tables = [times(result, rows).map(Block::Table), words, again(rows).map(Block::Table)];
    tables.into_iter().chain([more.map(Block::Table), calls]).flatten().collect()
}

/// A table of these columns, of sizes below each other on the right; None without rows.
fn table<'h>(
    caption: &str,
    kind: Kind,
    head: impl IntoIterator<Item = &'h str>,
    rows: Vec<Vec<Cell>>,
) -> Option<Table> {
    let narrow = |name: &str| match name.find(['[', '(']) {
        Some(at) => format!("{}\n{}", &name[..at], &name[at..]),
        None => name.to_owned(),
    };
    let skip = usize::from(kind == Kind::OpenClose);
    let head: Vec<String> = head.into_iter().skip(skip).map(narrow).collect();
    (!rows.is_empty()).then(|| Table::new(caption, 1 - skip, head).with(rows))
}

/// The size of a row for the first column, as wide as all of them; nothing without sizes.
fn size(rows: &Rows<'_>, record: &RowRecord) -> Option<String> {
    let widest = rows.rows.iter().filter_map(|(r, _)| r.sample_bytes).max().unwrap_or(0).to_string().len();
    let width = widest.max(SIZE.len());
    record.sample_bytes.map(|bytes| format!("{bytes:>width$}"))
}

/// The columns of the release, then ours.
fn times(result: &ImbResult, rows: &Rows<'_>) -> Option<Table> {
    let ours: &[&str] = match rows.kind {
        Kind::Single | Kind::Several => &["t_median[usec]", "t_p99[usec]", "t_maxrep[usec]", "Mbytes/sec(median)"],
        Kind::OpenClose => &["t_median[usec]", "t_p99[usec]", "t_maxrep[usec]"],
        Kind::Overlap => &["Mbytes/sec(pure)", "t_alone[usec]", "t_CPU(ovrl)[usec]"],
    };
    let release = rows.header();
    let row = |(record, value): &(&RowRecord, &RowValue)| {
        let numbers = rows.numbers(record, value);
        // What is not complete has no number.
        let own = if numbers.is_some() { self::ours(rows.kind, record, value) } else { Vec::new() };
        let mut cells = numbers.unwrap_or_else(|| rows.begin(record));
        cells.resize(release.len(), NONE.to_owned());
        let marked = cells.pop().map(|last| Cell::number(Some(last), &marks(result, record, value)));
        let sized = size(rows, record);
        let rest = cells.into_iter().skip(usize::from(sized.is_some()));
        let own =
            own.into_iter().chain(std::iter::repeat(None)).take(ours.len()).map(|number| Cell::from(or_none(number)));
        let begin = sized.into_iter().chain(rest).map(Cell::from).chain(marked);
        begin.chain([Cell::from(BAR)]).chain(own).collect::<Vec<Cell>>()
    };
    let shown = rows.rows.iter().filter(|(record, _)| !matches!(record.ended, RowEnd::NotRun(_)));
    // The columns of Open_Close begin with the repetitions.
    let head = (rows.kind == Kind::OpenClose).then_some(SIZE).into_iter().chain(release.iter().copied());
    table("Times and bandwidth", rows.kind, head.chain([BAR]).chain(ours.iter().copied()), shown.map(row).collect())
}

fn ours(kind: Kind, record: &RowRecord, value: &RowValue) -> Vec<Option<String>> {
    if kind == Kind::Overlap {
        let of = |seconds: fn(OverlapTimes) -> f64| record.overlap.map(|o| usec(seconds(o)));
        let pure = value.pure_mb_per_second.map(decimals);
        return vec![pure, of(|o| o.alone_seconds), of(|o| o.cpu_overlapped_seconds)];
    }
    let of = |seconds: fn(RepetitionTimes) -> f64| record.repetition_times.map(|t| usec(seconds(t)));
    let median = value.median_mb_per_second.map(decimals);
    vec![of(|t| t.median_seconds), of(|t| t.p99_seconds), of(|t| t.max_seconds), median]
}

/// Why rows have no numbers, and why others were not run.
fn words(rows: &Rows<'_>) -> Vec<String> {
    let why = |(record, value): &(&RowRecord, &RowValue)| {
        let is_bare = record.ended == RowEnd::Complete && rows.numbers(record, value).is_none();
        let why = cause(record).or_else(|| is_bare.then(|| no_numbers(record).to_owned()))?;
        let size = record.sample_bytes.map_or_else(String::new, |bytes| format!("{bytes} bytes, "));
        Some(format!("{size}{} repetitions: {why}", record.repetitions))
    };
    let not_run = not_run(rows).into_iter().map(|(reason, sizes)| match sizes == rows.rows.len() {
        true => format!("not run: {reason}"),
        false => format!("not run ({}): {reason}", count(sizes as u64, "size")),
    });
    rows.rows.iter().filter_map(why).chain(not_run).collect()
}

/// Rows that were measured several times, with their intervals.
fn again(rows: &Rows<'_>) -> Option<Table> {
    let ends =
        |interval: Option<[f64; 2]>, shown: fn(f64) -> String| [0, 1].map(|end| interval.map(|ends| shown(ends[end])));
    let row = |(record, value): &(&RowRecord, &RowValue)| {
        let found = value.repeated?;
        let [low, high] = ends(found.interval_seconds, usec);
        let reach = found.reach_share.map(|share| format!("{:.1}", 100.0 * share));
        let [slow, fast] = ends(found.interval_mb_per_second, decimals);
        let rates = [found.mean_mb_per_second.map(decimals), slow, fast];
        let rates = rates.into_iter().filter(|_| rows.kind != Kind::OpenClose);
        let times = [Some(found.measured.to_string()), Some(usec(found.mean_seconds)), low, high, reach];
        let cells = times.into_iter().chain(rates).map(or_none);
        Some(size(rows, record).into_iter().chain(cells).map(Cell::from).collect::<Vec<Cell>>())
    };
    let times = [SIZE, "measured", "t_mean[usec]", "95 %: from", "to", "+-[%]"];
    let rates = ["Mbytes/sec(mean)", "95 %: from", "to"].into_iter().filter(|_| rows.kind != Kind::OpenClose);
    let all = rows.rows.iter().filter_map(row).collect();
    table("Measured again", rows.kind, times.into_iter().chain(rates), all)
}

fn complete<'r, 'a>(rows: &'r Rows<'a>) -> impl Iterator<Item = (&'a RowRecord, &'a RowValue)> + 'r {
    rows.rows.iter().copied().filter(|(record, _)| record.ended == RowEnd::Complete)
}

/// What the columns do not show: sync, bytes and sources of each size.
fn more(rows: &Rows<'_>) -> Option<Table> {
    let row = |(record, value): (&RowRecord, &RowValue)| {
        let [moved, checked, wrong] =
            [record.moved_bytes, record.bytes_checked, record.bytes_wrong].map(|n| n.to_string());
        let storage = or_none(value.cached_share.map(|share| format!("{:.1}", 100.0 * (1.0 - share))));
        let cells = [usec(record.sync_seconds), moved, checked, wrong, storage, decimals(record.real_seconds)];
        size(rows, record).into_iter().chain(cells).map(Cell::from).collect::<Vec<Cell>>()
    };
    let head = [SIZE, "sync[usec]", "moved[bytes]", "checked[bytes]", "wrong[bytes]", "storage[%]", "real[s]"];
    table("Bytes and sources", rows.kind, head, complete(rows).map(row).collect())
}

/// The calls of the rows, each way once.
fn calls(rows: &Rows<'_>) -> Option<Block> {
    let mut ways: Vec<String> = Vec::new();
    for (record, _) in complete(rows) {
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
    (!ways.is_empty()).then(|| Block::Pairs(ways.into_iter().map(|way| ("calls".to_owned(), way)).collect()))
}

const REPETITIONS: &str = "t_median, t_p99, t_maxrep: over the repetitions, of the slowest rank of each, all groups.";
const SYNC: &str =
    " In aggregate mode the one sync behind all repetitions is in t, not in these and not in Mbytes/sec(median).";
const READ_AHEAD: &str =
    "Reads that are not direct: the median one may find what the kernel has read ahead, and Mbytes/sec(median) is \
                          then the speed of memory. The waiting for the storage is in t, t_p99 and t_maxrep.";
const OVERLAP: &str = "t_pure: the blocking call; t_CPU: a load as long, alone; t_ovrl: the non-blocking call with that load inside, \
                       t_CPU(ovrl): what the load took there; t_alone: the non-blocking call, completed at once. Slowest rank of all \
                       groups. Writes: with the sync behind them, which no load can hide.";
const AGAIN: &str =
    "Measured again: how often, the first time included; mean: geometric, with its 95 % interval by the spread within \
                     this run.";
const PRIVATE: &str = "Priv: each rank moves its part of X in a file of its own; the parts add up to X.";

/// What the columns mean, as far as they are there.
fn notes(blocks: &[Rows<'_>]) -> Vec<String> {
    let any = |is: &dyn Fn(&Rows<'_>, &RowRecord, &RowValue) -> bool| {
        blocks.iter().any(|rows| complete(rows).any(|(record, value)| is(rows, record, value)))
    };
    let is_timed = |rows: &Rows<'_>| rows.kind != Kind::Overlap;
    let has_sync = any(&|rows, r, _| is_timed(rows) && rows.has_sync() && r.mode == Mode::Aggregate);
    let read_ahead =
        |r: &RowRecord, v: &RowValue| v.has_source && r.direct != Some(true) && r.repetition_times.is_some();
    let all = [
        (any(&|rows, _, _| is_timed(rows)), REPETITIONS.to_owned() + if has_sync { SYNC } else { "" }),
        (any(&|_, r, v| read_ahead(r, v)), READ_AHEAD.to_owned()),
        (any(&|rows, _, _| !is_timed(rows)), OVERLAP.to_owned()),
        (any(&|_, _, v| v.repeated.is_some()), AGAIN.to_owned()),
        (any(&|_, r, _| r.benchmark.ends_with("_Priv")), PRIVATE.to_owned()),
    ];
    all.into_iter().filter_map(|(is_needed, text)| is_needed.then_some(text)).collect()
}
