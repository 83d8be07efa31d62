//! One file from its making to its removal: filled or empty, opened, the repetitions inside the clock, closed, verified.

use std::path::{Path, PathBuf};

use beff_backends::{
    BackendError, Batch, Direction, FilePath, Latency, OpenFile, OpenMode, OpenRequest, Pattern, Timed as CallsTimed,
};
use beff_ffi::{Comm, MpiError};

use super::data::Data;
use super::found::Checked;
use super::job::{RowJob, Which};
use super::outcome::{Done, Stopped};
use super::shape::Shape;
use super::timed::{Syncs, Task, Way};
use super::{check, contents, timed, Bench};
use crate::frame::config::CachePolicy;
use crate::frame::run::agree::{any, first_message};
use crate::frame::run::clock::Instant;
use crate::frame::run::evidence::{drop_pages, Target, Watch};
use crate::frame::run::named;
use crate::frame::system::memory::{process_io, process_io_since};
use crate::imb_io::config::FileState;

/// What is done with one file.
#[derive(Clone, Copy)]
pub(super) struct Job<'a> {
    pub(super) of: &'a RowJob<'a>,
    pub(super) shape: &'a Shape,
    pub(super) way: Way<'a>,
    /// Of the files of the row: names it and makes its data. Of those that count evidence is taken, damage is done in the last.
    pub(super) which: Which,
}

impl Job<'_> {
    fn direction(&self) -> Direction {
        self.shape.transfer.direction
    }

    /// Reads bytes that are there.
    fn reads_data(&self) -> bool {
        self.direction() == Direction::Read && self.of.backend.moves_data
    }

    /// Writes over bytes that are there.
    fn overwrites(&self, bench: &Bench<'_>) -> bool {
        let existing = bench.config.file == Some(FileState::Existing);
        existing && self.direction() == Direction::Write && self.of.backend.moves_data
    }

    /// Name below the run directory: of the group's file, or of that of `rank` where each has its own.
    fn name(&self, rank: u64) -> PathBuf {
        let team = self.of.team;
        let mut name = format!("row{:05}{}", self.of.number, self.which.letter());
        if team.groups.groups > 1 {
            name += &format!("-group{:05}", team.member.group);
        }
        if self.shape.is_private() {
            name += &format!("-rank{rank:07}");
        }
        Path::new(&self.of.backend.name).join(name + ".dat")
    }

    /// Every file of a row has data of its own.
    fn data_number(&self) -> u64 {
        self.of.number * Which::MOST + self.which.number()
    }

    /// True on the rank that makes and removes the file.
    fn owns(&self) -> bool {
        self.shape.is_private() || self.of.team.group.is_root()
    }
}

/// Works through one file. Collective over the active ranks.
pub(super) fn stage(bench: &mut Bench<'_>, job: &Job<'_>) -> Result<Done, Stopped> {
    let path = bench.run_dir.file(&job.name(job.shape.rank));
    let done = in_file(bench, job, &path);
    let stays = job.of.keep && job.which.is_last() && done.is_ok();
    if job.owns() && job.of.backend.moves_data && !stays {
        // A name that stays is seen at the end, when the directory is removed.
        let _ = path.remove();
    }
    done
}

fn in_file(bench: &mut Bench<'_>, job: &Job<'_>, path: &FilePath) -> Result<Done, Stopped> {
    let (row, team) = (job.of, job.of.team);
    let data = job.shape.data(bench.config.seed, job.data_number(), team.member.group);
    let pattern = job.shape.pattern()?;
    if job.reads_data() {
        row.agree(contents::fill(&team.group, job.shape, path, |at, bytes| data.fill(at, bytes)))?;
        #[cfg(feature = "test-hooks")]
        damage(bench, job, path)?;
    } else if job.overwrites(bench) {
        row.agree(contents::fill(&team.group, job.shape, path, |at, bytes| data.fill_before(at, bytes)))?;
    }
    row.agree(named::check(&row.backend.name, path))?;
    let file = open(bench, job, path);
    let mut file = row.agree(file.and_then(|file| named::check(&row.backend.name, path).map(|()| file)))?;
    let mut done = match prepare(bench, job, file.as_mut(), &pattern, &data) {
        Ok(done) => done,
        Err(Stopped::Mpi(error)) => return Err(error.into()),
        Err(stopped) => {
            // The reason why nothing was measured is known; whether the close works too says nothing more.
            let _ = file.close();
            team.active.barrier()?;
            return Err(stopped);
        }
    };
    repeat(bench, job, (path, &pattern, &data), file.as_mut(), &mut done)?;
    if job.reads_data() && job.shape.reuses {
        read_again(bench, job, (&pattern, &data), file.as_mut(), &mut done)?;
    }
    let closed = file.close();
    row.agree(done.timed.error.take().map_or(closed, Err))?;
    if job.direction() == Direction::Read {
        return Ok(done);
    }
    #[cfg(feature = "test-hooks")]
    damage(bench, job, path)?;
    if row.backend.moves_data {
        let begin = Instant::now();
        let names = |rank| bench.run_dir.file(&job.name(rank));
        let data = (bench.config.seed, job.data_number());
        let checked = check::written(team, job.shape, data, names, bench.config.cache.gives_pages_back())?;
        done.checked = row.agree(checked)?;
        done.verify_seconds = begin.elapsed().as_secs_f64();
    }
    Ok(done)
}

fn open(bench: &Bench<'_>, job: &Job<'_>, path: &FilePath) -> Result<Box<dyn OpenFile>, BackendError> {
    let (backend, own) = (job.of.backend, Comm::own());
    backend.driver.open(&OpenRequest {
        path,
        mode: match job.direction() {
            Direction::Read if backend.moves_data => OpenMode::ReadOnly,
            Direction::Write if job.overwrites(bench) => OpenMode::Update,
            _ => OpenMode::CreateNew,
        },
        comm: if job.shape.is_private() { &own } else { &job.of.team.group },
        hints: if backend.is_mpi { &bench.config.hints } else { &[] },
    })
}

/// The open file and the memory made ready for the calls, if there are such calls.
fn prepare(
    bench: &mut Bench<'_>,
    job: &Job<'_>,
    file: &mut dyn OpenFile,
    pattern: &Pattern,
    data: &Data,
) -> Result<Done, Stopped> {
    if let Some((_, reason)) = first_message(&job.of.team.active, file.support(pattern).reason())? {
        return Err(Stopped::NotRun(reason));
    }
    contents::lay_out(&mut bench.ring, job.shape, data);
    let in_force = job.of.agree(file.prepare(pattern, job.direction(), &mut bench.ring, &[]))?;
    let mut done = Done { in_force, file: job.name(job.shape.rank), ..Done::default() };
    if job.of.backend.is_mpi && job.which.counts() && !bench.config.hints.is_empty() {
        // What the library does not tell is not granted.
        done.hints_granted = file.hints_in_force().unwrap_or_default();
        done.hints_granted.retain(|(key, _)| bench.config.hints.iter().any(|(asked, _)| asked == key));
    }
    Ok(done)
}

/// The clock, and what is looked at around it. Reads with memory of their own that is not enough for all go lap after lap: while
/// the clock stands still, what came is compared.
fn repeat(
    bench: &mut Bench<'_>,
    job: &Job<'_>,
    (path, pattern, data): (&FilePath, &Pattern, &Data),
    file: &mut dyn OpenFile,
    done: &mut Done,
) -> Result<(), MpiError> {
    let range = job.shape.range(pattern);
    let target = Target { path, pattern: &range, calls: job.shape.steps };
    let (reads, team) = (job.reads_data(), job.of.team);
    let (site, group) = (&team.site, &team.group);
    // Equal on all ranks, also where private files of some are empty.
    let has_bytes = job.shape.sample_bytes > 0;
    let cacheable = reads && has_bytes;
    // Direct writes would have the pages of the preparation to throw away, in the clock.
    let overwrites = has_bytes && job.overwrites(bench) && any(group, done.in_force.direct == Some(true))?;
    let drops = overwrites || (cacheable && bench.config.cache == CachePolicy::Drop);
    if drops {
        bench.warnings.extend(drop_pages(site, group, &target, &job.of.backend.name)?);
    }
    // Counters of devices are no group's own.
    let watched = cacheable && job.which.counts() && team.groups.groups == 1;
    let mut watch = watched.then(|| Watch::begin(site, group, &target));
    let steps = job.shape.steps;
    let mut task = Task {
        kind: pattern.kind,
        direction: job.direction(),
        syncs: Syncs::of(job.direction(), job.of.row.mode),
        calls: job.shape.lap(0),
        all_calls: steps,
        pending: job.shape.pending(),
        one_by_one: done.in_force.timed != CallsTimed::Call,
        way: job.way,
    };
    let before = process_io();
    loop {
        done.cpu_watch.resume(&team.cpus);
        // Groups begin together, whatever each had to do before.
        team.active.barrier()?;
        if let Some(watch) = &mut watch {
            watch.resume(site);
        }
        done.timed.add(timed::run(file, group, &mut bench.ring, &task, &mut bench.laps)?);
        done.cpu_watch.pause(&team.cpus);
        if let Some(watch) = &mut watch {
            group.barrier()?;
            watch.pause(site);
        }
        if reads && !job.shape.reuses && !compare(bench, (job, job.shape), data, task.calls, done)? {
            break;
        }
        let next = task.calls.first_call + task.calls.calls;
        if next == steps {
            break;
        }
        task.calls = job.shape.lap(next);
        if drops {
            // What was read ahead while the clock stood still would be a gift.
            bench.warnings.extend(drop_pages(site, group, &target, &job.of.backend.name)?);
        }
    }
    let moved = process_io_since(before);
    if let Some(watch) = watch {
        done.evidence = Some(watch.end(site, group, job.shape.steps)?);
        let mut sums = [moved.map_or(0, |moved| moved.read_bytes), u64::from(moved.is_none())];
        group.sum_u64(&mut sums)?;
        done.storage_read_bytes = (sums[1] == 0).then_some(sums[0]);
    }
    Ok(())
}

/// Compares a lap and makes its memory ready for the next one; false where a call failed, on any rank. Collective over the
/// active ranks.
fn compare(
    bench: &mut Bench<'_>,
    (job, shape): (&Job<'_>, &Shape),
    data: &Data,
    calls: Batch,
    done: &mut Done,
) -> Result<bool, MpiError> {
    let team = job.of.team;
    if any(&team.active, done.timed.error.is_some())? {
        return Ok(false);
    }
    let begin = Instant::now();
    done.checked.add(check::received(&team.group, shape, data, &bench.ring, calls)?);
    if calls.first_call + calls.calls < shape.steps {
        contents::poison(&mut bench.ring.bytes_mut()[..shape.windows_bytes() as usize]);
    }
    done.verify_seconds += begin.elapsed().as_secs_f64();
    Ok(true)
}

/// What reads into one buffer have moved, as far as it can be known: what the last one has left there; and, outside the clock, all
/// of them once more by the same calls, each into memory of its own. What is wrong in the file is wrong in both, and counts once.
/// Nothing where a call failed, on any rank. Collective over
/// the active ranks.
fn read_again(
    bench: &mut Bench<'_>,
    job: &Job<'_>,
    (pattern, data): (&Pattern, &Data),
    file: &mut dyn OpenFile,
    done: &mut Done,
) -> Result<(), MpiError> {
    let active = &job.of.team.active;
    let shape = job.shape.apart();
    if any(active, done.timed.error.is_some())? {
        return Ok(());
    }
    let begin = Instant::now();
    let mut last = check::last(job.shape, data, &bench.ring);
    if shape.steps > 1 {
        contents::lay_out(&mut bench.ring, &shape, data);
        // The pointers begin again.
        done.timed.error = file.prepare(pattern, Direction::Read, &mut bench.ring, &[]).err();
        if !any(active, done.timed.error.is_some())? {
            read_apart(bench, (job, &shape), (pattern, data), file, done)?;
        }
    }
    // Who reads what where the order is that of arrival differs from pass to pass.
    if any(active, done.checked.bytes_wrong > 0)? {
        last = Checked { bytes_checked: last.bytes_checked, ..Checked::default() };
    }
    done.checked.add(last);
    done.verify_seconds = begin.elapsed().as_secs_f64();
    Ok(())
}

/// Reads and compares lap after lap.
fn read_apart(
    bench: &mut Bench<'_>,
    (job, shape): (&Job<'_>, &Shape),
    (pattern, data): (&Pattern, &Data),
    file: &mut dyn OpenFile,
    done: &mut Done,
) -> Result<(), MpiError> {
    let mut task = Task {
        kind: pattern.kind,
        direction: Direction::Read,
        syncs: Syncs::None,
        calls: shape.lap(0),
        all_calls: shape.steps,
        pending: 1,
        one_by_one: false,
        way: Way::Blocking,
    };
    loop {
        done.timed.error = timed::run(file, &job.of.team.group, &mut bench.ring, &task, &mut Latency::off())?.error;
        let next = task.calls.first_call + task.calls.calls;
        if !compare(bench, (job, shape), data, task.calls, done)? || next == shape.steps {
            return Ok(());
        }
        task.calls = shape.lap(next);
    }
}

/// With --inject, in the file that is reported: one bit is turned over by the first rank; where that fails, nothing is proved.
#[cfg(feature = "test-hooks")]
fn damage(bench: &Bench<'_>, job: &Job<'_>, path: &FilePath) -> Result<(), Stopped> {
    if !(bench.config.inject && job.which.is_last()) {
        return Ok(());
    }
    let active = &job.of.team.active;
    active.barrier()?;
    let flips = active.is_root() && job.shape.file_bytes > 0;
    let flipped = if flips { contents::flip(path, job.shape.file_bytes / 2) } else { Ok(()) };
    job.of.agree(flipped.map_err(|e| BackendError::from_io("damage on purpose", path, None, &e)))
}

#[cfg(test)]
#[path = "stage_tests.rs"]
mod tests;
