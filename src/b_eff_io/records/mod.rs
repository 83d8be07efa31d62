//! Plain records of b_eff_io: bytes, seconds, counts. Rates and averages are derived when shown ([`super::values`]).
//!
//! The records serialize as they are: one JSON object each in the journal, collected in the JSON document.

mod checks;
mod first_writes;
mod run;

pub use checks::{CorruptionRecord, DamageRecord, SampleRecord, Verification};
pub use first_writes::{FirstWritePair, FirstWriteTrial, FirstWriteWay};
pub use run::{JournalLine, RunResult};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::b_eff_io::pattern_type::PatternType;
use crate::frame::records::{
    Access, Evidence, LatencyRecord, Machine, MachineShare, Outcome, RoundRecord, StorageRecord,
};

/// The benchmark of files that name none in a field `benchmark`.
pub const B_EFF_IO: &str = "b_eff_io";

/// Why a pattern's loop ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
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
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Intervals {
    /// File view, datatypes, registration.
    pub view_seconds: f64,
    /// Making the file longer before its writes: where these cannot do it (mmap), or are slow when they do (direct first writes). Giving
    /// back what was not used, too.
    #[serde(default)]
    pub room_seconds: f64,
    /// The calls that move data.
    pub transfer_seconds: f64,
    /// Agreeing to go on or stop: telling the others and hearing from them, waiting for slower ranks included.
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
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BatchRecord {
    /// Calls per rank.
    pub calls: u64,
    /// Time of the slowest rank; with a decision after each call that of rank 0, which alone decides then (of the last batch the slowest
    /// rank's all the same). Rewrites and reads of uring that need no edges begin a batch while the one before is under way, so that the
    /// queue stays full: then what its chunks take at the rate of those that ended meanwhile.
    pub seconds: f64,
}

/// One depth tried in the calibration of the queue.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DepthTrial {
    /// Operations in flight at most.
    pub depth: u32,
    /// Completions waited for in one call.
    pub wait_for: u32,
    /// A chunk was moved by operations of so many bytes, several in flight; None: by one.
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
    /// `write` (rewrites too) or `read`.
    pub access: Access,
    /// Chunk size it holds for (and above, up to the next).
    pub chunk_bytes: u64,
    /// Every trial in order. Empty: the time or the space was too short.
    pub trials: Vec<DepthTrial>,
    /// Operations in flight at most that are in force: of the settings whose median rate is within 3 % of the best, whole chunks before
    /// operations, then the least memory in flight, then the fastest. The default without trials, or if the rate of whole chunks still
    /// rose at the deepest that the time allowed and that is below the default. The row of the largest chunk holds for larger ones, too:
    /// M_PART is tried with 128 MiB at most.
    pub depth: u32,
    /// Completions waited for in one call.
    pub wait_for: u32,
    /// Chunks are moved by operations of so many bytes, several in flight; None: each by one.
    #[serde(default)]
    pub operation_bytes: Option<u64>,
}

/// What was handed to queues of io_uring, all ranks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SubmissionRecord {
    /// Operations between the file and memory that was registered with the kernel. One that goes on after a part of its bytes counts
    /// again.
    pub registered: u64,
    /// Operations between the file and other memory.
    pub plain: u64,
    /// Threads of the kernel (workers of io_uring) of the rank that had most at the end. How many operations went to them the kernel
    /// does not tell.
    pub workers: u64,
    /// Processor time of the workers that lived at the end.
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
    pub access: Access,
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
    /// Time the definition gives to this pattern; 0 for U = 0.
    pub scheduled_seconds: f64,
    /// What earlier overruns of the access method left of it, at least a quarter; with release 2.1 all of it, whatever was overrun.
    pub budget_seconds: f64,
    /// Parts of the real time, of the slowest rank. Their sum is the time of the pattern.
    pub intervals: Intervals,
    /// Common decisions. The ranks run the next batches, eight at most, while they agree on one; they wait for the last agreement before
    /// the end of the time. 0 for a single call that each rank makes for itself.
    pub decisions: u64,
    /// What the decisions themselves cost: for each the smallest time over the ranks, added up. The rest of `decide_seconds` is waiting
    /// for slower ranks. The batches meanwhile are in neither.
    pub decision_cost_seconds: f64,
    /// By how much the pattern was longer than its slowest rank's own part, which is its time without `decide_seconds`: what deciding
    /// together added. Other waiting is that ranks differ, while all make as many calls. None: not known.
    #[serde(default)]
    pub held_up_seconds: Option<f64>,
    /// The batches in order.
    pub batches: Vec<BatchRecord>,
    /// The rounds in order; their times and bytes add up to the pattern's.
    #[serde(default)]
    pub rounds: Vec<RoundRecord>,
    /// Why it ended.
    pub ended: Ended,
    /// The last reads left these words in memory, with `--verify full` all reads. Of a rewrite with `--verify full` what was in the file
    /// before it; of a write whose calls were not all made, all that is in the file.
    pub verification: Verification,
    /// With `--verify ring`: places of the written range that were read again after the pattern; None: not done.
    #[serde(default)]
    pub sample: Option<SampleRecord>,
    /// The calls used, in words.
    pub strategy: String,
    /// What went through queues of io_uring; None: the backend has none, or nothing was run.
    #[serde(default)]
    pub submissions: Option<SubmissionRecord>,
    /// True if the page cache was bypassed, None if the backend cannot know.
    pub direct: Option<bool>,
    /// Hints asked for this pattern, by key and value.
    pub hints_requested: Vec<(String, String)>,
    /// Hints the library says are in force.
    pub hints_granted: Vec<(String, String)>,
    /// Bytes the kernel fetched from storage on behalf of the ranks during the transfer (/proc/self/io); None: not known.
    pub storage_read_bytes: Option<u64>,
    /// Bytes the ranks caused to be sent to storage (/proc/self/io); None: not known. They may reach it later than they are counted.
    pub storage_written_bytes: Option<u64>,
    /// Bytes that read calls of the ranks returned, as the kernel counted them during the transfer (rchar of /proc/self/io), all ranks;
    /// None: not known. io_uring and mappings are not counted, messages through sockets and pipes are.
    #[serde(default)]
    pub call_read_bytes: Option<u64>,
    /// Bytes that write calls of the ranks took (wchar), likewise.
    #[serde(default)]
    pub call_written_bytes: Option<u64>,
    /// Where the bytes went.
    #[serde(default)]
    pub evidence: Evidence,
    /// Who had the CPUs meanwhile; None: not watched.
    #[serde(default)]
    pub machine: Option<MachineShare>,
    /// Times of single calls, with `--latency`; None: not recorded.
    #[serde(default)]
    pub latency: Option<LatencyRecord>,
    /// Memory allocations of the program inside the clock, all ranks. Anything but 0 is a defect.
    pub allocations_in_clock: u64,
    /// When it began, in seconds since the run did, by rank 0; None: not known.
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
        !matches!(self.ended, Ended::NotRun(_))
    }

    /// True if ranks brought their data together first, as the driver says at the head of its strategy.
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
    pub access: Access,
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
    /// Hints asked for at open, by key and value.
    pub hints_requested: Vec<(String, String)>,
    /// Hints the library says are in force after the open.
    pub hints_granted: Vec<(String, String)>,
    /// With `--verify full`, an untimed pass over everything after the access; None: not done.
    pub full_verification: Option<Verification>,
}

/// A pattern measured again in the time that was left. Values are made of the first measurement alone; repeats tell how sure it is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RepeatRecord {
    /// Which time, from 1; those of one type and access method belong together.
    pub repeat: u32,
    /// Share of the calls of the first pass that it was to make, above 0 to 1: less than 1 where the time was short.
    #[serde(default = "whole")]
    #[schemars(range(min = 0, max = 1))]
    pub share: f64,
    /// What was measured: that share of the calls, fewer if it took twice as long or the time was over. Without batches and rounds.
    pub measured: PatternRecord,
}

/// Results from before repeats could be cut.
fn whole() -> f64 {
    1.0
}

/// Opening and closing of the file(s) of a type for a repeat.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TypeRepeatRecord {
    /// Which time, from 1.
    pub repeat: u32,
    /// What was measured.
    pub measured: TypeRecord,
}

/// The machine and what is used of it. In the files the fields of both stand side by side.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Manifest {
    /// Hosts, MPI, software.
    #[serde(flatten)]
    pub machine: Machine,
    /// I/O layer as far as the library tells (ROMIO, OMPIO).
    pub mpi_io_layer: String,
    /// Where the files are.
    pub storage: StorageRecord,
    /// Directory of the files.
    pub run_dir: String,
    /// After this many bytes the data of a rank repeats: 1.8 times its share of the caches, at most 1/16 of its memory.
    pub period_bytes: u64,
}

/// One partition as planned.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PartitionRecord {
    /// Ranks 0 .. ranks-1 take part.
    pub ranks: u64,
    /// M_PART in force.
    pub m_part_bytes: u64,
    /// M_PART of the definition, rounded by less than 1 % to be well aligned.
    pub m_part_wanted_bytes: u64,
    /// Space share of this partition for one backend; None: unlimited (null backend only).
    pub space_bytes: Option<u64>,
    /// Scheduled time of the partition.
    pub time_seconds: f64,
}

/// Write rate seen before the run with a small file of its own, to predict the sync of the first patterns.
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

/// Memory of a rank by kind: planned, and the largest of each that any rank had at the end of a type, with its files open.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RankMemoryRecord {
    /// Planned: its own.
    pub planned_own_bytes: u64,
    /// Planned: mapped transfer memory of the other ranks of the host, for two-phase transfers. It is theirs, and there once.
    pub planned_neighbours_bytes: u64,
    /// Planned: files mapped by `mmap`, at most. It is the page cache's.
    pub planned_file_bytes: u64,
    /// Private memory (RssAnon).
    pub private_bytes: u64,
    /// Memory that processes share (RssShmem): transfer memory that several ranks map, its own too, and that of MPI.
    pub shared_bytes: u64,
    /// Mapped pages of files, programs and libraries too (RssFile).
    pub file_bytes: u64,
    /// Each page divided by the processes that map it (Pss); None: not known, or above 4 GiB, where asking takes long.
    pub proportional_bytes: Option<u64>,
}

/// The end of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Ending {
    /// How the run ended.
    pub outcome: Outcome,
    /// Time from the calibration to the last close, with everything between, verification and bookkeeping too.
    pub real_seconds: f64,
    /// Of that, reading again what was written: samples, or everything with `--verify full`.
    pub full_verify_seconds: f64,
    /// Of that, calibration before the first pattern.
    pub calibrate_seconds: f64,
    /// Time to remove the files, after everything.
    pub cleanup_seconds: f64,
    /// Largest resident memory of a rank (VmHWM).
    pub rank_memory_high_water_bytes: u64,
    /// Memory per rank the plan said: its own, and what it maps of its neighbours. Where memory is taken back (`memory_taken_back`) the
    /// first rank of a host has had `touched_bytes` at the start, which it does not count. Results of before `rank_memory`: its own.
    pub rank_memory_planned_bytes: u64,
    /// Both by kind; None: not recorded.
    #[serde(default)]
    pub rank_memory: Option<RankMemoryRecord>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_of_a_pattern_is_the_sum_of_all_its_parts() {
        let parts = Intervals {
            view_seconds: 1.0,
            room_seconds: 2.0,
            transfer_seconds: 4.0,
            decide_seconds: 8.0,
            sync_seconds: 16.0,
        };
        assert_eq!(parts.total_seconds(), 31.0);
        let mut sum = parts;
        sum.add(&Intervals { room_seconds: 3.0, ..parts });
        assert_eq!((sum.total_seconds(), sum.room_seconds, sum.sync_seconds), (63.0, 5.0, 32.0));
    }
}
