//! The rows as they are shown: blocks of sizes below one heading, with the columns of the release.

use beff_backends::Direction;

use crate::frame::report::marks::Mark;
use crate::frame::values::machine_share::is_shared;
use crate::imb_io::config::Multi;
use crate::imb_io::plan::names::find;
use crate::imb_io::plan::{Benchmark, Group, Mode};
use crate::imb_io::records::{ImbResult, OverlapTimes, RowEnd, RowRecord};
use crate::imb_io::values::{GroupValue, ImbDerived, RowValue};

/// Which columns a block has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// One rank: one time.
    Single,
    /// Times over the ranks.
    Several,
    /// By the blocking call, and with a load.
    Overlap,
    /// Without sizes.
    OpenClose,
}

/// Rows of one benchmark, backend, number of ranks and mode.
pub(super) struct Block<'a> {
    /// Its rows and their values, in the order of measurement.
    pub rows: Vec<(&'a RowRecord, &'a RowValue)>,
    /// The first row; the others differ in their sizes.
    pub first: &'a RowRecord,
    /// What is measured; None: a name this program does not know.
    pub benchmark: Option<&'static Benchmark>,
    /// Its columns.
    pub kind: Kind,
    /// The group it is about; None: one group, or the slowest of several.
    pub group: Option<u64>,
}

/// All blocks; with `-multi 1` one for each group.
pub(super) fn blocks<'a>(result: &'a ImbResult, derived: &'a ImbDerived) -> Vec<Block<'a>> {
    let each = result.config.multi == Some(Multi::Each);
    with_all_groups(result, derived).into_iter().flat_map(|block| by_group(block, each)).collect()
}

/// All blocks, in the order of their first rows, whatever the groups.
pub(super) fn with_all_groups<'a>(result: &'a ImbResult, derived: &'a ImbDerived) -> Vec<Block<'a>> {
    let mut blocks: Vec<Block<'a>> = Vec::new();
    for (record, value) in result.rows.iter().zip(&derived.rows) {
        match blocks.iter_mut().find(|b| is_same(b.first, record)) {
            Some(block) => block.rows.push((record, value)),
            None => blocks.push(block(record, value)),
        }
    }
    blocks
}

fn block<'a>(record: &'a RowRecord, value: &'a RowValue) -> Block<'a> {
    let benchmark = find(&record.benchmark).ok();
    let kind = match benchmark {
        _ if record.sample_bytes.is_none() => Kind::OpenClose,
        Some(b) if b.has_overlap() => Kind::Overlap,
        Some(b) if b.transfer().is_some_and(|t| t.group == Group::Single) => Kind::Single,
        _ => Kind::Several,
    };
    Block { rows: vec![(record, value)], first: record, benchmark, kind, group: None }
}

/// What is not run has no groups, and all runs of an overlap are recorded for the slowest rank of all groups.
fn by_group(block: Block<'_>, each: bool) -> Vec<Block<'_>> {
    if !each || block.first.groups < 2 || block.kind == Kind::Overlap || !block.has_times() {
        return vec![block];
    }
    // A file that was changed may claim any number; those without times would show nothing.
    let timed = block.rows.iter().map(|(record, _)| record.times.len() as u64).max().unwrap_or(0);
    (0..block.first.groups.min(timed))
        .map(|group| Block { rows: block.rows.clone(), group: Some(group), ..block })
        .collect()
}

fn is_same(a: &RowRecord, b: &RowRecord) -> bool {
    (&a.backend, &a.benchmark, a.ranks, a.groups, a.mode) == (&b.backend, &b.benchmark, b.ranks, b.groups, b.mode)
        && a.sample_bytes.is_some() == b.sample_bytes.is_some()
}

impl Block<'_> {
    /// True if any of its rows is complete.
    pub(super) fn has_times(&self) -> bool {
        self.rows.iter().any(|(_, value)| !value.groups.is_empty())
    }

    /// True of writes, also of what is not known: reads and Open_Close have no sync that a mode could move.
    pub(super) fn has_sync(&self) -> bool {
        self.benchmark.is_none_or(|b| b.transfer().is_some_and(|t| t.direction == Direction::Write))
    }

    /// Behind what the syncs are: all repetitions, or each; empty: there are none.
    pub(super) fn sync(&self) -> &'static str {
        match (self.has_sync(), self.first.mode) {
            (false, _) => "",
            (true, Mode::Aggregate) => "all",
            (true, Mode::NonAggregate) => "each",
        }
    }

    /// The row with the largest size.
    pub(super) fn largest(&self) -> Option<(&RowRecord, &RowValue)> {
        self.rows.iter().max_by_key(|(record, _)| record.sample_bytes).copied()
    }

    /// Names of the columns of the release, in their order.
    pub(super) fn header(&self) -> &'static [&'static str] {
        match self.kind {
            Kind::Single => &["#bytes", "#repetitions", "t[usec]", "Mbytes/sec"],
            Kind::Several => &["#bytes", "#repetitions", "t_min[usec]", "t_max[usec]", "t_avg[usec]", "Mbytes/sec"],
            Kind::Overlap => &["#bytes", "#repetitions", "t_ovrl[usec]", "t_pure[usec]", "t_CPU[usec]", "overlap[%]"],
            Kind::OpenClose => &["#repetitions", "t_min[usec]", "t_max[usec]", "t_avg[usec]"],
        }
    }

    /// Size and repetitions of a row, which begin every line.
    pub(super) fn begin(&self, record: &RowRecord) -> Vec<String> {
        record.sample_bytes.into_iter().chain([record.repetitions]).map(|n| n.to_string()).collect()
    }

    /// The columns of the release; None: the row has no such numbers.
    pub(super) fn numbers(&self, record: &RowRecord, value: &RowValue) -> Option<Vec<String>> {
        self.numbers_of(record, value, self.group_of(value)?)
    }

    /// As [`Self::numbers`], of this group.
    pub(super) fn numbers_of(&self, record: &RowRecord, value: &RowValue, group: &GroupValue) -> Option<Vec<String>> {
        let times = group.times;
        let [min, max, mean] = [times.min_seconds, times.max_seconds, times.mean_seconds].map(usec);
        let mut cells = self.begin(record);
        match self.kind {
            Kind::Single => cells.extend([max, decimals(group.mb_per_second?)]),
            Kind::Several => cells.extend([min, max, mean, decimals(group.mb_per_second?)]),
            Kind::OpenClose => cells.extend([min, max, mean]),
            Kind::Overlap => {
                let o = record.overlap?;
                cells.extend([o.overlapped_seconds, o.blocking_seconds?, o.cpu_seconds].map(usec));
                cells.push(decimals(value.overlap_percent?));
            }
        }
        Some(cells)
    }

    fn group_of<'v>(&self, value: &'v RowValue) -> Option<&'v GroupValue> {
        match self.group {
            Some(group) => value.groups.iter().find(|g| g.group == group),
            None => value.groups.first(),
        }
    }
}

/// Bandwidth of a row in MB/s, of several groups the first that is shown.
pub(super) fn mb_per_second(value: &RowValue) -> Option<f64> {
    value.groups.first()?.mb_per_second
}

/// What must be known of the numbers of a row, the most important first.
pub(super) fn marks(result: &ImbResult, record: &RowRecord, value: &RowValue) -> Vec<Mark> {
    let ended = match record.ended {
        RowEnd::Complete => None,
        RowEnd::Error(_) => Some(Mark::Error),
        RowEnd::Interrupted => Some(Mark::Interrupted),
        RowEnd::NotRun(_) => Some(Mark::NotRun),
    };
    let is_complete = ended.is_none();
    let all = [
        (is_wrong(result, record), Mark::Wrong),
        (value.cached, Mark::Cache),
        (value.has_source && value.storage_bytes.is_none(), Mark::CacheUnknown),
        (is_complete && is_shared(&record.machine), Mark::Shared),
        (is_complete && record.repetitions < record.repetitions_wanted, Mark::Reduced),
    ];
    ended.into_iter().chain(all.into_iter().filter_map(|(is_so, mark)| is_so.then_some(mark))).collect()
}

/// Why a complete row has no numbers.
pub(super) fn no_numbers(record: &RowRecord) -> &'static str {
    match record.overlap {
        Some(OverlapTimes { blocking_seconds: None, .. }) => "t_pure is not known: the blocking call was not timed",
        _ => "no time passed that could be divided by",
    }
}

/// A time in microseconds.
pub(super) fn usec(seconds: f64) -> String {
    decimals(seconds * 1e6)
}

/// As all numbers of the release are shown.
pub(super) fn decimals(number: f64) -> String {
    format!("{number:.2}")
}

/// True if bytes of this row were wrong.
pub(super) fn is_wrong(result: &ImbResult, record: &RowRecord) -> bool {
    record.bytes_wrong > 0
        || result.corruptions.iter().any(|c| {
            (&c.backend, &c.benchmark, c.ranks, c.mode)
                == (&record.backend, &record.benchmark, record.ranks, record.mode)
                && Some(c.sample_bytes) == record.sample_bytes
        })
}

/// Why a row has no numbers; None: it is complete, or not run at all, which is said once for all sizes.
pub(super) fn cause(record: &RowRecord) -> Option<String> {
    match &record.ended {
        RowEnd::Complete | RowEnd::NotRun(_) => None,
        RowEnd::Interrupted => Some("INTERRUPTED by a signal".to_owned()),
        RowEnd::Error(message) => Some(format!("ERROR on {}", one_line(message))),
    }
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// `1 rank`, `4 ranks`.
pub(super) fn ranks(number: u64) -> String {
    crate::frame::report::text::count(number, "rank")
}

/// A mode in words.
pub(super) fn mode(mode: Mode) -> &'static str {
    match mode {
        Mode::Aggregate => "aggregate",
        Mode::NonAggregate => "non-aggregate",
    }
}

/// Reasons why rows of a block were not run, each once, with how many sizes it kept from running.
pub(super) fn not_run(block: &Block<'_>) -> Vec<(String, usize)> {
    let mut reasons: Vec<(String, usize)> = Vec::new();
    for (record, _) in &block.rows {
        let RowEnd::NotRun(reason) = &record.ended else { continue };
        let reason = one_line(reason);
        match reasons.iter_mut().find(|(known, _)| *known == reason) {
            Some((_, number)) => *number += 1,
            None => reasons.push((reason, 1)),
        }
    }
    reasons
}
