//! Reading a file once more to compare it: past the page cache where that can be, and never so that it helps or hinders what is
//! measured later.
//!
//! With O_DIRECT where statx(2) says that the file system does it: the kernel writes dirty pages of the range back first and leaves the
//! cache as it is. Elsewhere through the cache, whose pages of the range are given back before and after. What was then not
//! resident was not answered from this host's memory. What a server or a disk holds in memory, nobody here sees.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use beff_backends::{statx, Direction, FilePath};
use nix::errno::Errno;
use nix::fcntl::{posix_fadvise, OFlag, PosixFadviseAdvice};

use crate::frame::system::{residency, storage};

/// Whole pages are read, of the size that is common.
const PAGE_BYTES: u64 = 4096;

/// A file that is read again.
#[derive(Debug)]
pub struct Reread {
    file: File,
    /// The same with O_DIRECT, and what it wants offsets and addresses to be multiples of.
    direct: Option<(File, u64)>,
    /// Pages may be given back.
    drops: bool,
    /// What the kernel says of the page cache holds for this file.
    told: bool,
    memory: Vec<u8>,
    past_cache_bytes: u64,
}

/// Some bytes of a file.
#[derive(Clone, Copy, Debug)]
pub struct Stretch<'a> {
    /// What is there; zeros behind the end of the file.
    pub bytes: &'a [u8],
    /// How many of them the file has.
    pub in_file: usize,
}

impl Reread {
    /// Opens `path`. With `drops` pages that only help this reading are given back.
    ///
    /// # Errors
    /// What open(2) says.
    pub fn open(path: &FilePath, drops: bool) -> io::Result<Self> {
        let file = path.open_to_read()?;
        // Without an answer: no direct I/O, and no word about the cache.
        let align = statx::direct_align(&file).ok().flatten().map(|align| align.bytes_of(Direction::Read));
        let direct = align.and_then(|align| {
            let opened = path.open(OFlag::O_RDONLY | OFlag::O_DIRECT).ok()?;
            Some((opened, align.max(PAGE_BYTES)))
        });
        let told = storage::fs_type(path).is_ok_and(|fs_type| residency::untold(&fs_type).is_none());
        Ok(Self { file, direct, drops, told, memory: Vec::new(), past_cache_bytes: 0 })
    }

    /// Bytes so far that did not come out of this host's page cache.
    #[must_use]
    pub fn past_cache_bytes(&self) -> u64 {
        self.past_cache_bytes
    }

    /// The `len` bytes at `offset`.
    ///
    /// # Errors
    /// What pread(2) says. The end of the file is none.
    pub fn read(&mut self, offset: u64, len: usize) -> io::Result<Stretch<'_>> {
        match self.read_direct(offset, len) {
            Some(Ok((start, in_file))) => {
                self.past_cache_bytes += in_file as u64;
                Ok(Stretch { bytes: &self.memory[start..start + len], in_file })
            }
            Some(Err(e)) if e.raw_os_error() != Some(Errno::EINVAL as i32) => Err(e),
            // Refused after all, or not possible.
            Some(Err(_)) | None => {
                self.direct = None;
                self.read_buffered(offset, len)
            }
        }
    }

    /// Where the bytes are in the memory, and how many the file has.
    fn read_direct(&mut self, offset: u64, len: usize) -> Option<io::Result<(usize, usize)>> {
        let (file, align) = self.direct.as_ref()?;
        let (align, begin) = (*align as usize, offset / *align * *align);
        let before = (offset - begin) as usize;
        let whole = (before + len).next_multiple_of(align);
        grow(&mut self.memory, whole + align);
        let start = (self.memory.as_ptr() as usize).wrapping_neg() % align;
        let bytes = &mut self.memory[start..start + whole];
        Some(fill(file, bytes, begin, align).map(|got| (start + before, got.saturating_sub(before).min(len))))
    }

    fn read_buffered(&mut self, offset: u64, len: usize) -> io::Result<Stretch<'_>> {
        let range = offset..offset + len as u64;
        self.give_back(offset, len);
        let resident = residency::resident_bytes(&self.file, &range).ok().filter(|_| self.told);
        grow(&mut self.memory, len);
        let in_file = fill(&self.file, &mut self.memory[..len], offset, 1)?;
        if let Some((resident, _)) = resident {
            self.past_cache_bytes += (in_file as u64).saturating_sub(resident);
        }
        self.give_back(offset, len);
        Ok(Stretch { bytes: &self.memory[..len], in_file })
    }

    fn give_back(&self, offset: u64, len: usize) {
        if let (true, Ok(offset), Ok(len)) = (self.drops, i64::try_from(offset), i64::try_from(len)) {
            // What did not work is seen in what stays.
            let _ = posix_fadvise(&self.file, offset, len, PosixFadviseAdvice::POSIX_FADV_DONTNEED);
        }
    }
}

fn grow(memory: &mut Vec<u8>, len: usize) {
    if memory.len() < len {
        *memory = vec![0; len];
    }
}

/// Reads until the memory is full or the file ends; the rest becomes zeros. How much came. A length that is no multiple of `align`
/// is only possible at the end of the file.
fn fill(file: &File, bytes: &mut [u8], offset: u64, align: usize) -> io::Result<usize> {
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
        let mut direct = Reread::open(&path, true).unwrap();
        let mut buffered = Reread::open(&path, true).unwrap();
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
}
