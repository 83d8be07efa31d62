//! Verification where the order of arrival decides who has which bytes of the file: as sets.

use beff_backends::error::Cause;
use beff_backends::{BackendError, Batch};
use beff_ffi::{Comm, MpiError};

use super::contents::{ends_at, Source, Unread};
use super::data::{tile, Data, Expected, Histogram, Record, Wrong, LOOK_BYTES};
use super::found::{Checked, Finding};
use super::shape::Shape;
use crate::imb_io::plan::tiles::{part, UNIT_BYTES};

/// Reads the whole file on the first rank and takes it apart.
///
/// # Errors
/// What opening or reading reports; a file that ends early is found to be wrong.
pub(super) fn written(group: &Comm, shape: &Shape, data: &Data, source: Source<'_>) -> Result<Checked, BackendError> {
    let mut checked = Checked::default();
    if !group.is_root() || shape.file_bytes == 0 {
        return Ok(checked);
    }
    let mut file = source.open()?;
    let bytes = match source.read(&mut file, 0, shape.file_bytes as usize) {
        Ok(bytes) => bytes,
        Err(Unread::Failed(error)) => return Err(error),
        Err(Unread::Ends(length_bytes)) => {
            checked.missing(shape.file_bytes, None, ends_at(length_bytes));
            return Ok(checked);
        }
    };
    let expected = Expected::new(data, shape.ranks, shape.steps);
    let mut expected =
        expected.map_err(|e| BackendError::new("compare", source.path, Cause::Unsupported, e.to_string()))?;
    Ok(data.records_in(bytes, &mut expected))
}

/// Looks where in the file the windows of all ranks are from: each byte of `calls` once, by whoever. Collective over the group.
///
/// # Errors
/// MPI between the ranks.
pub(super) fn received(
    group: &Comm,
    shape: &Shape,
    data: &Data,
    windows: &[u8],
    calls: Batch,
) -> Result<Checked, MpiError> {
    let mut checked = Checked { bytes_checked: windows.len() as u64, ..Checked::default() };
    let first_byte = calls.first_call * shape.sample_bytes;
    let range = first_byte..first_byte + calls.calls * shape.sample_bytes;
    if shortest_part(shape) < data.findable_bytes() {
        by_value(group, &data.histogram(range), windows, &mut checked)?;
        return Ok(checked);
    }
    let mut records = Vec::new();
    for window in windows.chunks_exact(shape.part.length_bytes.max(1) as usize) {
        match data.identify(window) {
            Some(position) => records.push(Record { position, length: window.len() as u64 }),
            None => wrong_window(&mut checked, data, window),
        }
    }
    let packed: Vec<u8> =
        records.iter().flat_map(|r| [r.position.to_le_bytes(), r.length.to_le_bytes()].concat()).collect();
    let gathered = group.gather_bytes(&packed)?;
    let mut all_wrong = [checked.bytes_wrong];
    group.sum_u64(&mut all_wrong)?;
    // Windows of unknown data leave gaps; they are wrong already.
    if group.is_root() && all_wrong[0] == 0 {
        let mut records: Vec<Record> = gathered.iter().flat_map(|bytes| bytes.chunks_exact(16)).map(unpack).collect();
        if let Err(why) = tile(&mut records, range) {
            checked.missing(1, None, format!("of what all ranks have read together, {why}"));
        }
    }
    Ok(checked)
}

/// Looks whether this window is a record of the file; not if it is too short to be recognised.
pub(super) fn one(data: &Data, window: &[u8], checked: &mut Checked) {
    if (window.len() as u64) < data.findable_bytes() {
        return;
    }
    checked.bytes_checked += window.len() as u64;
    if data.identify(window).is_none() {
        wrong_window(checked, data, window);
    }
}

fn unpack(bytes: &[u8]) -> Record {
    let word = |at: usize| bytes[at..at + 8].iter().rev().fold(0_u64, |n, byte| (n << 8) | u64::from(*byte));
    Record { position: word(0), length: word(8) }
}

fn wrong_window(checked: &mut Checked, data: &Data, window: &[u8]) {
    // What is right of it tells where it is from, and so how much is wrong: its beginning, or what comes later.
    let from = |skip: usize| data.find(window.get(skip..)?)?.checked_sub(skip as u64);
    let position = [0, LOOK_BYTES, window.len() / 2].into_iter().find_map(from);
    let wrong = position.map(|position| (position, data.compare(window, position)));
    match wrong {
        Some((position, Wrong { bytes_wrong, first: Some((index, expected, found)) })) => {
            checked.wrong(bytes_wrong, || Finding {
                expected: Some(expected),
                found: Some(found),
                ..Finding::in_words(data.diagnose(&window[index..], position + index as u64))
            });
        }
        _ => checked.wrong(window.len() as u64, || Finding::in_words(data.diagnose_any(window))),
    }
}

/// Records too short to be recognised: how often each value of a byte was read by all ranks together.
fn by_value(group: &Comm, expected: &Histogram, windows: &[u8], checked: &mut Checked) -> Result<(), MpiError> {
    let mut all = Histogram::default();
    all.add(windows);
    group.sum_u64(all.as_mut_slice())?;
    if group.is_root() {
        let wrong = all.bytes_wrong(expected);
        if wrong > 0 {
            checked.wrong(wrong, || {
                Finding::in_words("the values of the bytes that all ranks have read are not those of the file")
            });
        }
    }
    Ok(())
}

/// Of the ranks that have one: the last of them. As long as can be where nobody has one.
fn shortest_part(shape: &Shape) -> u64 {
    let last = shape.sample_bytes.div_ceil(UNIT_BYTES).min(shape.ranks);
    match last.checked_sub(1) {
        Some(rank) => part(shape.sample_bytes, shape.ranks, rank).map_or(0, |part| part.length_bytes),
        None => u64::MAX,
    }
}
