//! Copies between the ring and a shared mapping of the file: page faults take the place of system calls.
//!
//! What is an error of pwrite is a signal here: a store beyond the end of the file, or into a page for which the file
//! system finds no block, is SIGBUS. So room is made before each batch (`room`), every place is compared with the
//! length of the file before it is touched (`window`), and for what remains (a storage error, a file that somebody
//! cuts off) the process dies with a message of its own (`sigbus`).
//!
//! The bytes of a mapping may change at any time, because other ranks map them as well: only raw pointers lead there,
//! never a reference.

mod room;
mod sharing;
mod sigbus;
mod window;

use std::fs::File;
use std::path::Path;

use crate::direct::FdPair;
use crate::walk::{batch_bytes, check_fits, Walk};
use crate::{
    AccessKind, BackendError, Batch, Batches, Direct, Direction, Driver, InForce, Latency, OpenFile, OpenRequest,
    Parts, Pattern, Result, Ring, Support,
};
use room::Room;
use sharing::Sharing;
use sigbus::Watch;
use window::Window;
pub use window::WINDOW_BYTES;

/// Driver for mmap(2). Collective kinds of access use the same offsets, each rank on its own.
#[derive(Clone, Copy, Debug, Default)]
pub struct MmapDriver;

impl Driver for MmapDriver {
    fn open(&self, request: &OpenRequest<'_>) -> Result<Box<dyn OpenFile>> {
        // Collective, so before the open, which may fail on one rank alone.
        let several_hosts = sharing::on_several_hosts(request)?;
        let files = FdPair::open(request, Direct::Off.into())?;
        let (rank, ranks) = (request.comm.rank(), request.comm.size());
        Ok(Box::new(MmapFile::new(files, several_hosts, rank, ranks)?))
    }
}

/// An open file and its prepared pattern.
#[derive(Debug)]
pub(crate) struct MmapFile {
    files: FdPair,
    sharing: Sharing,
    watch: Watch,
    /// Whether the file system can reserve blocks; None: not asked yet.
    has_fallocate: Option<bool>,
    prepared: Option<Prepared>,
}

/// A pattern that batches may be asked of.
#[derive(Debug)]
struct Prepared {
    pattern: Pattern,
    room: Room,
    window: Window,
}

impl MmapFile {
    /// `rank` of `ranks` in the file's communicator: for the message of a bus error.
    pub(crate) fn new(files: FdPair, several_hosts: bool, rank: u64, ranks: u64) -> Result<Self> {
        let fail = |operation, e: &std::io::Error| BackendError::from_io(operation, &files.path, None, e);
        let sharing = Sharing::new(&files.buffered, several_hosts).map_err(|e| fail("fstatfs", &e))?;
        let watch = Watch::new(&files.path, rank, ranks).map_err(|e| fail("sigaction for SIGBUS", &e))?;
        Ok(Self { files, sharing, watch, has_fallocate: None, prepared: None })
    }

    /// What a batch needs: pattern, window and what the window is moved with.
    fn prepared(&mut self, direction: Direction) -> Result<(&Pattern, &mut Window, &File, &Watch, &Path)> {
        let path = &self.files.path;
        let p = self.prepared.as_mut().filter(|p| p.window.direction() == direction);
        let p = p.ok_or_else(|| BackendError::not_prepared(window::operation(direction), path))?;
        Ok((&p.pattern, &mut p.window, &self.files.buffered, &self.watch, path))
    }

    /// Gives the memory back; the watch first, so that it never tells of a mapping that is gone.
    fn unmap(&mut self) {
        self.watch.unmapped();
        self.prepared = None;
    }

    fn write_batch(&mut self, batch: Batch, ring: &Ring, latency: &mut Latency) -> Result<u64> {
        let (pattern, window, file, watch, path) = self.prepared(Direction::Write)?;
        let len = pattern.chunk_bytes as usize;
        let mut walk = Walk::new(pattern, batch, ring, path)?;
        for _ in 0..batch.calls {
            let mark = latency.begin();
            for (offset, index) in walk.by_ref().take(pattern.chunks_per_call as usize) {
                let from = &ring.bytes()[index..index + len];
                let to = window.place(offset, file, watch, path)?;
                // SAFETY: `from` has `len` bytes. `place` gives an address with a chunk of mapped bytes behind it,
                // writable in a window for writing, and the mapping lives until the window moves. The ring is memory
                // of its own: no overlap.
                unsafe { std::ptr::copy_nonoverlapping(from.as_ptr(), to, len) };
            }
            latency.end(mark);
        }
        Ok(batch_bytes(pattern, batch))
    }

    fn read_batch(&mut self, batch: Batch, ring: &mut Ring, latency: &mut Latency) -> Result<u64> {
        let (pattern, window, file, watch, path) = self.prepared(Direction::Read)?;
        let len = pattern.chunk_bytes as usize;
        let mut walk = Walk::new(pattern, batch, ring, path)?;
        for _ in 0..batch.calls {
            let mark = latency.begin();
            for (offset, index) in walk.by_ref().take(pattern.chunks_per_call as usize) {
                let from = window.place(offset, file, watch, path)?;
                let to = &mut ring.bytes_mut()[index..index + len];
                // SAFETY: `to` has `len` bytes. `place` gives an address with a chunk of mapped bytes behind it, and
                // the mapping lives until the window moves. The ring is memory of its own: no overlap.
                unsafe { std::ptr::copy_nonoverlapping(from, to.as_mut_ptr(), len) };
            }
            latency.end(mark);
        }
        Ok(batch_bytes(pattern, batch))
    }
}

impl OpenFile for MmapFile {
    fn support(&self, pattern: &Pattern) -> Support {
        let unsupported = refuses(pattern).or_else(|| self.sharing.refuses(pattern));
        // Each reserves the stretch of all, and looks whether it has to.
        Support::of(unsupported, pattern.is_interleaved())
    }

    fn prepare(
        &mut self,
        pattern: &Pattern,
        direction: Direction,
        ring: &mut Ring,
        _hints: &[(String, String)],
    ) -> Result<InForce> {
        self.unmap();
        let path = &self.files.path;
        check_fits(pattern, ring, path)?;
        self.files.check_form(refuses(pattern))?;
        let room = match direction {
            Direction::Read => Room::There,
            Direction::Write => Room::find(&self.files.buffered, pattern, &mut self.has_fallocate, path)?,
        };
        let window = Window::new(pattern, direction, &self.files.buffered, &self.watch, path)?;
        self.prepared = Some(Prepared { pattern: *pattern, room, window });
        Ok(in_force(pattern.kind, direction, room))
    }

    fn preallocate(&mut self, batch: Batch) -> Result<u64> {
        let path = &self.files.path;
        let p = self.prepared.as_ref().ok_or_else(|| BackendError::not_prepared("preallocate", path))?;
        match p.room {
            _ if batch.calls == 0 => {}
            Room::There => {}
            Room::Reserve => room::reserve(&self.files.buffered, &p.pattern, batch, path)?,
            Room::Zeros => room::write_zeros(&self.files.buffered, &p.pattern, batch, path)?,
        }
        Ok(batch.first_call + batch.calls)
    }

    fn write(&mut self, work: Batches<'_>, ring: &Ring) -> Result<u64> {
        work.each(|batch, latency| self.write_batch(batch, ring, latency))
    }

    fn read(&mut self, work: Batches<'_>, ring: &mut Ring) -> Result<u64> {
        work.each(|batch, latency| self.read_batch(batch, ring, latency))
    }

    /// fsync(2) alone. On Linux msync(MS_SYNC) is the same write-back of the file, restricted to a mapped range and with
    /// the metadata of fdatasync; a page stored to through a mapping is marked dirty at its first fault, so fsync finds
    /// it, also when its window has moved on. Both calls would flush the device twice and not compare with posix.
    fn sync(&mut self) -> Result<()> {
        self.files.sync()
    }

    fn close(mut self: Box<Self>) -> Result<()> {
        self.unmap();
        self.files.close()
    }
}

/// Why a mapping cannot take the place of the calls of a pattern.
fn refuses(pattern: &Pattern) -> Option<String> {
    if let Some(reason) = pattern.needs_more_than_offsets() {
        return Some(reason);
    }
    if pattern.parts == Parts::Unequal && pattern.ranks > 1 {
        // Each rank reserves the stretch of all before it stores: `Pattern::reach`.
        return Some(
            "the parts of the ranks have different lengths: no rank can reserve the pages that they share".into(),
        );
    }
    (pattern.call_bytes() == 0).then(|| "a part of no bytes cannot be mapped".into())
}

/// The report of a prepared pattern.
fn in_force(kind: AccessKind, direction: Direction, room: Room) -> InForce {
    let kind = kind.by_offsets();
    let strategy = match direction {
        Direction::Write => format!("memcpy into a shared mapping{kind}, {}", room.as_told()),
        Direction::Read => format!("memcpy out of a shared mapping{kind}, read-ahead as the kernel chooses"),
    };
    InForce { strategy, direct: Some(false), ..InForce::default() }
}

#[cfg(test)]
#[path = "mmap_tests.rs"]
mod tests;
