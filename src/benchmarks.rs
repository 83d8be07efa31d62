//! The table of benchmarks. A new benchmark is a module and a line here.

use beff_ffi::Comm;

use crate::frame::benchmark::{BenchmarkModule, Command, ReportFormat};
use crate::frame::command::start::CommandError;
use crate::frame::report::journal::{self, JournalError};
use crate::frame::report::json::{self, JsonError};
use crate::frame::report::LoadedReport;
use crate::frame::run::interrupt::Interrupt;
use crate::frame::run::trials::TrialRunner;
use crate::frame::system::survey::Survey;
use crate::frame::trials::TrialConfig;
use crate::{b_eff, b_eff_io, imb_io, replay, tune};

/// All benchmarks. The first is the default of the program, and of files that name no benchmark.
pub const BENCHMARKS: [&BenchmarkModule; 5] =
    [&b_eff_io::BENCHMARK, &b_eff::BENCHMARK, &imb_io::BENCHMARK, &replay::BENCHMARK, &TUNE];

/// The search of settings, which measures by the modules of patterns and of recordings.
const TUNE_COMMANDS: [Command; 1] = tune::commands(|options| tune::run(options, open_trials));
const TUNE: BenchmarkModule = tune::benchmark(&TUNE_COMMANDS);

fn open_trials<'a>(
    world: &'a Comm,
    interrupt: &'a Interrupt,
    survey: &'a Survey,
    config: &TrialConfig,
) -> Result<Box<dyn TrialRunner + 'a>, CommandError> {
    match &config.profile {
        Some(_) => replay::trials::open_trials(world, interrupt, survey, config),
        None => b_eff_io::trials::open_trials(world, interrupt, survey, config),
    }
}

/// Formats of single benchmarks.
pub fn formats() -> impl Iterator<Item = &'static ReportFormat> {
    BENCHMARKS.iter().flat_map(|benchmark| benchmark.formats)
}

/// A file of results could not be read.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// A journal that is invalid.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// Neither a journal nor a valid JSON document.
    #[error(transparent)]
    Json(#[from] JsonError),
    /// An invalid file of another program.
    #[error("{0}")]
    Foreign(String),
    /// A result of a benchmark that is not in the table.
    #[error("{what} of {found}, not of {}; this program reads those of {}", BENCHMARKS[0].name, list_names())]
    Unknown {
        /// The file: a journal or a document.
        what: &'static str,
        /// The benchmark that it names.
        found: String,
    },
}

fn list_names() -> String {
    let names = BENCHMARKS.map(|benchmark| benchmark.name);
    let (last, others) = names.split_last().unwrap_or((&"", &[]));
    format!("{} and {last}", others.join(", "))
}

/// Reads the results of a run of any benchmark from PREFIX.json or PREFIX.jsonl, recognized by their content.
///
/// # Errors
/// [`LoadError`] with the reason.
pub fn load(bytes: &[u8]) -> Result<(&'static BenchmarkModule, Box<dyn LoadedReport>), LoadError> {
    let reads = |benchmark: &&BenchmarkModule| benchmark.foreign.filter(|foreign| (foreign.recognizes)(bytes));
    if let Some((benchmark, foreign)) = BENCHMARKS.into_iter().find_map(|b| Some((b, reads(&b)?))) {
        return Ok((benchmark, (foreign.read)(bytes).map_err(LoadError::Foreign)?));
    }
    // Every line of a journal begins with its kind; the document has its brace alone on the first line.
    if bytes.starts_with(b"{\"record\":") {
        let benchmark = find_benchmark(journal::benchmark(bytes)?, "the journal is one")?;
        Ok((benchmark, (benchmark.journal)(bytes)?))
    } else {
        let benchmark = find_benchmark(json::benchmark(bytes)?, "the document is a result")?;
        Ok((benchmark, (benchmark.document)(bytes)?))
    }
}

/// Early files of the first benchmark do not name it.
fn find_benchmark(found: Option<String>, what: &'static str) -> Result<&'static BenchmarkModule, LoadError> {
    let Some(found) = found else { return Ok(BENCHMARKS[0]) };
    BENCHMARKS.into_iter().find(|benchmark| benchmark.name == found).ok_or(LoadError::Unknown { what, found })
}

#[cfg(test)]
#[path = "benchmarks_tests.rs"]
mod tests;

#[cfg(test)]
#[path = "benchmarks_fuzz.rs"]
mod fuzz;

#[cfg(test)]
#[path = "benchmarks_terminal_tests.rs"]
mod terminal_tests;
