//! b_eff, the effective bandwidth of communication (Rabenseifner and Koniges): ping-pong, rings and random rings, 21 message
//! sizes, three methods.
//!
//! ```text
//! pilot: every size and method on one ring        # -> effort that fits into the time, announced
//! for repetition in 0..3:                        # outermost: the repetitions of one cell are far apart in time
//!     for pattern in plan:                       # ping-pong, 6 rings, 30 random rings, patterns outside the average
//!         for size in 21 sizes, for method:
//!             barrier, loop of iterations        <- timed: MPI calls only
//!             compare and wipe the received data <- not timed
//!             one maximum over the ranks per size: times of the loops, elapsed time, signal
//!         one sum over the ranks; record
//! while time remains: a further repetition of a pattern     -> intervals; the value does not change
//! ```

pub mod cli;
pub mod command;
pub mod config;
pub mod plan;
pub mod records;
pub mod report;
pub mod run;
pub mod values;

use clap::Args;

use crate::frame::benchmark::{keep_arguments, parse_options, BenchmarkModule, Command};
use crate::frame::report as frame_report;

/// Entry in the table of benchmarks.
pub const BENCHMARK: BenchmarkModule = BenchmarkModule {
    name: records::B_EFF,
    title: "b_eff",
    commands: &[Command {
        name: "comm",
        about: "Measure b_eff, the effective bandwidth of communication (start it with mpirun)",
        after_help: cli::COMM_HELP,
        options: cli::CommArgs::augment_args,
        translate: keep_arguments,
        run: |options| command::run(&parse_options(options)?),
        measures: true,
        is_host_specific: false,
    }],
    formats: &[],
    schema: frame_report::schema::<records::CommResult>,
    journal: frame_report::journal::<records::CommResult>,
    document: frame_report::document::<records::CommResult>,
    foreign: None,
};
