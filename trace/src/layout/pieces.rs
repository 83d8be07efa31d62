//! The data of a type as pieces, built without listing what joins.

use std::ops::Range;

/// A run of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// Where it begins, in bytes from the address of the element.
    pub displacement_bytes: i64,
    /// Its length in bytes.
    pub bytes: u64,
}

/// What does not fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Excess {
    /// A place or a size.
    Bits,
    /// The number of pieces.
    Pieces,
}

/// Pieces in the order of the type map, each with the packed bytes before it.
#[derive(Clone, Debug, Default)]
pub(super) struct Pieces {
    list: Vec<Piece>,
    starts: Vec<u64>,
    size_bytes: u64,
}

impl Pieces {
    pub(super) fn as_slice(&self) -> &[Piece] {
        &self.list
    }

    pub(super) fn size_bytes(&self) -> u64 {
        self.size_bytes
    }

    /// The piece that holds a packed byte of the element, and how far in.
    pub(super) fn find(&self, byte: u64) -> (usize, u64) {
        let index = self.starts.partition_point(|start| *start <= byte).saturating_sub(1);
        (index, self.starts.get(index).map_or(0, |start| byte - start))
    }

    pub(super) fn span(&self) -> Range<i64> {
        let start = self.list.iter().map(|p| p.displacement_bytes).min().unwrap_or(0);
        let end = self.list.iter().map(|p| p.displacement_bytes.saturating_add_unsigned(p.bytes)).max().unwrap_or(0);
        start..end
    }

    /// Adds a run; joins it with the last one where they touch.
    pub(super) fn push(&mut self, at: i64, bytes: u64, most: usize) -> Result<(), Excess> {
        if bytes == 0 {
            return Ok(());
        }
        at.checked_add_unsigned(bytes).ok_or(Excess::Bits)?;
        let size_bytes =
            self.size_bytes.checked_add(bytes).filter(|size| *size <= i64::MAX as u64).ok_or(Excess::Bits)?;
        let full = self.list.len() >= most;
        match self.list.last_mut() {
            Some(last) if last.displacement_bytes.checked_add_unsigned(last.bytes) == Some(at) => last.bytes += bytes,
            _ if full => return Err(Excess::Pieces),
            _ => {
                self.list.push(Piece { displacement_bytes: at, bytes });
                self.starts.push(self.size_bytes);
            }
        }
        self.size_bytes = size_bytes;
        Ok(())
    }

    /// Adds `count` copies of an element, the first at `from`, the others each `stride` further. The work is bounded by `most`: a copy that
    /// adds no piece is only possible where all copies join, and those are not listed one by one.
    pub(super) fn repeat(
        &mut self,
        element: &[Piece],
        count: u64,
        stride: i64,
        from: i64,
        most: usize,
    ) -> Result<(), Excess> {
        if let [piece] = element {
            if u64::try_from(stride) == Ok(piece.bytes) {
                let at = from.checked_add(piece.displacement_bytes).ok_or(Excess::Bits)?;
                return self.push(at, piece.bytes.checked_mul(count).ok_or(Excess::Bits)?, most);
            }
        }
        if element.is_empty() || count == 0 {
            return Ok(());
        }
        let mut at = from;
        for left in (0..count).rev() {
            for piece in element {
                self.push(at.checked_add(piece.displacement_bytes).ok_or(Excess::Bits)?, piece.bytes, most)?;
            }
            if left > 0 {
                at = at.checked_add(stride).ok_or(Excess::Bits)?;
            }
        }
        Ok(())
    }
}
