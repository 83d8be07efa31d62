//! Whether files and memory hold what was written, after the clock: every byte of a row, by another rank than the writer
//! where there is one, past the page cache where that can be.

use std::ops::Range;

use beff_backends::{BackendError, Batch, FilePath, Ring};
use beff_ffi::{Comm, MpiError};

use super::arrived;
use super::contents::{ends_at, share, Source, Unread, PIECE_BYTES};
use super::data::{Data, Wrong};
use super::found::{Checked, Finding};
use super::shape::Shape;
use super::team::Team;
use crate::frame::run::pieces::pieces;

/// Takes in what was compared at `offset_bytes` of the file.
fn compare(checked: &mut Checked, shape: &Shape, data: &Data, bytes: &[u8], offset_bytes: u64) {
    let Wrong { bytes_wrong, first } = data.compare(bytes, offset_bytes);
    checked.bytes_checked += bytes.len() as u64;
    if let Some((index, expected, found)) = first {
        let at = offset_bytes + index as u64;
        checked.wrong(bytes_wrong, || Finding {
            repetition: at.checked_div(shape.step_bytes()),
            offset_bytes: Some(at),
            expected: Some(expected),
            found: Some(found),
            looks_like: data.diagnose(&bytes[index..], at),
        });
    }
}

/// Reads the files of a group again. `names` tells where the file of a rank is, `drops` whether pages may be given back. The inner error is this rank's: what could not be
/// read is not known to be wrong. Collective over the group.
///
/// # Errors
/// MPI between the ranks.
pub(super) fn written(
    team: &Team,
    shape: &Shape,
    (seed, row): (u64, u64),
    names: impl Fn(u64) -> FilePath,
    drops: bool,
) -> Result<Result<Checked, BackendError>, MpiError> {
    let neighbour = (shape.rank + 1) % shape.ranks;
    let data = |of: &Shape| of.data(seed, row, team.member.group);
    let file = names(if shape.by_arrival() { 0 } else { neighbour });
    let source = Source { path: &file, drops };
    let checked = if shape.by_arrival() {
        arrived::written(&team.group, shape, &data(shape), source)
    } else if shape.is_private() {
        // The neighbour is one of the ranks of the shape.
        let theirs = shape.of_rank(neighbour).unwrap_or(*shape);
        reread(&theirs, &data(&theirs), source, 0..theirs.file_bytes)
    } else {
        reread(shape, &data(shape), source, share(shape.file_bytes, neighbour, shape.ranks))
    };
    // Before the file is removed.
    team.group.barrier()?;
    Ok(checked)
}

/// Reads a range of a file again.
///
/// # Errors
/// What opening or reading reports; a file that ends early is found to be wrong.
pub(super) fn reread(
    shape: &Shape,
    data: &Data,
    source: Source<'_>,
    range: Range<u64>,
) -> Result<Checked, BackendError> {
    let mut checked = Checked::default();
    if range.is_empty() {
        return Ok(checked);
    }
    let mut file = source.open()?;
    let end = range.end;
    for (at, len) in pieces(range, PIECE_BYTES) {
        match source.read(&mut file, at, len) {
            Ok(bytes) => compare(&mut checked, shape, data, bytes, at),
            Err(Unread::Ends(length_bytes)) => {
                checked.missing(end - at, Some(at), ends_at(length_bytes));
                break;
            }
            Err(Unread::Failed(error)) => return Err(error),
        }
    }
    Ok(checked)
}

/// Compares what the last of all reads into one buffer has left there. Of those in order of arrival it may be any record.
pub(super) fn last(shape: &Shape, data: &Data, ring: &Ring) -> Checked {
    let window = &ring.bytes()[..shape.part.length_bytes as usize];
    let mut checked = Checked::default();
    if shape.by_arrival() {
        arrived::one(data, window, &mut checked);
    } else if !window.is_empty() {
        compare(&mut checked, shape, data, window, shape.offset_bytes(shape.steps - 1));
    }
    checked
}

/// Compares what the reads of `calls`, one lap, have left in the windows. Collective over the group.
///
/// # Errors
/// MPI between the ranks.
pub(super) fn received(
    group: &Comm,
    shape: &Shape,
    data: &Data,
    ring: &Ring,
    calls: Batch,
) -> Result<Checked, MpiError> {
    let len = shape.part.length_bytes as usize;
    let windows = &ring.bytes()[..calls.calls as usize * len];
    if shape.by_arrival() {
        return arrived::received(group, shape, data, windows, calls);
    }
    let mut checked = Checked::default();
    if len > 0 {
        for (step, bytes) in (calls.first_call..).zip(windows.chunks_exact(len)) {
            compare(&mut checked, shape, data, bytes, shape.offset_bytes(step));
        }
    }
    Ok(checked)
}
