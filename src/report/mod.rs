//! Results as bytes: one file per format, each a pure function of the records and what [`crate::stats`] derived from
//! them. No clock, no MPI; the only I/O is here: the output files of a run.

pub mod comm_plan;
pub mod csv;
#[cfg(test)]
pub mod fixtures;
pub mod journal;
pub mod json;
pub mod layout;
pub mod library;
pub mod marks;
pub mod outputs;
pub mod plan_table;
pub mod sum;
pub mod table;
pub mod text;
pub mod verdicts;
pub mod warnings;

pub use outputs::{OutputError, Outputs};

use crate::results::RunResult;

/// Why a file of results could not be read.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// It is a journal, but not a sound one.
    #[error(transparent)]
    Journal(#[from] journal::JournalError),
    /// It is no journal and not a sound JSON document either.
    #[error(transparent)]
    Json(#[from] json::JsonError),
}

/// Reads the results of a run from PREFIX.json or PREFIX.jsonl, whichever the bytes are.
///
/// # Errors
/// [`LoadError`] with the reason.
pub fn load(bytes: &[u8]) -> Result<RunResult, LoadError> {
    // Every line of a journal begins with its kind; the pretty document has its brace alone on the first line.
    if bytes.starts_with(b"{\"record\":") {
        Ok(journal::read(bytes)?)
    } else {
        Ok(json::parse(bytes)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::derive;

    #[test]
    fn both_kinds_of_files_are_recognised() {
        let result = fixtures::complete();
        let derived = derive(&result);
        assert_eq!(load(&json::document(&result, &derived).unwrap()).unwrap(), result);
        let mut journal = Vec::new();
        for line in fixtures::journal_lines(&result) {
            serde_json::to_writer(&mut journal, &line).unwrap();
            journal.push(b'\n');
        }
        assert_eq!(load(&journal).unwrap(), result);
        assert!(load(b"backend,ranks\n").unwrap_err().to_string().contains("not a whole JSON document"));
    }
}
