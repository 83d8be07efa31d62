//! What a loop notes down, and what becomes of it when the ranks bring their numbers together, after the clock.

use std::sync::atomic::Ordering;

use beff_backends::{BackendError, InForce, Latency};
use beff_ffi::{Comm, MpiError};

use crate::b_eff_io::records::{BatchRecord, Ended, Intervals, SubmissionRecord};
use crate::b_eff_io::run::batching::Progress;
use crate::frame::run::agree::slowest;
use crate::frame::run::Live;
use crate::frame::system::memory::ProcessIo;

/// Decisions whose cost is kept one by one. Geometric batches never need more; with a decision after every call the
/// later ones are taken to cost what these cost.
const DECISIONS_KEPT: usize = 4096;
/// Batches kept one by one; later ones are added to the last.
const BATCHES_KEPT: usize = 4096;

/// Room for what a loop notes down, made once for the whole run.
#[derive(Debug)]
pub struct Notes {
    decide_seconds: Vec<f64>,
    batches: Vec<BatchRecord>,
    /// Times of the calls of the last round, this rank's.
    pub(super) latency: Latency,
    live: Live,
}

impl Default for Notes {
    fn default() -> Self {
        Self {
            decide_seconds: Vec::with_capacity(DECISIONS_KEPT),
            batches: Vec::with_capacity(BATCHES_KEPT),
            latency: Latency::off(),
            live: Live::default(),
        }
    }
}

impl Notes {
    /// Room for a run, with or without the times of single calls.
    #[must_use]
    pub fn new(latency: bool, live: Live) -> Self {
        Self { latency: if latency { Latency::on() } else { Latency::off() }, live, ..Self::default() }
    }

    pub(super) fn clear(&mut self) {
        self.decide_seconds.clear();
        self.batches.clear();
        self.latency.clear();
    }

    pub(super) fn decided(&mut self, seconds: f64) {
        if self.decide_seconds.len() < DECISIONS_KEPT {
            self.decide_seconds.push(seconds);
        }
    }

    /// For whoever looks meanwhile.
    pub(super) fn moved(&self, bytes: u64) {
        self.live.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(super) fn batch(&mut self, calls: u64, seconds: f64) {
        if self.batches.len() < BATCHES_KEPT {
            self.batches.push(BatchRecord { calls, seconds });
        } else if let Some(last) = self.batches.last_mut() {
            last.calls += calls;
            last.seconds += seconds;
        }
    }
}

/// What came out, equal on all ranks of the communicator except `error`.
#[derive(Clone, Debug)]
pub struct Measured {
    /// Calls per rank in this round.
    pub calls: u64,
    /// State of the loop over all rounds so far.
    pub progress: Progress,
    /// Bytes of all ranks.
    pub moved_bytes: u64,
    /// Time of the slowest rank, in parts.
    pub intervals: Intervals,
    /// Common decisions.
    pub decisions: u64,
    /// What they cost without the waiting.
    pub decision_cost_seconds: f64,
    /// By how much they made the pattern longer than its slowest rank's own part.
    pub held_up_seconds: f64,
    /// Batches.
    pub batches: Vec<BatchRecord>,
    /// Why it ended.
    pub ended: Ended,
    /// This rank's preparation.
    pub in_force: Option<InForce>,
    /// Why a rank made no more room for its writes, which went on without.
    pub without_room: Option<String>,
    /// What went through queues of io_uring, all ranks; None: the backend has none.
    pub submissions: Option<SubmissionRecord>,
    /// This rank's error.
    pub error: Option<BackendError>,
    /// Allocations inside the clock, all ranks.
    pub allocations_in_clock: u64,
    /// What the kernel counted, all ranks; None where it does not tell.
    pub io: Option<ProcessIo>,
}

impl Measured {
    /// Of a pattern without any call.
    pub(super) fn nothing(ended: Ended) -> Self {
        Self {
            calls: 0,
            progress: Progress::default(),
            moved_bytes: 0,
            intervals: Intervals::default(),
            decisions: 0,
            decision_cost_seconds: 0.0,
            held_up_seconds: 0.0,
            batches: Vec::new(),
            ended,
            in_force: None,
            without_room: None,
            submissions: None,
            error: None,
            allocations_in_clock: 0,
            io: None,
        }
    }

    /// Takes a later round of the same pattern in.
    pub fn add(&mut self, later: Self) {
        self.calls += later.calls;
        self.progress = later.progress;
        self.moved_bytes += later.moved_bytes;
        self.intervals.add(&later.intervals);
        self.decisions += later.decisions;
        self.decision_cost_seconds += later.decision_cost_seconds;
        self.held_up_seconds += later.held_up_seconds;
        self.batches.extend(later.batches);
        self.ended = later.ended;
        self.without_room = self.without_room.take().or(later.without_room);
        self.submissions = match (self.submissions, later.submissions) {
            (Some(a), Some(b)) => Some(SubmissionRecord {
                registered: a.registered + b.registered,
                plain: a.plain + b.plain,
                workers: a.workers.max(b.workers),
                worker_cpu_seconds: a.worker_cpu_seconds + b.worker_cpu_seconds,
            }),
            (a, b) => a.or(b),
        };
        self.error = self.error.take().or(later.error);
        self.allocations_in_clock += later.allocations_in_clock;
        self.io = self.io.zip(later.io).map(|(a, b)| ProcessIo {
            read_bytes: a.read_bytes + b.read_bytes,
            written_bytes: a.written_bytes + b.written_bytes,
            call_read_bytes: a.call_read_bytes + b.call_read_bytes,
            call_written_bytes: a.call_written_bytes + b.call_written_bytes,
        });
    }

    /// Brings the ranks' numbers together, after the clock.
    pub(super) fn bring_together(mut self, comm: &Comm, notes: &mut Notes) -> Result<Self, MpiError> {
        let is_direct = |direct| u64::from(self.in_force.as_ref().is_some_and(|i| i.direct == Some(direct)));
        let io = self.io.unwrap_or_default();
        let [untold, failed] = [self.io.is_none(), self.error.is_some()].map(u64::from);
        let (moved, allocations) = (self.moved_bytes, self.allocations_in_clock);
        let [calls_read, calls_written] = [io.call_read_bytes, io.call_written_bytes];
        let (is_direct, is_buffered) = (is_direct(true), is_direct(false));
        let mut sums = [
            moved,
            allocations,
            io.read_bytes,
            io.written_bytes,
            calls_read,
            calls_written,
            untold,
            failed,
            is_direct,
            is_buffered,
        ];
        comm.sum_u64(&mut sums)?;
        let [moved, allocations, read_bytes, written_bytes, call_read_bytes, call_written_bytes, untold, failed, direct, buffered] =
            sums;
        (self.moved_bytes, self.allocations_in_clock) = (moved, allocations);
        self.io = (untold == 0).then_some(ProcessIo { read_bytes, written_bytes, call_read_bytes, call_written_bytes });
        if failed > 0 {
            self.ended = Ended::Error;
        }
        if let (Some(mine), true) = (&mut self.in_force, direct > 0 && buffered > 0) {
            // Segments that are not aligned can differ from rank to rank; what is partly cached is not direct.
            mine.direct = Some(false);
            mine.strategy = format!("direct on {direct} ranks, buffered on {buffered}; rank 0: {}", mine.strategy);
        }

        // The parts shown are those of the slowest rank, so that they add up to the pattern's time.
        let i = self.intervals;
        let total = i.total_seconds();
        let mut longest = [total, total - i.decide_seconds];
        comm.max_f64(&mut longest)?;
        let [longest, own] = longest;
        self.held_up_seconds = longest - own;
        let mut root = [if total >= longest { comm.rank() } else { u64::MAX }];
        comm.min_u64(&mut root)?;
        let mut parts = [i.view_seconds, i.room_seconds, i.transfer_seconds, i.decide_seconds, i.sync_seconds];
        comm.bcast_f64(&mut parts, root[0])?;
        self.intervals = Intervals {
            view_seconds: parts[0],
            room_seconds: parts[1],
            transfer_seconds: parts[2],
            decide_seconds: parts[3],
            sync_seconds: parts[4],
        };

        self.progress.elapsed_seconds += self.intervals.total_seconds();
        self.progress.last_seconds = slowest(comm, self.progress.last_seconds)?;

        // The rank that arrives last at a decision waits for nobody: its time is the decision's own cost.
        comm.min_f64(&mut notes.decide_seconds)?;
        let kept: f64 = notes.decide_seconds.iter().sum();
        self.decision_cost_seconds = kept * (self.decisions as f64 / notes.decide_seconds.len().max(1) as f64);
        // Only the last batch can differ between the ranks: it may have had no decision after it.
        if let Some(last) = notes.batches.last_mut() {
            last.seconds = slowest(comm, last.seconds)?;
        }
        self.batches = notes.batches.clone();
        Ok(self)
    }
}
