//! One pattern inside the clock: prepare, loop, decide, sync. Everything it needs is allocated before.
//!
//! Durations are taken per rank; clocks of two ranks are never compared. A pattern starts behind a barrier. Its time is the sum of
//! named intervals: *view* (prepare), *room* (making the file longer, for drivers that
//! must or are faster with it), *transfer* (batches), *decide*
//! (agreements, waiting for slower ranks included), *sync*. The rank with the largest sum is the one that is recorded, with its own
//! parts, so that they add up. For each decision the smallest time over the ranks is its cost; the rest is waiting.
//!
//! The ranks tell each other what a batch took and run the next ones while that agreement is under way, so a rank waits only for one that
//! is batches behind. The time of a decision is what telling and hearing take, not the batches between. What is heard, and when, is the
//! same on all ranks, and so is what follows from it; an error or a signal ends the loop some batches after it was told. The ranks wait for
//! each other where a driver needs it ([`beff_backends::Protocol::lockstep`]), and with a decision after each call, as release 2.1 did.
//!
//! Allocations are counted from after `prepare` to after the sync. The counter sees Rust's allocator, not what the MPI library
//! allocates in C.

mod flow;

use std::ops::Range;

use beff_backends::{BackendError, Batch, Batches, Direction, InForce, OpenFile, Pattern, Ring, Support};
use beff_ffi::{Comm, MpiError};

use crate::b_eff_io::config::Termination;
use crate::b_eff_io::records::{Ended, Intervals};
use crate::b_eff_io::run::batching::{next, Limits, Progress, Step};
use crate::b_eff_io::run::handed::Handed;
use crate::b_eff_io::run::measured::{Measured, Notes};
use crate::b_eff_io::run::told::{Heard, Told, NUMBERS};
use crate::frame::run::agree::first_message;
use crate::frame::run::clock::{self, Instant};
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
    /// This rank's calls, and its last batch.
    progress: Progress,
    /// What all ranks know of each other.
    agreed: Progress,
    told: Told<'a>,
    /// The ranks need each other in the pattern ([`Support::Synchronizing`]).
    meets: bool,
    /// This rank's file needs it, and what all agreed on; true until they have.
    keeps_step: bool,
    all_keep_step: bool,
    /// This rank's transfers pass by the page cache.
    is_direct: bool,
    intervals: Intervals,
    moved_bytes: u64,
    /// What is still under way of batches that were told will take about so long.
    under_way_seconds: f64,
    error: Option<BackendError>,
    decisions: u64,
    /// Time for which the clock was stopped, and what was allocated meanwhile.
    stopped_seconds: f64,
    stopped_allocations: u64,
}

impl Loop<'_, '_> {
    fn transfer(&mut self, file: &mut dyn OpenFile, ring: &mut Ring, calls: u64) {
        let batch = Batch { first_call: self.progress.calls, calls };
        let (allocated, room_seconds) = self.preallocate(file, batch);
        let begin = Instant::now();
        // Without preallocation nothing is written here; the drivers that need it have no collective calls to miss.
        let result = allocated.and_then(|_| match self.task.direction {
            Direction::Write => file.write(Batches::new(batch, &mut self.notes.latency), ring),
            Direction::Read => file.read(Batches::new(batch, &mut self.notes.latency), ring),
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
        self.intervals.transfer_seconds += seconds;
        // What the next batch will take: its room too.
        self.made(calls, room_seconds + seconds);
    }

    /// Preallocation before writes: the calls that have it, and the seconds it took.
    fn preallocate(&mut self, file: &mut dyn OpenFile, batch: Batch) -> (Result<u64, BackendError>, f64) {
        if self.task.direction == Direction::Read {
            return (Ok(u64::MAX), 0.0);
        }
        let begin = Instant::now();
        let allocated = file.preallocate(batch);
        let seconds = begin.elapsed().as_secs_f64();
        self.intervals.room_seconds += seconds;
        (allocated, seconds)
    }

    /// A batch was made.
    fn made(&mut self, calls: u64, seconds: f64) {
        self.progress = self.progress.and_batch(calls, seconds);
    }

    /// Time of the pattern so far, without the turns of others between its rounds and without inspections.
    fn elapsed_seconds(&self) -> f64 {
        self.carried_seconds + self.started.elapsed().as_secs_f64() - self.stopped_seconds
    }

    /// With an inspector: stops the clock until all ranks have looked at the last calls.
    fn inspect(&mut self, ring: &mut Ring, calls: u64) -> Result<(), MpiError> {
        let Some(inspector) = &mut self.inspector else { return Ok(()) };
        let (begin, allocations) = (Instant::now(), clock::allocations());
        if self.error.is_none() {
            (inspector.look)(ring, self.progress.calls - calls..self.progress.calls);
        }
        self.comm.barrier()?;
        self.stopped_seconds += begin.elapsed().as_secs_f64();
        self.stopped_allocations += clock::allocations() - allocations;
        Ok(())
    }

    /// What this rank has to tell: its time, that of its last batch, whether it has a signal, an error, a file for which the ranks have to keep
    /// step or that uses the page cache. Alone, it has nobody to wait for.
    fn numbers(&self) -> [f64; NUMBERS] {
        [
            self.elapsed_seconds() + self.under_way_seconds,
            self.progress.last_seconds,
            f64::from(u8::from(self.interrupt.raised())),
            f64::from(u8::from(self.error.is_some())),
            f64::from(u8::from(self.keeps_step || self.comm.size() == 1)),
            f64::from(u8::from(!self.is_direct)),
        ]
    }

    /// Begins to tell the other ranks of the last batch.
    fn tell(&mut self) -> Result<(), MpiError> {
        self.intervals.decide_seconds += self.told.tell(self.progress, self.numbers())?;
        Ok(())
    }

    /// All ranks learn the slowest rank's times of what was told first, and whether one of them has an error or a signal, which ends the
    /// loop.
    fn hear(&mut self) -> Result<Option<Ended>, MpiError> {
        let Some(heard) = self.told.hear()? else { return Ok(None) };
        self.intervals.decide_seconds += heard.hearing_seconds;
        Ok(self.know(&heard))
    }

    fn know(&mut self, heard: &Heard) -> Option<Ended> {
        let [elapsed_seconds, last_seconds, signal, error, keeps_step, is_cached] = heard.numbers;
        if heard.of.calls > self.agreed.calls {
            self.notes.batch(heard.of.last_calls, last_seconds);
        }
        let heard_now = Progress { elapsed_seconds, last_seconds, is_direct: is_cached == 0.0, ..heard.of };
        self.agreed = heard_now.after(&self.agreed);
        self.all_keep_step = keeps_step > 0.0;
        self.notes.decided(heard.telling_seconds + heard.hearing_seconds);
        self.decisions += 1;
        match (error > 0.0, signal > 0.0) {
            (true, _) => Some(Ended::Error),
            (_, true) => Some(Ended::Interrupted),
            _ => None,
        }
    }

    /// As release 2.1 did it: barrier, clock at the root, broadcast; an error elsewhere than at the root is then not seen
    /// before the loop ends.
    fn decide_as_release_2_1(&mut self) -> Result<Option<Ended>, MpiError> {
        let begin = Instant::now();
        self.comm.bare_barrier()?;
        let mut numbers = self.numbers();
        self.comm.bare_bcast_f64(&mut numbers, 0)?;
        let hearing_seconds = begin.elapsed().as_secs_f64();
        self.intervals.decide_seconds += hearing_seconds;
        Ok(self.know(&Heard { of: self.progress, numbers, telling_seconds: 0.0, hearing_seconds }))
    }

    fn run(&mut self, file: &mut dyn OpenFile, ring: &mut Ring) -> Result<Ended, MpiError> {
        // The first decision tells whether every rank could prepare. All are asked, and all hear before they go on: no collective call may follow
        // if one could not. A single call that each makes for itself leaves nothing to decide; errors are agreed on behind the clock.
        let is_decided = !self.meets && self.task.limits.max_calls == 1;
        if self.task.resume.is_none() && !is_decided {
            self.tell()?;
            if let Some(ended) = self.hear()? {
                return Ok(ended);
            }
        }
        loop {
            let ended = match next(self.task.limits, &self.agreed, self.progress.made()) {
                Step::Stop(ended) => return Ok(ended),
                Step::Agree => self.hear()?,
                Step::Run(calls) => self.batch(file, ring, calls)?,
            };
            if let Some(ended) = ended {
                return Ok(ended);
            }
        }
    }

    /// One batch, which is told then, and what is heard meanwhile.
    fn batch(&mut self, file: &mut dyn OpenFile, ring: &mut Ring, calls: u64) -> Result<Option<Ended>, MpiError> {
        let calls = calls.min(self.inspector.as_ref().map_or(u64::MAX, |i| i.most_calls));
        if self.can_flow(file) {
            return match self.flow(file, ring, calls)? {
                (true, ended) => Ok(ended),
                (false, _) => self.tell_of_batch(),
            };
        }
        // A rank may have an error that the others do not know of yet; they still need it in their collective calls.
        if self.error.is_none() || self.meets {
            self.transfer(file, ring, calls);
        } else {
            self.made(calls, 0.0);
        }
        self.inspect(ring, calls)?;
        self.tell_of_batch()
    }

    /// The decision behind a batch.
    fn tell_of_batch(&mut self) -> Result<Option<Ended>, MpiError> {
        // Nothing is left to decide after the last call; errors are agreed on after the clock.
        let is_last = self.progress.calls >= self.task.limits.max_calls;
        if self.is_asked_often() {
            return if is_last { Ok(None) } else { self.decide_as_release_2_1() };
        }
        if is_last {
            return Ok(None);
        }
        if self.told.is_full() {
            if let Some(ended) = self.hear()? {
                return Ok(Some(ended));
            }
        }
        self.tell()?;
        if self.all_keep_step {
            return self.hear();
        }
        Ok(None)
    }

    /// A decision after each call, as release 2.1 did.
    fn is_asked_often(&self) -> bool {
        self.task.limits.termination == Termination::PerCall
    }

    /// After the last of the calls, of which there were `calls_before`: what was allocated ahead goes back, and the file is synced. Returns why
    /// writes went on without preallocation.
    fn sync(&mut self, file: &mut dyn OpenFile, calls_before: u64) -> Result<Option<String>, BackendError> {
        // Collective: the number of calls is the same on all ranks, whatever went wrong on one.
        if self.task.direction == Direction::Read || self.progress.calls == calls_before {
            return Ok(None);
        }
        let begin = Instant::now();
        let trimmed = file.trim();
        self.intervals.room_seconds += begin.elapsed().as_secs_f64();
        let begin = Instant::now();
        let synced = file.sync();
        self.intervals.sync_seconds = begin.elapsed().as_secs_f64();
        synced.and(trimmed)
    }

    /// Behind the clock: what was told and is not needed any more, and the last batch, of which nothing was told.
    fn hear_the_rest(&mut self) -> Result<(), MpiError> {
        while let Some(heard) = self.told.hear()? {
            self.know(&Heard { hearing_seconds: 0.0, ..heard });
        }
        if self.progress.calls > self.agreed.calls {
            self.notes.batch(self.progress.last_calls, self.progress.last_seconds);
        } else {
            self.progress.last_seconds = self.agreed.last_seconds;
        }
        Ok(())
    }

    /// What this rank has measured since `before`.
    fn measured(&mut self, before: Progress, ended: Ended) -> Measured {
        // Equal on all ranks, as what is resumed has to be.
        let Progress { is_direct, call_seconds_before, .. } = self.agreed;
        Measured {
            calls: self.progress.calls - before.calls,
            progress: Progress {
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
            ..Measured::nothing(ended)
        }
    }
}

/// Prepares, unless an earlier round has: what is in force, the error, and the seconds since `started`.
fn prepare(
    file: &mut dyn OpenFile,
    ring: &mut Ring,
    task: &Task<'_>,
    started: Instant,
) -> (Option<InForce>, Option<BackendError>, f64) {
    if task.resume.is_some() {
        return (None, None, 0.0);
    }
    let (in_force, error) = match file.prepare(task.pattern, task.direction, ring, task.hints) {
        Ok(prepared) => (Some(prepared), None),
        Err(e) => (None, Some(e)),
    };
    (in_force, error, started.elapsed().as_secs_f64())
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
    let told = Told::new(comm);
    let meets = file.support(task.pattern) == Support::Synchronizing;
    let io_before = process_io();
    comm.barrier()?;

    let started = Instant::now();
    let (in_force, error, view_seconds) = prepare(file, ring, &task, started);
    let before = task.resume.unwrap_or_default();
    let allocations = clock::allocations();
    let mut l = Loop {
        comm,
        task,
        notes,
        interrupt,
        inspector,
        started,
        carried_seconds: before.elapsed_seconds,
        progress: before,
        agreed: before,
        told,
        meets,
        keeps_step: file.protocol().lockstep,
        all_keep_step: true,
        is_direct: in_force.as_ref().map_or(before.is_direct, |in_force| in_force.direct == Some(true)),
        intervals: Intervals { view_seconds, ..Intervals::default() },
        moved_bytes: 0,
        under_way_seconds: 0.0,
        error,
        decisions: 0,
        stopped_seconds: 0.0,
        stopped_allocations: 0,
    };
    let ended = l.run(file, ring)?;
    let sync_result = l.sync(file, before.calls);
    let allocations = clock::allocations() - allocations - l.stopped_allocations;
    // The clock has stopped.

    l.hear_the_rest()?;
    let without_room = sync_result.unwrap_or_else(|e| {
        l.error.get_or_insert(e);
        None
    });
    let without_room = match task.direction {
        Direction::Write => first_message(comm, without_room)?,
        Direction::Read => None,
    };
    let submissions = handed.end(file, comm)?;
    let mine = Measured {
        in_force,
        without_room: without_room.map(|(rank, reason)| format!("{reason} (rank {rank})")),
        submissions,
        allocations_in_clock: allocations,
        io: process_io_since(io_before),
        ..l.measured(before, ended)
    };
    // A rank that is still in its sync keeps its core.
    comm.barrier()?;
    mine.bring_together(comm, l.notes)
}

#[cfg(test)]
mod loop_tests;
#[cfg(test)]
mod tests;
