//! Requested hints that are not in force.

use crate::b_eff_io::records::RunResult;
use crate::frame::records::Warning;
use crate::frame::values::hints::ungranted_warning;

/// Warning of a backend for all hints that the library does not list as requested: those of an open are compared with the list
/// after the open, those of a pattern with the list of the pattern. Files and patterns that were not run are ignored.
pub(super) fn not_granted_warning(result: &RunResult, backend: &str) -> Option<Warning> {
    let opens = result.types.iter().filter(|t| t.backend == backend);
    let patterns = result.patterns.iter().filter(|p| p.backend == backend && p.calls > 0 && p.was_run());
    let of_opens = opens.map(|t| (t.hints_requested.as_slice(), t.hints_granted.as_slice()));
    ungranted_warning(
        of_opens.chain(patterns.map(|p| (p.hints_requested.as_slice(), p.hints_granted.as_slice()))),
        backend,
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::b_eff_io::values::fixture::{edit_pattern, full_run};
    use crate::frame::records::AccessMethod;

    fn hint(key: &str, value: &str) -> Vec<(String, String)> {
        vec![(key.into(), value.into())]
    }

    fn missing(result: &RunResult) -> Option<(u64, String, String, Option<String>)> {
        let found = not_granted_warning(result, "mpiio")?;
        let text = |name: &str| found.figures[name].as_str().map(str::to_owned);
        Some((found.figures["hints"].as_u64()?, text("key")?, text("requested")?, text("granted")))
    }

    #[test]
    fn hints_of_an_open_are_compared_with_the_list_after_the_open() {
        let mut result = full_run();
        result.types[0].hints_requested = hint("romio_cb_write", "ENABLE");
        assert_eq!(missing(&result).unwrap().3, None, "the list of a pattern does not count");
        result.types[0].hints_granted = hint("romio_cb_write", "enable ");
        assert_eq!(missing(&result), None);
        result.types[0].hints_granted = hint("romio_cb_write", "automatic");
        let expected = (1, "romio_cb_write".into(), "ENABLE".into(), Some("automatic".into()));
        assert_eq!(missing(&result), Some(expected));
    }

    #[test]
    fn hints_of_a_pattern_are_compared_with_its_own_list() {
        let mut result = full_run();
        edit_pattern(&mut result, 4, AccessMethod::Read, 3, |p| p.hints_requested = hint("cb_nodes", "2"));
        assert_eq!(missing(&result), None);
        edit_pattern(&mut result, 4, AccessMethod::Read, 3, |p| p.hints_requested = hint("cb_nodes", "7"));
        assert_eq!(missing(&result), Some((1, "cb_nodes".into(), "7".into(), Some("2".into()))));
        edit_pattern(&mut result, 4, AccessMethod::Read, 3, |p| p.calls = 0);
        assert_eq!(missing(&result), None, "it was not run");
    }

    #[test]
    fn one_warning_counts_the_different_ones() {
        let mut result = full_run();
        for p in result.patterns.iter_mut().filter(|p| p.pattern < 3) {
            p.hints_requested = hint("cb_nodes", &p.pattern.to_string());
        }
        // Requests 0, 1 and 2 in every partition and access method; 2 is in force.
        assert_eq!(missing(&result), Some((2, "cb_nodes".into(), "0".into(), Some("2".into()))));
    }
}
