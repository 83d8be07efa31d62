//! Page-cache residency of a file on this host, and how to drop its pages.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::ops::Range;

use beff_ffi::page_cache;
use nix::fcntl::{posix_fadvise, PosixFadviseAdvice};

use super::storage::is_in_memory;

/// Linux drops clean pages of all files on a write to it; see proc_sys_vm(5).
const DROP_CACHES: &str = "/proc/sys/vm/drop_caches";

/// System call that reported residency.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ResidencySource {
    /// cachestat(2).
    CacheStat,
    /// mincore(2), where the kernel has no cachestat.
    Mincore,
}

impl ResidencySource {
    /// The name of the call.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::CacheStat => "cachestat",
            Self::Mincore => "mincore",
        }
    }
}

/// Reason why the page cache is not meaningful for files of this type; None if it is.
#[must_use]
pub fn unavailable_reason(fs_type: &str) -> Option<String> {
    match fs_type {
        memory if is_in_memory(memory) => Some(format!("{memory} lives in memory")),
        "overlay" | "aufs" => Some(format!("not trustworthy on {fs_type}: the pages are those of the layer below")),
        "zfs" => Some("zfs caches outside the page cache (ARC)".into()),
        "gpfs" => Some("gpfs caches outside the page cache (page pool)".into()),
        _ => None,
    }
}

/// Bytes of `range` in the page cache, at most those that exist in the file, and the call that reported them.
///
/// # Errors
/// Neither call works; both causes are named.
pub fn resident_bytes(file: &File, range: &Range<u64>) -> Result<(u64, ResidencySource), String> {
    let existing = existing_bytes(file, range)?;
    if existing == 0 {
        return Ok((0, ResidencySource::CacheStat));
    }
    let pages = |bytes: u64| bytes.min(existing);
    let result = page_cache::cachestat(file, range.start, existing);
    let refused = match result {
        Ok(stat) => {
            return Ok((pages(stat.cached_pages.saturating_mul(page_cache::page_bytes())), ResidencySource::CacheStat))
        }
        Err(e) => e,
    };
    match page_cache::mincore_resident_bytes(file, range.start, existing) {
        Ok(bytes) => Ok((pages(bytes), ResidencySource::Mincore)),
        Err(e) => Err(format!("cachestat: {refused}; mincore: {e}")),
    }
}

/// Bytes of `range` that exist in the file.
///
/// # Errors
/// Errors of fstat(2).
pub fn existing_bytes(file: &File, range: &Range<u64>) -> Result<u64, String> {
    let length = file.metadata().map_err(|e| format!("fstat: {e}"))?.len();
    Ok(range.end.min(length).saturating_sub(range.start))
}

/// Drops the clean pages of the whole file that are not mapped, as far as the kernel does so.
///
/// # Errors
/// Errors of posix_fadvise(2).
pub fn drop_file_pages(file: &File) -> io::Result<()> {
    Ok(posix_fadvise(file, 0, 0, PosixFadviseAdvice::POSIX_FADV_DONTNEED)?)
}

/// Drops the clean pages of all files of the host. Slows down all its users.
///
/// # Errors
/// Missing privileges.
pub fn drop_all_pages() -> io::Result<()> {
    OpenOptions::new().write(true).open(DROP_CACHES)?.write_all(b"1")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn residency_ends_with_the_file_and_goes_with_its_pages() {
        let mut file = tempfile::NamedTempFile::new_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        file.write_all(&vec![1; 100_000]).unwrap();
        file.as_file().sync_all().unwrap();
        let file = file.as_file();
        assert_eq!(existing_bytes(file, &(40_000..1 << 40)).unwrap(), 60_000);
        assert_eq!(existing_bytes(file, &(1 << 30..1 << 40)).unwrap(), 0);
        assert_eq!(resident_bytes(file, &(1 << 30..1 << 40)).unwrap().0, 0);
        let (bytes, by) = resident_bytes(file, &(0..1 << 40)).unwrap();
        assert!(bytes <= 100_000, "{bytes}");
        if by == ResidencySource::CacheStat && bytes == 0 {
            return; // overlay
        }
        assert_eq!(bytes, 100_000);
        assert_eq!(resident_bytes(file, &(100..5000)).unwrap().0, 4900);
        drop_file_pages(file).unwrap();
        assert!(resident_bytes(file, &(0..100_000)).unwrap().0 <= 100_000);
    }

    #[test]
    fn unavailable_residency_has_a_reason() {
        for fs_type in ["tmpfs", "overlay", "zfs"] {
            assert!(unavailable_reason(fs_type).unwrap().contains(fs_type));
        }
        for fs_type in ["ext4", "xfs", "btrfs", "nfs4", "lustre"] {
            assert_eq!(unavailable_reason(fs_type), None);
        }
    }
}
