//! Memory of the node and its limits for this process, the last-level cache, and the memory and I/O of the process.

use std::path::{Path, PathBuf};

use procfs::process::Process;
use procfs::{Current, Meminfo};

use super::caches::{parse_kernel_size, ASSUMED_LAST_LEVEL_CACHE_BYTES};
use super::cgroup;
use super::cgroup::{CgroupHierarchy, CgroupVersion};
use super::{names_in, read_number, read_trimmed, SystemError};

/// Memory of the node: MemTotal of /proc/meminfo, bytes.
///
/// # Errors
/// If /proc/meminfo cannot be read.
pub fn node_memory_bytes() -> Result<u64, SystemError> {
    // procfs converts kB to bytes.
    Meminfo::current().map(|info| info.mem_total).map_err(|error| SystemError {
        operation: "read",
        subject: "/proc/meminfo".into(),
        cause: error.to_string(),
        next_step: "Mount /proc, or give the memory with --memory-per-process.",
    })
}

/// Memory limit of the control groups of this process, bytes: the smallest of the group and all its parents, of both versions. None
/// without a limit below `node_memory_bytes`.
///
/// Version 2 has `memory.max` and `memory.high`, and both count: above the latter the kernel reclaims at once, so a page cache never
/// exceeds it.
#[must_use]
pub fn cgroup_memory_limit_bytes(node_memory_bytes: u64) -> Option<u64> {
    smallest_limit(&cgroup::hierarchies("memory"), read_trimmed).filter(|limit| *limit < node_memory_bytes)
}

/// Memory usable by this process: that of the node, or a smaller limit of its control groups, bytes.
///
/// # Errors
/// As [`node_memory_bytes`].
pub fn usable_node_memory_bytes() -> Result<u64, SystemError> {
    let node = node_memory_bytes()?;
    Ok(cgroup_memory_limit_bytes(node).unwrap_or(node))
}

/// Unlimited is `max` in version 2, which is no number; in version 1 it is 2^63 rounded down to a page, larger than any node and so
/// removed by the comparison with the node's memory.
fn smallest_limit(hierarchies: &[CgroupHierarchy], read: impl Fn(PathBuf) -> Option<String>) -> Option<u64> {
    let number = |file: PathBuf| read(file)?.parse::<u64>().ok();
    let mut limits = Vec::new();
    for hierarchy in hierarchies {
        for directory in &hierarchy.directories {
            let files: &[&str] = match hierarchy.version {
                CgroupVersion::V1 => &["memory.limit_in_bytes"],
                CgroupVersion::V2 => &["memory.max", "memory.high"],
            };
            limits.extend(files.iter().filter_map(|name| number(directory.join(name))));
        }
        // Version 1 also reports the limit of parents that a container does not see.
        let stat = hierarchy.directories.first().filter(|_| hierarchy.version == CgroupVersion::V1);
        limits.extend(stat.and_then(|directory| hierarchical_limit(&read(directory.join("memory.stat"))?)));
    }
    limits.into_iter().min()
}

fn hierarchical_limit(stat: &str) -> Option<u64> {
    stat.lines().find_map(|line| line.strip_prefix("hierarchical_memory_limit "))?.trim().parse().ok()
}

/// Size of the last-level cache of CPU 0 in /sys, bytes; None if unknown.
#[must_use]
pub fn known_last_level_cache_bytes() -> Option<u64> {
    last_level_cache_in(Path::new("/sys/devices/system/cpu/cpu0/cache"))
}

/// Size of the last-level cache, bytes; [`ASSUMED_LAST_LEVEL_CACHE_BYTES`] if unknown.
#[must_use]
pub fn last_level_cache_bytes() -> u64 {
    known_last_level_cache_bytes().unwrap_or(ASSUMED_LAST_LEVEL_CACHE_BYTES)
}

fn last_level_cache_in(directory: &Path) -> Option<u64> {
    let names = names_in(directory);
    let caches = names.iter().map(|name| directory.join(name)).filter_map(|index| {
        if read_trimmed(index.join("type"))? == "Instruction" {
            return None;
        }
        let level: u32 = read_number(index.join("level"))?;
        Some((level, parse_kernel_size(&read_trimmed(index.join("size"))?)?))
    });
    caches.max().map(|(_, bytes)| bytes)
}

/// Largest resident memory of this process so far (VmHWM of /proc/self/status), bytes; None if unknown.
#[must_use]
pub fn high_water_bytes() -> Option<u64> {
    let status = Process::myself().ok()?.status().ok()?;
    status.vmhwm.map(|kilobytes| kilobytes * 1024)
}

/// Resident memory of this process by kind (/proc/self/status).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ResidentMemory {
    /// RssAnon: private memory.
    pub private_bytes: u64,
    /// RssShmem: shared memory, counted in every process that maps it.
    pub shared_bytes: u64,
    /// RssFile: pages of files, including programs and libraries; they belong to the page cache.
    pub file_bytes: u64,
    /// Pss of /proc/self/smaps_rollup: a page mapped by n processes counts as 1/n of a page; None if unknown or too slow to read
    /// ([`MAX_PSS_RESIDENT_BYTES`]).
    pub proportional_bytes: Option<u64>,
}

/// Largest resident memory for which Pss is read: the kernel visits every page, some milliseconds per GiB.
pub const MAX_PSS_RESIDENT_BYTES: u64 = 4 << 30;

/// Current resident memory; None if unknown.
#[must_use]
pub fn resident_memory() -> Option<ResidentMemory> {
    let status = Process::myself().ok()?.status().ok()?;
    let [private_bytes, shared_bytes, file_bytes] =
        [status.rssanon?, status.rssshmem?, status.rssfile?].map(|kilobytes| kilobytes * 1024);
    let asked = private_bytes + shared_bytes + file_bytes <= MAX_PSS_RESIDENT_BYTES;
    let rollup = || parse_pss_bytes(&std::fs::read_to_string("/proc/self/smaps_rollup").ok()?);
    let proportional_bytes = if asked { rollup() } else { None };
    Some(ResidentMemory { private_bytes, shared_bytes, file_bytes, proportional_bytes })
}

fn parse_pss_bytes(rollup: &str) -> Option<u64> {
    let line = rollup.lines().find_map(|line| line.strip_prefix("Pss:"))?;
    Some(line.split_whitespace().next()?.parse::<u64>().ok()? * 1024)
}

/// Bytes of these ranges in huge pages (AnonHugePages, and ShmemPmdMapped for shared memory, of their mappings in /proc/self/smaps; the
/// kernel may merge neighbouring mappings); None if unknown.
#[must_use]
pub fn huge_page_bytes(memories: &[&[u8]]) -> Option<u64> {
    let ranges: Vec<(u64, u64)> =
        memories.iter().map(|memory| (memory.as_ptr() as u64, memory.as_ptr() as u64 + memory.len() as u64)).collect();
    let maps = Process::myself().ok()?.smaps().ok()?;
    let of_ours = maps.into_iter().filter(|map| ranges.iter().any(|r| map.address.0 < r.1 && r.0 < map.address.1));
    let of_one = |map: &procfs::process::MMapExtension| {
        let bytes_of = |name: &str| map.map.get(name).copied();
        // Linux before 4.8 has no huge pages of shared memory.
        Some(bytes_of("AnonHugePages")? + bytes_of("ShmemPmdMapped").unwrap_or(0))
    };
    let huge = of_ours.map(|map| of_one(&map.extension)).sum::<Option<u64>>()?;
    Some(huge.min(memories.iter().map(|memory| memory.len() as u64).sum()))
}

/// Storage I/O of this process with all its threads; see proc_pid_io(5).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProcessIo {
    /// Bytes fetched from storage: 0 if they came from the page cache.
    pub read_bytes: u64,
    /// Bytes sent to storage, counted when a page becomes dirty, not when it is written back.
    pub written_bytes: u64,
    /// Bytes returned by read(2), pread(2) and the like from any source (rchar), without io_uring and mappings.
    pub call_read_bytes: u64,
    /// Bytes accepted by write(2), pwrite(2) and the like (wchar).
    pub call_written_bytes: u64,
}

/// Time since this process was started, to some 10 ms; None if /proc does not tell.
#[must_use]
pub fn process_age_seconds() -> Option<f64> {
    let started = Process::myself().ok()?.stat().ok()?.starttime as f64 / procfs::ticks_per_second() as f64;
    Some((procfs::Uptime::current().ok()?.uptime - started).max(0.0))
}

/// Counters of /proc/self/io; None if the kernel has none (CONFIG_TASK_IO_ACCOUNTING) or denies access. Network file systems and file
/// systems in memory are counted incompletely or not at all.
#[must_use]
pub fn process_io() -> Option<ProcessIo> {
    let io = Process::myself().ok()?.io().ok()?;
    Some(ProcessIo {
        read_bytes: io.read_bytes,
        written_bytes: io.write_bytes,
        call_read_bytes: io.rchar,
        call_written_bytes: io.wchar,
    })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn the_age_of_the_process_is_that_of_this_test() {
        let age = process_age_seconds().unwrap();
        assert!((0.0..86_400.0).contains(&age) && process_age_seconds().unwrap() >= age, "{age}");
    }

    #[test]
    fn huge_pages_are_counted_in_mappings_of_a_range() {
        // Shorter than a huge page: it may be next to one, and never reports more than its length.
        let short = vec![1_u8; 4096];
        assert!(huge_page_bytes(&[&short]).is_some_and(|bytes| bytes <= 4096));
        assert_eq!(huge_page_bytes(&[]), Some(0));
    }

    fn hierarchy(version: CgroupVersion, directories: &[&str]) -> CgroupHierarchy {
        CgroupHierarchy { version, directories: directories.iter().map(PathBuf::from).collect() }
    }

    fn files<'a>(list: &'a [(&'a str, &'a str)]) -> impl Fn(PathBuf) -> Option<String> + 'a {
        |path| list.iter().find(|(name, _)| Path::new(name) == path).map(|(_, text)| (*text).to_owned())
    }

    #[test]
    fn the_smallest_limit_of_all_parents_holds() {
        let v2 = [hierarchy(CgroupVersion::V2, &["/c/a/b", "/c/a", "/c"])];
        let read = [("/c/a/b/memory.max", "max"), ("/c/a/memory.max", "4096000"), ("/c/a/memory.high", "max")];
        assert_eq!(smallest_limit(&v2, files(&read)), Some(4_096_000));
        let high = [("/c/a/memory.max", "4096000"), ("/c/a/b/memory.high", "1000")];
        assert_eq!(smallest_limit(&v2, files(&high)), Some(1000));
        assert_eq!(smallest_limit(&v2, files(&[("/c/a/b/memory.max", "max")])), None);
    }

    #[test]
    fn version_1_sees_limits_of_hidden_parents() {
        let v1 = [hierarchy(CgroupVersion::V1, &["/c"]), hierarchy(CgroupVersion::V2, &["/u"])];
        let unlimited = "9223372036854771712";
        let read =
            [("/c/memory.limit_in_bytes", unlimited), ("/c/memory.stat", "cache 1\nhierarchical_memory_limit 512\n")];
        assert_eq!(smallest_limit(&v1, files(&read)), Some(512));
        // Unlimited is a number here; it must be larger than any node.
        assert_eq!(smallest_limit(&v1, files(&read[..1])).filter(|l| *l < 1 << 60), None);
    }

    #[test]
    fn the_largest_level_is_the_last() {
        let dir = tempfile::tempdir().unwrap();
        let caches =
            [("1", "48K", "Data"), ("1", "64K", "Instruction"), ("3", "32768K", "Unified"), ("2", "64M", "Unified")];
        for (i, (level, size, kind)) in caches.iter().enumerate() {
            let index = dir.path().join(format!("index{i}"));
            fs::create_dir(&index).unwrap();
            fs::write(index.join("level"), format!("{level}\n")).unwrap();
            fs::write(index.join("size"), format!("{size}\n")).unwrap();
            fs::write(index.join("type"), format!("{kind}\n")).unwrap();
        }
        fs::write(dir.path().join("uevent"), "").unwrap();
        assert_eq!(last_level_cache_in(dir.path()), Some(32 << 20));
        assert_eq!(last_level_cache_in(&dir.path().join("absent")), None);
    }

    #[test]
    fn resident_memory_by_kind() {
        let memory = vec![1_u8; 8 << 20];
        let seen = resident_memory().expect("Linux since 4.5");
        assert!(seen.private_bytes >= memory.len() as u64 && seen.file_bytes > 0, "{seen:?}");
        assert!(seen.proportional_bytes.is_none_or(|pss| pss >= memory.len() as u64), "{seen:?}");
        assert_eq!(parse_pss_bytes("Rss: 9 kB\nPss:            12 kB\nPss_Anon: 5 kB\n"), Some(12 << 10));
        assert_eq!(parse_pss_bytes("Pss_Anon: 5 kB\n"), None);
    }

    #[test]
    fn this_host_has_memory_facts() {
        let node = node_memory_bytes().unwrap();
        assert!(node > 64 << 20, "{node}");
        assert!(usable_node_memory_bytes().unwrap() <= node);
        assert!(high_water_bytes().unwrap() > 100 << 10);
        assert!(last_level_cache_bytes() >= 1 << 10);
        let before = process_io();
        let file = tempfile::NamedTempFile::new_in(".").unwrap();
        fs::write(file.path(), vec![1; 1 << 20]).unwrap();
        if let (Some(before), Some(after)) = (before, process_io()) {
            assert!(after.written_bytes >= before.written_bytes);
        }
    }
}
