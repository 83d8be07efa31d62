//! One file of a row, and a row tried with a few repetitions.

use super::job::RowJob;
use super::outcome::{Done, Stopped};
use super::shape::Shape;
use super::stage::{stage, Job};
use super::timed::Way;
use super::{open_close, Bench};
use crate::imb_io::plan::overlap::repetition_seconds;

/// Repetitions of a trial: the first pays for first contact.
pub(super) const TRIAL_STEPS: u64 = 2;

/// Which file of a row, by the letter in its name.
#[derive(Clone, Copy)]
pub(super) enum Which {
    /// Not reported.
    Trial,
    /// Of the only run or the first one.
    First,
    /// Of the overlapped run.
    Second,
}

/// One file with so many repetitions. Collective over the active ranks.
pub(super) fn one_file(
    bench: &mut Bench<'_>,
    job: &RowJob<'_>,
    steps: u64,
    which: Which,
    way: Way<'_>,
) -> Result<Done, Stopped> {
    let (letter, counts) = match which {
        Which::Trial => ('t', false),
        Which::First => ('a', true),
        Which::Second => ('b', true),
    };
    let Some(transfer) = job.row.benchmark.transfer() else {
        return open_close::run(bench, job, steps, counts);
    };
    let sample_bytes = job.row.sample_bytes.unwrap_or(0);
    let shape = Shape::new(*transfer, sample_bytes, steps, (job.team.member.rank, job.row.ranks))?;
    stage(bench, &Job { of: job, shape: &shape, way, letter, counts })
}

/// How the first run of a row is done.
pub(super) fn first_way(job: &RowJob<'_>) -> Way<'static> {
    if job.row.benchmark.has_overlap() {
        Way::Pure
    } else {
        Way::Blocking
    }
}

/// Seconds of one repetition with all that belongs to it, slowest rank.
pub(super) fn trial(bench: &mut Bench<'_>, job: &RowJob<'_>, steps: u64) -> Result<f64, Stopped> {
    job.can_run()?;
    let steps = steps.min(job.wanted);
    let timed = one_file(bench, job, steps, Which::Trial, first_way(job))?.timed;
    let mean = (timed.seconds - timed.sync_seconds) / steps as f64;
    // Of two repetitions that were timed one by one, the first pays for first contact.
    let last = bench.laps.laps_ns().last().map(|ns| ns as f64 * 1e-9).filter(|_| steps == TRIAL_STEPS);
    let one = job.slowest(last.unwrap_or(mean))?;
    Ok(if job.row.benchmark.has_overlap() { repetition_seconds(one, one) } else { one })
}
