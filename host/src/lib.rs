//! Properties of the host and resources of this process: memory, devices, CPUs, environment, launcher.
//!
//! Read-only: /proc, /sys, a few system calls, and tools of schedulers and file systems. No access to MPI; of the files of a run only
//! attributes are read.

#![forbid(unsafe_code)]

pub mod affinity;
pub mod backing_store;
pub mod ballooning;
pub mod bound_threads;
pub mod caches;
pub mod cgroup;
pub mod command;
pub mod cpu_time;
pub mod device;
pub mod environment;
pub mod host;
pub mod launcher;
pub mod memory;
pub mod mount;
pub mod placement;
pub mod storage_sheet;
pub mod terminal;
pub mod topology;
pub mod traffic;
pub mod ucx;
pub mod workers;

use std::path::Path;
use std::str::FromStr;

/// A required property of the host could not be determined.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("cannot {operation} {subject}: {cause}. {next_step}")]
pub struct SystemError {
    /// The failed operation, e.g. `find the file system of`.
    pub operation: &'static str,
    /// Its object.
    pub subject: String,
    /// The cause.
    pub cause: String,
    /// Next step for the user.
    pub next_step: &'static str,
}

/// Trimmed content of a small file of /proc or /sys; None if missing or empty.
fn read_trimmed(path: impl AsRef<Path>) -> Option<String> {
    let text = std::fs::read_to_string(path).ok()?;
    let text = text.trim();
    (!text.is_empty()).then(|| text.to_owned())
}

fn read_number<N: FromStr>(path: impl AsRef<Path>) -> Option<N> {
    read_trimmed(path)?.parse().ok()
}

/// Sorted names in a directory; empty if it does not exist.
fn names_in(directory: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let mut names: Vec<String> = entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}
