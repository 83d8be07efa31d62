//! Computes every offset and address of a program without transfers: the overhead of the replay itself.

use std::hint::black_box;

use beff_trace::Direction;

use super::action::{StepAction, StepOutput};
use super::plan::ProgramPlan;
use super::run::StepExecutor;
use super::step_error::{StepError, StepErrorCause, StepResult};
use super::transfer_engine::PlannedAccess;
use crate::program::ProgramMemory;
use crate::StepOutcome;

/// Opens no file and never synchronizes; returns the recorded results.
pub(super) struct Null;

impl StepExecutor for Null {
    #[inline]
    fn execute(
        &mut self,
        plan: &ProgramPlan,
        memory: &mut ProgramMemory,
        index: usize,
        outcome: &mut StepOutcome,
    ) -> StepResult<StepOutput> {
        let call = &plan.steps[index].call;
        let recorded = StepOutput { bytes: call.bytes, number: call.number };
        match &plan.actions[index] {
            StepAction::Fail(fault) => return Err(fault.clone()),
            StepAction::Return(answer) => return Ok(*answer),
            StepAction::BeginTransfer(job) => {
                compute_offsets(plan, memory, job);
            }
            StepAction::Transfer(job) => {
                let asked = compute_offsets(plan, memory, job);
                if call.error.is_none() {
                    return Ok(StepOutput { bytes: Some(call.bytes.unwrap_or(asked)), number: None });
                }
            }
            StepAction::Complete { requests, .. } => {
                let done = &plan.completed_requests[requests.clone()];
                outcome.completions.extend(done.iter().map(|one| one.recorded));
            }
            _ => {}
        }
        match call.error {
            Some(class) => Err(StepError { class, cause: StepErrorCause::Text("as recorded") }),
            None => Ok(recorded),
        }
    }

    fn strategy(&self) -> String {
        "offsets and addresses of every access are computed without transfers; results are those of the profile"
            .to_owned()
    }
}

/// Computes the offsets and addresses of an access; returns its bytes.
fn compute_offsets(plan: &ProgramPlan, memory: &ProgramMemory, job: &PlannedAccess) -> u64 {
    let base = match job.direction {
        Direction::Read => memory.landing_at().cast_const(),
        Direction::Write => memory.source_at(),
    };
    let mut bytes = 0;
    for piece in &plan.extents[job.extents.clone()] {
        black_box((base.wrapping_add(piece.memory_bytes as usize), piece.file_bytes));
        bytes += piece.len_bytes;
    }
    bytes
}
