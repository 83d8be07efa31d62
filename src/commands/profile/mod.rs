//! `beff-raw profile`: records the MPI-IO of any application, merges recordings, shows profiles. Needs no MPI itself.

mod launch;
mod launcher;
mod library;
mod merge;
mod options;
mod page;
mod preload;
mod program;
mod show;
mod words;

pub use options::{MergeArgs, ProfileAction, ProfileArgs, ShowArgs, ShowFormat};

use clap::Args;

use crate::frame::benchmark::{keep_arguments, parse_options, Command};
use crate::frame::error::Exit;
use crate::frame::options::common_help;

/// The command.
pub const COMMAND: Command = Command {
    name: "profile",
    about: "Record the MPI-IO of any application as a file for `replay`; show its content",
    after_help: AFTER_HELP,
    options: ProfileArgs::augment_args,
    translate: keep_arguments,
    run: |options| run(&parse_options(options)?),
    measures: false,
    is_host_specific: true,
};

const AFTER_HELP: &str = concat!(
    "Examples:
  Record a program with 4 ranks; its output and its exit code stay as they are (1 instead of 0 without a profile):
      beff-raw profile -o app.csv -- mpirun -n 4 ./app input.nml
  Its calls, and the largest costs:
      beff-raw profile show app.csv
  The same as a page for a browser, with who accessed what and when:
      beff-raw profile show app.csv --html app.html
  Run its I/O as a benchmark, through MPI-IO and without:
      mpirun -n 4 beff-raw replay app.csv --backend mpiio,posix
  Record each MPI program that a script starts, as app.csv, app-2.csv and so on:
      beff-raw profile -o app.csv -- ./job.sh
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
/// Errors of recording, merging or showing. An application that fails is not an error: its exit code is passed on. One without a
/// profile is: exit code 1, unless the application failed.
pub fn run(args: &ProfileArgs) -> anyhow::Result<Exit> {
    match &args.action {
        Some(ProfileAction::Merge(args)) => merge::run(args),
        Some(ProfileAction::Show(args)) => show::run(args),
        None => launch::run(args),
    }
}

/// Command that builds the profiler for the MPI of this program.
pub fn profiler_build_command() -> String {
    library::build_command(None)
}

/// Descriptions of the available profiler libraries: MPI and path.
pub fn profilers() -> Vec<String> {
    library::find_all().into_iter().map(|(path, abi)| format!("for {}: {}", abi.name(), path.display())).collect()
}
