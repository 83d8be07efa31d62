//! Data in order of arrival: with a shared pointer the offset of each record is unknown, but each occurs exactly once.

use std::ops::Range;

use super::{Histogram, RowData};
use crate::imb_io::plan::tiles::{sample_portion, SamplePortion};
use crate::imb_io::plan::PlanningError;
use crate::imb_io::run::verify_result::{CorruptByte, VerifyResult};

/// A range of the stream that was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct StreamRange {
    /// First position.
    pub position: u64,
    /// Length in bytes.
    pub length: u64,
}

/// Checks that these records tile `range`, each byte once. Sorts them.
///
/// # Errors
/// The first bytes that are missing, duplicate or outside the range, in words.
pub fn check_tiling(records: &mut [StreamRange], range: Range<u64>) -> Result<(), String> {
    records.sort_unstable();
    let mut ends: Vec<u64> = records.iter().map(|record| record.position.saturating_add(record.length)).collect();
    ends.sort_unstable();
    let mut edges: Vec<u64> = records.iter().map(|record| record.position).chain(ends.iter().copied()).collect();
    edges.extend([range.start, range.end]);
    edges.sort_unstable();
    edges.dedup();
    let (mut begun, mut ended) = (0, 0);
    for (begin, end) in edges.iter().zip(edges.iter().skip(1)) {
        begun += records[begun..].partition_point(|record| record.position <= *begin);
        ended += ends[ended..].partition_point(|end| end <= begin);
        let times = begun - ended;
        let what = match (times, range.contains(begin)) {
            (0, false) | (1, true) => continue,
            (0, true) => "are missing".into(),
            (_, false) if *begin < range.start => "were read before".into(),
            (_, false) => "are beyond the end".into(),
            (_, true) => format!("occur {times} times"),
        };
        return Err(format!("the bytes from {begin} to {end} {what}"));
    }
    Ok(())
}

/// The non-empty portions.
fn nonempty_portions(sample_bytes: u64, ranks: u64) -> Result<Vec<SamplePortion>, PlanningError> {
    let mut parts = vec![sample_portion(sample_bytes, ranks, 0)?];
    for rank in 1..ranks {
        parts.push(sample_portion(sample_bytes, ranks, rank)?);
    }
    parts.retain(|part| part.length_bytes > 0);
    Ok(parts)
}

impl RowData {
    /// Checks a whole file into which the records of `expected` were written in any order, and counts down each identified
    /// record there. Bytes of no record or of a duplicate record are wrong, and so are missing bytes.
    #[must_use]
    pub fn check_records(&self, file: &[u8], expected: &mut ExpectedRecords) -> VerifyResult {
        let mut checked = VerifyResult { bytes_checked: file.len() as u64, ..VerifyResult::default() };
        if expected.by_value {
            let mut found = Histogram::default();
            found.add(file);
            let wrong = found.bytes_wrong(&self.histogram(0..expected.file_bytes));
            if wrong > 0 {
                checked.add_wrong(wrong, || {
                    CorruptByte::of_diagnosis("the byte values are not those of the records written")
                });
            }
            return checked;
        }
        let mut at = 0;
        while at < file.len() {
            let rest = &file[at..];
            at += match expected.match_record(self, rest) {
                RecordMatch::Record(record) => self.check_record(record, (rest, at), expected, &mut checked),
                RecordMatch::Unknown(length) => {
                    checked.add_wrong(length as u64, || {
                        wrong_byte_at(at, Some(rest[0]), self.diagnose_unplaced(&rest[..length]))
                    });
                    length
                }
            };
        }
        let lacking = expected.file_bytes.saturating_sub(checked.bytes_checked);
        if lacking > 0 {
            checked
                .add_wrong(lacking, || wrong_byte_at(file.len(), None, format!("the file ends {lacking} bytes early")));
        }
        checked
    }

    /// Checks a record of which at least one word was identified. Returns its length in the file.
    fn check_record(
        &self,
        record: RecordPosition,
        (rest, at): (&[u8], usize),
        expected: &mut ExpectedRecords,
        checked: &mut VerifyResult,
    ) -> usize {
        let length = rest.len().min(record.length);
        let bytes = &rest[..length];
        if let Some(left) = expected.remaining.get_mut(record.index).filter(|left| **left > 0) {
            *left -= 1;
        } else {
            let looks_like = || {
                format!(
                    "data of offset {}: a record that is not expected here or occurs a second time",
                    record.position
                )
            };
            checked.add_wrong(length as u64, || wrong_byte_at(at, Some(bytes[0]), looks_like()));
            return length;
        }
        let wrong = self.compare(bytes, record.position);
        if let Some((n, byte, found)) = wrong.first {
            checked.add_wrong(wrong.bytes_wrong, || CorruptByte {
                expected: Some(byte),
                ..wrong_byte_at(at + n, Some(found), self.diagnose(&bytes[n..], record.position + n as u64))
            });
        }
        length
    }
}

/// A finding at this offset without an expected byte, because any record may be here.
fn wrong_byte_at(at: usize, found: Option<u8>, looks_like: String) -> CorruptByte {
    CorruptByte { offset_bytes: Some(at as u64), actual: found, ..CorruptByte::of_diagnosis(looks_like) }
}

/// Records that a file must contain: one of every rank with a non-empty portion, for every step.
#[derive(Clone, Debug)]
pub struct ExpectedRecords {
    /// Non-empty portions by rank, and so by offset.
    portions: Vec<SamplePortion>,
    /// Remaining expected occurrences of the record of (sample of the period, portion).
    pub(super) remaining: Vec<u64>,
    /// True if some portion is too short to be identified: byte values are compared.
    by_value: bool,
    file_bytes: u64,
}

/// Identification of the bytes at an offset of a file.
enum RecordMatch {
    /// A record, possibly damaged.
    Record(RecordPosition),
    /// Number of unknown bytes.
    Unknown(usize),
}

/// An identified record, expected or not.
#[derive(Clone, Copy)]
struct RecordPosition {
    index: usize,
    position: u64,
    length: usize,
}

impl ExpectedRecords {
    /// Records of `steps` samples of `data`, each divided among `ranks` ranks.
    ///
    /// # Errors
    /// [`PlanningError::Argument`] for no ranks.
    pub fn new(data: &RowData, ranks: u64, steps: u64) -> Result<Self, PlanningError> {
        let sample_bytes = data.sample_bytes();
        let parts = nonempty_portions(sample_bytes, ranks)?;
        let unordered = parts.iter().any(|part| part.length_bytes < data.min_identifiable_bytes());
        let period_steps = data.period_bytes().checked_div(sample_bytes).unwrap_or(0);
        let mut left = Vec::new();
        if !unordered && period_steps > 0 {
            for step in 0..period_steps.min(steps) {
                let times = steps / period_steps + u64::from(step < steps % period_steps);
                left.extend(parts.iter().map(|_| times));
            }
        }
        Ok(Self {
            portions: parts,
            remaining: left,
            by_value: unordered,
            file_bytes: sample_bytes.saturating_mul(steps),
        })
    }

    /// True if byte values are compared, because some portion is too short to be identified.
    #[must_use]
    pub fn is_by_value(&self) -> bool {
        self.by_value
    }

    /// The record that contains a position of the stream.
    fn record_at(&self, data: &RowData, position: u64) -> Option<RecordPosition> {
        let (step, within) = (position.checked_div(data.sample_bytes())?, position % data.sample_bytes());
        let number = self.portions.partition_point(|part| part.offset_bytes <= within).checked_sub(1)?;
        let part = self.portions[number];
        Some(RecordPosition {
            index: usize::try_from(step).ok()?.checked_mul(self.portions.len())?.checked_add(number)?,
            position: position - (within - part.offset_bytes),
            length: usize::try_from(part.length_bytes).ok()?,
        })
    }

    /// Identifies the beginning of `rest` by the first word of a record in it.
    fn match_record(&self, data: &RowData, rest: &[u8]) -> RecordMatch {
        let known =
            data.first_word(rest).and_then(|(at, position)| Some((at, position, self.record_at(data, position)?)));
        let Some((at, position, record)) = known else { return RecordMatch::Unknown(rest.len()) };
        // Distance of the identified word from the beginning of its record.
        let before = (position - record.position) as usize;
        match at.checked_sub(before) {
            Some(0) => RecordMatch::Record(record),
            Some(unknown) => RecordMatch::Unknown(unknown),
            // The beginning of the record was lost or overwritten.
            None => RecordMatch::Unknown(rest.len().min(at + record.length - before)),
        }
    }
}
