//! The block devices below a directory, from the one that is mounted down to those at the bottom, and what they count.
//!
//! A level is a cut through the way of the bytes: everything that reaches storage passes each level once. Several devices
//! side by side (the members of an array) are one level, so levels can be compared with each other and with what the
//! program moved.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use procfs::process::MountInfo;
use procfs::DiskStat;

use super::device::{disk_of, number_of};
use super::keeper::{keeper, Keeper};
use super::mount::{mount_of, mount_under};
use super::{names_in, read_trimmed};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Bytes a block device has moved while a pattern ran, for whomever.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DeviceTraffic {
    /// Name as in /proc/diskstats; the members of an array joined with `+`; with several hosts, `host:name`.
    pub device: String,
    /// Read from it.
    pub read_bytes: u64,
    /// Written to it.
    pub written_bytes: u64,
    /// Read requests completed, after merging.
    pub read_requests: u64,
    /// Write requests completed, after merging.
    pub write_requests: u64,
}

/// The unit of the counters, whatever the device uses (block/stat of the kernel's documentation).
const SECTOR_BYTES: u64 = 512;
/// A loop device on itself ends here.
const MAX_LEVELS: usize = 8;
/// Longest wait for requests that were begun and not counted yet.
const SETTLE: Duration = Duration::from_millis(5);
/// Between two looks at them.
const SETTLE_STEP: Duration = Duration::from_micros(200);

/// Where to look; another tree in tests.
#[derive(Clone, Copy, Debug)]
struct Roots<'a> {
    sys: &'a Path,
    mounts: &'a [MountInfo],
}

/// The levels below a directory; names as in /proc/diskstats.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chain {
    sys: PathBuf,
    levels: Vec<Vec<String>>,
    /// Why some levels are missing, if so.
    pub gap: Option<String>,
}

/// Counters of all levels at one time; None: a device was not there any more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot(Option<Vec<Counts>>);

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Counts {
    read_bytes: u64,
    written_bytes: u64,
    read_requests: u64,
    write_requests: u64,
    in_flight: u64,
}

impl Counts {
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
/// Why there are none that could be watched, in words.
pub fn chain(directory: &Path) -> Result<Chain, String> {
    let (mount, mounts) = mount_under(directory)?;
    find(&Roots { sys: Path::new("/sys"), mounts: &mounts }, &mount)
}

fn find(roots: &Roots<'_>, mount: &MountInfo) -> Result<Chain, String> {
    let mut level = mounted(roots, mount)?;
    let mut levels = Vec::new();
    let mut gap = None;
    while levels.len() < MAX_LEVELS {
        levels.push(level.clone());
        let mut next = BTreeSet::new();
        for name in &level {
            match below(roots, name) {
                // A device at the bottom stands for itself in the levels below it.
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
    let silent: Vec<Option<String>> = levels.iter().map(|l| l.iter().find_map(|name| silence(roots, name))).collect();
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
    Ok(Chain { sys: roots.sys.to_path_buf(), levels: kept, gap })
}

/// The device(s) that a mount names; the reason where it names none.
fn mounted(roots: &Roots<'_>, mount: &MountInfo) -> Result<Vec<String>, String> {
    let fs_type = mount.fs_type.as_str();
    let number = match keeper(fs_type) {
        Keeper::Memory => return Err(format!("{fs_type} lives in memory")),
        // That of FUSE on a device has one that counts.
        Keeper::Server if mount.majmin.starts_with("0:") => {
            return Err(format!("{fs_type} is the client of a server: no local device"))
        }
        _ => number_of(mount),
    };
    match number.and_then(|number| name_of(roots, &number)) {
        Some(name) if fs_type == "btrfs" => Ok(btrfs_members(roots, &name)),
        Some(name) => Ok(vec![name]),
        None if mount.majmin.starts_with("0:") => Err(format!("{fs_type}: the device below is not visible")),
        None => Err(format!("/sys does not show the device {}", mount.majmin)),
    }
}

/// All devices of the btrfs that `name` belongs to.
fn btrfs_members(roots: &Roots<'_>, name: &str) -> Vec<String> {
    let file_systems = roots.sys.join("fs/btrfs");
    let mut lists = names_in(&file_systems).into_iter().map(|id| names_in(&file_systems.join(id).join("devices")));
    lists.find(|list| list.iter().any(|n| n == name)).unwrap_or_else(|| vec![name.to_owned()])
}

fn name_of(roots: &Roots<'_>, number: &str) -> Option<String> {
    let directory = fs::canonicalize(roots.sys.join("dev/block").join(number)).ok()?;
    Some(directory.file_name()?.to_string_lossy().into_owned())
}

/// The directory of the disk a device is on.
fn disk(sys: &Path, name: &str) -> Option<PathBuf> {
    disk_of(&fs::canonicalize(sys.join("class/block").join(name)).ok()?)
}

/// The devices one level below `name`; none at the bottom.
fn below(roots: &Roots<'_>, name: &str) -> Result<Vec<String>, String> {
    let Some(disk) = disk(roots.sys, name) else { return Ok(Vec::new()) };
    let slaves = names_in(&disk.join("slaves"));
    if !slaves.is_empty() {
        return Ok(slaves);
    }
    let Some(file) = read_trimmed(disk.join("loop/backing_file")) else { return Ok(Vec::new()) };
    let mount = mount_of(Path::new(&file), roots.mounts).ok_or_else(|| format!("no mount is shown above {file}"))?;
    mounted(roots, mount)
}

/// Why the counters of a device say nothing; None: they do.
fn silence(roots: &Roots<'_>, name: &str) -> Option<String> {
    let off = disk(roots.sys, name).and_then(|disk| read_trimmed(disk.join("queue/iostats"))) == Some("0".into());
    if off {
        return Some(format!("{name} does not count (queue/iostats is 0)"));
    }
    match counts(roots.sys, name) {
        None => Some(format!("/sys shows no counters of {name}")),
        // Mounting alone reads something: the path below a multipath device counts on some kernels, the device itself not.
        Some(counts) if counts.read_requests + counts.write_requests == 0 => {
            Some(format!("{name} does not count (nothing since it is there)"))
        }
        Some(_) => None,
    }
}

/// The counters of one device: cheap also where a machine has hundreds of them, unlike all of /proc/diskstats.
fn counts(sys: &Path, name: &str) -> Option<Counts> {
    let stat = read_trimmed(sys.join("class/block").join(name).join("stat"))?;
    // The same columns as in /proc/diskstats but for the first three.
    let stat = DiskStat::from_line(&format!("0 0 {name} {stat}")).ok()?;
    Some(Counts {
        read_bytes: stat.sectors_read.checked_mul(SECTOR_BYTES)?,
        written_bytes: stat.sectors_written.checked_mul(SECTOR_BYTES)?,
        read_requests: stat.reads,
        write_requests: stat.writes,
        in_flight: stat.in_progress,
    })
}

impl Chain {
    /// The counters now.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        let level = |names: &Vec<String>| {
            names.iter().try_fold(Counts::default(), |mut sum, name| {
                sum.add(counts(&self.sys, name)?);
                Some(sum)
            })
        };
        Snapshot(self.levels.iter().map(level).collect())
    }

    /// The counters as soon as nothing is in flight, or after a few milliseconds: a read ahead that was begun for us counts
    /// when it ends.
    #[must_use]
    pub fn settled_snapshot(&self) -> Snapshot {
        let begin = Instant::now();
        loop {
            let now = self.snapshot();
            let busy = now.0.as_ref().is_some_and(|levels| levels.iter().any(|counts| counts.in_flight > 0));
            if !busy || begin.elapsed() >= SETTLE {
                return now;
            }
            std::thread::sleep(SETTLE_STEP);
        }
    }

    /// Nothing moved yet, on each level.
    #[must_use]
    pub fn no_traffic(&self) -> Vec<DeviceTraffic> {
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

/// Adds what was moved between two snapshots of one chain to `traffic`, which has an element for each level; false if that
/// is not known.
#[must_use]
pub fn add_between(before: &Snapshot, after: &Snapshot, traffic: &mut [DeviceTraffic]) -> bool {
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
