//! What can go wrong in a driver, with everything the user needs to find it.

use std::fmt;
use std::path::PathBuf;

/// A file system with less free space than this is full: blocks and metadata want some.
pub const FULL_BYTES: u64 = 64 << 10;

/// Result of a driver call.
pub type Result<T> = std::result::Result<T, BackendError>;

/// Broad cause, for the decision how the run goes on and which next step is named.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// No space or quota left.
    NoSpace,
    /// Fewer bytes moved than asked.
    Short,
    /// Permission, missing directory and the like: the path cannot be used.
    Path,
    /// Anything else the kernel or the MPI library reported.
    Io,
    /// The driver cannot do what was asked with these settings.
    Unsupported,
}

/// A failed operation of one rank on one file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct BackendError {
    /// The call that failed, e.g. `pwrite` or `MPI_File_write_all`.
    pub operation: &'static str,
    /// The file.
    pub path: PathBuf,
    /// File offset of the failed operation, where it has one.
    pub offset_bytes: Option<u64>,
    /// (expected, got) bytes of a short transfer.
    pub expected_got_bytes: Option<(u64, u64)>,
    /// Kind of the cause.
    pub cause: Cause,
    /// The text of the kernel or the MPI library, with error class where MPI gives one.
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
    pub fn new(operation: &'static str, path: impl Into<PathBuf>, cause: Cause, text: impl Into<String>) -> Self {
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
            Some(libc::ENOSPC | libc::EDQUOT | libc::EFBIG) => Cause::NoSpace,
            Some(libc::EACCES | libc::EPERM | libc::ENOENT | libc::ENOTDIR | libc::EROFS | libc::EEXIST) => Cause::Path,
            Some(libc::EOPNOTSUPP | libc::ENOSYS) => Cause::Unsupported,
            _ => Cause::Io,
        };
        Self { offset_bytes, ..Self::new(operation, path, cause, error.to_string()) }
    }

    /// A transfer that moved less than asked.
    #[must_use]
    pub fn short(
        operation: &'static str,
        path: impl Into<PathBuf>,
        offset_bytes: u64,
        expected_bytes: u64,
        got_bytes: u64,
    ) -> Self {
        let told = Self::new(operation, path, Cause::Short, "short transfer");
        Self { offset_bytes: Some(offset_bytes), expected_got_bytes: Some((expected_bytes, got_bytes)), ..told }
    }

    /// A batch before its pattern.
    #[must_use]
    pub fn not_prepared(operation: &'static str, path: impl Into<PathBuf>) -> Self {
        Self::new(operation, path, Cause::Unsupported, "no pattern is prepared: call prepare() first")
    }

    /// An overlapped batch of a driver whose calls are done when they return.
    #[must_use]
    pub fn nothing_under_way() -> Self {
        Self::new("overlapped transfer", "", Cause::Unsupported, "this backend leaves no transfer under way")
    }
}
