//! Blocks for the stores of a batch: a mapping cannot extend a file, and a store without a block raises a signal.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use nix::errno::Errno;
use nix::fcntl::{fallocate, FallocateFlags};
use nix::unistd::{lseek, Whence};

use crate::retry::retry_interrupted;
use crate::{AccessPattern, BackendError, Batch, Result};

static ZEROS: [u8; 64 << 10] = [0; 64 << 10];

/// How the blocks of a pattern are allocated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BlockSource {
    /// Already allocated, or nothing is written.
    Allocated,
    /// fallocate(2) before each batch.
    Fallocate,
    /// Zeros are written before each batch: the file system has no fallocate.
    WriteZeros,
}

impl BlockSource {
    /// Determines what a write needs. Support for fallocate is tested when it first matters.
    pub(super) fn detect(
        file: &File,
        pattern: &AccessPattern,
        has_fallocate: &mut Option<bool>,
        path: &Path,
    ) -> Result<Self> {
        let (begin, end) = pattern.byte_range(Batch { first_call: 0, calls: pattern.max_calls.max(1) });
        let fail = |operation, e| BackendError::from_io(operation, path, Some(begin), &e);
        if has_blocks(file, begin, end).map_err(|e| fail("lseek SEEK_HOLE", e))? {
            return Ok(Self::Allocated);
        }
        let can = match *has_fallocate {
            Some(known) => known,
            None => retry_interrupted(|| supports_fallocate(file, begin)).map_err(|e| fail("fallocate", e))?,
        };
        *has_fallocate = Some(can);
        Ok(if can { Self::Fallocate } else { Self::WriteZeros })
    }

    pub(super) fn description(self) -> &'static str {
        match self {
            Self::Allocated => "blocks allocated",
            Self::Fallocate => "blocks allocated before each batch (fallocate)",
            Self::WriteZeros => "zeros written before each batch (no fallocate here)",
        }
    }
}

/// True if the file extends to `end` without a hole from `begin` on. Without support for holes SEEK_HOLE returns the end of the
/// file.
fn has_blocks(file: &File, begin: u64, end: u64) -> io::Result<bool> {
    match lseek(file, file_offset(begin)?, Whence::SeekHole) {
        Ok(hole) => Ok(u64::try_from(hole).is_ok_and(|hole| hole >= end)),
        // Beyond the end of the file, or SEEK_HOLE is not supported.
        Err(Errno::ENXIO | Errno::EINVAL) => Ok(false),
        Err(e) => Err(e.into()),
    }
}

/// Allocates the first block of the pattern, without changing the length. A full disk decides nothing: the preallocation of the
/// batch reports it.
fn supports_fallocate(file: &File, begin: u64) -> io::Result<bool> {
    let Ok(begin) = file_offset(begin) else { return Ok(true) };
    match fallocate(file, FallocateFlags::FALLOC_FL_KEEP_SIZE, begin, 1) {
        Ok(()) | Err(Errno::ENOSPC | Errno::EDQUOT | Errno::EFBIG) => Ok(true),
        Err(Errno::EOPNOTSUPP | Errno::ENOSYS) => Ok(false),
        // The storage failed, and may not fail again.
        Err(e) => Err(e.into()),
    }
}

/// Allocates the range of `batch`, and extends the file as writing it would.
///
/// Not posix_fallocate: without file-system support, glibc writes a zero into each block that it found to be zero, which would
/// erase a store of another rank in between.
pub(super) fn allocate_blocks(file: &File, pattern: &AccessPattern, batch: Batch, path: &Path) -> Result<()> {
    let (begin, end) = pattern.byte_range(batch);
    let fail = |e: &io::Error| {
        let error = BackendError::from_io("fallocate", path, Some(begin), e);
        BackendError { text: format!("cannot allocate {} bytes: {}", end - begin, error.text), ..error }
    };
    let (from, len) = (file_offset(begin).map_err(|e| fail(&e))?, file_offset(end - begin).map_err(|e| fail(&e))?);
    retry_interrupted(|| Ok(fallocate(file, FallocateFlags::empty(), from, len)?)).map_err(|e| fail(&e))
}

/// Writes zeros into this rank's chunks of `batch` only: concurrent stores of other ranks stay.
pub(super) fn write_zeros(file: &File, pattern: &AccessPattern, batch: Batch, path: &Path) -> Result<()> {
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

fn file_offset(bytes: u64) -> io::Result<i64> {
    i64::try_from(bytes).map_err(|_| io::Error::from_raw_os_error(libc::EFBIG))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{interleaved_pattern, scratch};

    #[test]
    fn zeros_go_into_own_chunks_alone_and_leave_the_same_length() {
        let dir = scratch();
        let path = dir.path().join("f");
        std::fs::write(&path, vec![7_u8; 70_000]).unwrap();
        let file = File::options().read(true).write(true).open(&path).unwrap();
        let p = AccessPattern {
            chunk_bytes: 66_000,
            stride_bytes: 3 * 66_000,
            base_bytes: 66_000,
            rank_distance_bytes: 66_000,
            origin_bytes: 0,
            chunks_per_call: 1,
            ..interleaved_pattern(1)
        };
        write_zeros(&file, &p, Batch { first_call: 0, calls: 2 }, &path).unwrap();
        let bytes = std::fs::read(&path).unwrap();
        assert_eq!(bytes.len(), 5 * 66_000);
        assert!(bytes[..66_000].iter().all(|b| *b == 7) && bytes[66_000..].iter().all(|b| *b == 0));
    }

    #[test]
    fn allocated_blocks_and_holes_are_detected() {
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
        // A file system without holes has written the blocks.
        let blocks = std::os::unix::fs::MetadataExt::blocks(&file.metadata().unwrap());
        assert_eq!(has_blocks(&file, 0, 1 << 20).unwrap(), blocks * 512 >= 1 << 20);
    }
}
