//! Which calls touched which bytes of a file last: what the order of a replay follows from.

use std::collections::{BTreeMap, HashMap};

use crate::layout::Extent;

/// Parts of a file that are kept apart; with more, neighbours are joined two by two. That is sound: a call then also waits for one that
/// touched bytes nearby and had ended before it as well.
pub(super) const MOST_PARTS: usize = 1 << 18;

/// Calls that are kept for one part; older ones are taken to have touched the whole file.
const MOST_TOUCHES: usize = 256;

/// A call that has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Touch {
    pub(super) rank: u32,
    pub(super) writes: bool,
    /// The call to wait for: that which ended the access.
    pub(super) begin_ns: u64,
}

#[derive(Clone, Debug)]
struct Part {
    end: i64,
    touches: Vec<Touch>,
}

/// The accesses to a file that have ended, the latest of each rank and direction.
#[derive(Debug)]
pub(super) struct Touched {
    parts: BTreeMap<i64, Part>,
    most_parts: usize,
    /// The latest access of each rank, wherever it was.
    anywhere: HashMap<u32, u64>,
    /// What one part could not hold.
    spilled: HashMap<u32, Touch>,
    /// How often parts were joined.
    pub(super) joined: u64,
}

/// Keeps the latest of each rank and direction.
fn enter(touches: &mut Vec<Touch>, new: Touch) {
    match touches.iter_mut().find(|known| known.rank == new.rank && known.writes == new.writes) {
        Some(known) => known.begin_ns = known.begin_ns.max(new.begin_ns),
        None => touches.push(new),
    }
}

impl Touched {
    pub(super) fn new(most_parts: usize) -> Self {
        Self { parts: BTreeMap::new(), most_parts, anywhere: HashMap::new(), spilled: HashMap::new(), joined: 0 }
    }

    /// Enters an access that has ended.
    pub(super) fn enter(&mut self, extents: impl Iterator<Item = Extent>, touch: Touch) {
        let last = self.anywhere.entry(touch.rank).or_default();
        *last = touch.begin_ns.max(*last);
        for extent in extents {
            self.enter_one(extent.at, extent.at.saturating_add_unsigned(extent.bytes), touch);
        }
        if self.parts.len() > self.most_parts {
            self.join();
        }
    }

    /// Cuts the part that holds a place, if it does not begin there.
    fn cut(&mut self, at: i64) {
        let Some((_, part)) = self.parts.range_mut(..at).next_back() else { return };
        if part.end > at {
            let behind = part.clone();
            part.end = at;
            self.parts.insert(at, behind);
        }
    }

    fn enter_one(&mut self, start: i64, end: i64, touch: Touch) {
        match self.parts.range_mut(..end).next_back() {
            Some((begin, part)) if part.end > start => {
                if *begin == start && part.end == end {
                    enter(&mut part.touches, touch);
                    return spill(&mut self.spilled, part);
                }
            }
            _ => {
                self.parts.insert(start, Part { end, touches: vec![touch] });
                return;
            }
        }
        self.cut(start);
        self.cut(end);
        let mut gaps = Vec::new();
        let mut at = start;
        for (begin, part) in self.parts.range_mut(start..end) {
            if *begin > at {
                gaps.push((at, *begin));
            }
            enter(&mut part.touches, touch);
            spill(&mut self.spilled, part);
            at = part.end;
        }
        if at < end {
            gaps.push((at, end));
        }
        for (begin, end) in gaps {
            self.parts.insert(begin, Part { end, touches: vec![touch] });
        }
    }

    /// Joins parts two by two.
    fn join(&mut self) {
        self.joined += 1;
        let mut parts = std::mem::take(&mut self.parts).into_iter();
        let mut joined = Vec::with_capacity(parts.len() / 2 + 1);
        while let Some((start, mut part)) = parts.next() {
            if let Some((_, next)) = parts.next() {
                part.end = next.end;
                next.touches.into_iter().for_each(|touch| enter(&mut part.touches, touch));
                spill(&mut self.spilled, &mut part);
            }
            part.touches.shrink_to_fit();
            joined.push((start, part));
        }
        self.parts = joined.into_iter().collect();
    }

    /// Tells of every access that has to be waited for by one that reads or writes here.
    pub(super) fn look(&self, extents: impl Iterator<Item = Extent>, writes: bool, mut tell: impl FnMut(Touch)) {
        let mut told_of = None;
        for extent in extents {
            let (start, end) = (extent.at, extent.at.saturating_add_unsigned(extent.bytes));
            if self.parts.range(..end).next_back().is_none_or(|(_, last)| last.end <= start) {
                continue;
            }
            let from = self.parts.range(..=start).next_back().map_or(start, |(begin, _)| *begin);
            for (begin, part) in self.parts.range(from..end) {
                if part.end > start && told_of != Some(*begin) {
                    part.touches.iter().filter(|touch| writes || touch.writes).for_each(|touch| tell(*touch));
                    told_of = Some(*begin);
                }
            }
        }
        self.spilled.values().filter(|touch| writes || touch.writes).for_each(|touch| tell(*touch));
    }

    /// Tells of the latest access of each rank.
    pub(super) fn look_anywhere(&self, mut tell: impl FnMut(Touch)) {
        self.anywhere
            .iter()
            .for_each(|(rank, begin_ns)| tell(Touch { rank: *rank, writes: true, begin_ns: *begin_ns }));
    }
}

fn spill(spilled: &mut HashMap<u32, Touch>, part: &mut Part) {
    while part.touches.len() > MOST_TOUCHES {
        let oldest =
            part.touches.iter().enumerate().min_by_key(|(_, touch)| touch.begin_ns).map_or(0, |(index, _)| index);
        let touch = part.touches.swap_remove(oldest);
        let known = spilled.entry(touch.rank).or_insert(touch);
        known.writes |= touch.writes;
        known.begin_ns = known.begin_ns.max(touch.begin_ns);
    }
}
