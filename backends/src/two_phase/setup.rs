//! Memory, queue and requests of two-phase transfers, made in prepare and kept for the file.

use std::collections::VecDeque;

use super::domain::Grid;
use super::edge::Edge;
use super::lane::Slot;
use super::messages::{staging_bytes, Mail};
use super::pass::{Blocks, Own, PartSizes, Pending};
use super::rows::{Layout, Rows};
use super::shelf::Shelf;
use crate::direct::{Domains, FdPair};
use crate::queue::{Memory as Registration, Queue, MAX_PIECE_SHIFT};
use crate::{BackendError, Direction, Result, Ring};

/// What a file needs to move domains.
pub(super) struct Memory {
    grid: Grid,
    /// Before the memory it may have registered.
    pub(super) queue: Option<Queue>,
    /// Blocks of the domains, one after the other.
    pub(super) blocks: Ring,
    pub(super) block_bytes: u64,
    pub(super) slots: Vec<Slot>,
    pub(super) edge: Edge,
    pub(super) pending: VecDeque<Pending>,
    pub(super) mail: Option<Mail>,
    messages_for: Option<(u64, Rows)>,
    /// The ring that could not be registered beside the domains, and why.
    refused: Option<(u64, String)>,
}

impl Memory {
    /// Whether it is for this grid too.
    pub(super) fn is_for(&self, grid: Grid) -> bool {
        (self.grid.align, self.grid.domain) == (grid.align, grid.domain)
    }

    /// Memory for `depth` domains under way through a queue of its own; without a depth, for one. The domains' own is from `shelf`.
    pub(super) fn new(grid: Grid, depth: Option<u32>, shelf: &Shelf, files: &FdPair) -> Result<Self> {
        let no_memory = |e: std::io::Error| BackendError::from_io("memory for domains", &files.path, None, &e);
        let slots = slots(depth);
        let blocks = shelf.take(bytes_of(grid, depth)).map_err(no_memory)?;
        let queue = depth.map(|_| Queue::of(files, slots, MAX_PIECE_SHIFT)).transpose()?;
        Ok(Self {
            grid,
            queue,
            blocks,
            block_bytes: block_bytes(grid),
            slots: (0..slots).map(|_| Slot::default()).collect(),
            edge: Edge::new(grid).map_err(no_memory)?,
            pending: VecDeque::with_capacity(slots as usize),
            mail: None,
            messages_for: None,
            refused: None,
        })
    }

    /// Leaves its memory to the next file. No transfer is under way behind a batch.
    pub(super) fn give_back(self, shelf: &Shelf) {
        let Self { queue, blocks, mail, .. } = self;
        // Unregisters it.
        drop(queue);
        [Some(blocks), mail.map(Mail::into_staging)].into_iter().flatten().for_each(|memory| shelf.put(memory));
    }

    /// Registers the domains, and with them the ring of a rank that moves its own segment straight. Where the kernel does not allow both,
    /// the domains alone.
    pub(super) fn register(&mut self, layout: Layout, ring: &mut Ring, files: &FdPair) -> Result<()> {
        let (Some(queue), blocks) = (&mut self.queue, &mut self.blocks) else { return Ok(()) };
        if layout == Layout::Interleaved {
            return queue.register_memory(&mut [blocks], &files.path);
        }
        if self.refused.as_ref().is_none_or(|(ring_id, _)| *ring_id != ring.id()) {
            let ring_id = ring.id();
            queue.register_memory(&mut [blocks, ring], &files.path)?;
            let Registration::Refused { reason, .. } = &queue.memory else { return Ok(()) };
            self.refused = Some((ring_id, reason.clone()));
        }
        queue.register_memory(&mut [blocks], &files.path)
    }

    /// Where the memory of ring `ring_id` lies among the registered buffers, if it does.
    pub(super) fn own(&self, ring_id: u64) -> Option<Own> {
        let queue = self.queue.as_ref()?;
        let has = queue.memory.is_registered() && queue.memory.is_of(&[self.blocks.id(), ring_id]);
        let first = self.blocks.mapped().len().div_ceil(1 << queue.piece_shift);
        has.then_some(Own { first, piece_shift: queue.piece_shift })
    }

    /// With room for the messages of `ranks` ranks, or without any.
    pub(super) fn with_mail(
        mut self,
        (grid, rows, ranks): (Grid, &Rows, Option<u64>),
        shelf: &Shelf,
        files: &FdPair,
    ) -> Result<Self> {
        let wanted = ranks.map(|ranks| (ranks, *rows));
        if self.messages_for != wanted {
            if let Some(mail) = self.mail.take() {
                shelf.put(mail.into_staging());
            }
            let new = |ranks| Mail::new(grid, rows, ranks, shelf.take(staging_bytes(grid))?);
            let mail = ranks.map(new).transpose();
            self.mail = mail.map_err(|e| BackendError::from_io("memory for messages", &files.path, None, &e))?;
            self.messages_for = wanted;
        }
        Ok(self)
    }

    /// What of the transfers lies in registered memory. Of a rank's own segment, whole sectors move straight between its memory and
    /// the file.
    fn registered(&self, layout: Layout, ring_id: u64) -> String {
        let domains = match fits(&self.blocks) {
            true => "registered domains",
            false => "domains NOT registered: together longer than 1 GiB",
        };
        match (layout, &self.refused) {
            (Layout::Interleaved, _) => domains.to_owned(),
            (Layout::Segmented, Some((of, reason))) if *of == ring_id => {
                format!("{domains} for what is not whole sectors; what is moves straight, NOT registered: {reason}")
            }
            (Layout::Segmented, _) => {
                format!("{domains} for what is not whole sectors; what is moves straight, registered buffers")
            }
        }
    }

    /// The strategy as it is reported. `reason`: why messages, where memory would have been preferred.
    pub(super) fn describe(
        &self,
        direction: Direction,
        (layout, ring_id): (Layout, u64),
        grid: Grid,
        domains: &Domains,
        reason: Option<&str>,
    ) -> String {
        let file = match (domains.direct, &domains.reason) {
            (true, _) => format!("O_DIRECT, aligned to {}", grid.align),
            (false, None) => "buffered".to_owned(),
            (false, Some(reason)) => format!("buffered, not direct: {reason}"),
        };
        let (verb, way) = match direction {
            Direction::Write => ("gathered from", "write"),
            Direction::Read => ("delivered to", "read"),
        };
        let exchange = match (layout, &self.mail, reason) {
            (Layout::Segmented, _, _) => "each rank its own segment, no exchange".to_owned(),
            (_, None, _) => format!("{verb} shared memory"),
            (_, Some(_), None) => "exchanged by messages".to_owned(),
            (_, Some(_), Some(reason)) => format!("exchanged by messages, no shared memory: {reason}"),
        };
        let who = match (layout, grid.aggregators) {
            (Layout::Segmented, _) => String::new(),
            (_, 1) => "1 aggregator, ".to_owned(),
            (_, n) => format!("{n} aggregators, "),
        };
        let overlap = match &self.queue {
            Some(queue) => {
                format!(
                    "overlapped with io_uring depth {}, {}",
                    self.slots.len(),
                    queue.describe(&self.registered(layout, ring_id))
                )
            }
            None => "one domain at a time".to_owned(),
        };
        let in_parts = self.slots.len() > 1 && self.mail.is_none() && grid.domain > PartSizes::USUAL.copied_bytes;
        let parts = match in_parts {
            true => format!(", what is copied in parts of {}", size(PartSizes::USUAL.copied_bytes)),
            false => String::new(),
        };
        format!("two-phase {way}, {file}, {who}domains of {}{parts}, {exchange}, {overlap}", size(grid.domain))
    }
}

/// Domains under way at once, or parts of them. A part has the memory of a domain: messages need that.
fn slots(depth: Option<u32>) -> u32 {
    depth.unwrap_or(1).max(1)
}

/// Bytes of the block of one domain.
fn block_bytes(grid: Grid) -> u64 {
    grid.most_piece_bytes().next_multiple_of(4096)
}

/// Bytes of the blocks of all domains that are under way at once.
pub(super) fn bytes_of(grid: Grid, depth: Option<u32>) -> u64 {
    block_bytes(grid) * u64::from(slots(depth))
}

/// Longer memory is registered in several pieces, and a block may lie in two of them.
fn fits(memory: &Ring) -> bool {
    memory.bytes().len() <= 1 << MAX_PIECE_SHIFT
}

/// The blocks as a lane uses them.
pub(super) fn blocks(memory: &mut Ring, block_bytes: u64, queue: Option<&Queue>) -> Blocks {
    let registered = fits(memory) && queue.is_some_and(|q| q.memory.is_registered());
    Blocks { base: memory.bytes_mut().as_mut_ptr(), bytes: block_bytes as usize, registered }
}

/// Bytes in the largest binary unit that divides them.
fn size(bytes: u64) -> String {
    match bytes {
        b if b % (1 << 20) == 0 => format!("{} MiB", b >> 20),
        b if b % 1024 == 0 => format!("{} KiB", b >> 10),
        b => format!("{b} bytes"),
    }
}

#[cfg(test)]
mod tests {
    use super::super::provide;
    use super::*;
    use crate::testing::{pattern, scratch, with_little_lockable_memory, LOCKABLE_BYTES};
    use crate::{AccessKind, Direct, DriverOptions, Exchange, FilePath, OpenMode, Pattern};

    fn described(memory: &Memory, ring: &Ring, grid: Grid, files: &FdPair) -> String {
        let domains = Domains { align_bytes: 4096, direct: files.direct_file().is_some(), reason: None };
        memory.describe(Direction::Write, (Layout::Segmented, ring.id()), grid, &domains, None)
    }

    /// What was provided is what the first file has, and what it leaves is what the next one has, whatever its sectors.
    #[test]
    fn files_have_the_memory_of_their_domains_one_after_the_other() {
        let dir = scratch();
        let options = DriverOptions { direct: Direct::Auto, ..DriverOptions::default() };
        let shelf = Shelf::default();
        for (ranks, options) in [(1, options.clone()), (2, DriverOptions { direct: Direct::Off, ..options.clone() })] {
            provide(&options, Some(4), &shelf, (ranks, 1));
            assert!(shelf.is_empty(), "nothing will be two-phase");
        }
        provide(&options, Some(4), &shelf, (2, 1));
        provide(&options, Some(4), &shelf, (2, 1));
        let mut ids = Vec::new();
        for (number, align) in [512, 4096, 512].into_iter().enumerate() {
            let path = FilePath::of(&dir.path().join(number.to_string())).unwrap();
            let files = FdPair::open_as(&path, OpenMode::CreateNew, Direct::Off, true, Ok).unwrap();
            let grid = Grid::new(align, options.domain_bytes, 2);
            let mut memory = Memory::new(grid, Some(4), &shelf, &files).unwrap();
            assert!(shelf.is_empty(), "there was memory for one file");
            assert!(memory.blocks.bytes().len() as u64 >= 4 * memory.block_bytes);
            memory.register(Layout::Interleaved, &mut Ring::new(4096, 0).unwrap(), &files).unwrap();
            ids.push(memory.blocks.id());
            memory.give_back(&shelf);
        }
        assert_eq!(ids, [ids[0]; 3]);
    }

    fn interleaved(chunk: u64) -> Pattern {
        let one = Pattern { kind: AccessKind::Collective, ..pattern(chunk, 1, 100) };
        Pattern { stride_bytes: 2 * chunk, ranks: 2, rank_distance_bytes: chunk, ..one }
    }

    #[test]
    fn parts_are_told_where_there_are_some() {
        let dir = scratch();
        let path = FilePath::of(&dir.path().join("f")).unwrap();
        let files = FdPair::open_as(&path, OpenMode::CreateNew, Direct::Off, true, Ok).unwrap();
        let ring = Ring::new(4096, 0).unwrap();
        for (domain, depth, told) in [
            (4 << 20, Some(4), "domains of 4 MiB, what is copied in parts of 2 MiB, "),
            (4 << 20, None, "domains of 4 MiB, each"),
            (1 << 20, Some(4), "domains of 1 MiB, each"),
        ] {
            let grid = Grid::new(4096, domain, 1);
            let memory = Memory::new(grid, depth, &Shelf::default(), &files).unwrap();
            let text = described(&memory, &ring, grid, &files);
            assert!(text.contains(told), "{told}: {text}");
        }
    }

    /// Where ranks are on several hosts, or messages were asked for; from pattern to pattern, and from file to file.
    #[test]
    fn files_have_the_memory_of_their_messages_one_after_the_other() {
        let dir = scratch();
        let direct = DriverOptions { direct: Direct::Auto, ..DriverOptions::default() };
        let asked = DriverOptions { exchange: Exchange::Messages, ..direct.clone() };
        for (options, depth, hosts) in [(direct, Some(4), 2), (asked.clone(), Some(4), 1), (asked, None, 1)] {
            let shelf = Shelf::default();
            (0..2).for_each(|_| provide(&options, depth, &shelf, (2, hosts)));
            let known = shelf.ids();
            assert_eq!(known.len(), 2, "domains and messages");
            for (number, align) in [512, 4096, 512].into_iter().enumerate() {
                let path = FilePath::of(&dir.path().join(format!("{hosts}-{depth:?}-{number}"))).unwrap();
                let files = FdPair::open_as(&path, OpenMode::CreateNew, Direct::Off, true, Ok).unwrap();
                let grid = Grid::new(align, options.domain_bytes, 2);
                let mut memory = Memory::new(grid, depth, &shelf, &files).unwrap();
                for (chunk, ranks) in [(1024, Some(2)), (2048, Some(2)), (2048, None), (4096, Some(2))] {
                    let rows = Rows::new(&interleaved(chunk), Layout::Interleaved, 1 << 20);
                    memory = memory.with_mail((grid, &rows, ranks), &shelf, &files).unwrap();
                    assert_eq!((memory.mail.is_some(), shelf.is_empty()), (ranks.is_some(), ranks.is_some()));
                }
                memory.give_back(&shelf);
                assert_eq!(shelf.ids(), known);
                std::fs::remove_file(dir.path().join(format!("{hosts}-{depth:?}-{number}"))).unwrap();
            }
        }
    }

    /// Nobody knew that there would be messages: their memory is made with the first of them, whatever the sectors and domains are.
    #[test]
    fn memory_of_messages_is_made_where_none_was_provided() {
        let dir = scratch();
        for (align, domain_bytes) in [(512, 4 << 20), (512, 512), (1024, 20480), (4096, 4 << 20), (65536, 1 << 20)] {
            let path = FilePath::of(&dir.path().join(format!("{align}-{domain_bytes}"))).unwrap();
            let files = FdPair::open_as(&path, OpenMode::CreateNew, Direct::Off, true, Ok).unwrap();
            let (grid, shelf) = (Grid::new(align, domain_bytes, 2), Shelf::default());
            let rows = Rows::new(&interleaved(1024), Layout::Interleaved, 1 << 20);
            let memory = Memory::new(grid, None, &shelf, &files).unwrap();
            assert!(memory.with_mail((grid, &rows, Some(2)), &shelf, &files).unwrap().mail.is_some());
        }
    }

    /// The domains fit, the ring beside them does not: the domains are registered, the ring is named by its address, and both are told.
    #[test]
    fn what_cannot_be_registered_beside_the_domains_is_left_out_and_told() {
        with_little_lockable_memory(|| {
            let dir = scratch();
            let path = FilePath::of(&dir.path().join("f")).unwrap();
            let files = FdPair::open_as(&path, OpenMode::CreateNew, Direct::Off, true, Ok).unwrap();
            let grid = Grid::new(4096, 64 << 10, 1);
            let mut memory = Memory::new(grid, Some(2), &Shelf::default(), &files).unwrap();
            let (mut small, mut large) = (Ring::new(4096, 0).unwrap(), Ring::new(2 * LOCKABLE_BYTES, 0).unwrap());
            for _ in 0..2 {
                memory.register(Layout::Segmented, &mut large, &files).unwrap();
                let queue = memory.queue.as_ref().unwrap();
                if let Registration::Refused { reason, .. } = &queue.memory {
                    println!("SKIPPED: not even the domains can be registered here: {reason}");
                    return;
                }
                assert!(queue.memory.is_of(&[memory.blocks.id()]), "{:?}", queue.memory);
                assert!(memory.own(large.id()).is_none());
                let told = described(&memory, &large, grid, &files);
                for part in
                    ["registered domains for what is not whole sectors", "straight, NOT registered", "ulimit -l"]
                {
                    assert!(told.contains(part), "{part}: {told}");
                }
                assert!(blocks(&mut memory.blocks, 4096, memory.queue.as_ref()).registered);
            }
            // A ring that fits is tried again, and nothing of the refusal is told of it.
            memory.register(Layout::Segmented, &mut small, &files).unwrap();
            if memory.own(small.id()).is_none() {
                println!("SKIPPED: no room for a second huge page of lockable memory");
                return;
            }
            let told = described(&memory, &small, grid, &files);
            assert!(told.contains("straight, registered buffers") && !told.contains("NOT"), "{told}");
            // Where every rank's ring is somebody else's matter, the domains alone.
            memory.register(Layout::Interleaved, &mut large, &files).unwrap();
            assert!(memory.queue.as_ref().unwrap().memory.is_of(&[memory.blocks.id()]));
        });
    }
}
