//! Which accesses find their memory in the caches of the processor, because the program used the same memory just before, and the
//! places where the replay keeps such memory. Survey and run use the same rule.

use std::collections::HashMap;

use beff_trace::Direction;

use super::landing::{misaligned, ALIGN_BYTES};

/// Data moved between two uses of a buffer, up to which it counts as in the caches.
const NEAR_BYTES: u64 = 4 << 20;
/// Most bytes of places for writes, and for reads.
const AREA_BYTES: u64 = 32 << 20;
/// Buffers that are remembered at once.
const MOST_BUFFERS: usize = 1 << 16;

/// When a rank used its buffers.
#[derive(Debug, Default)]
pub struct Reuse {
    moved_bytes: u64,
    /// What had been moved behind the last use of each.
    used: HashMap<i64, u64>,
}

impl Reuse {
    /// Takes the next data access, of so many bytes. True: its buffer was used a short while ago.
    pub fn take(&mut self, buffer: Option<i64>, bytes: u64) -> bool {
        let before = self.moved_bytes;
        self.moved_bytes = before.saturating_add(bytes);
        let Some(buffer) = buffer else { return false };
        if self.used.len() >= MOST_BUFFERS {
            self.used.retain(|_, last| before - *last <= NEAR_BYTES);
            if self.used.len() >= MOST_BUFFERS {
                self.used.clear();
            }
        }
        self.used.insert(buffer, self.moved_bytes).is_some_and(|last| before - last <= NEAR_BYTES)
    }
}

/// Memory of a buffer: its address, and how far it reaches below and above.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Spot {
    at: u64,
    below: u64,
    above: u64,
}

/// Places of buffers in an area of limited size.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Spots {
    spots: HashMap<i64, Spot>,
    bytes: u64,
}

impl Spots {
    /// A place for a buffer that reaches so far below and above its address, if there is room. One that is too small is given up.
    fn want(&mut self, buffer: i64, (below, above): (u64, u64)) {
        let known = self.spots.get(&buffer);
        if known.is_some_and(|spot| below <= spot.below && above <= spot.above) {
            return;
        }
        let (known_below, known_above) = known.map_or((0, 0), |spot| (spot.below, spot.above));
        let misaligned = misaligned(buffer);
        let whole = |bytes: u64| bytes.checked_next_multiple_of(ALIGN_BYTES);
        let behind = above.max(known_above).checked_add(misaligned).and_then(whole);
        let Some((below, behind)) = whole(below.max(known_below)).zip(behind) else { return };
        let bytes = below.checked_add(behind).and_then(|bytes| bytes.checked_add(self.bytes));
        if let Some(bytes) = bytes.filter(|bytes| *bytes <= AREA_BYTES) {
            let at = self.bytes + below + misaligned;
            self.spots.insert(buffer, Spot { at, below, above: behind - misaligned });
            self.bytes = bytes;
        }
    }

    /// The address for an access that reaches so far. None: the buffer has no place, or a smaller one.
    fn find(&self, buffer: i64, (below, above): (u64, u64)) -> Option<u64> {
        let spot = self.spots.get(&buffer)?;
        (below <= spot.below && above <= spot.above).then_some(spot.at)
    }
}

/// The places of a rank: writes have theirs in the source, reads in the landing area.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hot {
    writes: Spots,
    reads: Spots,
}

impl Hot {
    /// An access to memory that was just used, which reaches so far below and above its address.
    pub fn want(&mut self, direction: Direction, buffer: Option<i64>, span: (u64, u64)) {
        let spots = match direction {
            Direction::Write => &mut self.writes,
            Direction::Read => &mut self.reads,
        };
        if let Some(buffer) = buffer.filter(|_| span != (0, 0)) {
            spots.want(buffer, span);
        }
    }

    /// Its address, from the begin of the places of its direction. Aligned down to a page it has the same memory below and above.
    #[must_use]
    pub fn find(&self, direction: Direction, buffer: Option<i64>, span: (u64, u64)) -> Option<u64> {
        let spots = match direction {
            Direction::Write => &self.writes,
            Direction::Read => &self.reads,
        };
        buffer.filter(|_| span != (0, 0)).and_then(|buffer| spots.find(buffer, span))
    }

    /// Bytes of all places of a direction.
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
    fn near_is_what_was_used_at_most_so_much_data_ago() {
        let mut reuse = Reuse::default();
        assert!(!reuse.take(Some(1), 9 << 20), "its first use");
        assert!(reuse.take(Some(1), 9 << 20), "its own size does not count");
        assert!(!reuse.take(Some(2), NEAR_BYTES));
        assert!(reuse.take(Some(1), 1));
        assert!(!reuse.take(None, NEAR_BYTES));
        assert!(!reuse.take(Some(2), 1), "one byte too far");
        assert!(!reuse.take(Some(1), 1));
        assert!(reuse.take(Some(2), 0));
    }

    #[test]
    fn a_large_ring_is_never_near() {
        let mut reuse = Reuse::default();
        assert!((0..40).all(|n| !reuse.take(Some(n % 8), 1 << 20)));
        let mut small = Reuse::default();
        assert_eq!((0..40).filter(|n| small.take(Some(n % 5), 1 << 20)).count(), 35);
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let mut reuse = Reuse::default();
        (0..3 * MOST_BUFFERS as i64).for_each(|n| assert!(!reuse.take(Some(n), 1)));
        assert!(reuse.used.len() <= MOST_BUFFERS);
    }

    #[test]
    fn a_place_grows_while_there_is_room() {
        let mut hot = Hot::default();
        let small = (0, 100);
        assert_eq!(hot.find(Direction::Write, Some(3 * PAGE), small), None);
        hot.want(Direction::Write, Some(3 * PAGE), small);
        assert_eq!(hot.find(Direction::Write, Some(3 * PAGE), small), Some(0));
        assert_eq!(hot.find(Direction::Read, Some(3 * PAGE), small), None, "reads have their own");
        assert_eq!(hot.find(Direction::Write, Some(3 * PAGE), (1, 100)), None);
        hot.want(Direction::Write, Some(3 * PAGE), (1, 1));
        assert_eq!(hot.find(Direction::Write, Some(3 * PAGE), (1, 100)), Some(2 * ALIGN_BYTES));
        hot.want(Direction::Write, Some(4 * PAGE), (0, AREA_BYTES));
        hot.want(Direction::Write, Some(5 * PAGE), (u64::MAX, u64::MAX));
        hot.want(Direction::Write, Some(6 * PAGE), (0, 0));
        assert_eq!(
            [4, 5, 6].map(|n| n * PAGE).map(|buffer| hot.find(Direction::Write, Some(buffer), (0, 0))),
            [None; 3]
        );
        assert_eq!((hot.bytes(Direction::Write), hot.bytes(Direction::Read)), (3 * ALIGN_BYTES, 0));
    }

    proptest! {
        #[test]
        fn places_of_buffers_are_apart_and_inside(wants in proptest::collection::vec((-9_i64..9, 0_u64..9000, 0_u64..9_000_000), 1..40)) {
            let mut spots = Spots::default();
            wants.iter().for_each(|(buffer, below, above)| spots.want(1040 * buffer, (*below, *above)));
            let mut taken: Vec<_> = spots.spots.values().map(|spot| (spot.at - spot.below, spot.at + spot.above)).collect();
            taken.sort_unstable();
            prop_assert!(taken.windows(2).all(|pair| pair[0].1 <= pair[1].0));
            // Aligned down it is still inside.
            prop_assert!(spots.spots.values().all(|spot| spot.at - spot.below >= spot.at % ALIGN_BYTES));
            prop_assert!(taken.iter().all(|(_, end)| *end <= spots.bytes) && spots.bytes <= AREA_BYTES);
            prop_assert!(spots.spots.iter().all(|(buffer, spot)| spot.at % ALIGN_BYTES == misaligned(*buffer)));
        }
    }
}
