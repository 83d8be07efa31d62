//! What writes write. Every rank has an area of random words; a call takes its data from one of many begins in it, by a mix of its
//! rank and begin. So any rank knows what any call wrote, without a word being sent.

use beff_stamp as stamp;

/// Begins to choose from, at least.
const LEAST_STARTS: u64 = 64;
/// From one to the next: a page, so that direct I/O stays aligned.
const STEP_BYTES: u64 = 4096;

/// The areas of all ranks, which are alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sources {
    seed: u64,
    /// Room before the first begin, for types with a negative lower bound.
    lead_bytes: u64,
    /// Begins to choose from.
    starts: u64,
    bytes: u64,
}

impl Sources {
    /// Areas for calls whose memory reaches so far below and above its address, and begins in `walked_bytes`. None: more than can be
    /// counted.
    #[must_use]
    pub fn new(seed: u64, below_bytes: u64, above_bytes: u64, walked_bytes: u64) -> Option<Self> {
        let lead_bytes = below_bytes.checked_next_multiple_of(STEP_BYTES)?;
        let starts = (walked_bytes / STEP_BYTES).max(LEAST_STARTS);
        let begins = starts.checked_mul(STEP_BYTES)?;
        let bytes = lead_bytes.checked_add(begins)?.checked_add(above_bytes)?.checked_next_multiple_of(8)?;
        (bytes <= isize::MAX as u64).then_some(Self { seed, lead_bytes, starts, bytes })
    }

    /// Length of the area of a rank.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Address of the memory of a call, from the begin of the area of its rank.
    #[must_use]
    pub fn address(&self, rank: u32, begin_ns: u64) -> u64 {
        let mixed = stamp::mix(stamp::mix(begin_ns).wrapping_add(u64::from(rank)));
        self.lead_bytes + mixed % self.starts * STEP_BYTES
    }

    /// What is in the area of a rank.
    #[must_use]
    pub fn of_rank(&self, rank: u32) -> Words {
        Words { key: stamp::mix(stamp::mix(self.seed ^ stamp::GOLDEN).wrapping_add(u64::from(rank))) }
    }

    /// What is in a file before the first call.
    #[must_use]
    pub fn of_file(&self, file: u32) -> Words {
        Words { key: stamp::mix(stamp::mix(self.seed ^ !stamp::GOLDEN).wrapping_add(u64::from(file))) }
    }
}

/// Words without end, none of them like another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Words {
    key: u64,
}

impl Words {
    /// The bytes from `position` on.
    pub fn fill(self, position: u64, bytes: &mut [u8]) {
        let mut index = position / 8;
        let skip = (position % 8) as usize;
        let mut rest = bytes;
        if skip > 0 {
            let word = self.word(index).to_le_bytes();
            let head = rest.len().min(8 - skip);
            let (first, behind) = rest.split_at_mut(head);
            first.copy_from_slice(&word[skip..skip + head]);
            (rest, index) = (behind, index.wrapping_add(1));
        }
        let mut words = rest.chunks_exact_mut(8);
        for word in &mut words {
            word.copy_from_slice(&self.word(index).to_le_bytes());
            index = index.wrapping_add(1);
        }
        let tail = words.into_remainder();
        let word = self.word(index).to_le_bytes();
        tail.copy_from_slice(&word[..tail.len()]);
    }

    fn word(self, index: u64) -> u64 {
        stamp::mix(self.key.wrapping_add(index.wrapping_mul(stamp::GOLDEN)))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn any_part_is_part_of_the_whole(position in 0_u64..500, len in 0_usize..300) {
            let words = Sources::new(1, 0, 100, 0).unwrap().of_rank(3);
            let mut whole = [0; 800];
            words.fill(0, &mut whole);
            let mut part = vec![0; len];
            words.fill(position, &mut part);
            prop_assert_eq!(&part[..], &whole[position as usize..position as usize + len]);
        }

        #[test]
        fn all_that_a_call_touches_is_in_the_area(
            below in 0_u64..100_000, above in 0_u64..100_000, walked in 0_u64..1_000_000_000, rank: u32, begin: u64
        ) {
            let sources = Sources::new(1, below, above, walked).unwrap();
            let at = sources.address(rank, begin);
            prop_assert!(at >= below && at + above <= sources.bytes() && at.is_multiple_of(STEP_BYTES));
        }
    }

    #[test]
    fn ranks_and_files_have_words_of_their_own() {
        let sources = Sources::new(1, 0, 0, 0).unwrap();
        let first = |words: Words| words.word(0);
        assert_ne!(first(sources.of_rank(0)), first(sources.of_rank(1)));
        assert_ne!(first(sources.of_rank(0)), first(sources.of_file(0)));
        assert!(Sources::new(1, u64::MAX - 10, 0, 0).is_none() && Sources::new(1, 0, u64::MAX / 2 + 1, 0).is_none());
        assert!(Sources::new(1, 0, 0, u64::MAX).is_none());
    }

    #[test]
    fn calls_of_one_size_go_through_all_that_is_walked() {
        let sources = Sources::new(1, 0, 1024, 64 << 20).unwrap();
        let pages: std::collections::HashSet<_> = (0..20_000).map(|n| sources.address(0, n * 2000)).collect();
        assert!(pages.len() > 10_000, "{} of 16384 pages: in the caches of a processor", pages.len());
        assert_eq!(Sources::new(1, 0, 1024, 0).unwrap().bytes(), 64 * STEP_BYTES + 1024);
    }
}
