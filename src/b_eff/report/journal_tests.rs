//! The journal, whole and cut.

use crate::b_eff::records::{CommLine, CommResult};
use crate::b_eff::report::fixtures;
use crate::frame::records::{Outcome, Warning};
use crate::frame::report::journal::{read, JournalError};

fn read_journal(bytes: &[u8]) -> Result<CommResult, JournalError> {
    read(bytes)
}

fn written(lines: &[CommLine]) -> Vec<u8> {
    lines.iter().flat_map(|line| serde_json::to_string(line).unwrap().into_bytes().into_iter().chain([b'\n'])).collect()
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
