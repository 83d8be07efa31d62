//! A batch from its beginning, when all ranks have entered, to its end, when all are done and know of each other's errors.

use std::collections::VecDeque;

use beff_ffi::Comm;

use super::domain::Cut;
use super::edge::Tail;
use super::lane::{Lane, Way};
use super::messages::{Directory, Mail};
use super::pass::{subs, PartSizes, Pass, Pending};
use super::peers::Link;
use super::rows::Layout;
use super::shared::Control;
use super::{outcome, Active, TwoPhase};
use crate::direct::FdPair;
use crate::{dontcache, queue, BackendError, Batch, Direction, Latency, Result, Ring};

/// How the ranks keep together in a batch.
enum Together<'a> {
    /// Each moves its own.
    Alone,
    /// By points that all of them reach, of which this is the first.
    Points(&'a Control, u32),
    /// By the messages they exchange.
    Messages(&'a mut Mail, Directory<'a>),
}

impl<'a> Together<'a> {
    /// As the ranks of the prepared pattern are linked, `first` being the next point. None: they are not.
    fn new(
        active: &'a Active,
        link: Option<&'a Link>,
        mail: &'a mut Option<Mail>,
        comm: Option<&'a Comm>,
        first: u32,
    ) -> Option<Self> {
        if active.layout == Layout::Segmented {
            return Some(Self::Alone);
        }
        match (link?, mail, comm) {
            (Link::Shared { control, .. }, _, _) => Some(Self::Points(control, first)),
            (Link::Messages { .. }, Some(mail), Some(comm)) => {
                let (owners, first_rank, my_part) = (&active.owners[..], active.first_rank, active.pattern.rank);
                Some(Self::Messages(mail, Directory { comm, owners, my_part, first_rank }))
            }
            _ => None,
        }
    }
}

impl TwoPhase {
    /// Writes the calls of a batch; returns this rank's bytes. Collective.
    ///
    /// # Errors
    /// This rank's first error; if only another had one, that one.
    pub(crate) fn write(&mut self, files: &FdPair, batch: Batch, ring: &Ring, latency: &mut Latency) -> Result<u64> {
        // Only ever read through.
        self.run(files, Direction::Write, batch, (ring.id(), ring.bytes().as_ptr().cast_mut()), latency)
    }

    /// Reads the calls of a batch; returns this rank's bytes. Collective.
    ///
    /// # Errors
    /// As [`TwoPhase::write`].
    pub(crate) fn read(&mut self, files: &FdPair, batch: Batch, ring: &mut Ring, latency: &mut Latency) -> Result<u64> {
        let id = ring.id();
        self.run(files, Direction::Read, batch, (id, ring.bytes_mut().as_mut_ptr()), latency)
    }

    fn run(
        &mut self,
        files: &FdPair,
        direction: Direction,
        batch: Batch,
        (ring_id, base): (u64, *mut u8),
        latency: &mut Latency,
    ) -> Result<u64> {
        let operation = if direction == Direction::Write { "two-phase write" } else { "two-phase read" };
        let flushed = self.move_on(files, batch);
        let ready = self.active.as_mut().filter(|a| (a.direction, a.ring_id) == (direction, ring_id));
        let (Some(active), Some(memory)) = (ready, &mut self.memory) else {
            return Err(BackendError::not_prepared(operation, &files.path));
        };
        if batch.calls == 0 {
            return flushed.map(|()| 0);
        }
        crate::walk::check_within(&active.pattern, batch);
        let alone = active.layout == Layout::Segmented;
        let my_part = if alone { 0 } else { active.pattern.rank };
        active.bases[my_part as usize] = base;
        let (begin, end) = active.rows.region(batch);
        let tail = active.tail.filter(|t| t.end == begin);
        let cut = Cut::new(active.grid, begin, end, tail.map(|t| t.holder));
        let way = way(files, active, direction, self.options.dont_cache);
        let first = self.point.wrapping_add(1);
        let own = memory.own(ring_id).filter(|_| alone);
        let link = self.peers.as_ref().map(|p| &p.link);
        let together = Together::new(active, link, &mut memory.mail, self.comm.as_ref(), first);
        let together = together.ok_or_else(|| BackendError::not_prepared(operation, &files.path))?;
        let by_points = matches!(together, Together::Points(..));
        let parts = (!matches!(together, Together::Messages(..))).then_some(PartSizes::USUAL);
        let blocks = super::setup::blocks(&mut memory.blocks, memory.block_bytes, memory.queue.as_ref());
        let mut pass = Pass {
            rows: active.rows,
            grid: active.grid,
            me: if alone { Some(0) } else { active.me },
            lane: Lane::new(way, memory.queue.as_mut(), &mut memory.slots, latency),
            blocks,
            own,
            edge: &mut memory.edge,
            file: way.file,
            bases: &active.bases,
            tail,
            parts,
            error: flushed.err(),
            path: &files.path,
        };
        // SAFETY: `base` is the memory of the ring that the caller has borrowed for the whole batch, on this rank and, by
        // what keeps the ranks together, on the others: none leaves the batch before all are done with its memory. The
        // windows end inside of the rings, which `check_fits` and `check_within` have made sure of; the rings of all ranks are equally long.
        let failed = unsafe { go(&mut pass, together, direction, batch, &cut, &mut memory.pending) };
        let error = pass.error.take();
        drop(pass);
        active.bases[my_part as usize] = std::ptr::null_mut();
        if direction == Direction::Write {
            active.tail = cut.last_holder().map(|holder| Tail { end, holder, dirty: true });
        }
        if by_points {
            // One for the entry, and as many as there are parts that all are done with.
            let parts = if direction == Direction::Write { 1 } else { subs(&active.rows, batch) };
            self.point = first.wrapping_add(parts);
        }
        let outcome = match &self.comm {
            Some(comm) if failed && !alone => outcome::agree(comm, operation, &files.path, error),
            _ => error.map_or(Ok(()), Err),
        };
        outcome.map(|()| batch.calls * active.pattern.call_bytes())
    }

    /// Before a batch that does not go on where the last one ended: what that one left must be in the file first.
    fn move_on(&mut self, files: &FdPair, batch: Batch) -> Result<()> {
        let Some(active) = &self.active else { return Ok(()) };
        if active.tail.is_none_or(|tail| tail.end == active.rows.region(batch).0) {
            return Ok(());
        }
        let alone = active.layout == Layout::Segmented;
        let flushed = self.flush(files);
        if let Some(comm) = self.comm.as_ref().filter(|_| !alone) {
            comm.barrier().map_err(|e| super::mpi_failure(&files.path, &e))?;
        }
        flushed
    }
}

fn way<'a>(files: &'a FdPair, active: &Active, direction: Direction, dont_cache: bool) -> Way<'a> {
    let direct = active.direct;
    let flags = if dont_cache && !direct { dontcache::FLAG } else { 0 };
    Way {
        file: files.of_domains(direct),
        queued: queue::Way { direction, direct, flags },
        path: &files.path,
        align: if direct { active.grid.align } else { 1 },
    }
}

/// Moves the data; true if the ranks have to agree about errors.
///
/// # Safety
/// The windows of the batch are valid in the rings of all ranks, for reads not otherwise used, from when a rank enters
/// until all leave.
unsafe fn go(
    pass: &mut Pass<'_>,
    together: Together<'_>,
    direction: Direction,
    batch: Batch,
    cut: &Cut,
    pending: &mut VecDeque<Pending>,
) -> bool {
    // SAFETY: the caller's promise, in all three cases; with messages only this rank's ring is touched here.
    unsafe {
        match (together, direction) {
            (Together::Alone, Direction::Write) => pass.write_pieces(cut),
            (Together::Alone, Direction::Read) => pass.read_pieces(batch, pending, None),
            (Together::Points(control, first), _) => {
                control.reach(first, false);
                control.wait(first);
                let second = first.wrapping_add(1);
                if direction == Direction::Write {
                    pass.write_pieces(cut);
                    control.reach(second, pass.error.is_some());
                    control.wait(second);
                } else {
                    pass.read_pieces(batch, pending, Some((control, second)));
                }
                // Nobody reaches the end of the next batch before this rank has entered it.
                return control.any_failed_since(first);
            }
            (Together::Messages(mail, who), Direction::Write) => mail.write(pass, who, cut),
            (Together::Messages(mail, who), Direction::Read) => mail.read(pass, who, batch, pending),
        }
    }
    true
}
