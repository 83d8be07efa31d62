//! From a batch to the file offset and the buffer index of every chunk, by additions alone unless the pattern has an order.

use crate::{AccessPattern, BackendError, Batch, Direction, Result, TransferBuffer};
use std::path::Path;

/// One operation between the file and the transfer buffer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct IoRequest {
    pub(crate) offset: u64,
    /// Index of the first byte in the buffer.
    pub(crate) index: usize,
    pub(crate) len: u64,
    pub(crate) direction: Direction,
    /// Bytes at its beginning and end that a read must preserve in memory. A read is complete without those at the end.
    pub(crate) guard: ReadGuard,
}

impl IoRequest {
    /// Removes up to `most_bytes` from the beginning: whole sectors if there is a guard.
    pub(crate) fn split_off(&mut self, most_bytes: u64) -> Self {
        if self.len <= most_bytes {
            return std::mem::take(self);
        }
        let first = Self { len: most_bytes, guard: ReadGuard { after: 0, ..self.guard }, ..*self };
        self.offset += most_bytes;
        self.index += most_bytes as usize;
        self.len -= most_bytes;
        self.guard.before = 0;
        first
    }
}

/// Bytes of whole sectors outside the pattern: see [`IoRequest::guard`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ReadGuard {
    pub(crate) before: u16,
    pub(crate) after: u16,
}

impl ReadGuard {
    /// True if no bytes must be preserved.
    #[inline]
    pub(crate) fn is_empty(self) -> bool {
        self.before | self.after == 0
    }
}

pub(crate) trait IoRequestSource {
    fn next_request(&mut self) -> Option<IoRequest>;

    /// True if no operation is left.
    fn is_done(&self) -> bool;

    /// If no operation is left: how many may be in flight at most when [`IoRequestSource::refill`] is called; None: there are no more.
    fn refill_threshold(&self) -> Option<u64> {
        None
    }

    /// Requests more operations while `under_way` are in flight.
    fn refill(&mut self, _under_way: u64) {}
}

/// Iterates over the chunks of a batch in order; yields (file offset, index of the first byte in the buffer).
///
/// A call is contiguous in memory, so that indices wrap only between calls: one addition and, per call, one comparison
/// replace a remainder per chunk.
#[derive(Clone, Debug)]
pub(crate) struct ChunkWalk {
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
    /// Direction of the next chunk.
    direction: Direction,
    ordered: Option<OrderedCalls>,
}

/// Calls of a pattern with an order.
#[derive(Clone, Debug)]
struct OrderedCalls {
    pattern: AccessPattern,
    /// The call of the next chunk.
    call: u64,
    landing: Option<LandingZone>,
}

/// Where the reads of a mixed pattern leave their data.
#[derive(Clone, Copy, Debug)]
struct LandingZone {
    begin: usize,
    period_bytes: u64,
}

impl ChunkWalk {
    /// The chunks of `batch`, all in this direction, or those of a mixed pattern in their own.
    ///
    /// # Errors
    /// If a call of the pattern is longer than the buffer allows: its windows would end outside the memory.
    pub(crate) fn new(
        pattern: &AccessPattern,
        direction: Direction,
        batch: Batch,
        buffer: &TransferBuffer,
        path: &Path,
    ) -> Result<Self> {
        check_fits(pattern, buffer, path)?;
        check_within(pattern, batch);
        let period = buffer.period_bytes();
        let direction = pattern.call_direction(direction, batch.first_call);
        let call_index = pattern.memory_index(buffer, direction, batch.first_call);
        let landing = pattern
            .mix
            .map(|_| LandingZone { begin: buffer.landing_begin(), period_bytes: buffer.landing_period_bytes() });
        Ok(Self {
            chunks_left: batch.calls * pattern.chunks_per_call,
            offset_bytes: pattern.call_offset(batch.first_call),
            stride_bytes: pattern.stride_bytes,
            index: call_index,
            // All below the length of the buffer, which is a usize.
            chunk_bytes: pattern.chunk_bytes as usize,
            left_in_call: pattern.chunks_per_call,
            chunks_per_call: pattern.chunks_per_call,
            call_index,
            call_step: (pattern.call_bytes() % period) as usize,
            period: period as usize,
            direction,
            ordered: pattern.order.map(|_| OrderedCalls { pattern: *pattern, call: batch.first_call, landing }),
        })
    }

    /// Moves to the next call of the order. Its chunks follow those of the call before it neither in the file nor, for writes, in memory.
    #[inline(never)]
    fn begin_ordered_call(&mut self) {
        let Some(OrderedCalls { pattern, call, landing }) = &mut self.ordered else { return };
        *call += 1;
        // Nothing follows the last call.
        if *call >= pattern.max_calls {
            return;
        }
        let ordered_call = pattern.ordered_call(*call);
        self.offset_bytes = pattern.chunk_offset(ordered_call * pattern.chunks_per_call);
        self.direction = pattern.call_direction(self.direction, *call);
        match (self.direction, landing) {
            (Direction::Write, _) => {
                self.index = (pattern.stream_position(ordered_call) % self.period as u64) as usize;
            }
            (Direction::Read, Some(LandingZone { begin, period_bytes })) => {
                self.index = *begin + (pattern.stream_position(*call) % *period_bytes) as usize;
            }
            // In the sequence of the calls.
            (Direction::Read, None) => {}
        }
    }
}

impl ChunkWalk {
    /// Appends `calls` calls. They lie within the pattern, as those of [`ChunkWalk::new`].
    pub(crate) fn extend(&mut self, calls: u64) {
        self.chunks_left += calls * self.chunks_per_call;
    }

    /// Bytes from the first chunk of a call, which [`ChunkWalk::next`] has just returned at `index`, to the end of contiguous memory: the wrap
    /// of the buffer or the end of the batch.
    pub(crate) fn contiguous_bytes(&self, index: usize) -> u64 {
        debug_assert!(self.chunks_left % self.chunks_per_call == self.chunks_per_call - 1, "not the first of a call");
        let call_bytes = self.chunk_bytes as u64 * self.chunks_per_call;
        let calls_left = self.chunks_left / self.chunks_per_call + 1;
        let to_wrap = ((self.period - index) as u64).div_ceil(call_bytes);
        to_wrap.min(calls_left) * call_bytes
    }
}

impl IoRequestSource for ChunkWalk {
    #[inline]
    fn next_request(&mut self) -> Option<IoRequest> {
        let direction = self.direction;
        let (offset, index) = self.next()?;
        Some(IoRequest { offset, index, len: self.chunk_bytes as u64, direction, guard: ReadGuard::default() })
    }

    #[inline]
    fn is_done(&self) -> bool {
        self.chunks_left == 0
    }
}

impl Iterator for ChunkWalk {
    type Item = (u64, usize);

    #[inline]
    fn next(&mut self) -> Option<(u64, usize)> {
        if self.chunks_left == 0 {
            return None;
        }
        self.chunks_left -= 1;
        let here = (self.offset_bytes, self.index);
        // Wraps at most after the last chunk of a pattern that ends at the maximum offset.
        self.offset_bytes = self.offset_bytes.wrapping_add(self.stride_bytes);
        self.left_in_call -= 1;
        if self.left_in_call == 0 {
            self.left_in_call = self.chunks_per_call;
            self.call_index += self.call_step;
            if self.call_index >= self.period {
                self.call_index -= self.period;
            }
            self.index = self.call_index;
            if self.ordered.is_some() {
                self.begin_ordered_call();
            }
        } else {
            self.index += self.chunk_bytes;
        }
        Some(here)
    }
}

pub(crate) fn batch_bytes(pattern: &AccessPattern, batch: Batch) -> u64 {
    batch.calls * pattern.call_bytes()
}

/// Checks that the batch lies within the pattern: only then do the windows end inside the buffer, as the transfers require.
pub(crate) fn check_within(pattern: &AccessPattern, batch: Batch) {
    let end = batch.first_call.checked_add(batch.calls);
    assert!(end.is_some_and(|end| end <= pattern.max_calls), "{batch:?} exceeds the pattern");
}

/// Refuses a pattern with a window that ends outside the buffer.
pub(crate) fn check_fits(pattern: &AccessPattern, buffer: &TransferBuffer, path: &Path) -> Result<()> {
    // The landing zone follows the windows of the writes and has an overhang of its own.
    let (period, len) = (
        buffer.period_bytes(),
        if pattern.mix.is_some() { buffer.landing_begin() } else { buffer.bytes().len() } as u64,
    );
    // An overflowing product must not count as a small call: the transfers rely on this check.
    let call_bytes = pattern.chunk_bytes.checked_mul(pattern.chunks_per_call);
    // Every window begins within the period.
    if pattern.chunks_per_call > 0 && call_bytes.is_some_and(|bytes| bytes <= len - period) {
        return Ok(());
    }
    check_fits_without_slack(pattern, call_bytes, buffer, path)
}

/// [`check_fits`] for calls that are longer than the slack beyond the period: no window may cross its end.
#[cold]
fn check_fits_without_slack(
    pattern: &AccessPattern,
    call_bytes: Option<u64>,
    buffer: &TransferBuffer,
    path: &Path,
) -> Result<()> {
    let (period, len) = (buffer.period_bytes(), buffer.bytes().len() as u64);
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
        cause: crate::error::FailureCause::Unsupported,
        text: format!(
            "a call of {} chunks of {} bytes does not fit a transfer buffer with a period of {period} bytes and {} bytes of slack",
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
    use crate::OrderKind;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn same_as_the_definition(
            chunk in 1_u64..40, cpc in 1_u64..5, gap in 0_u64..100, base in 0_u64..10_000,
            stream in 0_u64..100_000, first in 0_u64..50, calls in 0_u64..60, period in 1_u64..3 * 4096,
        ) {
            let p = AccessPattern { base_bytes: base, stride_bytes: chunk * 800 + gap, stream_bytes: stream, ..pattern(chunk * 800, cpc, 110) };
            let mut buffer = TransferBuffer::new(3 * 4096, p.call_bytes()).unwrap();
            buffer.set_period_bytes(period);
            let batch = Batch { first_call: first, calls };
            let mut expected = Vec::new();
            for call in first..first + calls {
                for j in 0..cpc {
                    let index = buffer.index(p.stream_position(call)) + (j * p.chunk_bytes) as usize;
                    expected.push((p.chunk_offset(call * cpc + j), index));
                    prop_assert!(index + p.chunk_bytes as usize <= buffer.bytes().len());
                }
            }
            let got: Vec<_> = ChunkWalk::new(&p, Direction::Write, batch, &buffer, Path::new("f")).unwrap().collect();
            prop_assert_eq!(got, expected);
        }
    }

    proptest! {
        /// In any order and in any batches: each chunk once, with the data that it has in ascending order; reads use the memory of the calls
        /// in turn.
        #[test]
        fn an_order_changes_when_chunks_are_accessed_and_not_their_data(
            kind in proptest::sample::select(&[OrderKind::Sequential, OrderKind::Random, OrderKind::Strided, OrderKind::Reverse][..]),
            chunk in 1_u64..40, calls in 1_u64..70, gap in 0_u64..100, base in 0_u64..10_000, stream in 0_u64..100_000,
            period in 40_u64..3 * 4096, splits in proptest::collection::vec(0_u64..30, 0..6), seed: u64,
        ) {
            let plain = AccessPattern { base_bytes: base, stride_bytes: chunk + gap, stream_bytes: stream, ..pattern(chunk, 1, calls) };
            let p = plain.in_order(kind, seed);
            let mut buffer = TransferBuffer::new(3 * 4096, p.call_bytes()).unwrap();
            buffer.set_period_bytes(period);
            let walked = |direction| {
                let (mut all, mut first_call) = (Vec::new(), 0);
                for n in splits.iter().copied().chain([u64::MAX]) {
                    let n = n.min(calls - first_call);
                    let mut walk = ChunkWalk::new(&p, direction, Batch { first_call, calls: n }, &buffer, Path::new("f")).unwrap();
                    all.extend(walk.by_ref());
                    // As a queue that stays full.
                    let more = u64::from(first_call + n < calls);
                    walk.extend(more);
                    all.extend(walk);
                    first_call += n + more;
                }
                all
            };
            let (written, read) = (walked(Direction::Write), walked(Direction::Read));
            let definition = |call| (plain.chunk_offset(call), buffer.index(plain.stream_position(call)));
            let order = p.order.unwrap();
            for call in 0..calls {
                let (offset, index) = definition(order.at(call));
                prop_assert_eq!(written[call as usize], (offset, index));
                prop_assert_eq!(read[call as usize], (offset, definition(call).1));
            }
            let mut offsets: Vec<u64> = written.iter().map(|(offset, _)| *offset).collect();
            offsets.sort_unstable();
            prop_assert_eq!(offsets, (0..calls).map(|call| plain.chunk_offset(call)).collect::<Vec<_>>());
        }
    }

    #[test]
    fn a_ring_without_overhang_takes_calls_that_divide_it() {
        let mut buffer = TransferBuffer::new(4096, 0).unwrap();
        let fits = |p: &AccessPattern, buffer: &TransferBuffer| check_fits(p, buffer, Path::new("f")).is_ok();
        assert!(fits(&pattern(512, 2, 1000), &buffer) && fits(&pattern(4096, 1, 1000), &buffer));
        assert!(fits(&pattern(1000, 1, 4), &buffer), "it never wraps");
        assert!(!fits(&pattern(1000, 1, 5), &buffer));
        assert!(!fits(&AccessPattern { stream_bytes: 8, ..pattern(512, 1, 1000) }, &buffer), "one crosses the end");
        assert!(fits(&AccessPattern { stream_bytes: 4096 + 8, ..pattern(511, 1, 8) }, &buffer));
        buffer.set_period_bytes(15);
        assert!(fits(&pattern(5, 1, u64::MAX), &buffer) && fits(&pattern(4081, 1, u64::MAX), &buffer));
        assert!(!fits(&pattern(4082, 1, 2), &buffer));
    }

    #[test]
    fn too_long_calls_and_calls_without_chunks_are_refused() {
        let buffer = TransferBuffer::new(4096, 64).unwrap();
        let batch = Batch { first_call: 0, calls: 1 };
        assert!(ChunkWalk::new(&pattern(64, 1, 1), Direction::Write, batch, &buffer, Path::new("f")).is_ok());
        assert!(ChunkWalk::new(&pattern(4096 * 2, 1, 1), Direction::Write, batch, &buffer, Path::new("f")).is_err());
        let none = ChunkWalk::new(
            &pattern(0, 1, 3),
            Direction::Write,
            Batch { first_call: 0, calls: 3 },
            &buffer,
            Path::new("f"),
        )
        .unwrap();
        assert_eq!(none.collect::<Vec<_>>(), [(0, 0); 3], "a part of nothing is moved as often as any other");
        assert!(ChunkWalk::new(&pattern(1 << 33, (1 << 31) + 1, 1), Direction::Write, batch, &buffer, Path::new("f"))
            .is_err());
        assert!(ChunkWalk::new(&pattern(8, 0, 1), Direction::Write, batch, &buffer, Path::new("f")).is_err());
    }
}
