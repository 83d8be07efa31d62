//! The host: name, operating system, processor, and the cores this process may run on.

use std::collections::BTreeSet;

use nix::sys::utsname::uname;
use procfs::{CpuInfo, Current};

use super::cgroup;
use super::cgroup::{Hierarchy, Version};
use super::{read_trimmed, SystemError};

/// No kernel knows as many CPUs.
const MOST_CPUS: u32 = 1 << 20;

/// What the kernel tells of the calling thread.
const STATUS: &str = "/proc/thread-self/status";

const CALL: &str = "This system call works on every Linux: look for a sandbox or seccomp filter that forbids it.";

fn failed(operation: &'static str, error: nix::Error) -> SystemError {
    SystemError { operation, subject: "this host".into(), cause: error.to_string(), next_step: CALL }
}

/// Name of this host (gethostname).
///
/// # Errors
/// What the kernel says.
pub fn host_name() -> Result<String, SystemError> {
    let name = nix::unistd::gethostname().map_err(|error| failed("ask for the name of", error))?;
    Ok(name.to_string_lossy().into_owned())
}

/// Operating system, kernel and machine in one line, e.g. `Debian GNU/Linux 12 (bookworm), Linux 6.1.0-18-amd64 x86_64`;
/// without the first part where /etc/os-release does not name the distribution.
///
/// # Errors
/// What the kernel says.
pub fn kernel() -> Result<String, SystemError> {
    let names = uname().map_err(|error| failed("ask for the kernel of", error))?;
    let [system, release, machine] =
        [names.sysname(), names.release(), names.machine()].map(|part| part.to_string_lossy().into_owned());
    let kernel = format!("{system} {release} {machine}");
    let distribution = read_trimmed("/etc/os-release").and_then(|text| pretty_name(&text));
    Ok(distribution.map_or_else(|| kernel.clone(), |name| format!("{name}, {kernel}")))
}

/// Version of the kernel (uname(2)): number and time of its build. None: the kernel does not say.
#[must_use]
pub fn kernel_version() -> Option<String> {
    uname().ok().map(|names| names.version().to_string_lossy().into_owned())
}

/// PRETTY_NAME of os-release(5), without its quotes.
fn pretty_name(os_release: &str) -> Option<String> {
    let value = os_release.lines().find_map(|line| line.strip_prefix("PRETTY_NAME="))?;
    let name = value.trim().trim_matches(['"', '\'']);
    (!name.is_empty()).then(|| name.to_owned())
}

/// Model of the first processor as /proc/cpuinfo names it. ARM kernels give numbers instead of a name; `unknown` if
/// there is neither.
#[must_use]
pub fn cpu_model() -> String {
    CpuInfo::current().ok().as_ref().and_then(model_of).unwrap_or_else(|| "unknown".into())
}

fn model_of(info: &CpuInfo) -> Option<String> {
    // The fields before the first processor are global on some architectures (s390, POWER: `cpu`).
    let field = |name: &str| info.get_field(0, name).map(|text| text.split_whitespace().collect::<Vec<_>>().join(" "));
    field("model name").or_else(|| field("cpu")).or_else(|| {
        let implementer = field("CPU implementer")?;
        Some(format!("ARM implementer {implementer} part {}", field("CPU part")?))
    })
}

/// Numbers of the CPUs (hardware threads) the calling thread may be scheduled on, ascending; those that are not online are left out.
///
/// Launchers may bind each rank to a core of its own: then a rank sees one CPU although its host has many. What
/// a host offers to the ranks together is [`cores_together`].
///
/// # Errors
/// If /proc/thread-self/status cannot be read or does not tell.
pub fn allowed_cpus() -> Result<Vec<u32>, SystemError> {
    let missing = |cause: String| SystemError {
        operation: "read the allowed CPUs from",
        subject: STATUS.into(),
        cause,
        next_step: "Mount /proc inside the container or chroot.",
    };
    let status = std::fs::read_to_string(STATUS).map_err(|error| missing(error.to_string()))?;
    let list = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
    let mut cpus = list.and_then(cpu_numbers).ok_or_else(|| missing("no Cpus_allowed_list".into()))?;
    // A mask may have CPUs that could be plugged in and are not there, as in many virtual machines.
    let online = online_cpus();
    cpus.retain(|cpu| online.as_ref().is_none_or(|online| online.contains(cpu)));
    Ok(cpus)
}

/// CPUs of this host that are in use, whoever may use them; None: the kernel does not tell.
#[must_use]
pub fn online_cpus() -> Option<Vec<u32>> {
    cpu_numbers(&read_trimmed("/sys/devices/system/cpu/online")?)
}

/// `0-3,8` as numbers, in the order of the list; None: it is no such list.
#[must_use]
pub fn cpu_numbers(list: &str) -> Option<Vec<u32>> {
    let mut cpus = Vec::new();
    for part in list.trim().split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (u32, u32) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
        // More than any kernel knows: a damaged file is not to fill the memory.
        if last.checked_sub(first)? > MOST_CPUS {
            return None;
        }
        cpus.extend(first..=last);
    }
    Some(cpus)
}

/// Physical cores that these CPUs belong to, each as the list of its hardware threads; None if the kernel does not tell.
#[must_use]
pub fn cores_of(cpus: &[u32]) -> Option<BTreeSet<String>> {
    cores_among(cpus, |cpu| read_trimmed(format!("/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list")))
}

fn cores_among(cpus: &[u32], siblings: impl Fn(u32) -> Option<String>) -> Option<BTreeSet<String>> {
    let cores: Option<BTreeSet<String>> = cpus.iter().map(|cpu| siblings(*cpu)).collect();
    cores.filter(|cores| !cores.is_empty())
}

/// Processor time the control groups of this process allow, in CPUs (1.5: one and a half); None without a quota.
#[must_use]
pub fn cgroup_cpu_quota() -> Option<f64> {
    quota(&cgroup::hierarchies("cpu"), |path| read_trimmed(path))
}

fn quota(hierarchies: &[Hierarchy], read: impl Fn(&std::path::Path) -> Option<String>) -> Option<f64> {
    let mut smallest: Option<f64> = None;
    for hierarchy in hierarchies {
        for directory in &hierarchy.directories {
            let (quota, period) = match hierarchy.version {
                Version::V1 => (read(&directory.join("cpu.cfs_quota_us")), read(&directory.join("cpu.cfs_period_us"))),
                Version::V2 => {
                    let text = read(&directory.join("cpu.max")).unwrap_or_default();
                    let mut words = text.split_whitespace().map(str::to_owned);
                    (words.next(), words.next())
                }
            };
            // Unlimited is `max` or -1: neither is a positive number.
            let number = |text: Option<String>| text?.parse::<f64>().ok().filter(|value| *value > 0.0);
            if let (Some(quota), Some(period)) = (number(quota), number(period)) {
                smallest = Some(smallest.map_or(quota / period, |least| least.min(quota / period)));
            }
        }
    }
    smallest
}

/// Cores that the ranks of one host can use together: the union of their allowed CPUs, at most the quota rounded up,
/// at least 1. With one rank alone: what that rank can use.
pub fn cores_together<'a>(allowed: impl IntoIterator<Item = &'a [u32]>, quota: Option<f64>) -> u64 {
    let union: BTreeSet<u32> = allowed.into_iter().flatten().copied().collect();
    let cores = union.len() as u64;
    // A quota is a small positive number, so the cast keeps its value.
    quota.map_or(cores, |quota| cores.min(quota.ceil() as u64)).max(1)
}

/// Cores this process alone can use: its allowed CPUs, at most its quota.
///
/// # Errors
/// As [`allowed_cpus`].
pub fn usable_cores() -> Result<u64, SystemError> {
    let allowed = allowed_cpus()?;
    Ok(cores_together([allowed.as_slice()], cgroup_cpu_quota()))
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};

    use procfs::FromBufRead;

    use super::*;

    #[test]
    fn hardware_threads_of_one_core_are_one_core() {
        let siblings = |cpu: u32| Some(format!("{},{}", cpu % 2, cpu % 2 + 2));
        let number = |cpus: &[u32]| cores_among(cpus, siblings).map(|cores| cores.len());
        assert_eq!(number(&[0, 2]), Some(1));
        assert_eq!(number(&[0, 1, 2]), Some(2));
        assert_eq!(cores_among(&[0], |_| None), None);
        assert_eq!(number(&[]), None);
    }

    #[test]
    fn lists_of_cpus_are_read_or_refused() {
        assert_eq!(cpu_numbers("0-2,8\n").unwrap(), [0, 1, 2, 8]);
        assert_eq!(cpu_numbers(" 5 ").unwrap(), [5]);
        for odd in ["", "x", "3-1", "1,,2", "0-4294967295"] {
            assert_eq!(cpu_numbers(odd), None, "{odd}");
        }
    }

    #[test]
    fn this_machine_answers() {
        assert!(!host_name().unwrap().is_empty());
        assert!(kernel().unwrap().contains("Linux "));
        assert!(!cpu_model().is_empty());
        assert!(usable_cores().unwrap() >= 1);
    }

    #[test]
    fn distribution_without_quotes() {
        assert_eq!(pretty_name("ID=x\nPRETTY_NAME=\"Debian GNU/Linux 12\"\n").unwrap(), "Debian GNU/Linux 12");
        assert_eq!(pretty_name("ID=x\n"), None);
    }

    #[test]
    fn cpu_models_of_several_architectures() {
        let model = |text: &str| model_of(&CpuInfo::from_buf_read(text.as_bytes()).unwrap());
        assert_eq!(model("processor\t: 0\nmodel name\t: Some  CPU @ 2 GHz\n\n").unwrap(), "Some CPU @ 2 GHz");
        let arm = "processor\t: 0\nCPU implementer\t: 0x41\nCPU part\t: 0xd0c\n\n";
        assert_eq!(model(arm).unwrap(), "ARM implementer 0x41 part 0xd0c");
        assert_eq!(model("processor\t: 0\nBogoMIPS\t: 1\n\n"), None);
    }

    #[test]
    fn bound_ranks_together_have_more_cores_than_each() {
        assert_eq!(cores_together([[0].as_slice(), &[1]], None), 2);
        assert_eq!(cores_together([[0].as_slice(), &[0]], None), 1);
        assert_eq!(cores_together([[0, 1, 2, 3].as_slice()], Some(1.5)), 2);
        assert_eq!(cores_together([[].as_slice()], None), 1);
    }

    #[test]
    fn quotas_of_both_versions() {
        let groups = |version| [Hierarchy { version, directories: vec![PathBuf::from("/c/a"), PathBuf::from("/c")] }];
        let files = |list: &'static [(&str, &str)]| {
            move |path: &Path| list.iter().find(|(name, _)| Path::new(name) == path).map(|(_, text)| (*text).to_owned())
        };
        let v2 = files(&[("/c/a/cpu.max", "max 100000"), ("/c/cpu.max", "150000 100000")]);
        assert_eq!(quota(&groups(Version::V2), v2), Some(1.5));
        let v1 = files(&[("/c/a/cpu.cfs_quota_us", "-1"), ("/c/a/cpu.cfs_period_us", "100000")]);
        assert_eq!(quota(&groups(Version::V1), v1), None);
    }
}
