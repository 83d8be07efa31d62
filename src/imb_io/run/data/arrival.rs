//! Data in order of arrival: with a shared pointer nobody knows where the record of a rank goes, but each goes somewhere,
//! exactly once.

use std::ops::Range;

use super::{Data, Histogram};
use crate::imb_io::plan::tiles::{part, Part};
use crate::imb_io::plan::PlanError;
use crate::imb_io::run::found::{Checked, Finding};

/// A range of the stream that was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Record {
    /// Where it begins.
    pub position: u64,
    /// Its length in bytes.
    pub length: u64,
}

/// Whether these records tile the bytes of `range`, each byte once. Sorts them.
///
/// # Errors
/// The first bytes that are missing, double or not of the range, in words.
pub fn tile(records: &mut [Record], range: Range<u64>) -> Result<(), String> {
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
            (_, false) => "are behind the end".into(),
            (_, true) => format!("are there {times} times"),
        };
        return Err(format!("the bytes from {begin} to {end} {what}"));
    }
    Ok(())
}

/// The parts that are not empty.
fn parts(sample_bytes: u64, ranks: u64) -> Result<Vec<Part>, PlanError> {
    let mut parts = vec![part(sample_bytes, ranks, 0)?];
    for rank in 1..ranks {
        parts.push(part(sample_bytes, ranks, rank)?);
    }
    parts.retain(|part| part.length_bytes > 0);
    Ok(parts)
}

impl Data {
    /// Takes a whole file apart, into which the records of `expected` were written in any order, and counts each one found
    /// off there. Bytes that are of no record, or of one that was there before, are wrong; so are those that the file lacks.
    #[must_use]
    pub fn records_in(&self, file: &[u8], expected: &mut Expected) -> Checked {
        let mut checked = Checked { bytes_checked: file.len() as u64, ..Checked::default() };
        if expected.unordered {
            let mut found = Histogram::default();
            found.add(file);
            let wrong = found.bytes_wrong(&self.histogram(0..expected.file_bytes));
            if wrong > 0 {
                checked
                    .wrong(wrong, || Finding::in_words("the values of the bytes are not those of the records written"));
            }
            return checked;
        }
        let mut at = 0;
        while at < file.len() {
            let rest = &file[at..];
            at += match expected.next(self, rest) {
                Next::Record(record) => self.take(record, (rest, at), expected, &mut checked),
                Next::Unknown(length) => {
                    checked.wrong(length as u64, || at_place(at, Some(rest[0]), self.diagnose_any(&rest[..length])));
                    length
                }
            };
        }
        let lacking = expected.file_bytes.saturating_sub(checked.bytes_checked);
        if lacking > 0 {
            checked.wrong(lacking, || at_place(file.len(), None, format!("the file ends {lacking} bytes early")));
        }
        checked
    }

    /// A record of which at least one word is there. Returns its length in the file.
    fn take(&self, record: Known, (rest, at): (&[u8], usize), expected: &mut Expected, checked: &mut Checked) -> usize {
        let length = rest.len().min(record.length);
        let bytes = &rest[..length];
        if let Some(left) = expected.left.get_mut(record.index).filter(|left| **left > 0) {
            *left -= 1;
        } else {
            let looks_like =
                || format!("data of offset {}: a record that is not expected here or a second time", record.position);
            checked.wrong(length as u64, || at_place(at, Some(bytes[0]), looks_like()));
            return length;
        }
        let wrong = self.compare(bytes, record.position);
        if let Some((n, byte, found)) = wrong.first {
            checked.wrong(wrong.bytes_wrong, || Finding {
                expected: Some(byte),
                ..at_place(at + n, Some(found), self.diagnose(&bytes[n..], record.position + n as u64))
            });
        }
        length
    }
}

/// Whose byte is expected at this place is not known: any record may be here.
fn at_place(at: usize, found: Option<u8>, looks_like: String) -> Finding {
    Finding { offset_bytes: Some(at as u64), found, ..Finding::in_words(looks_like) }
}

/// The records that a file must hold: one of every rank that has a part, for every step.
#[derive(Clone, Debug)]
pub struct Expected {
    /// Parts that are not empty, by rank and so by offset.
    parts: Vec<Part>,
    /// How often the record of (sample of the lap, part) is still expected.
    pub(super) left: Vec<u64>,
    /// Some part is too short to be recognised: bytes are counted by value.
    unordered: bool,
    file_bytes: u64,
}

/// What stands at some place of a file.
enum Next {
    /// A record, or what is left of it.
    Record(Known),
    /// So many bytes of nothing known.
    Unknown(usize),
}

/// A record that should be in the file, or not.
#[derive(Clone, Copy)]
struct Known {
    index: usize,
    position: u64,
    length: usize,
}

impl Expected {
    /// The records of `steps` samples of `data`, each in parts of `ranks` ranks.
    ///
    /// # Errors
    /// [`PlanError::Argument`] for no ranks.
    pub fn new(data: &Data, ranks: u64, steps: u64) -> Result<Self, PlanError> {
        let sample_bytes = data.sample_bytes();
        let parts = parts(sample_bytes, ranks)?;
        let unordered = parts.iter().any(|part| part.length_bytes < data.findable_bytes());
        let lap_steps = data.lap_bytes().checked_div(sample_bytes).unwrap_or(0);
        let mut left = Vec::new();
        if !unordered && lap_steps > 0 {
            for step in 0..lap_steps.min(steps) {
                let times = steps / lap_steps + u64::from(step < steps % lap_steps);
                left.extend(parts.iter().map(|_| times));
            }
        }
        Ok(Self { parts, left, unordered, file_bytes: sample_bytes.saturating_mul(steps) })
    }

    /// Whether bytes are only counted by value, because some part is too short to be recognised.
    #[must_use]
    pub fn unordered(&self) -> bool {
        self.unordered
    }

    /// The record around a position of the stream.
    fn around(&self, data: &Data, position: u64) -> Option<Known> {
        let (step, within) = (position.checked_div(data.sample_bytes())?, position % data.sample_bytes());
        let number = self.parts.partition_point(|part| part.offset_bytes <= within).checked_sub(1)?;
        let part = self.parts[number];
        Some(Known {
            index: usize::try_from(step).ok()?.checked_mul(self.parts.len())?.checked_add(number)?,
            position: position - (within - part.offset_bytes),
            length: usize::try_from(part.length_bytes).ok()?,
        })
    }

    /// What stands at the beginning of `rest`. Where that is not the beginning of a record, the first word of one tells.
    fn next(&self, data: &Data, rest: &[u8]) -> Next {
        let known = data.first_word(rest).and_then(|(at, position)| Some((at, position, self.around(data, position)?)));
        let Some((at, position, record)) = known else { return Next::Unknown(rest.len()) };
        // The record begins so much before its first word that is there.
        let before = (position - record.position) as usize;
        match at.checked_sub(before) {
            Some(0) => Next::Record(record),
            Some(unknown) => Next::Unknown(unknown),
            // Its beginning was lost, or something else stands over it.
            None => Next::Unknown(rest.len().min(at + record.length - before)),
        }
    }
}
