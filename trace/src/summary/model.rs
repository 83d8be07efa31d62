//! What a profile comes to. The fields are the JSON of `profile show --format json`; docs/profile.md explains them.

use schemars::JsonSchema;
use serde::Serialize;

/// What a profile comes to.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
pub struct Summary {
    /// Version of this JSON.
    pub version: u32,
    /// The profile.
    pub profile: String,
    /// Command line of the program, one element a word.
    pub command: Vec<String>,
    /// MPI library.
    pub library: String,
    /// Start of the recording, Unix time in ns; 0 if unknown.
    pub started_unix_ns: u64,
    /// What the profiler itself cost a call, in ns.
    pub cost_ns: Option<f64>,
    /// World ranks.
    pub ranks: usize,
    /// Hosts by name, each with its number of ranks.
    pub hosts: Vec<(String, usize)>,
    /// Recorded calls of all kinds.
    pub calls: u64,
    /// Data accesses: blocking ones, nonblocking ones and split ones once each.
    pub data_calls: u64,
    /// From the first event to the end of the last call.
    pub span_seconds: f64,
    /// Time in calls that belong to I/O (files and their requests), summed over ranks.
    pub io_seconds: f64,
    /// The rank that spent most time in them, with that time.
    pub slowest_rank: Option<(u32, f64)>,
    /// Bytes moved from files.
    pub read_bytes: u64,
    /// Bytes moved to files.
    pub written_bytes: u64,
    /// Data accesses that succeeded, but whose bytes are not known.
    pub unknown_bytes_calls: u64,
    /// Requests whose completion was never seen.
    pub never_completed: u64,
    /// Calls before others that asked for a request and found nothing.
    pub polls: u64,
    /// Bytes that the kernel counted past the page cache for all processes (fetched, to be written), if all tell. On clients of a server,
    /// FUSE and overlay not all is counted.
    pub storage_bytes: Option<[u64; 2]>,
    /// Processes whose recording did not end with MPI_Finalize.
    pub cut: Vec<Cut>,
    /// Why the places of accesses are not known, if they are not.
    pub no_places: Option<String>,
    /// The largest costs, at most five.
    pub costs: Vec<Cost>,
    /// Files that were used, those with most time first.
    pub files: Vec<FileSummary>,
    /// Calls that belong to no file.
    pub others: Vec<FunctionSummary>,
}

/// A process whose recording did not end with MPI_Finalize.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Cut {
    /// World rank.
    pub rank: u32,
    /// `aborted`, `cut` or `full`.
    pub end: &'static str,
    /// Calls it has.
    pub calls: u64,
    /// End of its last call since the first event.
    pub last_seconds: f64,
}

/// A large cost in plain words.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Cost {
    /// Time, summed over ranks.
    pub seconds: f64,
    /// Its share of the I/O time of all ranks, 0 to 1.
    pub share: f64,
    /// The function, with `MPI_`.
    pub function: String,
    /// The file, if it belongs to one.
    pub file: Option<String>,
    /// What it is.
    pub what: String,
    /// What to do about it.
    pub next: String,
}

/// A file.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
pub struct FileSummary {
    /// Its name.
    pub path: String,
    /// Size before it was first opened; None if it did not exist.
    pub size_before_bytes: Option<u64>,
    /// Kind of its file system, if known.
    pub fs_type: String,
    /// Ranks that called something on it.
    pub ranks: u64,
    /// Time in its calls, summed over ranks.
    pub seconds: f64,
    /// Bytes moved from it.
    pub read_bytes: u64,
    /// Bytes moved to it.
    pub written_bytes: u64,
    /// Share of its data accesses that are collective, 0 to 1; None without any.
    pub collective_calls_share: Option<f64>,
    /// Share of its bytes moved by collective accesses, 0 to 1; None without any.
    pub collective_bytes_share: Option<f64>,
    /// How its ranks read.
    pub reads: Pattern,
    /// How its ranks write.
    pub writes: Pattern,
    /// Hints that were asked for.
    pub hints: Vec<Hint>,
    /// Its functions, those with most time first.
    pub functions: Vec<FunctionSummary>,
}

/// Data accesses by where they begin, seen from each rank.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Pattern {
    /// Where the last one of the rank ended, or the first.
    pub sequential: u64,
    /// As far from the begin of the last one as that from the one before, or in pieces through a view.
    pub strided: u64,
    /// Elsewhere.
    pub random: u64,
    /// It is not known where: shared pointers and the like.
    pub unknown: u64,
}

/// A hint.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
pub struct Hint {
    /// Its key.
    pub key: String,
    /// The value that was asked for.
    pub asked: String,
    /// The value in force behind that; None if the library does not know the hint.
    pub granted: Option<String>,
    /// False if the library did not tell what is in force.
    pub told: bool,
}

/// A function on a file.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
pub struct FunctionSummary {
    /// Its name with `MPI_`.
    pub function: String,
    /// How often it was called.
    pub calls: u64,
    /// Bytes that it moved.
    pub bytes: u64,
    /// Time in it, summed over ranks.
    pub seconds: f64,
    /// The longest call.
    pub longest_seconds: f64,
    /// Bytes that a call asked for; None without data.
    pub sizes: Option<Sizes>,
    /// Calls that failed, by error class.
    pub errors: Vec<(&'static str, u64)>,
    /// Calls that moved less than they asked for, without an error.
    pub short: u64,
    /// Ranks that called it.
    pub ranks: u64,
    /// The rank with most time in it, and that time.
    pub slowest_rank: (u32, f64),
}

/// Bytes that calls asked for.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
pub struct Sizes {
    /// The smallest.
    pub min_bytes: u64,
    /// Half of the calls asked for no more.
    pub median_bytes: u64,
    /// False if the median is only known to the next power of two.
    pub median_exact: bool,
    /// The largest.
    pub max_bytes: u64,
    /// Calls by powers of two: up to so many bytes, and how many calls.
    pub classes: Vec<(u64, u64)>,
}
