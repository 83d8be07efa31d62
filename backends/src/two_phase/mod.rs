//! Two-phase transfers: ranks exchange data so that a few of them move whole aligned domains of the file.
//!
//! `rows` and `domain` are arithmetic: where bytes lie, and who moves them. `peers` links the ranks, through `shared`
//! memory or `messages`; `setup` holds what a file needs. `batch` leads the ranks through a batch, `pass` moves pieces
//! between rings, domains and the file, with the transfers of `lane`. `shelf` keeps the memory of domains between files, `edge` the sector in which a region ends.
//!
//! Where ranks reach each other's memory a piece moves in parts, so that the first is under way while the next is copied; of a segment whole
//! sectors move straight, and only those that it shares with other batches are copied. Pieces of messages are moved whole.
//!
//! All ranks go through the same steps in the same order, whatever goes wrong on one of them, and agree on the outcome
//! at the end of each batch.
//!
//! The region of a batch is cut into aligned domains by absolute file offset. Domain j belongs to aggregator j modulo their number,
//! so the sector in which a batch ends has the same owner in the next one. Who owns which byte is arithmetic: no offset list and no
//! count is ever exchanged. On one host the rings are memory that other ranks map, and aggregators copy straight out of their
//! neighbours' rings. Over several hosts, or where mapping is refused, ranks send pieces of their rings. Segmented patterns need
//! no exchange: a rank's segment is its own domain.
//!
//! Calls of one batch may be combined. That is less than MPI promises for each single `write_all`, and one reason why it is faster;
//! the other is that nothing is read before it is written.

mod batch;
mod domain;
mod edge;
pub(crate) mod lane;
mod life;
mod messages;
mod outcome;
mod pass;
mod peers;
mod rows;
mod setup;
mod shared;
mod shelf;

use beff_ffi::{Comm, MpiError};

use crate::direct::{Domains, FdPair};
use crate::edges::MAX_SECTOR_BYTES;
use crate::error::Cause;
use crate::{
    BackendError, Collective, Direct, Direction, DriverOptions, Exchange, InForce, OpenMode, OpenRequest, Parts,
    Pattern, Result, Ring, Submitted, Timed,
};
use domain::Grid;
use edge::Tail;
use peers::{Link, Peers};
use rows::{Layout, Rows};
use setup::Memory;
pub(crate) use shelf::Shelf;

/// Two-phase transfers of one file.
pub(crate) struct TwoPhase {
    /// The ranks of the file; None where it can never be two-phase.
    comm: Option<Comm>,
    options: DriverOptions,
    /// Why domains of this file are not moved directly although they could be: it is a new one, and buffered first writes were
    /// chosen.
    buffered: Option<String>,
    /// Domains under way at once, or parts of them, through io_uring; None: one at a time, with system calls.
    depth: Option<u32>,
    /// Where the memory of domains comes from.
    shelf: Shelf,
    peers: Option<Peers>,
    memory: Option<Memory>,
    active: Option<Active>,
    /// Last point the ranks have reached together.
    point: u32,
}

/// True if a file of `ranks` ranks may be moved in two phases under these options.
fn may_be(options: &DriverOptions, ranks: u64) -> bool {
    let is_wanted = match options.collective {
        Collective::Auto => options.direct != Direct::Off,
        Collective::TwoPhase => true,
        _ => false,
    };
    is_wanted && ranks > 1
}

/// The answer of [`crate::Driver::provide`]: memory of the domains of one file, and of the messages if ranks will need some. Where one host
/// does not let its ranks share memory, the first pattern finds out and makes it.
pub(crate) fn provide(options: &DriverOptions, depth: Option<u32>, shelf: &Shelf, (ranks, hosts): (u64, u64)) {
    if !may_be(options, ranks) {
        return;
    }
    // A file with longer sectors takes memory of its own.
    let grid = Grid::new(MAX_SECTOR_BYTES, options.domain_bytes, ranks);
    let by_messages = match options.exchange {
        Exchange::Auto => hosts > 1,
        Exchange::SharedMemory => false,
        Exchange::Messages => true,
    };
    let wanted = [Some(setup::bytes_of(grid, depth)), by_messages.then(|| messages::staging_bytes(grid))];
    // If there is none, `prepare` will say so, for its file.
    let taken: Vec<_> = wanted.into_iter().flatten().filter_map(|bytes| shelf.take(bytes).ok()).collect();
    taken.into_iter().for_each(|memory| shelf.put(memory));
}

/// The prepared pattern.
struct Active {
    pattern: Pattern,
    direction: Direction,
    layout: Layout,
    rows: Rows,
    grid: Grid,
    /// Rank of each aggregator.
    owners: Vec<u64>,
    /// Which of them this rank is.
    me: Option<u64>,
    /// Rank whose part comes first.
    first_rank: u64,
    direct: bool,
    ring_id: u64,
    tail: Option<Tail>,
    /// First byte of the ring of each part, this rank's filled in by each batch.
    bases: Vec<*mut u8>,
}

impl TwoPhase {
    /// For one file. Collective over `request.comm` if it has several ranks and the options allow two-phase transfers.
    /// `depth`: domains under way at once, through io_uring; `shelf`: where the memory of domains comes from.
    ///
    /// # Errors
    /// What MPI says to a copy of the communicator.
    pub(crate) fn new(
        request: &OpenRequest<'_>,
        options: &DriverOptions,
        depth: Option<u32>,
        shelf: &Shelf,
    ) -> Result<Self> {
        let comm = if !may_be(options, request.comm.size()) {
            None
        } else {
            Some(request.comm.duplicate().map_err(|e| mpi_failure(request.path, &e))?)
        };
        let is_open_to_choice = request.mode == OpenMode::CreateNew && options.direct == Direct::Auto;
        let buffered = options.buffered_first_writes.clone().filter(|_| is_open_to_choice);
        Ok(Self { comm, buffered, depth, shelf: shelf.clone(), ..Self::never(options) })
    }

    /// For a file of one rank: nothing is ever two-phase.
    pub(crate) fn never(options: &DriverOptions) -> Self {
        Self {
            comm: None,
            options: options.clone(),
            buffered: None,
            depth: None,
            shelf: Shelf::default(),
            peers: None,
            memory: None,
            active: None,
            point: 0,
        }
    }

    /// How domains are moved: as the file allows, but first writes through the page cache if that was chosen. The sectors stay
    /// those of the device, so that who moves what does not depend on the choice.
    pub(crate) fn domains(&self, files: &FdPair) -> Option<Domains> {
        let possible = files.domains()?;
        Some(match &self.buffered {
            Some(reason) if possible.direct => Domains { direct: false, reason: Some(reason.clone()), ..possible },
            _ => possible,
        })
    }

    /// None if the pattern is not moved in two phases; otherwise how, or why it cannot be. The same on all ranks.
    pub(crate) fn takes(
        &self,
        pattern: &Pattern,
        files: &FdPair,
    ) -> Option<std::result::Result<(Domains, Layout), String>> {
        let comm = self.comm.as_ref()?;
        if !pattern.kind.is_collective()
            || pattern.call_bytes() == 0
            || pattern.ranks < 2
            || pattern.ranks != comm.size()
        {
            return None;
        }
        // Who owns which byte is arithmetic, which needs equal parts.
        if pattern.parts == Parts::Unequal {
            let text = "a two-phase transfer needs parts of one length".into();
            return (self.options.collective == Collective::TwoPhase).then_some(Err(text));
        }
        let possible = files.domains()?;
        let wanted = match self.options.collective {
            Collective::TwoPhase => true,
            Collective::Auto => possible.direct && !pattern.is_private(possible.align_bytes),
            _ => false,
        };
        let domains = self.domains(files).filter(|_| wanted)?;
        Some(Layout::of(pattern, domains.align_bytes).map(|layout| (domains, layout)))
    }

    /// The reason of [`crate::Support::Unsupported`], if the pattern is this module's.
    pub(crate) fn unsupported(&self, pattern: &Pattern, files: &FdPair) -> Option<Option<String>> {
        Some(self.takes(pattern, files)?.err())
    }

    /// True between a `prepare` that took its pattern and the next.
    pub(crate) fn is_active(&self) -> bool {
        self.active.is_some()
    }

    /// Operations of its queue so far.
    pub(crate) fn submitted(&self) -> Submitted {
        let queue = self.memory.as_ref().and_then(|memory| memory.queue.as_ref());
        queue.map_or_else(Submitted::default, |queue| queue.submitted)
    }

    /// Prepares a pattern, if it is moved in two phases. Collective.
    ///
    /// # Errors
    /// What the kernel or MPI refuse; a layout in which sectors cannot be kept apart.
    pub(crate) fn prepare(
        &mut self,
        files: &FdPair,
        pattern: &Pattern,
        direction: Direction,
        ring: &mut Ring,
    ) -> Result<Option<InForce>> {
        let flushed = self.flush(files);
        self.active = None;
        let Some(taken) = self.takes(pattern, files) else { return flushed.map(|()| None) };
        let refused = |text: String| BackendError::new("prepare", &files.path, Cause::Unsupported, text);
        let (domains, layout) = taken.map_err(refused)?;
        let rows = Rows::new(pattern, layout, ring.period_bytes());
        // Every rank comes to the collective part, whatever its own part says.
        let (owners, first_rank, linked) = self.group(layout, pattern, ring, files)?;
        let grid = Grid::new(domains.align_bytes, self.options.domain_bytes, owners.len() as u64);
        let ranks = self.comm.as_ref().map_or(1, Comm::size);
        let messages = (linked == Linked::Messages).then_some(ranks);
        let mut memory = match self.memory.take() {
            Some(memory) if memory.is_for(grid) => memory,
            other => {
                if let Some(memory) = other {
                    memory.give_back(&self.shelf);
                }
                Memory::new(grid, self.depth, &self.shelf, files)?
            }
        };
        memory.register(layout, ring, files)?;
        let memory = memory.with_mail((grid, &rows, messages), &self.shelf, files)?;
        flushed?;
        let rank = self.comm.as_ref().map_or(0, Comm::rank);
        let me = owners.iter().position(|&o| o == rank).map(|i| i as u64);
        let bases = self.bases(layout, pattern, first_rank);
        let told = memory.describe(direction, (layout, ring.id()), grid, &domains, self.reason());
        self.memory = Some(memory);
        let strategy = if self.options.dont_cache && !domains.direct { format!("{told}, RWF_DONTCACHE") } else { told };
        self.active = Some(Active {
            pattern: *pattern,
            direction,
            layout,
            rows,
            grid,
            owners,
            me,
            first_rank,
            direct: domains.direct,
            ring_id: ring.id(),
            tail: None,
            bases,
        });
        Ok(Some(InForce { strategy, direct: Some(domains.direct), timed: Timed::Step }))
    }

    /// The aggregators, the rank whose part comes first, and how the ranks are linked. Collective where they are.
    fn group(
        &mut self,
        layout: Layout,
        pattern: &Pattern,
        ring: &Ring,
        files: &FdPair,
    ) -> Result<(Vec<u64>, u64, Linked)> {
        let Some(comm) = &self.comm else { return Ok((vec![0], 0, Linked::Alone)) };
        if layout == Layout::Segmented {
            return Ok((vec![comm.rank()], comm.rank(), Linked::Alone));
        }
        // A ring is replaced on all ranks or on none.
        if self.peers.as_ref().is_none_or(|p| p.ring_id != ring.id()) {
            self.peers = None;
            let linked =
                Peers::connect(comm, ring, self.options.exchange, self.options.aggregators).map_err(|e| match e {
                    peers::LinkError::Mpi(e) => mpi_failure(&files.path, &e),
                    peers::LinkError::Refused(text) => {
                        let text = format!("no shared memory for the exchange: {text}; use --set exchange=messages");
                        BackendError::new("prepare", &files.path, Cause::Unsupported, text)
                    }
                })?;
            self.peers = Some(linked);
            self.point = 0;
        }
        let hosts = self.peers.as_ref().map_or(&[][..], |p| &p.hosts);
        let owners = peers::aggregators(hosts, self.options.aggregators);
        let linked = match self.peers.as_ref().map(|p| &p.link) {
            Some(Link::Messages { .. }) => Linked::Messages,
            _ => Linked::Shared,
        };
        Ok((owners, (comm.rank() + comm.size() - pattern.rank) % comm.size(), linked))
    }

    /// What the ranks reach of each other's rings, by part.
    fn bases(&self, layout: Layout, pattern: &Pattern, first_rank: u64) -> Vec<*mut u8> {
        let null = std::ptr::null_mut();
        if layout == Layout::Segmented {
            return vec![null];
        }
        let of = |rank: u64| match self.peers.as_ref().map(|p| &p.link) {
            Some(Link::Shared { rings, .. }) => rings[rank as usize].as_ref().map_or(null, |ring| ring.as_mut_ptr()),
            _ => null,
        };
        (0..pattern.ranks).map(|part| of((first_rank + part) % pattern.ranks)).collect()
    }

    /// Why the exchange is by messages though memory would have been preferred.
    fn reason(&self) -> Option<&str> {
        match self.peers.as_ref().map(|p| &p.link) {
            Some(Link::Messages { reason }) => reason.as_deref(),
            _ => None,
        }
    }

    /// Writes what was kept of the last sector. Collective, though ranks wait for nobody: the sector is nobody else's.
    ///
    /// # Errors
    /// What the kernel says.
    pub(crate) fn flush(&mut self, files: &FdPair) -> Result<()> {
        let (Some(active), Some(memory)) = (&mut self.active, &mut self.memory) else { return Ok(()) };
        let Some(tail) = active.tail.as_mut().filter(|t| t.dirty) else { return Ok(()) };
        tail.dirty = false;
        let (mine, last) = match active.layout {
            Layout::Segmented => (true, active.pattern.rank + 1 == active.pattern.ranks),
            Layout::Interleaved => (active.me == Some(tail.holder), true),
        };
        if !mine {
            return Ok(());
        }
        let offset = active.grid.down(tail.end);
        let written = memory.edge.flush(files.of_domains(active.direct), tail.end, last);
        written.map_err(|e| BackendError::from_io("two-phase pwrite of the last sector", &files.path, Some(offset), &e))
    }

    /// As [`TwoPhase::flush`], and lets go of queue and communicator; its memory is for the next file. Collective.
    ///
    /// # Errors
    /// What the kernel says.
    pub(crate) fn close(mut self, files: &FdPair) -> Result<()> {
        let flushed = self.flush(files);
        if let Some(memory) = self.memory.take() {
            memory.give_back(&self.shelf);
        }
        flushed
    }
}

/// How the ranks of a pattern work together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Linked {
    Alone,
    Shared,
    Messages,
}

fn mpi_failure(path: &std::path::Path, error: &MpiError) -> BackendError {
    BackendError::new("two-phase setup", path, Cause::Io, format!("MPI between the ranks failed: {error}"))
}
