//! Collective calls that not all ranks have begun. A dependency on a call after one of them would be a deadlock.

use std::collections::{HashMap, VecDeque};

/// Maximum number of open collective calls per file and communicator; older ones count as begun by all.
const MAX_OPEN_INSTANCES: usize = 64;

#[derive(Debug, Default)]
struct CollectiveInstance {
    /// Ranks that have begun it, with their begin.
    begun: Vec<(u32, u64)>,
    /// When the last rank was ready for it, if the ranks synchronized before.
    barrier_end_ns: Option<u64>,
}

/// A rank shortly before a collective call.
#[derive(Clone, Copy, Debug)]
pub(super) struct RankReadiness {
    /// End of its previous call.
    pub(super) ended_ns: u64,
    /// Begin of its next call, if that is the same collective one.
    pub(super) next_begin_ns: Option<u64>,
}

/// After a synchronization ranks begin closer together, by this factor, than they were ready.
const BARRIER_FACTOR: u64 = 4;

/// Returns when the last rank was ready, if the ranks synchronized, as by a barrier: all were ready before the first began, and they begin
/// much closer together than they were ready. `first_ns` is the begin of the first.
fn barrier_end_ns(first_ns: u64, ranks: impl Iterator<Item = RankReadiness>) -> Option<u64> {
    let (mut ready, mut last_begin) = ((u64::MAX, 0), first_ns);
    for rank in ranks {
        last_begin = last_begin.max(rank.next_begin_ns?);
        ready = (ready.0.min(rank.ended_ns), ready.1.max(rank.ended_ns));
    }
    let apart = ready.1.checked_sub(ready.0)?;
    let is_close = (last_begin - first_ns).checked_mul(BARRIER_FACTOR).is_some_and(|begins| begins <= apart);
    (ready.1 <= first_ns && is_close).then_some(ready.1)
}

#[derive(Debug, Default)]
struct CollectiveGroup {
    /// Number of calls that each rank has begun.
    counts: HashMap<u32, u64>,
    /// Number of the first call in `open`.
    first_open: u64,
    open: VecDeque<CollectiveInstance>,
    /// Number of the call before `first_open`, and the begin of its first rank.
    last_closed: Option<(u64, u64)>,
}

/// Communicators and their open collective calls.
#[derive(Debug)]
pub(super) struct CollectiveTracker {
    /// World ranks in ascending order; empty if unknown.
    members: Vec<Vec<u32>>,
    /// First rank of each communicator.
    first_ranks: Vec<Option<u32>>,
    /// By file (None if unknown) and communicator.
    groups: HashMap<(Option<u32>, u32), CollectiveGroup>,
    open_groups: Vec<(Option<u32>, u32)>,
}

impl CollectiveTracker {
    /// `is_there` is true for recorded ranks.
    pub(super) fn new(comms: &[Vec<u32>], is_there: impl Fn(u32) -> bool) -> Self {
        let sorted = |comm: &Vec<u32>| {
            let mut members: Vec<u32> = comm.iter().copied().filter(|rank| is_there(*rank)).collect();
            members.sort_unstable();
            members
        };
        Self {
            members: comms.iter().map(sorted).collect(),
            first_ranks: comms.iter().map(|comm| comm.first().copied()).collect(),
            groups: HashMap::new(),
            open_groups: Vec::new(),
        }
    }

    /// True if the rank is in the communicator, or if that is unknown.
    pub(super) fn is_member(&self, comm: Option<u32>, rank: u32) -> bool {
        match comm.and_then(|comm| self.members.get(comm as usize)) {
            Some(members) if !members.is_empty() => members.binary_search(&rank).is_ok(),
            _ => true,
        }
    }

    /// True for the rank that creates the files of a communicator, and reports their state best.
    pub(super) fn is_first(&self, comm: Option<u32>, rank: u32) -> bool {
        comm.and_then(|comm| self.first_ranks.get(comm as usize).copied()) == Some(Some(rank))
    }

    /// Begin of a collective call that this rank has just begun, by its first rank. None if it is long past.
    pub(super) fn first_begin_ns(&self, rank: u32, key: (Option<u32>, u32)) -> Option<u64> {
        let group = self.groups.get(&key)?;
        let number = group.counts.get(&rank)?.checked_sub(1)?;
        if number < group.first_open {
            return group.last_closed.filter(|(closed, _)| *closed == number).map(|(_, first_ns)| first_ns);
        }
        let instance = group.open.get(usize::try_from(number - group.first_open).ok()?)?;
        instance.begun.first().map(|(_, begin_ns)| *begin_ns)
    }

    /// Ranks that have begun the next collective call of `rank`, with their begin. No call can wait for what they did after it: a library
    /// that synchronizes the ranks in this call would never issue it.
    pub(super) fn begun_by_others(&self, rank: u32, key: (Option<u32>, u32)) -> &[(u32, u64)] {
        let group = self.groups.get(&key);
        let instance = group.and_then(|group| {
            let number = group.counts.get(&rank).copied().unwrap_or(0);
            group.open.get(usize::try_from(number.checked_sub(group.first_open)?).ok()?)
        });
        instance.map_or(&[], |instance| &instance.begun)
    }

    /// A rank begins a collective call. `ready` returns the state of the other ranks. Returns the time since the last of them was ready, if
    /// the ranks synchronized before this call.
    pub(super) fn begin(
        &mut self,
        rank: u32,
        (file, comm): (Option<u32>, u32),
        begin_ns: u64,
        ready: impl Fn(u32) -> Option<RankReadiness>,
    ) -> Option<u64> {
        let members = self.members.get(comm as usize).filter(|members| members.len() > 1)?;
        let all = members.len();
        let group = self.groups.entry((file, comm)).or_default();
        let count = group.counts.entry(rank).or_default();
        let number = *count;
        *count += 1;
        let index = number.checked_sub(group.first_open).and_then(|index| usize::try_from(index).ok())?;
        let was_open = !group.open.is_empty();
        while group.open.len() <= index {
            group.open.push_back(CollectiveInstance::default());
        }
        if group.open[index].begun.is_empty() {
            let count_of = |peer: &u32| group.counts.get(peer).copied().unwrap_or(0);
            let is_next = |peer: &u32| *peer == rank || count_of(peer) == number;
            let known: Option<Vec<_>> = members.iter().map(|peer| ready(*peer).filter(|_| is_next(peer))).collect();
            group.open[index].barrier_end_ns = known.and_then(|ranks| barrier_end_ns(begin_ns, ranks.into_iter()));
        }
        let ready_ns = group.open[index].barrier_end_ns;
        group.open[index].begun.push((rank, begin_ns));
        while group.open.front().is_some_and(|first| first.begun.len() >= all) || group.open.len() > MAX_OPEN_INSTANCES
        {
            let first = group.open.pop_front().and_then(|instance| instance.begun.first().copied());
            group.last_closed = first.map(|(_, begin_ns)| (group.first_open, begin_ns));
            group.first_open += 1;
        }
        match (was_open, group.open.is_empty()) {
            (false, false) => self.open_groups.push((file, comm)),
            (true, true) => self.open_groups.retain(|key| *key != (file, comm)),
            _ => {}
        }
        ready_ns.and_then(|ready_ns| begin_ns.checked_sub(ready_ns))
    }

    /// True if `rank` may depend on the call of `peer` that began then: it has begun all collective calls that `peer` had begun with it
    /// before.
    pub(super) fn may_wait(&self, rank: u32, peer: u32, peer_begin_ns: u64) -> bool {
        self.open_groups.iter().all(|key| {
            let of_both = self.is_member(Some(key.1), rank);
            let open = self.groups.get(key).map(|group| group.open.iter()).into_iter().flatten();
            !of_both
                || open.into_iter().all(|instance| {
                    let peer_is_in = instance.begun.iter().any(|(r, begin)| *r == peer && *begin <= peer_begin_ns);
                    !peer_is_in || instance.begun.iter().any(|(r, _)| *r == rank)
                })
        })
    }
}
