//! What a loop left in the receive memory, piece by piece: which message wrote it last, and where its sender had it. What is
//! compared after the loop is what the loop itself placed: both ask the same functions for it.

use std::ops::Range;

use crate::b_eff::plan::walk::Stretch;

use super::layout::{Grain, Layout, LoopKey};

/// Cyclic buffers: the latest messages of a loop are compared as a whole up to so many bytes, and always the last one.
pub const WHOLE_BYTES: u64 = 1 << 20;
/// Of the messages before them, so many bytes at either end.
const END_BYTES: u64 = 8;

/// Bytes of the receive memory that belong to one message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Piece {
    /// The iteration, from 0.
    pub iteration: u64,
    /// Place in its message.
    pub place: u64,
    /// Where its first byte was in the memory of the sender.
    pub sent_at: u64,
    /// Where it is in the memory of the receiver.
    pub range: Range<u64>,
}

/// A loop as a rank and one of its senders walked through memory.
#[derive(Clone, Copy, Debug)]
pub struct Walked {
    /// The messages.
    pub stretch: Stretch,
    /// Messages of an iteration of this rank.
    pub steps: u64,
    /// And of the sender.
    pub sender_steps: u64,
}

impl Walked {
    /// Of the messages of a step those that are still there, the oldest first: what it touches last is what the next loop comes
    /// to last.
    #[must_use]
    pub fn left(&self, step: u64, message_bytes: u64, iterations: u64) -> Vec<Piece> {
        let messages = iterations * self.steps;
        let whole_from = messages.saturating_sub(self.steps.max(WHOLE_BYTES / message_bytes.max(1)));
        let mut pieces = Vec::new();
        for number in self.stretch.left(messages).filter(|number| number % self.steps == step) {
            let iteration = number / self.steps;
            let (to, from) = (self.stretch.place(number), self.stretch.place(iteration * self.sender_steps + step));
            let piece = |part: Range<u64>| Piece {
                iteration,
                place: part.start,
                sent_at: from + part.start,
                range: to + part.start..to + part.end,
            };
            if number >= whole_from || message_bytes <= 2 * END_BYTES {
                pieces.push(piece(0..message_bytes));
            } else {
                pieces.extend([piece(0..END_BYTES), piece(message_bytes - END_BYTES..message_bytes)]);
            }
        }
        pieces
    }
}

/// What a loop through windows left of the messages of a step to this receiver.
#[must_use]
pub fn by_windows(layout: Layout, key: LoopKey, step: u64, receiver: u64, iterations: u64) -> Vec<Piece> {
    let (from, to) = (layout.send_at(key, step, receiver), layout.receive_at(step));
    let grain = Grain::of(key.message_bytes);
    let sent_from = |iteration: u64| iteration % grain.send_windows * 2 * grain.unit_bytes;
    let left = left_by(key.message_bytes, iterations).into_iter();
    left.map(|(iteration, place, range)| Piece {
        iteration,
        place,
        sent_at: from + sent_from(iteration) + place,
        range: to + range.start..to + range.end,
    })
    .collect()
}

/// Iteration, place in its message, and bytes behind the first window.
type Written = (u64, u64, Range<u64>);

/// What a loop left behind the first window of a step.
fn left_by(message_bytes: u64, iterations: u64) -> Vec<Written> {
    let grain = Grain::of(message_bytes);
    let begin = |iteration: u64| iteration % grain.receive_windows * grain.unit_bytes;
    let last = iterations.saturating_sub(grain.receive_windows)..iterations;
    let mut edges: Vec<u64> = last.clone().flat_map(|i| [begin(i), begin(i) + message_bytes]).collect();
    edges.sort_unstable();
    edges.dedup();
    let mut pieces: Vec<Written> = Vec::new();
    for range in edges.windows(2).map(|pair| pair[0]..pair[1]) {
        let covers = |i: &u64| begin(*i) <= range.start && range.end <= begin(*i) + message_bytes;
        let Some(iteration) = last.clone().rev().find(covers) else { continue };
        match pieces.last_mut() {
            Some((of, _, before)) if *of == iteration && before.end == range.start => before.end = range.end,
            _ => pieces.push((iteration, range.start - begin(iteration), range)),
        }
    }
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::b_eff::plan::walk::{memory_bytes, Walk};

    #[test]
    fn what_is_left_is_what_the_last_iterations_wrote() {
        for message_bytes in [1, 7, 63, 64, 65, 1000, 1100, 32_768, 40_001] {
            for iterations in [0, 1, 2, 3, 15, 16, 17, 33, 300] {
                let grain = Grain::of(message_bytes);
                let mut written = vec![None; 65_536];
                for iteration in 0..iterations {
                    let begin = (iteration % grain.receive_windows * grain.unit_bytes) as usize;
                    (0..message_bytes).for_each(|place| written[begin + place as usize] = Some((iteration, place)));
                }
                let mut said = vec![None; 65_536];
                for (iteration, place, range) in left_by(message_bytes, iterations) {
                    for (n, at) in range.enumerate() {
                        assert_eq!(said[at as usize].replace((iteration, place + n as u64)), None);
                    }
                }
                assert!(said == written, "{message_bytes} {iterations}");
            }
        }
    }

    /// Two ranks with different numbers of messages, message by message.
    #[test]
    fn every_piece_of_a_walk_is_where_the_messages_were_put() {
        let (steps, sender_steps) = (2_u64, 3);
        let memory = memory_bytes(10_000);
        for (message_bytes, iterations) in [(1, 300), (16, 40), (17, 40), (4096, 100), (9999, 20), (10_000, 2)] {
            let mut walk = Walk::new(memory);
            walk.pass(8, 777);
            let walked = Walked { stretch: walk.stretch(message_bytes), steps, sender_steps };
            let mut received = vec![None; memory as usize];
            for (iteration, step) in (0..iterations).flat_map(|i| (0..steps).map(move |step| (i, step))) {
                let to = walked.stretch.place(iteration * steps + step);
                let from = walked.stretch.place(iteration * sender_steps + step);
                (0..message_bytes).for_each(|n| received[(to + n) as usize] = Some((iteration, step, n, from + n)));
            }
            for step in 0..steps {
                let left = walked.left(step, message_bytes, iterations);
                assert!(left
                    .iter()
                    .any(|p| p.iteration == iterations - 1 && p.range.end - p.range.start == message_bytes));
                for p in left {
                    for (n, at) in p.range.clone().enumerate() {
                        let n = n as u64;
                        assert_eq!(received[at as usize], Some((p.iteration, step, p.place + n, p.sent_at + n)));
                    }
                }
            }
        }
    }

    #[test]
    fn of_early_long_messages_both_ends_are_compared() {
        let stretch = Walk::new(memory_bytes(4 << 20)).stretch(1 << 20);
        let left = Walked { stretch, steps: 1, sender_steps: 1 }.left(0, 1 << 20, 3);
        let lengths: Vec<u64> = left.iter().map(|p| p.range.end - p.range.start).collect();
        assert_eq!(lengths, [8, 8, 8, 8, 1 << 20]);
        assert_eq!(left[1].range, (1 << 20) - 8..1 << 20);
    }
}
