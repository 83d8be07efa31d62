//! Threads of other programs that are bound to CPUs. Two runs on one node without separate cpusets would both use the first cores.

use std::path::Path;

use procfs::ticks_per_second;

use super::host::parse_cpu_list;
use super::{names_in, read_trimmed};

/// Minimum share of its lifetime, 0 to 1, that a busy thread has run. A bound thread that sleeps takes no CPU time from a rank.
const BUSY_SHARE: f64 = 0.05;

const KERNEL_THREAD: u64 = 0x0020_0000;

/// A thread restricted to these CPUs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BoundThread {
    /// Process id.
    pub process: u64,
    /// Program name in the kernel.
    pub program: String,
    /// Allowed CPUs, ascending.
    pub cpus: Vec<u32>,
    /// True if it would compete with a rank.
    pub is_busy: bool,
}

/// Threads of user programs on this host that are bound to some of these CPUs, without those of `own` processes. `is_bound` decides from
/// the allowed CPUs whether the kernel cannot move a thread away. Processes in other PID namespaces (containers) are not visible.
#[must_use]
pub fn bound_threads(cpus: &[u32], is_bound: impl Fn(&[u32]) -> bool, own: &[u64]) -> Vec<BoundThread> {
    scan_proc(Path::new("/proc"), cpus, &is_bound, own)
}

fn scan_proc(proc: &Path, cpus: &[u32], is_bound: &dyn Fn(&[u32]) -> bool, own: &[u64]) -> Vec<BoundThread> {
    let up = read_trimmed(proc.join("uptime")).and_then(|text| text.split_whitespace().next()?.parse().ok());
    let up_seconds: f64 = up.unwrap_or(0.0);
    let mut found = Vec::new();
    let processes = names_in(proc).into_iter().filter_map(|name| name.parse::<u64>().ok());
    for process in processes.filter(|process| !own.contains(process)) {
        let tasks = proc.join(process.to_string()).join("task");
        for task in names_in(&tasks) {
            let stat = read_trimmed(tasks.join(&task).join("stat")).unwrap_or_default();
            // A kernel thread is the only one of its process.
            if is_kernel_thread(&stat) {
                break;
            }
            let Some(claim) = read_bound_thread(&tasks.join(task), &stat, process, up_seconds) else { continue };
            if is_bound(&claim.cpus) && claim.cpus.iter().any(|cpu| cpus.contains(cpu)) {
                found.push(claim);
            }
        }
    }
    found
}

/// Name and fields of a thread. The name is in parentheses and may contain any byte: fields are counted after the last parenthesis,
/// starting with the third.
fn parse_stat(stat: &str) -> Option<(&str, Vec<&str>)> {
    let (head, rest) = stat.rsplit_once(')')?;
    Some((head.split_once('(')?.1, rest.split_whitespace().collect()))
}

fn stat_field(fields: &[&str], field: usize) -> Option<u64> {
    fields.get(field - 3)?.parse().ok()
}

fn is_kernel_thread(stat: &str) -> bool {
    parse_stat(stat).and_then(|(_, fields)| stat_field(&fields, 9)).is_some_and(|flags| flags & KERNEL_THREAD != 0)
}

/// Binding of one thread; None if it has ended.
fn read_bound_thread(task: &Path, stat: &str, process: u64, up_seconds: f64) -> Option<BoundThread> {
    let (name, fields) = parse_stat(stat)?;
    let number = |field: usize| stat_field(&fields, field);
    let ticks = ticks_per_second() as f64;
    let (worked, begin) = ((number(14)? + number(15)?) as f64 / ticks, number(22)? as f64 / ticks);
    let status = read_trimmed(task.join("status"))?;
    let list = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"))?;
    Some(BoundThread {
        process,
        program: name.to_owned(),
        cpus: parse_cpu_list(list)?,
        is_busy: worked > BUSY_SHARE * (up_seconds - begin).max(1.0 / ticks),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A process of one thread: flags, CPU seconds, allowed CPUs.
    fn process(proc: &Path, pid: u64, flags: u64, worked: u64, cpus: &str) {
        let task = proc.join(format!("{pid}/task/{pid}"));
        std::fs::create_dir_all(&task).unwrap();
        let ticks = ticks_per_second();
        let (worked, begin) = (worked * ticks, 900 * ticks);
        let stat = format!("{pid} (a ) name) S 1 1 1 0 -1 {flags} 0 0 0 0 {worked} 0 0 0 20 0 1 0 {begin} 1 1");
        std::fs::write(task.join("stat"), stat).unwrap();
        std::fs::write(task.join("status"), format!("Name:\tx\nCpus_allowed_list:\t{cpus}\n")).unwrap();
    }

    #[test]
    fn only_bound_threads_of_other_processes_are_found() {
        let root = tempfile::tempdir().unwrap();
        let proc = root.path();
        std::fs::write(proc.join("uptime"), "1000.00 3.00\n").unwrap();
        process(proc, 10, 0, 50, "2");
        process(proc, 11, 0, 1, "3");
        process(proc, 12, 0, 50, "0-3");
        process(proc, 13, 0, 50, "9");
        process(proc, 14, KERNEL_THREAD, 50, "1");
        process(proc, 15, 0, 50, "0");
        std::fs::create_dir(proc.join("sys")).unwrap();
        // A thread that ended during the scan, before one that is bound.
        process(proc, 16, 0, 50, "1");
        std::fs::create_dir(proc.join("16/task/100")).unwrap();
        let found = scan_proc(proc, &[0, 1, 2, 3], &|cpus| cpus.len() == 1, &[15]);
        let results: Vec<_> = found.iter().map(|c| (c.process, c.cpus.as_slice(), c.is_busy)).collect();
        assert_eq!(results, [(10, [2].as_slice(), true), (11, &[3], false), (16, &[1], true)]);
        assert_eq!(found[0].program, "a ) name");
    }

    #[test]
    fn this_process_is_found() {
        let cpus = crate::host::allowed_cpus().unwrap();
        let me = u64::from(std::process::id());
        assert!(bound_threads(&cpus, |_| true, &[]).iter().any(|claim| claim.process == me));
        assert!(!bound_threads(&cpus, |_| true, &[me]).iter().any(|claim| claim.process == me));
    }
}
