//! Our loops beside bare ones in C, in turns, in the same process: what the harness costs.

use beff_ffi::bare::{run, Bare};
use beff_ffi::Comm;

use crate::plan::comm::{CommPattern, CommPlan};
use crate::results::comm::{BarePair, BareRecord, Method};

use super::memory::{Layout, Memory};
use super::pattern::{Broken, Loop, Pattern};

/// Time for each of the four comparisons.
const SHARE_SECONDS: f64 = 1.5;
/// Time of all of it, about.
pub const SECONDS: f64 = 4.0 * SHARE_SECONDS + 0.5;
/// What a loop is to take; 300 iterations of the smallest message, as in the patterns.
const LOOP_SECONDS: f64 = 3e-3;
/// Pairs at least and at most.
const PAIRS: [u64; 2] = [5, 201];

/// Compares ping-pong and Sendrecv on the largest ring, with the smallest and the largest message. Patterns that are not
/// in the plan are left out. Collective; the records are equal on all ranks.
///
/// # Errors
/// An MPI call that failed.
pub fn compare(comm: &Comm, plan: &CommPlan, layout: Layout, memory: &mut Memory) -> Result<Vec<BareRecord>, Broken> {
    let mut records = Vec::new();
    for (name, method) in [("ping-pong", Method::PingPong), ("ring-6", Method::Sendrecv)] {
        let Some((index, of)) = plan.patterns.iter().enumerate().find(|(_, p)| p.name == name) else { continue };
        for size in [0, plan.sizes_bytes.len() - 1] {
            let message_bytes = plan.sizes_bytes[size];
            let l = Loop { method, repetition: 0, number: 0, size, message_bytes, iterations: 1 };
            records.push(one(comm, (layout, index as u64, of), memory, &l)?);
        }
    }
    Ok(records)
}

fn one(
    comm: &Comm,
    (layout, index, of): (Layout, u64, &CommPattern),
    memory: &mut Memory,
    l: &Loop,
) -> Result<BareRecord, Broken> {
    let beside = |error| Broken { place: format!("{} beside bare loops", of.name), error };
    let mut pattern = Pattern::new(comm, layout, index, of).map_err(beside)?;
    let steps = of.steps(comm.rank());
    let bare = steps.first().and_then(|s| s.send_to.zip(s.receive_from)).map(|(left, right)| match l.method {
        Method::PingPong => Bare::PingPong { peer: left },
        _ => Bare::Sendrecv { left, right },
    });
    // Both once before it counts; the second says how many there is time for.
    let mut first = [0.0; 2];
    for _ in 0..2 {
        first = [pattern.timed(memory, l)?, bare_seconds(comm, bare, memory, l).map_err(beside)?];
        comm.max_f64(&mut first).map_err(beside)?;
    }
    let one = first[0].max(first[1]).max(1e-9);
    let iterations = crate::plan::comm::effort::iterations(LOOP_SECONDS, one);
    let l = Loop { iterations, ..*l };
    let pairs = ((SHARE_SECONDS / (2.0 * one * iterations as f64)) as u64).clamp(PAIRS[0], PAIRS[1]);
    let mut record = BareRecord {
        pattern: of.name.clone(),
        method: l.method,
        message_bytes: l.message_bytes,
        messages: of.messages,
        iterations,
        pairs: Vec::new(),
    };
    for pair in 0..pairs {
        let mut seconds = [0.0; 2];
        // A B B A: what drifts meets both alike.
        for side in if pair % 2 == 0 { [0, 1] } else { [1, 0] } {
            seconds[side] = if side == 0 {
                pattern.timed(memory, &l)?
            } else {
                bare_seconds(comm, bare, memory, &l).map_err(beside)?
            };
        }
        comm.max_f64(&mut seconds).map_err(beside)?;
        record.pairs.push(BarePair { ours_seconds: seconds[0], bare_seconds: seconds[1] });
    }
    Ok(record)
}

fn bare_seconds(comm: &Comm, bare: Option<Bare>, memory: &mut Memory, l: &Loop) -> Result<f64, beff_ffi::MpiError> {
    let (send, receive) = memory.halves();
    comm.barrier()?;
    // A message is as long as a slot at most.
    Ok(bare.map_or(0.0, |bare| run(comm, bare, l.message_bytes as usize, send, receive, l.iterations)))
}
