//! Pipelined batches in one queue: the next batch is submitted while the previous one is in flight.

use super::{QueuedPattern, UringFile};
use crate::route::FileRoute;
use crate::walk::{check_within, ChunkWalk, IoRequest, IoRequestSource};
use crate::{AccessPattern, BackendError, Batch, Latency, NextBatch, Result, TransferBuffer};

pub(super) struct BatchPipeline<'a> {
    walk: ChunkWalk,
    pattern: AccessPattern,
    batch: Batch,
    next: Option<NextBatch<'a>>,
    /// Calls of all batches so far.
    calls: &'a mut u64,
}

impl IoRequestSource for BatchPipeline<'_> {
    #[inline]
    fn next_request(&mut self) -> Option<IoRequest> {
        self.walk.next_request()
    }

    #[inline]
    fn is_done(&self) -> bool {
        self.walk.is_done()
    }

    fn refill_threshold(&self) -> Option<u64> {
        self.next.as_ref().map(|_| (self.batch.calls * self.pattern.chunks_per_call).saturating_sub(1))
    }

    fn refill(&mut self, under_way: u64) {
        let Some(calls) = self.next.as_mut().and_then(|next| next(under_way)) else {
            self.next = None;
            return;
        };
        self.batch = Batch { first_call: self.batch.first_call + self.batch.calls, calls };
        check_within(&self.pattern, self.batch);
        self.walk.extend(calls);
        *self.calls += calls;
    }
}

impl UringFile {
    /// [`crate::Protocol::pipelined`]: not with edge sectors between two batches, nor in lockstep.
    pub(super) fn can_pipeline(&self) -> bool {
        let alone = |p: &QueuedPattern| !matches!(p.route, FileRoute::DirectEdges { .. });
        !self.file.two_phase.is_active() && !self.file.needs_lockstep() && self.prepared.as_ref().is_some_and(alone)
    }

    /// [`UringFile::run_batch`] followed by the batches of `next`. `base` is the mapping of the buffer of `check`.
    pub(super) fn run_pipelined(
        &mut self,
        batch: Batch,
        buffer: &TransferBuffer,
        base: *mut u8,
        latency: &mut Latency,
        next: NextBatch<'_>,
    ) -> Result<u64> {
        let path = &self.file.files.path;
        let prepared = self.prepared.as_ref().ok_or_else(|| BackendError::not_prepared("io_uring", path))?;
        let (pattern, direction) = (prepared.pattern, prepared.direction);
        let walk = ChunkWalk::new(&pattern, direction, batch, buffer, path)?;
        let mut calls = batch.calls;
        let flow = BatchPipeline { walk, pattern, batch, next: Some(next), calls: &mut calls };
        let moved = self.pump(flow, base, None, latency, None);
        self.file.record_written(Batch { calls, ..batch });
        moved?;
        Ok(calls * pattern.call_bytes())
    }
}
