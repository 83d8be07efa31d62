//! Rate of the calls of one repetition: bytes of all ranks, over the time of the rank that is longest in its calls.
//!
//! Bandwidth per process, which compares a replay with its recording, would not change if one rank did the work of all.

use std::collections::BTreeMap;

use crate::replay::plan::{CallClass, CallTally};
use crate::replay::records::ProcessRecord;

/// Bytes of all ranks and time of the slowest one.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct CallTotals {
    /// Bytes of all ranks.
    pub bytes: u64,
    /// Time in the calls of the slowest rank.
    pub seconds: f64,
}

impl CallTotals {
    /// Totals of the calls of these classes.
    #[must_use]
    pub fn of(processes: &[ProcessRecord], which: impl Fn(CallClass) -> bool) -> Self {
        let mut ranks: BTreeMap<u64, CallTally> = BTreeMap::new();
        for record in processes.iter().filter(|record| which(record.class)) {
            ranks.entry(record.rank).or_default().add(&record.both.replayed);
        }
        let longer = |all: Self, rank: &CallTally| Self {
            bytes: all.bytes.saturating_add(rank.bytes),
            seconds: all.seconds.max(rank.seconds),
        };
        ranks.values().fold(Self::default(), longer)
    }

    /// Bandwidth; 0 without time.
    #[must_use]
    pub fn bytes_per_second(&self) -> f64 {
        if self.seconds > 0.0 {
            self.bytes as f64 / self.seconds
        } else {
            0.0
        }
    }
}

/// The classes that transfer data, in the order of tables, with their totals.
#[must_use]
pub fn data_classes(processes: &[ProcessRecord]) -> Vec<(CallClass, CallTotals)> {
    let of_class = |class: CallClass| (class, CallTotals::of(processes, |other| other == class));
    CallClass::ALL.into_iter().map(of_class).filter(|(_, totals)| totals.bytes > 0).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::replay::plan::TallyPair;

    #[test]
    fn the_slowest_rank_is_the_one_that_is_longest_in_all_its_calls() {
        let record = |rank, class, bytes, seconds| {
            let replayed = CallTally { calls: 1, bytes, seconds };
            let both = TallyPair { replayed, ..TallyPair::default() };
            ProcessRecord { backend: "mpiio".into(), repetition: 1, rank, class, both }
        };
        let all = [
            record(0, CallClass::Write, 100, 3.0),
            record(0, CallClass::Read, 50, 1.0),
            record(0, CallClass::Open, 0, 1.0),
            record(1, CallClass::Write, 100, 1.0),
            record(1, CallClass::Read, 50, 2.0),
        ];
        let total = CallTotals::of(&all, |_| true);
        assert_eq!((total, total.bytes_per_second()), (CallTotals { bytes: 300, seconds: 5.0 }, 60.0));
        let of = |class, bytes, seconds| (class, CallTotals { bytes, seconds });
        assert_eq!(data_classes(&all), [of(CallClass::Read, 100, 2.0), of(CallClass::Write, 200, 3.0)]);
        assert_eq!(CallTotals::of(&[], |_| true).bytes_per_second(), 0.0);
    }
}
