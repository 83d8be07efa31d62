//! Counts of collective calls. The profile of a rank can end before a collective call that others issued: they would wait forever. So
//! collective calls are counted on every rank before the run, and no rank proceeds beyond the first unmatched one.

use std::collections::BTreeMap;

use beff_trace::{Call, Function};
use serde::{Deserialize, Serialize};

/// Identity of an opening on all its ranks: the communicator, and the number of earlier openings with it.
pub type OpeningId = (u32, u64);

/// Collective calls of one rank, by opening.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CollectiveCounts {
    /// Opening and number of calls, including the opening itself.
    pub counts: Vec<(OpeningId, u64)>,
}

/// Counts the collective calls of one rank.
#[derive(Clone, Debug, Default)]
pub struct CollectiveCounter {
    openings: BTreeMap<u32, u64>,
    opening_of_handle: BTreeMap<u32, OpeningId>,
    counts: BTreeMap<OpeningId, u64>,
}

impl CollectiveCounter {
    /// Counts a call: its opening and its number there, from 1; None if not collective.
    pub fn count_call(&mut self, call: &Call) -> Option<(OpeningId, u64)> {
        if !call.function.is_collective() {
            return None;
        }
        if call.function == Function::Open {
            let comm = call.comm?;
            let number = self.openings.entry(comm).or_default();
            self.opening_of_handle.insert(call.handle?, (comm, *number));
            *number += 1;
        }
        let opening = *self.opening_of_handle.get(&call.handle?)?;
        let count = self.counts.entry(opening).or_default();
        *count += 1;
        Some((opening, *count))
    }

    /// The counts.
    #[must_use]
    pub fn finish(self) -> CollectiveCounts {
        CollectiveCounts { counts: self.counts.into_iter().collect() }
    }
}

/// Number of calls of each opening that all its ranks issue, where they differ. `ranks` has the world ranks of each communicator.
#[must_use]
pub fn collective_limits(all: &[CollectiveCounts], ranks: &[Vec<u32>]) -> Vec<(OpeningId, u64)> {
    let mut least: BTreeMap<OpeningId, (u64, u64, usize)> = BTreeMap::new();
    for meetings in all {
        for (opening, count) in &meetings.counts {
            let (low, high, members) = least.entry(*opening).or_insert((*count, *count, 0));
            *low = (*low).min(*count);
            *high = (*high).max(*count);
            *members += 1;
        }
    }
    let whole = |comm: u32| ranks.get(comm as usize).map_or(0, Vec::len);
    let differing = least.into_iter().filter_map(|(opening, (low, high, members))| {
        let low = if members < whole(opening.0) { 0 } else { low };
        (low < high).then_some((opening, low))
    });
    differing.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(functions: &[Function]) -> CollectiveCounts {
        let mut counter = CollectiveCounter::default();
        for function in functions {
            counter.count_call(&Call { handle: Some(1), comm: Some(0), ..Call::new(*function, 0, 1) });
        }
        counter.finish()
    }

    #[test]
    fn a_truncated_rank_limits_the_others() {
        use Function::{Close, Open, SetView, WriteAt, WriteAtAll};
        let whole = count(&[Open, SetView, WriteAt, WriteAtAll, Close]);
        assert_eq!(whole.counts, [((0, 0), 4)], "write_at is not collective");
        let cut = count(&[Open, SetView]);
        let comms = [vec![0, 1]];
        assert_eq!(collective_limits(&[whole.clone(), whole.clone()], &comms), []);
        assert_eq!(collective_limits(&[whole.clone(), cut], &comms), [((0, 0), 2)]);
        assert_eq!(
            collective_limits(&[whole, CollectiveCounts::default()], &comms),
            [((0, 0), 0)],
            "one rank did not open the file"
        );
    }
}
