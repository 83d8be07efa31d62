//! Batches that follow each other without draining the queue, for files that support it ([`beff_backends::Protocol::pipelined`]): the ranks
//! post and complete reductions while transfers are in flight.

use beff_backends::{Batch, Batches, Latency, OpenFile, TransferBuffer};
use beff_ffi::MpiError;

use super::TimedLoop;
use crate::b_eff_io::records::StopReason;
use crate::b_eff_io::run::batching::{next, BatchDecision};
use crate::frame::run::clock::Instant;

struct NewestBatch {
    first_call: u64,
    calls: u64,
    since: Instant,
    /// Time window in which completions are counted to estimate the batch's time, with those of earlier batches.
    window: RateWindow,
    /// Time of the preallocation before it.
    preallocate_seconds: f64,
    /// Chunks that were in flight at its start.
    earlier_chunks: u64,
    /// True once its reduction is posted.
    is_posted: bool,
}

impl TimedLoop<'_, '_> {
    pub(super) fn can_flow(&self, file: &dyn OpenFile) -> bool {
        self.inspector.is_none() && !self.decides_per_call() && self.error.is_none() && file.protocol().pipelined
    }

    /// Runs a batch of `calls` and those that follow by decisions meanwhile, as far as the preallocated range extends. Returns true if the
    /// reductions of all batches are posted; after an error that of the last one is not.
    pub(super) fn flow(
        &mut self,
        file: &mut dyn OpenFile,
        buffer: &mut TransferBuffer,
        calls: u64,
    ) -> Result<(bool, Option<StopReason>), MpiError> {
        let batch = Batch { first_call: self.progress.calls, calls };
        let (allocated, room_seconds) = self.preallocate(file, batch);
        let most_calls = match allocated {
            Ok(calls) => calls,
            Err(e) => {
                self.error = Some(e);
                self.add_batch(calls, room_seconds);
                return Ok((false, None));
            }
        };
        let (decided_seconds, task) = (self.intervals.decide_seconds, self.task);
        let begin = Instant::now();
        let mut newest = NewestBatch {
            first_call: batch.first_call,
            calls,
            since: begin,
            window: RateWindow { since: begin, ended_chunks: 0 },
            preallocate_seconds: room_seconds,
            earlier_chunks: 0,
            is_posted: false,
        };
        let mut latency = std::mem::replace(&mut self.recorder.latency, Latency::off());
        let mut outcome = Ok(None);
        let mut ask = |under_way| match self.next_batch(&mut newest, under_way, most_calls) {
            Ok(FlowDecision::Run(calls)) => Some(calls),
            Ok(FlowDecision::Stop(ended)) => {
                outcome = Ok(ended);
                None
            }
            Err(e) => {
                outcome = Err(e);
                None
            }
        };
        let moved = task.transfer(file, Batches::new(batch, &mut latency).with_next(&mut ask), buffer);
        self.recorder.latency = latency;
        self.in_flight_seconds = 0.0;
        let decided_seconds = self.intervals.decide_seconds - decided_seconds;
        self.intervals.transfer_seconds += begin.elapsed().as_secs_f64() - decided_seconds;
        if !newest.is_posted {
            self.add_batch(newest.calls, newest.preallocate_seconds + newest.since.elapsed().as_secs_f64());
        }
        match moved {
            Ok(bytes) => {
                let asked_bytes = (self.progress.calls - batch.first_call) * self.task.pattern.call_bytes();
                debug_assert_eq!(bytes, asked_bytes, "all requested bytes were moved");
                self.moved_bytes += bytes;
            }
            Err(e) => {
                // Chunks completed when the newest batch started; none of them had failed.
                let chunks = (newest.first_call - batch.first_call) * self.task.pattern.chunks_per_call;
                self.moved_bytes += chunks.saturating_sub(newest.earlier_chunks) * self.task.pattern.chunk_bytes;
                self.error = Some(e);
            }
        }
        Ok((newest.is_posted, outcome?))
    }

    /// Posts the reduction of the newest batch, completes others where necessary, and decides what follows, as for batches that drain the
    /// queue. The flow ends before a batch that exceeds the first `most_calls` of the pattern.
    fn next_batch(
        &mut self,
        newest: &mut NewestBatch,
        chunks_under_way: u64,
        most_calls: u64,
    ) -> Result<FlowDecision, MpiError> {
        // Transfers continue during the agreement: that time counts for the next batch.
        let now = Instant::now();
        let chunks = newest.calls * self.task.pattern.chunks_per_call;
        let known =
            (self.progress.calls > 0).then(|| self.progress.call_seconds() / self.task.pattern.chunks_per_call as f64);
        let window = newest.window.add_chunks((chunks + newest.earlier_chunks).saturating_sub(chunks_under_way));
        let seconds = now.duration_since(window.since).as_secs_f64();
        let chunk_seconds = chunk_seconds(seconds, window.ended_chunks, chunks_under_way, newest.earlier_chunks, known);
        self.in_flight_seconds = chunk_seconds * chunks_under_way as f64;
        self.add_batch(newest.calls, newest.preallocate_seconds + chunk_seconds * chunks as f64);
        self.recorder.add_moved_bytes(newest.calls * self.task.pattern.call_bytes());
        newest.is_posted = true;
        if let Some(ended) = self.reduce_batch()? {
            return Ok(FlowDecision::Stop(Some(ended)));
        }
        loop {
            match next(self.task.limits, &self.agreed, self.progress.issued()) {
                BatchDecision::Stop(_) => return Ok(FlowDecision::Stop(None)),
                BatchDecision::Agree => {
                    if let Some(ended) = self.complete_reduction()? {
                        return Ok(FlowDecision::Stop(Some(ended)));
                    }
                }
                BatchDecision::Run(calls) if calls > most_calls.saturating_sub(self.progress.calls) => {
                    return Ok(FlowDecision::Stop(None))
                }
                BatchDecision::Run(calls) => {
                    *newest = NewestBatch {
                        first_call: self.progress.calls,
                        calls,
                        since: now,
                        window: window.next_window(now, chunks_under_way),
                        preallocate_seconds: 0.0,
                        earlier_chunks: chunks_under_way,
                        is_posted: false,
                    };
                    return Ok(FlowDecision::Run(calls));
                }
            }
        }
    }
}

/// A time window, and the chunks completed in it. Chunks of a queue complete in bursts: the rate is reliable only over several queue
/// lengths.
#[derive(Clone, Copy, Debug)]
struct RateWindow {
    since: Instant,
    ended_chunks: u64,
}

/// A window ends when this many times the number of chunks in flight has completed.
const QUEUES_PER_WINDOW: u64 = 4;

impl RateWindow {
    fn add_chunks(self, ended_chunks: u64) -> Self {
        Self { ended_chunks: self.ended_chunks + ended_chunks, ..self }
    }

    /// The window of the next batch: a new one if this one has enough completions.
    fn next_window(self, now: Instant, chunks_under_way: u64) -> Self {
        if self.ended_chunks >= QUEUES_PER_WINDOW * chunks_under_way {
            return Self { since: now, ended_chunks: 0 };
        }
        self
    }
}

/// Time of a chunk, where `ended` of them completed in `seconds`. Fewer are in flight than the batch has, so at least one has completed. A
/// queue that was empty before may have completed only its first chunks, each of which took as long as many take together: then the `known`
/// time counts if it is smaller. Without one, the chunks in flight are assumed to complete at once: no pattern ends because of the first
/// completion of its queue.
fn chunk_seconds(seconds: f64, ended: u64, under_way: u64, chunks_before: u64, known: Option<f64>) -> f64 {
    let seen = seconds / ended.max(1) as f64;
    match known {
        _ if chunks_before > 0 => seen,
        Some(known) => known.min(seen),
        None => seconds / (ended + under_way).max(1) as f64,
    }
}

enum FlowDecision {
    Run(u64),
    /// The end; None: the loop or a completed reduction determines the reason.
    Stop(Option<StopReason>),
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{chunk_seconds, RateWindow};
    use crate::frame::run::clock::Instant;

    /// 16 chunks in flight, 1 ms each: the first completes after 16 ms, and nearly all others with it.
    #[test]
    fn a_refilling_queue_is_not_rated_slow() {
        assert_eq!(chunk_seconds(0.016, 1, 15, 0, Some(0.001)), 0.001);
        // The queue may have become faster.
        assert_eq!(chunk_seconds(0.016, 32, 0, 0, Some(0.001)), 0.0005);
        // A queue that was full has its actual rate.
        assert_eq!(chunk_seconds(0.064, 16, 16, 16, Some(0.001)), 0.004);
        // No other time is known for the first batch.
        assert_eq!(chunk_seconds(0.016, 1, 15, 0, None), 0.001);
        assert_eq!(chunk_seconds(0.016, 1, 0, 0, None), 0.016);
        assert_eq!(chunk_seconds(0.016, 0, 16, 16, Some(0.001)), 0.016);
    }

    /// The same queue: the other 15 chunks complete right after the first; the queue is not rated fast either.
    #[test]
    fn chunks_that_end_together_are_not_rated_fast() {
        let begin = Instant::now();
        let after = |ms| begin + Duration::from_millis(ms);
        let seconds = |window: RateWindow, ms| after(ms).duration_since(window.since).as_secs_f64();
        let first = RateWindow { since: begin, ended_chunks: 0 }.add_chunks(1);
        let second = first.next_window(after(16), 15).add_chunks(16);
        assert_eq!(chunk_seconds(seconds(second, 17), second.ended_chunks, 15, 15, Some(0.001)), 0.001);
        // A new window begins after several queue lengths.
        let third = second.next_window(after(17), 15).add_chunks(48);
        assert_eq!((third.since, third.ended_chunks), (begin, 65));
        let fourth = third.next_window(after(65), 16).add_chunks(16);
        assert_eq!((fourth.since, fourth.ended_chunks), (after(65), 16));
        // No chunk is in flight after the last one of a queue of one.
        assert_eq!(first.next_window(after(16), 0).since, after(16));
    }
}
