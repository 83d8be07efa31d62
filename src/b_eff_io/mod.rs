//! b_eff_io, the effective I/O bandwidth benchmark (Rabenseifner and Koniges): five pattern types, 43 patterns, first write, rewrite and
//! read, driven by time, through any backend.
//!
//! ```text
//! for access in write, rewrite, read:
//!     for partition in plan:                      # ranks 0..n-1; the others wait without using CPU time
//!         for type in types:
//!             open the file of every backend
//!             for pattern in type:
//!                 for round in rounds:            # 1 with one backend, 8 with several
//!                     for backend in backends:    # in turns, in alternating order
//!                         drop cached pages, fill or poison the transfer buffer, read counters
//!                         (prepare,) loop over batches of calls, sync    <- the clock
//!                         read counters, verify, agree on errors         <- outside
//!                 read back a sample, record every backend
//!             close; with --verify full: re-read everything
//! while time of T is left:                        # with --repeat auto; the values are final
//!     repeat one type with one access method, the least certain one
//! ```

pub mod cli;
pub mod command;
pub mod config;
pub mod config_build;
mod continuation;
pub mod hints;
pub mod legacy_summary;
pub mod pattern_type;
pub mod plan;
pub mod plan_command;
pub mod records;
pub mod report;
pub mod requirements;
pub mod run;
pub mod settings;
pub mod trials;
pub mod values;
mod variants;

use clap::Args;

use crate::frame::benchmark::{keep_arguments, parse_options, BenchmarkModule, Command, ForeignFormat, ReportFormat};
use crate::frame::report as frame_report;

/// The entry in the table of benchmarks.
pub const BENCHMARK: BenchmarkModule = BenchmarkModule {
    name: records::B_EFF_IO,
    title: "b_eff_io",
    commands: &[
        Command {
            name: "io",
            about: "Measure b_eff_io (the default command; start it with mpirun)",
            after_help: cli::IO_EXAMPLES,
            options: cli::IoArgs::augment_args,
            translate: keep_arguments,
            run: |options| command::run(&parse_options(options)?),
            measures: true,
            is_host_specific: false,
        },
        Command {
            name: "plan",
            about:
                "Show the plan of a run: schedule, bytes, file sizes, memory, for any number of ranks; no MPI needed",
            after_help: cli::PLAN_EXAMPLES,
            options: cli::PlanArgs::augment_args,
            translate: keep_arguments,
            run: |options| plan_command::run(&parse_options(options)?),
            measures: false,
            is_host_specific: false,
        },
    ],
    formats: &[ReportFormat {
        name: "sum",
        help: "summary file of release 2.1 (b_eff_io)",
        refusal: "is the summary file of b_eff_io, release 2.1",
    }],
    schema: frame_report::schema::<records::RunResult>,
    journal: frame_report::journal::<records::RunResult>,
    document: frame_report::document::<records::RunResult>,
    foreign: Some(ForeignFormat {
        recognizes: legacy_summary::is_summary,
        read: |bytes| legacy_summary::read(bytes).map_err(|e| e.to_string()),
    }),
};
