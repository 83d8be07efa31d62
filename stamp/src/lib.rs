//! Data of files: every 8-byte word of every file is defined by (seed, generation, rank, position).
//!
//! The word is an invertible mix of a key and the word's index, so that the origin of a wrong word can be computed.
//!
//! # Design
//!
//! - **Windows instead of fills.** The stream repeats after a period R. One period, followed by the beginning of the next one up to the
//!   length of the largest call, is generated before the timed loops. The bytes of any access are then the window at `p mod R`:
//!   nothing is filled or copied, and the window is aligned whenever the position is.
//! - **R is 4096 times a prime,** larger than its share of the caches. Pages stay aligned, no unit larger than a page is aligned with
//!   the period, and the memory is cache-cold, as in an application that computes between its writes.
//! - **One transfer buffer for writing and reading.** Reads use the same windows, poisoned before the pattern; the next write refills it.
//! - **Diagnosis.** `mix` is invertible, so a report can state *one bit flipped*, *hole*, *stale*, *data of rank 4*, *of the same rank
//!   from another location*, or *never delivered*.
//!
//! Blind spots: data displaced by a multiple of R within the stream of one rank equals the correct data. A read that reports success
//! without delivering data is detected only in the first period of a pattern, unless the memory is poisoned again: later the memory
//! contains the correct words of the previous period.
#![forbid(unsafe_code)]

/// Generation of the data: the write that produced it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Generation {
    /// Initial write.
    First,
    /// Rewrite.
    Second,
    /// A later write of the same locations, counted from 1.
    Later(u32),
}

impl Generation {
    /// Other generations whose data may appear instead, with their names.
    fn other_generations(self) -> Vec<(Self, &'static str)> {
        match self {
            Self::First => vec![(Self::Second, "rewrite")],
            Self::Second => vec![(Self::First, "first write, stale")],
            Self::Later(own) => {
                let before = (own.saturating_sub(MAX_EARLIER_REPETITIONS).max(1)..own).rev();
                [(Self::First, "first write, stale"), (Self::Second, "rewrite, stale")]
                    .into_iter()
                    .chain(before.map(|n| (Self::Later(n), "previous repetition, stale")))
                    .collect()
            }
        }
    }
}

/// Number of earlier repetitions that a wrong word is compared with.
const MAX_EARLIER_REPETITIONS: u32 = 64;

/// Fill pattern of the memory before a read; no stream is likely to contain such a word.
pub const POISON_BYTE: u8 = 0xBD;
const POISON: u64 = u64::from_le_bytes([POISON_BYTE; 8]);

/// Increment of the key from one word to the next: 2^64 divided by the golden ratio.
pub const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;
const GOLDEN_INVERSE: u64 = inverse(GOLDEN);
const MUL1: u64 = 0xBF58_476D_1CE4_E5B9;
const MUL2: u64 = 0x94D0_49BB_1331_11EB;

/// Inverse of an odd number modulo 2^64 by Newton's iteration.
#[must_use]
pub const fn inverse(odd: u64) -> u64 {
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
pub struct StampStream {
    key: u64,
    period_words: u64,
}

impl StampStream {
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

    /// Stream with this key and number of words: for data that is not the stream of one rank.
    #[must_use]
    pub fn keyed(key: u64, period_words: u64) -> Self {
        Self { key, period_words }
    }

    /// Word at an index, without regard to the period.
    #[inline]
    #[must_use]
    pub fn word_at(self, index: u64) -> u64 {
        mix(self.key.wrapping_add(index.wrapping_mul(GOLDEN)))
    }

    /// Word at byte position `position` (a multiple of 8) of the stream.
    #[must_use]
    pub fn word_at_position(self, position: u64) -> u64 {
        self.word_at((position / 8) % self.period_words)
    }

    /// Byte position of `word` within the period, if the stream contains it.
    #[must_use]
    pub fn position_of(self, word: u64) -> Option<u64> {
        let index = unmix(word).wrapping_sub(self.key).wrapping_mul(GOLDEN_INVERSE);
        (index < self.period_words).then(|| index * 8)
    }

    /// Fills `bytes` with the stream from position 0; `bytes` may be longer than the period.
    pub fn fill(self, bytes: &mut [u8]) {
        let mut index = 0;
        for word in bytes.as_chunks_mut().0 {
            *word = self.word_at(index).to_le_bytes();
            index = if index + 1 == self.period_words { 0 } else { index + 1 };
        }
    }

    /// Fills `bytes` with the stream from byte `position` on, at any alignment and without regard to the period.
    pub fn fill_from(self, position: u64, bytes: &mut [u8]) {
        let cut = (position % 8) as usize;
        let (head, body) = bytes.split_at_mut((cut.wrapping_neg() % 8).min(bytes.len()));
        head.copy_from_slice(&self.word_at(position / 8).to_le_bytes()[cut..][..head.len()]);
        let (words, tail) = body.as_chunks_mut();
        let mut index = position.div_ceil(8);
        for word in words {
            *word = self.word_at(index).to_le_bytes();
            index += 1;
        }
        tail.copy_from_slice(&self.word_at(index).to_le_bytes()[..tail.len()]);
    }

    /// Index in `bytes` of the first 8-byte word that is not that of the stream, which begins with the word at `index` and has no period.
    #[must_use]
    pub fn first_wrong_word(self, index: u64, bytes: &[u8]) -> Option<usize> {
        let mut words = bytes.as_chunks().0.iter().zip(index..);
        Some(words.position(|(word, index)| u64::from_le_bytes(*word) != self.word_at(index))? * 8)
    }

    /// Compares `bytes` with the stream from `position` on. Returns the number of wrong words and the byte index of the first one.
    #[must_use]
    pub fn compare(self, bytes: &[u8], position: u64) -> (u64, Option<usize>) {
        let mut index = (position / 8) % self.period_words;
        let mut wrong = 0_u64;
        let mut first = None;
        for (n, word) in bytes.as_chunks().0.iter().enumerate() {
            if u64::from_le_bytes(*word) != self.word_at(index) {
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

/// Context for the diagnosis of a wrong word.
#[derive(Clone, Copy, Debug)]
pub struct WordContext {
    /// Seed of the run.
    pub seed: u64,
    /// Ranks of the partition.
    pub ranks: u64,
    /// Rank of the expected word.
    pub rank: u64,
    /// Generation of the expected word.
    pub generation: Generation,
    /// Period of the streams.
    pub period_bytes: u64,
    /// Position of the word in the stream.
    pub position: u64,
}

/// Diagnosis of a wrong word as text for the report.
#[must_use]
pub fn diagnose(found: u64, s: &WordContext) -> String {
    let stream = |generation, rank| StampStream::new(s.seed, generation, rank, s.period_bytes);
    let expected = stream(s.generation, s.rank).word_at_position(s.position);
    if found == POISON {
        return "never delivered: the memory is unchanged by the read".into();
    }
    if found == 0 {
        return "hole (zeros)".into();
    }
    if (found ^ expected).count_ones() == 1 {
        return "one bit flipped".into();
    }
    let others = s.generation.other_generations();
    for (other, name) in &others {
        if let Some(at) = stream(*other, s.rank).position_of(found) {
            return format!("data of the {name}{}", displacement_text(at, s));
        }
    }
    if let Some(at) = stream(s.generation, s.rank).position_of(found) {
        return format!("data of the same rank{}", displacement_text(at, s));
    }
    // A few multiplications per rank: faster than a disk access even for very large partitions.
    for rank in (0..s.ranks).filter(|r| *r != s.rank) {
        for generation in [s.generation].into_iter().chain(others.iter().map(|(other, _)| *other)) {
            if let Some(at) = stream(generation, rank).position_of(found) {
                return format!("data of rank {rank}{}", displacement_text(at, s));
            }
        }
    }
    format!("unknown data, {} bits differ", (found ^ expected).count_ones())
}

fn displacement_text(at: u64, s: &WordContext) -> String {
    let expected = s.position % s.period_bytes;
    if at == expected {
        String::new()
    } else {
        format!(" from another location ({:+} bytes in the stream)", at as i128 - i128::from(expected))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const PERIOD: u64 = 4096 * 257;

    fn suspects() -> WordContext {
        WordContext { seed: 7, ranks: 5, rank: 2, generation: Generation::Second, period_bytes: PERIOD, position: 4096 }
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
        let stream = StampStream::new(1, Generation::First, 0, PERIOD);
        let mut bytes = vec![0; (PERIOD + 8192) as usize];
        stream.fill(&mut bytes);
        assert_eq!(bytes[..8192], bytes[PERIOD as usize..]);
        assert_eq!(stream.compare(&bytes, 0), (0, None));
        assert_eq!(to_word(&bytes[800..]), stream.word_at_position(PERIOD * 3 + 800));
    }

    #[test]
    fn any_part_is_part_of_the_whole() {
        let stream = StampStream::keyed(7, 1);
        let mut whole = [0; 64];
        stream.fill_from(0, &mut whole);
        assert_eq!(to_word(&whole[40..]), stream.word_at(5));
        for (begin, end) in (0..whole.len()).flat_map(|begin| (begin..=whole.len()).map(move |end| (begin, end))) {
            let mut part = vec![0; end - begin];
            stream.fill_from(begin as u64, &mut part);
            assert_eq!(part, whole[begin..end], "{begin}..{end}");
        }
        assert_eq!(stream.first_wrong_word(0, &whole), None);
        whole[41] ^= 1;
        assert_eq!(
            (stream.first_wrong_word(0, &whole), stream.first_wrong_word(2, &whole[16..])),
            (Some(40), Some(24))
        );
    }

    #[test]
    fn every_wrong_word_is_counted_and_the_first_is_returned() {
        let stream = StampStream::new(1, Generation::First, 0, 4096);
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
    fn wrong_words_are_diagnosed() {
        let s = suspects();
        let right = StampStream::new(7, Generation::Second, 2, PERIOD).word_at_position(4096);
        assert_eq!(diagnose(right ^ 64, &s), "one bit flipped");
        assert_eq!(diagnose(0, &s), "hole (zeros)");
        assert!(diagnose(POISON, &s).starts_with("never delivered"));
        let stale = StampStream::new(7, Generation::First, 2, PERIOD).word_at_position(4096);
        assert_eq!(diagnose(stale, &s), "data of the first write, stale");
        let again = WordContext { generation: Generation::Later(3), ..s };
        for (generation, name) in [
            (Generation::First, "data of the first write, stale"),
            (Generation::Second, "data of the rewrite, stale"),
            (Generation::Later(2), "data of the previous repetition, stale"),
        ] {
            assert_eq!(diagnose(StampStream::new(7, generation, 2, PERIOD).word_at_position(4096), &again), name);
        }
        let other = StampStream::new(7, Generation::Second, 4, PERIOD).word_at_position(4096);
        assert_eq!(diagnose(other, &s), "data of rank 4");
        let moved = StampStream::new(7, Generation::Second, 2, PERIOD).word_at_position(4096 - 512);
        assert_eq!(diagnose(moved, &s), "data of the same rank from another location (-512 bytes in the stream)");
    }

    proptest! {
        #[test]
        fn streams_differ_in_every_argument(seed: u64, rank in 0_u64..1000, position in 0_u64..100_000) {
            let position = position * 8;
            let word = |seed, generation, rank| StampStream::new(seed, generation, rank, PERIOD).word_at_position(position);
            let here = word(seed, Generation::First, rank);
            prop_assert_ne!(here, word(seed, Generation::Second, rank));
            prop_assert_ne!(here, word(seed, Generation::First, rank + 1));
            prop_assert_ne!(here, word(seed ^ 1, Generation::First, rank));
            prop_assert_eq!(StampStream::new(seed, Generation::First, rank, PERIOD).position_of(here), Some(position % PERIOD));
        }
    }
}
