//! Transfers between aligned memory and the file: one after the other with pwritev2 and preadv2, or several under way
//! in a queue of io_uring.

use std::fs::File;
use std::io;
use std::path::Path;

use crate::latency::Mark;
use crate::patience::{Ended, Patience};
use crate::queue::flight::Flight;
use crate::queue::{self, abandoned, Queue};
use crate::{dontcache, BackendError, Direction, Latency};

/// Memory and place of one transfer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Op {
    pub(crate) offset: u64,
    pub(crate) memory: *mut u8,
    pub(crate) len: usize,
    /// Bytes that must move; fewer than `len` where a read may meet the end of the file.
    pub(crate) need: usize,
    /// Index of the registered buffer that holds the memory.
    pub(crate) buffer: Option<u16>,
}

/// What is under way in one slot.
#[derive(Debug, Default)]
pub(crate) struct Slot {
    op: Option<Op>,
    moved: usize,
    mark: Mark,
    error: Option<BackendError>,
}

/// What a lane needs to know of its file and pattern.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Way<'a> {
    pub(crate) file: &'a File,
    pub(crate) path: &'a Path,
    /// The same file as a queue takes it.
    pub(crate) queued: queue::Way,
    /// Multiple at which an incomplete transfer can go on.
    pub(crate) align: u64,
}

/// Transfers of one batch. Dropping it waits for all of them.
pub(crate) struct Lane<'a> {
    way: Way<'a>,
    flight: Option<Flight<'a>>,
    slots: &'a mut [Slot],
    latency: &'a mut Latency,
    /// The queue failed: what is under way is waited for by the drop, and nothing more is begun.
    broken: bool,
    /// With transfers that shall be tried again.
    patience: Patience,
}

impl<'a> Lane<'a> {
    /// A lane with as many transfers under way as there are slots, through `queue`, or without one: one at a time.
    pub(crate) fn new(
        way: Way<'a>,
        queue: Option<&'a mut Queue>,
        slots: &'a mut [Slot],
        latency: &'a mut Latency,
    ) -> Self {
        slots.iter_mut().for_each(|slot| *slot = Slot::default());
        let broken = queue.as_ref().is_some_and(|q| q.abandoned);
        Self { way, flight: queue.map(Flight::new), slots, latency, broken, patience: Patience::default() }
    }

    /// Slots.
    pub(crate) fn depth(&self) -> usize {
        self.slots.len()
    }

    /// Begins a transfer in a slot that is idle. Errors come out of [`Lane::finish`].
    ///
    /// # Safety
    /// The memory of `op` is valid for its length and, for a read, not otherwise used, until the slot has been finished
    /// or the lane dropped.
    pub(crate) unsafe fn begin(&mut self, slot: usize, op: Op) {
        debug_assert!(self.slots[slot].op.is_none(), "slot is busy");
        self.slots[slot] = Slot { op: Some(op), mark: self.latency.begin(), ..Slot::default() };
        if self.broken {
            self.slots[slot].error = Some(abandoned("io_uring_enter", self.way.path));
            return;
        }
        if self.flight.is_none() {
            // SAFETY: the caller's promise; the transfer ends before this returns.
            unsafe { self.block(slot) };
            return;
        }
        // SAFETY: the caller's promise.
        unsafe { self.push(slot) };
        self.enter(0);
    }

    /// Waits for the transfer of a slot, if one is under way.
    ///
    /// # Errors
    /// Why it failed.
    pub(crate) fn finish(&mut self, slot: usize) -> Result<(), BackendError> {
        while self.slots[slot].op.is_some() && self.slots[slot].error.is_none() {
            self.enter(1);
        }
        let done = std::mem::take(&mut self.slots[slot]);
        match done.error {
            Some(error) => Err(error),
            None => Ok(()),
        }
    }

    /// One transfer with system calls that wait for it.
    ///
    /// # Safety
    /// As for [`Lane::begin`].
    unsafe fn block(&mut self, slot: usize) {
        while let Some(op) = self.slots[slot].op {
            let moved = self.slots[slot].moved;
            let (way, at) = (self.way.queued, op.offset + moved as u64);
            let (memory, len) = (op.memory.wrapping_add(moved), op.len - moved);
            // SAFETY: the rest of the memory of the operation, by the caller's promise.
            let result = unsafe { dontcache::transfer(way.direction, self.way.file, memory, len, at, way.flags) };
            // As a completion has it: no call moves 2 GiB.
            let result = result.map_or_else(|e| -e.raw_os_error().unwrap_or(libc::EIO), |moved| moved as i32);
            self.advance(slot, result);
        }
    }

    /// Puts what is left of a slot's transfer into the queue.
    ///
    /// # Safety
    /// As for [`Lane::begin`].
    unsafe fn push(&mut self, slot: usize) {
        let (Some(op), Some(flight)) = (self.slots[slot].op, self.flight.as_mut()) else { return };
        let moved = self.slots[slot].moved;
        let (offset, memory) = (op.offset + moved as u64, op.memory.wrapping_add(moved));
        // At most 1 GiB and two sectors.
        let len = (op.len - moved) as u32;
        let entry = self.way.queued.entry(offset, memory, len, op.buffer).user_data(slot as u64);
        // SAFETY: the caller's promise.
        unsafe { flight.push(&entry) };
        flight.count(op.buffer.is_some());
    }

    /// Submits what was pushed, waits for `want` completions and takes in all that are there.
    fn enter(&mut self, want: usize) {
        let Some(flight) = self.flight.as_mut() else { return };
        if let Err(error) = flight.submit_and_wait(want) {
            self.give_up(&error);
            return;
        }
        while let Some((slot, result)) = self.flight.as_mut().and_then(Flight::next_completion) {
            let slot = slot as usize;
            if self.advance(slot, result) {
                // SAFETY: the rest of a transfer whose memory is promised until it is finished.
                unsafe { self.push(slot) };
                if let Some(Err(error)) = self.flight.as_mut().map(|f| f.submit_and_wait(0)) {
                    self.give_up(&error);
                    return;
                }
            }
        }
    }

    /// Nothing tells any more which transfer ends: all of them have failed.
    #[cold]
    fn give_up(&mut self, error: &io::Error) {
        self.broken = true;
        for slot in self.slots.iter_mut().filter(|s| s.op.is_some()) {
            slot.error.get_or_insert_with(|| BackendError::from_io("io_uring_enter", self.way.path, None, error));
        }
    }

    /// Takes the result of a system call or a completion; true if the transfer has to go on.
    fn advance(&mut self, slot: usize, result: i32) -> bool {
        let state = &mut self.slots[slot];
        let Some(op) = state.op else { return false };
        let operation = match (self.way.queued.direction, self.flight.is_some()) {
            (Direction::Write, false) => "two-phase pwrite",
            (Direction::Read, false) => "two-phase pread",
            (Direction::Write, true) => "two-phase io_uring write",
            (Direction::Read, true) => "two-phase io_uring read",
        };
        let moved = match self.patience.judge(result) {
            Ended::Moved(moved) => moved,
            Ended::Again => return true,
            Ended::Failed(errno) => {
                let (at, error) = (op.offset + state.moved as u64, io::Error::from_raw_os_error(errno));
                state.error = Some(BackendError::from_io(operation, self.way.path, Some(at), &error));
                state.op = None;
                return false;
            }
        };
        state.moved += moved as usize;
        if state.moved >= op.need {
            self.latency.end(state.mark);
            state.op = None;
            return false;
        }
        // A direct transfer stops inside of a sector only at the end of the file.
        if moved > 0 && (state.moved as u64).is_multiple_of(self.way.align) {
            return true;
        }
        let (need, moved) = (op.need as u64, state.moved as u64);
        state.error = Some(BackendError::short(operation, self.way.path, op.offset, need, moved));
        state.op = None;
        false
    }
}
