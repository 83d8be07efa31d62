//! `tune`: searches the settings that make patterns or a recorded application fast, and proves the difference.
//!
//! ```text
//! factors: keys and values, without those that cannot matter or that the library does not grant
//! while the search plans a trial:               # crate `tuning`: pilot, noise, single, combination, ...
//!     the trial on new files, in its own setting # by the benchmark module of the work
//!     record: figure, times, wrong words
//! ```

pub mod cli;
pub mod command;
pub mod config;
mod continuation;
pub mod plan;
pub mod records;
pub mod report;
pub mod run;
pub mod values;

use clap::{ArgMatches, Args};

use crate::frame::benchmark::{keep_arguments, parse_options, BenchmarkModule, Command};
use crate::frame::error::Exit;
use crate::frame::report as frame_report;

/// The command. `run` provides the trials.
const fn command(run: fn(&ArgMatches) -> anyhow::Result<Exit>) -> Command {
    Command {
        name: "tune",
        about: "Find the settings that make patterns or a recorded application fast (start it with mpirun)",
        after_help: cli::TUNE_HELP,
        options: cli::TuneArgs::augment_args,
        translate: keep_arguments,
        run,
        measures: true,
        is_host_specific: false,
    }
}

/// Entry in the table of benchmarks, with its commands.
pub const fn benchmark(commands: &'static [Command]) -> BenchmarkModule {
    BenchmarkModule {
        name: records::TUNE,
        title: "tune",
        commands,
        formats: report::FORMATS,
        schema: frame_report::schema::<records::TuneResult>,
        journal: frame_report::journal::<records::TuneResult>,
        document: frame_report::document::<records::TuneResult>,
        foreign: None,
    }
}

/// The commands.
pub const fn commands(run: fn(&ArgMatches) -> anyhow::Result<Exit>) -> [Command; 1] {
    [command(run)]
}

/// Runs the command with these options.
///
/// # Errors
/// The cause that ended the search before there was a result.
pub(crate) fn run(options: &ArgMatches, open_trials: command::OpenTrials) -> anyhow::Result<Exit> {
    command::run(&parse_options(options)?, open_trials)
}
