//! Records of IMB-IO: times, counts and bytes of its rows. Rates and overlaps are derived
//! ([`crate::imb_io::values`]).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use crate::frame::records::BareLoopPair;
use crate::frame::records::{run_record, Evidence, InterferenceRecord, MachineRecord, RunOutcome, StorageRecord};
use crate::imb_io::config::ImbConfig;
use crate::imb_io::plan::Mode;

/// Value of the field `benchmark` in the files of IMB-IO.
pub const IMB_IO: &str = "imb_io";

/// Outcome of a row.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", tag = "by", content = "reason")]
pub enum RowStatus {
    /// All iterations completed, and every transfer had its full length.
    Complete,
    /// A transfer was short or failed, with rank and message: the row has no times. `errors` has the next step.
    Error(String),
    /// Ended by the time limit of the run: the row has no times.
    Limit,
    /// Interrupted by a signal: the row has no times.
    Interrupted,
    /// Not run because the backend does not support it, with the reason.
    NotRun(String),
}

/// Times of one iteration over the ranks of one group, in seconds: the time of a rank for all iterations, including the
/// syncs of the mode, divided by their number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GroupTimes {
    /// Fastest rank.
    pub min_seconds: f64,
    /// Slowest rank.
    pub max_seconds: f64,
    /// Mean over the ranks.
    pub mean_seconds: f64,
}

/// Times of single iterations; each value is that of the slowest rank (all groups). An iteration is the call, in
/// non-aggregate mode with its sync.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct IterationTimes {
    /// Median.
    pub median_seconds: f64,
    /// 99th percentile.
    pub p99_seconds: f64,
    /// Maximum.
    pub max_seconds: f64,
}

/// Times of a non-blocking benchmark and its blocking call, per iteration, of the slowest rank each.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OverlapTimes {
    /// The blocking call of the same transfer: t_pure, and the length of the load. None in older files, which did not measure it.
    #[serde(default)]
    pub blocking_seconds: Option<f64>,
    /// The non-blocking call alone, completed at once.
    pub alone_seconds: f64,
    /// The non-blocking call with the CPU load between start and completion.
    pub overlapped_seconds: f64,
    /// The load alone, as calibrated.
    pub cpu_seconds: f64,
    /// The load inside the overlapped run, as measured.
    pub cpu_overlapped_seconds: f64,
}

/// One line of the report.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RowRecord {
    /// Backend name.
    pub backend: String,
    /// Benchmark name.
    pub benchmark: String,
    /// Ranks of each group.
    pub ranks: u64,
    /// Groups at the same time.
    pub groups: u64,
    /// Position of the sync of a write.
    pub mode: Mode,
    /// X, the size of the sample over all ranks of a group; None: Open_Close.
    pub sample_bytes: Option<u64>,
    /// Iterations completed.
    pub iterations: u64,
    /// Iterations before the reduction by the time limit.
    pub iterations_requested: u64,
    /// Outcome.
    pub ended: RowStatus,
    /// By group; empty unless complete. Of a non-blocking benchmark: the overlapped run.
    pub times: Vec<GroupTimes>,
    /// Over the iterations; None: not complete, a non-blocking benchmark, or cycle counter and clock disagree.
    pub iteration_times: Option<IterationTimes>,
    /// All runs of a non-blocking benchmark.
    pub overlap: Option<OverlapTimes>,
    /// Of `times`, the sync after all iterations in aggregate mode, per iteration, slowest rank; 0 for reads.
    pub sync_seconds: f64,
    /// Bytes moved by the timed iterations as the calls report, all ranks and groups.
    pub moved_bytes: u64,
    /// Bytes compared, all ranks; of reads into one buffer those of the last iteration and of the reads repeated for comparison.
    pub bytes_checked: u64,
    /// Wrong bytes among these.
    pub bytes_wrong: u64,
    /// Memory allocations of the program inside the timed loop, all ranks; any is a defect. Not counted for Open_Close, which
    /// allocates and frees file data in each iteration.
    pub allocations_in_clock: u64,
    /// The calls used, in words.
    pub strategy: String,
    /// The calls of t_pure; None: a blocking benchmark, or not measured.
    #[serde(default)]
    pub blocking_strategy: Option<String>,
    /// True if the page cache was bypassed; None if unknown: to the backend, or because a trial could not prove it (`direct_align_basis`).
    pub direct: Option<bool>,
    /// Of the requested hints, those that the library lists after preparation; empty: none requested, or no such backend.
    pub hints_granted: Vec<(String, String)>,
    /// Evidence of the source of a read; None: not recorded (writes, Open_Close, several groups).
    pub evidence: Option<Evidence>,
    /// Bytes the kernel fetched from storage on behalf of the ranks (/proc/self/io), if there is `evidence`; None if unknown.
    pub storage_read_bytes: Option<u64>,
    /// Interference during the iterations (of a non-blocking benchmark: the overlapped ones); None: not recorded.
    #[serde(default)]
    pub interference: Option<InterferenceRecord>,
    /// Time of the row with its preparation, pilot measurement and verification.
    pub real_seconds: f64,
}

/// A repetition of a row: with the same number of iterations, on files of the same state.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RowRepetition {
    /// Index of the row in the order of the records, from 0.
    pub row: u64,
    /// The measurement.
    pub measurement: RowRecord,
}

/// Wrong bytes of a row, as reported by one rank.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ImbCorruption {
    /// Backend name.
    pub backend: String,
    /// Benchmark name.
    pub benchmark: String,
    /// Ranks of each group.
    pub ranks: u64,
    /// Position of the sync of a write.
    pub mode: Mode,
    /// X.
    pub sample_bytes: u64,
    /// Rank of the world that detected it.
    pub rank: u64,
    /// Iteration it belongs to, from 0; None if unknown (order of arrival).
    pub iteration: Option<u64>,
    /// File name below the run directory.
    pub file: String,
    /// Offset of the first wrong byte in the file, also of read data; None if unknown (order of arrival).
    pub offset_bytes: Option<u64>,
    /// Expected byte; None if unknown.
    pub expected: Option<u8>,
    /// Actual byte.
    pub actual: Option<u8>,
    /// Diagnosis: `one bit flipped`, `hole (zeros)`, `never delivered`, `data of offset 4096`, ...
    pub diagnosis: String,
    /// Wrong bytes detected by this rank in this row.
    pub bytes_wrong: u64,
}

/// The CPU load of the overlap.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CpuLoad {
    /// Time of one unit of the load, slowest rank.
    pub unit_seconds: f64,
    /// Largest relative difference between requested and measured load time in the checks of the calibration, all ranks.
    pub calibration_error: f64,
}

/// Environment and derived parameters of a run, beyond its configuration.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ImbSetup {
    /// The machine.
    pub machine: MachineRecord,
    /// File system under --path.
    pub storage: StorageRecord,
    /// Directory of the files.
    pub run_dir: String,
    /// Numbers of ranks of the rows.
    pub rank_counts: Vec<u64>,
    /// Sample sizes.
    pub sizes_bytes: Vec<u64>,
    /// Rows of the plan for every backend, including rows it does not support.
    pub rows: u64,
    /// Smallest observed step of the clock.
    pub clock_resolution_ns: f64,
    /// Time stamp at the end of an iteration: reading the cycle counter and storing the time.
    pub timestamp_ns: f64,
    /// One barrier over all ranks, median.
    pub barrier_ns: f64,
}

/// Announcement before the first row.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ImbAnnouncement {
    /// Estimated time of all rows, including the pilot.
    pub expected_seconds: f64,
    /// Time limit of all rows, to which iterations are reduced, plus the pilot and the bare loops; None: no time limit
    /// (`-iter_policy off`).
    pub limit_seconds: Option<f64>,
    /// Of that, the completed pilot.
    pub pilot_seconds: f64,
    /// The load for the overlap; None: no non-blocking benchmark.
    pub cpu_load: Option<CpuLoad>,
}

/// Times of the loop of this program and of a bare loop, for one benchmark and size.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ImbBareRecord {
    /// Benchmark name.
    pub benchmark: String,
    /// Ranks.
    pub ranks: u64,
    /// X.
    pub sample_bytes: u64,
    /// Calls of each loop.
    pub iterations: u64,
    /// Pairs of times, measured in turns.
    pub pairs: Vec<BareLoopPair>,
}

/// The end of a run of IMB-IO.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ImbEnding {
    /// Outcome.
    pub outcome: RunOutcome,
    /// Time from the pilot to the last verification.
    pub real_seconds: f64,
    /// Of that, comparing data, slowest rank.
    pub verify_seconds: f64,
    /// Time to remove the files at the end.
    pub cleanup_seconds: f64,
    /// Largest resident memory of a rank (VmHWM).
    pub rank_memory_high_water_bytes: u64,
    /// Planned memory for data per rank.
    pub rank_memory_planned_bytes: u64,
}

run_record! {
    /// Everything about one run of IMB-IO.
    result ImbResult of IMB_IO named benchmark,
    /// One line of the journal of IMB-IO.
    line ImbLine,
    start {
        /// Configuration.
        config: ImbConfig,
        /// Environment.
        setup: ImbSetup,
    }
    records {
        /// Announcement before the first row; None: the run ended before.
        announcement: Option<ImbAnnouncement> = Announcement(ImbAnnouncement),
        /// Rows in order of measurement.
        rows: Vec<RowRecord> = Row(Box<RowRecord>),
        /// Repetitions of rows; `rows` has the first measurements alone.
        #[serde(default)]
        repetitions: Vec<RowRepetition> = Repetition(Box<RowRepetition>),
        /// Comparison with bare loops, if requested.
        bare: Vec<ImbBareRecord> = Bare(ImbBareRecord),
        /// Detected corruption.
        corruptions: Vec<ImbCorruption> = Corruption(ImbCorruption),
    }
    ending ImbEnding cleaned up in cleanup_seconds,
}

impl ImbResult {
    /// Records of all measurements: first measurements and repetitions.
    pub fn measurements(&self) -> impl Iterator<Item = &RowRecord> + Clone {
        self.rows.iter().chain(self.repetitions.iter().map(|again| &again.measurement))
    }

    fn has_wrong_data(&self) -> bool {
        self.measurements().any(|row| row.bytes_wrong > 0)
    }

    fn nothing_was_run(&self) -> bool {
        !self.rows.is_empty() && self.rows.iter().all(|row| matches!(row.ended, RowStatus::NotRun(_)))
    }
}
