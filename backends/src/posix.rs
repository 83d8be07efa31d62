//! pread and pwrite, one system call per chunk.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use crate::direct::{FdPair, Policy};
use crate::edges::{EdgeWalk, Stretch, MAX_SECTOR_BYTES};
use crate::latency::Mark;
use crate::rmw::Scratch;
use crate::route::Route;
use crate::two_phase::TwoPhase;
use crate::walk::{batch_bytes, check_fits, Walk};
use crate::{
    dontcache, BackendError, Batch, Direction, Driver, DriverOptions, InForce, Latency, OpenFile, OpenRequest, Pattern,
    Result, Ring,
};

/// Driver for pread(2) and pwrite(2). Collective kinds of access use the same offsets, each rank on its own; an order of
/// arrival, and calls that return before they are done, it does not have.
#[derive(Clone, Debug)]
pub struct PosixDriver {
    options: DriverOptions,
}

impl PosixDriver {
    /// Takes from the options what decides the way of the transfers.
    #[must_use]
    pub fn new(options: &DriverOptions) -> Self {
        Self { options: options.clone() }
    }
}

impl Driver for PosixDriver {
    fn open(&self, request: &OpenRequest<'_>) -> Result<Box<dyn OpenFile>> {
        // What is collective comes first: no rank may leave before.
        let two_phase = TwoPhase::new(request, &self.options, None);
        let file = PosixFile::new(FdPair::open(request, Policy::from(&self.options))?);
        Ok(Box::new(PosixFile { two_phase: two_phase?, ..file }))
    }
}

/// An open file and its prepared pattern.
pub(crate) struct PosixFile {
    two_phase: TwoPhase,
    files: FdPair,
    prepared: Option<Prepared>,
}

/// A pattern and its way.
#[derive(Debug)]
struct Prepared {
    pattern: Pattern,
    route: Route,
    /// For [`Route::UnsafeReadModifyWrite`].
    scratch: Option<Scratch>,
}

impl PosixFile {
    pub(crate) fn new(files: FdPair) -> Self {
        Self { two_phase: TwoPhase::never(&DriverOptions::default(), None), files, prepared: None }
    }
}

impl OpenFile for PosixFile {
    fn unsupported(&self, pattern: &Pattern) -> Option<String> {
        if let Some(reason) = pattern.needs_more_than_offsets() {
            return Some(reason);
        }
        let two_phase = self.two_phase.unsupported(pattern, &self.files);
        two_phase.unwrap_or_else(|| self.files.unsupported(pattern))
    }

    fn prepare(
        &mut self,
        pattern: &Pattern,
        direction: Direction,
        ring: &mut Ring,
        _hints: &[(String, String)],
    ) -> Result<InForce> {
        check_fits(pattern, ring, &self.files.path)?;
        self.files.check_form(pattern.needs_more_than_offsets())?;
        self.files.flush_edges()?;
        if let Some(told) = self.two_phase.prepare(&self.files, pattern, direction, ring)? {
            return Ok(told);
        }
        let route = self.files.route_or_error(pattern, direction, ring)?;
        let call = match direction {
            Direction::Write => "pwrite",
            Direction::Read => "pread",
        };
        let told = self.files.in_force(call, pattern.kind, direction, &route);
        let scratch = Scratch::for_route(&route, pattern, &self.files.path)?;
        self.prepared = Some(Prepared { pattern: *pattern, route, scratch });
        Ok(told)
    }

    fn write(&mut self, batch: Batch, ring: &Ring, latency: &mut Latency) -> Result<u64> {
        if self.two_phase.is_active() {
            return self.two_phase.write(&self.files, batch, ring, latency);
        }
        let Self { files, prepared, .. } = self;
        let prepared = prepared.as_mut().ok_or_else(|| BackendError::not_prepared("pwrite", &files.path))?;
        let mut timer = CallTimer::new(latency, prepared.pattern.chunks_per_call);
        match prepared.route {
            Route::DirectEdges { align_bytes } => write_edges(files, prepared, align_bytes, batch, ring, &mut timer),
            Route::UnsafeReadModifyWrite { .. } => write_copies(files, prepared, batch, ring, &mut timer),
            Route::Buffered { .. } if files.drops_pages(&prepared.route) => {
                write_chunks(files, prepared, batch, ring, &mut timer, dontcache::write_at)
            }
            Route::Direct { .. } | Route::Buffered { .. } => {
                write_chunks(files, prepared, batch, ring, &mut timer, FileExt::write_at)
            }
        }?;
        Ok(batch_bytes(&prepared.pattern, batch))
    }

    fn read(&mut self, batch: Batch, ring: &mut Ring, latency: &mut Latency) -> Result<u64> {
        if self.two_phase.is_active() {
            return self.two_phase.read(&self.files, batch, ring, latency);
        }
        let Self { files, prepared, .. } = self;
        let prepared = prepared.as_mut().ok_or_else(|| BackendError::not_prepared("pread", &files.path))?;
        let mut timer = CallTimer::new(latency, prepared.pattern.chunks_per_call);
        match prepared.route {
            Route::DirectEdges { align_bytes } => read_edges(files, prepared, align_bytes, batch, ring, &mut timer),
            Route::UnsafeReadModifyWrite { .. } => read_copies(files, prepared, batch, ring, &mut timer),
            Route::Buffered { .. } if files.drops_pages(&prepared.route) => {
                read_chunks(files, prepared, batch, ring, &mut timer, dontcache::read_at)
            }
            Route::Direct { .. } | Route::Buffered { .. } => {
                read_chunks(files, prepared, batch, ring, &mut timer, FileExt::read_at)
            }
        }?;
        Ok(batch_bytes(&prepared.pattern, batch))
    }

    fn sync(&mut self) -> Result<()> {
        let flushed = self.two_phase.flush(&self.files);
        flushed.and(self.files.sync())
    }

    fn close(self: Box<Self>) -> Result<()> {
        let Self { two_phase, files, .. } = *self;
        let flushed = two_phase.close(&files);
        flushed.and(files.close())
    }
}

/// Writes every chunk as it is.
#[inline]
fn write_chunks(
    files: &FdPair,
    prepared: &Prepared,
    batch: Batch,
    ring: &Ring,
    timer: &mut CallTimer<'_>,
    call: impl Fn(&File, &[u8], u64) -> io::Result<usize>,
) -> Result<()> {
    let Prepared { pattern, route, .. } = prepared;
    let file = files.file(route);
    let len = pattern.chunk_bytes as usize;
    for (offset, index) in Walk::new(pattern, batch, ring, &files.path)? {
        let chunk = &ring.bytes()[index..index + len];
        transfer(len, route, |got| call(file, &chunk[got..], offset + got as u64))
            .map_err(|stopped| chunk_error("pwrite", files, prepared, offset, stopped))?;
        timer.chunk_done();
    }
    Ok(())
}

/// Reads every chunk as it is.
#[inline]
fn read_chunks(
    files: &FdPair,
    prepared: &Prepared,
    batch: Batch,
    ring: &mut Ring,
    timer: &mut CallTimer<'_>,
    call: impl Fn(&File, &mut [u8], u64) -> io::Result<usize>,
) -> Result<()> {
    let Prepared { pattern, route, .. } = prepared;
    let file = files.file(route);
    let len = pattern.chunk_bytes as usize;
    for (offset, index) in Walk::new(pattern, batch, ring, &files.path)? {
        let chunk = &mut ring.bytes_mut()[index..index + len];
        transfer(len, route, |got| call(file, &mut chunk[got..], offset + got as u64))
            .map_err(|stopped| chunk_error("pread", files, prepared, offset, stopped))?;
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
        match call(got) {
            // A part of nothing is moved by one call too.
            Ok(0) if len > 0 => return Err((got, None)),
            Ok(moved) => got += moved,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
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
