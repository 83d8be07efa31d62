//! The mounts of this host, and the mount of a directory.

use std::ffi::OsString;
use std::fs::{self, File};
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use procfs::process::{MountInfo, Process};

/// The mount of an existing directory, and all mounts. The type of the mount is that of [`named_type`].
pub fn find_mount(directory: &Path) -> Result<(MountInfo, Vec<MountInfo>), String> {
    let canonical = fs::canonicalize(directory).map_err(|error| error.to_string())?;
    let mounts = Process::myself().and_then(|process| process.mountinfo()).map_err(|error| error.to_string())?.0;
    let mount = kernel_mount(&canonical, &mounts).or_else(|| longest_prefix_mount(&canonical, &mounts)).cloned();
    let mut mount = mount.ok_or("/proc/self/mountinfo lists no mount above it")?;
    mount.fs_type = named_type(&mount);
    Ok((mount, mounts))
}

/// FUSE programs whose source may be their name alone; of others it is a bucket or a label.
const FUSE_PROGRAMS: [&str; 9] =
    ["s3fs", "gcsfuse", "goofys", "ceph-fuse", "mergerfs", "bindfs", "sshfs", "curlftpfs", "unionfs"];

/// Type of the file system. Some FUSE file systems give the kernel no subtype (`fuse.NAME`), but a source that begins with their name:
/// `NAME#SERVER` by the convention of mount.fuse(8), `JuiceFS:VOLUME`, or the name alone.
#[must_use]
pub fn named_type(mount: &MountInfo) -> String {
    let source = mount_source(mount).map(|source| source.to_string_lossy().into_owned()).unwrap_or_default();
    let is_name = |name: &str| {
        name.starts_with(|c: char| c.is_ascii_alphabetic())
            && name.chars().all(|c| c.is_ascii_alphanumeric() || "._-".contains(c))
    };
    let name = match source.split_once('#') {
        Some((name, _)) => Some(name).filter(|name| is_name(name)),
        None if source.starts_with("JuiceFS:") => Some("juicefs"),
        None => Some(source.as_str()).filter(|name| FUSE_PROGRAMS.contains(name)),
    };
    match name {
        Some(name) if mount.fs_type == "fuse" => format!("fuse.{name}"),
        _ => mount.fs_type.clone(),
    }
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

    /// Lines of real mounts, and sources that are no names.
    #[test]
    fn fuse_is_named_by_its_source() {
        for (mount, expected) in [
            ("fuse mfs\\04310.77.0.1:9421", "fuse.mfs"),
            ("fuse.glusterfs host1:/beff", "fuse.glusterfs"),
            ("fuse s3fs", "fuse.s3fs"),
            ("fuse JuiceFS:myjfs", "fuse.juicefs"),
            ("fuse.juicefs JuiceFS:myjfs", "fuse.juicefs"),
            ("fuse curlftpfs\\043ftp://host/", "fuse.curlftpfs"),
            ("fuse bucket-of-mine", "fuse"),
            ("fuse.mergerfs a:b", "fuse.mergerfs"),
            ("fuseblk /dev/sda1", "fuseblk"),
            ("fuse /dev/fuse", "fuse"),
            ("fuse fuse", "fuse"),
            ("fuse none", "fuse"),
            ("fuse user@host:/data", "fuse"),
            ("fuse host:/data", "fuse"),
            ("fuse a\\040b", "fuse"),
            ("fuse \\043x", "fuse"),
            ("ext4 s3fs", "ext4"),
            ("nfs4 mfs\\043x", "nfs4"),
        ] {
            let line =
                format!("268 159 0:59 / /mnt rw,nosuid,nodev,relatime - {mount} rw,user_id=0,group_id=0,allow_other\n");
            let mounts = MountInfos::from_buf_read(line.as_bytes()).unwrap().0;
            assert_eq!(named_type(&mounts[0]), expected, "{mount}");
        }
    }

    #[test]
    fn octal_escapes_are_undone() {
        assert_eq!(unescape(r"/mnt/my\040disk"), Path::new("/mnt/my disk"));
        assert_eq!(unescape(r"/a\134b\011"), Path::new("/a\\b\t"));
        assert_eq!(unescape(r"/plain\9"), Path::new(r"/plain\9"));
    }
}
