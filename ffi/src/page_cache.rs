//! Page-cache residency of files: cachestat(2) and mincore(2), which neither the standard library nor nix offers.

use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::ptr;

/// Number of cachestat(2) on all architectures that use the generic table; elsewhere (mips) the call returns ENOSYS.
const SYS_CACHESTAT: libc::c_long = 451;

/// Bytes that [`mincore_resident_bytes`] maps at once; a multiple of every page size.
const MAX_MAP_BYTES: u64 = 1 << 30;

/// `struct cachestat_range` of linux/mman.h.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
struct CacheStatRange {
    off: u64,
    len: u64,
}

/// State of a file range in the page cache, in pages: `struct cachestat` of linux/mman.h.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheStat {
    /// In the page cache (nr_cache).
    pub cached_pages: u64,
    /// Of these, dirty (nr_dirty).
    pub dirty_pages: u64,
    /// Of these, under writeback (nr_writeback).
    pub writeback_pages: u64,
    /// Evicted, with a shadow entry in the kernel (nr_evicted).
    pub evicted_pages: u64,
    /// Of the evicted ones, those whose refault would indicate memory pressure (nr_recently_evicted).
    pub recently_evicted_pages: u64,
}

const _: () = {
    assert!(size_of::<CacheStatRange>() == 16 && std::mem::offset_of!(CacheStatRange, len) == 8);
    assert!(size_of::<CacheStat>() == 40 && align_of::<CacheStat>() == 8);
    assert!(std::mem::offset_of!(CacheStat, cached_pages) == 0);
    assert!(std::mem::offset_of!(CacheStat, writeback_pages) == 16);
    assert!(std::mem::offset_of!(CacheStat, recently_evicted_pages) == 32);
};

/// Page size in bytes.
#[must_use]
pub fn page_bytes() -> u64 {
    // SAFETY: sysconf reads a constant of the system.
    let bytes = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    // Cannot fail for this name; 4 KiB is the smallest page of any Linux.
    u64::try_from(bytes).ok().filter(|bytes| bytes.is_power_of_two()).unwrap_or(4096)
}

/// Page-cache state of the `len_bytes` bytes at `offset_bytes` (whole pages that they touch; 0: to the end). Linux 6.5.
///
/// # Errors
/// The error of the kernel: ENOSYS before Linux 6.5 or in a sandbox, EOPNOTSUPP on hugetlbfs, EPERM if the caller neither owns the file
/// nor may write it.
pub fn cachestat(file: impl AsFd, offset_bytes: u64, len_bytes: u64) -> io::Result<CacheStat> {
    let range = CacheStatRange { off: offset_bytes, len: len_bytes };
    let mut stat = CacheStat::default();
    // SAFETY: both structures have the kernel's layout (checked above) and outlive the call; the descriptor is open while `file` is
    // borrowed.
    let status = unsafe {
        libc::syscall(
            SYS_CACHESTAT,
            file.as_fd().as_raw_fd(),
            ptr::from_ref(&range),
            ptr::from_mut(&mut stat),
            0 as libc::c_uint,
        )
    };
    if status == 0 {
        Ok(stat)
    } else {
        Err(io::Error::last_os_error())
    }
}

/// Resident bytes among the `len_bytes` bytes at `offset_bytes`, in whole pages: mincore(2) on a mapping that is never touched, so
/// nothing is loaded. The range must not exceed the file.
///
/// The kernel reports all pages as resident to a caller who neither owns the file nor may write it (since Linux 5.2).
///
/// # Errors
/// The error of mmap(2) or mincore(2), e.g. ENODEV if a file system cannot map.
pub fn mincore_resident_bytes(file: impl AsFd, offset_bytes: u64, len_bytes: u64) -> io::Result<u64> {
    let page = page_bytes();
    let end = offset_bytes.saturating_add(len_bytes);
    let mut at = offset_bytes - offset_bytes % page;
    let mut states = Vec::new();
    let mut resident_pages = 0;
    while at < end {
        let bytes = (end - at).min(MAX_MAP_BYTES);
        resident_pages += count_resident_pages(&file, at, bytes, page, &mut states)?;
        at += bytes;
    }
    Ok(resident_pages * page)
}

/// Pages of a file in the page tables of this process. The kernel drops them only for a transfer that bypasses the page cache: advice and
/// the clean-up of a buffered substitute for a direct transfer leave mapped pages.
#[derive(Debug)]
pub struct MappedPages {
    address: *mut libc::c_void,
    len: usize,
}

impl MappedPages {
    /// Maps and loads the pages that contain the `len_bytes` bytes at `offset_bytes`, which must be inside the file. They are never
    /// accessed through the mapping.
    ///
    /// # Errors
    /// The error of mmap(2), e.g. ENODEV if a file system cannot map.
    pub fn load(file: impl AsFd, offset_bytes: u64, len_bytes: u64) -> io::Result<Self> {
        let too_large = |_| io::Error::from(io::ErrorKind::InvalidInput);
        let begin = offset_bytes - offset_bytes % page_bytes();
        let len = usize::try_from(offset_bytes - begin + len_bytes).map_err(too_large)?;
        let offset = libc::off_t::try_from(begin).map_err(too_large)?;
        let flags = libc::MAP_SHARED | libc::MAP_POPULATE;
        // SAFETY: a new mapping at an address of the kernel's choice, which is never read, so the file may shrink.
        let address =
            unsafe { libc::mmap(ptr::null_mut(), len, libc::PROT_READ, flags, file.as_fd().as_raw_fd(), offset) };
        if address == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        Ok(Self { address, len })
    }
}

impl Drop for MappedPages {
    fn drop(&mut self) {
        // SAFETY: the whole mapping, unmapped once; no reference into it exists.
        unsafe { libc::munmap(self.address, self.len) };
    }
}

/// One mapping: `at` is a multiple of the page size, `bytes` at most [`MAX_MAP_BYTES`].
fn count_resident_pages(file: &impl AsFd, at: u64, bytes: u64, page: u64, states: &mut Vec<u8>) -> io::Result<u64> {
    let too_large = |_| io::Error::from(io::ErrorKind::InvalidInput);
    let (len, offset) = (usize::try_from(bytes).map_err(too_large)?, libc::off_t::try_from(at).map_err(too_large)?);
    states.clear();
    states.resize(usize::try_from(bytes.div_ceil(page)).map_err(too_large)?, 0);
    // SAFETY: a new mapping at an address of the kernel's choice, which is never read, so the file may shrink.
    let address = unsafe {
        libc::mmap(ptr::null_mut(), len, libc::PROT_READ, libc::MAP_SHARED, file.as_fd().as_raw_fd(), offset)
    };
    if address == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the new mapping, and `states` has one byte for each of its pages.
    let status = unsafe { libc::mincore(address, len, states.as_mut_ptr().cast()) };
    let error = io::Error::last_os_error();
    // SAFETY: the whole mapping, unmapped once; no reference into it exists.
    unsafe { libc::munmap(address, len) };
    if status != 0 {
        return Err(error);
    }
    // Only the lowest bit is defined.
    Ok(states.iter().filter(|state| **state & 1 == 1).count() as u64)
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::{Read, Seek, Write};

    use super::*;

    /// Its pages are in the cache because they have just been written.
    fn file_with_cached_pages(pages: usize) -> File {
        let path = std::env::temp_dir().join(format!("beff-linux-{}-{pages}", std::process::id()));
        let mut file = File::options().read(true).write(true).create_new(true).open(&path).unwrap();
        std::fs::remove_file(path).unwrap();
        file.write_all(&vec![7; pages * page_bytes() as usize]).unwrap();
        file.sync_all().unwrap();
        file
    }

    #[test]
    fn mincore_counts_written_pages_and_loads_none() {
        let page = page_bytes();
        let mut file = file_with_cached_pages(6);
        assert_eq!(mincore_resident_bytes(&file, 0, 6 * page).unwrap(), 6 * page);
        // All touched pages: from the middle of page 1 to the middle of page 3.
        assert_eq!(mincore_resident_bytes(&file, page + 100, 2 * page).unwrap(), 3 * page);
        assert_eq!(mincore_resident_bytes(&file, 0, 0).unwrap(), 0);
        // SAFETY: advice on an open descriptor.
        let advised = unsafe { libc::posix_fadvise(file.as_raw_fd(), 0, 0, libc::POSIX_FADV_DONTNEED) };
        assert_eq!(advised, 0);
        let left = mincore_resident_bytes(&file, 0, 6 * page).unwrap();
        assert_eq!(mincore_resident_bytes(&file, 0, 6 * page).unwrap(), left, "mincore does not change residency");
        file.rewind().unwrap();
        file.read_to_end(&mut Vec::new()).unwrap();
        assert_eq!(mincore_resident_bytes(&file, 0, 6 * page).unwrap(), 6 * page);
    }

    #[test]
    fn advice_leaves_pages_that_are_mapped() {
        let page = page_bytes();
        let file = file_with_cached_pages(4);
        let mapped = MappedPages::load(&file, page + 1, 1).unwrap();
        // SAFETY: advice on an open descriptor.
        unsafe { libc::posix_fadvise(file.as_raw_fd(), 0, 0, libc::POSIX_FADV_DONTNEED) };
        assert_eq!(mincore_resident_bytes(&file, page, page).unwrap(), page);
        drop(mapped);
        assert!(MappedPages::load(File::open("/").unwrap(), 0, 1).is_err());
    }

    #[test]
    fn cachestat_and_mincore_agree() {
        let page = page_bytes();
        let file = file_with_cached_pages(5);
        match cachestat(&file, 0, 5 * page) {
            // On overlayfs cachestat examines the wrong mapping and reports 0.
            Ok(stat) if stat.cached_pages == 0 => {}
            Ok(stat) => {
                assert_eq!(stat.cached_pages * page, mincore_resident_bytes(&file, 0, 5 * page).unwrap());
                assert_eq!(cachestat(&file, page, page).unwrap().cached_pages, 1);
                assert_eq!(cachestat(&file, 0, 0).unwrap().cached_pages, 5, "0: to the end");
                assert_eq!(cachestat(&file, 100 * page, page).unwrap().cached_pages, 0);
            }
            Err(e) => assert!(e.raw_os_error().is_some_and(|n| [libc::ENOSYS, libc::EPERM].contains(&n)), "{e}"),
        }
    }

    #[test]
    fn what_cannot_be_mapped_is_an_error() {
        let directory = File::open("/").unwrap();
        assert!(mincore_resident_bytes(&directory, 0, 1).is_err());
    }
}
