//! The table of benchmarks. A new one is a room and a line here.

use crate::frame::benchmark::{Benchmark, Format};
use crate::frame::report::journal::{self, JournalError};
use crate::frame::report::json::{self, JsonError};
use crate::frame::report::Report;
use crate::{b_eff, b_eff_io, imb_io, replay};

/// All of them. The first one is what the program measures without a command, and what files without a name are of.
pub const BENCHMARKS: [&Benchmark; 4] =
    [&b_eff_io::BENCHMARK, &b_eff::BENCHMARK, &imb_io::BENCHMARK, &replay::BENCHMARK];

/// The formats that single benchmarks have.
pub fn formats() -> impl Iterator<Item = &'static Format> {
    BENCHMARKS.iter().flat_map(|benchmark| benchmark.formats)
}

/// Why a file of results could not be read.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// It is a journal, but not a sound one.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// It is no journal and not a sound JSON document either.
    #[error(transparent)]
    Json(#[from] JsonError),
    /// It was written by another program, but is not sound.
    #[error("{0}")]
    Foreign(String),
    /// A result of a benchmark that is not in the table.
    #[error("{what} of {found}, not of {}; this program reads those of {}", BENCHMARKS[0].name, names())]
    Unknown {
        /// The file: a journal or a document.
        what: &'static str,
        /// What it names.
        found: String,
    },
}

fn names() -> String {
    let names = BENCHMARKS.map(|benchmark| benchmark.name);
    let (last, others) = names.split_last().unwrap_or((&"", &[]));
    format!("{} and {last}", others.join(", "))
}

/// Reads the results of a run from PREFIX.json or PREFIX.jsonl, whichever the bytes are, of whichever benchmark.
///
/// # Errors
/// [`LoadError`] with the reason.
pub fn load(bytes: &[u8]) -> Result<(&'static Benchmark, Box<dyn Report>), LoadError> {
    let reads = |benchmark: &&Benchmark| benchmark.foreign.filter(|foreign| (foreign.is)(bytes));
    if let Some((benchmark, foreign)) = BENCHMARKS.into_iter().find_map(|b| Some((b, reads(&b)?))) {
        return Ok((benchmark, (foreign.read)(bytes).map_err(LoadError::Foreign)?));
    }
    // Every line of a journal begins with its kind; the document has its brace alone on the first line.
    if bytes.starts_with(b"{\"record\":") {
        let benchmark = named(journal::benchmark(bytes)?, "the journal is one")?;
        Ok((benchmark, (benchmark.journal)(bytes)?))
    } else {
        let benchmark = named(json::benchmark(bytes)?, "the document is a result")?;
        Ok((benchmark, (benchmark.document)(bytes)?))
    }
}

/// The first benchmark was there before files named theirs.
fn named(found: Option<String>, what: &'static str) -> Result<&'static Benchmark, LoadError> {
    let Some(found) = found else { return Ok(BENCHMARKS[0]) };
    BENCHMARKS.into_iter().find(|benchmark| benchmark.name == found).ok_or(LoadError::Unknown { what, found })
}

#[cfg(test)]
#[path = "benchmarks_tests.rs"]
mod tests;

#[cfg(test)]
#[path = "benchmarks_hostile.rs"]
mod hostile;

#[cfg(test)]
#[path = "benchmarks_terminal_tests.rs"]
mod terminal_tests;
