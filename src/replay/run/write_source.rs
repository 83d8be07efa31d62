//! Data of writes. Every rank has an area of random words; a call takes its data from one of many start positions, chosen by a hash of
//! its rank and begin. So any rank knows the data of any call without communication.

use beff_stamp::{self as stamp, StampStream};

const MIN_STARTS: u64 = 64;
/// Distance of start positions: a page, which keeps direct I/O aligned.
const STEP_BYTES: u64 = 4096;

/// The areas of all ranks, which have equal layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WriteSources {
    seed: u64,
    /// Space before the first start position, for types with a negative lower bound.
    lead_in_bytes: u64,
    starts: u64,
    bytes: u64,
}

impl WriteSources {
    /// Areas for calls with this extent of memory below and above their address, which begin within `walked_bytes`. None on overflow.
    #[must_use]
    pub fn new(seed: u64, below_bytes: u64, above_bytes: u64, walked_bytes: u64) -> Option<Self> {
        let lead_bytes = below_bytes.checked_next_multiple_of(STEP_BYTES)?;
        let starts = (walked_bytes / STEP_BYTES).max(MIN_STARTS);
        let begins = starts.checked_mul(STEP_BYTES)?;
        let bytes = lead_bytes.checked_add(begins)?.checked_add(above_bytes)?.checked_next_multiple_of(8)?;
        (bytes <= isize::MAX as u64).then_some(Self { seed, lead_in_bytes: lead_bytes, starts, bytes })
    }

    /// Length of the area of a rank.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Address of the memory of a call, relative to the area of its rank.
    #[must_use]
    pub fn address(&self, rank: u32, begin_ns: u64) -> u64 {
        let mixed = stamp::mix(stamp::mix(begin_ns).wrapping_add(u64::from(rank)));
        self.lead_in_bytes + mixed % self.starts * STEP_BYTES
    }

    /// Content of the area of a rank.
    #[must_use]
    pub fn rank_words(&self, rank: u32) -> StampStream {
        Self::words(stamp::mix(self.seed ^ stamp::GOLDEN).wrapping_add(u64::from(rank)))
    }

    /// Initial content of a file.
    #[must_use]
    pub fn file_words(&self, file: u32) -> StampStream {
        Self::words(stamp::mix(self.seed ^ !stamp::GOLDEN).wrapping_add(u64::from(file)))
    }

    /// Words without a period.
    fn words(key: u64) -> StampStream {
        StampStream::keyed(stamp::mix(key), u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_memory_of_a_call_is_inside_the_area(
            below in 0_u64..100_000, above in 0_u64..100_000, walked in 0_u64..1_000_000_000, rank: u32, begin: u64
        ) {
            let sources = WriteSources::new(1, below, above, walked).unwrap();
            let at = sources.address(rank, begin);
            prop_assert!(at >= below && at + above <= sources.bytes() && at.is_multiple_of(STEP_BYTES));
        }
    }

    #[test]
    fn ranks_and_files_have_different_words() {
        let sources = WriteSources::new(1, 0, 0, 0).unwrap();
        let first = |words: StampStream| words.word_at(0);
        assert_ne!(first(sources.rank_words(0)), first(sources.rank_words(1)));
        assert_ne!(first(sources.rank_words(0)), first(sources.file_words(0)));
        assert!(
            WriteSources::new(1, u64::MAX - 10, 0, 0).is_none()
                && WriteSources::new(1, 0, u64::MAX / 2 + 1, 0).is_none()
        );
        assert!(WriteSources::new(1, 0, 0, u64::MAX).is_none());
    }

    #[test]
    fn calls_of_one_size_use_the_whole_area() {
        let sources = WriteSources::new(1, 0, 1024, 64 << 20).unwrap();
        let pages: std::collections::HashSet<_> = (0..20_000).map(|n| sources.address(0, n * 2000)).collect();
        assert!(pages.len() > 10_000, "{} of 16384 pages: cache-hot", pages.len());
        assert_eq!(WriteSources::new(1, 0, 1024, 0).unwrap().bytes(), 64 * STEP_BYTES + 1024);
    }
}
