//! Operations of a batch still to start: chunks, or parts of them.

use std::io;

use super::split_pieces::{SplitPieces, UNSPLIT};
use crate::walk::{IoRequest, IoRequestSource};
use crate::{Direction, Latency};

#[derive(Debug)]
pub(super) enum BatchFailure {
    /// An operation failed at this offset.
    Operation { number: u64, direction: Direction, offset: u64, errno: i32 },
    /// A piece ended before its last byte.
    Short { number: u64, direction: Direction, offset: u64, expected: u64, got: u64 },
    /// The queue itself failed.
    Enter(io::Error),
    /// The queue failed in an earlier batch.
    Abandoned,
}

impl BatchFailure {
    /// Direction of the operation; None for a failure of the queue.
    pub(super) fn direction(&self) -> Option<Direction> {
        match self {
            Self::Operation { direction, .. } | Self::Short { direction, .. } => Some(*direction),
            Self::Enter(_) | Self::Abandoned => None,
        }
    }

    /// Number of the operation in its batch; a failure of the queue precedes all.
    pub(super) fn number(&self) -> u64 {
        match self {
            Self::Operation { number, .. } | Self::Short { number, .. } => *number,
            Self::Enter(_) | Self::Abandoned => 0,
        }
    }
}

pub(super) struct OperationStream<P> {
    pub(super) walk: P,
    max_operation_bytes: u64,
    /// Remainder of the newest piece, and the index of that piece.
    remainder: (IoRequest, u32),
    pub(super) begun: u64,
    /// Operations below this number start without a search for the oldest in flight.
    pub(super) begin_limit: u64,
    pub(super) failure: Option<BatchFailure>,
}

impl<P: IoRequestSource> OperationStream<P> {
    /// `operation_bytes`, `span`: as in [`super::pump::PumpJob`].
    pub(super) fn new(walk: P, operation_bytes: Option<u64>, span: u64) -> Self {
        let max_operation_bytes = operation_bytes.unwrap_or(u64::MAX);
        Self { walk, max_operation_bytes, remainder: Default::default(), begun: 0, begin_limit: span, failure: None }
    }

    /// The next operation, and its piece or [`UNSPLIT`].
    #[inline]
    pub(super) fn next_operation(&mut self, parts: &mut SplitPieces, latency: &Latency) -> Option<(IoRequest, u32)> {
        if self.remainder.0.len == 0 {
            let piece = self.walk.next_request()?;
            if piece.len <= self.max_operation_bytes {
                return Some((piece, UNSPLIT));
            }
            self.remainder = (piece, parts.begin(&piece, self.max_operation_bytes, latency.begin()));
        }
        let (rest, of) = &mut self.remainder;
        Some((rest.split_off(self.max_operation_bytes), *of))
    }

    pub(super) fn is_done(&self) -> bool {
        self.failure.is_some() || self.is_exhausted()
    }

    fn is_exhausted(&self) -> bool {
        self.remainder.0.len == 0 && self.walk.is_done()
    }

    /// Pieces in flight at which the next batch is requested; None if operations remain, or no batch follows.
    pub(super) fn next_batch_threshold(&self) -> Option<usize> {
        let is_begun = self.failure.is_none() && self.is_exhausted();
        // Anything beyond the queue depth is equivalent.
        is_begun.then(|| self.walk.refill_threshold())?.map(|most| usize::try_from(most).unwrap_or(usize::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::pattern;
    use crate::walk::ChunkWalk;
    use crate::{Batch, TransferBuffer};
    use std::path::Path;

    #[test]
    fn parts_of_a_chunk_do_not_wait_for_each_other() {
        let buffer = TransferBuffer::new(1 << 16, 1 << 16).unwrap();
        let batch = Batch { first_call: 0, calls: 2 };
        let walk = ChunkWalk::new(&pattern(10_000, 1, 2), Direction::Write, batch, &buffer, Path::new("f")).unwrap();
        let mut stream = OperationStream::new(walk, Some(4096), 8);
        let (mut parts, latency) = (SplitPieces::new(8), Latency::off());
        let mut all = Vec::new();
        while let Some((piece, of)) = stream.next_operation(&mut parts, &latency) {
            all.push((piece.offset, piece.len, of));
            assert_eq!(stream.is_done(), all.len() == 6);
        }
        let of_chunk = |begin, of| [(begin, 4096, of), (begin + 4096, 4096, of), (begin + 8192, 1808, of)];
        assert_eq!(all, [of_chunk(0, 0), of_chunk(10_000, 1)].concat());
        assert_eq!(parts.in_flight(), 2, "nothing has ended");
    }
}
