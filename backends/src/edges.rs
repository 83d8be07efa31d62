//! Direct transfers of a contiguous range that neither begins nor ends at a sector, without a copy.
//!
//! The range lies contiguously in the ring too, so the bytes of a sector that two chunks share stand side by side in
//! memory: whole sectors go straight between ring and file, each of them once. Only the first and the last sector of
//! the range hold bytes that are not ours. Writes read, modify and write the first one when the stream passes it, and
//! keep the last one (it may still grow) until the sync. Reads restore the memory beside the range.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use memmap2::MmapMut;

use crate::patience::uninterrupted;
use crate::walk::{Guard, Piece, Pieces, Walk};
use crate::{BackendError, Batch, Direction, Pattern, Result, Ring};

/// Sectors larger than this are not supported: the ring is aligned to this many bytes.
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

/// What a batch is in the file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stretch {
    pattern: Pattern,
    /// First byte of the batch and the one behind its last.
    begin: u64,
    end: u64,
    align: u64,
}

impl Stretch {
    pub(crate) fn new(pattern: &Pattern, batch: Batch, align_bytes: u64) -> Self {
        let begin = pattern.base_bytes + batch.first_call * pattern.call_bytes();
        let end = begin + batch.calls * pattern.call_bytes();
        Self { pattern: *pattern, begin, end, align: align_bytes }
    }

    /// First sector that is wholly the pattern's.
    fn first_whole(&self) -> u64 {
        ceil(self.pattern.base_bytes, self.align)
    }

    /// Bytes of the ring that belong at the file offsets `from..to`, which lie in one sector.
    fn in_ring<'a>(&self, ring: &'a Ring, from: u64, to: u64) -> &'a [u8] {
        let index = ring.index(self.pattern.stream_bytes + (from - self.pattern.base_bytes));
        // A sector never crosses the end of the period: that is a multiple of the sector, or the pattern ends before it
        // (`Pattern::stays_aligned`).
        &ring.mapped()[index..index + (to - from) as usize]
    }

    /// The error of a transfer that ended at the file offset `reached`: told of the chunk that lies there.
    pub(crate) fn short(&self, operation: &'static str, path: &Path, reached: u64) -> BackendError {
        let chunk_bytes = self.pattern.chunk_bytes;
        let chunk = reached.saturating_sub(self.begin) / chunk_bytes;
        let offset = self.begin + chunk * chunk_bytes;
        BackendError::short(operation, path, offset, chunk_bytes, reached.saturating_sub(offset))
    }
}

/// Iterates over the chunks of a batch and yields whole sectors: for each chunk those that no chunk before it has
/// moved. A chunk that needs no operation of its own has a piece of length 0.
#[derive(Clone, Debug)]
pub(crate) struct EdgeWalk {
    walk: Walk,
    direction: Direction,
    align: u64,
    chunk_bytes: u64,
    /// Up to this file offset everything is moved or carried.
    next: u64,
    /// Where the bytes begin and end that are contiguous in memory.
    run_begin: u64,
    run_end: u64,
    /// Index at which the next chunk lies if the ring does not wrap.
    contiguous_index: usize,
}

impl EdgeWalk {
    /// The sectors of `batch`.
    ///
    /// # Errors
    /// As for [`Walk::new`].
    pub(crate) fn new(stretch: &Stretch, direction: Direction, batch: Batch, ring: &Ring, path: &Path) -> Result<Self> {
        Ok(Self {
            walk: Walk::new(&stretch.pattern, batch, ring, path)?,
            direction,
            align: stretch.align,
            chunk_bytes: stretch.pattern.chunk_bytes,
            next: floor(stretch.begin, stretch.align).max(stretch.first_whole()),
            run_begin: 0,
            run_end: 0,
            contiguous_index: usize::MAX,
        })
    }

    /// The piece of the next chunk.
    #[inline]
    pub(crate) fn next_chunk(&mut self) -> Option<Piece> {
        let (begin, index) = self.walk.next()?;
        let end = begin + self.chunk_bytes;
        let wrapped = index != self.contiguous_index;
        self.contiguous_index = index + self.chunk_bytes as usize;
        let (to, guard) = match self.direction {
            Direction::Write => (floor(end, self.align), Guard::default()),
            Direction::Read => {
                if wrapped {
                    self.begin_run(begin, index);
                }
                let to = ceil(end, self.align);
                let before = self.run_begin.saturating_sub(self.next) as u16;
                (to, Guard { before, after: to.saturating_sub(self.run_end) as u16 })
            }
        };
        let from = self.next;
        if to <= from {
            return Some(Piece { offset: from, index, ..Piece::default() });
        }
        self.next = to;
        // The index of `from`: before the chunk or inside of it, and never below the sector the chunk begins in.
        let index = index.wrapping_add(from.wrapping_sub(begin) as usize);
        Some(Piece { offset: from, index, len: to - from, guard })
    }

    /// A read goes on elsewhere in memory: the sector at the seam is read again, for the bytes behind the seam.
    #[cold]
    fn begin_run(&mut self, begin: u64, index: usize) {
        self.next = floor(begin, self.align);
        self.run_begin = begin;
        self.run_end = begin + self.walk.run_bytes(index);
    }
}

impl Pieces for EdgeWalk {
    #[inline]
    fn next_piece(&mut self) -> Option<Piece> {
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

/// Operations of an [`EdgeWalk`] that touch different memory, however they follow each other.
pub(crate) fn windows(pattern: &Pattern, align_bytes: u64, ring: &Ring) -> u64 {
    let longest = ceil(pattern.chunk_bytes, align_bytes);
    (ring.period_bytes().saturating_sub(2 * align_bytes) / longest).max(1)
}

/// The last sector of what was written, while it is not in the file.
#[derive(Clone, Copy, Debug)]
struct Carried {
    /// File offset of the sector.
    sector: u64,
    /// Our bytes in it.
    from: usize,
    to: usize,
    align: u64,
    /// No other rank writes this file, so its length is ours.
    alone: bool,
}

/// Sectors that are not wholly ours, of one file. All memory is made with it.
#[derive(Debug)]
pub(crate) struct Edges {
    /// One sector to carry and, behind it, one to read, modify and write.
    memory: MmapMut,
    carried: Option<Carried>,
}

/// Why an edge failed: at this offset.
pub(crate) type EdgeError = (&'static str, u64, io::Error);

/// The error of a sector at the edge, of this file.
pub(crate) fn edge_failure(path: &Path, (operation, offset, error): &EdgeError) -> BackendError {
    BackendError::from_io(operation, path, Some(*offset), error)
}

impl Edges {
    pub(crate) fn new() -> io::Result<Self> {
        let mut memory = MmapMut::map_anon(2 * MAX_SECTOR_BYTES as usize)?;
        // Not for the first time in the clock.
        memory.fill(0);
        Ok(Self { memory, carried: None })
    }

    /// Before a batch is written: the first sector of the pattern, if it is not wholly ours and the batch passes it.
    /// Returns true if it was written.
    pub(crate) fn head(
        &mut self,
        direct: &File,
        stretch: &Stretch,
        ring: &Ring,
    ) -> std::result::Result<bool, EdgeError> {
        let (base, whole) = (stretch.pattern.base_bytes, stretch.first_whole());
        if stretch.begin >= whole || stretch.end < whole {
            return Ok(false);
        }
        let sector = floor(base, stretch.align);
        let scratch = &mut self.memory[MAX_SECTOR_BYTES as usize..][..stretch.align as usize];
        read_sector(direct, scratch, sector)?;
        scratch[(base - sector) as usize..].copy_from_slice(stretch.in_ring(ring, base, whole));
        write_sector(direct, scratch, sector)?;
        Ok(true)
    }

    /// After a batch was written: keeps what is not a whole sector.
    pub(crate) fn carry(&mut self, stretch: &Stretch, ring: &Ring) {
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
        self.memory[from..to].copy_from_slice(stretch.in_ring(ring, first, stretch.end));
        let alone = stretch.pattern.ranks <= 1;
        self.carried = Some(Carried { sector, from, to, align: stretch.align, alone });
    }

    /// Brings what was kept into the file. What other bytes the sector has stay, and a private file gets no longer than
    /// it was or than what was written. In a file of several ranks the sector is this rank's own up to its end.
    pub(crate) fn flush(&mut self, direct: &File) -> std::result::Result<(), EdgeError> {
        let Some(Carried { sector, from, to, align, alone }) = self.carried.take() else {
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

/// Reads a sector; what lies behind the end of the file is zeros.
pub(crate) fn read_sector(direct: &File, sector: &mut [u8], offset: u64) -> std::result::Result<(), EdgeError> {
    // A sector comes whole, or up to the end of the file.
    let got = uninterrupted(|| direct.read_at(sector, offset)).map_err(|e| ("pread (edge sector)", offset, e))?;
    sector[got..].fill(0);
    Ok(())
}

/// Writes whole sectors.
pub(crate) fn write_sector(direct: &File, sector: &[u8], offset: u64) -> std::result::Result<(), EdgeError> {
    let wrote = uninterrupted(|| direct.write_at(sector, offset)).map_err(|e| ("pwrite (edge sector)", offset, e))?;
    if wrote == sector.len() {
        return Ok(());
    }
    Err(("pwrite (edge sector)", offset, io::ErrorKind::WriteZero.into()))
}

#[cfg(test)]
#[path = "edges_tests.rs"]
mod tests;
