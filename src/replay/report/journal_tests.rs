//! The journal, whole and cut.

use crate::frame::report::checks::{assert_a_cut_keeps_the_rest, journal_of};
use crate::frame::report::journal::read;
use crate::replay::records::ReplayResult;
use crate::replay::report::fixtures;

#[test]
fn a_whole_journal_reads_back_as_the_result() {
    for (name, result, _) in fixtures::all() {
        assert_eq!(read::<ReplayResult>(&journal_of(&fixtures::journal_lines(&result))).unwrap(), result, "{name}");
    }
}

#[test]
fn a_journal_cut_in_a_line_keeps_the_rest() {
    assert_a_cut_keeps_the_rest::<ReplayResult>(&fixtures::journal_lines(&fixtures::complete()));
}
