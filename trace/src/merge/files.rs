//! A file of the program, as the sweep sees it.

use std::collections::HashMap;

use super::content::{Contents, Writer, OPEN_NS};
use super::touched::{Touch, Touched};
use crate::call::{Call, Origin};
use crate::function::{Direction, Function};
use crate::layout::{Extent, Layouts};
use crate::places::Access;

/// Pieces of one access that are followed one by one; of one with more, all that lies between its first and last byte counts.
const MOST_EXTENTS: usize = 1 << 16;

/// Pieces of a write of which the place in memory is kept; the rest is unknown.
const MOST_SOURCES: usize = 4096;

/// Limits that tests set lower.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    pub(super) parts: usize,
    pub(super) pieces: usize,
}

/// The last call of a rank that concerned a file as a whole.
#[derive(Clone, Copy, Debug)]
struct Whole {
    begin_ns: u64,
    comm: Option<u32>,
    alone: bool,
}

/// What is known of a file at a moment of the sweep.
#[derive(Debug)]
pub(super) struct FileState {
    pub(super) touched: Touched,
    pub(super) contents: Contents,
    whole: HashMap<u32, Whole>,
    /// Accesses to unknown places, the latest of each rank.
    strays: HashMap<u32, Touch>,
    /// Openings that are not closed.
    pub(super) open: u64,
    limits: Limits,
}

/// The places of an access, listed if there are not too many.
pub(super) fn places(access: &Access, layouts: &Layouts, bytes: u64, into: &mut Vec<Extent>) {
    into.clear();
    let access = Access { bytes, ..*access };
    into.extend(access.extents(layouts).take(MOST_EXTENTS + 1));
    if into.len() > MOST_EXTENTS {
        let hull = access.hull(layouts);
        into.clear();
        into.push(Extent { at: hull.start, bytes: u64::try_from(hull.end - hull.start).unwrap_or(0) });
    }
}

/// Bytes that count for the order: a read that came short has seen that the rest was not there.
pub(super) fn concerned(access: &Access, layouts: &Layouts) -> u64 {
    let asked = Access { bytes: access.asked_bytes, ..*access };
    if access.asked_bytes == access.bytes || asked.hull(layouts).is_empty() {
        access.bytes
    } else {
        access.asked_bytes
    }
}

impl FileState {
    pub(super) fn new(base_bytes: Option<u64>, limits: Limits) -> Self {
        Self {
            touched: Touched::new(limits.parts),
            contents: Contents::new(base_bytes, limits.pieces),
            whole: HashMap::new(),
            strays: HashMap::new(),
            open: 0,
            limits,
        }
    }

    /// Tells of what an access to these places has to wait for.
    pub(super) fn look(
        &self,
        extents: &[Extent],
        writes: bool,
        is_member: impl Fn(Option<u32>) -> bool,
        mut tell: impl FnMut(Touch),
    ) {
        self.touched.look(extents.iter().copied(), writes, &mut tell);
        self.strays.values().filter(|touch| writes || touch.writes).for_each(|touch| tell(*touch));
        self.look_whole(is_member, tell);
    }

    /// Tells of calls of others that concerned the whole file.
    pub(super) fn look_whole(&self, is_member: impl Fn(Option<u32>) -> bool, mut tell: impl FnMut(Touch)) {
        let others = self.whole.iter().filter(|(_, whole)| whole.alone || !is_member(whole.comm));
        others.for_each(|(rank, whole)| tell(Touch { rank: *rank, writes: true, begin_ns: whole.begin_ns }));
    }

    /// Tells of the last access of every rank.
    pub(super) fn look_anywhere(&self, with_strays: bool, mut tell: impl FnMut(Touch)) {
        self.touched.look_anywhere(&mut tell);
        if with_strays {
            self.strays.values().for_each(|touch| tell(*touch));
        }
    }

    /// A call has ended that concerned the file as a whole. `alone`: nobody else takes part in it.
    pub(super) fn enter_whole(&mut self, rank: u32, begin_ns: u64, comm: Option<u32>, alone: bool) {
        self.whole.insert(rank, Whole { begin_ns, comm, alone });
    }

    /// A write begins. `until_ns` is when it had ended.
    pub(super) fn write(&mut self, access: &Access, layouts: &Layouts, extents: &[Extent], writer: Writer) {
        let listed = extents.len() < MOST_EXTENTS;
        let mut memory = access.memory(layouts, 0, if listed { access.bytes } else { 0 });
        let (mut source, mut sources) = (memory.next(), 1);
        for extent in extents {
            let mut rest = *extent;
            while let Some(from) = source.as_mut().filter(|_| sources <= MOST_SOURCES && rest.bytes > 0) {
                let bytes = rest.bytes.min(from.bytes);
                self.contents.write(Extent { bytes, ..rest }, Some(from.at), writer);
                (rest.at, rest.bytes) = (rest.at + bytes as i64, rest.bytes - bytes);
                (from.at, from.bytes) = (from.at + bytes as i64, from.bytes - bytes);
                if from.bytes == 0 {
                    source = memory.next();
                    sources += 1;
                }
            }
            if rest.bytes > 0 {
                self.contents.write(rest, None, writer);
            }
        }
    }

    /// An access has ended with the call that began at `call_ns`; it had begun itself at `begun_ns`. What a read has seen.
    pub(super) fn ended(
        &mut self,
        access: &Access,
        layouts: &Layouts,
        extents: &mut Vec<Extent>,
        rank: u32,
        times: Times,
    ) -> Vec<Origin> {
        let writes = access.direction == Direction::Write;
        places(access, layouts, if writes { access.bytes } else { concerned(access, layouts) }, extents);
        self.touched.enter(extents.iter().copied(), Touch { rank, writes, begin_ns: times.call_ns });
        if !writes {
            places(access, layouts, access.bytes, extents);
            return self.contents.origins(extents.iter().copied(), times.begun_ns, access.bytes);
        }
        if times.begun_ns != times.call_ns {
            let all = Access { bytes: access.asked_bytes, ..*access };
            places(&all, layouts, all.bytes, extents);
            self.contents.ended(extents.iter().copied(), rank, times.begun_ns, times.end_ns);
            if access.bytes < access.asked_bytes {
                let rest = Access { first_byte: access.first_byte + access.bytes, ..*access };
                places(&rest, layouts, access.asked_bytes - access.bytes, extents);
                let writer = Writer { rank, begin_ns: times.begun_ns, until_ns: times.end_ns };
                extents.iter().for_each(|extent| self.contents.write(*extent, None, writer));
            }
        }
        Vec::new()
    }

    /// An access to an unknown place begins; `end_ns` is None if that is not known yet.
    pub(super) fn stray(&mut self, writes: bool, end_ns: Option<u64>) {
        match end_ns {
            Some(ns) if writes => self.contents.strayed_ns = self.contents.strayed_ns.max(Some(ns)),
            None if writes => self.contents.strays += 1,
            _ => {}
        }
    }

    /// It has ended. `was_open`: its begin had not told when.
    pub(super) fn stray_ended(&mut self, touch: Touch, was_open: bool, end_ns: u64) {
        if touch.writes {
            self.contents.strayed_ns = self.contents.strayed_ns.max(Some(end_ns));
            self.contents.strays = self.contents.strays.saturating_sub(u64::from(was_open));
        }
        let known = self.strays.entry(touch.rank).or_insert(touch);
        known.writes |= touch.writes;
        known.begin_ns = known.begin_ns.max(touch.begin_ns);
    }

    /// What the begin of a call without data does to the content.
    pub(super) fn manage(&mut self, call: &Call, rank: u32, deletes: bool) {
        let writer = Writer { rank, begin_ns: call.begin_ns, until_ns: call.end_ns };
        match call.function {
            Function::SetSize => self.contents.lose(call.offset.unwrap_or(0).max(0), writer),
            Function::Delete if self.open == 0 => self.contents = Contents::new(Some(0), self.limits.pieces),
            Function::Delete => self.contents.lose(0, writer),
            Function::Close if deletes => self.contents.lose(0, writer),
            Function::Open if self.open == 0 && call.number == Some(-1) => {
                // Nobody had it open, and it was gone.
                self.contents = Contents::new(Some(0), self.limits.pieces);
            }
            _ => {}
        }
    }

    /// Calls of a rank are missing from here on: it may write anything.
    pub(super) fn lose_track(&mut self) {
        self.contents.strays += 1;
    }
}

/// Times of an access that has ended.
#[derive(Clone, Copy, Debug)]
pub(super) struct Times {
    /// Begin of the call that began it.
    pub(super) begun_ns: u64,
    /// Begin and end of the call that ended it.
    pub(super) call_ns: u64,
    pub(super) end_ns: u64,
}

/// Until when a write is under way, by the call that begins it.
pub(super) fn until_ns(call: &Call, is_blocking: bool) -> u64 {
    if is_blocking {
        call.end_ns
    } else {
        OPEN_NS
    }
}
