//! One file of a row, and the pilot measurement of a row with a few iterations.

use super::file_run::{run_file, FileJob};
use super::geometry::RowGeometry;
use super::job::{FilePurpose, RowJob};
use super::outcome::{FileResult, RowAbort};
use super::summary::corruption;
use super::timed_loop::OverlapMode;
use super::{open_close, RowContext};
use crate::frame::run::agree::any_rank;
use crate::imb_io::plan::overlap::iteration_seconds;

/// Iterations of a pilot measurement; the first includes one-time costs.
pub(super) const PILOT_ITERATIONS: u64 = 2;

/// Runs one file with `steps` iterations. Collective over the active ranks.
pub(super) fn measure_file(
    bench: &mut RowContext<'_>,
    job: &RowJob<'_>,
    steps: u64,
    which: FilePurpose,
    way: OverlapMode<'_>,
) -> Result<FileResult, RowAbort> {
    let Some(transfer) = job.row.benchmark.transfer() else {
        return open_close::run(bench, job, steps, which.is_reported());
    };
    let transfer = if matches!(way, OverlapMode::Blocking) { transfer.blocking() } else { *transfer };
    let sample_bytes = job.row.sample_bytes.unwrap_or(0);
    let shape =
        RowGeometry::new(transfer, sample_bytes, steps, (job.team.member.rank, job.row.ranks), bench.config.buffers)?;
    run_file(bench, &FileJob { row_job: job, geometry: &shape, overlap_mode: way, purpose: which })
}

/// Times of a pilot measurement, slowest rank.
#[derive(Clone, Copy, Debug)]
pub(super) struct PilotTime {
    /// One iteration of the row, with all runs of an overlap.
    pub(super) iteration_seconds: f64,
    /// Timed loops of the pilot measurement, without the syncs after all iterations.
    pub(super) clock_seconds: f64,
}

/// Pilot measurement of a row with at most `steps` iterations. Collective over the active ranks.
pub(super) fn pilot_row(bench: &mut RowContext<'_>, job: &RowJob<'_>, steps: u64) -> Result<PilotTime, RowAbort> {
    job.check_support()?;
    let steps = steps.min(job.requested_iterations);
    let pure_seconds = pilot_calls(bench, job, steps, OverlapMode::Blocking)?;
    if !job.row.benchmark.has_overlap() {
        return Ok(PilotTime { iteration_seconds: pure_seconds, clock_seconds: steps as f64 * pure_seconds });
    }
    let alone_seconds = pilot_calls(bench, job, steps, OverlapMode::Alone)?;
    Ok(PilotTime {
        iteration_seconds: iteration_seconds(pure_seconds, alone_seconds),
        clock_seconds: steps as f64 * (pure_seconds + alone_seconds),
    })
}

/// Seconds of one iteration, slowest rank.
fn pilot_calls(
    bench: &mut RowContext<'_>,
    job: &RowJob<'_>,
    steps: u64,
    way: OverlapMode<'_>,
) -> Result<f64, RowAbort> {
    let FileResult { timed, checked, file, .. } = measure_file(bench, job, steps, FilePurpose::Pilot, way)?;
    // Wrong data of a pilot measurement is reported, too.
    if any_rank(&job.team.active, checked.bytes_wrong > 0)? {
        bench.corruptions.extend(corruption(job, (&checked, &file))?);
    }
    let mean = (timed.seconds - timed.sync_seconds) / steps as f64;
    // Of two individually timed iterations, the first includes one-time costs.
    let last =
        bench.iteration_times.intervals_ns().last().map(|ns| ns as f64 * 1e-9).filter(|_| steps == PILOT_ITERATIONS);
    Ok(job.max_over_ranks(last.unwrap_or(mean))?)
}
