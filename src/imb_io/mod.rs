//! IMB-IO, the elementary MPI-IO benchmarks: counted repetitions of one sample, by number of ranks, mode and size.
//!
//! ```text
//! load of the overlap, pilot: a few kinds of rows     # -> how long all rows will take, announced
//! for benchmark, ranks (the others wait), mode, size in plan:
//!     for backend in backends:
//!         a trial, if the pilot does not say that the time limit is far
//!         make or fill the file (for writes with other bytes), open, prepare, lay out or poison the windows, drop cached pages
//!         two barriers, n calls (each with its syncs, or one behind all)   <- the clock
//!         reads into one buffer: compare the last one, make all of them again into memory of their own
//!         close; compare every byte, remove the file
//!         (non-blocking: first the blocking call, then the call alone, then with the load between beginning and completing)
//!         sums, extremes and errors of all ranks; record
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

use crate::frame::benchmark::{typed, Benchmark, Command, Foreign, Format};
use crate::frame::report as frame_report;

/// The row of the table.
pub const BENCHMARK: Benchmark = Benchmark {
    name: records::IMB_IO,
    title: "IMB-IO",
    commands: &[Command {
        name: legacy::COMMAND,
        about: "Run the benchmarks of IMB-IO: single MPI-IO calls by size (start it with mpirun)",
        after_help: cli::IMB,
        options: cli::ImbArgs::augment_args,
        translate: legacy::translate,
        run: |options| command::run(&typed(options)?),
        measures: true,
        of_this_host: false,
    }],
    formats: &[Format {
        word: "imb",
        help: "columns of the release, for programs that read them (IMB-IO)",
        of: "has the columns of IMB-IO",
    }],
    schema: frame_report::schema::<records::ImbResult>,
    journal: frame_report::journal::<records::ImbResult>,
    document: frame_report::document::<records::ImbResult>,
    foreign: Some(Foreign { is: text::is_text, read: |bytes| text::read(bytes).map_err(|e| e.to_string()) }),
};
