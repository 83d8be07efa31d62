//! The host: name, operating system, processor, and the cores allowed to this process.

use std::collections::BTreeSet;

use nix::sys::utsname::uname;
use procfs::{CpuInfo, Current};

use super::cgroup;
use super::cgroup::{CgroupHierarchy, CgroupVersion};
use super::{read_trimmed, SystemError};

/// Larger than the number of CPUs of any kernel.
const MAX_CPUS: u32 = 1 << 20;

const THREAD_STATUS_PATH: &str = "/proc/thread-self/status";

const SANDBOX_NEXT_STEP: &str =
    "This system call works on every Linux: check for a sandbox or seccomp filter that forbids it.";

fn call_error(operation: &'static str, error: nix::Error) -> SystemError {
    SystemError { operation, subject: "this host".into(), cause: error.to_string(), next_step: SANDBOX_NEXT_STEP }
}

/// Name of this host (gethostname).
///
/// # Errors
/// The error of the kernel.
pub fn host_name() -> Result<String, SystemError> {
    let name = nix::unistd::gethostname().map_err(|error| call_error("get the name of", error))?;
    Ok(name.to_string_lossy().into_owned())
}

/// Operating system, kernel and machine in one line, e.g. `Debian GNU/Linux 12 (bookworm), Linux 6.1.0-18-amd64 x86_64`; without the
/// distribution if /etc/os-release does not name it.
///
/// # Errors
/// The error of the kernel.
pub fn kernel() -> Result<String, SystemError> {
    let names = uname().map_err(|error| call_error("get the kernel of", error))?;
    let [system, release, machine] =
        [names.sysname(), names.release(), names.machine()].map(|part| part.to_string_lossy().into_owned());
    let kernel = format!("{system} {release} {machine}");
    let distribution = read_trimmed("/etc/os-release").and_then(|text| pretty_name(&text));
    Ok(distribution.map_or_else(|| kernel.clone(), |name| format!("{name}, {kernel}")))
}

/// Version of the kernel (uname(2)): number and time of its build; None if unknown.
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

/// Model of the first processor in /proc/cpuinfo. ARM kernels give numbers instead of a name; `unknown` without either.
#[must_use]
pub fn cpu_model() -> String {
    CpuInfo::current().ok().as_ref().and_then(model_name).unwrap_or_else(|| "unknown".into())
}

fn model_name(info: &CpuInfo) -> Option<String> {
    // Fields before the first processor are global on some architectures (s390, POWER: `cpu`).
    let field = |name: &str| info.get_field(0, name).map(|text| text.split_whitespace().collect::<Vec<_>>().join(" "));
    field("model name").or_else(|| field("cpu")).or_else(|| {
        let implementer = field("CPU implementer")?;
        Some(format!("ARM implementer {implementer} part {}", field("CPU part")?))
    })
}

/// Online CPUs (hardware threads) that the calling thread may run on, ascending.
///
/// Launchers may bind each rank to its own core: then a rank sees one CPU of many. [`combined_cores`] gives the cores available to all
/// ranks of a host.
///
/// # Errors
/// If /proc/thread-self/status is unreadable or lacks the list.
pub fn allowed_cpus() -> Result<Vec<u32>, SystemError> {
    let missing = |cause: String| SystemError {
        operation: "read the allowed CPUs from",
        subject: THREAD_STATUS_PATH.into(),
        cause,
        next_step: "Mount /proc inside the container or chroot.",
    };
    let status = std::fs::read_to_string(THREAD_STATUS_PATH).map_err(|error| missing(error.to_string()))?;
    let list = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
    let mut cpus = list.and_then(parse_cpu_list).ok_or_else(|| missing("no Cpus_allowed_list".into()))?;
    // A mask may contain CPUs that can be plugged in but are absent, as in many virtual machines.
    let online = online_cpus();
    cpus.retain(|cpu| online.as_ref().is_none_or(|online| online.contains(cpu)));
    Ok(cpus)
}

/// Online CPUs of this host, whether allowed or not; None if unknown.
#[must_use]
pub fn online_cpus() -> Option<Vec<u32>> {
    parse_cpu_list(&read_trimmed("/sys/devices/system/cpu/online")?)
}

/// Parses a list such as `0-3,8`, in its order; None if invalid.
#[must_use]
pub fn parse_cpu_list(list: &str) -> Option<Vec<u32>> {
    let mut cpus = Vec::new();
    for part in list.trim().split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (u32, u32) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
        // A damaged file must not exhaust the memory.
        if last.checked_sub(first)? > MAX_CPUS {
            return None;
        }
        cpus.extend(first..=last);
    }
    Some(cpus)
}

/// Physical cores of these CPUs, each as the list of its hardware threads; None if unknown.
#[must_use]
pub fn physical_cores(cpus: &[u32]) -> Option<BTreeSet<String>> {
    physical_cores_by(cpus, |cpu| {
        read_trimmed(format!("/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list"))
    })
}

fn physical_cores_by(cpus: &[u32], siblings: impl Fn(u32) -> Option<String>) -> Option<BTreeSet<String>> {
    let cores: Option<BTreeSet<String>> = cpus.iter().map(|cpu| siblings(*cpu)).collect();
    cores.filter(|cores| !cores.is_empty())
}

/// CPU quota of the control groups of this process, in CPUs (1.5: one and a half); None without a quota.
#[must_use]
pub fn cgroup_cpu_quota() -> Option<f64> {
    smallest_cpu_quota(&cgroup::hierarchies("cpu"), |path| read_trimmed(path))
}

fn smallest_cpu_quota(
    hierarchies: &[CgroupHierarchy],
    read: impl Fn(&std::path::Path) -> Option<String>,
) -> Option<f64> {
    let mut smallest: Option<f64> = None;
    for hierarchy in hierarchies {
        for directory in &hierarchy.directories {
            let (quota, period) = match hierarchy.version {
                CgroupVersion::V1 => {
                    (read(&directory.join("cpu.cfs_quota_us")), read(&directory.join("cpu.cfs_period_us")))
                }
                CgroupVersion::V2 => {
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

/// Cores that the ranks of one host can use together: the union of their allowed CPUs, at most the quota rounded up, at least 1. For a
/// single rank: the cores of that rank.
pub fn combined_cores<'a>(allowed: impl IntoIterator<Item = &'a [u32]>, quota: Option<f64>) -> u64 {
    let union: BTreeSet<u32> = allowed.into_iter().flatten().copied().collect();
    let cores = union.len() as u64;
    // A quota is a small positive number, so the cast preserves its value.
    quota.map_or(cores, |quota| cores.min(quota.ceil() as u64)).max(1)
}

/// Cores that this process alone can use: its allowed CPUs, at most its quota.
///
/// # Errors
/// As [`allowed_cpus`].
pub fn usable_cores() -> Result<u64, SystemError> {
    let allowed = allowed_cpus()?;
    Ok(combined_cores([allowed.as_slice()], cgroup_cpu_quota()))
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};

    use procfs::FromBufRead;

    use super::*;

    #[test]
    fn hardware_threads_of_one_core_are_one_core() {
        let siblings = |cpu: u32| Some(format!("{},{}", cpu % 2, cpu % 2 + 2));
        let number = |cpus: &[u32]| physical_cores_by(cpus, siblings).map(|cores| cores.len());
        assert_eq!(number(&[0, 2]), Some(1));
        assert_eq!(number(&[0, 1, 2]), Some(2));
        assert_eq!(physical_cores_by(&[0], |_| None), None);
        assert_eq!(number(&[]), None);
    }

    #[test]
    fn lists_of_cpus_are_read_or_refused() {
        assert_eq!(parse_cpu_list("0-2,8\n").unwrap(), [0, 1, 2, 8]);
        assert_eq!(parse_cpu_list(" 5 ").unwrap(), [5]);
        for odd in ["", "x", "3-1", "1,,2", "0-4294967295"] {
            assert_eq!(parse_cpu_list(odd), None, "{odd}");
        }
    }

    #[test]
    fn this_host_has_properties() {
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
        let model = |text: &str| model_name(&CpuInfo::from_buf_read(text.as_bytes()).unwrap());
        assert_eq!(model("processor\t: 0\nmodel name\t: Some  CPU @ 2 GHz\n\n").unwrap(), "Some CPU @ 2 GHz");
        let arm = "processor\t: 0\nCPU implementer\t: 0x41\nCPU part\t: 0xd0c\n\n";
        assert_eq!(model(arm).unwrap(), "ARM implementer 0x41 part 0xd0c");
        assert_eq!(model("processor\t: 0\nBogoMIPS\t: 1\n\n"), None);
    }

    #[test]
    fn bound_ranks_together_have_more_cores_than_each() {
        assert_eq!(combined_cores([[0].as_slice(), &[1]], None), 2);
        assert_eq!(combined_cores([[0].as_slice(), &[0]], None), 1);
        assert_eq!(combined_cores([[0, 1, 2, 3].as_slice()], Some(1.5)), 2);
        assert_eq!(combined_cores([[].as_slice()], None), 1);
    }

    #[test]
    fn quotas_of_both_versions() {
        let groups =
            |version| [CgroupHierarchy { version, directories: vec![PathBuf::from("/c/a"), PathBuf::from("/c")] }];
        let files = |list: &'static [(&str, &str)]| {
            move |path: &Path| list.iter().find(|(name, _)| Path::new(name) == path).map(|(_, text)| (*text).to_owned())
        };
        let v2 = files(&[("/c/a/cpu.max", "max 100000"), ("/c/cpu.max", "150000 100000")]);
        assert_eq!(smallest_cpu_quota(&groups(CgroupVersion::V2), v2), Some(1.5));
        let v1 = files(&[("/c/a/cpu.cfs_quota_us", "-1"), ("/c/a/cpu.cfs_period_us", "100000")]);
        assert_eq!(smallest_cpu_quota(&groups(CgroupVersion::V1), v1), None);
    }
}
