//! Comparison of received with sent data, outside the timed loop, and diagnosis of wrong bytes.

use beff_stamp::{to_word, StampStream, POISON_BYTE};

use super::layout::BufferLayout;

/// Number of bytes that differ from the stream from `position` on, and the index of the first one.
#[must_use]
pub fn compare_bytes(stream: StampStream, position: u64, bytes: &[u8]) -> (u64, Option<usize>) {
    // Whole words at once; the bytes before and after them one by one, and all bytes if a word is wrong.
    let head = (position.wrapping_neg() % 8).min(bytes.len() as u64) as usize;
    let words = head..head + (bytes.len() - head) / 8 * 8;
    let (wrong_words, _) = stream.compare(&bytes[words.clone()], position + head as u64);
    let skipped = if wrong_words == 0 { words } else { 0..0 };
    let others = (0..skipped.start).chain(skipped.end..bytes.len());
    let mut wrong = others.filter(|n| bytes[*n] != expected_byte(stream, position + *n as u64));
    let first = wrong.next();
    (wrong.count() as u64 + u64::from(first.is_some()), first)
}

/// The byte of the stream at `position`.
#[must_use]
pub fn expected_byte(stream: StampStream, position: u64) -> u8 {
    stream.word_at_position(position / 8 * 8).to_le_bytes()[(position % 8) as usize]
}

/// A wrong byte of a message.
#[derive(Clone, Copy, Debug)]
pub struct CorruptedByte<'a> {
    /// Layout of the run.
    pub layout: BufferLayout,
    /// Number of ranks.
    pub ranks: u64,
    /// Sending rank.
    pub sender: u64,
    /// Position of the wrong byte in the sender's stream.
    pub position: u64,
    /// The actual byte.
    pub actual: u8,
    /// The actual eight bytes of its word, if all of them belong to the message.
    pub word: Option<&'a [u8]>,
}

/// Diagnosis of a wrong byte as text for the report.
#[must_use]
pub fn diagnose(w: &CorruptedByte<'_>) -> String {
    let stream = w.layout.stream(w.sender);
    let Some(word) = w.word else {
        let expected = expected_byte(stream, w.position);
        return match (w.actual ^ expected).count_ones() {
            _ if w.actual == POISON_BYTE => "never delivered: the memory is unchanged by the loop".into(),
            1 => "one bit flipped".into(),
            bits => format!("unknown data, {bits} of 8 bits differ"),
        };
    };
    let (found, expected) = (to_word(word), stream.word_at_position(w.position / 8 * 8));
    if found == u64::from_le_bytes([POISON_BYTE; 8]) {
        return "never delivered: the memory is unchanged by the loop".into();
    }
    if found == 0 {
        return "zeros".into();
    }
    if (found ^ expected).count_ones() == 1 {
        return "one bit flipped".into();
    }
    if let Some(at) = stream.position_of(found) {
        let distance = at as i128 - i128::from(w.position / 8 * 8);
        return format!(
            "data of the same sender from another location ({distance:+} bytes): another step, loop or iteration"
        );
    }
    match (0..w.ranks).filter(|rank| *rank != w.sender).find(|rank| w.layout.stream(*rank).position_of(found).is_some())
    {
        Some(rank) => format!("data of rank {rank}"),
        None => format!("unknown data, {} of 64 bits differ", (found ^ expected).count_ones()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::b_eff::plan::BufferMode;

    const LAYOUT: BufferLayout = BufferLayout { seed: 9, slots: 2, lmax_bytes: 4096, buffers: BufferMode::Cyclic };

    fn message(sender: u64, position: u64, len: usize) -> Vec<u8> {
        (0..len as u64).map(|n| expected_byte(LAYOUT.stream(sender), position + n)).collect()
    }

    #[test]
    fn right_messages_of_any_length_are_right() {
        for (position, len) in [(128, 1), (128, 7), (128, 8), (131, 9), (135, 64), (129, 3), (133, 1000)] {
            assert_eq!(compare_bytes(LAYOUT.stream(3), position, &message(3, position, len)), (0, None));
        }
    }

    #[test]
    fn every_wrong_byte_is_found_and_counted() {
        for at in [0, 5, 8, 62, 63, 66] {
            let mut bytes = message(3, 64, 67);
            bytes[at] ^= 0x40;
            assert_eq!(compare_bytes(LAYOUT.stream(3), 64, &bytes), (1, Some(at)), "{at}");
            let rest = at.min(3);
            assert_eq!(compare_bytes(LAYOUT.stream(3), 64 + rest as u64, &bytes[rest..]), (1, Some(at - rest)), "{at}");
        }
        let (wrong, first) = compare_bytes(LAYOUT.stream(3), 64, &message(2, 64, 67));
        assert!(wrong > 60 && first.is_some_and(|n| n < 3), "{wrong} {first:?}");
    }

    #[test]
    fn wrong_words_are_diagnosed() {
        let named = |word: &[u8]| {
            diagnose(&CorruptedByte {
                layout: LAYOUT,
                ranks: 4,
                sender: 3,
                position: 69,
                actual: word[5],
                word: Some(word),
            })
        };
        let mut flipped = message(3, 64, 8);
        flipped[5] ^= 1;
        assert_eq!(named(&flipped), "one bit flipped");
        assert_eq!(named(&[0; 8]), "zeros");
        assert!(named(&[POISON_BYTE; 8]).starts_with("never delivered"));
        assert_eq!(named(&message(1, 64, 8)), "data of rank 1");
        assert!(named(&message(3, 128, 8)).contains("another location (+64 bytes)"));
        assert!(named(b"garbage!").starts_with("unknown data"));
        let short = CorruptedByte { layout: LAYOUT, ranks: 4, sender: 3, position: 64, actual: 0, word: None };
        let actual = expected_byte(LAYOUT.stream(3), 64) ^ 4;
        assert_eq!(diagnose(&CorruptedByte { actual, ..short }), "one bit flipped");
    }
}
