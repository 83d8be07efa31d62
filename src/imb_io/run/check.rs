//! Whether files and memory hold what was written, after the clock: every byte of a row, by another rank than the writer
//! where there is one, through plain reads.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use beff_backends::{Batch, Ring};
use beff_ffi::{Comm, MpiError};

use super::arrived;
use super::contents::{share, PIECE_BYTES};
use super::data::{Data, Wrong};
use super::shape::Shape;
use super::team::Team;

/// Bytes from a wrong one on that a diagnosis looks at.
pub(super) const LOOK_BYTES: usize = 64;

/// What one rank found.
#[derive(Clone, Debug, Default)]
pub(super) struct Checked {
    pub(super) bytes_checked: u64,
    pub(super) bytes_wrong: u64,
    pub(super) finding: Option<Finding>,
}

/// The first wrong byte.
#[derive(Clone, Debug, Default)]
pub(super) struct Finding {
    pub(super) repetition: Option<u64>,
    pub(super) offset_bytes: Option<u64>,
    pub(super) expected: Option<u8>,
    pub(super) found: Option<u8>,
    pub(super) looks_like: String,
}

impl Checked {
    /// Takes in what was found behind it.
    pub(super) fn add(&mut self, next: Self) {
        self.bytes_checked += next.bytes_checked;
        self.bytes_wrong += next.bytes_wrong;
        self.finding = self.finding.take().or(next.finding);
    }

    /// Takes in what was compared at `offset_bytes` of the file.
    fn take(&mut self, shape: &Shape, data: &Data, bytes: &[u8], offset_bytes: u64) {
        let Wrong { bytes_wrong, first } = data.compare(bytes, offset_bytes);
        self.bytes_checked += bytes.len() as u64;
        self.bytes_wrong += bytes_wrong;
        if let (Some((index, expected, found)), None) = (first, &self.finding) {
            let at = offset_bytes + index as u64;
            let look = &bytes[index..bytes.len().min(index + LOOK_BYTES)];
            self.finding = Some(Finding {
                repetition: at.checked_div(shape.step_bytes()),
                offset_bytes: Some(at),
                expected: Some(expected),
                found: Some(found),
                looks_like: data.diagnose(look, at),
            });
        }
    }

    /// Bytes that cannot be looked at are wrong.
    pub(super) fn missing(&mut self, bytes: u64, offset_bytes: Option<u64>, why: String) {
        self.bytes_checked += bytes;
        self.bytes_wrong += bytes;
        self.finding.get_or_insert(Finding { offset_bytes, looks_like: why, ..Finding::default() });
    }
}

/// Reads the files of a group again. `names` tells where the file of a rank is. Collective over the group.
///
/// # Errors
/// MPI between the ranks.
pub(super) fn written(
    team: &Team,
    shape: &Shape,
    (seed, row): (u64, u64),
    names: impl Fn(u64) -> PathBuf,
) -> Result<Checked, MpiError> {
    let neighbour = (shape.rank + 1) % shape.ranks;
    let group = team.member.group;
    if shape.by_arrival() {
        return arrived::written(&team.group, shape, &shape.data(seed, row, group), &names(0));
    }
    let mut checked = Checked::default();
    // The neighbour is one of the ranks of the shape.
    let theirs = shape.of_rank(neighbour).unwrap_or(*shape);
    let (of, (begin, end)) = if shape.is_private() {
        (theirs, (0, theirs.file_bytes))
    } else {
        (*shape, share(shape.file_bytes, neighbour, shape.ranks))
    };
    reread(&mut checked, &of, &of.data(seed, row, group), &names(neighbour), begin, end);
    // Before the file is removed.
    team.group.barrier()?;
    Ok(checked)
}

pub(super) fn reread(checked: &mut Checked, shape: &Shape, data: &Data, path: &Path, begin: u64, end: u64) {
    if begin == end {
        return;
    }
    let file = match File::open(path) {
        Ok(file) => file,
        Err(e) => return checked.missing(end - begin, Some(begin), format!("the file cannot be opened: {e}")),
    };
    let mut piece = vec![0; PIECE_BYTES.min(end - begin) as usize];
    let mut at = begin;
    while at < end {
        let now = &mut piece[..PIECE_BYTES.min(end - at) as usize];
        if let Err(e) = file.read_exact_at(now, at) {
            return checked.missing(end - at, Some(at), cannot_read(&file, &e));
        }
        checked.take(shape, data, now, at);
        at += now.len() as u64;
    }
}

/// Why bytes of a file are not there.
pub(super) fn cannot_read(file: &File, error: &io::Error) -> String {
    match file.metadata() {
        Ok(facts) if error.kind() == io::ErrorKind::UnexpectedEof => format!("the file ends at {}", facts.len()),
        _ => format!("the file cannot be read: {error}"),
    }
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
            checked.take(shape, data, bytes, shape.offset_bytes(step));
        }
    }
    Ok(checked)
}
