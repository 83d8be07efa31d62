//! `beff-raw profile`: records the MPI-IO of any application, merges what was recorded, shows it. Needs no MPI itself.

mod launch;
mod launcher;
mod library;
mod merge;
mod program;
mod show;

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

use crate::frame::benchmark::{as_typed, typed, Command};
use crate::frame::error::{Exit, UsageError};
use crate::frame::options::common_help;

/// The command.
pub const COMMAND: Command = Command {
    name: "profile",
    about: "Record the MPI-IO of any application as a file that `replay` runs as a benchmark; show what is in it",
    after_help: AFTER_HELP,
    options: ProfileArgs::augment_args,
    translate: as_typed,
    run: |options| run(&typed(options)?),
    measures: false,
    of_this_host: true,
};

/// What stands below the options in `--help`.
const AFTER_HELP: &str = concat!(
    "Examples:
  Record a program with 4 ranks; its output and its exit code stay as they are:
      beff-raw profile -o app.csv -- mpirun -n 4 ./app input.nml
  What it did, and what cost most:
      beff-raw profile show app.csv
  Run its I/O as a benchmark, through MPI-IO and without:
      mpirun -n 4 beff-raw replay app.csv --backend mpiio,posix
  Make a profile of what a killed run left:
      beff-raw profile merge app.csv.parts -o app.csv

The program need not be compiled again. It must link a shared MPI library (or load one, as Python does).
docs/profile.md describes the file; it is text, and can be edited or written by hand. A name in .zst is compressed.

",
    common_help!()
);

/// Options of `profile`.
#[derive(Clone, Debug, Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true, disable_help_subcommand = true)]
pub struct ProfileArgs {
    /// The profile to write; nothing that exists is overwritten [default: APP.profile.csv, or a free name like it]
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Most bytes that the ranks together may record on disk; calls beyond are not recorded, and the profile says so
    #[arg(long, value_name = "SIZE", value_parser = crate::frame::units::parse_size, default_value = "64G")]
    pub limit: u64,
    /// The launcher with its options, the program and its arguments
    #[arg(last = true, required = true, value_name = "COMMAND")]
    pub command: Vec<OsString>,
    /// What to do with recordings that are there
    #[command(subcommand)]
    pub action: Option<Action>,
}

/// What else can be done.
#[derive(Clone, Debug, Subcommand)]
pub enum Action {
    /// Make a profile of the files that the processes left in a directory, as after a kill
    Merge(MergeArgs),
    /// Show what a profile has: files, functions, sizes, hints, and the largest costs
    Show(ShowArgs),
}

/// Options of `profile merge`.
#[derive(Clone, Debug, Args)]
pub struct MergeArgs {
    /// Directory with the files of the processes
    #[arg(value_name = "DIR")]
    pub directory: PathBuf,
    /// The profile to write; nothing that exists is overwritten [default: DIR without `.parts`]
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

/// Options of `profile show`.
#[derive(Clone, Debug, Args)]
pub struct ShowArgs {
    /// The profile
    #[arg(value_name = "FILE")]
    pub profile: PathBuf,
    /// View to print
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t = ShowFormat::Table)]
    pub format: ShowFormat,
    /// Every function of every file, not only what stands out (table)
    #[arg(long)]
    pub details: bool,
}

/// Views of a profile.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ShowFormat {
    /// For people
    Table,
    /// For programs
    Json,
}

/// Runs the command.
///
/// # Errors
/// What stands in the way of recording, merging or showing. An application that fails is none: its exit code is passed on.
pub fn run(args: &ProfileArgs) -> anyhow::Result<Exit> {
    match &args.action {
        Some(Action::Merge(args)) => merge::run(args),
        Some(Action::Show(args)) => show::run(args),
        None => launch::run(args),
    }
}

/// The profiler libraries that are there, in words: which MPI each is for, and where it is.
pub fn profilers() -> Vec<String> {
    library::all().into_iter().map(|(path, abi)| format!("for {}: {}", abi.name(), path.display())).collect()
}

/// Refuses to write over a file.
fn must_be_new(path: &std::path::Path) -> Result<(), UsageError> {
    if path.symlink_metadata().is_err() {
        return Ok(());
    }
    Err(UsageError::new(
        format!("{} exists already", path.display()),
        "Choose another name with -o: nothing is overwritten.",
    ))
}
