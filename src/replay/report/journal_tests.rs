//! The journal, whole and cut.

use crate::frame::report::checks::{assert_truncated_journal_keeps_earlier_lines, journal_of};
use crate::frame::report::journal::read_journal;
use crate::replay::records::ReplayResult;
use crate::replay::report::fixtures;

#[test]
fn a_whole_journal_reads_back_as_the_result() {
    for (name, result, _) in fixtures::all() {
        assert_eq!(
            read_journal::<ReplayResult>(&journal_of(&fixtures::journal_lines(&result))).unwrap(),
            result,
            "{name}"
        );
    }
}

#[test]
fn a_journal_cut_in_a_line_keeps_the_rest() {
    assert_truncated_journal_keeps_earlier_lines::<ReplayResult>(&fixtures::journal_lines(&fixtures::complete()));
}
