//! Initial files, created with their size and known words outside the timed region: before the first call, or before their first opening
//! if the program itself made them while it ran (`made`). Their pages are then as recent in the replay as they were when recorded.

use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use beff_backends::FilePath;
use beff_ffi::{Comm, MpiError};
use beff_trace::{OpenedFile, ProfileHead};
use nix::fcntl::OFlag;

use crate::frame::run::agree;
use crate::frame::system::residency;
use crate::replay::plan::preparation::FileState;
use crate::replay::run::write_source::WriteSources;

/// Block size for writing, distributed cyclically over the ranks. File systems with large folios keep the data of one write call as one
/// folio in the page cache, and a small write into a large folio is slow: 4 KiB on ext4 (Linux 6.18) 1.6 us after writes of 64 to 256
/// KiB, 2.9 us after 1 MiB, 4.5 us after 4 MiB (benches/replay/copies.c).
const BLOCK_BYTES: u64 = 1 << 20;

/// True for a file that is created directly before its first opening.
fn is_created_late(file: &OpenedFile) -> bool {
    file.created_ns.is_some() && file.size_bytes.is_some_and(|bytes| bytes > 0)
}

/// Creates the files of a repetition that exist before the first call. Inner error: rank and message, equal on all ranks. Collective.
///
/// # Errors
/// MPI between the ranks.
pub(super) fn create_files(
    comm: &Comm,
    head: &ProfileHead,
    paths: &[FilePath],
    sources: &WriteSources,
    drop_pages: bool,
) -> Result<Result<u64, (u64, String)>, MpiError> {
    let early = |file: &OpenedFile| file.size_bytes.filter(|_| !is_created_late(file));
    let wanted =
        || head.files.iter().zip(paths).enumerate().filter_map(|(n, (file, path))| Some((n, path, early(file)?)));
    let message = |path: &Path, e: io::Error| format!("{}: {e}", path.display());
    let create = |(_, path, bytes): (usize, &FilePath, u64)| {
        path.create().and_then(|file| file.set_len(bytes)).map_err(|e| message(path, e))
    };
    let created = if comm.is_root() { wanted().try_for_each(create) } else { Ok(()) };
    if let Err(error) = agree::all_or_first_error(comm, created)? {
        return Ok(Err(error));
    }
    let mut block = vec![0; BLOCK_BYTES as usize];
    let mut fill = |(n, path, bytes): (usize, &FilePath, u64)| {
        write_blocks(comm, path, bytes, &mut block, |at, part| sources.file_words(n as u32).fill_from(at, part))
            .map_err(|e| message(path, e))
    };
    let filled = wanted().try_for_each(&mut fill);
    if let Err(error) = agree::all_or_first_error(comm, filled)? {
        return Ok(Err(error));
    }
    if drop_pages {
        // Pages that remain are reported by the residency check.
        wanted().for_each(|(_, path, _)| drop(path.open_to_read().and_then(|file| residency::drop_file_pages(&file))));
    }
    comm.barrier()?;
    Ok(Ok(wanted().map(|(_, _, bytes)| bytes).sum()))
}

fn write_blocks(
    comm: &Comm,
    path: &FilePath,
    bytes: u64,
    block: &mut [u8],
    words: impl Fn(u64, &mut [u8]),
) -> io::Result<()> {
    if comm.rank() * BLOCK_BYTES >= bytes {
        return Ok(());
    }
    let file = path.open_to_update()?;
    let mut at = comm.rank() * BLOCK_BYTES;
    while at < bytes {
        let part = &mut block[..BLOCK_BYTES.min(bytes - at) as usize];
        words(at, part);
        file.write_all_at(part, at)?;
        let Some(next) = at.checked_add(comm.size() * BLOCK_BYTES) else { break };
        at = next;
    }
    file.sync_all()
}

/// State of a file before an opening or a deletion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RequiredState {
    pub file: u32,
    pub state: FileState,
    /// End of writes in flight at that time.
    pub in_flight_end_bytes: u64,
    /// Other calls were changing the file at that time: it is neither removed nor truncated.
    pub only_grows: bool,
}

/// Brings a file into its recorded state. Data beyond its length was not written by recorded calls: these are the initial words of the
/// file. It is synced like the initial files, so that a sync of the program writes only its own data.
///
/// # Errors
/// The error of the file system.
pub(super) fn establish_state(path: &FilePath, required: &RequiredState, sources: &WriteSources) -> io::Result<()> {
    let RequiredState { file: number, state, in_flight_end_bytes: under_way_bytes, only_grows } = *required;
    let found = match path.size_bytes() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        size => Some(size?),
    };
    let size_bytes = match (state, found) {
        (FileState::Absent, Some(_)) if !only_grows => return path.remove(),
        (FileState::Absent, _) | (FileState::Present, Some(_)) => return Ok(()),
        (FileState::Present, None) => 0,
        (FileState::Size(bytes), _) => bytes,
    };
    if found == Some(size_bytes) {
        return Ok(());
    }
    let file = path.open(OFlag::O_RDWR | OFlag::O_CREAT)?;
    if found.is_some_and(|bytes| bytes > size_bytes) {
        return if only_grows { Ok(()) } else { file.set_len(size_bytes) };
    }
    // Up to there, data of calls is in flight.
    let mut at = file.metadata()?.len().max(under_way_bytes);
    let mut block = vec![0; BLOCK_BYTES.min(size_bytes.saturating_sub(at)) as usize];
    while at < size_bytes {
        let bytes = BLOCK_BYTES.min(size_bytes - at) as usize;
        sources.file_words(number).fill_from(at, &mut block[..bytes]);
        file.write_all_at(&block[..bytes], at)?;
        at += bytes as u64;
    }
    file.sync_data()
}

/// Bytes of the files in the page cache of this host; None if unknown.
pub(super) fn resident_bytes(paths: &[FilePath], fs_type: &str) -> Option<u64> {
    if residency::unavailable_reason(fs_type).is_some() {
        return None;
    }
    let of_one = |path: &FilePath| match path.open_to_read() {
        Ok(file) => residency::resident_bytes(&file, &(0..u64::MAX)).ok().map(|(bytes, _)| bytes),
        Err(_) => Some(0),
    };
    paths.iter().map(of_one).sum()
}
