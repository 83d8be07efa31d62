//! Byte ranges of a sequence of elements.

use super::segments::{SegmentList, TypeSegment};

/// Range of bytes in a file or in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ByteRange {
    /// First byte.
    pub at: i64,
    /// Length in bytes.
    pub bytes: u64,
}

/// True if a sequence of such elements is one range.
pub(super) fn is_contiguous(pieces: &[TypeSegment], extent: i64) -> bool {
    matches!(pieces, [piece] if u64::try_from(extent) == Ok(piece.bytes))
}

/// Byte ranges of packed bytes, see [`super::TypeLayouts::byte_ranges`].
#[derive(Clone, Debug)]
pub struct ByteRanges<'a> {
    segments: &'a [TypeSegment],
    extent: i64,
    /// Address of the next element; None beyond 63 bits.
    element: Option<i64>,
    segment: usize,
    skip_bytes: u64,
    remaining_bytes: u64,
    lookahead: Option<ByteRange>,
}

impl<'a> ByteRanges<'a> {
    /// A single range; empty for no bytes or beyond 63 bits.
    #[must_use]
    pub fn single(at: i64, bytes: u64) -> Self {
        let lookahead = (bytes > 0 && at.checked_add_unsigned(bytes).is_some()).then_some(ByteRange { at, bytes });
        Self { segments: &[], extent: 0, element: None, segment: 0, skip_bytes: 0, remaining_bytes: 0, lookahead }
    }

    pub(super) fn new(pieces: &'a SegmentList, extent: i64, first_byte: u64, bytes: u64, base: i64) -> Self {
        let (list, size) = (pieces.as_slice(), pieces.size_bytes());
        if size == 0 || bytes == 0 {
            return Self::single(base, 0);
        }
        if is_contiguous(list, extent) {
            let at = i128::from(base) + i128::from(list[0].displacement_bytes) + i128::from(first_byte);
            return i64::try_from(at).map_or_else(|_| Self::single(base, 0), |at| Self::single(at, bytes));
        }
        let mut walk = Self {
            segments: list,
            extent,
            element: None,
            segment: 0,
            skip_bytes: 0,
            remaining_bytes: bytes,
            lookahead: None,
        };
        let shift = i128::from(first_byte / size) * i128::from(extent);
        walk.element = shift.checked_add(i128::from(base)).and_then(|at| i64::try_from(at).ok());
        (walk.segment, walk.skip_bytes) = pieces.find(first_byte % size);
        walk.lookahead = walk.next_range();
        walk
    }

    fn next_range(&mut self) -> Option<ByteRange> {
        if self.remaining_bytes == 0 {
            return None;
        }
        let piece = self.segments.get(self.segment)?;
        let at = self.element?.checked_add(piece.displacement_bytes)?.checked_add_unsigned(self.skip_bytes)?;
        let bytes = (piece.bytes - self.skip_bytes).min(self.remaining_bytes);
        at.checked_add_unsigned(bytes)?;
        self.remaining_bytes -= bytes;
        self.skip_bytes = 0;
        self.segment += 1;
        if self.segment == self.segments.len() {
            self.segment = 0;
            self.element = self.element.and_then(|at| at.checked_add(self.extent));
        }
        Some(ByteRange { at, bytes })
    }
}

impl Iterator for ByteRanges<'_> {
    type Item = ByteRange;

    fn next(&mut self) -> Option<ByteRange> {
        let mut extent = self.lookahead.take()?;
        loop {
            self.lookahead = self.next_range();
            match self.lookahead {
                // Only the end of one element can be adjacent to the begin of the next: within an element segments are joined.
                Some(next) if extent.at.checked_add_unsigned(extent.bytes) == Some(next.at) => {
                    extent.bytes += next.bytes
                }
                _ => return Some(extent),
            }
        }
    }
}
