//! One pattern inside the clock: prepare, loop, decide, sync. All memory is allocated before.
//!
//! Durations are measured per rank; clocks of different ranks are never compared. A pattern starts after a barrier. Its time is the sum of
//! named intervals: *view* (prepare), *preallocate* (for drivers that require it or are faster with it), *transfer* (batches), *decide*
//! (agreements, including waiting for slower ranks), *sync*. The intervals of the rank with the largest sum are recorded, so that they add
//! up. The cost of a decision is its smallest time over the ranks; the rest is waiting.
//!
//! The ranks reduce the times of a batch while they run the next ones, so a rank waits only for one that is several batches behind. The
//! time of a decision is that of posting and completing its reduction. Results of reductions, and when they are completed, are the same on
//! all ranks, and so are the decisions; an error or a signal ends the loop some batches after it was posted. The ranks run in lock-step
//! where a driver requires it ([`beff_backends::Protocol::lockstep`]), and with a decision after each call, as in release 2.1.
//!
//! Allocations of Rust's allocator are counted from after `prepare` until after the sync, those of the MPI library in C are not.

mod flow;

use std::ops::Range;

use beff_backends::{
    AccessPattern, BackendError, Batch, Batches, Direction, OpenFile, Support, TransferBuffer, TransferStrategy,
};
use beff_ffi::{Comm, MpiError};

use crate::b_eff_io::config::Termination;
use crate::b_eff_io::records::{StopReason, TimeBreakdown};
use crate::b_eff_io::run::batching::{next, BatchDecision, LoopLimits, LoopProgress};
use crate::b_eff_io::run::measurement::{LoopMeasurement, LoopRecorder};
use crate::b_eff_io::run::reduction::{CompletedReduction, PendingReductions, REDUCTION_LEN};
use crate::b_eff_io::run::submissions::SubmissionCounter;
use crate::frame::records::RunOutcome;
use crate::frame::run::agree::first_message;
use crate::frame::run::clock::{self, Instant};
use crate::frame::run::interrupt::{stop_outcome, Interrupt};
use crate::frame::system::memory::{process_io, process_io_since};

/// Batches that may follow before the ranks have agreed to end a loop.
const BATCHES_BEFORE_END: f64 = 2.0;

/// Parameters of a loop.
#[derive(Clone, Copy, Debug)]
pub struct LoopTask<'a> {
    /// This rank's share.
    pub pattern: &'a AccessPattern,
    /// Write or read; a pattern with both is a write.
    pub direction: Direction,
    /// End of the loop.
    pub limits: &'a LoopLimits,
    /// Hints of this pattern.
    pub hints: &'a [(String, String)],
    /// State at the end of an earlier round of the pattern; None in the first round, which prepares.
    pub resume: Option<LoopProgress>,
}

impl LoopTask<'_> {
    fn transfer(
        &self,
        file: &mut dyn OpenFile,
        work: Batches<'_>,
        buffer: &mut TransferBuffer,
    ) -> Result<u64, BackendError> {
        match (self.pattern.mix, self.direction) {
            (Some(_), _) => file.transfer_mixed(work, buffer),
            (None, Direction::Write) => file.write(work, buffer),
            (None, Direction::Read) => file.read(work, buffer),
        }
    }
}

/// Inspects data in memory before later reads overwrite it, with the clock stopped.
pub struct Inspector<'a> {
    /// Maximum number of calls between inspections.
    pub max_calls: u64,
    /// Inspects the data of these calls.
    pub inspect: &'a mut dyn FnMut(&mut TransferBuffer, Range<u64>),
}

struct TimedLoop<'a, 'i> {
    comm: &'a Comm,
    task: LoopTask<'a>,
    recorder: &'a mut LoopRecorder,
    interrupt: &'a Interrupt,
    inspector: Option<Inspector<'i>>,
    started: Instant,
    earlier_seconds: f64,
    /// This rank's calls, and its last batch.
    progress: LoopProgress,
    /// State that all ranks have agreed on.
    agreed: LoopProgress,
    reductions: PendingReductions<'a>,
    /// The pattern synchronizes ranks ([`Support::Synchronizing`]).
    is_synchronizing: bool,
    /// This rank's file requires lock-step, and the agreed value, which is true before the first agreement.
    needs_lockstep: bool,
    is_lockstep: bool,
    is_direct: bool,
    intervals: TimeBreakdown,
    moved_bytes: u64,
    /// Estimated remaining time of posted batches that are still in flight.
    in_flight_seconds: f64,
    error: Option<BackendError>,
    decisions: u64,
    /// Time for which the clock was stopped, and allocations meanwhile.
    stopped_seconds: f64,
    stopped_allocations: u64,
}

impl TimedLoop<'_, '_> {
    fn transfer(&mut self, file: &mut dyn OpenFile, buffer: &mut TransferBuffer, calls: u64) {
        let batch = Batch { first_call: self.progress.calls, calls };
        let (allocated, room_seconds) = self.preallocate(file, batch);
        let begin = Instant::now();
        // Nothing is written here without preallocation; drivers that require it have no collective calls.
        let work = Batches::new(batch, &mut self.recorder.latency);
        let result = allocated.and_then(|_| self.task.transfer(file, work, buffer));
        let seconds = begin.elapsed().as_secs_f64();
        match result {
            Ok(bytes) => {
                self.moved_bytes += bytes;
                self.recorder.add_moved_bytes(bytes);
            }
            Err(e) => {
                self.error.get_or_insert(e);
            }
        }
        self.intervals.transfer_seconds += seconds;
        // Prediction for the next batch, including its preallocation.
        self.add_batch(calls, room_seconds + seconds);
    }

    /// Preallocates before writes; returns the number of calls that are covered, and the seconds.
    fn preallocate(&mut self, file: &mut dyn OpenFile, batch: Batch) -> (Result<u64, BackendError>, f64) {
        if self.task.direction == Direction::Read {
            return (Ok(u64::MAX), 0.0);
        }
        let begin = Instant::now();
        let allocated = file.preallocate(batch);
        let seconds = begin.elapsed().as_secs_f64();
        self.intervals.preallocate_seconds += seconds;
        (allocated, seconds)
    }

    /// Adds a batch to this rank's progress.
    fn add_batch(&mut self, calls: u64, seconds: f64) {
        self.progress = self.progress.with_batch(calls, seconds);
    }

    /// Time of the pattern so far, without the turns of other backends and without inspections.
    fn elapsed_seconds(&self) -> f64 {
        self.earlier_seconds + self.started.elapsed().as_secs_f64() - self.stopped_seconds
    }

    /// With an inspector: stops the clock until all ranks have inspected the last calls.
    fn inspect(&mut self, buffer: &mut TransferBuffer, calls: u64) -> Result<(), MpiError> {
        let Some(inspector) = &mut self.inspector else { return Ok(()) };
        let (begin, allocations) = (Instant::now(), clock::allocations());
        if self.error.is_none() {
            (inspector.inspect)(buffer, self.progress.calls - calls..self.progress.calls);
        }
        self.comm.barrier()?;
        self.stopped_seconds += begin.elapsed().as_secs_f64();
        self.stopped_allocations += clock::allocations() - allocations;
        Ok(())
    }

    /// This rank's contribution to a reduction: its time, that of its last batch, and whether it requests the end, has an error, a file that
    /// requires lock-step or uses the page cache. A single rank is always in lock-step.
    fn local_numbers(&self) -> [f64; REDUCTION_LEN] {
        [
            self.elapsed_seconds() + self.in_flight_seconds,
            self.progress.last_seconds,
            self.interrupt.request(self.ending_seconds()) as f64,
            f64::from(u8::from(self.error.is_some())),
            f64::from(u8::from(self.needs_lockstep || self.comm.size() == 1)),
            f64::from(u8::from(!self.is_direct)),
        ]
    }

    /// Estimated time from a request to end the loop to the end of its sync, and to remove what it has written. Batches are in flight, or issued before the request is agreed.
    fn ending_seconds(&self) -> f64 {
        let unsynced_calls = self.progress.calls - self.task.resume.map_or(0, |progress| progress.synced_calls);
        let unsynced_bytes = unsynced_calls * self.task.limits.call_bytes_all_ranks;
        let sync_seconds = self.task.limits.sync.map_or(0.0, |sync| sync.predict_seconds(unsynced_bytes));
        let bytes = self.progress.calls * self.task.limits.call_bytes_all_ranks;
        let removal_seconds = self.interrupt.limit().map_or(0.0, |limit| limit.removal_seconds(bytes));
        BATCHES_BEFORE_END * self.progress.last_seconds.max(self.agreed.last_seconds) + sync_seconds + removal_seconds
    }

    fn post_reduction(&mut self) -> Result<(), MpiError> {
        self.intervals.decide_seconds += self.reductions.post(self.progress, self.local_numbers())?;
        Ok(())
    }

    /// Completes the oldest reduction: the slowest rank's times, and whether a rank has an error, a signal or a reached time limit, which ends the loop.
    fn complete_reduction(&mut self) -> Result<Option<StopReason>, MpiError> {
        let Some(completed) = self.reductions.complete()? else { return Ok(None) };
        self.intervals.decide_seconds += completed.complete_seconds;
        Ok(self.apply_reduction(&completed))
    }

    fn apply_reduction(&mut self, completed: &CompletedReduction) -> Option<StopReason> {
        let [elapsed_seconds, last_seconds, request, error, lockstep, is_cached] = completed.numbers;
        if completed.progress.calls > self.agreed.calls {
            self.recorder.record_batch(completed.progress.last_calls, last_seconds);
        }
        let completed_now =
            LoopProgress { elapsed_seconds, last_seconds, is_direct: is_cached == 0.0, ..completed.progress };
        self.agreed = completed_now.after(&self.agreed);
        self.is_lockstep = lockstep > 0.0;
        self.recorder.record_decision(completed.post_seconds + completed.complete_seconds);
        self.decisions += 1;
        if error > 0.0 {
            return Some(StopReason::Error);
        }
        stop_outcome(request as u64).map(|outcome| {
            if outcome == RunOutcome::Limit {
                StopReason::Limit
            } else {
                StopReason::Interrupted
            }
        })
    }

    /// Decision as in release 2.1: barrier, clock at the root, broadcast. An error on another rank is not detected before the loop ends.
    fn decide_as_release_2_1(&mut self) -> Result<Option<StopReason>, MpiError> {
        let begin = Instant::now();
        self.comm.bare_barrier()?;
        let mut numbers = self.local_numbers();
        self.comm.bare_bcast_f64(&mut numbers, 0)?;
        let hearing_seconds = begin.elapsed().as_secs_f64();
        self.intervals.decide_seconds += hearing_seconds;
        Ok(self.apply_reduction(&CompletedReduction {
            progress: self.progress,
            numbers,
            post_seconds: 0.0,
            complete_seconds: hearing_seconds,
        }))
    }

    fn run(&mut self, file: &mut dyn OpenFile, buffer: &mut TransferBuffer) -> Result<StopReason, MpiError> {
        // The first decision shows whether every rank could prepare. All ranks complete it before they continue, because no collective call
        // may follow if one could not. A single call that synchronizes no ranks needs no decision; its error is agreed on after the clock.
        let is_decided = !self.is_synchronizing && self.task.limits.max_calls == 1;
        if self.task.resume.is_none() && !is_decided {
            self.post_reduction()?;
            if let Some(ended) = self.complete_reduction()? {
                return Ok(ended);
            }
        }
        loop {
            let ended = match next(self.task.limits, &self.agreed, self.progress.issued()) {
                BatchDecision::Stop(ended) => return Ok(ended),
                BatchDecision::Agree => self.complete_reduction()?,
                BatchDecision::Run(calls) => self.run_batch(file, buffer, calls)?,
            };
            if let Some(ended) = ended {
                return Ok(ended);
            }
        }
    }

    /// Runs one batch, posts its reduction, and completes others where necessary.
    fn run_batch(
        &mut self,
        file: &mut dyn OpenFile,
        buffer: &mut TransferBuffer,
        calls: u64,
    ) -> Result<Option<StopReason>, MpiError> {
        let calls = calls.min(self.inspector.as_ref().map_or(u64::MAX, |i| i.max_calls));
        if self.can_flow(file) {
            return match self.flow(file, buffer, calls)? {
                (true, ended) => Ok(ended),
                (false, _) => self.reduce_batch(),
            };
        }
        // A rank may have an error that is unknown to the others; they still need it in their collective calls.
        if self.error.is_none() || self.is_synchronizing {
            self.transfer(file, buffer, calls);
        } else {
            self.add_batch(calls, 0.0);
        }
        self.inspect(buffer, calls)?;
        self.reduce_batch()
    }

    fn reduce_batch(&mut self) -> Result<Option<StopReason>, MpiError> {
        // No decision is needed after the last call; errors are agreed on after the clock.
        let is_last = self.progress.calls >= self.task.limits.max_calls;
        if self.decides_per_call() {
            return if is_last { Ok(None) } else { self.decide_as_release_2_1() };
        }
        if is_last {
            return Ok(None);
        }
        if self.reductions.is_full() {
            if let Some(ended) = self.complete_reduction()? {
                return Ok(Some(ended));
            }
        }
        self.post_reduction()?;
        if self.is_lockstep {
            return self.complete_reduction();
        }
        Ok(None)
    }

    /// True with a decision after each call, as in release 2.1.
    fn decides_per_call(&self) -> bool {
        self.task.limits.termination == Termination::PerCall
    }

    /// After the last call (`calls_before`: number before this round): trims the preallocated range and syncs the file. Returns the reason
    /// why writes continued without preallocation.
    fn sync(&mut self, file: &mut dyn OpenFile, calls_before: u64) -> Result<Option<String>, BackendError> {
        // Collective: the number of calls is the same on all ranks, also after an error on one.
        if self.task.direction == Direction::Read || self.progress.calls == calls_before {
            return Ok(None);
        }
        let begin = Instant::now();
        let trimmed = file.trim();
        self.intervals.preallocate_seconds += begin.elapsed().as_secs_f64();
        let begin = Instant::now();
        let synced = file.sync();
        self.intervals.sync_seconds = begin.elapsed().as_secs_f64();
        synced.and(trimmed)
    }

    /// After the clock: completes pending reductions, and adds the last batch, for which none was posted.
    fn complete_remaining(&mut self) -> Result<(), MpiError> {
        while let Some(completed) = self.reductions.complete()? {
            self.apply_reduction(&CompletedReduction { complete_seconds: 0.0, ..completed });
        }
        if self.progress.calls > self.agreed.calls {
            self.recorder.record_batch(self.progress.last_calls, self.progress.last_seconds);
        } else {
            self.progress.last_seconds = self.agreed.last_seconds;
        }
        Ok(())
    }

    /// Measurement of this rank since `before`.
    fn measurement(&mut self, before: LoopProgress, ended: StopReason) -> LoopMeasurement {
        // Equal on all ranks, as required to resume.
        let LoopProgress { is_direct, call_seconds_before, .. } = self.agreed;
        LoopMeasurement {
            calls: self.progress.calls - before.calls,
            progress: LoopProgress {
                elapsed_seconds: before.elapsed_seconds,
                synced_calls: self.progress.calls,
                is_direct,
                call_seconds_before,
                ..self.progress
            },
            moved_bytes: self.moved_bytes,
            intervals: self.intervals,
            decisions: self.decisions,
            error: self.error.take(),
            ..LoopMeasurement::empty(ended)
        }
    }
}

/// Prepares, except in later rounds; returns the settings in force, the error, and the seconds since `started`.
fn prepare(
    file: &mut dyn OpenFile,
    buffer: &mut TransferBuffer,
    task: &LoopTask<'_>,
    started: Instant,
) -> (Option<TransferStrategy>, Option<BackendError>, f64) {
    if task.resume.is_some() {
        return (None, None, 0.0);
    }
    let (in_force, error) = match file.prepare(task.pattern, task.direction, buffer, task.hints) {
        Ok(prepared) => (Some(prepared), None),
        Err(e) => (None, Some(e)),
    };
    (in_force, error, started.elapsed().as_secs_f64())
}

/// Runs one pattern, or one round of it. An `inspector` is for reads. Collective over `comm`; the result is the same on all ranks in any
/// case.
///
/// # Errors
/// Only errors of MPI between the ranks; errors of the storage are in [`LoopMeasurement::error`].
pub fn run(
    file: &mut dyn OpenFile,
    comm: &Comm,
    buffer: &mut TransferBuffer,
    task: LoopTask<'_>,
    notes: &mut LoopRecorder,
    (interrupt, inspector): (&Interrupt, Option<Inspector<'_>>),
) -> Result<LoopMeasurement, MpiError> {
    notes.clear();
    let counter = SubmissionCounter::begin(file);
    let pending = PendingReductions::new(comm)?;
    let synchronizes = file.support(task.pattern) == Support::Synchronizing;
    let io_before = process_io();
    comm.barrier()?;

    let started = Instant::now();
    let (in_force, error, view_seconds) = prepare(file, buffer, &task, started);
    let before = task.resume.unwrap_or_default();
    let allocations = clock::allocations();
    let mut l = TimedLoop {
        comm,
        task,
        recorder: notes,
        interrupt,
        inspector,
        started,
        earlier_seconds: before.elapsed_seconds,
        progress: before,
        agreed: before,
        reductions: pending,
        is_synchronizing: synchronizes,
        needs_lockstep: file.protocol().lockstep,
        is_lockstep: true,
        is_direct: in_force.as_ref().map_or(before.is_direct, |in_force| in_force.direct == Some(true)),
        intervals: TimeBreakdown { view_seconds, ..TimeBreakdown::default() },
        moved_bytes: 0,
        in_flight_seconds: 0.0,
        error,
        decisions: 0,
        stopped_seconds: 0.0,
        stopped_allocations: 0,
    };
    let ended = l.run(file, buffer)?;
    let sync_result = l.sync(file, before.calls);
    let allocations = clock::allocations() - allocations - l.stopped_allocations;

    l.complete_remaining()?;
    let preallocation_error = sync_result.unwrap_or_else(|e| {
        l.error.get_or_insert(e);
        None
    });
    let preallocation_error = match task.direction {
        Direction::Write => first_message(comm, preallocation_error)?,
        Direction::Read => None,
    };
    let submissions = counter.end(file, comm)?;
    let mine = LoopMeasurement {
        in_force,
        preallocation_error: preallocation_error.map(|(rank, reason)| format!("{reason} (rank {rank})")),
        submissions,
        allocations_in_clock: allocations,
        io: process_io_since(io_before),
        ..l.measurement(before, ended)
    };
    // Ranks that are still in their sync keep their cores.
    comm.barrier()?;
    mine.reduce(comm, l.recorder)
}

#[cfg(test)]
mod loop_tests;
#[cfg(test)]
mod tests;
