//! Where messages begin in memory: the walk of release 3.6, which moves its buffers "cyclically, to inhibit reading from the
//! cache".
//!
//! A rank has a memory to send from and one to receive into, each with room for six messages of Lmax: two neighbours in each
//! of three dimensions. A message begins at `base` in both; then base advances by its length rounded up to 8 bytes, and returns
//! to 0 where the next one would not fit. It runs on through iterations, methods, sizes and repetitions. So short messages stream
//! through memory in steps of 8 bytes, and long ones take turns over six places.
//!
//! Two rules of ours: all ranks begin a loop at the same base, as far on as a rank with most messages came in the one before
//! (so the receiver knows where the sender was without a message), and a new size that has not room for seven messages begins
//! at 0 (so two messages of one iteration never overlap, of which MPI forbids the receives).

use std::ops::Range;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Messages of Lmax that a memory has room for: the most that one rank sends in an iteration.
pub const PLACES: u64 = 6;
/// What is added to Lmax for each of them.
const MARGIN_BYTES: u64 = 16;
/// Every message begins at a multiple of this.
const STEP_BYTES: u64 = 8;

/// Which memory the messages of a run use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Buffers {
    /// The definition: the walk.
    Cyclic,
    /// A few windows again and again, in huge pages: what caches give. Also what results from before there was a choice mean.
    #[default]
    Reused,
}

impl Buffers {
    /// The name as it is typed, printed and written.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Cyclic => "cyclic",
            Self::Reused => "reused",
        }
    }
}

/// Length of the memory to send from, and of that to receive into.
#[must_use]
pub fn memory_bytes(lmax_bytes: u64) -> u64 {
    lmax_bytes.saturating_add(MARGIN_BYTES).saturating_mul(PLACES)
}

/// Distance of the beginnings of two messages behind each other.
#[must_use]
pub fn advance_bytes(message_bytes: u64) -> u64 {
    message_bytes.next_multiple_of(STEP_BYTES)
}

/// Where the next loop begins; equal on all ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Walk {
    memory_bytes: u64,
    base: u64,
}

impl Walk {
    /// At the beginning of memories of this length.
    #[must_use]
    pub fn new(memory_bytes: u64) -> Self {
        Self { memory_bytes, base: 0 }
    }

    /// The messages of a loop with this size.
    #[must_use]
    pub fn stretch(self, message_bytes: u64) -> Stretch {
        let advance = advance_bytes(message_bytes);
        let fits = self.base + message_bytes <= self.memory_bytes;
        let apart = self.base.is_multiple_of(advance) || (PLACES + 1) * advance <= self.memory_bytes;
        Stretch { memory_bytes: self.memory_bytes, base: if fits && apart { self.base } else { 0 }, message_bytes }
    }

    /// Behind `messages` messages of this size.
    pub fn pass(&mut self, message_bytes: u64, messages: u64) {
        self.base = self.stretch(message_bytes).place(messages);
    }
}

/// The messages of one loop, in the order in which a rank comes to them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stretch {
    memory_bytes: u64,
    base: u64,
    message_bytes: u64,
}

impl Stretch {
    /// Where the first message begins.
    #[must_use]
    pub fn base(self) -> u64 {
        self.base
    }

    /// Messages from `begin` to the end of the memory.
    fn room(self, begin: u64) -> u64 {
        (self.memory_bytes - self.message_bytes - begin) / advance_bytes(self.message_bytes) + 1
    }

    /// Where message `number` begins.
    #[must_use]
    pub fn place(self, number: u64) -> u64 {
        let advance = advance_bytes(self.message_bytes);
        match number.checked_sub(self.room(self.base)) {
            None => self.base + number * advance,
            Some(later) => later % self.room(0) * advance,
        }
    }

    /// Of so many messages those that later ones have not overwritten, in the order of their age.
    #[must_use]
    pub fn left(self, messages: u64) -> Range<u64> {
        let first_lap = self.room(self.base);
        let Some(later) = messages.checked_sub(first_lap + 1) else { return 0..messages };
        // Of the last lap so many; of the one before it those that begin behind their end.
        let of_last_lap = later % self.room(0) + 1;
        let advance = advance_bytes(self.message_bytes);
        let of_lap_before = if later < self.room(0) {
            let covered = (of_last_lap * advance).saturating_sub(self.base).div_ceil(advance);
            first_lap.saturating_sub(covered)
        } else {
            self.room(0) - of_last_lap
        };
        messages - of_last_lap - of_lap_before..messages
    }
}

impl Stretch {
    /// The bytes that so many messages have been written to, and at most the bytes between them.
    #[must_use]
    pub fn touched(self, messages: u64) -> [Range<u64>; 2] {
        let Some(last) = messages.checked_sub(1) else { return [0..0, 0..0] };
        let end = self.place(last) + self.message_bytes;
        match messages.checked_sub(self.room(self.base) + 1) {
            None => [self.base..end, 0..0],
            Some(later) if later < self.room(0) => [0..end, self.base.max(end)..self.memory_bytes],
            Some(_) => [0..self.memory_bytes, 0..0],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The rule of the specification, one message after the other.
    fn by_the_rule(memory_bytes: u64, base: u64, message_bytes: u64, messages: u64) -> (Vec<u64>, u64) {
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
    fn short_messages_stream_in_steps_of_eight_bytes_and_long_ones_take_turns_over_six_places() {
        let lmax = 1 << 20;
        let memory = memory_bytes(lmax);
        assert_eq!(memory, 6 * ((1 << 20) + 16));
        let places = |message_bytes| {
            let stretch = Walk::new(memory).stretch(message_bytes);
            (0..8).map(|n| stretch.place(n)).collect::<Vec<_>>()
        };
        assert_eq!(places(1), [0, 8, 16, 24, 32, 40, 48, 56]);
        assert_eq!(places(9), [0, 16, 32, 48, 64, 80, 96, 112]);
        assert_eq!(places(lmax), [0, 1, 2, 3, 4, 5, 0, 1].map(|n| n * lmax));
    }

    #[test]
    fn it_runs_on_through_sizes() {
        let mut walk = Walk::new(memory_bytes(97_420));
        walk.pass(1, 300);
        assert_eq!(walk.stretch(2).base(), 2400);
        walk.pass(2, 10);
        assert_eq!(walk.stretch(4096).base(), 2480);
    }

    proptest! {
        #[test]
        fn places_are_those_of_the_rule(lmax in 8192_u64..20_000, share in 1_u64..=100, before in 0_u64..5000, messages in 0_u64..400) {
            let (memory, message_bytes) = (memory_bytes(lmax), (lmax * share / 100).max(1));
            let mut walk = Walk::new(memory);
            walk.pass(8, before);
            let stretch = walk.stretch(message_bytes);
            prop_assert!(stretch.base() == walk.base || stretch.base() == 0);
            let (places, next) = by_the_rule(memory, stretch.base(), message_bytes, messages);
            for (n, place) in (0..).zip(&places) {
                prop_assert_eq!(stretch.place(n), *place);
                prop_assert!(place % 8 == 0 && place + message_bytes <= memory);
            }
            walk.pass(message_bytes, messages);
            prop_assert_eq!(walk.base, next);
        }

        /// MPI forbids receives that overlap; there are six at most in one iteration.
        #[test]
        fn six_messages_behind_each_other_lie_apart(lmax in 8192_u64..20_000, share in 1_u64..=100, before in 0_u64..5000) {
            let (memory, message_bytes) = (memory_bytes(lmax), (lmax * share / 100).max(1));
            let mut walk = Walk::new(memory);
            walk.pass(8, before);
            let stretch = walk.stretch(message_bytes);
            for first in 0..30 {
                for (a, b) in (first..first + PLACES).flat_map(|a| (first..a).map(move |b| (a, b))) {
                    prop_assert!(stretch.place(a).abs_diff(stretch.place(b)) >= message_bytes, "{a} {b}");
                }
            }
        }

        #[test]
        fn what_is_left_is_what_no_later_message_covers(
            lmax in 8192_u64..9000, share in 5_u64..=100, before in 0_u64..5000, messages in 0_u64..200
        ) {
            let (memory, message_bytes) = (memory_bytes(lmax), (lmax * share / 100).max(1));
            let mut walk = Walk::new(memory);
            walk.pass(8, before);
            let stretch = walk.stretch(message_bytes);
            let covers = |a: u64, b: u64| stretch.place(a).abs_diff(stretch.place(b)) < message_bytes;
            let whole: Vec<u64> = (0..messages).filter(|n| !(n + 1..messages).any(|later| covers(*n, later))).collect();
            prop_assert_eq!(stretch.left(messages).collect::<Vec<_>>(), whole);
            let touched = |byte: u64| stretch.touched(messages).iter().any(|range| range.contains(&byte));
            let ends = (0..messages).flat_map(|n| [stretch.place(n), stretch.place(n) + message_bytes - 1]);
            prop_assert!(ends.into_iter().all(touched));
            prop_assert!(messages > 0 || !touched(0));
        }
    }
}
