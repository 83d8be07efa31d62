//! The user's terminal behind a launcher: where progress is drawn, and how wide a screen is.
//!
//! mpirun puts a pipe between the ranks and the terminal it was started from. What the user sees on stderr is what the
//! launcher's own stderr is, so the ancestors of this process are asked, up to the first whose stderr is no pipe.

use std::fs::{File, OpenOptions};
use std::io::IsTerminal;

use console::Term;
use procfs::process::{FDTarget, Process};

use super::launcher::started_with_others;

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

/// Processes that stand between a rank and the command that a user typed.
const LAUNCHERS: [&str; 14] = [
    "mpiexec",
    "mpiexec.hydra",
    "mpiexec.mpich",
    "mpiexec.openmpi",
    "mpirun",
    "mpirun.mpich",
    "mpirun.openmpi",
    "hydra_pmi_proxy",
    "orterun",
    "orted",
    "prterun",
    "prte",
    "prted",
    "srun",
];

/// Columns of the terminal that shows what this process writes to stdout; None: that is a file or a pipe, or nobody can
/// tell. Under a launcher its stdout counts, not the pipe or the terminal that it gives to the ranks.
#[must_use]
pub fn columns_of_stdout(env: impl Fn(&str) -> Option<String>) -> Option<usize> {
    match launcher() {
        Some(launcher) => {
            let FDTarget::Path(path) = launcher.fd_from_fd(1).ok()?.target else { return None };
            let open = || OpenOptions::new().read(true).write(true).open(&path).ok().filter(File::is_terminal);
            // A terminal that does not know its size is one all the same.
            let size = Term::read_write_pair(open()?, open()?).size_checked();
            Some(size.map_or(0, |(_, columns)| usize::from(columns)))
        }
        // A launcher on another host, or one that is not known: what looks like a terminal may be its own.
        None if started_with_others(env).is_some() => None,
        None if std::io::stdout().is_terminal() => {
            Some(Term::stdout().size_checked().map_or(0, |(_, columns)| usize::from(columns)))
        }
        None => None,
    }
}

/// The outermost of the launchers right above this process.
fn launcher() -> Option<Process> {
    let mut found = None;
    let mut process = Process::myself().ok()?;
    for _ in 0..GENERATIONS {
        let Ok(parent) = process.stat().and_then(|stat| Process::new(stat.ppid)) else { break };
        if !parent.stat().is_ok_and(|stat| LAUNCHERS.contains(&stat.comm.as_str())) {
            break;
        }
        // A process can be named again by its id.
        found = Process::new(parent.pid).ok();
        process = parent;
    }
    found
}
