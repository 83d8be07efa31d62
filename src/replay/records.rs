//! Plain records of a replay: content of the profile, omitted calls, results of each repetition. Rates and ratios are derived when shown
//! ([`crate::replay::values`]).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::frame::records::{run_record, InterferenceRecord, MachineRecord, RunOutcome, StorageRecord};
use crate::replay::config::ReplayConfig;
use crate::replay::plan::omission::OmittedCalls;
use crate::replay::plan::{CallClass, TallyPair};

/// Value of the field `benchmark` in the files of a replay.
pub const REPLAY: &str = "replay";

/// A file of the recorded program.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FileFacts {
    /// Recorded path, which is never opened.
    pub path: String,
    /// Size before the first opening; None if it did not exist.
    pub size_bytes: Option<u64>,
    /// Type of its file system; empty if unknown.
    pub fs_type: String,
}

/// Number of processes with one kind of end of recording.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RecordingEnd {
    /// `complete`, `aborted`, `cut` or `full`.
    pub end: String,
    /// Processes.
    pub processes: u64,
}

/// Content of the profile.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProfileFacts {
    /// MPI library of the recorded run, one line.
    pub library: String,
    /// Command line of the recorded program.
    pub command: Vec<String>,
    /// Start of the recording, Unix time in ns; 0 if unknown.
    pub started_unix_ns: u64,
    /// Overhead of the profiler per call, in ns; None if not measured.
    pub cost_ns: Option<f64>,
    /// Processes.
    pub processes: u64,
    /// Number of hosts.
    pub hosts: u64,
    /// Ends of the recordings.
    pub ended: Vec<RecordingEnd>,
    /// Maximum number of threads of a process that made calls.
    pub threads: u64,
    /// Files.
    pub files: Vec<FileFacts>,
    /// Calls, all processes.
    pub calls: u64,
    /// Calls that transfer data, without second halves.
    pub data_calls: u64,
    /// Bytes read, all processes.
    pub read_bytes: u64,
    /// Bytes written, all processes.
    pub written_bytes: u64,
    /// From the first call to the end of the last one.
    pub span_seconds: f64,
    /// Bytes fetched from storage by the recorded processes; None if unknown for any.
    pub storage_read_bytes: Option<u64>,
    /// Bytes sent to storage by the recorded processes; None if unknown for any.
    pub storage_written_bytes: Option<u64>,
    /// Calls discarded because they follow a collective call that other ranks of the file never made.
    pub calls_discarded: u64,
    /// Orderings between ranks that the replay preserves.
    pub orderings: u64,
    /// Orderings lost because the earlier call is not in the profile or discarded, or because a wait for it would deadlock with a collective
    /// call.
    pub orderings_lost: u64,
}

impl ProfileFacts {
    /// True for a workload written by hand, whose times are invented: a benchmark of its own.
    #[must_use]
    pub fn is_handwritten(&self) -> bool {
        self.command.is_empty() && self.library.is_empty() && self.started_unix_ns == 0
    }
}

/// Calls that a backend omits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BackendOmissions {
    /// Backend name.
    pub backend: String,
    /// By function and reason; empty if none.
    pub omitted: Vec<OmittedCalls>,
}

/// Set-up of a replay besides its configuration.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ReplaySetup {
    /// Hosts and MPI.
    pub machine: MachineRecord,
    /// File system under --path.
    pub storage: StorageRecord,
    /// Directory of the files.
    pub run_dir: String,
    /// Content of the profile.
    pub profile: ProfileFacts,
    /// Omitted calls of each backend.
    pub omissions: Vec<BackendOmissions>,
    /// Upper limit of the space for files.
    pub space_bytes: u64,
    /// Memory for data, maximum over the ranks.
    pub data_bytes: u64,
    /// Smallest observed step of the clock.
    pub clock_resolution_ns: f64,
    /// One reading of the clock.
    pub clock_read_ns: f64,
    /// One barrier over all ranks, median.
    pub barrier_ns: f64,
}

/// Outcome of a repetition.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", tag = "by", content = "reason")]
pub enum RepetitionStatus {
    /// All calls were made.
    Complete,
    /// Ended by the time limit; the sums are those of the calls made before.
    Limit,
    /// Interrupted by a signal; the sums are those of the calls made before.
    Interrupted,
    /// The backend is unavailable, for this reason, as determined before the first repetition; without sums.
    NotRun(String),
    /// An error, with rank and message. Without sums if it occurred before or between calls; with those of all calls if calls failed that
    /// succeeded when recorded. The next step is in `errors`.
    Error(String),
}

/// Calls with another result than recorded, of one kind.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ResultDifference {
    /// `failure` (the call succeeded when recorded and failed now), `error`, `bytes`, `completions` or `answer`.
    pub kind: String,
    /// Number of calls.
    pub calls: u64,
    /// Rank of the first of them (lowest rank).
    pub rank: u32,
    /// Begin of that call in the profile.
    pub begin_ns: u64,
    /// Function of that call, without `MPI_`.
    pub function: String,
    /// Recorded result, in words.
    pub recorded: String,
    /// Replayed result, in words.
    pub replayed: String,
}

/// One execution of all calls with one backend.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProfileRepetition {
    /// Backend name.
    pub backend: String,
    /// Number of the repetition, from 1; 0: the verification repetition, whose times do not count.
    pub repetition: u64,
    /// Outcome.
    pub ended: RepetitionStatus,
    /// Calls made, all ranks.
    pub calls: u64,
    /// Of these, calls with the recorded result.
    pub calls_as_recorded: u64,
    /// The other calls by kind.
    pub differences: Vec<ResultDifference>,
    /// From the first call to the end of the last one, without pauses for reading and comparing.
    pub span_seconds: f64,
    /// Bytes of reads that were compared.
    pub bytes_checked: u64,
    /// Bytes of reads that cannot be compared, because the profile does not contain their origin.
    pub bytes_unknown: u64,
    /// Wrong bytes among the compared ones.
    pub bytes_wrong: u64,
    /// Number of waits for calls of other ranks.
    pub waits: u64,
    /// Their duration, summed over the ranks.
    pub wait_seconds: f64,
    /// Maximum delay of a call after its deadline, in paces with deadlines.
    pub late_seconds: Option<f64>,
    /// Bytes fetched from storage for the ranks between the first and the last call; None if unknown.
    pub storage_read_bytes: Option<u64>,
    /// Bytes sent to storage; None if unknown.
    pub storage_written_bytes: Option<u64>,
    /// Bytes of the files in the page cache before the first call; None if unknown.
    pub resident_before_bytes: Option<u64>,
    /// Bytes of the files before the first call.
    pub prefilled_bytes: u64,
    /// Memory allocations in the timed region, all ranks, without those of MPI.
    pub allocations_in_clock: u64,
    /// Interference; None if not observed.
    pub interference: Option<InterferenceRecord>,
    /// Duration of the repetition, including creation of files, preparation of calls, comparison and removal of files.
    pub real_seconds: f64,
}

/// Number of the verification repetition.
pub const VERIFICATION: u64 = 0;

/// Backend and number of a repetition, for texts.
#[must_use]
pub fn repetition_name(backend: &str, number: u64) -> String {
    match number {
        VERIFICATION => format!("{backend}, verification"),
        _ => format!("{backend}, repetition {number}"),
    }
}

impl ProfileRepetition {
    /// True if its times count.
    #[must_use]
    pub fn is_timed(&self) -> bool {
        self.repetition != VERIFICATION
    }

    /// True if it is complete and its times count.
    #[must_use]
    pub fn is_timed_complete(&self) -> bool {
        self.is_timed() && self.ended == RepetitionStatus::Complete
    }

    /// A repetition without calls.
    #[must_use]
    pub fn empty(backend: &str, repetition: u64) -> Self {
        Self {
            backend: backend.to_owned(),
            repetition,
            ended: RepetitionStatus::Complete,
            calls: 0,
            calls_as_recorded: 0,
            differences: Vec::new(),
            span_seconds: 0.0,
            bytes_checked: 0,
            bytes_unknown: 0,
            bytes_wrong: 0,
            waits: 0,
            wait_seconds: 0.0,
            late_seconds: None,
            storage_read_bytes: None,
            storage_written_bytes: None,
            resident_before_bytes: None,
            prefilled_bytes: 0,
            allocations_in_clock: 0,
            interference: None,
            real_seconds: 0.0,
        }
    }
}

/// Calls of one file and class in one repetition, summed over the ranks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ClassRecord {
    /// Backend name.
    pub backend: String,
    /// Number of the repetition, from 1; 0: the verification repetition, whose times do not count.
    pub repetition: u64,
    /// Number of the file, from 1; None for calls without a file.
    pub file: Option<u64>,
    /// Class.
    pub class: CallClass,
    /// Number of ranks with such calls.
    pub processes: u64,
    /// Recorded and replayed totals.
    #[serde(flatten)]
    pub both: TallyPair,
}

/// Calls of one process and class in one repetition, summed over the files.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProcessRecord {
    /// Backend name.
    pub backend: String,
    /// Number of the repetition, from 1; 0: the verification repetition, whose times do not count.
    pub repetition: u64,
    /// World rank.
    pub rank: u64,
    /// Class.
    pub class: CallClass,
    /// Recorded and replayed totals.
    #[serde(flatten)]
    pub both: TallyPair,
}

/// Bytes that differ from those expected by the profile.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ReplayCorruption {
    /// Backend name.
    pub backend: String,
    /// Number of the repetition, from 1; 0: the verification repetition, whose times do not count.
    pub repetition: u64,
    /// Reading rank.
    pub rank: u64,
    /// Function, without `MPI_`.
    pub function: String,
    /// Begin of the call in the profile.
    pub begin_ns: u64,
    /// Number of the file, from 1; None if unknown.
    pub file: Option<u64>,
    /// First wrong byte in the file; None if unknown (shared pointers).
    pub offset_bytes: Option<u64>,
    /// First wrong byte in the data of the call.
    pub data_offset_bytes: u64,
    /// Expected byte.
    pub expected: u8,
    /// Actual byte.
    pub actual: u8,
    /// Origin of the expected byte: `rank 1, call at 12345 ns`, `never written: zeros`, ....
    pub expected_from: String,
    /// Diagnosis: `one bit flipped`, `hole (zeros)`, `never delivered`, ...
    pub diagnosis: String,
    /// Wrong bytes of this rank in this repetition.
    pub bytes_wrong: u64,
}

/// End of a replay.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ReplayEnding {
    /// Outcome.
    pub outcome: RunOutcome,
    /// From the creation of the first file to the removal of the last one.
    pub real_seconds: f64,
    /// Of that, creation of files before the calls.
    pub prefill_seconds: f64,
    /// Of that, reading the profile and preparing calls, slowest rank.
    pub prepare_seconds: f64,
    /// Of that, comparing data, slowest rank.
    pub verify_seconds: f64,
    /// Removal of the run directory at the end.
    pub cleanup_seconds: f64,
    /// Largest resident memory of a rank (VmHWM).
    pub rank_memory_high_water_bytes: u64,
}

run_record! {
    /// Complete result of a replay.
    result ReplayResult of REPLAY named benchmark,
    /// One line of the journal of a replay.
    line ReplayLine,
    start {
        /// Configuration.
        config: ReplayConfig,
        /// Set-up.
        setup: ReplaySetup,
    }
    records {
        /// Repetitions in the order of their execution.
        repetitions: Vec<ProfileRepetition> = Repetition(Box<ProfileRepetition>),
        /// Totals of the repetitions by file and class.
        classes: Vec<ClassRecord> = Class(ClassRecord),
        /// Totals of the repetitions by process and class.
        processes: Vec<ProcessRecord> = Process(ProcessRecord),
        /// Corruptions.
        corruptions: Vec<ReplayCorruption> = Corruption(ReplayCorruption),
    }
    ending ReplayEnding cleaned up in cleanup_seconds,
}

impl ReplayResult {
    fn has_wrong_data(&self) -> bool {
        self.repetitions.iter().any(|repetition| repetition.bytes_wrong > 0)
    }

    fn nothing_was_run(&self) -> bool {
        !self.repetitions.is_empty()
            && self.repetitions.iter().all(|repetition| matches!(repetition.ended, RepetitionStatus::NotRun(_)))
    }
}
