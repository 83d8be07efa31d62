//! b_eff, the effective bandwidth of communication (Rabenseifner and Koniges): ping-pong, rings and random rings, 21 message
//! sizes, three methods.
//!
//! ```text
//! pilot: every size and method on one ring        # -> what fits into the time, announced
//! for repetition in 0..3:                        # outermost: the three of one cell are far apart in time
//!     for pattern in plan:                       # ping-pong, 6 rings, 30 random rings, what is only reported
//!         for size in 21 sizes, for method:
//!             barrier, loop of iterations        <- the clock: calls of MPI and nothing else
//!             compare what was received, wipe it <- outside
//!             one maximum over the ranks for each size: times of the loops, time so far, signal
//!         one sum over the ranks; record
//! while time is left: a pattern again, as in one repetition     -> intervals; the value stays
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

use crate::frame::benchmark::{as_typed, typed, Benchmark, Command};
use crate::frame::report as frame_report;

/// The row of the table.
pub const BENCHMARK: Benchmark = Benchmark {
    name: records::B_EFF,
    title: "b_eff",
    commands: &[Command {
        name: "comm",
        about: "Measure b_eff, the effective bandwidth of communication (start it with mpirun)",
        after_help: cli::COMM,
        options: cli::CommArgs::augment_args,
        translate: as_typed,
        run: |options| command::run(&typed(options)?),
        measures: true,
        of_this_host: false,
    }],
    formats: &[],
    schema: frame_report::schema::<records::CommResult>,
    journal: frame_report::journal::<records::CommResult>,
    document: frame_report::document::<records::CommResult>,
    foreign: None,
};
