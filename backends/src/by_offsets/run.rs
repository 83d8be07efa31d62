//! A program whose offsets are worked out before: the loop with the clock, and what all drivers share around it.

use std::ops::Range;
use std::path::Path;

use beff_ffi::replay::now_ns;
use beff_trace::Call;

use super::fault::{Done, Fault};
use super::plan::{Areas, Plan};
use super::work::{Answer, Work};
use crate::error::Cause;
use crate::program::Memory;
use crate::{BackendError, Outcome, Program, Result, Step, Tables};

/// Does the steps of a plan. What it leaves under way touches no memory after its drop.
pub(super) trait Worker {
    /// Makes room for all that the steps of the plan need.
    fn reserve(&mut self, _plan: &Plan, _memory: &mut Memory) {}

    /// True if nothing of this slot is under way any more; its memory is free then.
    fn is_idle(&mut self, _memory: &mut Memory, _slot: u32) -> bool {
        true
    }

    /// Does one step, inside the clock. There is room for its completions.
    fn act(&mut self, plan: &Plan, memory: &mut Memory, index: usize, outcome: &mut Outcome) -> Done<Answer>;

    /// The file of a step, and why no access to it is direct, where that was wanted.
    fn file_of(&self, _call: &Call, _work: &Work) -> (Option<&Path>, Option<&str>) {
        (None, None)
    }

    /// As [`Program::strategy`].
    fn strategy(&self) -> String;

    /// As [`Program::direct_bytes`].
    fn direct_bytes(&self) -> Option<[u64; 2]> {
        None
    }

    /// Ends what is under way, closes everything.
    ///
    /// # Errors
    /// As [`Program::finish`].
    fn finish(&mut self, _memory: &mut Memory) -> Result<()> {
        Ok(())
    }
}

/// One rank's part.
pub(super) struct ByOffsets<W: Worker> {
    // Before the memory: its drop waits for what is under way.
    worker: W,
    memory: Memory,
    plan: Plan,
    complaint: Option<String>,
}

impl<W: Worker> ByOffsets<W> {
    /// A program without steps.
    ///
    /// # Errors
    /// A type that cannot be.
    pub(super) fn new(worker: W, memory: Memory, tables: &Tables) -> Result<Self> {
        let areas = Areas { source_bytes: memory.source_bytes(), landing_bytes: memory.landing_bytes() };
        Ok(Self { worker, memory, plan: Plan::new(tables, areas)?, complaint: None })
    }

    /// Keeps the message of a fault that was not recorded.
    #[cold]
    fn complain(&mut self, index: usize, fault: &Fault) {
        let call = &self.plan.steps[index].call;
        let (path, why_not_direct) = self.worker.file_of(call, &self.plan.works[index]);
        let text = fault.describe(path, why_not_direct);
        self.complaint = Some(format!("MPI_{} recorded at {} ns: {text}", call.function.name(), call.begin_ns));
    }
}

impl<W: Worker> Program for ByOffsets<W> {
    fn make_ready(&mut self, steps: Vec<Step>) -> Result<()> {
        let Self { worker, memory, plan, .. } = self;
        plan.freed.retain(|slot| {
            let is_idle = worker.is_idle(memory, *slot);
            if is_idle {
                plan.requests.release(*slot);
            }
            !is_idle
        });
        plan.make_ready(steps)?;
        worker.reserve(plan, memory);
        Ok(())
    }

    fn run(&mut self, range: Range<usize>, outcomes: &mut [Outcome]) {
        for (index, outcome) in range.zip(outcomes) {
            let room = self.plan.works[index].completions();
            outcome.completions.clear();
            outcome.completions.reserve(room);
            outcome.polls = 0;
            outcome.begin_ns = now_ns();
            let done = self.worker.act(&self.plan, &mut self.memory, index, outcome);
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
        self.worker.strategy()
    }

    fn direct_bytes(&self) -> Option<[u64; 2]> {
        self.worker.direct_bytes()
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

    fn finish(mut self: Box<Self>) -> Result<()> {
        let Self { worker, memory, .. } = &mut *self;
        worker.finish(memory)
    }
}
