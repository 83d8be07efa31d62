//! pread and pwrite, one system call per chunk.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::Path;

use crate::direct::FdPair;
use crate::edges::{BatchSpan, EdgeWalk, MAX_SECTOR_BYTES};
use crate::latency::CallStart;
use crate::offset_file::{self, OffsetFile};
use crate::retry::retry_interrupted;
#[cfg(feature = "test-hooks")]
use crate::rmw::RmwBuffer;
use crate::route::FileRoute;
use crate::two_phase::{self, BufferPool};
use crate::walk::{batch_bytes, ChunkWalk};
use crate::{
    dontcache, run_mixed, AccessPattern, BackendError, Batch, Batches, Direction, Driver, DriverOptions, Latency,
    OpenFile, OpenRequest, Protocol, Result, Support, TransferBuffer, TransferStrategy,
};

/// Driver for pread(2) and pwrite(2). Collective kinds of access use the same offsets, each rank independently. Order of arrival
/// and nonblocking calls are not supported.
#[derive(Clone, Debug)]
pub struct PosixDriver {
    options: DriverOptions,
    buffer_pool: BufferPool,
}

impl PosixDriver {
    /// Creates the driver; the options determine the route of the transfers.
    #[must_use]
    pub fn new(options: &DriverOptions) -> Self {
        Self { options: options.clone(), buffer_pool: BufferPool::default() }
    }
}

impl Driver for PosixDriver {
    fn open(&self, request: &OpenRequest<'_>) -> Result<Box<dyn OpenFile>> {
        Ok(Box::new(PosixFile::new(OffsetFile::open(request, &self.options, None, &self.buffer_pool)?)))
    }

    fn allocate_buffers(&self, ranks: u64, hosts: u64) {
        two_phase::allocate_buffers(&self.options, None, &self.buffer_pool, (ranks, hosts));
    }
}

pub(crate) struct PosixFile {
    file: OffsetFile,
    prepared: Option<RoutedPattern>,
}

#[derive(Debug)]
struct RoutedPattern {
    pattern: AccessPattern,
    route: FileRoute,
    /// For [`Route::UnsafeReadModifyWrite`].
    #[cfg(feature = "test-hooks")]
    scratch: Option<RmwBuffer>,
}

impl PosixFile {
    pub(crate) fn new(file: OffsetFile) -> Self {
        Self { file, prepared: None }
    }

    fn write_batch(&mut self, batch: Batch, buffer: &TransferBuffer, latency: &mut Latency) -> Result<u64> {
        let Self { file: OffsetFile { two_phase, files, .. }, prepared } = self;
        if two_phase.is_active() {
            return two_phase.write(files, batch, buffer, latency);
        }
        let prepared = prepared.as_mut().ok_or_else(|| BackendError::not_prepared("pwrite", &files.path))?;
        let mut timer = CallTimer::new(latency, prepared.pattern.chunks_per_call);
        match prepared.route {
            FileRoute::DirectEdges { align_bytes } => {
                write_edges(files, prepared, align_bytes, batch, buffer, &mut timer)
            }
            #[cfg(feature = "test-hooks")]
            FileRoute::UnsafeReadModifyWrite { .. } => write_by_rmw(files, prepared, batch, buffer, &mut timer),
            FileRoute::Buffered { .. } if files.drops_pages(&prepared.route) => {
                let walk = ChunkWalk::new(&prepared.pattern, Direction::Write, batch, buffer, &files.path)?;
                let call = |file: &File, at, offset| dontcache::write_at(file, &buffer.bytes()[at], offset);
                transfer_chunks("pwrite", files, prepared, walk, &mut timer, call)
            }
            FileRoute::Direct { .. } | FileRoute::Buffered { .. } => {
                let walk = ChunkWalk::new(&prepared.pattern, Direction::Write, batch, buffer, &files.path)?;
                let call = |file: &File, at, offset| file.write_at(&buffer.bytes()[at], offset);
                transfer_chunks("pwrite", files, prepared, walk, &mut timer, call)
            }
        }?;
        Ok(batch_bytes(&prepared.pattern, batch))
    }

    fn read_batch(&mut self, batch: Batch, buffer: &mut TransferBuffer, latency: &mut Latency) -> Result<u64> {
        let Self { file: OffsetFile { two_phase, files, .. }, prepared } = self;
        if two_phase.is_active() {
            return two_phase.read(files, batch, buffer, latency);
        }
        let prepared = prepared.as_mut().ok_or_else(|| BackendError::not_prepared("pread", &files.path))?;
        let mut timer = CallTimer::new(latency, prepared.pattern.chunks_per_call);
        match prepared.route {
            FileRoute::DirectEdges { align_bytes } => {
                read_edges(files, prepared, align_bytes, batch, buffer, &mut timer)
            }
            #[cfg(feature = "test-hooks")]
            FileRoute::UnsafeReadModifyWrite { .. } => read_by_rmw(files, prepared, batch, buffer, &mut timer),
            FileRoute::Buffered { .. } if files.drops_pages(&prepared.route) => {
                let walk = ChunkWalk::new(&prepared.pattern, Direction::Read, batch, buffer, &files.path)?;
                let call = |file: &File, at, offset| dontcache::read_at(file, &mut buffer.bytes_mut()[at], offset);
                transfer_chunks("pread", files, prepared, walk, &mut timer, call)
            }
            FileRoute::Direct { .. } | FileRoute::Buffered { .. } => {
                let walk = ChunkWalk::new(&prepared.pattern, Direction::Read, batch, buffer, &files.path)?;
                let call = |file: &File, at, offset| file.read_at(&mut buffer.bytes_mut()[at], offset);
                transfer_chunks("pread", files, prepared, walk, &mut timer, call)
            }
        }?;
        Ok(batch_bytes(&prepared.pattern, batch))
    }
}

impl OpenFile for PosixFile {
    fn support(&self, pattern: &AccessPattern) -> Support {
        self.file.support(pattern, pattern.offset_access_obstacle())
    }

    fn prepare(
        &mut self,
        pattern: &AccessPattern,
        direction: Direction,
        buffer: &mut TransferBuffer,
        _hints: &[(String, String)],
    ) -> Result<TransferStrategy> {
        let route = match self.file.prepare(pattern, direction, buffer, pattern.offset_access_obstacle())? {
            offset_file::TransferMethod::TwoPhase(transfer) => return Ok(transfer),
            offset_file::TransferMethod::Independent(route) => route,
        };
        let files = &self.file.files;
        let call = match (direction, pattern.mix) {
            (Direction::Write, None) => "pwrite",
            (Direction::Read, None) => "pread",
            (_, Some(_)) => "pread and pwrite",
        };
        let mut transfer = files.in_force(call, pattern.kind, direction, &route);
        transfer.strategy += self.file.preallocation_note();
        self.prepared = Some(RoutedPattern {
            pattern: *pattern,
            #[cfg(feature = "test-hooks")]
            scratch: RmwBuffer::for_route(&route, pattern, &files.path)?,
            route,
        });
        Ok(transfer)
    }

    fn preallocate(&mut self, batch: Batch) -> Result<u64> {
        self.file.preallocate(batch)
    }

    fn trim(&mut self) -> Result<Option<String>> {
        self.file.trim()
    }

    fn protocol(&self) -> Protocol {
        Protocol { lockstep: self.file.needs_lockstep(), pipelined: false }
    }

    fn write(&mut self, work: Batches<'_>, buffer: &TransferBuffer) -> Result<u64> {
        work.run_sequentially(|batch, latency| self.write_batch(batch, buffer, latency))
    }

    fn read(&mut self, work: Batches<'_>, buffer: &mut TransferBuffer) -> Result<u64> {
        work.run_sequentially(|batch, latency| self.read_batch(batch, buffer, latency))
    }

    fn transfer_mixed(&mut self, work: Batches<'_>, buffer: &mut TransferBuffer) -> Result<u64> {
        let mix = self.prepared.as_ref().and_then(|prepared| prepared.pattern.mix);
        let mix = mix.ok_or_else(|| BackendError::not_prepared("pread and pwrite", &self.file.files.path))?;
        work.run_sequentially(|batch, latency| {
            run_mixed(mix, batch, false, |direction, calls| match direction {
                Direction::Write => self.write_batch(calls, buffer, latency),
                Direction::Read => self.read_batch(calls, buffer, latency),
            })
        })
    }

    fn sync(&mut self) -> Result<()> {
        self.file.sync()
    }

    fn close(self: Box<Self>) -> Result<()> {
        self.file.close()
    }
}

/// Moves every chunk unmodified; `call` moves the given bytes of the buffer.
#[inline]
fn transfer_chunks(
    operation: &'static str,
    files: &FdPair,
    prepared: &RoutedPattern,
    walk: ChunkWalk,
    timer: &mut CallTimer<'_>,
    mut call: impl FnMut(&File, Range<usize>, u64) -> io::Result<usize>,
) -> Result<()> {
    let RoutedPattern { pattern, route, .. } = prepared;
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
    prepared: &RoutedPattern,
    align_bytes: u64,
    batch: Batch,
    buffer: &TransferBuffer,
    timer: &mut CallTimer<'_>,
) -> Result<()> {
    let route = &prepared.route;
    let stretch = BatchSpan::new(&prepared.pattern, batch, align_bytes);
    let mut walk = EdgeWalk::new(&stretch, Direction::Write, batch, buffer, &files.path)?;
    files.write_head(&stretch, buffer)?;
    let file = files.file(route);
    while let Some(piece) = walk.next_chunk() {
        if piece.len > 0 {
            let len = piece.len as usize;
            let sectors = &buffer.mapped()[piece.index..piece.index + len];
            transfer(len, route, |got| file.write_at(&sectors[got..], piece.offset + got as u64))
                .map_err(|stopped| sectors_error("pwrite", &files.path, &stretch, piece.offset, stopped))?;
        }
        timer.chunk_done();
    }
    files.carry_tail(&stretch, buffer);
    Ok(())
}

/// Reads whole sectors; memory outside the batch is preserved.
fn read_edges(
    files: &FdPair,
    prepared: &RoutedPattern,
    align_bytes: u64,
    batch: Batch,
    buffer: &mut TransferBuffer,
    timer: &mut CallTimer<'_>,
) -> Result<()> {
    let route = &prepared.route;
    let file = files.file(route);
    let stretch = BatchSpan::new(&prepared.pattern, batch, align_bytes);
    let mut walk = EdgeWalk::new(&stretch, Direction::Read, batch, buffer, &files.path)?;
    let mut kept = [0; 2 * MAX_SECTOR_BYTES as usize];
    while let Some(piece) = walk.next_chunk() {
        if piece.len > 0 {
            let len = piece.len as usize;
            let sectors = &mut buffer.mapped_mut()[piece.index..piece.index + len];
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

/// Writes chunks through a copy in which bytes of other ranks may be stale.
#[cfg(feature = "test-hooks")]
fn write_by_rmw(
    files: &FdPair,
    prepared: &mut RoutedPattern,
    batch: Batch,
    buffer: &TransferBuffer,
    timer: &mut CallTimer<'_>,
) -> Result<()> {
    let RoutedPattern { pattern, route, scratch } = prepared;
    let scratch = scratch.as_mut().ok_or_else(|| BackendError::not_prepared("pwrite", &files.path))?;
    scratch.write_batch(files.file(route), pattern, batch, buffer, &files.path, || timer.chunk_done())
}

/// Reads chunks through a copy.
#[cfg(feature = "test-hooks")]
fn read_by_rmw(
    files: &FdPair,
    prepared: &mut RoutedPattern,
    batch: Batch,
    buffer: &mut TransferBuffer,
    timer: &mut CallTimer<'_>,
) -> Result<()> {
    let RoutedPattern { pattern, route, scratch } = prepared;
    let scratch = scratch.as_mut().ok_or_else(|| BackendError::not_prepared("pread", &files.path))?;
    scratch.read_batch(files.file(route), pattern, batch, buffer, &files.path, || timer.chunk_done())
}

/// Bytes moved, and the error of the call; without one the file or the space ended.
type PartialTransfer = (usize, Option<io::Error>);

#[cold]
fn chunk_error(
    operation: &'static str,
    files: &FdPair,
    prepared: &RoutedPattern,
    offset: u64,
    (got, error): PartialTransfer,
) -> BackendError {
    let Some(error) = error else {
        return BackendError::short_transfer(operation, &files.path, offset, prepared.pattern.chunk_bytes, got as u64);
    };
    let io_error = BackendError::from_io(operation, &files.path, Some(offset + got as u64), &error);
    if files.drops_pages(&prepared.route) {
        return dontcache::explain(io_error, error.raw_os_error());
    }
    io_error
}

#[cold]
fn sectors_error(
    operation: &'static str,
    path: &Path,
    stretch: &BatchSpan,
    offset: u64,
    (got, error): PartialTransfer,
) -> BackendError {
    let reached = offset + got as u64;
    match error {
        Some(error) => BackendError::from_io(operation, path, Some(reached), &error),
        None => stretch.short(operation, path, reached),
    }
}

struct CallTimer<'a> {
    latency: &'a mut Latency,
    chunks_per_call: u64,
    left: u64,
    mark: CallStart,
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

/// Repeats `call(bytes moved so far)` until `len` bytes have moved. One call suffices unless it exceeds the kernel's limit
/// (0x7ffff000 bytes), is interrupted by a signal, or the file or the space ends.
///
/// # Errors
/// Bytes moved so far, with the error of the call, or without one if no more could be moved.
#[inline]
fn transfer(
    len: usize,
    route: &FileRoute,
    mut call: impl FnMut(usize) -> io::Result<usize>,
) -> std::result::Result<(), PartialTransfer> {
    let mut got = 0;
    loop {
        match retry_interrupted(|| call(got)) {
            // An empty part is moved by one call too.
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
