//! Feeds the chunks of a batch into the queue and takes the completions out, without allocation.

use std::io;

use io_uring::squeue;

use super::kept::Kept;
use super::parts::{Parts, WHOLE};
use super::stream::{Failure, Stream};
use crate::latency::Mark;
use crate::patience::{Ended, Patience};
use crate::queue::flight::Flight;
use crate::queue::{Queue, Way};
use crate::route::Route;
use crate::walk::{Guard, Piece, Pieces};
use crate::Latency;

/// What is the same for all operations of a batch.
pub(super) struct Job<'a> {
    pub(super) way: Way,
    /// First byte of the memory of the ring.
    pub(super) base: *mut u8,
    /// Operations in flight at most.
    pub(super) depth: u32,
    /// Completions to wait for while there is more to begin.
    pub(super) wait_for: u32,
    /// Bytes of the largest operation: a larger piece is moved by several, at the same time; None: it is one, however large.
    pub(super) operation_bytes: Option<u64>,
    /// The newest operation in flight is less than this many operations ahead of the oldest one.
    pub(super) span: u64,
    pub(super) route: &'a Route,
}

/// An operation in flight, for a piece or a part of one. Its index in the table is its user data.
#[derive(Clone, Copy, Default)]
struct Slot {
    /// File offset of what is still to move.
    offset: u64,
    /// Index in the ring of what is still to move.
    index: usize,
    /// Bytes still to move; 0 when the slot is free.
    left: u64,
    /// Its number in its batch.
    number: u64,
    /// When it was begun.
    mark: Mark,
    /// Index in the ring of its first byte.
    begin: usize,
    /// The piece it is a part of, or [`WHOLE`].
    of: u32,
    /// Memory at its beginning and end that is put back when it is done.
    guard: Guard,
}

/// The table of the chunks in flight, made once per file.
pub(super) struct Pump {
    slots: Box<[Slot]>,
    /// Slots without a chunk.
    free: Vec<u32>,
    /// Slots whose chunk has bytes left and no operation in flight.
    again: Vec<u32>,
    /// Pieces that are moved by several operations.
    parts: Parts,
    /// Memory to put back, for each slot.
    kept: Option<Kept>,
    /// With operations that shall be tried again.
    patience: Patience,
}

impl Pump {
    /// Room for `depth` operations in flight.
    pub(super) fn new(depth: u32) -> Self {
        let depth = depth as usize;
        Self {
            slots: vec![Slot::default(); depth].into_boxed_slice(),
            free: Vec::with_capacity(depth),
            again: Vec::with_capacity(depth),
            parts: Parts::new(depth),
            kept: None,
            patience: Patience::default(),
        }
    }

    /// Makes room for what reads of whole sectors have to put back.
    pub(super) fn prepare_guards(&mut self) -> io::Result<()> {
        if self.kept.is_none() {
            self.kept = Some(Kept::new(self.slots.len())?);
        }
        Ok(())
    }

    /// True if no slot holds a chunk.
    #[cfg(test)]
    pub(super) fn is_idle(&self) -> bool {
        self.slots.iter().all(|slot| slot.left == 0)
    }

    /// Moves all chunks of `walk`; `during` runs once, after as many as the depth allows were submitted. After a failure no new chunk is begun, but those begun before the failed one are
    /// brought to their end, so that the first failure in the order of the batch is the one reported. When this
    /// returns, nothing is in flight.
    ///
    /// # Safety
    /// `job.base` is valid for `index + len` bytes of every piece that `walk` yields, and, for a read, not otherwise
    /// used, until this returns; if memory is registered, it is this memory.
    pub(super) unsafe fn run<P: Pieces>(
        &mut self,
        queue: &mut Queue,
        job: &Job<'_>,
        walk: P,
        latency: &mut Latency,
        mut during: Option<&mut dyn FnMut()>,
    ) -> Result<(), Failure> {
        if queue.abandoned {
            return Err(Failure::Abandoned);
        }
        let depth = job.depth.min(self.slots.len() as u32);
        self.slots.fill(Slot::default());
        self.again.clear();
        self.parts.clear();
        self.patience.restore();
        self.free.clear();
        self.free.extend((0..depth).rev());
        let shape = Shape::new(queue, job);
        let mut stream = Stream::new(walk, job.operation_bytes, job.span);
        let mut flight = Flight::new(queue);
        loop {
            // SAFETY: the caller's promise, which holds until this function returns, after `flight` is dropped.
            unsafe { self.fill(&mut flight, &mut stream, job, &shape, latency) }?;
            if let Some(during) = during.take() {
                flight.submit_and_wait(0).map_err(Failure::Enter)?;
                during();
            }
            let in_flight = flight.in_flight();
            // Without parts an operation is a piece.
            let pieces = if job.operation_bytes.is_some() { self.parts.under_way() } else { in_flight };
            let most = stream.asks_at();
            if most.is_some_and(|most| pieces <= most) {
                // What was pushed goes on meanwhile.
                flight.submit_and_wait(0).map_err(Failure::Enter)?;
                stream.walk.ask(pieces as u64);
                continue;
            }
            if in_flight == 0 {
                break;
            }
            // Nothing more to add: one call for all the rest. Otherwise keep the queue full.
            let want = if stream.is_done() && most.is_none() { in_flight } else { shape.want };
            flight.submit_and_wait(wanted(want, in_flight, pieces, most)).map_err(Failure::Enter)?;
            while let Some((slot, result)) = flight.next_completion() {
                // SAFETY: the caller's promise; the slot's operation has ended.
                unsafe { self.complete(slot as usize, result, job, &mut stream, latency) };
            }
        }
        match stream.failure {
            None => Ok(()),
            Some(failure) => Err(failure),
        }
    }

    /// Issues what has to go on, then new chunks, as many as there is room for. Parts are submitted one by one: the kernel would join
    /// what comes together, and they are there to reach the device apart.
    ///
    /// # Safety
    /// As for [`Pump::run`], until `flight` is dropped.
    #[inline]
    unsafe fn fill<P: Pieces>(
        &mut self,
        flight: &mut Flight<'_>,
        stream: &mut Stream<P>,
        job: &Job<'_>,
        shape: &Shape,
        latency: &Latency,
    ) -> Result<(), Failure> {
        while let Some(slot) = self.again.pop() {
            // SAFETY: the slot holds the rest of a chunk of the walk.
            unsafe { flight.push(&shape.entry(&self.slots[slot as usize], slot, job)) };
            flight.count(shape.registered);
        }
        if stream.failure.is_some() {
            return Ok(());
        }
        while let Some(&slot) = self.free.last() {
            if stream.begun >= stream.begin_below && !self.advance(stream, job) {
                return Ok(());
            }
            let Some((piece, of)) = stream.next_operation(&mut self.parts, latency) else {
                return Ok(());
            };
            self.free.pop();
            let chunk = Slot {
                offset: piece.offset,
                index: piece.index,
                left: piece.len,
                number: stream.begun,
                mark: latency.begin(),
                begin: piece.index,
                of,
                guard: piece.guard,
            };
            self.slots[slot as usize] = chunk;
            stream.begun += 1;
            if !piece.guard.is_empty() {
                // SAFETY: the piece is the caller's memory, and nothing in flight touches it: see `Job::span`.
                unsafe { self.kept_or_panic().keep(slot as usize, job.base, &piece) };
            }
            // SAFETY: the slot holds a piece of the walk.
            unsafe { flight.push(&shape.entry(&chunk, slot, job)) };
            flight.count(shape.registered);
            if of != WHOLE {
                flight.submit_and_wait(0).map_err(Failure::Enter)?;
            }
        }
        Ok(())
    }

    #[cold]
    fn kept_or_panic(&mut self) -> &mut Kept {
        match &mut self.kept {
            Some(kept) => kept,
            None => panic!("no memory for guards: prepare_guards() comes before a walk that has some"),
        }
    }

    /// Looks for the oldest operation in flight; true if the next one may be begun. Asked once per period at most, or by
    /// chunks so large that it does not matter.
    #[cold]
    fn advance<P>(&self, stream: &mut Stream<P>, job: &Job<'_>) -> bool {
        let oldest = self.slots.iter().filter(|s| s.left > 0).map(|s| s.number).min().unwrap_or(stream.begun);
        stream.begin_below = oldest.saturating_add(job.span);
        stream.begun < stream.begin_below
    }

    /// Takes the result of the operation of one slot.
    ///
    /// # Safety
    /// As for [`Pump::run`]; the operation has ended.
    #[inline]
    unsafe fn complete<P: Pieces>(
        &mut self,
        slot: usize,
        result: i32,
        job: &Job<'_>,
        stream: &mut Stream<P>,
        latency: &mut Latency,
    ) {
        let chunk = &mut self.slots[slot];
        // Signed, because a part of nothing fails too.
        if i64::from(result) == chunk.left as i64 && chunk.guard.is_empty() && chunk.of == WHOLE {
            latency.end(chunk.mark);
            chunk.left = 0;
            self.free.push(slot as u32);
            self.patience.restore();
            return;
        }
        // SAFETY: as for this function.
        unsafe { self.incomplete(slot, result, job, stream, latency) };
    }

    /// A piece that has something to put back, a part, or what is not at its end: it goes on, or it has failed.
    ///
    /// # Safety
    /// As for [`Pump::complete`].
    #[cold]
    unsafe fn incomplete<P: Pieces>(
        &mut self,
        slot: usize,
        result: i32,
        job: &Job<'_>,
        stream: &mut Stream<P>,
        latency: &mut Latency,
    ) {
        let chunk = &mut self.slots[slot];
        let ended = self.patience.judge(result);
        let moved = if let Ended::Moved(moved) = ended { moved } else { 0 };
        chunk.left -= moved;
        chunk.offset += moved;
        chunk.index += moved as usize;
        let got = (chunk.index - chunk.begin) as u64;
        let is_complete = moved > 0 && chunk.left <= u64::from(chunk.guard.after);
        let goes_on = ended == Ended::Again || (moved > 0 && job.route.can_continue(got));
        let (number, of) = (chunk.number, chunk.of);
        let is_first = stream.failure.as_ref().is_none_or(|f| number < f.number());
        if is_complete {
            if of == WHOLE {
                latency.end(chunk.mark);
            } else if let Some(mark) = self.parts.end(of) {
                latency.end(mark);
            }
        } else if goes_on && is_first {
            self.again.push(slot as u32);
            return;
        } else if !goes_on && is_first {
            stream.failure = Some(if let Ended::Failed(errno) = ended {
                Failure::Chunk { number, offset: chunk.offset, errno }
            } else {
                // What was asked for is the whole piece.
                let (offset, expected) = self.parts.whole(of).unwrap_or((chunk.offset - got, got + chunk.left));
                Failure::Short { number, offset, expected, got: chunk.offset - offset }
            });
        }
        if !chunk.guard.is_empty() {
            let len = got + chunk.left;
            let piece = Piece { offset: chunk.offset - got, index: chunk.begin, len, guard: chunk.guard };
            // SAFETY: as for this function.
            unsafe { self.kept_or_panic().put_back(slot, job.base, &piece) };
        }
        self.slots[slot].left = 0;
        self.free.push(slot as u32);
    }
}

/// Completions to wait for: no more than there can be, nor than are missing until there are so few pieces under way that more is asked for.
/// Pieces of which parts are still to begin may be more than operations in flight.
fn wanted(want: usize, in_flight: usize, pieces: usize, asks_at: Option<usize>) -> usize {
    let rest = asks_at.map_or(in_flight, |most| pieces.saturating_sub(most).max(1));
    want.min(rest).min(in_flight)
}

/// How an operation is written down.
struct Shape {
    registered: bool,
    piece_shift: u32,
    /// Completions to wait for while there is more to begin.
    want: usize,
}

impl Shape {
    fn new(queue: &Queue, job: &Job<'_>) -> Self {
        Self {
            registered: queue.memory.is_registered(),
            piece_shift: queue.piece_shift,
            want: job.wait_for.clamp(1, job.depth.max(1)) as usize,
        }
    }

    /// The operation for what is left of a chunk, up to the end of its piece of memory: an operation with a
    /// registered buffer must not leave it.
    #[inline]
    fn entry(&self, chunk: &Slot, slot: u32, job: &Job<'_>) -> squeue::Entry {
        let piece = chunk.index >> self.piece_shift;
        let piece_left = ((piece + 1) << self.piece_shift) - chunk.index;
        // At most 1 GiB; the number of pieces is checked by the kernel at registration (at most 16384).
        let len = chunk.left.min(piece_left as u64) as u32;
        let buffer = self.registered.then_some(piece as u16);
        let memory = job.base.wrapping_add(chunk.index);
        job.way.entry(chunk.offset, memory, len, buffer).user_data(u64::from(slot))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::pattern;
    use crate::walk::Walk;
    use crate::{Batch, Direction, Ring};
    use std::path::Path;

    #[test]
    fn no_more_is_waited_for_than_is_in_flight() {
        // The last part of one piece, and all of the next one so far have ended; nothing may be begun before it.
        assert_eq!(wanted(2, 1, 2, None), 1);
        assert_eq!(wanted(4, 8, 1, None), 4, "parts of one piece");
        assert_eq!(wanted(4, 8, 8, Some(6)), 2);
        assert_eq!(wanted(4, 8, 2, Some(0)), 2);
        assert_eq!(wanted(4, 8, 0, Some(0)), 1);
        assert_eq!(wanted(1, 1, 1, Some(0)), 1);
    }

    #[test]
    fn reads_never_run_a_period_ahead_of_the_oldest_in_flight() {
        let p = pattern(4096, 1, 100);
        let ring = Ring::new(4 * 4096, 4096).unwrap();
        let batch = Batch { first_call: 0, calls: 100 };
        let walk = Walk::new(&p, batch, &ring, Path::new("f")).unwrap();
        let route = Route::Buffered { reason: None };
        let job = Job {
            way: Way { direction: Direction::Read, direct: false, flags: 0 },
            base: std::ptr::null_mut(),
            depth: 3,
            wait_for: 1,
            operation_bytes: None,
            span: 4,
            route: &route,
        };
        let mut pump = Pump::new(3);
        let mut stream = Stream::new(walk, job.operation_bytes, job.span);
        stream.begun = 9;
        pump.slots[2] = Slot { left: 8, number: 5, ..Slot::default() };
        pump.slots[0] = Slot { left: 4096, number: 8, ..Slot::default() };
        assert!(!pump.advance(&mut stream, &job), "chunk 9 has the window of chunk 5");
        pump.slots[2].left = 0;
        assert!(pump.advance(&mut stream, &job));
        assert_eq!(stream.begin_below, 12, "without another look");
        pump.slots[0].left = 0;
        assert!(pump.advance(&mut stream, &job));
    }
}
