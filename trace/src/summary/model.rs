//! Summary of a profile. The fields are the JSON of `profile show --format json`; docs/profile.md explains them.

use schemars::JsonSchema;
use serde::Serialize;

/// Summary of a profile.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
pub struct ProfileSummary {
    /// Version of this JSON.
    pub version: u32,
    /// Path of the profile.
    pub profile: String,
    /// Command line of the program, one element per word.
    pub command: Vec<String>,
    /// MPI library.
    pub library: String,
    /// Start of the recording, Unix time in ns; 0 if unknown.
    pub started_unix_ns: u64,
    /// Overhead of the profiler per call in ns.
    pub cost_ns: Option<f64>,
    /// World ranks.
    pub ranks: usize,
    /// Hosts by name, each with its number of ranks.
    pub hosts: Vec<(String, usize)>,
    /// All recorded calls.
    pub calls: u64,
    /// Data accesses; nonblocking and split ones count once.
    pub data_calls: u64,
    /// Time from the first event to the end of the last call.
    pub span_seconds: f64,
    /// Time in I/O calls (of files and their requests), summed over ranks.
    pub io_seconds: f64,
    /// The rank with the most time in I/O calls, and that time.
    pub slowest_rank: Option<(u32, f64)>,
    /// Bytes read from files.
    pub read_bytes: u64,
    /// Bytes written to files.
    pub written_bytes: u64,
    /// Successful data accesses with an unknown number of bytes.
    pub unknown_bytes_calls: u64,
    /// Requests without a recorded completion.
    pub never_completed: u64,
    /// Test calls that completed no request.
    pub polls: u64,
    /// Bytes read from and written to storage below the page cache by the kernel's accounting, summed over processes if all report it. It
    /// is incomplete on clients of a file server, FUSE and overlay.
    pub storage_bytes: Option<[u64; 2]>,
    /// Processes whose recording did not end with MPI_Finalize.
    pub cut: Vec<IncompleteProcess>,
    /// Why the positions of accesses are unknown, if they are.
    pub no_places: Option<String>,
    /// The largest costs, at most six: causes that the positions and times of the accesses show, then functions.
    pub costs: Vec<IoCost>,
    /// Used files, those with the most time first.
    pub files: Vec<FileSummary>,
    /// Calls that belong to no file.
    pub others: Vec<FunctionSummary>,
}

/// A process whose recording did not end with MPI_Finalize.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct IncompleteProcess {
    /// World rank.
    pub rank: u32,
    /// `aborted`, `cut` or `full`.
    pub end: &'static str,
    /// Number of its calls.
    pub calls: u64,
    /// End of its last call since the first event.
    pub last_seconds: f64,
}

/// A large cost with a description. Times of several costs may overlap.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct IoCost {
    /// `fill_values`, `overwritten`, `discarded`, `read_then_written`, `read_again`, `metadata`, `crossing`, `waiting`, `one_rank`,
    /// `independent`, or `function`.
    pub kind: &'static str,
    /// True if the profile shows the cause, false if it is inferred.
    pub is_certain: bool,
    /// Time, summed over ranks.
    pub seconds: f64,
    /// Its share of the I/O time of all ranks, 0 to 1.
    pub share: f64,
    /// Bytes concerned.
    pub bytes: u64,
    /// The function with most of the time, with `MPI_`, if it is about functions.
    pub function: Option<String>,
    /// The file, or the one with most of the time.
    pub file: Option<String>,
    /// Number of files.
    pub files: u64,
    /// Description.
    pub what: String,
    /// Advice.
    pub next: String,
}

/// A file.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
pub struct FileSummary {
    /// Path.
    pub path: String,
    /// Size before the first opening; None if it did not exist.
    pub size_before_bytes: Option<u64>,
    /// File-system type, if known.
    pub fs_type: String,
    /// Ranks that called functions on it.
    pub ranks: u64,
    /// Time in its calls, summed over ranks.
    pub seconds: f64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Bytes written.
    pub written_bytes: u64,
    /// Share of collective data accesses, 0 to 1; None without any.
    pub collective_calls_share: Option<f64>,
    /// Share of bytes moved by collective accesses, 0 to 1; None without any.
    pub collective_bytes_share: Option<f64>,
    /// Pattern of the reads.
    pub reads: PatternCounts,
    /// Pattern of the writes.
    pub writes: PatternCounts,
    /// Requested hints.
    pub hints: Vec<Hint>,
    /// Its functions, those with the most time first.
    pub functions: Vec<FunctionSummary>,
}

/// Numbers of data accesses by position, from the view of each rank.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct PatternCounts {
    /// At the end of the rank's previous access, or the first one.
    pub sequential: u64,
    /// At the same distance from the previous access as that from the one before, or noncontiguous through a view.
    pub strided: u64,
    /// At any other position.
    pub random: u64,
    /// At an unknown position: shared pointers and similar.
    pub unknown: u64,
}

/// A hint.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
pub struct Hint {
    /// Key.
    pub key: String,
    /// Requested value.
    pub asked: String,
    /// Value in use afterwards; None if the library does not know the hint.
    pub granted: Option<String>,
    /// False if the library did not report the hints in use.
    pub told: bool,
}

/// A function on a file.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
pub struct FunctionSummary {
    /// Name with `MPI_`.
    pub function: String,
    /// Number of calls.
    pub calls: u64,
    /// Moved bytes.
    pub bytes: u64,
    /// Time in it, summed over ranks.
    pub seconds: f64,
    /// Duration of the longest call.
    pub longest_seconds: f64,
    /// Bytes requested per call; None without data.
    pub sizes: Option<SizeDistribution>,
    /// Failed calls by error class.
    pub errors: Vec<(&'static str, u64)>,
    /// Calls that moved less than requested, without an error.
    pub short: u64,
    /// Ranks that called it.
    pub ranks: u64,
    /// The rank with the most time in it, and that time.
    pub slowest_rank: (u32, f64),
}

/// Distribution of the bytes requested per call.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
pub struct SizeDistribution {
    /// Minimum.
    pub min_bytes: u64,
    /// Median.
    pub median_bytes: u64,
    /// False if the median is known only as an upper bound, a power of two.
    pub median_exact: bool,
    /// Maximum.
    pub max_bytes: u64,
    /// Histogram by powers of two: upper limit in bytes, and number of calls.
    pub classes: Vec<(u64, u64)>,
}
