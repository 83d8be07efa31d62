//! Plain records shared by the benchmarks: machine, storage, caches and errors. Rates are derived when a report is made.
//!
//! Each record is one JSON object in the journal; the JSON document collects them.

mod binding;
pub mod cache_cold;
mod evidence;
#[cfg(test)]
pub(crate) mod fixture;
mod huge_pages;
mod interference;
pub mod kinds;
mod machine;
mod placement;
mod probe;
pub(crate) mod rank_runs;
mod record;
mod time_limit;
mod warning;

pub use beff_host::placement::{RankNumbering, Transport};
pub use beff_host::storage_sheet::{StorageKey, StorageParameter};
pub use beff_host::traffic::DeviceTraffic;
pub use binding::{BindState, Binding, BoundProcess, HostBinding, RankBinding};
pub use cache_cold::CacheColdRecord;
pub use huge_pages::HugePagesRecord;
pub use interference::InterferenceRecord;
pub use machine::{DirectAlignBasis, HostRecord, MachineRecord, MemoryBallooning, StorageRecord};
pub use placement::Placement;
pub use probe::{ProbeRecord, ProbeTime};
pub(crate) use record::{run_record, Accumulate};
pub use record::{JournaledResult, RunEnd};
pub use time_limit::{OmittedPart, TimeLimitRecord};
pub(crate) use warning::{kinds, WARNING_DEFINITION};
pub use warning::{Warning, WarningFigure, WarningKind};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Version of the result format; raised when a field changes its meaning or is removed.
pub const SCHEMA_VERSION: u32 = 3;

/// Access method.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum AccessMethod {
    /// Initial write.
    Write,
    /// Rewrite of the initial write's data.
    Rewrite,
    /// Read.
    Read,
}

impl AccessMethod {
    /// All three in the order of execution.
    pub const ALL: [Self; 3] = [Self::Write, Self::Rewrite, Self::Read];

    /// Printed name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Write => "write",
            Self::Rewrite => "rewrite",
            Self::Read => "read",
        }
    }
}

/// One interleaving round of a pattern: batches, and for writes a sync, between the turns of other backends. Ratios of backends are
/// derived from rounds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RoundRecord {
    /// Number of the round, from 1, common to all backends. A round without a call has no record. 0 if unknown (results of older
    /// versions); the index in the list then counts.
    #[serde(default)]
    pub number: u32,
    /// Calls per rank.
    pub calls: u64,
    /// Bytes of all ranks.
    pub moved_bytes: u64,
    /// Time of the slowest rank, summed over all intervals.
    pub seconds: f64,
}

/// Path of a pattern's bytes through devices and page cache, as reported by the kernel.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Evidence {
    /// Traffic of the devices below the path, from the mounted device to the bottom. Each entry is one level that all bytes pass: a loop
    /// device precedes the disk with its file, an array its members, which form one level. A partition is counted by itself. Traffic
    /// of other programs is included. Empty if unknown.
    pub devices: Vec<DeviceTraffic>,
    /// Why some or all devices are unknown: `network file system nfs4: no local device`, `overlay: the device below is not visible`, ...
    pub devices_unknown: Option<String>,
    /// Bytes of the pattern's range of the file(s) in the page cache before the pattern, summed over all hosts but at most the range;
    /// None if unknown. Residency is sampled in slices, because the number of calls is known only afterwards; the sum covers the calls
    /// that were made.
    pub resident_before_bytes: Option<u64>,
    /// The same after the pattern.
    pub resident_after_bytes: Option<u64>,
    /// Bytes of the range of these calls that exist in the file(s), all ranks.
    pub range_bytes: u64,
    /// Source of the residency: `cachestat`, `mincore`, or why it is unknown or unreliable (`not trustworthy on overlay`, `tmpfs lives in
    /// memory`, ...); empty if it was not queried.
    pub residency_source: String,
}

/// Call latencies of a pattern over all ranks, with `--latency`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LatencyRecord {
    /// Timed unit: `call`, or `operation` where a backend overlaps the chunks of calls.
    pub of: String,
    /// Number of samples.
    pub count: u64,
    /// Median.
    pub p50_ns: u64,
    /// 99th percentile.
    pub p99_ns: u64,
    /// 99.9th percentile.
    pub p999_ns: u64,
    /// Maximum.
    pub max_ns: u64,
}

/// Overhead of the harness, measured at the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HarnessCost {
    /// Smallest observed step of the clock.
    pub clock_resolution_ns: f64,
    /// One reading of the clock.
    pub clock_read_ns: f64,
    /// One barrier, median over all ranks.
    pub barrier_ns: f64,
    /// One agreement of all ranks, median over the ranks.
    pub decision_ns: f64,
    /// One access of the null backend with 1 kB chunks.
    pub null_access_ns: f64,
    /// Recording the time of one call with `--latency`; 0 if not measured.
    #[serde(default)]
    pub latency_record_ns: f64,
}

/// An error that ended the run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ErrorRecord {
    /// Measurement (backend, access and pattern, or pattern, size and method) or phase in which it occurred.
    pub during: String,
    /// Rank that reported it (the lowest of several).
    pub rank: u64,
    /// Number of ranks that reported an error.
    pub ranks_affected: u64,
    /// Full message: operation, file, offset, cause.
    pub message: String,
    /// Suggested remedy.
    pub next_step: String,
    /// True if the storage was full.
    pub no_space: bool,
}

/// The same loop in the harness and as a bare loop in C, executed one after the other; time of the slowest rank each.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BareLoopPair {
    /// Loop of the harness.
    pub harness_seconds: f64,
    /// Bare loop: no checks and no clock around each call.
    pub bare_seconds: f64,
}

/// How the run ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RunOutcome {
    /// All patterns were executed.
    Complete,
    /// The time limit ended it before all patterns were executed; completed measurements are kept.
    Limit,
    /// A signal ended it; completed measurements are kept.
    Interrupted,
    /// An error ended it; completed measurements are kept.
    Failed,
    /// No end was recorded: the run was killed (only in journals).
    #[default]
    Killed,
}

impl RunOutcome {
    /// True if it ended before its plan, and not by an error.
    #[must_use]
    pub fn is_cut(self) -> bool {
        matches!(self, Self::Limit | Self::Interrupted | Self::Killed)
    }

    /// One word for the outcome; `interrupted` is the word for a run that a signal stopped.
    #[must_use]
    pub fn label(self, interrupted: &'static str) -> &'static str {
        match self {
            Self::Complete => "complete",
            Self::Limit => "ended by the time limit",
            Self::Interrupted => interrupted,
            Self::Failed => "failed",
            Self::Killed => "killed",
        }
    }
}

impl ErrorRecord {
    /// An error of a single rank that is not a full storage.
    #[must_use]
    pub fn of_rank(rank: u64, during: &str, message: String, next_step: &str) -> Self {
        let (during, next_step) = (during.to_owned(), next_step.to_owned());
        Self { during, rank, ranks_affected: 1, message, next_step, no_space: false }
    }
}
