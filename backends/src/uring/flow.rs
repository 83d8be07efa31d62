//! Batches that follow each other in one queue: the next one is begun while the one before is still under way.

use super::{Prepared, UringFile};
use crate::route::Route;
use crate::walk::{check_within, Piece, Pieces, Walk};
use crate::{BackendError, Batch, Latency, Next, Pattern, Result, Ring};

/// The chunks of a batch, and of those that follow it.
pub(super) struct Flow<'a> {
    walk: Walk,
    pattern: Pattern,
    batch: Batch,
    next: Option<Next<'a>>,
    /// Calls of all batches so far.
    calls: &'a mut u64,
}

impl Pieces for Flow<'_> {
    #[inline]
    fn next_piece(&mut self) -> Option<Piece> {
        self.walk.next_piece()
    }

    #[inline]
    fn is_done(&self) -> bool {
        self.walk.is_done()
    }

    fn asks_at(&self) -> Option<u64> {
        self.next.as_ref().map(|_| (self.batch.calls * self.pattern.chunks_per_call).saturating_sub(1))
    }

    fn ask(&mut self, under_way: u64) {
        let Some(calls) = self.next.as_mut().and_then(|next| next(under_way)) else {
            self.next = None;
            return;
        };
        self.batch = Batch { first_call: self.batch.first_call + self.batch.calls, calls };
        // The transfers rely on it.
        check_within(&self.pattern, self.batch);
        self.walk.go_on(calls);
        *self.calls += calls;
    }
}

impl UringFile {
    /// [`crate::Protocol::pipelined`]: sectors at the ends of a batch come between two batches, and so does a step in common.
    pub(super) fn can_flow(&self) -> bool {
        let alone = |p: &Prepared| !matches!(p.route, Route::DirectEdges { .. });
        !self.file.two_phase.is_active() && !self.file.keeps_step() && self.prepared.as_ref().is_some_and(alone)
    }

    /// [`UringFile::run_batch`] with the batches of `next` behind it. `base` is the mapping of the ring of `check`.
    pub(super) fn run_on(
        &mut self,
        batch: Batch,
        ring: &Ring,
        base: *mut u8,
        latency: &mut Latency,
        next: Next<'_>,
    ) -> Result<u64> {
        let path = &self.file.files.path;
        let pattern = self.prepared.as_ref().ok_or_else(|| BackendError::not_prepared("io_uring", path))?.pattern;
        let walk = Walk::new(&pattern, batch, ring, path)?;
        let mut calls = batch.calls;
        let flow = Flow { walk, pattern, batch, next: Some(next), calls: &mut calls };
        let moved = self.pump(flow, base, None, latency, None);
        self.file.used_room(Batch { calls, ..batch });
        moved?;
        Ok(calls * pattern.call_bytes())
    }
}
