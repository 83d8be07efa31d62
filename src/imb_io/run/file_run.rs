//! Run of one file: created or filled, opened, timed, closed, verified, removed.

use std::path::{Path, PathBuf};

use beff_backends::{
    AccessPattern, BackendError, Batch, Direction, FilePath, Latency, LatencyUnit as CallsTimed, OpenFile, OpenMode,
    OpenRequest,
};
use beff_ffi::{Comm, MpiError};

use super::data::RowData;
use super::geometry::RowGeometry;
use super::job::{FilePurpose, RowJob};
use super::outcome::{FileResult, RowAbort};
use super::timed_loop::{IterationLoop, OverlapMode, SyncPlacement};
use super::verify_result::VerifyResult;
use super::{contents, timed_loop, verify, RowContext};
use crate::frame::config::CachePolicy;
use crate::frame::run::agree::{any_rank, first_message};
use crate::frame::run::clock::Instant;
use crate::frame::run::evidence::{drop_pages, ObservedFile, StorageObservation};
use crate::frame::run::path_check;
use crate::frame::system::memory::{process_io, process_io_since};
use crate::imb_io::config::InitialFileState;

#[derive(Clone, Copy)]
pub(super) struct FileJob<'a> {
    pub(super) row_job: &'a RowJob<'a>,
    pub(super) geometry: &'a RowGeometry,
    pub(super) overlap_mode: OverlapMode<'a>,
    /// Which file of the row: determines its name and data. Evidence is recorded for reported files, faults are injected into
    /// the primary one.
    pub(super) purpose: FilePurpose,
}

impl FileJob<'_> {
    fn direction(&self) -> Direction {
        self.geometry.transfer.direction
    }

    fn reads_data(&self) -> bool {
        self.direction() == Direction::Read && self.row_job.backend.moves_data
    }

    fn overwrites(&self, bench: &RowContext<'_>) -> bool {
        let existing = bench.config.file == Some(InitialFileState::Existing);
        existing && self.direction() == Direction::Write && self.row_job.backend.moves_data
    }

    /// Name below the run directory: of the file of the group, or of the private file of `rank`.
    fn file_name(&self, rank: u64) -> PathBuf {
        let team = self.row_job.team;
        let mut name = format!("row{:05}{}", self.row_job.number, self.purpose.letter());
        if team.groups.groups > 1 {
            name += &format!("-group{:05}", team.member.group);
        }
        if self.geometry.is_private() {
            name += &format!("-rank{rank:07}");
        }
        Path::new(&self.row_job.backend.name).join(name + ".dat")
    }

    /// Number of the data stream: every file of a row has its own.
    fn data_number(&self) -> u64 {
        self.row_job.number * FilePurpose::COUNT + self.purpose.number()
    }

    /// True on the rank that creates and removes the file.
    fn owns_file(&self) -> bool {
        self.geometry.is_private() || self.row_job.team.group.is_root()
    }
}

/// Runs one file and removes it. Collective over the active ranks.
pub(super) fn run_file(bench: &mut RowContext<'_>, job: &FileJob<'_>) -> Result<FileResult, RowAbort> {
    let path = bench.run_dir.file(&job.file_name(job.geometry.rank));
    let done = measure_in_file(bench, job, &path);
    let stays = job.row_job.keep_files && job.purpose.is_primary() && done.is_ok();
    if job.owns_file() && job.row_job.backend.moves_data && !stays {
        // A remaining file is reported at the end, when the directory is removed.
        let _ = path.remove();
    }
    done
}

fn measure_in_file(bench: &mut RowContext<'_>, job: &FileJob<'_>, path: &FilePath) -> Result<FileResult, RowAbort> {
    let (row, team) = (job.row_job, job.row_job.team);
    let data = job.geometry.data(bench.config.seed, job.data_number(), team.member.group);
    let pattern = job.geometry.pattern()?;
    if job.reads_data() {
        row.agree(contents::fill(&team.group, job.geometry, path, |at, bytes| data.fill(at, bytes)))?;
        #[cfg(feature = "test-hooks")]
        inject_fault(bench, job, path)?;
    } else if job.overwrites(bench) {
        row.agree(contents::fill(&team.group, job.geometry, path, |at, bytes| data.fill_initial(at, bytes)))?;
    }
    row.agree(path_check::check_name(&row.backend.name, path))?;
    let file = open(bench, job, path);
    let mut file = row.agree(file.and_then(|file| path_check::check_name(&row.backend.name, path).map(|()| file)))?;
    let mut done = match prepare(bench, job, file.as_mut(), &pattern, &data) {
        Ok(done) => done,
        Err(RowAbort::Mpi(error)) => return Err(error.into()),
        Err(stopped) => {
            // The failure is already known; an error of close adds nothing.
            let _ = file.close();
            team.active.barrier()?;
            return Err(stopped);
        }
    };
    run_batches(bench, job, (path, &pattern, &data), file.as_mut(), &mut done)?;
    if job.reads_data() && job.geometry.reuses_buffer {
        verify_by_rereading(bench, job, (&pattern, &data), file.as_mut(), &mut done)?;
    }
    let closed = file.close();
    row.agree(done.timed.error.take().map_or(closed, Err))?;
    if job.direction() == Direction::Read {
        return Ok(done);
    }
    #[cfg(feature = "test-hooks")]
    inject_fault(bench, job, path)?;
    if row.backend.moves_data {
        let begin = Instant::now();
        let names = |rank| bench.run_dir.file(&job.file_name(rank));
        let data = (bench.config.seed, job.data_number());
        let checked = verify::verify_files(team, job.geometry, data, names, bench.config.cache.drops_pages())?;
        done.checked = row.agree(checked)?;
        done.verify_seconds = begin.elapsed().as_secs_f64();
    }
    Ok(done)
}

fn open(bench: &RowContext<'_>, job: &FileJob<'_>, path: &FilePath) -> Result<Box<dyn OpenFile>, BackendError> {
    let (backend, own) = (job.row_job.backend, Comm::comm_self());
    backend.driver.open(&OpenRequest {
        path,
        mode: match job.direction() {
            Direction::Read if backend.moves_data => OpenMode::ReadOnly,
            Direction::Write if job.overwrites(bench) => OpenMode::Update,
            _ => OpenMode::CreateNew,
        },
        comm: if job.geometry.is_private() { &own } else { &job.row_job.team.group },
        hints: &backend.hints,
    })
}

/// Prepares file and memory for the calls, if the driver supports them.
fn prepare(
    bench: &mut RowContext<'_>,
    job: &FileJob<'_>,
    file: &mut dyn OpenFile,
    pattern: &AccessPattern,
    data: &RowData,
) -> Result<FileResult, RowAbort> {
    if let Some((_, reason)) = first_message(&job.row_job.team.active, file.support(pattern).reason())? {
        return Err(RowAbort::NotRun(reason));
    }
    contents::fill_windows(&mut bench.buffer, job.geometry, data);
    let in_force = job.row_job.agree(file.prepare(pattern, job.direction(), &mut bench.buffer, &[]))?;
    let mut done = FileResult { in_force, file: job.file_name(job.geometry.rank), ..FileResult::default() };
    let requested = &job.row_job.backend.hints;
    if job.purpose.is_reported() && !requested.is_empty() {
        // Hints that the library does not list are not granted.
        done.hints_granted = file.hints_in_use().unwrap_or_default();
        done.hints_granted.retain(|(key, _)| requested.iter().any(|(asked, _)| asked == key));
    }
    Ok(done)
}

/// Runs the timed batches and records evidence around them. Reads into separate windows take several batches if the memory is too
/// small for all of them; their data is compared while the clock is stopped.
fn run_batches(
    bench: &mut RowContext<'_>,
    job: &FileJob<'_>,
    (path, pattern, data): (&FilePath, &AccessPattern, &RowData),
    file: &mut dyn OpenFile,
    done: &mut FileResult,
) -> Result<(), MpiError> {
    let range = job.geometry.file_pattern(pattern);
    let target = ObservedFile { path, pattern: &range, calls: job.geometry.steps };
    let (reads, team) = (job.reads_data(), job.row_job.team);
    let (site, group) = (&team.site, &team.group);
    // Equal on all ranks, even if private files of some are empty.
    let has_bytes = job.geometry.sample_bytes > 0;
    let cacheable = reads && has_bytes;
    // Direct writes would invalidate the pages of the preparation inside the timed loop.
    let overwrites = has_bytes && job.overwrites(bench) && any_rank(group, done.in_force.direct == Some(true))?;
    let drops = overwrites || (cacheable && bench.config.cache == CachePolicy::Drop);
    if drops {
        bench.warnings.extend(drop_pages(site, group, &target, &job.row_job.backend.name)?);
    }
    // Device counters cannot be attributed to one of several groups.
    let watched = cacheable && job.purpose.is_reported() && team.groups.groups == 1;
    let mut watch = watched.then(|| StorageObservation::begin(site, group, &target));
    let steps = job.geometry.steps;
    let mut task = IterationLoop {
        kind: pattern.kind,
        direction: job.direction(),
        syncs: SyncPlacement::of(job.direction(), job.row_job.row.mode),
        calls: job.geometry.batch_from(0),
        total_calls: steps,
        pending: job.geometry.pending(),
        single_calls: done.in_force.latency_unit != CallsTimed::Call,
        overlap_mode: job.overlap_mode,
    };
    let before = process_io();
    loop {
        done.cpu_watch.resume(&team.cpus);
        // All groups begin together.
        team.active.barrier()?;
        if let Some(watch) = &mut watch {
            watch.resume(site);
        }
        done.timed.add(timed_loop::run(file, group, &mut bench.buffer, &task, &mut bench.iteration_times)?);
        done.cpu_watch.pause(&team.cpus);
        if let Some(watch) = &mut watch {
            group.barrier()?;
            watch.pause(site);
        }
        if reads && !job.geometry.reuses_buffer && !verify_batch(bench, (job, job.geometry), data, task.calls, done)? {
            break;
        }
        let next = task.calls.first_call + task.calls.calls;
        if next == steps {
            break;
        }
        task.calls = job.geometry.batch_from(next);
        if drops {
            // Pages read ahead while the clock was stopped would be untimed.
            bench.warnings.extend(drop_pages(site, group, &target, &job.row_job.backend.name)?);
        }
    }
    let moved = process_io_since(before);
    if let Some(watch) = watch {
        done.evidence = Some(watch.end(site, group, job.geometry.steps)?);
        let mut sums = [moved.map_or(0, |moved| moved.read_bytes), u64::from(moved.is_none())];
        group.sum_u64(&mut sums)?;
        done.storage_read_bytes = (sums[1] == 0).then_some(sums[0]);
    }
    Ok(())
}

/// Compares the data of a batch and poisons its windows for the next one; false if a call failed on any rank. Collective over
/// the active ranks.
fn verify_batch(
    bench: &mut RowContext<'_>,
    (job, shape): (&FileJob<'_>, &RowGeometry),
    data: &RowData,
    calls: Batch,
    done: &mut FileResult,
) -> Result<bool, MpiError> {
    let team = job.row_job.team;
    if any_rank(&team.active, done.timed.error.is_some())? {
        return Ok(false);
    }
    let begin = Instant::now();
    done.checked.add(verify::verify_windows(&team.group, shape, data, &bench.buffer, calls)?);
    if calls.first_call + calls.calls < shape.steps {
        contents::poison(&mut bench.buffer.bytes_mut()[..shape.windows_bytes() as usize]);
    }
    done.verify_seconds += begin.elapsed().as_secs_f64();
    Ok(true)
}

/// Verifies reads into one buffer: the data of the last read in the buffer; then, untimed, all reads are repeated by the same
/// calls into separate windows. Wrong bytes in the file appear in both, and are counted once. Does nothing if a call failed on any
/// rank. Collective over the active ranks.
fn verify_by_rereading(
    bench: &mut RowContext<'_>,
    job: &FileJob<'_>,
    (pattern, data): (&AccessPattern, &RowData),
    file: &mut dyn OpenFile,
    done: &mut FileResult,
) -> Result<(), MpiError> {
    let active = &job.row_job.team.active;
    let shape = job.geometry.with_own_windows();
    if any_rank(active, done.timed.error.is_some())? {
        return Ok(());
    }
    let begin = Instant::now();
    let mut last = verify::verify_last_window(job.geometry, data, &bench.buffer);
    if shape.steps > 1 {
        contents::fill_windows(&mut bench.buffer, &shape, data);
        done.timed.error = file.prepare(pattern, Direction::Read, &mut bench.buffer, &[]).err();
        if !any_rank(active, done.timed.error.is_some())? {
            reread_batches(bench, (job, &shape), (pattern, data), file, done)?;
        }
    }
    // In order of arrival, the records of each rank differ between the two.
    if any_rank(active, done.checked.bytes_wrong > 0)? {
        last = VerifyResult { bytes_checked: last.bytes_checked, ..VerifyResult::default() };
    }
    done.checked.add(last);
    done.verify_seconds = begin.elapsed().as_secs_f64();
    Ok(())
}

fn reread_batches(
    bench: &mut RowContext<'_>,
    (job, shape): (&FileJob<'_>, &RowGeometry),
    (pattern, data): (&AccessPattern, &RowData),
    file: &mut dyn OpenFile,
    done: &mut FileResult,
) -> Result<(), MpiError> {
    let mut task = IterationLoop {
        kind: pattern.kind,
        direction: Direction::Read,
        syncs: SyncPlacement::None,
        calls: shape.batch_from(0),
        total_calls: shape.steps,
        pending: 1,
        single_calls: false,
        overlap_mode: OverlapMode::Blocking,
    };
    loop {
        done.timed.error =
            timed_loop::run(file, &job.row_job.team.group, &mut bench.buffer, &task, &mut Latency::off())?.error;
        let next = task.calls.first_call + task.calls.calls;
        if !verify_batch(bench, (job, shape), data, task.calls, done)? || next == shape.steps {
            return Ok(());
        }
        task.calls = shape.batch_from(next);
    }
}

/// With --inject, the first rank flips one bit of the reported file; a failure is an error.
#[cfg(feature = "test-hooks")]
fn inject_fault(bench: &RowContext<'_>, job: &FileJob<'_>, path: &FilePath) -> Result<(), RowAbort> {
    if !(bench.config.inject && job.purpose.is_primary()) {
        return Ok(());
    }
    let active = &job.row_job.team.active;
    active.barrier()?;
    let flips = active.is_root() && job.geometry.file_bytes > 0;
    let flipped = if flips { contents::flip_bit(path, job.geometry.file_bytes / 2) } else { Ok(()) };
    job.row_job.agree(flipped.map_err(|e| BackendError::from_io("fault injection", path, None, &e)))
}

#[cfg(test)]
#[path = "file_run_tests.rs"]
mod tests;
