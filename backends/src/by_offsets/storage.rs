//! Programs that are replayed by moving pieces between memory and files.

use std::path::Path;

use beff_trace::{Call, Completion};

use super::fault::{named, Done, Fault};
use super::files::Files;
use super::mover::{Job, Mover};
use super::plan::Plan;
use super::run::Worker;
use super::work::{Answer, Pending, Work};
use crate::error::Cause;
use crate::program::Memory;
use crate::{BackendError, Outcome, Result};

/// The files of one rank, and what moves their data.
pub(super) struct Storage<M: Mover> {
    // Before the files: its drop waits for what is under way.
    pub(super) mover: M,
    pub(super) files: Files,
}

impl<M: Mover> Worker for Storage<M> {
    fn reserve(&mut self, plan: &Plan, memory: &mut Memory) {
        self.files.reserve(plan.files.len());
        self.mover.reserve(plan.requests.len(), memory);
    }

    fn is_idle(&mut self, memory: &mut Memory, slot: u32) -> bool {
        self.mover.is_idle(memory, slot)
    }

    #[inline]
    fn act(&mut self, plan: &Plan, memory: &mut Memory, index: usize, outcome: &mut Outcome) -> Done<Answer> {
        let Self { mover, files } = self;
        let none = |()| Answer::default();
        match &plan.works[index] {
            Work::Nothing => Ok(Answer::default()),
            Work::Answer(answer) => Ok(*answer),
            Work::Refused(fault) => Err(fault.clone()),
            Work::Move(job) => {
                begin(mover, files, memory, job, plan)?;
                mover.complete(memory, job.slot).map(moved)
            }
            Work::Begin(job) => begin(mover, files, memory, job, plan).map(none),
            Work::End { slot } => mover.complete(memory, *slot).map(moved),
            Work::Complete { requests, is_single } => {
                complete(mover, memory, &plan.pending[requests.clone()], *is_single, outcome).map(none)
            }
            Work::Open(opening) => files.open(opening).map(none),
            Work::Close { file } => {
                // A file with requests under way must not be closed; where it was, they end before.
                mover.drain(memory, Some(*file));
                files.close(*file).map(none)
            }
            Work::Delete { path } => files.delete(*path).map(none),
            Work::SetSize { file, bytes } => files.set_size(*file, *bytes).map(none),
            Work::Preallocate { file, bytes } => files.preallocate(*file, *bytes).map(none),
            Work::GetSize { file } => {
                files.size(*file).map(|size| Answer { bytes: None, number: i64::try_from(size).ok() })
            }
            Work::Sync { file } => files.sync(*file).map(none),
        }
    }

    fn file_of(&self, call: &Call, work: &Work) -> (Option<&Path>, Option<&str>) {
        let file = match work {
            Work::Move(Job { file, .. })
            | Work::Begin(Job { file, .. })
            | Work::SetSize { file, .. }
            | Work::Preallocate { file, .. }
            | Work::GetSize { file }
            | Work::Sync { file } => Some(*file),
            _ => None,
        };
        let path = call.file.map(|path| &**self.files.path(path)).or_else(|| self.files.path_of(file?));
        (path, file.and_then(|file| self.files.get(file)).and_then(|opened| opened.why_not_direct.as_deref()))
    }

    fn strategy(&self) -> String {
        self.mover.strategy()
    }

    fn direct_bytes(&self) -> Option<[u64; 2]> {
        let counted = self.mover.counted();
        Some([counted.direct_bytes, counted.all_bytes])
    }

    fn finish(&mut self, memory: &mut Memory) -> Result<()> {
        self.mover.drain(memory, None);
        self.files.finish().map_err(|(path, fault)| {
            let text = fault.describe(None, None);
            BackendError::new("close", path, Cause::Io, text)
        })
    }
}

fn moved(bytes: u64) -> Answer {
    Answer { bytes: Some(bytes), number: None }
}

fn begin<M: Mover>(mover: &mut M, files: &Files, memory: &mut Memory, job: &Job, plan: &Plan) -> Done<()> {
    let ways = files.of(job.file)?.ways(job.direction)?;
    mover.begin(memory, ways, job, &plan.pieces[job.pieces.clone()]);
    Ok(())
}

/// Completes requests. The error of one is its own; of the call it is the first one's, in the way of the standard.
fn complete<M: Mover>(
    mover: &mut M,
    memory: &mut Memory,
    pending: &[Pending],
    is_single: bool,
    outcome: &mut Outcome,
) -> Done<()> {
    let mut first = Ok(());
    for Pending { slot, recorded } in pending {
        let done = mover.complete(memory, *slot);
        let (bytes, error) = match &done {
            Ok(bytes) => (Some(*bytes), None),
            Err(fault) => (None, Some(fault.class)),
        };
        outcome.completions.push(Completion { request: recorded.request, bytes, error });
        if let (Ok(()), Err(fault)) = (&first, done) {
            let class = if is_single { fault.class } else { named("MPI_ERR_IN_STATUS") };
            first = Err(Fault { class, ..fault });
        }
    }
    first
}
