//! The file system under a directory: mount, space, device.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::os::fd::AsRawFd;
use std::path::Path;

use nix::sys::statvfs::{statvfs, Statvfs};
use procfs::process::{MountInfo, Process};

use super::{device, unescape, SystemError};
use crate::frame::records::StorageRecord;

/// File systems whose data lives in memory: a benchmark of them measures memory.
pub const IN_MEMORY_FS_TYPES: [&str; 5] = ["tmpfs", "ramfs", "devtmpfs", "hugetlbfs", "rootfs"];

/// True if files of this file system type live in memory.
#[must_use]
pub fn is_in_memory(fs_type: &str) -> bool {
    IN_MEMORY_FS_TYPES.contains(&fs_type)
}

/// The file system under a directory, without the alignment of direct I/O, which only statx(2) on a file tells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Storage {
    /// The directory, absolute and without symbolic links.
    pub path: String,
    /// Mount point.
    pub mount_point: String,
    /// Source: device or export; `none` if it has none.
    pub source: String,
    /// Type.
    pub fs_type: String,
    /// Options of the mount and of the file system, sorted, separated by commas.
    pub mount_options: String,
    /// Device facts; None if no local block device is under it.
    pub device: Option<String>,
    /// Size of the file system.
    pub total_bytes: u64,
    /// Free for this user.
    pub free_bytes: u64,
}

impl Storage {
    /// The record for the manifest, with the alignments of direct I/O (None: the file system does not tell), bytes.
    #[must_use]
    pub fn into_record(
        self,
        direct_offset_align_bytes: Option<u64>,
        direct_memory_align_bytes: Option<u64>,
    ) -> StorageRecord {
        StorageRecord {
            path: self.path,
            mount_point: self.mount_point,
            source: self.source,
            fs_type: self.fs_type,
            mount_options: self.mount_options,
            device: self.device,
            total_bytes: self.total_bytes,
            free_bytes: self.free_bytes,
            direct_offset_align_bytes,
            direct_memory_align_bytes,
        }
    }

    /// True if the files live in memory.
    #[must_use]
    pub fn is_in_memory(&self) -> bool {
        is_in_memory(&self.fs_type)
    }
}

/// Finds out what is under the existing directory `path`.
///
/// # Errors
/// If the path does not exist or cannot be reached, or /proc/self/mountinfo does not show its mount.
pub fn storage(path: &Path) -> Result<Storage, SystemError> {
    let failed = |cause: String| SystemError {
        operation: "find the file system of",
        subject: path.display().to_string(),
        cause,
        next_step: "Give an existing directory that every rank can reach with --path.",
    };
    let canonical = fs::canonicalize(path).map_err(|error| failed(error.to_string()))?;
    let (mount, mounts) = mount_under(&canonical).map_err(failed)?;
    let mount = &mount;
    let space = statvfs(&canonical).map_err(|error| failed(format!("statvfs: {error}")))?;
    Ok(Storage {
        path: canonical.display().to_string(),
        mount_point: mount_point(mount).display().to_string(),
        source: mount.mount_source.as_deref().map_or_else(|| "none".into(), |s| unescape(s).display().to_string()),
        fs_type: mount.fs_type.clone(),
        mount_options: options(mount),
        device: device::device_of(mount, &mounts),
        total_bytes: bytes(&space, space.blocks()),
        free_bytes: bytes(&space, space.blocks_available()),
    })
}

/// The mount an existing directory is on, and all mounts.
pub(super) fn mount_under(directory: &Path) -> Result<(MountInfo, Vec<MountInfo>), String> {
    let canonical = fs::canonicalize(directory).map_err(|error| error.to_string())?;
    let mounts = Process::myself().and_then(|process| process.mountinfo()).map_err(|error| error.to_string())?.0;
    let mount = exact_mount(&canonical, &mounts).or_else(|| mount_of(&canonical, &mounts)).cloned();
    Ok((mount.ok_or("/proc/self/mountinfo lists no mount above it")?, mounts))
}

/// Type of the file system an existing directory is on.
///
/// # Errors
/// If the directory or its mount cannot be reached, in words.
pub fn fs_type(directory: &Path) -> Result<String, String> {
    Ok(mount_under(directory)?.0.fs_type)
}

/// Bytes free for this user in the file system of `path` (f_bavail x f_frsize of statvfs(3)).
///
/// # Errors
/// What the kernel says.
pub fn free_bytes(path: &Path) -> io::Result<u64> {
    let space = statvfs(path)?;
    Ok(bytes(&space, space.blocks_available()))
}

fn bytes(space: &Statvfs, blocks: nix::libc::fsblkcnt_t) -> u64 {
    blocks.saturating_mul(space.fragment_size())
}

/// The mount the kernel names for the open directory: exact also where a later mount hides an earlier one.
fn exact_mount<'a>(path: &Path, mounts: &'a [MountInfo]) -> Option<&'a MountInfo> {
    let directory = File::open(path).ok()?;
    let info = fs::read_to_string(format!("/proc/self/fdinfo/{}", directory.as_raw_fd())).ok()?;
    let id: i32 = info.lines().find_map(|line| line.strip_prefix("mnt_id:"))?.trim().parse().ok()?;
    mounts.iter().find(|mount| mount.mnt_id == id)
}

/// The mount with the longest mount point above `path`; of several on the same point the last, which hides the others.
pub(super) fn mount_of<'a>(path: &Path, mounts: &'a [MountInfo]) -> Option<&'a MountInfo> {
    mounts
        .iter()
        .filter(|mount| path.starts_with(mount_point(mount)))
        .max_by_key(|mount| mount_point(mount).components().count())
}

fn mount_point(mount: &MountInfo) -> std::path::PathBuf {
    unescape(&mount.mount_point.to_string_lossy())
}

fn options(mount: &MountInfo) -> String {
    // Those of the mount win over those of the file system: a bind mount may be read-only on a writable file system.
    let mut all: BTreeMap<&str, Option<&str>> = BTreeMap::new();
    let own = &mount.mount_options;
    for (key, value) in mount.super_options.iter().chain(own) {
        let contradicted = matches!(key.as_str(), "rw" | "ro") && !own.contains_key(key);
        if !key.is_empty() && !contradicted {
            all.insert(key, value.as_deref());
        }
    }
    let texts = all.into_iter().map(|(key, value)| value.map_or_else(|| key.to_owned(), |v| format!("{key}={v}")));
    texts.collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use procfs::process::MountInfos;
    use procfs::FromBufRead;

    use super::*;

    fn mounts(text: &str) -> Vec<MountInfo> {
        MountInfos::from_buf_read(text.as_bytes()).unwrap().0
    }

    #[test]
    fn longest_prefix_by_whole_names_and_last_on_top() {
        let mounts = mounts(
            "1 0 8:1 / / rw - ext4 /dev/sda1 rw\n\
             2 1 0:9 / /data rw - nfs4 host:/x rw\n\
             3 1 0:8 / /my\\040disk rw - xfs /dev/sdb rw\n\
             4 2 0:7 / /data rw - lustre mgs:/y rw\n",
        );
        let fs_type = |path: &str| mount_of(Path::new(path), &mounts).unwrap().fs_type.as_str();
        assert_eq!(fs_type("/data/run"), "lustre");
        assert_eq!(fs_type("/database"), "ext4");
        assert_eq!(fs_type("/my disk/a"), "xfs");
    }

    #[test]
    fn options_are_sorted_and_the_mount_wins() {
        let mounts = mounts("1 0 8:1 / / ro,relatime - ext4 /dev/sda1 rw,discard,stripe=32\n");
        assert_eq!(options(&mounts[0]), "discard,relatime,ro,stripe=32");
    }

    #[test]
    fn the_directory_here_is_found() {
        let here = storage(Path::new(".")).unwrap();
        assert!(Path::new(&here.path).starts_with(&here.mount_point), "{here:?}");
        assert!(here.total_bytes >= here.free_bytes && here.total_bytes > 0);
        assert!(free_bytes(Path::new(".")).unwrap() > 0);
        let record = here.into_record(Some(512), None);
        assert_eq!(record.direct_offset_align_bytes, Some(512));
    }

    #[test]
    fn shared_memory_is_memory() {
        let shm = Path::new("/dev/shm");
        if shm.exists() {
            assert!(storage(shm).unwrap().is_in_memory());
        }
        assert!(!is_in_memory("ext4"));
    }

    #[test]
    fn a_missing_directory_is_named() {
        let error = storage(Path::new("/no/such/place")).unwrap_err().to_string();
        assert!(error.contains("/no/such/place") && error.contains("--path"), "{error}");
    }
}
