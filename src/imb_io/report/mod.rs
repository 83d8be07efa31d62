//! Reports of IMB-IO: the table on stdout, PREFIX.csv, PREFIX.json, PREFIX.imb with the columns of the release, and the
//! journal PREFIX.jsonl. Pure functions of the records and of what [`crate::imb_io::values`] derived from them.

mod blocks;
mod csv;
#[cfg(test)]
pub mod fixtures;
mod imb_format;
#[cfg(test)]
mod journal_tests;
mod json;
pub mod plan;
mod table;
mod warnings;

pub use csv::csv;
pub use imb_format::imb_format;
pub use json::document;
pub use warnings::text;

use std::io;

use super::records::ImbResult;
use super::values::{derive, ImbDerived};
use crate::frame::report::{no_view, Views};

/// Suffixes of the files beside the journal.
pub(super) const SUFFIXES: [&str; 3] = [".json", ".csv", ".imb"];

impl Views for ImbResult {
    type Derived = ImbDerived;
    const SCHEMA: &'static str = "docs/imb-schema.json";

    fn derived(&self) -> ImbDerived {
        derive(self)
    }

    fn table(&self, derived: &ImbDerived, details: bool) -> String {
        table::table(self, derived, details)
    }

    /// The JSON document, the tidy table, the look of the release.
    fn suffixes(&self) -> Vec<String> {
        SUFFIXES.map(str::to_owned).to_vec()
    }

    fn view(&self, derived: &ImbDerived, suffix: &str) -> io::Result<Vec<u8>> {
        match suffix {
            ".json" => Ok(document(self, derived)?),
            ".csv" => csv(self, derived).map_err(io::Error::from),
            ".imb" => Ok(imb_format(self, derived).into_bytes()),
            _ => Err(no_view("IMB-IO", suffix)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_suffix_has_its_view() {
        for (name, result, derived) in fixtures::all() {
            for suffix in result.suffixes() {
                assert!(!result.view(&derived, &suffix).unwrap().is_empty(), "{name} {suffix}");
            }
            assert_eq!(result.view(&derived, ".sum").unwrap_err().kind(), io::ErrorKind::InvalidInput);
        }
    }
}
