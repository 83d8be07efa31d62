//! Maps a region of the file to the memories of the ranks: arithmetic only.
//!
//! The file consists of rows. Row `k` holds chunk `k` of every part in order; a rank's own segment is the case of one
//! part, whose rows are its calls.

use crate::{AccessPattern, Batch};

/// How a file is divided among the ranks of a two-phase transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RankDistribution {
    /// The chunks of the ranks alternate: the ranks transfer one region together.
    Interleaved,
    /// Each rank has one contiguous range and transfers it by itself.
    Segmented,
}

impl RankDistribution {
    /// The layout of a pattern, if ranks share no sectors of `align_bytes` in it.
    pub(crate) fn of(pattern: &AccessPattern, align_bytes: u64) -> Result<Self, String> {
        let p = pattern;
        if p.is_contiguous() {
            // Two ranks must not write the same sector in one pattern.
            let used = p.max_calls.checked_mul(p.call_bytes());
            let gap = used.and_then(|used| p.rank_distance_bytes.checked_sub(used));
            let is_aligned =
                p.rank_distance_bytes.is_multiple_of(align_bytes) && p.base_bytes.is_multiple_of(align_bytes);
            return match gap {
                Some(gap) if is_aligned || gap >= align_bytes => Ok(Self::Segmented),
                _ => Err(format!(
                    "the ranges of neighbouring ranks share a sector of {align_bytes} bytes (segments of {} bytes)",
                    p.rank_distance_bytes
                )),
            };
        }
        let first = p.base_bytes.checked_sub(p.rank * p.rank_distance_bytes);
        let rows = p.rank_distance_bytes == p.chunk_bytes && p.stride_bytes == p.chunk_bytes * p.ranks;
        if rows && first == Some(p.origin_bytes) {
            Ok(Self::Interleaved)
        } else {
            Err("the chunks of the ranks are neither evenly interleaved nor segmented".into())
        }
    }
}

/// Rows of one pattern, and their windows in a transfer buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ChunkRows {
    /// File offset of the first row.
    pub(crate) origin: u64,
    /// Bytes of one part in one row.
    pub(crate) chunk: u64,
    pub(crate) parts: u64,
    chunks_per_call: u64,
    /// Position in the stream of each part at the beginning of the pattern.
    stream: u64,
    period: u64,
}

impl ChunkRows {
    pub(crate) fn new(pattern: &AccessPattern, layout: RankDistribution, period: u64) -> Self {
        let all = Self {
            origin: pattern.origin_bytes,
            chunk: pattern.chunk_bytes,
            parts: pattern.ranks,
            chunks_per_call: pattern.chunks_per_call,
            stream: pattern.stream_bytes,
            period,
        };
        match layout {
            RankDistribution::Interleaved => all,
            RankDistribution::Segmented => {
                Self { origin: pattern.base_bytes, chunk: pattern.call_bytes(), parts: 1, chunks_per_call: 1, ..all }
            }
        }
    }

    pub(crate) fn call_bytes(&self) -> u64 {
        self.chunk * self.chunks_per_call
    }

    pub(crate) fn region(&self, batch: Batch) -> (u64, u64) {
        let call = self.call_bytes() * self.parts;
        let begin = self.origin + batch.first_call * call;
        (begin, begin + batch.calls * call)
    }

    /// Number of calls with disjoint windows.
    pub(crate) fn calls_per_period(&self) -> u64 {
        (self.period / self.call_bytes()).max(1)
    }

    /// Bytes of `part`, from the beginning of the pattern, that precede file offset `offset`.
    pub(crate) fn bytes_before(&self, part: u64, offset: u64) -> u64 {
        let row = self.chunk * self.parts;
        let (rows, inside) = ((offset - self.origin) / row, (offset - self.origin) % row);
        rows * self.chunk + inside.saturating_sub(part * self.chunk).min(self.chunk)
    }

    /// Index in the buffer of byte `at` of a part (counted from the beginning of the pattern), and the number of bytes from there that
    /// are contiguous both in the stream and in memory.
    pub(crate) fn contiguous_range(&self, at: u64) -> (usize, u64) {
        let len = self.call_bytes();
        let (call, inside) = (at / len, at % len);
        let index = (self.stream + call * len) % self.period;
        // Calls until the first one that ends beyond the period: the next window begins at the front.
        let calls = (self.period - index).div_ceil(len);
        ((index + inside) as usize, calls * len - inside)
    }

    /// Maximum number of contiguous ranges in `bytes` bytes.
    pub(crate) fn max_contiguous_ranges(&self, bytes: u64) -> u64 {
        // The first may be short; every other one is at least a whole call and ends beyond the period.
        let shortest = self.period.saturating_sub(self.call_bytes()).max(self.call_bytes()).max(1);
        bytes / shortest + 2
    }

    /// Visits the memory of bytes `from .. to` of a part, in order: index in the buffer, length.
    #[inline]
    pub(crate) fn contiguous_ranges(&self, from: u64, to: u64, mut visit: impl FnMut(usize, usize)) {
        let mut at = from;
        while at < to {
            let (index, len) = self.contiguous_range(at);
            let len = len.min(to - at);
            visit(index, len as usize);
            at += len;
        }
    }

    /// Visits the memory of file offsets `begin .. end` in order: part, index in its buffer, offset from `begin`, length.
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
