//! b_eff_io, the effective I/O bandwidth benchmark (Rabenseifner and Koniges): five pattern types, 43 patterns, first write,
//! rewrite and read, driven by time, through any backend.
//!
//! ```text
//! for access in write, rewrite, read:
//!     for partition in plan:                      # ranks 0..n-1; the others wait without burning a core
//!         for type in types:
//!             open the file of every backend
//!             for pattern in type:
//!                 for round in rounds:            # 1 with one backend, 8 with several
//!                     for backend in backends:    # taking turns, there and back
//!                         drop cached pages, lay out or poison the ring, look at counters
//!                         (prepare,) loop over batches of calls, sync    <- the clock
//!                         look at counters, verify, agree on errors      <- outside
//!                 read a sample again, record every backend
//!             close; with --verify full: re-read everything
//! while time of T is left:                        # with --repeat auto; the values are known by now
//!     one type with one access method again, the one that knows least
//! ```

pub mod cli;
pub mod command;
pub mod config;
pub mod config_build;
pub mod hints;
pub mod old;
pub mod pattern_type;
pub mod plan;
pub mod plan_command;
pub mod records;
pub mod report;
pub mod run;
pub mod settings;
pub mod values;

use clap::Args;

use crate::frame::benchmark::{as_typed, typed, Benchmark, Command, Foreign, Format};
use crate::frame::report as frame_report;

/// The row of the table.
pub const BENCHMARK: Benchmark = Benchmark {
    name: records::B_EFF_IO,
    title: "b_eff_io",
    commands: &[
        Command {
            name: "io",
            about: "Measure b_eff_io (the default command; start it with mpirun)",
            after_help: cli::IO,
            options: cli::IoArgs::augment_args,
            translate: as_typed,
            run: |options| command::run(&typed(options)?),
            measures: true,
            of_this_host: false,
        },
        Command {
            name: "plan",
            about: "Show what would run: schedule, bytes, file sizes, memory, for any number of ranks; no MPI needed",
            after_help: cli::PLAN,
            options: cli::PlanArgs::augment_args,
            translate: as_typed,
            run: |options| plan_command::run(&typed(options)?),
            measures: false,
            of_this_host: false,
        },
    ],
    formats: &[Format {
        word: "sum",
        help: "summary file of release 2.1 (b_eff_io)",
        of: "is the summary file of b_eff_io, release 2.1",
    }],
    schema: frame_report::schema::<records::RunResult>,
    journal: frame_report::journal::<records::RunResult>,
    document: frame_report::document::<records::RunResult>,
    foreign: Some(Foreign { is: old::is_summary, read: |bytes| old::read(bytes).map_err(|e| e.to_string()) }),
};
