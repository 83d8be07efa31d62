//! Last accesses to each range of a file, from which the order of a replay is derived.

use std::collections::{BTreeMap, HashMap};

use crate::layout::ByteRange;

/// Maximum number of ranges of a file that are distinguished; beyond it neighbours are joined in pairs. This is sound: a call then also
/// depends on one that touched adjacent bytes and had ended before it, too.
pub(super) const MAX_HISTORY_RANGES: usize = 1 << 18;

/// Maximum number of calls per range; older ones count as accesses to the whole file.
const MAX_RANGE_ACCESSES: usize = 256;

/// Call that ended an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct EndedAccess {
    pub(super) rank: u32,
    pub(super) writes: bool,
    /// Begin of the call to depend on: the one that ended the access.
    pub(super) begin_ns: u64,
}

#[derive(Clone, Debug)]
struct HistoryRange {
    end: i64,
    accesses: Vec<EndedAccess>,
}

/// Ended accesses to a file, the latest of each rank and direction.
#[derive(Debug)]
pub(super) struct AccessHistory {
    ranges: BTreeMap<i64, HistoryRange>,
    max_ranges: usize,
    /// Latest access of each rank, at any offset.
    latest: HashMap<u32, u64>,
    /// Accesses beyond the limit of one range.
    spilled: HashMap<u32, EndedAccess>,
    pub(super) join_count: u64,
}

/// Keeps the latest access of each rank and direction.
fn keep_latest(touches: &mut Vec<EndedAccess>, new: EndedAccess) {
    match touches.iter_mut().find(|known| known.rank == new.rank && known.writes == new.writes) {
        Some(known) => known.begin_ns = known.begin_ns.max(new.begin_ns),
        None => touches.push(new),
    }
}

impl AccessHistory {
    pub(super) fn new(max_ranges: usize) -> Self {
        Self { ranges: BTreeMap::new(), max_ranges, latest: HashMap::new(), spilled: HashMap::new(), join_count: 0 }
    }

    pub(super) fn insert(&mut self, extents: impl Iterator<Item = ByteRange>, touch: EndedAccess) {
        let last = self.latest.entry(touch.rank).or_default();
        *last = touch.begin_ns.max(*last);
        for extent in extents {
            self.insert_range(extent.at, extent.at.saturating_add_unsigned(extent.bytes), touch);
        }
        if self.ranges.len() > self.max_ranges {
            self.join();
        }
    }

    /// Splits the range that contains an offset, unless it begins there.
    fn split_at(&mut self, at: i64) {
        let Some((_, part)) = self.ranges.range_mut(..at).next_back() else { return };
        if part.end > at {
            let behind = part.clone();
            part.end = at;
            self.ranges.insert(at, behind);
        }
    }

    fn insert_range(&mut self, start: i64, end: i64, touch: EndedAccess) {
        match self.ranges.range_mut(..end).next_back() {
            Some((begin, part)) if part.end > start => {
                if *begin == start && part.end == end {
                    keep_latest(&mut part.accesses, touch);
                    return spill(&mut self.spilled, part);
                }
            }
            _ => {
                self.ranges.insert(start, HistoryRange { end, accesses: vec![touch] });
                return;
            }
        }
        self.split_at(start);
        self.split_at(end);
        let mut gaps = Vec::new();
        let mut at = start;
        for (begin, part) in self.ranges.range_mut(start..end) {
            if *begin > at {
                gaps.push((at, *begin));
            }
            keep_latest(&mut part.accesses, touch);
            spill(&mut self.spilled, part);
            at = part.end;
        }
        if at < end {
            gaps.push((at, end));
        }
        for (begin, end) in gaps {
            self.ranges.insert(begin, HistoryRange { end, accesses: vec![touch] });
        }
    }

    fn join(&mut self) {
        self.join_count += 1;
        let mut parts = std::mem::take(&mut self.ranges).into_iter();
        let mut joined = Vec::with_capacity(parts.len() / 2 + 1);
        while let Some((start, mut part)) = parts.next() {
            if let Some((_, next)) = parts.next() {
                part.end = next.end;
                next.accesses.into_iter().for_each(|touch| keep_latest(&mut part.accesses, touch));
                spill(&mut self.spilled, &mut part);
            }
            part.accesses.shrink_to_fit();
            joined.push((start, part));
        }
        self.ranges = joined.into_iter().collect();
    }

    /// Reports every access that an access to these ranges depends on.
    pub(super) fn visit_conflicts(
        &self,
        extents: impl Iterator<Item = ByteRange>,
        writes: bool,
        mut visit: impl FnMut(EndedAccess),
    ) {
        let mut reported = None;
        for extent in extents {
            let (start, end) = (extent.at, extent.at.saturating_add_unsigned(extent.bytes));
            if self.ranges.range(..end).next_back().is_none_or(|(_, last)| last.end <= start) {
                continue;
            }
            let from = self.ranges.range(..=start).next_back().map_or(start, |(begin, _)| *begin);
            for (begin, part) in self.ranges.range(from..end) {
                if part.end > start && reported != Some(*begin) {
                    part.accesses.iter().filter(|touch| writes || touch.writes).for_each(|touch| visit(*touch));
                    reported = Some(*begin);
                }
            }
        }
        self.spilled.values().filter(|touch| writes || touch.writes).for_each(|touch| visit(*touch));
    }

    /// True if an ended write covers this byte; false if that is unknown.
    pub(super) fn is_written(&self, at: i64) -> bool {
        if self.join_count > 0 {
            return false;
        }
        let part = self.ranges.range(..=at).next_back().filter(|(_, part)| part.end > at);
        part.is_some_and(|(_, part)| part.accesses.iter().any(|touch| touch.writes))
    }

    /// Reports the latest access of each rank.
    pub(super) fn visit_latest(&self, mut visit: impl FnMut(EndedAccess)) {
        self.latest
            .iter()
            .for_each(|(rank, begin_ns)| visit(EndedAccess { rank: *rank, writes: true, begin_ns: *begin_ns }));
    }
}

fn spill(spilled: &mut HashMap<u32, EndedAccess>, part: &mut HistoryRange) {
    while part.accesses.len() > MAX_RANGE_ACCESSES {
        let oldest =
            part.accesses.iter().enumerate().min_by_key(|(_, touch)| touch.begin_ns).map_or(0, |(index, _)| index);
        let touch = part.accesses.swap_remove(oldest);
        let known = spilled.entry(touch.rank).or_insert(touch);
        known.writes |= touch.writes;
        known.begin_ns = known.begin_ns.max(touch.begin_ns);
    }
}
