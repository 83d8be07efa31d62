//! Accesses whose memory is cache-hot because the program used it just before, and the memory that the replay reuses for them. Survey and
//! run apply the same rule.

use std::collections::HashMap;

use beff_trace::Direction;

use super::landing::{page_misalignment, ALIGN_BYTES};

/// Data transferred between two uses of a buffer up to which it counts as cache-hot.
const MAX_REUSE_DISTANCE_BYTES: u64 = 4 << 20;
/// Maximum size of the area for writes, and of that for reads.
const MAX_HOT_AREA_BYTES: u64 = 32 << 20;
const MAX_TRACKED_BUFFERS: usize = 1 << 16;

/// Uses of the buffers of a rank.
#[derive(Debug, Default)]
pub struct ReuseTracker {
    moved_bytes: u64,
    /// Bytes transferred up to the end of the last use of each.
    last_used: HashMap<i64, u64>,
}

impl ReuseTracker {
    /// Records the next data access and its bytes. True if its buffer was used recently.
    pub fn record_access(&mut self, buffer: Option<i64>, bytes: u64) -> bool {
        let before = self.moved_bytes;
        self.moved_bytes = before.saturating_add(bytes);
        let Some(buffer) = buffer else { return false };
        if self.last_used.len() >= MAX_TRACKED_BUFFERS {
            self.last_used.retain(|_, last| before - *last <= MAX_REUSE_DISTANCE_BYTES);
            if self.last_used.len() >= MAX_TRACKED_BUFFERS {
                self.last_used.clear();
            }
        }
        self.last_used.insert(buffer, self.moved_bytes).is_some_and(|last| before - last <= MAX_REUSE_DISTANCE_BYTES)
    }
}

/// Memory of a buffer: its address, and its extent below and above.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct BufferSlot {
    at: u64,
    below: u64,
    above: u64,
}

/// Memory of buffers in an area of limited size.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BufferSlots {
    slots: HashMap<i64, BufferSlot>,
    bytes: u64,
}

impl BufferSlots {
    /// Reserves memory for a buffer with this extent below and above its address, if space remains. A slot that is too small is
    /// abandoned.
    fn reserve(&mut self, buffer: i64, (below, above): (u64, u64)) {
        let known = self.slots.get(&buffer);
        if known.is_some_and(|spot| below <= spot.below && above <= spot.above) {
            return;
        }
        let (known_below, known_above) = known.map_or((0, 0), |spot| (spot.below, spot.above));
        let misaligned = page_misalignment(buffer);
        let whole = |bytes: u64| bytes.checked_next_multiple_of(ALIGN_BYTES);
        let behind = above.max(known_above).checked_add(misaligned).and_then(whole);
        let Some((below, behind)) = whole(below.max(known_below)).zip(behind) else { return };
        let bytes = below.checked_add(behind).and_then(|bytes| bytes.checked_add(self.bytes));
        if let Some(bytes) = bytes.filter(|bytes| *bytes <= MAX_HOT_AREA_BYTES) {
            let at = self.bytes + below + misaligned;
            self.slots.insert(buffer, BufferSlot { at, below, above: behind - misaligned });
            self.bytes = bytes;
        }
    }

    /// Address for an access of this extent; None if the buffer has no slot or a smaller one.
    fn address(&self, buffer: i64, (below, above): (u64, u64)) -> Option<u64> {
        let spot = self.slots.get(&buffer)?;
        (below <= spot.below && above <= spot.above).then_some(spot.at)
    }
}

/// Buffer slots of a rank: for writes in the source, for reads in the landing area.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HotBuffers {
    writes: BufferSlots,
    reads: BufferSlots,
}

impl HotBuffers {
    /// Reserves memory for an access to a recently used buffer, with its extent below and above the address.
    pub fn reserve(&mut self, direction: Direction, buffer: Option<i64>, span: (u64, u64)) {
        let spots = match direction {
            Direction::Write => &mut self.writes,
            Direction::Read => &mut self.reads,
        };
        if let Some(buffer) = buffer.filter(|_| span != (0, 0)) {
            spots.reserve(buffer, span);
        }
    }

    /// Its address relative to the area of its direction. Aligned down to a page it has the same extent below and above.
    #[must_use]
    pub fn address(&self, direction: Direction, buffer: Option<i64>, span: (u64, u64)) -> Option<u64> {
        let spots = match direction {
            Direction::Write => &self.writes,
            Direction::Read => &self.reads,
        };
        buffer.filter(|_| span != (0, 0)).and_then(|buffer| spots.address(buffer, span))
    }

    /// Size of the area of a direction.
    #[must_use]
    pub fn bytes(&self, direction: Direction) -> u64 {
        match direction {
            Direction::Write => self.writes.bytes,
            Direction::Read => self.reads.bytes,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const PAGE: i64 = ALIGN_BYTES as i64;

    #[test]
    fn reuse_distance_is_limited() {
        let mut reuse = ReuseTracker::default();
        assert!(!reuse.record_access(Some(1), 9 << 20), "first use");
        assert!(reuse.record_access(Some(1), 9 << 20), "its own size does not count");
        assert!(!reuse.record_access(Some(2), MAX_REUSE_DISTANCE_BYTES));
        assert!(reuse.record_access(Some(1), 1));
        assert!(!reuse.record_access(None, MAX_REUSE_DISTANCE_BYTES));
        assert!(!reuse.record_access(Some(2), 1), "one byte too many");
        assert!(!reuse.record_access(Some(1), 1));
        assert!(reuse.record_access(Some(2), 0));
    }

    #[test]
    fn large_cyclic_buffers_are_never_hot() {
        let mut reuse = ReuseTracker::default();
        assert!((0..40).all(|n| !reuse.record_access(Some(n % 8), 1 << 20)));
        let mut small = ReuseTracker::default();
        assert_eq!((0..40).filter(|n| small.record_access(Some(n % 5), 1 << 20)).count(), 35);
    }

    #[test]
    fn tracked_buffers_are_bounded() {
        let mut reuse = ReuseTracker::default();
        (0..3 * MAX_TRACKED_BUFFERS as i64).for_each(|n| assert!(!reuse.record_access(Some(n), 1)));
        assert!(reuse.last_used.len() <= MAX_TRACKED_BUFFERS);
    }

    #[test]
    fn a_slot_grows_within_the_area() {
        let mut hot = HotBuffers::default();
        let small = (0, 100);
        assert_eq!(hot.address(Direction::Write, Some(3 * PAGE), small), None);
        hot.reserve(Direction::Write, Some(3 * PAGE), small);
        assert_eq!(hot.address(Direction::Write, Some(3 * PAGE), small), Some(0));
        assert_eq!(hot.address(Direction::Read, Some(3 * PAGE), small), None, "reads have a separate area");
        assert_eq!(hot.address(Direction::Write, Some(3 * PAGE), (1, 100)), None);
        hot.reserve(Direction::Write, Some(3 * PAGE), (1, 1));
        assert_eq!(hot.address(Direction::Write, Some(3 * PAGE), (1, 100)), Some(2 * ALIGN_BYTES));
        hot.reserve(Direction::Write, Some(4 * PAGE), (0, MAX_HOT_AREA_BYTES));
        hot.reserve(Direction::Write, Some(5 * PAGE), (u64::MAX, u64::MAX));
        hot.reserve(Direction::Write, Some(6 * PAGE), (0, 0));
        assert_eq!(
            [4, 5, 6].map(|n| n * PAGE).map(|buffer| hot.address(Direction::Write, Some(buffer), (0, 0))),
            [None; 3]
        );
        assert_eq!((hot.bytes(Direction::Write), hot.bytes(Direction::Read)), (3 * ALIGN_BYTES, 0));
    }

    proptest! {
        #[test]
        fn slots_are_disjoint_and_inside_the_area(wants in proptest::collection::vec((-9_i64..9, 0_u64..9000, 0_u64..9_000_000), 1..40)) {
            let mut spots = BufferSlots::default();
            wants.iter().for_each(|(buffer, below, above)| spots.reserve(1040 * buffer, (*below, *above)));
            let mut extents: Vec<_> = spots.slots.values().map(|spot| (spot.at - spot.below, spot.at + spot.above)).collect();
            extents.sort_unstable();
            prop_assert!(extents.windows(2).all(|pair| pair[0].1 <= pair[1].0));
            // It is still inside when aligned down.
            prop_assert!(spots.slots.values().all(|spot| spot.at - spot.below >= spot.at % ALIGN_BYTES));
            prop_assert!(extents.iter().all(|(_, end)| *end <= spots.bytes) && spots.bytes <= MAX_HOT_AREA_BYTES);
            prop_assert!(spots.slots.iter().all(|(buffer, spot)| spot.at % ALIGN_BYTES == page_misalignment(*buffer)));
        }
    }
}
