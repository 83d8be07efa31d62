//! Collective calls that not all have begun. To wait for a call that lies behind one of them would be to wait for oneself.

use std::collections::{HashMap, VecDeque};

/// Collective calls of one file and communicator that are remembered; older ones are taken as begun by all.
const MOST_OPEN: usize = 64;

#[derive(Debug, Default)]
struct Instance {
    /// Rank and begin of those that have begun it.
    begun: Vec<(u32, u64)>,
}

#[derive(Debug, Default)]
struct Group {
    /// Calls that each rank has begun.
    counts: HashMap<u32, u64>,
    /// Number of the first of `open`.
    first: u64,
    open: VecDeque<Instance>,
}

/// The communicators, and what is under way in them.
#[derive(Debug)]
pub(super) struct Together {
    /// World ranks in ascending order; empty: not known.
    members: Vec<Vec<u32>>,
    /// By file (None: not known) and communicator.
    groups: HashMap<(Option<u32>, u32), Group>,
    open_groups: Vec<(Option<u32>, u32)>,
}

impl Together {
    /// `is_there` tells which ranks were recorded at all.
    pub(super) fn new(comms: &[Vec<u32>], is_there: impl Fn(u32) -> bool) -> Self {
        let sorted = |comm: &Vec<u32>| {
            let mut members: Vec<u32> = comm.iter().copied().filter(|rank| is_there(*rank)).collect();
            members.sort_unstable();
            members
        };
        Self { members: comms.iter().map(sorted).collect(), groups: HashMap::new(), open_groups: Vec::new() }
    }

    /// True if the rank is in the communicator, or if that is not known.
    pub(super) fn is_member(&self, comm: Option<u32>, rank: u32) -> bool {
        match comm.and_then(|comm| self.members.get(comm as usize)) {
            Some(members) if !members.is_empty() => members.binary_search(&rank).is_ok(),
            _ => true,
        }
    }

    /// A rank begins a collective call.
    pub(super) fn begin(&mut self, rank: u32, file: Option<u32>, comm: u32, begin_ns: u64) {
        let all = self.members.get(comm as usize).map_or(0, Vec::len);
        if all < 2 {
            return;
        }
        let group = self.groups.entry((file, comm)).or_default();
        let count = group.counts.entry(rank).or_default();
        let number = *count;
        *count += 1;
        let Some(index) = number.checked_sub(group.first).and_then(|index| usize::try_from(index).ok()) else { return };
        let was_open = !group.open.is_empty();
        while group.open.len() <= index {
            group.open.push_back(Instance::default());
        }
        group.open[index].begun.push((rank, begin_ns));
        while group.open.front().is_some_and(|first| first.begun.len() >= all) || group.open.len() > MOST_OPEN {
            group.open.pop_front();
            group.first += 1;
        }
        match (was_open, group.open.is_empty()) {
            (false, false) => self.open_groups.push((file, comm)),
            (true, true) => self.open_groups.retain(|key| *key != (file, comm)),
            _ => {}
        }
    }

    /// True if `rank` may wait for the call of `peer` that began then: it has begun everything that `peer` had begun with it before.
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
