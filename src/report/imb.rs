//! Reports of IMB-IO: the table on stdout, PREFIX.csv, PREFIX.json, PREFIX.imb with the columns of the release, and the
//! journal PREFIX.jsonl. Pure functions of the records and of what [`crate::stats::imb`] derived from them.

mod blocks;
mod csv;
#[cfg(test)]
pub mod fixtures;
mod grid;
mod imb_format;
mod journal;
mod json;
mod table;
mod warnings;

pub use csv::csv;
pub use imb_format::imb_format;
pub use journal::read_journal;
pub use json::{document, parse};
pub use table::table;
pub use warnings::text;

use std::io;

use crate::results::imb::ImbResult;
use crate::stats::imb::ImbDerived;

/// Suffixes of the files beside the journal: the JSON document, the tidy table, the look of the release.
#[must_use]
pub fn suffixes() -> Vec<String> {
    [".json", ".csv", ".imb"].map(str::to_owned).to_vec()
}

/// The bytes of the file with this suffix.
///
/// # Errors
/// A record that the format cannot hold; a suffix that is none of [`suffixes`].
pub fn view(result: &ImbResult, derived: &ImbDerived, suffix: &str) -> io::Result<Vec<u8>> {
    match suffix {
        ".json" => Ok(document(result, derived)?),
        ".csv" => csv(result, derived).map_err(io::Error::from),
        ".imb" => Ok(imb_format(result, derived).into_bytes()),
        _ => {
            let cause = format!("IMB-IO has no file that ends with {suffix}");
            Err(io::Error::new(io::ErrorKind::InvalidInput, cause))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_suffix_has_its_view() {
        for (name, result, derived) in fixtures::all() {
            for suffix in suffixes() {
                assert!(!view(&result, &derived, &suffix).unwrap().is_empty(), "{name} {suffix}");
            }
            assert_eq!(view(&result, &derived, ".sum").unwrap_err().kind(), io::ErrorKind::InvalidInput);
        }
    }
}
