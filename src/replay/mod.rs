//! Replay: the MPI-IO of a recorded application as a benchmark, through any backend.
//!
//! ```text
//! look at the profile: is it sound, what can each backend replay, where do collective calls meet, who waits for whom
//! for pass, backend:
//!     make the files that were there, with known words; drop their pages
//!     begin a program; make the first calls ready
//!     barrier
//!     for windows of calls:
//!         for call: wait for calls of others that had ended before; sleep to its deadline; the call   <- the clock
//!         compare what was read, sums, lines of calls; make the next ones ready
//!     sums of all ranks; record; remove the files
//! ```

pub mod cli;
pub mod command;
pub mod config;
pub mod config_build;
pub mod plan;
pub mod records;
pub mod report;
pub mod run;
pub mod values;

use clap::Args;

use crate::frame::benchmark::{as_typed, typed, Benchmark, Command, Format};
use crate::frame::report as frame_report;

/// The row of the table.
pub const BENCHMARK: Benchmark = Benchmark {
    name: records::REPLAY,
    title: "Replay",
    commands: &[Command {
        name: "replay",
        about: "Replay the MPI-IO of a recorded application as a benchmark (start it with mpirun)",
        after_help: cli::REPLAY,
        options: cli::ReplayArgs::augment_args,
        translate: as_typed,
        run: |options| command::run(&typed(options)?),
        measures: true,
        of_this_host: false,
    }],
    formats: &[Format {
        word: "svg",
        help: "picture of all FILEs together: bandwidth per process over processes, recorded beside replayed (replay)",
        of: "is the picture of replays: bandwidth per process over processes",
    }],
    schema: frame_report::schema::<records::ReplayResult>,
    journal: frame_report::journal::<records::ReplayResult>,
    document: frame_report::document::<records::ReplayResult>,
    foreign: None,
};
