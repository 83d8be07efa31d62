//! Options of `beff-raw replay`. [`super::config_build`] converts them to the configuration.

use std::path::PathBuf;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{ArgAction, Args};

use crate::frame::backends;
use crate::frame::config::{CachePolicy, DirectPolicy};
use crate::frame::options::{
    self, common_help, words, BindArgs, DirectAlignArgs, InjectArgs, ProgressArgs, StorageArgs, TimeLimitArgs,
    DEFAULT_SEED, HEADING_ACCESS, HEADING_CHECKS, HEADING_FILES, HEADING_MEASUREMENT, HEADING_OUTPUT,
};
use crate::frame::variants::{self, VariantOption};
use crate::replay::config::{Detail, Pace, WhatIf};

/// Options of `replay`.
#[derive(Clone, Debug, Args)]
pub struct ReplayArgs {
    /// Profile of an application, recorded by `beff-raw profile` or written by hand; .zst is unpacked
    #[arg(value_name = "FILE")]
    pub profile: PathBuf,
    /// Definition of the measurement.
    #[command(flatten)]
    pub measure: ReplayMeasureArgs,
    /// Method of the measurement.
    #[command(flatten)]
    pub access: ReplayAccessArgs,
    /// Destination of the results.
    #[command(flatten)]
    pub output: ReplayOutputArgs,
}

/// Options that decide what is replayed.
#[derive(Clone, Debug, Args)]
pub struct ReplayMeasureArgs {
    /// Backends that replay the calls.
    #[arg(long, value_name = "NAMES", value_delimiter = ',', default_value = "mpiio", help_heading = HEADING_MEASUREMENT,
        value_parser = backends::canonical_name,
        help = format!("Backends that replay the calls: {}. Several, separated by commas, alternate in each repetition. Calls that a \
            backend cannot replay are listed before the run and omitted", backends::list_for_help(|row| row.replay.is_some())))]
    pub backend: Vec<String>,
    /// When a call begins. In every pace it also waits for the calls of other ranks that touched the same bytes and had ended before it
    #[arg(long, value_enum, value_name = "WHICH", default_value = "fast", help_heading = HEADING_MEASUREMENT)]
    pub pace: Pace,
    /// Factor for recorded times with --pace absolute: 0.5 is twice as fast [default: 1]
    #[arg(long, value_name = "X", value_parser = options::parse_positive, help_heading = HEADING_MEASUREMENT)]
    pub scale: Option<f64>,
    /// Timed repetitions with each backend, each with new files. 0: only the verification [default: 1; with --what-if or --variant 7]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(0..=10_000), help_heading = HEADING_MEASUREMENT)]
    pub repeat: Option<u64>,
    /// Time limit of the run.
    #[command(flatten)]
    pub limit: TimeLimitArgs,
    /// Also replay the calls with a change, in turn with the unchanged ones, and compare the times. hints=KEY=VALUE[,KEY=VALUE...]: with
    /// these MPI-IO hints for every file (mpiio). fill-never: without the writes whose bytes are all overwritten before anything reads
    /// them, such as fill values of HDF5. collective: with collective instead of blocking independent accesses (mpiio)
    #[arg(long, value_name = "CHANGE", help_heading = HEADING_MEASUREMENT)]
    pub what_if: Option<WhatIf>,
    /// Variants.
    #[arg(long, value_name = "NAME:KEY=VALUE,...", value_parser = variants::parse,
        help = variants::help("direct=POLICY, as of --direct"), help_heading = HEADING_MEASUREMENT)]
    pub variant: Vec<VariantOption>,
    /// Directory on the storage to measure, visible to all ranks
    #[arg(long, value_name = "DIR", default_value = ".", help_heading = HEADING_FILES)]
    pub path: PathBuf,
    /// Name of the directory created under --path for the files; refused if it exists [default: from time and process id]
    #[arg(long, value_name = "NAME", help_heading = HEADING_FILES)]
    pub run_dir: Option<String>,
    /// Keep the files of the last repetition
    #[arg(long, help_heading = HEADING_FILES)]
    pub keep_files: bool,
    /// Storage sheet.
    #[command(flatten)]
    pub sheet: StorageArgs,
}

/// Options that change how the calls are replayed.
#[derive(Clone, Debug, Args)]
pub struct ReplayAccessArgs {
    /// Bypass the page cache (O_DIRECT) in posix and uring. required: fail where direct I/O is impossible; auto: direct where the
    /// alignment allows it; off: always through the cache
    #[arg(long, value_enum, value_name = "POLICY", default_value = "by-backend", help_heading = HEADING_ACCESS)]
    pub direct: DirectPolicy,
    /// Alignment of direct transfers.
    #[command(flatten)]
    pub alignment: DirectAlignArgs,
    /// Page cache before a repetition, after the initial files have been written. drop: drop their pages; keep: keep them, reads may be
    /// served from memory
    #[arg(long, value_name = "POLICY", default_value = "drop", help_heading = HEADING_ACCESS,
        value_parser = PossibleValuesParser::new(["drop", "keep"]).map(|word| cache_policy(&word)))]
    pub cache: CachePolicy,
    /// MPI-IO hint for every file; overrides the recorded hint (mpiio)
    #[arg(long = "hint", value_name = "KEY=VALUE", value_parser = options::parse_key_value, help_heading = HEADING_ACCESS)]
    pub hint: Vec<(String, String)>,
    /// Binding of ranks.
    #[command(flatten)]
    pub ranks: BindArgs,
    /// Compare the data of reads with the expected data, as far as the profile names its origin: in a verification before the timed
    /// repetitions, as fast as possible, because comparing data between calls changes their times
    #[arg(long, value_name = "on|off", default_value = "on", default_missing_value = "on", num_args = 0..=1,
        require_equals = true, action = ArgAction::Set,
        value_parser = PossibleValuesParser::new(["on", "off"]).map(|word| word == "on"), help_heading = HEADING_CHECKS)]
    pub verify: bool,
    /// Seed of the data; two runs with the same seed write the same bytes
    #[arg(long, value_name = "N", default_value_t = DEFAULT_SEED, help_heading = HEADING_CHECKS)]
    pub seed: u64,
    /// Fault injection.
    #[command(flatten)]
    pub injection: InjectArgs,
}

/// Options of output.
#[derive(Clone, Debug, Args)]
pub struct ReplayOutputArgs {
    /// Show what would be replayed and what each backend would omit, and exit; needs no MPI
    #[arg(long, help_heading = HEADING_OUTPUT)]
    pub plan: bool,
    /// Print all tables, warnings and settings instead of one screen
    #[arg(long, help_heading = HEADING_OUTPUT)]
    pub full: bool,
    /// Like --full, with this level of detail. request also writes PREFIX.RANK.calls.csv during the run, with a line for each call
    /// [default with --full: function]
    #[arg(long, value_enum, value_name = "LEVEL", help_heading = HEADING_OUTPUT)]
    pub detail: Option<Detail>,
    /// Write PREFIX.jsonl (journal, updated during the run), PREFIX.json and PREFIX.csv; without it only stdout. {date} and {host} in
    /// PREFIX are replaced
    #[arg(long, value_name = "PREFIX", value_parser = options::output_prefix_parser(), help_heading = HEADING_OUTPUT)]
    pub out: Option<PathBuf>,
    /// Progress reports.
    #[command(flatten)]
    pub progress: ProgressArgs,
}

/// Converts the policies of `io` that are available here.
fn cache_policy(word: &str) -> CachePolicy {
    if word == "keep" {
        CachePolicy::Keep
    } else {
        CachePolicy::Drop
    }
}

words! { Pace:
    Fast = "fast", "as soon as the previous one has ended";
    Think = "think", "after the recorded time since the end of the previous one";
    Absolute = "absolute", "at its recorded time after the first call, times --scale";
}
words! { Detail:
    Run = "run", "all calls together";
    File = "file", "also by file";
    Function = "function", "also by class of function";
    Process = "process", "also by process";
    Request = "request", "also every call, in files (needs --out)";
}

pub(crate) const REPLAY_HELP: &str = concat!(
    "Examples:
  A profile of 4 processes, as fast as possible, compared with the recorded times:
      mpirun -n 4 beff-raw replay app.csv --path /scratch
  The same without MPI-IO, three interleaved repetitions, results in app.json:
      mpirun -n 4 beff-raw replay app.csv --backend mpiio,posix,uring --repeat 3 --path /scratch --out app
  With the recorded pauses between calls:
      mpirun -n 4 beff-raw replay app.csv --pace think --path /scratch
  How much faster the program would be without fill values, or with other MPI-IO hints:
      mpirun -n 4 beff-raw replay app.csv --what-if fill-never --path /scratch
      mpirun -n 4 beff-raw replay app.csv --variant two:cb_nodes=2 --variant nocb:romio_cb_write=disable
  Show what would be replayed, without running it:
      beff-raw replay app.csv --plan

A replay needs as many ranks as were recorded; further ones idle. It issues the calls of the profile by name and
with their arguments: only contents and names of the files differ. A call that failed or transferred less
when it was recorded is expected to do so again; one that succeeded and fails now is an error (exit code 1).
docs/replay.md describes order, contents and limits.

",
    common_help!()
);
