//! What the machine is and what it gives this process: memory, storage, host, environment, launcher.
//!
//! Read-only looks at /proc, /sys and a few system calls. Nothing here touches MPI or the files of a run.

pub mod cgroup;
mod device;
pub mod environment;
pub mod host;
pub mod launcher;
pub mod memory;
pub mod placement;
pub mod residency;
pub mod storage;
pub mod survey;
pub mod terminal;
pub mod traffic;

use std::path::{Path, PathBuf};

/// A fact about the machine that could not be found out and that the run cannot do without.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("cannot {operation} {subject}: {cause}. {next_step}")]
pub struct SystemError {
    /// What was tried, e.g. `find the file system of`.
    pub operation: &'static str,
    /// On what.
    pub subject: String,
    /// Why it failed.
    pub cause: String,
    /// What the user can do.
    pub next_step: &'static str,
}

/// The content of a small file of /proc or /sys without white space at its ends; None if there is none.
fn read_trimmed(path: impl AsRef<Path>) -> Option<String> {
    let text = std::fs::read_to_string(path).ok()?;
    let text = text.trim();
    (!text.is_empty()).then(|| text.to_owned())
}

/// Undoes the octal escapes of /proc/self/mountinfo (`\040` is a blank), see proc_pid_mountinfo(5).
fn unescape(text: &str) -> PathBuf {
    use std::os::unix::ffi::OsStringExt;
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut i = 0;
    while i < bytes.len() {
        let octal = (bytes[i] == b'\\').then(|| text.get(i + 1..i + 4)).flatten();
        if let Some(byte) = octal.and_then(|digits| u8::from_str_radix(digits, 8).ok()) {
            out.push(byte);
            i += 4;
        } else {
            out.push(bytes[i]);
            i += 1;
        }
    }
    PathBuf::from(std::ffi::OsString::from_vec(out))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn octal_escapes_are_undone() {
        assert_eq!(unescape(r"/mnt/my\040disk"), Path::new("/mnt/my disk"));
        assert_eq!(unescape(r"/a\134b\011"), Path::new("/a\\b\t"));
        assert_eq!(unescape(r"/plain\9"), Path::new(r"/plain\9"));
    }
}
