//! Overhead of the harness: the loops in turn with bare C loops of the same calls, in the same process.

use beff_ffi::bare::{run, BareExchange};
use beff_ffi::{Comm, MpiError, MpiErrorCause};

use crate::b_eff::plan::effort::iterations;
use crate::b_eff::plan::sizes::SIZE_COUNT;
use crate::b_eff::plan::{BufferMode, CommPattern, CommPlan};
use crate::b_eff::records::{BareLoopPair, BareRecord, MessageMethod};
use crate::frame::run::loop_pairs::{LoopKind, LoopPairs};

use super::check::compare_bytes;
use super::layout::BufferLayout;
use super::message_buffers::MessageBuffers;
use super::pattern::{MessageLoop, PatternError, PreparedPattern};

/// Time of each comparison: in quick mode (smallest and largest message), otherwise (every size).
const COMPARISON_SECONDS: [f64; 2] = [1.5, 0.35];

/// Estimated time of all comparisons, with ping-pong and Sendrecv.
pub fn estimated_seconds(quick: bool) -> f64 {
    let (sizes, share) = if quick { (2, COMPARISON_SECONDS[0]) } else { (SIZE_COUNT, COMPARISON_SECONDS[1]) };
    2.0 * sizes as f64 * share + 0.5
}

/// Target time of a loop; 300 iterations of the smallest message, as in the patterns.
const BARE_LOOP_SECONDS: f64 = 3e-3;
const PAIR_LIMITS: [u64; 2] = [5, 201];

/// Compares ping-pong and Sendrecv on the largest ring at every size, in quick mode with the smallest and the largest message.
/// Patterns that are not in the plan are omitted. Collective; the records are equal on all ranks.
///
/// # Errors
/// A failed MPI call, also one of the bare loops; corrupted messages.
pub fn compare_with_bare_loops(
    comm: &Comm,
    plan: &CommPlan,
    quick: bool,
    layout: BufferLayout,
    memory: &mut MessageBuffers,
) -> Result<Vec<BareRecord>, PatternError> {
    let last = plan.sizes_bytes.len() - 1;
    let sizes: Vec<usize> = if quick { vec![0, last] } else { (0..=last).collect() };
    let turns = LoopPairs { share_seconds: COMPARISON_SECONDS[usize::from(!quick)], pair_limits: PAIR_LIMITS };
    let mut records = Vec::new();
    for (name, method) in [("ping-pong", MessageMethod::PingPong), ("ring-6", MessageMethod::Sendrecv)] {
        let Some((index, of)) = plan.patterns.iter().enumerate().find(|(_, p)| p.name == name) else { continue };
        for &size in &sizes {
            let message_bytes = plan.sizes_bytes[size];
            let l = MessageLoop { method, repetition: 0, number: 0, message_bytes, iterations: 1 };
            records.push(compare_size(comm, (layout, index as u64, of), memory, &l, turns)?);
        }
    }
    Ok(records)
}

fn compare_size(
    comm: &Comm,
    (layout, index, of): (BufferLayout, u64, &CommPattern),
    memory: &mut MessageBuffers,
    l: &MessageLoop,
    turns: LoopPairs,
) -> Result<BareRecord, PatternError> {
    let beside = |error| PatternError { context: format!("{}, comparison with bare loops", of.name), error };
    let mut pattern = PreparedPattern::new(comm, layout, index, of).map_err(beside)?;
    let steps = of.steps(comm.rank());
    let bare = steps.first().and_then(|s| s.send_to.zip(s.receive_from)).map(|(left, right)| match l.method {
        MessageMethod::PingPong => BareExchange::PingPong { peer: left },
        _ => BareExchange::Sendrecv { left, right },
    });
    let calls = |one| iterations(BARE_LOOP_SECONDS, one);
    let (iterations, pairs) = turns.run(1, calls, |order, iterations| {
        let l = MessageLoop { iterations, ..*l };
        let mut seconds = [0.0; 2];
        for side in order {
            seconds[side as usize] = match side {
                LoopKind::Harness => pattern.run_timed(memory, &l)?,
                LoopKind::Bare => bare_seconds(comm, &mut pattern, bare, memory, &l).map_err(beside)?,
            };
        }
        comm.max_f64(&mut seconds).map_err(beside)?;
        Ok(seconds)
    })?;
    let record = BareRecord {
        pattern: of.name.clone(),
        method: l.method,
        message_bytes: l.message_bytes,
        messages: of.messages,
        iterations,
        pairs: pairs
            .into_iter()
            .map(|[ours_seconds, bare_seconds]| BareLoopPair { harness_seconds: ours_seconds, bare_seconds })
            .collect(),
    };
    let l = MessageLoop { iterations, ..*l };
    match wrong_bytes(comm, &mut pattern, layout, bare, memory, &l)? {
        0 => Ok(record),
        wrong => Err(beside(bare_loop_error(format!("{wrong} received bytes differ from those sent")))),
    }
}

/// Runs both loops again into poisoned memory. Returns the number of wrong bytes, all ranks.
fn wrong_bytes(
    comm: &Comm,
    pattern: &mut PreparedPattern<'_>,
    layout: BufferLayout,
    bare: Option<BareExchange>,
    memory: &mut MessageBuffers,
    l: &MessageLoop,
) -> Result<u64, PatternError> {
    let beside = |error| PatternError { context: "data of the bare loops".into(), error };
    memory.poison();
    pattern.run_timed(memory, l)?;
    pattern.check(memory, l);
    memory.poison();
    bare_seconds(comm, pattern, bare, memory, l).map_err(beside)?;
    let mut wrong = [0];
    if layout.buffers == BufferMode::Cyclic {
        pattern.check(memory, l);
    } else if let Some(BareExchange::PingPong { peer: sender } | BareExchange::Sendrecv { left: sender, .. }) = bare {
        // The message from the left is the last of an iteration; both neighbours send from the beginning of their memory.
        wrong[0] = compare_bytes(layout.stream(sender), 0, &memory.received()[..l.message_bytes as usize]).0;
    }
    wrong[0] += pattern.bytes_wrong;
    comm.sum_u64(&mut wrong).map_err(beside)?;
    Ok(wrong[0])
}

fn bare_loop_error(text: String) -> MpiError {
    MpiError { class: "MPI_ERR_OTHER".into(), text, cause: MpiErrorCause::Other }
}

fn bare_seconds(
    comm: &Comm,
    pattern: &mut PreparedPattern<'_>,
    bare: Option<BareExchange>,
    memory: &mut MessageBuffers,
    l: &MessageLoop,
) -> Result<f64, MpiError> {
    let walk = pattern.reserve_walk(memory, l);
    let (send, receive) = memory.split();
    comm.bare_barrier()?;
    let Some(bare) = bare else { return Ok(0.0) };
    let seconds = run(comm, bare, (l.message_bytes as usize, walk), send, receive, l.iterations);
    seconds.ok_or_else(|| bare_loop_error("a call of the bare loop failed".into()))
}
