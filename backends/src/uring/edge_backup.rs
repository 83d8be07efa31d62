//! Backup of memory next to the windows, which reads of whole sectors overwrite.

use std::io;

use memmap2::MmapMut;

use crate::edges::MAX_SECTOR_BYTES;
use crate::walk::IoRequest;

/// Per piece: at most a sector at its beginning and one at its end.
const SLOT_BYTES: usize = 2 * MAX_SECTOR_BYTES as usize;

/// Untouched pages are never allocated.
pub(super) struct EdgeBackup(MmapMut);

impl EdgeBackup {
    pub(super) fn new(slots: usize) -> io::Result<Self> {
        MmapMut::map_anon(slots * SLOT_BYTES).map(Self)
    }

    /// Saves the bytes of a piece that [`IoRequest::guard`](crate::walk::IoRequest::guard) names.
    ///
    /// # Safety
    /// `base` is valid for reads up to the end of the piece, and nothing in flight writes there.
    pub(super) unsafe fn save(&mut self, slot: usize, base: *const u8, piece: &IoRequest) {
        let backup = &mut self.0[slot * SLOT_BYTES..][..SLOT_BYTES];
        let (before, after) = (usize::from(piece.guard.before), usize::from(piece.guard.after));
        let (first, second) = backup.split_at_mut(SLOT_BYTES / 2);
        let (first, second) = (&mut first[..before], &mut second[..after]);
        // SAFETY: both ends lie in the piece, and `room` is separate memory, whose lengths the slices have checked.
        unsafe {
            let begin = base.add(piece.index);
            first.copy_from_slice(std::slice::from_raw_parts(begin, before));
            second.copy_from_slice(std::slice::from_raw_parts(begin.add(piece.len as usize - after), after));
        }
    }

    /// Restores the bytes that [`EdgeBackup::save`] saved for this piece.
    ///
    /// # Safety
    /// `base` is valid for writes up to the end of the piece, and nothing in flight touches it.
    pub(super) unsafe fn restore(&mut self, slot: usize, base: *mut u8, piece: &IoRequest) {
        let backup = &self.0[slot * SLOT_BYTES..][..SLOT_BYTES];
        let (before, after) = (usize::from(piece.guard.before), usize::from(piece.guard.after));
        let (first, second) = backup.split_at(SLOT_BYTES / 2);
        // SAFETY: as in `keep`.
        unsafe {
            let begin = base.add(piece.index);
            std::ptr::copy_nonoverlapping(first[..before].as_ptr(), begin, before);
            std::ptr::copy_nonoverlapping(second[..after].as_ptr(), begin.add(piece.len as usize - after), after);
        }
    }
}
