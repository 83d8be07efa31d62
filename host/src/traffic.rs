//! The block devices below a directory, from the mounted one down to the lowest, and their counters.
//!
//! A level is a cut through the data path: everything that reaches storage passes each level once. Several devices side by side (members
//! of an array) are one level, so levels can be compared with each other and with the bytes that the program transferred.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use procfs::process::MountInfo;
use procfs::DiskStat;

use super::backing_store::{backing_store, BackingStore};
use super::device::{device_number, disk_directory};
use super::mount::{find_mount, longest_prefix_mount};
use super::{names_in, read_trimmed};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Bytes that a block device transferred during a pattern, for all programs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DeviceTraffic {
    /// Name as in /proc/diskstats; the members of an array joined with `+`; with several hosts, `host:name`.
    pub device: String,
    /// Bytes read.
    pub read_bytes: u64,
    /// Bytes written.
    pub written_bytes: u64,
    /// Read requests completed, after merging.
    pub read_requests: u64,
    /// Write requests completed, after merging.
    pub write_requests: u64,
}

/// Unit of the counters on every device (block/stat of the kernel's documentation).
const SECTOR_BYTES: u64 = 512;
/// Limit for a loop device on itself.
const MAX_LEVELS: usize = 8;
/// Longest wait for requests that were started and are not counted yet.
const SETTLE_TIMEOUT: Duration = Duration::from_millis(5);
const SETTLE_INTERVAL: Duration = Duration::from_micros(200);

/// Where the devices are read; another tree in tests.
#[derive(Clone, Copy, Debug)]
struct SystemRoots<'a> {
    sys: &'a Path,
    mounts: &'a [MountInfo],
}

/// The levels below a directory; names as in /proc/diskstats.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceChain {
    sys: PathBuf,
    levels: Vec<Vec<String>>,
    /// Why some levels are missing, if any.
    pub incomplete_reason: Option<String>,
}

/// Counters of all levels at one time; None if a device has disappeared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrafficSnapshot(Option<Vec<DeviceCounters>>);

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct DeviceCounters {
    read_bytes: u64,
    written_bytes: u64,
    read_requests: u64,
    write_requests: u64,
    in_flight: u64,
}

impl DeviceCounters {
    fn add(&mut self, other: Self) {
        self.read_bytes += other.read_bytes;
        self.written_bytes += other.written_bytes;
        self.read_requests += other.read_requests;
        self.write_requests += other.write_requests;
        self.in_flight += other.in_flight;
    }
}

/// Finds the devices below an existing directory.
///
/// # Errors
/// Why no device can be observed, in words.
pub fn find_device_chain(directory: &Path) -> Result<DeviceChain, String> {
    let (mount, mounts) = find_mount(directory)?;
    build_chain(&SystemRoots { sys: Path::new("/sys"), mounts: &mounts }, &mount)
}

/// Devices below an existing directory, in levels from the mounted one down to the lowest.
///
/// # Errors
/// Why no device can be found, in words.
pub fn device_levels(directory: &Path) -> Result<Vec<Vec<String>>, String> {
    let (mount, mounts) = find_mount(directory)?;
    Ok(find_levels(&SystemRoots { sys: Path::new("/sys"), mounts: &mounts }, &mount)?.0)
}

/// The levels, and why the lowest is not the last.
fn find_levels(roots: &SystemRoots<'_>, mount: &MountInfo) -> Result<(Vec<Vec<String>>, Option<String>), String> {
    let mut level = mounted_devices(roots, mount)?;
    let mut levels = Vec::new();
    let mut gap = None;
    while levels.len() < MAX_LEVELS {
        levels.push(level.clone());
        let mut next = BTreeSet::new();
        for name in &level {
            match lower_devices(roots, name) {
                // A device at the bottom is its own lower level.
                Ok(names) if names.is_empty() => next.extend([name.clone()]),
                Ok(names) => next.extend(names),
                Err(reason) => {
                    gap = Some(format!("below {name}: {reason}"));
                    next.extend([name.clone()]);
                }
            }
        }
        let next: Vec<String> = next.into_iter().collect();
        if next == level {
            break;
        }
        level = next;
    }
    Ok((levels, gap))
}

fn build_chain(roots: &SystemRoots<'_>, mount: &MountInfo) -> Result<DeviceChain, String> {
    let (levels, mut gap) = find_levels(roots, mount)?;
    let silent: Vec<Option<String>> =
        levels.iter().map(|l| l.iter().find_map(|name| counter_problem(roots, name))).collect();
    let mut kept = Vec::new();
    for (level, silence) in levels.into_iter().zip(silent) {
        match silence {
            None => kept.push(level),
            Some(reason) => gap = Some(reason),
        }
    }
    if kept.is_empty() {
        return Err(gap.unwrap_or_else(|| "no block device was found".into()));
    }
    Ok(DeviceChain { sys: roots.sys.to_path_buf(), levels: kept, incomplete_reason: gap })
}

/// The device(s) of a mount, or why it has none.
fn mounted_devices(roots: &SystemRoots<'_>, mount: &MountInfo) -> Result<Vec<String>, String> {
    let fs_type = mount.fs_type.as_str();
    let number = match backing_store(fs_type) {
        BackingStore::Memory => return Err(format!("{fs_type} lives in memory")),
        // FUSE on a device has a number, and the device counts.
        BackingStore::Server if mount.majmin.starts_with("0:") => {
            return Err(format!("{fs_type} is the client of a server: no local device"))
        }
        _ => device_number(mount),
    };
    match number.and_then(|number| device_name(roots, &number)) {
        Some(name) if fs_type == "btrfs" => Ok(btrfs_members(roots, &name)),
        Some(name) => Ok(vec![name]),
        None if mount.majmin.starts_with("0:") => Err(format!("{fs_type}: the device below is not visible")),
        None => Err(format!("/sys does not show the device {}", mount.majmin)),
    }
}

/// All devices of the btrfs that contains `name`.
fn btrfs_members(roots: &SystemRoots<'_>, name: &str) -> Vec<String> {
    let file_systems = roots.sys.join("fs/btrfs");
    let mut lists = names_in(&file_systems).into_iter().map(|id| names_in(&file_systems.join(id).join("devices")));
    lists.find(|list| list.iter().any(|n| n == name)).unwrap_or_else(|| vec![name.to_owned()])
}

fn device_name(roots: &SystemRoots<'_>, number: &str) -> Option<String> {
    let directory = fs::canonicalize(roots.sys.join("dev/block").join(number)).ok()?;
    Some(directory.file_name()?.to_string_lossy().into_owned())
}

fn disk_path(sys: &Path, name: &str) -> Option<PathBuf> {
    disk_directory(&fs::canonicalize(sys.join("class/block").join(name)).ok()?)
}

/// The devices one level below `name`; empty at the bottom.
fn lower_devices(roots: &SystemRoots<'_>, name: &str) -> Result<Vec<String>, String> {
    let Some(disk) = disk_path(roots.sys, name) else { return Ok(Vec::new()) };
    let slaves = names_in(&disk.join("slaves"));
    if !slaves.is_empty() {
        return Ok(slaves);
    }
    let Some(file) = read_trimmed(disk.join("loop/backing_file")) else { return Ok(Vec::new()) };
    let mount = longest_prefix_mount(Path::new(&file), roots.mounts)
        .ok_or_else(|| format!("no mount is shown above {file}"))?;
    mounted_devices(roots, mount)
}

/// Why the counters of a device are useless; None if they are usable.
fn counter_problem(roots: &SystemRoots<'_>, name: &str) -> Option<String> {
    let off = disk_path(roots.sys, name).and_then(|disk| read_trimmed(disk.join("queue/iostats"))) == Some("0".into());
    if off {
        return Some(format!("{name} does not count (queue/iostats is 0)"));
    }
    match read_counters(roots.sys, name) {
        None => Some(format!("/sys shows no counters of {name}")),
        // Mounting alone reads something: below multipath, some kernels count on the paths and not on the device itself.
        Some(counts) if counts.read_requests + counts.write_requests == 0 => {
            Some(format!("{name} does not count (no request so far)"))
        }
        Some(_) => None,
    }
}

/// Counters of one device: cheap even with hundreds of devices, unlike /proc/diskstats.
fn read_counters(sys: &Path, name: &str) -> Option<DeviceCounters> {
    let stat = read_trimmed(sys.join("class/block").join(name).join("stat"))?;
    // The columns of /proc/diskstats without the first three.
    let stat = DiskStat::from_line(&format!("0 0 {name} {stat}")).ok()?;
    Some(DeviceCounters {
        read_bytes: stat.sectors_read.checked_mul(SECTOR_BYTES)?,
        written_bytes: stat.sectors_written.checked_mul(SECTOR_BYTES)?,
        read_requests: stat.reads,
        write_requests: stat.writes,
        in_flight: stat.in_progress,
    })
}

impl DeviceChain {
    /// Current counters.
    #[must_use]
    pub fn snapshot(&self) -> TrafficSnapshot {
        let level = |names: &Vec<String>| {
            names.iter().try_fold(DeviceCounters::default(), |mut sum, name| {
                sum.add(read_counters(&self.sys, name)?);
                Some(sum)
            })
        };
        TrafficSnapshot(self.levels.iter().map(level).collect())
    }

    /// Counters as soon as no request is in flight, or after a few milliseconds: read-ahead for this process counts when it completes.
    #[must_use]
    pub fn settled_snapshot(&self) -> TrafficSnapshot {
        let begin = Instant::now();
        loop {
            let now = self.snapshot();
            let pending = now.0.as_ref().is_some_and(|levels| levels.iter().any(|counts| counts.in_flight > 0));
            if !pending || begin.elapsed() >= SETTLE_TIMEOUT {
                return now;
            }
            std::thread::sleep(SETTLE_INTERVAL);
        }
    }

    /// Zero traffic on each level.
    #[must_use]
    pub fn zero_traffic(&self) -> Vec<DeviceTraffic> {
        let none = |names: &Vec<String>| DeviceTraffic {
            device: names.join("+"),
            read_bytes: 0,
            written_bytes: 0,
            read_requests: 0,
            write_requests: 0,
        };
        self.levels.iter().map(none).collect()
    }
}

/// Adds the difference of two snapshots of one chain to `traffic`, which has an element per level; false if unknown.
#[must_use]
pub fn add_difference(before: &TrafficSnapshot, after: &TrafficSnapshot, traffic: &mut [DeviceTraffic]) -> bool {
    let (Some(before), Some(after)) = (&before.0, &after.0) else { return false };
    for ((sum, before), after) in traffic.iter_mut().zip(before).zip(after) {
        sum.read_bytes += after.read_bytes.saturating_sub(before.read_bytes);
        sum.written_bytes += after.written_bytes.saturating_sub(before.written_bytes);
        sum.read_requests += after.read_requests.saturating_sub(before.read_requests);
        sum.write_requests += after.write_requests.saturating_sub(before.write_requests);
    }
    true
}

#[cfg(test)]
#[path = "traffic_tests.rs"]
mod tests;
