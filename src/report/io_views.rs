//! The files of b_eff_io beside its journal: which there are, and what is in them.

use std::io;

use crate::results::RunResult;
use crate::stats::Derived;

use super::{csv, json, sum};

/// Suffixes of the files: the JSON document, the tidy table, and a summary of each backend.
#[must_use]
pub fn suffixes(backends: &[String]) -> Vec<String> {
    let sums = backends.iter().map(|backend| sum_suffix(backends, backend));
    [".json".to_owned(), ".csv".to_owned()].into_iter().chain(sums).collect()
}

/// The bytes of the file with this suffix.
///
/// # Errors
/// A record that the format cannot hold; a suffix that is none of [`suffixes`].
pub fn view(result: &RunResult, derived: &Derived, suffix: &str) -> io::Result<Vec<u8>> {
    match suffix {
        ".json" => return Ok(json::document(result, derived)?),
        ".csv" => return csv::rows(result, derived).map_err(io::Error::from),
        _ => {}
    }
    let backends = &result.config.backends;
    let backend = backends.iter().find(|backend| sum_suffix(backends, backend) == suffix).ok_or_else(|| {
        io::Error::new(io::ErrorKind::InvalidInput, format!("b_eff_io has no file that ends with {suffix}"))
    })?;
    Ok(sum::summary(result, derived, backend).into_bytes())
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
    use crate::report::fixtures;
    use crate::stats::derive;

    #[test]
    fn every_suffix_has_its_view() {
        for (name, result, _) in fixtures::all() {
            let derived = derive(&result);
            for suffix in suffixes(&result.config.backends) {
                assert!(!view(&result, &derived, &suffix).unwrap().is_empty(), "{name} {suffix}");
            }
            assert_eq!(view(&result, &derived, ".txt").unwrap_err().kind(), io::ErrorKind::InvalidInput);
        }
    }

    #[test]
    fn summaries_are_told_apart_only_if_there_are_several() {
        assert_eq!(suffixes(&["posix".into()]), [".json", ".csv", ".sum"]);
        assert_eq!(suffixes(&["mpiio".into(), "posix".into()]), [".json", ".csv", ".mpiio.sum", ".posix.sum"]);
    }
}
