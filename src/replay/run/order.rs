//! Order between ranks: a call waits for calls of other ranks that had ended before it began and touched the same bytes.
//!
//! Before the run every rank sends the calls that it waits for. During the run a rank notifies the waiting ranks as soon as such a call
//! has ended, by the begin of the call.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use beff_ffi::{Comm, MpiError, Notifications};
use beff_trace::CallId;

use super::stall_watch::{ActivityNote, AwaitedRank, RankActivity};
use super::ReplayAbort;
use crate::frame::run::interrupt::Interrupt;
use crate::replay::plan::preparation::PREPARED_TAG;

/// Begin of a call of this rank, and a rank that waits for its end.
pub(super) type AwaitedCall = (u64, u32);

/// Calls of this rank that others wait for, in the order of their begins. `mine`: the calls this rank waits for. Collective.
///
/// # Errors
/// MPI between the ranks.
pub(super) fn exchange_awaited_calls(comm: &Comm, mine: &[CallId]) -> Result<Vec<AwaitedCall>, MpiError> {
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

/// Calls that some rank waits for and that are never issued, from the missing calls of each rank. Collective.
///
/// # Errors
/// MPI between the ranks.
pub(super) fn find_lost_calls(comm: &Comm, not_there: &[u64]) -> Result<HashSet<CallId>, MpiError> {
    let packed: Vec<u8> = not_there.iter().flat_map(|begin_ns| pack(comm.rank(), *begin_ns)).collect();
    let mut lost = HashSet::new();
    for rank in 0..comm.size() {
        let bytes = if rank == comm.rank() { packed.clone() } else { Vec::new() };
        let all = comm.bcast_bytes(bytes, rank)?;
        lost.extend(unpack(&all).map(|(rank, begin_ns)| CallId { rank: rank as u32, begin_ns }));
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

#[derive(Debug)]
pub(super) struct CallOrder<'a> {
    signals: Notifications,
    /// Received ends that no call has waited for yet.
    ended: HashSet<CallId>,
    /// Calls that several calls of this rank may wait for.
    shared_waits: &'a HashSet<CallId>,
    interrupt: &'a Interrupt,
    timeout: Duration,
    activity: ActivityNote,
    /// Number of waits, and their duration.
    pub(super) waits: u64,
    pub(super) wait_time: Duration,
}

/// Polls after which a wait counts as long.
const SPIN_POLLS: u32 = 100;
/// Sent instead of a begin: the rank stops.
const STOPPED_WORD: u64 = u64::MAX;
/// Larger than any begin.
const BARRIER_TAG: u64 = 1 << 63;

/// Message of a barrier, sent instead of a begin: 17 bits of the communicator, 40 of the number of the barrier, 6 of its round. Numbers
/// repeat only after more barriers than can be in flight; communicators whose numbers differ by 131072 share messages.
fn barrier_word(comm: u32, number: u64, round: u64) -> u64 {
    BARRIER_TAG | u64::from(comm & 0x1_ffff) << 46 | (number & ((1 << 40) - 1)) << 6 | round
}

fn awaited_rank(after: CallId) -> AwaitedRank {
    AwaitedRank { rank: after.rank, call_ns: (after.begin_ns < BARRIER_TAG).then_some(after.begin_ns & !PREPARED_TAG) }
}

impl<'a> CallOrder<'a> {
    /// Collective.
    pub(super) fn new(
        comm: &Comm,
        again: &'a HashSet<CallId>,
        interrupt: &'a Interrupt,
        patience: Duration,
        notes: ActivityNote,
    ) -> Result<Self, MpiError> {
        let (ended, waited) = (HashSet::new(), Duration::ZERO);
        Ok(Self {
            signals: Notifications::new(comm)?,
            ended,
            shared_waits: again,
            interrupt,
            timeout: patience,
            activity: notes,
            waits: 0,
            wait_time: waited,
        })
    }

    pub(super) fn notify(&mut self, rank: u32, begin_ns: u64) -> Result<(), MpiError> {
        self.signals.send(u64::from(rank), begin_ns)
    }

    /// Waits until a call of another rank has ended. False after a signal on either rank.
    ///
    /// # Errors
    /// MPI; the timeout of a wait.
    pub(super) fn wait(&mut self, after: CallId, own: (u64, u64)) -> Result<bool, ReplayAbort> {
        let went = self.poll_until_ended(after, own);
        self.activity.leave();
        went
    }

    fn poll_until_ended(&mut self, after: CallId, own: (u64, u64)) -> Result<bool, ReplayAbort> {
        let begin = Instant::now();
        let mut turns = 0_u32;
        loop {
            // Ends of other calls are stored for later waits.
            while let Some(begin_ns) = self.signals.receive(u64::from(after.rank))? {
                if begin_ns == STOPPED_WORD {
                    return Ok(false);
                }
                self.ended.insert(CallId { rank: after.rank, begin_ns });
            }
            let has_ended = if self.shared_waits.contains(&after) {
                self.ended.contains(&after)
            } else {
                self.ended.remove(&after)
            };
            if has_ended {
                break;
            }
            if self.interrupt.is_raised() {
                return Ok(false);
            }
            if begin.elapsed() > self.timeout {
                let (rank, begin_ns) = own;
                return Err(ReplayAbort::Calls(format!(
                    "rank {rank}: the call at {begin_ns} ns waited {:.0} s for {}. \
                     What rank {} reports above about its position gives the reason. If it waits too, check the keys `after` and `met` \
                     of the profile; if it is in a call, the storage or the MPI library blocks it; if it reports nothing, it is between \
                     two calls or has ended",
                    self.timeout.as_secs_f64(),
                    awaited_rank(after),
                    after.rank
                )));
            }
            turns = turns.saturating_add(1);
            if turns == SPIN_POLLS {
                self.activity.enter(RankActivity::Waiting { begin_ns: own.1, awaited: awaited_rank(after) });
            }
            // The other rank may need this core.
            if turns > SPIN_POLLS {
                std::thread::yield_now();
            }
        }
        if turns > 0 {
            self.waits += 1;
            self.wait_time += begin.elapsed();
        }
        Ok(true)
    }

    /// Barrier over `members` (world ranks) by messages to ranks at distance 1, 2, 4, ... `number` counts the barriers of a communicator.
    /// False after a signal on any of them.
    ///
    /// # Errors
    /// As [`CallOrder::wait`].
    pub(super) fn barrier(
        &mut self,
        members: &[u32],
        (comm, number): (u32, u64),
        own: (u64, u64),
    ) -> Result<bool, ReplayAbort> {
        let Some(place) = members.iter().position(|rank| u64::from(*rank) == own.0) else { return Ok(true) };
        let all = members.len();
        let (mut distance, mut round) = (1, 0);
        while distance < all {
            let word = barrier_word(comm, number, round);
            self.notify(members[(place + distance) % all], word)?;
            let from = members[(place + all - distance) % all];
            if !self.wait(CallId { rank: from, begin_ns: word }, own)? {
                return Ok(false);
            }
            (distance, round) = (2 * distance, round + 1);
        }
        Ok(true)
    }

    pub(super) fn notify_stop(&mut self, comm: &Comm) -> Result<(), MpiError> {
        (0..comm.size()).filter(|rank| *rank != comm.rank()).try_for_each(|rank| self.signals.send(rank, STOPPED_WORD))
    }

    /// Collective.
    pub(super) fn finish(self) -> Result<(), MpiError> {
        self.signals.finish()
    }
}
