//! A benchmark as one row of a table.

use std::ffi::OsString;

use clap::ArgMatches;

use super::error::{Exit, UsageError};
use super::report::journal::JournalError;
use super::report::json::JsonError;
use super::report::LoadedReport;

/// Reads a result from the bytes of a file.
pub type ResultReader<E> = fn(&[u8]) -> Result<Box<dyn LoadedReport>, E>;

/// One benchmark: its commands, and how its results are read.
#[derive(Debug)]
pub struct BenchmarkModule {
    /// Value of the field `benchmark` in its files.
    pub name: &'static str,
    /// Common name.
    pub title: &'static str,
    /// Its commands, the measuring one first.
    pub commands: &'static [Command],
    /// Formats of `report` of this benchmark alone.
    pub formats: &'static [ReportFormat],
    /// JSON Schema of PREFIX.json.
    pub schema: fn() -> String,
    /// Reads PREFIX.jsonl.
    pub journal: ResultReader<JournalError>,
    /// Reads PREFIX.json.
    pub document: ResultReader<JsonError>,
    /// Reads results of other programs of the same benchmark.
    pub foreign: Option<ForeignFormat>,
}

/// Results in the format of another program.
#[derive(Clone, Copy, Debug)]
pub struct ForeignFormat {
    /// True if these bytes are in the format.
    pub recognizes: fn(&[u8]) -> bool,
    /// Reads it; errors are messages.
    pub read: ResultReader<String>,
}

/// A command of the program.
#[derive(Clone, Copy, Debug)]
pub struct Command {
    /// Name on the command line.
    pub name: &'static str,
    /// One line of the help.
    pub about: &'static str,
    /// Text below the options in `--help`.
    pub after_help: &'static str,
    /// Adds its options.
    pub options: fn(clap::Command) -> clap::Command,
    /// Translates other spellings of its options. Receives all arguments, also those of other commands.
    pub translate: fn(Vec<OsString>) -> Result<Vec<OsString>, UsageError>,
    /// Runs the command; its error ends the program.
    pub run: fn(&ArgMatches) -> anyhow::Result<Exit>,
    /// True if it measures, under mpirun.
    pub measures: bool,
    /// True if it examines the host and its files, which may differ between the processes of a launch.
    pub is_host_specific: bool,
}

/// No other spellings.
///
/// # Errors
/// None.
pub fn keep_arguments(args: Vec<OsString>) -> Result<Vec<OsString>, UsageError> {
    Ok(args)
}

/// Converts matches to options of their type.
///
/// # Errors
/// Options that were not defined by this type (a defect).
pub fn parse_options<A: clap::FromArgMatches>(matches: &ArgMatches) -> anyhow::Result<A> {
    Ok(A::from_arg_matches(matches)?)
}

/// Default values of options of this type.
///
/// # Errors
/// A required option (a defect).
pub(crate) fn default_options<A: clap::Args>() -> Result<A, UsageError> {
    let line = A::augment_args(clap::Command::new("options").no_binary_name(true));
    let defaults = line.try_get_matches_from([""; 0]).and_then(|matches| A::from_arg_matches(&matches));
    defaults.map_err(|defect| UsageError::new(defect.to_string(), "This is a defect: please report it."))
}

/// Parses options of this type from words, for tests.
#[cfg(test)]
pub(crate) fn options_from_words<A: clap::Args>(words: impl IntoIterator<Item = impl Into<OsString> + Clone>) -> A {
    let line = A::augment_args(clap::Command::new("options").no_binary_name(true));
    parse_options(&line.get_matches_from(words)).unwrap()
}

/// True if the options of this type have a long one of this name, for tests.
#[cfg(test)]
pub(crate) fn has_option<A: clap::Args>(name: &str) -> bool {
    A::augment_args(clap::Command::new("options")).get_arguments().any(|a| a.get_long() == Some(name))
}

/// A format of `report` of one benchmark.
#[derive(Clone, Copy, Debug)]
pub struct ReportFormat {
    /// Name on the command line.
    pub name: &'static str,
    /// Its help.
    pub help: &'static str,
    /// Description, for requests with results of another benchmark.
    pub refusal: &'static str,
}
