//! Verification of data in order of arrival, as sets of records.

use beff_backends::error::FailureCause;
use beff_backends::{BackendError, Batch};
use beff_ffi::{Comm, MpiError};

use super::contents::{end_of_file_text, ReadbackError, ReadbackFile};
use super::data::{check_tiling, ExpectedRecords, Histogram, RowData, StreamMismatch, StreamRange, DIAGNOSIS_BYTES};
use super::geometry::RowGeometry;
use super::verify_result::{CorruptByte, VerifyResult};
use crate::imb_io::plan::tiles::{sample_portion, UNIT_BYTES};

/// Reads the whole file on the first rank and checks its records.
///
/// # Errors
/// Opening or reading failed; bytes missing from a short file count as wrong.
pub(super) fn verify_file(
    group: &Comm,
    shape: &RowGeometry,
    data: &RowData,
    source: ReadbackFile<'_>,
) -> Result<VerifyResult, BackendError> {
    let mut checked = VerifyResult::default();
    if !group.is_root() || shape.file_bytes == 0 {
        return Ok(checked);
    }
    let mut file = source.open()?;
    let bytes = match source.read(&mut file, 0, shape.file_bytes as usize) {
        Ok(bytes) => bytes,
        Err(ReadbackError::Failed(error)) => return Err(error),
        Err(ReadbackError::EndOfFile(length_bytes)) => {
            checked.add_missing(shape.file_bytes, None, end_of_file_text(length_bytes));
            return Ok(checked);
        }
    };
    let expected = ExpectedRecords::new(data, shape.ranks, shape.steps);
    let mut expected =
        expected.map_err(|e| BackendError::new("compare", source.path, FailureCause::Unsupported, e.to_string()))?;
    Ok(data.check_records(bytes, &mut expected))
}

/// Checks that the windows of all ranks together contain each byte of `calls` once. Collective over the group.
pub(super) fn verify_windows(
    group: &Comm,
    shape: &RowGeometry,
    data: &RowData,
    windows: &[u8],
    calls: Batch,
) -> Result<VerifyResult, MpiError> {
    let mut checked = VerifyResult { bytes_checked: windows.len() as u64, ..VerifyResult::default() };
    let first_byte = calls.first_call * shape.sample_bytes;
    let range = first_byte..first_byte + calls.calls * shape.sample_bytes;
    if shortest_portion(shape) < data.min_identifiable_bytes() {
        compare_histograms(group, &data.histogram(range), windows, &mut checked)?;
        return Ok(checked);
    }
    let mut records = Vec::new();
    for window in windows.chunks_exact(shape.portion.length_bytes.max(1) as usize) {
        match data.identify(window) {
            Some(position) => records.push(StreamRange { position, length: window.len() as u64 }),
            None => add_wrong_window(&mut checked, data, window),
        }
    }
    let packed: Vec<u8> =
        records.iter().flat_map(|r| [r.position.to_le_bytes(), r.length.to_le_bytes()].concat()).collect();
    let gathered = group.gather_bytes(&packed)?;
    let mut all_wrong = [checked.bytes_wrong];
    group.sum_u64(&mut all_wrong)?;
    // Windows of unknown data leave gaps, and are already counted as wrong.
    if group.is_root() && all_wrong[0] == 0 {
        let mut records: Vec<StreamRange> =
            gathered.iter().flat_map(|bytes| bytes.chunks_exact(16)).map(unpack).collect();
        if let Err(why) = check_tiling(&mut records, range) {
            checked.add_missing(1, None, format!("of the data read by all ranks, {why}"));
        }
    }
    Ok(checked)
}

/// Checks that this window is a record of the file, unless it is too short to be identified.
pub(super) fn verify_window(data: &RowData, window: &[u8], checked: &mut VerifyResult) {
    if (window.len() as u64) < data.min_identifiable_bytes() {
        return;
    }
    checked.bytes_checked += window.len() as u64;
    if data.identify(window).is_none() {
        add_wrong_window(checked, data, window);
    }
}

fn unpack(bytes: &[u8]) -> StreamRange {
    let word = |at: usize| bytes[at..at + 8].iter().rev().fold(0_u64, |n, byte| (n << 8) | u64::from(*byte));
    StreamRange { position: word(0), length: word(8) }
}

fn add_wrong_window(checked: &mut VerifyResult, data: &RowData, window: &[u8]) {
    // The right bytes identify the position, and so the number of wrong bytes: at the beginning, or later.
    let from = |skip: usize| data.find(window.get(skip..)?)?.checked_sub(skip as u64);
    let position = [0, DIAGNOSIS_BYTES, window.len() / 2].into_iter().find_map(from);
    let wrong = position.map(|position| (position, data.compare(window, position)));
    match wrong {
        Some((position, StreamMismatch { bytes_wrong, first: Some((index, expected, found)) })) => {
            checked.add_wrong(bytes_wrong, || CorruptByte {
                expected: Some(expected),
                actual: Some(found),
                ..CorruptByte::of_diagnosis(data.diagnose(&window[index..], position + index as u64))
            });
        }
        _ => checked.add_wrong(window.len() as u64, || CorruptByte::of_diagnosis(data.diagnose_unplaced(window))),
    }
}

/// Compares the histogram of the bytes read by all ranks, for records too short to be identified.
fn compare_histograms(
    group: &Comm,
    expected: &Histogram,
    windows: &[u8],
    checked: &mut VerifyResult,
) -> Result<(), MpiError> {
    let mut all = Histogram::default();
    all.add(windows);
    group.sum_u64(all.as_mut_slice())?;
    if group.is_root() {
        let wrong = all.bytes_wrong(expected);
        if wrong > 0 {
            checked.add_wrong(wrong, || {
                CorruptByte::of_diagnosis("the byte values read by all ranks are not those of the file")
            });
        }
    }
    Ok(())
}

/// Length of the shortest non-empty portion, that of the last rank with one; `u64::MAX` without any.
fn shortest_portion(shape: &RowGeometry) -> u64 {
    let last = shape.sample_bytes.div_ceil(UNIT_BYTES).min(shape.ranks);
    match last.checked_sub(1) {
        Some(rank) => sample_portion(shape.sample_bytes, shape.ranks, rank).map_or(0, |part| part.length_bytes),
        None => u64::MAX,
    }
}
