//! Files that must be there, made with their size and known words, outside the clock: before the first call, or before their first opening
//! if the program itself made them while it ran (`made`). Their pages are then as young in the replay as they were there.

use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use beff_backends::FilePath;
use beff_ffi::{Comm, MpiError};
use beff_trace::{Head, OpenedFile};
use nix::fcntl::OFlag;

use crate::frame::run::agree;
use crate::frame::system::residency;
use crate::replay::run::source::Sources;

/// Written in blocks of this many bytes, the ranks in turns. File systems with large folios keep in the page cache what was written with
/// one call as one piece, and a small write into a large piece is slow: 4 KiB on ext4 (Linux 6.18) 1.6 us after writes of 64 to 256 KiB, 2.9
/// us after 1 MiB, 4.5 us after 4 MiB (benches/replay/copies.c).
const BLOCK: u64 = 1 << 20;

/// True for a file that is made right before its first opening.
fn is_made_late(file: &OpenedFile) -> bool {
    file.made_ns.is_some() && file.size_bytes.is_some_and(|bytes| bytes > 0)
}

/// Makes the files of a pass that are there from the begin. Inner: rank and message of what went wrong, equal on all ranks. Collective.
///
/// # Errors
/// MPI between the ranks.
pub(super) fn make(
    comm: &Comm,
    head: &Head,
    paths: &[FilePath],
    sources: &Sources,
    drop_pages: bool,
) -> Result<Result<u64, (u64, String)>, MpiError> {
    let early = |file: &OpenedFile| file.size_bytes.filter(|_| !is_made_late(file));
    let wanted =
        || head.files.iter().zip(paths).enumerate().filter_map(|(n, (file, path))| Some((n, path, early(file)?)));
    let told = |path: &Path, e: io::Error| format!("{}: {e}", path.display());
    let create = |(_, path, bytes): (usize, &FilePath, u64)| {
        path.create().and_then(|file| file.set_len(bytes)).map_err(|e| told(path, e))
    };
    let made = if comm.is_root() { wanted().try_for_each(create) } else { Ok(()) };
    if let Err(error) = agree::all(comm, made)? {
        return Ok(Err(error));
    }
    let mut block = vec![0; BLOCK as usize];
    let mut fill = |(n, path, bytes): (usize, &FilePath, u64)| {
        fill(comm, path, bytes, &mut block, |at, part| sources.of_file(n as u32).fill(at, part))
            .map_err(|e| told(path, e))
    };
    let filled = wanted().try_for_each(&mut fill);
    if let Err(error) = agree::all(comm, filled)? {
        return Ok(Err(error));
    }
    if drop_pages {
        // What stays is seen when residency is asked.
        wanted().for_each(|(_, path, _)| drop(path.open_to_read().and_then(|file| residency::drop_file(&file))));
    }
    comm.barrier()?;
    Ok(Ok(wanted().map(|(_, _, bytes)| bytes).sum()))
}

/// Writes this rank's blocks of a file.
fn fill(comm: &Comm, path: &FilePath, bytes: u64, block: &mut [u8], words: impl Fn(u64, &mut [u8])) -> io::Result<()> {
    if comm.rank() * BLOCK >= bytes {
        return Ok(());
    }
    let file = path.open_to_update()?;
    let mut at = comm.rank() * BLOCK;
    while at < bytes {
        let part = &mut block[..BLOCK.min(bytes - at) as usize];
        words(at, part);
        file.write_all_at(part, at)?;
        let Some(next) = at.checked_add(comm.size() * BLOCK) else { break };
        at = next;
    }
    file.sync_all()
}

/// A file that is opened, how long it was then, and how far calls write in it that are under way then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Grown {
    pub file: u32,
    pub size_bytes: u64,
    pub under_way_bytes: u64,
}

impl Grown {
    /// True if it is not as long yet.
    pub fn is_short(&self, path: &FilePath) -> bool {
        !path.size_bytes().is_ok_and(|bytes| bytes >= self.size_bytes)
    }
}

/// Makes a file as long as it was before an opening, with the same words as at the begin: what calls had not made came by other means. On
/// storage then, as the files that were there from the begin, so that a sync of the program finds its own data alone.
///
/// # Errors
/// What the file system says.
pub(super) fn grow(path: &FilePath, grown: &Grown, sources: &Sources) -> io::Result<()> {
    let Grown { file: number, size_bytes, under_way_bytes } = *grown;
    let file = path.open(OFlag::O_RDWR | OFlag::O_CREAT)?;
    // Up to there the data of calls is under way.
    let mut at = file.metadata()?.len().max(under_way_bytes);
    let mut block = vec![0; BLOCK.min(size_bytes.saturating_sub(at)) as usize];
    while at < size_bytes {
        let bytes = BLOCK.min(size_bytes - at) as usize;
        sources.of_file(number).fill(at, &mut block[..bytes]);
        file.write_all_at(&block[..bytes], at)?;
        at += bytes as u64;
    }
    file.sync_data()
}

/// Bytes of the files in the page cache of this host; None: not known.
pub(super) fn resident_bytes(paths: &[FilePath], fs_type: &str) -> Option<u64> {
    if residency::untold(fs_type).is_some() {
        return None;
    }
    let of_one = |path: &FilePath| match path.open_to_read() {
        Ok(file) => residency::resident_bytes(&file, &(0..u64::MAX)).ok().map(|(bytes, _)| bytes),
        Err(_) => Some(0),
    };
    paths.iter().map(of_one).sum()
}
