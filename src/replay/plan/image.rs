//! Memory of a rank as its program had it, where nothing is compared: every address has one place, what lies together does so here, and all
//! begins at the same place in a page. So what the caches of the processor hold is what they held.

use std::collections::BTreeMap;

use beff_trace::Direction;

use super::landing::ALIGN_BYTES;

/// Stretches that are told apart. With more, those that are close together become one.
const MOST_STRETCHES: usize = 1 << 16;
/// Memory below a page apart is one stretch.
const LEAST_GAP_BYTES: u64 = ALIGN_BYTES;

/// Memory that accesses of one direction use, as the survey sees it.
#[derive(Clone, Debug)]
pub struct Stretches {
    /// Begins and ends. No two are closer together than the gap.
    known: BTreeMap<i64, i64>,
    gap_bytes: u64,
    longest_bytes: u64,
}

impl Default for Stretches {
    fn default() -> Self {
        Self { known: BTreeMap::new(), gap_bytes: LEAST_GAP_BYTES, longest_bytes: 0 }
    }
}

impl Stretches {
    /// An access. None: it ends beyond what can be counted.
    pub fn add(&mut self, begin: i64, bytes: u64) -> Option<()> {
        let end = begin.checked_add_unsigned(bytes)?;
        self.longest_bytes = self.longest_bytes.max(bytes);
        self.join(begin, end);
        while self.known.len() > MOST_STRETCHES {
            self.gap_bytes = self.gap_bytes.saturating_mul(2);
            for (begin, end) in std::mem::take(&mut self.known) {
                self.join(begin, end);
            }
        }
        Some(())
    }

    fn join(&mut self, mut begin: i64, mut end: i64) {
        let from = begin.saturating_sub_unsigned(self.gap_bytes);
        let to = end.saturating_add_unsigned(self.gap_bytes);
        let before = self.known.range(..from).next_back().filter(|(_, last)| **last >= from);
        let first = before.map_or(from, |(first, _)| *first);
        while let Some((&other, &last)) = self.known.range(first..=to).next() {
            (begin, end) = (begin.min(other), end.max(last));
            self.known.remove(&other);
        }
        self.known.insert(begin, end);
    }

    /// The places of all of it. Where it is more than `most_bytes`, places that are so far apart are one: then it is cold anyway.
    #[must_use]
    pub fn image(&self, most_bytes: u64) -> Image {
        let page = u128::from(ALIGN_BYTES);
        let (mut stretches, mut next) = (Vec::with_capacity(self.known.len()), 0_u128);
        for (&begin, &end) in &self.known {
            let at = next.next_multiple_of(page) + u128::from(behind_page(begin));
            next = at + u128::from(end.abs_diff(begin));
            stretches.push(Stretch { begin, end, at });
        }
        let most = most_bytes.max(ALIGN_BYTES) / ALIGN_BYTES * ALIGN_BYTES;
        let folded = (next > u128::from(most)).then_some(most);
        let bytes = match folded {
            None => next as u64,
            Some(most) => most.saturating_add(self.longest_bytes),
        };
        Image { stretches, folded, bytes }
    }
}

fn behind_page(address: i64) -> u64 {
    address.rem_euclid(ALIGN_BYTES as i64) as u64
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stretch {
    begin: i64,
    end: i64,
    at: u128,
}

/// Places for the memory of one direction.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Image {
    stretches: Vec<Stretch>,
    /// Places that are so far apart are one.
    folded: Option<u64>,
    bytes: u64,
}

impl Image {
    /// The place of an access that the survey saw.
    #[must_use]
    pub fn find(&self, begin: i64, bytes: u64) -> Option<u64> {
        let behind = self.stretches.partition_point(|stretch| stretch.begin <= begin);
        let stretch = self.stretches.get(behind.checked_sub(1)?)?;
        begin.checked_add_unsigned(bytes).filter(|end| *end <= stretch.end)?;
        let at = stretch.at + u128::from(begin.abs_diff(stretch.begin));
        Some(self.folded.map_or(at as u64, |most| (at % u128::from(most)) as u64))
    }

    /// True: no two addresses have one place.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.folded.is_none()
    }
}

/// The images of both directions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Images {
    /// Of writes.
    pub writes: Image,
    /// Of reads.
    pub reads: Image,
}

impl Images {
    /// That of a direction.
    #[must_use]
    pub fn of(&self, direction: Direction) -> &Image {
        match direction {
            Direction::Write => &self.writes,
            Direction::Read => &self.reads,
        }
    }

    /// Bytes of the places of a direction.
    #[must_use]
    pub fn bytes(&self, direction: Direction) -> u64 {
        self.of(direction).bytes
    }
}

/// Down to where a direct transfer of so many bytes may begin: nothing in it can need more than the power of two in its size.
#[must_use]
pub fn aligned(at: u64, bytes: u64) -> u64 {
    /// Direct transfers to memory that begins elsewhere are refused by some devices.
    const LEAST_BYTES: u64 = 64;
    let align =
        if (1..ALIGN_BYTES).contains(&bytes) { (1 << bytes.trailing_zeros()).max(LEAST_BYTES) } else { ALIGN_BYTES };
    at - at % align
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn image(accesses: &[(i64, u64)], most_bytes: u64) -> Image {
        let mut stretches = Stretches::default();
        accesses.iter().for_each(|(begin, bytes)| stretches.add(*begin, *bytes).unwrap());
        stretches.image(most_bytes)
    }

    #[test]
    fn a_ring_is_as_long_as_it_was_however_its_laps_begin() {
        let laps: Vec<(i64, u64)> = (0..1000).map(|n| (n * 3000 % 300_000 + 16, 3000)).collect();
        let ring = image(&laps, 1 << 30);
        assert_eq!(ring.bytes, 300_016);
        assert_eq!(ring.find(16, 3000), Some(16));
        assert_eq!(ring.find(297_016, 3000), Some(297_016));
        assert_eq!(ring.find(297_017, 3000), None, "the survey saw no such access");
    }

    #[test]
    fn what_is_far_apart_is_moved_together_page_by_page() {
        let far = image(&[(1 << 40, 100), (-5000, 100), (-4800, 8)], 1 << 30);
        assert_eq!(
            (far.find(-5000, 100), far.find(-4800, 8), far.find(1 << 40, 100)),
            (Some(3192), Some(3392), Some(4096))
        );
        assert_eq!((far.bytes, far.is_whole()), (4196, true));
    }

    #[test]
    fn more_than_there_is_room_for_is_folded() {
        let much = image(&[(0, 1 << 20), (5 << 20, 1 << 20), (9 << 20, 8192)], 1 << 20);
        assert!(!much.is_whole() && much.bytes == 2 << 20);
        assert_eq!(
            (much.find(0, 1 << 20), much.find((5 << 20) + 4096, 16), much.find(9 << 20, 16)),
            (Some(0), Some(4096), Some(0))
        );
    }

    #[test]
    fn direct_transfers_begin_where_they_may() {
        assert_eq!(
            [aligned(4100, 8192), aligned(5120, 1024), aligned(5130, 1032), aligned(70, 0)],
            [4096, 5120, 5120, 0]
        );
    }

    #[test]
    fn so_many_stretches_become_fewer() {
        let mut stretches = Stretches::default();
        (0..200_000).for_each(|n| stretches.add(n * 20_000, 8).unwrap());
        assert!(stretches.known.len() <= MOST_STRETCHES);
        let image = stretches.image(u64::MAX);
        assert!(image.find(199_999 * 20_000, 8).is_some() && image.find(0, 8) == Some(0));
        assert_eq!(stretches.add(i64::MAX, 1), None);
    }

    proptest! {
        #[test]
        fn every_access_has_its_place(
            all in proptest::collection::vec((-300_000_i64..300_000, 1_u64..50_000), 1..60), most in 1_u64..2_000_000
        ) {
            let image = image(&all, most);
            for (begin, bytes) in &all {
                let at = image.find(*begin, *bytes).unwrap();
                prop_assert!(at + bytes <= image.bytes);
                prop_assert_eq!(at % ALIGN_BYTES, behind_page(*begin));
            }
            if image.is_whole() {
                for (begin, bytes) in &all {
                    for (other, _) in &all {
                        let distance = other - begin;
                        if (0..*bytes as i64).contains(&distance) {
                            let (at, other) = (image.find(*begin, 1).unwrap(), image.find(*other, 1).unwrap());
                            prop_assert_eq!(other - at, distance as u64);
                        }
                    }
                }
            }
        }
    }
}
