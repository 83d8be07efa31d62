//! Gaps that an MPI library may have overwritten. It may write a strided access as one block that it has read before (data sieving), and
//! likewise the gaps of a collective one: beyond the end of the file they hold the content of its buffer. MPI does not define bytes that
//! no call wrote.

use std::ops::Range;

use beff_trace::access::ResolvedAccess;
use beff_trace::layout::TypeLayouts;
use serde::{Deserialize, Serialize};

use super::range_set::RangeSet;

/// Gaps of one file that the library may have overwritten.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SievingGaps {
    /// Strided accesses, from their first byte to the last one.
    strided: RangeSet,
    /// Collective writes of several ranks, from the first byte of all to the last one.
    together: Option<[u64; 2]>,
}

impl SievingGaps {
    /// Adds a write; `together` if several ranks call it. None if its location is unknown.
    pub fn add_write(&mut self, access: Option<&ResolvedAccess>, layouts: &TypeLayouts, together: bool) {
        let Some(access) = access else { return self.strided.add(0..u64::MAX) };
        let is_run = access.file_ranges(layouts).next().is_none_or(|extent| extent.bytes >= access.bytes);
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

    /// Adds the gaps of another rank.
    pub fn merge(&mut self, other: &Self) {
        self.strided.merge(&other.strided);
        if let Some([begin, end]) = other.together {
            let [first, last] = self.together.unwrap_or([begin, end]);
            self.together = Some([first.min(begin), last.max(end)]);
        }
    }

    /// True if there are no gaps.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.strided.known.is_empty() && self.together.is_none()
    }

    /// Length of the leading part of a range, and whether the library may have overwritten it.
    #[must_use]
    pub fn leading_part(&self, range: &Range<u64>) -> (u64, bool) {
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
        fn a_range_splits_into_parts_inside_or_outside(
            all in proptest::collection::vec((0_u64..1000, 1_u64..60), 0..40), together: Option<(u8, u8)>
        ) {
            let mut gaps = SievingGaps { together: together.map(|(a, b)| [u64::from(a), u64::from(a) + u64::from(b) + 1]), ..SievingGaps::default() };
            all.iter().for_each(|(begin, bytes)| gaps.strided.add(*begin..begin + bytes));
            let mut at = 0;
            while at < 1200 {
                let (bytes, is_in) = gaps.leading_part(&(at..1200));
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
    fn merged_ranges_lose_none() {
        let mut gaps = SievingGaps::default();
        (0..10_000).for_each(|n| gaps.strided.add(n * 100..n * 100 + 10));
        assert!((0..10_000).all(|n| gaps.leading_part(&(n * 100..n * 100 + 10)) == (10, true)));
        gaps.strided.add(0..u64::MAX);
        assert_eq!(gaps.leading_part(&(5..u64::MAX - 1)), (u64::MAX - 6, true));
    }
}
