//! Which calls of a mixed pattern read: arithmetic on the position, without a list.

use crate::{Batch, Direction};

const PERCENT: u64 = 100;

/// Share of the calls that read, evenly spread: among the first `n` calls of any pattern are `n * percent / 100` reads, rounded down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadWriteMix {
    read_percent: u8,
}

impl ReadWriteMix {
    /// A mix with this share of reads.
    ///
    /// # Panics
    /// Unless it is between 1 and 99: a pattern in one direction is no mix.
    #[must_use]
    pub fn new(read_percent: u8) -> Self {
        assert!((1..100).contains(&read_percent), "{read_percent} % of reads are no mix");
        Self { read_percent }
    }

    /// Reads among the first `calls` calls.
    #[must_use]
    #[inline]
    pub fn reads_before(self, calls: u64) -> u64 {
        let percent = u64::from(self.read_percent);
        calls / PERCENT * percent + calls % PERCENT * percent / PERCENT
    }

    /// Direction of call number `call`, counted in the order of access.
    #[must_use]
    #[inline]
    pub fn direction(self, call: u64) -> Direction {
        // Repeats after 100 calls.
        let (within, percent) = (call % PERCENT, u64::from(self.read_percent));
        if (within + 1) * percent / PERCENT > within * percent / PERCENT {
            Direction::Read
        } else {
            Direction::Write
        }
    }

    /// The direction of most calls.
    #[must_use]
    pub fn majority(self) -> Direction {
        if u64::from(self.read_percent) * 2 > PERCENT {
            Direction::Read
        } else {
            Direction::Write
        }
    }

    /// The calls of `batch` in their order, divided where the direction changes.
    pub(crate) fn runs(self, batch: Batch) -> impl Iterator<Item = (Direction, Batch)> {
        let end = batch.first_call + batch.calls;
        let mut next = batch.first_call;
        std::iter::from_fn(move || {
            if next >= end {
                return None;
            }
            let (first_call, direction) = (next, self.direction(next));
            while next < end && self.direction(next) == direction {
                next += 1;
            }
            Some((direction, Batch { first_call, calls: next - first_call }))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn each_prefix_has_its_share(percent in 1_u8..100, calls in 0_u64..1000) {
            let mix = ReadWriteMix::new(percent);
            let reads = (0..calls).filter(|call| mix.direction(*call) == Direction::Read).count() as u64;
            prop_assert_eq!(reads, mix.reads_before(calls));
            prop_assert_eq!(reads, calls * u64::from(percent) / 100);
        }

        #[test]
        fn runs_are_the_calls_of_the_batch(percent in 1_u8..100, first in 0_u64..300, calls in 0_u64..300) {
            let mix = ReadWriteMix::new(percent);
            let mut next = first;
            for (direction, run) in mix.runs(Batch { first_call: first, calls }) {
                prop_assert!(run.first_call == next && run.calls > 0);
                next += run.calls;
                prop_assert!((run.first_call..next).all(|call| mix.direction(call) == direction));
            }
            prop_assert_eq!(next, first + calls);
        }
    }

    #[test]
    fn huge_numbers_have_a_direction() {
        let mix = ReadWriteMix::new(99);
        assert_eq!(mix.direction(u64::MAX), mix.direction(u64::MAX % 100));
        assert!(mix.reads_before(u64::MAX) > u64::MAX / 100 * 98);
        assert_eq!((mix.majority(), ReadWriteMix::new(50).majority()), (Direction::Read, Direction::Write));
    }
}
