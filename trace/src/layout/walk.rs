//! The places of a row of elements.

use super::pieces::{Piece, Pieces};

/// A run of bytes in a file or in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// Where it begins.
    pub at: i64,
    /// Its length in bytes.
    pub bytes: u64,
}

/// True if a row of such elements is a single run.
pub(super) fn is_run(pieces: &[Piece], extent: i64) -> bool {
    matches!(pieces, [piece] if u64::try_from(extent) == Ok(piece.bytes))
}

/// The places of some packed bytes, see [`super::Layouts::walk`].
#[derive(Clone, Debug)]
pub struct Walk<'a> {
    pieces: &'a [Piece],
    extent: i64,
    /// Address of the element that is next; None if it lies beyond 63 bits.
    element: Option<i64>,
    piece: usize,
    skip: u64,
    left: u64,
    ahead: Option<Extent>,
}

impl<'a> Walk<'a> {
    /// A single run; none for no bytes or beyond 63 bits.
    #[must_use]
    pub fn run(at: i64, bytes: u64) -> Self {
        let ahead = (bytes > 0 && at.checked_add_unsigned(bytes).is_some()).then_some(Extent { at, bytes });
        Self { pieces: &[], extent: 0, element: None, piece: 0, skip: 0, left: 0, ahead }
    }

    pub(super) fn new(pieces: &'a Pieces, extent: i64, first_byte: u64, bytes: u64, base: i64) -> Self {
        let (list, size) = (pieces.as_slice(), pieces.size_bytes());
        if size == 0 || bytes == 0 {
            return Self::run(base, 0);
        }
        if is_run(list, extent) {
            let at = i128::from(base) + i128::from(list[0].displacement_bytes) + i128::from(first_byte);
            return i64::try_from(at).map_or_else(|_| Self::run(base, 0), |at| Self::run(at, bytes));
        }
        let mut walk = Self { pieces: list, extent, element: None, piece: 0, skip: 0, left: bytes, ahead: None };
        let shift = i128::from(first_byte / size) * i128::from(extent);
        walk.element = shift.checked_add(i128::from(base)).and_then(|at| i64::try_from(at).ok());
        (walk.piece, walk.skip) = pieces.find(first_byte % size);
        walk.ahead = walk.step();
        walk
    }

    fn step(&mut self) -> Option<Extent> {
        if self.left == 0 {
            return None;
        }
        let piece = self.pieces.get(self.piece)?;
        let at = self.element?.checked_add(piece.displacement_bytes)?.checked_add_unsigned(self.skip)?;
        let bytes = (piece.bytes - self.skip).min(self.left);
        at.checked_add_unsigned(bytes)?;
        self.left -= bytes;
        self.skip = 0;
        self.piece += 1;
        if self.piece == self.pieces.len() {
            self.piece = 0;
            self.element = self.element.and_then(|at| at.checked_add(self.extent));
        }
        Some(Extent { at, bytes })
    }
}

impl Iterator for Walk<'_> {
    type Item = Extent;

    fn next(&mut self) -> Option<Extent> {
        let mut extent = self.ahead.take()?;
        loop {
            self.ahead = self.step();
            match self.ahead {
                // Only the end of one element and the begin of the next can touch: inside an element they are joined.
                Some(next) if extent.at.checked_add_unsigned(extent.bytes) == Some(next.at) => {
                    extent.bytes += next.bytes
                }
                _ => return Some(extent),
            }
        }
    }
}
