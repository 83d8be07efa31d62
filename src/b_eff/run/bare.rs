//! Our loops beside bare ones in C, in turns, in the same process: what the harness costs.

use beff_ffi::bare::{run, Bare};
use beff_ffi::{Cause, Comm, MpiError};

use crate::b_eff::plan::effort::iterations;
use crate::b_eff::plan::sizes::SIZES;
use crate::b_eff::plan::{Buffers, CommPattern, CommPlan};
use crate::b_eff::records::{BarePair, BareRecord, Method};
use crate::frame::run::turns::{Side, Turns};

use super::check::compare as compare_bytes;
use super::layout::Layout;
use super::memory::Memory;
use super::pattern::{Broken, Loop, Pattern};

/// Time for each comparison: of the smallest and the largest message in the quick mode, of every size else.
const SHARE_SECONDS: [f64; 2] = [1.5, 0.35];

/// Time of all of it, about, with ping-pong and Sendrecv.
pub fn seconds(quick: bool) -> f64 {
    let (sizes, share) = if quick { (2, SHARE_SECONDS[0]) } else { (SIZES, SHARE_SECONDS[1]) };
    2.0 * sizes as f64 * share + 0.5
}

/// What a loop is to take; 300 iterations of the smallest message, as in the patterns.
const LOOP_SECONDS: f64 = 3e-3;
/// Fewest and most pairs.
const PAIRS: [u64; 2] = [5, 201];

/// Compares ping-pong and Sendrecv on the largest ring at every size, in the quick mode with the smallest and the largest message.
/// Patterns that are not in the plan are left out. Collective; the records are equal on all ranks.
///
/// # Errors
/// An MPI call that failed, also one of the bare loops; messages that were not delivered whole.
pub fn compare(
    comm: &Comm,
    plan: &CommPlan,
    quick: bool,
    layout: Layout,
    memory: &mut Memory,
) -> Result<Vec<BareRecord>, Broken> {
    let last = plan.sizes_bytes.len() - 1;
    let sizes: Vec<usize> = if quick { vec![0, last] } else { (0..=last).collect() };
    let turns = Turns { share_seconds: SHARE_SECONDS[usize::from(!quick)], pairs: PAIRS };
    let mut records = Vec::new();
    for (name, method) in [("ping-pong", Method::PingPong), ("ring-6", Method::Sendrecv)] {
        let Some((index, of)) = plan.patterns.iter().enumerate().find(|(_, p)| p.name == name) else { continue };
        for &size in &sizes {
            let message_bytes = plan.sizes_bytes[size];
            let l = Loop { method, repetition: 0, number: 0, message_bytes, iterations: 1 };
            records.push(one(comm, (layout, index as u64, of), memory, &l, turns)?);
        }
    }
    Ok(records)
}

fn one(
    comm: &Comm,
    (layout, index, of): (Layout, u64, &CommPattern),
    memory: &mut Memory,
    l: &Loop,
    turns: Turns,
) -> Result<BareRecord, Broken> {
    let beside = |error| Broken { place: format!("{} beside bare loops", of.name), error };
    let mut pattern = Pattern::new(comm, layout, index, of).map_err(beside)?;
    let steps = of.steps(comm.rank());
    let bare = steps.first().and_then(|s| s.send_to.zip(s.receive_from)).map(|(left, right)| match l.method {
        Method::PingPong => Bare::PingPong { peer: left },
        _ => Bare::Sendrecv { left, right },
    });
    let calls = |one| iterations(LOOP_SECONDS, one);
    let (iterations, pairs) = turns.take(1, calls, |order, iterations| {
        let l = Loop { iterations, ..*l };
        let mut seconds = [0.0; 2];
        for side in order {
            seconds[side as usize] = match side {
                Side::Ours => pattern.timed(memory, &l)?,
                Side::Bare => bare_seconds(comm, &mut pattern, bare, memory, &l).map_err(beside)?,
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
        pairs: pairs.into_iter().map(|[ours_seconds, bare_seconds]| BarePair { ours_seconds, bare_seconds }).collect(),
    };
    let l = Loop { iterations, ..*l };
    match wrong_bytes(comm, &mut pattern, layout, bare, memory, &l)? {
        0 => Ok(record),
        wrong => Err(beside(failed(format!("{wrong} bytes received were not those sent")))),
    }
}

/// Both loops once more, into memory that holds nothing of them before: bytes that were wrong, all ranks.
fn wrong_bytes(
    comm: &Comm,
    pattern: &mut Pattern<'_>,
    layout: Layout,
    bare: Option<Bare>,
    memory: &mut Memory,
    l: &Loop,
) -> Result<u64, Broken> {
    let beside = |error| Broken { place: "data of the bare loops".into(), error };
    memory.poison();
    pattern.timed(memory, l)?;
    pattern.check(memory, l);
    memory.poison();
    bare_seconds(comm, pattern, bare, memory, l).map_err(beside)?;
    let mut wrong = [0];
    if layout.buffers == Buffers::Cyclic {
        // It walked as ours does.
        pattern.check(memory, l);
    } else if let Some(Bare::PingPong { peer: sender } | Bare::Sendrecv { left: sender, .. }) = bare {
        // Of two messages of an iteration the one from the left comes last; both ends send from the beginning of their memory.
        wrong[0] = compare_bytes(layout.stream(sender), 0, &memory.received()[..l.message_bytes as usize]).0;
    }
    wrong[0] += pattern.bytes_wrong;
    comm.sum_u64(&mut wrong).map_err(beside)?;
    Ok(wrong[0])
}

fn failed(text: String) -> MpiError {
    MpiError { class: "MPI_ERR_OTHER".into(), text, cause: Cause::Other }
}

fn bare_seconds(
    comm: &Comm,
    pattern: &mut Pattern<'_>,
    bare: Option<Bare>,
    memory: &mut Memory,
    l: &Loop,
) -> Result<f64, MpiError> {
    let walk = pattern.lend(memory, l);
    let (send, receive) = memory.halves();
    comm.bare_barrier()?;
    let Some(bare) = bare else { return Ok(0.0) };
    let seconds = run(comm, bare, (l.message_bytes as usize, walk), send, receive, l.iterations);
    seconds.ok_or_else(|| failed("a call of the bare loop failed".into()))
}
