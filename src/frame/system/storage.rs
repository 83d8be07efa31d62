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
use beff_host::mount::{find_mount, mount_point, mount_source};

use super::backing_store::{backing_store, BackingStore};
use super::SystemError;
use crate::frame::records::{DirectAlignBasis, StorageRecord};

/// True if files of this file-system type are in memory.
#[must_use]
pub fn is_in_memory(fs_type: &str) -> bool {
    backing_store(fs_type) == BackingStore::Memory
}

/// Examines the file system of the existing directory `path`.
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
    // Examined without opening: to open a FIFO blocks, to open a device may have side effects.
    if let Some(kind) = non_directory_kind(&canonical).map_err(|error| failed(error.to_string()))? {
        return Err(failed(format!("Not a directory: it is {kind}")));
    }
    let align = probe_align(&canonical);
    let (mount, mounts) = find_mount(&canonical).map_err(|cause| mountinfo_error(path, cause))?;
    let space = statvfs(&canonical).map_err(|error| failed(format!("statvfs: {error}")))?;
    Ok(StorageRecord {
        path: canonical.display().to_string(),
        mount_point: mount_point(&mount).display().to_string(),
        source: mount_source(&mount).map_or_else(|| "none".into(), |source| source.display().to_string()),
        mount_options: mount_options(&mount),
        device: device::describe_device(&mount, &mounts),
        total_bytes: block_bytes(&space, space.blocks()),
        free_bytes: block_bytes(&space, space.blocks_available()),
        direct_offset_align_bytes: align.map(|(offset, _)| offset),
        direct_memory_align_bytes: align.map(|(_, memory)| memory),
        direct_align_basis: align.map(|_| DirectAlignBasis::Statx),
        direct_trial: None,
        sheet: Vec::new(),
        fs_type: mount.fs_type,
    })
}

/// Error for a missing /proc; the path itself exists.
fn mountinfo_error(path: &Path, cause: String) -> SystemError {
    SystemError {
        operation: "find the file system of",
        subject: path.display().to_string(),
        cause: format!("/proc/self/mountinfo: {cause}"),
        next_step: "Mount /proc, which a container may hide. In a chroot its root must be a mount: mount --bind ROOT ROOT. Facts of a result are \
                    read there.",
    }
}

/// True if the file system does not report its space, as ramfs, which has no limit, and some servers.
#[must_use]
pub fn is_space_unknown(storage: &StorageRecord) -> bool {
    storage.total_bytes == 0 && backing_store(&storage.fs_type) != BackingStore::Unknown
}

/// Kind of a path that is not a directory; it is not opened.
fn non_directory_kind(path: &Path) -> io::Result<Option<&'static str>> {
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

/// (offset, memory) alignment of direct I/O on files of the directory; None if unknown. STATX_DIOALIGN is reported for regular files
/// only, so an unnamed file is queried.
fn probe_align(directory: &Path) -> Option<(u64, u64)> {
    let file = OpenOptions::new().write(true).custom_flags(OFlag::O_TMPFILE.bits()).open(directory).ok()?;
    let align = statx::direct_align(&file).ok()??;
    Some((align.offset_bytes, align.memory_bytes))
}

/// Type of the file system an existing directory is on.
///
/// # Errors
/// A message if the directory or its mount cannot be reached.
pub fn fs_type(directory: &Path) -> Result<String, String> {
    Ok(find_mount(directory)?.0.fs_type)
}

/// Bytes free for this user in the file system of `path` (f_bavail x f_frsize of statvfs(3)).
///
/// # Errors
/// Errors of statvfs(3).
pub fn free_bytes(path: &Path) -> io::Result<u64> {
    let space = statvfs(path)?;
    Ok(block_bytes(&space, space.blocks_available()))
}

fn block_bytes(space: &Statvfs, blocks: nix::libc::fsblkcnt_t) -> u64 {
    blocks.saturating_mul(space.fragment_size())
}

fn mount_options(mount: &MountInfo) -> String {
    // Options of the mount override those of the file system: a bind mount may be read-only on a writable file system.
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
        assert_eq!(mount_options(&mounts.0[0]), "discard,relatime,ro,stripe=32");
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
        let error = mountinfo_error(Path::new("/scratch"), "No such file or directory".into()).to_string();
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
        assert!(is_space_unknown(&of("ramfs", 0)) && is_space_unknown(&of("fuse.sshfs", 0)));
        assert!(!is_space_unknown(&of("ext4", 1 << 30)), "full");
        assert!(!is_space_unknown(&of("proc", 0)), "no place for files");
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
            // To open a FIFO would block here forever.
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
