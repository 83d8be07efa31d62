//! Where reads land. The area is used in a round, so that what was read stays there for a while and is compared between the calls.
//! Memory of pending requests is not given away. Survey and run use the same arithmetic, so the run fits what the survey saw.

use std::collections::BTreeMap;

/// Reads land on multiples of this: direct I/O asks for it, and programs align their buffers.
pub const ALIGN_BYTES: u64 = 4096;

/// Places of the landing area that are in use.
#[derive(Clone, Debug)]
pub struct Landing {
    /// As far as the round goes.
    round_bytes: u64,
    next: u64,
    /// Begin and end of what pending requests hold.
    held: BTreeMap<u64, u64>,
    high_water: u64,
}

/// Where a read lands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Begin of its memory.
    pub at: u64,
    /// The round begins again: what was read before must have been compared.
    pub wrapped: bool,
}

impl Landing {
    /// An area whose round is about this long.
    #[must_use]
    pub fn new(round_bytes: u64) -> Self {
        Self { round_bytes, next: 0, held: BTreeMap::new(), high_water: 0 }
    }

    /// Memory for a read; `hold`: until it is released. None: beyond what can be counted.
    pub fn take(&mut self, bytes: u64, hold: bool) -> Option<Place> {
        let bytes = bytes.max(1).checked_next_multiple_of(ALIGN_BYTES)?;
        let mut wrapped = false;
        if self.next > 0 && self.next.checked_add(bytes)? > self.round_bytes {
            (self.next, wrapped) = (0, true);
        }
        // Past everything that is held and in the way.
        let mut at = self.next;
        for (begin, end) in &self.held {
            if *begin < at.checked_add(bytes)? && at < *end {
                at = *end;
            }
        }
        let end = at.checked_add(bytes)?;
        if hold {
            self.held.insert(at, end);
        }
        self.next = end;
        self.high_water = self.high_water.max(end);
        Some(Place { at, wrapped })
    }

    /// The read at this place is over.
    pub fn release(&mut self, at: u64) {
        self.held.remove(&at);
    }

    /// Bytes that were ever used.
    #[must_use]
    pub fn high_water_bytes(&self) -> u64 {
        self.high_water
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_round_begins_again_when_it_is_full() {
        let mut landing = Landing::new(3 * ALIGN_BYTES);
        let places: Vec<_> = (0..5).filter_map(|_| landing.take(100, false)).collect();
        assert_eq!(places.iter().map(|p| p.at / ALIGN_BYTES).collect::<Vec<_>>(), [0, 1, 2, 0, 1]);
        assert_eq!(places.iter().map(|p| p.wrapped).collect::<Vec<_>>(), [false, false, false, true, false]);
        assert_eq!(landing.take(u64::MAX, false), None);
    }

    proptest! {
        #[test]
        fn pending_reads_never_share_memory(steps in proptest::collection::vec((1_u64..40_000, any::<bool>()), 1..80)) {
            let mut landing = Landing::new(8 * ALIGN_BYTES);
            let mut held: Vec<(u64, u64)> = Vec::new();
            for (n, (bytes, hold)) in steps.into_iter().enumerate() {
                let place = landing.take(bytes, hold).unwrap();
                for (at, end) in &held {
                    prop_assert!(place.at + bytes <= *at || *end <= place.at);
                }
                if hold {
                    held.push((place.at, place.at + bytes));
                }
                if n % 3 == 2 && !held.is_empty() {
                    landing.release(held.remove(0).0);
                }
                prop_assert!(place.at + bytes <= landing.high_water_bytes());
            }
        }
    }
}
