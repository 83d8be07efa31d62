//! Batches that follow each other without an end between them, for files that can ([`OpenFile::flows`]): the ranks tell and hear while the
//! file works on what they have begun.

use std::time::Instant;

use beff_backends::{Batch, Direction, Latency, OpenFile, Ring};
use beff_ffi::MpiError;

use super::Loop;
use crate::b_eff_io::records::Ended;
use crate::b_eff_io::run::batching::{next, Step};

/// The batch that was begun last.
struct Newest {
    first_call: u64,
    calls: u64,
    since: Instant,
    /// Chunks that were under way when it was begun.
    chunks_before: u64,
    /// True once it was told.
    is_told: bool,
}

impl Loop<'_, '_> {
    pub(super) fn can_flow(&self, file: &dyn OpenFile) -> bool {
        self.inspector.is_none() && !self.is_asked_often() && self.error.is_none() && file.flows()
    }

    /// A batch of `calls` and those that follow from what is heard meanwhile. True if all were told; an error leaves the last one to be told.
    pub(super) fn flow(
        &mut self,
        file: &mut dyn OpenFile,
        ring: &mut Ring,
        calls: u64,
    ) -> Result<(bool, Option<Ended>), MpiError> {
        let begin = Instant::now();
        let (decided_seconds, direction) = (self.intervals.decide_seconds, self.task.direction);
        let batch = Batch { first_call: self.progress.calls, calls };
        let mut newest = Newest { first_call: batch.first_call, calls, since: begin, chunks_before: 0, is_told: false };
        let mut latency = std::mem::replace(&mut self.notes.latency, Latency::off());
        let mut outcome = Ok(None);
        let mut ask = |under_way| match self.go_on(&mut newest, under_way) {
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
            Direction::Write => file.write_on(batch, ring, &mut latency, &mut ask),
            Direction::Read => file.read_on(batch, ring, &mut latency, &mut ask),
        };
        self.notes.latency = latency;
        self.under_way_seconds = 0.0;
        let decided_seconds = self.intervals.decide_seconds - decided_seconds;
        self.intervals.transfer_seconds += begin.elapsed().as_secs_f64() - decided_seconds;
        if !newest.is_told {
            self.made(newest.calls, newest.since.elapsed().as_secs_f64());
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

    /// Tells of the newest batch, hears what has to be heard, and says what is next, as the loop does for batches with an end.
    fn go_on(&mut self, newest: &mut Newest, chunks_under_way: u64) -> Result<Asked, MpiError> {
        let chunks = newest.calls * self.task.pattern.chunks_per_call;
        // Fewer chunks are under way than the batch has, so at least one has ended since it was begun.
        let ended = (chunks + newest.chunks_before).saturating_sub(chunks_under_way).max(1);
        let chunk_seconds = newest.since.elapsed().as_secs_f64() / ended as f64;
        self.under_way_seconds = chunk_seconds * chunks_under_way as f64;
        self.made(newest.calls, chunk_seconds * chunks as f64);
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
                Step::Run(calls) => {
                    let first_call = self.progress.calls;
                    let since = Instant::now();
                    *newest = Newest { first_call, calls, since, chunks_before: chunks_under_way, is_told: false };
                    return Ok(Asked::Run(calls));
                }
            }
        }
    }
}

/// What follows a batch.
enum Asked {
    /// Another one.
    Run(u64),
    /// None: the loop says why, or what was heard.
    Stop(Option<Ended>),
}
