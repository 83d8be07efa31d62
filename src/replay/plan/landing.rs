//! Allocation of memory for reads. The area is used cyclically, so data stays for a while and is compared between calls. Memory of
//! pending requests is not reused. Survey and run use the same arithmetic, so the area suffices.

use std::collections::BTreeMap;

/// Alignment of addresses, as far as the program had it: direct I/O requires it.
pub const ALIGN_BYTES: u64 = 4096;

/// Offset of an address in its page, rounded down to words, the unit of comparison.
#[must_use]
pub fn page_misalignment(address: i64) -> u64 {
    address.rem_euclid(ALIGN_BYTES as i64) as u64 / 8 * 8
}

/// Allocator of the landing area.
#[derive(Clone, Debug)]
pub struct LandingAllocator {
    cycle_bytes: u64,
    next: u64,
    /// Begin and end of the memory of pending requests.
    held: BTreeMap<u64, u64>,
    high_water: u64,
    /// Bytes of all accesses so far, without reuse.
    requested_bytes: u64,
}

/// Memory of a read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LandingSlot {
    /// Address.
    pub at: u64,
    /// The cycle starts again: earlier reads must be compared first.
    pub wrapped: bool,
}

impl LandingAllocator {
    /// An area with a cycle of about this length.
    #[must_use]
    pub fn new(cycle_bytes: u64) -> Self {
        Self { cycle_bytes, next: 0, held: BTreeMap::new(), high_water: 0, requested_bytes: 0 }
    }

    /// Allocates memory for a read, at this offset in a page; `hold` until released. None on overflow.
    pub fn allocate(&mut self, misaligned: u64, bytes: u64, hold: bool) -> Option<LandingSlot> {
        self.requested_bytes = self.requested_bytes.saturating_add(bytes).saturating_add(3 * ALIGN_BYTES);
        let bytes = bytes.max(1).checked_add(misaligned)?.checked_next_multiple_of(ALIGN_BYTES)?;
        let mut wrapped = false;
        if self.next > 0 && self.next.checked_add(bytes)? > self.cycle_bytes {
            (self.next, wrapped) = (0, true);
        }
        // Skips memory of pending requests.
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
        Some(LandingSlot { at, wrapped })
    }

    /// Releases the memory of a completed read.
    pub fn release(&mut self, at: u64) {
        self.held.remove(&at);
    }

    /// Size that suffices for these accesses and for any subset of them: a backend that omits some wraps elsewhere. With requests pending
    /// across the end of a cycle a subset can need more; this is refused when its calls are prepared.
    #[must_use]
    pub fn high_water_bytes(&self) -> u64 {
        self.high_water.max(self.requested_bytes.min(self.cycle_bytes))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn allocation_wraps_at_the_end_of_the_cycle() {
        let mut landing = LandingAllocator::new(3 * ALIGN_BYTES);
        let places: Vec<_> = (0..5).filter_map(|_| landing.allocate(0, 100, false)).collect();
        assert_eq!(places.iter().map(|p| p.at / ALIGN_BYTES).collect::<Vec<_>>(), [0, 1, 2, 0, 1]);
        assert_eq!(places.iter().map(|p| p.wrapped).collect::<Vec<_>>(), [false, false, false, true, false]);
        assert_eq!(landing.allocate(0, u64::MAX, false), None);
    }

    #[test]
    fn misalignment_within_the_page_is_kept() {
        let mut landing = LandingAllocator::new(1 << 20);
        assert_eq!(landing.allocate(page_misalignment(4096 + 531), 4096, false).unwrap().at, 528);
        assert_eq!(landing.allocate(page_misalignment(-1), 1, false).unwrap().at, 2 * ALIGN_BYTES + 4088);
    }

    proptest! {
        #[test]
        fn a_subset_of_accesses_fits_the_area(
            all in proptest::collection::vec((1_u64..40_000, any::<bool>(), 0_u64..512), 1..40),
            aligns: bool,
            round_pages in 1_u64..200
        ) {
            let new = || LandingAllocator::new(round_pages * ALIGN_BYTES);
            let (mut survey, mut run) = (new(), new());
            for (bytes, is_replayed, words) in all {
                survey.allocate(8 * words, bytes, false);
                if is_replayed {
                    run.allocate(if aligns { 0 } else { 8 * words }, bytes, false);
                }
            }
            prop_assert!(run.high_water <= survey.high_water_bytes());
        }

        #[test]
        fn pending_reads_never_share_memory(steps in proptest::collection::vec((1_u64..40_000, any::<bool>(), 0_u64..512), 1..80)) {
            let mut landing = LandingAllocator::new(8 * ALIGN_BYTES);
            let mut held: Vec<(u64, u64)> = Vec::new();
            for (n, (bytes, hold, words)) in steps.into_iter().enumerate() {
                let place = landing.allocate(8 * words, bytes, hold).unwrap();
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
