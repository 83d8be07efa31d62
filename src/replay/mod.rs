//! Replay: the MPI-IO of a recorded application as a benchmark, through any backend.
//!
//! ```text
//! scan the profile: validity, calls each backend can replay, matching of collective calls, order between ranks
//! for repetition, backend:
//!     create the initial files with known words; drop their pages
//!     start a program; prepare the first calls
//!     barrier
//!     for windows of calls:
//!         for call: wait for earlier calls of other ranks; sleep until its deadline; issue the call   <- timed
//!         compare the data read, add up, write lines of calls; prepare the next window
//!     reduce over ranks; record; remove the files
//! ```

mod abort;
pub mod cli;
pub mod command;
pub mod config;
pub mod config_build;
mod open_profile;
pub mod plan;
mod prepare;
pub mod records;
pub mod report;
pub mod run;
mod setting;
pub mod trials;
#[cfg(test)]
mod trials_tests;
pub mod values;

use clap::Args;

use crate::frame::benchmark::{keep_arguments, parse_options, BenchmarkModule, Command, ReportFormat};
use crate::frame::report as frame_report;

/// Row of the table of benchmarks.
pub const BENCHMARK: BenchmarkModule = BenchmarkModule {
    name: records::REPLAY,
    title: "Replay",
    commands: &[Command {
        name: "replay",
        about: "Replay the MPI-IO of a recorded application as a benchmark (start it with mpirun)",
        after_help: cli::REPLAY_HELP,
        options: cli::ReplayArgs::augment_args,
        translate: keep_arguments,
        run: |options| command::run(&parse_options(options)?),
        measures: true,
        is_host_specific: false,
    }],
    formats: &[ReportFormat {
        name: "svg",
        help: "picture of all FILEs together: bandwidth per process over processes, recorded and replayed (replay)",
        refusal: "is the picture of replays: bandwidth per process over processes",
    }],
    schema: frame_report::schema::<records::ReplayResult>,
    journal: frame_report::journal::<records::ReplayResult>,
    document: frame_report::document::<records::ReplayResult>,
    foreign: None,
};
