//! Reports of b_eff: the table on stdout, PREFIX.csv, PREFIX.json and the journal PREFIX.jsonl. Pure functions of the
//! records and of what [`crate::b_eff::values`] derived from them.

mod comparable;
mod csv;
#[cfg(test)]
pub mod fixtures;
#[cfg(test)]
mod journal_tests;
#[cfg(test)]
mod json_tests;
mod page;
pub mod plan;
mod screen;
mod table;

use super::records::CommResult;
use super::values::kinds::KINDS;
use super::values::{derive, CommDerived};
use crate::frame::records::{Kind, Warning};
use crate::frame::report::picture::Point;
use crate::frame::report::sheet::Screen;
use crate::frame::report::{html, Place, Views};
use crate::frame::values::comparable::Comparable;

/// Suffixes of the files beside the journal.
pub(super) const SUFFIXES: [&str; 2] = [".json", ".csv"];

impl Views for CommResult {
    type Derived = CommDerived;
    const TITLE: &'static str = "b_eff";
    const SCHEMA: &'static str = "docs/comm-schema.json";
    const KINDS: &'static [Kind] = KINDS;

    fn derived(&self) -> CommDerived {
        derive(self)
    }

    fn warnings(derived: &CommDerived) -> &[Warning] {
        &derived.warnings
    }

    fn table(&self, derived: &CommDerived, details: bool) -> String {
        table::table(self, derived, details)
    }

    fn screen(&self, derived: &CommDerived, place: &Place) -> Option<Screen> {
        Some(screen::screen(self, derived, place))
    }

    fn page(&self, derived: &CommDerived) -> html::Run {
        page::page(self, derived)
    }

    fn over_ranks(&self, derived: &CommDerived) -> Vec<Point> {
        page::over_ranks(self, derived)
    }

    fn comparable(&self, derived: &CommDerived) -> Comparable {
        comparable::comparable(self, derived)
    }

    fn csv(&self, derived: &CommDerived) -> Result<Vec<u8>, ::csv::Error> {
        csv::csv(self, derived)
    }
}
