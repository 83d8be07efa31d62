//! Where the bytes of a region of the file lie in the memories of the ranks: pure arithmetic.
//!
//! The file is seen as rows. Row `k` holds chunk `k` of every part in order; a rank's own segment is the case of one
//! part, whose rows are its calls.

use crate::{Batch, Pattern};

/// How a file is divided among the ranks of a two-phase transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Layout {
    /// The chunks of the ranks alternate: the ranks move one region together.
    Interleaved,
    /// Each rank has one contiguous range: each moves its own.
    Segmented,
}

impl Layout {
    /// The layout of a pattern, if sectors of `align_bytes` can be kept apart in it.
    ///
    /// # Errors
    /// Why they cannot.
    pub(crate) fn of(pattern: &Pattern, align_bytes: u64) -> Result<Self, String> {
        let p = pattern;
        if p.is_contiguous() {
            // Sectors that two segments share must not be written by both in the same pattern.
            let used = p.max_calls.checked_mul(p.call_bytes());
            let gap = used.and_then(|used| p.rank_distance_bytes.checked_sub(used));
            let meets = p.rank_distance_bytes.is_multiple_of(align_bytes) && p.base_bytes.is_multiple_of(align_bytes);
            return match gap {
                Some(gap) if meets || gap >= align_bytes => Ok(Self::Segmented),
                _ => Err(format!(
                    "the ranges of neighbouring ranks meet inside of a sector of {align_bytes} bytes (segments of {} bytes)",
                    p.rank_distance_bytes
                )),
            };
        }
        let first = p.base_bytes.checked_sub(p.rank * p.rank_distance_bytes);
        let rows = p.rank_distance_bytes == p.chunk_bytes && p.stride_bytes == p.chunk_bytes * p.ranks;
        if rows && first == Some(p.origin_bytes) {
            Ok(Self::Interleaved)
        } else {
            Err("the chunks of the ranks neither alternate evenly nor lie in segments".into())
        }
    }
}

/// Rows of one pattern, and the windows of a ring for them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rows {
    /// File offset of the first row.
    pub(crate) origin: u64,
    /// Bytes of one part in one row.
    pub(crate) chunk: u64,
    /// Parts of a row.
    pub(crate) parts: u64,
    chunks_per_call: u64,
    /// Position in the stream of each part where the pattern begins.
    stream: u64,
    period: u64,
}

impl Rows {
    /// The rows of a pattern over rings of this period.
    pub(crate) fn new(pattern: &Pattern, layout: Layout, period: u64) -> Self {
        let all = Self {
            origin: pattern.origin_bytes,
            chunk: pattern.chunk_bytes,
            parts: pattern.ranks,
            chunks_per_call: pattern.chunks_per_call,
            stream: pattern.stream_bytes,
            period,
        };
        match layout {
            Layout::Interleaved => all,
            Layout::Segmented => {
                Self { origin: pattern.base_bytes, chunk: pattern.call_bytes(), parts: 1, chunks_per_call: 1, ..all }
            }
        }
    }

    /// Bytes of one call of one part.
    pub(crate) fn call_bytes(&self) -> u64 {
        self.chunk * self.chunks_per_call
    }

    /// File offsets of the calls of a batch: begin and end.
    pub(crate) fn region(&self, batch: Batch) -> (u64, u64) {
        let call = self.call_bytes() * self.parts;
        let begin = self.origin + batch.first_call * call;
        (begin, begin + batch.calls * call)
    }

    /// Calls whose windows never lie over each other.
    pub(crate) fn calls_per_period(&self) -> u64 {
        (self.period / self.call_bytes()).max(1)
    }

    /// Bytes of `part`, counted from the beginning of the pattern, that lie before file offset `offset`.
    pub(crate) fn before(&self, part: u64, offset: u64) -> u64 {
        let row = self.chunk * self.parts;
        let (rows, inside) = ((offset - self.origin) / row, (offset - self.origin) % row);
        rows * self.chunk + inside.saturating_sub(part * self.chunk).min(self.chunk)
    }

    /// Index in the ring of byte `at` of a part (counted from the beginning of the pattern), and how many bytes from
    /// there on follow each other both in the stream and in memory.
    pub(crate) fn stretch(&self, at: u64) -> (usize, u64) {
        let len = self.call_bytes();
        let (call, inside) = (at / len, at % len);
        let index = (self.stream + call * len) % self.period;
        // Calls until the first one that ends behind the period: the next window begins at the front.
        let calls = (self.period - index).div_ceil(len);
        ((index + inside) as usize, calls * len - inside)
    }

    /// Stretches a run of `bytes` bytes is divided into, at most.
    pub(crate) fn most_stretches(&self, bytes: u64) -> u64 {
        // The first may be short; every other one is a whole call at least and ends behind the period.
        let shortest = self.period.saturating_sub(self.call_bytes()).max(self.call_bytes()).max(1);
        bytes / shortest + 2
    }

    /// The memory of bytes `from .. to` of a part, in order: index in the ring, length.
    #[inline]
    pub(crate) fn stretches(&self, from: u64, to: u64, mut visit: impl FnMut(usize, usize)) {
        let mut at = from;
        while at < to {
            let (index, len) = self.stretch(at);
            let len = len.min(to - at);
            visit(index, len as usize);
            at += len;
        }
    }

    /// The memory of file offsets `begin .. end` in order: part, index in its ring, place behind `begin`, length.
    #[inline]
    pub(crate) fn fragments(&self, begin: u64, end: u64, mut visit: impl FnMut(usize, usize, usize, usize)) {
        let row_bytes = self.chunk * self.parts;
        let relative = begin - self.origin;
        let (row, inside) = (relative / row_bytes, relative % row_bytes);
        let (mut part, mut within) = (inside / self.chunk, inside % self.chunk);
        let (call, mut in_call) = (row / self.chunks_per_call, row % self.chunks_per_call);
        let step = self.call_bytes() % self.period;
        let mut call_index = (self.stream + call * self.call_bytes()) % self.period;
        let mut index = call_index + in_call * self.chunk;
        let (mut at, total) = (0, end - begin);
        while at < total {
            let len = (self.chunk - within).min(total - at);
            visit(part as usize, (index + within) as usize, at as usize, len as usize);
            at += len;
            within = 0;
            part += 1;
            if part == self.parts {
                part = 0;
                index += self.chunk;
                in_call += 1;
                if in_call == self.chunks_per_call {
                    in_call = 0;
                    call_index += step;
                    if call_index >= self.period {
                        call_index -= self.period;
                    }
                    index = call_index;
                }
            }
        }
    }
}

#[cfg(test)]
#[path = "rows_tests.rs"]
mod tests;
