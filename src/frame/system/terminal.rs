//! The user's terminal behind a launcher.
//!
//! mpirun puts a pipe between the ranks and the terminal it was started from. What the user sees on stderr is what the
//! launcher's own stderr is, so the ancestors of this process are asked, up to the first whose stderr is no pipe.

use std::fs::{File, OpenOptions};
use std::io::IsTerminal;

use procfs::process::{FDTarget, Process};

/// More generations than any launcher has between itself and a rank.
const GENERATIONS: usize = 8;

/// The terminal that shows what this process writes to stderr, opened for reading and for writing; None if there is
/// none on this host, for instance because stderr goes to a file.
#[must_use]
pub fn behind_stderr() -> Option<(File, File)> {
    let mut process = Process::myself().ok()?;
    for _ in 0..GENERATIONS {
        match process.fd_from_fd(2).ok()?.target {
            FDTarget::Pipe(_) | FDTarget::Socket(_) => {}
            FDTarget::Path(path) => {
                let open = || OpenOptions::new().read(true).write(true).open(&path).ok().filter(File::is_terminal);
                return Some((open()?, open()?));
            }
            _ => return None,
        }
        process = Process::new(process.stat().ok()?.ppid).ok()?;
    }
    None
}
