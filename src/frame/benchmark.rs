//! A benchmark as the rest of the program knows it: one row of a table.

use std::ffi::OsString;

use clap::ArgMatches;

use super::error::{Exit, UsageError};
use super::report::journal::JournalError;
use super::report::json::JsonError;
use super::report::Report;

/// Reads a result from the bytes of a file.
pub type Reader<E> = fn(&[u8]) -> Result<Box<dyn Report>, E>;

/// One benchmark: its commands, and how its results are read again.
#[derive(Debug)]
pub struct Benchmark {
    /// Value of the field `benchmark` in its files.
    pub name: &'static str,
    /// The name people know it by.
    pub title: &'static str,
    /// Its commands, the one that measures first.
    pub commands: &'static [Command],
    /// Formats of `report` that no other benchmark has.
    pub formats: &'static [Format],
    /// JSON Schema of PREFIX.json.
    pub schema: fn() -> String,
    /// Reads PREFIX.jsonl.
    pub journal: Reader<JournalError>,
    /// Reads PREFIX.json.
    pub document: Reader<JsonError>,
    /// Reads what other programs wrote of the same benchmark.
    pub foreign: Option<Foreign>,
}

/// Results in the format of another program.
#[derive(Clone, Copy, Debug)]
pub struct Foreign {
    /// True if these bytes are one.
    pub is: fn(&[u8]) -> bool,
    /// Reads it; what is wrong with it in words.
    pub read: Reader<String>,
}

/// A command of the program.
#[derive(Clone, Copy, Debug)]
pub struct Command {
    /// As it is typed.
    pub name: &'static str,
    /// One line of the help.
    pub about: &'static str,
    /// What stands below the options in `--help`.
    pub after_help: &'static str,
    /// Adds its options.
    pub options: fn(clap::Command) -> clap::Command,
    /// Understands other spellings of its options. Sees all arguments, also those of other commands.
    pub translate: fn(Vec<OsString>) -> Result<Vec<OsString>, UsageError>,
    /// Does the work; what it fails with ends the program.
    pub run: fn(&ArgMatches) -> anyhow::Result<Exit>,
    /// True if it measures, under mpirun.
    pub measures: bool,
    /// True if it looks at the host and its files, which another process of a launch may see otherwise.
    pub of_this_host: bool,
}

/// No other spellings.
///
/// # Errors
/// None.
pub fn as_typed(args: Vec<OsString>) -> Result<Vec<OsString>, UsageError> {
    Ok(args)
}

/// The options of `matches` as their type.
///
/// # Errors
/// Options that were not defined by this type: a defect.
pub fn typed<A: clap::FromArgMatches>(matches: &ArgMatches) -> anyhow::Result<A> {
    Ok(A::from_arg_matches(matches)?)
}

/// The values of options of this type where none of them is given.
///
/// # Errors
/// An option that has to be given: a defect.
pub(crate) fn unsaid<A: clap::Args>() -> Result<A, UsageError> {
    let line = A::augment_args(clap::Command::new("options").no_binary_name(true));
    let defaults = line.try_get_matches_from([""; 0]).and_then(|matches| A::from_arg_matches(&matches));
    defaults.map_err(|defect| UsageError::new(defect.to_string(), "This is a defect: please report it."))
}

/// The options of this type in a line of words, for tests.
#[cfg(test)]
pub(crate) fn of_words<A: clap::Args>(words: impl IntoIterator<Item = impl Into<OsString> + Clone>) -> A {
    let line = A::augment_args(clap::Command::new("options").no_binary_name(true));
    typed(&line.get_matches_from(words)).unwrap()
}

/// True if the options of this type have a long one of this name, for tests.
#[cfg(test)]
pub(crate) fn has_option<A: clap::Args>(name: &str) -> bool {
    A::augment_args(clap::Command::new("options")).get_arguments().any(|a| a.get_long() == Some(name))
}

/// A format of `report` that one benchmark has.
#[derive(Clone, Copy, Debug)]
pub struct Format {
    /// As it is typed.
    pub word: &'static str,
    /// Its help.
    pub help: &'static str,
    /// What it is, told to those who ask for it with results of another benchmark.
    pub of: &'static str,
}
