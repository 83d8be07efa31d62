//! Memory beside the windows that reads of whole sectors overwrite, kept while they are in flight.

use std::io;

use memmap2::MmapMut;

use crate::edges::MAX_SECTOR_BYTES;
use crate::walk::Piece;

/// For one piece: at most a sector at its beginning and one at its end.
const SLOT_BYTES: usize = 2 * MAX_SECTOR_BYTES as usize;

/// Room for every slot; pages that are never used are never there.
pub(super) struct Kept(MmapMut);

impl Kept {
    pub(super) fn new(slots: usize) -> io::Result<Self> {
        MmapMut::map_anon(slots * SLOT_BYTES).map(Self)
    }

    /// Keeps what [`Piece::guard`] says of the memory of a piece.
    ///
    /// # Safety
    /// `base` is valid for reads up to the end of the piece, and nothing in flight writes there.
    pub(super) unsafe fn keep(&mut self, slot: usize, base: *const u8, piece: &Piece) {
        let room = &mut self.0[slot * SLOT_BYTES..][..SLOT_BYTES];
        let (before, after) = (usize::from(piece.guard.before), usize::from(piece.guard.after));
        let (first, second) = room.split_at_mut(SLOT_BYTES / 2);
        let (first, second) = (&mut first[..before], &mut second[..after]);
        // SAFETY: both ends lie in the piece, and `room` is memory of its own, whose lengths the slices have checked.
        unsafe {
            let begin = base.add(piece.index);
            first.copy_from_slice(std::slice::from_raw_parts(begin, before));
            second.copy_from_slice(std::slice::from_raw_parts(begin.add(piece.len as usize - after), after));
        }
    }

    /// Puts back what [`Kept::keep`] has kept for this piece.
    ///
    /// # Safety
    /// `base` is valid for writes up to the end of the piece, and nothing in flight touches it.
    pub(super) unsafe fn put_back(&mut self, slot: usize, base: *mut u8, piece: &Piece) {
        let room = &self.0[slot * SLOT_BYTES..][..SLOT_BYTES];
        let (before, after) = (usize::from(piece.guard.before), usize::from(piece.guard.after));
        let (first, second) = room.split_at(SLOT_BYTES / 2);
        // SAFETY: as in `keep`.
        unsafe {
            let begin = base.add(piece.index);
            std::ptr::copy_nonoverlapping(first[..before].as_ptr(), begin, before);
            std::ptr::copy_nonoverlapping(second[..after].as_ptr(), begin.add(piece.len as usize - after), after);
        }
    }
}
