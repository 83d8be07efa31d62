//! Time in collective calls until the last rank has begun them.

use std::collections::HashMap;

/// Maximum number of collective calls that are kept; beyond it every second one is dropped.
const MAX_CALLS: usize = 1 << 20;

/// One collective call, seen from all ranks.
#[derive(Clone, Copy, Debug)]
struct CollectiveCall {
    ranks: u32,
    last_rank: u32,
    last_begin_ns: u64,
    /// Sum of the begins, relative to that of the first seen rank.
    first_begin_ns: u64,
    begins_ns: i64,
    total_ns: u64,
    shortest_ns: u64,
}

/// Opening of a file by a communicator, counted by each of its ranks; and the number of the call.
type CallKey = (u32, u32, u32, u64);

/// All collective calls.
#[derive(Clone, Debug, Default)]
pub(super) struct CollectiveWaits {
    calls: HashMap<CallKey, CollectiveCall>,
    /// Calls whose number is a multiple of 2^n are kept.
    sampling_bits: u32,
}

/// Waiting time.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct WaitTotals {
    pub ns: u64,
    /// The rank that others waited for most, and how long.
    pub last_rank: Option<(u32, u64)>,
    pub is_sampled: bool,
}

impl CollectiveWaits {
    pub fn add(&mut self, key: CallKey, rank: u32, begin_ns: u64, ns: u64) {
        if key.3 & ((1 << self.sampling_bits) - 1) != 0 {
            return;
        }
        let call = self.calls.entry(key).or_insert(CollectiveCall {
            ranks: 0,
            last_rank: rank,
            last_begin_ns: begin_ns,
            first_begin_ns: begin_ns,
            begins_ns: 0,
            total_ns: 0,
            shortest_ns: ns,
        });
        call.ranks += 1;
        if begin_ns > call.last_begin_ns {
            (call.last_rank, call.last_begin_ns) = (rank, begin_ns);
        }
        call.begins_ns = call.begins_ns.saturating_add_unsigned(begin_ns).saturating_sub_unsigned(call.first_begin_ns);
        call.total_ns = call.total_ns.saturating_add(ns);
        call.shortest_ns = call.shortest_ns.min(ns);
        if self.calls.len() > MAX_CALLS && self.sampling_bits < 60 {
            self.sampling_bits += 1;
            let mask = (1 << self.sampling_bits) - 1;
            self.calls.retain(|key, _| key.3 & mask == 0);
        }
    }

    /// Waiting time of all ranks. Nobody waits longer than the last rank is late, or than the call takes beyond the shortest one.
    pub fn totals(&self) -> WaitTotals {
        let (mut sum, mut by_rank): (u64, HashMap<u32, u64>) = (0, HashMap::new());
        for call in self.calls.values().filter(|call| call.ranks > 1) {
            let late = i128::from(call.ranks)
                * i128::from(call.last_begin_ns - call.first_begin_ns.min(call.last_begin_ns))
                - i128::from(call.begins_ns);
            let longer = call.total_ns - u64::from(call.ranks).saturating_mul(call.shortest_ns).min(call.total_ns);
            let wait = u64::try_from(late).unwrap_or(0).min(longer);
            sum = sum.saturating_add(wait);
            let of_rank = by_rank.entry(call.last_rank).or_default();
            *of_rank = of_rank.saturating_add(wait);
        }
        let scale = |ns: u64| ns.saturating_mul(1 << self.sampling_bits);
        let last = by_rank.into_iter().max_by_key(|(rank, ns)| (*ns, std::cmp::Reverse(*rank)));
        WaitTotals {
            ns: scale(sum),
            last_rank: last.map(|(rank, ns)| (rank, scale(ns))),
            is_sampled: self.sampling_bits > 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_wait_for_the_last_one_and_not_longer_than_the_call() {
        let totals = |calls: &[(u64, u32, u64, u64)]| {
            let mut waits = CollectiveWaits::default();
            calls.iter().for_each(|(number, rank, begin, ns)| waits.add((0, 0, 0, *number), *rank, *begin, *ns));
            waits.totals()
        };
        // Rank 2 comes 100 and 90 late; the call itself takes 10.
        let one = [(0, 0, 0, 110), (0, 1, 10, 100), (0, 2, 100, 10)];
        assert_eq!(totals(&one), WaitTotals { ns: 190, last_rank: Some((2, 190)), is_sampled: false });
        let reversed: Vec<_> = one.iter().rev().copied().collect();
        assert_eq!(totals(&reversed).ns, 190);
        // A call that does not synchronize: nobody waits.
        assert_eq!(totals(&[(0, 0, 0, 10), (0, 1, 1000, 10)]).ns, 0);
        assert_eq!(totals(&[(0, 0, 0, 500), (1, 1, 1000, 10)]).ns, 0);
        assert_eq!(totals(&[]), WaitTotals::default());
    }

    #[test]
    fn many_calls_are_sampled() {
        let mut waits = CollectiveWaits::default();
        let calls = (MAX_CALLS as u64) * 2 + 10;
        for rank in 0..2 {
            (0..calls)
                .for_each(|n| waits.add((0, 0, 0, n), rank, n * 100 + u64::from(rank) * 20, 30 - u64::from(rank) * 20));
        }
        let totals = waits.totals();
        assert!(totals.is_sampled && waits.calls.len() <= MAX_CALLS + 1);
        assert!((totals.ns as f64 / (calls as f64 * 20.0) - 1.0).abs() < 0.01, "{totals:?}");
    }
}
