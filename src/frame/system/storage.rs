//! The file system under a directory: mount, space, device.

use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::io;
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::Path;

use beff_backends::statx;
use nix::fcntl::OFlag;
use nix::sys::statvfs::{statvfs, Statvfs};
use procfs::process::MountInfo;

use beff_host::device;
use beff_host::mount::{mount_point, mount_under, source};

use super::keeper::{keeper, Keeper};
use super::SystemError;
use crate::frame::records::StorageRecord;

/// True if files of this file system type live in memory.
#[must_use]
pub fn is_in_memory(fs_type: &str) -> bool {
    keeper(fs_type) == Keeper::Memory
}

/// Finds out what is under the existing directory `path`.
///
/// # Errors
/// If the path does not exist or cannot be reached, or /proc/self/mountinfo does not show its mount.
pub fn storage_record(path: &Path) -> Result<StorageRecord, SystemError> {
    let failed = |cause: String| SystemError {
        operation: "find the file system of",
        subject: path.display().to_string(),
        cause,
        next_step: "Give an existing directory that every rank can reach with --path.",
    };
    let canonical = path.canonicalize().map_err(|error| failed(error.to_string()))?;
    // Looked at and not opened: to open a FIFO waits for somebody else, to open a device may do things.
    if let Some(kind) = other_than_directory(&canonical).map_err(|error| failed(error.to_string()))? {
        return Err(failed(format!("Not a directory: it is {kind}")));
    }
    let align = probe_align(&canonical);
    let (mount, mounts) = mount_under(&canonical).map_err(|cause| no_mounts(path, cause))?;
    let space = statvfs(&canonical).map_err(|error| failed(format!("statvfs: {error}")))?;
    Ok(StorageRecord {
        path: canonical.display().to_string(),
        mount_point: mount_point(&mount).display().to_string(),
        source: source(&mount).map_or_else(|| "none".into(), |source| source.display().to_string()),
        mount_options: options(&mount),
        device: device::device_of(&mount, &mounts),
        total_bytes: bytes(&space, space.blocks()),
        free_bytes: bytes(&space, space.blocks_available()),
        direct_offset_align_bytes: align.map(|(offset, _)| offset),
        direct_memory_align_bytes: align.map(|(_, memory)| memory),
        fs_type: mount.fs_type,
    })
}

/// The path is there, as was seen before: what is missing is /proc.
fn no_mounts(path: &Path, cause: String) -> SystemError {
    SystemError {
        operation: "find the file system of",
        subject: path.display().to_string(),
        cause: format!("/proc/self/mountinfo: {cause}"),
        next_step: "Mount /proc (a container may hide it): what a result rests on is read there.",
    }
}

/// True if the file system does not tell its space: ramfs has no limit, some servers no answer.
#[must_use]
pub fn is_space_untold(storage: &StorageRecord) -> bool {
    storage.total_bytes == 0 && keeper(&storage.fs_type) != Keeper::Unknown
}

/// What stands there instead of a directory; it is not opened.
fn other_than_directory(path: &Path) -> io::Result<Option<&'static str>> {
    let kind = path.metadata()?.file_type();
    let kinds = [
        (kind.is_file(), "a file"),
        (kind.is_fifo(), "a FIFO"),
        (kind.is_socket(), "a socket"),
        (kind.is_block_device(), "a block device"),
        (kind.is_char_device(), "a character device"),
    ];
    let other = kinds.into_iter().find(|(is, _)| *is).map_or("something else", |(_, name)| name);
    Ok((!kind.is_dir()).then_some(other))
}

/// (offset, memory) alignment of direct I/O on files of the directory; None if unknown. STATX_DIOALIGN is answered for
/// regular files only, so a file without a name is asked.
fn probe_align(directory: &Path) -> Option<(u64, u64)> {
    let file = OpenOptions::new().write(true).custom_flags(OFlag::O_TMPFILE.bits()).open(directory).ok()?;
    let align = statx::direct_align(&file).ok()??;
    Some((align.offset_bytes, align.memory_bytes))
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

    #[test]
    fn options_are_sorted_and_the_mount_wins() {
        let text = "1 0 8:1 / / ro,relatime - ext4 /dev/sda1 rw,discard,stripe=32\n";
        let mounts = MountInfos::from_buf_read(text.as_bytes()).unwrap();
        assert_eq!(options(&mounts.0[0]), "discard,relatime,ro,stripe=32");
    }

    #[test]
    fn the_directory_here_is_found() {
        let here = storage_record(Path::new(".")).unwrap();
        assert!(Path::new(&here.path).starts_with(&here.mount_point), "{here:?}");
        assert!(here.total_bytes >= here.free_bytes && here.total_bytes > 0);
        assert!(free_bytes(Path::new(".")).unwrap() > 0);
        let aligned = here.direct_offset_align_bytes.zip(here.direct_memory_align_bytes);
        assert_eq!(aligned, probe_align(Path::new(".")));
    }

    #[test]
    fn shared_memory_is_memory() {
        let shm = Path::new("/dev/shm");
        if shm.exists() {
            assert!(is_in_memory(&storage_record(shm).unwrap().fs_type));
        }
        assert!(!is_in_memory("ext4"));
    }

    #[test]
    fn without_proc_the_path_is_not_to_blame() {
        let error = no_mounts(Path::new("/scratch"), "No such file or directory".into()).to_string();
        assert!(error.contains("/proc/self/mountinfo") && error.contains("Mount /proc"), "{error}");
        assert!(!error.contains("--path"), "{error}");
    }

    #[test]
    fn no_size_at_all_is_no_answer() {
        let of = |fs_type: &str, total_bytes| StorageRecord {
            fs_type: fs_type.into(),
            total_bytes,
            free_bytes: 0,
            ..crate::frame::records::fixture::storage()
        };
        assert!(is_space_untold(&of("ramfs", 0)) && is_space_untold(&of("fuse.sshfs", 0)));
        assert!(!is_space_untold(&of("ext4", 1 << 30)), "full");
        assert!(!is_space_untold(&of("proc", 0)), "no place for files");
    }

    #[test]
    fn what_is_no_directory_is_named_and_not_opened() {
        let dir = tempfile::tempdir().unwrap();
        let fifo = dir.path().join("fifo");
        nix::unistd::mkfifo(&fifo, nix::sys::stat::Mode::S_IRWXU).unwrap();
        std::os::unix::fs::symlink(&fifo, dir.path().join("link")).unwrap();
        let _socket = std::os::unix::net::UnixListener::bind(dir.path().join("socket")).unwrap();
        std::fs::write(dir.path().join("file"), "").unwrap();
        let places = ["fifo", "link", "socket", "file"].map(|name| dir.path().join(name));
        let places = places.iter().map(std::path::PathBuf::as_path).chain([Path::new("/dev/null")]);
        for (path, kind) in places.zip(["a FIFO", "a FIFO", "a socket", "a file", "a character device"]) {
            // A FIFO that were opened would wait here for ever.
            let error = storage_record(path).unwrap_err().to_string();
            assert!(error.contains("Not a directory") && error.contains(kind), "{error}");
        }
    }

    #[test]
    fn a_missing_directory_is_named() {
        let error = storage_record(Path::new("/no/such/place")).unwrap_err().to_string();
        assert!(error.contains("/no/such/place") && error.contains("--path"), "{error}");
    }
}
