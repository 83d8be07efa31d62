//! Lengths of the memories, and with `--buffers reused` the offsets of the messages.
//!
//! The send memory of a rank is one stream of stamps ([`beff_stamp`]), filled once. With cyclic buffers the messages walk
//! through it ([`crate::b_eff::plan::walk`]). With reused buffers there is a slot for each step, and a message is a window of
//! it at an offset that depends on (pattern, size, loop, receiver) and increases with each iteration. The receive windows have
//! another distance: the bytes at any location of the receive memory thus identify the iteration that wrote them last, without
//! any fill or copy.
//!
//! With windows, the bytes at every location are a function of sender, receiver, size, loop and the last iteration. Blind
//! spots: with 1024 offsets, a message of another pattern or size can be equal in one case of a thousand; messages overwritten
//! by later ones are not checked.

use beff_ffi::MessageWindows;

use crate::b_eff::plan::walk::walk_memory_bytes;
use crate::b_eff::plan::BufferMode;
use beff_stamp::{mix, Generation, StampStream};

/// Granularity of the offsets of messages of a length. All begin at a multiple of the unit and so have the same alignment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WindowGranularity {
    /// Distance of two offsets at which a message can begin.
    pub unit_bytes: u64,
    /// Number of offsets at which the first message of a loop can begin.
    pub starts: u64,
    /// Number of send windows, two units apart.
    pub send_windows: u64,
    /// Number of receive windows, one unit apart. Number and distance differ from those of the send windows, so that
    /// iterations close to each other leave different bytes where their windows overlap.
    pub receive_windows: u64,
    /// Distance of the offsets of two loops of one size in units, larger than their windows.
    pub loop_stride: u64,
}

/// Cache lines: short messages should remain in the first-level cache, as in applications.
const CACHE_LINE_GRANULARITY: WindowGranularity =
    WindowGranularity { unit_bytes: 64, starts: 1024, send_windows: 17, receive_windows: 16, loop_stride: 40 };
/// Pages: kernel copies between processes are slower if a page of one side spans two of the other.
const PAGE_GRANULARITY: WindowGranularity =
    WindowGranularity { unit_bytes: PAGE_BYTES, starts: 64, send_windows: 3, receive_windows: 2, loop_stride: 7 };
/// Messages of at least this length are page-aligned.
const MIN_PAGE_ALIGNED_BYTES: u64 = 32 << 10;
const PAGE_BYTES: u64 = 4096;

impl WindowGranularity {
    /// Granularity for messages of this length.
    #[must_use]
    pub fn for_message(message_bytes: u64) -> Self {
        if message_bytes < MIN_PAGE_ALIGNED_BYTES {
            CACHE_LINE_GRANULARITY
        } else {
            PAGE_GRANULARITY
        }
    }

    /// Space of a slot beyond its longest message.
    fn margin_bytes(self) -> u64 {
        (self.starts + 2 * self.send_windows) * self.unit_bytes
    }
}

/// Send and receive windows.
#[must_use]
pub fn windows(message_bytes: u64) -> [MessageWindows; 2] {
    let grain = WindowGranularity::for_message(message_bytes);
    let windows = |count: u64, units: u64| MessageWindows {
        count: count as usize,
        stride_bytes: (units * grain.unit_bytes) as usize,
    };
    [windows(grain.send_windows, 2), windows(grain.receive_windows, 1)]
}

/// Identifies one loop on sender and receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoopKey {
    /// Index of the pattern in the plan.
    pub pattern: u64,
    /// Message size.
    pub message_bytes: u64,
    /// Number of the loop among those of this size.
    pub number: u64,
}

/// Layout of the message memory, equal on all ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BufferLayout {
    /// Seed of the run.
    pub seed: u64,
    /// Slots: the most messages one rank sends in an iteration.
    pub slots: u64,
    /// Longest message.
    pub lmax_bytes: u64,
    /// Placement of the messages.
    pub buffers: BufferMode,
}

impl BufferLayout {
    /// Length of a slot.
    #[must_use]
    pub fn slot_bytes(self) -> u64 {
        (self.lmax_bytes + CACHE_LINE_GRANULARITY.margin_bytes().max(PAGE_GRANULARITY.margin_bytes()))
            .next_multiple_of(PAGE_BYTES)
    }

    /// Length of the send memory; the receive memory has the same.
    #[must_use]
    pub fn memory_bytes(self) -> u64 {
        match self.buffers {
            BufferMode::Cyclic => walk_memory_bytes(self.lmax_bytes),
            BufferMode::Reused => self.slots.max(1) * self.slot_bytes(),
        }
    }

    /// Mapped length of either: whole words of the stream.
    #[must_use]
    pub fn mapped_bytes(self) -> u64 {
        self.memory_bytes().next_multiple_of(8)
    }

    /// Stream of a sender; it does not repeat within the memory.
    #[must_use]
    pub fn stream(self, sender: u64) -> StampStream {
        StampStream::new(self.seed, Generation::First, sender, self.mapped_bytes())
    }

    /// With windows: offset of the first message of a loop in the send memory.
    #[must_use]
    pub fn send_offset(self, key: LoopKey, step: u64, receiver: u64) -> u64 {
        let grain = WindowGranularity::for_message(key.message_bytes);
        let word = mix(mix(mix(self.seed ^ receiver).wrapping_add(key.pattern)).wrapping_add(key.message_bytes));
        let start = (word % grain.starts + key.number * grain.loop_stride) % grain.starts;
        step * self.slot_bytes() + start * grain.unit_bytes
    }

    /// With windows: offset in the receive memory for messages of a step.
    #[must_use]
    pub fn receive_offset(self, step: u64) -> u64 {
        step * self.slot_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LAYOUT: BufferLayout = BufferLayout { seed: 3, slots: 2, lmax_bytes: 97_420, buffers: BufferMode::Reused };

    #[test]
    fn messages_stay_in_their_slots() {
        let slot = LAYOUT.slot_bytes();
        for (n, message_bytes) in (0..4000).zip([1, 4096, 32_767, 32_768, LAYOUT.lmax_bytes].into_iter().cycle()) {
            let key = LoopKey { pattern: n % 50, message_bytes, number: n % 9 };
            let [send, receive] = windows(message_bytes).map(|w| (w.count - 1) as u64 * w.stride_bytes as u64);
            for step in 0..2 {
                let at = LAYOUT.send_offset(key, step, n);
                assert_eq!(at % WindowGranularity::for_message(message_bytes).unit_bytes, 0);
                assert!(at >= step * slot && at + send + message_bytes <= (step + 1) * slot);
                assert!(LAYOUT.receive_offset(step) + receive + message_bytes <= (step + 1) * slot);
            }
        }
        assert_eq!(LAYOUT.memory_bytes(), 2 * slot);
    }

    #[test]
    fn another_loop_size_pattern_or_receiver_begins_elsewhere() {
        for message_bytes in [64, 1 << 16] {
            let key = LoopKey { pattern: 1, message_bytes, number: 3 };
            let here = LAYOUT.send_offset(key, 0, 4);
            let others = [
                LAYOUT.send_offset(LoopKey { pattern: 2, ..key }, 0, 4),
                LAYOUT.send_offset(LoopKey { message_bytes: message_bytes + 8, ..key }, 0, 4),
                LAYOUT.send_offset(LoopKey { number: 4, ..key }, 0, 4),
                LAYOUT.send_offset(key, 0, 5),
            ];
            assert!(others.iter().all(|other| *other != here), "{here} {others:?}");
        }
    }

    /// The loops of one size never have the same offset, whatever the hash.
    #[test]
    fn nine_loops_have_nine_beginnings() {
        for message_bytes in [1, 1 << 20] {
            let mut all: Vec<u64> =
                (0..9).map(|number| LAYOUT.send_offset(LoopKey { pattern: 0, message_bytes, number }, 0, 1)).collect();
            all.sort_unstable();
            all.dedup();
            assert_eq!(all.len(), 9);
        }
    }

    /// In place of an undelivered message there are bytes of another iteration, which differ.
    #[test]
    fn iterations_near_each_other_leave_different_bytes() {
        for (grain, near) in [(CACHE_LINE_GRANULARITY, 16), (PAGE_GRANULARITY, 5)] {
            let displacement = |i: u64| 2 * (i % grain.send_windows) as i64 - (i % grain.receive_windows) as i64;
            for i in 0..600 {
                assert!((1..=near).all(|n| displacement(i) != displacement(i + n)), "{i}");
            }
        }
    }
}
