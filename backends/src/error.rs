//! Errors of a driver, with all information to locate them.

use std::fmt;
use std::path::PathBuf;

/// A file system with less free space counts as full: blocks and metadata need some.
pub const FULL_BYTES: u64 = 64 << 10;

/// Result of a driver call.
pub type Result<T> = std::result::Result<T, BackendError>;

/// Broad cause, which determines how the run continues and which next step is suggested.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailureCause {
    /// No space or quota left.
    NoSpace,
    /// Fewer bytes transferred than requested.
    Short,
    /// Permission, missing directory and similar: the path cannot be used.
    Path,
    /// Anything else the kernel or the MPI library reported.
    Io,
    /// EPERM: a seccomp filter, a container or a security module does not permit the system call.
    Refused,
    /// The driver does not support the request with these settings.
    Unsupported,
}

/// A failed operation of one rank on one file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct BackendError {
    /// The call that failed, e.g. `pwrite` or `MPI_File_write_all`.
    pub operation: &'static str,
    /// The file.
    pub path: PathBuf,
    /// File offset of the failed operation, if it has one.
    pub offset_bytes: Option<u64>,
    /// (expected, actual) bytes of a short transfer.
    pub expected_got_bytes: Option<(u64, u64)>,
    /// Kind of the cause.
    pub cause: FailureCause,
    /// The message of the kernel or the MPI library, with the error class if MPI returns one.
    pub text: String,
}

impl fmt::Display for BackendError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} on {}", self.operation, self.path.display())?;
        if let Some(offset) = self.offset_bytes {
            write!(f, " at offset {offset}")?;
        }
        if let Some((expected, got)) = self.expected_got_bytes {
            write!(f, ": moved {got} of {expected} bytes")?;
        }
        write!(f, ": {}", self.text)
    }
}

impl BackendError {
    /// An error without an offset.
    #[must_use]
    pub fn new(
        operation: &'static str,
        path: impl Into<PathBuf>,
        cause: FailureCause,
        text: impl Into<String>,
    ) -> Self {
        let (path, text) = (path.into(), text.into());
        Self { operation, path, offset_bytes: None, expected_got_bytes: None, cause, text }
    }

    /// An error from an `errno` of the kernel.
    #[must_use]
    pub fn from_io(
        operation: &'static str,
        path: impl Into<PathBuf>,
        offset_bytes: Option<u64>,
        error: &std::io::Error,
    ) -> Self {
        let cause = match error.raw_os_error() {
            Some(libc::ENOSPC | libc::EDQUOT | libc::EFBIG) => FailureCause::NoSpace,
            Some(libc::EACCES | libc::ENOENT | libc::ENOTDIR | libc::EROFS | libc::EEXIST) => FailureCause::Path,
            Some(libc::EPERM) => FailureCause::Refused,
            Some(libc::EOPNOTSUPP | libc::ENOSYS) => FailureCause::Unsupported,
            _ => FailureCause::Io,
        };
        Self { offset_bytes, ..Self::new(operation, path, cause, error.to_string()) }
    }

    /// A transfer that moved fewer bytes than requested.
    #[must_use]
    pub fn short_transfer(
        operation: &'static str,
        path: impl Into<PathBuf>,
        offset_bytes: u64,
        expected_bytes: u64,
        got_bytes: u64,
    ) -> Self {
        let base = Self::new(operation, path, FailureCause::Short, "short transfer");
        Self { offset_bytes: Some(offset_bytes), expected_got_bytes: Some((expected_bytes, got_bytes)), ..base }
    }

    /// A batch without a prepared pattern.
    #[must_use]
    pub fn not_prepared(operation: &'static str, path: impl Into<PathBuf>) -> Self {
        Self::new(operation, path, FailureCause::Unsupported, "no pattern is prepared: call prepare() first")
    }

    /// An overlapped batch of a driver with blocking calls.
    #[must_use]
    pub fn overlap_unsupported() -> Self {
        Self::new(
            "overlapped transfer",
            "",
            FailureCause::Unsupported,
            "this backend does not support overlapped transfers",
        )
    }
}
