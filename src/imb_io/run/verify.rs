//! Untimed verification of files and memory: every byte of a row, by another rank than the writer if there is one, past the page
//! cache where possible.

use std::ops::Range;

use beff_backends::{BackendError, Batch, FilePath, TransferBuffer};
use beff_ffi::{Comm, MpiError};

use super::contents::{end_of_file_text, file_share, ReadbackError, ReadbackFile, BLOCK_BYTES};
use super::data::{RowData, StreamMismatch};
use super::geometry::RowGeometry;
use super::team::Team;
use super::verify_arrival;
use super::verify_result::{CorruptByte, VerifyResult};
use crate::frame::run::file_ranges::split_range;

fn compare_bytes(checked: &mut VerifyResult, shape: &RowGeometry, data: &RowData, bytes: &[u8], offset_bytes: u64) {
    let StreamMismatch { bytes_wrong, first } = data.compare(bytes, offset_bytes);
    checked.bytes_checked += bytes.len() as u64;
    if let Some((index, expected, found)) = first {
        let at = offset_bytes + index as u64;
        checked.add_wrong(bytes_wrong, || CorruptByte {
            iteration: at.checked_div(shape.step_bytes()),
            offset_bytes: Some(at),
            expected: Some(expected),
            actual: Some(found),
            diagnosis: data.diagnose(&bytes[index..], at),
        });
    }
}

/// Reads back and compares the files of a group. `names` returns the file of a rank; with `drops` pages may be dropped from the
/// cache. The inner error is this rank's: bytes that cannot be read do not count as wrong. Collective over the group.
pub(super) fn verify_files(
    team: &Team,
    shape: &RowGeometry,
    (seed, row): (u64, u64),
    names: impl Fn(u64) -> FilePath,
    drops: bool,
) -> Result<Result<VerifyResult, BackendError>, MpiError> {
    let neighbour = (shape.rank + 1) % shape.ranks;
    let data = |of: &RowGeometry| of.data(seed, row, team.member.group);
    let file = names(if shape.is_arrival_ordered() { 0 } else { neighbour });
    let source = ReadbackFile { path: &file, drop_pages: drops };
    let checked = if shape.is_arrival_ordered() {
        verify_arrival::verify_file(&team.group, shape, &data(shape), source)
    } else if shape.is_private() {
        // The neighbour is one of the ranks of the shape.
        let theirs = shape.for_rank(neighbour).unwrap_or(*shape);
        verify_range(&theirs, &data(&theirs), source, 0..theirs.file_bytes)
    } else {
        verify_range(shape, &data(shape), source, file_share(shape.file_bytes, neighbour, shape.ranks))
    };
    // Before the file is removed.
    team.group.barrier()?;
    Ok(checked)
}

/// Reads back and compares a range of a file.
///
/// # Errors
/// Opening or reading failed; bytes missing from a short file count as wrong.
pub(super) fn verify_range(
    shape: &RowGeometry,
    data: &RowData,
    source: ReadbackFile<'_>,
    range: Range<u64>,
) -> Result<VerifyResult, BackendError> {
    let mut checked = VerifyResult::default();
    if range.is_empty() {
        return Ok(checked);
    }
    let mut file = source.open()?;
    let end = range.end;
    for (at, len) in split_range(range, BLOCK_BYTES) {
        match source.read(&mut file, at, len) {
            Ok(bytes) => compare_bytes(&mut checked, shape, data, bytes, at),
            Err(ReadbackError::EndOfFile(length_bytes)) => {
                checked.add_missing(end - at, Some(at), end_of_file_text(length_bytes));
                break;
            }
            Err(ReadbackError::Failed(error)) => return Err(error),
        }
    }
    Ok(checked)
}

/// Compares the data of the last read into one buffer; in order of arrival it may be any record.
pub(super) fn verify_last_window(shape: &RowGeometry, data: &RowData, buffer: &TransferBuffer) -> VerifyResult {
    let window = &buffer.bytes()[..shape.portion.length_bytes as usize];
    let mut checked = VerifyResult::default();
    if shape.is_arrival_ordered() {
        verify_arrival::verify_window(data, window, &mut checked);
    } else if !window.is_empty() {
        compare_bytes(&mut checked, shape, data, window, shape.offset_bytes(shape.steps - 1));
    }
    checked
}

/// Compares the windows after the reads of one batch `calls`. Collective over the group.
pub(super) fn verify_windows(
    group: &Comm,
    shape: &RowGeometry,
    data: &RowData,
    buffer: &TransferBuffer,
    calls: Batch,
) -> Result<VerifyResult, MpiError> {
    let len = shape.portion.length_bytes as usize;
    let windows = &buffer.bytes()[..calls.calls as usize * len];
    if shape.is_arrival_ordered() {
        return verify_arrival::verify_windows(group, shape, data, windows, calls);
    }
    let mut checked = VerifyResult::default();
    if len > 0 {
        for (step, bytes) in (calls.first_call..).zip(windows.chunks_exact(len)) {
            compare_bytes(&mut checked, shape, data, bytes, shape.offset_bytes(step));
        }
    }
    Ok(checked)
}
