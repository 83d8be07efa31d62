//! The journal, complete and truncated.

use crate::b_eff::plan::BufferMode;
use crate::b_eff::records::{CommLine, CommPatternRecord, CommResult, PatternRepetition};
use crate::b_eff::report::fixtures;
use crate::b_eff::values::{derive, MessageSource};
use crate::frame::report::checks::{assert_truncated_journal_keeps_earlier_lines, journal_of};
use crate::frame::report::journal::read_journal;

#[test]
fn a_whole_journal_reads_back_as_the_result() {
    for (name, result, _) in fixtures::all() {
        assert_eq!(
            read_journal::<CommResult>(&journal_of(&fixtures::journal_lines(&result))).unwrap(),
            result,
            "{name}"
        );
    }
}

#[test]
fn a_journal_cut_in_a_line_keeps_the_rest() {
    assert_truncated_journal_keeps_earlier_lines::<CommResult>(&fixtures::journal_lines(&fixtures::complete()));
}

/// Each repetition of a pattern has a line; the result has one record, with the loops in the order of the repetitions.
#[test]
fn the_repetitions_of_a_pattern_become_one_record() {
    let mut result = fixtures::complete();
    let sizes = result.patterns.iter_mut().flat_map(|p| &mut p.sizes);
    sizes.for_each(|size| size.loops.sort_by_key(|l| l.repetition));
    let of_repetition = |record: &CommPatternRecord, repetition: u32| {
        let mut part = record.clone();
        part.sizes.iter_mut().for_each(|size| size.loops.retain(|l| l.repetition == repetition));
        // Sizes without repetitions are last, and missing in later repetitions.
        part.sizes.retain(|size| !size.loops.is_empty());
        if repetition > 0 {
            (part.bytes_checked, part.real_seconds) = (0, 0.0);
        }
        CommLine::Pattern(PatternRepetition(Box::new(part)))
    };
    let whole = fixtures::journal_lines(&result);
    let is_pattern = |line: &&CommLine| matches!(line, CommLine::Pattern(_));
    let mut lines: Vec<CommLine> = whole.iter().filter(|line| !is_pattern(line)).cloned().collect();
    let visits = (0..3).flat_map(|repetition| result.patterns.iter().map(move |p| of_repetition(p, repetition)));
    let place = lines.len() - 1;
    lines.splice(place..place, visits);
    assert!(read_journal::<CommResult>(&journal_of(&lines)).unwrap() == result);
}

/// Files without the field are of reused windows, whatever verdict was printed.
#[test]
fn a_file_without_buffers_is_not_the_definition() {
    let text = String::from_utf8(journal_of(&fixtures::journal_lines(&fixtures::complete()))).unwrap();
    let old = text.replacen(r#""buffers":"cyclic","#, "", 1);
    assert_ne!(old, text);
    let result: CommResult = read_journal(old.as_bytes()).unwrap();
    assert_eq!(result.config.buffers, BufferMode::Reused);
    let derived = derive(&result);
    assert_eq!((derived.messages_from, derived.valid), (MessageSource::ReusedWindows, false));
}
