//! Lengths of the memories, and with `--buffers reused` the place where a message begins.
//!
//! The send memory of a rank is one stream of stamps ([`beff_stamp`]), laid out once. With cyclic buffers the
//! messages walk through it ([`crate::b_eff::plan::walk`]). With reused ones there is a slot for each step, and a message is a
//! window of it that begins where (pattern, size, loop, receiver) say, and a little further with each iteration. It is received
//! in windows at another distance: so the bytes at any place of the receive memory say which iteration wrote them last, and
//! nothing is filled or copied for that.
//!
//! So with windows the bytes at every place are a function of sender, receiver, size, loop and of the iteration that wrote
//! there last. Blind spots: with 1024 beginnings, a message of another pattern or size can be equal in one case of a thousand;
//! messages that later ones have covered are not seen.

use beff_ffi::Windows;

use crate::b_eff::plan::walk::memory_bytes;
use crate::b_eff::plan::Buffers;
use beff_stamp::{mix, Generation, Stream};

/// How finely messages of a length are placed. All of them begin at a multiple of the unit, so that they are aligned alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grain {
    /// Distance of two places at which a message can begin.
    pub unit_bytes: u64,
    /// Places at which the first message of a loop can begin.
    pub starts: u64,
    /// Windows to send from, two units apart.
    pub send_windows: u64,
    /// Windows to receive into, one unit apart. Another number at another distance: iterations near each other leave
    /// different bytes wherever their windows cover each other.
    pub receive_windows: u64,
    /// Distance of the beginnings of two loops of one size in units, more than their windows.
    pub loop_distance: u64,
}

/// Cache lines: short messages are to stay in the first-level cache, as they do in programs.
const LINES: Grain = Grain { unit_bytes: 64, starts: 1024, send_windows: 17, receive_windows: 16, loop_distance: 40 };
/// Pages: libraries that let the kernel copy from process to process are slower if a page of one side is two of the other.
const PAGES: Grain =
    Grain { unit_bytes: PAGE_BYTES, starts: 64, send_windows: 3, receive_windows: 2, loop_distance: 7 };
/// Messages of this length and more begin at pages.
const PAGES_FROM_BYTES: u64 = 32 << 10;
const PAGE_BYTES: u64 = 4096;

impl Grain {
    /// The grain of messages of this length.
    #[must_use]
    pub fn of(message_bytes: u64) -> Self {
        if message_bytes < PAGES_FROM_BYTES {
            LINES
        } else {
            PAGES
        }
    }

    /// What a slot needs behind its longest message.
    fn margin_bytes(self) -> u64 {
        (self.starts + 2 * self.send_windows) * self.unit_bytes
    }
}

/// The windows to send from, and to receive into.
#[must_use]
pub fn windows(message_bytes: u64) -> [Windows; 2] {
    // Small constants.
    let grain = Grain::of(message_bytes);
    let windows =
        |count: u64, units: u64| Windows { count: count as usize, stride_bytes: (units * grain.unit_bytes) as usize };
    [windows(grain.send_windows, 2), windows(grain.receive_windows, 1)]
}

/// One loop, as sender and receiver both know it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoopKey {
    /// Index of the pattern in the plan.
    pub pattern: u64,
    /// Message size.
    pub message_bytes: u64,
    /// Number of the loop with this size.
    pub number: u64,
}

/// Sizes that are equal on all ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// Seed of the run.
    pub seed: u64,
    /// Slots: messages one rank sends in an iteration at most.
    pub slots: u64,
    /// Longest message.
    pub lmax_bytes: u64,
    /// Which memory they use.
    pub buffers: Buffers,
}

impl Layout {
    /// Length of a slot of the windows.
    #[must_use]
    pub fn slot_bytes(self) -> u64 {
        (self.lmax_bytes + LINES.margin_bytes().max(PAGES.margin_bytes())).next_multiple_of(PAGE_BYTES)
    }

    /// Memory to send from, and as much to receive into.
    #[must_use]
    pub fn memory_bytes(self) -> u64 {
        match self.buffers {
            Buffers::Cyclic => memory_bytes(self.lmax_bytes),
            Buffers::Reused => self.slots.max(1) * self.slot_bytes(),
        }
    }

    /// What is mapped for either: whole words of the stream.
    #[must_use]
    pub fn mapped_bytes(self) -> u64 {
        self.memory_bytes().next_multiple_of(8)
    }

    /// The stream of a sender: it does not repeat within its memory.
    #[must_use]
    pub fn stream(self, sender: u64) -> Stream {
        Stream::new(self.seed, Generation::First, sender, self.mapped_bytes())
    }

    /// With windows, where the first message of a loop begins in the memory of its sender.
    #[must_use]
    pub fn send_at(self, key: LoopKey, step: u64, receiver: u64) -> u64 {
        let grain = Grain::of(key.message_bytes);
        let word = mix(mix(mix(self.seed ^ receiver).wrapping_add(key.pattern)).wrapping_add(key.message_bytes));
        let start = (word % grain.starts + key.number * grain.loop_distance) % grain.starts;
        step * self.slot_bytes() + start * grain.unit_bytes
    }

    /// With windows, where messages of a step are received.
    #[must_use]
    pub fn receive_at(self, step: u64) -> u64 {
        step * self.slot_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LAYOUT: Layout = Layout { seed: 3, slots: 2, lmax_bytes: 97_420, buffers: Buffers::Reused };

    #[test]
    fn messages_stay_in_their_slots() {
        let slot = LAYOUT.slot_bytes();
        for (n, message_bytes) in (0..4000).zip([1, 4096, 32_767, 32_768, LAYOUT.lmax_bytes].into_iter().cycle()) {
            let key = LoopKey { pattern: n % 50, message_bytes, number: n % 9 };
            let [send, receive] = windows(message_bytes).map(|w| (w.count - 1) as u64 * w.stride_bytes as u64);
            for step in 0..2 {
                let at = LAYOUT.send_at(key, step, n);
                assert_eq!(at % Grain::of(message_bytes).unit_bytes, 0);
                assert!(at >= step * slot && at + send + message_bytes <= (step + 1) * slot);
                assert!(LAYOUT.receive_at(step) + receive + message_bytes <= (step + 1) * slot);
            }
        }
        assert_eq!(LAYOUT.memory_bytes(), 2 * slot);
    }

    #[test]
    fn another_loop_size_pattern_or_receiver_begins_elsewhere() {
        for message_bytes in [64, 1 << 16] {
            let key = LoopKey { pattern: 1, message_bytes, number: 3 };
            let here = LAYOUT.send_at(key, 0, 4);
            let others = [
                LAYOUT.send_at(LoopKey { pattern: 2, ..key }, 0, 4),
                LAYOUT.send_at(LoopKey { message_bytes: message_bytes + 8, ..key }, 0, 4),
                LAYOUT.send_at(LoopKey { number: 4, ..key }, 0, 4),
                LAYOUT.send_at(key, 0, 5),
            ];
            assert!(others.iter().all(|other| *other != here), "{here} {others:?}");
        }
    }

    /// The loops of one size never share a beginning, whatever the hash.
    #[test]
    fn nine_loops_have_nine_beginnings() {
        for message_bytes in [1, 1 << 20] {
            let mut all: Vec<u64> =
                (0..9).map(|number| LAYOUT.send_at(LoopKey { pattern: 0, message_bytes, number }, 0, 1)).collect();
            all.sort_unstable();
            all.dedup();
            assert_eq!(all.len(), 9);
        }
    }

    /// What a message that was never delivered leaves in place is from another iteration, and that is other bytes.
    #[test]
    fn iterations_near_each_other_leave_different_bytes() {
        for (grain, near) in [(LINES, 16), (PAGES, 5)] {
            let displacement = |i: u64| 2 * (i % grain.send_windows) as i64 - (i % grain.receive_windows) as i64;
            for i in 0..600 {
                assert!((1..=near).all(|n| displacement(i) != displacement(i + n)), "{i}");
            }
        }
    }
}
