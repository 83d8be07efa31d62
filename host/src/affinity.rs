//! CPU affinity of threads, set by the program.
//!
//! The kernel keeps a mask for each thread, and a new thread inherits that of its creator. Only the thread that executes a rank is bound.
//! Threads that the MPI library started before keep their mask. Threads of the program that monitor or draw call [`use_initial_affinity`], so that
//! they do not run on the core of their rank. The kernel's io_uring workers inherit the mask of the rank (since Linux 6.2; before, they
//! run anywhere): the rank sleeps while its worker works, on the same caches, and no worker disturbs another rank. The same holds if the
//! launcher binds.

use std::sync::OnceLock;

use nix::sched::{sched_setaffinity, CpuSet};
use nix::unistd::Pid;

use super::host::allowed_cpus;
use super::placement::format_cpu_list;

/// CPUs allowed to this process before the program bound it.
static INITIAL_CPUS: OnceLock<Vec<u32>> = OnceLock::new();

/// Binds the calling thread to one CPU and checks the mask in force. `found` are the CPUs allowed until now.
///
/// # Errors
/// The error of the kernel, or the CPUs allowed instead.
pub fn bind(cpu: u32, found: &[u32]) -> Result<(), String> {
    let _ = INITIAL_CPUS.set(found.to_vec());
    set_affinity(&[cpu])?;
    let now = allowed_cpus().map_err(|e| e.to_string())?;
    if now != [cpu] {
        return Err(format!("CPU {cpu} was requested, but CPUs {} are in force", format_cpu_list(&now)));
    }
    Ok(())
}

/// Allows the calling thread the initial CPUs of the process; no effect if the program did not bind it.
pub fn use_initial_affinity() {
    if let Some(found) = INITIAL_CPUS.get() {
        // A thread that cannot be moved shares the CPU of its rank; it sleeps most of the time.
        let _ = set_affinity(found);
    }
}

/// Allows the calling thread the CPUs `found` again; no effect if they are allowed already.
///
/// # Errors
/// The error of the kernel.
pub fn restore(found: &[u32]) -> Result<(), String> {
    if allowed_cpus().is_ok_and(|now| now == found) {
        return Ok(());
    }
    set_affinity(found)
}

fn set_affinity(cpus: &[u32]) -> Result<(), String> {
    let failed = |error: nix::Error| format!("sched_setaffinity to CPUs {}: {error}", format_cpu_list(cpus));
    let mut wanted = CpuSet::new();
    for cpu in cpus {
        wanted.set(*cpu as usize).map_err(failed)?;
    }
    sched_setaffinity(Pid::from_raw(0), &wanted).map_err(failed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allowed_cpu_list() -> String {
        let status = std::fs::read_to_string("/proc/thread-self/status").unwrap();
        status.lines().find_map(|l| l.strip_prefix("Cpus_allowed_list:")).unwrap().trim().to_owned()
    }

    /// One test, because the initial CPUs are stored once per process.
    #[test]
    fn binding_affects_the_thread_and_its_children_but_not_helpers() {
        let before = allowed_cpu_list();
        std::thread::spawn(move || {
            use_initial_affinity();
            assert_eq!(allowed_cpu_list(), before, "nothing is bound yet");
            let found = allowed_cpus().unwrap();
            let cpu = *found.last().unwrap();
            INITIAL_CPUS.set(found.clone()).unwrap();
            set_affinity(&[cpu]).unwrap();
            assert_eq!(allowed_cpu_list(), cpu.to_string());
            let inherited = std::thread::spawn(allowed_cpu_list).join().unwrap();
            let helper = std::thread::spawn(|| (use_initial_affinity(), allowed_cpu_list()).1).join().unwrap();
            assert_eq!((inherited, helper), (cpu.to_string(), format_cpu_list(&found)));
            restore(&found).unwrap();
            assert_eq!(allowed_cpu_list(), format_cpu_list(&found));
            assert!(set_affinity(&[100_000]).unwrap_err().contains("sched_setaffinity to CPUs 100000"));
            assert!(set_affinity(&[]).is_err());
        })
        .join()
        .unwrap();
    }
}
