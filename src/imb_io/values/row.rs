//! Values of one row.

use beff_backends::Direction;
use schemars::JsonSchema;
use serde::Serialize;

use super::repeated::{self, RepeatedRow};
use crate::frame::values::read_source::{ReadObservation, ReadOrigin};
use crate::frame::values::NULL_BACKEND;
use crate::imb_io::config::Multi;
use crate::imb_io::plan::names::find;
use crate::imb_io::plan::overlap;
use crate::imb_io::records::{GroupTimes, ImbResult, RowRecord, RowStatus};

/// Values of one group of ranks.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct GroupValue {
    /// Number of the group, from 0.
    pub group: u64,
    /// Its times.
    #[serde(flatten)]
    pub times: GroupTimes,
    /// X / t_max in 1e6 bytes/s; of a non-blocking benchmark the overlapped run, which includes the load. None: Open_Close, or
    /// a time of 0.
    pub mb_per_second: Option<f64>,
}

/// Values of one row.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct RowValue {
    /// Groups that are shown: all (`-multi 1`), else the slowest alone; empty if the row is not complete.
    pub groups: Vec<GroupValue>,
    /// X / median iteration time in 1e6 bytes/s; None: not complete, Open_Close, or overlapping iterations.
    pub median_mb_per_second: Option<f64>,
    /// X / t_pure in 1e6 bytes/s; None: not complete, not a non-blocking benchmark, or t_pure unknown.
    pub pure_mb_per_second: Option<f64>,
    /// Overlap of the transfer and the load, 0 to 100.
    #[schemars(range(min = 0, max = 100))]
    pub overlap_percent: Option<f64>,
    /// True for a complete read that moved bytes of files, which have a source, known or not.
    pub has_source: bool,
    /// Bytes read from storage; None: unknown, or not a read.
    pub storage_bytes: Option<u64>,
    /// Share of the bytes read from a cache, 0 to 1.
    #[schemars(range(min = 0, max = 1))]
    pub cached_share: Option<f64>,
    /// True for a cache figure: this share is more than 10 %, as in b_eff_io.
    pub cached: bool,
    /// Statistics over all measurements; None: measured once, or not complete.
    pub repeated: Option<RepeatedRow>,
}

pub(super) fn of(result: &ImbResult, record: &RowRecord, again: &[&RowRecord]) -> RowValue {
    let complete = record.ended == RowStatus::Complete;
    let rate = |seconds: Option<f64>| mb_per_second(record.sample_bytes, seconds.filter(|_| complete)?);
    let overlap = record.overlap.filter(|_| complete);
    let has_source = complete && is_read(record) && record.backend != NULL_BACKEND && record.moved_bytes > 0;
    let source = if has_source { source(result, record) } else { ReadOrigin::default() };
    RowValue {
        groups: if complete { groups(result.config.multi, record) } else { Vec::new() },
        median_mb_per_second: rate(record.iteration_times.map(|t| t.median_seconds)),
        pure_mb_per_second: rate(overlap.and_then(|o| o.blocking_seconds)),
        overlap_percent: overlap
            .and_then(|o| overlap::percent(o.blocking_seconds?, o.cpu_seconds, o.overlapped_seconds)),
        has_source,
        storage_bytes: source.storage_bytes,
        cached_share: source.cache_share,
        cached: source.is_cached,
        repeated: repeated::of(record, again),
    }
}

fn groups(multi: Option<Multi>, record: &RowRecord) -> Vec<GroupValue> {
    let all = record.times.iter().zip(0..).map(|(times, group)| GroupValue {
        group,
        times: *times,
        mb_per_second: mb_per_second(record.sample_bytes, times.max_seconds),
    });
    match multi {
        Some(Multi::Each) => all.collect(),
        _ => all.max_by(|a, b| a.times.max_seconds.total_cmp(&b.times.max_seconds)).into_iter().collect(),
    }
}

/// The rate for 0 bytes is 0 at any time.
fn mb_per_second(sample_bytes: Option<u64>, seconds: f64) -> Option<f64> {
    match sample_bytes? {
        0 => Some(0.0),
        bytes => crate::frame::units::mb_per_second(bytes, seconds),
    }
}

fn is_read(record: &RowRecord) -> bool {
    let transfer = find(&record.benchmark).ok().and_then(|b| b.transfer());
    transfer.is_some_and(|t| t.direction == Direction::Read)
}

fn source(result: &ImbResult, record: &RowRecord) -> ReadOrigin {
    let Some(evidence) = &record.evidence else { return ReadOrigin::default() };
    let reading = ReadObservation {
        storage: &result.setup.storage,
        evidence,
        moved_bytes: record.moved_bytes,
        counted_bytes: record.storage_read_bytes,
        direct: record.direct,
    };
    reading.source()
}
