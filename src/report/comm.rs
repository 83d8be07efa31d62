//! Reports of b_eff: the table on stdout, PREFIX.csv, PREFIX.json and the journal PREFIX.jsonl. Pure functions of the
//! records and of what [`crate::stats::comm`] derived from them.

mod csv;
#[cfg(test)]
pub mod fixtures;
mod journal;
mod json;
mod table;
mod warnings;

pub use csv::csv;
pub use journal::read_journal;
pub use json::{document, parse};
pub use table::table;
pub use warnings::text;

use crate::results::comm::CommResult;

/// True if a received message was not what was sent.
fn is_corrupt(result: &CommResult) -> bool {
    !result.corruptions.is_empty() || result.patterns.iter().any(|p| p.bytes_wrong > 0)
}
