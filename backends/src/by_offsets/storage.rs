//! Programs that are replayed by transfers between memory and files.

use std::path::Path;

use beff_trace::{Call, Completion};

use super::action::{CompletedRequest, StepAction, StepOutput};
use super::files::FileTable;
use super::plan::ProgramPlan;
use super::run::StepExecutor;
use super::step_error::{class_by_name, StepError, StepResult};
use super::transfer_engine::{PlannedAccess, TransferEngine};
use crate::error::FailureCause;
use crate::program::ProgramMemory;
use crate::{BackendError, Result, StepOutcome};

/// The files of one rank, and the engine for their data.
pub(super) struct Storage<M: TransferEngine> {
    // Before the files: its drop waits for pending operations.
    pub(super) engine: M,
    pub(super) files: FileTable,
}

impl<M: TransferEngine> StepExecutor for Storage<M> {
    fn reserve(&mut self, plan: &ProgramPlan, memory: &mut ProgramMemory) {
        self.files.reserve(plan.files.bound());
        self.engine.reserve(plan.requests.bound(), memory);
    }

    fn is_idle(&mut self, memory: &mut ProgramMemory, slot: u32) -> bool {
        self.engine.is_idle(memory, slot)
    }

    #[inline]
    fn execute(
        &mut self,
        plan: &ProgramPlan,
        memory: &mut ProgramMemory,
        index: usize,
        outcome: &mut StepOutcome,
    ) -> StepResult<StepOutput> {
        let Self { engine: mover, files } = self;
        let none = |()| StepOutput::default();
        match &plan.actions[index] {
            StepAction::None => Ok(StepOutput::default()),
            StepAction::Return(answer) => Ok(*answer),
            StepAction::Fail(fault) => Err(fault.clone()),
            StepAction::Transfer(job) => {
                begin_access(mover, files, memory, job, plan)?;
                mover.complete(memory, job.slot).map(bytes_output)
            }
            StepAction::BeginTransfer(job) => begin_access(mover, files, memory, job, plan).map(none),
            StepAction::EndTransfer { slot } => mover.complete(memory, *slot).map(bytes_output),
            StepAction::Complete { requests, is_single } => {
                complete_requests(mover, memory, &plan.completed_requests[requests.clone()], *is_single, outcome)
                    .map(none)
            }
            StepAction::Open(opening) => files.open(opening).map(none),
            StepAction::Close { file } => {
                // Requests that are pending at the close of a file are completed first.
                mover.drain(memory, Some(*file));
                files.close(*file).map(none)
            }
            StepAction::Delete { path } => files.delete(*path).map(none),
            StepAction::SetSize { file, bytes } => files.set_size(*file, *bytes).map(none),
            StepAction::Preallocate { file, bytes } => files.preallocate(*file, *bytes).map(none),
            StepAction::GetSize { file } => {
                files.size(*file).map(|size| StepOutput { bytes: None, number: i64::try_from(size).ok() })
            }
            StepAction::Sync { file } => files.sync(*file).map(none),
        }
    }

    fn file_of(&self, call: &Call, work: &StepAction) -> (Option<&Path>, Option<&str>) {
        let file = match work {
            StepAction::Transfer(PlannedAccess { file, .. })
            | StepAction::BeginTransfer(PlannedAccess { file, .. })
            | StepAction::SetSize { file, .. }
            | StepAction::Preallocate { file, .. }
            | StepAction::GetSize { file }
            | StepAction::Sync { file } => Some(*file),
            _ => None,
        };
        let path = call.file.map(|path| &**self.files.path(path)).or_else(|| self.files.path_of(file?));
        (path, file.and_then(|file| self.files.entry(file)).and_then(|opened| opened.why_not_direct.as_deref()))
    }

    fn strategy(&self) -> String {
        self.engine.strategy()
    }

    fn direct_bytes(&self) -> Option<[u64; 2]> {
        let counted = self.engine.transferred_bytes();
        Some([counted.direct_bytes, counted.all_bytes])
    }

    fn finish(&mut self, memory: &mut ProgramMemory) -> Result<()> {
        self.engine.drain(memory, None);
        self.files.close_all().map_err(|(path, fault)| {
            let text = fault.describe(None, None);
            BackendError::new("close", path, FailureCause::Io, text)
        })
    }
}

fn bytes_output(bytes: u64) -> StepOutput {
    StepOutput { bytes: Some(bytes), number: None }
}

fn begin_access<M: TransferEngine>(
    mover: &mut M,
    files: &FileTable,
    memory: &mut ProgramMemory,
    job: &PlannedAccess,
    plan: &ProgramPlan,
) -> StepResult<()> {
    let ways = files.open_file(job.file)?.descriptors_for(job.direction)?;
    mover.begin(memory, ways, job, &plan.extents[job.extents.clone()]);
    Ok(())
}

/// Completes requests. Each has its own error; the call returns the first one as defined by the standard.
fn complete_requests<M: TransferEngine>(
    mover: &mut M,
    memory: &mut ProgramMemory,
    pending: &[CompletedRequest],
    is_single: bool,
    outcome: &mut StepOutcome,
) -> StepResult<()> {
    let mut first = Ok(());
    for CompletedRequest { slot, recorded } in pending {
        let done = mover.complete(memory, *slot);
        let (bytes, error) = match &done {
            Ok(bytes) => (Some(*bytes), None),
            Err(fault) => (None, Some(fault.class)),
        };
        outcome.completions.push(Completion { request: recorded.request, bytes, error });
        if let (Ok(()), Err(fault)) = (&first, done) {
            let class = if is_single { fault.class } else { class_by_name("MPI_ERR_IN_STATUS") };
            first = Err(StepError { class, ..fault });
        }
    }
    first
}
