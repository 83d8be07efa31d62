//! The data of the files: every byte is a function of its offset in the file, whoever writes it.
//!
//! A row has a stream of bytes of its own, made of the words of [`beff_stamp`]. Sample j of X bytes lies at file
//! offset j X and holds the bytes of the stream from (j mod W) X on. Normally the lap of W samples is the whole file, and the
//! offset is the position in the stream; a lap that is shorter repeats. A private file, where X is the part of its rank, has
//! a stream of its own.
//!
//! An existing file that is to be written holds the complement of every byte before.
//!
//! With a shared pointer outside of collective calls the order of arrival is unknown. Then each record is asked where in the stream
//! it stands and counted off; what ranks have read must tile the file. Records below 16 bytes hold no whole word to be asked; there
//! the values of the bytes are counted over all ranks. Counts of transfers alone are not enough: past the end of the file, ROMIO
//! through a tiled view and OMPIO in `MPI_File_read_all` report whole transfers. Blind spot: of writes beyond 64 MiB in a row, data
//! of another lap.

mod arrival;
mod histogram;
#[cfg(test)]
mod tests;

use std::ops::Range;

pub use super::data::arrival::{tile, Expected, Record};
pub use super::data::histogram::Histogram;

use crate::frame::run::pieces::pieces;
use beff_stamp::{mix, to_word, Stream, GOLDEN, POISON_BYTE};

/// Bytes of this length hold a whole word however they lie.
const WORD_INSIDE_BYTES: usize = 15;
/// Likewise across the end of a lap that cuts a word: up to 7 bytes in front of a word, up to 7 of the one that is cut, and
/// the first one of the lap.
const WORD_BEHIND_CUT_BYTES: usize = 22;

/// What a diagnosis looks at, from the wrong byte on.
pub(super) const LOOK_BYTES: usize = 64;
/// What [`Data::fill_before`] laid out, in words.
const BEFORE: &str = "never written: the file holds what was there before";
/// Earlier rows whose data may still be there.
const EARLIER_ROWS: u64 = 8;
/// Owners whose data is looked for in another's file. A handful of multiplications each.
const OWNERS: u64 = 1 << 12;
/// Positions looked at in streams of other rows and owners, whose laps are not known: more than any lap has, and still few
/// enough that no other word is likely to be there.
const ANY_LAP_BYTES: u64 = 1 << 48;
/// Kind of data, mixed into the key: the generations of b_eff_io are 1 and 2.
const KIND: u64 = 3;

/// The data of one row, or of one private file of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Data {
    seed: u64,
    row: u64,
    owner: Option<u64>,
    sample_bytes: u64,
    lap_bytes: u64,
    stream: Stream,
}

/// Result of a comparison.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wrong {
    /// Bytes that differ.
    pub bytes_wrong: u64,
    /// The first of them: its index in what was compared, the byte expected and the byte found.
    pub first: Option<(usize, u8, u8)>,
}

impl Data {
    /// The data of row `row` for samples of `sample_bytes`, repeating after `lap_steps` of them. Another `owner` is another
    /// stream: the rank of a private file, or the group where several groups have one file each.
    #[must_use]
    pub fn new(seed: u64, row: u64, owner: Option<u64>, sample_bytes: u64, lap_steps: u64) -> Self {
        Self::with_lap(seed, row, owner, sample_bytes, sample_bytes.saturating_mul(lap_steps))
    }

    fn with_lap(seed: u64, row: u64, owner: Option<u64>, sample_bytes: u64, lap_bytes: u64) -> Self {
        let shared = mix(mix(mix(seed ^ GOLDEN).wrapping_add(KIND)).wrapping_add(row));
        let key = owner.map_or(shared, |owner| mix(shared.wrapping_add(1).wrapping_add(owner)));
        Self { seed, row, owner, sample_bytes, lap_bytes, stream: Stream::keyed(key, lap_bytes / 8) }
    }

    /// X as given.
    #[must_use]
    pub fn sample_bytes(&self) -> u64 {
        self.sample_bytes
    }

    /// Bytes after which the data repeats.
    #[must_use]
    pub fn lap_bytes(&self) -> u64 {
        self.lap_bytes
    }

    /// Position in the stream of what lies at this offset of the file: below the lap.
    #[must_use]
    pub fn position(&self, offset_bytes: u64) -> u64 {
        // An empty lap has no bytes; then nothing repeats.
        offset_bytes.checked_rem(self.lap_bytes).unwrap_or(offset_bytes)
    }

    /// Bytes that follow each other in the stream at `position`, below the lap.
    fn straight(&self, position: u64, len: usize) -> usize {
        let left_bytes = if self.lap_bytes == 0 { u64::MAX } else { self.lap_bytes - position };
        usize::try_from(left_bytes).unwrap_or(usize::MAX).min(len)
    }

    /// Lays out what is in the stream from `position` on, in the file from there as an offset: behind the lap its beginning
    /// again. Does not allocate.
    pub fn fill(&self, position: u64, bytes: &mut [u8]) {
        let mut position = self.position(position);
        let mut rest = bytes;
        while !rest.is_empty() {
            let (now, behind) = rest.split_at_mut(self.straight(position, rest.len()));
            self.fill_straight(position, now);
            (position, rest) = (0, behind);
        }
    }

    /// Lays out what an existing file holds there before it is written: the complement, so that no byte that was not written can pass
    /// for one that was.
    pub fn fill_before(&self, position: u64, bytes: &mut [u8]) {
        self.fill(position, bytes);
        bytes.iter_mut().for_each(|byte| *byte = !*byte);
    }

    fn fill_straight(&self, position: u64, bytes: &mut [u8]) {
        let mut index = position / 8;
        let (head, body) = bytes.split_at_mut(head_bytes(position, bytes.len()));
        if !head.is_empty() {
            let word = self.stream.at(index).to_le_bytes();
            let begin = (position % 8) as usize;
            head.copy_from_slice(&word[begin..begin + head.len()]);
            index += 1;
        }
        let mut words = body.chunks_exact_mut(8);
        for word in &mut words {
            word.copy_from_slice(&self.stream.at(index).to_le_bytes());
            index += 1;
        }
        let tail = words.into_remainder();
        tail.copy_from_slice(&self.stream.at(index).to_le_bytes()[..tail.len()]);
    }

    /// Compares `bytes` with what [`Data::fill`] lays out from `position` on. Does not allocate.
    #[must_use]
    pub fn compare(&self, bytes: &[u8], position: u64) -> Wrong {
        let mut wrong = Wrong::default();
        let mut position = self.position(position);
        let mut done = 0;
        while done < bytes.len() {
            let end = done + self.straight(position, bytes.len() - done);
            self.compare_straight(&bytes[done..end], position, done, &mut wrong);
            (position, done) = (0, end);
        }
        wrong
    }

    fn compare_straight(&self, bytes: &[u8], position: u64, mut at: usize, wrong: &mut Wrong) {
        let mut index = position / 8;
        let (head, body) = bytes.split_at(head_bytes(position, bytes.len()));
        if !head.is_empty() {
            wrong.look(head, self.stream.at(index) >> (8 * (position % 8)), at);
            at += head.len();
            index += 1;
        }
        let words = body.chunks_exact(8);
        let tail = words.remainder();
        for word in words {
            let expected = self.stream.at(index);
            if to_word(word) != expected {
                wrong.look(word, expected, at);
            }
            at += 8;
            index += 1;
        }
        wrong.look(tail, self.stream.at(index), at);
    }

    /// From this length on, bytes can be asked where in the stream they stand.
    #[must_use]
    pub fn findable_bytes(&self) -> u64 {
        if self.lap_bytes.is_multiple_of(8) {
            WORD_INSIDE_BYTES as u64 + 1
        } else {
            WORD_BEHIND_CUT_BYTES as u64
        }
    }

    /// The position in the stream, below the lap, at which these bytes stand, if they are of this stream: from
    /// [`Data::findable_bytes`] on they are not missed. The first 22 bytes decide.
    #[must_use]
    pub fn find(&self, bytes: &[u8]) -> Option<u64> {
        let bytes = &bytes[..bytes.len().min(WORD_BEHIND_CUT_BYTES)];
        let (index, word_at) = self.first_word(bytes)?;
        // What is in front of the first word may be the end of the lap.
        let before = index as u64;
        let position = match word_at.checked_sub(before) {
            Some(position) => position,
            None => self.lap_bytes.checked_sub(before - word_at)?,
        };
        (self.compare(bytes, position).bytes_wrong == 0).then_some(position)
    }

    /// The first word of this stream in these bytes: its index in them, and its position in the stream. A word that is not of
    /// the stream passes for one with the probability 2^-64 per word of the lap.
    fn first_word(&self, bytes: &[u8]) -> Option<(usize, u64)> {
        bytes.windows(8).enumerate().find_map(|(index, word)| Some((index, self.stream.find(to_word(word))?)))
    }

    /// The position of a window that was read, if all of it is of this stream.
    #[must_use]
    pub fn identify(&self, window: &[u8]) -> Option<u64> {
        self.find(window).filter(|position| self.compare(window, *position).bytes_wrong == 0)
    }

    /// How often each value of a byte occurs in these bytes of the file.
    #[must_use]
    pub fn histogram(&self, range: Range<u64>) -> Histogram {
        let laps = (range.end - range.start).checked_div(self.lap_bytes).unwrap_or(0);
        let mut all = Histogram::default();
        if laps > 0 {
            self.count(0..self.lap_bytes, &mut all);
            all.as_mut_slice().iter_mut().for_each(|count| *count *= laps);
        }
        // Any lap has all of them, wherever it begins.
        self.count(range.start + laps * self.lap_bytes..range.end, &mut all);
        all
    }

    fn count(&self, positions: Range<u64>, into: &mut Histogram) {
        let mut bytes = [0; 4096];
        for (begin, len) in pieces(positions, bytes.len() as u64) {
            self.fill(begin, &mut bytes[..len]);
            into.add(&bytes[..len]);
        }
    }

    /// What wrong data looks like, in words for the report. `bytes` is what was found from the wrong byte on, with 16 bytes
    /// or more if there are as many; `position` is the place of the wrong byte in the file or the stream.
    #[must_use]
    pub fn diagnose(&self, bytes: &[u8], position: u64) -> String {
        let bytes = &bytes[..bytes.len().min(LOOK_BYTES)];
        let mut expected = [0; LOOK_BYTES];
        let expected = &mut expected[..bytes.len()];
        self.fill(position, expected);
        let pairs = || bytes.iter().zip(expected.iter());
        let bits: u32 = pairs().map(|(found, expected)| (found ^ expected).count_ones()).sum();
        if bits == 1 {
            return "one bit flipped".into();
        }
        // Right data behind a small hole does not belong to it.
        let wrong_bytes = pairs().rposition(|(found, expected)| found != expected).map_or(0, |last| last + 1);
        if wrong_bytes > 0 && pairs().take(wrong_bytes).all(|(found, expected)| *found == !expected) {
            return BEFORE.into();
        }
        let known = looks_like(&bytes[..wrong_bytes.min(WORD_INSIDE_BYTES)]).or_else(|| {
            let found = self.find(bytes)?;
            let distance = i128::from(found) - i128::from(self.position(position));
            Some(format!("data of offset {found} ({distance:+} bytes)"))
        });
        known
            .or_else(|| self.elsewhere(bytes))
            .unwrap_or_else(|| format!("unknown data, {bits} of {} bits differ", bytes.len() * 8))
    }

    /// Likewise where it is not known what should stand there.
    pub fn diagnose_any(&self, bytes: &[u8]) -> String {
        let bytes = &bytes[..bytes.len().min(LOOK_BYTES)];
        looks_like(&bytes[..bytes.len().min(WORD_INSIDE_BYTES)])
            .or_else(|| Some(format!("data of offset {}, not from the beginning of a record", self.find(bytes)?)))
            .or_else(|| self.find(&bytes.iter().map(|byte| !byte).collect::<Vec<_>>()).map(|_| BEFORE.into()))
            .or_else(|| self.elsewhere(bytes))
            .unwrap_or_else(|| "unknown data".into())
    }

    /// Which other row or owner bytes are of.
    fn elsewhere(&self, bytes: &[u8]) -> Option<String> {
        let find = |row, owner| Self::with_lap(self.seed, row, owner, self.sample_bytes, ANY_LAP_BYTES).find(bytes);
        for row in (0..self.row).rev().take(EARLIER_ROWS as usize) {
            if let Some(at) = find(row, self.owner) {
                return Some(format!("data of an earlier file ({} before), offset {at}", self.row - row));
            }
        }
        let owner = self.owner?;
        let others = (0..OWNERS).filter(|other| *other != owner);
        let (other, at) = others.filter_map(|other| Some((other, find(self.row, Some(other))?))).next()?;
        Some(format!("data of the file of {other}, offset {at}"))
    }
}

impl Wrong {
    /// Looks at up to 8 bytes, which stand at `at`; `expected` has the first of them lowest.
    #[inline]
    fn look(&mut self, bytes: &[u8], expected: u64, at: usize) {
        for (n, (found, expected)) in bytes.iter().zip(expected.to_le_bytes()).enumerate() {
            if *found != expected {
                self.bytes_wrong += 1;
                self.first.get_or_insert((at + n, expected, *found));
            }
        }
    }
}

/// Bytes before the first whole word.
fn head_bytes(position: u64, len: usize) -> usize {
    ((position.wrapping_neg() % 8) as usize).min(len)
}

/// What bytes look like that are no data.
fn looks_like(bytes: &[u8]) -> Option<String> {
    let all = |value| !bytes.is_empty() && bytes.iter().all(|byte| *byte == value);
    if all(POISON_BYTE) {
        return Some("never delivered: the memory still holds what was there before the read".into());
    }
    all(0).then(|| "hole (zeros)".into())
}
