//! The CPUs a thread may run on, set by the program.
//!
//! The kernel keeps a mask for each thread, and a new thread has that of the one that made it. Only the thread that does the work of a
//! rank is bound. Threads that the MPI library started before keep what they have. Threads of the program that watch or draw call
//! [`as_found`], so that they do not wake on the core of their rank. The kernel's workers of io_uring are made by the rank and take its
//! mask (since Linux 6.2; before, they run anywhere): the rank sleeps while its worker works, on the same caches, and no worker is in
//! the way of another rank. It is the same if the launcher binds.

use std::sync::OnceLock;

use nix::sched::{sched_setaffinity, CpuSet};
use nix::unistd::Pid;

use super::host::allowed_cpus;
use super::placement::cpu_list;

/// What this process was allowed before the program bound it.
static FOUND: OnceLock<Vec<u32>> = OnceLock::new();

/// Binds the calling thread to one CPU, and looks whether the kernel did it. `found` is what it was allowed until now.
///
/// # Errors
/// What the kernel said, or where the thread may run instead.
pub fn bind(cpu: u32, found: &[u32]) -> Result<(), String> {
    let _ = FOUND.set(found.to_vec());
    set(&[cpu])?;
    let now = allowed_cpus().map_err(|e| e.to_string())?;
    if now != [cpu] {
        return Err(format!("CPU {cpu} was asked for, the kernel has {} in force", cpu_list(&now)));
    }
    Ok(())
}

/// The calling thread may run where the process was found; nothing if the program did not bind it.
pub fn as_found() {
    if let Some(found) = FOUND.get() {
        // A thread that cannot be moved stays beside its rank: it sleeps most of the time.
        let _ = set(found);
    }
}

/// The calling thread may run where it was found. Nothing where it still may.
///
/// # Errors
/// What the kernel said.
pub fn restore(found: &[u32]) -> Result<(), String> {
    if allowed_cpus().is_ok_and(|now| now == found) {
        return Ok(());
    }
    set(found)
}

fn set(cpus: &[u32]) -> Result<(), String> {
    let failed = |error: nix::Error| format!("sched_setaffinity to CPUs {}: {error}", cpu_list(cpus));
    let mut wanted = CpuSet::new();
    for cpu in cpus {
        wanted.set(*cpu as usize).map_err(failed)?;
    }
    sched_setaffinity(Pid::from_raw(0), &wanted).map_err(failed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mine() -> String {
        let status = std::fs::read_to_string("/proc/thread-self/status").unwrap();
        status.lines().find_map(|l| l.strip_prefix("Cpus_allowed_list:")).unwrap().trim().to_owned()
    }

    /// One test: what was found is kept once for the process.
    #[test]
    fn a_thread_is_bound_and_its_helpers_are_not() {
        let before = mine();
        std::thread::spawn(move || {
            as_found();
            assert_eq!(mine(), before, "nobody was bound yet");
            let found = allowed_cpus().unwrap();
            let cpu = *found.last().unwrap();
            FOUND.set(found.clone()).unwrap();
            set(&[cpu]).unwrap();
            assert_eq!(mine(), cpu.to_string());
            let inherited = std::thread::spawn(mine).join().unwrap();
            let helper = std::thread::spawn(|| (as_found(), mine()).1).join().unwrap();
            assert_eq!((inherited, helper), (cpu.to_string(), cpu_list(&found)));
            restore(&found).unwrap();
            assert_eq!(mine(), cpu_list(&found));
            assert!(set(&[100_000]).unwrap_err().contains("sched_setaffinity to CPUs 100000"));
            assert!(set(&[]).is_err());
        })
        .join()
        .unwrap();
    }
}
