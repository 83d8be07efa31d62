//! Data in order of arrival: with a shared pointer nobody knows where the record of a rank goes, but each goes somewhere,
//! exactly once.

use std::ops::Range;

use super::{Data, Histogram};
use crate::imb_io::plan::tiles::{part, Part};
use crate::imb_io::plan::PlanError;

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
    pub fn records_in(&self, file: &[u8], expected: &mut Expected) -> Arrival {
        let mut arrival = Arrival { bytes_checked: file.len() as u64, ..Arrival::default() };
        if expected.unordered {
            let mut found = Histogram::default();
            found.add(file);
            arrival.bytes_wrong = found.bytes_wrong(&self.histogram(0..expected.file_bytes));
            if arrival.bytes_wrong > 0 {
                let looks_like = "the values of the bytes are not those of the records written".into();
                arrival.first = Some(FirstFinding { offset_bytes: None, expected: None, found: None, looks_like });
            }
            return arrival;
        }
        let mut at = 0;
        while at < file.len() {
            let rest = &file[at..];
            at += match expected.next(self, rest) {
                Next::Record(record) => self.take(record, (rest, at), expected, &mut arrival),
                Next::Unknown(length) => {
                    arrival.wrong(length as u64, at, (None, rest[0]), || self.diagnose_any(&rest[..length]));
                    length
                }
            };
        }
        let lacking = expected.file_bytes.saturating_sub(arrival.bytes_checked);
        if lacking > 0 {
            arrival.wrong_at_end(lacking, file.len());
        }
        arrival
    }

    /// A record of which at least one word is there. Returns its length in the file.
    fn take(&self, record: Known, (rest, at): (&[u8], usize), expected: &mut Expected, arrival: &mut Arrival) -> usize {
        let length = rest.len().min(record.length);
        let bytes = &rest[..length];
        if let Some(left) = expected.left.get_mut(record.index).filter(|left| **left > 0) {
            *left -= 1;
        } else {
            let looks_like =
                || format!("data of offset {}: a record that is not expected here or a second time", record.position);
            arrival.wrong(length as u64, at, (None, bytes[0]), looks_like);
            return length;
        }
        let wrong = self.compare(bytes, record.position);
        if let Some((n, byte, found)) = wrong.first {
            let looks_like = || self.diagnose(&bytes[n..], record.position + n as u64);
            arrival.wrong(wrong.bytes_wrong, at + n, (Some(byte), found), looks_like);
        }
        length
    }
}

/// What was found in a file in order of arrival.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Arrival {
    /// Bytes looked at.
    pub bytes_checked: u64,
    /// Of these, and of those that are missing, wrong ones.
    pub bytes_wrong: u64,
    /// The first of them.
    pub first: Option<FirstFinding>,
}

/// The first wrong byte of a file in order of arrival.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FirstFinding {
    /// Where in the file; None: not known, as the records are too short to be recognised.
    pub offset_bytes: Option<u64>,
    /// Byte expected; None: not known, as any record may be here.
    pub expected: Option<u8>,
    /// Byte found; None: not known, or the file ends there.
    pub found: Option<u8>,
    /// In words.
    pub looks_like: String,
}

impl Arrival {
    fn wrong(
        &mut self,
        bytes: u64,
        at: usize,
        (expected, found): (Option<u8>, u8),
        looks_like: impl FnOnce() -> String,
    ) {
        self.bytes_wrong += bytes;
        self.first.get_or_insert_with(|| FirstFinding {
            offset_bytes: Some(at as u64),
            expected,
            found: Some(found),
            looks_like: looks_like(),
        });
    }

    fn wrong_at_end(&mut self, bytes: u64, at: usize) {
        self.bytes_wrong += bytes;
        let looks_like = format!("the file ends {bytes} bytes early");
        let offset_bytes = Some(at as u64);
        self.first.get_or_insert(FirstFinding { offset_bytes, expected: None, found: None, looks_like });
    }
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
