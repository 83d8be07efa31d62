//! IMB-IO, the elementary MPI-IO benchmarks: counted iterations of one sample, by number of ranks, mode and size.
//!
//! ```text
//! calibrate the overlap load; pilot: a few kinds of rows     # -> estimated time of all rows, announced
//! for benchmark, ranks (the others wait), mode, size in plan:
//!     for backend in backends:
//!         pilot measurement of the row, unless the estimate is far below the time limit
//!         create or fill the file (for writes with other bytes), open, prepare, fill or poison the windows, drop cached pages
//!         two barriers, n calls (with a sync after each, or one after all)   <- timed
//!         reads into one buffer: compare the last one, repeat all of them into separate windows
//!         close; compare every byte, remove the file
//!         (non-blocking: first the blocking call, then the call alone, then with the load between start and completion)
//!         reduce sums, extremes and errors over the ranks; record
//! ```

pub mod cli;
pub mod command;
pub mod config;
pub mod config_build;
pub mod legacy;
pub mod plan;
pub mod records;
pub mod report;
pub mod run;
pub mod text;
pub mod values;

use clap::Args;

use crate::frame::benchmark::{parse_options, BenchmarkModule, Command, ForeignFormat, ReportFormat};
use crate::frame::report as frame_report;

/// The entry of IMB-IO in the table of benchmarks.
pub const BENCHMARK: BenchmarkModule = BenchmarkModule {
    name: records::IMB_IO,
    title: "IMB-IO",
    commands: &[Command {
        name: legacy::COMMAND,
        about: "Run the benchmarks of IMB-IO: single MPI-IO calls over a range of sizes (start with mpirun)",
        after_help: cli::AFTER_HELP,
        options: cli::ImbArgs::augment_args,
        translate: legacy::translate,
        run: |options| command::run(&parse_options(options)?),
        measures: true,
        is_host_specific: false,
    }],
    formats: &[ReportFormat {
        name: "imb",
        help: "columns of the release, for programs that read them (IMB-IO)",
        refusal: "has the columns of IMB-IO",
    }],
    schema: frame_report::schema::<records::ImbResult>,
    journal: frame_report::journal::<records::ImbResult>,
    document: frame_report::document::<records::ImbResult>,
    foreign: Some(ForeignFormat {
        recognizes: text::is_text,
        read: |bytes| text::read(bytes).map_err(|e| e.to_string()),
    }),
};
