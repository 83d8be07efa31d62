//! Computes every offset and address of a program and moves nothing: what the replay itself costs.

use std::hint::black_box;
use std::ops::Range;

use beff_ffi::replay::now_ns;
use beff_trace::{Completion, Direction};

use super::fault::{Done, Fault};
use super::mover::Job;
use super::plan::{Areas, Plan};
use super::work::{Answer, Work};
use crate::error::Cause;
use crate::program::Memory;
use crate::{BackendError, Outcome, Program, Result, Step, Tables};

/// One rank's part. It opens no file and meets nobody; what is answered is what was recorded.
pub(super) struct Null {
    memory: Memory,
    plan: Plan,
    complaint: Option<String>,
}

impl Null {
    /// A program without steps.
    ///
    /// # Errors
    /// A type that cannot be.
    pub(super) fn new(memory: Memory, tables: &Tables) -> Result<Self> {
        let areas = Areas { source_bytes: memory.source_bytes(), landing_bytes: memory.landing_bytes() };
        Ok(Self { memory, plan: Plan::new(tables, areas)?, complaint: None })
    }

    #[inline]
    fn act(&self, index: usize, outcome: &mut Outcome) -> Done<Answer> {
        let call = &self.plan.steps[index].call;
        let recorded = Answer { bytes: call.bytes, number: call.number };
        match &self.plan.works[index] {
            Work::Refused(fault) => return Err(fault.clone()),
            Work::Answer(answer) => return Ok(*answer),
            Work::Begin(job) => {
                self.walk(job);
            }
            Work::Move(job) => {
                let asked = self.walk(job);
                if call.error.is_none() {
                    return Ok(Answer { bytes: Some(call.bytes.unwrap_or(asked)), number: None });
                }
            }
            Work::Complete { requests, .. } => {
                let done = &self.plan.pending[requests.clone()];
                outcome.completions.extend(done.iter().map(|one| Completion { ..one.recorded }));
            }
            _ => {}
        }
        match call.error {
            Some(class) => Err(Fault { class, cause: super::fault::Cause::Text("as recorded") }),
            None => Ok(recorded),
        }
    }

    /// The offsets and addresses of an access, and its bytes.
    fn walk(&self, job: &Job) -> u64 {
        let base = match job.direction {
            Direction::Read => self.memory.landing_at().cast_const(),
            Direction::Write => self.memory.source_at(),
        };
        let mut bytes = 0;
        for piece in &self.plan.pieces[job.pieces.clone()] {
            black_box((base.wrapping_add(piece.memory_bytes as usize), piece.file_bytes));
            bytes += piece.len_bytes;
        }
        bytes
    }
}

impl Program for Null {
    fn make_ready(&mut self, steps: Vec<Step>) -> Result<()> {
        for slot in std::mem::take(&mut self.plan.freed) {
            self.plan.requests.release(slot);
        }
        self.plan.make_ready(steps)
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
                    let call = &self.plan.steps[index].call;
                    if self.complaint.is_none() && call.error.is_none() {
                        let text = fault.describe(None, None);
                        self.complaint =
                            Some(format!("MPI_{} recorded at {} ns: {text}", call.function.name(), call.begin_ns));
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
        "offsets and addresses of every access are computed, nothing is moved; answers are those of the profile"
            .to_owned()
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
        Ok(())
    }
}
