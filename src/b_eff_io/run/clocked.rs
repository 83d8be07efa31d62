//! One pattern inside the clock: prepare, loop, decide, sync. Everything it needs is allocated before.

use std::time::Instant;

use beff_backends::{AccessKind, BackendError, Batch, Direction, InForce, Latency, OpenFile, Pattern, Ring};
use beff_ffi::{alloc, Comm, MpiError};

use crate::b_eff_io::config::Termination;
use crate::b_eff_io::records::{BatchRecord, Ended, Intervals};
use crate::b_eff_io::run::batching::{next, Limits, Progress, Step};
use crate::frame::run::interrupt::Interrupt;
use crate::frame::system::memory::process_io;

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
    latency: Latency,
}

impl Default for Notes {
    fn default() -> Self {
        Self {
            decide_seconds: Vec::with_capacity(DECISIONS_KEPT),
            batches: Vec::with_capacity(BATCHES_KEPT),
            latency: Latency::off(),
        }
    }
}

impl Notes {
    /// Room for a run, with or without the times of single calls.
    #[must_use]
    pub fn new(latency: bool) -> Self {
        Self { latency: if latency { Latency::on() } else { Latency::off() }, ..Self::default() }
    }

    /// Times of the calls of the last round, this rank's.
    #[must_use]
    pub fn latency(&self) -> &Latency {
        &self.latency
    }

    fn clear(&mut self) {
        self.decide_seconds.clear();
        self.batches.clear();
        self.latency.clear();
    }

    fn decided(&mut self, seconds: f64) {
        if self.decide_seconds.len() < DECISIONS_KEPT {
            self.decide_seconds.push(seconds);
        }
    }

    fn batch(&mut self, calls: u64, seconds: f64) {
        if self.batches.len() < BATCHES_KEPT {
            self.batches.push(BatchRecord { calls, seconds });
        } else if let Some(last) = self.batches.last_mut() {
            last.calls += calls;
            last.seconds += seconds;
        }
    }
}

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
    /// Batches.
    pub batches: Vec<BatchRecord>,
    /// Why it ended.
    pub ended: Ended,
    /// This rank's preparation.
    pub in_force: Option<InForce>,
    /// This rank's error.
    pub error: Option<BackendError>,
    /// Allocations inside the clock, all ranks.
    pub allocations_in_clock: u64,
    /// From storage and to storage, all ranks; None where the kernel does not tell.
    pub storage_bytes: Option<(u64, u64)>,
}

impl Measured {
    /// Takes a later round of the same pattern in.
    pub fn add(&mut self, later: Self) {
        self.calls += later.calls;
        self.progress = later.progress;
        self.moved_bytes += later.moved_bytes;
        self.intervals.add(&later.intervals);
        self.decisions += later.decisions;
        self.decision_cost_seconds += later.decision_cost_seconds;
        self.batches.extend(later.batches);
        self.ended = later.ended;
        self.error = self.error.take().or(later.error);
        self.allocations_in_clock += later.allocations_in_clock;
        self.storage_bytes =
            self.storage_bytes.zip(later.storage_bytes).map(|((r, w), (later_r, later_w))| (r + later_r, w + later_w));
    }
}

/// State of the loop on one rank.
struct Loop<'a> {
    comm: &'a Comm,
    task: Task<'a>,
    notes: &'a mut Notes,
    interrupt: &'a Interrupt,
    started: Instant,
    /// Time of the rounds before.
    carried_seconds: f64,
    progress: Progress,
    intervals: Intervals,
    moved_bytes: u64,
    error: Option<BackendError>,
    decisions: u64,
}

/// Common state after a decision.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Verdict {
    GoOn,
    Interrupted,
    Error,
}

impl Loop<'_> {
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
            Ok(bytes) => self.moved_bytes += bytes,
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

    /// Time of the pattern so far, without the turns of others between its rounds.
    fn elapsed_seconds(&self) -> f64 {
        self.carried_seconds + self.started.elapsed().as_secs_f64()
    }

    /// All ranks learn the slowest rank's times, and whether one of them has an error or a signal.
    fn decide(&mut self) -> Result<Verdict, MpiError> {
        let begin = Instant::now();
        // Whether all ranks could prepare is always asked of all: no collective call may follow if one could not.
        let first = self.decisions == 0;
        let verdict = if self.task.limits.termination == Termination::PerCall && !first {
            self.decide_as_release_2_1()?
        } else {
            let mut shared = [
                self.elapsed_seconds(),
                self.progress.last_seconds,
                f64::from(u8::from(self.interrupt.raised())),
                f64::from(u8::from(self.error.is_some())),
            ];
            self.comm.max_f64(&mut shared)?;
            self.progress.elapsed_seconds = shared[0];
            self.progress.last_seconds = shared[1];
            match (shared[3] > 0.0, shared[2] > 0.0) {
                (true, _) => Verdict::Error,
                (_, true) => Verdict::Interrupted,
                _ => Verdict::GoOn,
            }
        };
        let seconds = begin.elapsed().as_secs_f64();
        self.intervals.decide_seconds += seconds;
        self.notes.decided(seconds);
        self.decisions += 1;
        Ok(verdict)
    }

    /// Barrier, clock at the root, broadcast. An error elsewhere than at the root is not seen before the loop ends.
    fn decide_as_release_2_1(&mut self) -> Result<Verdict, MpiError> {
        self.comm.barrier()?;
        let mut shared = [
            self.elapsed_seconds(),
            self.progress.last_seconds,
            f64::from(u8::from(self.interrupt.raised())),
            f64::from(u8::from(self.error.is_some())),
        ];
        self.comm.bcast_f64(&mut shared, 0)?;
        self.progress.elapsed_seconds = shared[0];
        self.progress.last_seconds = shared[1];
        Ok(match (shared[3] > 0.0, shared[2] > 0.0) {
            (true, _) => Verdict::Error,
            (_, true) => Verdict::Interrupted,
            _ => Verdict::GoOn,
        })
    }

    fn run(&mut self, file: &mut dyn OpenFile, ring: &mut Ring) -> Result<Ended, MpiError> {
        // The first decision tells whether every rank could prepare.
        if self.task.resume.is_none() {
            match self.decide()? {
                Verdict::Error => return Ok(Ended::Error),
                Verdict::Interrupted => return Ok(Ended::Interrupted),
                Verdict::GoOn => {}
            }
        }
        loop {
            match next(self.task.limits, &self.progress) {
                Step::Stop(ended) => return Ok(ended),
                Step::Run(calls) => {
                    // With the per-call decision a rank may have an error that the others do not know of yet; they still
                    // need it in their collective calls.
                    if self.error.is_none() || self.task.pattern.kind != AccessKind::Independent {
                        self.transfer(file, ring, calls);
                    } else {
                        self.progress.calls += calls;
                    }
                    // Nothing is left to decide after the last call; errors are agreed on after the clock.
                    let verdict =
                        if self.progress.calls < self.task.limits.max_calls { self.decide()? } else { Verdict::GoOn };
                    self.notes.batch(calls, self.progress.last_seconds);
                    match verdict {
                        Verdict::Error => return Ok(Ended::Error),
                        Verdict::Interrupted => return Ok(Ended::Interrupted),
                        Verdict::GoOn => {}
                    }
                }
            }
        }
    }
}

/// Runs one pattern, or one round of it. Collective over `comm`; every rank comes out with the same numbers, whatever happened.
///
/// # Errors
/// Only when MPI itself fails between the ranks; errors of the storage are in [`Measured::error`].
pub fn run(
    file: &mut dyn OpenFile,
    comm: &Comm,
    ring: &mut Ring,
    task: Task<'_>,
    notes: &mut Notes,
    interrupt: &Interrupt,
) -> Result<Measured, MpiError> {
    notes.clear();
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
        started,
        carried_seconds: before.elapsed_seconds,
        progress: before,
        intervals: Intervals { view_seconds, ..Intervals::default() },
        moved_bytes: 0,
        error,
        decisions: 0,
    };
    let ended = l.run(file, ring)?;
    let mut sync_result = Ok(());
    // Collective: the number of calls is the same on all ranks, whatever went wrong on one.
    if task.direction == Direction::Write && l.progress.calls > before.calls {
        let begin = Instant::now();
        sync_result = file.sync();
        l.intervals.sync_seconds = begin.elapsed().as_secs_f64();
    }
    let allocations = alloc::allocations() - allocations;
    // The clock has stopped.

    if let (Err(e), None) = (sync_result, &l.error) {
        l.error = Some(e);
    }
    let (progress, intervals, moved_bytes, error, decisions) =
        (l.progress, l.intervals, l.moved_bytes, l.error.take(), l.decisions);
    let storage = storage_delta(io_before);
    finish(
        comm,
        notes,
        Measured {
            calls: progress.calls - before.calls,
            progress: Progress { elapsed_seconds: before.elapsed_seconds, synced_calls: progress.calls, ..progress },
            moved_bytes,
            intervals,
            decisions,
            decision_cost_seconds: 0.0,
            batches: Vec::new(),
            ended,
            in_force,
            error,
            allocations_in_clock: allocations,
            storage_bytes: storage,
        },
    )
}

fn storage_delta(before: Option<crate::frame::system::memory::ProcessIo>) -> Option<(u64, u64)> {
    let (before, after) = (before?, process_io()?);
    Some((after.read_bytes.saturating_sub(before.read_bytes), after.written_bytes.saturating_sub(before.written_bytes)))
}

/// Brings the ranks' numbers together, after the clock.
fn finish(comm: &Comm, notes: &mut Notes, mut m: Measured) -> Result<Measured, MpiError> {
    let mut sums = [
        m.moved_bytes,
        m.allocations_in_clock,
        m.storage_bytes.map_or(0, |s| s.0),
        m.storage_bytes.map_or(0, |s| s.1),
        u64::from(m.storage_bytes.is_none()),
        u64::from(m.error.is_some()),
        u64::from(m.in_force.as_ref().is_some_and(|i| i.direct == Some(true))),
        u64::from(m.in_force.as_ref().is_some_and(|i| i.direct == Some(false))),
    ];
    comm.sum_u64(&mut sums)?;
    m.moved_bytes = sums[0];
    m.allocations_in_clock = sums[1];
    m.storage_bytes = (sums[4] == 0).then_some((sums[2], sums[3]));
    if sums[5] > 0 {
        m.ended = Ended::Error;
    }
    let (direct, buffered) = (sums[6], sums[7]);
    if let (Some(mine), true) = (&mut m.in_force, direct > 0 && buffered > 0) {
        // Segments that are not aligned can differ from rank to rank; what is partly cached is not direct.
        mine.direct = Some(false);
        mine.strategy = format!("direct on {direct} ranks, buffered on {buffered}; rank 0: {}", mine.strategy);
    }

    // The parts shown are those of the slowest rank, so that they add up to the pattern's time.
    let total = m.intervals.total_seconds();
    let mut slowest = [total];
    comm.max_f64(&mut slowest)?;
    let mut root = [if total >= slowest[0] { comm.rank() } else { u64::MAX }];
    comm.min_u64(&mut root)?;
    let i = m.intervals;
    let mut parts = [i.view_seconds, i.room_seconds, i.transfer_seconds, i.decide_seconds, i.sync_seconds];
    comm.bcast_f64(&mut parts, root[0])?;
    m.intervals = Intervals {
        view_seconds: parts[0],
        room_seconds: parts[1],
        transfer_seconds: parts[2],
        decide_seconds: parts[3],
        sync_seconds: parts[4],
    };

    m.progress.elapsed_seconds += m.intervals.total_seconds();
    let mut last = [m.progress.last_seconds];
    comm.max_f64(&mut last)?;
    m.progress.last_seconds = last[0];

    // The rank that arrives last at a decision waits for nobody: its time is the decision's own cost.
    comm.min_f64(&mut notes.decide_seconds)?;
    let kept: f64 = notes.decide_seconds.iter().sum();
    m.decision_cost_seconds = kept * (m.decisions as f64 / notes.decide_seconds.len().max(1) as f64);
    // Only the last batch can differ between the ranks: it may have had no decision after it.
    if let Some(last) = notes.batches.last_mut() {
        let mut seconds = [last.seconds];
        comm.max_f64(&mut seconds)?;
        last.seconds = seconds[0];
    }
    m.batches = notes.batches.clone();
    Ok(m)
}
