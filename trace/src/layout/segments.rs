//! Data of a type as a list of segments; adjacent segments are joined without being enumerated.

use std::ops::Range;

/// Contiguous range of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TypeSegment {
    /// Displacement from the address of the element.
    pub displacement_bytes: i64,
    /// Length in bytes.
    pub bytes: u64,
}

/// Exceeded limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LayoutExcess {
    /// 63 bits of an offset or size.
    Bits,
    Segments,
}

/// Segments in the order of the type map, with the packed offset of each.
#[derive(Clone, Debug, Default)]
pub(super) struct SegmentList {
    segments: Vec<TypeSegment>,
    starts: Vec<u64>,
    size_bytes: u64,
}

impl SegmentList {
    pub(super) fn as_slice(&self) -> &[TypeSegment] {
        &self.segments
    }

    pub(super) fn size_bytes(&self) -> u64 {
        self.size_bytes
    }

    /// Finds the segment that contains a packed byte of the element, and the offset within it.
    pub(super) fn find(&self, byte: u64) -> (usize, u64) {
        let index = self.starts.partition_point(|start| *start <= byte).saturating_sub(1);
        (index, self.starts.get(index).map_or(0, |start| byte - start))
    }

    pub(super) fn span(&self) -> Range<i64> {
        let start = self.segments.iter().map(|p| p.displacement_bytes).min().unwrap_or(0);
        let end =
            self.segments.iter().map(|p| p.displacement_bytes.saturating_add_unsigned(p.bytes)).max().unwrap_or(0);
        start..end
    }

    /// Appends a range; joins it with the last one if they are adjacent.
    pub(super) fn push(&mut self, at: i64, bytes: u64, most: usize) -> Result<(), LayoutExcess> {
        if bytes == 0 {
            return Ok(());
        }
        at.checked_add_unsigned(bytes).ok_or(LayoutExcess::Bits)?;
        let size_bytes =
            self.size_bytes.checked_add(bytes).filter(|size| *size <= i64::MAX as u64).ok_or(LayoutExcess::Bits)?;
        let full = self.segments.len() >= most;
        match self.segments.last_mut() {
            Some(last) if last.displacement_bytes.checked_add_unsigned(last.bytes) == Some(at) => last.bytes += bytes,
            _ if full => return Err(LayoutExcess::Segments),
            _ => {
                self.segments.push(TypeSegment { displacement_bytes: at, bytes });
                self.starts.push(self.size_bytes);
            }
        }
        self.size_bytes = size_bytes;
        Ok(())
    }

    /// Appends `count` copies of an element, the first at `from`, the others at distance `stride`. The work is bounded by `most`: a copy
    /// adds no segment only if all copies join, and these are not enumerated.
    pub(super) fn repeat(
        &mut self,
        element: &[TypeSegment],
        count: u64,
        stride: i64,
        from: i64,
        most: usize,
    ) -> Result<(), LayoutExcess> {
        if let [piece] = element {
            if u64::try_from(stride) == Ok(piece.bytes) {
                let at = from.checked_add(piece.displacement_bytes).ok_or(LayoutExcess::Bits)?;
                return self.push(at, piece.bytes.checked_mul(count).ok_or(LayoutExcess::Bits)?, most);
            }
        }
        if element.is_empty() || count == 0 {
            return Ok(());
        }
        let mut at = from;
        for left in (0..count).rev() {
            for piece in element {
                self.push(at.checked_add(piece.displacement_bytes).ok_or(LayoutExcess::Bits)?, piece.bytes, most)?;
            }
            if left > 0 {
                at = at.checked_add(stride).ok_or(LayoutExcess::Bits)?;
            }
        }
        Ok(())
    }
}
