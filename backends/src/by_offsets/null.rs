//! Computes every offset and address of a program and moves nothing: what the replay itself costs.

use std::hint::black_box;

use beff_trace::Direction;

use super::fault::{Cause, Done, Fault};
use super::mover::Job;
use super::plan::Plan;
use super::run::Worker;
use super::work::{Answer, Work};
use crate::program::Memory;
use crate::Outcome;

/// Opens no file and meets nobody; what is answered is what was recorded.
pub(super) struct Null;

impl Worker for Null {
    #[inline]
    fn act(&mut self, plan: &Plan, memory: &mut Memory, index: usize, outcome: &mut Outcome) -> Done<Answer> {
        let call = &plan.steps[index].call;
        let recorded = Answer { bytes: call.bytes, number: call.number };
        match &plan.works[index] {
            Work::Refused(fault) => return Err(fault.clone()),
            Work::Answer(answer) => return Ok(*answer),
            Work::Begin(job) => {
                walk(plan, memory, job);
            }
            Work::Move(job) => {
                let asked = walk(plan, memory, job);
                if call.error.is_none() {
                    return Ok(Answer { bytes: Some(call.bytes.unwrap_or(asked)), number: None });
                }
            }
            Work::Complete { requests, .. } => {
                let done = &plan.pending[requests.clone()];
                outcome.completions.extend(done.iter().map(|one| one.recorded));
            }
            _ => {}
        }
        match call.error {
            Some(class) => Err(Fault { class, cause: Cause::Text("as recorded") }),
            None => Ok(recorded),
        }
    }

    fn strategy(&self) -> String {
        "offsets and addresses of every access are computed, nothing is moved; answers are those of the profile"
            .to_owned()
    }
}

/// The offsets and addresses of an access, and its bytes.
fn walk(plan: &Plan, memory: &Memory, job: &Job) -> u64 {
    let base = match job.direction {
        Direction::Read => memory.landing_at().cast_const(),
        Direction::Write => memory.source_at(),
    };
    let mut bytes = 0;
    for piece in &plan.pieces[job.pieces.clone()] {
        black_box((base.wrapping_add(piece.memory_bytes as usize), piece.file_bytes));
        bytes += piece.len_bytes;
    }
    bytes
}
