//! Reports of b_eff_io: the table on stdout, PREFIX.csv, PREFIX.json, a summary of each backend, and the journal. Pure
//! functions of the records and of what [`super::values`] derived from them.

pub(crate) mod cells;
mod comparable;
pub mod csv;
#[cfg(test)]
pub mod fixtures;
#[cfg(test)]
mod journal_tests;
pub mod json;
pub mod layout;
mod page;
pub mod plan_table;
pub mod screen;
pub mod sum;
pub mod table;
pub mod verdicts;

use std::io;

use super::records::RunResult;
use super::values::kinds::KINDS;
use super::values::{derive, without_ladder, Derived};
use crate::frame::records::{Kind, Warning};
use crate::frame::report::picture::Point;
use crate::frame::report::sheet::Screen;
use crate::frame::report::{html, Place, Views};
use crate::frame::values::comparable::Comparable;

impl Views for RunResult {
    type Derived = Derived;
    const TITLE: &'static str = "b_eff_io";
    const SCHEMA: &'static str = "docs/results-schema.json";
    const KINDS: &'static [Kind] = KINDS;

    fn derived(&self) -> Derived {
        derive(self)
    }

    fn derived_for_page(&self) -> Derived {
        without_ladder(self)
    }

    fn warnings(derived: &Derived) -> &[Warning] {
        &derived.warnings
    }

    fn table(&self, derived: &Derived, details: bool) -> String {
        table::table(self, derived, details)
    }

    fn screen(&self, derived: &Derived, place: &Place) -> Option<Screen> {
        Some(screen::screen(self, derived, place))
    }

    fn page(&self, derived: &Derived) -> html::Run {
        page::page(self, derived)
    }

    fn over_ranks(&self, derived: &Derived) -> Vec<Point> {
        page::over_ranks(self, derived)
    }

    fn document(&self, derived: &Derived) -> Result<Vec<u8>, serde_json::Error> {
        json::document(self, derived)
    }

    fn schema() -> String {
        json::schema()
    }

    fn csv(&self, derived: &Derived) -> Result<Vec<u8>, ::csv::Error> {
        csv::rows(self, derived)
    }

    fn comparable(&self, derived: &Derived) -> Comparable {
        comparable::comparable(self, derived)
    }

    /// A summary of each backend.
    fn own_suffixes(&self) -> Vec<String> {
        suffixes(&self.config.backends).split_off(2)
    }

    fn own_view(&self, derived: &Derived, suffix: &str) -> Option<String> {
        let backends = &self.config.backends;
        let backend = backends.iter().find(|backend| sum_suffix(backends, backend) == suffix)?;
        Some(sum::summary(self, derived, backend))
    }

    /// As a format all summaries are one text.
    fn format(&self, derived: &Derived, word: &str) -> Option<io::Result<Vec<u8>>> {
        let summary = |backend: &String| sum::summary(self, derived, backend);
        match word {
            "json" | "csv" => Some(self.view(derived, &format!(".{word}"))),
            "sum" => Some(Ok(self.config.backends.iter().map(summary).collect::<String>().into_bytes())),
            _ => None,
        }
    }
}

/// Suffixes of the files beside the journal of a run with these backends.
pub(super) fn suffixes(backends: &[String]) -> Vec<String> {
    let sums = backends.iter().map(|backend| sum_suffix(backends, backend));
    [".json".to_owned(), ".csv".to_owned()].into_iter().chain(sums).collect()
}

fn sum_suffix(backends: &[String], backend: &str) -> String {
    if backends.len() == 1 {
        ".sum".to_owned()
    } else {
        format!(".{backend}.sum")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::b_eff_io::cli::IoArgs;
    use crate::b_eff_io::report::fixtures;
    use crate::b_eff_io::values::derive;
    use crate::frame::benchmark::has_option;

    /// A report that names an option that does not exist sends its reader nowhere.
    #[test]
    fn every_option_in_a_report_exists() {
        let pages = fixtures::all().into_iter().map(|(_, result, derived)| result.table(&derived, true));
        let next_steps = KINDS.iter().map(|kind| kind.next_step.to_owned());
        let is_option = |c: char| c.is_ascii_lowercase() || c == '-';
        for text in pages.chain(next_steps) {
            let words = text.split_whitespace().map(|word| word.trim_start_matches(['`', '(']));
            for word in words.filter_map(|word| word.strip_prefix("--")) {
                let name: String = word.chars().take_while(|&c| is_option(c)).collect();
                assert!(name.trim_matches('-').is_empty() || has_option::<IoArgs>(&name), "--{name}");
            }
        }
    }

    #[test]
    fn every_suffix_has_its_view() {
        for (name, result, _) in fixtures::all() {
            let derived = derive(&result);
            for suffix in suffixes(&result.config.backends) {
                assert!(!result.view(&derived, &suffix).unwrap().is_empty(), "{name} {suffix}");
            }
            assert_eq!(result.view(&derived, ".txt").unwrap_err().kind(), io::ErrorKind::InvalidInput);
        }
    }

    #[test]
    fn summaries_are_told_apart_only_if_there_are_several() {
        assert_eq!(suffixes(&["posix".into()]), [".json", ".csv", ".sum"]);
        assert_eq!(suffixes(&["mpiio".into(), "posix".into()]), [".json", ".csv", ".mpiio.sum", ".posix.sum"]);
    }
}
