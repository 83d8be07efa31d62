//! Plain records that several benchmarks keep: what was seen of the machine, of storage and caches, what went wrong. Rates
//! are derived when shown.
//!
//! The records serialize as they are: one JSON object each in the journal, collected in the JSON document.

mod binding;
pub mod cold;
mod evidence;
#[cfg(test)]
pub(crate) mod fixture;
pub mod kinds;
mod machine;
mod machine_share;
mod pages;
mod placement;
mod probe;
mod record;
mod warning;

pub use beff_host::placement::{Numbering, Transport};
pub use beff_host::traffic::DeviceTraffic;
pub use binding::{BindState, Binding, HostBinding, Neighbour, RankBinding};
pub use cold::ColdRecord;
pub use machine::{HostRecord, Machine, StorageRecord, TakenBack};
pub use machine_share::MachineShare;
pub use pages::PagesRecord;
pub use placement::Placement;
pub use probe::{ProbeAt, ProbeRecord};
pub(crate) use record::{run_record, TakeIn};
pub use record::{Record, RunEnd};
pub(crate) use warning::{kinds, DEFINITION};
pub use warning::{Figure, Kind, Warning};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Version of the result format; raised when a field changes its meaning or goes away.
pub const SCHEMA_VERSION: u32 = 2;

/// Access method.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Access {
    /// Initial write.
    Write,
    /// Rewrite of what the initial write wrote.
    Rewrite,
    /// Read.
    Read,
}

impl Access {
    /// All three in the order of work.
    pub const ALL: [Self; 3] = [Self::Write, Self::Rewrite, Self::Read];

    /// The name as it is printed.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Write => "write",
            Self::Rewrite => "rewrite",
            Self::Read => "read",
        }
    }
}

/// One round of a pattern: batches, and for writes a sync, between the turns of other backends. What ratios of backends
/// are compared by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RoundRecord {
    /// Which of the rounds, from 1: the same number is the same turn of all backends. A round without a call has no record. 0: not known,
    /// in results of versions before it was; then the place in the list tells.
    #[serde(default)]
    pub number: u32,
    /// Calls per rank.
    pub calls: u64,
    /// Bytes of all ranks.
    pub moved_bytes: u64,
    /// Time of the slowest rank, all intervals.
    pub seconds: f64,
}

/// Where the bytes of a pattern went, as far as the kernel tells.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Evidence {
    /// What passed the devices below the path, from the one that is mounted to the one at the bottom. Each is one level that all bytes
    /// pass: a loop device comes before the disk with its file, an array before its members, which are one. A partition counts for
    /// itself. Traffic of other programs is in it. Empty: not known.
    pub devices: Vec<DeviceTraffic>,
    /// Why nothing is known about devices, or not about all of them: `network file system nfs4: no local device`, `overlay: the device
    /// below is not visible`, ...
    pub devices_unknown: Option<String>,
    /// Bytes of the pattern's range of the file(s) in the page cache before it, of all hosts together but at most all of it; None: not
    /// known. It is looked at in slices, because the number of calls is known only afterwards: it belongs to the calls that were made.
    pub resident_before_bytes: Option<u64>,
    /// The same after it.
    pub resident_after_bytes: Option<u64>,
    /// Bytes of the range of these calls that exist in the file(s), those of all ranks.
    pub range_bytes: u64,
    /// How residency was found: `cachestat`, `mincore`, or why it is not known or not to be trusted (`not trustworthy on overlay`, `tmpfs
    /// lives in memory`, ...); empty: not looked at.
    pub residency_by: String,
}

/// Times of the calls of a pattern, all ranks, with `--latency`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LatencyRecord {
    /// What was timed: `call`, or `operation` where a backend overlaps the chunks of calls.
    pub of: String,
    /// How many.
    pub count: u64,
    /// Median.
    pub p50_ns: u64,
    /// 99 of 100 were not slower.
    pub p99_ns: u64,
    /// 999 of 1000.
    pub p999_ns: u64,
    /// The slowest.
    pub max_ns: u64,
}

/// What the harness itself costs, measured at the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HarnessCost {
    /// Smallest step of the clock seen.
    pub clock_resolution_ns: f64,
    /// One reading of the clock.
    pub clock_read_ns: f64,
    /// One barrier, median over all ranks.
    pub barrier_ns: f64,
    /// One common decision, median over all ranks.
    pub decision_ns: f64,
    /// One access of the backend that does nothing, with 1 kB chunks.
    pub null_access_ns: f64,
    /// Recording the time of one call with `--latency`; 0: not measured.
    #[serde(default)]
    pub latency_record_ns: f64,
}

/// An error that ended the run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ErrorRecord {
    /// Where: what was measured (backend, access and pattern, or pattern, size and method), or the phase.
    pub during: String,
    /// Rank that saw it (lowest if several).
    pub rank: u64,
    /// How many ranks saw one.
    pub ranks_affected: u64,
    /// Full message: operation, file, offset, cause.
    pub message: String,
    /// What to do next.
    pub next_step: String,
    /// True if the storage was full.
    pub no_space: bool,
}

/// The same loop by us and in bare C, one after the other, slowest rank each.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BarePair {
    /// Ours.
    pub ours_seconds: f64,
    /// In C, without our checks and without a clock around each call.
    pub bare_seconds: f64,
}

/// How the run ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// All patterns were worked through.
    Complete,
    /// A signal ended it; what was measured is kept.
    Interrupted,
    /// An error ended it; what was measured is kept.
    Failed,
    /// No end was recorded: the run was killed (only seen in journals).
    #[default]
    Killed,
}

impl Outcome {
    /// How a run ended, in a word; `interrupted` says how one ended that a signal stopped.
    #[must_use]
    pub fn how(self, interrupted: &'static str) -> &'static str {
        match self {
            Self::Complete => "complete",
            Self::Interrupted => interrupted,
            Self::Failed => "failed",
            Self::Killed => "killed",
        }
    }
}

impl ErrorRecord {
    /// An error that one rank alone has seen, storage that is full apart.
    #[must_use]
    pub fn of_rank(rank: u64, during: &str, message: String, next_step: &str) -> Self {
        let (during, next_step) = (during.to_owned(), next_step.to_owned());
        Self { during, rank, ranks_affected: 1, message, next_step, no_space: false }
    }
}
