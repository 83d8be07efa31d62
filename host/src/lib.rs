//! What the machine is and what it gives this process: memory, devices, host, environment, launcher.
//!
//! Read-only looks at /proc, /sys and a few system calls. Nothing here touches MPI or the files of a run.

#![forbid(unsafe_code)]

pub mod affinity;
pub mod caches;
pub mod cgroup;
pub mod cpu_time;
pub mod device;
pub mod environment;
pub mod host;
pub mod keeper;
pub mod launcher;
pub mod memory;
pub mod mount;
pub mod neighbours;
pub mod placement;
pub mod taken_back;
pub mod terminal;
pub mod topology;
pub mod traffic;
pub mod workers;

use std::path::Path;
use std::str::FromStr;

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

/// The number in such a file.
fn read_number<N: FromStr>(path: impl AsRef<Path>) -> Option<N> {
    read_trimmed(path)?.parse().ok()
}

/// Names in a directory, sorted; none if there is no such directory.
fn names_in(directory: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let mut names: Vec<String> = entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}
