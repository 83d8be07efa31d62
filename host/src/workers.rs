//! Threads of the kernel that work for this process: what io_uring cannot begin without waiting is handed to one.
//!
//! Which operations they were, and how many, the kernel does not tell. It shows the threads while they live (an idle one ends after some
//! seconds), and the processor time that each has used.

use std::path::Path;

use super::{names_in, read_trimmed};

/// Name of a worker of io_uring, its number left out (proc_pid_comm(5)).
const NAME: &str = "iou-wrk-";

/// The workers of this process now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Workers {
    /// How many.
    pub threads: u64,
    /// Processor time that they have used so far.
    pub cpu_ns: u64,
}

/// Looks at the threads of this process.
#[must_use]
pub fn workers() -> Workers {
    below(Path::new("/proc/self/task"))
}

fn below(tasks: &Path) -> Workers {
    let mut all = Workers::default();
    for task in names_in(tasks).iter().map(|name| tasks.join(name)) {
        if read_trimmed(task.join("comm")).is_some_and(|name| name.starts_with(NAME)) {
            all.threads += 1;
            // Time on a processor, time of waiting for one, turns.
            let stat = read_trimmed(task.join("schedstat")).unwrap_or_default();
            all.cpu_ns += stat.split_whitespace().next().and_then(|ns| ns.parse().ok()).unwrap_or(0);
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn workers_are_told_from_other_threads() {
        let tasks = tempfile::tempdir().unwrap();
        for (task, name, stat) in
            [("7", "beff-raw", "900 1 1"), ("8", "iou-wrk-7", "50 3 2"), ("9", "iou-wrk-7", "70 0 1")]
        {
            fs::create_dir(tasks.path().join(task)).unwrap();
            fs::write(tasks.path().join(task).join("comm"), format!("{name}\n")).unwrap();
            fs::write(tasks.path().join(task).join("schedstat"), format!("{stat}\n")).unwrap();
        }
        assert_eq!(below(tasks.path()), Workers { threads: 2, cpu_ns: 120 });
        assert_eq!(below(Path::new("/nowhere")), Workers::default());
    }
}
