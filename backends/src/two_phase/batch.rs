//! A batch from the entry of all ranks to the agreement on its errors.

use std::collections::VecDeque;

use beff_ffi::Comm;

use super::batch_transfer::{sub_batches, BatchTransfer, PendingRead, PipelineSizes};
use super::domain::RegionPartition;
use super::messages::{MessageExchange, RankMap};
use super::partial_sector::PartialSector;
use super::peers::ExchangeLink;
use super::pipeline::{TransferPipeline, TransferTarget};
use super::rows::RankDistribution;
use super::shared_memory::SyncPoints;
use super::{outcome, ActivePattern, TwoPhase};
use crate::direct::FdPair;
use crate::{dontcache, queue, BackendError, Batch, Direction, Latency, Result, TransferBuffer};

/// How the ranks synchronize in a batch.
enum Synchronization<'a> {
    /// Not at all: each transfers its own segment.
    None,
    /// By synchronization points in shared memory, of which this is the first.
    SyncPoints(&'a SyncPoints, u32),
    /// By the messages that they exchange.
    Messages(&'a mut MessageExchange, RankMap<'a>),
}

impl<'a> Synchronization<'a> {
    /// For the link between the ranks of the prepared pattern; `first`: the next synchronization point. None if the ranks are not linked.
    fn new(
        active: &'a ActivePattern,
        link: Option<&'a ExchangeLink>,
        mail: &'a mut Option<MessageExchange>,
        comm: Option<&'a Comm>,
        first: u32,
    ) -> Option<Self> {
        if active.layout == RankDistribution::Segmented {
            return Some(Self::None);
        }
        match (link?, mail, comm) {
            (ExchangeLink::Shared { control, .. }, _, _) => Some(Self::SyncPoints(control, first)),
            (ExchangeLink::Messages { .. }, Some(mail), Some(comm)) => {
                let (owners, first_rank, my_part) =
                    (&active.aggregator_ranks[..], active.first_rank, active.pattern.rank);
                Some(Self::Messages(mail, RankMap { comm, aggregator_ranks: owners, my_part, first_rank }))
            }
            _ => None,
        }
    }
}

impl TwoPhase {
    /// Writes the calls of a batch; returns this rank's bytes. Collective.
    ///
    /// # Errors
    /// This rank's first error; otherwise that of another rank.
    pub(crate) fn write(
        &mut self,
        files: &FdPair,
        batch: Batch,
        buffer: &TransferBuffer,
        latency: &mut Latency,
    ) -> Result<u64> {
        // Used for reading only.
        self.run_batch(files, Direction::Write, batch, (buffer.id(), buffer.bytes().as_ptr().cast_mut()), latency)
    }

    /// Reads the calls of a batch; returns this rank's bytes. Collective.
    pub(crate) fn read(
        &mut self,
        files: &FdPair,
        batch: Batch,
        buffer: &mut TransferBuffer,
        latency: &mut Latency,
    ) -> Result<u64> {
        let id = buffer.id();
        self.run_batch(files, Direction::Read, batch, (id, buffer.bytes_mut().as_mut_ptr()), latency)
    }

    fn run_batch(
        &mut self,
        files: &FdPair,
        direction: Direction,
        batch: Batch,
        (ring_id, base): (u64, *mut u8),
        latency: &mut Latency,
    ) -> Result<u64> {
        let operation = if direction == Direction::Write { "two-phase write" } else { "two-phase read" };
        let flushed = self.flush_before(files, batch);
        let ready = self.active.as_mut().filter(|a| (a.direction, a.buffer_id) == (direction, ring_id));
        let (Some(active), Some(memory)) = (ready, &mut self.resources) else {
            return Err(BackendError::not_prepared(operation, &files.path));
        };
        if batch.calls == 0 {
            return flushed.map(|()| 0);
        }
        crate::walk::check_within(&active.pattern, batch);
        let alone = active.layout == RankDistribution::Segmented;
        let my_part = if alone { 0 } else { active.pattern.rank };
        active.part_buffers[my_part as usize] = base;
        let (begin, end) = active.rows.region(batch);
        let tail = active.partial_sector.filter(|t| t.end == begin);
        let cut = RegionPartition::new(active.grid, begin, end, tail.map(|t| t.holder));
        let way = transfer_target(files, active, direction, self.options.dont_cache);
        let first = self.sync_point.wrapping_add(1);
        let own = memory.registered_buffers(ring_id).filter(|_| alone);
        let link = self.peers.as_ref().map(|p| &p.link);
        let together = Synchronization::new(active, link, &mut memory.messages, self.comm.as_ref(), first);
        let together = together.ok_or_else(|| BackendError::not_prepared(operation, &files.path))?;
        let by_points = matches!(together, Synchronization::SyncPoints(..));
        let parts = (!matches!(together, Synchronization::Messages(..))).then_some(PipelineSizes::DEFAULT);
        let blocks = super::resources::domain_buffers(&mut memory.buffers, memory.buffer_bytes, memory.queue.as_ref());
        let mut transfer = BatchTransfer {
            rows: active.rows,
            grid: active.grid,
            aggregator: if alone { Some(0) } else { active.aggregator },
            pipeline: TransferPipeline::new(way, memory.queue.as_mut(), &mut memory.slots, latency),
            blocks,
            registered: own,
            sector_buffer: &mut memory.sector_buffer,
            file: way.file,
            part_buffers: &active.part_buffers,
            partial_sector: tail,
            sizes: parts,
            error: flushed.err(),
            path: &files.path,
        };
        // SAFETY: `base` is the memory of the transfer buffer that the caller has borrowed for the whole batch, on this rank and, through
        // the synchronization of the ranks, on the others: no rank leaves the batch before all have finished with its memory. The windows
        // end inside the buffers, as checked by `check_fits` and `check_within`; the buffers of all ranks have the same length.
        let failed = unsafe { transfer_batch(&mut transfer, together, direction, batch, &cut, &mut memory.pending) };
        let error = transfer.error.take();
        drop(transfer);
        active.part_buffers[my_part as usize] = std::ptr::null_mut();
        if direction == Direction::Write {
            active.partial_sector = cut.last_sector_holder().map(|holder| PartialSector { end, holder, dirty: true });
        }
        if by_points {
            // One for the entry, and one for each sub-batch.
            let parts = if direction == Direction::Write { 1 } else { sub_batches(&active.rows, batch) };
            self.sync_point = first.wrapping_add(parts);
        }
        let outcome = match &self.comm {
            Some(comm) if failed && !alone => outcome::agree(comm, operation, &files.path, error),
            _ => error.map_or(Ok(()), Err),
        };
        outcome.map(|()| batch.calls * active.pattern.call_bytes())
    }

    /// Before a batch that does not continue where the last one ended: writes the partial sector of that one.
    fn flush_before(&mut self, files: &FdPair, batch: Batch) -> Result<()> {
        let Some(active) = &self.active else { return Ok(()) };
        if active.partial_sector.is_none_or(|tail| tail.end == active.rows.region(batch).0) {
            return Ok(());
        }
        let alone = active.layout == RankDistribution::Segmented;
        let flushed = self.flush(files);
        if let Some(comm) = self.comm.as_ref().filter(|_| !alone) {
            comm.barrier().map_err(|e| super::mpi_error(&files.path, &e))?;
        }
        flushed
    }
}

fn transfer_target<'a>(
    files: &'a FdPair,
    active: &ActivePattern,
    direction: Direction,
    dont_cache: bool,
) -> TransferTarget<'a> {
    let direct = active.direct;
    let flags = if dont_cache && !direct { dontcache::FLAG } else { 0 };
    TransferTarget {
        file: files.domain_file(direct),
        mode: queue::TransferMode { direction, direct, flags },
        path: &files.path,
        align: if direct { active.grid.sector_bytes } else { 1 },
    }
}

/// Transfers the data; true if the ranks have to agree about errors.
///
/// # Safety
/// The windows of the batch are valid in the buffers of all ranks, for reads not otherwise used, from when a rank enters
/// until all leave.
unsafe fn transfer_batch(
    transfer: &mut BatchTransfer<'_>,
    together: Synchronization<'_>,
    direction: Direction,
    batch: Batch,
    cut: &RegionPartition,
    pending: &mut VecDeque<PendingRead>,
) -> bool {
    // SAFETY: guaranteed by the caller in all three cases; with messages only this rank's buffer is accessed here.
    unsafe {
        match (together, direction) {
            (Synchronization::None, Direction::Write) => transfer.write_domains(cut),
            (Synchronization::None, Direction::Read) => transfer.read_domains(batch, pending, None),
            (Synchronization::SyncPoints(control, first), _) => {
                control.arrive(first, false);
                control.wait(first);
                let second = first.wrapping_add(1);
                if direction == Direction::Write {
                    transfer.write_domains(cut);
                    control.arrive(second, transfer.error.is_some());
                    control.wait(second);
                } else {
                    transfer.read_domains(batch, pending, Some((control, second)));
                }
                // No rank arrives at the end of the next batch before this rank has entered it.
                return control.any_failed_since(first);
            }
            (Synchronization::Messages(mail, who), Direction::Write) => mail.write(transfer, who, cut),
            (Synchronization::Messages(mail, who), Direction::Read) => mail.read(transfer, who, batch, pending),
        }
    }
    true
}
