//! Blocks of rows with a common heading, one row for each size, with the columns of the release.

use beff_backends::Direction;

use crate::frame::report::marks::QualityMark;
use crate::frame::values::interference::is_disturbed;
use crate::imb_io::config::Multi;
use crate::imb_io::plan::names::find;
use crate::imb_io::plan::{BenchmarkClass, ImbBenchmark, Mode};
use crate::imb_io::records::{ImbResult, OverlapTimes, RowRecord, RowStatus};
use crate::imb_io::values::{GroupValue, ImbDerived, RowValue};

/// Columns of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ColumnSet {
    /// One time, for one rank.
    Single,
    /// Times over the ranks.
    Several,
    /// Times of the blocking call and with a load.
    Overlap,
    /// Times without sizes.
    OpenClose,
}

/// Rows of one benchmark, backend, number of ranks and mode.
pub(super) struct RowBlock<'a> {
    /// Rows and their values, in the order of measurement.
    pub rows: Vec<(&'a RowRecord, &'a RowValue)>,
    /// The first row; the others differ in their sizes.
    pub first: &'a RowRecord,
    /// Benchmark; None: unknown name.
    pub benchmark: Option<&'static ImbBenchmark>,
    pub columns: ColumnSet,
    /// Group that is shown; None: a single group, or the slowest of several.
    pub group: Option<u64>,
}

/// All blocks; with `-multi 1` one for each group.
pub(super) fn blocks<'a>(result: &'a ImbResult, derived: &'a ImbDerived) -> Vec<RowBlock<'a>> {
    let each = result.config.multi == Some(Multi::Each);
    blocks_of_all_groups(result, derived).into_iter().flat_map(|block| by_group(block, each)).collect()
}

/// All blocks, in the order of their first rows, not divided by group.
pub(super) fn blocks_of_all_groups<'a>(result: &'a ImbResult, derived: &'a ImbDerived) -> Vec<RowBlock<'a>> {
    let mut blocks: Vec<RowBlock<'a>> = Vec::new();
    for (record, value) in result.rows.iter().zip(&derived.rows) {
        match blocks.iter_mut().find(|b| same_block(b.first, record)) {
            Some(block) => block.rows.push((record, value)),
            None => blocks.push(block(record, value)),
        }
    }
    blocks
}

fn block<'a>(record: &'a RowRecord, value: &'a RowValue) -> RowBlock<'a> {
    let benchmark = find(&record.benchmark).ok();
    let kind = match benchmark {
        _ if record.sample_bytes.is_none() => ColumnSet::OpenClose,
        Some(b) if b.has_overlap() => ColumnSet::Overlap,
        Some(b) if b.transfer().is_some_and(|t| t.class == BenchmarkClass::Single) => ColumnSet::Single,
        _ => ColumnSet::Several,
    };
    RowBlock { rows: vec![(record, value)], first: record, benchmark, columns: kind, group: None }
}

/// Divides a block by group. Rows not run have no groups, and an overlap is recorded for the slowest rank of all groups.
fn by_group(block: RowBlock<'_>, each: bool) -> Vec<RowBlock<'_>> {
    if !each || block.first.groups < 2 || block.columns == ColumnSet::Overlap || !block.has_times() {
        return vec![block];
    }
    // A modified file may contain any number of groups; groups without times would be empty.
    let timed = block.rows.iter().map(|(record, _)| record.times.len() as u64).max().unwrap_or(0);
    (0..block.first.groups.min(timed))
        .map(|group| RowBlock { rows: block.rows.clone(), group: Some(group), ..block })
        .collect()
}

fn same_block(a: &RowRecord, b: &RowRecord) -> bool {
    (&a.backend, &a.benchmark, a.ranks, a.groups, a.mode) == (&b.backend, &b.benchmark, b.ranks, b.groups, b.mode)
        && a.sample_bytes.is_some() == b.sample_bytes.is_some()
}

impl RowBlock<'_> {
    pub(super) fn has_times(&self) -> bool {
        self.rows.iter().any(|(_, value)| !value.groups.is_empty())
    }

    /// True for writes and unknown benchmarks: reads and Open_Close have no sync.
    pub(super) fn has_sync(&self) -> bool {
        self.benchmark.is_none_or(|b| b.transfer().is_some_and(|t| t.direction == Direction::Write))
    }

    /// Position of the sync: after all iterations, or after each; empty without any.
    pub(super) fn sync_label(&self) -> &'static str {
        match (self.has_sync(), self.first.mode) {
            (false, _) => "",
            (true, Mode::Aggregate) => "all",
            (true, Mode::NonAggregate) => "each",
        }
    }

    pub(super) fn largest(&self) -> Option<(&RowRecord, &RowValue)> {
        self.rows.iter().max_by_key(|(record, _)| record.sample_bytes).copied()
    }

    /// Names of the columns of the release, in order.
    pub(super) fn header(&self) -> &'static [&'static str] {
        match self.columns {
            ColumnSet::Single => &["#bytes", "#repetitions", "t[usec]", "Mbytes/sec"],
            ColumnSet::Several => {
                &["#bytes", "#repetitions", "t_min[usec]", "t_max[usec]", "t_avg[usec]", "Mbytes/sec"]
            }
            ColumnSet::Overlap => {
                &["#bytes", "#repetitions", "t_ovrl[usec]", "t_pure[usec]", "t_CPU[usec]", "overlap[%]"]
            }
            ColumnSet::OpenClose => &["#repetitions", "t_min[usec]", "t_max[usec]", "t_avg[usec]"],
        }
    }

    /// Size and iterations of a row, the first cells of every line.
    pub(super) fn leading_cells(&self, record: &RowRecord) -> Vec<String> {
        record.sample_bytes.into_iter().chain([record.iterations]).map(|n| n.to_string()).collect()
    }

    /// Cells of the columns of the release; None: the row has no such numbers.
    pub(super) fn numbers(&self, record: &RowRecord, value: &RowValue) -> Option<Vec<String>> {
        self.group_numbers(record, value, self.group_of(value)?)
    }

    /// As [`Self::numbers`], for this group.
    pub(super) fn group_numbers(
        &self,
        record: &RowRecord,
        value: &RowValue,
        group: &GroupValue,
    ) -> Option<Vec<String>> {
        let times = group.times;
        let [min, max, mean] = [times.min_seconds, times.max_seconds, times.mean_seconds].map(usec);
        let mut cells = self.leading_cells(record);
        match self.columns {
            ColumnSet::Single => cells.extend([max, decimals(group.mb_per_second?)]),
            ColumnSet::Several => cells.extend([min, max, mean, decimals(group.mb_per_second?)]),
            ColumnSet::OpenClose => cells.extend([min, max, mean]),
            ColumnSet::Overlap => {
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

/// Bandwidth of a row in MB/s, of the first group that is shown.
pub(super) fn mb_per_second(value: &RowValue) -> Option<f64> {
    value.groups.first()?.mb_per_second
}

/// Marks of a row, the most important first.
pub(super) fn marks(result: &ImbResult, record: &RowRecord, value: &RowValue) -> Vec<QualityMark> {
    let ended = match record.ended {
        RowStatus::Complete => None,
        RowStatus::Error(_) => Some(QualityMark::Error),
        RowStatus::Interrupted => Some(QualityMark::Interrupted),
        RowStatus::Limit => Some(QualityMark::Limit),
        RowStatus::NotRun(_) => Some(QualityMark::NotRun),
    };
    let is_complete = ended.is_none();
    let all = [
        (is_wrong(result, record), QualityMark::Wrong),
        (value.cached, QualityMark::Cache),
        (value.has_source && value.storage_bytes.is_none(), QualityMark::CacheUnknown),
        (is_complete && is_disturbed(&record.interference), QualityMark::Interference),
        (is_complete && record.iterations < record.iterations_requested, QualityMark::Reduced),
    ];
    ended.into_iter().chain(all.into_iter().filter_map(|(is_so, mark)| is_so.then_some(mark))).collect()
}

/// Reason why a complete row has no numbers.
pub(super) fn missing_numbers_reason(record: &RowRecord) -> &'static str {
    match record.overlap {
        Some(OverlapTimes { blocking_seconds: None, .. }) => "t_pure is unknown: the blocking call was not timed",
        _ => "the time is 0, so there is no rate",
    }
}

pub(super) fn usec(seconds: f64) -> String {
    decimals(seconds * 1e6)
}

/// A number in the format of the release.
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

/// Reason why a row has no numbers; None: it is complete, or not run, which is reported once for all sizes.
pub(super) fn failure_reason(record: &RowRecord) -> Option<String> {
    match &record.ended {
        RowStatus::Complete | RowStatus::NotRun(_) => None,
        RowStatus::Limit => Some("ENDED by the time limit".to_owned()),
        RowStatus::Interrupted => Some("INTERRUPTED by a signal".to_owned()),
        RowStatus::Error(message) => Some(format!("ERROR on {}", one_line(message))),
    }
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

pub(super) fn rank_count(number: u64) -> String {
    crate::frame::report::text::count(number, "rank")
}

pub(super) fn mode_name(mode: Mode) -> &'static str {
    match mode {
        Mode::Aggregate => "aggregate",
        Mode::NonAggregate => "non-aggregate",
    }
}

/// Reasons why rows of a block were not run, without duplicates, with the number of sizes.
pub(super) fn not_run_reasons(block: &RowBlock<'_>) -> Vec<(String, usize)> {
    let mut reasons: Vec<(String, usize)> = Vec::new();
    for (record, _) in &block.rows {
        let RowStatus::NotRun(reason) = &record.ended else { continue };
        let reason = one_line(reason);
        match reasons.iter_mut().find(|(known, _)| *known == reason) {
            Some((_, number)) => *number += 1,
            None => reasons.push((reason, 1)),
        }
    }
    reasons
}
