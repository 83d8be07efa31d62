//! One file from its making to its removal: filled or empty, opened, the repetitions inside the clock, closed, verified.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use beff_backends::{
    BackendError, Batch, Direction, Driver, InForce, OpenFile, OpenMode, OpenRequest, Pattern, Timed as CallsTimed,
};
use beff_ffi::MpiError;

use super::check;
use super::check::Checked;
use super::contents;
use super::data::Data;
use super::shape::Shape;
use super::team::Team;
use super::timed;
use super::timed::{Syncs, Task, Timed, Way};
use super::Bench;
use crate::frame::config::CachePolicy;
use crate::frame::records::{ErrorRecord, Evidence};
use crate::frame::run::agree::first_message;
use crate::frame::run::evidence::{drop_pages, Target, Watch};
use crate::frame::run::trouble;
use crate::frame::system::memory::process_io;
use crate::imb_io::plan::Mode;

/// One backend of the run.
pub(super) struct Backend {
    pub(super) name: String,
    pub(super) driver: Box<dyn Driver>,
    /// Files have contents; false for null.
    pub(super) moves_data: bool,
    /// Its files are MPI's, with collective calls, shared pointers and hints.
    pub(super) is_mpi: bool,
}

/// What is done with one file.
#[derive(Clone, Copy)]
pub(super) struct Job<'a> {
    pub(super) backend: &'a Backend,
    pub(super) team: &'a Team,
    pub(super) shape: &'a Shape,
    pub(super) mode: Mode,
    pub(super) way: Way<'a>,
    /// Number of the row and of the file in it: names the file and makes its data.
    pub(super) number: u64,
    pub(super) letter: char,
    /// Of the row that is reported: evidence is taken, damage is done in the last one.
    pub(super) counts: bool,
    pub(super) keep: bool,
    /// Where, in words, for errors.
    pub(super) during: &'a str,
}

/// What came of a file.
pub(super) enum Staged {
    Done(Box<Done>),
    NotRun(String),
    Failed(ErrorRecord),
}

/// A file whose calls were all made and were all whole.
#[derive(Debug, Default)]
pub(super) struct Done {
    pub(super) timed: Timed,
    pub(super) checked: Checked,
    pub(super) in_force: InForce,
    /// Of the hints asked for.
    pub(super) hints_granted: Vec<(String, String)>,
    pub(super) evidence: Option<Evidence>,
    pub(super) storage_read_bytes: Option<u64>,
    pub(super) verify_seconds: f64,
    /// File name below the run directory.
    pub(super) file: PathBuf,
}

impl Job<'_> {
    fn direction(&self) -> Direction {
        self.shape.transfer.direction
    }

    /// Name below the run directory: of the group's file, or of that of `rank` where each has its own.
    fn name(&self, rank: u64) -> PathBuf {
        let group = self.team.member.group;
        let mut name = format!("row{:05}{}", self.number, self.letter);
        if self.team.groups.groups > 1 {
            name += &format!("-group{group:05}");
        }
        if self.shape.is_private() {
            name += &format!("-rank{rank:07}");
        }
        Path::new(&self.backend.name).join(name + ".dat")
    }

    /// Every file of a row has data of its own.
    fn data_number(&self) -> u64 {
        self.number * 4 + u64::from(u32::from(self.letter) % 4)
    }

    /// The file whose times are the row's: where there are two, the overlapped run.
    fn is_last(&self) -> bool {
        self.counts && !matches!(self.way, Way::Pure)
    }

    /// True on the rank that makes and removes the file.
    fn owns(&self) -> bool {
        self.shape.is_private() || self.team.group.is_root()
    }

    fn agree(&self, error: Option<&BackendError>) -> Result<Option<ErrorRecord>, MpiError> {
        trouble::agree(&self.team.active, error, self.during)
    }
}

/// Works through one file. Collective over the active ranks.
///
/// # Errors
/// MPI between the ranks. What the storage refuses is [`Staged::Failed`], equal on all of them.
pub(super) fn stage(bench: &mut Bench<'_>, job: &Job<'_>) -> Result<Staged, MpiError> {
    let path = bench.run_dir.path().join(job.name(job.shape.rank));
    let staged = in_file(bench, job, &path)?;
    if job.owns() && job.backend.moves_data && !(job.keep && job.is_last() && matches!(staged, Staged::Done(_))) {
        // A name that stays is seen at the end, when the directory is removed.
        let _ = fs::remove_file(&path);
    }
    Ok(staged)
}

fn in_file(bench: &mut Bench<'_>, job: &Job<'_>, path: &Path) -> Result<Staged, MpiError> {
    let reads = job.direction() == Direction::Read;
    let data = job.shape.data(bench.config.seed, job.data_number(), job.team.member.group);
    let pattern = match job.shape.pattern() {
        Ok(pattern) => pattern,
        Err(e) => return Ok(Staged::NotRun(e.to_string())),
    };
    if reads && job.backend.moves_data {
        let filled = contents::fill(&job.team.group, job.shape, &data, path);
        if let Some(error) = job.agree(filled.err().as_ref())? {
            return Ok(Staged::Failed(error));
        }
        if bench.config.inject && job.is_last() {
            if let Some(error) = inject(job, path)? {
                return Ok(Staged::Failed(error));
            }
        }
    }
    let own = beff_ffi::Comm::own();
    let request = OpenRequest {
        path,
        mode: if reads && job.backend.moves_data { OpenMode::ReadOnly } else { OpenMode::CreateNew },
        comm: if job.shape.is_private() { &own } else { &job.team.group },
        hints: if job.backend.is_mpi { &bench.config.hints } else { &[] },
    };
    let opened = job.backend.driver.open(&request);
    if let Some(error) = job.agree(opened.as_ref().err())? {
        return Ok(Staged::Failed(error));
    }
    let Ok(mut file) = opened else { return Ok(Staged::NotRun("the file is not open".into())) };
    if let Some((_, reason)) = first_message(&job.team.active, file.unsupported(&pattern))? {
        close(job, file)?;
        return Ok(Staged::NotRun(reason));
    }
    contents::lay_out(&mut bench.ring, job.shape, &data);
    let prepared = file.prepare(&pattern, job.direction(), &mut bench.ring, &[]);
    if let Some(error) = job.agree(prepared.as_ref().err())? {
        close(job, file)?;
        return Ok(Staged::Failed(error));
    }
    let mut done = Done { in_force: prepared.unwrap_or_default(), file: job.name(job.shape.rank), ..Done::default() };
    if job.backend.is_mpi && job.counts && !bench.config.hints.is_empty() {
        // What the library does not tell is not granted.
        let mut listed = file.hints_in_force().unwrap_or_default();
        listed.retain(|(key, _)| bench.config.hints.iter().any(|(asked, _)| asked == key));
        done.hints_granted = listed;
    }
    repeat(bench, job, (path, &pattern, &data), file.as_mut(), &mut done)?;
    let closed = file.close();
    let error = done.timed.error.take().or(closed.err());
    if let Some(error) = job.agree(error.as_ref())? {
        return Ok(Staged::Failed(error));
    }
    if !reads && bench.config.inject && job.is_last() {
        if let Some(error) = inject(job, path)? {
            return Ok(Staged::Failed(error));
        }
    }
    if !reads && job.backend.moves_data {
        let begin = Instant::now();
        let names = |rank| bench.run_dir.path().join(job.name(rank));
        done.checked = check::written(job.team, job.shape, (bench.config.seed, job.data_number()), names)?;
        done.verify_seconds = begin.elapsed().as_secs_f64();
    }
    Ok(Staged::Done(Box::new(done)))
}

/// The clock, and what is looked at around it. Reads that memory does not hold at once go lap after lap: while the clock stands
/// still, what came is compared.
fn repeat(
    bench: &mut Bench<'_>,
    job: &Job<'_>,
    (path, pattern, data): (&Path, &Pattern, &Data),
    file: &mut dyn OpenFile,
    done: &mut Done,
) -> Result<(), MpiError> {
    let range = job.shape.range(pattern);
    let target = Target { path, pattern: &range, calls: job.shape.steps };
    let reads = job.direction() == Direction::Read && job.backend.moves_data;
    let (site, group) = (&job.team.site, &job.team.group);
    // Equal on all ranks, also where private files of some are empty.
    let cacheable = reads && job.shape.sample_bytes > 0;
    let drops = cacheable && bench.config.cache == CachePolicy::Drop;
    if drops {
        bench.warnings.extend(drop_pages(site, group, &target, &job.backend.name)?);
    }
    // Counters of devices are no group's own.
    let watched = cacheable && job.counts && job.team.groups.groups == 1;
    let mut watch = watched.then(|| Watch::begin(site, group, &target));
    let steps = job.shape.steps;
    let mut task = Task {
        kind: pattern.kind,
        direction: job.direction(),
        syncs: Syncs::of(job.direction(), job.mode),
        calls: if reads { job.shape.lap(0) } else { Batch { first_call: 0, calls: steps } },
        all_calls: steps,
        pending: job.shape.laps,
        one_by_one: done.in_force.timed != CallsTimed::Call,
        way: job.way,
    };
    let before = process_io();
    loop {
        // Groups begin together, whatever each had to do before.
        job.team.active.barrier()?;
        if let Some(watch) = &mut watch {
            watch.resume(site);
        }
        done.timed.add(timed::run(file, group, &mut bench.ring, &task, &mut bench.laps)?);
        if let Some(watch) = &mut watch {
            group.barrier()?;
            watch.pause(site);
        }
        if reads && !compare(bench, job, data, task.calls, done)? {
            break;
        }
        let next = task.calls.first_call + task.calls.calls;
        if next == steps {
            break;
        }
        task.calls = job.shape.lap(next);
        if drops {
            // What was read ahead while the clock stood still would be a gift.
            bench.warnings.extend(drop_pages(site, group, &target, &job.backend.name)?);
        }
    }
    let after = process_io();
    if let Some(watch) = watch {
        done.evidence = Some(watch.end(site, group, job.shape.steps)?);
        let mine = before.zip(after).map(|(before, after)| after.read_bytes.saturating_sub(before.read_bytes));
        let mut sums = [mine.unwrap_or(0), u64::from(mine.is_none())];
        group.sum_u64(&mut sums)?;
        done.storage_read_bytes = (sums[1] == 0).then_some(sums[0]);
    }
    Ok(())
}

/// Compares a lap and makes its memory ready for the next one; false where a call failed, on any rank. Collective over the
/// active ranks.
fn compare(bench: &mut Bench<'_>, job: &Job<'_>, data: &Data, calls: Batch, done: &mut Done) -> Result<bool, MpiError> {
    let mut failed = [u64::from(done.timed.error.is_some())];
    job.team.active.max_u64(&mut failed)?;
    if failed[0] > 0 {
        return Ok(false);
    }
    let begin = Instant::now();
    done.checked.add(check::received(&job.team.group, job.shape, data, &bench.ring, calls)?);
    if calls.first_call + calls.calls < job.shape.steps {
        contents::poison(&mut bench.ring.bytes_mut()[..job.shape.windows_bytes() as usize]);
    }
    done.verify_seconds += begin.elapsed().as_secs_f64();
    Ok(true)
}

fn close(job: &Job<'_>, file: Box<dyn OpenFile>) -> Result<(), MpiError> {
    // The reason why nothing was measured is known; whether the close works too says nothing more.
    let _ = file.close();
    job.team.active.barrier()
}

/// One bit of the file is turned over by the first rank; where that fails, nothing is proved.
fn inject(job: &Job<'_>, path: &Path) -> Result<Option<ErrorRecord>, MpiError> {
    job.team.active.barrier()?;
    let flips = job.team.active.is_root() && job.shape.file_bytes > 0;
    let flipped = if flips { contents::flip(path, job.shape.file_bytes / 2) } else { Ok(()) };
    let flipped = flipped.map_err(|e| BackendError::from_io("damage on purpose", path, None, &e));
    job.agree(flipped.err().as_ref())
}
