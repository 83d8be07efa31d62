//! The time limit during a run. Rank 0 decides before each pattern of the first measurement what is omitted from then on, or that the run
//! ends; the loops end at the limit by the request of rank 0, as after a signal.

use beff_ffi::MpiError;

use crate::b_eff_io::plan::patterns::PatternSpec;
use crate::b_eff_io::plan::time_limit::{omissible_parts, LimitProgress};
use crate::b_eff_io::records::JournalLine;
use crate::b_eff_io::run::context::TypeContext;
use crate::b_eff_io::run::files::{TypeFile, WrittenPattern};
use crate::b_eff_io::run::first_measurement::FirstMeasurement;
use crate::b_eff_io::run::run_limit::RunLimit;
use crate::b_eff_io::run::state::{BackendState, RunState};
use crate::frame::records::{AccessMethod, OmittedPart, RunOutcome};
use crate::frame::run::job_limit::JobLimit;

/// True if the run omits the part for its time limit.
#[must_use]
pub fn omits(run: &RunState<'_>, part: OmittedPart) -> bool {
    run.limit.as_ref().is_some_and(|limit| limit.omits(part))
}

/// Records that parts are omitted.
pub fn omit(run: &mut RunState<'_>, parts: &[OmittedPart]) {
    let Some(limit) = &mut run.limit else { return };
    let known = limit.record.omitted.len();
    limit.record.omitted.extend(parts);
    limit.record.omitted.sort_unstable();
    limit.record.omitted.dedup();
    if limit.record.omitted.len() > known {
        limit.record.reserve_seconds =
            run.interrupt.limit().map_or(limit.record.reserve_seconds, JobLimit::reserve_seconds);
        run.observer.record(JournalLine::TimeLimit(limit.record.clone()));
    }
}

/// Time until the run must end, on rank 0; None without a limit, and on other ranks.
#[must_use]
pub fn left_seconds(run: &RunState<'_>) -> Option<f64> {
    run.interrupt.limit().map(JobLimit::left_seconds)
}

/// Decides before a pattern of the first measurement whether the run continues, and what it omits. `open_files`: number of open files.
/// Collective over the partition.
///
/// # Errors
/// MPI between the ranks.
pub fn check_limit(
    run: &mut RunState<'_>,
    place: TypeContext<'_>,
    open_files: usize,
    spec: &PatternSpec,
) -> Result<(), MpiError> {
    let Some(limit) = &run.limit else { return Ok(()) };
    let parts = omissible_parts(run.config, run.backends.iter().any(|backend| backend.moves_data));
    let omitted = parts.iter().filter(|part| limit.omits(**part)).count();
    let mut decision = [0.0, omitted as f64];
    if let Some(job_limit) = run.interrupt.limit() {
        let grows = place.access == AccessMethod::Write;
        job_limit.expect_files(open_files as f64 * limit.file_seconds, existing_bytes(run), grows);
        let left_seconds = job_limit.left_seconds();
        let ends = left_seconds <= longest_call_seconds(run, place, spec);
        decision = [f64::from(u8::from(ends)), progress(run, limit, left_seconds).omissions(&parts, omitted) as f64];
    }
    place.comm.bcast_f64(&mut decision, 0)?;
    let [ends, now_omitted] = decision;
    if now_omitted as usize > omitted {
        let at = (run.begin.elapsed().as_secs_f64(), run.done_seconds);
        run.limit.iter_mut().for_each(|limit| limit.last_omission = Some(at));
        omit(run, &parts[..now_omitted as usize]);
    }
    if ends > 0.0 {
        run.stop = Some(RunOutcome::Limit);
    }
    Ok(())
}

fn progress(run: &RunState<'_>, limit: &RunLimit, left_seconds: f64) -> LimitProgress {
    let all_seconds = run.plan.scheduled_seconds(run.config);
    let since = limit.last_omission.unwrap_or(run.patterns_begin);
    LimitProgress {
        real_seconds: run.begin.elapsed().as_secs_f64() - since.0,
        done_seconds: run.done_seconds - since.1,
        remaining_seconds: (all_seconds - run.done_seconds).max(0.0),
        all_seconds,
        left_seconds,
    }
}

/// Bytes of all files, to be removed at the end.
fn existing_bytes(run: &RunState<'_>) -> u64 {
    let of_pattern = |written: &WrittenPattern| written.calls.saturating_mul(written.spec.call_bytes);
    let of_file =
        |file: &TypeFile| file.written.iter().map(of_pattern).fold(0, u64::saturating_add).saturating_mul(file.ranks);
    run.files.iter().map(of_file).fold(0, u64::saturating_add)
}

/// Expected time of the first call with the slowest backend, and of its sync: a call in progress cannot be ended. It is that of the same
/// pattern in the previous access method, or at least that of the latest pattern, or follows from the calibration.
fn longest_call_seconds(run: &RunState<'_>, place: TypeContext<'_>, spec: &PatternSpec) -> f64 {
    let bytes = spec.call_bytes * place.partition.ranks;
    let of = |(number, backend): (usize, &BackendState)| {
        let is_same = |m: &&FirstMeasurement| {
            m.pattern == spec.number && m.ranks == place.partition.ranks && m.access != place.access
        };
        let own = || run.first_measurements.iter().rev().filter(move |m| m.backend == number && m.calls > 0);
        let known = own().find(is_same).or_else(|| own().next());
        let measured_seconds = known.map_or(0.0, |m| m.calls_seconds / m.calls as f64);
        let calibrated_seconds = backend.calibrated_bytes_per_second.map_or(0.0, |rate| bytes as f64 / rate);
        let sync_seconds = if place.access == AccessMethod::Read { 0.0 } else { backend.sync.predict_seconds(bytes) };
        measured_seconds.max(calibrated_seconds) + sync_seconds
    };
    run.backends.iter().enumerate().map(of).fold(0.0, f64::max)
}
