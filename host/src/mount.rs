//! The mounts of this host, and the mount of a directory.

use std::ffi::OsString;
use std::fs::{self, File};
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use procfs::process::{MountInfo, Process};

/// The mount of an existing directory, and all mounts.
pub fn find_mount(directory: &Path) -> Result<(MountInfo, Vec<MountInfo>), String> {
    let canonical = fs::canonicalize(directory).map_err(|error| error.to_string())?;
    let mounts = Process::myself().and_then(|process| process.mountinfo()).map_err(|error| error.to_string())?.0;
    let mount = kernel_mount(&canonical, &mounts).or_else(|| longest_prefix_mount(&canonical, &mounts)).cloned();
    Ok((mount.ok_or("/proc/self/mountinfo lists no mount above it")?, mounts))
}

/// The mount reported by the kernel for the open directory: exact even where a later mount hides an earlier one.
fn kernel_mount<'a>(path: &Path, mounts: &'a [MountInfo]) -> Option<&'a MountInfo> {
    let directory = File::open(path).ok()?;
    let info = fs::read_to_string(format!("/proc/self/fdinfo/{}", directory.as_raw_fd())).ok()?;
    let id: i32 = info.lines().find_map(|line| line.strip_prefix("mnt_id:"))?.trim().parse().ok()?;
    mounts.iter().find(|mount| mount.mnt_id == id)
}

/// The mount with the longest mount point above `path`; of several on the same point the last, which hides the others.
pub fn longest_prefix_mount<'a>(path: &Path, mounts: &'a [MountInfo]) -> Option<&'a MountInfo> {
    mounts
        .iter()
        .filter(|mount| path.starts_with(mount_point(mount)))
        .max_by_key(|mount| mount_point(mount).components().count())
}

/// Mount point.
pub fn mount_point(mount: &MountInfo) -> PathBuf {
    unescape(&mount.mount_point.to_string_lossy())
}

/// The mounted device or export, if any.
pub fn mount_source(mount: &MountInfo) -> Option<PathBuf> {
    mount.mount_source.as_deref().map(unescape)
}

/// Undoes the octal escapes of /proc/self/mountinfo (`\040` is a blank), see proc_pid_mountinfo(5).
fn unescape(text: &str) -> PathBuf {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut i = 0;
    while i < bytes.len() {
        let octal = (bytes[i] == b'\\').then(|| text.get(i + 1..i + 4)).flatten();
        if let Some(byte) = octal.and_then(|digits| u8::from_str_radix(digits, 8).ok()) {
            out.push(byte);
            i += 4;
        } else {
            out.push(bytes[i]);
            i += 1;
        }
    }
    PathBuf::from(OsString::from_vec(out))
}

#[cfg(test)]
mod tests {
    use procfs::process::MountInfos;
    use procfs::FromBufRead;

    use super::*;

    #[test]
    fn longest_prefix_by_whole_names_and_last_on_top() {
        let text = "1 0 8:1 / / rw - ext4 /dev/sda1 rw\n\
             2 1 0:9 / /data rw - nfs4 host:/x rw\n\
             3 1 0:8 / /my\\040disk rw - xfs /dev/sdb rw\n\
             4 2 0:7 / /data rw - lustre mgs:/y rw\n";
        let mounts = MountInfos::from_buf_read(text.as_bytes()).unwrap().0;
        let fs_type = |path: &str| longest_prefix_mount(Path::new(path), &mounts).unwrap().fs_type.as_str();
        assert_eq!(fs_type("/data/run"), "lustre");
        assert_eq!(fs_type("/database"), "ext4");
        assert_eq!(fs_type("/my disk/a"), "xfs");
    }

    #[test]
    fn octal_escapes_are_undone() {
        assert_eq!(unescape(r"/mnt/my\040disk"), Path::new("/mnt/my disk"));
        assert_eq!(unescape(r"/a\134b\011"), Path::new("/a\\b\t"));
        assert_eq!(unescape(r"/plain\9"), Path::new(r"/plain\9"));
    }
}
