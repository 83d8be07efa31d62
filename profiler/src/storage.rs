//! Identity and path of a file, and the type of its file system, which determines what the kernel's count of read bytes proves.

use std::collections::HashMap;
use std::ffi::CString;
use std::path::Path;
use std::sync::{LazyLock, Mutex, PoisonError};

use beff_trace::{strip_driver_prefix, FileIdentity};

/// Known types by mount id.
static KNOWN_MOUNTS: LazyLock<Mutex<HashMap<u64, String>>> = LazyLock::new(Mutex::default);

/// A file and the type of its file system, if the kernel (since 5.8) reports it.
pub struct FileFacts {
    pub identity: FileIdentity,
    pub fs_type: Option<String>,
}

/// The file at a path. None if it does not exist.
pub fn inspect(path: &str) -> Option<FileFacts> {
    let path = CString::new(path).ok()?;
    // SAFETY: the structure contains numbers only, for which zeros are valid.
    let mut status: libc::statx = unsafe { std::mem::zeroed() };
    let mask = libc::STATX_INO | libc::STATX_BTIME | libc::STATX_MNT_ID;
    // SAFETY: the path is NUL-terminated, the structure is a local variable.
    if unsafe { libc::statx(libc::AT_FDCWD, path.as_ptr(), 0, mask, &raw mut status) } != 0 {
        return None;
    }
    let created_unix_ns = match status.stx_mask & libc::STATX_BTIME {
        0 => 0,
        _ => (status.stx_btime.tv_sec as u64).wrapping_mul(1_000_000_000) + u64::from(status.stx_btime.tv_nsec),
    };
    let device = libc::makedev(status.stx_dev_major, status.stx_dev_minor);
    let mount = (status.stx_mask & libc::STATX_MNT_ID != 0).then_some(status.stx_mnt_id);
    Some(FileFacts {
        identity: FileIdentity { device, inode: status.stx_ino, created_unix_ns },
        fs_type: mount.and_then(fs_type),
    })
}

fn fs_type(mount: u64) -> Option<String> {
    let mut known = KNOWN_MOUNTS.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(kind) = known.get(&mount) {
        return Some(kind.clone());
    }
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").ok()?;
    let kind = fs_type_of_mount(&mounts, mount)?.to_owned();
    known.insert(mount, kind.clone());
    Some(kind)
}

/// The absolute path of a file name of MPI, without symbolic links in its directory. None if its directory does not exist.
pub fn name_path(name: &str) -> Option<String> {
    link_path(Path::new(strip_driver_prefix(name)))
}

/// The absolute path of a file of MPI without symbolic links, or the path of its name if it does not exist.
pub fn file_path(name: &str) -> Option<String> {
    target_path(Path::new(strip_driver_prefix(name)))
}

/// The absolute path of a name, without symbolic links in its directory. None if its directory does not exist.
pub fn link_path(name: &Path) -> Option<String> {
    let directory = name.parent().filter(|directory| !directory.as_os_str().is_empty()).unwrap_or(Path::new("."));
    directory.canonicalize().ok()?.join(name.file_name()?).into_os_string().into_string().ok()
}

/// The absolute path of a file without symbolic links, or the path of its name if it does not exist.
pub fn target_path(name: &Path) -> Option<String> {
    match name.canonicalize() {
        Ok(path) => path.into_os_string().into_string().ok(),
        Err(_) => link_path(name),
    }
}

/// The type after ` - ` in the line of the mount id: proc_pid_mountinfo(5).
fn fs_type_of_mount(mounts: &str, mount: u64) -> Option<&str> {
    let number = mount.to_string();
    let line = mounts.lines().find(|line| line.split(' ').next() == Some(&number))?;
    line.split_once(" - ")?.1.split(' ').next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_system_type_follows_the_dash() {
        let mounts = "2 1 0:3 / /a rw shared:1 - ext4 /dev/a rw\n22 1 0:4 /sub /b rw - nfs4 host:/ rw\n";
        assert_eq!(
            [fs_type_of_mount(mounts, 2), fs_type_of_mount(mounts, 22), fs_type_of_mount(mounts, 1)],
            [Some("ext4"), Some("nfs4"), None]
        );
        assert_eq!(inspect("/proc/self/stat").unwrap().fs_type.as_deref(), Some("proc"));
        assert!(inspect("/nowhere/f").is_none());
    }

    #[test]
    fn a_file_has_one_path_by_whatever_name() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().canonicalize().unwrap();
        let at = |name: &str| root.join(name).to_str().unwrap().to_owned();
        std::fs::create_dir(at("d")).unwrap();
        std::fs::write(at("d/f"), "").unwrap();
        std::fs::hard_link(at("d/f"), at("twin")).unwrap();
        std::os::unix::fs::symlink("d/f", at("link")).unwrap();
        std::os::unix::fs::symlink("d", at("e")).unwrap();
        std::os::unix::fs::symlink("d/new", at("dangling")).unwrap();
        for name in ["d/f", "e/f", "link", "d/../e/./f"] {
            assert_eq!(file_path(&at(name)), Some(at("d/f")), "{name}");
            assert_eq!(file_path(&format!("ufs:{}", at(name))), Some(at("d/f")), "{name}");
        }
        // A deletion removes the link.
        assert_eq!((name_path(&at("link")), name_path(&at("e/f"))), (Some(at("link")), Some(at("d/f"))));
        assert_eq!((file_path(&at("e/new")), file_path(&at("none/new"))), (Some(at("d/new")), None));
        let identity = |name: &str| inspect(&at(name)).unwrap().identity;
        assert!(identity("link") == identity("twin") && identity("d") != identity("d/f"));
        assert!(inspect(&at("dangling")).is_none());
    }
}
