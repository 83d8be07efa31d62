//! Blocks for what a batch will store: a mapping cannot make a file longer, and a store that finds no block is a signal
//! instead of an error.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use nix::errno::Errno;
use nix::fcntl::{fallocate, FallocateFlags};
use nix::unistd::{lseek, Whence};

use crate::patience::uninterrupted;
use crate::{BackendError, Batch, Pattern, Result};

/// Written where blocks cannot be reserved.
static ZEROS: [u8; 64 << 10] = [0; 64 << 10];

/// Where the blocks of a pattern come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Room {
    /// The file has them already, or nothing is written.
    There,
    /// fallocate(2) before each batch.
    Reserve,
    /// Zeros are written before each batch: the file system has no fallocate.
    Zeros,
}

impl Room {
    /// What a write of this pattern needs. Whether the file system can reserve is found out where it matters first.
    pub(super) fn find(file: &File, pattern: &Pattern, has_fallocate: &mut Option<bool>, path: &Path) -> Result<Self> {
        let (begin, end) = pattern.reach(Batch { first_call: 0, calls: pattern.max_calls.max(1) });
        let fail = |operation, e| BackendError::from_io(operation, path, Some(begin), &e);
        if has_blocks(file, begin, end).map_err(|e| fail("lseek SEEK_HOLE", e))? {
            return Ok(Self::There);
        }
        let can = match *has_fallocate {
            Some(known) => known,
            None => uninterrupted(|| can_reserve(file, begin)).map_err(|e| fail("fallocate", e))?,
        };
        *has_fallocate = Some(can);
        Ok(if can { Self::Reserve } else { Self::Zeros })
    }

    /// For the report of the pattern.
    pub(super) fn as_told(self) -> &'static str {
        match self {
            Self::There => "blocks are there",
            Self::Reserve => "blocks reserved before each batch (fallocate)",
            Self::Zeros => "zeros written before each batch (no fallocate here)",
        }
    }
}

/// True if the file has no hole between `begin` and `end`, and is that long. A file system that cannot tell holes reports
/// its end as the first one.
fn has_blocks(file: &File, begin: u64, end: u64) -> io::Result<bool> {
    match lseek(file, position(begin)?, Whence::SeekHole) {
        Ok(hole) => Ok(u64::try_from(hole).is_ok_and(|hole| hole >= end)),
        // Begins behind the end of the file; or the question is not known.
        Err(Errno::ENXIO | Errno::EINVAL) => Ok(false),
        Err(e) => Err(e.into()),
    }
}

/// Asks for the one block that every write of the pattern needs, without a change of the length. A full disk is no answer:
/// it is told when the batch needs its room.
fn can_reserve(file: &File, begin: u64) -> io::Result<bool> {
    let Ok(begin) = position(begin) else { return Ok(true) };
    match fallocate(file, FallocateFlags::FALLOC_FL_KEEP_SIZE, begin, 1) {
        Ok(()) | Err(Errno::ENOSPC | Errno::EDQUOT | Errno::EFBIG) => Ok(true),
        Err(Errno::EOPNOTSUPP | Errno::ENOSYS) => Ok(false),
        // The storage has failed, and may not do so again.
        Err(e) => Err(e.into()),
    }
}

/// Reserves what `batch` reaches, which leaves the file as long as writing it would.
///
/// Not posix_fallocate: where the file system cannot, glibc writes a zero into each block that it has found to be zero,
/// and would so wipe out what another rank has stored there in between.
pub(super) fn reserve(file: &File, pattern: &Pattern, batch: Batch, path: &Path) -> Result<()> {
    let (begin, end) = pattern.reach(batch);
    let fail = |e: &io::Error| {
        let error = BackendError::from_io("fallocate", path, Some(begin), e);
        BackendError { text: format!("cannot reserve {} bytes: {}", end - begin, error.text), ..error }
    };
    let (from, len) = (position(begin).map_err(|e| fail(&e))?, position(end - begin).map_err(|e| fail(&e))?);
    uninterrupted(|| Ok(fallocate(file, FallocateFlags::empty(), from, len)?)).map_err(|e| fail(&e))
}

/// Writes zeros where `batch` will store on this rank, and nowhere else: whatever the other ranks do meanwhile stays.
pub(super) fn write_zeros(file: &File, pattern: &Pattern, batch: Batch, path: &Path) -> Result<()> {
    let chunks = batch.first_call * pattern.chunks_per_call..(batch.first_call + batch.calls) * pattern.chunks_per_call;
    for chunk in chunks {
        let mut at = pattern.chunk_offset(chunk);
        let end = at + pattern.chunk_bytes;
        while at < end {
            let len = (end - at).min(ZEROS.len() as u64);
            file.write_all_at(&ZEROS[..len as usize], at)
                .map_err(|e| BackendError::from_io("pwrite of zeros", path, Some(at), &e))?;
            at += len;
        }
    }
    Ok(())
}

fn position(bytes: u64) -> io::Result<i64> {
    i64::try_from(bytes).map_err(|_| io::Error::from_raw_os_error(libc::EFBIG))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{scattered, scratch};

    #[test]
    fn zeros_go_into_own_chunks_alone_and_leave_the_same_length() {
        let dir = scratch();
        let path = dir.path().join("f");
        std::fs::write(&path, vec![7_u8; 70_000]).unwrap();
        let file = File::options().read(true).write(true).open(&path).unwrap();
        let p = Pattern {
            chunk_bytes: 66_000,
            stride_bytes: 3 * 66_000,
            base_bytes: 66_000,
            rank_distance_bytes: 66_000,
            origin_bytes: 0,
            chunks_per_call: 1,
            ..scattered(1)
        };
        write_zeros(&file, &p, Batch { first_call: 0, calls: 2 }, &path).unwrap();
        let bytes = std::fs::read(&path).unwrap();
        assert_eq!(bytes.len(), 5 * 66_000);
        assert!(bytes[..66_000].iter().all(|b| *b == 7) && bytes[66_000..].iter().all(|b| *b == 0));
    }

    #[test]
    fn blocks_are_found_and_holes_too() {
        let dir = scratch();
        let file = File::create_new(dir.path().join("f")).unwrap();
        assert!(!has_blocks(&file, 0, 8).unwrap());
        file.write_all_at(&[1; 4096], 0).unwrap();
        file.write_all_at(&[1; 4096], 1 << 20).unwrap();
        file.sync_all().unwrap();
        assert!(has_blocks(&file, 8, 4096).unwrap());
        assert!(has_blocks(&file, 1 << 20, (1 << 20) + 4096).unwrap());
        assert!(!has_blocks(&file, 1 << 20, (1 << 20) + 4097).unwrap());
        assert!(!has_blocks(&file, 8 << 20, 9 << 20).unwrap());
        // A file system without holes has written them.
        let blocks = std::os::unix::fs::MetadataExt::blocks(&file.metadata().unwrap());
        assert_eq!(has_blocks(&file, 0, 1 << 20).unwrap(), blocks * 512 >= 1 << 20);
    }
}
