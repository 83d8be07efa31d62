//! State of a file in the sweep.

use std::collections::HashMap;

use super::contents::{FileContents, WriteCall, UNKNOWN_END_NS};
use super::file_size::FileSize;
use super::history::{AccessHistory, EndedAccess};
use super::rank::WholeFileEnd;
use super::shared_pointer::SharedPointerCalls;
use super::size_calls::SizeCalls;
use crate::access::ResolvedAccess;
use crate::call::{Call, OriginRange};
use crate::function::{Direction, Function};
use crate::layout::{ByteRange, TypeLayouts};

/// Maximum number of ranges of one access that are processed individually; an access with more counts as the range from its first to its
/// last byte.
const MAX_ACCESS_RANGES: usize = 1 << 16;

/// Maximum number of ranges of a write whose buffer offset is kept; the rest is unknown.
const MAX_MEMORY_RANGES: usize = 4096;

#[derive(Clone, Copy, Debug)]
pub(super) struct TrackingLimits {
    pub(super) history_ranges: usize,
    pub(super) written_ranges: usize,
}

/// Last call of a rank that concerned a file as a whole.
#[derive(Clone, Copy, Debug)]
struct WholeFileCall {
    begin_ns: u64,
    comm: Option<u32>,
    is_independent: bool,
}

/// State of a file at a point of the sweep.
#[derive(Debug)]
pub(super) struct SweepFile {
    pub(super) history: AccessHistory,
    pub(super) contents: FileContents,
    whole_file_calls: HashMap<u32, WholeFileCall>,
    /// Accesses to unknown positions, the latest of each rank.
    unplaced_accesses: HashMap<u32, EndedAccess>,
    pub(super) size_calls: SizeCalls,
    pub(super) shared_pointer: SharedPointerCalls,
    initial_bytes: i64,
    /// Sizes found at openings are those of that time.
    pub(super) has_current_size: bool,
    open_count: u64,
    pub(super) size: FileSize,
    limits: TrackingLimits,
}

/// Lists the ranges of an access, if there are not too many.
pub(super) fn list_ranges(access: &ResolvedAccess, layouts: &TypeLayouts, bytes: u64, into: &mut Vec<ByteRange>) {
    into.clear();
    let access = ResolvedAccess { bytes, ..*access };
    into.extend(access.file_ranges(layouts).take(MAX_ACCESS_RANGES + 1));
    if into.len() > MAX_ACCESS_RANGES {
        let hull = access.hull(layouts);
        into.clear();
        into.push(ByteRange { at: hull.start, bytes: u64::try_from(hull.end - hull.start).unwrap_or(0) });
    }
}

/// Bytes that determine the order: a short read also depends on the absence of the rest.
pub(super) fn ordering_bytes(access: &ResolvedAccess, layouts: &TypeLayouts) -> u64 {
    let asked = ResolvedAccess { bytes: access.requested_bytes, ..*access };
    if access.requested_bytes == access.bytes || asked.hull(layouts).is_empty() {
        access.bytes
    } else {
        access.requested_bytes
    }
}

impl SweepFile {
    pub(super) fn new(base_bytes: Option<u64>, limits: TrackingLimits) -> Self {
        Self {
            history: AccessHistory::new(limits.history_ranges),
            contents: FileContents::new(base_bytes, limits.written_ranges),
            whole_file_calls: HashMap::new(),
            unplaced_accesses: HashMap::new(),
            size_calls: SizeCalls::default(),
            shared_pointer: SharedPointerCalls::default(),
            initial_bytes: base_bytes.map_or(0, |bytes| i64::try_from(bytes).unwrap_or(i64::MAX)),
            has_current_size: true,
            open_count: 0,
            size: FileSize::new(base_bytes),
            limits,
        }
    }

    /// Reports the accesses that an access to these ranges depends on.
    pub(super) fn visit_conflicts(
        &self,
        extents: &[ByteRange],
        writes: bool,
        is_member: impl Fn(Option<u32>) -> bool,
        mut visit: impl FnMut(EndedAccess),
    ) {
        self.history.visit_conflicts(extents.iter().copied(), writes, &mut visit);
        self.unplaced_accesses.values().filter(|touch| writes || touch.writes).for_each(|touch| visit(*touch));
        self.visit_whole_file_calls(is_member, visit);
    }

    /// Reports the calls that an access depends on because of the size of the file. A read also depends on writes beyond it, if it found a
    /// hole instead of the end of the file.
    pub(super) fn visit_size_calls(
        &self,
        access: &ResolvedAccess,
        layouts: &TypeLayouts,
        extents: &[ByteRange],
        visit: impl FnMut(EndedAccess),
    ) {
        if access.direction == Direction::Write {
            return self.size_calls.visit_observations(end_of(extents), visit);
        }
        let is_short = access.bytes < access.requested_bytes;
        let end = if is_short { end_of_moved(access, layouts) } else { end_of(extents) };
        if access.bytes > 0 && end > self.initial_bytes && !self.history.is_written(end - 1) {
            self.size_calls.visit_extensions(visit);
        }
    }

    /// Reports calls of other ranks that concerned the whole file.
    pub(super) fn visit_whole_file_calls(
        &self,
        is_member: impl Fn(Option<u32>) -> bool,
        mut visit: impl FnMut(EndedAccess),
    ) {
        let others = self.whole_file_calls.iter().filter(|(_, whole)| whole.is_independent || !is_member(whole.comm));
        others.for_each(|(rank, whole)| visit(EndedAccess { rank: *rank, writes: true, begin_ns: whole.begin_ns }));
    }

    /// Reports the last access of every rank.
    pub(super) fn visit_latest(&self, with_strays: bool, mut visit: impl FnMut(EndedAccess)) {
        self.history.visit_latest(&mut visit);
        if with_strays {
            self.unplaced_accesses.values().for_each(|touch| visit(*touch));
        }
    }

    /// Ends a call that concerned the file as a whole.
    pub(super) fn end_whole_file_call(&mut self, rank: u32, begin_ns: u64, whole: WholeFileEnd) {
        let WholeFileEnd { comm, is_independent, closes, .. } = whole;
        self.whole_file_calls.insert(rank, WholeFileCall { begin_ns, comm, is_independent });
        self.open_count = self.open_count.saturating_sub(u64::from(closes));
    }

    /// Begins a write that ends at `writer.until_ns`.
    pub(super) fn write(
        &mut self,
        access: &ResolvedAccess,
        layouts: &TypeLayouts,
        extents: &[ByteRange],
        writer: WriteCall,
    ) {
        let listed = extents.len() < MAX_ACCESS_RANGES && !is_moved_by_libraries(access, layouts);
        let mut memory = access.memory_ranges(layouts, 0, if listed { access.bytes } else { 0 });
        let (mut source, mut sources) = (memory.next(), 1);
        for extent in extents {
            let mut rest = *extent;
            while let Some(from) = source.as_mut().filter(|_| sources <= MAX_MEMORY_RANGES && rest.bytes > 0) {
                let bytes = rest.bytes.min(from.bytes);
                self.contents.write(ByteRange { bytes, ..rest }, Some(from.at), writer);
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

    /// Ends an access with a call that may differ from the one that began it. Returns the origins of a read.
    pub(super) fn end_access(
        &mut self,
        access: &ResolvedAccess,
        layouts: &TypeLayouts,
        extents: &mut Vec<ByteRange>,
        rank: u32,
        times: AccessTimes,
    ) -> Vec<OriginRange> {
        let writes = access.direction == Direction::Write;
        list_ranges(access, layouts, if writes { access.bytes } else { ordering_bytes(access, layouts) }, extents);
        self.history.insert(extents.iter().copied(), EndedAccess { rank, writes, begin_ns: times.call_ns });
        if writes {
            let end = end_of(extents);
            self.size.extend(end);
            self.size_calls.record_write(end, rank, times.call_ns);
        } else {
            if access.bytes < access.requested_bytes {
                self.size_calls.record_observation(end_of_moved(access, layouts), rank, times.call_ns);
            }
            list_ranges(access, layouts, access.bytes, extents);
            return self.contents.origins(extents.iter().copied(), times.begin_ns, access.bytes);
        }
        if times.begin_ns != times.call_ns {
            let all = ResolvedAccess { bytes: access.requested_bytes, ..*access };
            list_ranges(&all, layouts, all.bytes, extents);
            self.contents.end_write(extents.iter().copied(), rank, times.begin_ns, times.end_ns);
            let writer = WriteCall { rank, begin_ns: times.begin_ns, until_ns: times.end_ns };
            self.write_unknown(access, layouts, extents, writer);
        }
        Vec::new()
    }

    /// Bytes that a short or failed write has not reported may have been written.
    pub(super) fn write_unknown(
        &mut self,
        access: &ResolvedAccess,
        layouts: &TypeLayouts,
        extents: &mut Vec<ByteRange>,
        writer: WriteCall,
    ) {
        self.write_unknown_from(access.bytes, access, layouts, extents, writer);
    }

    /// The same for all bytes of an access behind the first ones.
    pub(super) fn write_unknown_from(
        &mut self,
        first_bytes: u64,
        access: &ResolvedAccess,
        layouts: &TypeLayouts,
        extents: &mut Vec<ByteRange>,
        writer: WriteCall,
    ) {
        if first_bytes < access.requested_bytes {
            let rest = ResolvedAccess { first_byte: access.first_byte + first_bytes, ..*access };
            list_ranges(&rest, layouts, access.requested_bytes - first_bytes, extents);
            extents.iter().for_each(|extent| self.contents.write(*extent, None, writer));
        }
    }

    /// Begins an access to an unknown position; `end_ns` is None if not yet known.
    pub(super) fn begin_unplaced(&mut self, writes: bool, end_ns: Option<u64>) {
        match end_ns {
            Some(ns) if writes => self.contents.unplaced_until_ns = self.contents.unplaced_until_ns.max(Some(ns)),
            None if writes => self.contents.unplaced_writes += 1,
            _ => {}
        }
    }

    /// Ends such an access. `was_open` if its end was unknown at its begin.
    pub(super) fn end_unplaced(&mut self, touch: EndedAccess, was_open: bool, end_ns: u64) {
        if touch.writes {
            self.size.forget();
            self.contents.unplaced_until_ns = self.contents.unplaced_until_ns.max(Some(end_ns));
            self.contents.unplaced_writes = self.contents.unplaced_writes.saturating_sub(u64::from(was_open));
        }
        let known = self.unplaced_accesses.entry(touch.rank).or_insert(touch);
        known.writes |= touch.writes;
        known.begin_ns = known.begin_ns.max(touch.begin_ns);
    }

    /// Applies the begin of a call without data to the content.
    pub(super) fn apply_management(&mut self, call: &Call, rank: u32, deletes: bool) {
        let writer = WriteCall { rank, begin_ns: call.begin_ns, until_ns: call.end_ns };
        let is_absent = call.error.is_some_and(|error| error.name() == "MPI_ERR_NO_SUCH_FILE");
        if call.error.is_none() && call.function != Function::Open {
            self.size.apply(call, self.open_count == 0);
        }
        match call.function {
            _ if call.error.is_some() && !(call.function == Function::Delete && is_absent) => {}
            Function::SetSize => {
                let bytes = call.offset.unwrap_or(0).max(0);
                self.contents.set_size(bytes, writer);
                self.size_calls.truncate(bytes);
            }
            Function::Preallocate => self.contents.preallocate(call.offset.unwrap_or(0), writer),
            Function::Delete if self.open_count == 0 => {
                self.contents = FileContents::new(Some(0), self.limits.written_ranges)
            }
            Function::Delete if !self.contents.is_empty() => self.contents.invalidate_from(0, writer),
            Function::Close if deletes => self.contents.invalidate_from(0, writer),
            _ => {}
        }
    }

    /// Begins an opening. `is_first`: by the first rank of its communicator.
    pub(super) fn open(&mut self, call: &Call, rank: u32, is_first: bool) {
        self.set_state(call, rank, is_first);
        if call.error.is_none() {
            self.size.apply(call, self.open_count == 0);
        }
        self.open_count += u64::from(call.error.is_none());
    }

    /// Applies the state in which an opening, even if it failed, found the file.
    fn set_state(&mut self, call: &Call, rank: u32, is_first: bool) {
        let by = WriteCall { rank, begin_ns: call.begin_ns, until_ns: call.begin_ns };
        match call.number.map(u64::try_from) {
            Some(Err(_)) if self.open_count == 0 => {
                // No rank had it open, and it did not exist.
                self.contents = FileContents::new(Some(0), self.limits.written_ranges);
                self.size_calls.truncate(0);
                self.initial_bytes = 0;
            }
            // It was removed while a rank had it open.
            Some(Err(_)) if !self.contents.is_empty() => self.contents.invalidate_from(0, by),
            Some(Ok(size)) => {
                if is_first && self.has_current_size {
                    self.contents.truncate(size, by);
                    self.size_calls.truncate(i64::try_from(size).unwrap_or(i64::MAX));
                }
                self.contents.set_open_size(size);
            }
            _ => {}
        }
    }

    /// Later calls of a rank are missing: it may write anywhere.
    pub(super) fn invalidate(&mut self) {
        self.size.forget();
        self.contents.unplaced_writes += 1;
    }
}

/// True if the memory that an access uses depends on the library.
pub(super) fn is_moved_by_libraries(access: &ResolvedAccess, layouts: &TypeLayouts) -> bool {
    access.memory.datatype.is_some_and(|datatype| layouts.moved_bytes(datatype) > 0)
}

fn range_end(extent: &ByteRange) -> i64 {
    extent.at.saturating_add_unsigned(extent.bytes)
}

/// Offset after the last byte of the ranges.
fn end_of(extents: &[ByteRange]) -> i64 {
    extents.iter().map(range_end).max().unwrap_or(0)
}

/// Offset after the last byte that a short read moved.
fn end_of_moved(access: &ResolvedAccess, layouts: &TypeLayouts) -> i64 {
    access.file_ranges(layouts).map(|extent| range_end(&extent)).max().unwrap_or(0)
}

#[derive(Clone, Copy, Debug)]
pub(super) struct AccessTimes {
    /// Begin of the call that began it.
    pub(super) begin_ns: u64,
    /// Begin and end of the call that ended it.
    pub(super) call_ns: u64,
    pub(super) end_ns: u64,
}

/// End of a write, as known at the call that begins it.
pub(super) fn write_end_ns(call: &Call, is_blocking: bool) -> u64 {
    if is_blocking {
        call.end_ns
    } else {
        UNKNOWN_END_NS
    }
}

/// True for calls that concern the whole file: its name, its size, or all of its data.
pub(super) fn is_about_whole_file(function: Function) -> bool {
    matches!(
        function,
        Function::Open
            | Function::Close
            | Function::Delete
            | Function::Sync
            | Function::SetSize
            | Function::Preallocate
            | Function::GetSize
    )
}
