//! Reports of replays: screen and table on stdout, PREFIX.csv, PREFIX.json, and the journal PREFIX.jsonl. Pure functions of the records and
//! of what [`crate::replay::values`] derived from them.

mod comparable;
mod csv;
#[cfg(test)]
pub mod fixtures;
#[cfg(test)]
mod journal_tests;
#[cfg(test)]
mod json_tests;
mod page;
mod picture;
pub mod plan;
mod screen;
mod table;

use super::records::ReplayResult;
use super::values::kinds::KINDS;
use super::values::{derive, ReplayDerived};
use crate::frame::records::{Kind, Warning};
use crate::frame::report::picture::Point;
use crate::frame::report::sheet::Screen;
use crate::frame::report::{html, Place, Views};
use crate::frame::values::comparable::Comparable;

/// Suffixes of the files beside the journal.
pub(super) const SUFFIXES: [&str; 2] = [".json", ".csv"];

impl Views for ReplayResult {
    type Derived = ReplayDerived;
    const TITLE: &'static str = "replay";
    const SCHEMA: &'static str = "docs/replay-schema.json";
    const KINDS: &'static [Kind] = KINDS;

    fn derived(&self) -> ReplayDerived {
        derive(self)
    }

    fn warnings(derived: &ReplayDerived) -> &[Warning] {
        &derived.warnings
    }

    fn table(&self, derived: &ReplayDerived, details: bool) -> String {
        table::table(self, derived, details)
    }

    fn screen(&self, derived: &ReplayDerived, place: &Place) -> Option<Screen> {
        Some(screen::screen(self, derived, place))
    }

    fn page(&self, derived: &ReplayDerived) -> html::Run {
        page::page(self, derived)
    }

    fn comparable(&self, derived: &ReplayDerived) -> Comparable {
        comparable::comparable(self, derived)
    }

    fn points(&self, derived: &ReplayDerived) -> Vec<Point> {
        picture::points(self, derived)
    }

    fn csv(&self, derived: &ReplayDerived) -> Result<Vec<u8>, ::csv::Error> {
        csv::csv(self, derived)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_suffix_has_its_view() {
        for (name, result, derived) in fixtures::all() {
            for suffix in result.suffixes() {
                assert!(SUFFIXES.contains(&suffix.as_str()));
                assert!(!result.view(&derived, &suffix).unwrap().is_empty(), "{name} {suffix}");
            }
        }
    }
}
