//! Ranges of a file in limited memory.

use std::collections::BTreeMap;
use std::ops::Range;

use serde::{Deserialize, Serialize};

/// Maximum number of separate ranges. Beyond it, the closest ones are merged.
const MAX_RANGES: usize = 4096;

/// Ranges of a file; adjacent ones are merged.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct RangeSet {
    /// End of each range by its begin.
    pub(super) known: BTreeMap<u64, u64>,
    least_between_bytes: u64,
}

impl RangeSet {
    /// An empty set that also merges ranges with gaps of up to `gap_bytes`.
    pub(super) fn with_gaps_merged(gap_bytes: u64) -> Self {
        Self { known: BTreeMap::new(), least_between_bytes: gap_bytes }
    }

    pub(super) fn add(&mut self, range: Range<u64>) {
        self.join(range);
        while self.known.len() > MAX_RANGES {
            self.least_between_bytes = self.least_between_bytes.saturating_mul(2).max(1);
            for (begin, end) in std::mem::take(&mut self.known) {
                self.join(begin..end);
            }
        }
    }

    /// Adds the ranges of another set.
    pub(super) fn merge(&mut self, other: &Self) {
        other.known.iter().for_each(|(begin, end)| self.add(*begin..*end));
    }

    /// Sum of the lengths.
    pub(super) fn bytes(&self) -> u64 {
        self.known.iter().map(|(begin, end)| end.saturating_sub(*begin)).fold(0, u64::saturating_add)
    }

    fn join(&mut self, mut range: Range<u64>) {
        let most = range.end.saturating_add(self.least_between_bytes);
        let before = self.known.range(..=range.start).next_back();
        let is_near = |end: u64| end.saturating_add(self.least_between_bytes) >= range.start;
        let first = before.filter(|(_, end)| is_near(**end)).map_or(range.start, |(begin, _)| *begin);
        while let Some((&begin, &end)) = self.known.range(first..=most.max(first)).next() {
            range = range.start.min(begin)..range.end.max(end);
            self.known.remove(&begin);
        }
        self.known.insert(range.start, range.end);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_bounded_and_none_is_lost() {
        let mut ranges = RangeSet::default();
        (0..10_000).for_each(|n| ranges.add(n * 100..n * 100 + 10));
        assert!(ranges.known.len() <= MAX_RANGES);
        let covers = |at: u64| ranges.known.range(..=at).next_back().is_some_and(|(_, end)| *end >= at + 10);
        assert!((0..10_000).all(|n| covers(n * 100)));
        assert!((100_000..=1_000_000).contains(&ranges.bytes()), "{}", ranges.bytes());
    }

    #[test]
    fn small_gaps_are_merged_on_request() {
        let mut ranges = RangeSet::with_gaps_merged(5);
        [(0, 10), (15, 20), (26, 30)].into_iter().for_each(|(begin, end)| ranges.add(begin..end));
        assert_eq!((ranges.known.len(), ranges.bytes()), (2, 24));
    }
}
