//! Submits chunks and reaps completions, without allocation.

use std::io;

use io_uring::squeue;

use super::edge_backup::EdgeBackup;
use super::operation_stream::{BatchFailure, OperationStream};
use super::split_pieces::{SplitPieces, UNSPLIT};
use crate::latency::CallStart;
use crate::queue::in_flight::InFlightOperations;
use crate::queue::{Queue, TransferMode};
use crate::retry::{CompletionOutcome, RetryBudget};
use crate::route::FileRoute;
use crate::walk::{IoRequest, IoRequestSource, ReadGuard};
use crate::{Direction, Latency};

/// Parameters of a batch.
pub(super) struct PumpJob<'a> {
    /// The direction is that of each request.
    pub(super) way: TransferMode,
    /// First byte of the transfer buffer.
    pub(super) base: *mut u8,
    /// Maximum operations in flight.
    pub(super) depth: u32,
    /// Completions to wait for while there is more to begin.
    pub(super) wait_for: u32,
    /// Size of the largest operation: a larger piece is split into simultaneous ones; None: one operation per piece.
    pub(super) operation_bytes: Option<u64>,
    /// The newest operation in flight is less than this far ahead of the oldest.
    pub(super) reuse_distance: u64,
    pub(super) route: &'a FileRoute,
}

/// An operation in flight; its index in the table is its user data.
#[derive(Clone, Copy, Default)]
struct OperationSlot {
    /// File offset of the remaining bytes.
    offset: u64,
    /// Index in the buffer of the remaining bytes.
    index: usize,
    /// Remaining bytes; 0 if the slot is free.
    left_bytes: u64,
    number: u64,
    direction: Direction,
    mark: CallStart,
    /// Index in the buffer of its first byte.
    begin: usize,
    /// Index of the piece it is a part of, or [`UNSPLIT`].
    split_piece: u32,
    /// Memory at its ends that is restored on completion.
    guard: ReadGuard,
}

/// Table of the chunks in flight, allocated once per file.
pub(super) struct Pump {
    slots: Box<[OperationSlot]>,
    /// Slots without a chunk.
    free: Vec<u32>,
    /// Slots to resubmit.
    retries: Vec<u32>,
    /// Pieces moved by several operations.
    split_pieces: SplitPieces,
    edge_backup: Option<EdgeBackup>,
    /// Limits retries.
    patience: RetryBudget,
}

impl Pump {
    pub(super) fn new(depth: u32) -> Self {
        let depth = depth as usize;
        Self {
            slots: vec![OperationSlot::default(); depth].into_boxed_slice(),
            free: Vec::with_capacity(depth),
            retries: Vec::with_capacity(depth),
            split_pieces: SplitPieces::new(depth),
            edge_backup: None,
            patience: RetryBudget::default(),
        }
    }

    /// For reads of whole sectors.
    pub(super) fn prepare_edge_backup(&mut self) -> io::Result<()> {
        if self.edge_backup.is_none() {
            self.edge_backup = Some(EdgeBackup::new(self.slots.len())?);
        }
        Ok(())
    }

    /// True if no slot holds a chunk.
    #[cfg(test)]
    pub(super) fn is_idle(&self) -> bool {
        self.slots.iter().all(|slot| slot.left_bytes == 0)
    }

    /// Moves all chunks of `walk`; `during` runs once, after the first submissions up to the depth. After a failure no new chunk
    /// starts, but those before the failed one are completed, so that the first failure in batch order is reported. On return
    /// nothing is in flight.
    ///
    /// # Safety
    /// `job.base` is valid for `index + len` bytes of every piece that `walk` yields, and, for a read, not otherwise
    /// used, until this returns; if memory is registered, it is this memory.
    pub(super) unsafe fn run<P: IoRequestSource>(
        &mut self,
        queue: &mut Queue,
        job: &PumpJob<'_>,
        walk: P,
        latency: &mut Latency,
        mut during: Option<&mut dyn FnMut()>,
    ) -> Result<(), BatchFailure> {
        if queue.abandoned {
            return Err(BatchFailure::Abandoned);
        }
        let depth = job.depth.min(self.slots.len() as u32);
        self.slots.fill(OperationSlot::default());
        self.retries.clear();
        self.split_pieces.clear();
        self.patience.reset();
        self.free.clear();
        self.free.extend((0..depth).rev());
        let shape = EntryBuilder::new(queue, job);
        let mut stream = OperationStream::new(walk, job.operation_bytes, job.reuse_distance);
        let mut flight = InFlightOperations::new(queue);
        loop {
            // SAFETY: the caller's contract, which holds until this function returns, after `flight` is dropped.
            unsafe { self.fill(&mut flight, &mut stream, job, &shape, latency) }?;
            if let Some(during) = during.take() {
                flight.submit_and_wait(0).map_err(BatchFailure::Enter)?;
                during();
            }
            let in_flight = flight.in_flight();
            // Without splitting, an operation is a piece.
            let pieces = if job.operation_bytes.is_some() { self.split_pieces.in_flight() } else { in_flight };
            let most = stream.next_batch_threshold();
            if most.is_some_and(|most| pieces <= most) {
                // The operations already pushed proceed meanwhile.
                flight.submit_and_wait(0).map_err(BatchFailure::Enter)?;
                stream.walk.refill(pieces as u64);
                continue;
            }
            if in_flight == 0 {
                break;
            }
            // The last call waits for the rest; others keep the queue full.
            let want = if stream.is_done() && most.is_none() { in_flight } else { shape.wait_for };
            flight
                .submit_and_wait(completions_to_wait_for(want, in_flight, pieces, most))
                .map_err(BatchFailure::Enter)?;
            while let Some((slot, result)) = flight.next_completion() {
                // SAFETY: the caller's contract; the slot's operation has completed.
                unsafe { self.complete(slot as usize, result, job, &mut stream, latency) };
            }
        }
        match stream.failure {
            None => Ok(()),
            Some(failure) => Err(failure),
        }
    }

    /// Resubmits incomplete chunks, then starts new ones up to the depth. Parts are submitted one by one: the kernel would merge
    /// operations submitted together, which must reach the device separately.
    ///
    /// # Safety
    /// As for [`Pump::run`], until `flight` is dropped.
    #[inline]
    unsafe fn fill<P: IoRequestSource>(
        &mut self,
        flight: &mut InFlightOperations<'_>,
        stream: &mut OperationStream<P>,
        job: &PumpJob<'_>,
        shape: &EntryBuilder,
        latency: &Latency,
    ) -> Result<(), BatchFailure> {
        while let Some(slot) = self.retries.pop() {
            // SAFETY: the slot holds the rest of a chunk of the walk.
            unsafe { flight.push(&shape.entry(&self.slots[slot as usize], slot, job)) };
            flight.count(shape.registered);
        }
        if stream.failure.is_some() {
            return Ok(());
        }
        while let Some(&slot) = self.free.last() {
            if stream.begun >= stream.begin_limit && !self.advance_limit(stream, job) {
                return Ok(());
            }
            let Some((piece, of)) = stream.next_operation(&mut self.split_pieces, latency) else {
                return Ok(());
            };
            self.free.pop();
            let chunk = OperationSlot {
                offset: piece.offset,
                index: piece.index,
                left_bytes: piece.len,
                number: stream.begun,
                direction: piece.direction,
                mark: latency.begin(),
                begin: piece.index,
                split_piece: of,
                guard: piece.guard,
            };
            self.slots[slot as usize] = chunk;
            stream.begun += 1;
            if !piece.guard.is_empty() {
                // SAFETY: the piece is the caller's memory, and nothing in flight accesses it: see `PumpJob::span`.
                unsafe { self.edge_backup_mut().save(slot as usize, job.base, &piece) };
            }
            // SAFETY: the slot holds a piece of the walk.
            unsafe { flight.push(&shape.entry(&chunk, slot, job)) };
            flight.count(shape.registered);
            if of != UNSPLIT {
                flight.submit_and_wait(0).map_err(BatchFailure::Enter)?;
            }
        }
        Ok(())
    }

    #[cold]
    fn edge_backup_mut(&mut self) -> &mut EdgeBackup {
        match &mut self.edge_backup {
            Some(kept) => kept,
            None => panic!("no memory for guards: prepare_guards() must precede a walk that has some"),
        }
    }

    /// Finds the oldest operation in flight; true if the next one may start. Called at most once per period, or for chunks so large
    /// that the cost does not matter.
    #[cold]
    fn advance_limit<P>(&self, stream: &mut OperationStream<P>, job: &PumpJob<'_>) -> bool {
        let oldest = self.slots.iter().filter(|s| s.left_bytes > 0).map(|s| s.number).min().unwrap_or(stream.begun);
        stream.begin_limit = oldest.saturating_add(job.reuse_distance);
        stream.begun < stream.begin_limit
    }

    /// # Safety
    /// As for [`Pump::run`]; the operation has completed.
    #[inline]
    unsafe fn complete<P: IoRequestSource>(
        &mut self,
        slot: usize,
        result: i32,
        job: &PumpJob<'_>,
        stream: &mut OperationStream<P>,
        latency: &mut Latency,
    ) {
        let chunk = &mut self.slots[slot];
        // Signed, because an empty operation can fail too.
        if i64::from(result) == chunk.left_bytes as i64 && chunk.guard.is_empty() && chunk.split_piece == UNSPLIT {
            latency.end(chunk.mark);
            chunk.left_bytes = 0;
            self.free.push(slot as u32);
            self.patience.reset();
            return;
        }
        // SAFETY: as for this function.
        unsafe { self.complete_slow(slot, result, job, stream, latency) };
    }

    /// Handles pieces with memory to restore, parts, and partial transfers, which are resubmitted or fail.
    ///
    /// # Safety
    /// As for [`Pump::complete`].
    #[cold]
    unsafe fn complete_slow<P: IoRequestSource>(
        &mut self,
        slot: usize,
        result: i32,
        job: &PumpJob<'_>,
        stream: &mut OperationStream<P>,
        latency: &mut Latency,
    ) {
        let chunk = &mut self.slots[slot];
        let ended = self.patience.classify(result);
        let moved = if let CompletionOutcome::Moved(moved) = ended { moved } else { 0 };
        chunk.left_bytes -= moved;
        chunk.offset += moved;
        chunk.index += moved as usize;
        let got = (chunk.index - chunk.begin) as u64;
        let is_complete = moved > 0 && chunk.left_bytes <= u64::from(chunk.guard.after);
        let goes_on = ended == CompletionOutcome::Retry || (moved > 0 && job.route.can_continue(got));
        let (number, direction, of) = (chunk.number, chunk.direction, chunk.split_piece);
        let is_first = stream.failure.as_ref().is_none_or(|f| number < f.number());
        if is_complete {
            if of == UNSPLIT {
                latency.end(chunk.mark);
            } else if let Some(mark) = self.split_pieces.end(of) {
                latency.end(mark);
            }
        } else if goes_on && is_first {
            self.retries.push(slot as u32);
            return;
        } else if !goes_on && is_first {
            stream.failure = Some(if let CompletionOutcome::Failed(errno) = ended {
                BatchFailure::Operation { number, direction, offset: chunk.offset, errno }
            } else {
                // The request was the whole piece.
                let (offset, expected) =
                    self.split_pieces.extent(of).unwrap_or((chunk.offset - got, got + chunk.left_bytes));
                BatchFailure::Short { number, direction, offset, expected, got: chunk.offset - offset }
            });
        }
        if !chunk.guard.is_empty() {
            let len = got + chunk.left_bytes;
            let piece =
                IoRequest { offset: chunk.offset - got, index: chunk.begin, len, direction, guard: chunk.guard };
            // SAFETY: as for this function.
            unsafe { self.edge_backup_mut().restore(slot, job.base, &piece) };
        }
        self.slots[slot].left_bytes = 0;
        self.free.push(slot as u32);
    }
}

/// At most those in flight, and those missing until so few pieces are in flight that the next batch is requested. Pieces with parts
/// still to start may outnumber the operations in flight.
fn completions_to_wait_for(want: usize, in_flight: usize, pieces: usize, asks_at: Option<usize>) -> usize {
    let rest = asks_at.map_or(in_flight, |most| pieces.saturating_sub(most).max(1));
    want.min(rest).min(in_flight)
}

struct EntryBuilder {
    registered: bool,
    piece_shift: u32,
    /// Completions to wait for while there is more to begin.
    wait_for: usize,
}

impl EntryBuilder {
    fn new(queue: &Queue, job: &PumpJob<'_>) -> Self {
        Self {
            registered: queue.registration.is_registered(),
            piece_shift: queue.buffer_shift,
            wait_for: job.wait_for.clamp(1, job.depth.max(1)) as usize,
        }
    }

    /// The operation for the remaining bytes of a chunk within one registered buffer.
    #[inline]
    fn entry(&self, chunk: &OperationSlot, slot: u32, job: &PumpJob<'_>) -> squeue::Entry {
        let piece = chunk.index >> self.piece_shift;
        let piece_left = ((piece + 1) << self.piece_shift) - chunk.index;
        // At most 1 GiB; the number of pieces is checked by the kernel at registration (at most 16384).
        let len = chunk.left_bytes.min(piece_left as u64) as u32;
        let buffer = self.registered.then_some(piece as u16);
        let memory = job.base.wrapping_add(chunk.index);
        let way = TransferMode { direction: chunk.direction, ..job.way };
        way.entry(chunk.offset, memory, len, buffer).user_data(u64::from(slot))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::pattern;
    use crate::walk::ChunkWalk;
    use crate::{Batch, Direction, TransferBuffer};
    use std::path::Path;

    #[test]
    fn no_more_is_waited_for_than_is_in_flight() {
        // One part in flight, of two pieces; the next piece may not start before it.
        assert_eq!(completions_to_wait_for(2, 1, 2, None), 1);
        assert_eq!(completions_to_wait_for(4, 8, 1, None), 4, "parts of one piece");
        assert_eq!(completions_to_wait_for(4, 8, 8, Some(6)), 2);
        assert_eq!(completions_to_wait_for(4, 8, 2, Some(0)), 2);
        assert_eq!(completions_to_wait_for(4, 8, 0, Some(0)), 1);
        assert_eq!(completions_to_wait_for(1, 1, 1, Some(0)), 1);
    }

    #[test]
    fn reads_never_run_a_period_ahead_of_the_oldest_in_flight() {
        let p = pattern(4096, 1, 100);
        let buffer = TransferBuffer::new(4 * 4096, 4096).unwrap();
        let batch = Batch { first_call: 0, calls: 100 };
        let walk = ChunkWalk::new(&p, Direction::Write, batch, &buffer, Path::new("f")).unwrap();
        let route = FileRoute::Buffered { reason: None };
        let job = PumpJob {
            way: TransferMode { direction: Direction::Read, direct: false, flags: 0 },
            base: std::ptr::null_mut(),
            depth: 3,
            wait_for: 1,
            operation_bytes: None,
            reuse_distance: 4,
            route: &route,
        };
        let mut pump = Pump::new(3);
        let mut stream = OperationStream::new(walk, job.operation_bytes, job.reuse_distance);
        stream.begun = 9;
        pump.slots[2] = OperationSlot { left_bytes: 8, number: 5, ..OperationSlot::default() };
        pump.slots[0] = OperationSlot { left_bytes: 4096, number: 8, ..OperationSlot::default() };
        assert!(!pump.advance_limit(&mut stream, &job), "chunk 9 has the window of chunk 5");
        pump.slots[2].left_bytes = 0;
        assert!(pump.advance_limit(&mut stream, &job));
        assert_eq!(stream.begin_limit, 12, "without another look");
        pump.slots[0].left_bytes = 0;
        assert!(pump.advance_limit(&mut stream, &job));
    }
}
