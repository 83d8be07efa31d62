//! Contents of files before reads and overwrites, and of the transfer windows. Never timed.

use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;

use beff_backends::{BackendError, Direction, FilePath, TransferBuffer};
use beff_ffi::Comm;

use super::data::RowData;
use super::geometry::RowGeometry;
use crate::frame::run::file_ranges::split_range;
use crate::frame::run::verify_reader::{ReadBlock, VerifyReader};
use beff_stamp::POISON_BYTE;

pub(super) const BLOCK_BYTES: u64 = 1 << 20;
/// Alignment of the shares of a file, so that no page belongs to two hosts.
const SHARE_ALIGN_BYTES: u64 = 1 << 16;

pub(super) fn file_share(bytes: u64, rank: u64, ranks: u64) -> Range<u64> {
    let each = bytes.div_ceil(ranks.max(1)).next_multiple_of(SHARE_ALIGN_BYTES);
    let at = |n: u64| (n * each).min(bytes);
    at(rank)..at(rank + 1)
}

/// Creates the file that will be read or overwritten; each rank writes its share, or its own file. `fill` generates the data
/// at an offset. Collective over `group`; every rank reaches the barrier, whatever fails.
///
/// # Errors
/// An I/O error of this rank.
pub(super) fn fill(
    group: &Comm,
    shape: &RowGeometry,
    path: &FilePath,
    fill: impl Fn(u64, &mut [u8]),
) -> Result<(), BackendError> {
    let fail = |operation, e: &io::Error| BackendError::from_io(operation, path, None, e);
    let make = || path.create().map_err(|e| fail("open", &e));
    let (file, range) = if shape.is_private() {
        (make(), 0..shape.file_bytes)
    } else {
        let created = if group.is_root() { Some(make()) } else { None };
        // An MPI error here recurs in the next agreement.
        let _ = group.barrier();
        let there = created.unwrap_or_else(|| path.open_to_update().map_err(|e| fail("open", &e)));
        (there, file_share(shape.file_bytes, shape.rank, shape.ranks))
    };
    let file = file?;
    let mut piece = vec![0_u8; BLOCK_BYTES as usize];
    for (at, len) in split_range(range, BLOCK_BYTES) {
        fill(at, &mut piece[..len]);
        file.write_all_at(&piece[..len], at).map_err(|e| BackendError::from_io("pwrite", path, Some(at), &e))?;
    }
    // Dirty pages cannot be dropped from the cache.
    file.sync_data().map_err(|e| fail("fdatasync", &e))
}

/// Fills the windows with the data to write, or poisons them before reads; sets the period to all windows.
pub(super) fn fill_windows(buffer: &mut TransferBuffer, shape: &RowGeometry, data: &RowData) {
    let len = shape.portion.length_bytes as usize;
    if len == 0 {
        buffer.set_period_bytes(BLOCK_BYTES.min(buffer.bytes().len() as u64));
        return;
    }
    let windows_bytes = shape.windows_bytes();
    buffer.set_period_bytes(windows_bytes);
    let windows = &mut buffer.bytes_mut()[..windows_bytes as usize];
    match shape.transfer.direction {
        Direction::Read => poison(windows),
        Direction::Write => {
            for (window, bytes) in (0..).zip(windows.chunks_exact_mut(len)) {
                data.fill(shape.offset_bytes(window), bytes);
            }
        }
    }
}

/// Fills windows with a pattern that exposes bytes that a read does not deliver.
pub(super) fn poison(windows: &mut [u8]) {
    windows.fill(POISON_BYTE);
}

/// Overwrites a range with zeros.
///
/// # Errors
/// Opening or writing failed.
pub(super) fn zero_range(path: &FilePath, range: Range<u64>) -> io::Result<()> {
    let file = path.open_to_update()?;
    let zeros = vec![0_u8; BLOCK_BYTES as usize];
    split_range(range, BLOCK_BYTES).try_for_each(|(at, len)| file.write_all_at(&zeros[..len], at))
}

/// Reason why bytes of a file could not be read back.
#[derive(Debug)]
pub(super) enum ReadbackError {
    /// The file ends at this offset: bytes beyond it are lost, and count as wrong.
    EndOfFile(u64),
    /// Opening or reading failed: the bytes are unknown.
    Failed(BackendError),
}

/// A file for verification, read past the page cache where possible.
#[derive(Clone, Copy, Debug)]
pub(super) struct ReadbackFile<'a> {
    pub(super) path: &'a FilePath,
    /// Drops the pages that only this reading brought into the cache.
    pub(super) drop_pages: bool,
}

impl ReadbackFile<'_> {
    /// # Errors
    /// As open(2).
    pub(super) fn open(&self) -> Result<VerifyReader, BackendError> {
        VerifyReader::open(self.path, self.drop_pages)
            .map_err(|e| BackendError::from_io("open, to compare", self.path, None, &e))
    }

    /// Reads `len` bytes at `offset_bytes` of `file`, which [`Self::open`] returned.
    ///
    /// # Errors
    /// [`ReadbackError`].
    pub(super) fn read<'f>(
        &self,
        file: &'f mut VerifyReader,
        offset_bytes: u64,
        len: usize,
    ) -> Result<&'f [u8], ReadbackError> {
        let stretch = file.read(offset_bytes, len);
        let failed =
            |e| ReadbackError::Failed(BackendError::from_io("pread, to compare", self.path, Some(offset_bytes), &e));
        match stretch.map_err(failed)? {
            ReadBlock { bytes, in_file } if in_file == len => Ok(bytes),
            ReadBlock { in_file, .. } => Err(ReadbackError::EndOfFile(offset_bytes + in_file as u64)),
        }
    }
}

pub(super) fn end_of_file_text(length_bytes: u64) -> String {
    format!("the file ends at {length_bytes}")
}

/// Flips one bit.
///
/// # Errors
/// Opening, reading or writing failed.
#[cfg(feature = "test-hooks")]
pub(super) fn flip_bit(path: &FilePath, offset_bytes: u64) -> io::Result<()> {
    let file = path.open_to_update()?;
    let mut byte = [0];
    file.read_exact_at(&mut byte, offset_bytes)?;
    file.write_all_at(&[byte[0] ^ 0x10], offset_bytes)?;
    file.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn shares_are_all_of_a_file(bytes in 0_u64..1 << 40, ranks in 1_u64..200) {
            let shares: Vec<_> = (0..ranks).map(|rank| file_share(bytes, rank, ranks)).collect();
            prop_assert_eq!((shares[0].start, shares[shares.len() - 1].end), (0, bytes));
            prop_assert!(shares.windows(2).all(|w| w[0].end == w[1].start && w[0].start <= w[0].end));
        }
    }
}
