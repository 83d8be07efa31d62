//! Files for reads as long as the reads need, and the memory of the transfers. Outside every clock.

use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;

use beff_backends::{BackendError, Direction, FilePath, Ring};
use beff_ffi::Comm;

use super::data::Data;
use super::shape::Shape;
use crate::frame::run::pieces::pieces;
use crate::frame::run::reread::{Reread, Stretch};
use beff_stamp::POISON_BYTE;

/// Bytes moved at once.
pub(super) const PIECE_BYTES: u64 = 1 << 20;
/// Shares of a file begin at multiples of this, so that no page belongs to two hosts.
const SHARE_ALIGN_BYTES: u64 = 1 << 16;

/// The share of `rank` in a file of `bytes`.
pub(super) fn share(bytes: u64, rank: u64, ranks: u64) -> Range<u64> {
    let each = bytes.div_ceil(ranks.max(1)).next_multiple_of(SHARE_ALIGN_BYTES);
    let at = |n: u64| (n * each).min(bytes);
    at(rank)..at(rank + 1)
}

/// Makes the file that will be read, or overwritten, each rank its share, or its own file; `fill` lays out what is at an offset.
/// Collective over `group`; every rank makes all barriers, whatever fails.
///
/// # Errors
/// This rank's.
pub(super) fn fill(
    group: &Comm,
    shape: &Shape,
    path: &FilePath,
    fill: impl Fn(u64, &mut [u8]),
) -> Result<(), BackendError> {
    let fail = |operation, e: &io::Error| BackendError::from_io(operation, path, None, e);
    let make = || path.create().map_err(|e| fail("open", &e));
    let (file, range) = if shape.is_private() {
        (make(), 0..shape.file_bytes)
    } else {
        let made = if group.is_root() { Some(make()) } else { None };
        // An error of MPI here comes again in the next agreement.
        let _ = group.barrier();
        let there = made.unwrap_or_else(|| path.open_to_update().map_err(|e| fail("open", &e)));
        (there, share(shape.file_bytes, shape.rank, shape.ranks))
    };
    let file = file?;
    let mut piece = vec![0_u8; PIECE_BYTES as usize];
    for (at, len) in pieces(range, PIECE_BYTES) {
        fill(at, &mut piece[..len]);
        file.write_all_at(&piece[..len], at).map_err(|e| BackendError::from_io("pwrite", path, Some(at), &e))?;
    }
    // Pages that are not written yet cannot be dropped from the cache.
    file.sync_data().map_err(|e| fail("fdatasync", &e))
}

/// What is written stands in the windows, or what is read into is poisoned; the period is one lap.
pub(super) fn lay_out(ring: &mut Ring, shape: &Shape, data: &Data) {
    let len = shape.part.length_bytes as usize;
    if len == 0 {
        ring.set_period_bytes(PIECE_BYTES.min(ring.bytes().len() as u64));
        return;
    }
    let windows_bytes = shape.windows_bytes();
    ring.set_period_bytes(windows_bytes);
    let windows = &mut ring.bytes_mut()[..windows_bytes as usize];
    match shape.transfer.direction {
        Direction::Read => poison(windows),
        Direction::Write => {
            for (window, bytes) in (0..).zip(windows.chunks_exact_mut(len)) {
                data.fill(shape.offset_bytes(window), bytes);
            }
        }
    }
}

/// What is not delivered will be seen.
pub(super) fn poison(windows: &mut [u8]) {
    windows.fill(POISON_BYTE);
}

/// Writes zeros over a range.
///
/// # Errors
/// What opening or writing reports.
pub(super) fn wipe(path: &FilePath, range: Range<u64>) -> io::Result<()> {
    let file = path.open_to_update()?;
    let zeros = vec![0_u8; PIECE_BYTES as usize];
    pieces(range, PIECE_BYTES).try_for_each(|(at, len)| file.write_all_at(&zeros[..len], at))
}

/// Why bytes of a file were not looked at.
#[derive(Debug)]
pub(super) enum Unread {
    /// The file ends at this byte: what should be behind it is lost, as wrong as other bytes would be.
    Ends(u64),
    /// Opening or reading failed: nothing is known of them.
    Failed(BackendError),
}

/// A file whose bytes are looked at, past the page cache where that can be.
#[derive(Clone, Copy, Debug)]
pub(super) struct Source<'a> {
    pub(super) path: &'a FilePath,
    /// Pages that only help this reading are given back.
    pub(super) drops: bool,
}

impl Source<'_> {
    /// Opens it.
    ///
    /// # Errors
    /// What open(2) reports.
    pub(super) fn open(&self) -> Result<Reread, BackendError> {
        Reread::open(self.path, self.drops).map_err(|e| BackendError::from_io("open, to compare", self.path, None, &e))
    }

    /// The `len` bytes of `file`, as opened here, at `offset_bytes`.
    ///
    /// # Errors
    /// Why they are not there.
    pub(super) fn read<'f>(&self, file: &'f mut Reread, offset_bytes: u64, len: usize) -> Result<&'f [u8], Unread> {
        let stretch = file.read(offset_bytes, len);
        let failed = |e| Unread::Failed(BackendError::from_io("pread, to compare", self.path, Some(offset_bytes), &e));
        match stretch.map_err(failed)? {
            Stretch { bytes, in_file } if in_file == len => Ok(bytes),
            Stretch { in_file, .. } => Err(Unread::Ends(offset_bytes + in_file as u64)),
        }
    }
}

/// In words, of bytes that are lost.
pub(super) fn ends_at(length_bytes: u64) -> String {
    format!("the file ends at {length_bytes}")
}

/// Turns one bit over.
///
/// # Errors
/// What opening, reading or writing reports.
#[cfg(feature = "test-hooks")]
pub(super) fn flip(path: &FilePath, offset_bytes: u64) -> io::Result<()> {
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
            let shares: Vec<_> = (0..ranks).map(|rank| share(bytes, rank, ranks)).collect();
            prop_assert_eq!((shares[0].start, shares[shares.len() - 1].end), (0, bytes));
            prop_assert!(shares.windows(2).all(|w| w[0].end == w[1].start && w[0].start <= w[0].end));
        }
    }
}
