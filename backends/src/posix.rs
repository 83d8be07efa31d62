//! pread and pwrite, one system call per chunk.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::Path;

use crate::direct::FdPair;
use crate::edges::{EdgeWalk, Stretch, MAX_SECTOR_BYTES};
use crate::latency::Mark;
use crate::offsets::{self, Offsets};
use crate::patience::uninterrupted;
#[cfg(feature = "test-hooks")]
use crate::rmw::Scratch;
use crate::route::Route;
use crate::two_phase::{self, Shelf};
use crate::walk::{batch_bytes, Walk};
use crate::{
    dontcache, BackendError, Batch, Batches, Direction, Driver, DriverOptions, InForce, Latency, OpenFile, OpenRequest,
    Pattern, Protocol, Result, Ring, Support,
};

/// Driver for pread(2) and pwrite(2). Collective kinds of access use the same offsets, each rank on its own; an order of
/// arrival, and calls that return before they are done, it does not have.
#[derive(Clone, Debug)]
pub struct PosixDriver {
    options: DriverOptions,
    shelf: Shelf,
}

impl PosixDriver {
    /// Takes from the options what decides the way of the transfers.
    #[must_use]
    pub fn new(options: &DriverOptions) -> Self {
        Self { options: options.clone(), shelf: Shelf::default() }
    }
}

impl Driver for PosixDriver {
    fn open(&self, request: &OpenRequest<'_>) -> Result<Box<dyn OpenFile>> {
        Ok(Box::new(PosixFile::new(Offsets::open(request, &self.options, None, &self.shelf)?)))
    }

    fn provide(&self, ranks: u64, hosts: u64) {
        two_phase::provide(&self.options, None, &self.shelf, (ranks, hosts));
    }
}

/// An open file and its prepared pattern.
pub(crate) struct PosixFile {
    file: Offsets,
    prepared: Option<Prepared>,
}

/// A pattern and its way.
#[derive(Debug)]
struct Prepared {
    pattern: Pattern,
    route: Route,
    /// For [`Route::UnsafeReadModifyWrite`].
    #[cfg(feature = "test-hooks")]
    scratch: Option<Scratch>,
}

impl PosixFile {
    pub(crate) fn new(file: Offsets) -> Self {
        Self { file, prepared: None }
    }

    fn write_batch(&mut self, batch: Batch, ring: &Ring, latency: &mut Latency) -> Result<u64> {
        let Self { file: Offsets { two_phase, files, .. }, prepared } = self;
        if two_phase.is_active() {
            return two_phase.write(files, batch, ring, latency);
        }
        let prepared = prepared.as_mut().ok_or_else(|| BackendError::not_prepared("pwrite", &files.path))?;
        let mut timer = CallTimer::new(latency, prepared.pattern.chunks_per_call);
        match prepared.route {
            Route::DirectEdges { align_bytes } => write_edges(files, prepared, align_bytes, batch, ring, &mut timer),
            #[cfg(feature = "test-hooks")]
            Route::UnsafeReadModifyWrite { .. } => write_copies(files, prepared, batch, ring, &mut timer),
            Route::Buffered { .. } if files.drops_pages(&prepared.route) => {
                let walk = Walk::new(&prepared.pattern, batch, ring, &files.path)?;
                let call = |file: &File, at, offset| dontcache::write_at(file, &ring.bytes()[at], offset);
                chunks("pwrite", files, prepared, walk, &mut timer, call)
            }
            Route::Direct { .. } | Route::Buffered { .. } => {
                let walk = Walk::new(&prepared.pattern, batch, ring, &files.path)?;
                let call = |file: &File, at, offset| file.write_at(&ring.bytes()[at], offset);
                chunks("pwrite", files, prepared, walk, &mut timer, call)
            }
        }?;
        Ok(batch_bytes(&prepared.pattern, batch))
    }

    fn read_batch(&mut self, batch: Batch, ring: &mut Ring, latency: &mut Latency) -> Result<u64> {
        let Self { file: Offsets { two_phase, files, .. }, prepared } = self;
        if two_phase.is_active() {
            return two_phase.read(files, batch, ring, latency);
        }
        let prepared = prepared.as_mut().ok_or_else(|| BackendError::not_prepared("pread", &files.path))?;
        let mut timer = CallTimer::new(latency, prepared.pattern.chunks_per_call);
        match prepared.route {
            Route::DirectEdges { align_bytes } => read_edges(files, prepared, align_bytes, batch, ring, &mut timer),
            #[cfg(feature = "test-hooks")]
            Route::UnsafeReadModifyWrite { .. } => read_copies(files, prepared, batch, ring, &mut timer),
            Route::Buffered { .. } if files.drops_pages(&prepared.route) => {
                let walk = Walk::new(&prepared.pattern, batch, ring, &files.path)?;
                let call = |file: &File, at, offset| dontcache::read_at(file, &mut ring.bytes_mut()[at], offset);
                chunks("pread", files, prepared, walk, &mut timer, call)
            }
            Route::Direct { .. } | Route::Buffered { .. } => {
                let walk = Walk::new(&prepared.pattern, batch, ring, &files.path)?;
                let call = |file: &File, at, offset| file.read_at(&mut ring.bytes_mut()[at], offset);
                chunks("pread", files, prepared, walk, &mut timer, call)
            }
        }?;
        Ok(batch_bytes(&prepared.pattern, batch))
    }
}

impl OpenFile for PosixFile {
    fn support(&self, pattern: &Pattern) -> Support {
        self.file.support(pattern, pattern.needs_more_than_offsets())
    }

    fn prepare(
        &mut self,
        pattern: &Pattern,
        direction: Direction,
        ring: &mut Ring,
        _hints: &[(String, String)],
    ) -> Result<InForce> {
        let route = match self.file.prepare(pattern, direction, ring, pattern.needs_more_than_offsets())? {
            offsets::Prepared::TwoPhase(told) => return Ok(told),
            offsets::Prepared::Alone(route) => route,
        };
        let files = &self.file.files;
        let call = match direction {
            Direction::Write => "pwrite",
            Direction::Read => "pread",
        };
        let mut told = files.in_force(call, pattern.kind, direction, &route);
        told.strategy += self.file.room_told();
        self.prepared = Some(Prepared {
            pattern: *pattern,
            #[cfg(feature = "test-hooks")]
            scratch: Scratch::for_route(&route, pattern, &files.path)?,
            route,
        });
        Ok(told)
    }

    fn preallocate(&mut self, batch: Batch) -> Result<u64> {
        self.file.preallocate(batch)
    }

    fn trim(&mut self) -> Result<Option<String>> {
        self.file.trim()
    }

    fn protocol(&self) -> Protocol {
        Protocol { lockstep: self.file.keeps_step(), pipelined: false }
    }

    fn write(&mut self, work: Batches<'_>, ring: &Ring) -> Result<u64> {
        work.each(|batch, latency| self.write_batch(batch, ring, latency))
    }

    fn read(&mut self, work: Batches<'_>, ring: &mut Ring) -> Result<u64> {
        work.each(|batch, latency| self.read_batch(batch, ring, latency))
    }

    fn sync(&mut self) -> Result<()> {
        self.file.sync()
    }

    fn close(self: Box<Self>) -> Result<()> {
        self.file.close()
    }
}

/// Moves every chunk as it is; `call` moves these bytes of the ring.
#[inline]
fn chunks(
    operation: &'static str,
    files: &FdPair,
    prepared: &Prepared,
    walk: Walk,
    timer: &mut CallTimer<'_>,
    mut call: impl FnMut(&File, Range<usize>, u64) -> io::Result<usize>,
) -> Result<()> {
    let Prepared { pattern, route, .. } = prepared;
    let file = files.file(route);
    let len = pattern.chunk_bytes as usize;
    for (offset, index) in walk {
        transfer(len, route, |got| call(file, index + got..index + len, offset + got as u64))
            .map_err(|stopped| chunk_error(operation, files, prepared, offset, stopped))?;
        timer.chunk_done();
    }
    Ok(())
}

/// Writes whole sectors, and keeps the last one for the sync.
fn write_edges(
    files: &mut FdPair,
    prepared: &Prepared,
    align_bytes: u64,
    batch: Batch,
    ring: &Ring,
    timer: &mut CallTimer<'_>,
) -> Result<()> {
    let route = &prepared.route;
    let stretch = Stretch::new(&prepared.pattern, batch, align_bytes);
    let mut walk = EdgeWalk::new(&stretch, Direction::Write, batch, ring, &files.path)?;
    files.write_head(&stretch, ring)?;
    let file = files.file(route);
    while let Some(piece) = walk.next_chunk() {
        if piece.len > 0 {
            let len = piece.len as usize;
            let sectors = &ring.mapped()[piece.index..piece.index + len];
            transfer(len, route, |got| file.write_at(&sectors[got..], piece.offset + got as u64))
                .map_err(|stopped| sectors_error("pwrite", &files.path, &stretch, piece.offset, stopped))?;
        }
        timer.chunk_done();
    }
    files.carry_tail(&stretch, ring);
    Ok(())
}

/// Reads whole sectors; memory beside the batch stays as it was.
fn read_edges(
    files: &FdPair,
    prepared: &Prepared,
    align_bytes: u64,
    batch: Batch,
    ring: &mut Ring,
    timer: &mut CallTimer<'_>,
) -> Result<()> {
    let route = &prepared.route;
    let file = files.file(route);
    let stretch = Stretch::new(&prepared.pattern, batch, align_bytes);
    let mut walk = EdgeWalk::new(&stretch, Direction::Read, batch, ring, &files.path)?;
    let mut kept = [0; 2 * MAX_SECTOR_BYTES as usize];
    while let Some(piece) = walk.next_chunk() {
        if piece.len > 0 {
            let len = piece.len as usize;
            let sectors = &mut ring.mapped_mut()[piece.index..piece.index + len];
            let (before, after) = (usize::from(piece.guard.before), usize::from(piece.guard.after));
            kept[..before].copy_from_slice(&sectors[..before]);
            kept[before..before + after].copy_from_slice(&sectors[len - after..]);
            let done = transfer(len - after, route, |got| file.read_at(&mut sectors[got..], piece.offset + got as u64));
            sectors[..before].copy_from_slice(&kept[..before]);
            sectors[len - after..].copy_from_slice(&kept[before..before + after]);
            done.map_err(|stopped| sectors_error("pread", &files.path, &stretch, piece.offset, stopped))?;
        }
        timer.chunk_done();
    }
    Ok(())
}

/// Writes chunks through a copy in which other ranks' bytes may be old.
#[cfg(feature = "test-hooks")]
fn write_copies(
    files: &FdPair,
    prepared: &mut Prepared,
    batch: Batch,
    ring: &Ring,
    timer: &mut CallTimer<'_>,
) -> Result<()> {
    let Prepared { pattern, route, scratch } = prepared;
    let scratch = scratch.as_mut().ok_or_else(|| BackendError::not_prepared("pwrite", &files.path))?;
    scratch.write_batch(files.file(route), pattern, batch, ring, &files.path, || timer.chunk_done())
}

/// Reads chunks through a copy.
#[cfg(feature = "test-hooks")]
fn read_copies(
    files: &FdPair,
    prepared: &mut Prepared,
    batch: Batch,
    ring: &mut Ring,
    timer: &mut CallTimer<'_>,
) -> Result<()> {
    let Prepared { pattern, route, scratch } = prepared;
    let scratch = scratch.as_mut().ok_or_else(|| BackendError::not_prepared("pread", &files.path))?;
    scratch.read_batch(files.file(route), pattern, batch, ring, &files.path, || timer.chunk_done())
}

/// How far a transfer came, and the error of the call; without one the file or the space ended.
type Stopped = (usize, Option<io::Error>);

/// The error of a chunk at `offset`.
#[cold]
fn chunk_error(
    operation: &'static str,
    files: &FdPair,
    prepared: &Prepared,
    offset: u64,
    (got, error): Stopped,
) -> BackendError {
    let Some(error) = error else {
        return BackendError::short(operation, &files.path, offset, prepared.pattern.chunk_bytes, got as u64);
    };
    let told = BackendError::from_io(operation, &files.path, Some(offset + got as u64), &error);
    if files.drops_pages(&prepared.route) {
        return dontcache::explain(told, error.raw_os_error());
    }
    told
}

/// The error of whole sectors at `offset`.
#[cold]
fn sectors_error(
    operation: &'static str,
    path: &Path,
    stretch: &Stretch,
    offset: u64,
    (got, error): Stopped,
) -> BackendError {
    let reached = offset + got as u64;
    match error {
        Some(error) => BackendError::from_io(operation, path, Some(reached), &error),
        None => stretch.short(operation, path, reached),
    }
}

/// Times the calls of a batch, chunk after chunk.
struct CallTimer<'a> {
    latency: &'a mut Latency,
    chunks_per_call: u64,
    left: u64,
    mark: Mark,
}

impl<'a> CallTimer<'a> {
    fn new(latency: &'a mut Latency, chunks_per_call: u64) -> Self {
        let mark = latency.begin();
        Self { latency, chunks_per_call, left: chunks_per_call, mark }
    }

    #[inline]
    fn chunk_done(&mut self) {
        self.left -= 1;
        if self.left == 0 {
            self.left = self.chunks_per_call;
            self.latency.end(self.mark);
            self.mark = self.latency.begin();
        }
    }
}

/// Repeats `call(bytes moved so far)` until `len` bytes have moved. One call does it, unless the chunk is longer than
/// the kernel takes at once (0x7ffff000 bytes), a signal came in between, or the file or the space ends.
///
/// # Errors
/// Bytes moved so far, with the error of the call, or without one if nothing more came.
#[inline]
fn transfer(
    len: usize,
    route: &Route,
    mut call: impl FnMut(usize) -> io::Result<usize>,
) -> std::result::Result<(), Stopped> {
    let mut got = 0;
    loop {
        match uninterrupted(|| call(got)) {
            // A part of nothing is moved by one call too.
            Ok(0) if len > 0 => return Err((got, None)),
            Ok(moved) => got += moved,
            Err(error) => return Err((got, Some(error))),
        }
        if got >= len {
            return Ok(());
        }
        if !route.can_continue(got as u64) {
            return Err((got, None));
        }
    }
}

#[cfg(test)]
#[path = "posix_tests.rs"]
mod tests;
