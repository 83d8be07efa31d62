//! Plain records of a replay: what the profile holds, what was left out, what each pass took and what came of it. Rates and ratios
//! are derived when shown ([`crate::replay::values`]).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::frame::records::{run_record, Machine, MachineShare, Outcome, StorageRecord};
use crate::replay::config::ReplayConfig;
use crate::replay::plan::left_out::LeftOut;
use crate::replay::plan::{Both, CallClass};

/// Value of the field `benchmark` in the files of a replay.
pub const REPLAY: &str = "replay";

/// A file of the recorded program.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FileFacts {
    /// Its name then. Never opened here.
    pub path: String,
    /// Its size before it was first opened; None: it was not there.
    pub size_bytes: Option<u64>,
    /// Kind of its file system then; empty: not known.
    pub fs_type: String,
}

/// How many processes ended their recording in one way.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Ended {
    /// `complete`, `aborted`, `cut` or `full`.
    pub end: String,
    /// Processes.
    pub processes: u64,
}

/// What the profile holds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProfileFacts {
    /// MPI library of the recorded run, one line.
    pub library: String,
    /// Command line of the recorded program.
    pub command: Vec<String>,
    /// Start of the recording, Unix time in ns; 0: not known.
    pub started_unix_ns: u64,
    /// What the profiler cost a call, in ns; None: not measured.
    pub cost_ns: Option<f64>,
    /// Processes.
    pub processes: u64,
    /// Hosts they ran on.
    pub hosts: u64,
    /// How their recordings ended.
    pub ended: Vec<Ended>,
    /// Most threads of a process that made calls.
    pub threads: u64,
    /// Files.
    pub files: Vec<FileFacts>,
    /// Calls, all processes.
    pub calls: u64,
    /// Calls that move data, second halves not counted.
    pub data_calls: u64,
    /// Bytes read, all processes.
    pub read_bytes: u64,
    /// Bytes written, all processes.
    pub written_bytes: u64,
    /// From the first call to the end of the last one.
    pub span_seconds: f64,
    /// Bytes that the recorded processes fetched from storage; None: not known of all.
    pub storage_read_bytes: Option<u64>,
    /// Bytes that the recorded processes sent to storage; None: not known of all.
    pub storage_written_bytes: Option<u64>,
    /// Calls behind a collective call that other ranks of its file never made: not replayed.
    pub calls_cut: u64,
    /// Orderings between ranks that the replay keeps.
    pub orderings: u64,
    /// Orderings whose earlier call is not in the profile or behind a cut: not kept.
    pub orderings_lost: u64,
}

/// What a backend cannot replay.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BackendLeavings {
    /// Backend name.
    pub backend: String,
    /// By function and reason; empty: it replays everything.
    pub left_out: Vec<LeftOut>,
}

/// What a replay works with, as far as it is not in the configuration.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ReplaySetup {
    /// Where it runs.
    pub machine: Machine,
    /// File system under --path.
    pub storage: StorageRecord,
    /// Directory of the files.
    pub run_dir: String,
    /// What is replayed.
    pub profile: ProfileFacts,
    /// What is left out, for each backend.
    pub leavings: Vec<BackendLeavings>,
    /// Space the files need at most.
    pub space_bytes: u64,
    /// Memory for data of the rank that needs most.
    pub data_bytes: u64,
    /// Smallest step of the clock seen.
    pub clock_resolution_ns: f64,
    /// One reading of the clock.
    pub clock_read_ns: f64,
    /// One barrier over all ranks, median.
    pub barrier_ns: f64,
}

/// How a pass ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", tag = "by", content = "reason")]
pub enum PassEnd {
    /// All its calls were made.
    Complete,
    /// A signal came; the sums are those of the calls that were made.
    Interrupted,
    /// Its backend cannot work here, for this reason; it has no sums. Found out before the first pass.
    NotRun(String),
    /// It failed before or between its calls, with rank and message; it has no sums. What to do about it is in `errors`.
    Error(String),
}

/// Calls whose result was not the recorded one, of one kind.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Difference {
    /// `error`, `bytes`, `completions` or `answer`.
    pub kind: String,
    /// How many.
    pub calls: u64,
    /// The first of them, of the lowest rank: rank.
    pub rank: u32,
    /// Its begin in the profile.
    pub begin_ns: u64,
    /// Its function, without `MPI_`.
    pub function: String,
    /// As recorded, in words.
    pub recorded: String,
    /// As replayed, in words.
    pub replayed: String,
}

/// One pass through all calls with one backend.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PassRecord {
    /// Backend name.
    pub backend: String,
    /// Number of the pass, from 1.
    pub pass: u64,
    /// How it ended.
    pub ended: PassEnd,
    /// Calls made, all ranks.
    pub calls: u64,
    /// Of these, calls with the recorded result.
    pub calls_as_recorded: u64,
    /// The others by kind.
    pub differences: Vec<Difference>,
    /// From the first call to the end of the last one, pauses for reading and comparing not counted.
    pub span_seconds: f64,
    /// Bytes of reads that were compared.
    pub bytes_checked: u64,
    /// Bytes of reads that nobody can compare: the profile does not say what they are.
    pub bytes_unknown: u64,
    /// Of those compared, bytes that were wrong.
    pub bytes_wrong: u64,
    /// Times that a call waited for one of another rank that had not ended yet.
    pub waits: u64,
    /// How long, summed over the ranks.
    pub waited_seconds: f64,
    /// Largest time by which a call began behind its deadline, in the paces that have some.
    pub late_seconds: Option<f64>,
    /// Bytes the kernel fetched from storage for the ranks between the first and the last call; None: not known.
    pub storage_read_bytes: Option<u64>,
    /// Bytes sent to storage; None: not known.
    pub storage_written_bytes: Option<u64>,
    /// Bytes of the files that were in the page cache before the first call; None: not known.
    pub resident_before_bytes: Option<u64>,
    /// Bytes of the files before the first call.
    pub prefilled_bytes: u64,
    /// Memory allocations inside the clock, all ranks: those of MPI are not counted.
    pub allocations_in_clock: u64,
    /// Who had the CPUs; None: not watched.
    pub machine: Option<MachineShare>,
    /// Time of the pass with files made, calls made ready, data compared, files removed.
    pub real_seconds: f64,
}

impl PassRecord {
    /// A pass in which no call was made.
    #[must_use]
    pub fn empty(backend: &str, pass: u64) -> Self {
        Self {
            backend: backend.to_owned(),
            pass,
            ended: PassEnd::Complete,
            calls: 0,
            calls_as_recorded: 0,
            differences: Vec::new(),
            span_seconds: 0.0,
            bytes_checked: 0,
            bytes_unknown: 0,
            bytes_wrong: 0,
            waits: 0,
            waited_seconds: 0.0,
            late_seconds: None,
            storage_read_bytes: None,
            storage_written_bytes: None,
            resident_before_bytes: None,
            prefilled_bytes: 0,
            allocations_in_clock: 0,
            machine: None,
            real_seconds: 0.0,
        }
    }
}

/// The calls of one file and class in one pass, summed over the ranks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ClassRecord {
    /// Backend name.
    pub backend: String,
    /// Number of the pass, from 1.
    pub pass: u64,
    /// Number of the file, from 1; None: of no file.
    pub file: Option<u64>,
    /// Class.
    pub class: CallClass,
    /// Ranks that made such calls.
    pub processes: u64,
    /// Then and now.
    #[serde(flatten)]
    pub both: Both,
}

/// The calls of one process and class in one pass, summed over the files.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProcessRecord {
    /// Backend name.
    pub backend: String,
    /// Number of the pass, from 1.
    pub pass: u64,
    /// World rank.
    pub rank: u64,
    /// Class.
    pub class: CallClass,
    /// Then and now.
    #[serde(flatten)]
    pub both: Both,
}

/// Bytes that were not what the profile says must be there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ReplayCorruption {
    /// Backend name.
    pub backend: String,
    /// Number of the pass, from 1.
    pub pass: u64,
    /// Rank that read.
    pub rank: u64,
    /// Function, without `MPI_`.
    pub function: String,
    /// Begin of the call in the profile.
    pub begin_ns: u64,
    /// Number of the file, from 1; None: not known.
    pub file: Option<u64>,
    /// First wrong byte in the file; None: not known (shared pointers).
    pub offset_bytes: Option<u64>,
    /// First wrong byte in the data of the call.
    pub data_offset_bytes: u64,
    /// Byte expected there.
    pub expected: u8,
    /// Byte found.
    pub found: u8,
    /// Whose data it should be: `rank 1, call 12345`, `the file as it was`, `a hole`.
    pub expected_from: String,
    /// What it looks like: `one bit flipped`, `hole (zeros)`, `never delivered`, ...
    pub looks_like: String,
    /// Wrong bytes found by this rank in this pass.
    pub bytes_wrong: u64,
}

/// The end of a replay.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ReplayEnding {
    /// How.
    pub outcome: Outcome,
    /// From the first file made to the last one removed.
    pub real_seconds: f64,
    /// Of that, making files before the calls.
    pub prefill_seconds: f64,
    /// Of that, reading the profile and making calls ready, slowest rank.
    pub prepare_seconds: f64,
    /// Of that, comparing data, slowest rank.
    pub verify_seconds: f64,
    /// Time to remove the run directory, after everything.
    pub cleanup_seconds: f64,
    /// Largest resident memory of a rank (VmHWM).
    pub rank_memory_high_water_bytes: u64,
}

run_record! {
    /// Everything about one replay.
    result ReplayResult of REPLAY named benchmark,
    /// One line of the journal of a replay.
    line ReplayLine,
    start {
        /// What was asked.
        config: ReplayConfig,
        /// With what.
        setup: ReplaySetup,
    }
    records {
        /// Passes in the order they ran.
        passes: Vec<PassRecord> = Pass(Box<PassRecord>),
        /// Sums of the passes by file and class.
        classes: Vec<ClassRecord> = Class(ClassRecord),
        /// Sums of the passes by process and class.
        processes: Vec<ProcessRecord> = Process(ProcessRecord),
        /// Corruption found.
        corruptions: Vec<ReplayCorruption> = Corruption(ReplayCorruption),
    }
    ending ReplayEnding cleaned up in cleanup_seconds,
}

impl ReplayResult {
    fn has_wrong_data(&self) -> bool {
        self.passes.iter().any(|pass| pass.bytes_wrong > 0)
    }

    fn nothing_was_run(&self) -> bool {
        !self.passes.is_empty() && self.passes.iter().all(|pass| matches!(pass.ended, PassEnd::NotRun(_)))
    }
}
