//! Placement of messages in memory: the walk of release 3.6, which moves its buffers "cyclically, to inhibit reading from the
//! cache".
//!
//! A rank has a send and a receive memory, each of six messages of Lmax: two neighbours in each of three dimensions. A message
//! begins at `base` in both; then base advances by its length rounded up to 8 bytes, and returns to 0 where the next message
//! would not fit. The walk continues across iterations, methods, sizes and repetitions. Short messages thus advance through
//! memory in steps of 8 bytes, and long ones rotate over six offsets.
//!
//! Two rules are additional: all ranks begin a loop at the same base, that of a rank with the most messages after the previous
//! loop (so the receiver knows the sender's offset without communication), and a new size of which seven messages do not fit
//! begins at 0 (so messages of one iteration never overlap; MPI forbids overlapping receives).

use std::ops::Range;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Messages of Lmax that fit into a memory: the most that one rank sends in an iteration.
pub const LMAX_MESSAGES: u64 = 6;
/// Added to Lmax for each of them.
const MARGIN_BYTES: u64 = 16;
const ALIGNMENT_BYTES: u64 = 8;

/// Placement of the messages of a run in memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum BufferMode {
    /// The walk of the definition.
    Cyclic,
    /// A few reused windows in huge pages: measures the caches. Default of results that do not record the placement.
    #[default]
    Reused,
}

impl BufferMode {
    /// Name on the command line and in output.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Cyclic => "cyclic",
            Self::Reused => "reused",
        }
    }
}

/// Length of the send memory, and of the receive memory.
#[must_use]
pub fn walk_memory_bytes(lmax_bytes: u64) -> u64 {
    lmax_bytes.saturating_add(MARGIN_BYTES).saturating_mul(LMAX_MESSAGES)
}

/// Distance between the beginnings of two consecutive messages.
#[must_use]
pub fn advance_bytes(message_bytes: u64) -> u64 {
    message_bytes.next_multiple_of(ALIGNMENT_BYTES)
}

/// Position of the walk: the beginning of the next loop, equal on all ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BufferWalk {
    memory_bytes: u64,
    base: u64,
}

impl BufferWalk {
    /// Walk at the beginning of memories of this length.
    #[must_use]
    pub fn new(memory_bytes: u64) -> Self {
        Self { memory_bytes, base: 0 }
    }

    /// Messages of a loop with this size.
    #[must_use]
    pub fn segment(self, message_bytes: u64) -> WalkSegment {
        let advance = advance_bytes(message_bytes);
        let fits = self.base + message_bytes <= self.memory_bytes;
        let apart = self.base.is_multiple_of(advance) || (LMAX_MESSAGES + 1) * advance <= self.memory_bytes;
        WalkSegment { memory_bytes: self.memory_bytes, base: if fits && apart { self.base } else { 0 }, message_bytes }
    }

    /// Advances the walk by `messages` messages of this size.
    pub fn advance(&mut self, message_bytes: u64, messages: u64) {
        self.base = self.segment(message_bytes).message_offset(messages);
    }
}

/// Messages of one loop in the order of their placement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WalkSegment {
    memory_bytes: u64,
    base: u64,
    message_bytes: u64,
}

impl WalkSegment {
    /// Offset of the first message.
    #[must_use]
    pub fn base(self) -> u64 {
        self.base
    }

    /// Number of messages from `begin` to the end of the memory.
    fn messages_until_end(self, begin: u64) -> u64 {
        (self.memory_bytes - self.message_bytes - begin) / advance_bytes(self.message_bytes) + 1
    }

    /// Offset of message `number`.
    #[must_use]
    pub fn message_offset(self, number: u64) -> u64 {
        let advance = advance_bytes(self.message_bytes);
        match number.checked_sub(self.messages_until_end(self.base)) {
            None => self.base + number * advance,
            Some(later) => later % self.messages_until_end(0) * advance,
        }
    }

    /// Messages, of the first `messages`, that later ones have not overwritten, oldest first.
    #[must_use]
    pub fn intact_messages(self, messages: u64) -> Range<u64> {
        let first_lap = self.messages_until_end(self.base);
        let Some(later) = messages.checked_sub(first_lap + 1) else { return 0..messages };
        // The messages of the last lap, and those of the previous lap that begin beyond their end.
        let in_last_cycle = later % self.messages_until_end(0) + 1;
        let advance = advance_bytes(self.message_bytes);
        let in_previous_cycle = if later < self.messages_until_end(0) {
            let covered = (in_last_cycle * advance).saturating_sub(self.base).div_ceil(advance);
            first_lap.saturating_sub(covered)
        } else {
            self.messages_until_end(0) - in_last_cycle
        };
        messages - in_last_cycle - in_previous_cycle..messages
    }
}

impl WalkSegment {
    /// Ranges that contain all bytes written by `messages` messages, and at most the bytes between them.
    #[must_use]
    pub fn written_ranges(self, messages: u64) -> [Range<u64>; 2] {
        let Some(last) = messages.checked_sub(1) else { return [0..0, 0..0] };
        let end = self.message_offset(last) + self.message_bytes;
        match messages.checked_sub(self.messages_until_end(self.base) + 1) {
            None => [self.base..end, 0..0],
            Some(later) if later < self.messages_until_end(0) => [0..end, self.base.max(end)..self.memory_bytes],
            Some(_) => [0..self.memory_bytes, 0..0],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn reference_offsets(memory_bytes: u64, base: u64, message_bytes: u64, messages: u64) -> (Vec<u64>, u64) {
        let mut base = base;
        let mut places = Vec::new();
        for _ in 0..messages {
            places.push(base);
            base += message_bytes.div_ceil(8) * 8;
            if base + message_bytes > memory_bytes {
                base = 0;
            }
        }
        (places, base)
    }

    #[test]
    fn short_messages_advance_by_eight_bytes_and_long_ones_rotate_over_six_offsets() {
        let lmax = 1 << 20;
        let memory = walk_memory_bytes(lmax);
        assert_eq!(memory, 6 * ((1 << 20) + 16));
        let places = |message_bytes| {
            let stretch = BufferWalk::new(memory).segment(message_bytes);
            (0..8).map(|n| stretch.message_offset(n)).collect::<Vec<_>>()
        };
        assert_eq!(places(1), [0, 8, 16, 24, 32, 40, 48, 56]);
        assert_eq!(places(9), [0, 16, 32, 48, 64, 80, 96, 112]);
        assert_eq!(places(lmax), [0, 1, 2, 3, 4, 5, 0, 1].map(|n| n * lmax));
    }

    #[test]
    fn the_walk_continues_across_sizes() {
        let mut walk = BufferWalk::new(walk_memory_bytes(97_420));
        walk.advance(1, 300);
        assert_eq!(walk.segment(2).base(), 2400);
        walk.advance(2, 10);
        assert_eq!(walk.segment(4096).base(), 2480);
    }

    proptest! {
        #[test]
        fn offsets_follow_the_rule(lmax in 8192_u64..20_000, share in 1_u64..=100, before in 0_u64..5000, messages in 0_u64..400) {
            let (memory, message_bytes) = (walk_memory_bytes(lmax), (lmax * share / 100).max(1));
            let mut walk = BufferWalk::new(memory);
            walk.advance(8, before);
            let stretch = walk.segment(message_bytes);
            prop_assert!(stretch.base() == walk.base || stretch.base() == 0);
            let (places, next) = reference_offsets(memory, stretch.base(), message_bytes, messages);
            for (n, place) in (0..).zip(&places) {
                prop_assert_eq!(stretch.message_offset(n), *place);
                prop_assert!(place % 8 == 0 && place + message_bytes <= memory);
            }
            walk.advance(message_bytes, messages);
            prop_assert_eq!(walk.base, next);
        }

        /// MPI forbids overlapping receives; an iteration has at most six.
        #[test]
        fn six_consecutive_messages_do_not_overlap(lmax in 8192_u64..20_000, share in 1_u64..=100, before in 0_u64..5000) {
            let (memory, message_bytes) = (walk_memory_bytes(lmax), (lmax * share / 100).max(1));
            let mut walk = BufferWalk::new(memory);
            walk.advance(8, before);
            let stretch = walk.segment(message_bytes);
            for first in 0..30 {
                for (a, b) in (first..first + LMAX_MESSAGES).flat_map(|a| (first..a).map(move |b| (a, b))) {
                    prop_assert!(stretch.message_offset(a).abs_diff(stretch.message_offset(b)) >= message_bytes, "{a} {b}");
                }
            }
        }

        #[test]
        fn intact_messages_are_those_that_no_later_message_overwrites(
            lmax in 8192_u64..9000, share in 5_u64..=100, before in 0_u64..5000, messages in 0_u64..200
        ) {
            let (memory, message_bytes) = (walk_memory_bytes(lmax), (lmax * share / 100).max(1));
            let mut walk = BufferWalk::new(memory);
            walk.advance(8, before);
            let stretch = walk.segment(message_bytes);
            let covers = |a: u64, b: u64| stretch.message_offset(a).abs_diff(stretch.message_offset(b)) < message_bytes;
            let whole: Vec<u64> = (0..messages).filter(|n| !(n + 1..messages).any(|later| covers(*n, later))).collect();
            prop_assert_eq!(stretch.intact_messages(messages).collect::<Vec<_>>(), whole);
            let touched = |byte: u64| stretch.written_ranges(messages).iter().any(|range| range.contains(&byte));
            let ends = (0..messages).flat_map(|n| [stretch.message_offset(n), stretch.message_offset(n) + message_bytes - 1]);
            prop_assert!(ends.into_iter().all(touched));
            prop_assert!(messages > 0 || !touched(0));
        }
    }
}
