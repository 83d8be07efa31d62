//! Pieces that several operations move at the same time.

use crate::latency::CallStart;
use crate::walk::IoRequest;

/// Index of an operation that moves a whole piece.
pub(super) const UNSPLIT: u32 = u32::MAX;

pub(super) struct SplitPieces {
    pieces: Box<[SplitPiece]>,
    free: Vec<u32>,
}

#[derive(Clone, Copy, Default)]
struct SplitPiece {
    offset: u64,
    len: u64,
    mark: CallStart,
    /// Incomplete parts, including those not started.
    parts_left: u64,
}

impl SplitPieces {
    /// Entries for `depth` operations in flight. A piece starts with the submission of its first part, so more are never needed.
    pub(super) fn new(depth: usize) -> Self {
        let mut parts = Self { pieces: vec![SplitPiece::default(); depth].into(), free: Vec::with_capacity(depth) };
        parts.clear();
        parts
    }

    pub(super) fn clear(&mut self) {
        self.free.clear();
        self.free.extend((0..self.pieces.len() as u32).rev());
    }

    /// Starts a piece; returns its index.
    pub(super) fn begin(&mut self, piece: &IoRequest, most_bytes: u64, mark: CallStart) -> u32 {
        let Some(place) = self.free.pop() else {
            panic!("more pieces in flight than operations");
        };
        let left = piece.len.div_ceil(most_bytes);
        self.pieces[place as usize] = SplitPiece { offset: piece.offset, len: piece.len, mark, parts_left: left };
        place
    }

    /// Returns the start of the piece at its last part.
    pub(super) fn end(&mut self, place: u32) -> Option<CallStart> {
        let piece = &mut self.pieces[place as usize];
        piece.parts_left -= 1;
        (piece.parts_left == 0).then(|| {
            self.free.push(place);
            piece.mark
        })
    }

    /// File offset and bytes of the whole piece; None for [`UNSPLIT`].
    pub(super) fn extent(&self, place: u32) -> Option<(u64, u64)> {
        let piece = self.pieces.get(place as usize)?;
        Some((piece.offset, piece.len))
    }

    /// Pieces started and not complete.
    pub(super) fn in_flight(&self) -> usize {
        self.pieces.len() - self.free.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::walk::ReadGuard;

    #[test]
    fn a_piece_ends_with_its_last_part_and_frees_its_place() {
        let mut parts = SplitPieces::new(2);
        let piece = IoRequest { offset: 512, len: 10, ..IoRequest::default() };
        let (first, second) = (
            parts.begin(&piece, 4, CallStart::default()),
            parts.begin(&IoRequest { len: 4, ..piece }, 4, CallStart::default()),
        );
        assert_eq!(
            (parts.extent(first), parts.extent(second), parts.extent(UNSPLIT)),
            (Some((512, 10)), Some((512, 4)), None)
        );
        assert_eq!((parts.end(first), parts.end(first), parts.in_flight()), (None, None, 2));
        assert_eq!((parts.end(second), parts.in_flight()), (Some(CallStart::default()), 1));
        assert_eq!(parts.end(first), Some(CallStart::default()));
        assert_eq!(parts.begin(&piece, 4, CallStart::default()), first, "the entry freed last");
        parts.clear();
        assert_eq!(parts.in_flight(), 0);
    }

    #[test]
    fn guards_stay_at_the_ends_of_what_is_split() {
        let mut rest = IoRequest {
            offset: 4096,
            index: 100,
            len: 2 * 4096 + 512,
            guard: ReadGuard { before: 8, after: 9 },
            ..IoRequest::default()
        };
        let parts: Vec<IoRequest> = std::iter::from_fn(|| (rest.len > 0).then(|| rest.split_off(4096))).collect();
        let part = |offset, index, len, before, after| IoRequest {
            offset,
            index,
            len,
            guard: ReadGuard { before, after },
            ..IoRequest::default()
        };
        let expected = [part(4096, 100, 4096, 8, 0), part(8192, 4196, 4096, 0, 0), part(12288, 8292, 512, 0, 9)];
        assert_eq!(parts, expected);
        assert_eq!(rest, IoRequest::default());
    }
}
