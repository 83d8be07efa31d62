//! Where collective calls meet. A profile can end on one rank before a collective call that others still made: the others would wait
//! for ever. So they are counted on every rank before the run, and nobody goes further than the first call that does not meet.

use std::collections::BTreeMap;

use beff_trace::{Call, Function};
use serde::{Deserialize, Serialize};

/// An opening of a file as all its ranks know it: the communicator, and how many were opened with it before.
pub type Opening = (u32, u64);

/// Collective calls of one rank, by opening.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Meetings {
    /// Opening and calls: the opening itself and all that came after.
    pub counts: Vec<(Opening, u64)>,
}

/// Counts the collective calls of one rank as they come.
#[derive(Clone, Debug, Default)]
pub struct Counter {
    openings: BTreeMap<u32, u64>,
    of_handle: BTreeMap<u32, Opening>,
    counts: BTreeMap<Opening, u64>,
}

impl Counter {
    /// Takes a call in: the opening it belongs to and its number there, from 1; None: it is not collective.
    pub fn take(&mut self, call: &Call) -> Option<(Opening, u64)> {
        if !call.function.is_collective() {
            return None;
        }
        if call.function == Function::Open {
            let comm = call.comm?;
            let number = self.openings.entry(comm).or_default();
            self.of_handle.insert(call.handle?, (comm, *number));
            *number += 1;
        }
        let opening = *self.of_handle.get(&call.handle?)?;
        let count = self.counts.entry(opening).or_default();
        *count += 1;
        Some((opening, *count))
    }

    /// What was counted.
    #[must_use]
    pub fn finish(self) -> Meetings {
        Meetings { counts: self.counts.into_iter().collect() }
    }
}

/// How far each opening goes on all its ranks, where they differ. `ranks` has the world ranks of each communicator.
#[must_use]
pub fn limits(all: &[Meetings], ranks: &[Vec<u32>]) -> Vec<(Opening, u64)> {
    let mut least: BTreeMap<Opening, (u64, u64, usize)> = BTreeMap::new();
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

    fn count(functions: &[Function]) -> Meetings {
        let mut counter = Counter::default();
        for function in functions {
            counter.take(&Call { handle: Some(1), comm: Some(0), ..Call::new(*function, 0, 1) });
        }
        counter.finish()
    }

    #[test]
    fn a_rank_that_was_cut_limits_the_others() {
        use Function::{Close, Open, SetView, WriteAt, WriteAtAll};
        let whole = count(&[Open, SetView, WriteAt, WriteAtAll, Close]);
        assert_eq!(whole.counts, [((0, 0), 4)], "write_at is not collective");
        let cut = count(&[Open, SetView]);
        let comms = [vec![0, 1]];
        assert_eq!(limits(&[whole.clone(), whole.clone()], &comms), []);
        assert_eq!(limits(&[whole.clone(), cut], &comms), [((0, 0), 2)]);
        assert_eq!(limits(&[whole, Meetings::default()], &comms), [((0, 0), 0)], "one rank did not even open");
    }
}
