//! Two-phase transfers: ranks exchange data so that a few aggregators transfer whole aligned file domains.
//!
//! `rows` and `domain` are arithmetic: where bytes lie, and which rank transfers them. `peers` links the ranks, through `shared_memory`
//! or `messages`; `resources` holds the memory of a file. `batch` synchronizes the ranks in a batch, `batch_transfer` moves domains
//! between transfer buffers, domain buffers and the file, with the transfers of `pipeline`. `buffer_pool` keeps domain buffers between
//! files, `partial_sector` the sector in which a region ends.
//!
//! With shared memory a domain is pipelined: one part is in flight while the next is copied. Whole sectors of a segment are transferred
//! without a copy; only sectors that it shares with other batches are copied. With messages, domains are transferred as a whole.
//!
//! All ranks execute the same steps in the same order, also after an error, and agree on the outcome at the end of each batch.
//!
//! The region of a batch is divided into aligned domains by absolute file offset. Domain j belongs to aggregator j modulo their number,
//! so that the sector in which a batch ends has the same aggregator in the next one. The owner of each byte is computed: no offset list
//! and no count is ever exchanged. On one host the transfer buffers are mapped by other ranks, and aggregators copy directly from their
//! neighbours' buffers. Over several hosts, or if mapping is refused, ranks send parts of their buffers. Segmented patterns need
//! no exchange: a rank's segment is its own domain.
//!
//! Calls of one batch may be combined. This is weaker than the semantics of single `write_all` calls in MPI, and one reason for the
//! higher
//! speed; the other is that data is not read before it is written.

mod batch;
mod batch_transfer;
mod buffer_pool;
mod domain;
mod messages;
mod outcome;
mod partial_sector;
mod peers;
pub(crate) mod pipeline;
mod process;
mod resources;
mod rows;
mod shared_memory;

use beff_ffi::{Comm, MpiError};

use crate::direct::{DomainPath, FdPair, UNPROVEN};
use crate::edges::MAX_SECTOR_BYTES;
use crate::error::FailureCause;
use crate::{
    AccessPattern, BackendError, Collective, Direct, Direction, DriverOptions, ExchangeMethod, LatencyUnit, OpenMode,
    OpenRequest, RankPartition, Result, SubmissionStatistics, TransferBuffer, TransferStrategy,
};
pub(crate) use buffer_pool::BufferPool;
use domain::DomainGrid;
use partial_sector::PartialSector;
use peers::{ExchangeLink, Peers};
use resources::AggregatorResources;
use rows::{ChunkRows, RankDistribution};

pub(crate) struct TwoPhase {
    /// The ranks of the file; None if it is never two-phase.
    comm: Option<Comm>,
    options: DriverOptions,
    /// Why domains of this file are buffered although direct I/O is possible: the file is new, and buffered first writes were selected.
    buffered_reason: Option<String>,
    /// Domains (or parts of them) in flight through io_uring; None: one at a time, with system calls.
    depth: Option<u32>,
    /// Source of the domain buffers.
    pool: BufferPool,
    peers: Option<Peers>,
    resources: Option<AggregatorResources>,
    active: Option<ActivePattern>,
    /// Number of the last synchronization point.
    sync_point: u32,
}

/// True if these options allow two-phase transfers of a file of `ranks` ranks.
fn may_apply(options: &DriverOptions, ranks: u64) -> bool {
    let is_wanted = match options.collective {
        Collective::Auto => options.direct != Direct::Off,
        Collective::TwoPhase => true,
        _ => false,
    };
    is_wanted && ranks > 1
}

/// Implements [`crate::Driver::allocate_buffers`]: allocates the domain buffers of one file, and the memory for messages if it will be needed. If
/// the ranks of one host cannot share memory, the first pattern detects this and allocates it.
pub(crate) fn allocate_buffers(
    options: &DriverOptions,
    depth: Option<u32>,
    shelf: &BufferPool,
    (ranks, hosts): (u64, u64),
) {
    if !may_apply(options, ranks) {
        return;
    }
    // A file with longer sectors allocates its own memory.
    let grid = DomainGrid::new(MAX_SECTOR_BYTES, options.domain_bytes, ranks);
    let by_messages = match options.exchange {
        ExchangeMethod::Auto => hosts > 1,
        ExchangeMethod::SharedMemory => false,
        ExchangeMethod::Messages => true,
    };
    let wanted = [Some(resources::buffers_bytes(grid, depth)), by_messages.then(|| messages::staging_bytes(grid))];
    // If the allocation fails, `prepare` reports it for its file.
    let acquired: Vec<_> = wanted.into_iter().flatten().filter_map(|bytes| shelf.acquire(bytes).ok()).collect();
    acquired.into_iter().for_each(|memory| shelf.release(memory));
}

struct ActivePattern {
    pattern: AccessPattern,
    direction: Direction,
    layout: RankDistribution,
    rows: ChunkRows,
    grid: DomainGrid,
    aggregator_ranks: Vec<u64>,
    /// Number of this rank among the aggregators.
    aggregator: Option<u64>,
    /// Rank of the first part.
    first_rank: u64,
    direct: bool,
    buffer_id: u64,
    partial_sector: Option<PartialSector>,
    /// First byte of the transfer buffer of each part; that of this rank is set by each batch.
    part_buffers: Vec<*mut u8>,
}

impl TwoPhase {
    /// For one file. Collective over `request.comm` if it has several ranks and the options allow two-phase transfers.
    /// `depth`: domains in flight through io_uring; `shelf`: source of the domain buffers.
    pub(crate) fn new(
        request: &OpenRequest<'_>,
        options: &DriverOptions,
        depth: Option<u32>,
        shelf: &BufferPool,
    ) -> Result<Self> {
        let comm = if !may_apply(options, request.comm.size()) {
            None
        } else {
            Some(request.comm.duplicate().map_err(|e| mpi_error(request.path, &e))?)
        };
        let is_open_to_choice = request.mode == OpenMode::CreateNew && options.direct == Direct::Auto;
        let buffered = options.buffered_first_writes.clone().filter(|_| is_open_to_choice);
        Ok(Self { comm, buffered_reason: buffered, depth, pool: shelf.clone(), ..Self::disabled(options) })
    }

    /// For a file of one rank, which is never two-phase.
    pub(crate) fn disabled(options: &DriverOptions) -> Self {
        Self {
            comm: None,
            options: options.clone(),
            buffered_reason: None,
            depth: None,
            pool: BufferPool::default(),
            peers: None,
            resources: None,
            active: None,
            sync_point: 0,
        }
    }

    /// Domains as the file allows, but buffered for first writes if that was selected. The sectors remain those of the device, so that
    /// the assignment to aggregators is the same.
    pub(crate) fn domains(&self, files: &FdPair) -> Option<DomainPath> {
        let possible = files.domain_path()?;
        Some(match &self.buffered_reason {
            Some(reason) if possible.is_direct => {
                DomainPath { is_direct: false, reason: Some(reason.clone()), ..possible }
            }
            _ => possible,
        })
    }

    /// None if the pattern is not two-phase; otherwise its domains and layout, or why it cannot be two-phase. The same on all ranks.
    pub(crate) fn applicability(
        &self,
        pattern: &AccessPattern,
        files: &FdPair,
    ) -> Option<std::result::Result<(DomainPath, RankDistribution), String>> {
        let comm = self.comm.as_ref()?;
        if !pattern.kind.is_collective()
            || pattern.call_bytes() == 0
            // Batches of an order have no region to divide.
            || pattern.order.is_some()
            || pattern.ranks < 2
            || pattern.ranks != comm.size()
        {
            return None;
        }
        // The computation of owners needs equal parts.
        if pattern.partition == RankPartition::Unequal {
            let text = "a two-phase transfer needs parts of one length".into();
            return (self.options.collective == Collective::TwoPhase).then_some(Err(text));
        }
        let possible = files.domain_path()?;
        let wanted = match self.options.collective {
            Collective::TwoPhase => true,
            Collective::Auto => possible.is_direct && !pattern.is_private(possible.align_bytes),
            _ => false,
        };
        let domains = self.domains(files).filter(|_| wanted)?;
        Some(RankDistribution::of(pattern, domains.align_bytes).map(|layout| (domains, layout)))
    }

    /// The reason of [`crate::Support::Unsupported`], if the pattern is two-phase.
    pub(crate) fn unsupported(&self, pattern: &AccessPattern, files: &FdPair) -> Option<Option<String>> {
        Some(self.applicability(pattern, files)?.err())
    }

    pub(crate) fn is_active(&self) -> bool {
        self.active.is_some()
    }

    pub(crate) fn submission_statistics(&self) -> SubmissionStatistics {
        let queue = self.resources.as_ref().and_then(|memory| memory.queue.as_ref());
        queue.map_or_else(SubmissionStatistics::default, |queue| queue.submitted)
    }

    /// Prepares a pattern, if it is two-phase. Collective.
    ///
    /// # Errors
    /// What the kernel or MPI reports; a layout in which ranks share sectors.
    pub(crate) fn prepare(
        &mut self,
        files: &FdPair,
        pattern: &AccessPattern,
        direction: Direction,
        buffer: &mut TransferBuffer,
    ) -> Result<Option<TransferStrategy>> {
        let flushed = self.flush(files);
        self.active = None;
        let Some(applicable) = self.applicability(pattern, files) else { return flushed.map(|()| None) };
        let refused = |text: String| BackendError::new("prepare", &files.path, FailureCause::Unsupported, text);
        let (domains, layout) = applicable.map_err(refused)?;
        let rows = ChunkRows::new(pattern, layout, buffer.period_bytes());
        // Every rank calls the collective part, also after an error of its own.
        let (owners, first_rank, linked) = self.connect_ranks(layout, pattern, buffer, files)?;
        let grid = DomainGrid::new(domains.align_bytes, self.options.domain_bytes, owners.len() as u64);
        let rank = self.comm.as_ref().map_or(0, Comm::rank);
        let me = owners.iter().position(|&o| o == rank).map(|i| i as u64);
        let ranks = self.comm.as_ref().map_or(1, Comm::size);
        let messages = (linked == ExchangeKind::Messages).then_some(if me.is_some() { ranks } else { 0 });
        let mut memory = match self.resources.take() {
            Some(memory) if memory.fits_grid(grid) => memory,
            other => {
                if let Some(memory) = other {
                    memory.release(&self.pool);
                }
                AggregatorResources::new(grid, self.depth, &self.pool, files)?
            }
        };
        memory.register(layout, buffer, files)?;
        let memory = memory.with_messages((grid, &rows, messages), &self.pool, files)?;
        flushed?;
        let bases = self.part_buffers(layout, pattern, first_rank);
        let description = memory.describe(direction, (layout, buffer.id()), grid, &domains, self.message_reason());
        self.resources = Some(memory);
        let strategy = if self.options.dont_cache && !domains.is_direct {
            format!("{description}, RWF_DONTCACHE")
        } else if domains.is_direct && files.is_bypass_unproven() {
            format!("{description}{UNPROVEN}")
        } else {
            description
        };
        self.active = Some(ActivePattern {
            pattern: *pattern,
            direction,
            layout,
            rows,
            grid,
            aggregator_ranks: owners,
            aggregator: me,
            first_rank,
            direct: domains.is_direct,
            buffer_id: buffer.id(),
            partial_sector: None,
            part_buffers: bases,
        });
        Ok(Some(TransferStrategy { strategy, direct: Some(domains.is_direct), latency_unit: LatencyUnit::Step }))
    }

    /// The aggregators, the rank of the first part, and the link between the ranks. Collective if they are linked.
    fn connect_ranks(
        &mut self,
        layout: RankDistribution,
        pattern: &AccessPattern,
        buffer: &TransferBuffer,
        files: &FdPair,
    ) -> Result<(Vec<u64>, u64, ExchangeKind)> {
        let Some(comm) = &self.comm else { return Ok((vec![0], 0, ExchangeKind::None)) };
        if layout == RankDistribution::Segmented {
            return Ok((vec![comm.rank()], comm.rank(), ExchangeKind::None));
        }
        // A transfer buffer is replaced on all ranks or on none.
        if self.peers.as_ref().is_none_or(|p| p.buffer_id != buffer.id()) {
            self.peers = None;
            let linked =
                Peers::connect(comm, buffer, self.options.exchange, self.options.aggregators).map_err(|e| match e {
                    peers::LinkError::Mpi(e) => mpi_error(&files.path, &e),
                    peers::LinkError::Refused(text) => {
                        let text = format!("no shared memory for the exchange: {text}; use --set exchange=messages");
                        BackendError::new("prepare", &files.path, FailureCause::Unsupported, text)
                    }
                })?;
            self.peers = Some(linked);
            self.sync_point = 0;
        }
        let owners = self.peers.as_ref().map_or_else(Vec::new, |p| p.aggregator_ranks.clone());
        let linked = match self.peers.as_ref().map(|p| &p.link) {
            Some(ExchangeLink::Messages { .. }) => ExchangeKind::Messages,
            _ => ExchangeKind::Shared,
        };
        Ok((owners, (comm.rank() + comm.size() - pattern.rank) % comm.size(), linked))
    }

    /// The accessible transfer buffers of the ranks, by part.
    fn part_buffers(&self, layout: RankDistribution, pattern: &AccessPattern, first_rank: u64) -> Vec<*mut u8> {
        let null = std::ptr::null_mut();
        if layout == RankDistribution::Segmented {
            return vec![null];
        }
        let of = |rank: u64| match self.peers.as_ref().map(|p| &p.link) {
            Some(ExchangeLink::Shared { rings, .. }) => {
                rings[rank as usize].as_ref().map_or(null, |buffer| buffer.as_mut_ptr())
            }
            _ => null,
        };
        (0..pattern.ranks).map(|part| of((first_rank + part) % pattern.ranks)).collect()
    }

    /// Why messages are used although shared memory was preferred.
    fn message_reason(&self) -> Option<&str> {
        match self.peers.as_ref().map(|p| &p.link) {
            Some(ExchangeLink::Messages { reason }) => reason.as_deref(),
            _ => None,
        }
    }

    /// Writes the partial last sector. Collective, but without synchronization: the sector belongs to one rank.
    pub(crate) fn flush(&mut self, files: &FdPair) -> Result<()> {
        let (Some(active), Some(memory)) = (&mut self.active, &mut self.resources) else { return Ok(()) };
        let Some(tail) = active.partial_sector.as_mut().filter(|t| t.dirty) else { return Ok(()) };
        tail.dirty = false;
        let (mine, last) = match active.layout {
            RankDistribution::Segmented => (true, active.pattern.rank + 1 == active.pattern.ranks),
            RankDistribution::Interleaved => (active.aggregator == Some(tail.holder), true),
        };
        if !mine {
            return Ok(());
        }
        let offset = active.grid.floor(tail.end);
        let written = memory.sector_buffer.flush(files.domain_file(active.direct), tail.end, last);
        written.map_err(|e| BackendError::from_io("two-phase pwrite of the last sector", &files.path, Some(offset), &e))
    }

    /// As [`TwoPhase::flush`]; also releases queue and communicator, and returns the memory to the pool. Collective.
    pub(crate) fn close(mut self, files: &FdPair) -> Result<()> {
        let flushed = self.flush(files);
        if let Some(memory) = self.resources.take() {
            memory.release(&self.pool);
        }
        flushed
    }
}

/// How the ranks of a pattern exchange data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ExchangeKind {
    None,
    Shared,
    Messages,
}

fn mpi_error(path: &std::path::Path, error: &MpiError) -> BackendError {
    BackendError::new("two-phase setup", path, FailureCause::Io, format!("MPI between the ranks failed: {error}"))
}
