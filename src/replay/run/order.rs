//! The order between ranks: a call waits for calls of others that had ended before it began and touched the same bytes.
//!
//! Before the run every rank tells the others which of their calls it waits for. During the run a rank sends the begin of such a call
//! to those who wait for it as soon as it has ended.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use beff_ffi::{Comm, MpiError, Signals};
use beff_trace::After;

use super::standing::{Notes, Other, Place};
use super::Stuck;
use crate::frame::run::interrupt::Interrupt;
use crate::replay::plan::ready::READY;

/// A call of this rank, and a rank that waits for its end.
pub(super) type Awaited = (u64, u32);

/// The calls of this rank that others wait for, in the order of their begins. `mine`: what this rank waits for. Collective.
///
/// # Errors
/// MPI between the ranks.
pub(super) fn exchange(comm: &Comm, mine: &[After]) -> Result<Vec<Awaited>, MpiError> {
    let own = comm.rank();
    let packed: Vec<u8> = mine.iter().flat_map(|a| pack(u64::from(a.rank), a.begin_ns)).collect();
    let mut awaited = Vec::new();
    for waiter in 0..comm.size() {
        let bytes = if waiter == own { packed.clone() } else { Vec::new() };
        let all = comm.bcast_bytes(bytes, waiter)?;
        let for_me = unpack(&all).filter(|(rank, _)| *rank == own);
        awaited.extend(for_me.map(|(_, begin_ns)| (begin_ns, waiter as u32)));
    }
    awaited.sort_unstable();
    awaited.dedup();
    Ok(awaited)
}

/// What this rank waits for and never comes, from what each rank cannot deliver. Collective.
///
/// # Errors
/// MPI between the ranks.
pub(super) fn lost(comm: &Comm, not_there: &[u64]) -> Result<HashSet<After>, MpiError> {
    let packed: Vec<u8> = not_there.iter().flat_map(|begin_ns| pack(comm.rank(), *begin_ns)).collect();
    let mut lost = HashSet::new();
    for rank in 0..comm.size() {
        let bytes = if rank == comm.rank() { packed.clone() } else { Vec::new() };
        let all = comm.bcast_bytes(bytes, rank)?;
        lost.extend(unpack(&all).map(|(rank, begin_ns)| After { rank: rank as u32, begin_ns }));
    }
    Ok(lost)
}

fn pack(rank: u64, begin_ns: u64) -> [u8; 16] {
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&rank.to_le_bytes());
    bytes[8..].copy_from_slice(&begin_ns.to_le_bytes());
    bytes
}

fn unpack(bytes: &[u8]) -> impl Iterator<Item = (u64, u64)> + '_ {
    let number = |bytes: &[u8]| bytes.iter().rev().fold(0, |n, b| n << 8 | u64::from(*b));
    bytes.chunks_exact(16).map(move |b| (number(&b[..8]), number(&b[8..])))
}

/// What a call waits for.
#[derive(Debug)]
pub(super) struct Order<'a> {
    signals: Signals,
    /// Ends of other ranks that nobody here has asked for yet.
    ended: HashSet<After>,
    /// Those of them that more than one call may wait for.
    again: &'a HashSet<After>,
    interrupt: &'a Interrupt,
    patience: Duration,
    notes: Notes,
    /// Times that something had to be waited for, and how long.
    pub(super) waits: u64,
    pub(super) waited: Duration,
}

/// Questions after which a wait is none that passes at once.
const SHORT: u32 = 100;
/// Sent instead of a begin: the rank stops.
const STOPPED: u64 = u64::MAX;
/// Begins are below.
const MEETING: u64 = 1 << 63;

/// Sent instead of a begin: the rank has come to a meeting. 17 bits of the communicator, 40 of its number, 6 of the round. Numbers
/// repeat after more meetings than can be under way; communicators whose numbers are 131072 apart share their words.
fn meeting(comm: u32, number: u64, round: u64) -> u64 {
    MEETING | u64::from(comm & 0x1_ffff) << 46 | (number & ((1 << 40) - 1)) << 6 | round
}

/// What is waited for, as it is told.
fn other(after: After) -> Other {
    Other { rank: after.rank, call_ns: (after.begin_ns < MEETING).then_some(after.begin_ns & !READY) }
}

impl<'a> Order<'a> {
    /// Collective.
    pub(super) fn new(
        comm: &Comm,
        again: &'a HashSet<After>,
        interrupt: &'a Interrupt,
        patience: Duration,
        notes: Notes,
    ) -> Result<Self, MpiError> {
        let (ended, waited) = (HashSet::new(), Duration::ZERO);
        Ok(Self { signals: Signals::new(comm)?, ended, again, interrupt, patience, notes, waits: 0, waited })
    }

    /// Tells `rank` that a call of this one has ended.
    pub(super) fn tell(&mut self, rank: u32, begin_ns: u64) -> Result<(), MpiError> {
        self.signals.send(u64::from(rank), begin_ns)
    }

    /// Waits until a call of another rank has ended. False: a signal came here or there.
    ///
    /// # Errors
    /// MPI; it takes longer than anything should.
    pub(super) fn wait(&mut self, after: After, own: (u64, u64)) -> Result<bool, Stuck> {
        let went = self.until_ended(after, own);
        self.notes.leave();
        went
    }

    fn until_ended(&mut self, after: After, own: (u64, u64)) -> Result<bool, Stuck> {
        let begin = Instant::now();
        let mut turns = 0_u32;
        loop {
            // All that has come from there: what is not this call is kept for later.
            while let Some(begin_ns) = self.signals.receive(u64::from(after.rank))? {
                if begin_ns == STOPPED {
                    return Ok(false);
                }
                self.ended.insert(After { rank: after.rank, begin_ns });
            }
            let has_ended =
                if self.again.contains(&after) { self.ended.contains(&after) } else { self.ended.remove(&after) };
            if has_ended {
                break;
            }
            if self.interrupt.raised() {
                return Ok(false);
            }
            if begin.elapsed() > self.patience {
                let (rank, begin_ns) = own;
                return Err(Stuck::Calls(format!(
                    "rank {rank}: the call at {begin_ns} ns waited {:.0} s for {}. \
                     What rank {} says above of where it stands tells why. If it waits too, check the keys `after` and `met` of the profile; \
                     if it is in a call, the storage or the MPI library holds it there; if it says nothing, it is between two calls or at its end",
                    self.patience.as_secs_f64(),
                    other(after),
                    after.rank
                )));
            }
            turns = turns.saturating_add(1);
            if turns == SHORT {
                self.notes.enter(Place::Waits { begin_ns: own.1, other: other(after) });
            }
            // The other rank may need this core.
            if turns > SHORT {
                std::thread::yield_now();
            }
        }
        if turns > 0 {
            self.waits += 1;
            self.waited += begin.elapsed();
        }
        Ok(true)
    }

    /// Waits until all `members`, world ranks, are here: a barrier of messages to ranks that are 1, 2, 4 ... further. `number` counts the
    /// meetings of a communicator. False: a signal came here or there.
    ///
    /// # Errors
    /// As [`Order::wait`].
    pub(super) fn meet(&mut self, members: &[u32], (comm, number): (u32, u64), own: (u64, u64)) -> Result<bool, Stuck> {
        let Some(place) = members.iter().position(|rank| u64::from(*rank) == own.0) else { return Ok(true) };
        let all = members.len();
        let (mut distance, mut round) = (1, 0);
        while distance < all {
            let word = meeting(comm, number, round);
            self.tell(members[(place + distance) % all], word)?;
            let from = members[(place + all - distance) % all];
            if !self.wait(After { rank: from, begin_ns: word }, own)? {
                return Ok(false);
            }
            (distance, round) = (2 * distance, round + 1);
        }
        Ok(true)
    }

    /// Tells all others that this rank stops.
    pub(super) fn stop(&mut self, comm: &Comm) -> Result<(), MpiError> {
        (0..comm.size()).filter(|rank| *rank != comm.rank()).try_for_each(|rank| self.signals.send(rank, STOPPED))
    }

    /// Collective.
    pub(super) fn finish(self) -> Result<(), MpiError> {
        self.signals.finish()
    }
}
