//! Reports of b_eff: the table on stdout, PREFIX.csv, PREFIX.json and the journal PREFIX.jsonl. Pure functions of the
//! records and of what [`crate::b_eff::values`] derived from them.

mod csv;
#[cfg(test)]
pub mod fixtures;
#[cfg(test)]
mod journal_tests;
mod json;
pub mod plan;
mod table;
mod warnings;

pub use csv::csv;
pub use json::document;
pub use warnings::text;

use std::io;

use super::records::CommResult;
use super::values::{derive, CommDerived};
use crate::frame::report::{no_view, Views};

/// Suffixes of the files beside the journal.
pub(super) const SUFFIXES: [&str; 2] = [".json", ".csv"];

impl Views for CommResult {
    type Derived = CommDerived;
    const SCHEMA: &'static str = "docs/comm-schema.json";

    fn derived(&self) -> CommDerived {
        derive(self)
    }

    fn table(&self, derived: &CommDerived, details: bool) -> String {
        table::table(self, derived, details)
    }

    /// The JSON document and the tidy table.
    fn suffixes(&self) -> Vec<String> {
        SUFFIXES.map(str::to_owned).to_vec()
    }

    fn view(&self, derived: &CommDerived, suffix: &str) -> io::Result<Vec<u8>> {
        match suffix {
            ".json" => Ok(document(self, derived)?),
            ".csv" => csv(self, derived).map_err(io::Error::from),
            _ => Err(no_view("b_eff", suffix)),
        }
    }
}

/// True if a received message was not what was sent.
fn is_corrupt(result: &CommResult) -> bool {
    !result.corruptions.is_empty() || result.patterns.iter().any(|p| p.bytes_wrong > 0)
}
