//! Writes whose bytes are all overwritten by later writes before anything reads them, such as fill values of HDF5.

use std::collections::{BTreeMap, HashMap, HashSet};

use crate::access::{AccessTracker, CallEffect, ResolvedAccess};
use crate::call::{Call, CallId, DataOrigin};
use crate::function::{AccessForm, Direction, Function, Role};
use crate::layout::TypeLayouts;
use crate::names::Whence;
use crate::range_map::RangeMap;

/// Maximum number of byte ranges of all accesses, which are held in memory.
const MAX_RANGES: usize = 1 << 22;

/// Writes that are completely overwritten, and why others that are overwritten, too, do not count.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OverwrittenWrites {
    /// The blocking writes of which every byte is overwritten before anything reads it, in a known order.
    pub calls: HashSet<CallId>,
    /// Writes overwritten in part.
    pub partly: u64,
    /// Writes overwritten without a known order.
    pub unordered: u64,
    /// Writes overwritten after a read of their bytes, or after something that depends on the size of the file.
    pub used: u64,
    /// Nonblocking and split writes that are overwritten completely.
    pub pending: u64,
}

/// Too many byte ranges.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the accesses have more than {} byte ranges, which are held in memory", MAX_RANGES)]
pub struct TooManyRanges;

#[derive(Clone, Copy, PartialEq, Eq)]
enum WriteUse {
    Unused,
    Unordered,
    Used,
}

struct Write {
    id: CallId,
    end_ns: u64,
    /// Begin of the call that ended it, which others wait for.
    call_ns: u64,
    bytes: u64,
    overwritten_bytes: u64,
    state: WriteUse,
    is_blocking: bool,
}

#[derive(Clone, Copy)]
enum Action {
    Read {
        ranges: (usize, usize),
        is_short: bool,
    },
    Write {
        number: usize,
        ranges: (usize, usize),
    },
    /// Something depends on the size of the file.
    Size,
    /// The file has no content from this offset on.
    Truncate(u64),
}

/// Events of a file at one time: what reads comes before the ends of writes and after them, as either may have happened.
struct Event {
    file: u32,
    ns: u64,
    order: u8,
    action: Action,
}

const BEFORE_WRITES: u8 = 0;
const WRITES: u8 = 1;
const AFTER_WRITES: u8 = 2;

/// Collects the calls of all ranks, one rank after the other.
pub struct OverwriteFinder<'a> {
    layouts: &'a TypeLayouts,
    rank: u32,
    tracker: AccessTracker<'a>,
    /// Begins of nonblocking and split accesses.
    requests: HashMap<u64, u64>,
    splits: HashMap<u32, u64>,
    files: HashMap<u32, (u32, bool)>,
    ranges: Vec<(u64, u64)>,
    events: Vec<Event>,
    writes: Vec<Write>,
    /// By waiting and awaited rank: begins of calls with the latest awaited call so far.
    awaited: HashMap<(u32, u32), Vec<(u64, u64)>>,
    origins: HashSet<CallId>,
    /// Files with accesses at unknown positions.
    unknown_files: HashSet<u32>,
    reads_unknown_file: bool,
}

impl<'a> OverwriteFinder<'a> {
    /// Before the first call.
    #[must_use]
    pub fn new(layouts: &'a TypeLayouts) -> Self {
        Self {
            layouts,
            rank: 0,
            tracker: AccessTracker::new(layouts),
            requests: HashMap::new(),
            splits: HashMap::new(),
            files: HashMap::new(),
            ranges: Vec::new(),
            events: Vec::new(),
            writes: Vec::new(),
            awaited: HashMap::new(),
            origins: HashSet::new(),
            unknown_files: HashSet::new(),
            reads_unknown_file: false,
        }
    }

    /// Adds the next call of a rank.
    ///
    /// # Errors
    /// Too many ranges.
    pub fn add(&mut self, rank: u32, call: &Call) -> Result<(), TooManyRanges> {
        if rank != self.rank {
            self.rank = rank;
            self.tracker = AccessTracker::new(self.layouts);
            self.requests.clear();
            self.splits.clear();
            self.files.clear();
        }
        for after in &call.after {
            let known = self.awaited.entry((rank, after.rank)).or_default();
            let latest = known.last().map_or(after.begin_ns, |(_, latest)| after.begin_ns.max(*latest));
            known.push((call.begin_ns, latest));
        }
        self.origins.extend(call.from.iter().filter_map(|from| match from.origin {
            DataOrigin::Call { rank, begin_ns, .. } => Some(CallId { rank, begin_ns }),
            _ => None,
        }));
        let effect = self.tracker.resolve(call);
        match (effect, call.function.role()) {
            (CallEffect::Access(access), Role::Data { form: AccessForm::Blocking, .. }) => {
                self.add_access(&access, (call.begin_ns, call.begin_ns, call.end_ns), true);
            }
            (CallEffect::Access(_), Role::Data { form: AccessForm::Nonblocking, .. }) => {
                self.requests.extend(call.request.map(|request| (request, call.begin_ns)));
            }
            (CallEffect::Access(_), _) => self.splits.extend(call.handle.map(|handle| (handle, call.begin_ns))),
            (CallEffect::SplitEnd(access), _) => {
                let begin_ns = self.splits.remove(&access.handle).unwrap_or(call.begin_ns);
                self.add_access(&access, (begin_ns, call.begin_ns, call.end_ns), false);
            }
            (CallEffect::Unknown { file, direction, .. }, _) => self.add_unknown(file, direction),
            (CallEffect::NoAccess, _) => self.add_management(call),
        }
        for completion in &call.completions {
            let begin_ns = self.requests.remove(&completion.request).unwrap_or(call.begin_ns);
            if let Some(CallEffect::Access(access)) = self.tracker.complete(completion) {
                self.add_access(&access, (begin_ns, call.begin_ns, call.end_ns), false);
            }
        }
        if self.ranges.len() > MAX_RANGES || self.events.len() > MAX_RANGES {
            return Err(TooManyRanges);
        }
        Ok(())
    }

    fn add_unknown(&mut self, file: Option<u32>, direction: Direction) {
        self.unknown_files.extend(file);
        self.reads_unknown_file |= file.is_none() && direction == Direction::Read;
    }

    fn push(&mut self, file: u32, ns: u64, order: u8, action: Action) {
        self.events.push(Event { file, ns, order, action });
    }

    /// Something that reads between these times.
    fn push_use(&mut self, file: u32, [begin_ns, end_ns]: [u64; 2], action: Action) {
        self.push(file, begin_ns, BEFORE_WRITES, action);
        self.push(file, begin_ns, AFTER_WRITES, action);
        self.push(file, end_ns, AFTER_WRITES, action);
    }

    fn add_access(&mut self, access: &ResolvedAccess, (begin_ns, call_ns, end_ns): (u64, u64, u64), is_blocking: bool) {
        let Some(file) = access.file else { return self.add_unknown(None, access.direction) };
        let first = self.ranges.len();
        let ranges = access.file_ranges(self.layouts).filter_map(|range| {
            let at = u64::try_from(range.at).ok()?;
            Some((at, at.saturating_add(range.bytes)))
        });
        self.ranges.extend(ranges.take(MAX_RANGES));
        let ranges = (first, self.ranges.len());
        let is_short = access.bytes < access.requested_bytes || !access.is_complete;
        if access.direction == Direction::Read {
            return self.push_use(file, [begin_ns, end_ns], Action::Read { ranges, is_short });
        }
        if !access.is_complete || access.bytes == 0 {
            return;
        }
        let number = self.writes.len();
        self.writes.push(Write {
            id: CallId { rank: self.rank, begin_ns },
            end_ns,
            call_ns,
            bytes: access.bytes,
            overwritten_bytes: 0,
            state: if is_short { WriteUse::Used } else { WriteUse::Unused },
            is_blocking,
        });
        self.push(file, end_ns, WRITES, Action::Write { number, ranges });
    }

    fn add_management(&mut self, call: &Call) {
        let (begin_ns, end_ns) = (call.begin_ns, call.end_ns);
        if call.error.is_some() {
            return;
        }
        let of_handle = call.handle.and_then(|handle| self.files.get(&handle).copied());
        let Some(file) = call.file.or(of_handle.map(|(file, _)| file)) else { return };
        let bytes = |number: Option<i64>| number.map(|bytes| u64::try_from(bytes).unwrap_or(0));
        match call.function {
            Function::Open => {
                let deletes = call.amode.is_some_and(|amode| amode.has("delete_on_close"));
                self.files.extend(call.handle.map(|handle| (handle, (file, deletes))));
                self.push_use(file, [begin_ns, end_ns], Action::Size);
                if let Some(size) = bytes(call.number) {
                    self.push(file, begin_ns, WRITES, Action::Truncate(size));
                }
            }
            Function::SetSize | Function::Truncate => {
                let size = bytes(call.offset).unwrap_or(0);
                self.push(file, begin_ns, WRITES, Action::Truncate(size));
            }
            Function::Delete | Function::Unlink | Function::OpenTruncate => {
                self.push(file, begin_ns, WRITES, Action::Truncate(0));
            }
            // The content has another name from now on.
            Function::Rename => self.unknown_files.extend([Some(file), call.target].into_iter().flatten()),
            Function::Close if of_handle.is_some_and(|(_, deletes)| deletes) => {
                self.push(file, begin_ns, WRITES, Action::Truncate(0));
            }
            Function::GetSize => self.push_use(file, [begin_ns, end_ns], Action::Size),
            Function::Seek | Function::SeekShared if call.whence == Some(Whence::End) => {
                self.push_use(file, [begin_ns, end_ns], Action::Size);
            }
            _ => {}
        }
    }

    /// The overwritten writes of all calls.
    #[must_use]
    pub fn finish(mut self) -> OverwrittenWrites {
        let mut events = std::mem::take(&mut self.events);
        events.sort_by_key(|event| (event.file, event.ns, event.order));
        let mut contents: BTreeMap<u32, RangeMap<usize>> = BTreeMap::new();
        for event in &events {
            // Contents of earlier files are not needed any more.
            contents.retain(|file, _| *file == event.file);
            self.happen(contents.entry(event.file).or_default(), event);
        }
        let unknown: HashSet<usize> = events.iter().filter_map(|event| self.write_of_unknown_file(event)).collect();
        let mut found = OverwrittenWrites::default();
        for (number, write) in self.writes.iter().enumerate() {
            let is_used = write.state == WriteUse::Used
                || self.origins.contains(&write.id)
                || self.reads_unknown_file
                || unknown.contains(&number);
            match write.overwritten_bytes {
                0 => {}
                _ if is_used => found.used += 1,
                _ if write.state == WriteUse::Unordered => found.unordered += 1,
                bytes if bytes < write.bytes => found.partly += 1,
                _ if !write.is_blocking => found.pending += 1,
                _ => drop(found.calls.insert(write.id)),
            }
        }
        found
    }

    fn write_of_unknown_file(&self, event: &Event) -> Option<usize> {
        match event.action {
            Action::Write { number, .. } if self.unknown_files.contains(&event.file) => Some(number),
            _ => None,
        }
    }

    fn happen(&mut self, content: &mut RangeMap<usize>, event: &Event) {
        match event.action {
            Action::Read { ranges: (first, last), is_short } => {
                let mut has_hole = is_short;
                for (at, end) in &self.ranges[first..last] {
                    let mut known_end = *at;
                    for (begin, end, number) in content.overlapping(*at, *end) {
                        has_hole |= begin > known_end;
                        known_end = end;
                        self.writes[number].state = WriteUse::Used;
                    }
                    has_hole |= known_end < *end;
                }
                // What it returns there depends on the end of the file.
                if let Some(number) = content.last().filter(|_| has_hole) {
                    self.writes[number].state = WriteUse::Used;
                }
            }
            Action::Size => {
                if let Some(number) = content.last() {
                    self.writes[number].state = WriteUse::Used;
                }
            }
            Action::Truncate(bytes) => while content.take(bytes, u64::MAX).is_some() {},
            Action::Write { number, ranges: (first, last) } => {
                for range in first..last {
                    let (at, end) = self.ranges[range];
                    while let Some((begin, end, old)) = content.take(at, end) {
                        match self.is_ordered(&self.writes[old], &self.writes[number]) && old != number {
                            true => self.writes[old].overwritten_bytes += end - begin,
                            false => {
                                let old = &mut self.writes[old];
                                old.overwritten_bytes += end - begin;
                                if old.state == WriteUse::Unused {
                                    old.state = WriteUse::Unordered;
                                }
                            }
                        }
                    }
                    content.insert(at, end, number);
                }
            }
        }
    }

    /// True if the first write has ended before the second begins, in every replay.
    fn is_ordered(&self, first: &Write, second: &Write) -> bool {
        if first.id.rank == second.id.rank {
            return first.end_ns <= second.id.begin_ns;
        }
        let awaited = self.awaited.get(&(second.id.rank, first.id.rank)).map_or(&[][..], Vec::as_slice);
        let until = awaited.partition_point(|(begin_ns, _)| *begin_ns <= second.id.begin_ns);
        first.end_ns < second.id.begin_ns
            && awaited[..until].last().is_some_and(|(_, latest_ns)| *latest_ns >= first.call_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::read_all_ranks;
    use crate::workload::derive_order;

    /// Overwritten writes of a workload of two ranks, as (rank, begin), and the numbers of the others.
    fn found(calls: &[&str]) -> (Vec<(u32, u64)>, [u64; 4]) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("workload.csv");
        let close = "9000, 9010, File_close, handle=1\n";
        let rank = |(rank, calls): (usize, &&str)| {
            let lines: String = calls.lines().map(|line| format!("{}\n", line.trim())).collect();
            let open = format!("{rank}, 10, File_open, handle=1, comm={rank}, file=0, mode=create;rdwr, number=-1\n");
            format!("calls, {rank}, {}\n{open}{lines}{close}", calls.lines().count() + 2)
        };
        let ranks: String = calls.iter().enumerate().map(rank).collect();
        let head = "ranks, 2\ncomm, 0, 0\ncomm, 1, 1\ntype, 0, BYTE\nfile, 0, out.dat\n";
        std::fs::write(&path, format!("beff-raw profile,1\n{head}{ranks}")).unwrap();
        std::fs::write(&path, derive_order(&path).unwrap().unwrap()).unwrap();
        let (head, calls) = read_all_ranks(&path).unwrap();
        let layouts = TypeLayouts::for_library(&head.types, &head.library).unwrap();
        let mut finder = OverwriteFinder::new(&layouts);
        for call in calls {
            let (rank, call) = call.unwrap();
            finder.add(rank, &call).unwrap();
        }
        let found = finder.finish();
        let mut calls: Vec<_> = found.calls.iter().map(|id| (id.rank, id.begin_ns)).collect();
        calls.sort_unstable();
        (calls, [found.partly, found.unordered, found.used, found.pending])
    }

    const FILL: &str = "100, 110, File_write_at, handle=1, offset=0, count=100, type=0";

    #[test]
    fn a_write_that_others_cover_later_is_overwritten() {
        let halves = "200, 210, File_write_at, handle=1, offset=0, count=50, type=0
            220, 230, File_write_at_all, handle=1, offset=50, count=50, type=0";
        assert_eq!(found(&[&format!("{FILL}\n{halves}"), ""]), (vec![(0, 100)], [0; 4]), "by one rank");
        assert_eq!(found(&[FILL, halves]), (vec![(0, 100)], [0; 4]), "by another one");
        let first = "200, 210, File_write_at, handle=1, offset=0, count=50, type=0";
        let second = "300, 310, File_write_at, handle=1, offset=50, count=50, type=0";
        assert_eq!(found(&[&format!("{FILL}\n{first}"), second]), (vec![(0, 100)], [0; 4]), "by both");
        assert_eq!(found(&[FILL, first]), (vec![], [1, 0, 0, 0]), "only a half");
        let again = FILL.replace("100, 110", "120, 130");
        assert_eq!(found(&[&format!("{FILL}\n{again}"), halves]), (vec![(0, 100), (0, 120)], [0; 4]), "twice");
    }

    #[test]
    fn what_depends_on_a_write_keeps_it() {
        let over = "500, 510, File_write_at, handle=1, offset=0, count=100, type=0";
        let kept = |between: &str| {
            let other = found(&[FILL, &format!("{between}\n{over}")]);
            assert_eq!(found(&[&format!("{FILL}\n{between}\n{over}"), ""]), other, "by any rank: {between}");
            other
        };
        assert_eq!(kept("200, 210, File_read_at, handle=1, offset=99, count=1, type=0"), (vec![], [0, 0, 1, 0]));
        assert_eq!(kept("200, 210, File_get_size, handle=1"), (vec![], [0, 0, 1, 0]));
        assert_eq!(kept("200, 210, File_seek, handle=1, offset=0, whence=end"), (vec![], [0, 0, 1, 0]));
        let beyond = "200, 210, File_read_at, handle=1, offset=100, count=1, type=0";
        assert_eq!(kept(beyond), (vec![], [0, 0, 1, 0]), "the end of the file");
        assert_eq!(kept("200, 210, File_set_size, handle=1, offset=60"), (vec![], [1, 0, 0, 0]), "40 bytes are lost");
        assert_eq!(kept("200, 210, truncate, file=0, offset=60"), (vec![], [1, 0, 0, 0]));
        assert_eq!(kept("200, 210, File_read_shared, handle=1, count=1, type=0"), (vec![], [0, 0, 1, 0]));
        let pending = "200, 210, File_iread_at, handle=1, offset=0, count=1, type=0, request=1
            220, 230, File_get_amode, handle=1";
        let late = format!("{FILL}\n{pending}\n{over}\n600, 610, Wait, requests=1");
        assert_eq!(found(&[&late, ""]).0, [], "a read that has begun");
    }

    #[test]
    fn the_order_of_the_two_writes_is_known() {
        let at = |begin: u64, end: u64| format!("{begin}, {end}, File_write_at, handle=1, offset=0, count=100, type=0");
        assert_eq!(found(&[&at(100, 200), &at(150, 250)]), (vec![], [0, 1, 0, 0]), "at the same time");
        assert_eq!(found(&[&at(100, 300), &at(150, 250)]), (vec![], [0, 1, 0, 0]));
        assert_eq!(found(&[&at(100, 149), &at(150, 250)]), (vec![(0, 100)], [0; 4]));
        let pending = "100, 110, File_iwrite_at, handle=1, offset=0, count=100, type=0, request=1
            120, 130, Wait, requests=1";
        assert_eq!(found(&[pending, &at(150, 250)]), (vec![], [0, 0, 0, 1]), "nonblocking writes stay");
        let split = "100, 110, File_write_at_all_begin, handle=1, offset=0, count=100, type=0
            120, 130, File_write_at_all_end, handle=1";
        assert_eq!(found(&[split, &at(150, 250)]), (vec![], [0, 0, 0, 1]));
        let over = "150, 160, File_iwrite_at, handle=1, offset=0, count=100, type=0, request=1
            200, 230, Wait, requests=1";
        assert_eq!(found(&[&at(100, 149), over]), (vec![(0, 100)], [0; 4]), "a nonblocking write overwrites");
        let short = at(150, 160) + ", bytes=99";
        assert_eq!(found(&[&at(100, 149), &short]), (vec![], [1, 0, 0, 0]), "as far as it went");
        assert_eq!(found(&[&at(100, 149), &(at(150, 160) + ", error=MPI_ERR_IO")]), (vec![], [0; 4]));
    }

    #[test]
    fn pointers_and_views_have_their_positions() {
        let calls = "100, 110, File_write, handle=1, count=100, type=0
            120, 130, File_seek, handle=1, offset=0, whence=set
            140, 150, File_write_all, handle=1, count=100, type=0";
        assert_eq!(found(&[calls, ""]), (vec![(0, 100)], [0; 4]));
        let view = "90, 95, File_set_view, handle=1, offset=100, etype=0, filetype=0";
        assert_eq!(found(&[&format!("{view}\n{calls}"), FILL]).0, [(0, 100)], "elsewhere");
    }
}
