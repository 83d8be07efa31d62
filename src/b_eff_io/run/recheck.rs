//! When what was written is read again, and what becomes of what is found. Outside every clock.
//!
//! With `--verify ring` a sample after every pattern. With `--verify full` everything: after the first write and the rewrite of a
//! type, of each pattern right before it is rewritten, and after the last read of a type.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use beff_backends::error::{Cause, FULL_BYTES};
use beff_backends::{BackendError, Direction};
use beff_ffi::MpiError;

use crate::b_eff_io::config::Verify;
use crate::b_eff_io::records::{SampleRecord, Verification};
use crate::b_eff_io::run::counted::Counters;
use crate::b_eff_io::run::files::Written;
use crate::b_eff_io::run::place::{Open, Place};
use crate::b_eff_io::run::state::Run;
use crate::b_eff_io::run::verify::{reader_of, Again, Findings};
use crate::frame::records::{Access, ErrorRecord};
use crate::frame::run::agree::{first_message, slowest};
use crate::frame::run::clock::Instant;
use crate::frame::run::trouble::next_step_of;
use crate::frame::system::memory::ProcessIo;
use crate::frame::system::storage::free_bytes;

/// A sample takes no longer than this, or than this share of its pattern's time: on slow storage it is smaller.
const SAMPLE_SECONDS: f64 = 0.5;
const SAMPLE_SHARE: f64 = 0.01;

/// What one rank is to read again of the file number `file`.
fn again<'a>(run: &'a Run<'_>, place: Place<'_>, file: usize) -> Again<'a> {
    Again {
        run_dir: run.run_dir,
        file: &run.files[file],
        access: place.access,
        rank: place.comm.rank(),
        drops: run.config.cache.gives_pages_back(),
    }
}

/// True if everything is to be compared of what this backend writes.
fn is_full(run: &Run<'_>, backend: usize) -> bool {
    run.config.verify == Verify::Full && run.backends[backend].moves_data && run.stop.is_none()
}

/// With `--verify full`: all of a closed file. Collective over the partition.
///
/// # Errors
/// MPI between the ranks.
pub fn whole_file(
    run: &mut Run<'_>,
    place: Place<'_>,
    backend: usize,
    file: usize,
) -> Result<Option<Verification>, MpiError> {
    if !is_full(run, backend) {
        return Ok(None);
    }
    let begin = Instant::now();
    let found = run.data.check_file(&again(run, place, file));
    let verification = told(run, place, file, found)?;
    run.full_verify_seconds += begin.elapsed().as_secs_f64();
    Ok(Some(verification))
}

/// With `--verify full`: what one pattern has written, before it is written over. Collective over the partition.
///
/// # Errors
/// MPI between the ranks.
pub fn before_rewrite(
    run: &mut Run<'_>,
    place: Place<'_>,
    open: &Open,
    index: usize,
) -> Result<Verification, MpiError> {
    if place.access != Access::Rewrite || !is_full(run, open.backend) {
        return Ok(Verification::default());
    }
    one_pattern(run, place, open, index)
}

/// All that one pattern has written. Collective over the partition.
///
/// # Errors
/// MPI between the ranks.
pub fn one_pattern(run: &mut Run<'_>, place: Place<'_>, open: &Open, index: usize) -> Result<Verification, MpiError> {
    let begin = Instant::now();
    let written: Written = run.files[open.file].written[index].clone();
    let found = run.data.check_pattern(&again(run, place, open.file), &written);
    let verification = told(run, place, open.file, found)?;
    run.full_verify_seconds += begin.elapsed().as_secs_f64();
    Ok(verification)
}

/// What all ranks have found, into the records. Collective.
fn told(
    run: &mut Run<'_>,
    place: Place<'_>,
    file: usize,
    found: io::Result<Findings>,
) -> Result<Verification, MpiError> {
    let (findings, error) = match found {
        Ok(findings) => (findings, None),
        Err(e) => (Findings::default(), Some(failed_read(run, place, file, &e))),
    };
    let sums = run.report_findings(place.comm, &findings)?;
    run.failed(place.comm, error.as_ref(), "reading again what was written")?;
    Ok(sums.verification)
}

fn failed_read(run: &Run<'_>, place: Place<'_>, file: usize, cause: &io::Error) -> BackendError {
    let name = run.files[file].name(reader_of(place.comm.rank(), place.comm.size()));
    BackendError::from_io("read again to compare", run.run_dir.path().join(name), None, cause)
}

/// With `--verify ring`: a sample of what pattern `index` has in its file, which took `seconds`. Where wrong data is `named` already the
/// sample only counts. Collective over the partition.
///
/// # Errors
/// MPI between the ranks.
pub fn sample(
    run: &mut Run<'_>,
    place: Place<'_>,
    open: &Open,
    index: usize,
    (seconds, named): (f64, bool),
) -> Result<Option<SampleRecord>, MpiError> {
    let done = run.config.verify == Verify::Ring && run.backends[open.backend].moves_data && run.stop.is_none();
    let written = match run.files[open.file].written.get(index) {
        Some(written) if done && written.calls > 0 => written.clone(),
        _ => return Ok(None),
    };
    let begin = Instant::now();
    let longest = Duration::from_secs_f64((SAMPLE_SHARE * seconds).max(SAMPLE_SECONDS));
    let found = run.data.check_sample(&again(run, place, open.file), &written, longest);
    let (mut findings, error, hidden) = match found {
        Ok(findings) => (findings, None, None),
        // Not every library's names are names of the kernel, and a name may be gone while its file is open.
        Err(e) if matches!(e.kind(), io::ErrorKind::NotFound | io::ErrorKind::PermissionDenied) => {
            (Findings::default(), None, Some(failed_read(run, place, open.file, &e).to_string()))
        }
        Err(e) => (Findings::default(), Some(failed_read(run, place, open.file, &e)), None),
    };
    findings.places.truncate(usize::from(!named));
    let sums = run.report_findings(place.comm, &findings)?;
    let not_read = first_message(place.comm, hidden)?.map(|(_, reason)| reason);
    run.failed(place.comm, error.as_ref(), "reading a sample of what was written")?;
    let seconds = slowest(place.comm, begin.elapsed().as_secs_f64())?;
    run.full_verify_seconds += seconds;
    Ok(Some(SampleRecord {
        places: sums.places_read,
        bytes: 8 * sums.verification.words_checked,
        of_bytes: written.calls * written.spec.call_bytes * place.part.ranks,
        past_cache_bytes: sums.past_cache_bytes,
        words_wrong: sums.verification.words_wrong,
        seconds,
        not_read,
    }))
}

/// A library that reports success for calls that the kernel has not made: an error, after a write with all that is wrong in the
/// file, which is compared whole. `ran` is what the pattern has measured. Collective over the partition.
///
/// # Errors
/// MPI between the ranks.
pub fn unmade_calls(
    run: &mut Run<'_>,
    place: Place<'_>,
    open: &Open,
    index: usize,
    (moved_bytes, io): (u64, Option<ProcessIo>),
    during: &str,
) -> Result<Verification, MpiError> {
    let direction = if place.access == Access::Read { Direction::Read } else { Direction::Write };
    let Some(counters) = run.backends[open.backend].counters.as_mut().filter(|_| run.stop.is_none()) else {
        return Ok(Verification::default());
    };
    let Some(missing_bytes) = counters.missing(direction, moved_bytes, io) else {
        return Ok(Verification::default());
    };
    let verb = if direction == Direction::Write { "write" } else { "read" };
    let (mut wrong, mut found) = (String::new(), Verification::default());
    if direction == Direction::Write {
        found = one_pattern(run, place, open, index)?;
        if found.words_wrong == 0 {
            // Written in ways that are not counted.
            run.backends[open.backend].counters.iter_mut().for_each(Counters::disbelieve);
            return Ok(found);
        }
        wrong = format!("; in the file {} words are wrong", found.words_wrong);
    }
    let full = free_bytes(run.run_dir.path()).is_ok_and(|free| free < missing_bytes.max(FULL_BYTES));
    let hidden = Hidden {
        path: run.run_dir.path().join(run.files[open.file].name(0)),
        verb,
        moved_bytes,
        missing_bytes,
        wrong,
        // All ranks keep the same record.
        no_space: place.comm.bcast_flag(direction == Direction::Write && full)?,
    };
    let error = hidden.record(during);
    run.fail(ErrorRecord { ranks_affected: place.part.ranks, ..error });
    Ok(found)
}

/// What is known of calls that failed and were reported as made.
struct Hidden {
    path: PathBuf,
    verb: &'static str,
    moved_bytes: u64,
    missing_bytes: u64,
    wrong: String,
    no_space: bool,
}

impl Hidden {
    fn record(&self, during: &str) -> ErrorRecord {
        let Self { path, verb, moved_bytes, missing_bytes, wrong, no_space } = self;
        let mut message = format!(
            "{}: MPI-IO reported success for {verb}s of {moved_bytes} bytes, but the kernel counted {} of all ranks: calls for \
             {missing_bytes} bytes failed or were never made{wrong}",
            path.display(),
            moved_bytes - missing_bytes
        );
        let mut next_step =
            "the MPI library hides a failed call: look at the log of the kernel and of the file system, update the library, and \
             compare with --backend posix";
        if *no_space {
            message += "; No space left on the file system";
            next_step = next_step_of(Cause::NoSpace);
        }
        ErrorRecord { no_space: *no_space, ..ErrorRecord::of_rank(0, during, message, next_step) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// On a full disk the advice is about space, not about the library.
    #[test]
    fn a_hidden_error_of_a_full_disk_is_one() {
        let hidden = Hidden {
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
        let record = Hidden { no_space: false, ..hidden }.record("write of pattern 3");
        assert!(!record.no_space && record.next_step.contains("hides a failed call"), "{record:?}");
    }
}
