//! Transfers between aligned memory and the file: one at a time with pwritev2 and preadv2, or several in flight through io_uring.

use std::fs::File;
use std::io;
use std::path::Path;

use crate::latency::CallStart;
use crate::queue::in_flight::InFlightOperations;
use crate::queue::{self, abandoned_error, Queue};
use crate::retry::{CompletionOutcome, RetryBudget};
use crate::{dontcache, BackendError, Direction, Latency};

#[derive(Clone, Copy, Debug)]
pub(crate) struct DomainTransfer {
    pub(crate) offset: u64,
    pub(crate) memory: *mut u8,
    pub(crate) len: usize,
    /// Minimum number of bytes; less than `len` where a read may reach the end of the file.
    pub(crate) required_bytes: usize,
    /// Index of the registered buffer that holds the memory.
    pub(crate) buffer: Option<u16>,
}

#[derive(Debug, Default)]
pub(crate) struct TransferSlot {
    transfer: Option<DomainTransfer>,
    moved: usize,
    start: CallStart,
    error: Option<BackendError>,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct TransferTarget<'a> {
    pub(crate) file: &'a File,
    pub(crate) path: &'a Path,
    /// Parameters of the same file for a queue.
    pub(crate) mode: queue::TransferMode,
    /// Alignment at which a short transfer can be continued.
    pub(crate) align: u64,
}

/// Transfers of one batch. Dropping it waits for all of them.
pub(crate) struct TransferPipeline<'a> {
    target: TransferTarget<'a>,
    flight: Option<InFlightOperations<'a>>,
    slots: &'a mut [TransferSlot],
    latency: &'a mut Latency,
    /// The queue failed: the drop waits for transfers in flight, and no further ones are started.
    broken: bool,
    /// For retried transfers.
    patience: RetryBudget,
}

impl<'a> TransferPipeline<'a> {
    /// With one transfer in flight per slot through `queue`; without a queue, one at a time.
    pub(crate) fn new(
        target: TransferTarget<'a>,
        queue: Option<&'a mut Queue>,
        slots: &'a mut [TransferSlot],
        latency: &'a mut Latency,
    ) -> Self {
        slots.iter_mut().for_each(|slot| *slot = TransferSlot::default());
        let broken = queue.as_ref().is_some_and(|q| q.abandoned);
        Self {
            target,
            flight: queue.map(InFlightOperations::new),
            slots,
            latency,
            broken,
            patience: RetryBudget::default(),
        }
    }

    pub(crate) fn depth(&self) -> usize {
        self.slots.len()
    }

    /// Starts a transfer in an idle slot. [`TransferPipeline::finish`] returns its error.
    ///
    /// # Safety
    /// The memory of `op` is valid for its length and, for a read, not otherwise used, until the slot has been finished
    /// or the value dropped.
    pub(crate) unsafe fn begin(&mut self, slot: usize, op: DomainTransfer) {
        debug_assert!(self.slots[slot].transfer.is_none(), "slot is busy");
        self.slots[slot] = TransferSlot { transfer: Some(op), start: self.latency.begin(), ..TransferSlot::default() };
        if self.broken {
            self.slots[slot].error = Some(abandoned_error("io_uring_enter", self.target.path));
            return;
        }
        if self.flight.is_none() {
            // SAFETY: guaranteed by the caller; the transfer ends before this returns.
            unsafe { self.transfer_blocking(slot) };
            return;
        }
        // SAFETY: guaranteed by the caller.
        unsafe { self.push(slot) };
        self.submit(0);
    }

    /// Waits for the transfer of a slot, if there is one.
    pub(crate) fn finish(&mut self, slot: usize) -> Result<(), BackendError> {
        while self.slots[slot].transfer.is_some() && self.slots[slot].error.is_none() {
            self.submit(1);
        }
        let done = std::mem::take(&mut self.slots[slot]);
        match done.error {
            Some(error) => Err(error),
            None => Ok(()),
        }
    }

    /// One transfer with blocking system calls.
    ///
    /// # Safety
    /// As for [`TransferPipeline::begin`].
    unsafe fn transfer_blocking(&mut self, slot: usize) {
        while let Some(op) = self.slots[slot].transfer {
            let moved = self.slots[slot].moved;
            let (way, at) = (self.target.mode, op.offset + moved as u64);
            let (memory, len) = (op.memory.wrapping_add(moved), op.len - moved);
            // SAFETY: the rest of the memory of the operation, guaranteed by the caller.
            let result = unsafe { dontcache::transfer(way.direction, self.target.file, memory, len, at, way.flags) };
            // In the form of a completion: no call transfers 2 GiB.
            let result = result.map_or_else(|e| -e.raw_os_error().unwrap_or(libc::EIO), |moved| moved as i32);
            self.process_result(slot, result);
        }
    }

    /// Pushes the rest of a slot's transfer.
    ///
    /// # Safety
    /// As for [`TransferPipeline::begin`].
    unsafe fn push(&mut self, slot: usize) {
        let (Some(op), Some(flight)) = (self.slots[slot].transfer, self.flight.as_mut()) else { return };
        let moved = self.slots[slot].moved;
        let (offset, memory) = (op.offset + moved as u64, op.memory.wrapping_add(moved));
        // At most 1 GiB and two sectors.
        let len = (op.len - moved) as u32;
        let entry = self.target.mode.entry(offset, memory, len, op.buffer).user_data(slot as u64);
        // SAFETY: guaranteed by the caller.
        unsafe { flight.push(&entry) };
        flight.count(op.buffer.is_some());
    }

    /// Submits the queue, waits for `want` completions and processes all available ones.
    fn submit(&mut self, want: usize) {
        let Some(flight) = self.flight.as_mut() else { return };
        if let Err(error) = flight.submit_and_wait(want) {
            self.fail_all(&error);
            return;
        }
        while let Some((slot, result)) = self.flight.as_mut().and_then(InFlightOperations::next_completion) {
            let slot = slot as usize;
            if self.process_result(slot, result) {
                // SAFETY: the rest of a transfer whose memory is valid until it is finished.
                unsafe { self.push(slot) };
                if let Some(Err(error)) = self.flight.as_mut().map(|f| f.submit_and_wait(0)) {
                    self.fail_all(&error);
                    return;
                }
            }
        }
    }

    /// Completions can no longer be assigned to transfers: all fail.
    #[cold]
    fn fail_all(&mut self, error: &io::Error) {
        self.broken = true;
        for slot in self.slots.iter_mut().filter(|s| s.transfer.is_some()) {
            slot.error.get_or_insert_with(|| BackendError::from_io("io_uring_enter", self.target.path, None, error));
        }
    }

    /// Processes the result of a system call or a completion; true if the transfer must be continued.
    fn process_result(&mut self, slot: usize, result: i32) -> bool {
        let state = &mut self.slots[slot];
        let Some(op) = state.transfer else { return false };
        let operation = match (self.target.mode.direction, self.flight.is_some()) {
            (Direction::Write, false) => "two-phase pwrite",
            (Direction::Read, false) => "two-phase pread",
            (Direction::Write, true) => "two-phase io_uring write",
            (Direction::Read, true) => "two-phase io_uring read",
        };
        let moved = match self.patience.classify(result) {
            CompletionOutcome::Moved(moved) => moved,
            CompletionOutcome::Retry => return true,
            CompletionOutcome::Failed(errno) => {
                let (at, error) = (op.offset + state.moved as u64, io::Error::from_raw_os_error(errno));
                state.error = Some(BackendError::from_io(operation, self.target.path, Some(at), &error));
                state.transfer = None;
                return false;
            }
        };
        state.moved += moved as usize;
        if state.moved >= op.required_bytes {
            self.latency.end(state.start);
            state.transfer = None;
            return false;
        }
        // A direct transfer stops inside a sector only at the end of the file.
        if moved > 0 && (state.moved as u64).is_multiple_of(self.target.align) {
            return true;
        }
        let (need, moved) = (op.required_bytes as u64, state.moved as u64);
        state.error = Some(BackendError::short_transfer(operation, self.target.path, op.offset, need, moved));
        state.transfer = None;
        false
    }
}
