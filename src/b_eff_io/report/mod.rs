//! Reports of b_eff_io: the table on stdout, PREFIX.csv, PREFIX.json, a summary of each backend, and the journal. Pure
//! functions of the records and of what [`super::values`] derived from them.

pub(crate) mod cells;
pub mod csv;
#[cfg(test)]
pub mod fixtures;
#[cfg(test)]
mod journal_tests;
pub mod json;
pub mod layout;
pub mod plan_table;
pub mod sum;
pub mod table;
pub mod verdicts;
pub mod warnings;

use std::io;

use super::records::RunResult;
use super::values::{derive, Derived};
use crate::frame::report::{no_view, Views};

impl Views for RunResult {
    type Derived = Derived;
    const SCHEMA: &'static str = "docs/results-schema.json";

    fn derived(&self) -> Derived {
        derive(self)
    }

    fn table(&self, derived: &Derived, details: bool) -> String {
        table::table(self, derived, details)
    }

    /// The JSON document, the tidy table, and a summary of each backend.
    fn suffixes(&self) -> Vec<String> {
        suffixes(&self.config.backends)
    }

    fn view(&self, derived: &Derived, suffix: &str) -> io::Result<Vec<u8>> {
        match suffix {
            ".json" => return Ok(json::document(self, derived)?),
            ".csv" => return csv::rows(self, derived).map_err(io::Error::from),
            _ => {}
        }
        let backends = &self.config.backends;
        let of_suffix = backends.iter().find(|backend| sum_suffix(backends, backend) == suffix);
        of_suffix
            .map(|backend| sum::summary(self, derived, backend).into_bytes())
            .ok_or_else(|| no_view("b_eff_io", suffix))
    }

    fn format(&self, derived: &Derived, word: &str) -> Option<io::Result<Vec<u8>>> {
        match word {
            "json" | "csv" => Some(self.view(derived, &format!(".{word}"))),
            "sum" => {
                let backends = self.config.backends.iter();
                Some(Ok(backends.map(|backend| sum::summary(self, derived, backend)).collect::<String>().into_bytes()))
            }
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
    use crate::b_eff_io::report::fixtures;
    use crate::b_eff_io::values::derive;

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
