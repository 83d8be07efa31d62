//! From a batch to the file offset and the place in the ring of every chunk, by additions alone.

use crate::{BackendError, Batch, Pattern, Result, Ring};
use std::path::Path;

/// One operation: bytes of the file and their place in the ring.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Piece {
    /// File offset.
    pub(crate) offset: u64,
    /// Index in the ring of the first byte.
    pub(crate) index: usize,
    /// Bytes to move.
    pub(crate) len: u64,
    /// Bytes at its beginning and end that a read must leave in memory as they were. A read is complete without the
    /// ones at the end.
    pub(crate) guard: Guard,
}

impl Piece {
    /// Takes up to `most_bytes` off the beginning: whole sectors where there is a guard.
    pub(crate) fn split_off(&mut self, most_bytes: u64) -> Self {
        if self.len <= most_bytes {
            return std::mem::take(self);
        }
        let first = Self { len: most_bytes, guard: Guard { after: 0, ..self.guard }, ..*self };
        self.offset += most_bytes;
        self.index += most_bytes as usize;
        self.len -= most_bytes;
        self.guard.before = 0;
        first
    }
}

/// Bytes of whole sectors that are nobody's: see [`Piece::guard`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Guard {
    pub(crate) before: u16,
    pub(crate) after: u16,
}

impl Guard {
    /// True if nothing is to be kept.
    #[inline]
    pub(crate) fn is_empty(self) -> bool {
        self.before | self.after == 0
    }
}

/// The operations of a batch, in order.
pub(crate) trait Pieces {
    /// The next one.
    fn next_piece(&mut self) -> Option<Piece>;

    /// True if it is known that there is none left.
    fn is_done(&self) -> bool;

    /// When there is none left: how many pieces may be under way at most for [`Pieces::ask`]; None: no more will come.
    fn asks_at(&self) -> Option<u64> {
        None
    }

    /// Asks for more while `under_way` pieces are.
    fn ask(&mut self, _under_way: u64) {}
}

/// Iterates over the chunks of a batch in order; yields (file offset, index of the first byte in the ring).
///
/// A call is contiguous in memory, so the ring wraps only between calls: one addition and, per call, one comparison
/// take the place of a remainder per chunk.
#[derive(Clone, Debug)]
pub(crate) struct Walk {
    chunks_left: u64,
    offset_bytes: u64,
    stride_bytes: u64,
    index: usize,
    chunk_bytes: usize,
    left_in_call: u64,
    chunks_per_call: u64,
    call_index: usize,
    call_step: usize,
    period: usize,
}

impl Walk {
    /// The chunks of `batch`.
    ///
    /// # Errors
    /// If a call of the pattern is longer than the ring allows: its windows would end outside of the memory.
    pub(crate) fn new(pattern: &Pattern, batch: Batch, ring: &Ring, path: &Path) -> Result<Self> {
        check_fits(pattern, ring, path)?;
        check_within(pattern, batch);
        let period = ring.period_bytes();
        let call_index = ring.index(pattern.stream_position(batch.first_call));
        Ok(Self {
            chunks_left: batch.calls * pattern.chunks_per_call,
            offset_bytes: pattern.chunk_offset(batch.first_call * pattern.chunks_per_call),
            stride_bytes: pattern.stride_bytes,
            index: call_index,
            // All below the length of the ring, which is a usize.
            chunk_bytes: pattern.chunk_bytes as usize,
            left_in_call: pattern.chunks_per_call,
            chunks_per_call: pattern.chunks_per_call,
            call_index,
            call_step: (pattern.call_bytes() % period) as usize,
            period: period as usize,
        })
    }
}

impl Walk {
    /// `calls` more calls, behind the last one. They lie within the pattern, as those of [`Walk::new`].
    pub(crate) fn go_on(&mut self, calls: u64) {
        self.chunks_left += calls * self.chunks_per_call;
    }

    /// Bytes from the first chunk of a call, which [`Walk::next`] has just given at `index`, to where the memory goes on
    /// elsewhere: to the wrap of the ring or the end of the batch.
    pub(crate) fn run_bytes(&self, index: usize) -> u64 {
        debug_assert!(self.chunks_left % self.chunks_per_call == self.chunks_per_call - 1, "not the first of a call");
        let call_bytes = self.chunk_bytes as u64 * self.chunks_per_call;
        let calls_left = self.chunks_left / self.chunks_per_call + 1;
        let to_wrap = ((self.period - index) as u64).div_ceil(call_bytes);
        to_wrap.min(calls_left) * call_bytes
    }
}

impl Pieces for Walk {
    #[inline]
    fn next_piece(&mut self) -> Option<Piece> {
        let (offset, index) = self.next()?;
        Some(Piece { offset, index, len: self.chunk_bytes as u64, guard: Guard::default() })
    }

    #[inline]
    fn is_done(&self) -> bool {
        self.chunks_left == 0
    }
}

impl Iterator for Walk {
    type Item = (u64, usize);

    #[inline]
    fn next(&mut self) -> Option<(u64, usize)> {
        if self.chunks_left == 0 {
            return None;
        }
        self.chunks_left -= 1;
        let here = (self.offset_bytes, self.index);
        // Wraps at most behind the last chunk of a pattern that ends at the last possible offset.
        self.offset_bytes = self.offset_bytes.wrapping_add(self.stride_bytes);
        self.left_in_call -= 1;
        if self.left_in_call == 0 {
            self.left_in_call = self.chunks_per_call;
            self.call_index += self.call_step;
            if self.call_index >= self.period {
                self.call_index -= self.period;
            }
            self.index = self.call_index;
        } else {
            self.index += self.chunk_bytes;
        }
        Some(here)
    }
}

/// Bytes a batch moves on this rank.
pub(crate) fn batch_bytes(pattern: &Pattern, batch: Batch) -> u64 {
    batch.calls * pattern.call_bytes()
}

/// Windows end inside of the ring for the calls of the pattern, no others: the transfers rely on it.
pub(crate) fn check_within(pattern: &Pattern, batch: Batch) {
    let end = batch.first_call.checked_add(batch.calls);
    assert!(end.is_some_and(|end| end <= pattern.max_calls), "{batch:?} goes beyond the pattern");
}

/// Refuses a pattern with a window that ends outside of the ring.
pub(crate) fn check_fits(pattern: &Pattern, ring: &Ring, path: &Path) -> Result<()> {
    let (period, len) = (ring.period_bytes(), ring.bytes().len() as u64);
    // A product that overflows must not pass for a small call: the windows of transfers rely on this check.
    let call_bytes = pattern.chunk_bytes.checked_mul(pattern.chunks_per_call);
    // Every window begins within the period.
    if pattern.chunks_per_call > 0 && call_bytes.is_some_and(|bytes| bytes <= len - period) {
        return Ok(());
    }
    fits_without_overhang(pattern, call_bytes, ring, path)
}

/// [`check_fits`] for calls that are longer than what is behind the period: no window may cross its end.
#[cold]
fn fits_without_overhang(pattern: &Pattern, call_bytes: Option<u64>, ring: &Ring, path: &Path) -> Result<()> {
    let (period, len) = (ring.period_bytes(), ring.bytes().len() as u64);
    let begin = pattern.stream_bytes % period;
    let divides = |bytes: u64| bytes > 0 && period % bytes == 0 && begin.is_multiple_of(bytes);
    let never_wraps = |bytes| begin.checked_add(pattern.max_calls.checked_mul(bytes)?).map(|end| end <= period);
    let fits = call_bytes.is_some_and(|bytes| divides(bytes) || never_wraps(bytes) == Some(true));
    if pattern.chunks_per_call > 0 && fits {
        return Ok(());
    }
    Err(BackendError {
        operation: "prepare",
        path: path.into(),
        offset_bytes: None,
        expected_got_bytes: None,
        cause: crate::error::Cause::Unsupported,
        text: format!(
            "a call of {} chunks of {} bytes does not fit a ring with a period of {period} bytes and {} bytes behind it",
            pattern.chunks_per_call,
            pattern.chunk_bytes,
            len - period
        ),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::pattern;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn same_as_the_definition(
            chunk in 1_u64..40, cpc in 1_u64..5, gap in 0_u64..100, base in 0_u64..10_000,
            stream in 0_u64..100_000, first in 0_u64..50, calls in 0_u64..60, period in 1_u64..3 * 4096,
        ) {
            let p = Pattern { base_bytes: base, stride_bytes: chunk * 800 + gap, stream_bytes: stream, ..pattern(chunk * 800, cpc, 110) };
            let mut ring = Ring::new(3 * 4096, p.call_bytes()).unwrap();
            ring.set_period_bytes(period);
            let batch = Batch { first_call: first, calls };
            let mut expected = Vec::new();
            for call in first..first + calls {
                for j in 0..cpc {
                    let index = ring.index(p.stream_position(call)) + (j * p.chunk_bytes) as usize;
                    expected.push((p.chunk_offset(call * cpc + j), index));
                    prop_assert!(index + p.chunk_bytes as usize <= ring.bytes().len());
                }
            }
            let got: Vec<_> = Walk::new(&p, batch, &ring, Path::new("f")).unwrap().collect();
            prop_assert_eq!(got, expected);
        }
    }

    #[test]
    fn a_ring_without_overhang_takes_calls_that_divide_it() {
        let mut ring = Ring::new(4096, 0).unwrap();
        let fits = |p: &Pattern, ring: &Ring| check_fits(p, ring, Path::new("f")).is_ok();
        assert!(fits(&pattern(512, 2, 1000), &ring) && fits(&pattern(4096, 1, 1000), &ring));
        assert!(fits(&pattern(1000, 1, 4), &ring), "it never wraps");
        assert!(!fits(&pattern(1000, 1, 5), &ring));
        assert!(!fits(&Pattern { stream_bytes: 8, ..pattern(512, 1, 1000) }, &ring), "one crosses the end");
        assert!(fits(&Pattern { stream_bytes: 4096 + 8, ..pattern(511, 1, 8) }, &ring));
        ring.set_period_bytes(15);
        assert!(fits(&pattern(5, 1, u64::MAX), &ring) && fits(&pattern(4081, 1, u64::MAX), &ring));
        assert!(!fits(&pattern(4082, 1, 2), &ring));
    }

    #[test]
    fn too_long_calls_and_calls_without_chunks_are_refused() {
        let ring = Ring::new(4096, 64).unwrap();
        let batch = Batch { first_call: 0, calls: 1 };
        assert!(Walk::new(&pattern(64, 1, 1), batch, &ring, Path::new("f")).is_ok());
        assert!(Walk::new(&pattern(4096 * 2, 1, 1), batch, &ring, Path::new("f")).is_err());
        let none = Walk::new(&pattern(0, 1, 3), Batch { first_call: 0, calls: 3 }, &ring, Path::new("f")).unwrap();
        assert_eq!(none.collect::<Vec<_>>(), [(0, 0); 3], "a part of nothing is moved as often as any other");
        assert!(Walk::new(&pattern(1 << 33, (1 << 31) + 1, 1), batch, &ring, Path::new("f")).is_err());
        assert!(Walk::new(&pattern(8, 0, 1), batch, &ring, Path::new("f")).is_err());
    }
}
