//! One row: choice of the iterations, measurement, reduction over the ranks.

use beff_ffi::MpiError;

use super::job::{FilePurpose, RowEstimate, RowJob};
use super::outcome::{FileResults, OverlapReference, RowAbort, RowOutcome};
use super::row_pilot::{measure_file, pilot_row, PILOT_ITERATIONS};
use super::summary::summarize;
use super::timed_loop::OverlapMode;
use super::RowContext;
use crate::frame::run::clock::Instant;
use crate::imb_io::plan::iterations::RowCost;
use crate::imb_io::plan::Synchronism;
use crate::imb_io::records::{RowRecord, RowStatus};

/// A row whose estimate is at most this share of the time limit needs no pilot measurement.
const NO_PILOT_SHARE: f64 = 0.05;

/// Measures a row. Collective over the active ranks.
pub(super) fn measure(bench: &mut RowContext<'_>, job: &RowJob<'_>) -> Result<RowOutcome, MpiError> {
    let begin = Instant::now();
    let mut record = empty_record(job);
    match run_files_of_row(bench, job, &mut record, begin) {
        Ok(stages) => summarize(bench, job, record, stages, begin),
        Err(stopped) => aborted(record, stopped, begin),
    }
}

fn run_files_of_row(
    bench: &mut RowContext<'_>,
    job: &RowJob<'_>,
    record: &mut RowRecord,
    begin: Instant,
) -> Result<FileResults, RowAbort> {
    job.check_support()?;
    record.iterations = choose_iterations(bench, job, begin)?;
    job.check_interrupt(bench)?;
    run_files(bench, job, record.iterations)
}

fn empty_record(job: &RowJob<'_>) -> RowRecord {
    RowRecord {
        backend: job.backend.name.clone(),
        benchmark: job.row.benchmark.name.to_owned(),
        ranks: job.row.ranks,
        groups: job.team.groups.groups,
        mode: job.row.mode,
        sample_bytes: job.row.sample_bytes,
        iterations: 0,
        iterations_requested: job.requested_iterations,
        ended: RowStatus::Complete,
        times: Vec::new(),
        iteration_times: None,
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
        interference: None,
        real_seconds: 0.0,
    }
}

fn aborted(mut record: RowRecord, stopped: RowAbort, begin: Instant) -> Result<RowOutcome, MpiError> {
    let mut failed = None;
    record.ended = match stopped {
        RowAbort::Mpi(error) => return Err(error),
        RowAbort::NotRun(reason) => RowStatus::NotRun(reason),
        RowAbort::Interrupted => RowStatus::Interrupted,
        RowAbort::Limit => RowStatus::Limit,
        RowAbort::Failed(mut error) => {
            if error.no_space {
                error.next_step = "free space, give a smaller volume (--iter) or smaller sizes (--msglog), or choose \
                                   another --path"
                    .into();
            }
            let ended = RowStatus::Error(format!("rank {}: {}", error.rank, error.message));
            failed = Some(error);
            ended
        }
    };
    record.real_seconds = begin.elapsed().as_secs_f64();
    Ok(RowOutcome { record, error: failed, corruption: None, verify_seconds: 0.0 })
}

/// Iterations by the rule, after a pilot measurement if the row may approach the time limit.
fn choose_iterations(bench: &mut RowContext<'_>, job: &RowJob<'_>, begin: Instant) -> Result<u64, RowAbort> {
    if let Some(repetitions) = job.fixed_iterations {
        return Ok(repetitions);
    }
    if !job.rule.policy.is_timed() {
        return Ok(job.requested_iterations.max(1));
    }
    let far_below = |foreseen: &RowEstimate| foreseen.row_seconds <= NO_PILOT_SHARE * job.rule.limit_seconds;
    let foreseen = job.estimate.unwrap_or_default();
    let mut repetition_seconds = foreseen.iteration_total_seconds;
    if !job.estimate.as_ref().is_some_and(far_below) {
        // Time of the calls from this measurement, untimed cost of their bytes from the pilot of the run.
        repetition_seconds = pilot_row(bench, job, PILOT_ITERATIONS)?.iteration_seconds
            + (foreseen.iteration_total_seconds - foreseen.iteration_seconds);
    }
    let spent_seconds = job.max_over_ranks(begin.elapsed().as_secs_f64())? + foreseen.fixed_seconds;
    Ok(job.rule.reduced_iterations(
        job.requested_iterations,
        &RowCost { iteration_seconds: repetition_seconds, spent_seconds },
        job.previous_iterations,
    ))
}

fn run_files(bench: &mut RowContext<'_>, job: &RowJob<'_>, steps: u64) -> Result<FileResults, RowAbort> {
    if job.row.benchmark.has_overlap() {
        run_overlap(bench, job, steps)
    } else {
        Ok(measure_file(bench, job, steps, FilePurpose::Only, OverlapMode::Blocking)?.into())
    }
}

/// Runs the blocking call, the non-blocking call alone, and the non-blocking call with a load as long as the blocking one.
fn run_overlap(bench: &mut RowContext<'_>, job: &RowJob<'_>, steps: u64) -> Result<FileResults, RowAbort> {
    let Some(load) = bench.load else { return Err(RowAbort::NotRun("the CPU load is not calibrated".into())) };
    let pure = measure_file(bench, job, steps, FilePurpose::Pure, OverlapMode::Blocking)?;
    job.check_interrupt(bench)?;
    let alone = measure_file(bench, job, steps, FilePurpose::Alone, OverlapMode::Alone)?;
    job.check_interrupt(bench)?;
    let pure_seconds = job.max_over_ranks(pure.timed.seconds)?;
    job.team.group.barrier()?;
    // Divided as in the overlapped run.
    let split = job.row.benchmark.transfer().is_some_and(|transfer| transfer.synchronism == Synchronism::Split);
    let pieces = if split { steps } else { 1 };
    let cpu_seconds = (0..pieces).map(|_| load.run(pure_seconds / pieces as f64)).sum();
    let way = OverlapMode::Overlapped { load: &load, seconds: pure_seconds, split };
    let mut stages = FileResults::from(measure_file(bench, job, steps, FilePurpose::Overlapped, way)?);
    stages.reference = Some(OverlapReference {
        blocking_seconds: pure_seconds,
        blocking_strategy: pure.in_force.strategy.clone(),
        alone_seconds: alone.timed.seconds,
        cpu_seconds,
    });
    // So that the finding of the earliest file is reported.
    for earlier in [alone, pure] {
        stages.merge_earlier(earlier);
    }
    Ok(stages)
}
