//! One file of a row, and a row tried with a few repetitions.

use super::job::{RowJob, Which};
use super::outcome::{Done, Stopped};
use super::shape::Shape;
use super::stage::{stage, Job};
use super::summary::corruption;
use super::timed::Way;
use super::{open_close, Bench};
use crate::frame::run::agree::any;
use crate::imb_io::plan::overlap::repetition_seconds;

/// Repetitions of a trial: the first pays for first contact.
pub(super) const TRIAL_STEPS: u64 = 2;

/// One file with so many repetitions. Collective over the active ranks.
pub(super) fn one_file(
    bench: &mut Bench<'_>,
    job: &RowJob<'_>,
    steps: u64,
    which: Which,
    way: Way<'_>,
) -> Result<Done, Stopped> {
    let Some(transfer) = job.row.benchmark.transfer() else {
        return open_close::run(bench, job, steps, which.counts());
    };
    let transfer = if matches!(way, Way::Blocking) { transfer.blocking() } else { *transfer };
    let sample_bytes = job.row.sample_bytes.unwrap_or(0);
    let shape = Shape::new(transfer, sample_bytes, steps, (job.team.member.rank, job.row.ranks), bench.config.buffers)?;
    stage(bench, &Job { of: job, shape: &shape, way, which })
}

/// What a trial took, slowest rank.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tried {
    /// One repetition of the row with all that belongs to it.
    pub(super) one_seconds: f64,
    /// In the clocks of the trial, without syncs behind all repetitions.
    pub(super) clock_seconds: f64,
}

/// Tries a row with so many repetitions. Collective over the active ranks.
pub(super) fn trial(bench: &mut Bench<'_>, job: &RowJob<'_>, steps: u64) -> Result<Tried, Stopped> {
    job.can_run()?;
    let steps = steps.min(job.wanted);
    let pure_seconds = try_one(bench, job, steps, Way::Blocking)?;
    if !job.row.benchmark.has_overlap() {
        return Ok(Tried { one_seconds: pure_seconds, clock_seconds: steps as f64 * pure_seconds });
    }
    let alone_seconds = try_one(bench, job, steps, Way::Alone)?;
    Ok(Tried {
        one_seconds: repetition_seconds(pure_seconds, alone_seconds),
        clock_seconds: steps as f64 * (pure_seconds + alone_seconds),
    })
}

/// Seconds of one repetition, slowest rank.
fn try_one(bench: &mut Bench<'_>, job: &RowJob<'_>, steps: u64, way: Way<'_>) -> Result<f64, Stopped> {
    let Done { timed, checked, file, .. } = one_file(bench, job, steps, Which::Trial, way)?;
    // What a trial finds is found: wrong data does not wait for the row.
    if any(&job.team.active, checked.bytes_wrong > 0)? {
        bench.corruptions.extend(corruption(job, (&checked, &file))?);
    }
    let mean = (timed.seconds - timed.sync_seconds) / steps as f64;
    // Of two repetitions that were timed one by one, the first pays for first contact.
    let last = bench.laps.laps_ns().last().map(|ns| ns as f64 * 1e-9).filter(|_| steps == TRIAL_STEPS);
    Ok(job.slowest(last.unwrap_or(mean))?)
}
