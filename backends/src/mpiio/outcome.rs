//! What becomes of the calls of a batch: bytes, or the first error.

use std::path::Path;

use beff_ffi::{stranded, MpiError};

use crate::error::{BackendError, Cause, Result, FULL_BYTES};
use crate::{Direction, Pattern};

/// An error of MPI with what the user needs to find it.
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
            beff_ffi::Cause::NoSpace => Cause::NoSpace,
            beff_ffi::Cause::Path => Cause::Path,
            beff_ffi::Cause::Unsupported => Cause::Unsupported,
            beff_ffi::Cause::Other => Cause::Io,
        },
        text: error.to_string(),
    }
}

/// Keeps the first error of a batch.
pub(super) struct Outcome<'a> {
    path: &'a Path,
    operation: &'static str,
    pattern: &'a Pattern,
    /// A short write may be a full disk: OMPIO's write_ordered ends with success and fewer bytes then.
    writes: bool,
    goes_on: bool,
    moved_bytes: u64,
    error: Option<BackendError>,
}

/// Free bytes of the file system of `path` for this user; None if it does not tell.
fn free_bytes(path: &Path) -> Option<u64> {
    let facts = nix::sys::statvfs::statvfs(path).ok()?;
    Some(facts.blocks_available().saturating_mul(facts.fragment_size()))
}

/// An error of a write or a sync that the library does not explain, on a file system that is full.
pub(super) fn or_full(mut error: BackendError) -> BackendError {
    if error.cause == Cause::Io && free_bytes(&error.path).is_some_and(|free| free < FULL_BYTES) {
        error.cause = Cause::NoSpace;
        error.text += "; no space is left on the file system";
    }
    error
}

impl<'a> Outcome<'a> {
    pub(super) fn new(path: &'a Path, operation: &'static str, pattern: &'a Pattern, direction: Direction) -> Self {
        let goes_on = pattern.kind.is_collective();
        let writes = direction == Direction::Write;
        Self { path, operation, pattern, writes, goes_on, moved_bytes: 0, error: None }
    }

    /// True if the calls of a batch go on after an error, because other ranks take part in them.
    #[inline]
    pub(super) fn goes_on(&self) -> bool {
        self.goes_on
    }

    /// Takes one call's result in; false: the loop ends here.
    #[inline]
    pub(super) fn take(&mut self, call: u64, result: std::result::Result<u64, MpiError>) -> bool {
        let expected = self.pattern.call_bytes();
        match result {
            Ok(moved) if moved == expected => {
                self.moved_bytes += moved;
                if self.error.is_some() {
                    stranded::goes_on();
                }
                return true;
            }
            Ok(moved) => {
                self.moved_bytes += moved;
                self.keep(|o| {
                    let mut e = BackendError::short(o.operation, o.path, o.offset(call), expected, moved);
                    if o.writes && free_bytes(o.path).is_some_and(|free| free < expected - moved.min(expected)) {
                        e.cause = Cause::NoSpace;
                        e.text = "No space left on the file system; the MPI library reported no error".into();
                    }
                    e
                });
            }
            Err(e) => self.keep(|o| {
                let error = mpi_error(o.operation, o.path, Some(o.offset(call)), &e);
                if o.writes {
                    or_full(error)
                } else {
                    error
                }
            }),
        }
        self.goes_on
    }

    /// A call that the end of the file at `file_bytes` would cut off, and that is not made, or made with nothing to move.
    /// False: the loop ends here.
    #[cold]
    pub(super) fn beyond_the_end(&mut self, call: u64, file_bytes: u64) -> bool {
        self.keep(|o| {
            let (offset, expected) = (o.offset(call), o.pattern.call_bytes());
            let there = file_bytes.saturating_sub(offset).min(expected);
            let error = BackendError::short(o.operation, o.path, offset, expected, there);
            BackendError { text: format!("the file ends at {file_bytes}"), ..error }
        });
        self.goes_on
    }

    /// Refuses more calls at once than there is room for.
    pub(super) fn check_number(&self, calls: u64, room: usize) -> Result<()> {
        if calls <= room as u64 {
            return Ok(());
        }
        let text = format!("{calls} calls cannot be under way at once: there is room for {room}");
        Err(BackendError::new(self.operation, self.path, Cause::Unsupported, text))
    }

    /// The error of reads under way at once that would share memory, which MPI forbids.
    #[cold]
    pub(super) fn shared_memory(&self, calls: u64) -> BackendError {
        let text = format!("{calls} reads at once do not fit one period of the ring, and would share memory");
        BackendError::new(self.operation, self.path, Cause::Unsupported, text)
    }

    fn offset(&self, call: u64) -> u64 {
        self.pattern.chunk_offset(call * self.pattern.chunks_per_call)
    }

    #[cold]
    fn keep(&mut self, make: impl FnOnce(&Self) -> BackendError) {
        if self.error.is_some() {
            return stranded::goes_on();
        }
        let error = make(self);
        if self.goes_on {
            stranded::expect_others(error.to_string());
        }
        self.error = Some(error);
    }

    pub(super) fn finish(self) -> Result<u64> {
        self.error.map_or(Ok(self.moved_bytes), Err)
    }
}
