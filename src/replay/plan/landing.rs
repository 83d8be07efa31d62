//! Where reads land. The area is used in a round, so that what was read stays there for a while and is compared between the calls.
//! Memory of pending requests is not given away. Survey and run use the same arithmetic, so the run fits what the survey saw.

use std::collections::BTreeMap;

/// Places are aligned to this, as far as the program did so: direct I/O asks for it.
pub const ALIGN_BYTES: u64 = 4096;

/// How far an address is behind a page. What is compared is in words, so it keeps to them.
#[must_use]
pub fn misaligned(address: i64) -> u64 {
    address.rem_euclid(ALIGN_BYTES as i64) as u64 / 8 * 8
}

/// Places of the landing area that are in use.
#[derive(Clone, Debug)]
pub struct Landing {
    /// As far as the round goes.
    round_bytes: u64,
    next: u64,
    /// Begin and end of what pending requests hold.
    held: BTreeMap<u64, u64>,
    high_water: u64,
    /// What all accesses so far would take, each behind the one before.
    asked_bytes: u64,
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
        Self { round_bytes, next: 0, held: BTreeMap::new(), high_water: 0, asked_bytes: 0 }
    }

    /// Memory for a read, so many bytes behind a page; `hold`: until it is released. None: beyond what can be counted.
    pub fn take(&mut self, misaligned: u64, bytes: u64, hold: bool) -> Option<Place> {
        self.asked_bytes = self.asked_bytes.saturating_add(bytes).saturating_add(3 * ALIGN_BYTES);
        let bytes = bytes.max(1).checked_add(misaligned)?.checked_next_multiple_of(ALIGN_BYTES)?;
        let mut wrapped = false;
        if self.next > 0 && self.next.checked_add(bytes)? > self.round_bytes {
            (self.next, wrapped) = (0, true);
        }
        // Past everything that is held and in the way.
        let mut at = self.next;
        for (begin, end) in &self.held {
            if *begin < at.checked_add(bytes)? && at < *end {
                at = end.checked_next_multiple_of(ALIGN_BYTES)?;
            }
        }
        let end = at.checked_add(bytes)?;
        let at = at + misaligned;
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

    /// Bytes that these accesses use, and any part of them: a backend that leaves some out goes round elsewhere. Where requests are pending
    /// over the end of a round a part can need more; that is refused when it is made ready.
    #[must_use]
    pub fn high_water_bytes(&self) -> u64 {
        self.high_water.max(self.asked_bytes.min(self.round_bytes))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_round_begins_again_when_it_is_full() {
        let mut landing = Landing::new(3 * ALIGN_BYTES);
        let places: Vec<_> = (0..5).filter_map(|_| landing.take(0, 100, false)).collect();
        assert_eq!(places.iter().map(|p| p.at / ALIGN_BYTES).collect::<Vec<_>>(), [0, 1, 2, 0, 1]);
        assert_eq!(places.iter().map(|p| p.wrapped).collect::<Vec<_>>(), [false, false, false, true, false]);
        assert_eq!(landing.take(0, u64::MAX, false), None);
    }

    #[test]
    fn memory_begins_where_it_did_in_its_page() {
        let mut landing = Landing::new(1 << 20);
        assert_eq!(landing.take(misaligned(4096 + 531), 4096, false).unwrap().at, 528);
        assert_eq!(landing.take(misaligned(-1), 1, false).unwrap().at, 2 * ALIGN_BYTES + 4088);
    }

    proptest! {
        #[test]
        fn a_part_of_the_accesses_fits_where_all_do(
            all in proptest::collection::vec((1_u64..40_000, any::<bool>(), 0_u64..512), 1..40),
            aligns: bool,
            round_pages in 1_u64..200
        ) {
            let new = || Landing::new(round_pages * ALIGN_BYTES);
            let (mut survey, mut run) = (new(), new());
            for (bytes, is_replayed, words) in all {
                survey.take(8 * words, bytes, false);
                if is_replayed {
                    run.take(if aligns { 0 } else { 8 * words }, bytes, false);
                }
            }
            prop_assert!(run.high_water <= survey.high_water_bytes());
        }

        #[test]
        fn pending_reads_never_share_memory(steps in proptest::collection::vec((1_u64..40_000, any::<bool>(), 0_u64..512), 1..80)) {
            let mut landing = Landing::new(8 * ALIGN_BYTES);
            let mut held: Vec<(u64, u64)> = Vec::new();
            for (n, (bytes, hold, words)) in steps.into_iter().enumerate() {
                let place = landing.take(8 * words, bytes, hold).unwrap();
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
