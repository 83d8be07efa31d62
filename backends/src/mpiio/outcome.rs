//! Outcome of the calls of a batch: bytes, or the first error.

use std::path::Path;

use beff_ffi::{collective_timeout, MpiError};

use crate::error::{BackendError, FailureCause, Result, FULL_BYTES};
use crate::{AccessPattern, Direction};

pub(super) fn mpi_error(
    operation: &'static str,
    path: &Path,
    offset_bytes: Option<u64>,
    error: &MpiError,
) -> BackendError {
    BackendError {
        operation,
        path: path.to_path_buf(),
        offset_bytes,
        expected_got_bytes: None,
        cause: match error.cause {
            beff_ffi::MpiErrorCause::NoSpace => FailureCause::NoSpace,
            beff_ffi::MpiErrorCause::Path => FailureCause::Path,
            beff_ffi::MpiErrorCause::Unsupported => FailureCause::Unsupported,
            beff_ffi::MpiErrorCause::Other => FailureCause::Io,
        },
        text: error.to_string(),
    }
}

/// Collects bytes and the first error of a batch.
pub(super) struct BatchOutcome<'a> {
    path: &'a Path,
    operation: &'static str,
    pattern: &'a AccessPattern,
    /// A short write may mean a full disk: OMPIO's write_ordered then returns success and fewer bytes.
    is_write: bool,
    continues_after_error: bool,
    moved_bytes: u64,
    error: Option<BackendError>,
}

/// Free bytes of the file system for this user.
fn free_bytes(path: &Path) -> Option<u64> {
    let facts = nix::sys::statvfs::statvfs(path).ok()?;
    Some(facts.blocks_available().saturating_mul(facts.fragment_size()))
}

/// Classifies an unexplained error of a write or a sync on a full file system.
pub(super) fn classify_full_disk(mut error: BackendError) -> BackendError {
    if error.cause == FailureCause::Io && free_bytes(&error.path).is_some_and(|free| free < FULL_BYTES) {
        error.cause = FailureCause::NoSpace;
        error.text += "; no space is left on the file system";
    }
    error
}

impl<'a> BatchOutcome<'a> {
    pub(super) fn new(
        path: &'a Path,
        operation: &'static str,
        pattern: &'a AccessPattern,
        direction: Direction,
    ) -> Self {
        let continues_after_error = pattern.kind.is_collective();
        let is_write = direction == Direction::Write;
        Self { path, operation, pattern, is_write, continues_after_error, moved_bytes: 0, error: None }
    }

    /// True if the batch continues after an error, because other ranks take part.
    #[inline]
    pub(super) fn continues_after_error(&self) -> bool {
        self.continues_after_error
    }

    /// False if the loop must end.
    #[inline]
    pub(super) fn record(&mut self, call: u64, result: std::result::Result<u64, MpiError>) -> bool {
        let expected = self.pattern.call_bytes();
        match result {
            Ok(moved) if moved == expected => {
                self.moved_bytes += moved;
                if self.error.is_some() {
                    collective_timeout::record_progress();
                }
                return true;
            }
            Ok(moved) => {
                self.moved_bytes += moved;
                self.record_error(|o| {
                    let mut e = BackendError::short_transfer(o.operation, o.path, o.offset(call), expected, moved);
                    if o.is_write && free_bytes(o.path).is_some_and(|free| free < expected - moved.min(expected)) {
                        e.cause = FailureCause::NoSpace;
                        e.text = "No space left on the file system; the MPI library reported no error".into();
                    }
                    e
                });
            }
            Err(e) => self.record_error(|o| {
                let error = mpi_error(o.operation, o.path, Some(o.offset(call)), &e);
                if o.is_write {
                    classify_full_disk(error)
                } else {
                    error
                }
            }),
        }
        self.continues_after_error
    }

    /// Records a call beyond the end of the file, which is omitted or made with an empty transfer. False if the loop must end.
    #[cold]
    pub(super) fn record_end_of_file(&mut self, call: u64, file_bytes: u64) -> bool {
        self.record_error(|o| {
            let (offset, expected) = (o.offset(call), o.pattern.call_bytes());
            let there = file_bytes.saturating_sub(offset).min(expected);
            let error = BackendError::short_transfer(o.operation, o.path, offset, expected, there);
            BackendError { text: format!("the file ends at {file_bytes}"), ..error }
        });
        self.continues_after_error
    }

    /// Rejects more simultaneous calls than there are requests.
    pub(super) fn check_call_count(&self, calls: u64, limit: usize) -> Result<()> {
        if calls <= limit as u64 {
            return Ok(());
        }
        let text = format!("{calls} calls cannot be in flight at once: the limit is {limit}");
        Err(BackendError::new(self.operation, self.path, FailureCause::Unsupported, text))
    }

    /// Error of simultaneous reads that would share memory, which MPI forbids.
    #[cold]
    pub(super) fn overlap_error(&self, calls: u64) -> BackendError {
        let text = format!("{calls} simultaneous reads do not fit one period of the buffer, and would share memory");
        BackendError::new(self.operation, self.path, FailureCause::Unsupported, text)
    }

    fn offset(&self, call: u64) -> u64 {
        self.pattern.call_offset(call)
    }

    #[cold]
    fn record_error(&mut self, make: impl FnOnce(&Self) -> BackendError) {
        if self.error.is_some() {
            return collective_timeout::record_progress();
        }
        let error = make(self);
        if self.continues_after_error {
            collective_timeout::expect_peers(error.to_string());
        }
        self.error = Some(error);
    }

    pub(super) fn finish(self) -> Result<u64> {
        self.error.map_or(Ok(self.moved_bytes), Err)
    }
}
