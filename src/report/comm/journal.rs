//! PREFIX.jsonl of b_eff.

use crate::report::journal::{read_as, JournalError};
use crate::results::comm::CommResult;

/// Rebuilds a result from a journal, whole or cut off anywhere. Without an end line the outcome is
/// [`crate::results::Outcome::Killed`]; a torn last line is left out and noted as [`crate::results::Warning::JournalTorn`].
///
/// # Errors
/// [`JournalError`].
pub fn read_journal(bytes: &[u8]) -> Result<CommResult, JournalError> {
    read_as(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::comm::fixtures;
    use crate::results::comm::CommLine;
    use crate::results::{Outcome, Warning};

    fn written(lines: &[CommLine]) -> Vec<u8> {
        lines
            .iter()
            .flat_map(|line| serde_json::to_string(line).unwrap().into_bytes().into_iter().chain([b'\n']))
            .collect()
    }

    #[test]
    fn a_whole_journal_reads_back_as_the_result() {
        for (name, result, _) in fixtures::all() {
            assert_eq!(read_journal(&written(&fixtures::journal_lines(&result))).unwrap(), result, "{name}");
        }
    }

    #[test]
    fn a_journal_cut_in_a_line_keeps_the_rest() {
        let lines = fixtures::journal_lines(&fixtures::complete());
        let before = written(&lines[..4]).len();
        let whole = written(&lines[..5]);
        let mut cut = read_journal(&whole[..before + 100]).unwrap();
        assert_eq!(cut.warnings.pop(), Some(Warning::JournalTorn { line: 5, bytes: 100 }));
        assert_eq!(cut.ending.outcome, Outcome::Killed);
        assert_eq!(cut, read_journal(&whole[..before]).unwrap());
    }

    #[test]
    fn journals_of_the_other_benchmark_are_refused_by_name() {
        let own = written(&fixtures::journal_lines(&fixtures::complete()));
        let message = crate::report::journal::read(&own).unwrap_err().to_string();
        assert!(message.contains("one of b_eff, not of b_eff_io"), "{message}");
        let other = serde_json::to_vec(&crate::report::fixtures::complete().start_line()).unwrap();
        let message = read_journal(&other).unwrap_err().to_string();
        assert!(message.contains("one of b_eff_io, not of b_eff;"), "{message}");
    }
}
