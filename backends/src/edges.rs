//! Direct transfers without a copy for a contiguous range with unaligned ends.
//!
//! The range is also contiguous in the transfer buffer, so that the bytes of a sector shared by two chunks are adjacent in memory: whole
//! sectors are transferred directly between buffer and file, each once. Only the first and the last sector of the range contain other
//! bytes. Writes read, modify and write the first one when the stream passes it, and keep the last one (which may still grow) until the
//! sync. Reads restore the memory adjacent to the range.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use memmap2::MmapMut;

use crate::retry::retry_interrupted;
use crate::walk::{ChunkWalk, IoRequest, IoRequestSource, ReadGuard};
use crate::{AccessPattern, BackendError, Batch, Direction, Result, TransferBuffer};

/// Maximum supported sector size: the alignment of the transfer buffer.
pub(crate) const MAX_SECTOR_BYTES: u64 = 4096;

/// The multiple of `align` (a power of two) at or below `value`.
#[inline]
pub(crate) fn floor(value: u64, align: u64) -> u64 {
    value & !(align - 1)
}

/// The multiple of `align` (a power of two) at or above `value`.
#[inline]
pub(crate) fn ceil(value: u64, align: u64) -> u64 {
    floor(value + (align - 1), align)
}

/// The byte range of a batch in the file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BatchSpan {
    pattern: AccessPattern,
    /// First byte of the batch, and the end after its last.
    begin: u64,
    end: u64,
    align: u64,
}

impl BatchSpan {
    pub(crate) fn new(pattern: &AccessPattern, batch: Batch, align_bytes: u64) -> Self {
        let begin = pattern.base_bytes + batch.first_call * pattern.call_bytes();
        let end = begin + batch.calls * pattern.call_bytes();
        Self { pattern: *pattern, begin, end, align: align_bytes }
    }

    /// First sector that contains only bytes of the pattern.
    fn first_whole_sector(&self) -> u64 {
        ceil(self.pattern.base_bytes, self.align)
    }

    /// Bytes of the buffer for the file offsets `from..to`, which lie in one sector.
    fn buffer_bytes<'a>(&self, buffer: &'a TransferBuffer, from: u64, to: u64) -> &'a [u8] {
        let index = buffer.index(self.pattern.stream_bytes + (from - self.pattern.base_bytes));
        // A sector never crosses the end of the period: the period is a multiple of the sector, or the pattern ends before it
        // (`AccessPattern::has_aligned_windows`).
        &buffer.mapped()[index..index + (to - from) as usize]
    }

    /// The error of a transfer that ended at the file offset `reached`, for the chunk at that offset.
    pub(crate) fn short(&self, operation: &'static str, path: &Path, reached: u64) -> BackendError {
        let chunk_bytes = self.pattern.chunk_bytes;
        let chunk = reached.saturating_sub(self.begin) / chunk_bytes;
        let offset = self.begin + chunk * chunk_bytes;
        BackendError::short_transfer(operation, path, offset, chunk_bytes, reached.saturating_sub(offset))
    }
}

/// Iterates over the chunks of a batch and yields whole sectors: for each chunk those that no earlier chunk has transferred. A chunk
/// without an operation of its own yields length 0.
#[derive(Clone, Debug)]
pub(crate) struct EdgeWalk {
    walk: ChunkWalk,
    direction: Direction,
    align: u64,
    chunk_bytes: u64,
    /// Everything below this file offset is transferred or carried.
    next: u64,
    /// Range of file offsets that are contiguous in memory.
    run_begin: u64,
    run_end: u64,
    /// Index of the next chunk if the buffer does not wrap.
    contiguous_index: usize,
}

impl EdgeWalk {
    pub(crate) fn new(
        stretch: &BatchSpan,
        direction: Direction,
        batch: Batch,
        buffer: &TransferBuffer,
        path: &Path,
    ) -> Result<Self> {
        Ok(Self {
            walk: ChunkWalk::new(&stretch.pattern, direction, batch, buffer, path)?,
            direction,
            align: stretch.align,
            chunk_bytes: stretch.pattern.chunk_bytes,
            next: floor(stretch.begin, stretch.align).max(stretch.first_whole_sector()),
            run_begin: 0,
            run_end: 0,
            contiguous_index: usize::MAX,
        })
    }

    #[inline]
    pub(crate) fn next_chunk(&mut self) -> Option<IoRequest> {
        let (begin, index) = self.walk.next()?;
        let end = begin + self.chunk_bytes;
        let wrapped = index != self.contiguous_index;
        self.contiguous_index = index + self.chunk_bytes as usize;
        let (to, guard) = match self.direction {
            Direction::Write => (floor(end, self.align), ReadGuard::default()),
            Direction::Read => {
                if wrapped {
                    self.start_run(begin, index);
                }
                let to = ceil(end, self.align);
                let before = self.run_begin.saturating_sub(self.next) as u16;
                (to, ReadGuard { before, after: to.saturating_sub(self.run_end) as u16 })
            }
        };
        let from = self.next;
        if to <= from {
            return Some(IoRequest { offset: from, index, direction: self.direction, ..IoRequest::default() });
        }
        self.next = to;
        // The index of `from`: before or inside the chunk, and never below the sector in which the chunk begins.
        let index = index.wrapping_add(from.wrapping_sub(begin) as usize);
        Some(IoRequest { offset: from, index, len: to - from, direction: self.direction, guard })
    }

    /// A read continues elsewhere in memory: the sector at the wrap is read again, for the bytes after it.
    #[cold]
    fn start_run(&mut self, begin: u64, index: usize) {
        self.next = floor(begin, self.align);
        self.run_begin = begin;
        self.run_end = begin + self.walk.contiguous_bytes(index);
    }
}

impl IoRequestSource for EdgeWalk {
    #[inline]
    fn next_request(&mut self) -> Option<IoRequest> {
        loop {
            let piece = self.next_chunk()?;
            if piece.len > 0 {
                return Some(piece);
            }
        }
    }

    #[inline]
    fn is_done(&self) -> bool {
        self.walk.is_done()
    }
}

/// Maximum number of successive operations of an [`EdgeWalk`] that access disjoint memory.
pub(crate) fn disjoint_requests(pattern: &AccessPattern, align_bytes: u64, buffer: &TransferBuffer) -> u64 {
    let longest = ceil(pattern.chunk_bytes, align_bytes);
    (buffer.period_bytes().saturating_sub(2 * align_bytes) / longest).max(1)
}

/// The last sector of the written range, until it is written to the file.
#[derive(Clone, Copy, Debug)]
struct CarriedSector {
    sector: u64,
    /// Bytes of the pattern in it.
    from: usize,
    to: usize,
    align: u64,
    /// No other rank writes this file, so that this rank determines its length.
    alone: bool,
}

/// Partially owned sectors of one file. All memory is allocated at creation.
#[derive(Debug)]
pub(crate) struct EdgeSectors {
    /// One carried sector, and one to read, modify and write.
    memory: MmapMut,
    carried: Option<CarriedSector>,
}

/// A failed operation on an edge sector: operation, offset and error.
pub(crate) type EdgeError = (&'static str, u64, io::Error);

/// The error of an edge sector of this file.
pub(crate) fn edge_error(path: &Path, (operation, offset, error): &EdgeError) -> BackendError {
    BackendError::from_io(operation, path, Some(*offset), error)
}

impl EdgeSectors {
    pub(crate) fn new() -> io::Result<Self> {
        let mut memory = MmapMut::map_anon(2 * MAX_SECTOR_BYTES as usize)?;
        // The first touch must not be timed.
        memory.fill(0);
        Ok(Self { memory, carried: None })
    }

    /// Before a batch is written: writes the first sector of the pattern, if it also contains other bytes and the batch passes it.
    /// Returns true if it was written.
    pub(crate) fn write_head(
        &mut self,
        direct: &File,
        stretch: &BatchSpan,
        buffer: &TransferBuffer,
    ) -> std::result::Result<bool, EdgeError> {
        let (base, whole) = (stretch.pattern.base_bytes, stretch.first_whole_sector());
        if stretch.begin >= whole || stretch.end < whole {
            return Ok(false);
        }
        let sector = floor(base, stretch.align);
        let scratch = &mut self.memory[MAX_SECTOR_BYTES as usize..][..stretch.align as usize];
        read_sector(direct, scratch, sector)?;
        scratch[(base - sector) as usize..].copy_from_slice(stretch.buffer_bytes(buffer, base, whole));
        write_sector(direct, scratch, sector)?;
        Ok(true)
    }

    /// After a batch was written: keeps the last partial sector.
    pub(crate) fn carry(&mut self, stretch: &BatchSpan, buffer: &TransferBuffer) {
        if stretch.begin == stretch.end {
            return;
        }
        let sector = floor(stretch.end, stretch.align);
        if sector == stretch.end {
            self.carried = None;
            return;
        }
        let first = sector.max(stretch.pattern.base_bytes);
        let (from, to) = ((first - sector) as usize, (stretch.end - sector) as usize);
        self.memory[from..to].copy_from_slice(stretch.buffer_bytes(buffer, first, stretch.end));
        let alone = stretch.pattern.ranks <= 1;
        self.carried = Some(CarriedSector { sector, from, to, align: stretch.align, alone });
    }

    /// Writes the kept bytes to the file. Other bytes of the sector are preserved, and a private file does not become longer than it was
    /// or than the written data. In a file of several ranks this rank owns the sector up to its end.
    pub(crate) fn flush(&mut self, direct: &File) -> std::result::Result<(), EdgeError> {
        let Some(CarriedSector { sector, from, to, align, alone }) = self.carried.take() else {
            return Ok(());
        };
        let (kept, scratch) = self.memory.split_at_mut(MAX_SECTOR_BYTES as usize);
        let scratch = &mut scratch[..align as usize];
        let len = direct.metadata().map_err(|e| ("fstat", sector, e))?.len();
        let end = sector + to as u64;
        if from == 0 && len <= end {
            scratch.fill(0);
        } else {
            read_sector(direct, scratch, sector)?;
        }
        scratch[from..to].copy_from_slice(&kept[from..to]);
        write_sector(direct, scratch, sector)?;
        if alone && len.max(end) < sector + align {
            direct.set_len(len.max(end)).map_err(|e| ("ftruncate", sector, e))?;
        }
        Ok(())
    }
}

/// Reads a sector; bytes beyond the end of the file are zeros.
pub(crate) fn read_sector(direct: &File, sector: &mut [u8], offset: u64) -> std::result::Result<(), EdgeError> {
    // A sector is read completely, or up to the end of the file.
    let got = retry_interrupted(|| direct.read_at(sector, offset)).map_err(|e| ("pread (edge sector)", offset, e))?;
    sector[got..].fill(0);
    Ok(())
}

pub(crate) fn write_sector(direct: &File, sector: &[u8], offset: u64) -> std::result::Result<(), EdgeError> {
    let wrote =
        retry_interrupted(|| direct.write_at(sector, offset)).map_err(|e| ("pwrite (edge sector)", offset, e))?;
    if wrote == sector.len() {
        return Ok(());
    }
    Err(("pwrite (edge sector)", offset, io::ErrorKind::WriteZero.into()))
}

#[cfg(test)]
#[path = "edges_tests.rs"]
mod tests;
