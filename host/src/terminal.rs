//! The user's terminal behind a launcher: target of progress output, and width of a screen.
//!
//! mpirun connects the ranks to its terminal by pipes. The user sees the launcher's stderr, so the ancestors of this process are
//! examined, up to the first whose stderr is no pipe.

use std::fs::{File, OpenOptions};
use std::io::IsTerminal;

use console::Term;
use procfs::process::{FDTarget, Process};

use super::launcher::launched_process_count;

/// More generations than any launcher has between itself and a rank.
const MAX_ANCESTORS: usize = 8;

/// The terminal that shows stderr of this process, opened for reading and for writing; None if there is none on this host, for instance
/// because stderr is a file.
#[must_use]
pub fn stderr_terminal() -> Option<(File, File)> {
    let mut process = Process::myself().ok()?;
    for _ in 0..MAX_ANCESTORS {
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

/// Columns of the terminal that shows stdout of this process; None if it is a file, a pipe or unknown. Below a launcher its stdout
/// counts, not the pipe or pseudo-terminal of the ranks.
#[must_use]
pub fn stdout_columns(env: impl Fn(&str) -> Option<String>) -> Option<usize> {
    match outermost_launcher() {
        Some(launcher) => {
            let FDTarget::Path(path) = launcher.fd_from_fd(1).ok()?.target else { return None };
            let open = || OpenOptions::new().read(true).write(true).open(&path).ok().filter(File::is_terminal);
            // A terminal of unknown size is a terminal, too.
            let size = Term::read_write_pair(open()?, open()?).size_checked();
            Some(size.map_or(0, |(_, columns)| usize::from(columns)))
        }
        // A launcher on another host or of unknown name: the apparent terminal may be its own.
        None if launched_process_count(env).is_some() => None,
        None if std::io::stdout().is_terminal() => {
            Some(Term::stdout().size_checked().map_or(0, |(_, columns)| usize::from(columns)))
        }
        None => None,
    }
}

/// The outermost of the launchers directly above this process.
fn outermost_launcher() -> Option<Process> {
    let mut found = None;
    let mut process = Process::myself().ok()?;
    for _ in 0..MAX_ANCESTORS {
        let Ok(parent) = process.stat().and_then(|stat| Process::new(stat.ppid)) else { break };
        if !parent.stat().is_ok_and(|stat| LAUNCHERS.contains(&stat.comm.as_str())) {
            break;
        }
        // A process can be opened again by its id.
        found = Process::new(parent.pid).ok();
        process = parent;
    }
    found
}
