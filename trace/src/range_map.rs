//! Values of disjoint ranges of offsets.

use std::collections::BTreeMap;

/// Values by the begin of their range, with its end.
#[derive(Clone, Debug)]
pub(crate) struct RangeMap<T> {
    ranges: BTreeMap<u64, (u64, T)>,
}

impl<T> Default for RangeMap<T> {
    fn default() -> Self {
        Self { ranges: BTreeMap::new() }
    }
}

impl<T: Copy> RangeMap<T> {
    /// Removes and returns the next range inside these bounds, with its begin and end; ranges that cross them are split.
    pub fn take(&mut self, at: u64, end: u64) -> Option<(u64, u64, T)> {
        if let Some((begin, (old_end, value))) =
            self.ranges.range(..at).next_back().map(|(begin, range)| (*begin, *range))
        {
            if old_end > at {
                self.ranges.insert(begin, (at, value));
                self.ranges.insert(at, (old_end, value));
            }
        }
        let (begin, (old_end, value)) = self.ranges.range(at..end).next().map(|(begin, range)| (*begin, *range))?;
        self.ranges.remove(&begin);
        if old_end > end {
            self.ranges.insert(end, (old_end, value));
        }
        Some((begin, old_end.min(end), value))
    }

    /// Sets the value of a range from which all others were taken.
    pub fn insert(&mut self, at: u64, end: u64, value: T) {
        self.ranges.insert(at, (end, value));
    }

    /// The parts of the ranges inside these bounds, with their begin and end.
    pub fn overlapping(&self, at: u64, end: u64) -> impl Iterator<Item = (u64, u64, T)> + '_ {
        let first = self.ranges.range(..=at).next_back().map_or(at, |(begin, _)| *begin);
        let inside = self.ranges.range(first..end.max(first)).filter(move |(_, (old_end, _))| *old_end > at);
        inside.map(move |(begin, (old_end, value))| (at.max(*begin), end.min(*old_end), *value))
    }

    /// The value of the last range.
    pub fn last(&self) -> Option<T> {
        self.ranges.last_key_value().map(|(_, (_, value))| *value)
    }
}
