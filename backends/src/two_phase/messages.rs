//! The exchange by messages: every rank sends its part of a domain to the aggregator, or receives it from there. Both sides compute the
//! same lengths, so that none is sent.

use std::collections::VecDeque;
use std::io;

use beff_ffi::{Comm, MessageDirection, MpiError, Requests};

use super::batch_transfer::{partition_of_sub_batch, sub_batches, BatchTransfer, PendingRead, ReadAhead};
use super::domain::{DomainGrid, FileDomain, RegionPartition};
use super::rows::ChunkRows;
use crate::error::FailureCause;
use crate::{BackendError, Batch, TransferBuffer};

/// Steps in flight: the exchange of one overlaps the transfer of another.
const REQUEST_SETS: usize = 2;

/// Memory and requests of the exchange, allocated in prepare.
#[derive(Debug)]
pub(crate) struct MessageExchange {
    request_sets: [Requests; REQUEST_SETS],
    staging: TransferBuffer,
    /// Bytes of staging memory of one set.
    bytes: usize,
    /// Offset in the staging memory of each part's next byte.
    cursors: Vec<usize>,
}

pub(crate) fn staging_bytes(grid: DomainGrid) -> u64 {
    (REQUEST_SETS as u64 * grid.max_domain_bytes()).next_multiple_of(4096)
}

/// Ranks of parts and aggregators.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RankMap<'a> {
    pub(crate) comm: &'a Comm,
    pub(crate) aggregator_ranks: &'a [u64],
    pub(crate) my_part: u64,
    /// Rank of part 0; the others follow in cyclic order.
    pub(crate) first_rank: u64,
}

impl RankMap<'_> {
    fn rank_of_part(&self, part: u64) -> u64 {
        (self.first_rank + part) % self.comm.size()
    }
}

impl MessageExchange {
    /// For domains of `grid`. `peers`: the ranks whose parts of a domain this rank collects, 0 unless it is an aggregator. `staging`: at
    /// least [`staging_bytes`].
    pub(crate) fn new(grid: DomainGrid, rows: &ChunkRows, peers: u64, staging: TransferBuffer) -> io::Result<Self> {
        let bytes = usize::try_from(grid.max_domain_bytes()).map_err(io::Error::other)?;
        assert!(staging.bytes().len() as u64 >= staging_bytes(grid), "memory for messages is too short");
        let messages = (peers + grid.aggregators) * rows.max_contiguous_ranges(grid.max_domain_bytes());
        let messages = usize::try_from(messages).map_err(io::Error::other)?;
        Ok(Self {
            request_sets: std::array::from_fn(|_| Requests::with_capacity(messages)),
            staging,
            bytes,
            cursors: vec![0; peers as usize],
        })
    }

    /// The staging memory, for reuse. After a batch no message is pending.
    pub(crate) fn into_staging(self) -> TransferBuffer {
        self.staging
    }

    fn wait(&mut self, transfer: &mut BatchTransfer<'_>, set: usize) {
        record_error(transfer, self.request_sets[set].wait_all());
    }

    fn staging_ptr(&mut self, set: usize) -> *mut u8 {
        self.staging.bytes_mut()[set * self.bytes..].as_mut_ptr()
    }

    /// Sets the cursors to where the part of each rank begins if all but this rank's part are stored consecutively.
    fn set_cursors(&mut self, rows: &ChunkRows, piece: FileDomain, my_part: u64) {
        let mut at = 0;
        for part in 0..rows.parts {
            self.cursors[part as usize] = at;
            if part != my_part {
                at += (rows.bytes_before(part, piece.end) - rows.bytes_before(part, piece.begin)) as usize;
            }
        }
    }

    /// Posts the messages of a step of a write.
    ///
    /// # Safety
    /// The buffer of this rank contains its windows and does not change until the set has been waited for.
    unsafe fn post_write(
        &mut self,
        transfer: &mut BatchTransfer<'_>,
        who: RankMap<'_>,
        cut: &RegionPartition,
        step: u64,
    ) {
        let set = (step % REQUEST_SETS as u64) as usize;
        for piece in cut.step(step).map(|number| cut.domain(number)) {
            // SAFETY: guaranteed by the caller; staging memory is not used until the set has been waited for.
            unsafe {
                if Some(piece.aggregator) == transfer.aggregator {
                    self.post_staged(transfer, who, piece, set, MessageDirection::Receive);
                } else {
                    self.post_own(transfer, who, piece, set, MessageDirection::Send);
                }
            }
        }
    }

    /// Posts the message for this rank's part of a domain of another rank, directly from or to its transfer buffer.
    ///
    /// # Safety
    /// The buffer of this rank is valid for the message in the windows of the domain until the set has been waited for.
    unsafe fn post_own(
        &mut self,
        transfer: &mut BatchTransfer<'_>,
        who: RankMap<'_>,
        piece: FileDomain,
        set: usize,
        message: MessageDirection,
    ) {
        let (rows, mine) = (transfer.rows, transfer.part_buffers[who.my_part as usize]);
        let owner = who.aggregator_ranks[piece.aggregator as usize];
        let (begin, end) = (rows.bytes_before(who.my_part, piece.begin), rows.bytes_before(who.my_part, piece.end));
        let mut outcome = Ok(());
        rows.contiguous_ranges(begin, end, |index, len| {
            // SAFETY: a window of the buffer, guaranteed by the caller.
            let begun = unsafe {
                who.comm.post_message(message, mine.wrapping_add(index), len, owner, &mut self.request_sets[set])
            };
            keep_first_error(&mut outcome, begun);
        });
        record_error(transfer, outcome);
    }

    /// Posts the messages for the other ranks' parts of a domain of this rank, in the staging memory of a set.
    ///
    /// # Safety
    /// The staging memory of the set is not used until the set has been waited for.
    unsafe fn post_staged(
        &mut self,
        transfer: &mut BatchTransfer<'_>,
        who: RankMap<'_>,
        piece: FileDomain,
        set: usize,
        message: MessageDirection,
    ) {
        let rows = transfer.rows;
        self.set_cursors(&rows, piece, who.my_part);
        let staged = self.staging_ptr(set);
        let mut outcome = Ok(());
        for part in (0..rows.parts).filter(|&p| p != who.my_part) {
            let mut at = self.cursors[part as usize];
            let (begin, end) = (rows.bytes_before(part, piece.begin), rows.bytes_before(part, piece.end));
            rows.contiguous_ranges(begin, end, |_, len| {
                let (memory, rank) = (staged.wrapping_add(at), who.rank_of_part(part));
                // SAFETY: the parts of a domain fit the staging memory of a set; the rest is guaranteed by the caller.
                let begun = unsafe { who.comm.post_message(message, memory, len, rank, &mut self.request_sets[set]) };
                keep_first_error(&mut outcome, begun);
                at += len;
            });
        }
        record_error(transfer, outcome);
    }

    /// Writes a region: the messages of one step overlap the transfers of the previous one.
    ///
    /// # Safety
    /// The buffer of this rank contains the windows of the region and does not change.
    pub(crate) unsafe fn write(&mut self, transfer: &mut BatchTransfer<'_>, who: RankMap<'_>, cut: &RegionPartition) {
        let (steps, rows) = (cut.steps(), transfer.rows);
        let mine = transfer.part_buffers[who.my_part as usize];
        let mut slot = 0;
        // SAFETY: guaranteed by the caller, here and below: all sets are waited for before this returns.
        unsafe { self.post_write(transfer, who, cut, 0) };
        for step in 0..steps {
            let set = (step % REQUEST_SETS as u64) as usize;
            self.wait(transfer, set);
            if step + 1 < steps {
                // SAFETY: as above.
                unsafe { self.post_write(transfer, who, cut, step + 1) };
            }
            let own =
                cut.step(step).map(|number| cut.domain(number)).find(|p| Some(p.aggregator) == transfer.aggregator);
            let Some(piece) = own else { continue };
            transfer.finish(slot);
            if transfer.error.is_some() {
                continue;
            }
            self.set_cursors(&rows, piece, who.my_part);
            let (staged, cursors) = (self.staging_ptr(set), &mut self.cursors);
            let source = |part: usize, index: usize, len: usize| {
                if part as u64 == who.my_part {
                    return mine.wrapping_add(index).cast_const();
                }
                let at = cursors[part];
                cursors[part] += len;
                staged.wrapping_add(at).cast_const()
            };
            // SAFETY: received data lies in the staging memory in the order of the fragments of each part.
            unsafe { transfer.write_domain(slot, piece, source) };
            slot = (slot + 1) % transfer.pipeline.depth();
        }
        transfer.finish_all();
    }

    /// Reads a batch: transfers run ahead, and the messages of one step overlap those of the next.
    ///
    /// # Safety
    /// The buffer of this rank is writable in the windows of the batch and not otherwise used.
    pub(crate) unsafe fn read(
        &mut self,
        transfer: &mut BatchTransfer<'_>,
        who: RankMap<'_>,
        batch: Batch,
        pending: &mut VecDeque<PendingRead>,
    ) {
        let (rows, grid) = (transfer.rows, transfer.grid);
        let mut ahead = ReadAhead::new(rows, grid, batch, transfer.aggregator);
        let mut turn = 0;
        for sub in 0..sub_batches(&rows, batch) {
            let cut = partition_of_sub_batch(&rows, grid, batch, sub);
            for step in 0..cut.steps() {
                // SAFETY: domains of several parts are read into domain buffers, not into windows.
                unsafe { transfer.read_ahead(&mut ahead, pending) };
                let set = turn % REQUEST_SETS;
                turn += 1;
                self.wait(transfer, set);
                // SAFETY: guaranteed by the caller; all sets are waited for before the next sub-batch.
                unsafe { self.post_receives(transfer, who, &cut, step, set) };
                if let Some(piece) =
                    cut.step(step).map(|n| cut.domain(n)).find(|p| Some(p.aggregator) == transfer.aggregator)
                {
                    // SAFETY: as above.
                    unsafe { self.distribute(transfer, who, piece, pending, set) };
                }
            }
            // The next sub-batch may use the same windows.
            (0..REQUEST_SETS).for_each(|set| self.wait(transfer, set));
        }
        while let Some(left) = pending.pop_front() {
            transfer.finish(left.slot);
        }
    }

    /// Posts the receives for this rank's parts of the domains that other ranks read in a step.
    ///
    /// # Safety
    /// As [`MessageExchange::read`], until the set has been waited for.
    unsafe fn post_receives(
        &mut self,
        transfer: &mut BatchTransfer<'_>,
        who: RankMap<'_>,
        cut: &RegionPartition,
        step: u64,
        set: usize,
    ) {
        let me = transfer.aggregator;
        for piece in cut.step(step).map(|n| cut.domain(n)).filter(|p| Some(p.aggregator) != me) {
            // SAFETY: guaranteed by the caller.
            unsafe { self.post_own(transfer, who, piece, set, MessageDirection::Receive) };
        }
    }

    /// Waits for this rank's own domain of a step, and sends each rank its part. After an error the messages are sent with
    /// undefined contents, so that no rank waits forever.
    ///
    /// # Safety
    /// As [`MessageExchange::read`].
    unsafe fn distribute(
        &mut self,
        transfer: &mut BatchTransfer<'_>,
        who: RankMap<'_>,
        piece: FileDomain,
        pending: &mut VecDeque<PendingRead>,
        set: usize,
    ) {
        let (rows, mine) = (transfer.rows, transfer.part_buffers[who.my_part as usize]);
        self.set_cursors(&rows, piece, who.my_part);
        let staged = self.staging_ptr(set);
        // There is no read-ahead after an error.
        if let Some(next) = pending.pop_front() {
            debug_assert_eq!(next.piece, piece);
            transfer.finish(next.slot);
            if transfer.error.is_none() {
                let cursors = &mut self.cursors;
                let target = |part: usize, index: usize, len: usize| {
                    if part as u64 == who.my_part {
                        return mine.wrapping_add(index);
                    }
                    let at = cursors[part];
                    cursors[part] += len;
                    staged.wrapping_add(at)
                };
                // SAFETY: the parts of a domain fit the staging memory of a set, whose messages have been waited for; this rank's part is
                // copied to its windows.
                unsafe { transfer.deliver(next, target) };
            }
        }
        // SAFETY: staging memory that is not reused before the set has been waited for.
        unsafe { self.post_staged(transfer, who, piece, set, MessageDirection::Send) };
    }
}

fn keep_first_error(outcome: &mut Result<(), MpiError>, next: Result<(), MpiError>) {
    if outcome.is_ok() {
        *outcome = next;
    }
}

/// Records an error of MPI, if it is the first.
fn record_error(transfer: &mut BatchTransfer<'_>, outcome: Result<(), MpiError>) {
    let Err(error) = outcome else { return };
    let path = transfer.path;
    transfer.error.get_or_insert_with(|| {
        let text = format!("messages between the ranks failed: {error}");
        BackendError::new("two-phase exchange", path, FailureCause::Io, text)
    });
}
