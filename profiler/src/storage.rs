//! File system type of a file, which determines what the kernel's count of read bytes proves.

use std::collections::HashMap;
use std::ffi::CString;
use std::sync::{LazyLock, Mutex, PoisonError};

/// Known types by mount id.
static KNOWN_MOUNTS: LazyLock<Mutex<HashMap<u64, String>>> = LazyLock::new(Mutex::default);

/// File system type of `path` in this process. None if the file does not exist, or the kernel (before 5.8) does not report it.
pub fn fs_type(path: &str) -> Option<String> {
    let mount = mount_id(path)?;
    let mut known = KNOWN_MOUNTS.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(kind) = known.get(&mount) {
        return Some(kind.clone());
    }
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").ok()?;
    let kind = fs_type_of_mount(&mounts, mount)?.to_owned();
    known.insert(mount, kind.clone());
    Some(kind)
}

fn mount_id(path: &str) -> Option<u64> {
    let path = CString::new(path).ok()?;
    // SAFETY: the structure contains numbers only, for which zeros are valid.
    let mut status: libc::statx = unsafe { std::mem::zeroed() };
    // SAFETY: the path is NUL-terminated, the structure is a local variable.
    let code = unsafe { libc::statx(libc::AT_FDCWD, path.as_ptr(), 0, libc::STATX_MNT_ID, &raw mut status) };
    (code == 0 && status.stx_mask & libc::STATX_MNT_ID != 0).then_some(status.stx_mnt_id)
}

/// The type after ` - ` in the line of the mount id: proc_pid_mountinfo(5).
fn fs_type_of_mount(mounts: &str, mount: u64) -> Option<&str> {
    let number = mount.to_string();
    let line = mounts.lines().find(|line| line.split(' ').next() == Some(&number))?;
    line.split_once(" - ")?.1.split(' ').next()
}

/// The path without ROMIO's driver prefix before a colon.
pub fn strip_driver_prefix(name: &str) -> &str {
    match name.split_once(':') {
        Some((driver, rest)) if driver.len() > 1 && driver.bytes().all(|byte| byte.is_ascii_alphanumeric()) => rest,
        _ => name,
    }
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
        assert_eq!(fs_type("/proc/self/stat").as_deref(), Some("proc"));
        assert_eq!(fs_type("/nowhere/f"), None);
    }
}
