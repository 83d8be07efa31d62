//! What is still to begin of a batch: its chunks, or parts of them.

use std::io;

use super::parts::{Parts, WHOLE};
use crate::walk::{Piece, Pieces};
use crate::Latency;

/// Why a batch did not succeed.
#[derive(Debug)]
pub(super) enum Failure {
    /// An operation failed at this offset.
    Chunk { number: u64, offset: u64, errno: i32 },
    /// A piece ended before its last byte.
    Short { number: u64, offset: u64, expected: u64, got: u64 },
    /// The queue itself failed.
    Enter(io::Error),
    /// The queue failed in an earlier batch.
    Abandoned,
}

impl Failure {
    /// Number of the operation in its batch; the failure of the queue comes before all.
    pub(super) fn number(&self) -> u64 {
        match self {
            Self::Chunk { number, .. } | Self::Short { number, .. } => *number,
            Self::Enter(_) | Self::Abandoned => 0,
        }
    }
}

/// The chunks of a batch that are still to begin.
pub(super) struct Stream<P> {
    pub(super) walk: P,
    /// Bytes of the largest operation.
    most_bytes: u64,
    /// What is still to begin of the newest piece, and the number of that piece in the table.
    rest: (Piece, u32),
    pub(super) begun: u64,
    /// Operations below this number may be begun without a look at the oldest one in flight.
    pub(super) begin_below: u64,
    pub(super) failure: Option<Failure>,
}

impl<P: Pieces> Stream<P> {
    /// `operation_bytes`, `span`: as in [`super::pump::Job`].
    pub(super) fn new(walk: P, operation_bytes: Option<u64>, span: u64) -> Self {
        let most_bytes = operation_bytes.unwrap_or(u64::MAX);
        Self { walk, most_bytes, rest: Default::default(), begun: 0, begin_below: span, failure: None }
    }

    /// The next operation, and the piece that it is a part of or [`WHOLE`].
    #[inline]
    pub(super) fn next_operation(&mut self, parts: &mut Parts, latency: &Latency) -> Option<(Piece, u32)> {
        if self.rest.0.len == 0 {
            let piece = self.walk.next_piece()?;
            if piece.len <= self.most_bytes {
                return Some((piece, WHOLE));
            }
            self.rest = (piece, parts.begin(&piece, self.most_bytes, latency.begin()));
        }
        let (rest, of) = &mut self.rest;
        Some((rest.split_off(self.most_bytes), *of))
    }

    pub(super) fn is_done(&self) -> bool {
        self.failure.is_some() || self.is_begun()
    }

    fn is_begun(&self) -> bool {
        self.rest.0.len == 0 && self.walk.is_done()
    }

    /// Pieces under way at most when more may be asked for; None: there is still something to begin, or no more will come.
    pub(super) fn asks_at(&self) -> Option<usize> {
        let is_begun = self.failure.is_none() && self.is_begun();
        // Far more than a queue holds is as good as any number.
        is_begun.then(|| self.walk.asks_at())?.map(|most| usize::try_from(most).unwrap_or(usize::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::pattern;
    use crate::walk::Walk;
    use crate::{Batch, Ring};
    use std::path::Path;

    #[test]
    fn parts_of_a_chunk_do_not_wait_for_each_other() {
        let ring = Ring::new(1 << 16, 1 << 16).unwrap();
        let batch = Batch { first_call: 0, calls: 2 };
        let walk = Walk::new(&pattern(10_000, 1, 2), batch, &ring, Path::new("f")).unwrap();
        let mut stream = Stream::new(walk, Some(4096), 8);
        let (mut parts, latency) = (Parts::new(8), Latency::off());
        let mut all = Vec::new();
        while let Some((piece, of)) = stream.next_operation(&mut parts, &latency) {
            all.push((piece.offset, piece.len, of));
            assert_eq!(stream.is_done(), all.len() == 6);
        }
        let of_chunk = |begin, of| [(begin, 4096, of), (begin + 4096, 4096, of), (begin + 8192, 1808, of)];
        assert_eq!(all, [of_chunk(0, 0), of_chunk(10_000, 1)].concat());
        assert_eq!(parts.under_way(), 2, "nothing has ended");
    }
}
