//! Plain records of IMB-IO: times, counts and bytes of its rows. Rates and overlaps are derived when shown
//! ([`crate::imb_io::values`]).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use crate::frame::records::BarePair;
use crate::frame::records::{run_record, Evidence, Machine, MachineShare, Outcome, StorageRecord};
use crate::imb_io::config::ImbConfig;
use crate::imb_io::plan::Mode;

/// Value of the field `benchmark` in the files of IMB-IO.
pub const IMB_IO: &str = "imb_io";

/// How a row ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", tag = "by", content = "reason")]
pub enum RowEnd {
    /// All its repetitions were made, and every transfer was whole.
    Complete,
    /// A transfer was short or failed, with rank and message: the row has no times. What to do about it is in `errors`.
    Error(String),
    /// A signal came: the row has no times.
    Interrupted,
    /// Not run, with the reason: a backend that cannot do it.
    NotRun(String),
}

/// Times of one repetition over the ranks of one group, seconds: a rank's is its time of all repetitions divided by their
/// number, with the syncs that belong to the mode.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GroupTimes {
    /// Fastest rank.
    pub min_seconds: f64,
    /// Slowest rank.
    pub max_seconds: f64,
    /// Mean over the ranks.
    pub mean_seconds: f64,
}

/// Times of the single repetitions of a rank, the slowest rank's value of each (all groups). A repetition is the call, in
/// non-aggregate mode with its sync.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RepetitionTimes {
    /// Median.
    pub median_seconds: f64,
    /// 99 of 100 were not slower.
    pub p99_seconds: f64,
    /// The slowest.
    pub max_seconds: f64,
}

/// A non-blocking benchmark beside its blocking call, per repetition, of the slowest rank each.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OverlapTimes {
    /// The blocking call of the same transfer: t_pure, and what the load is as long as. None: not measured, in files from before
    /// it was.
    #[serde(default)]
    pub blocking_seconds: Option<f64>,
    /// The non-blocking call alone: begun and completed at once.
    #[serde(alias = "pure_seconds")]
    pub alone_seconds: f64,
    /// The non-blocking call with the CPU load between beginning and completing.
    pub overlapped_seconds: f64,
    /// The load alone, as calibrated.
    pub cpu_seconds: f64,
    /// The load as it took inside the overlapped run.
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
    /// Where the sync of a write belongs.
    pub mode: Mode,
    /// X, the size of the sample over all ranks of a group; None: Open_Close.
    pub sample_bytes: Option<u64>,
    /// Repetitions made.
    pub repetitions: u64,
    /// Repetitions before the time limit reduced them.
    pub repetitions_wanted: u64,
    /// How it ended.
    pub ended: RowEnd,
    /// By group; empty unless complete. Of a non-blocking benchmark: the overlapped run.
    pub times: Vec<GroupTimes>,
    /// Over the repetitions; None: not complete, a non-blocking benchmark, or a cycle counter that the clock contradicts.
    pub repetition_times: Option<RepetitionTimes>,
    /// All runs of a non-blocking benchmark.
    pub overlap: Option<OverlapTimes>,
    /// Of `times`, the sync behind all repetitions in aggregate mode, per repetition, slowest rank; 0 for reads.
    pub sync_seconds: f64,
    /// Bytes that the transfers of the timed repetitions say they moved, all ranks and groups.
    pub moved_bytes: u64,
    /// Bytes compared, all ranks; of reads into one buffer the last repetition's and those of the second pass.
    pub bytes_checked: u64,
    /// Of these, bytes that were wrong.
    pub bytes_wrong: u64,
    /// Memory allocations of the program inside the clock, all ranks. Anything but 0 is a defect. Not counted for
    /// Open_Close, which makes and frees what belongs to a file each time.
    pub allocations_in_clock: u64,
    /// The calls used, in words.
    pub strategy: String,
    /// The calls of t_pure; None: a blocking benchmark, or not measured.
    #[serde(default)]
    pub blocking_strategy: Option<String>,
    /// True if the page cache was bypassed, None if the backend cannot know.
    pub direct: Option<bool>,
    /// Of the hints asked for, what the library lists after preparing; empty: none asked for, or no such backend.
    pub hints_granted: Vec<(String, String)>,
    /// Where the bytes of a read came from; None: not looked at (writes, Open_Close, several groups).
    pub evidence: Option<Evidence>,
    /// Bytes the kernel fetched from storage on behalf of the ranks (/proc/self/io), where `evidence` is; None: not known.
    pub storage_read_bytes: Option<u64>,
    /// Who had the CPUs during the repetitions (of a non-blocking benchmark: the overlapped ones); None: not watched.
    #[serde(default)]
    pub machine: Option<MachineShare>,
    /// Time of the row with its preparation, trial and verification.
    pub real_seconds: f64,
}

/// A row that was measured again: as many repetitions, on files of the same state.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RowRepeat {
    /// Which of the rows, counted from 0 in the order of their records.
    pub row: u64,
    /// What came of it.
    pub measured: RowRecord,
}

/// Bytes that were not the bytes written, named.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ImbCorruption {
    /// Backend name.
    pub backend: String,
    /// Benchmark name.
    pub benchmark: String,
    /// Ranks of each group.
    pub ranks: u64,
    /// Where the sync of a write belongs.
    pub mode: Mode,
    /// X.
    pub sample_bytes: u64,
    /// Rank of the world that found it.
    pub rank: u64,
    /// Repetition it belongs to, from 0; None: not known (order of arrival).
    pub repetition: Option<u64>,
    /// File name below the run directory.
    pub file: String,
    /// First wrong byte in the file, or in what was read from there; None: not known (order of arrival).
    pub offset_bytes: Option<u64>,
    /// Byte expected there; None: not known.
    pub expected: Option<u8>,
    /// Byte found.
    pub found: Option<u8>,
    /// What it looks like: `one bit flipped`, `hole (zeros)`, `never delivered`, `data of offset 4096`, ...
    pub looks_like: String,
    /// Wrong bytes found by this rank in this row.
    pub bytes_wrong: u64,
}

/// The CPU load of the overlap.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CpuLoad {
    /// Time of one unit of the load, slowest rank.
    pub unit_seconds: f64,
    /// Largest relative difference between a load as asked and as it took, over the checks of the calibration, all ranks.
    pub calibration_error: f64,
}

/// What IMB-IO works with, as far as it is not in the configuration.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ImbSetup {
    /// Where it runs.
    pub machine: Machine,
    /// File system under --path.
    pub storage: StorageRecord,
    /// Directory of the files.
    pub run_dir: String,
    /// Numbers of ranks of the rows.
    pub rank_counts: Vec<u64>,
    /// Sizes of the samples.
    pub sizes_bytes: Vec<u64>,
    /// Rows of the plan for every backend, also those that it cannot run.
    pub rows: u64,
    /// Smallest step of the clock seen.
    pub clock_resolution_ns: f64,
    /// The end of a repetition: the cycle counter is read and the time kept.
    pub lap_ns: f64,
    /// One barrier over all ranks, median.
    pub barrier_ns: f64,
}

/// What was told before the first row.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ImbAnnouncement {
    /// Time expected for all rows, from what the pilot saw; the pilot included.
    pub expected_seconds: f64,
    /// The time limit of all rows, and what is beside them, for which repetitions are reduced; None: no time limit
    /// (`-iter_policy off`).
    pub limit_seconds: Option<f64>,
    /// Of that, the pilot itself, which is over.
    pub pilot_seconds: f64,
    /// The load for the overlap; None: no non-blocking benchmark is to run.
    pub cpu_load: Option<CpuLoad>,
}

/// Our loop of one benchmark and size beside a bare one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ImbBareRecord {
    /// Benchmark name.
    pub benchmark: String,
    /// Ranks.
    pub ranks: u64,
    /// X.
    pub sample_bytes: u64,
    /// Calls of each loop.
    pub repetitions: u64,
    /// In turns.
    pub pairs: Vec<BarePair>,
}

/// The end of a run of IMB-IO.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ImbEnding {
    /// How.
    pub outcome: Outcome,
    /// From the pilot to the last verification.
    pub real_seconds: f64,
    /// Of that, comparing data, slowest rank.
    pub verify_seconds: f64,
    /// Time to remove the files, after everything.
    pub cleanup_seconds: f64,
    /// Largest resident memory of a rank (VmHWM).
    pub rank_memory_high_water_bytes: u64,
    /// Memory for data per rank as planned.
    pub rank_memory_planned_bytes: u64,
}

run_record! {
    /// Everything about one run of IMB-IO.
    result ImbResult of IMB_IO named benchmark,
    /// One line of the journal of IMB-IO.
    line ImbLine,
    start {
        /// What was asked.
        config: ImbConfig,
        /// With what.
        setup: ImbSetup,
    }
    records {
        /// What was told before the first row; None: it ended before that.
        announcement: Option<ImbAnnouncement> = Announcement(ImbAnnouncement),
        /// Rows in order of measurement.
        rows: Vec<RowRecord> = Row(Box<RowRecord>),
        /// Rows that were measured again; the rows themselves do not know them.
        #[serde(default)]
        repeats: Vec<RowRepeat> = Repeat(Box<RowRepeat>),
        /// Our loops beside bare ones, if asked for.
        bare: Vec<ImbBareRecord> = Bare(ImbBareRecord),
        /// Corruption found.
        corruptions: Vec<ImbCorruption> = Corruption(ImbCorruption),
    }
    ending ImbEnding cleaned up in cleanup_seconds,
}

impl ImbResult {
    /// Every record of a row, of the first round and of the repeats.
    pub fn measured(&self) -> impl Iterator<Item = &RowRecord> + Clone {
        self.rows.iter().chain(self.repeats.iter().map(|again| &again.measured))
    }

    fn has_wrong_data(&self) -> bool {
        self.measured().any(|row| row.bytes_wrong > 0)
    }

    fn nothing_was_run(&self) -> bool {
        !self.rows.is_empty() && self.rows.iter().all(|row| matches!(row.ended, RowEnd::NotRun(_)))
    }
}
