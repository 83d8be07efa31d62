//! One row: how often, the repetitions, what all ranks together make of them.

use std::time::Instant;

use beff_ffi::MpiError;

use super::check::Checked;
use super::open_close;
use super::pilot::Foreseen;
use super::shape::Shape;
use super::stage::{stage, Backend, Done, Job, Staged};
use super::summary::summarize;
use super::team::Team;
use super::timed::Way;
use super::Bench;
use crate::frame::records::ErrorRecord;
use crate::imb_io::plan::overlap::repetition_seconds;
use crate::imb_io::plan::repetitions::Measured;
use crate::imb_io::plan::{Repetitions, Row, Style, Transfer};
use crate::imb_io::records::{ImbCorruption, RowEnd, RowRecord};

/// Repetitions of a trial: the first pays for first contact.
pub(super) const TRIAL_STEPS: u64 = 2;
/// What is foreseen to take no more than this share of the time limit needs no trial.
const FAR_BELOW: f64 = 0.05;

/// A row for this rank.
#[derive(Clone, Copy)]
pub(super) struct RowJob<'a> {
    pub(super) row: &'a Row,
    pub(super) backend: &'a Backend,
    pub(super) team: &'a Team,
    /// Number of the row, of all backends.
    pub(super) number: u64,
    /// Its files stay.
    pub(super) keep: bool,
    pub(super) rule: &'a Repetitions,
    pub(super) wanted: u64,
    /// What the pilot foresees for all wanted repetitions.
    pub(super) foreseen: Option<Foreseen>,
    /// Repetitions of the size before.
    pub(super) previous: Option<u64>,
    pub(super) during: &'a str,
}

/// What became of a row; equal on all active ranks.
pub(super) struct RowOutcome {
    pub(super) record: RowRecord,
    pub(super) error: Option<ErrorRecord>,
    pub(super) corruption: Option<ImbCorruption>,
    /// Comparing, slowest rank.
    pub(super) verify_seconds: f64,
}

/// The files of a row that were worked through, of this rank.
#[derive(Default)]
pub(super) struct Stages {
    /// The one that is reported.
    pub(super) last: Done,
    pub(super) pure_seconds: f64,
    pub(super) cpu_seconds: f64,
    pub(super) checked: Checked,
    pub(super) verify_seconds: f64,
}

/// Why there are none.
pub(super) enum Stopped {
    NotRun(String),
    Failed(ErrorRecord),
    Interrupted,
}

/// Measures a row. Collective over the active ranks.
///
/// # Errors
/// MPI between the ranks.
pub(super) fn measure(bench: &mut Bench<'_>, job: &RowJob<'_>) -> Result<RowOutcome, MpiError> {
    let begin = Instant::now();
    let mut record = empty(job);
    if let Some(stopped) = lacks(job) {
        return Ok(stop(record, stopped, begin));
    }
    let steps = match repetitions(bench, job, begin)? {
        Ok(steps) => steps,
        Err(stopped) => return Ok(stop(record, stopped, begin)),
    };
    record.repetitions = steps;
    if interrupted(bench, job)? {
        return Ok(stop(record, Stopped::Interrupted, begin));
    }
    let stages = match all_files(bench, job, steps)? {
        Ok(stages) => stages,
        Err(stopped) => return Ok(stop(record, stopped, begin)),
    };
    summarize(bench, job, record, stages, begin)
}

fn empty(job: &RowJob<'_>) -> RowRecord {
    RowRecord {
        backend: job.backend.name.clone(),
        benchmark: job.row.benchmark.name.to_owned(),
        ranks: job.row.ranks,
        groups: job.team.groups.groups,
        mode: job.row.mode,
        sample_bytes: job.row.sample_bytes,
        repetitions: 0,
        repetitions_wanted: job.wanted,
        ended: RowEnd::Complete,
        times: Vec::new(),
        repetition_times: None,
        overlap: None,
        sync_seconds: 0.0,
        moved_bytes: 0,
        bytes_checked: 0,
        bytes_wrong: 0,
        allocations_in_clock: 0,
        strategy: String::new(),
        direct: None,
        hints_granted: Vec::new(),
        evidence: None,
        storage_read_bytes: None,
        real_seconds: 0.0,
    }
}

fn stop(mut record: RowRecord, stopped: Stopped, begin: Instant) -> RowOutcome {
    let error = match stopped {
        Stopped::NotRun(reason) => {
            record.ended = RowEnd::NotRun(reason);
            None
        }
        Stopped::Interrupted => {
            record.ended = RowEnd::Interrupted;
            None
        }
        Stopped::Failed(mut error) => {
            if error.no_space {
                error.next_step = "free space, give a smaller volume (--iter) or smaller sizes (--msglog), or choose \
                                   another --path"
                    .into();
            }
            record.ended = RowEnd::Error(format!("rank {}: {}", error.rank, error.message));
            Some(error)
        }
    };
    record.real_seconds = begin.elapsed().as_secs_f64();
    RowOutcome { record, error, corruption: None, verify_seconds: 0.0 }
}

/// How often: as the rule says, after a trial where time could matter.
fn repetitions(bench: &mut Bench<'_>, job: &RowJob<'_>, begin: Instant) -> Result<Result<u64, Stopped>, MpiError> {
    if !job.rule.policy.is_timed() {
        return Ok(Ok(job.wanted.max(1)));
    }
    let far_below = |foreseen: &Foreseen| foreseen.row_seconds <= FAR_BELOW * job.rule.limit_seconds;
    let foreseen = job.foreseen.unwrap_or_default();
    let mut one = foreseen.step_seconds;
    if !job.foreseen.as_ref().is_some_and(far_below) {
        match trial(bench, job, TRIAL_STEPS)? {
            // The trial saw the calls; what their bytes cost outside of them, the pilot.
            Ok(seconds) => one = seconds + (foreseen.step_seconds - foreseen.one_seconds),
            Err(stopped) => return Ok(Err(stopped)),
        }
    }
    let mut spent = [begin.elapsed().as_secs_f64()];
    job.team.active.max_f64(&mut spent)?;
    let spent_seconds = spent[0] + foreseen.fixed_seconds;
    let measured = Measured { repetition_seconds: one, spent_seconds };
    Ok(Ok(job.rule.reduced(job.wanted, &measured, job.previous)))
}

/// Whether a signal came, on any rank. Asked between the files of a row: a loop in the clock runs to its end.
fn interrupted(bench: &Bench<'_>, job: &RowJob<'_>) -> Result<bool, MpiError> {
    let mut raised = [u64::from(bench.interrupt.raised())];
    job.team.active.max_u64(&mut raised)?;
    Ok(raised[0] > 0)
}

/// Why a backend has no such calls.
fn lacks(job: &RowJob<'_>) -> Option<Stopped> {
    let reason = if job.row.benchmark.needs_mpi_file() && !job.backend.is_mpi {
        "collective calls, shared pointers and the opening of files are MPI-IO's own"
    } else if job.row.benchmark.has_overlap() && !job.backend.moves_data {
        "nothing is moved that could be under way"
    } else {
        return None;
    };
    Some(Stopped::NotRun(reason.into()))
}

/// Seconds of one repetition with all that belongs to it, slowest rank.
pub(super) fn trial(bench: &mut Bench<'_>, job: &RowJob<'_>, steps: u64) -> Result<Result<f64, Stopped>, MpiError> {
    if let Some(stopped) = lacks(job) {
        return Ok(Err(stopped));
    }
    let steps = steps.min(job.wanted);
    let done = match job.row.benchmark.transfer() {
        Some(transfer) => one_file(bench, job, transfer, steps, 't', first_way(transfer), false)?,
        None => open_close::run(bench, job, steps, false)?,
    };
    let done = match split(done) {
        Ok(done) => done,
        Err(stopped) => return Ok(Err(stopped)),
    };
    let mean = (done.timed.seconds - done.timed.sync_seconds) / steps as f64;
    // Of two repetitions that were timed one by one, the first pays for first contact.
    let last = bench.laps.laps_ns().last().map(|ns| ns as f64 * 1e-9).filter(|_| steps == TRIAL_STEPS);
    let mut one = [last.unwrap_or(mean)];
    job.team.active.max_f64(&mut one)?;
    Ok(Ok(if job.row.benchmark.has_overlap() { repetition_seconds(one[0], one[0]) } else { one[0] }))
}

fn split(staged: Staged) -> Result<Done, Stopped> {
    match staged {
        Staged::Done(done) => Ok(*done),
        Staged::NotRun(reason) => Err(Stopped::NotRun(reason)),
        Staged::Failed(error) => Err(Stopped::Failed(error)),
    }
}

fn first_way(transfer: &Transfer) -> Way<'static> {
    if transfer.style == Style::Blocking {
        Way::Blocking
    } else {
        Way::Pure
    }
}

fn one_file(
    bench: &mut Bench<'_>,
    job: &RowJob<'_>,
    transfer: &Transfer,
    steps: u64,
    letter: char,
    way: Way<'_>,
    counts: bool,
) -> Result<Staged, MpiError> {
    let member = job.team.member;
    let sample_bytes = job.row.sample_bytes.unwrap_or(0);
    let shape = match Shape::new(*transfer, sample_bytes, steps, (member.rank, job.row.ranks)) {
        Ok(shape) => shape,
        Err(e) => return Ok(Staged::NotRun(e.to_string())),
    };
    stage(
        bench,
        &Job {
            backend: job.backend,
            team: job.team,
            shape: &shape,
            mode: job.row.mode,
            way,
            number: job.number,
            letter,
            counts,
            keep: job.keep && counts,
            during: job.during,
        },
    )
}

fn all_files(bench: &mut Bench<'_>, job: &RowJob<'_>, steps: u64) -> Result<Result<Stages, Stopped>, MpiError> {
    let Some(transfer) = job.row.benchmark.transfer() else {
        return Ok(split(open_close::run(bench, job, steps, true)?).map(alone));
    };
    if !job.row.benchmark.has_overlap() {
        return Ok(split(one_file(bench, job, transfer, steps, 'a', Way::Blocking, true)?).map(alone));
    }
    let pure = match split(one_file(bench, job, transfer, steps, 'a', Way::Pure, true)?) {
        Ok(pure) => pure,
        Err(stopped) => return Ok(Err(stopped)),
    };
    if interrupted(bench, job)? {
        return Ok(Err(Stopped::Interrupted));
    }
    let Some(load) = bench.load else { return Ok(Err(Stopped::NotRun("the CPU load is not calibrated".into()))) };
    let mut times = [pure.timed.seconds, 0.0];
    job.team.active.max_f64(&mut times[..1])?;
    job.team.group.barrier()?;
    // In the pieces in which it will run.
    let split_calls = transfer.style == Style::Split;
    let pieces = if split_calls { steps } else { 1 };
    times[1] = (0..pieces).map(|_| load.run(times[0] / pieces as f64)).sum();
    let way = Way::Overlapped { load: &load, seconds: times[0], split: split_calls };
    let last = match split(one_file(bench, job, transfer, steps, 'b', way, true)?) {
        Ok(last) => last,
        Err(stopped) => return Ok(Err(stopped)),
    };
    let mut stages = alone(last);
    (stages.pure_seconds, stages.cpu_seconds) = (times[0], times[1]);
    stages.verify_seconds += pure.verify_seconds;
    // Of the two runs, the one that found more in the cache.
    let cached = |done: &Done| done.evidence.as_ref().and_then(|e| e.resident_before_bytes);
    if cached(&pure) > cached(&stages.last) {
        (stages.last.evidence, stages.last.storage_read_bytes) = (pure.evidence.clone(), pure.storage_read_bytes);
    }
    let last = std::mem::replace(&mut stages.checked, pure.checked);
    stages.checked.add(last);
    Ok(Ok(stages))
}

fn alone(mut done: Done) -> Stages {
    Stages {
        checked: std::mem::take(&mut done.checked),
        verify_seconds: done.verify_seconds,
        last: done,
        ..Stages::default()
    }
}
