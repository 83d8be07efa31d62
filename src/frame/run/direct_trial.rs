//! A trial of direct I/O on a file of the run, for file systems that report no alignment (STATX_DIOALIGN): the smallest alignment of
//! offsets, lengths and memory that is accepted, returns the data written, and bypasses the page cache.
//!
//! Each alignment is tried in a range of its own: a buffered read must bring its pages into the page cache, and advice must drop them.
//! Then neither a direct read nor a direct write may leave pages there. Before the write the pages are mapped: where a file system
//! replaces the direct write by a buffered one, it drops the pages it has written, but cannot drop mapped ones. See `verdict`.

mod verdict;

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use beff_backends::FilePath;
use beff_ffi::page_cache::MappedPages;
use nix::errno::Errno;
use nix::fcntl::{posix_fadvise, OFlag, PosixFadviseAdvice};

use self::verdict::{judge, smallest_usable, unprovable_reason, Access, Fetches, Observation, Pages};
use crate::frame::records::{DirectAlignBasis, StorageRecord};
use crate::frame::system::memory::process_io;
use crate::frame::system::residency;

/// Largest alignment that a user may request: that of the transfer buffers and of the period of the data.
pub const MAX_OPTION_BYTES: u64 = 4 << 10;

/// Largest alignment that is tried: the largest page size.
const MAX_ALIGN_BYTES: u64 = 64 << 10;

const OFFSET_ALIGNS: [u64; 9] = [1, 512, 1 << 10, 2 << 10, 4 << 10, 8 << 10, 16 << 10, 32 << 10, MAX_ALIGN_BYTES];

/// Transfer buffers are aligned to the last.
const MEMORY_ALIGNS: [u64; 12] = [1, 4, 8, 16, 32, 64, 128, 256, 512, 1 << 10, 2 << 10, MAX_OPTION_BYTES];

/// Range of one alignment: an access of the largest one at an odd multiple of it fits.
const SLOT_BYTES: u64 = 2 * MAX_ALIGN_BYTES;

const SLOTS: u64 = (OFFSET_ALIGNS.len() + MEMORY_ALIGNS.len()) as u64;

/// Reads of one range whose fetches are counted.
const COUNTED_READS: usize = 3;

/// Tries direct I/O on a new file at `path`, removes it, and sets the alignment of `storage`. `option_bytes`: the only alignment of offsets
/// and lengths to try.
pub fn determine_alignment(path: &FilePath, storage: &mut StorageRecord, option_bytes: Option<u64>) {
    let result = TrialFile::create(path).and_then(|mut file| file.alignments(&storage.fs_type, option_bytes));
    // The run directory is removed in any case.
    let _ = path.remove();
    let (mut align, mut basis) = (None, DirectAlignBasis::NotDirect);
    let text = match result {
        Err(reason) => reason,
        Ok(found) => {
            align = Some((found.offset_bytes, found.memory_bytes));
            basis = match (option_bytes, found.is_proven) {
                (None, true) => DirectAlignBasis::TrialProven,
                (None, false) => DirectAlignBasis::TrialUnproven,
                (Some(_), true) => DirectAlignBasis::OptionProven,
                (Some(_), false) => DirectAlignBasis::OptionUnproven,
            };
            match (found.is_proven, unprovable_reason(&storage.fs_type)) {
                (true, _) => "reads and writes of a trial left no pages in the page cache".to_owned(),
                (false, Some(why)) => format!("accepted, bypass unproven: {why}"),
                (false, None) => "accepted, bypass unproven: the residency of pages could not be determined".to_owned(),
            }
        }
    };
    storage.direct_offset_align_bytes = align.map(|(offset, _)| offset);
    storage.direct_memory_align_bytes = align.map(|(_, memory)| memory);
    storage.direct_align_basis = Some(basis);
    storage.direct_trial = Some(text);
}

struct FoundAlign {
    offset_bytes: u64,
    memory_bytes: u64,
    is_proven: bool,
}

struct TrialFile {
    buffered: File,
    direct: File,
    memory: Vec<u8>,
}

/// One access; the memory has exactly this alignment.
#[derive(Clone, Copy)]
struct Range {
    offset: u64,
    len: usize,
    memory_align_bytes: u64,
}

impl TrialFile {
    fn create(path: &FilePath) -> Result<Self, String> {
        let failed =
            |what: &'static str| move |e: io::Error| format!("the file of the trial of direct I/O: {what}: {e}");
        let buffered = path.create().map_err(failed("create"))?;
        let content: Vec<u8> = (0..SLOT_BYTES * SLOTS).map(first_byte).collect();
        buffered.write_all_at(&content, 0).map_err(failed("write"))?;
        buffered.sync_all().map_err(failed("fsync"))?;
        // Without read-ahead, which would load pages of other ranges. A refusal shows in the residency.
        let _ = posix_fadvise(&buffered, 0, 0, PosixFadviseAdvice::POSIX_FADV_RANDOM);
        let direct = path.open(OFlag::O_RDWR | OFlag::O_DIRECT).map_err(|e| {
            format!(
                "the file system reports no alignment for direct I/O, and refuses to open a file with O_DIRECT: {e}"
            )
        })?;
        Ok(Self { buffered, direct, memory: vec![0; (SLOT_BYTES + 2 * MAX_ALIGN_BYTES) as usize] })
    }

    fn alignments(&mut self, fs_type: &str, option_bytes: Option<u64>) -> Result<FoundAlign, String> {
        let own = option_bytes.map(|bytes| [bytes]);
        let candidates = own.as_ref().map_or(OFFSET_ALIGNS.as_slice(), |own| own.as_slice());
        let mut slots = (0..SLOTS).map(|slot| slot * SLOT_BYTES);
        let mut observe = |align_bytes: u64, memory_align_bytes: u64, exact: bool| {
            let begin = slots.next().unwrap_or(0);
            let (offset, len) = if exact { (begin + align_bytes, align_bytes) } else { (begin, MAX_ALIGN_BYTES) };
            judge(&self.observe(Range { offset, len: len as usize, memory_align_bytes }), fs_type)
        };
        let most_aligned = MEMORY_ALIGNS[MEMORY_ALIGNS.len() - 1];
        let (offset_bytes, is_proven) = smallest_usable(candidates, |bytes| observe(bytes, most_aligned, true))?;
        // Longer than a page: a process behind FUSE may refuse what its own memory does not fit.
        let (memory_bytes, memory_proven) =
            smallest_usable(&MEMORY_ALIGNS, |memory_bytes| observe(offset_bytes, memory_bytes, false)).map_err(|why| {
                format!("multiples of {offset_bytes} bytes are accepted, but {MAX_ALIGN_BYTES} bytes at once are not: {why} of memory")
            })?;
        Ok(FoundAlign { offset_bytes, memory_bytes, is_proven: is_proven && memory_proven })
    }

    fn observe(&mut self, range: Range) -> Observation {
        let is_visible = self.pages_come_and_go(range);
        let read = self.read_direct(range, first_byte).map(|()| self.pages(range, is_visible));
        let fetches = if read.is_ok() { self.counted_fetches(range) } else { Fetches::Unknown };
        let write = self.write(range, is_visible);
        Observation { read: outcome(read), write: outcome(write), fetches }
    }

    /// True if a buffered read brings the pages of a range into the page cache, and advice drops them.
    fn pages_come_and_go(&mut self, range: Range) -> bool {
        let memory = &mut self.memory[..range.len];
        let came =
            self.buffered.read_exact_at(memory, range.offset).is_ok() && self.resident(range).is_some_and(|b| b > 0);
        self.drop_pages();
        came && self.resident(range) == Some(0)
    }

    /// Writes other data directly while the pages are mapped, and reads it back through both descriptors.
    fn write(&mut self, range: Range, is_visible: bool) -> Result<Pages, AccessError> {
        let mapped = MappedPages::load(&self.buffered, range.offset, range.len as u64).ok();
        let is_visible = is_visible && mapped.is_some() && self.resident(range).is_some_and(|bytes| bytes > 0);
        let (file, memory) = (&self.direct, window(&mut self.memory, range));
        memory.iter_mut().zip(range.offset..).for_each(|(byte, at)| *byte = !first_byte(at));
        transfer(range.len, || file.write_at(memory, range.offset))?;
        let pages = self.pages(range, is_visible);
        drop(mapped);
        self.drop_pages();
        let (file, memory) = (&self.buffered, &mut self.memory[..range.len]);
        transfer(range.len, || file.read_at(memory, range.offset))?;
        compare(memory, range.offset, |at| !first_byte(at))?;
        self.drop_pages();
        self.read_direct(range, |at| !first_byte(at))?;
        Ok(pages)
    }

    fn read_direct(&mut self, range: Range, expected: impl Fn(u64) -> u8) -> Result<(), AccessError> {
        let (file, memory) = (&self.direct, window(&mut self.memory, range));
        memory.fill(0);
        transfer(range.len, || file.read_at(memory, range.offset))?;
        compare(memory, range.offset, expected)
    }

    fn counted_fetches(&mut self, range: Range) -> Fetches {
        let mut least = None;
        for _ in 0..COUNTED_READS {
            let Some(before) = process_io() else { return Fetches::Unknown };
            let read = self.read_direct(range, first_byte);
            let (Some(after), Ok(())) = (process_io(), read) else { return Fetches::Unknown };
            let bytes = after.read_bytes.saturating_sub(before.read_bytes);
            least = Some(least.map_or(bytes, |least: u64| least.min(bytes)));
        }
        match least {
            Some(0) => Fetches::None,
            Some(bytes) if bytes >= range.len as u64 => Fetches::Each,
            _ => Fetches::Unknown,
        }
    }

    fn pages(&self, range: Range, is_visible: bool) -> Pages {
        match self.resident(range) {
            Some(bytes) if bytes > 0 => Pages::Resident { bytes },
            Some(_) if is_visible => Pages::Absent,
            _ => Pages::Unknown,
        }
    }

    fn resident(&self, range: Range) -> Option<u64> {
        let bytes = range.offset..range.offset + range.len as u64;
        residency::resident_bytes(&self.buffered, &bytes).ok().map(|(bytes, _)| bytes)
    }

    fn drop_pages(&self) {
        // A failure shows in the residency.
        let _ = residency::drop_file_pages(&self.buffered);
    }
}

enum AccessError {
    Refused,
    Failed(String),
}

fn outcome(result: Result<Pages, AccessError>) -> Access {
    match result {
        Ok(pages) => Access::Done(pages),
        Err(AccessError::Refused) => Access::Refused,
        Err(AccessError::Failed(reason)) => Access::Failed(reason),
    }
}

/// A call that must transfer all its bytes at once.
fn transfer(len: usize, mut call: impl FnMut() -> io::Result<usize>) -> Result<(), AccessError> {
    loop {
        match call() {
            Ok(bytes) if bytes == len => return Ok(()),
            Ok(bytes) => return Err(AccessError::Failed(format!("{bytes} of {len} bytes were transferred"))),
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => {
                let refused = [Errno::EINVAL, Errno::EOPNOTSUPP].map(|errno| Some(errno as i32));
                let is_refused = refused.contains(&e.raw_os_error());
                return Err(if is_refused { AccessError::Refused } else { AccessError::Failed(e.to_string()) });
            }
        }
    }
}

fn compare(bytes: &[u8], offset: u64, expected: impl Fn(u64) -> u8) -> Result<(), AccessError> {
    match bytes.iter().zip(offset..).find(|(byte, at)| **byte != expected(*at)) {
        None => Ok(()),
        Some((_, at)) => Err(AccessError::Failed(format!("the byte at offset {at} is not the one written"))),
    }
}

fn first_byte(at: u64) -> u8 {
    (at % 251) as u8
}

/// Memory of exactly the alignment of the range.
fn window(memory: &mut [u8], range: Range) -> &mut [u8] {
    let align = range.memory_align_bytes as usize;
    let address = memory.as_ptr() as usize;
    let begin = align.wrapping_sub(address) & (2 * align - 1);
    &mut memory[begin..begin + range.len]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::system::storage;

    #[test]
    fn memory_has_exactly_the_alignment() {
        let mut memory = vec![0_u8; 3 * 8192];
        for align in MEMORY_ALIGNS {
            let bytes = window(&mut memory, Range { offset: 0, len: 4096, memory_align_bytes: align });
            assert_eq!((bytes.as_ptr() as u64).trailing_zeros(), align.trailing_zeros(), "{align}");
        }
    }

    /// On the file system of the source: where statx reports an alignment, the trial finds it, or a smaller one.
    #[test]
    fn the_trial_agrees_with_statx() {
        let directory = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        let path = FilePath::of(&directory.path().join("trial.dat")).unwrap();
        let reported = storage::storage_record(directory.path()).unwrap();
        let mut found = reported.clone();
        determine_alignment(&path, &mut found, None);
        assert!(!path.exists());
        let text = found.direct_trial.clone().unwrap();
        let Some(offset_bytes) = reported.direct_offset_align_bytes else {
            assert_ne!(found.direct_align_basis, Some(DirectAlignBasis::Statx), "{text}");
            return;
        };
        assert!(found.direct_offset_align_bytes.unwrap() <= offset_bytes, "{found:?}");
        assert!(found.direct_memory_align_bytes <= reported.direct_memory_align_bytes.max(Some(512)), "{found:?}");
        if unprovable_reason(&found.fs_type).is_none() {
            assert_eq!(found.direct_align_basis, Some(DirectAlignBasis::TrialProven), "{text}");
        }
        determine_alignment(&path, &mut found, Some(MAX_ALIGN_BYTES));
        assert_eq!(found.direct_offset_align_bytes, Some(MAX_ALIGN_BYTES));
        assert!(matches!(
            found.direct_align_basis,
            Some(DirectAlignBasis::OptionProven | DirectAlignBasis::OptionUnproven)
        ));
        if offset_bytes > 1 {
            determine_alignment(&path, &mut found, Some(1));
            assert_eq!(found.direct_align_basis, Some(DirectAlignBasis::NotDirect), "{found:?}");
            assert_eq!(found.direct_offset_align_bytes, None);
            assert!(found.direct_trial.unwrap().contains("refuses"));
        }
    }

    #[test]
    fn files_in_memory_are_not_direct() {
        let shm = std::path::Path::new("/dev/shm");
        let Ok(directory) = tempfile::tempdir_in(shm) else { return println!("SKIPPED: no /dev/shm") };
        let mut storage = storage::storage_record(directory.path()).unwrap();
        let path = FilePath::of(&directory.path().join("trial.dat")).unwrap();
        for option_bytes in [None, Some(4096)] {
            determine_alignment(&path, &mut storage, option_bytes);
            assert_eq!(storage.direct_align_basis, Some(DirectAlignBasis::NotDirect), "{storage:?}");
            assert_eq!(storage.direct_offset_align_bytes, None);
        }
    }

    #[test]
    fn a_trial_without_a_file_is_no_direct_io() {
        let mut storage = crate::frame::records::fixture::storage();
        determine_alignment(&FilePath::unbacked("/nowhere/trial.dat"), &mut storage, None);
        assert_eq!(storage.direct_align_basis, Some(DirectAlignBasis::NotDirect));
        assert!(storage.direct_trial.unwrap().contains("create"));
    }
}
