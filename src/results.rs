//! Plain records of what was measured: bytes, seconds, counts. Rates and averages are derived when shown ([`crate::stats`]).
//!
//! The records serialize as they are: one JSON object each in the journal, collected in the JSON document.

pub mod comm;
mod evidence;
pub mod imb;
mod machine;
mod record;
mod run;
mod warning;

pub use machine::{HostRecord, Machine, Manifest, StorageRecord};
pub use record::Record;
pub use run::{JournalLine, RunResult};
pub use warning::Warning;

use serde::{Deserialize, Serialize};

/// Version of the result format; raised when a field changes its meaning or goes away.
pub const SCHEMA_VERSION: u32 = 1;

/// The benchmark of files that name none in a field `benchmark`.
pub const B_EFF_IO: &str = "b_eff_io";

/// Access method.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
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

/// Why a pattern's loop ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "by", content = "reason")]
pub enum Ended {
    /// The scheduled time was used.
    Time,
    /// The count given by the definition was reached (warm-up, fill-up, segments, end of what was written).
    Count,
    /// The space share of the pattern was used before its time.
    Space,
    /// A count-driven first write went far beyond its scheduled time and was cut; its segment keeps a hole.
    TimeGuard,
    /// Stopped by a signal.
    Interrupted,
    /// An error ended it.
    Error,
    /// Not run, with the reason.
    NotRun(String),
}

/// Where the time of a pattern went, of the slowest rank; the sum is the pattern's time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Intervals {
    /// File view, datatypes, registration.
    pub view_seconds: f64,
    /// Making the file longer before a write that cannot do it itself (mmap).
    #[serde(default)]
    pub room_seconds: f64,
    /// The calls that move data.
    pub transfer_seconds: f64,
    /// Agreeing to go on or stop, waiting for slower ranks included.
    pub decide_seconds: f64,
    /// MPI_File_sync or fsync (zero for reads).
    pub sync_seconds: f64,
}

impl Intervals {
    /// Adds the parts of a later round.
    pub fn add(&mut self, later: &Self) {
        self.view_seconds += later.view_seconds;
        self.room_seconds += later.room_seconds;
        self.transfer_seconds += later.transfer_seconds;
        self.decide_seconds += later.decide_seconds;
        self.sync_seconds += later.sync_seconds;
    }

    /// Sum of all parts.
    #[must_use]
    pub fn total_seconds(&self) -> f64 {
        self.view_seconds + self.room_seconds + self.transfer_seconds + self.decide_seconds + self.sync_seconds
    }
}

/// One batch of calls as the slowest rank saw it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct BatchRecord {
    /// Calls per rank.
    pub calls: u64,
    /// Time of the slowest rank.
    pub seconds: f64,
}

/// One round of a pattern: batches, and for writes a sync, between the turns of other backends. What ratios of backends
/// are compared by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RoundRecord {
    /// Calls per rank.
    pub calls: u64,
    /// Bytes of all ranks.
    pub moved_bytes: u64,
    /// Time of the slowest rank, all intervals.
    pub seconds: f64,
}

/// Bytes a block device has moved while a pattern ran, for whomever.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceTraffic {
    /// Name as in /proc/diskstats; with several hosts, `host:name`.
    pub device: String,
    /// Read from it.
    pub read_bytes: u64,
    /// Written to it.
    pub written_bytes: u64,
    /// Requests completed (reads, writes), after merging.
    pub read_requests: u64,
    /// Write requests completed.
    pub write_requests: u64,
}

/// Where the bytes of a pattern went, as far as the kernel tells.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Evidence {
    /// Devices below the path, from the one that is mounted to the one at the bottom (a loop device comes before the
    /// disk with its backing file). Empty: not known.
    pub devices: Vec<DeviceTraffic>,
    /// Why nothing is known about devices, e.g. a network file system.
    pub devices_unknown: Option<String>,
    /// Bytes of the pattern's range of the file(s) in the page cache before the pattern; None: not known.
    pub resident_before_bytes: Option<u64>,
    /// The same after it.
    pub resident_after_bytes: Option<u64>,
    /// Bytes of that range that exist in the file(s).
    pub range_bytes: u64,
    /// How residency was found: `cachestat`, `mincore`, or why it is not known or not to be trusted.
    pub residency_by: String,
}

/// Times of the calls of a pattern, all ranks, with `--latency`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
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

/// One depth tried in the calibration of the queue.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct DepthTrial {
    /// Operations in flight at most.
    pub depth: u32,
    /// Completions waited for in one call.
    pub wait_for: u32,
    /// Bytes of all ranks.
    pub bytes: u64,
    /// Slowest rank.
    pub seconds: f64,
}

/// Calibration of the queue for one direction and chunk size (uring).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TuningRecord {
    /// Backend name.
    pub backend: String,
    /// Write or read.
    pub access: Access,
    /// Chunk size it holds for (and above, up to the next).
    pub chunk_bytes: u64,
    /// All that was tried.
    pub trials: Vec<DepthTrial>,
    /// Depth chosen.
    pub depth: u32,
    /// Completions waited for in one call.
    pub wait_for: u32,
}

/// Outcome of the comparison of what was read with what was written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Verification {
    /// 8-byte words compared, all ranks.
    pub words_checked: u64,
    /// Words that were wrong, all ranks.
    pub words_wrong: u64,
}

/// One pattern with one access method on one partition through one backend.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PatternRecord {
    /// Backend name.
    pub backend: String,
    /// Ranks of the partition.
    pub ranks: u64,
    /// Access method.
    pub access: Access,
    /// Pattern type, 0 to 4.
    pub pattern_type: u8,
    /// Pattern number, 0 to 42.
    pub pattern: u8,
    /// Contiguous bytes on disk, l.
    pub chunk_bytes: u64,
    /// Contiguous bytes in memory per call and rank, L.
    pub call_bytes: u64,
    /// Time units U.
    pub time_units: u32,
    /// Calls per rank.
    pub calls: u64,
    /// Bytes moved by all ranks.
    pub moved_bytes: u64,
    /// Time the definition gives to this pattern; 0 for U = 0.
    pub scheduled_seconds: f64,
    /// What the schedule left of it after earlier overruns.
    pub budget_seconds: f64,
    /// Parts of the time.
    pub intervals: Intervals,
    /// Number of common decisions.
    pub decisions: u64,
    /// What the decisions themselves cost: for each the smallest time over the ranks, added up. The rest of
    /// `decide_seconds` is waiting for slower ranks.
    pub decision_cost_seconds: f64,
    /// The batches in order.
    pub batches: Vec<BatchRecord>,
    /// The rounds in order; their times and bytes add up to the pattern's.
    #[serde(default)]
    pub rounds: Vec<RoundRecord>,
    /// Why it ended.
    pub ended: Ended,
    /// Ring check of reads.
    pub verification: Verification,
    /// The calls used, in words.
    pub strategy: String,
    /// True if the page cache was bypassed, None if the backend cannot know.
    pub direct: Option<bool>,
    /// Hints asked for this pattern.
    pub hints_requested: Vec<(String, String)>,
    /// Hints the library says are in force.
    pub hints_granted: Vec<(String, String)>,
    /// Bytes the kernel fetched from storage on behalf of the ranks during the transfer (/proc/self/io); None: not known.
    pub storage_read_bytes: Option<u64>,
    /// Bytes the ranks caused to be sent to storage (/proc/self/io).
    pub storage_written_bytes: Option<u64>,
    /// Devices and page cache.
    #[serde(default)]
    pub evidence: Evidence,
    /// Times of single calls.
    #[serde(default)]
    pub latency: Option<LatencyRecord>,
    /// Memory allocations of the program inside the clock, all ranks. Anything but 0 is a defect.
    pub allocations_in_clock: u64,
}

impl PatternRecord {
    /// Time of the pattern, slowest rank.
    #[must_use]
    pub fn seconds(&self) -> f64 {
        self.intervals.total_seconds()
    }

    /// True if the pattern was run at all.
    #[must_use]
    pub fn was_run(&self) -> bool {
        !matches!(self.ended, Ended::NotRun(_))
    }
}

/// Opening and closing of the file(s) of one type with one access method.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TypeRecord {
    /// Backend name.
    pub backend: String,
    /// Ranks of the partition.
    pub ranks: u64,
    /// Access method.
    pub access: Access,
    /// Pattern type, 0 to 4.
    pub pattern_type: u8,
    /// Slowest rank's time to open.
    pub open_seconds: f64,
    /// Slowest rank's time to close.
    pub close_seconds: f64,
    /// Bytes of one file after the access (type 2: of each rank's file).
    pub file_bytes: u64,
    /// Bytes of one rank's segment, types 3 and 4.
    pub segment_bytes: Option<u64>,
    /// Hints asked at open.
    pub hints_requested: Vec<(String, String)>,
    /// Hints the library says are in force after the open.
    pub hints_granted: Vec<(String, String)>,
    /// Untimed re-read of everything with `--verify full`, after a write or rewrite.
    pub full_verification: Option<Verification>,
}

/// One partition as planned.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PartitionRecord {
    /// Ranks 0 .. ranks-1 take part.
    pub ranks: u64,
    /// M_PART in force.
    pub m_part_bytes: u64,
    /// M_PART of the definition, if the space did not allow it.
    pub m_part_wanted_bytes: u64,
    /// Space share of this partition for one backend; None: unlimited (null backend only).
    pub space_bytes: Option<u64>,
    /// Scheduled time of the partition.
    pub time_seconds: f64,
}

/// What the harness itself costs, measured at the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct HarnessCost {
    /// Smallest step of the clock seen.
    pub clock_resolution_ns: f64,
    /// One reading of the clock.
    pub clock_read_ns: f64,
    /// One barrier over all ranks, median.
    pub barrier_ns: f64,
    /// One common decision over all ranks, median.
    pub decision_ns: f64,
    /// One access of the null backend with 1 kB chunks.
    pub null_access_ns: f64,
    /// Recording the time of one call with `--latency`; 0: not measured.
    #[serde(default)]
    pub latency_record_ns: f64,
}

/// Write rate seen before the run with a small file of its own, to predict the sync of the first patterns.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Calibration {
    /// Backend name.
    pub backend: String,
    /// Bytes written and synced, all ranks.
    pub bytes: u64,
    /// Time of the writes.
    pub write_seconds: f64,
    /// Time of the sync.
    pub sync_seconds: f64,
}

/// A wrong word found by the verification, named.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CorruptionRecord {
    /// Backend name.
    pub backend: String,
    /// Ranks of the partition.
    pub ranks: u64,
    /// Access method after or during which it was found.
    pub access: Access,
    /// Pattern number that wrote the place.
    pub pattern: u8,
    /// Rank whose data it should be.
    pub rank: u64,
    /// File name below the run directory.
    pub file: String,
    /// Offset of the first wrong word in the file.
    pub offset_bytes: u64,
    /// Expected word.
    pub expected: u64,
    /// Word found.
    pub found: u64,
    /// What it looks like: "one bit flipped", "data of rank 3", "data of the first write", "hole (zeros)", ...
    pub looks_like: String,
    /// Wrong words in this place altogether.
    pub words_wrong: u64,
}

/// An error that ended the run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ErrorRecord {
    /// Where: backend, access and pattern, or the phase.
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

/// How the run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// All patterns were worked through.
    Complete,
    /// A signal ended it; what was measured is kept.
    Interrupted,
    /// An error ended it; what was measured is kept.
    Failed,
    /// No end was recorded: the run was killed (only seen in journals).
    Killed,
}

/// The end of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Ending {
    /// How.
    pub outcome: Outcome,
    /// Time from the calibration to the last close, with everything between, verification and bookkeeping too.
    pub real_seconds: f64,
    /// Of that, untimed verification with `--verify full`.
    pub full_verify_seconds: f64,
    /// Of that, calibration before the first pattern.
    pub calibrate_seconds: f64,
    /// Time to remove the files, after everything.
    pub cleanup_seconds: f64,
    /// Largest resident memory of a rank (VmHWM).
    pub rank_memory_high_water_bytes: u64,
    /// Memory per rank the plan said.
    pub rank_memory_planned_bytes: u64,
}
