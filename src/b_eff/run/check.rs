//! Comparing what was received with what was sent, after the clock has stopped; and what a wrong byte looks like.

use beff_stamp::{to_word, Stream, POISON_BYTE};

use super::layout::Layout;

/// Bytes of a range that are not those of the stream from `position` on: how many, and the first one.
#[must_use]
pub fn compare(stream: Stream, position: u64, bytes: &[u8]) -> (u64, Option<usize>) {
    // Whole words at once; what stands before and behind them byte by byte, as everything if a word is wrong.
    let head = (position.wrapping_neg() % 8).min(bytes.len() as u64) as usize;
    let words = head..head + (bytes.len() - head) / 8 * 8;
    let (wrong_words, _) = stream.compare(&bytes[words.clone()], position + head as u64);
    let skipped = if wrong_words == 0 { words } else { 0..0 };
    let others = (0..skipped.start).chain(skipped.end..bytes.len());
    let mut wrong = others.filter(|n| bytes[*n] != byte(stream, position + *n as u64));
    let first = wrong.next();
    (wrong.count() as u64 + u64::from(first.is_some()), first)
}

/// The byte of the stream at `position`.
#[must_use]
pub fn byte(stream: Stream, position: u64) -> u8 {
    stream.word(position / 8 * 8).to_le_bytes()[(position % 8) as usize]
}

/// A wrong place of a message.
#[derive(Clone, Copy, Debug)]
pub struct Wrong<'a> {
    /// Sizes of the run.
    pub layout: Layout,
    /// Ranks of the run.
    pub ranks: u64,
    /// Who sent.
    pub sender: u64,
    /// Position of the wrong byte in the sender's stream.
    pub position: u64,
    /// The byte found.
    pub found: u8,
    /// The eight bytes found at the word it belongs to, if all of them are of the message.
    pub word: Option<&'a [u8]>,
}

/// What it looks like, in words for the report.
#[must_use]
pub fn looks_like(w: &Wrong<'_>) -> String {
    let stream = w.layout.stream(w.sender);
    let Some(word) = w.word else {
        let expected = byte(stream, w.position);
        return match (w.found ^ expected).count_ones() {
            _ if w.found == POISON_BYTE => "never delivered: the memory holds what was there before the run".into(),
            1 => "one bit flipped".into(),
            bits => format!("unknown data, {bits} of 8 bits differ"),
        };
    };
    let (found, expected) = (to_word(word), stream.word(w.position / 8 * 8));
    if found == u64::from_le_bytes([POISON_BYTE; 8]) {
        return "never delivered: the memory holds what was there before the run".into();
    }
    if found == 0 {
        return "zeros".into();
    }
    if (found ^ expected).count_ones() == 1 {
        return "one bit flipped".into();
    }
    if let Some(at) = stream.find(found) {
        let distance = at as i128 - i128::from(w.position / 8 * 8);
        return format!(
            "data of the same sender from another place ({distance:+} bytes): another step, loop or iteration"
        );
    }
    match (0..w.ranks).filter(|rank| *rank != w.sender).find(|rank| w.layout.stream(*rank).find(found).is_some()) {
        Some(rank) => format!("data of rank {rank}"),
        None => format!("unknown data, {} of 64 bits differ", (found ^ expected).count_ones()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::b_eff::plan::Buffers;

    const LAYOUT: Layout = Layout { seed: 9, slots: 2, lmax_bytes: 4096, buffers: Buffers::Cyclic };

    fn message(sender: u64, position: u64, len: usize) -> Vec<u8> {
        (0..len as u64).map(|n| byte(LAYOUT.stream(sender), position + n)).collect()
    }

    #[test]
    fn right_messages_of_any_length_are_right() {
        for (position, len) in [(128, 1), (128, 7), (128, 8), (131, 9), (135, 64), (129, 3), (133, 1000)] {
            assert_eq!(compare(LAYOUT.stream(3), position, &message(3, position, len)), (0, None));
        }
    }

    #[test]
    fn every_wrong_byte_is_found_and_counted() {
        for at in [0, 5, 8, 62, 63, 66] {
            let mut bytes = message(3, 64, 67);
            bytes[at] ^= 0x40;
            assert_eq!(compare(LAYOUT.stream(3), 64, &bytes), (1, Some(at)), "{at}");
            let rest = at.min(3);
            assert_eq!(compare(LAYOUT.stream(3), 64 + rest as u64, &bytes[rest..]), (1, Some(at - rest)), "{at}");
        }
        let (wrong, first) = compare(LAYOUT.stream(3), 64, &message(2, 64, 67));
        assert!(wrong > 60 && first.is_some_and(|n| n < 3), "{wrong} {first:?}");
    }

    #[test]
    fn wrong_words_are_named() {
        let named = |word: &[u8]| {
            looks_like(&Wrong { layout: LAYOUT, ranks: 4, sender: 3, position: 69, found: word[5], word: Some(word) })
        };
        let mut flipped = message(3, 64, 8);
        flipped[5] ^= 1;
        assert_eq!(named(&flipped), "one bit flipped");
        assert_eq!(named(&[0; 8]), "zeros");
        assert!(named(&[POISON_BYTE; 8]).starts_with("never delivered"));
        assert_eq!(named(&message(1, 64, 8)), "data of rank 1");
        assert!(named(&message(3, 128, 8)).contains("another place (+64 bytes)"));
        assert!(named(b"garbage!").starts_with("unknown data"));
        let short = Wrong { layout: LAYOUT, ranks: 4, sender: 3, position: 64, found: 0, word: None };
        let found = byte(LAYOUT.stream(3), 64) ^ 4;
        assert_eq!(looks_like(&Wrong { found, ..short }), "one bit flipped");
    }
}
