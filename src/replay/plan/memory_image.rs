//! Memory layout of the recorded program, for replays without comparison: every address has one position, neighbouring memory stays
//! together, and page offsets are kept. So the CPU caches hold the same data as when recorded.

use std::collections::BTreeMap;

use beff_trace::Direction;

use super::landing::ALIGN_BYTES;

/// Maximum number of separate segments. Beyond it, the closest ones are merged.
const MAX_SEGMENTS: usize = 1 << 16;
/// Memory less than a page apart is one segment.
const MIN_GAP_BYTES: u64 = ALIGN_BYTES;

/// Memory used by the accesses of one direction, collected by the survey.
#[derive(Clone, Debug)]
pub struct SegmentSet {
    /// End of each segment by its begin. Their distances exceed the gap.
    segments: BTreeMap<i64, i64>,
    gap_bytes: u64,
    longest_bytes: u64,
}

impl Default for SegmentSet {
    fn default() -> Self {
        Self { segments: BTreeMap::new(), gap_bytes: MIN_GAP_BYTES, longest_bytes: 0 }
    }
}

impl SegmentSet {
    /// Adds an access; None if its end overflows.
    pub fn add_access(&mut self, begin: i64, bytes: u64) -> Option<()> {
        let end = begin.checked_add_unsigned(bytes)?;
        self.longest_bytes = self.longest_bytes.max(bytes);
        self.merge_range(begin, end);
        while self.segments.len() > MAX_SEGMENTS {
            self.gap_bytes = self.gap_bytes.saturating_mul(2);
            for (begin, end) in std::mem::take(&mut self.segments) {
                self.merge_range(begin, end);
            }
        }
        Some(())
    }

    fn merge_range(&mut self, mut begin: i64, mut end: i64) {
        let from = begin.saturating_sub_unsigned(self.gap_bytes);
        let to = end.saturating_add_unsigned(self.gap_bytes);
        let before = self.segments.range(..from).next_back().filter(|(_, last)| **last >= from);
        let first = before.map_or(from, |(first, _)| *first);
        while let Some((&other, &last)) = self.segments.range(first..=to).next() {
            (begin, end) = (begin.min(other), end.max(last));
            self.segments.remove(&other);
        }
        self.segments.insert(begin, end);
    }

    /// Positions of all segments. If they exceed `most_bytes`, positions repeat with that period: such memory is cache-cold anyway.
    #[must_use]
    pub fn image(&self, most_bytes: u64) -> MemoryImage {
        let page = u128::from(ALIGN_BYTES);
        let (mut stretches, mut next) = (Vec::with_capacity(self.segments.len()), 0_u128);
        for (&begin, &end) in &self.segments {
            let at = next.next_multiple_of(page) + u128::from(page_offset(begin));
            next = at + u128::from(end.abs_diff(begin));
            stretches.push(ImageSegment { begin, end, at });
        }
        let most = most_bytes.max(ALIGN_BYTES) / ALIGN_BYTES * ALIGN_BYTES;
        let folded = (next > u128::from(most)).then_some(most);
        let bytes = match folded {
            None => next as u64,
            Some(most) => most.saturating_add(self.longest_bytes),
        };
        MemoryImage { segments: stretches, period_bytes: folded, bytes }
    }
}

fn page_offset(address: i64) -> u64 {
    address.rem_euclid(ALIGN_BYTES as i64) as u64
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ImageSegment {
    begin: i64,
    end: i64,
    at: u128,
}

/// Positions of the memory of one direction.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MemoryImage {
    segments: Vec<ImageSegment>,
    /// Period of the positions, if they repeat.
    period_bytes: Option<u64>,
    bytes: u64,
}

impl MemoryImage {
    /// Position of an access that the survey has seen.
    #[must_use]
    pub fn address(&self, begin: i64, bytes: u64) -> Option<u64> {
        let behind = self.segments.partition_point(|stretch| stretch.begin <= begin);
        let stretch = self.segments.get(behind.checked_sub(1)?)?;
        begin.checked_add_unsigned(bytes).filter(|end| *end <= stretch.end)?;
        let at = stretch.at + u128::from(begin.abs_diff(stretch.begin));
        Some(self.period_bytes.map_or(at as u64, |most| (at % u128::from(most)) as u64))
    }

    /// True if no two addresses share a position.
    #[must_use]
    pub fn has_unique_addresses(&self) -> bool {
        self.period_bytes.is_none()
    }
}

/// Images of both directions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MemoryImages {
    /// Writes.
    pub writes: MemoryImage,
    /// Reads.
    pub reads: MemoryImage,
}

impl MemoryImages {
    /// Image of a direction.
    #[must_use]
    pub fn of(&self, direction: Direction) -> &MemoryImage {
        match direction {
            Direction::Write => &self.writes,
            Direction::Read => &self.reads,
        }
    }

    /// Size of the image of a direction.
    #[must_use]
    pub fn bytes(&self, direction: Direction) -> u64 {
        self.of(direction).bytes
    }
}

/// Aligns down to a position where a direct transfer of this size may begin: it never needs more than the power of two in its size.
#[must_use]
pub fn align_for_direct(at: u64, bytes: u64) -> u64 {
    /// Some devices refuse direct transfers to memory with a smaller alignment.
    const LEAST_BYTES: u64 = 64;
    let align =
        if (1..ALIGN_BYTES).contains(&bytes) { (1 << bytes.trailing_zeros()).max(LEAST_BYTES) } else { ALIGN_BYTES };
    at - at % align
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn image(accesses: &[(i64, u64)], most_bytes: u64) -> MemoryImage {
        let mut stretches = SegmentSet::default();
        accesses.iter().for_each(|(begin, bytes)| stretches.add_access(*begin, *bytes).unwrap());
        stretches.image(most_bytes)
    }

    #[test]
    fn a_cyclic_buffer_keeps_its_length() {
        let laps: Vec<(i64, u64)> = (0..1000).map(|n| (n * 3000 % 300_000 + 16, 3000)).collect();
        let buffer = image(&laps, 1 << 30);
        assert_eq!(buffer.bytes, 300_016);
        assert_eq!(buffer.address(16, 3000), Some(16));
        assert_eq!(buffer.address(297_016, 3000), Some(297_016));
        assert_eq!(buffer.address(297_017, 3000), None, "no such access in the survey");
    }

    #[test]
    fn distant_segments_are_packed_by_pages() {
        let far = image(&[(1 << 40, 100), (-5000, 100), (-4800, 8)], 1 << 30);
        assert_eq!(
            (far.address(-5000, 100), far.address(-4800, 8), far.address(1 << 40, 100)),
            (Some(3192), Some(3392), Some(4096))
        );
        assert_eq!((far.bytes, far.has_unique_addresses()), (4196, true));
    }

    #[test]
    fn excess_memory_is_folded() {
        let much = image(&[(0, 1 << 20), (5 << 20, 1 << 20), (9 << 20, 8192)], 1 << 20);
        assert!(!much.has_unique_addresses() && much.bytes == 2 << 20);
        assert_eq!(
            (much.address(0, 1 << 20), much.address((5 << 20) + 4096, 16), much.address(9 << 20, 16)),
            (Some(0), Some(4096), Some(0))
        );
    }

    #[test]
    fn direct_transfers_are_aligned() {
        assert_eq!(
            [
                align_for_direct(4100, 8192),
                align_for_direct(5120, 1024),
                align_for_direct(5130, 1032),
                align_for_direct(70, 0)
            ],
            [4096, 5120, 5120, 0]
        );
    }

    #[test]
    fn segments_are_bounded() {
        let mut stretches = SegmentSet::default();
        (0..200_000).for_each(|n| stretches.add_access(n * 20_000, 8).unwrap());
        assert!(stretches.segments.len() <= MAX_SEGMENTS);
        let image = stretches.image(u64::MAX);
        assert!(image.address(199_999 * 20_000, 8).is_some() && image.address(0, 8) == Some(0));
        assert_eq!(stretches.add_access(i64::MAX, 1), None);
    }

    proptest! {
        #[test]
        fn every_access_has_an_address(
            all in proptest::collection::vec((-300_000_i64..300_000, 1_u64..50_000), 1..60), most in 1_u64..2_000_000
        ) {
            let image = image(&all, most);
            for (begin, bytes) in &all {
                let at = image.address(*begin, *bytes).unwrap();
                prop_assert!(at + bytes <= image.bytes);
                prop_assert_eq!(at % ALIGN_BYTES, page_offset(*begin));
            }
            if image.has_unique_addresses() {
                for (begin, bytes) in &all {
                    for (other, _) in &all {
                        let distance = other - begin;
                        if (0..*bytes as i64).contains(&distance) {
                            let (at, other) = (image.address(*begin, 1).unwrap(), image.address(*other, 1).unwrap());
                            prop_assert_eq!(other - at, distance as u64);
                        }
                    }
                }
            }
        }
    }
}
