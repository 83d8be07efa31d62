//! Kernel worker threads of this process: io_uring passes them operations that it cannot start without blocking.
//!
//! The kernel does not report which operations they executed, nor how many. It shows the threads while they exist (an idle one ends after
//! some seconds) and the CPU time of each.

use std::path::Path;

use super::{names_in, read_trimmed};

/// Name of an io_uring worker without its number (proc_pid_comm(5)).
const WORKER_NAME_PREFIX: &str = "iou-wrk-";

/// Current workers of this process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IoWorkers {
    /// Number of threads.
    pub threads: u64,
    /// CPU time so far.
    pub cpu_ns: u64,
}

/// Counts the workers of this process.
#[must_use]
pub fn io_workers() -> IoWorkers {
    count_workers(Path::new("/proc/self/task"))
}

fn count_workers(tasks: &Path) -> IoWorkers {
    let mut all = IoWorkers::default();
    for task in names_in(tasks).iter().map(|name| tasks.join(name)) {
        if read_trimmed(task.join("comm")).is_some_and(|name| name.starts_with(WORKER_NAME_PREFIX)) {
            all.threads += 1;
            // CPU time, run-queue wait, time slices.
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
    fn workers_are_distinguished_from_other_threads() {
        let tasks = tempfile::tempdir().unwrap();
        for (task, name, stat) in
            [("7", "beff-raw", "900 1 1"), ("8", "iou-wrk-7", "50 3 2"), ("9", "iou-wrk-7", "70 0 1")]
        {
            fs::create_dir(tasks.path().join(task)).unwrap();
            fs::write(tasks.path().join(task).join("comm"), format!("{name}\n")).unwrap();
            fs::write(tasks.path().join(task).join("schedstat"), format!("{stat}\n")).unwrap();
        }
        assert_eq!(count_workers(tasks.path()), IoWorkers { threads: 2, cpu_ns: 120 });
        assert_eq!(count_workers(Path::new("/nowhere")), IoWorkers::default());
    }
}
