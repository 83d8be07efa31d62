//! Batches that follow each other without an end between them, for files that can ([`beff_backends::Protocol::pipelined`]): the ranks tell and hear while the
//! file works on what they have begun.

use beff_backends::{Batch, Batches, Direction, Latency, OpenFile, Ring};
use beff_ffi::MpiError;

use super::Loop;
use crate::b_eff_io::records::Ended;
use crate::b_eff_io::run::batching::{next, Step};
use crate::frame::run::clock::Instant;

/// The batch that was begun last.
struct Newest {
    first_call: u64,
    calls: u64,
    since: Instant,
    /// From when on its time is known by what ended, and what of earlier batches ended since then.
    window: Window,
    /// What making room before it took.
    room_seconds: f64,
    /// Chunks that were under way when it was begun.
    chunks_before: u64,
    /// True once it was told.
    is_told: bool,
}

impl Loop<'_, '_> {
    pub(super) fn can_flow(&self, file: &dyn OpenFile) -> bool {
        self.inspector.is_none() && !self.is_asked_often() && self.error.is_none() && file.protocol().pipelined
    }

    /// A batch of `calls` and those that follow from what is heard meanwhile, as far as there is room for them. True if all were told; an error
    /// leaves the last one to be told.
    pub(super) fn flow(
        &mut self,
        file: &mut dyn OpenFile,
        ring: &mut Ring,
        calls: u64,
    ) -> Result<(bool, Option<Ended>), MpiError> {
        let batch = Batch { first_call: self.progress.calls, calls };
        let (allocated, room_seconds) = self.preallocate(file, batch);
        let most_calls = match allocated {
            Ok(calls) => calls,
            Err(e) => {
                self.error = Some(e);
                self.made(calls, room_seconds);
                return Ok((false, None));
            }
        };
        let (decided_seconds, direction) = (self.intervals.decide_seconds, self.task.direction);
        let begin = Instant::now();
        let mut newest = Newest {
            first_call: batch.first_call,
            calls,
            since: begin,
            window: Window { since: begin, ended_chunks: 0 },
            room_seconds,
            chunks_before: 0,
            is_told: false,
        };
        let mut latency = std::mem::replace(&mut self.notes.latency, Latency::off());
        let mut outcome = Ok(None);
        let mut ask = |under_way| match self.go_on(&mut newest, under_way, most_calls) {
            Ok(Asked::Run(calls)) => Some(calls),
            Ok(Asked::Stop(ended)) => {
                outcome = Ok(ended);
                None
            }
            Err(e) => {
                outcome = Err(e);
                None
            }
        };
        let moved = match direction {
            Direction::Write => file.write(Batches::new(batch, &mut latency).followed_by(&mut ask), ring),
            Direction::Read => file.read(Batches::new(batch, &mut latency).followed_by(&mut ask), ring),
        };
        self.notes.latency = latency;
        self.under_way_seconds = 0.0;
        let decided_seconds = self.intervals.decide_seconds - decided_seconds;
        self.intervals.transfer_seconds += begin.elapsed().as_secs_f64() - decided_seconds;
        if !newest.is_told {
            self.made(newest.calls, newest.room_seconds + newest.since.elapsed().as_secs_f64());
        }
        match moved {
            Ok(bytes) => {
                let asked_bytes = (self.progress.calls - batch.first_call) * self.task.pattern.call_bytes();
                debug_assert_eq!(bytes, asked_bytes, "what was asked for was moved");
                self.moved_bytes += bytes;
            }
            Err(e) => {
                // What had ended when the newest batch was begun, which nothing had failed before.
                let chunks = (newest.first_call - batch.first_call) * self.task.pattern.chunks_per_call;
                self.moved_bytes += chunks.saturating_sub(newest.chunks_before) * self.task.pattern.chunk_bytes;
                self.error = Some(e);
            }
        }
        Ok((newest.is_told, outcome?))
    }

    /// Tells of the newest batch, hears what has to be heard, and says what is next, as the loop does for batches with an end. A batch that
    /// needs more than the first `most_calls` of the pattern begins with an end before it.
    fn go_on(&mut self, newest: &mut Newest, chunks_under_way: u64, most_calls: u64) -> Result<Asked, MpiError> {
        // What is under way goes on while the ranks hear of each other: that time is the next batch's.
        let now = Instant::now();
        let chunks = newest.calls * self.task.pattern.chunks_per_call;
        let known =
            (self.progress.calls > 0).then(|| self.progress.call_seconds() / self.task.pattern.chunks_per_call as f64);
        let window = newest.window.with((chunks + newest.chunks_before).saturating_sub(chunks_under_way));
        let seconds = now.duration_since(window.since).as_secs_f64();
        let chunk_seconds = chunk_seconds(seconds, window.ended_chunks, chunks_under_way, newest.chunks_before, known);
        self.under_way_seconds = chunk_seconds * chunks_under_way as f64;
        self.made(newest.calls, newest.room_seconds + chunk_seconds * chunks as f64);
        self.notes.moved(newest.calls * self.task.pattern.call_bytes());
        newest.is_told = true;
        if let Some(ended) = self.tell_of_batch()? {
            return Ok(Asked::Stop(Some(ended)));
        }
        loop {
            match next(self.task.limits, &self.agreed, self.progress.made()) {
                Step::Stop(_) => return Ok(Asked::Stop(None)),
                Step::Agree => {
                    if let Some(ended) = self.hear()? {
                        return Ok(Asked::Stop(Some(ended)));
                    }
                }
                Step::Run(calls) if calls > most_calls.saturating_sub(self.progress.calls) => {
                    return Ok(Asked::Stop(None))
                }
                Step::Run(calls) => {
                    *newest = Newest {
                        first_call: self.progress.calls,
                        calls,
                        since: now,
                        window: window.go_on(now, chunks_under_way),
                        room_seconds: 0.0,
                        chunks_before: chunks_under_way,
                        is_told: false,
                    };
                    return Ok(Asked::Run(calls));
                }
            }
        }
    }
}

/// A stretch of time, and the chunks that ended in it. Chunks of a queue end in bursts: of fewer than go through it several times their rate
/// is a guess.
#[derive(Clone, Copy, Debug)]
struct Window {
    since: Instant,
    ended_chunks: u64,
}

/// A window is over when so many times what is under way has ended in it.
const QUEUES: u64 = 4;

impl Window {
    fn with(self, ended_chunks: u64) -> Self {
        Self { ended_chunks: self.ended_chunks + ended_chunks, ..self }
    }

    /// The window of the next batch: a new one, if this one tells enough by itself.
    fn go_on(self, now: Instant, chunks_under_way: u64) -> Self {
        if self.ended_chunks >= QUEUES * chunks_under_way {
            return Self { since: now, ended_chunks: 0 };
        }
        self
    }
}

/// Time of a chunk, where `ended` of them have ended in this time. Fewer are under way than the batch has, so at least one has. A queue
/// that was empty before may have answered with its first chunks only, each of which took as long as many will together: then what was
/// `known` before counts, if it is less. Where nothing is, those under way are taken to end at once: no pattern ends by the first answer of its queue.
fn chunk_seconds(seconds: f64, ended: u64, under_way: u64, chunks_before: u64, known: Option<f64>) -> f64 {
    let seen = seconds / ended.max(1) as f64;
    match known {
        _ if chunks_before > 0 => seen,
        Some(known) => known.min(seen),
        None => seconds / (ended + under_way).max(1) as f64,
    }
}

/// What follows a batch.
enum Asked {
    /// Another one.
    Run(u64),
    /// None: the loop says why, or what was heard.
    Stop(Option<Ended>),
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{chunk_seconds, Window};
    use crate::frame::run::clock::Instant;

    /// 16 chunks at a time, 1 ms for each: the first one ends after 16 ms, and with it nearly all others.
    #[test]
    fn a_queue_that_begins_again_is_not_taken_for_slow() {
        assert_eq!(chunk_seconds(0.016, 1, 15, 0, Some(0.001)), 0.001);
        // It may have become faster.
        assert_eq!(chunk_seconds(0.016, 32, 0, 0, Some(0.001)), 0.0005);
        // A queue that was full answers as fast as it is.
        assert_eq!(chunk_seconds(0.064, 16, 16, 16, Some(0.001)), 0.004);
        // Nothing else is known of the first batch.
        assert_eq!(chunk_seconds(0.016, 1, 15, 0, None), 0.001);
        assert_eq!(chunk_seconds(0.016, 1, 0, 0, None), 0.016);
        assert_eq!(chunk_seconds(0.016, 0, 16, 16, Some(0.001)), 0.016);
    }

    /// The same queue: after its first chunk the other 15 end at once, and it is not taken for fast either.
    #[test]
    fn chunks_that_end_together_are_not_taken_for_a_fast_queue() {
        let begin = Instant::now();
        let after = |ms| begin + Duration::from_millis(ms);
        let seconds = |window: Window, ms| after(ms).duration_since(window.since).as_secs_f64();
        let first = Window { since: begin, ended_chunks: 0 }.with(1);
        let second = first.go_on(after(16), 15).with(16);
        assert_eq!(chunk_seconds(seconds(second, 17), second.ended_chunks, 15, 15, Some(0.001)), 0.001);
        // A new window begins once the queue has ended some times in this one.
        let third = second.go_on(after(17), 15).with(48);
        assert_eq!((third.since, third.ended_chunks), (begin, 65));
        let fourth = third.go_on(after(65), 16).with(16);
        assert_eq!((fourth.since, fourth.ended_chunks), (after(65), 16));
        // Nothing is under way behind the last one of a queue of one.
        assert_eq!(first.go_on(after(16), 0).since, after(16));
    }
}
