//! Gaps that an MPI library may have written into. It may write a strided access as one block that it has read before (data sieving), and the
//! gaps of a collective one likewise: beyond the end of the file they hold what its buffer held. MPI says nothing of bytes that no call wrote.

use std::collections::BTreeMap;
use std::ops::Range;

use beff_trace::layout::Layouts;
use beff_trace::places::Access;
use serde::{Deserialize, Serialize};

/// Ranges of a file that are told apart. With more, those with the least between them become one.
const MOST_RANGES: usize = 4096;

/// Ranges of a file, joined where they meet.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Ranges {
    /// End of each begin.
    known: BTreeMap<u64, u64>,
    /// What lies between two of them is at least this.
    least_between_bytes: u64,
}

impl Ranges {
    fn add(&mut self, range: Range<u64>) {
        self.join(range);
        while self.known.len() > MOST_RANGES {
            self.least_between_bytes = self.least_between_bytes.saturating_mul(2).max(1);
            for (begin, end) in std::mem::take(&mut self.known) {
                self.join(begin..end);
            }
        }
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

/// Where the library may have written into gaps of one file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Gaps {
    /// Accesses with gaps of their own, from their first byte to the last one.
    strided: Ranges,
    /// Collective writes of several ranks, from the first byte of all to the last one.
    together: Option<[u64; 2]>,
}

impl Gaps {
    /// A write; `together`: several ranks call it. None: nobody knows where it lies.
    pub fn add(&mut self, access: Option<&Access>, layouts: &Layouts, together: bool) {
        let Some(access) = access else { return self.strided.add(0..u64::MAX) };
        let is_run = access.extents(layouts).next().is_none_or(|extent| extent.bytes >= access.bytes);
        let hull = access.hull(layouts);
        let [begin, end] = [hull.start, hull.end].map(|at| u64::try_from(at).unwrap_or(0));
        if begin >= end {
            return;
        }
        if together {
            let [first, last] = self.together.unwrap_or([begin, end]);
            self.together = Some([first.min(begin), last.max(end)]);
        } else if !is_run {
            self.strided.add(begin..end);
        }
    }

    /// Takes in what another rank found.
    pub fn merge(&mut self, other: &Self) {
        other.strided.known.iter().for_each(|(begin, end)| self.strided.add(*begin..*end));
        if let Some([begin, end]) = other.together {
            let [first, last] = self.together.unwrap_or([begin, end]);
            self.together = Some([first.min(begin), last.max(end)]);
        }
    }

    /// True if nothing was written with gaps.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.strided.known.is_empty() && self.together.is_none()
    }

    /// The first part of a range, and whether the library may have written there.
    #[must_use]
    pub fn first_part(&self, range: &Range<u64>) -> (u64, bool) {
        let together = self.together.map(|[begin, end]| begin..end);
        let before = self.strided.known.range(..=range.start).next_back().map(|(begin, end)| *begin..*end);
        let holds = [before, together.clone()].into_iter().flatten().filter(|held| held.contains(&range.start));
        if let Some(end) = holds.map(|held| held.end).max() {
            return (end.min(range.end) - range.start, true);
        }
        let next = self.strided.known.range(range.start..).next().map(|(begin, _)| *begin);
        let others = [next, together.map(|held| held.start).filter(|begin| *begin > range.start)];
        let end = others.into_iter().flatten().min().unwrap_or(u64::MAX);
        (end.min(range.end) - range.start, false)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_range_falls_into_parts_that_are_in_or_out(
            all in proptest::collection::vec((0_u64..1000, 1_u64..60), 0..40), together: Option<(u8, u8)>
        ) {
            let mut gaps = Gaps { together: together.map(|(a, b)| [u64::from(a), u64::from(a) + u64::from(b) + 1]), ..Gaps::default() };
            all.iter().for_each(|(begin, bytes)| gaps.strided.add(*begin..begin + bytes));
            let mut at = 0;
            while at < 1200 {
                let (bytes, is_in) = gaps.first_part(&(at..1200));
                prop_assert!(bytes > 0);
                for byte in at..at + bytes {
                    let strided = all.iter().any(|(begin, bytes)| (*begin..begin + bytes).contains(&byte));
                    let held = gaps.together.is_some_and(|[begin, end]| (begin..end).contains(&byte));
                    prop_assert_eq!(strided || held, is_in, "byte {}", byte);
                }
                at += bytes;
            }
        }
    }

    #[test]
    fn so_many_ranges_become_fewer_and_none_is_forgotten() {
        let mut gaps = Gaps::default();
        (0..10_000).for_each(|n| gaps.strided.add(n * 100..n * 100 + 10));
        assert!(gaps.strided.known.len() <= MOST_RANGES);
        assert!((0..10_000).all(|n| gaps.first_part(&(n * 100..n * 100 + 10)) == (10, true)));
        gaps.strided.add(0..u64::MAX);
        assert_eq!(gaps.first_part(&(5..u64::MAX - 1)), (u64::MAX - 6, true));
    }
}
