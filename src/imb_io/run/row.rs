//! One row: how often, the repetitions, what all ranks together make of them.

use beff_ffi::MpiError;

use super::job::{Foreseen, RowJob, Which};
use super::outcome::{Beside, RowOutcome, Stages, Stopped};
use super::summary::summarize;
use super::timed::Way;
use super::trial::{one_file, trial, TRIAL_STEPS};
use super::Bench;
use crate::frame::run::clock::Instant;
use crate::imb_io::plan::repetitions::Measured;
use crate::imb_io::plan::Style;
use crate::imb_io::records::{RowEnd, RowRecord};

/// What is foreseen to take no more than this share of the time limit needs no trial.
const FAR_BELOW: f64 = 0.05;

/// Measures a row. Collective over the active ranks.
///
/// # Errors
/// MPI between the ranks.
pub(super) fn measure(bench: &mut Bench<'_>, job: &RowJob<'_>) -> Result<RowOutcome, MpiError> {
    let begin = Instant::now();
    let mut record = empty(job);
    match work_through(bench, job, &mut record, begin) {
        Ok(stages) => summarize(bench, job, record, stages, begin),
        Err(stopped) => stop(record, stopped, begin),
    }
}

fn work_through(
    bench: &mut Bench<'_>,
    job: &RowJob<'_>,
    record: &mut RowRecord,
    begin: Instant,
) -> Result<Stages, Stopped> {
    job.can_run()?;
    record.repetitions = repetitions(bench, job, begin)?;
    job.go_on(bench)?;
    all_files(bench, job, record.repetitions)
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
        blocking_strategy: None,
        direct: None,
        hints_granted: Vec::new(),
        evidence: None,
        storage_read_bytes: None,
        machine: None,
        real_seconds: 0.0,
    }
}

fn stop(mut record: RowRecord, stopped: Stopped, begin: Instant) -> Result<RowOutcome, MpiError> {
    let mut failed = None;
    record.ended = match stopped {
        Stopped::Mpi(error) => return Err(error),
        Stopped::NotRun(reason) => RowEnd::NotRun(reason),
        Stopped::Interrupted => RowEnd::Interrupted,
        Stopped::Failed(mut error) => {
            if error.no_space {
                error.next_step = "free space, give a smaller volume (--iter) or smaller sizes (--msglog), or choose \
                                   another --path"
                    .into();
            }
            let ended = RowEnd::Error(format!("rank {}: {}", error.rank, error.message));
            failed = Some(error);
            ended
        }
    };
    record.real_seconds = begin.elapsed().as_secs_f64();
    Ok(RowOutcome { record, error: failed, corruption: None, verify_seconds: 0.0 })
}

/// How often: as the rule says, after a trial where time could matter.
fn repetitions(bench: &mut Bench<'_>, job: &RowJob<'_>, begin: Instant) -> Result<u64, Stopped> {
    if let Some(repetitions) = job.fixed {
        return Ok(repetitions);
    }
    if !job.rule.policy.is_timed() {
        return Ok(job.wanted.max(1));
    }
    let far_below = |foreseen: &Foreseen| foreseen.row_seconds <= FAR_BELOW * job.rule.limit_seconds;
    let foreseen = job.foreseen.unwrap_or_default();
    let mut repetition_seconds = foreseen.step_seconds;
    if !job.foreseen.as_ref().is_some_and(far_below) {
        // The trial saw the calls; what their bytes cost outside of them, the pilot.
        repetition_seconds =
            trial(bench, job, TRIAL_STEPS)?.one_seconds + (foreseen.step_seconds - foreseen.one_seconds);
    }
    let spent_seconds = job.slowest(begin.elapsed().as_secs_f64())? + foreseen.fixed_seconds;
    Ok(job.rule.reduced(job.wanted, &Measured { repetition_seconds, spent_seconds }, job.previous))
}

fn all_files(bench: &mut Bench<'_>, job: &RowJob<'_>, steps: u64) -> Result<Stages, Stopped> {
    if job.row.benchmark.has_overlap() {
        overlapped(bench, job, steps)
    } else {
        Ok(one_file(bench, job, steps, Which::Only, Way::Blocking)?.into())
    }
}

/// The blocking call, the non-blocking one alone, and the non-blocking one with a load as long as the blocking one.
fn overlapped(bench: &mut Bench<'_>, job: &RowJob<'_>, steps: u64) -> Result<Stages, Stopped> {
    let Some(load) = bench.load else { return Err(Stopped::NotRun("the CPU load is not calibrated".into())) };
    let pure = one_file(bench, job, steps, Which::Pure, Way::Blocking)?;
    job.go_on(bench)?;
    let alone = one_file(bench, job, steps, Which::Alone, Way::Alone)?;
    job.go_on(bench)?;
    let pure_seconds = job.slowest(pure.timed.seconds)?;
    job.team.group.barrier()?;
    // In the pieces in which it will run.
    let split = job.row.benchmark.transfer().is_some_and(|transfer| transfer.style == Style::Split);
    let pieces = if split { steps } else { 1 };
    let cpu_seconds = (0..pieces).map(|_| load.run(pure_seconds / pieces as f64)).sum();
    let way = Way::Overlapped { load: &load, seconds: pure_seconds, split };
    let mut stages = Stages::from(one_file(bench, job, steps, Which::Overlapped, way)?);
    stages.beside = Some(Beside {
        blocking_seconds: pure_seconds,
        blocking_strategy: pure.in_force.strategy.clone(),
        alone_seconds: alone.timed.seconds,
        cpu_seconds,
    });
    // The first finding first.
    for earlier in [alone, pure] {
        stages.put_before(earlier);
    }
    Ok(stages)
}
