//! Reductions of batch times over the ranks, pending while the next batches run.

use beff_ffi::{Comm, MaxReduction, MpiError};

use crate::b_eff_io::run::batching::LoopProgress;
use crate::frame::run::clock::Instant;

/// Numbers in one reduction.
pub(super) const REDUCTION_LEN: usize = 6;
/// Maximum number of reductions in flight while a batch runs. With one, a rank waits for another that is a batch behind. Small batches
/// differ by more than that, and libraries that progress a reduction only inside their calls need one for each of its steps on more than
/// two ranks. The value exceeds the number of long batches that may be ahead (`batching`).
const MAX_IN_FLIGHT: usize = 8;

/// Reductions in flight, oldest first. All memory is allocated before the clock.
#[derive(Debug)]
pub(super) struct PendingReductions<'c> {
    slots: Vec<PendingReduction<'c>>,
    /// Index of the oldest one, and their number.
    first: usize,
    count: usize,
}

#[derive(Debug)]
struct PendingReduction<'c> {
    agreement: MaxReduction<'c>,
    progress: LoopProgress,
    post_seconds: f64,
}

/// A completed reduction.
#[derive(Clone, Copy, Debug)]
pub(super) struct CompletedReduction {
    /// This rank's progress when the reduction was posted.
    pub(super) progress: LoopProgress,
    /// Maxima over the ranks.
    pub(super) numbers: [f64; REDUCTION_LEN],
    /// Time of this rank to post the reduction, and to complete it.
    pub(super) post_seconds: f64,
    pub(super) complete_seconds: f64,
}

impl<'c> PendingReductions<'c> {
    /// No reduction in flight on `comm`. Collective.
    ///
    /// # Errors
    /// What MPI reports.
    pub(super) fn new(comm: &'c Comm) -> Result<Self, MpiError> {
        let slot = |_| -> Result<_, MpiError> {
            let agreement = MaxReduction::new(comm, REDUCTION_LEN)?;
            Ok(PendingReduction { agreement, progress: LoopProgress::default(), post_seconds: 0.0 })
        };
        Ok(Self { slots: (0..MAX_IN_FLIGHT).map(slot).collect::<Result<_, _>>()?, first: 0, count: 0 })
    }

    /// True if a reduction must be completed before another is posted.
    pub(super) fn is_full(&self) -> bool {
        self.count == self.slots.len()
    }

    /// Posts the reduction of `numbers` for this rank's progress `of`; returns the time. Collective, nonblocking.
    ///
    /// # Errors
    /// What MPI reports.
    pub(super) fn post(&mut self, of: LoopProgress, numbers: [f64; REDUCTION_LEN]) -> Result<f64, MpiError> {
        let begin = Instant::now();
        let slots = self.slots.len();
        let slot = &mut self.slots[(self.first + self.count) % slots];
        slot.agreement.post(&numbers)?;
        self.count += 1;
        // The library progresses all reductions when it tests one that is pending; the oldest may have completed long ago.
        slot.agreement.progress()?;
        let telling_seconds = begin.elapsed().as_secs_f64();
        (slot.progress, slot.post_seconds) = (of, telling_seconds);
        Ok(telling_seconds)
    }

    /// Completes the oldest reduction; None if none is in flight.
    ///
    /// # Errors
    /// What MPI reports.
    pub(super) fn complete(&mut self) -> Result<Option<CompletedReduction>, MpiError> {
        if self.count == 0 {
            return Ok(None);
        }
        let begin = Instant::now();
        let slot = &mut self.slots[self.first];
        let mut numbers = [0.0; REDUCTION_LEN];
        numbers.copy_from_slice(slot.agreement.complete()?);
        let (of, telling_seconds) = (slot.progress, slot.post_seconds);
        self.first = (self.first + 1) % self.slots.len();
        self.count -= 1;
        Ok(Some(CompletedReduction {
            progress: of,
            numbers,
            post_seconds: telling_seconds,
            complete_seconds: begin.elapsed().as_secs_f64(),
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reductions_complete_in_the_order_of_posting() {
        let own = Comm::comm_self();
        let mut pending = PendingReductions::new(&own).unwrap();
        assert!(pending.complete().unwrap().is_none());
        let (mut next, mut expected) = (0, 0);
        // Wraps around the end of the slots, full and not.
        for heard_at_once in [1, MAX_IN_FLIGHT, 2, MAX_IN_FLIGHT, 1] {
            while !pending.is_full() {
                next += 1;
                pending
                    .post(LoopProgress { calls: next, ..LoopProgress::default() }, [next as f64; REDUCTION_LEN])
                    .unwrap();
            }
            for _ in 0..heard_at_once {
                expected += 1;
                let completed = pending.complete().unwrap().unwrap();
                assert_eq!((completed.progress.calls, completed.numbers), (expected, [expected as f64; REDUCTION_LEN]));
                assert!(completed.post_seconds >= 0.0 && completed.complete_seconds >= 0.0 && !pending.is_full());
            }
        }
        assert_eq!(next - expected, MAX_IN_FLIGHT as u64 - 1);
    }
}
