//! A batch from its beginning, when all ranks have entered, to its end, when all are done and know of each other's errors.

use std::collections::VecDeque;

use super::domain::Cut;
use super::edge::Tail;
use super::lane::{Lane, Way};
use super::messages::{Directory, Mail};
use super::pass::{subs, Pass, Pending};
use super::peers::Link;
use super::rows::Layout;
use super::shared::Control;
use super::{outcome, Active, TwoPhase};
use crate::direct::FdPair;
use crate::{dontcache, queue, BackendError, Batch, Direction, Latency, Next, Pattern, Result, Ring};

/// How the ranks keep together in a batch.
pub(super) enum Together<'a> {
    /// Each moves its own.
    Alone,
    /// By points that all of them reach.
    Points(&'a Control),
    /// By the messages they exchange.
    Messages(&'a mut Mail, Directory<'a>),
}

impl TwoPhase {
    /// Writes the calls of a batch; returns this rank's bytes. Collective.
    ///
    /// # Errors
    /// This rank's first error; if only another had one, that one.
    pub(crate) fn write(&mut self, files: &FdPair, batch: Batch, ring: &Ring, latency: &mut Latency) -> Result<u64> {
        // Only ever read through.
        let memory = (ring.id(), ring.bytes().as_ptr().cast_mut());
        self.run(files, Direction::Write, batch, memory, latency, None)
    }

    /// The answer of [`crate::OpenFile::flows`]: what was begun can be under way while the ranks are in the next batch, since it is in memory of
    /// this file, or in that of this rank alone.
    pub(crate) fn flows(&self) -> bool {
        let Some(active) = self.active.as_ref().filter(|active| active.direction == Direction::Write) else {
            return false;
        };
        let has_queue = self.memory.as_ref().is_some_and(|memory| memory.queue.is_some());
        let links = active.layout == Layout::Segmented
            || matches!(self.peers.as_ref().map(|peers| &peers.link), Some(Link::Shared { .. }));
        has_queue && links
    }

    /// As [`TwoPhase::write`], with the batches of `next` behind it. Ranks that come with the same batches one by one meet this one as well.
    ///
    /// # Errors
    /// As [`TwoPhase::write`]; or of this rank alone, if its transfers failed after a batch.
    pub(crate) fn write_on(
        &mut self,
        files: &FdPair,
        batch: Batch,
        ring: &Ring,
        latency: &mut Latency,
        next: Next<'_>,
    ) -> Result<u64> {
        let memory = (ring.id(), ring.bytes().as_ptr().cast_mut());
        self.run(files, Direction::Write, batch, memory, latency, Some(next))
    }

    /// Reads the calls of a batch; returns this rank's bytes. Collective.
    ///
    /// # Errors
    /// As [`TwoPhase::write`].
    pub(crate) fn read(&mut self, files: &FdPair, batch: Batch, ring: &mut Ring, latency: &mut Latency) -> Result<u64> {
        let memory = (ring.id(), ring.bytes_mut().as_mut_ptr());
        self.run(files, Direction::Read, batch, memory, latency, None)
    }

    fn run(
        &mut self,
        files: &FdPair,
        direction: Direction,
        batch: Batch,
        (ring_id, base): (u64, *mut u8),
        latency: &mut Latency,
        next: Option<Next<'_>>,
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
        let alone = active.layout == Layout::Segmented;
        let my_part = if alone { 0 } else { active.pattern.rank };
        active.bases[my_part as usize] = base;
        let way = way(files, active, direction, self.options.dont_cache);
        let own = memory.own(ring_id).filter(|_| alone);
        let together = match (self.peers.as_ref().map(|p| &p.link), &mut memory.mail, &self.comm) {
            _ if alone => Together::Alone,
            (Some(Link::Shared { control, .. }), _, _) => Together::Points(control),
            (Some(Link::Messages { .. }), Some(mail), Some(comm)) => {
                let (owners, first_rank) = (&active.owners[..], active.first_rank);
                Together::Messages(mail, Directory { comm, owners, my_part, first_rank })
            }
            _ => return Err(BackendError::not_prepared(operation, &files.path)),
        };
        let blocks = super::setup::blocks(&mut memory.blocks, memory.block_bytes, memory.queue.as_ref());
        let mut pass = Pass {
            rows: active.rows,
            grid: active.grid,
            me: if alone { Some(0) } else { active.me },
            lane: Lane::new(way, memory.queue.as_mut(), &mut memory.slots, latency),
            slot: 0,
            blocks,
            own,
            edge: &mut memory.edge,
            file: way.file,
            bases: &active.bases,
            tail: None,
            error: flushed.err(),
            path: &files.path,
        };
        let mut course = Course {
            pattern: active.pattern,
            direction,
            together,
            point: &mut self.point,
            tail: &mut active.tail,
            pending: &mut memory.pending,
        };
        // SAFETY: `base` is the memory of the ring that the caller has borrowed for all of the batches, on this rank and, by what keeps the
        // ranks together, on the others: none leaves a batch before all are done with its memory.
        let (calls, failed) = unsafe { course.follow(&mut pass, batch, next) };
        let error = pass.error.take();
        drop(pass);
        active.bases[my_part as usize] = std::ptr::null_mut();
        let outcome = match &self.comm {
            Some(comm) if failed => outcome::agree(comm, operation, &files.path, error),
            _ => error.map_or(Ok(()), Err),
        };
        outcome.map(|()| calls * active.pattern.call_bytes())
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

/// Batches one after the other, on this rank.
pub(super) struct Course<'a> {
    pub(super) pattern: Pattern,
    pub(super) direction: Direction,
    pub(super) together: Together<'a>,
    /// Last point that the ranks have reached together.
    pub(super) point: &'a mut u32,
    /// Where the last region ended.
    pub(super) tail: &'a mut Option<Tail>,
    pub(super) pending: &'a mut VecDeque<Pending>,
}

impl Course<'_> {
    /// Moves the data of a batch, and of those that `next` names; the calls of all, and true if the ranks have to agree about errors, which
    /// ends it on all of them at the same batch. Nothing is under way then.
    ///
    /// # Safety
    /// As for [`Course::go`], for all of the batches.
    pub(super) unsafe fn follow(
        &mut self,
        pass: &mut Pass<'_>,
        mut batch: Batch,
        mut next: Option<Next<'_>>,
    ) -> (u64, bool) {
        let (mut calls, mut under_way) = (0, UnderWay::default());
        let failed = loop {
            crate::walk::check_within(&self.pattern, batch);
            let (begin, end) = pass.rows.region(batch);
            pass.tail = self.tail.filter(|t| t.end == begin);
            let cut = Cut::new(pass.grid, begin, end, pass.tail.map(|t| t.holder));
            // SAFETY: the caller's promise. The windows end inside of the rings, which `check_fits` and `check_within` have made sure of; the
            // rings of all ranks are equally long.
            let failed = unsafe { self.go(pass, batch, &cut, next.is_some()) };
            calls += batch.calls;
            if self.direction == Direction::Write {
                *self.tail = cut.last_holder().map(|holder| Tail { end, holder, dirty: true });
            }
            let Some(next) = next.as_mut().filter(|_| !failed) else { break failed };
            let chunks = under_way.after(pass, batch.calls * self.pattern.chunks_per_call);
            // One that only this rank knows of is the caller's to tell the others, who go on.
            if pass.error.is_some() {
                break failed;
            }
            let Some(more) = next(chunks) else { break failed };
            batch = Batch { first_call: batch.first_call + batch.calls, calls: more };
        };
        pass.finish_all();
        (calls, failed)
    }

    /// Moves the data of one batch; true if the ranks have to agree about errors. With `goes_on` the last transfers are under way then.
    ///
    /// # Safety
    /// The windows of the batch are valid in the rings of all ranks, for reads not otherwise used, from when a rank enters
    /// until all leave; in this rank's own until nothing is under way.
    unsafe fn go(&mut self, pass: &mut Pass<'_>, batch: Batch, cut: &Cut, goes_on: bool) -> bool {
        let first = self.point.wrapping_add(1);
        let write = |pass: &mut Pass<'_>| {
            // SAFETY: the caller's promise.
            unsafe { pass.write_pieces(cut) };
            if !goes_on {
                pass.finish_all();
            }
        };
        match (&mut self.together, self.direction) {
            (Together::Alone, Direction::Write) => {
                write(pass);
                return false;
            }
            // SAFETY: the caller's promise, here and below; with messages only this rank's ring is touched here.
            (Together::Alone, Direction::Read) => unsafe {
                pass.read_pieces(batch, self.pending, None);
                return false;
            },
            (Together::Points(control), direction) => {
                control.reach(first, false);
                control.wait(first);
                let second = first.wrapping_add(1);
                // One for the entry, and as many as there are parts that all are done with.
                let parts = if direction == Direction::Write { 1 } else { subs(&pass.rows, batch) };
                *self.point = first.wrapping_add(parts);
                if direction == Direction::Write {
                    write(pass);
                    control.reach(second, pass.error.is_some());
                    control.wait(second);
                } else {
                    // SAFETY: as above.
                    unsafe { pass.read_pieces(batch, self.pending, Some((control, second))) };
                }
                // Nobody reaches the end of the next batch before this rank has entered it.
                return control.any_failed_since(first);
            }
            // SAFETY: as above.
            (Together::Messages(mail, who), Direction::Write) => unsafe { mail.write(pass, *who, cut) },
            // SAFETY: as above.
            (Together::Messages(mail, who), Direction::Read) => unsafe { mail.read(pass, *who, batch, self.pending) },
        }
        true
    }
}

/// What of the batches so far has not ended when the next one is asked for.
#[derive(Debug, Default)]
struct UnderWay {
    begun_bytes: u64,
    left_bytes: u64,
    left_chunks: u64,
}

impl UnderWay {
    /// The chunks that are under way behind a batch of `chunks`: as large a part of those that were, as of the bytes that this rank moves for
    /// all of them. At least one transfer has ended since the batch before, so that something is known of the time they take.
    fn after(&mut self, pass: &mut Pass<'_>, chunks: u64) -> u64 {
        let begun_bytes = pass.lane.begun_bytes();
        let all_bytes = begun_bytes - self.begun_bytes + self.left_bytes;
        let mut left_bytes = pass.lane.under_way_bytes();
        if left_bytes > 0 && left_bytes >= all_bytes {
            pass.finish_oldest();
            left_bytes = pass.lane.under_way_bytes();
        }
        pass.finish_ended();
        let left_chunks = part(self.left_chunks + chunks, left_bytes, all_bytes);
        *self = Self { begun_bytes, left_bytes, left_chunks };
        left_chunks
    }
}

/// `chunks * left / all`; none of nothing.
fn part(chunks: u64, left_bytes: u64, all_bytes: u64) -> u64 {
    let product = u128::from(chunks) * u128::from(left_bytes.min(all_bytes));
    // Not more than `chunks`.
    product.checked_div(u128::from(all_bytes)).unwrap_or(0) as u64
}

#[cfg(test)]
mod tests {
    use super::part;

    #[test]
    fn what_is_under_way_is_as_large_a_part_of_the_chunks_as_of_the_bytes() {
        assert_eq!(part(100, 0, 0), 0);
        assert_eq!(part(100, 0, 8), 0);
        assert_eq!(part(100, 2, 8), 25);
        assert_eq!(part(3, 7, 8), 2, "rounded down: something has ended");
        assert_eq!(part(100, 9, 8), 100);
        assert_eq!(part(u64::MAX, 1 << 60, 1 << 60), u64::MAX);
    }
}
