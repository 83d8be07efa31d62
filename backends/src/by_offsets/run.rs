//! A program with precomputed offsets: the timed loop, and the parts that all drivers share.

use std::ops::Range;
use std::path::Path;

use beff_ffi::replay::now_ns;
use beff_trace::Call;

use super::action::{StepAction, StepOutput};
use super::plan::{AreaSizes, ProgramPlan};
use super::step_error::{StepError, StepResult};
use crate::error::FailureCause;
use crate::program::ProgramMemory;
use crate::{BackendError, ProgramStep, ProgramTables, ReplayProgram, Result, StepOutcome};

/// Executes the steps of a plan. After its drop, pending operations access no memory.
pub(super) trait StepExecutor {
    /// Allocates everything that the steps of the plan need.
    fn reserve(&mut self, _plan: &ProgramPlan, _memory: &mut ProgramMemory) {}

    /// True if no operation of this slot is pending; its memory is unused then.
    fn is_idle(&mut self, _memory: &mut ProgramMemory, _slot: u32) -> bool {
        true
    }

    /// Executes one step inside the timed section. The completions have sufficient capacity.
    fn execute(
        &mut self,
        plan: &ProgramPlan,
        memory: &mut ProgramMemory,
        index: usize,
        outcome: &mut StepOutcome,
    ) -> StepResult<StepOutput>;

    /// The file of a step, and why no access to it is direct, if direct I/O was requested.
    fn file_of(&self, _call: &Call, _work: &StepAction) -> (Option<&Path>, Option<&str>) {
        (None, None)
    }

    /// As [`ReplayProgram::strategy`].
    fn strategy(&self) -> String;

    /// As [`ReplayProgram::direct_bytes`].
    fn direct_bytes(&self) -> Option<[u64; 2]> {
        None
    }

    /// Completes pending operations and closes all files.
    fn finish(&mut self, _memory: &mut ProgramMemory) -> Result<()> {
        Ok(())
    }
}

pub(super) struct OffsetProgram<W: StepExecutor> {
    // Before the memory: its drop waits for pending operations.
    executor: W,
    memory: ProgramMemory,
    plan: ProgramPlan,
    complaint: Option<String>,
}

impl<W: StepExecutor> OffsetProgram<W> {
    pub(super) fn new(worker: W, memory: ProgramMemory, tables: &ProgramTables) -> Result<Self> {
        let areas = AreaSizes { source_bytes: memory.source_bytes(), landing_bytes: memory.landing_bytes() };
        Ok(Self { executor: worker, memory, plan: ProgramPlan::new(tables, areas)?, complaint: None })
    }

    /// Stores the message of an error that was not recorded.
    #[cold]
    fn record_complaint(&mut self, index: usize, fault: &StepError) {
        let call = &self.plan.steps[index].call;
        let (path, why_not_direct) = self.executor.file_of(call, &self.plan.actions[index]);
        let text = fault.describe(path, why_not_direct);
        self.complaint = Some(format!("MPI_{} recorded at {} ns: {text}", call.function.name(), call.begin_ns));
    }
}

impl<W: StepExecutor> ReplayProgram for OffsetProgram<W> {
    fn prepare(&mut self, steps: Vec<ProgramStep>) -> Result<()> {
        let Self { executor: worker, memory, plan, .. } = self;
        plan.freed.retain(|slot| {
            let is_idle = worker.is_idle(memory, *slot);
            if is_idle {
                plan.requests.release(*slot);
            }
            !is_idle
        });
        plan.replace_steps(steps)?;
        worker.reserve(plan, memory);
        Ok(())
    }

    fn run(&mut self, range: Range<usize>, outcomes: &mut [StepOutcome]) {
        for (index, outcome) in range.zip(outcomes) {
            let capacity = self.plan.actions[index].max_completions();
            outcome.completions.clear();
            outcome.completions.reserve(capacity);
            outcome.polls = 0;
            outcome.begin_ns = now_ns();
            let done = self.executor.execute(&self.plan, &mut self.memory, index, outcome);
            outcome.end_ns = now_ns();
            let (answer, error) = match done {
                Ok(answer) => (answer, None),
                Err(fault) => {
                    if self.complaint.is_none() && self.plan.steps[index].call.error.is_none() {
                        self.record_complaint(index, &fault);
                    }
                    (StepOutput::default(), Some(fault.class))
                }
            };
            (outcome.error, outcome.bytes, outcome.number) = (error, answer.bytes, answer.number);
        }
    }

    fn unexpected_error(&mut self) -> Option<String> {
        self.complaint.take()
    }

    fn strategy(&self) -> String {
        self.executor.strategy()
    }

    fn direct_bytes(&self) -> Option<[u64; 2]> {
        self.executor.direct_bytes()
    }

    fn steps(&self) -> &[ProgramStep] {
        &self.plan.steps
    }

    fn landing_range(&mut self, range: Range<u64>) -> Result<&mut [u8]> {
        self.memory
            .landing_range(range)
            .map_err(|text| BackendError::new("landed", "", FailureCause::Unsupported, text))
    }

    fn source(&self) -> &[u8] {
        self.memory.source()
    }

    fn finish(mut self: Box<Self>) -> Result<()> {
        let Self { executor: worker, memory, .. } = &mut *self;
        worker.finish(memory)
    }
}
