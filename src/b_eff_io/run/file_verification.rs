//! Verification of files by rereading, and how its findings are recorded. Outside every clock.
//!
//! With `--verify sample` a sample after every pattern. With `--verify full` everything: after the first write and the rewrite of a type,
//! for each pattern right before it is rewritten, and after the last read of a type.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use beff_backends::error::{FailureCause, FULL_BYTES};
use beff_backends::{BackendError, Direction};
use beff_ffi::MpiError;

use crate::b_eff_io::config::Verify;
use crate::b_eff_io::records::{SampleRecord, Verification};
use crate::b_eff_io::run::context::{OpenTypeFile, TypeContext};
use crate::b_eff_io::run::files::WrittenPattern;
use crate::b_eff_io::run::kernel_counters::KernelCounters;
use crate::b_eff_io::run::limit_check::omits;
use crate::b_eff_io::run::state::RunState;
use crate::b_eff_io::run::verify::{reader_of, Findings, VerificationTarget};
use crate::frame::records::{AccessMethod, ErrorRecord, OmittedPart};
use crate::frame::run::agree::{first_message, max_seconds};
use crate::frame::run::clock::Instant;
use crate::frame::run::error_agreement::next_step_of;
use crate::frame::system::memory::ProcessIo;
use crate::frame::system::storage::free_bytes;

/// Maximum time of a sample as a share of its pattern's time, if that is longer than for short patterns. On slow storage it is smaller.
const SAMPLE_SHARE: f64 = 0.01;

/// What this rank rereads of the file with index `file`.
fn verification_target<'a>(run: &'a RunState<'_>, place: TypeContext<'_>, file: usize) -> VerificationTarget<'a> {
    VerificationTarget {
        run_dir: run.run_dir,
        file: &run.files[file],
        access: place.access,
        rank: place.comm.rank(),
        drops: run.config.cache.drops_pages(),
    }
}

/// True if everything this backend writes is verified.
fn verifies_fully(run: &RunState<'_>, backend: usize) -> bool {
    run.config.verify == Verify::Full && run.backends[backend].moves_data && run.stop.is_none()
}

/// Assumed rate of a verification, all ranks, unless the calibration is slower.
const ASSUMED_BYTES_PER_SECOND: f64 = 1e9;

/// True if the time limit leaves time to verify these patterns; otherwise the run ends. Collective over the partition.
fn has_time(
    run: &mut RunState<'_>,
    place: TypeContext<'_>,
    backend: usize,
    written: &[WrittenPattern],
) -> Result<bool, MpiError> {
    if run.limit.is_none() {
        return Ok(true);
    }
    let bytes: u64 = written.iter().map(|w| w.calls.saturating_mul(w.spec.call_bytes)).fold(0, u64::saturating_add);
    let rate = run.backends[backend]
        .calibrated_bytes_per_second
        .map_or(ASSUMED_BYTES_PER_SECOND, |rate| rate.min(ASSUMED_BYTES_PER_SECOND));
    let seconds = bytes as f64 * place.partition.ranks as f64 / rate;
    run.stop = run.interrupt.agree(place.comm, seconds)?;
    Ok(run.stop.is_none())
}

/// With `--verify full`: verifies a closed file completely. Collective over the partition.
///
/// # Errors
/// MPI between the ranks.
pub fn verify_file(
    run: &mut RunState<'_>,
    place: TypeContext<'_>,
    backend: usize,
    file: usize,
) -> Result<Option<Verification>, MpiError> {
    if !verifies_fully(run, backend) || !has_time(run, place, backend, &run.files[file].written.clone())? {
        return Ok(None);
    }
    let begin = Instant::now();
    let found = run.data.check_file(&verification_target(run, place, file));
    let verification = record_findings(run, place, file, found)?;
    run.full_verify_seconds += begin.elapsed().as_secs_f64();
    Ok(Some(verification))
}

/// With `--verify full`: verifies one pattern before it is overwritten. Collective over the partition.
///
/// # Errors
/// MPI between the ranks.
pub fn verify_before_rewrite(
    run: &mut RunState<'_>,
    place: TypeContext<'_>,
    open: &OpenTypeFile,
    index: usize,
) -> Result<Verification, MpiError> {
    if place.access != AccessMethod::Rewrite || !verifies_fully(run, open.backend) {
        return Ok(Verification::default());
    }
    if !has_time(run, place, open.backend, &[run.files[open.file].written[index].clone()])? {
        return Ok(Verification::default());
    }
    verify_pattern(run, place, open, index)
}

/// Verifies one pattern completely. Collective over the partition.
///
/// # Errors
/// MPI between the ranks.
pub fn verify_pattern(
    run: &mut RunState<'_>,
    place: TypeContext<'_>,
    open: &OpenTypeFile,
    index: usize,
) -> Result<Verification, MpiError> {
    let begin = Instant::now();
    let written: WrittenPattern = run.files[open.file].written[index].clone();
    let found = run.data.check_pattern(&verification_target(run, place, open.file), &written);
    let verification = record_findings(run, place, open.file, found)?;
    run.full_verify_seconds += begin.elapsed().as_secs_f64();
    Ok(verification)
}

fn record_findings(
    run: &mut RunState<'_>,
    place: TypeContext<'_>,
    file: usize,
    found: io::Result<Findings>,
) -> Result<Verification, MpiError> {
    let (findings, error) = match found {
        Ok(findings) => (findings, None),
        Err(e) => (Findings::default(), Some(reread_error(run, place, file, &e))),
    };
    let backend = run.backends.iter().position(|backend| backend.name == run.files[file].backend).unwrap_or(0);
    let sums = run.report_findings(place.comm, backend, place.call_order(), &findings)?;
    run.agree_on_error(place.comm, error.as_ref(), "rereading written data")?;
    Ok(sums.verification)
}

fn reread_error(run: &RunState<'_>, place: TypeContext<'_>, file: usize, cause: &io::Error) -> BackendError {
    let name = run.files[file].name(reader_of(place.comm.rank(), place.comm.size()));
    BackendError::from_io("reread", run.run_dir.path().join(name), None, cause)
}

/// With `--verify sample`: verifies a sample of pattern `index` in its file; the pattern took `seconds`. If a corruption is `named`
/// already, the sample only counts. Collective over the partition.
///
/// # Errors
/// MPI between the ranks.
pub fn verify_sample(
    run: &mut RunState<'_>,
    place: TypeContext<'_>,
    open: &OpenTypeFile,
    index: usize,
    (seconds, named): (f64, bool),
) -> Result<Option<SampleRecord>, MpiError> {
    let is_sampled = run.config.verify == Verify::Sample && !omits(run, OmittedPart::VerificationSamples);
    let done = is_sampled && run.backends[open.backend].moves_data && run.stop.is_none();
    let written = match run.files[open.file].written.get(index) {
        Some(written) if done && written.calls > 0 => written.clone(),
        _ => return Ok(None),
    };
    let begin = Instant::now();
    let longest = Duration::from_secs_f64((SAMPLE_SHARE * seconds).max(run.sample_seconds));
    let found = run.data.check_sample(&verification_target(run, place, open.file), &written, longest);
    let (mut findings, error, hidden) = match found {
        Ok(findings) => (findings, None, None),
        // Names of some libraries are not names of the kernel, and a name may be removed while its file is open.
        Err(e) if matches!(e.kind(), io::ErrorKind::NotFound | io::ErrorKind::PermissionDenied) => {
            (Findings::default(), None, Some(reread_error(run, place, open.file, &e).to_string()))
        }
        Err(e) => (Findings::default(), Some(reread_error(run, place, open.file, &e)), None),
    };
    findings.corruptions.truncate(usize::from(!named));
    let sums = run.report_findings(place.comm, open.backend, place.call_order(), &findings)?;
    let not_read = first_message(place.comm, hidden)?.map(|(_, reason)| reason);
    run.agree_on_error(place.comm, error.as_ref(), "rereading a sample of written data")?;
    let seconds = max_seconds(place.comm, begin.elapsed().as_secs_f64())?;
    run.full_verify_seconds += seconds;
    Ok(Some(SampleRecord {
        samples: sums.samples_read,
        bytes: 8 * sums.verification.words_checked,
        of_bytes: written.calls * written.spec.call_bytes * place.partition.ranks,
        past_cache_bytes: sums.past_cache_bytes,
        words_wrong: sums.verification.words_wrong,
        seconds,
        unread_reason: not_read,
    }))
}

/// Detects a library that reports success for calls that the kernel did not execute. That is an error; after a write the pattern's data is
/// verified completely. The pair is the bytes moved, of a mixed pattern those written, and the kernel's counters. Collective over the partition.
///
/// # Errors
/// MPI between the ranks.
pub fn check_kernel_counts(
    run: &mut RunState<'_>,
    place: TypeContext<'_>,
    open: &OpenTypeFile,
    index: usize,
    (moved_bytes, io): (u64, Option<ProcessIo>),
    during: &str,
) -> Result<Verification, MpiError> {
    let direction = if place.access == AccessMethod::Read { Direction::Read } else { Direction::Write };
    let Some(counters) = run.backends[open.backend].counters.as_mut().filter(|_| run.stop.is_none()) else {
        return Ok(Verification::default());
    };
    let Some(missing_bytes) = counters.missing(direction, moved_bytes, io) else {
        return Ok(Verification::default());
    };
    let verb = if direction == Direction::Write { "write" } else { "read" };
    let (mut wrong, mut found) = (String::new(), Verification::default());
    if direction == Direction::Write {
        found = verify_pattern(run, place, open, index)?;
        if found.words_wrong == 0 {
            // Written in ways that are not counted.
            run.backends[open.backend].counters.iter_mut().for_each(KernelCounters::mark_incomplete);
            return Ok(found);
        }
        wrong = format!("; in the file {} words are wrong", found.words_wrong);
    }
    let full = free_bytes(run.run_dir.path()).is_ok_and(|free| free < missing_bytes.max(FULL_BYTES));
    let hidden = HiddenFailure {
        path: run.run_dir.path().join(run.run_dir.located(&run.files[open.file].name(0))),
        verb,
        moved_bytes,
        missing_bytes,
        wrong,
        no_space: place.comm.bcast_flag(direction == Direction::Write && full)?,
    };
    let error = hidden.record(during);
    run.fail(ErrorRecord { ranks_affected: place.partition.ranks, ..error });
    Ok(found)
}

/// Calls that failed although the library reported success.
struct HiddenFailure {
    path: PathBuf,
    verb: &'static str,
    moved_bytes: u64,
    missing_bytes: u64,
    wrong: String,
    no_space: bool,
}

impl HiddenFailure {
    fn record(&self, during: &str) -> ErrorRecord {
        let Self { path, verb, moved_bytes, missing_bytes, wrong, no_space } = self;
        let mut message = format!(
            "{}: MPI-IO reported success for {verb}s of {moved_bytes} bytes, but the kernel counted {} of all ranks: calls for \
             {missing_bytes} bytes failed or were never issued{wrong}",
            path.display(),
            moved_bytes - missing_bytes
        );
        let mut next_step =
            "the MPI library hides a failed call: check the logs of the kernel and of the file system, update the library, and \
             compare with --backend posix";
        if *no_space {
            message += "; No space left on the file system";
            next_step = next_step_of(FailureCause::NoSpace);
        }
        ErrorRecord { no_space: *no_space, ..ErrorRecord::of_rank(0, during, message, next_step) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// On a full disk the next step concerns space, not the library.
    #[test]
    fn a_hidden_failure_on_a_full_disk_is_reported_as_no_space() {
        let hidden = HiddenFailure {
            path: "/disk/file".into(),
            verb: "write",
            moved_bytes: 100,
            missing_bytes: 30,
            wrong: String::new(),
            no_space: true,
        };
        let record = hidden.record("write of pattern 3");
        assert!(record.no_space && record.next_step.contains("free space"), "{record:?}");
        assert!(record.message.contains("/disk/file") && record.message.contains("counted 70 of"), "{record:?}");
        assert!(record.message.contains("No space left"), "{record:?}");
        let record = HiddenFailure { no_space: false, ..hidden }.record("write of pattern 3");
        assert!(!record.no_space && record.next_step.contains("hides a failed call"), "{record:?}");
    }
}
