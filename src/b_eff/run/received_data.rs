//! Expected contents of the receive memory after a loop, range by range: the message that wrote the range last, and its offset
//! in the send memory. The offsets come from the same functions as those of the loop.

use std::ops::Range;

use crate::b_eff::plan::walk::WalkSegment;

use super::layout::{BufferLayout, LoopKey, WindowGranularity};

/// With cyclic buffers, the latest messages of a loop are fully compared up to this many bytes, and always the last one.
pub const FULLY_COMPARED_BYTES: u64 = 1 << 20;
/// Of earlier messages, this many bytes are compared at either end.
const COMPARED_EDGE_BYTES: u64 = 8;

/// Bytes of the receive memory that belong to one message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReceivedRange {
    /// Iteration, from 0.
    pub iteration: u64,
    /// Offset in its message.
    pub message_offset: u64,
    /// Offset of its first byte in the memory of the sender.
    pub send_offset: u64,
    /// Range in the memory of the receiver.
    pub range: Range<u64>,
}

/// Walk of a loop through the memory of a rank and of one of its senders.
#[derive(Clone, Copy, Debug)]
pub struct WalkedLoop {
    /// The messages.
    pub stretch: WalkSegment,
    /// Messages of this rank in an iteration.
    pub steps: u64,
    /// Messages of the sender in an iteration.
    pub sender_steps: u64,
}

impl WalkedLoop {
    /// Ranges of the messages of a step that were not overwritten, oldest first: the next loop overwrites the last ones last.
    #[must_use]
    pub fn intact_ranges(&self, step: u64, message_bytes: u64, iterations: u64) -> Vec<ReceivedRange> {
        let messages = iterations * self.steps;
        let whole_from = messages.saturating_sub(self.steps.max(FULLY_COMPARED_BYTES / message_bytes.max(1)));
        let mut pieces = Vec::new();
        for number in self.stretch.intact_messages(messages).filter(|number| number % self.steps == step) {
            let iteration = number / self.steps;
            let (to, from) = (
                self.stretch.message_offset(number),
                self.stretch.message_offset(iteration * self.sender_steps + step),
            );
            let piece = |part: Range<u64>| ReceivedRange {
                iteration,
                message_offset: part.start,
                send_offset: from + part.start,
                range: to + part.start..to + part.end,
            };
            if number >= whole_from || message_bytes <= 2 * COMPARED_EDGE_BYTES {
                pieces.push(piece(0..message_bytes));
            } else {
                pieces
                    .extend([piece(0..COMPARED_EDGE_BYTES), piece(message_bytes - COMPARED_EDGE_BYTES..message_bytes)]);
            }
        }
        pieces
    }
}

/// With windows: ranges of the messages of a step to this receiver after a loop.
#[must_use]
pub fn intact_window_ranges(
    layout: BufferLayout,
    key: LoopKey,
    step: u64,
    receiver: u64,
    iterations: u64,
) -> Vec<ReceivedRange> {
    let (from, to) = (layout.send_offset(key, step, receiver), layout.receive_offset(step));
    let grain = WindowGranularity::for_message(key.message_bytes);
    let sent_from = |iteration: u64| iteration % grain.send_windows * 2 * grain.unit_bytes;
    let left = written_window_ranges(key.message_bytes, iterations).into_iter();
    left.map(|(iteration, place, range)| ReceivedRange {
        iteration,
        message_offset: place,
        send_offset: from + sent_from(iteration) + place,
        range: to + range.start..to + range.end,
    })
    .collect()
}

/// Iteration, offset in its message, and range relative to the first window.
type WindowRange = (u64, u64, Range<u64>);

/// Ranges written last by each iteration, relative to the first window of a step.
fn written_window_ranges(message_bytes: u64, iterations: u64) -> Vec<WindowRange> {
    let grain = WindowGranularity::for_message(message_bytes);
    let begin = |iteration: u64| iteration % grain.receive_windows * grain.unit_bytes;
    let last = iterations.saturating_sub(grain.receive_windows)..iterations;
    let mut edges: Vec<u64> = last.clone().flat_map(|i| [begin(i), begin(i) + message_bytes]).collect();
    edges.sort_unstable();
    edges.dedup();
    let mut pieces: Vec<WindowRange> = Vec::new();
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
    use crate::b_eff::plan::walk::{walk_memory_bytes, BufferWalk};

    #[test]
    fn intact_ranges_are_those_of_the_last_iterations() {
        for message_bytes in [1, 7, 63, 64, 65, 1000, 1100, 32_768, 40_001] {
            for iterations in [0, 1, 2, 3, 15, 16, 17, 33, 300] {
                let grain = WindowGranularity::for_message(message_bytes);
                let mut written = vec![None; 65_536];
                for iteration in 0..iterations {
                    let begin = (iteration % grain.receive_windows * grain.unit_bytes) as usize;
                    (0..message_bytes).for_each(|place| written[begin + place as usize] = Some((iteration, place)));
                }
                let mut said = vec![None; 65_536];
                for (iteration, place, range) in written_window_ranges(message_bytes, iterations) {
                    for (n, at) in range.enumerate() {
                        assert_eq!(said[at as usize].replace((iteration, place + n as u64)), None);
                    }
                }
                assert!(said == written, "{message_bytes} {iterations}");
            }
        }
    }

    /// Two ranks with different numbers of messages, compared message by message.
    #[test]
    fn every_range_of_a_walk_matches_its_message() {
        let (steps, sender_steps) = (2_u64, 3);
        let memory = walk_memory_bytes(10_000);
        for (message_bytes, iterations) in [(1, 300), (16, 40), (17, 40), (4096, 100), (9999, 20), (10_000, 2)] {
            let mut walk = BufferWalk::new(memory);
            walk.advance(8, 777);
            let walked = WalkedLoop { stretch: walk.segment(message_bytes), steps, sender_steps };
            let mut received = vec![None; memory as usize];
            for (iteration, step) in (0..iterations).flat_map(|i| (0..steps).map(move |step| (i, step))) {
                let to = walked.stretch.message_offset(iteration * steps + step);
                let from = walked.stretch.message_offset(iteration * sender_steps + step);
                (0..message_bytes).for_each(|n| received[(to + n) as usize] = Some((iteration, step, n, from + n)));
            }
            for step in 0..steps {
                let left = walked.intact_ranges(step, message_bytes, iterations);
                assert!(left
                    .iter()
                    .any(|p| p.iteration == iterations - 1 && p.range.end - p.range.start == message_bytes));
                for p in left {
                    for (n, at) in p.range.clone().enumerate() {
                        let n = n as u64;
                        assert_eq!(
                            received[at as usize],
                            Some((p.iteration, step, p.message_offset + n, p.send_offset + n))
                        );
                    }
                }
            }
        }
    }

    #[test]
    fn of_early_long_messages_both_ends_are_compared() {
        let stretch = BufferWalk::new(walk_memory_bytes(4 << 20)).segment(1 << 20);
        let left = WalkedLoop { stretch, steps: 1, sender_steps: 1 }.intact_ranges(0, 1 << 20, 3);
        let lengths: Vec<u64> = left.iter().map(|p| p.range.end - p.range.start).collect();
        assert_eq!(lengths, [8, 8, 8, 8, 1 << 20]);
        assert_eq!(left[1].range, (1 << 20) - 8..1 << 20);
    }
}
