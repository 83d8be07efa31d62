//! Copies between the transfer buffer and a shared mapping of the file: page faults replace system calls.
//!
//! Errors of pwrite are signals here: a store beyond the end of the file, or into a page without a block, raises SIGBUS. Therefore
//! blocks are allocated before each batch (`blocks`), every access is checked against the file length (`window`), and in the
//! remaining cases (a storage error, a concurrent truncation) the process ends with a message (`sigbus`).
//!
//! Other ranks may change the bytes of a mapping at any time: they are accessed through raw pointers, never references.

mod blocks;
mod coherence;
mod sigbus;
mod window;

use std::fs::File;
use std::path::Path;

use crate::direct::FdPair;
use crate::walk::{batch_bytes, check_fits, ChunkWalk};
use crate::{
    run_mixed, AccessPattern, BackendError, Batch, Batches, Direct, Direction, Driver, Latency, OpenFile, OpenRequest,
    RankPartition, Result, Support, TransferBuffer, TransferStrategy,
};
use blocks::BlockSource;
use coherence::MappingCoherence;
use sigbus::MappingRegistration;
use window::MappedWindow;
pub use window::WINDOW_BYTES;

/// Driver for mmap(2). Collective kinds of access use the same offsets, each rank independently.
#[derive(Clone, Copy, Debug, Default)]
pub struct MmapDriver;

impl Driver for MmapDriver {
    fn open(&self, request: &OpenRequest<'_>) -> Result<Box<dyn OpenFile>> {
        // Collective, therefore before the open, which may fail on one rank alone.
        let several_hosts = coherence::spans_hosts(request)?;
        let files = FdPair::open(request, Direct::Off.into())?;
        let (rank, ranks) = (request.comm.rank(), request.comm.size());
        Ok(Box::new(MmapFile::new(files, several_hosts, rank, ranks)?))
    }
}

#[derive(Debug)]
pub(crate) struct MmapFile {
    files: FdPair,
    coherence: MappingCoherence,
    registration: MappingRegistration,
    /// Whether the file system supports fallocate; None until tested.
    has_fallocate: Option<bool>,
    prepared: Option<MappedPattern>,
}

#[derive(Debug)]
struct MappedPattern {
    pattern: AccessPattern,
    block_source: BlockSource,
    window: MappedWindow,
}

impl MmapFile {
    /// `rank` of `ranks` are for the message of a bus error.
    pub(crate) fn new(files: FdPair, several_hosts: bool, rank: u64, ranks: u64) -> Result<Self> {
        let fail = |operation, e: &std::io::Error| BackendError::from_io(operation, &files.path, None, e);
        let sharing = MappingCoherence::new(&files.buffered, several_hosts).map_err(|e| fail("fstatfs", &e))?;
        let watch = MappingRegistration::new(&files.path, rank, ranks).map_err(|e| fail("sigaction for SIGBUS", &e))?;
        Ok(Self { files, coherence: sharing, registration: watch, has_fallocate: None, prepared: None })
    }

    /// Pattern and window of a batch, and what moves the window.
    fn mapped_pattern(
        &mut self,
        direction: Direction,
    ) -> Result<(&AccessPattern, &mut MappedWindow, &File, &MappingRegistration, &Path)> {
        let path = &self.files.path;
        // A window for writing can be read.
        let p = self.prepared.as_mut().filter(|p| p.window.direction() == direction || p.pattern.mix.is_some());
        let p = p.ok_or_else(|| BackendError::not_prepared(window::operation_name(direction), path))?;
        Ok((&p.pattern, &mut p.window, &self.files.buffered, &self.registration, path))
    }

    /// Unmaps the window after its registration ends: the handler must not report a stale mapping.
    fn unmap(&mut self) {
        self.registration.clear_mapping();
        self.prepared = None;
    }

    fn write_batch(&mut self, batch: Batch, buffer: &TransferBuffer, latency: &mut Latency) -> Result<u64> {
        let (pattern, window, file, watch, path) = self.mapped_pattern(Direction::Write)?;
        let len = pattern.chunk_bytes as usize;
        let mut walk = ChunkWalk::new(pattern, Direction::Write, batch, buffer, path)?;
        for _ in 0..batch.calls {
            let mark = latency.begin();
            for (offset, index) in walk.by_ref().take(pattern.chunks_per_call as usize) {
                let from = &buffer.bytes()[index..index + len];
                let to = window.address_of(offset, file, watch, path)?;
                // SAFETY: `from` has `len` bytes. `place` returns an address followed by a chunk of mapped bytes, writable in a
                // window for writing, and the mapping lives until the window moves. The buffer is separate memory: no overlap.
                unsafe { std::ptr::copy_nonoverlapping(from.as_ptr(), to, len) };
            }
            latency.end(mark);
        }
        Ok(batch_bytes(pattern, batch))
    }

    fn read_batch(&mut self, batch: Batch, buffer: &mut TransferBuffer, latency: &mut Latency) -> Result<u64> {
        let (pattern, window, file, watch, path) = self.mapped_pattern(Direction::Read)?;
        let len = pattern.chunk_bytes as usize;
        let mut walk = ChunkWalk::new(pattern, Direction::Read, batch, buffer, path)?;
        for _ in 0..batch.calls {
            let mark = latency.begin();
            for (offset, index) in walk.by_ref().take(pattern.chunks_per_call as usize) {
                let from = window.address_of(offset, file, watch, path)?;
                let to = &mut buffer.bytes_mut()[index..index + len];
                // SAFETY: `to` has `len` bytes. `place` returns an address followed by a chunk of mapped bytes, and the mapping
                // lives until the window moves. The buffer is separate memory: no overlap.
                unsafe { std::ptr::copy_nonoverlapping(from, to.as_mut_ptr(), len) };
            }
            latency.end(mark);
        }
        Ok(batch_bytes(pattern, batch))
    }
}

impl OpenFile for MmapFile {
    fn support(&self, pattern: &AccessPattern) -> Support {
        let unsupported = unsupported_reason(pattern).or_else(|| self.coherence.unsupported_reason(pattern));
        // Each rank checks and allocates the range of all ranks.
        Support::from_reason(unsupported, pattern.is_interleaved())
    }

    fn prepare(
        &mut self,
        pattern: &AccessPattern,
        direction: Direction,
        buffer: &mut TransferBuffer,
        _hints: &[(String, String)],
    ) -> Result<TransferStrategy> {
        self.unmap();
        let path = &self.files.path;
        check_fits(pattern, buffer, path)?;
        self.files.check_supported(unsupported_reason(pattern))?;
        let source = match direction {
            Direction::Read => BlockSource::Allocated,
            Direction::Write => BlockSource::detect(&self.files.buffered, pattern, &mut self.has_fallocate, path)?,
        };
        let window = MappedWindow::new(pattern, direction, &self.files.buffered, &self.registration, path)?;
        self.prepared = Some(MappedPattern { pattern: *pattern, block_source: source, window });
        Ok(in_force(pattern, direction, source))
    }

    fn preallocate(&mut self, batch: Batch) -> Result<u64> {
        let path = &self.files.path;
        let p = self.prepared.as_ref().ok_or_else(|| BackendError::not_prepared("preallocate", path))?;
        match p.block_source {
            _ if batch.calls == 0 => {}
            BlockSource::Allocated => {}
            BlockSource::Fallocate => blocks::allocate_blocks(&self.files.buffered, &p.pattern, batch, path)?,
            BlockSource::WriteZeros => blocks::write_zeros(&self.files.buffered, &p.pattern, batch, path)?,
        }
        Ok(batch.first_call + batch.calls)
    }

    fn write(&mut self, work: Batches<'_>, buffer: &TransferBuffer) -> Result<u64> {
        work.run_sequentially(|batch, latency| self.write_batch(batch, buffer, latency))
    }

    fn read(&mut self, work: Batches<'_>, buffer: &mut TransferBuffer) -> Result<u64> {
        work.run_sequentially(|batch, latency| self.read_batch(batch, buffer, latency))
    }

    fn transfer_mixed(&mut self, work: Batches<'_>, buffer: &mut TransferBuffer) -> Result<u64> {
        let mix = self.prepared.as_ref().and_then(|prepared| prepared.pattern.mix);
        let mix = mix.ok_or_else(|| BackendError::not_prepared("memcpy", &self.files.path))?;
        work.run_sequentially(|batch, latency| {
            run_mixed(mix, batch, false, |direction, calls| match direction {
                Direction::Write => self.write_batch(calls, buffer, latency),
                Direction::Read => self.read_batch(calls, buffer, latency),
            })
        })
    }

    /// fsync(2) alone. On Linux msync(MS_SYNC) is the same write-back, restricted to a mapped range and with the metadata of
    /// fdatasync; a store marks its page dirty at the first fault, so fsync writes it even after its window has moved. Both calls
    /// would flush the device twice and not be comparable with posix.
    fn sync(&mut self) -> Result<()> {
        self.files.sync()
    }

    fn close(mut self: Box<Self>) -> Result<()> {
        self.unmap();
        self.files.close()
    }
}

/// Why a mapping cannot replace the calls of a pattern.
fn unsupported_reason(pattern: &AccessPattern) -> Option<String> {
    if let Some(reason) = pattern.offset_access_obstacle() {
        return Some(reason);
    }
    if pattern.partition == RankPartition::Unequal && pattern.ranks > 1 {
        // Each rank allocates `Pattern::reach` before it stores.
        return Some(
            "the parts of the ranks have different lengths: no rank can preallocate the pages that they share".into(),
        );
    }
    (pattern.call_bytes() == 0).then(|| "an empty part cannot be mapped".into())
}

fn in_force(pattern: &AccessPattern, direction: Direction, source: BlockSource) -> TransferStrategy {
    let kind = pattern.kind.substitution_note();
    let strategy = match direction {
        _ if pattern.mix.is_some() => {
            format!("memcpy out of and into a shared mapping{kind}, {}", source.description())
        }
        Direction::Write => format!("memcpy into a shared mapping{kind}, {}", source.description()),
        Direction::Read => format!("memcpy out of a shared mapping{kind}, read-ahead as the kernel chooses"),
    };
    TransferStrategy { strategy, direct: Some(false), ..TransferStrategy::default() }
}

#[cfg(test)]
#[path = "mmap_tests.rs"]
mod tests;
