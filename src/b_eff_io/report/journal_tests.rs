//! The journal of b_eff_io, complete and corrupt.

use std::io;

use crate::b_eff_io::records::JournalLine;
use crate::b_eff_io::records::RunResult;
use crate::b_eff_io::report::fixtures;
use crate::frame::records::RunOutcome;
use crate::frame::report::journal::{self, truncated_warning, Journal, JournalError};

fn read(bytes: &[u8]) -> Result<RunResult, JournalError> {
    journal::read_journal(bytes)
}

fn written(lines: &[JournalLine]) -> Vec<u8> {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("run.jsonl");
    let mut journal = Journal::create(&path).unwrap();
    for line in lines {
        journal.append(line).unwrap();
    }
    std::fs::read(path).unwrap()
}

#[test]
fn a_whole_journal_reads_back_as_the_result() {
    for (name, result, _) in fixtures::all() {
        assert_eq!(read(&written(&fixtures::journal_lines(&result))).unwrap(), result, "{name}");
    }
}

#[test]
fn a_journal_cut_at_any_byte_of_its_last_line_keeps_the_rest() {
    let result = fixtures::failed();
    let lines = fixtures::journal_lines(&result);
    for whole in [1, 2, lines.len() - 1] {
        let before = written(&lines[..whole]).len();
        let bytes = written(&lines[..=whole]);
        let expected = read(&bytes[..before]).unwrap();
        assert_eq!(expected.ending.outcome, RunOutcome::Killed);
        for end in before + 1..bytes.len() - 1 {
            let mut cut = read(&bytes[..end]).unwrap();
            let last = cut.warnings.pop().unwrap();
            let (line, bytes) = (whole as u64 + 1, end - before);
            assert_eq!(last, truncated_warning(line, bytes));
            assert_eq!(cut, expected);
        }
        // Only the newline is missing: the record is complete.
        assert_eq!(read(&bytes[..bytes.len() - 1]).unwrap(), read(&bytes).unwrap());
    }
}

#[test]
fn a_tail_of_zeros_counts_as_torn() {
    let result = fixtures::failed();
    let mut bytes = written(&fixtures::journal_lines(&result));
    bytes.extend([0; 100]);
    let read = read(&bytes).unwrap();
    assert_eq!(read.warnings.last().unwrap().number("bytes"), Some(100.0));
}

#[test]
fn damage_in_the_middle_is_named_with_its_line() {
    let lines = fixtures::journal_lines(&fixtures::failed());
    let text = String::from_utf8(written(&lines)).unwrap();
    let mut damaged: Vec<&str> = text.split_inclusive('\n').collect();
    damaged[2] = "{\"record\":\"pattern\"}\n";
    let message = read(damaged.concat().as_bytes()).unwrap_err().to_string();
    assert!(message.starts_with("line 3 of the journal is damaged: missing field"), "{message}");
    let twice = [text.as_bytes(), text.as_bytes()].concat();
    let message = read(&twice).unwrap_err().to_string();
    assert!(message.contains("two journals in one file"), "{message}");
}

/// Formerly `tuning`.
#[test]
fn lines_of_earlier_versions_are_read() {
    let result = fixtures::ladder();
    let lines = String::from_utf8(written(&fixtures::journal_lines(&result))).unwrap();
    let lines = lines.replacen("\"schema_version\":3", "\"schema_version\":1", 1);
    let (now, before) = ("{\"record\":\"queue_calibration\",", "{\"record\":\"tuning\",");
    assert!(!result.queue_calibrations.is_empty() && lines.contains(now));
    assert_eq!(read(lines.replace(now, before).as_bytes()).unwrap().queue_calibrations, result.queue_calibrations);
}

#[test]
fn other_files_are_not_journals() {
    let message = |bytes: &[u8]| read(bytes).unwrap_err().to_string();
    assert!(message(b"").contains("empty"));
    assert!(message(b"hello\n").contains("line 1 is not the start of a journal"));
    let end = fixtures::journal_lines(&fixtures::complete()).pop().unwrap();
    assert!(message(&written(&[end])).contains("not the start of a journal"));
    let newer = br#"{"record":"start","schema_version":4,"config":"of another shape"}"#;
    assert!(message(newer).contains("schema version 4"));
}

#[test]
fn nothing_is_overwritten() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("run.jsonl");
    std::fs::write(&path, "precious").unwrap();
    assert_eq!(Journal::create(&path).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
    assert_eq!(std::fs::read(&path).unwrap(), b"precious");
}
