//! `beff-raw profile`: records the MPI-IO of any application, merges what was recorded, shows it. Needs no MPI itself.

mod launch;
mod launcher;
mod library;
mod merge;
mod options;
mod program;
mod show;

pub use options::{Action, MergeArgs, ProfileArgs, ShowArgs, ShowFormat};

use clap::Args;

use crate::frame::benchmark::{as_typed, typed, Command};
use crate::frame::error::Exit;
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
