//! Pieces that several operations move at the same time.

use crate::latency::Mark;
use crate::walk::Piece;

/// An operation that is a piece of its own.
pub(super) const WHOLE: u32 = u32::MAX;

/// The pieces of which not all parts have ended.
pub(super) struct Parts {
    pieces: Box<[Parted]>,
    /// Places without a piece.
    free: Vec<u32>,
}

#[derive(Clone, Copy, Default)]
struct Parted {
    offset: u64,
    len: u64,
    mark: Mark,
    /// Parts that have not ended, those that have not begun included.
    left: u64,
}

impl Parts {
    /// Room for what `depth` operations in flight may be parts of. A piece begins when there is room for its first part, so there are
    /// never more.
    pub(super) fn new(depth: usize) -> Self {
        let mut parts = Self { pieces: vec![Parted::default(); depth].into(), free: Vec::with_capacity(depth) };
        parts.clear();
        parts
    }

    /// Forgets all pieces.
    pub(super) fn clear(&mut self) {
        self.free.clear();
        self.free.extend((0..self.pieces.len() as u32).rev());
    }

    /// The place of a piece that begins now, in parts of `most_bytes`.
    pub(super) fn begin(&mut self, piece: &Piece, most_bytes: u64, mark: Mark) -> u32 {
        let Some(place) = self.free.pop() else {
            panic!("more pieces under way than operations");
        };
        let left = piece.len.div_ceil(most_bytes);
        self.pieces[place as usize] = Parted { offset: piece.offset, len: piece.len, mark, left };
        place
    }

    /// A part has ended; when the piece began, if it was the last part.
    pub(super) fn end(&mut self, place: u32) -> Option<Mark> {
        let piece = &mut self.pieces[place as usize];
        piece.left -= 1;
        (piece.left == 0).then(|| {
            self.free.push(place);
            piece.mark
        })
    }

    /// File offset and bytes of the whole piece; None for [`WHOLE`].
    pub(super) fn whole(&self, place: u32) -> Option<(u64, u64)> {
        let piece = self.pieces.get(place as usize)?;
        Some((piece.offset, piece.len))
    }

    /// Pieces that have begun and not ended.
    pub(super) fn under_way(&self) -> usize {
        self.pieces.len() - self.free.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::walk::Guard;

    #[test]
    fn a_piece_ends_with_its_last_part_and_gives_its_place_back() {
        let mut parts = Parts::new(2);
        let piece = Piece { offset: 512, index: 0, len: 10, guard: Guard::default() };
        let (first, second) =
            (parts.begin(&piece, 4, Mark::default()), parts.begin(&Piece { len: 4, ..piece }, 4, Mark::default()));
        assert_eq!(
            (parts.whole(first), parts.whole(second), parts.whole(WHOLE)),
            (Some((512, 10)), Some((512, 4)), None)
        );
        assert_eq!((parts.end(first), parts.end(first), parts.under_way()), (None, None, 2));
        assert_eq!((parts.end(second), parts.under_way()), (Some(Mark::default()), 1));
        assert_eq!(parts.end(first), Some(Mark::default()));
        assert_eq!(parts.begin(&piece, 4, Mark::default()), first, "the place given back last");
        parts.clear();
        assert_eq!(parts.under_way(), 0);
    }

    #[test]
    fn guards_stay_at_the_ends_of_what_is_split() {
        let mut rest = Piece { offset: 4096, index: 100, len: 2 * 4096 + 512, guard: Guard { before: 8, after: 9 } };
        let parts: Vec<Piece> = std::iter::from_fn(|| (rest.len > 0).then(|| rest.split_off(4096))).collect();
        let part = |offset, index, len, before, after| Piece { offset, index, len, guard: Guard { before, after } };
        let expected = [part(4096, 100, 4096, 8, 0), part(8192, 4196, 4096, 0, 0), part(12288, 8292, 512, 0, 9)];
        assert_eq!(parts, expected);
        assert_eq!(rest, Piece::default());
    }
}
