//! One batch: domains between transfer buffers, domain buffers and the file.

use std::collections::VecDeque;
use std::fs::File;

use super::domain::{DomainGrid, FileDomain, RegionPartition};
use super::partial_sector::{PartialSector, SectorBuffer};
use super::pipeline::{DomainTransfer, TransferPipeline};
use super::rows::ChunkRows;
use super::shared_memory::SyncPoints;
use crate::{BackendError, Batch};

/// How domains are pipelined if no other rank relies on whole ones.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PipelineSizes {
    /// Copied data is transferred in parts up to multiples of this length, none shorter than a quarter of it except at the ends: one part
    /// is in flight while the next is copied.
    pub(crate) copy_bytes: u64,
    /// Minimum length of whole sectors between the unaligned ends of a domain for a transfer without a copy.
    pub(crate) min_zero_copy_bytes: u64,
}

impl PipelineSizes {
    /// The storage is slower with shorter parts; copying less than the minimum is faster than a separate request for it.
    pub(crate) const DEFAULT: Self = Self { copy_bytes: 2 << 20, min_zero_copy_bytes: 256 << 10 };
}

/// The domain buffers: one aligned block per slot.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DomainBuffers {
    pub(crate) base: *mut u8,
    pub(crate) buffer_bytes: usize,
    /// The blocks are registered with the queue as buffer 0.
    pub(crate) registered: bool,
}

/// The rank's transfer buffer among the registered buffers of the queue.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RegisteredBuffers {
    /// Number of the first buffer.
    pub(crate) first: usize,
    /// Length of each buffer as a power of two.
    pub(crate) buffer_shift: u32,
}

impl RegisteredBuffers {
    /// The registered buffer that contains `len` bytes from `index` on, if it is a single one.
    fn buffer_of(self, index: usize, len: usize) -> Option<u16> {
        let piece = index >> self.buffer_shift;
        let is_one = (index + len.max(1) - 1) >> self.buffer_shift == piece;
        is_one.then(|| u16::try_from(self.first + piece).ok()).flatten()
    }
}

impl DomainBuffers {
    fn buffer(&self, slot: usize) -> *mut u8 {
        // There are fewer slots than blocks.
        self.base.wrapping_add(slot * self.buffer_bytes)
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct PendingRead {
    pub(crate) slot: usize,
    sub_batch: u32,
    pub(crate) piece: FileDomain,
    /// Directly into the transfer buffer.
    is_zero_copy: bool,
}

/// State of a batch on this rank.
pub(crate) struct BatchTransfer<'a> {
    pub(crate) rows: ChunkRows,
    pub(crate) grid: DomainGrid,
    /// Number of this rank among the aggregators.
    pub(crate) aggregator: Option<u64>,
    pub(crate) pipeline: TransferPipeline<'a>,
    pub(crate) blocks: DomainBuffers,
    /// None: the transfer buffer is not registered.
    pub(crate) registered: Option<RegisteredBuffers>,
    pub(crate) sector_buffer: &'a mut SectorBuffer,
    /// Source of partial sectors.
    pub(crate) file: &'a File,
    /// First byte of the transfer buffer of each part; null if it is not accessible.
    pub(crate) part_buffers: &'a [*mut u8],
    pub(crate) partial_sector: Option<PartialSector>,
    /// None: domains are transferred as a whole, as other ranks expect.
    pub(crate) sizes: Option<PipelineSizes>,
    pub(crate) error: Option<BackendError>,
    /// Path for error messages.
    pub(crate) path: &'a std::path::Path,
}

impl BatchTransfer<'_> {
    /// Waits for a slot and records its error, if it is the first.
    pub(crate) fn finish(&mut self, slot: usize) {
        if let Err(error) = self.pipeline.finish(slot) {
            self.error.get_or_insert(error);
        }
    }

    pub(crate) fn finish_all(&mut self) {
        for slot in 0..self.pipeline.depth() {
            self.finish(slot);
        }
    }

    /// Writes this rank's domains of a region from accessible memory.
    ///
    /// # Safety
    /// The buffers at `bases` contain the windows of the region and do not change.
    pub(crate) unsafe fn write_domains(&mut self, cut: &RegionPartition) {
        let Some(me) = self.aggregator else { return };
        let (mut number, mut slot) = (0, 0);
        while let Some((found, mut piece)) = cut.next_for(me, number) {
            number = found + 1;
            while piece.begin < piece.end {
                let part = self.first_transfer(piece);
                piece.begin = part.end;
                self.finish(slot);
                if self.error.is_some() {
                    return self.finish_all();
                }
                let bases = self.part_buffers;
                // SAFETY: guaranteed by the caller: the index lies in a window of the part's buffer.
                unsafe { self.write_domain(slot, part, |part, index, _| bases[part].wrapping_add(index)) };
                slot = (slot + 1) % self.pipeline.depth();
            }
        }
        self.finish_all();
    }

    /// The part of a domain for the first transfer.
    fn first_transfer(&self, piece: FileDomain) -> FileDomain {
        let Some(parts) = self.sizes.filter(|_| self.pipeline.depth() > 1) else { return piece };
        let body = FileDomain { begin: self.grid.ceil(piece.begin), end: self.grid.floor(piece.end), ..piece };
        let body_bytes = body.end.saturating_sub(body.begin);
        if body_bytes >= parts.min_zero_copy_bytes && self.zero_copy_ptr(body).is_some() {
            return if piece.begin < body.begin { FileDomain { end: body.begin, ..piece } } else { body };
        }
        // Neither side shall be short.
        let least_bytes = parts.copy_bytes / 4;
        let next = (piece.begin + least_bytes) / parts.copy_bytes + 1;
        let end = self.grid.ceil(next * parts.copy_bytes);
        FileDomain { end: if end + least_bytes < piece.end { end } else { piece.end }, ..piece }
    }

    /// Starts the write of a domain; `source` returns the memory of each fragment (part, index in its buffer, length), in order.
    ///
    /// # Safety
    /// The memory from `source` is readable for the requested length; for a single part it is the memory of `bases`,
    /// valid until the slot is finished.
    pub(crate) unsafe fn write_domain(
        &mut self,
        slot: usize,
        piece: FileDomain,
        mut source: impl FnMut(usize, usize, usize) -> *const u8,
    ) {
        if let Some(memory) = self.zero_copy_ptr(piece) {
            let len = (piece.end - piece.begin) as usize;
            let op = DomainTransfer {
                offset: piece.begin,
                memory,
                len,
                required_bytes: len,
                buffer: self.registered_buffer(memory, len),
            };
            // SAFETY: contiguous bytes of the transfer buffer, guaranteed by the caller; read only.
            unsafe { self.pipeline.begin(slot, op) };
            return;
        }
        let (from, to) = (self.grid.floor(piece.begin), self.grid.floor(piece.end));
        let block = self.blocks.buffer(slot);
        let head = (piece.begin - from) as usize;
        if head > 0 {
            if let Err(error) = self.fill_head(block, head, piece.begin) {
                self.error.get_or_insert(error);
                return;
            }
        }
        self.rows.fragments(piece.begin, piece.end, |part, index, at, len| {
            let bytes = source(part, index, len);
            // SAFETY: `len` readable bytes, guaranteed by the caller; a block holds the whole sectors of a domain.
            unsafe { bytes.copy_to_nonoverlapping(block.add(head + at), len) };
        });
        if to < piece.end {
            // SAFETY: inside the block, initialized above (including the head).
            let bytes =
                unsafe { std::slice::from_raw_parts(block.add((to - from) as usize), (piece.end - to) as usize) };
            self.sector_buffer.keep(bytes);
        }
        if to > from {
            let len = (to - from) as usize;
            let buffer = self.blocks.registered.then_some(0);
            // SAFETY: the block of this slot, which is reused only after the slot has been finished.
            unsafe {
                self.pipeline
                    .begin(slot, DomainTransfer { offset: from, memory: block, len, required_bytes: len, buffer })
            };
        }
    }

    /// Fills in the bytes of the first sector that precede the domain: kept from the last region, or read from the file.
    fn fill_head(&mut self, block: *mut u8, head: usize, begin: u64) -> Result<(), BackendError> {
        let bytes = match self.partial_sector {
            Some(tail) if tail.end == begin => self.sector_buffer.kept_bytes(head),
            _ => {
                let offset = self.grid.floor(begin);
                let sector = self.sector_buffer.read_sector(self.file, offset);
                &sector.map_err(|e| BackendError::from_io("two-phase pread", self.path, Some(offset), &e))?[..head]
            }
        };
        // SAFETY: a block is longer than a sector.
        unsafe { bytes.as_ptr().copy_to_nonoverlapping(block, head) };
        Ok(())
    }

    /// The memory of a domain that needs no copy: whole sectors of one part, contiguous and aligned.
    fn zero_copy_ptr(&self, piece: FileDomain) -> Option<*mut u8> {
        let sectors =
            piece.begin.is_multiple_of(self.grid.sector_bytes) && piece.end.is_multiple_of(self.grid.sector_bytes);
        if self.rows.parts != 1 || !sectors {
            return None;
        }
        let (index, len) = self.rows.contiguous_range(piece.begin - self.rows.origin);
        let memory = self.part_buffers[0].wrapping_add(index);
        // The transfer buffer is page-aligned, which is sufficient for every device with direct I/O here.
        let aligned = (memory as u64).is_multiple_of(self.grid.sector_bytes.min(4096));
        (len >= piece.end - piece.begin && aligned).then_some(memory)
    }

    /// The registered buffer for a transfer without a copy.
    fn registered_buffer(&self, memory: *mut u8, len: usize) -> Option<u16> {
        self.registered?.buffer_of(memory as usize - self.part_buffers[0] as usize, len)
    }

    /// Starts reads of the next domains of this rank, or parts of them, in all free slots.
    ///
    /// # Safety
    /// The windows of the domains are writable and not otherwise used until the domains have been finished.
    pub(crate) unsafe fn read_ahead(&mut self, ahead: &mut ReadAhead, pending: &mut VecDeque<PendingRead>) {
        while pending.len() < self.pipeline.depth() && self.error.is_none() {
            let Some((sub, rest)) = ahead.next else { return };
            let piece = self.first_transfer(rest);
            let straight = self.zero_copy_ptr(piece);
            if straight.is_some() && pending.front().is_some_and(|p| p.sub_batch < sub) {
                // Its windows may be those of earlier calls, which must be delivered first.
                return;
            }
            let slot = ahead.started % self.pipeline.depth();
            let from = self.grid.floor(piece.begin);
            let len = (self.grid.ceil(piece.end) - from) as usize;
            let (memory, buffer) = match straight {
                Some(memory) => (memory, self.registered_buffer(memory, len)),
                None => (self.blocks.buffer(slot), self.blocks.registered.then_some(0)),
            };
            let op = DomainTransfer { offset: from, memory, len, required_bytes: (piece.end - from) as usize, buffer };
            // SAFETY: a separate block, or windows guaranteed by the caller.
            unsafe { self.pipeline.begin(slot, op) };
            pending.push_back(PendingRead { slot, sub_batch: sub, piece, is_zero_copy: straight.is_some() });
            ahead.started += 1;
            if piece.end < rest.end {
                ahead.next = Some((sub, FileDomain { begin: piece.end, ..rest }));
            } else {
                ahead.advance(self.aggregator);
            }
        }
    }

    /// Reads this rank's domains of a batch into accessible memory. With `control` the ranks deliver together:
    /// sub-batch `s` (as many calls as fit a period) is delivered after synchronization point `first + s - 1`. Returns after all points.
    ///
    /// # Safety
    /// The buffers at `bases` are writable in the windows of the batch and not otherwise used.
    pub(crate) unsafe fn read_domains(
        &mut self,
        batch: Batch,
        pending: &mut VecDeque<PendingRead>,
        control: Option<(&SyncPoints, u32)>,
    ) {
        let mut ahead = ReadAhead::new(self.rows, self.grid, batch, self.aggregator);
        let subs = ahead.sub_batches();
        let mut sub = 0;
        loop {
            // SAFETY: guaranteed by the caller.
            unsafe { self.read_ahead(&mut ahead, pending) };
            let Some(next) = pending.pop_front() else { break };
            self.finish(next.slot);
            if let Some((control, first)) = control.filter(|_| next.sub_batch > sub) {
                (sub..next.sub_batch).for_each(|s| control.arrive(first.wrapping_add(s), false));
                control.wait(first.wrapping_add(next.sub_batch - 1));
                sub = next.sub_batch;
            }
            if self.error.is_none() && !next.is_zero_copy {
                let bases = self.part_buffers;
                // SAFETY: guaranteed by the caller: the index lies in a window of the part's buffer.
                unsafe { self.deliver(next, |part, index, _| bases[part].wrapping_add(index)) };
            }
        }
        if let Some((control, first)) = control {
            let failed = self.error.is_some();
            (sub..subs).for_each(|s| control.arrive(first.wrapping_add(s), failed && s + 1 == subs));
            control.wait(first.wrapping_add(subs - 1));
        }
    }

    /// Copies a domain that has been read to `target` (part, index in its buffer, length).
    ///
    /// # Safety
    /// The memory from `target` is writable for the requested length.
    pub(crate) unsafe fn deliver(&mut self, read: PendingRead, mut target: impl FnMut(usize, usize, usize) -> *mut u8) {
        let FileDomain { begin, end, .. } = read.piece;
        let block = self.blocks.buffer(read.slot).wrapping_add((begin - self.grid.floor(begin)) as usize);
        self.rows.fragments(begin, end, |part, index, at, len| {
            let bytes = target(part, index, len);
            // SAFETY: the block holds the domain; the target is guaranteed by the caller.
            unsafe { block.add(at).copy_to_nonoverlapping(bytes, len) };
        });
    }
}

/// Iterates over the domains of one aggregator in a batch, divided into sub-batches in which no call overwrites another's window.
pub(crate) struct ReadAhead {
    rows: ChunkRows,
    grid: DomainGrid,
    batch: Batch,
    sub_batch: u32,
    cut: RegionPartition,
    domain_number: u64,
    started: usize,
    /// The next domain and its sub-batch.
    next: Option<(u32, FileDomain)>,
}

impl ReadAhead {
    pub(crate) fn new(rows: ChunkRows, grid: DomainGrid, batch: Batch, me: Option<u64>) -> Self {
        let cut = partition_of_sub_batch(&rows, grid, batch, 0);
        let mut ahead = Self { rows, grid, batch, sub_batch: 0, cut, domain_number: 0, started: 0, next: None };
        ahead.advance(me);
        ahead
    }

    pub(crate) fn sub_batches(&self) -> u32 {
        sub_batches(&self.rows, self.batch)
    }

    fn advance(&mut self, me: Option<u64>) {
        self.next = None;
        let Some(me) = me else { return };
        loop {
            if let Some((number, piece)) = self.cut.next_for(me, self.domain_number) {
                self.domain_number = number + 1;
                self.next = Some((self.sub_batch, piece));
                return;
            }
            if self.sub_batch + 1 >= self.sub_batches() {
                return;
            }
            self.sub_batch += 1;
            self.domain_number = 0;
            self.cut = partition_of_sub_batch(&self.rows, self.grid, self.batch, self.sub_batch);
        }
    }
}

/// Number of sub-batches, each of which fits a period.
pub(crate) fn sub_batches(rows: &ChunkRows, batch: Batch) -> u32 {
    batch.calls.div_ceil(rows.calls_per_period()) as u32
}

/// The domains of one sub-batch of a read.
pub(crate) fn partition_of_sub_batch(rows: &ChunkRows, grid: DomainGrid, batch: Batch, sub: u32) -> RegionPartition {
    let calls = rows.calls_per_period();
    let before = u64::from(sub) * calls;
    let part = Batch { first_call: batch.first_call + before, calls: calls.min(batch.calls - before) };
    let (begin, end) = rows.region(part);
    RegionPartition::new(grid, begin, end, None)
}

#[cfg(test)]
#[path = "batch_transfer_tests.rs"]
mod tests;
