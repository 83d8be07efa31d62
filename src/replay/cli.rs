//! Options of `beff-raw replay`. [`super::config_build`] makes of them what will run.

use std::path::PathBuf;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{ArgAction, Args};

use crate::frame::backends;
use crate::frame::config::{CachePolicy, DirectPolicy};
use crate::frame::options::{
    self, common_help, words, BindArgs, InjectArgs, ProgressArgs, ACCESS, DEFAULT_SEED, MEASURED, OUTPUT, PLACE, TRUST,
};
use crate::replay::config::{Detail, Pace};

/// Options of `replay`.
#[derive(Clone, Debug, Args)]
pub struct ReplayArgs {
    /// Profile of an application, recorded by `beff-raw profile` or written by hand; .zst is unpacked
    #[arg(value_name = "FILE")]
    pub profile: PathBuf,
    /// What is measured.
    #[command(flatten)]
    pub measure: ReplayMeasureArgs,
    /// How it is measured.
    #[command(flatten)]
    pub access: ReplayAccessArgs,
    /// Where the results go.
    #[command(flatten)]
    pub output: ReplayOutputArgs,
}

/// Options that decide what is replayed.
#[derive(Clone, Debug, Args)]
pub struct ReplayMeasureArgs {
    /// What replays the calls.
    #[arg(long, value_name = "NAMES", value_delimiter = ',', default_value = "mpiio", help_heading = MEASURED,
        value_parser = backends::named,
        help = format!("What replays the calls: {}. Several, separated by commas, take turns in each pass. What a backend \
            cannot replay is listed before the run and left out", backends::listed(|row| row.replay.is_some())))]
    pub backend: Vec<String>,
    /// When a call begins. In every pace it also waits for the calls of other ranks that had ended before it and touched
    /// the same bytes
    #[arg(long, value_enum, value_name = "WHICH", default_value = "fast", help_heading = MEASURED)]
    pub pace: Pace,
    /// What recorded times are multiplied by, with --pace absolute: 0.5 is twice as fast [default: 1]
    #[arg(long, value_name = "X", value_parser = options::positive, help_heading = MEASURED)]
    pub scale: Option<f64>,
    /// Passes with each backend, each with new files
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=10_000),
        help_heading = MEASURED)]
    pub repeat: u64,
    /// Directory on the storage to measure, seen by all ranks
    #[arg(long, value_name = "DIR", default_value = ".", help_heading = PLACE)]
    pub path: PathBuf,
    /// Name of the directory made under --path for the files; refused if it exists [default: made from time and process]
    #[arg(long, value_name = "NAME", help_heading = PLACE)]
    pub run_dir: Option<String>,
    /// Leave the files of the last pass in place
    #[arg(long, help_heading = PLACE)]
    pub keep_files: bool,
}

/// Options that change how the calls are replayed.
#[derive(Clone, Debug, Args)]
pub struct ReplayAccessArgs {
    /// Bypass the page cache (O_DIRECT) in posix and uring. required: what cannot be direct fails; auto: direct where the
    /// alignment allows it; off: always through the cache
    #[arg(long, value_enum, value_name = "POLICY", default_value = "by-backend", help_heading = ACCESS)]
    pub direct: DirectPolicy,
    /// What is done about the page cache before a pass, when the files that must be there have just been written. drop:
    /// their pages are dropped; keep: nothing, reads may come from memory
    #[arg(long, value_name = "POLICY", default_value = "drop", help_heading = ACCESS,
        value_parser = PossibleValuesParser::new(["drop", "keep"]).map(|word| cache(&word)))]
    pub cache: CachePolicy,
    /// An MPI-IO hint for every file; wins over the hint that was recorded (mpiio)
    #[arg(long = "hint", value_name = "KEY=VALUE", value_parser = options::key_value, help_heading = ACCESS)]
    pub hint: Vec<(String, String)>,
    /// Where ranks run.
    #[command(flatten)]
    pub ranks: BindArgs,
    /// Compare what reads bring with what must be there, as far as the profile tells who wrote it last. Between the calls,
    /// outside the clock
    #[arg(long, value_name = "on|off", default_value = "on", default_missing_value = "on", num_args = 0..=1,
        require_equals = true, action = ArgAction::Set,
        value_parser = PossibleValuesParser::new(["on", "off"]).map(|word| word == "on"), help_heading = TRUST)]
    pub verify: bool,
    /// Seed of the data; two runs with the same seed write the same bytes
    #[arg(long, value_name = "N", default_value_t = DEFAULT_SEED, help_heading = TRUST)]
    pub seed: u64,
    /// Damage on purpose.
    #[command(flatten)]
    pub damage: InjectArgs,
}

/// Options about what is shown.
#[derive(Clone, Debug, Args)]
pub struct ReplayOutputArgs {
    /// Show what would be replayed, and what each backend would leave out, and end; no MPI needed
    #[arg(long, help_heading = OUTPUT)]
    pub plan: bool,
    /// Print all tables, warnings and settings, not one screen
    #[arg(long, help_heading = OUTPUT)]
    pub full: bool,
    /// The same, and how much it shows. request also writes PREFIX.RANK.calls.csv with one line for each call, during the
    /// run [default with --full: function]
    #[arg(long, value_enum, value_name = "LEVEL", help_heading = OUTPUT)]
    pub detail: Option<Detail>,
    /// Write PREFIX.jsonl (journal, kept up to date during the run), PREFIX.json and PREFIX.csv; without it only stdout.
    /// {date} and {host} in it are filled in
    #[arg(long, value_name = "PREFIX", value_parser = options::prefix(), help_heading = OUTPUT)]
    pub out: Option<PathBuf>,
    /// What is told meanwhile.
    #[command(flatten)]
    pub progress: ProgressArgs,
}

/// Of the policies of `io`, those that mean something here.
fn cache(word: &str) -> CachePolicy {
    if word == "keep" {
        CachePolicy::Keep
    } else {
        CachePolicy::Drop
    }
}

words! { Pace:
    Fast = "fast", "as soon as the one before has ended";
    Think = "think", "after the time that passed between the two when they were recorded";
    Absolute = "absolute", "at its recorded time since the first call, times --scale";
}
words! { Detail:
    Run = "run", "all calls together";
    File = "file", "also by file";
    Function = "function", "also by class of function";
    Process = "process", "also by process";
    Request = "request", "also every call, in files (needs --out)";
}

pub(crate) const REPLAY: &str = concat!(
    "Examples:
  A profile of 4 processes, as fast as possible, beside what was recorded:
      mpirun -n 4 beff-raw replay app.csv --path /scratch
  What this application would get without MPI-IO, three passes in turns, results kept in app.json:
      mpirun -n 4 beff-raw replay app.csv --backend mpiio,posix,uring --repeat 3 --path /scratch --out app
  With the pauses of the application between its calls:
      mpirun -n 4 beff-raw replay app.csv --pace think --path /scratch
  What would be replayed, without running it:
      beff-raw replay app.csv --plan

It takes as many ranks as were recorded; further ones idle. The calls of the profile are made by their own
names with their own arguments: only contents and names of the files differ. A call that failed or came short
when it was recorded is expected to do so again. docs/replay.md explains order, contents and limits.

",
    common_help!()
);
