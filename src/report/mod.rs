//! Results as bytes: one file per format, each a pure function of the records and what [`crate::stats`] derived from
//! them. No clock, no MPI; the only I/O is here: the output files of a run.

pub mod comm;
pub mod comm_plan;
mod costs;
mod criteria;
pub mod csv;
mod ending;
#[cfg(test)]
pub mod fixtures;
pub mod imb;
pub mod imb_plan;
pub mod io_views;
pub mod journal;
pub mod json;
pub mod layout;
pub mod library;
mod machine;
pub mod marks;
pub mod outputs;
pub mod plan_table;
#[cfg(test)]
mod schema;
pub mod sum;
pub mod table;
pub mod text;
pub mod verdicts;
pub mod warnings;

pub use outputs::{OutputError, Outputs};

use crate::results::comm::{CommResult, B_EFF};
use crate::results::imb::{ImbResult, IMB_IO};
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

/// The results of a run of one benchmark.
#[derive(Clone, Debug, PartialEq)]
pub enum Loaded {
    /// b_eff_io.
    Io(Box<RunResult>),
    /// b_eff.
    Comm(Box<CommResult>),
    /// IMB-IO.
    Imb(Box<ImbResult>),
}

/// Reads the results of a run from PREFIX.json or PREFIX.jsonl, whichever the bytes are, of whichever benchmark.
///
/// # Errors
/// [`LoadError`] with the reason.
pub fn load(bytes: &[u8]) -> Result<Loaded, LoadError> {
    // Every line of a journal begins with its kind; the pretty document has its brace alone on the first line.
    if bytes.starts_with(b"{\"record\":") {
        Ok(match journal::benchmark(bytes)?.as_str() {
            B_EFF => Loaded::Comm(Box::new(comm::read_journal(bytes)?)),
            IMB_IO => Loaded::Imb(Box::new(imb::read_journal(bytes)?)),
            _ => Loaded::Io(Box::new(journal::read(bytes)?)),
        })
    } else {
        Ok(match json::benchmark(bytes)?.as_str() {
            B_EFF => Loaded::Comm(Box::new(comm::parse(bytes)?)),
            IMB_IO => Loaded::Imb(Box::new(imb::parse(bytes)?)),
            _ => Loaded::Io(Box::new(json::parse(bytes)?)),
        })
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
        let expected = Loaded::Io(Box::new(result.clone()));
        assert_eq!(load(&json::document(&result, &derived).unwrap()).unwrap(), expected);
        let mut journal = Vec::new();
        for line in fixtures::journal_lines(&result) {
            serde_json::to_writer(&mut journal, &line).unwrap();
            journal.push(b'\n');
        }
        assert_eq!(load(&journal).unwrap(), expected);
        assert!(load(b"backend,ranks\n").unwrap_err().to_string().contains("not a whole JSON document"));
    }

    #[test]
    fn every_benchmark_is_recognised() {
        let result = comm::fixtures::complete();
        let expected = Loaded::Comm(Box::new(result.clone()));
        let document = comm::document(&result, &crate::stats::comm::derive(&result)).unwrap();
        assert_eq!(load(&document).unwrap(), expected);
        let mut journal = Vec::new();
        for line in comm::fixtures::journal_lines(&result) {
            serde_json::to_writer(&mut journal, &line).unwrap();
            journal.push(b'\n');
        }
        assert_eq!(load(&journal).unwrap(), expected);
        let result = imb::fixtures::complete();
        let expected = Loaded::Imb(Box::new(result.clone()));
        let document = imb::document(&result, &crate::stats::imb::derive(&result)).unwrap();
        assert_eq!(load(&document).unwrap(), expected);
        let mut journal = Vec::new();
        for line in imb::fixtures::journal_lines(&result) {
            serde_json::to_writer(&mut journal, &line).unwrap();
            journal.push(b'\n');
        }
        assert_eq!(load(&journal).unwrap(), expected);
    }

    #[test]
    fn results_of_other_benchmarks_are_refused_by_name() {
        for bytes in [
            br#"{"record":"start","schema_version":1,"benchmark":"b_new"}"#.as_slice(),
            br#"{"program":"beff-raw","schema_version":1,"benchmark":"b_new"}"#,
        ] {
            let message = load(bytes).unwrap_err().to_string();
            assert!(message.contains("b_new") && message.contains("b_eff_io, b_eff and imb_io"), "{message}");
        }
    }
}
