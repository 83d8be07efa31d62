//! One batch: pieces through the memory of domains, between the rings and the file.

use std::collections::VecDeque;
use std::fs::File;

use super::domain::{Cut, Grid, Piece};
use super::edge::{Edge, Tail};
use super::lane::{Lane, Op};
use super::rows::Rows;
use super::shared::Control;
use crate::{BackendError, Batch};

/// How pieces are divided where nobody counts on whole ones.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PartSizes {
    /// What is copied moves in parts up to multiples of this, none of them shorter than a quarter but at the ends: the first is under way
    /// while the next is copied.
    pub(crate) copied_bytes: u64,
    /// Whole sectors between the unaligned ends of a piece move straight if they are at least as long.
    pub(crate) least_straight_bytes: u64,
}

impl PartSizes {
    /// Shorter parts are requests that the storage takes longer for; less is copied faster than it is moved by a request of its own.
    pub(crate) const USUAL: Self = Self { copied_bytes: 2 << 20, least_straight_bytes: 256 << 10 };
}

/// Memory of the domains: one aligned block per slot of the lane.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Blocks {
    pub(crate) base: *mut u8,
    /// Bytes of one block.
    pub(crate) bytes: usize,
    /// The blocks are registered with the queue, as buffer 0.
    pub(crate) registered: bool,
}

/// Where a rank's own memory lies among the registered buffers of the queue.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Own {
    /// Number of the first one.
    pub(crate) first: usize,
    /// Each is `1 << piece_shift` bytes long.
    pub(crate) piece_shift: u32,
}

impl Own {
    /// The buffer of `len` bytes from `index` on, if they lie in one.
    fn buffer(self, index: usize, len: usize) -> Option<u16> {
        let piece = index >> self.piece_shift;
        let is_one = (index + len.max(1) - 1) >> self.piece_shift == piece;
        is_one.then(|| u16::try_from(self.first + piece).ok()).flatten()
    }
}

impl Blocks {
    fn block(&self, slot: usize) -> *mut u8 {
        // Slots are fewer than blocks.
        self.base.wrapping_add(slot * self.bytes)
    }
}

/// A read under way.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pending {
    pub(crate) slot: usize,
    sub: u32,
    pub(crate) piece: Piece,
    /// Straight into the ring.
    straight: bool,
}

/// Everything a batch works with on this rank.
pub(crate) struct Pass<'a> {
    pub(crate) rows: Rows,
    pub(crate) grid: Grid,
    /// Which aggregator this rank is.
    pub(crate) me: Option<u64>,
    pub(crate) lane: Lane<'a>,
    pub(crate) blocks: Blocks,
    /// None: the memory of the ring is not registered.
    pub(crate) own: Option<Own>,
    pub(crate) edge: &'a mut Edge,
    /// Where the sectors of an edge are read from.
    pub(crate) file: &'a File,
    /// First byte of the ring of each part; null where it cannot be reached.
    pub(crate) bases: &'a [*mut u8],
    pub(crate) tail: Option<Tail>,
    /// None: pieces are moved whole, as others count on it.
    pub(crate) parts: Option<PartSizes>,
    pub(crate) error: Option<BackendError>,
    /// What the lane's errors are told with.
    pub(crate) path: &'a std::path::Path,
}

impl Pass<'_> {
    /// Waits for a slot and keeps its error, if it is the first.
    pub(crate) fn finish(&mut self, slot: usize) {
        if let Err(error) = self.lane.finish(slot) {
            self.error.get_or_insert(error);
        }
    }

    /// Waits for everything under way.
    pub(crate) fn finish_all(&mut self) {
        for slot in 0..self.lane.depth() {
            self.finish(slot);
        }
    }

    /// Writes this rank's pieces of a region out of memory that it can reach.
    ///
    /// # Safety
    /// The rings behind `bases` hold the windows of the region, and nobody writes to them meanwhile.
    pub(crate) unsafe fn write_pieces(&mut self, cut: &Cut) {
        let Some(me) = self.me else { return };
        let (mut number, mut slot) = (0, 0);
        while let Some((found, mut piece)) = cut.next_of(me, number) {
            number = found + 1;
            while piece.begin < piece.end {
                let part = self.first_part(piece);
                piece.begin = part.end;
                self.finish(slot);
                if self.error.is_some() {
                    return self.finish_all();
                }
                let bases = self.bases;
                // SAFETY: the caller's promise: the index lies in a window of the part's ring.
                unsafe { self.write_piece(slot, part, |part, index, _| bases[part].wrapping_add(index)) };
                slot = (slot + 1) % self.lane.depth();
            }
        }
        self.finish_all();
    }

    /// What of a piece is moved first, by one transfer.
    fn first_part(&self, piece: Piece) -> Piece {
        let Some(parts) = self.parts.filter(|_| self.lane.depth() > 1) else { return piece };
        let body = Piece { begin: self.grid.up(piece.begin), end: self.grid.down(piece.end), ..piece };
        let body_bytes = body.end.saturating_sub(body.begin);
        if body_bytes >= parts.least_straight_bytes && self.straight(body).is_some() {
            return if piece.begin < body.begin { Piece { end: body.begin, ..piece } } else { body };
        }
        // None of the two sides shall be short.
        let least_bytes = parts.copied_bytes / 4;
        let next = (piece.begin + least_bytes) / parts.copied_bytes + 1;
        let end = self.grid.up(next * parts.copied_bytes);
        Piece { end: if end + least_bytes < piece.end { end } else { piece.end }, ..piece }
    }

    /// Begins to write a piece; `source` gives the memory of each fragment (part, index in its ring, length), in order.
    ///
    /// # Safety
    /// What `source` gives is readable for the length it was asked for; of a single part it is the memory of `bases`,
    /// valid until the slot is finished.
    pub(crate) unsafe fn write_piece(
        &mut self,
        slot: usize,
        piece: Piece,
        mut source: impl FnMut(usize, usize, usize) -> *const u8,
    ) {
        if let Some(memory) = self.straight(piece) {
            let len = (piece.end - piece.begin) as usize;
            let op = Op { offset: piece.begin, memory, len, need: len, buffer: self.own_buffer(memory, len) };
            // SAFETY: one contiguous piece of the ring, by the caller's promise; only read through.
            unsafe { self.lane.begin(slot, op) };
            return;
        }
        let (from, to) = (self.grid.down(piece.begin), self.grid.down(piece.end));
        let block = self.blocks.block(slot);
        let head = (piece.begin - from) as usize;
        if head > 0 {
            if let Err(error) = self.fill_head(block, head, piece.begin) {
                self.error.get_or_insert(error);
                return;
            }
        }
        self.rows.fragments(piece.begin, piece.end, |part, index, at, len| {
            let bytes = source(part, index, len);
            // SAFETY: `len` readable bytes by the caller's promise; a block holds the whole sectors of a piece.
            unsafe { bytes.copy_to_nonoverlapping(block.add(head + at), len) };
        });
        if to < piece.end {
            // SAFETY: inside of the block, written just now (the head included).
            let bytes =
                unsafe { std::slice::from_raw_parts(block.add((to - from) as usize), (piece.end - to) as usize) };
            self.edge.keep(bytes);
        }
        if to > from {
            let len = (to - from) as usize;
            let buffer = self.blocks.registered.then_some(0);
            // SAFETY: the block of this slot, which is used again only after the slot has been finished.
            unsafe { self.lane.begin(slot, Op { offset: from, memory: block, len, need: len, buffer }) };
        }
    }

    /// The bytes of the first sector before the piece: kept from the last region, or what the file has.
    fn fill_head(&mut self, block: *mut u8, head: usize, begin: u64) -> Result<(), BackendError> {
        let bytes = match self.tail {
            Some(tail) if tail.end == begin => self.edge.kept(head),
            _ => {
                let offset = self.grid.down(begin);
                let sector = self.edge.look(self.file, offset);
                &sector.map_err(|e| BackendError::from_io("two-phase pread", self.path, Some(offset), &e))?[..head]
            }
        };
        // SAFETY: a block is longer than a sector.
        unsafe { bytes.as_ptr().copy_to_nonoverlapping(block, head) };
        Ok(())
    }

    /// The memory of a piece that can be moved without a copy: whole sectors of one part, contiguous and aligned.
    fn straight(&self, piece: Piece) -> Option<*mut u8> {
        let sectors = piece.begin.is_multiple_of(self.grid.align) && piece.end.is_multiple_of(self.grid.align);
        if self.rows.parts != 1 || !sectors {
            return None;
        }
        let (index, len) = self.rows.stretch(piece.begin - self.rows.origin);
        let memory = self.bases[0].wrapping_add(index);
        // The ring begins at a page, which is aligned enough for every device that is used directly.
        let aligned = (memory as u64).is_multiple_of(self.grid.align.min(4096));
        (len >= piece.end - piece.begin && aligned).then_some(memory)
    }

    /// The registered buffer that holds what moves straight.
    fn own_buffer(&self, memory: *mut u8, len: usize) -> Option<u16> {
        self.own?.buffer(memory as usize - self.bases[0] as usize, len)
    }

    /// Begins to read the next pieces of this rank or parts of them, as many as there are slots for.
    ///
    /// # Safety
    /// The windows of the pieces are writable and not otherwise used until the pieces have been finished.
    pub(crate) unsafe fn read_ahead(&mut self, ahead: &mut Ahead, pending: &mut VecDeque<Pending>) {
        while pending.len() < self.lane.depth() && self.error.is_none() {
            let Some((sub, rest)) = ahead.here else { return };
            let piece = self.first_part(rest);
            let straight = self.straight(piece);
            if straight.is_some() && pending.front().is_some_and(|p| p.sub < sub) {
                // Its windows may be those of calls before, which must come first.
                return;
            }
            let slot = ahead.begun % self.lane.depth();
            let from = self.grid.down(piece.begin);
            let len = (self.grid.up(piece.end) - from) as usize;
            let (memory, buffer) = match straight {
                Some(memory) => (memory, self.own_buffer(memory, len)),
                None => (self.blocks.block(slot), self.blocks.registered.then_some(0)),
            };
            let op = Op { offset: from, memory, len, need: (piece.end - from) as usize, buffer };
            // SAFETY: a block of its own, or windows of the caller's promise.
            unsafe { self.lane.begin(slot, op) };
            pending.push_back(Pending { slot, sub, piece, straight: straight.is_some() });
            ahead.begun += 1;
            if piece.end < rest.end {
                ahead.here = Some((sub, Piece { begin: piece.end, ..rest }));
            } else {
                ahead.advance(self.me);
            }
        }
    }

    /// Reads this rank's pieces of a batch into memory that it can reach. With `control`, the ranks deliver together:
    /// part `s` of the batch (as many calls as fit a period) is delivered after point `first + s - 1` has been reached
    /// by all. Returns when all points have been.
    ///
    /// # Safety
    /// The rings behind `bases` are writable in the windows of the batch and not otherwise used.
    pub(crate) unsafe fn read_pieces(
        &mut self,
        batch: Batch,
        pending: &mut VecDeque<Pending>,
        control: Option<(&Control, u32)>,
    ) {
        let mut ahead = Ahead::new(self.rows, self.grid, batch, self.me);
        let subs = ahead.subs();
        let mut sub = 0;
        loop {
            // SAFETY: the caller's promise.
            unsafe { self.read_ahead(&mut ahead, pending) };
            let Some(next) = pending.pop_front() else { break };
            self.finish(next.slot);
            if let Some((control, first)) = control.filter(|_| next.sub > sub) {
                (sub..next.sub).for_each(|s| control.reach(first.wrapping_add(s), false));
                control.wait(first.wrapping_add(next.sub - 1));
                sub = next.sub;
            }
            if self.error.is_none() && !next.straight {
                let bases = self.bases;
                // SAFETY: the caller's promise: the index lies in a window of the part's ring.
                unsafe { self.deliver(next, |part, index, _| bases[part].wrapping_add(index)) };
            }
        }
        if let Some((control, first)) = control {
            let failed = self.error.is_some();
            (sub..subs).for_each(|s| control.reach(first.wrapping_add(s), failed && s + 1 == subs));
            control.wait(first.wrapping_add(subs - 1));
        }
    }

    /// Copies a piece that has been read to where `target` says (part, index in its ring, length).
    ///
    /// # Safety
    /// What `target` gives is writable for the length it was asked for.
    pub(crate) unsafe fn deliver(&mut self, read: Pending, mut target: impl FnMut(usize, usize, usize) -> *mut u8) {
        let Piece { begin, end, .. } = read.piece;
        let block = self.blocks.block(read.slot).wrapping_add((begin - self.grid.down(begin)) as usize);
        self.rows.fragments(begin, end, |part, index, at, len| {
            let bytes = target(part, index, len);
            // SAFETY: the block holds the piece; the target by the caller's promise.
            unsafe { block.add(at).copy_to_nonoverlapping(bytes, len) };
        });
    }
}

/// Goes through the pieces of one aggregator in a batch, divided into parts of which no call overwrites another's window.
pub(crate) struct Ahead {
    rows: Rows,
    grid: Grid,
    batch: Batch,
    sub: u32,
    cut: Cut,
    number: u64,
    begun: usize,
    /// The next piece and the part of the batch it belongs to.
    here: Option<(u32, Piece)>,
}

impl Ahead {
    pub(crate) fn new(rows: Rows, grid: Grid, batch: Batch, me: Option<u64>) -> Self {
        let cut = cut_of_sub(&rows, grid, batch, 0);
        let mut ahead = Self { rows, grid, batch, sub: 0, cut, number: 0, begun: 0, here: None };
        ahead.advance(me);
        ahead
    }

    /// Parts of the batch.
    pub(crate) fn subs(&self) -> u32 {
        subs(&self.rows, self.batch)
    }

    fn advance(&mut self, me: Option<u64>) {
        self.here = None;
        let Some(me) = me else { return };
        loop {
            if let Some((number, piece)) = self.cut.next_of(me, self.number) {
                self.number = number + 1;
                self.here = Some((self.sub, piece));
                return;
            }
            if self.sub + 1 >= self.subs() {
                return;
            }
            self.sub += 1;
            self.number = 0;
            self.cut = cut_of_sub(&self.rows, self.grid, self.batch, self.sub);
        }
    }
}

/// Parts of a batch that fit a period each.
pub(crate) fn subs(rows: &Rows, batch: Batch) -> u32 {
    batch.calls.div_ceil(rows.calls_per_period()) as u32
}

/// The pieces of one part of a batch that is read.
pub(crate) fn cut_of_sub(rows: &Rows, grid: Grid, batch: Batch, sub: u32) -> Cut {
    let calls = rows.calls_per_period();
    let before = u64::from(sub) * calls;
    let part = Batch { first_call: batch.first_call + before, calls: calls.min(batch.calls - before) };
    let (begin, end) = rows.region(part);
    Cut::new(grid, begin, end, None)
}

#[cfg(test)]
#[path = "pass_tests.rs"]
mod tests;
