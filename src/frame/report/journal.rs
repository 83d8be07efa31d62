//! PREFIX.jsonl: one JSON line per record, synced line by line, so that a run killed at any moment leaves what it had.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::frame::records::{kinds, Record, Warning, SCHEMA_VERSION};

/// A journal being written.
#[derive(Debug)]
pub struct Journal {
    file: File,
    /// Bytes of the whole lines in the file.
    length_bytes: u64,
    /// A line is missing.
    is_cut: bool,
}

impl Journal {
    /// Creates the file; one that exists is never touched.
    ///
    /// # Errors
    /// Those of open(2); [`io::ErrorKind::AlreadyExists`] if there is such a file.
    pub fn create(path: &Path) -> io::Result<Self> {
        let file = OpenOptions::new().append(true).create_new(true).open(path)?;
        Ok(Self { file, length_bytes: 0, is_cut: false })
    }

    /// A journal in a file that cannot be written.
    #[cfg(test)]
    pub(super) fn full() -> Self {
        let file = OpenOptions::new().append(true).open("/dev/full").unwrap();
        Self { file, length_bytes: 0, is_cut: false }
    }

    /// True if every line given to it is in the file.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        !self.is_cut
    }

    /// Appends one line and waits until it is on storage (fdatasync). If it cannot be written whole, the file is cut
    /// back to the last whole line, so that a later line does not grow together with the torn one.
    ///
    /// # Errors
    /// Those of write(2) and fdatasync(2), and a path in the line that is not UTF-8. The journal is not whole from then on.
    pub fn append<L: Serialize>(&mut self, line: &L) -> io::Result<()> {
        let appended = self.append_whole(line);
        self.is_cut |= appended.is_err();
        appended
    }

    fn append_whole<L: Serialize>(&mut self, line: &L) -> io::Result<()> {
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
    #[error("the journal is one of {found}, not of {expected}")]
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

/// The benchmark that the first line of a journal names, if it names one.
///
/// # Errors
/// [`JournalError`]: it is no start line, or one of a newer version.
pub(crate) fn benchmark(bytes: &[u8]) -> Result<Option<String>, JournalError> {
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
    Ok(head.benchmark)
}

/// It ends inside a line.
pub(crate) fn torn(line: u64, bytes: usize) -> Warning {
    kinds::JOURNAL_TORN.warning().figure("line", line).figure("bytes", bytes).told(
        "the journal ends inside a line: the run was killed while it wrote",
        format!(
            "The journal ends inside line {line} ({bytes} bytes of it are there): the run was killed while it wrote."
        ),
    )
}

/// Rebuilds a result from a journal, whole or cut off anywhere. Without an end line the outcome is
/// [`crate::frame::records::Outcome::Killed`]; a torn last line is left out and noted as [`kinds::JOURNAL_TORN`].
///
/// # Errors
/// [`JournalError`].
pub(crate) fn read<R: Record>(bytes: &[u8]) -> Result<R, JournalError> {
    if let Some(found) = benchmark(bytes)?.filter(|found| found != R::BENCHMARK) {
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
                run.warn(torn(number, line.len()));
            }
            Err(error) => {
                return Err(JournalError::BadLine { line: number, cause: error.to_string() });
            }
        }
    }
    Ok(run)
}
