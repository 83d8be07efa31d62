//! Programs of others that are bound to CPUs. Two runs on one node without a cpuset of their own would both take the first cores.

use std::path::Path;

use procfs::ticks_per_second;

use super::host::cpu_numbers;
use super::{names_in, read_trimmed};

/// A thread is busy if it has used this share of its life, 0 to 1. What was bound once and sleeps takes nothing from a rank.
const BUSY_SHARE: f64 = 0.05;

/// Bit of the flags in /proc/PID/stat: a thread of the kernel.
const KERNEL_THREAD: u64 = 0x0020_0000;

/// A thread that may run on these CPUs only.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    /// Its process.
    pub process: u64,
    /// Name of its program, as the kernel has it.
    pub program: String,
    /// CPUs it may run on, ascending.
    pub cpus: Vec<u32>,
    /// It works, and would take turns with a rank.
    pub is_busy: bool,
}

/// Threads of user programs on this host that are bound to some of these CPUs, those of `own` processes left out. `is_bound` says of what
/// a thread is allowed that the kernel cannot put it elsewhere. Processes in other PID namespaces (containers) are not seen.
#[must_use]
pub fn claims(cpus: &[u32], is_bound: impl Fn(&[u32]) -> bool, own: &[u64]) -> Vec<Claim> {
    below(Path::new("/proc"), cpus, &is_bound, own)
}

fn below(proc: &Path, cpus: &[u32], is_bound: &dyn Fn(&[u32]) -> bool, own: &[u64]) -> Vec<Claim> {
    let up = read_trimmed(proc.join("uptime")).and_then(|text| text.split_whitespace().next()?.parse().ok());
    let up_seconds: f64 = up.unwrap_or(0.0);
    let mut found = Vec::new();
    let processes = names_in(proc).into_iter().filter_map(|name| name.parse::<u64>().ok());
    for process in processes.filter(|process| !own.contains(process)) {
        let tasks = proc.join(process.to_string()).join("task");
        for task in names_in(&tasks) {
            let stat = read_trimmed(tasks.join(&task).join("stat")).unwrap_or_default();
            // A thread of the kernel stands for its process, which has no others.
            if is_of_kernel(&stat) {
                break;
            }
            // One that has ended meanwhile says nothing of the others.
            let Some(claim) = claim(&tasks.join(task), &stat, process, up_seconds) else { continue };
            if is_bound(&claim.cpus) && claim.cpus.iter().any(|cpu| cpus.contains(cpu)) {
                found.push(claim);
            }
        }
    }
    found
}

/// Name and fields of a thread. The name stands in parentheses and may hold any byte: fields are counted behind the last of them, from the
/// third on.
fn fields(stat: &str) -> Option<(&str, Vec<&str>)> {
    let (head, rest) = stat.rsplit_once(')')?;
    Some((head.split_once('(')?.1, rest.split_whitespace().collect()))
}

fn number(fields: &[&str], field: usize) -> Option<u64> {
    fields.get(field - 3)?.parse().ok()
}

fn is_of_kernel(stat: &str) -> bool {
    fields(stat).and_then(|(_, fields)| number(&fields, 9)).is_some_and(|flags| flags & KERNEL_THREAD != 0)
}

/// What one thread may run on; None: it has ended.
fn claim(task: &Path, stat: &str, process: u64, up_seconds: f64) -> Option<Claim> {
    let (name, fields) = fields(stat)?;
    let number = |field: usize| number(&fields, field);
    let ticks = ticks_per_second() as f64;
    let (worked, begin) = ((number(14)? + number(15)?) as f64 / ticks, number(22)? as f64 / ticks);
    let status = read_trimmed(task.join("status"))?;
    let list = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"))?;
    Some(Claim {
        process,
        program: name.to_owned(),
        cpus: cpu_numbers(list)?,
        is_busy: worked > BUSY_SHARE * (up_seconds - begin).max(1.0 / ticks),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A process of one thread: flags, seconds of work, CPUs.
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
    fn only_bound_programs_of_others_are_neighbours() {
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
        // A thread that ended between two looks, before one that is bound.
        process(proc, 16, 0, 50, "1");
        std::fs::create_dir(proc.join("16/task/100")).unwrap();
        let found = below(proc, &[0, 1, 2, 3], &|cpus| cpus.len() == 1, &[15]);
        let told: Vec<_> = found.iter().map(|c| (c.process, c.cpus.as_slice(), c.is_busy)).collect();
        assert_eq!(told, [(10, [2].as_slice(), true), (11, &[3], false), (16, &[1], true)]);
        assert_eq!(found[0].program, "a ) name");
    }

    #[test]
    fn this_process_is_seen_where_it_is() {
        let cpus = crate::host::allowed_cpus().unwrap();
        let me = u64::from(std::process::id());
        assert!(claims(&cpus, |_| true, &[]).iter().any(|claim| claim.process == me));
        assert!(!claims(&cpus, |_| true, &[me]).iter().any(|claim| claim.process == me));
    }
}
