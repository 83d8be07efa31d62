//! Plain records of b_eff_io: bytes, seconds, counts. Rates and averages are derived ([`super::values`]).
//!
//! Each record is one JSON object in the journal; the JSON document collects them.

mod checks;
mod continuation;
mod first_writes;
mod ordered;
mod ranks;
mod run;

pub use checks::{CorruptionRecord, InjectedFaultRecord, SampleRecord, Verification};
pub use continuation::{ContinuationRecord, UnitRecord};
pub use first_writes::{FirstWriteMode, FirstWritePair, FirstWriteTrial};
pub use ordered::{MixRecord, OrderedRecord, OrderedTypeRecord, ReadExpectation};
pub use ranks::{HostTransfer, SlowestRank};
pub use run::{JournalLine, RunResult};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::b_eff_io::pattern_type::PatternType;
use crate::frame::records::{
    AccessMethod, Evidence, InterferenceRecord, LatencyRecord, MachineRecord, RoundRecord, RunOutcome, StorageRecord,
};

/// Benchmark of files without a field `benchmark`.
pub const B_EFF_IO: &str = "b_eff_io";

/// Why the loop of a pattern ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", tag = "by", content = "reason")]
pub enum StopReason {
    /// Scheduled time elapsed.
    Time,
    /// Count of the definition reached (warm-up, fill-up, segments, end of the written data).
    Count,
    /// Space share of the pattern exhausted before its time.
    Space,
    /// Count-driven first write far beyond its scheduled time, cut; its segment keeps a hole.
    TimeGuard,
    /// Time limit of the run.
    Limit,
    /// Signal.
    Interrupted,
    /// Error.
    Error,
    /// Not run, with the reason.
    NotRun(String),
}

impl StopReason {
    /// True if the pattern was cut: its rate is not that of the whole pattern.
    #[must_use]
    pub fn is_cut(&self) -> bool {
        matches!(self, Self::Error | Self::Interrupted | Self::Limit)
    }
}

/// Time of a pattern by parts, slowest rank; the sum is the pattern's time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TimeBreakdown {
    /// File view, datatypes, buffer registration.
    pub view_seconds: f64,
    /// Preallocation before writes that cannot extend the file (mmap) or are slow when they do (direct first writes), and trimming of the
    /// unused rest.
    #[serde(default)]
    pub preallocate_seconds: f64,
    /// The calls that move data.
    pub transfer_seconds: f64,
    /// Agreement to continue or stop, waiting for slower ranks included.
    pub decide_seconds: f64,
    /// MPI_File_sync or fsync (0 for reads).
    pub sync_seconds: f64,
}

impl TimeBreakdown {
    /// Adds the parts of a later round.
    pub fn add(&mut self, later: &Self) {
        self.view_seconds += later.view_seconds;
        self.preallocate_seconds += later.preallocate_seconds;
        self.transfer_seconds += later.transfer_seconds;
        self.decide_seconds += later.decide_seconds;
        self.sync_seconds += later.sync_seconds;
    }

    /// Sum of all parts.
    #[must_use]
    pub fn total_seconds(&self) -> f64 {
        self.view_seconds + self.preallocate_seconds + self.transfer_seconds + self.decide_seconds + self.sync_seconds
    }
}

/// One batch of calls, slowest rank.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BatchRecord {
    /// Calls per rank.
    pub calls: u64,
    /// Time of the slowest rank; with an agreement after each call that of rank 0, which alone decides then (for the last batch still the
    /// slowest rank's). Rewrites and reads of uring without edge handling begin a batch while the previous one is in flight, so that the
    /// queue stays full: then the time of its chunks at the completion rate measured meanwhile.
    pub seconds: f64,
}

/// One trial of the queue calibration.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DepthTrial {
    /// Maximum number of operations in flight.
    pub depth: u32,
    /// Completions awaited in one call.
    pub wait_for: u32,
    /// Size of the operations, several in flight, that a chunk is split into; None: one operation.
    #[serde(default)]
    pub operation_bytes: Option<u64>,
    /// Bytes of all ranks.
    pub bytes: u64,
    /// Slowest rank.
    pub seconds: f64,
}

/// Calibration of the queue for one direction and chunk size (uring).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct QueueCalibration {
    /// Backend name.
    pub backend: String,
    /// `write` (also for rewrites) or `read`.
    pub access: AccessMethod,
    /// Chunk size to which it applies (and larger ones, up to the next).
    pub chunk_bytes: u64,
    /// All trials in order. Empty: too little time or space.
    pub trials: Vec<DepthTrial>,
    /// Maximum number of operations in flight in force: of the settings whose median rate is within 3 % of the best, whole chunks before
    /// operations, then the least memory in flight, then the fastest. The default without trials, or if the rate of whole chunks still rose
    /// at the largest depth that the time allowed and that depth is below the default. The row of the largest chunk also applies to larger
    /// ones: M_PART is tried with at most 128 MiB.
    pub depth: u32,
    /// Completions awaited in one call.
    pub wait_for: u32,
    /// Size of the operations, several in flight, that chunks are split into; None: one operation each.
    #[serde(default)]
    pub operation_bytes: Option<u64>,
}

/// io_uring submission statistics, all ranks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SubmissionRecord {
    /// Operations with registered buffers. One that continues after a partial transfer counts again.
    pub registered: u64,
    /// Operations with other memory.
    pub plain: u64,
    /// Kernel worker threads of io_uring, of the rank with most at the end. The kernel does not report how many operations they executed.
    pub workers: u64,
    /// CPU time of the workers that existed at the end.
    pub worker_cpu_seconds: f64,
}

/// One pattern with one access method on one partition through one backend.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PatternRecord {
    /// Backend name.
    pub backend: String,
    /// Ranks of the partition.
    pub ranks: u64,
    /// Access method.
    pub access: AccessMethod,
    /// Pattern type, 0 to 4.
    pub pattern_type: PatternType,
    /// Pattern number, 0 to 42.
    pub pattern: u8,
    /// Contiguous bytes on disk, l.
    pub chunk_bytes: u64,
    /// Contiguous bytes in memory per call and rank, L.
    pub call_bytes: u64,
    /// Time units U; 0 for warm-up and fill-up.
    pub time_units: u32,
    /// Calls per rank.
    pub calls: u64,
    /// Bytes moved by all ranks.
    pub moved_bytes: u64,
    /// Scheduled time of the definition; 0 for U = 0.
    pub scheduled_seconds: f64,
    /// Scheduled time less earlier overruns of the access method, at least a quarter; with release 2.1 all of it regardless of overruns.
    pub budget_seconds: f64,
    /// Parts of the real time, slowest rank. Their sum is the time of the pattern.
    pub intervals: TimeBreakdown,
    /// Number of agreements. The ranks run the next batches, at most eight, while an agreement is in flight; they wait for the last one
    /// before the end of the time. 0 for a single call that each rank makes independently.
    pub decisions: u64,
    /// Cost of the agreements themselves: for each the minimum time over the ranks, summed. The rest of `decide_seconds` is waiting for
    /// slower ranks. Neither contains the batches run meanwhile.
    pub decision_cost_seconds: f64,
    /// Difference between the time of the pattern and that of its slowest rank without `decide_seconds`: the time added by the agreements.
    /// Other waiting results from differences between ranks, as all make the same number of calls. None if unknown.
    #[serde(default)]
    pub imbalance_seconds: Option<f64>,
    /// The slowest rank of each round, in order; empty: one rank, or not recorded.
    #[serde(default)]
    pub slowest_ranks: Vec<SlowestRank>,
    /// The batches in order.
    pub batches: Vec<BatchRecord>,
    /// The rounds in order; their times and bytes add up to the pattern's.
    #[serde(default)]
    pub rounds: Vec<RoundRecord>,
    /// Why the loop ended.
    pub ended: StopReason,
    /// Words in the buffers of the last reads, with `--verify full` of all reads. For a rewrite with `--verify full` the contents of the
    /// file before it; for a write whose calls were not all made, everything in the file.
    pub verification: Verification,
    /// With `--verify sample`: sample of the written range that was read back after the pattern; None: not done.
    #[serde(default)]
    pub sample: Option<SampleRecord>,
    /// Description of the calls used.
    pub strategy: String,
    /// io_uring submission statistics; None: the backend has none, or nothing was run.
    #[serde(default)]
    pub submissions: Option<SubmissionRecord>,
    /// True if the page cache was bypassed; None if unknown: to the backend, or because a trial could not prove it (`direct_align_basis`).
    pub direct: Option<bool>,
    /// Hints requested for this pattern, by key and value.
    pub hints_requested: Vec<(String, String)>,
    /// Hints in force according to the library.
    pub hints_granted: Vec<(String, String)>,
    /// Bytes that the kernel fetched from storage for the ranks during the transfer (/proc/self/io); None if unknown.
    pub storage_read_bytes: Option<u64>,
    /// Bytes that the ranks caused to be written to storage (/proc/self/io); None if unknown. They may arrive there later.
    pub storage_written_bytes: Option<u64>,
    /// Bytes returned by read calls during the transfer, as counted by the kernel (rchar of /proc/self/io), all ranks; None if unknown.
    /// io_uring and mappings are not counted, messages through sockets and pipes are.
    #[serde(default)]
    pub call_read_bytes: Option<u64>,
    /// Bytes passed to write calls (wchar), likewise.
    #[serde(default)]
    pub call_written_bytes: Option<u64>,
    /// Evidence of where the bytes went.
    #[serde(default)]
    pub evidence: Evidence,
    /// Interference during the pattern; None: not observed.
    #[serde(default)]
    pub interference: Option<InterferenceRecord>,
    /// Times of single calls, with `--latency`; None: not recorded.
    #[serde(default)]
    pub latency: Option<LatencyRecord>,
    /// Memory allocations of the program inside the measured time, all ranks. Any value but 0 is a defect.
    pub allocations_in_clock: u64,
    /// Start in seconds since the start of the run, by rank 0; None if unknown.
    #[serde(default)]
    pub at_seconds: Option<f64>,
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
        !matches!(self.ended, StopReason::NotRun(_))
    }

    /// True if it was a two-phase transfer, as its strategy states.
    #[must_use]
    pub fn is_two_phase(&self) -> bool {
        self.strategy.starts_with("two-phase ")
    }
}

/// Opening and closing of the file(s) of one type with one access method.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TypeRecord {
    /// Backend name.
    pub backend: String,
    /// Ranks of the partition.
    pub ranks: u64,
    /// Access method.
    pub access: AccessMethod,
    /// Pattern type, 0 to 4.
    pub pattern_type: PatternType,
    /// Slowest rank's time to open.
    pub open_seconds: f64,
    /// Slowest rank's time to close.
    pub close_seconds: f64,
    /// Bytes of one file after the access (type 2: of each rank's file).
    pub file_bytes: u64,
    /// Bytes of one rank's segment, types 3 and 4; None: the type has none.
    pub segment_bytes: Option<u64>,
    /// Hints requested at open, by key and value.
    pub hints_requested: Vec<(String, String)>,
    /// Hints in force after the open according to the library.
    pub hints_granted: Vec<(String, String)>,
    /// What the ranks of each host moved, if several hosts take part; empty: one host, or not recorded.
    #[serde(default)]
    pub hosts: Vec<HostTransfer>,
    /// With `--verify full`, verification of all data after the access, not timed; None: not done.
    pub full_verification: Option<Verification>,
}

/// A repetition of a pattern in the remaining time. Values derive from the first measurement alone; repetitions give their confidence
/// intervals.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RepetitionRecord {
    /// Number of the repetition, from 1; those of one type and access method belong together.
    pub repetition: u32,
    /// Planned share of the calls of the first measurement, above 0 to 1: less than 1 if time was short.
    #[serde(default = "full_share")]
    #[schemars(range(min = 0, max = 1))]
    pub share: f64,
    /// The measurement: that share of the calls, fewer if it took twice as long or the time elapsed. Without batches and rounds.
    pub measurement: PatternRecord,
}

/// For results recorded before repetitions could be partial.
fn full_share() -> f64 {
    1.0
}

/// Opening and closing of the file(s) of a type for a repetition.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TypeRepetitionRecord {
    /// Number of the repetition, from 1.
    pub repetition: u32,
    /// The measurement.
    pub measurement: TypeRecord,
}

/// The machine and the resources used. In the files the fields of both are in one object.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Manifest {
    /// Hosts, MPI, software.
    #[serde(flatten)]
    pub machine: MachineRecord,
    /// I/O layer if the library identifies it (ROMIO, OMPIO).
    pub mpi_io_layer: String,
    /// Storage of the files.
    pub storage: StorageRecord,
    /// Directory of the files.
    pub run_dir: String,
    /// Period of the data of a rank: 1.8 times its share of the caches, at most 1/16 of its memory.
    pub period_bytes: u64,
}

/// One partition as planned.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PartitionRecord {
    /// Number of ranks: 0 .. ranks-1 take part.
    pub ranks: u64,
    /// M_PART in force.
    pub m_part_bytes: u64,
    /// M_PART of the definition, rounded by less than 1 % to be well aligned.
    pub m_part_defined_bytes: u64,
    /// Space share of this partition for one backend; None: unlimited (null backend only).
    pub space_bytes: Option<u64>,
    /// Scheduled time of the partition.
    pub time_seconds: f64,
}

/// Write rate measured before the run with a small separate file, to predict the sync of the first patterns.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
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

/// Memory of a rank by kind: planned, and the maximum over the ranks at the end of a type, with its files open.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RankMemoryRecord {
    /// Planned: own memory.
    pub planned_own_bytes: u64,
    /// Planned: mapped transfer buffers of the other ranks of the host, for two-phase transfers. They exist once, at their owners.
    pub planned_neighbours_bytes: u64,
    /// Planned: files mapped by `mmap`, at most. They belong to the page cache.
    pub planned_file_bytes: u64,
    /// Private memory (RssAnon).
    pub private_bytes: u64,
    /// Shared memory (RssShmem): transfer buffers that several ranks map, own ones included, and memory of MPI.
    pub shared_bytes: u64,
    /// Mapped pages of files, including programs and libraries (RssFile).
    pub file_bytes: u64,
    /// Proportional set size (Pss); None if unknown, or above 4 GiB, where the query is slow.
    pub proportional_bytes: Option<u64>,
}

/// Times of rank 0 outside the measurement, for the account of the wall-clock time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SetUpTimes {
    /// From the start of the process to the configuration: MPI_Init; None if /proc does not tell the start.
    pub start_seconds: Option<f64>,
    /// Survey of hosts and storage, overhead of the harness, output files, run directory, trial of direct I/O.
    pub survey_seconds: f64,
    /// Trials of the backends, allocation of memory.
    pub preparation_seconds: f64,
    /// Writing the journal, during the measurement.
    pub journal_seconds: f64,
}

/// The end of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct IoEnding {
    /// Outcome of the run.
    pub outcome: RunOutcome,
    /// Time from the calibration to the last close, including verification and bookkeeping.
    pub real_seconds: f64,
    /// Of that, reading back written data: samples, or everything with `--verify full`.
    pub full_verify_seconds: f64,
    /// Of that, calibration before the first pattern.
    pub calibrate_seconds: f64,
    /// Of that, a collective write and read that establish connections between the ranks; None: not done.
    #[serde(default)]
    pub connection_setup_seconds: Option<f64>,
    /// Time to remove the files, at the end.
    pub cleanup_seconds: f64,
    /// Largest resident memory of a rank (VmHWM).
    pub rank_memory_high_water_bytes: u64,
    /// Planned memory per rank: own and mapped from neighbours. With memory ballooning (`memory_ballooning`) the first rank of a host has
    /// used `touched_bytes` at the start, which are not included. In results without `rank_memory`: own memory.
    pub rank_memory_planned_bytes: u64,
    /// Both by kind; None: not recorded.
    #[serde(default)]
    pub rank_memory: Option<RankMemoryRecord>,
    /// Times before the measurement, and of the journal; None: not recorded.
    #[serde(default)]
    pub set_up: Option<SetUpTimes>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_of_a_pattern_is_the_sum_of_all_its_parts() {
        let parts = TimeBreakdown {
            view_seconds: 1.0,
            preallocate_seconds: 2.0,
            transfer_seconds: 4.0,
            decide_seconds: 8.0,
            sync_seconds: 16.0,
        };
        assert_eq!(parts.total_seconds(), 31.0);
        let mut sum = parts;
        sum.add(&TimeBreakdown { preallocate_seconds: 3.0, ..parts });
        assert_eq!((sum.total_seconds(), sum.preallocate_seconds, sum.sync_seconds), (63.0, 5.0, 32.0));
    }
}
