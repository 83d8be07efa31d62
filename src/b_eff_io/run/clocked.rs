//! One pattern inside the clock: prepare, loop, decide, sync. Everything it needs is allocated before.
//!
//! Durations are taken per rank; clocks of two ranks are never compared. A pattern starts behind a barrier. Its time is the sum of
//! named intervals: *view* (prepare), *room* (making the file longer, for drivers that
//! must or are faster with it), *transfer* (batches), *decide*
//! (agreements, waiting for slower ranks included), *sync*. The rank with the largest sum is the one that is recorded, with its own
//! parts, so that they add up. For each decision the smallest time over the ranks is its cost; the rest is waiting.
//!
//! Allocations are counted from after `prepare` to after the sync. The counter sees Rust's allocator, not what the MPI library
//! allocates in C.

use std::ops::Range;
use std::time::Instant;

use beff_backends::{AccessKind, BackendError, Batch, Direction, OpenFile, Pattern, Ring};
use beff_ffi::{alloc, Comm, MpiError};

use crate::b_eff_io::config::Termination;
use crate::b_eff_io::records::{Ended, Intervals};
use crate::b_eff_io::run::batching::{next, Limits, Progress, Step};
use crate::b_eff_io::run::handed::Handed;
use crate::b_eff_io::run::measured::{Measured, Notes};
use crate::frame::run::agree::first_message;
use crate::frame::run::interrupt::Interrupt;
use crate::frame::system::memory::{process_io, process_io_since};

/// What runs.
#[derive(Clone, Copy, Debug)]
pub struct Task<'a> {
    /// This rank's part.
    pub pattern: &'a Pattern,
    /// Write or read.
    pub direction: Direction,
    /// End of the loop.
    pub limits: &'a Limits,
    /// Hints of this pattern.
    pub hints: &'a [(String, String)],
    /// Where an earlier round of the pattern ended; None: this is the first, which prepares.
    pub resume: Option<Progress>,
}

/// Looks at what reads have left in memory before later ones take its place, with the clock stopped.
pub struct Inspector<'a> {
    /// Calls after which it must look.
    pub most_calls: u64,
    /// Looks at what these calls have left.
    pub look: &'a mut dyn FnMut(&mut Ring, Range<u64>),
}

/// State of the loop on one rank.
struct Loop<'a, 'i> {
    comm: &'a Comm,
    task: Task<'a>,
    notes: &'a mut Notes,
    interrupt: &'a Interrupt,
    inspector: Option<Inspector<'i>>,
    started: Instant,
    /// Time of the rounds before.
    carried_seconds: f64,
    progress: Progress,
    intervals: Intervals,
    moved_bytes: u64,
    error: Option<BackendError>,
    decisions: u64,
    /// Time for which the clock was stopped, and what was allocated meanwhile.
    stopped_seconds: f64,
    stopped_allocations: u64,
}

impl Loop<'_, '_> {
    fn transfer(&mut self, file: &mut dyn OpenFile, ring: &mut Ring, calls: u64) {
        let batch = Batch { first_call: self.progress.calls, calls };
        let (room, room_seconds) = match self.task.direction {
            Direction::Write => {
                let begin = Instant::now();
                (file.make_room(batch), begin.elapsed().as_secs_f64())
            }
            Direction::Read => (Ok(()), 0.0),
        };
        let begin = Instant::now();
        // Without room nothing is written here; the drivers that need room have no collective calls to miss.
        let result = room.and_then(|()| match self.task.direction {
            Direction::Write => file.write(batch, ring, &mut self.notes.latency),
            Direction::Read => file.read(batch, ring, &mut self.notes.latency),
        });
        let seconds = begin.elapsed().as_secs_f64();
        match result {
            Ok(bytes) => {
                self.moved_bytes += bytes;
                self.notes.moved(bytes);
            }
            Err(e) => {
                self.error.get_or_insert(e);
            }
        }
        self.intervals.room_seconds += room_seconds;
        self.intervals.transfer_seconds += seconds;
        self.progress.calls += calls;
        self.progress.last_calls = calls;
        // What the next batch will take: its room too.
        self.progress.last_seconds = room_seconds + seconds;
    }

    /// Time of the pattern so far, without the turns of others between its rounds and without inspections.
    fn elapsed_seconds(&self) -> f64 {
        self.carried_seconds + self.started.elapsed().as_secs_f64() - self.stopped_seconds
    }

    /// With an inspector: stops the clock until all ranks have looked at the last calls.
    fn inspect(&mut self, ring: &mut Ring, calls: u64) -> Result<(), MpiError> {
        let Some(inspector) = &mut self.inspector else { return Ok(()) };
        let (begin, allocations) = (Instant::now(), alloc::allocations());
        if self.error.is_none() {
            (inspector.look)(ring, self.progress.calls - calls..self.progress.calls);
        }
        self.comm.barrier()?;
        self.stopped_seconds += begin.elapsed().as_secs_f64();
        self.stopped_allocations += alloc::allocations() - allocations;
        Ok(())
    }

    /// All ranks learn the slowest rank's times, and whether one of them has an error or a signal, which ends the loop. As
    /// release 2.1 did it: barrier, clock at the root, broadcast; an error elsewhere than at the root is then not seen
    /// before the loop ends.
    fn decide(&mut self) -> Result<Option<Ended>, MpiError> {
        let begin = Instant::now();
        // Whether all ranks could prepare is always asked of all: no collective call may follow if one could not.
        let as_release_2_1 = self.task.limits.termination == Termination::PerCall && self.decisions > 0;
        if as_release_2_1 {
            self.comm.bare_barrier()?;
        }
        let mut shared = [
            self.elapsed_seconds(),
            self.progress.last_seconds,
            f64::from(u8::from(self.interrupt.raised())),
            f64::from(u8::from(self.error.is_some())),
        ];
        if as_release_2_1 {
            self.comm.bcast_f64(&mut shared, 0)?;
        } else {
            self.comm.max_f64(&mut shared)?;
        }
        self.progress.elapsed_seconds = shared[0];
        self.progress.last_seconds = shared[1];
        let end = match (shared[3] > 0.0, shared[2] > 0.0) {
            (true, _) => Some(Ended::Error),
            (_, true) => Some(Ended::Interrupted),
            _ => None,
        };
        let seconds = begin.elapsed().as_secs_f64();
        self.intervals.decide_seconds += seconds;
        self.notes.decided(seconds);
        self.decisions += 1;
        Ok(end)
    }

    fn run(&mut self, file: &mut dyn OpenFile, ring: &mut Ring) -> Result<Ended, MpiError> {
        // The first decision tells whether every rank could prepare.
        if self.task.resume.is_none() {
            if let Some(ended) = self.decide()? {
                return Ok(ended);
            }
        }
        loop {
            let calls = match next(self.task.limits, &self.progress) {
                Step::Stop(ended) => return Ok(ended),
                Step::Run(calls) => calls.min(self.inspector.as_ref().map_or(u64::MAX, |i| i.most_calls)),
            };
            // With the per-call decision a rank may have an error that the others do not know of yet; they still need it
            // in their collective calls.
            if self.error.is_none() || self.task.pattern.kind != AccessKind::Independent {
                self.transfer(file, ring, calls);
            } else {
                self.progress.calls += calls;
            }
            self.inspect(ring, calls)?;
            // Nothing is left to decide after the last call; errors are agreed on after the clock.
            let end = if self.progress.calls < self.task.limits.max_calls { self.decide()? } else { None };
            self.notes.batch(calls, self.progress.last_seconds);
            if let Some(ended) = end {
                return Ok(ended);
            }
        }
    }
}

/// Runs one pattern, or one round of it. An `inspector` is for reads. Collective over `comm`; every rank comes out with the same numbers, whatever happened.
///
/// # Errors
/// Only when MPI itself fails between the ranks; errors of the storage are in [`Measured::error`].
pub fn run(
    file: &mut dyn OpenFile,
    comm: &Comm,
    ring: &mut Ring,
    task: Task<'_>,
    notes: &mut Notes,
    (interrupt, inspector): (&Interrupt, Option<Inspector<'_>>),
) -> Result<Measured, MpiError> {
    notes.clear();
    let handed = Handed::begin(file);
    let io_before = process_io();
    comm.barrier()?;

    let started = Instant::now();
    let (mut in_force, mut error, mut view_seconds) = (None, None, 0.0);
    if task.resume.is_none() {
        match file.prepare(task.pattern, task.direction, ring, task.hints) {
            Ok(prepared) => in_force = Some(prepared),
            Err(e) => error = Some(e),
        }
        view_seconds = started.elapsed().as_secs_f64();
    }
    let before = task.resume.unwrap_or_default();
    let allocations = alloc::allocations();
    let mut l = Loop {
        comm,
        task,
        notes,
        interrupt,
        inspector,
        started,
        carried_seconds: before.elapsed_seconds,
        progress: before,
        intervals: Intervals { view_seconds, ..Intervals::default() },
        moved_bytes: 0,
        error,
        decisions: 0,
        stopped_seconds: 0.0,
        stopped_allocations: 0,
    };
    let ended = l.run(file, ring)?;
    let mut sync_result = Ok(());
    // Collective: the number of calls is the same on all ranks, whatever went wrong on one.
    if task.direction == Direction::Write && l.progress.calls > before.calls {
        let begin = Instant::now();
        let given_back = file.give_back();
        l.intervals.room_seconds += begin.elapsed().as_secs_f64();
        let begin = Instant::now();
        sync_result = file.sync().and(given_back);
        l.intervals.sync_seconds = begin.elapsed().as_secs_f64();
    }
    let allocations = alloc::allocations() - allocations - l.stopped_allocations;
    // The clock has stopped.

    if let (Err(e), None) = (sync_result, &l.error) {
        l.error = Some(e);
    }
    let without_room = match task.direction {
        Direction::Write => first_message(comm, file.without_room())?,
        Direction::Read => None,
    };
    let Loop { progress, intervals, moved_bytes, error, decisions, notes, .. } = l;
    let submissions = handed.end(file, comm)?;
    let mine = Measured {
        calls: progress.calls - before.calls,
        progress: Progress { elapsed_seconds: before.elapsed_seconds, synced_calls: progress.calls, ..progress },
        moved_bytes,
        intervals,
        decisions,
        in_force,
        without_room: without_room.map(|(rank, reason)| format!("{reason} (rank {rank})")),
        submissions,
        error,
        allocations_in_clock: allocations,
        io: process_io_since(io_before),
        ..Measured::nothing(ended)
    };
    // A rank that is still in its sync keeps its core.
    comm.barrier()?;
    mine.bring_together(comm, notes)
}
