//! Memory, queue and requests of two-phase transfers, allocated in prepare and kept for the file.

use std::collections::VecDeque;

use super::batch_transfer::{DomainBuffers, PendingRead, PipelineSizes, RegisteredBuffers};
use super::buffer_pool::BufferPool;
use super::domain::DomainGrid;
use super::messages::{staging_bytes, MessageExchange};
use super::partial_sector::SectorBuffer;
use super::pipeline::TransferSlot;
use super::rows::{ChunkRows, RankDistribution};
use crate::direct::{DomainPath, FdPair};
use crate::queue::{BufferRegistration as Registration, Queue, MAX_BUFFER_SHIFT};
use crate::{BackendError, Direction, Result, TransferBuffer};

/// Resources of a file for the transfer of domains.
pub(super) struct AggregatorResources {
    grid: DomainGrid,
    /// Before the memory that it may have registered.
    pub(super) queue: Option<Queue>,
    /// Contiguous blocks of the domains.
    pub(super) buffers: TransferBuffer,
    pub(super) buffer_bytes: u64,
    pub(super) slots: Vec<TransferSlot>,
    pub(super) sector_buffer: SectorBuffer,
    pub(super) pending: VecDeque<PendingRead>,
    pub(super) messages: Option<MessageExchange>,
    messages_for: Option<(u64, ChunkRows)>,
    /// The transfer buffer that could not be registered with the domain buffers, and why.
    registration_refusal: Option<(u64, String)>,
}

impl AggregatorResources {
    /// True if it also fits this grid.
    pub(super) fn fits_grid(&self, grid: DomainGrid) -> bool {
        (self.grid.sector_bytes, self.grid.domain_bytes) == (grid.sector_bytes, grid.domain_bytes)
    }

    /// For `depth` domains in flight through a separate queue; without a depth, for one. The domain buffers come from `shelf`.
    pub(super) fn new(grid: DomainGrid, depth: Option<u32>, shelf: &BufferPool, files: &FdPair) -> Result<Self> {
        let no_memory = |e: std::io::Error| BackendError::from_io("memory for domains", &files.path, None, &e);
        let slots = slots(depth);
        let blocks = shelf.acquire(buffers_bytes(grid, depth)).map_err(no_memory)?;
        let queue = depth.map(|_| Queue::for_files(files, slots, MAX_BUFFER_SHIFT)).transpose()?;
        Ok(Self {
            grid,
            queue,
            buffers: blocks,
            buffer_bytes: buffer_bytes(grid),
            slots: (0..slots).map(|_| TransferSlot::default()).collect(),
            sector_buffer: SectorBuffer::new(grid).map_err(no_memory)?,
            pending: VecDeque::with_capacity(slots as usize),
            messages: None,
            messages_for: None,
            registration_refusal: None,
        })
    }

    /// Returns the memory to the pool. After a batch no transfer is in flight.
    pub(super) fn release(self, shelf: &BufferPool) {
        let Self { queue, buffers: blocks, messages: mail, .. } = self;
        // Unregisters the memory.
        drop(queue);
        [Some(blocks), mail.map(MessageExchange::into_staging)]
            .into_iter()
            .flatten()
            .for_each(|memory| shelf.release(memory));
    }

    /// Registers the domain buffers, and with them the transfer buffer of a rank that transfers its own segment without a copy. If the
    /// kernel does not allow both, only the domain buffers.
    pub(super) fn register(
        &mut self,
        layout: RankDistribution,
        buffer: &mut TransferBuffer,
        files: &FdPair,
    ) -> Result<()> {
        let (Some(queue), blocks) = (&mut self.queue, &mut self.buffers) else { return Ok(()) };
        if layout == RankDistribution::Interleaved {
            return queue.register_memory(&mut [blocks], &files.path);
        }
        if self.registration_refusal.as_ref().is_none_or(|(buffer_id, _)| *buffer_id != buffer.id()) {
            let buffer_id = buffer.id();
            queue.register_memory(&mut [blocks, buffer], &files.path)?;
            let Registration::Refused { reason, .. } = &queue.registration else { return Ok(()) };
            self.registration_refusal = Some((buffer_id, reason.clone()));
        }
        queue.register_memory(&mut [blocks], &files.path)
    }

    /// The transfer buffer `ring_id` among the registered buffers, if it is registered.
    pub(super) fn registered_buffers(&self, buffer_id: u64) -> Option<RegisteredBuffers> {
        let queue = self.queue.as_ref()?;
        let has = queue.registration.is_registered() && queue.registration.covers(&[self.buffers.id(), buffer_id]);
        let first = self.buffers.mapped().len().div_ceil(1 << queue.buffer_shift);
        has.then_some(RegisteredBuffers { first, buffer_shift: queue.buffer_shift })
    }

    /// With memory for the messages of `ranks` ranks, or without.
    pub(super) fn with_messages(
        mut self,
        (grid, rows, ranks): (DomainGrid, &ChunkRows, Option<u64>),
        shelf: &BufferPool,
        files: &FdPair,
    ) -> Result<Self> {
        let wanted = ranks.map(|ranks| (ranks, *rows));
        if self.messages_for != wanted {
            if let Some(mail) = self.messages.take() {
                shelf.release(mail.into_staging());
            }
            let new = |ranks| MessageExchange::new(grid, rows, ranks, shelf.acquire(staging_bytes(grid))?);
            let mail = ranks.map(new).transpose();
            self.messages = mail.map_err(|e| BackendError::from_io("memory for messages", &files.path, None, &e))?;
            self.messages_for = wanted;
        }
        Ok(self)
    }

    /// Which transfers use registered memory. Whole sectors of a rank's own segment are transferred without a copy.
    fn registered(&self, layout: RankDistribution, buffer_id: u64) -> String {
        let domains = match is_one_buffer(&self.buffers) {
            true => "registered domains",
            false => "domains NOT registered: together longer than 1 GiB",
        };
        match (layout, &self.registration_refusal) {
            (RankDistribution::Interleaved, _) => domains.to_owned(),
            (RankDistribution::Segmented, Some((of, reason))) if *of == buffer_id => {
                format!("{domains} for partial sectors; whole sectors without a copy, NOT registered: {reason}")
            }
            (RankDistribution::Segmented, _) => {
                format!("{domains} for partial sectors; whole sectors without a copy, registered buffers")
            }
        }
    }

    /// The strategy for the report. `reason`: why messages are used although shared memory was preferred.
    pub(super) fn describe(
        &self,
        direction: Direction,
        (layout, buffer_id): (RankDistribution, u64),
        grid: DomainGrid,
        domains: &DomainPath,
        reason: Option<&str>,
    ) -> String {
        let file = match (domains.is_direct, &domains.reason) {
            (true, _) => format!("O_DIRECT, aligned to {}", grid.sector_bytes),
            (false, None) => "buffered".to_owned(),
            (false, Some(reason)) => format!("buffered, not direct: {reason}"),
        };
        let (verb, way) = match direction {
            Direction::Write => ("gathered from", "write"),
            Direction::Read => ("delivered to", "read"),
        };
        let exchange = match (layout, &self.messages, reason) {
            (RankDistribution::Segmented, _, _) => "each rank its own segment, no exchange".to_owned(),
            (_, None, _) => format!("{verb} shared memory"),
            (_, Some(_), None) => "exchanged by messages".to_owned(),
            (_, Some(_), Some(reason)) => format!("exchanged by messages, no shared memory: {reason}"),
        };
        let who = match (layout, grid.aggregators) {
            (RankDistribution::Segmented, _) => String::new(),
            (_, 1) => "1 aggregator, ".to_owned(),
            (_, n) => format!("{n} aggregators, "),
        };
        let overlap = match &self.queue {
            Some(queue) => {
                format!(
                    "overlapped with io_uring depth {}, {}",
                    self.slots.len(),
                    queue.describe(&self.registered(layout, buffer_id))
                )
            }
            None => "one domain at a time".to_owned(),
        };
        let in_parts =
            self.slots.len() > 1 && self.messages.is_none() && grid.domain_bytes > PipelineSizes::DEFAULT.copy_bytes;
        let parts = match in_parts {
            true => format!(", copied in parts of {}", format_bytes(PipelineSizes::DEFAULT.copy_bytes)),
            false => String::new(),
        };
        format!(
            "two-phase {way}, {file}, {who}domains of {}{parts}, {exchange}, {overlap}",
            format_bytes(grid.domain_bytes)
        )
    }
}

/// Domains, or parts of them, in flight. A part has the buffer of a whole domain, as messages need it.
fn slots(depth: Option<u32>) -> u32 {
    depth.unwrap_or(1).max(1)
}

fn buffer_bytes(grid: DomainGrid) -> u64 {
    grid.max_domain_bytes().next_multiple_of(4096)
}

pub(super) fn buffers_bytes(grid: DomainGrid, depth: Option<u32>) -> u64 {
    buffer_bytes(grid) * u64::from(slots(depth))
}

/// Longer memory is registered as several buffers, and a block may overlap two of them.
fn is_one_buffer(memory: &TransferBuffer) -> bool {
    memory.bytes().len() <= 1 << MAX_BUFFER_SHIFT
}

pub(super) fn domain_buffers(memory: &mut TransferBuffer, block_bytes: u64, queue: Option<&Queue>) -> DomainBuffers {
    let registered = is_one_buffer(memory) && queue.is_some_and(|q| q.registration.is_registered());
    DomainBuffers { base: memory.bytes_mut().as_mut_ptr(), buffer_bytes: block_bytes as usize, registered }
}

/// Bytes in the largest binary unit that divides them.
fn format_bytes(bytes: u64) -> String {
    match bytes {
        b if b % (1 << 20) == 0 => format!("{} MiB", b >> 20),
        b if b % 1024 == 0 => format!("{} KiB", b >> 10),
        b => format!("{b} bytes"),
    }
}

#[cfg(test)]
mod tests {
    use super::super::allocate_buffers;
    use super::*;
    use crate::testing::{pattern, scratch, with_little_lockable_memory, LOCKABLE_BYTES};
    use crate::{AccessKind, AccessPattern, Direct, DriverOptions, ExchangeMethod, FilePath, OpenMode};

    fn described(memory: &AggregatorResources, buffer: &TransferBuffer, grid: DomainGrid, files: &FdPair) -> String {
        let domains = DomainPath { align_bytes: 4096, is_direct: files.direct_file().is_some(), reason: None };
        memory.describe(Direction::Write, (RankDistribution::Segmented, buffer.id()), grid, &domains, None)
    }

    /// The first file uses the preallocated buffers, and the next one reuses them, whatever the sector size.
    #[test]
    fn files_reuse_the_domain_buffers() {
        let dir = scratch();
        let options = DriverOptions { direct: Direct::Auto, ..DriverOptions::default() };
        let shelf = BufferPool::default();
        for (ranks, options) in [(1, options.clone()), (2, DriverOptions { direct: Direct::Off, ..options.clone() })] {
            allocate_buffers(&options, Some(4), &shelf, (ranks, 1));
            assert!(shelf.is_empty(), "nothing will be two-phase");
        }
        allocate_buffers(&options, Some(4), &shelf, (2, 1));
        allocate_buffers(&options, Some(4), &shelf, (2, 1));
        let mut ids = Vec::new();
        for (number, align) in [512, 4096, 512].into_iter().enumerate() {
            let path = FilePath::of(&dir.path().join(number.to_string())).unwrap();
            let files = FdPair::open_as(&path, OpenMode::CreateNew, Direct::Off, true, Ok).unwrap();
            let grid = DomainGrid::new(align, options.domain_bytes, 2);
            let mut memory = AggregatorResources::new(grid, Some(4), &shelf, &files).unwrap();
            assert!(shelf.is_empty(), "there was memory for one file");
            assert!(memory.buffers.bytes().len() as u64 >= 4 * memory.buffer_bytes);
            memory.register(RankDistribution::Interleaved, &mut TransferBuffer::new(4096, 0).unwrap(), &files).unwrap();
            ids.push(memory.buffers.id());
            memory.release(&shelf);
        }
        assert_eq!(ids, [ids[0]; 3]);
    }

    fn interleaved(chunk: u64) -> AccessPattern {
        let one = AccessPattern { kind: AccessKind::Collective, ..pattern(chunk, 1, 100) };
        AccessPattern { stride_bytes: 2 * chunk, ranks: 2, rank_distance_bytes: chunk, ..one }
    }

    #[test]
    fn pipelining_is_reported_where_it_is_used() {
        let dir = scratch();
        let path = FilePath::of(&dir.path().join("f")).unwrap();
        let files = FdPair::open_as(&path, OpenMode::CreateNew, Direct::Off, true, Ok).unwrap();
        let buffer = TransferBuffer::new(4096, 0).unwrap();
        for (domain, depth, expected) in [
            (4 << 20, Some(4), "domains of 4 MiB, copied in parts of 2 MiB, "),
            (4 << 20, None, "domains of 4 MiB, each"),
            (1 << 20, Some(4), "domains of 1 MiB, each"),
        ] {
            let grid = DomainGrid::new(4096, domain, 1);
            let memory = AggregatorResources::new(grid, depth, &BufferPool::default(), &files).unwrap();
            let text = described(&memory, &buffer, grid, &files);
            assert!(text.contains(expected), "{expected}: {text}");
        }
    }

    /// With ranks on several hosts, or with messages requested; from pattern to pattern and from file to file.
    #[test]
    fn files_reuse_the_message_buffers() {
        let dir = scratch();
        let direct = DriverOptions { direct: Direct::Auto, ..DriverOptions::default() };
        let asked = DriverOptions { exchange: ExchangeMethod::Messages, ..direct.clone() };
        for (options, depth, hosts) in [(direct, Some(4), 2), (asked.clone(), Some(4), 1), (asked, None, 1)] {
            let shelf = BufferPool::default();
            (0..2).for_each(|_| allocate_buffers(&options, depth, &shelf, (2, hosts)));
            let known = shelf.ids();
            assert_eq!(known.len(), 2, "domains and messages");
            for (number, align) in [512, 4096, 512].into_iter().enumerate() {
                let path = FilePath::of(&dir.path().join(format!("{hosts}-{depth:?}-{number}"))).unwrap();
                let files = FdPair::open_as(&path, OpenMode::CreateNew, Direct::Off, true, Ok).unwrap();
                let grid = DomainGrid::new(align, options.domain_bytes, 2);
                let mut memory = AggregatorResources::new(grid, depth, &shelf, &files).unwrap();
                for (chunk, ranks) in [(1024, Some(2)), (2048, Some(2)), (2048, None), (4096, Some(2))] {
                    let rows = ChunkRows::new(&interleaved(chunk), RankDistribution::Interleaved, 1 << 20);
                    memory = memory.with_messages((grid, &rows, ranks), &shelf, &files).unwrap();
                    assert_eq!((memory.messages.is_some(), shelf.is_empty()), (ranks.is_some(), ranks.is_some()));
                }
                memory.release(&shelf);
                assert_eq!(shelf.ids(), known);
                std::fs::remove_file(dir.path().join(format!("{hosts}-{depth:?}-{number}"))).unwrap();
            }
        }
    }

    /// Messages that were not foreseen: their memory is allocated with the first of them, for all sectors and domains.
    #[test]
    fn message_buffers_are_allocated_on_demand() {
        let dir = scratch();
        for (align, domain_bytes) in [(512, 4 << 20), (512, 512), (1024, 20480), (4096, 4 << 20), (65536, 1 << 20)] {
            let path = FilePath::of(&dir.path().join(format!("{align}-{domain_bytes}"))).unwrap();
            let files = FdPair::open_as(&path, OpenMode::CreateNew, Direct::Off, true, Ok).unwrap();
            let (grid, shelf) = (DomainGrid::new(align, domain_bytes, 2), BufferPool::default());
            let rows = ChunkRows::new(&interleaved(1024), RankDistribution::Interleaved, 1 << 20);
            let memory = AggregatorResources::new(grid, None, &shelf, &files).unwrap();
            assert!(memory.with_messages((grid, &rows, Some(2)), &shelf, &files).unwrap().messages.is_some());
        }
    }

    /// The domain buffers fit, the transfer buffer does not: the domains are registered, the transfer buffer is used by its address, and
    /// both are reported.
    #[test]
    fn a_refused_registration_of_the_transfer_buffer_is_reported() {
        with_little_lockable_memory(|| {
            let dir = scratch();
            let path = FilePath::of(&dir.path().join("f")).unwrap();
            let files = FdPair::open_as(&path, OpenMode::CreateNew, Direct::Off, true, Ok).unwrap();
            let grid = DomainGrid::new(4096, 64 << 10, 1);
            let mut memory = AggregatorResources::new(grid, Some(2), &BufferPool::default(), &files).unwrap();
            let (mut small, mut large) =
                (TransferBuffer::new(4096, 0).unwrap(), TransferBuffer::new(2 * LOCKABLE_BYTES, 0).unwrap());
            for _ in 0..2 {
                memory.register(RankDistribution::Segmented, &mut large, &files).unwrap();
                let queue = memory.queue.as_ref().unwrap();
                if let Registration::Refused { reason, .. } = &queue.registration {
                    println!("SKIPPED: not even the domains can be registered here: {reason}");
                    return;
                }
                assert!(queue.registration.covers(&[memory.buffers.id()]), "{:?}", queue.registration);
                assert!(memory.registered_buffers(large.id()).is_none());
                let description = described(&memory, &large, grid, &files);
                for part in ["registered domains for partial sectors", "without a copy, NOT registered", "ulimit -l"] {
                    assert!(description.contains(part), "{part}: {description}");
                }
                assert!(domain_buffers(&mut memory.buffers, 4096, memory.queue.as_ref()).registered);
            }
            // The registration of a buffer that fits is tried, and the refusal is not reported for it.
            memory.register(RankDistribution::Segmented, &mut small, &files).unwrap();
            if memory.registered_buffers(small.id()).is_none() {
                println!("SKIPPED: not enough lockable memory for a second huge page");
                return;
            }
            let description = described(&memory, &small, grid, &files);
            assert!(
                description.contains("without a copy, registered buffers") && !description.contains("NOT"),
                "{description}"
            );
            // With interleaved ranks, only the domains are registered.
            memory.register(RankDistribution::Interleaved, &mut large, &files).unwrap();
            assert!(memory.queue.as_ref().unwrap().registration.covers(&[memory.buffers.id()]));
        });
    }
}
