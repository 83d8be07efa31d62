//! Reads a file again for verification: past the page cache where possible, and without effect on later measurements.
//!
//! O_DIRECT is used where statx(2) reports support: the kernel writes dirty pages of the range back first and leaves the cache as it is.
//! Elsewhere reads are buffered, and the pages of the range are dropped before and after. Bytes that were then not resident did not come
//! from memory of this host. Caches of servers and disks are not observable.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;

use beff_backends::{statx, Direction, FilePath};
use beff_ffi::page_cache;
use nix::errno::Errno;
use nix::fcntl::{posix_fadvise, OFlag, PosixFadviseAdvice};

use crate::frame::system::{residency, storage};

/// The page cache manages memory in folios: pages, which have 64 KiB on some machines, or with large folios (XFS, ext4 since Linux 6.16)
/// up to this much, aligned to their size.
const MAX_FOLIO_BYTES: u64 = 2 << 20;

/// A file opened for verification.
#[derive(Debug)]
pub struct VerifyReader {
    file: File,
    /// The same file with O_DIRECT, and the required alignment of offsets and addresses.
    direct: Option<(File, u64)>,
    /// True if pages may be dropped.
    drops_pages: bool,
    /// True if residency is meaningful for this file.
    is_residency_known: bool,
    memory: Vec<u8>,
    past_cache_bytes: u64,
}

/// A range of a file.
#[derive(Clone, Copy, Debug)]
pub struct ReadBlock<'a> {
    /// Content; zeros beyond the end of the file.
    pub bytes: &'a [u8],
    /// Number of bytes that the file has.
    pub in_file: usize,
}

impl VerifyReader {
    /// Opens `path`. With `drops`, pages are dropped before and after reading.
    ///
    /// # Errors
    /// Errors of open(2).
    pub fn open(path: &FilePath, drops: bool) -> io::Result<Self> {
        let file = path.open_to_read()?;
        // On errors: no direct I/O, and unknown residency.
        let align = statx::direct_align(&file).ok().flatten().map(|align| align.direction_bytes(Direction::Read));
        let direct = align.and_then(|align| {
            let opened = path.open(OFlag::O_RDONLY | OFlag::O_DIRECT).ok()?;
            Some((opened, align.max(page_cache::page_bytes())))
        });
        let known = storage::fs_type(path).is_ok_and(|fs_type| residency::unavailable_reason(&fs_type).is_none());
        Ok(Self {
            file,
            direct,
            drops_pages: drops,
            is_residency_known: known,
            memory: Vec::new(),
            past_cache_bytes: 0,
        })
    }

    /// Bytes so far that did not come from the page cache of this host.
    #[must_use]
    pub fn past_cache_bytes(&self) -> u64 {
        self.past_cache_bytes
    }

    /// Reads `len` bytes at `offset`.
    ///
    /// # Errors
    /// Errors of pread(2). The end of the file is not an error.
    pub fn read(&mut self, offset: u64, len: usize) -> io::Result<ReadBlock<'_>> {
        match self.read_direct(offset, len) {
            Some(Ok((start, in_file))) => {
                self.past_cache_bytes += in_file as u64;
                Ok(ReadBlock { bytes: &self.memory[start..start + len], in_file })
            }
            Some(Err(e)) if e.raw_os_error() != Some(Errno::EINVAL as i32) => Err(e),
            // Refused in spite of statx(2), or not possible.
            Some(Err(_)) | None => {
                self.direct = None;
                self.read_buffered(offset, len)
            }
        }
    }

    /// Position of the bytes in the memory, and how many the file has.
    fn read_direct(&mut self, offset: u64, len: usize) -> Option<io::Result<(usize, usize)>> {
        let (file, align) = self.direct.as_ref()?;
        let (align, begin) = (*align as usize, offset / *align * *align);
        let before = (offset - begin) as usize;
        let whole = (before + len).next_multiple_of(align);
        grow(&mut self.memory, whole + align);
        let start = (self.memory.as_ptr() as usize).wrapping_neg() % align;
        let bytes = &mut self.memory[start..start + whole];
        Some(read_full(file, bytes, begin, align).map(|got| (start + before, got.saturating_sub(before).min(len))))
    }

    fn read_buffered(&mut self, offset: u64, len: usize) -> io::Result<ReadBlock<'_>> {
        let range = offset..offset + len as u64;
        self.drop_pages(&range);
        let resident = residency::resident_bytes(&self.file, &range).ok().filter(|_| self.is_residency_known);
        grow(&mut self.memory, len);
        let in_file = read_full(&self.file, &mut self.memory[..len], offset, 1)?;
        if let Some((resident, _)) = resident {
            self.past_cache_bytes += (in_file as u64).saturating_sub(resident);
        }
        self.drop_pages(&range);
        Ok(ReadBlock { bytes: &self.memory[..len], in_file })
    }

    /// The kernel keeps a folio of which only a part is advised: all that the range touches are dropped as a whole.
    fn drop_pages(&self, range: &Range<u64>) {
        let begin = range.start - range.start % MAX_FOLIO_BYTES;
        let len = range.end.next_multiple_of(MAX_FOLIO_BYTES) - begin;
        if let (true, Ok(offset), Ok(len)) = (self.drops_pages, i64::try_from(begin), i64::try_from(len)) {
            // A failure shows in the residency.
            let _ = posix_fadvise(&self.file, offset, len, PosixFadviseAdvice::POSIX_FADV_DONTNEED);
        }
    }
}

fn grow(memory: &mut Vec<u8>, len: usize) {
    if memory.len() < len {
        *memory = vec![0; len];
    }
}

/// Reads until the memory is full or the file ends, and fills the rest with zeros; returns the number of bytes read. A length that is not
/// a multiple of `align` is possible at the end of the file only.
fn read_full(file: &File, bytes: &mut [u8], offset: u64, align: usize) -> io::Result<usize> {
    let mut got = 0;
    while got < bytes.len() {
        match file.read_at(&mut bytes[got..], offset + got as u64) {
            Ok(0) => break,
            Ok(n) => got += n,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
            Err(e) => return Err(e),
        }
        if got % align != 0 {
            break;
        }
    }
    bytes[got..].fill(0);
    Ok(got)
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn any_range_comes_back_and_zeros_behind_the_end() {
        let mut file = tempfile::NamedTempFile::new_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        let content: Vec<u8> = (0..20_001_u32).map(|n| (n % 251) as u8 + 1).collect();
        file.write_all(&content).unwrap();
        let path = FilePath::of(file.path()).unwrap();
        let mut direct = VerifyReader::open(&path, true).unwrap();
        let mut buffered = VerifyReader::open(&path, true).unwrap();
        buffered.direct = None;
        for reread in [&mut direct, &mut buffered] {
            for (offset, len) in
                [(0, 8), (0, 4096), (4096, 4096), (4088, 16), (1, 20_000), (19_000, 3000), (50_000, 10)]
            {
                let stretch = reread.read(offset, len).unwrap();
                let begin = (offset as usize).min(content.len());
                let expected = &content[begin..(begin + len).min(content.len())];
                assert_eq!((stretch.bytes.len(), stretch.in_file), (len, expected.len()), "{offset} {len}");
                assert_eq!(&stretch.bytes[..expected.len()], expected, "{offset} {len}");
                assert!(stretch.bytes[expected.len()..].iter().all(|b| *b == 0));
            }
        }
        let read = 8 + 4096 + 4096 + 16 + 20_000 + 1001;
        if direct.direct.is_some() {
            assert_eq!(direct.past_cache_bytes(), read);
        }
        assert!(buffered.past_cache_bytes() <= read);
    }

    #[test]
    fn pages_that_a_block_touches_are_dropped_as_a_whole() {
        let mut file = tempfile::NamedTempFile::new_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        let bytes = 8 << 20;
        file.write_all(&vec![1; bytes]).unwrap();
        file.as_file().sync_all().unwrap();
        let mut reread = VerifyReader::open(&FilePath::of(file.path()).unwrap(), true).unwrap();
        if !reread.is_residency_known {
            return println!("SKIPPED: page-cache residency is unknown here");
        }
        reread.direct = None;
        for offset in [0, 4096, 8, (3 << 20) - 8] {
            // From a large read, for which the kernel takes large folios.
            read_full(&reread.file, &mut vec![0; bytes], 0, 1).unwrap();
            let resident = |file: &File| residency::resident_bytes(file, &(offset..offset + 16)).unwrap().0;
            assert_eq!(resident(&reread.file), 16);
            let before = reread.past_cache_bytes();
            reread.read(offset, 16).unwrap();
            let found = (resident(&reread.file), reread.past_cache_bytes() - before);
            assert_eq!(found, (0, 16), "at {offset}");
        }
    }
}
