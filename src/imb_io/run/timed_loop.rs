//! The timed loop: iterations of one sample, with the syncs of the mode.
//!
//! The overhead is one reading of the cycle counter for each iteration; times are stored in preallocated memory. A rank with a
//! failed call continues if the others would wait for it.
//!
//! A reading of the kernel's clock would be 5 % of a read of 4 kB; the cycle counter costs a third of it. The total time of the
//! row is measured by the kernel's clock, and iteration times that do not add up to it are not reported. All calls of a row are
//! one batch, the driver's own loop. Reads into separate windows are one batch for every 64 MiB, which all ranks of a group end
//! together; the clock is stopped while their data is compared.

use beff_backends::{
    AccessKind, BackendError, Batch, Batches, Direction, Latency, OpenFile, TransferBuffer, MAX_PENDING_CALLS,
};
use beff_ffi::{Comm, MpiError};

use super::load::ComputeLoad;
use crate::frame::run::clock::{self, Instant};
use crate::imb_io::plan::Mode;

#[derive(Clone, Copy)]
pub(super) struct IterationLoop<'a> {
    pub(super) kind: AccessKind,
    pub(super) direction: Direction,
    pub(super) syncs: SyncPlacement,
    pub(super) calls: Batch,
    /// Iterations of all batches; the clock may be stopped between two batches.
    pub(super) total_calls: u64,
    /// Calls that may be pending at the same time; pending reads have separate windows.
    pub(super) pending: u64,
    /// True if the driver would overlap the calls of a batch: each call is then its own batch.
    pub(super) single_calls: bool,
    pub(super) overlap_mode: OverlapMode<'a>,
}

impl IterationLoop<'_> {
    fn end_call(&self) -> u64 {
        self.calls.first_call + self.calls.calls
    }
}

/// Position of the sync of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SyncPlacement {
    None,
    AfterAll,
    AfterEach,
}

impl SyncPlacement {
    pub(super) fn of(direction: Direction, mode: Mode) -> Self {
        match (direction, mode) {
            (Direction::Read, _) => Self::None,
            (Direction::Write, Mode::Aggregate) => Self::AfterAll,
            (Direction::Write, Mode::NonAggregate) => Self::AfterEach,
        }
    }
}

/// Blocking calls, or non-blocking calls with or without load.
#[derive(Clone, Copy)]
pub(super) enum OverlapMode<'a> {
    /// Each call completes before the next one.
    Blocking,
    /// Non-blocking calls, completed at once.
    Alone,
    /// Non-blocking calls with a load before their completion.
    Overlapped {
        load: &'a ComputeLoad,
        /// Length of the load for all iterations.
        seconds: f64,
        /// The calls are split collectives: the load is divided among them.
        split: bool,
    },
}

#[derive(Debug, Default)]
pub(super) struct LoopTiming {
    /// From the barriers to the end of the last sync; of a batch that is not the last, to its end on the slowest rank.
    pub(super) seconds: f64,
    /// Of that, the sync after all iterations.
    pub(super) sync_seconds: f64,
    /// Of that, waiting for slower ranks at the end of a batch that is not the last.
    pub(super) wait_seconds: f64,
    pub(super) cpu_seconds: f64,
    pub(super) moved_bytes: u64,
    pub(super) allocations: u64,
    pub(super) error: Option<BackendError>,
}

impl LoopTiming {
    pub(super) fn add(&mut self, next: Self) {
        self.seconds += next.seconds;
        self.sync_seconds += next.sync_seconds;
        self.wait_seconds += next.wait_seconds;
        self.cpu_seconds += next.cpu_seconds;
        self.moved_bytes += next.moved_bytes;
        self.allocations += next.allocations;
        self.error = self.error.take().or(next.error);
    }

    #[inline]
    fn add_transfer(&mut self, moved: Result<u64, BackendError>) {
        match moved {
            Ok(bytes) => self.moved_bytes += bytes,
            Err(e) => {
                self.error.get_or_insert(e);
            }
        }
    }
}

/// Runs the timed loop. `laps` stores the time of each iteration up to its capacity; it is cleared by the first batch, and
/// unused with requests, whose calls overlap each other. Collective over `group`.
pub(super) fn run(
    file: &mut dyn OpenFile,
    group: &Comm,
    buffer: &mut TransferBuffer,
    task: &IterationLoop<'_>,
    laps: &mut Latency,
) -> Result<LoopTiming, MpiError> {
    let mut timed = LoopTiming::default();
    group.bare_barrier()?;
    group.bare_barrier()?;
    let allocations = clock::allocations();
    let begin = Instant::now();
    if task.calls.first_call == 0 {
        laps.start_intervals();
    } else {
        laps.resume_intervals();
    }
    match task.overlap_mode {
        OverlapMode::Blocking => run_blocking(file, group, buffer, task, laps, &mut timed)?,
        OverlapMode::Alone | OverlapMode::Overlapped { .. } => run_overlapped(file, buffer, task, &mut timed),
    }
    if task.syncs == SyncPlacement::AfterAll {
        let sync = Instant::now();
        sync_all(file, group, &mut timed.error)?;
        timed.sync_seconds = sync.elapsed().as_secs_f64();
    }
    if task.end_call() < task.total_calls {
        // Without this barrier a fast rank would continue and disturb the others; its clock must run meanwhile.
        let wait = Instant::now();
        group.bare_barrier()?;
        timed.wait_seconds = wait.elapsed().as_secs_f64();
    }
    timed.seconds = begin.elapsed().as_secs_f64();
    timed.allocations = clock::allocations() - allocations;
    Ok(timed)
}

/// MPI_File_sync, barrier, MPI_File_sync: writes of any rank before are visible to reads of every rank after.
fn sync_all(file: &mut dyn OpenFile, group: &Comm, error: &mut Option<BackendError>) -> Result<(), MpiError> {
    keep_first_error(error, file.sync());
    group.bare_barrier()?;
    keep_first_error(error, file.sync());
    Ok(())
}

fn run_blocking(
    file: &mut dyn OpenFile,
    group: &Comm,
    buffer: &mut TransferBuffer,
    task: &IterationLoop<'_>,
    laps: &mut Latency,
    timed: &mut LoopTiming,
) -> Result<(), MpiError> {
    let each = task.syncs == SyncPlacement::AfterEach;
    if !each && !task.single_calls {
        // The driver's own loop: its calls and the time stamp of each iteration.
        timed.add_transfer(transfer_calls(file, buffer, task.direction, task.calls, laps));
        return Ok(());
    }
    let alone = !each && !task.kind.is_collective();
    let mut off = Latency::off();
    for first_call in task.calls.first_call..task.end_call() {
        timed.add_transfer(transfer_calls(file, buffer, task.direction, Batch { first_call, calls: 1 }, &mut off));
        if each {
            sync_all(file, group, &mut timed.error)?;
        }
        laps.record_interval();
        if timed.error.is_some() && alone {
            break;
        }
    }
    Ok(())
}

#[inline]
fn transfer_calls(
    file: &mut dyn OpenFile,
    buffer: &mut TransferBuffer,
    direction: Direction,
    batch: Batch,
    latency: &mut Latency,
) -> Result<u64, BackendError> {
    match direction {
        Direction::Write => file.write(Batches::new(batch, latency), buffer),
        Direction::Read => file.read(Batches::new(batch, latency), buffer),
    }
}

fn run_overlapped(
    file: &mut dyn OpenFile,
    buffer: &mut TransferBuffer,
    task: &IterationLoop<'_>,
    timed: &mut LoopTiming,
) {
    let pending = task.pending.clamp(1, MAX_PENDING_CALLS);
    let mut first_call = task.calls.first_call;
    while first_call < task.end_call() {
        let calls = pending.min(task.end_call() - first_call);
        let batch = Batch { first_call, calls };
        let mut cpu_seconds = 0.0;
        let mut during = || {
            if let OverlapMode::Overlapped { load, seconds, split } = task.overlap_mode {
                let share = if split { 1.0 } else { calls as f64 } / task.total_calls as f64;
                cpu_seconds += load.run(seconds * share);
            }
        };
        let moved = match task.direction {
            Direction::Write => {
                file.write(Batches::new(batch, &mut Latency::off()).with_computation(&mut during), buffer)
            }
            Direction::Read => {
                file.read(Batches::new(batch, &mut Latency::off()).with_computation(&mut during), buffer)
            }
        };
        timed.cpu_seconds += cpu_seconds;
        timed.add_transfer(moved);
        // In collective calls the others would wait for this rank.
        if timed.error.is_some() && !task.kind.is_collective() {
            return;
        }
        first_call += calls;
    }
}

fn keep_first_error(error: &mut Option<BackendError>, result: Result<(), BackendError>) {
    if let Err(e) = result {
        error.get_or_insert(e);
    }
}
