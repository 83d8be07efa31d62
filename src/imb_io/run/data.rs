//! Data of the files: every byte is a function of its offset in the file, whichever rank writes it.
//!
//! Each row has its own stream of bytes, generated from the words of [`beff_stamp`]. Sample j of X bytes is at file offset j X
//! and has the bytes of the stream from (j mod W) X on. By default the period of W samples is the whole file, and the offset is
//! the position in the stream; a shorter period repeats. A private file, where X is the portion of its rank, has its own stream.
//!
//! An existing file has the complement of every byte before it is overwritten.
//!
//! With a shared pointer outside of collective calls the order of arrival is unknown. Each record is then identified by its
//! position in the stream and counted; the ranges read by all ranks must tile the file. Records below 16 bytes contain no whole
//! word to identify; for these a histogram of byte values over all ranks is compared. Counts of transfers alone are not enough:
//! beyond the end of the file, ROMIO through a tiled view and OMPIO in `MPI_File_read_all` report complete transfers. Limitation:
//! in rows of more than 64 MiB of writes, data of another period is not detected.

mod arrival_order;
mod histogram;
#[cfg(test)]
mod tests;

use std::ops::Range;

pub use super::data::arrival_order::{check_tiling, ExpectedRecords, StreamRange};
pub use super::data::histogram::Histogram;

use crate::frame::run::file_ranges::split_range;
use beff_stamp::{mix, to_word, StampStream, GOLDEN, POISON_BYTE};

/// Length that contains a whole word at any alignment.
const WHOLE_WORD_BYTES: usize = 15;
/// The same across the end of a period that cuts a word: up to 7 bytes before a word, up to 7 of the cut word, and the first
/// word of the period.
const WHOLE_WORD_AFTER_CUT_BYTES: usize = 22;

/// Bytes used for a diagnosis, from the first wrong byte on.
pub(super) const DIAGNOSIS_BYTES: usize = 64;
/// Diagnosis of data of [`RowData::fill_initial`].
const NEVER_WRITTEN: &str = "never written: the file has its initial data";
/// Earlier rows whose data is searched.
const EARLIER_ROWS: u64 = 8;
/// Owners whose data is searched in the file of another. The search costs a few multiplications each.
const MAX_OWNERS: u64 = 1 << 12;
/// Period for the search in streams of other rows and owners, whose period is unknown: longer than any period, and short enough
/// that a random match is unlikely.
const SEARCH_PERIOD_BYTES: u64 = 1 << 48;
/// Kind of data, mixed into the key; the generations of b_eff_io are 1 and 2.
const STREAM_KIND: u64 = 3;

/// The data of one row, or of one private file of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowData {
    seed: u64,
    row: u64,
    owner: Option<u64>,
    sample_bytes: u64,
    period_bytes: u64,
    stream: StampStream,
}

/// Result of a comparison.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StreamMismatch {
    /// Bytes that differ.
    pub bytes_wrong: u64,
    /// The first of them: its index, expected byte and actual byte.
    pub first: Option<(usize, u8, u8)>,
}

impl RowData {
    /// Data of row `row` for samples of `sample_bytes`, with a period of `lap_steps` samples. Each `owner` has its own stream:
    /// the rank of a private file, or the group if several groups have one file each.
    #[must_use]
    pub fn new(seed: u64, row: u64, owner: Option<u64>, sample_bytes: u64, period_steps: u64) -> Self {
        Self::with_period(seed, row, owner, sample_bytes, sample_bytes.saturating_mul(period_steps))
    }

    fn with_period(seed: u64, row: u64, owner: Option<u64>, sample_bytes: u64, period_bytes: u64) -> Self {
        let shared = mix(mix(mix(seed ^ GOLDEN).wrapping_add(STREAM_KIND)).wrapping_add(row));
        let key = owner.map_or(shared, |owner| mix(shared.wrapping_add(1).wrapping_add(owner)));
        Self { seed, row, owner, sample_bytes, period_bytes, stream: StampStream::keyed(key, period_bytes / 8) }
    }

    /// X.
    #[must_use]
    pub fn sample_bytes(&self) -> u64 {
        self.sample_bytes
    }

    /// Period of the data.
    #[must_use]
    pub fn period_bytes(&self) -> u64 {
        self.period_bytes
    }

    /// Position in the stream of this offset of the file, below the period.
    #[must_use]
    pub fn position(&self, offset_bytes: u64) -> u64 {
        // An empty period has no bytes.
        offset_bytes.checked_rem(self.period_bytes).unwrap_or(offset_bytes)
    }

    /// Number of contiguous bytes at `position`, up to the end of the period.
    fn contiguous_len(&self, position: u64, len: usize) -> usize {
        let left_bytes = if self.period_bytes == 0 { u64::MAX } else { self.period_bytes - position };
        usize::try_from(left_bytes).unwrap_or(usize::MAX).min(len)
    }

    /// Fills `bytes` with the stream from `position` on, which may be a file offset; after the period it begins again. Does not
    /// allocate.
    pub fn fill(&self, position: u64, bytes: &mut [u8]) {
        let mut position = self.position(position);
        let mut rest = bytes;
        while !rest.is_empty() {
            let (now, behind) = rest.split_at_mut(self.contiguous_len(position, rest.len()));
            self.stream.fill_from(position, now);
            (position, rest) = (0, behind);
        }
    }

    /// Fills `bytes` with the initial data of an existing file: the complement, so that a byte that was not written never passes
    /// as written.
    pub fn fill_initial(&self, position: u64, bytes: &mut [u8]) {
        self.fill(position, bytes);
        bytes.iter_mut().for_each(|byte| *byte = !*byte);
    }

    /// Compares `bytes` with the data of [`RowData::fill`] from `position` on. Does not allocate.
    #[must_use]
    pub fn compare(&self, bytes: &[u8], position: u64) -> StreamMismatch {
        let mut wrong = StreamMismatch::default();
        let mut position = self.position(position);
        let mut done = 0;
        while done < bytes.len() {
            let end = done + self.contiguous_len(position, bytes.len() - done);
            self.compare_contiguous(&bytes[done..end], position, done, &mut wrong);
            (position, done) = (0, end);
        }
        wrong
    }

    fn compare_contiguous(&self, bytes: &[u8], position: u64, mut at: usize, wrong: &mut StreamMismatch) {
        let mut index = position / 8;
        let (head, body) = bytes.split_at(head_bytes(position, bytes.len()));
        if !head.is_empty() {
            wrong.compare_word(head, self.stream.word_at(index) >> (8 * (position % 8)), at);
            at += head.len();
            index += 1;
        }
        let (words, tail) = body.split_at(body.len() / 8 * 8);
        let mut done = 0;
        while let Some(next) = self.stream.first_wrong_word(index + done as u64 / 8, &words[done..]) {
            let begin = done + next;
            let expected = self.stream.word_at(index + begin as u64 / 8);
            done = begin + 8;
            wrong.compare_word(&words[begin..done], expected, at + begin);
        }
        wrong.compare_word(tail, self.stream.word_at(index + words.len() as u64 / 8), at + words.len());
    }

    /// Minimum length of bytes whose position in the stream can be identified.
    #[must_use]
    pub fn min_identifiable_bytes(&self) -> u64 {
        if self.period_bytes.is_multiple_of(8) {
            WHOLE_WORD_BYTES as u64 + 1
        } else {
            WHOLE_WORD_AFTER_CUT_BYTES as u64
        }
    }

    /// Position of these bytes in the stream, below the period, if they are of this stream; bytes of at least
    /// [`RowData::min_identifiable_bytes`] are always identified. Only the first 22 bytes are used.
    #[must_use]
    pub fn find(&self, bytes: &[u8]) -> Option<u64> {
        let bytes = &bytes[..bytes.len().min(WHOLE_WORD_AFTER_CUT_BYTES)];
        let (index, word_at) = self.first_word(bytes)?;
        // The bytes before the first word may be the end of the period.
        let before = index as u64;
        let position = match word_at.checked_sub(before) {
            Some(position) => position,
            None => self.period_bytes.checked_sub(before - word_at)?,
        };
        (self.compare(bytes, position).bytes_wrong == 0).then_some(position)
    }

    /// The first word of this stream in these bytes: its index and its position in the stream. The probability of a false match
    /// is 2^-64 per word of the period.
    fn first_word(&self, bytes: &[u8]) -> Option<(usize, u64)> {
        bytes.windows(8).enumerate().find_map(|(index, word)| Some((index, self.stream.position_of(to_word(word))?)))
    }

    /// Position of a window that was read, if all of its bytes are right.
    #[must_use]
    pub fn identify(&self, window: &[u8]) -> Option<u64> {
        self.find(window).filter(|position| self.compare(window, *position).bytes_wrong == 0)
    }

    /// Histogram of the byte values in this range of the file.
    #[must_use]
    pub fn histogram(&self, range: Range<u64>) -> Histogram {
        let laps = (range.end - range.start).checked_div(self.period_bytes).unwrap_or(0);
        let mut all = Histogram::default();
        if laps > 0 {
            self.count(0..self.period_bytes, &mut all);
            all.as_mut_slice().iter_mut().for_each(|count| *count *= laps);
        }
        // Any range of one period has the same histogram.
        self.count(range.start + laps * self.period_bytes..range.end, &mut all);
        all
    }

    fn count(&self, positions: Range<u64>, into: &mut Histogram) {
        let mut bytes = [0; 4096];
        for (begin, len) in split_range(positions, bytes.len() as u64) {
            self.fill(begin, &mut bytes[..len]);
            into.add(&bytes[..len]);
        }
    }

    /// Diagnosis of wrong data for the report. `bytes` begins at the first wrong byte and has at least 16 bytes if available;
    /// `position` is the offset of that byte in the file or the stream.
    #[must_use]
    pub fn diagnose(&self, bytes: &[u8], position: u64) -> String {
        let bytes = &bytes[..bytes.len().min(DIAGNOSIS_BYTES)];
        let mut expected = [0; DIAGNOSIS_BYTES];
        let expected = &mut expected[..bytes.len()];
        self.fill(position, expected);
        let pairs = || bytes.iter().zip(expected.iter());
        let bits: u32 = pairs().map(|(found, expected)| (found ^ expected).count_ones()).sum();
        if bits == 1 {
            return "one bit flipped".into();
        }
        // Right data after a small hole is not part of it.
        let wrong_bytes = pairs().rposition(|(found, expected)| found != expected).map_or(0, |last| last + 1);
        if wrong_bytes > 0 && pairs().take(wrong_bytes).all(|(found, expected)| *found == !expected) {
            return NEVER_WRITTEN.into();
        }
        let known = known_pattern(&bytes[..wrong_bytes.min(WHOLE_WORD_BYTES)]).or_else(|| {
            let found = self.find(bytes)?;
            let distance = i128::from(found) - i128::from(self.position(position));
            Some(format!("data of offset {found} ({distance:+} bytes)"))
        });
        known
            .or_else(|| self.identify_elsewhere(bytes))
            .unwrap_or_else(|| format!("unknown data, {bits} of {} bits differ", bytes.len() * 8))
    }

    /// The same for an unknown expected position.
    pub fn diagnose_unplaced(&self, bytes: &[u8]) -> String {
        let bytes = &bytes[..bytes.len().min(DIAGNOSIS_BYTES)];
        known_pattern(&bytes[..bytes.len().min(WHOLE_WORD_BYTES)])
            .or_else(|| Some(format!("data of offset {}, not the beginning of a record", self.find(bytes)?)))
            .or_else(|| self.find(&bytes.iter().map(|byte| !byte).collect::<Vec<_>>()).map(|_| NEVER_WRITTEN.into()))
            .or_else(|| self.identify_elsewhere(bytes))
            .unwrap_or_else(|| "unknown data".into())
    }

    fn identify_elsewhere(&self, bytes: &[u8]) -> Option<String> {
        let find =
            |row, owner| Self::with_period(self.seed, row, owner, self.sample_bytes, SEARCH_PERIOD_BYTES).find(bytes);
        for row in (0..self.row).rev().take(EARLIER_ROWS as usize) {
            if let Some(at) = find(row, self.owner) {
                return Some(format!("data of an earlier file ({} before), offset {at}", self.row - row));
            }
        }
        let owner = self.owner?;
        let others = (0..MAX_OWNERS).filter(|other| *other != owner);
        let (other, at) = others.filter_map(|other| Some((other, find(self.row, Some(other))?))).next()?;
        Some(format!("data of the file of {other}, offset {at}"))
    }
}

impl StreamMismatch {
    /// Compares up to 8 bytes at index `at` with the little-endian `expected`.
    #[inline]
    fn compare_word(&mut self, bytes: &[u8], expected: u64, at: usize) {
        for (n, (found, expected)) in bytes.iter().zip(expected.to_le_bytes()).enumerate() {
            if *found != expected {
                self.bytes_wrong += 1;
                self.first.get_or_insert((at + n, expected, *found));
            }
        }
    }
}

fn head_bytes(position: u64, len: usize) -> usize {
    ((position.wrapping_neg() % 8) as usize).min(len)
}

/// Diagnosis of bytes that are not data of any stream.
fn known_pattern(bytes: &[u8]) -> Option<String> {
    let all = |value| !bytes.is_empty() && bytes.iter().all(|byte| *byte == value);
    if all(POISON_BYTE) {
        return Some("never delivered: the memory is unchanged by the read".into());
    }
    all(0).then(|| "hole (zeros)".into())
}
