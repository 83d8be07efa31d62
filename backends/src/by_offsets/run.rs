//! A program that is replayed by moving pieces: the loop with the clock.

use std::ops::Range;

use beff_ffi::replay::now_ns;
use beff_trace::Completion;

use super::fault::{named, Done, Fault};
use super::files::Files;
use super::mover::{Job, Mover};
use super::plan::{Areas, Plan};
use super::work::{Answer, Pending, Work};
use crate::error::Cause;
use crate::program::Memory;
use crate::{BackendError, Outcome, Program, Result, Step, Tables};

/// One rank's part.
pub(super) struct ByOffsets<M: Mover> {
    // Before files and memory: its drop waits for what is under way.
    mover: M,
    files: Files,
    memory: Memory,
    plan: Plan,
    complaint: Option<String>,
}

impl<M: Mover> ByOffsets<M> {
    /// A program without steps.
    ///
    /// # Errors
    /// A type that cannot be.
    pub(super) fn new(mover: M, files: Files, memory: Memory, tables: &Tables) -> Result<Self> {
        let areas = Areas { source_bytes: memory.source_bytes(), landing_bytes: memory.landing_bytes() };
        Ok(Self { mover, files, memory, plan: Plan::new(tables, areas)?, complaint: None })
    }

    /// Does what a step has to do; the completions go into the outcome.
    #[inline]
    fn act(&mut self, index: usize, outcome: &mut Outcome) -> Done<Answer> {
        let Self { mover, files, memory, plan, .. } = self;
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

    /// Keeps the message of a fault that was not recorded.
    #[cold]
    fn complain(&mut self, index: usize, fault: &Fault) {
        let call = &self.plan.steps[index].call;
        let file = match &self.plan.works[index] {
            Work::Move(Job { file, .. })
            | Work::Begin(Job { file, .. })
            | Work::SetSize { file, .. }
            | Work::Preallocate { file, .. }
            | Work::GetSize { file }
            | Work::Sync { file } => Some(*file),
            _ => None,
        };
        let path = call.file.map(|path| &**self.files.path(path)).or_else(|| self.files.path_of(file?));
        let why = file.and_then(|file| self.files.get(file)).and_then(|opened| opened.why_not_direct.as_deref());
        let text = fault.describe(path, why);
        self.complaint = Some(format!("MPI_{} recorded at {} ns: {text}", call.function.name(), call.begin_ns));
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

impl<M: Mover> Program for ByOffsets<M> {
    fn make_ready(&mut self, steps: Vec<Step>) -> Result<()> {
        let Self { mover, files, memory, plan, .. } = self;
        plan.freed.retain(|slot| {
            let is_idle = mover.is_idle(memory, *slot);
            if is_idle {
                plan.requests.release(*slot);
            }
            !is_idle
        });
        plan.make_ready(steps)?;
        files.reserve(plan.files.len());
        mover.reserve(plan.requests.len(), memory);
        Ok(())
    }

    fn run(&mut self, range: Range<usize>, outcomes: &mut [Outcome]) {
        for (index, outcome) in range.zip(outcomes) {
            let room = self.plan.works[index].completions();
            outcome.completions.clear();
            outcome.completions.reserve(room);
            outcome.polls = 0;
            outcome.begin_ns = now_ns();
            let done = self.act(index, outcome);
            outcome.end_ns = now_ns();
            let (answer, error) = match done {
                Ok(answer) => (answer, None),
                Err(fault) => {
                    if self.complaint.is_none() && self.plan.steps[index].call.error.is_none() {
                        self.complain(index, &fault);
                    }
                    (Answer::default(), Some(fault.class))
                }
            };
            (outcome.error, outcome.bytes, outcome.number) = (error, answer.bytes, answer.number);
        }
    }

    fn complaint(&mut self) -> Option<String> {
        self.complaint.take()
    }

    fn strategy(&self) -> String {
        self.mover.strategy()
    }

    fn direct_bytes(&self) -> Option<[u64; 2]> {
        let counted = self.mover.counted();
        Some([counted.direct_bytes, counted.all_bytes])
    }

    fn steps(&self) -> &[Step] {
        &self.plan.steps
    }

    fn landed(&mut self, range: Range<u64>) -> Result<&mut [u8]> {
        self.memory.landed(range).map_err(|text| BackendError::new("landed", "", Cause::Unsupported, text))
    }

    fn source(&self) -> &[u8] {
        self.memory.source()
    }

    fn source_mut(&mut self, range: Range<u64>) -> Result<&mut [u8]> {
        self.memory.source_mut(range).map_err(|text| BackendError::new("source", "", Cause::Unsupported, text))
    }

    fn finish(self: Box<Self>) -> Result<()> {
        let Self { mut mover, mut files, mut memory, .. } = *self;
        mover.drain(&mut memory, None);
        files.finish().map_err(|(path, fault)| {
            let text = fault.describe(None, None);
            BackendError::new("close", path, Cause::Io, text)
        })
    }
}
