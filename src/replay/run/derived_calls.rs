//! Calls of a workload written by hand, with their order and origins, as a file of this process.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

/// A profile in an unnamed temporary file, which is read by path like any other.
#[derive(Debug)]
pub struct DerivedCalls {
    _file: File,
    path: PathBuf,
}

impl DerivedCalls {
    /// Stores the text of a profile.
    ///
    /// # Errors
    /// The temporary file cannot be written.
    pub fn store(text: &[u8]) -> io::Result<Self> {
        let mut file = tempfile::tempfile()?;
        file.write_all(text)?;
        let path = format!("/proc/self/fd/{}", file.as_raw_fd()).into();
        Ok(Self { _file: file, path })
    }

    /// The path under which this process reads it.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }
}
