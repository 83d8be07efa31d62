//! What of a file is in the page cache of this host, and how to get it out.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::ops::Range;

use beff_ffi::linux;
use nix::fcntl::{posix_fadvise, PosixFadviseAdvice};

use super::storage::is_in_memory;

/// Linux drops clean pages of all files when this is written to it; see proc_sys_vm(5).
const DROP_CACHES: &str = "/proc/sys/vm/drop_caches";

/// How residency was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum By {
    /// cachestat(2).
    CacheStat,
    /// mincore(2), where the kernel has no cachestat.
    Mincore,
}

impl By {
    /// The name of the call.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::CacheStat => "cachestat",
            Self::Mincore => "mincore",
        }
    }
}

/// Why the page cache tells nothing about files of this type; None: it does.
#[must_use]
pub fn untold(fs_type: &str) -> Option<String> {
    match fs_type {
        memory if is_in_memory(memory) => Some(format!("{memory} lives in memory")),
        "overlay" | "aufs" => Some(format!("not trustworthy on {fs_type}: the pages are those of the layer below")),
        "zfs" => Some("zfs caches outside the page cache (ARC)".into()),
        "gpfs" => Some("gpfs caches outside the page cache (page pool)".into()),
        _ => None,
    }
}

/// Bytes of `range` that are in the page cache, at most those that exist in the file, and how that was found.
///
/// # Errors
/// Why neither call tells, both causes named.
pub fn resident_bytes(file: &File, range: &Range<u64>) -> Result<(u64, By), String> {
    let existing = existing_bytes(file, range)?;
    if existing == 0 {
        return Ok((0, By::CacheStat));
    }
    let pages = |bytes: u64| bytes.min(existing);
    let told = linux::cachestat(file, range.start, existing);
    let refused = match told {
        Ok(stat) => return Ok((pages(stat.cached_pages.saturating_mul(linux::page_bytes())), By::CacheStat)),
        Err(e) => e,
    };
    match linux::mincore_resident_bytes(file, range.start, existing) {
        Ok(bytes) => Ok((pages(bytes), By::Mincore)),
        Err(e) => Err(format!("cachestat: {refused}; mincore: {e}")),
    }
}

/// Bytes of `range` that exist in the file.
///
/// # Errors
/// What fstat(2) says.
pub fn existing_bytes(file: &File, range: &Range<u64>) -> Result<u64, String> {
    let length = file.metadata().map_err(|e| format!("fstat: {e}"))?.len();
    Ok(range.end.min(length).saturating_sub(range.start))
}

/// Takes the clean pages of the whole file that nobody has mapped out of the cache, as far as the kernel likes to.
///
/// # Errors
/// What posix_fadvise(2) says.
pub fn drop_file(file: &File) -> io::Result<()> {
    Ok(posix_fadvise(file, 0, 0, PosixFadviseAdvice::POSIX_FADV_DONTNEED)?)
}

/// Takes the clean pages of all files of the host out of the cache. Slows everybody on the host down.
///
/// # Errors
/// Without the right to do it.
pub fn drop_all_files() -> io::Result<()> {
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
        if by == By::CacheStat && bytes == 0 {
            return; // overlay
        }
        assert_eq!(bytes, 100_000);
        assert_eq!(resident_bytes(file, &(100..5000)).unwrap().0, 4900);
        drop_file(file).unwrap();
        assert!(resident_bytes(file, &(0..100_000)).unwrap().0 <= 100_000);
    }

    #[test]
    fn where_the_page_cache_tells_nothing_there_is_a_reason() {
        for fs_type in ["tmpfs", "overlay", "zfs"] {
            assert!(untold(fs_type).unwrap().contains(fs_type));
        }
        for fs_type in ["ext4", "xfs", "btrfs", "nfs4", "lustre"] {
            assert_eq!(untold(fs_type), None);
        }
    }
}
