//! On which kind of file system a file is: what the kernel's count of fetched bytes proves follows from it.

use std::collections::HashMap;
use std::ffi::CString;
use std::sync::{LazyLock, Mutex, PoisonError};

/// Kinds by the number of their mount, as far as they were asked for.
static KNOWN: LazyLock<Mutex<HashMap<u64, String>>> = LazyLock::new(Mutex::default);

/// The kind of file system that this process sees `path` on. None: there is no such file, or the kernel (before 5.8) does not tell.
pub fn fs_type(path: &str) -> Option<String> {
    let mount = mount_of(path)?;
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(kind) = known.get(&mount) {
        return Some(kind.clone());
    }
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").ok()?;
    let kind = kind_of(&mounts, mount)?.to_owned();
    known.insert(mount, kind.clone());
    Some(kind)
}

/// Number of the mount that a path leads to (statx(2)).
fn mount_of(path: &str) -> Option<u64> {
    let path = CString::new(path).ok()?;
    // SAFETY: a status is numbers, for which zeros are values.
    let mut status: libc::statx = unsafe { std::mem::zeroed() };
    // SAFETY: the path ends with zero, the status is ours.
    let code = unsafe { libc::statx(libc::AT_FDCWD, path.as_ptr(), 0, libc::STATX_MNT_ID, &raw mut status) };
    (code == 0 && status.stx_mask & libc::STATX_MNT_ID != 0).then_some(status.stx_mnt_id)
}

/// The kind behind ` - ` in the line that begins with the number: proc_pid_mountinfo(5).
fn kind_of(mounts: &str, mount: u64) -> Option<&str> {
    let number = mount.to_string();
    let line = mounts.lines().find(|line| line.split(' ').next() == Some(&number))?;
    line.split_once(" - ")?.1.split(' ').next()
}

/// The path: ROMIO takes the name of a driver before a colon.
pub fn without_driver(name: &str) -> &str {
    match name.split_once(':') {
        Some((driver, rest)) if driver.len() > 1 && driver.bytes().all(|byte| byte.is_ascii_alphanumeric()) => rest,
        _ => name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kind_stands_behind_the_dash_of_the_mount() {
        let mounts = "2 1 0:3 / /a rw shared:1 - ext4 /dev/a rw\n22 1 0:4 /sub /b rw - nfs4 host:/ rw\n";
        assert_eq!([kind_of(mounts, 2), kind_of(mounts, 22), kind_of(mounts, 1)], [Some("ext4"), Some("nfs4"), None]);
        assert_eq!(fs_type("/proc/self/stat").as_deref(), Some("proc"));
        assert_eq!(fs_type("/nowhere/f"), None);
    }
}
