//! The data: every 8-byte word of every file is defined by (seed, generation, rank, position).
//!
//! The word is an invertible mix of a key and the word's index, so a wrong word can be asked where it comes from.
//!
//! # Why it is so
//!
//! - **A window, not a fill.** The stream repeats after a period R. One period, and behind it the beginning of the next one as long
//!   as the largest call, are laid out before the clock. The bytes of any access are then the window at `p mod R`: nothing is filled
//!   or copied, and the window is aligned whenever the position is.
//! - **R is 4096 times a prime,** larger than its share of the caches. Pages stay aligned, nothing larger than a page lines up with the
//!   period, and the memory is cold, as in a program that computes between its writes.
//! - **One ring for writing and reading.** Reads land in the same windows, poisoned before the pattern; the next write refills it.
//! - **Diagnosis.** `mix` can be inverted, so a report says *one bit flipped*, *hole*, *stale*, *data of rank 4*, *of the same rank
//!   from another place*, or *never delivered*.
//!
//! Blind spots: data displaced by a multiple of R within one rank's stream equals the right data. A read that claims to have
//! delivered and did not is seen in the first period of a pattern only, unless the memory is poisoned again: later it holds the right words
//! from the lap before.
#![forbid(unsafe_code)]

/// Which writing made the data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Generation {
    /// Initial write.
    First,
    /// Rewrite.
    Second,
    /// A later writing of the same places, counted from 1.
    Later(u32),
}

impl Generation {
    /// Earlier and other writings whose data may be found in its place, in words.
    fn others(self) -> Vec<(Self, &'static str)> {
        match self {
            Self::First => vec![(Self::Second, "rewrite")],
            Self::Second => vec![(Self::First, "first write, stale")],
            Self::Later(own) => {
                let before = (own.saturating_sub(REPEATS_LOOKED_AT).max(1)..own).rev();
                [(Self::First, "first write, stale"), (Self::Second, "rewrite, stale")]
                    .into_iter()
                    .chain(before.map(|n| (Self::Later(n), "repeat before, stale")))
                    .collect()
            }
        }
    }
}

/// Earlier writings that a wrong word is compared with.
const REPEATS_LOOKED_AT: u32 = 64;

/// What the memory of a read holds before the read: no word of any stream is likely to be this.
pub const POISON_BYTE: u8 = 0xBD;
const POISON: u64 = u64::from_le_bytes([POISON_BYTE; 8]);

/// Step of the key from one word to the next: 2^64 over the golden ratio.
pub const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;
/// Multiplicative inverse of `GOLDEN` modulo 2^64.
const GOLDEN_INVERSE: u64 = inverse(GOLDEN);
const MUL1: u64 = 0xBF58_476D_1CE4_E5B9;
const MUL2: u64 = 0x94D0_49BB_1331_11EB;

/// Inverse of an odd number modulo 2^64 by Newton's iteration.
const fn inverse(odd: u64) -> u64 {
    let mut x = odd;
    let mut n = 0;
    while n < 6 {
        x = x.wrapping_mul(2_u64.wrapping_sub(odd.wrapping_mul(x)));
        n += 1;
    }
    x
}

/// The finalizer of SplitMix64 (Steele, Lea, Flood 2014): a bijection in which every input bit reaches every output bit.
#[inline]
pub const fn mix(z: u64) -> u64 {
    let z = (z ^ (z >> 30)).wrapping_mul(MUL1);
    let z = (z ^ (z >> 27)).wrapping_mul(MUL2);
    z ^ (z >> 31)
}

const fn unmix(z: u64) -> u64 {
    let z = z ^ (z >> 31) ^ (z >> 62);
    let z = z.wrapping_mul(inverse(MUL2));
    let z = z ^ (z >> 27) ^ (z >> 54);
    let z = z.wrapping_mul(inverse(MUL1));
    z ^ (z >> 30) ^ (z >> 60)
}

/// One rank's stream of words of one generation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stream {
    key: u64,
    period_words: u64,
}

impl Stream {
    /// The stream of `rank`, repeating after `period_bytes` (a multiple of 8).
    #[must_use]
    pub fn new(seed: u64, generation: Generation, rank: u64, period_bytes: u64) -> Self {
        let generation = match generation {
            Generation::First => 1,
            Generation::Second => 2,
            Generation::Later(n) => 2 + u64::from(n),
        };
        let key = mix(mix(mix(seed ^ GOLDEN).wrapping_add(generation)).wrapping_add(rank));
        Self { key, period_words: period_bytes / 8 }
    }

    /// The stream with this key, of this many words: for data that is not the stream of one rank.
    #[must_use]
    pub fn keyed(key: u64, period_words: u64) -> Self {
        Self { key, period_words }
    }

    /// The word of this index, whatever the period.
    #[inline]
    #[must_use]
    pub fn at(self, index: u64) -> u64 {
        mix(self.key.wrapping_add(index.wrapping_mul(GOLDEN)))
    }

    /// The word at byte position `position` (a multiple of 8) of the stream.
    #[must_use]
    pub fn word(self, position: u64) -> u64 {
        self.at((position / 8) % self.period_words)
    }

    /// The byte position within the period at which this stream has `word`, if it has it anywhere.
    #[must_use]
    pub fn find(self, word: u64) -> Option<u64> {
        let index = unmix(word).wrapping_sub(self.key).wrapping_mul(GOLDEN_INVERSE);
        (index < self.period_words).then(|| index * 8)
    }

    /// Lays the stream out from position 0 on; `bytes` may be longer than the period.
    pub fn fill(self, bytes: &mut [u8]) {
        let mut index = 0;
        for word in bytes.chunks_exact_mut(8) {
            word.copy_from_slice(&self.at(index).to_le_bytes());
            index = if index + 1 == self.period_words { 0 } else { index + 1 };
        }
    }

    /// Compares `bytes` with the stream from `position` on. Returns the number of wrong words and the byte index of
    /// the first one.
    #[must_use]
    pub fn compare(self, bytes: &[u8], position: u64) -> (u64, Option<usize>) {
        let mut index = (position / 8) % self.period_words;
        let mut wrong = 0_u64;
        let mut first = None;
        for (n, word) in bytes.chunks_exact(8).enumerate() {
            if to_word(word) != self.at(index) {
                wrong += 1;
                first.get_or_insert(n * 8);
            }
            index = if index + 1 == self.period_words { 0 } else { index + 1 };
        }
        (wrong, first)
    }
}

/// Eight bytes of a file as a word.
#[must_use]
#[inline]
pub fn to_word(bytes: &[u8]) -> u64 {
    let mut word = [0; 8];
    word.copy_from_slice(&bytes[..8]);
    u64::from_le_bytes(word)
}

/// Facts for the diagnosis of a wrong word.
#[derive(Clone, Copy, Debug)]
pub struct Suspects {
    /// Seed of the run.
    pub seed: u64,
    /// Ranks of the partition.
    pub ranks: u64,
    /// Rank whose word it should be.
    pub rank: u64,
    /// Generation it should be of.
    pub generation: Generation,
    /// Period of the streams.
    pub period_bytes: u64,
    /// Position of the word in the stream.
    pub position: u64,
}

/// What a wrong word looks like, in words for the report.
#[must_use]
pub fn diagnose(found: u64, s: &Suspects) -> String {
    let stream = |generation, rank| Stream::new(s.seed, generation, rank, s.period_bytes);
    let expected = stream(s.generation, s.rank).word(s.position);
    if found == POISON {
        return "never delivered: the memory still holds what was there before the read".into();
    }
    if found == 0 {
        return "hole (zeros)".into();
    }
    if (found ^ expected).count_ones() == 1 {
        return "one bit flipped".into();
    }
    let others = s.generation.others();
    for (other, name) in &others {
        if let Some(at) = stream(*other, s.rank).find(found) {
            return format!("data of the {name}{}", elsewhere(at, s));
        }
    }
    if let Some(at) = stream(s.generation, s.rank).find(found) {
        return format!("data of the same rank{}", elsewhere(at, s));
    }
    // A handful of multiplications per rank: also for very large partitions quicker than a disk access.
    for rank in (0..s.ranks).filter(|r| *r != s.rank) {
        for generation in [s.generation].into_iter().chain(others.iter().map(|(other, _)| *other)) {
            if let Some(at) = stream(generation, rank).find(found) {
                return format!("data of rank {rank}{}", elsewhere(at, s));
            }
        }
    }
    format!("unknown data, {} bits differ", (found ^ expected).count_ones())
}

fn elsewhere(at: u64, s: &Suspects) -> String {
    let expected = s.position % s.period_bytes;
    if at == expected {
        String::new()
    } else {
        format!(" from another place ({:+} bytes in the stream)", at as i128 - i128::from(expected))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const PERIOD: u64 = 4096 * 257;

    fn suspects() -> Suspects {
        Suspects { seed: 7, ranks: 5, rank: 2, generation: Generation::Second, period_bytes: PERIOD, position: 4096 }
    }

    #[test]
    fn mix_is_inverted() {
        for z in [0, 1, u64::MAX, GOLDEN, 0x0123_4567_89AB_CDEF] {
            assert_eq!(unmix(mix(z)), z);
        }
        assert_eq!(GOLDEN.wrapping_mul(GOLDEN_INVERSE), 1);
    }

    #[test]
    fn the_layout_repeats_after_the_period() {
        let stream = Stream::new(1, Generation::First, 0, PERIOD);
        let mut bytes = vec![0; (PERIOD + 8192) as usize];
        stream.fill(&mut bytes);
        assert_eq!(bytes[..8192], bytes[PERIOD as usize..]);
        assert_eq!(stream.compare(&bytes, 0), (0, None));
        assert_eq!(to_word(&bytes[800..]), stream.word(PERIOD * 3 + 800));
    }

    #[test]
    fn every_wrong_word_is_counted_and_the_first_is_told() {
        let stream = Stream::new(1, Generation::First, 0, 4096);
        let mut bytes = vec![0; 4096];
        stream.fill(&mut bytes);
        for at in (0..4096).rev() {
            bytes[at] ^= 0x10;
            let first = at / 8 * 8;
            let words = (4096 - first) / 8;
            assert_eq!(stream.compare(&bytes, 0), (words as u64, Some(first)), "byte {at}");
        }
    }

    #[test]
    fn wrong_words_are_named() {
        let s = suspects();
        let right = Stream::new(7, Generation::Second, 2, PERIOD).word(4096);
        assert_eq!(diagnose(right ^ 64, &s), "one bit flipped");
        assert_eq!(diagnose(0, &s), "hole (zeros)");
        assert!(diagnose(POISON, &s).starts_with("never delivered"));
        let stale = Stream::new(7, Generation::First, 2, PERIOD).word(4096);
        assert_eq!(diagnose(stale, &s), "data of the first write, stale");
        let again = Suspects { generation: Generation::Later(3), ..s };
        for (generation, name) in [
            (Generation::First, "data of the first write, stale"),
            (Generation::Second, "data of the rewrite, stale"),
            (Generation::Later(2), "data of the repeat before, stale"),
        ] {
            assert_eq!(diagnose(Stream::new(7, generation, 2, PERIOD).word(4096), &again), name);
        }
        let other = Stream::new(7, Generation::Second, 4, PERIOD).word(4096);
        assert_eq!(diagnose(other, &s), "data of rank 4");
        let moved = Stream::new(7, Generation::Second, 2, PERIOD).word(4096 - 512);
        assert_eq!(diagnose(moved, &s), "data of the same rank from another place (-512 bytes in the stream)");
    }

    proptest! {
        #[test]
        fn streams_differ_in_every_argument(seed: u64, rank in 0_u64..1000, position in 0_u64..100_000) {
            let position = position * 8;
            let word = |seed, generation, rank| Stream::new(seed, generation, rank, PERIOD).word(position);
            let here = word(seed, Generation::First, rank);
            prop_assert_ne!(here, word(seed, Generation::Second, rank));
            prop_assert_ne!(here, word(seed, Generation::First, rank + 1));
            prop_assert_ne!(here, word(seed ^ 1, Generation::First, rank));
            prop_assert_eq!(Stream::new(seed, Generation::First, rank, PERIOD).find(here), Some(position % PERIOD));
        }
    }
}
