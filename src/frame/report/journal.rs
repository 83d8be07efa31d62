//! PREFIX.jsonl: one JSON line per record, synced line by line, so that a killed run keeps all earlier records.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::old_names;
use crate::frame::records::{kinds, JournaledResult, Warning, SCHEMA_VERSION};

/// A journal being written.
#[derive(Debug)]
pub struct Journal {
    file: File,
    /// Bytes of the complete lines in the file.
    length_bytes: u64,
    /// A line could not be written.
    is_incomplete: bool,
}

impl Journal {
    /// Creates the file; an existing file is not changed.
    ///
    /// # Errors
    /// Those of open(2); [`io::ErrorKind::AlreadyExists`] if the file exists.
    pub fn create(path: &Path) -> io::Result<Self> {
        let file = OpenOptions::new().append(true).create_new(true).open(path)?;
        Ok(Self { file, length_bytes: 0, is_incomplete: false })
    }

    #[cfg(test)]
    pub(super) fn on_full_device() -> Self {
        let file = OpenOptions::new().append(true).open("/dev/full").unwrap();
        Self { file, length_bytes: 0, is_incomplete: false }
    }

    /// True if all appended lines are in the file.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        !self.is_incomplete
    }

    /// Appends one line and waits until it is on storage (fdatasync). If it cannot be written completely, the file is truncated to
    /// the last complete line, so that a later line is not appended to a partial one.
    ///
    /// # Errors
    /// Those of write(2) and fdatasync(2), and a path in the line that is not UTF-8. The journal is incomplete from then on.
    pub fn append<L: Serialize>(&mut self, line: &L) -> io::Result<()> {
        let appended = self.append_line(line);
        self.is_incomplete |= appended.is_err();
        appended
    }

    fn append_line<L: Serialize>(&mut self, line: &L) -> io::Result<()> {
        let mut bytes = serde_json::to_vec(line)?;
        bytes.push(b'\n');
        if let Err(error) = self.file.write_all(&bytes) {
            return match self.file.set_len(self.length_bytes) {
                Ok(()) => Err(error),
                Err(cut) => {
                    Err(io::Error::new(error.kind(), format!("{error}; and the partial line was not removed: {cut}")))
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
    /// No bytes: the run ended before its first line, or the file is not a journal.
    #[error("the journal is empty: the run ended before its first measurement; there is nothing to report")]
    Empty,
    /// The first line is not a start line.
    #[error("line 1 is not the start of a journal: {cause}; give the PREFIX.jsonl of a run")]
    NoStart {
        /// Cause.
        cause: String,
    },
    /// Written by a later version.
    #[error("the journal has schema version {found}, this program reads up to {SCHEMA_VERSION}; use a newer beff-raw")]
    Newer {
        /// Version in the journal.
        found: u64,
    },
    /// The journal is of another benchmark.
    #[error("the journal is one of {found}, not of {expected}")]
    Benchmark {
        /// Benchmark in the journal.
        found: String,
        /// Requested benchmark.
        expected: &'static str,
    },
    /// A complete line that cannot be parsed.
    #[error("line {line} of the journal is damaged: {cause}; only a journal's last line may be truncated, so this file was changed or the storage lost data")]
    BadLine {
        /// Line number, from 1.
        line: u64,
        /// Cause.
        cause: String,
    },
}

#[derive(Deserialize)]
struct JournalHead {
    record: String,
    schema_version: u64,
    benchmark: Option<String>,
}

/// The benchmark named in the first line of a journal, if any.
///
/// # Errors
/// [`JournalError`]: not a start line, or one of a newer version.
pub(crate) fn benchmark(bytes: &[u8]) -> Result<Option<String>, JournalError> {
    Ok(head(bytes)?.0)
}

/// The benchmark, if the first line names one, and the schema version.
fn head(bytes: &[u8]) -> Result<(Option<String>, u64), JournalError> {
    let first = bytes.split_inclusive(|b| *b == b'\n').next().ok_or(JournalError::Empty)?;
    let no_start = |cause: String| JournalError::NoStart { cause };
    // The head alone: the start line of a newer version may have other fields.
    let head: JournalHead = serde_json::from_slice(first).map_err(|e| no_start(e.to_string()))?;
    if head.record != "start" {
        return Err(no_start(format!("its record is \"{}\"", head.record)));
    }
    if head.schema_version > u64::from(SCHEMA_VERSION) {
        return Err(JournalError::Newer { found: head.schema_version });
    }
    Ok((head.benchmark, head.schema_version))
}

pub(crate) fn truncated_warning(line: u64, bytes: usize) -> Warning {
    kinds::JOURNAL_TORN.warning().with_figure("line", line).with_figure("bytes", bytes).with_text(
        "the journal ends inside a line: the run was killed while writing it",
        format!(
            "The journal ends inside line {line} ({bytes} bytes of it are present): the run was killed while writing it."
        ),
    )
}

/// Rebuilds a result from a journal, complete or truncated. Without an end line the outcome is
/// [`crate::frame::records::RunOutcome::Killed`]; a partial last line is omitted and reported as [`kinds::JOURNAL_TORN`].
///
/// # Errors
/// [`JournalError`].
pub(crate) fn read_journal<R: JournaledResult>(bytes: &[u8]) -> Result<R, JournalError> {
    let (benchmark, version) = head(bytes)?;
    if let Some(found) = benchmark.filter(|found| found != R::BENCHMARK) {
        return Err(JournalError::Benchmark { found, expected: R::BENCHMARK });
    }
    let record = |line| serde_json::from_slice::<R::JournalLine>(&old_names::translated(line, R::BENCHMARK, version));
    let mut lines = bytes.split_inclusive(|b| *b == b'\n').zip(1_u64..);
    let (first, _) = lines.next().ok_or(JournalError::Empty)?;
    let no_start = |cause: String| JournalError::NoStart { cause };
    let start = record(first).map_err(|e| no_start(e.to_string()))?;
    let mut run = R::from_start_line(start).map_err(|_| no_start("its record is not \"start\"".to_owned()))?;
    for (line, number) in lines {
        match record(line).map(R::from_start_line) {
            Ok(Ok(_)) => {
                let cause = "a second start line: two journals in one file".to_owned();
                return Err(JournalError::BadLine { line: number, cause });
            }
            Ok(Err(record)) => run.apply(record),
            Err(_) if !line.ends_with(b"\n") => {
                run.add_warning(truncated_warning(number, line.len()));
            }
            Err(error) => {
                return Err(JournalError::BadLine { line: number, cause: error.to_string() });
            }
        }
    }
    Ok(run)
}
