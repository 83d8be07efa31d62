//! Reports of IMB-IO: the table on stdout, PREFIX.csv, PREFIX.json, PREFIX.imb with the columns of the release, and the
//! journal PREFIX.jsonl. Pure functions of the records and of what [`crate::imb_io::values`] derived from them.

mod blocks;
mod comparable;
mod csv;
#[cfg(test)]
pub mod fixtures;
mod imb_format;
#[cfg(test)]
mod journal_tests;
#[cfg(test)]
mod json_tests;
mod page;
pub mod plan;
mod screen;
mod state;
mod table;

pub use imb_format::imb_format;

use super::records::ImbResult;
use super::values::kinds::KINDS;
use super::values::{derive, ImbDerived};
use crate::frame::records::{Kind, Warning};
use crate::frame::report::picture::Point;
use crate::frame::report::sheet::Screen;
use crate::frame::report::{html, Place, Views};
use crate::frame::values::comparable::Comparable;

/// Suffixes of the files beside the journal.
pub(super) const SUFFIXES: [&str; 3] = [".json", ".csv", ".imb"];

impl Views for ImbResult {
    type Derived = ImbDerived;
    const TITLE: &'static str = "IMB-IO";
    const SCHEMA: &'static str = "docs/imb-schema.json";
    const KINDS: &'static [Kind] = KINDS;

    fn derived(&self) -> ImbDerived {
        derive(self)
    }

    fn warnings(derived: &ImbDerived) -> &[Warning] {
        &derived.warnings
    }

    fn table(&self, derived: &ImbDerived, details: bool) -> String {
        table::table(self, derived, details)
    }

    fn screen(&self, derived: &ImbDerived, place: &Place) -> Option<Screen> {
        Some(screen::screen(self, derived, place))
    }

    fn csv(&self, derived: &ImbDerived) -> Result<Vec<u8>, ::csv::Error> {
        csv::csv(self, derived)
    }

    fn page(&self, derived: &ImbDerived) -> html::Run {
        page::page(self, derived)
    }

    fn over_ranks(&self, derived: &ImbDerived) -> Vec<Point> {
        page::over_ranks(self, derived)
    }

    fn comparable(&self, derived: &ImbDerived) -> Comparable {
        comparable::comparable(self, derived)
    }

    /// The look of the release.
    fn own_suffixes(&self) -> Vec<String> {
        SUFFIXES[2..].iter().map(ToString::to_string).collect()
    }

    fn own_view(&self, derived: &ImbDerived, suffix: &str) -> Option<String> {
        (suffix == SUFFIXES[2]).then(|| imb_format(self, derived))
    }
}

#[cfg(test)]
mod tests {
    use std::io;

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
