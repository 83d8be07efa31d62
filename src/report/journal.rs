//! PREFIX.jsonl: one JSON line per record, synced line by line, so that a run killed at any moment leaves what it had.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::results::comm::B_EFF;
use crate::results::imb::IMB_IO;
use crate::results::{Record, RunResult, Warning, B_EFF_IO, SCHEMA_VERSION};

/// A journal being written.
#[derive(Debug)]
pub struct Journal {
    file: File,
    /// Bytes of the whole lines in the file.
    length_bytes: u64,
}

impl Journal {
    /// Creates the file; one that exists is never touched.
    ///
    /// # Errors
    /// Those of open(2); [`io::ErrorKind::AlreadyExists`] if there is such a file.
    pub fn create(path: &Path) -> io::Result<Self> {
        let file = OpenOptions::new().append(true).create_new(true).open(path)?;
        Ok(Self { file, length_bytes: 0 })
    }

    /// Appends one line and waits until it is on storage (fdatasync). If it cannot be written whole, the file is cut
    /// back to the last whole line, so that a later line does not grow together with the torn one.
    ///
    /// # Errors
    /// Those of write(2) and fdatasync(2), and a path in the line that is not UTF-8.
    pub fn append<L: Serialize>(&mut self, line: &L) -> io::Result<()> {
        let mut bytes = serde_json::to_vec(line)?;
        bytes.push(b'\n');
        if let Err(error) = self.file.write_all(&bytes) {
            return match self.file.set_len(self.length_bytes) {
                Ok(()) => Err(error),
                Err(cut) => {
                    Err(io::Error::new(error.kind(), format!("{error}; and the torn line could not be cut off: {cut}")))
                }
            };
        }
        self.length_bytes += bytes.len() as u64;
        self.file.sync_data()
    }
}

/// Why a journal could not be read.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// No bytes at all: the run ended before its first line, or the file is another one.
    #[error("the journal is empty: the run ended before it began to measure; there is nothing to report")]
    Empty,
    /// The first line is no start line.
    #[error("line 1 is not the start of a journal: {cause}; give the PREFIX.jsonl of a run")]
    NoStart {
        /// What is wrong with it.
        cause: String,
    },
    /// Written by a later version.
    #[error("the journal has schema version {found}, this program reads up to {SCHEMA_VERSION}; use a newer beff-raw")]
    Newer {
        /// Version in the journal.
        found: u64,
    },
    /// Of another benchmark than asked for.
    #[error("the journal is one of {found}, not of {expected}; this program reads those of {B_EFF_IO}, {B_EFF} and {IMB_IO}")]
    Benchmark {
        /// Benchmark in the journal.
        found: String,
        /// Benchmark asked for.
        expected: &'static str,
    },
    /// A line that is whole but cannot be understood.
    #[error("line {line} of the journal is damaged: {cause}; only a journal's last line may be torn, so this file was changed or the storage lost data")]
    BadLine {
        /// Line number, from 1.
        line: u64,
        /// What is wrong with it.
        cause: String,
    },
}

#[derive(Deserialize)]
struct Head {
    record: String,
    schema_version: u64,
    benchmark: Option<String>,
}

/// Rebuilds a result of b_eff_io from a journal, whole or cut off anywhere. Without an end line the outcome is
/// [`crate::results::Outcome::Killed`]; a torn last line is left out and noted as [`Warning::JournalTorn`].
///
/// # Errors
/// [`JournalError`].
pub fn read(bytes: &[u8]) -> Result<RunResult, JournalError> {
    read_as(bytes)
}

/// The benchmark that the first line of a journal names.
///
/// # Errors
/// [`JournalError`]: it is no start line, or one of a newer version.
pub(super) fn benchmark(bytes: &[u8]) -> Result<String, JournalError> {
    let first = bytes.split_inclusive(|b| *b == b'\n').next().ok_or(JournalError::Empty)?;
    let no_start = |cause: String| JournalError::NoStart { cause };
    // The head alone: a newer version may have a start line of another shape.
    let head: Head = serde_json::from_slice(first).map_err(|e| no_start(e.to_string()))?;
    if head.record != "start" {
        return Err(no_start(format!("its record is \"{}\"", head.record)));
    }
    if head.schema_version > u64::from(SCHEMA_VERSION) {
        return Err(JournalError::Newer { found: head.schema_version });
    }
    Ok(head.benchmark.unwrap_or_else(|| B_EFF_IO.to_owned()))
}

/// As [`read`], for any benchmark.
pub(super) fn read_as<R: Record>(bytes: &[u8]) -> Result<R, JournalError> {
    let found = benchmark(bytes)?;
    if found != R::BENCHMARK {
        return Err(JournalError::Benchmark { found, expected: R::BENCHMARK });
    }
    let mut lines = bytes.split_inclusive(|b| *b == b'\n').zip(1_u64..);
    let (first, _) = lines.next().ok_or(JournalError::Empty)?;
    let no_start = |cause: String| JournalError::NoStart { cause };
    let start: R::Line = serde_json::from_slice(first).map_err(|e| no_start(e.to_string()))?;
    let mut run = R::begin(start).map_err(|_| no_start("its record is not \"start\"".to_owned()))?;
    for (line, number) in lines {
        match serde_json::from_slice(line).map(R::begin) {
            Ok(Ok(_)) => {
                let cause = "a second start line: two journals in one file".to_owned();
                return Err(JournalError::BadLine { line: number, cause });
            }
            Ok(Err(record)) => run.absorb(record),
            Err(_) if !line.ends_with(b"\n") => {
                run.warn(Warning::JournalTorn { line: number, bytes: line.len() as u64 });
            }
            Err(error) => {
                return Err(JournalError::BadLine { line: number, cause: error.to_string() });
            }
        }
    }
    Ok(run)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::fixtures;
    use crate::results::{JournalLine, Outcome};

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
            assert_eq!(expected.ending.outcome, Outcome::Killed);
            for end in before + 1..bytes.len() - 1 {
                let mut cut = read(&bytes[..end]).unwrap();
                let torn = cut.warnings.pop().unwrap();
                let (line, bytes) = (whole as u64 + 1, (end - before) as u64);
                assert_eq!(torn, Warning::JournalTorn { line, bytes });
                assert_eq!(cut, expected);
            }
            // Only the newline is missing: the record is whole.
            assert_eq!(read(&bytes[..bytes.len() - 1]).unwrap(), read(&bytes).unwrap());
        }
    }

    #[test]
    fn a_tail_of_zeros_counts_as_torn() {
        let result = fixtures::failed();
        let mut bytes = written(&fixtures::journal_lines(&result));
        bytes.extend([0; 100]);
        let read = read(&bytes).unwrap();
        assert!(matches!(read.warnings.last(), Some(Warning::JournalTorn { bytes: 100, .. })));
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

    #[test]
    fn other_files_are_not_journals() {
        let message = |bytes: &[u8]| read(bytes).unwrap_err().to_string();
        assert!(message(b"").contains("empty"));
        assert!(message(b"hello\n").contains("line 1 is not the start of a journal"));
        let end = fixtures::journal_lines(&fixtures::complete()).pop().unwrap();
        assert!(message(&written(&[end])).contains("not the start of a journal"));
        let newer = br#"{"record":"start","schema_version":2,"config":"of another shape"}"#;
        assert!(message(newer).contains("schema version 2"));
    }

    #[test]
    fn nothing_is_overwritten() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("run.jsonl");
        std::fs::write(&path, "precious").unwrap();
        assert_eq!(Journal::create(&path).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(std::fs::read(&path).unwrap(), b"precious");
    }
}
