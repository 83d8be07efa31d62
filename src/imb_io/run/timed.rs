//! The clock: so many repetitions of one sample, with the syncs that belong to them.
//!
//! Around the calls there is one reading of the cycle counter for each repetition and nothing else; the times are kept in
//! memory made before. A rank whose call failed goes on where the others would wait for it.
//!
//! A reading of the kernel's clock would be 5 % of a read of 4 kB; the cycle counter costs a third of it. The time of the row itself is
//! taken by the kernel's clock, and laps that do not add up to it are not reported. All calls of a row are one batch, the driver's
//! own loop. Reads with memory of their own are one batch for every 64 MiB, which all ranks of a group end together; the clock
//! stands still while what came is compared.

use beff_backends::{AccessKind, BackendError, Batch, Batches, Direction, Latency, OpenFile, Ring, MOST_PENDING};
use beff_ffi::{Comm, MpiError};

use super::load::Load;
use crate::frame::run::clock::{self, Instant};
use crate::imb_io::plan::Mode;

/// What is repeated.
#[derive(Clone, Copy)]
pub(super) struct Task<'a> {
    pub(super) kind: AccessKind,
    pub(super) direction: Direction,
    pub(super) syncs: Syncs,
    /// The repetitions.
    pub(super) calls: Batch,
    /// Of so many in all: the clock may stop between several batches of them.
    pub(super) all_calls: u64,
    /// Calls that may be pending at the same time: of reads each has a window of its own.
    pub(super) pending: u64,
    /// The driver would overlap the calls of a batch: each is one of its own.
    pub(super) one_by_one: bool,
    /// How it is done.
    pub(super) way: Way<'a>,
}

impl Task<'_> {
    /// The call behind the last one.
    fn end(&self) -> u64 {
        self.calls.first_call + self.calls.calls
    }
}

/// Where the sync of a write belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Syncs {
    /// Nowhere: reads.
    None,
    /// Behind all repetitions.
    Behind,
    /// Behind each.
    Each,
}

impl Syncs {
    pub(super) fn of(direction: Direction, mode: Mode) -> Self {
        match (direction, mode) {
            (Direction::Read, _) => Self::None,
            (Direction::Write, Mode::Aggregate) => Self::Behind,
            (Direction::Write, Mode::NonAggregate) => Self::Each,
        }
    }
}

/// One after the other, or begun and completed later.
#[derive(Clone, Copy)]
pub(super) enum Way<'a> {
    /// Each call is done before the next one.
    Blocking,
    /// Begun and completed at once.
    Alone,
    /// With so many seconds of load, for all repetitions, before they are completed.
    Overlapped {
        load: &'a Load,
        seconds: f64,
        /// The calls are split: each has its part of the load.
        split: bool,
    },
}

/// What came out, of this rank.
#[derive(Debug, Default)]
pub(super) struct Timed {
    /// From the barriers to the end of the last sync, or to the slowest rank's end of a lap that is not the last.
    pub(super) seconds: f64,
    /// Of that, the sync behind all repetitions.
    pub(super) sync_seconds: f64,
    /// Of that, waiting for slower ranks at the end of a lap that is not the last.
    pub(super) wait_seconds: f64,
    /// Of that, the load.
    pub(super) cpu_seconds: f64,
    pub(super) moved_bytes: u64,
    pub(super) allocations: u64,
    pub(super) error: Option<BackendError>,
}

impl Timed {
    /// Takes in what came behind it.
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
    fn take(&mut self, moved: Result<u64, BackendError>) {
        match moved {
            Ok(bytes) => self.moved_bytes += bytes,
            Err(e) => {
                self.error.get_or_insert(e);
            }
        }
    }
}

/// Runs the task. `laps` takes the time of each repetition behind those it has, none before the first one, as many as it has
/// room for; nothing with requests, whose calls overlap each other. Collective over `group`.
///
/// # Errors
/// MPI between the ranks.
pub(super) fn run(
    file: &mut dyn OpenFile,
    group: &Comm,
    ring: &mut Ring,
    task: &Task<'_>,
    laps: &mut Latency,
) -> Result<Timed, MpiError> {
    let mut timed = Timed::default();
    group.bare_barrier()?;
    group.bare_barrier()?;
    let allocations = clock::allocations();
    let begin = Instant::now();
    if task.calls.first_call == 0 {
        laps.start_laps();
    } else {
        laps.resume_laps();
    }
    match task.way {
        Way::Blocking => blocking(file, group, ring, task, laps, &mut timed)?,
        Way::Alone | Way::Overlapped { .. } => overlapped(file, ring, task, &mut timed),
    }
    if task.syncs == Syncs::Behind {
        let sync = Instant::now();
        sync_all(file, group, &mut timed.error)?;
        timed.sync_seconds = sync.elapsed().as_secs_f64();
    }
    if task.end() < task.all_calls {
        // Without a pause a rank that is early would go on, and slow others down: its clock must not stand still meanwhile.
        let wait = Instant::now();
        group.bare_barrier()?;
        timed.wait_seconds = wait.elapsed().as_secs_f64();
    }
    timed.seconds = begin.elapsed().as_secs_f64();
    timed.allocations = clock::allocations() - allocations;
    Ok(timed)
}

/// MPI_File_sync, barrier, MPI_File_sync: what one rank has written before is what every rank reads behind.
fn sync_all(file: &mut dyn OpenFile, group: &Comm, error: &mut Option<BackendError>) -> Result<(), MpiError> {
    keep(error, file.sync());
    group.bare_barrier()?;
    keep(error, file.sync());
    Ok(())
}

fn blocking(
    file: &mut dyn OpenFile,
    group: &Comm,
    ring: &mut Ring,
    task: &Task<'_>,
    laps: &mut Latency,
    timed: &mut Timed,
) -> Result<(), MpiError> {
    let each = task.syncs == Syncs::Each;
    if !each && !task.one_by_one {
        // The driver's own loop: nothing but its calls and the end of each lap.
        timed.take(move_calls(file, ring, task.direction, task.calls, laps));
        return Ok(());
    }
    let alone = !each && !task.kind.is_collective();
    let mut off = Latency::off();
    for first_call in task.calls.first_call..task.end() {
        timed.take(move_calls(file, ring, task.direction, Batch { first_call, calls: 1 }, &mut off));
        if each {
            sync_all(file, group, &mut timed.error)?;
        }
        laps.lap();
        if timed.error.is_some() && alone {
            break;
        }
    }
    Ok(())
}

#[inline]
fn move_calls(
    file: &mut dyn OpenFile,
    ring: &mut Ring,
    direction: Direction,
    batch: Batch,
    latency: &mut Latency,
) -> Result<u64, BackendError> {
    match direction {
        Direction::Write => file.write(Batches::new(batch, latency), ring),
        Direction::Read => file.read(Batches::new(batch, latency), ring),
    }
}

fn overlapped(file: &mut dyn OpenFile, ring: &mut Ring, task: &Task<'_>, timed: &mut Timed) {
    let pending = task.pending.clamp(1, MOST_PENDING);
    let mut first_call = task.calls.first_call;
    while first_call < task.end() {
        let calls = pending.min(task.end() - first_call);
        let batch = Batch { first_call, calls };
        let mut cpu_seconds = 0.0;
        let mut during = || {
            if let Way::Overlapped { load, seconds, split } = task.way {
                let share = if split { 1.0 } else { calls as f64 } / task.all_calls as f64;
                cpu_seconds += load.run(seconds * share);
            }
        };
        let moved = match task.direction {
            Direction::Write => file.write(Batches::new(batch, &mut Latency::off()).overlapping(&mut during), ring),
            Direction::Read => file.read(Batches::new(batch, &mut Latency::off()).overlapping(&mut during), ring),
        };
        timed.cpu_seconds += cpu_seconds;
        timed.take(moved);
        // In collective calls the others would wait for this rank.
        if timed.error.is_some() && !task.kind.is_collective() {
            return;
        }
        first_call += calls;
    }
}

fn keep(error: &mut Option<BackendError>, result: Result<(), BackendError>) {
    if let Err(e) = result {
        error.get_or_insert(e);
    }
}
