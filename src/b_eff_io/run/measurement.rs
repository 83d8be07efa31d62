//! What a loop records, and its reduction over the ranks after the clock.

use std::sync::atomic::Ordering;

use beff_backends::{BackendError, Latency, TransferStrategy};
use beff_ffi::{Comm, MpiError};

use crate::b_eff_io::records::{BatchRecord, SlowestRank, StopReason, SubmissionRecord, TimeBreakdown};
use crate::b_eff_io::run::batching::LoopProgress;
use crate::frame::run::ByteCounter;
use crate::frame::system::memory::ProcessIo;

/// Decisions whose cost is kept individually. Geometric batches never need more; with a decision after every call later ones are assumed to
/// cost the same.
const DECISIONS_KEPT: usize = 4096;
/// Batches kept individually; later ones are added to the last.
const BATCHES_KEPT: usize = 4096;

/// Preallocated memory for what a loop records, for the whole run.
#[derive(Debug)]
pub struct LoopRecorder {
    decide_seconds: Vec<f64>,
    batches: Vec<BatchRecord>,
    /// Times of this rank's calls in the last round.
    pub(super) latency: Latency,
    /// Host of this rank: index into the hosts of the machine.
    pub host: u64,
    live: ByteCounter,
}

impl Default for LoopRecorder {
    fn default() -> Self {
        Self {
            decide_seconds: Vec::with_capacity(DECISIONS_KEPT),
            batches: Vec::with_capacity(BATCHES_KEPT),
            latency: Latency::off(),
            host: 0,
            live: ByteCounter::default(),
        }
    }
}

impl LoopRecorder {
    /// Memory for a run, with or without times of single calls.
    #[must_use]
    pub fn new(latency: bool, live: ByteCounter) -> Self {
        Self { latency: if latency { Latency::on() } else { Latency::off() }, live, ..Self::default() }
    }

    pub(super) fn clear(&mut self) {
        self.decide_seconds.clear();
        self.batches.clear();
        self.latency.clear();
    }

    pub(super) fn record_decision(&mut self, seconds: f64) {
        if self.decide_seconds.len() < DECISIONS_KEPT {
            self.decide_seconds.push(seconds);
        }
    }

    /// Maxima over the ranks, and the minima of the times of decisions: the last rank to arrive does not wait, its time is the cost of the
    /// decision. Collective; the number of decisions is equal on all ranks.
    fn reduce_with_decisions(&mut self, comm: &Comm, maxima: [f64; 4]) -> Result<[f64; 4], MpiError> {
        let mut numbers: Vec<f64> =
            maxima.into_iter().chain(self.decide_seconds.iter().map(|seconds| -seconds)).collect();
        comm.max_f64(&mut numbers)?;
        self.decide_seconds.iter_mut().zip(&numbers[maxima.len()..]).for_each(|(least, negative)| *least = -negative);
        Ok([numbers[0], numbers[1], numbers[2], numbers[3]])
    }

    /// Counts bytes for the progress display.
    pub(super) fn add_moved_bytes(&self, bytes: u64) {
        self.live.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(super) fn record_batch(&mut self, calls: u64, seconds: f64) {
        if self.batches.len() < BATCHES_KEPT {
            self.batches.push(BatchRecord { calls, seconds });
        } else if let Some(last) = self.batches.last_mut() {
            last.calls += calls;
            last.seconds += seconds;
        }
    }
}

/// What this rank has moved, and its time without the agreements.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct OwnTransfer {
    /// Bytes.
    pub bytes: u64,
    /// Time.
    pub seconds: f64,
}

impl OwnTransfer {
    fn of(bytes: u64, intervals: &TimeBreakdown) -> Self {
        Self { bytes, seconds: intervals.total_seconds() - intervals.decide_seconds }
    }

    /// Adds a later one.
    pub fn add(&mut self, later: Self) {
        self.bytes = self.bytes.saturating_add(later.bytes);
        self.seconds += later.seconds;
    }
}

/// Measurement of a loop, equal on all ranks of the communicator except `error` and `own`.
#[derive(Clone, Debug)]
pub struct LoopMeasurement {
    /// Calls per rank in this round.
    pub calls: u64,
    /// State of the loop over all rounds so far.
    pub progress: LoopProgress,
    /// Bytes of all ranks.
    pub moved_bytes: u64,
    /// Intervals of the slowest rank.
    pub intervals: TimeBreakdown,
    /// Number of decisions.
    pub decisions: u64,
    /// Their cost without waiting.
    pub decision_cost_seconds: f64,
    /// Time by which waiting for other ranks made the pattern longer than the slowest rank's own time.
    pub imbalance_seconds: f64,
    /// The slowest rank of each round; empty with one rank.
    pub slowest_ranks: Vec<SlowestRank>,
    /// This rank's part.
    pub own: OwnTransfer,
    /// Batches.
    pub batches: Vec<BatchRecord>,
    /// Reason of the end.
    pub ended: StopReason,
    /// Settings in force on this rank.
    pub in_force: Option<TransferStrategy>,
    /// Why a rank stopped preallocating and continued without.
    pub preallocation_error: Option<String>,
    /// Operations submitted to io_uring, all ranks; None without a queue.
    pub submissions: Option<SubmissionRecord>,
    /// This rank's error.
    pub error: Option<BackendError>,
    /// Allocations inside the clock, all ranks.
    pub allocations_in_clock: u64,
    /// Kernel counters of all ranks; None if unavailable.
    pub io: Option<ProcessIo>,
}

/// A rank and its host as one number, so that one reduction finds the lowest rank with its host. Ranks of MPI have 31 bits.
fn rank_with_host(rank: u64, host: u64) -> u64 {
    rank << 32 | host.min(u64::from(u32::MAX))
}

fn slowest_rank(rank_with_host: u64, seconds: f64, all_ranks_ns: u64) -> SlowestRank {
    let [rank, host] = [rank_with_host >> 32, rank_with_host & u64::from(u32::MAX)];
    SlowestRank { rank, host, seconds, all_ranks_seconds: all_ranks_ns as f64 / 1e9 }
}

impl LoopMeasurement {
    /// Measurement without any call.
    pub(super) fn empty(ended: StopReason) -> Self {
        Self {
            calls: 0,
            progress: LoopProgress::default(),
            moved_bytes: 0,
            intervals: TimeBreakdown::default(),
            decisions: 0,
            decision_cost_seconds: 0.0,
            imbalance_seconds: 0.0,
            slowest_ranks: Vec::new(),
            own: OwnTransfer::default(),
            batches: Vec::new(),
            ended,
            in_force: None,
            preallocation_error: None,
            submissions: None,
            error: None,
            allocations_in_clock: 0,
            io: None,
        }
    }

    /// Adds a later round of the same pattern.
    pub fn add(&mut self, later: Self) {
        self.calls += later.calls;
        self.progress = later.progress;
        self.moved_bytes += later.moved_bytes;
        self.intervals.add(&later.intervals);
        self.decisions += later.decisions;
        self.decision_cost_seconds += later.decision_cost_seconds;
        self.imbalance_seconds += later.imbalance_seconds;
        self.slowest_ranks.extend(later.slowest_ranks);
        self.own.add(later.own);
        self.batches.extend(later.batches);
        self.ended = later.ended;
        self.preallocation_error = self.preallocation_error.take().or(later.preallocation_error);
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

    /// Unaligned segments can differ between ranks; a partly buffered pattern is not direct.
    fn combine_directness(&mut self, direct: u64, buffered: u64) {
        if let (Some(mine), true) = (&mut self.in_force, direct > 0 && buffered > 0) {
            mine.direct = Some(false);
            mine.strategy = format!("direct on {direct} ranks, buffered on {buffered}; rank 0: {}", mine.strategy);
        }
    }

    /// Reduces the numbers over the ranks, after the clock.
    pub(super) fn reduce(mut self, comm: &Comm, notes: &mut LoopRecorder) -> Result<Self, MpiError> {
        let is_direct = |direct| u64::from(self.in_force.as_ref().is_some_and(|i| i.direct == Some(direct)));
        let io = self.io.unwrap_or_default();
        let [untold, failed] = [self.io.is_none(), self.error.is_some()].map(u64::from);
        let (moved, allocations) = (self.moved_bytes, self.allocations_in_clock);
        let [calls_read, calls_written] = [io.call_read_bytes, io.call_written_bytes];
        self.own = OwnTransfer::of(moved, &self.intervals);
        let own_ns = (self.own.seconds * 1e9).round() as u64;
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
            own_ns,
        ];
        comm.sum_u64(&mut sums)?;
        let [moved, allocations, read_bytes, written_bytes, call_read_bytes, call_written_bytes, untold, failed, direct, buffered, all_ns] =
            sums;
        (self.moved_bytes, self.allocations_in_clock) = (moved, allocations);
        self.io = (untold == 0).then_some(ProcessIo { read_bytes, written_bytes, call_read_bytes, call_written_bytes });
        if failed > 0 {
            self.ended = StopReason::Error;
        }
        self.combine_directness(direct, buffered);
        // The recorded intervals are those of the slowest rank, so that they add up to the pattern's time.
        let i = self.intervals;
        let total = i.total_seconds();
        // Only the last batch can differ between the ranks: it may have had no decision after it.
        let last_batch_seconds = notes.batches.last().map_or(0.0, |last| last.seconds);
        let maxima = [total, self.own.seconds, self.progress.last_seconds, last_batch_seconds];
        // One reduction: with more ranks than cores, and over a network, each takes milliseconds.
        let [longest, own, last_seconds, last_batch_seconds] = notes.reduce_with_decisions(comm, maxima)?;
        self.imbalance_seconds = longest - own;
        let mut root = [
            if total >= longest { comm.rank() } else { u64::MAX },
            if self.own.seconds >= own { rank_with_host(comm.rank(), notes.host) } else { u64::MAX },
        ];
        comm.min_u64(&mut root)?;
        if comm.size() > 1 && self.calls > 0 {
            self.slowest_ranks.push(slowest_rank(root[1], own, all_ns));
        }
        let mut parts = [i.view_seconds, i.preallocate_seconds, i.transfer_seconds, i.decide_seconds, i.sync_seconds];
        comm.bcast_f64(&mut parts, root[0])?;
        self.intervals = TimeBreakdown {
            view_seconds: parts[0],
            preallocate_seconds: parts[1],
            transfer_seconds: parts[2],
            decide_seconds: parts[3],
            sync_seconds: parts[4],
        };

        self.progress.elapsed_seconds += self.intervals.total_seconds();
        self.progress.last_seconds = last_seconds;

        let kept: f64 = notes.decide_seconds.iter().sum();
        self.decision_cost_seconds = kept * (self.decisions as f64 / notes.decide_seconds.len().max(1) as f64);
        if let Some(last) = notes.batches.last_mut() {
            last.seconds = last_batch_seconds;
        }
        self.batches = notes.batches.clone();
        Ok(self)
    }
}
