//! Current content of a file: which call wrote which bytes, from where in its buffer.

use std::collections::BTreeMap;

use crate::call::{DataOrigin, OriginRange};
use crate::layout::ByteRange;

/// Maximum number of ranges of a file with known writers; beyond it the oldest become unknown.
pub(super) const MAX_WRITTEN_RANGES: usize = 8 << 20;

/// Maximum number of origins per read; the rest is unknown.
pub(super) const MAX_ORIGINS: usize = 4096;

/// End of a write that is not known to have ended.
pub(super) const UNKNOWN_END_NS: u64 = u64::MAX;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct WriteCall {
    pub(super) rank: u32,
    pub(super) begin_ns: u64,
    /// End of the write; [`UNKNOWN_END_NS`] if not yet known.
    pub(super) until_ns: u64,
}

/// `memory` of bytes without a single known writer.
const UNKNOWN_MEMORY: i64 = i64::MIN;

/// 32 bytes: there are millions of them.
#[derive(Clone, Copy, Debug)]
struct WrittenRange {
    end: i64,
    /// Offset of the first byte in the writer's buffer, or [`UNKNOWN_MEMORY`].
    memory: i64,
    begin_ns: u64,
    rank: u32,
    duration: PackedDuration,
}

/// Duration of a write: in ns up to 2 s, above in units of 1024 ns, rounded up; u32::MAX if unknown or longer than half an hour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct PackedDuration(u32);

const COARSE_FLAG: u32 = 1 << 31;

impl PackedDuration {
    fn new(ns: u64) -> Self {
        match u32::try_from(ns) {
            Ok(ns) if ns < COARSE_FLAG => Self(ns),
            _ => Self(
                u32::try_from(ns.div_ceil(1024))
                    .ok()
                    .filter(|units| *units < COARSE_FLAG - 1)
                    .map_or(u32::MAX, |units| units | COARSE_FLAG),
            ),
        }
    }

    fn ns(self) -> Option<u64> {
        match self.0 {
            u32::MAX => None,
            ns if ns < COARSE_FLAG => Some(ns.into()),
            units => Some(u64::from(units & !COARSE_FLAG) * 1024),
        }
    }
}

impl WrittenRange {
    fn new(end: i64, memory: i64, writer: WriteCall) -> Self {
        let took =
            if writer.until_ns == UNKNOWN_END_NS { u64::MAX } else { writer.until_ns.saturating_sub(writer.begin_ns) };
        Self { end, memory, begin_ns: writer.begin_ns, rank: writer.rank, duration: PackedDuration::new(took) }
    }

    fn until_ns(&self) -> u64 {
        self.duration.ns().map_or(UNKNOWN_END_NS, |ns| self.begin_ns.saturating_add(ns))
    }

    fn writer(&self) -> WriteCall {
        WriteCall { rank: self.rank, begin_ns: self.begin_ns, until_ns: self.until_ns() }
    }

    fn subrange(mut self, own_start: i64, start: i64, end: i64) -> Self {
        if self.memory != UNKNOWN_MEMORY {
            self.memory += start - own_start;
        }
        self.end = end;
        self
    }
}

#[derive(Debug)]
pub(super) struct FileContents {
    ranges: BTreeMap<i64, WrittenRange>,
    max_ranges: usize,
    /// Size before the first opening; None if unknown.
    initial_bytes: Option<u64>,
    /// Ranges added without a call: at a later opening the file was longer than the calls had made it.
    external_growth: Vec<(i64, i64)>,
    /// Begin of a collective write on its first rank, while one of its ranks is added: parts of other ranks have no order with it.
    pub(super) collective_since_ns: Option<u64>,
    /// Accesses in flight to unknown positions.
    pub(super) unplaced_writes: u64,
    /// End of the last of them.
    pub(super) unplaced_until_ns: Option<u64>,
    /// Number of times that old ranges were discarded.
    pub(super) forget_count: u64,
}

impl FileContents {
    pub(super) fn new(initial_bytes: Option<u64>, max_ranges: usize) -> Self {
        Self {
            ranges: BTreeMap::new(),
            max_ranges,
            initial_bytes,
            external_growth: Vec::new(),
            collective_since_ns: None,
            unplaced_writes: 0,
            unplaced_until_ns: None,
            forget_count: 0,
        }
    }

    /// Sets the size of the file before an opening. Bytes beyond the size that results from all calls were written by other means than
    /// MPI-IO.
    pub(super) fn set_open_size(&mut self, size_bytes: u64) {
        let size = i64::try_from(size_bytes).unwrap_or(i64::MAX);
        let known = self.end();
        // Discarded ranges may have been the last.
        if size > known && self.forget_count == 0 && self.initial_bytes.is_some() {
            self.external_growth.push((known, size));
        } else if size > known {
            self.initial_bytes = None;
        }
    }

    /// The file was found shorter than the calls have made it: other means than MPI-IO have truncated it, unless a write is under way.
    pub(super) fn truncate(&mut self, size_bytes: u64, by: WriteCall) {
        let size = i64::try_from(size_bytes).unwrap_or(i64::MAX);
        let is_under_way = |piece: &WrittenRange| piece.end > size && piece.until_ns() >= by.begin_ns;
        if size < self.end() && !self.ranges.values().rev().take_while(|piece| piece.end > size).any(is_under_way) {
            self.invalidate_from(size, by);
        }
    }

    /// True if nothing is known to be in the file.
    pub(super) fn is_empty(&self) -> bool {
        self.end() == 0
    }

    /// Begins a write: its bytes in the file, and the offset of the first of them in the buffer (None if unknown).
    pub(super) fn write(&mut self, extent: ByteRange, memory: Option<i64>, writer: WriteCall) {
        let (start, end) = (extent.at, extent.at.saturating_add_unsigned(extent.bytes));
        let new = WrittenRange::new(end, memory.unwrap_or(UNKNOWN_MEMORY), writer);
        if self.ranges.range(..end).next_back().is_none_or(|(_, before)| before.end <= start) {
            self.insert_joined(start, new);
            return self.enforce_limit();
        }
        self.split_at(start);
        self.split_at(end);
        let mut clash: Vec<(i64, WrittenRange)> = Vec::new();
        let mut under = 0;
        for (begin, piece) in self.ranges.range(start..end) {
            under += 1;
            let is_unordered =
                piece.rank != writer.rank && self.collective_since_ns.is_some_and(|ns| piece.begin_ns >= ns);
            if piece.until_ns() >= writer.begin_ns || is_unordered {
                clash.push((*begin, *piece));
            }
        }
        if under == 1 && clash.is_empty() {
            if let Some(piece) = self.ranges.get_mut(&start) {
                // Common case: overwriting in place.
                *piece = new;
                return;
            }
        }
        if under > 0 {
            let old: Vec<i64> = self.ranges.range(start..end).map(|(begin, _)| *begin).collect();
            for begin in old {
                self.ranges.remove(&begin);
            }
        }
        let mut at = start;
        for (begin, piece) in clash {
            if begin > at {
                self.insert_joined(at, new.subrange(start, at, begin));
            }
            // Overlapping writes: either may determine the final content.
            let until_ns = piece.until_ns().max(writer.until_ns);
            self.insert_joined(begin, WrittenRange::new(piece.end, UNKNOWN_MEMORY, WriteCall { until_ns, ..writer }));
            at = piece.end;
        }
        if at < end {
            self.insert_joined(at, new.subrange(start, at, end));
        }
        self.enforce_limit();
    }

    fn enforce_limit(&mut self) {
        if self.ranges.len() > self.max_ranges {
            self.forget_oldest();
        }
    }

    /// Inserts a range where there is none; joins it with the previous one if that continues in it.
    fn insert_joined(&mut self, start: i64, piece: WrittenRange) {
        if let Some((begin, before)) = self.ranges.range_mut(..start).next_back() {
            let goes_on = match (before.memory, piece.memory) {
                (UNKNOWN_MEMORY, UNKNOWN_MEMORY) => true,
                (UNKNOWN_MEMORY, _) | (_, UNKNOWN_MEMORY) => false,
                (one, other) => one.checked_add(start - *begin) == Some(other),
            };
            if before.end == start && before.writer() == piece.writer() && goes_on {
                before.end = piece.end;
                return;
            }
        }
        self.ranges.insert(start, piece);
    }

    fn split_at(&mut self, at: i64) {
        let Some((begin, piece)) = self.ranges.range_mut(..at).next_back() else { return };
        if piece.end > at {
            let behind = piece.subrange(*begin, at, piece.end);
            piece.end = at;
            self.ranges.insert(at, behind);
        }
    }

    /// Ends a write whose end was unknown when it began.
    pub(super) fn end_write(
        &mut self,
        extents: impl Iterator<Item = ByteRange>,
        rank: u32,
        begin_ns: u64,
        until_ns: u64,
    ) {
        for extent in extents {
            let end = extent.at.saturating_add_unsigned(extent.bytes);
            let from = self.ranges.range(..=extent.at).next_back().map_or(extent.at, |(begin, _)| *begin);
            for (_, piece) in self.ranges.range_mut(from..end) {
                if piece.memory != UNKNOWN_MEMORY && piece.rank == rank && piece.begin_ns == begin_ns {
                    *piece = WrittenRange::new(piece.end, piece.memory, WriteCall { rank, begin_ns, until_ns });
                }
            }
        }
    }

    /// End of the file as far as it follows from the calls.
    fn end(&self) -> i64 {
        let base = self.initial_bytes.map_or(0, |bytes| i64::try_from(bytes).unwrap_or(i64::MAX));
        let written = self.ranges.last_key_value().map_or(0, |(_, piece)| piece.end);
        self.external_growth.last().map_or(0, |part| part.1).max(base).max(written)
    }

    /// The file is truncated or extended to a size. MPI does not define the content of an extension.
    pub(super) fn set_size(&mut self, bytes: i64, writer: WriteCall) {
        self.invalidate_from(bytes.min(self.end()), writer);
    }

    /// Space up to an offset is allocated: the file is extended if it is shorter.
    pub(super) fn preallocate(&mut self, bytes: i64, writer: WriteCall) {
        let end = self.end();
        if let Some(extension) = bytes.checked_sub(end).and_then(|bytes| u64::try_from(bytes).ok()).filter(|b| *b > 0) {
            self.write(ByteRange { at: end, bytes: extension }, None, writer);
        }
    }

    /// The content from an offset on becomes unknown: the file is deleted, truncated or similar.
    pub(super) fn invalidate_from(&mut self, from: i64, writer: WriteCall) {
        if let Ok(bytes) = u64::try_from(i64::MAX - from) {
            self.write(ByteRange { at: from, bytes }, None, writer);
        }
    }

    /// Discards the writers of the older three quarters of the ranges and joins adjacent ones.
    fn forget_oldest(&mut self) {
        self.forget_count += 1;
        let mut begins: Vec<u64> = self.ranges.values().map(|piece| piece.begin_ns).collect();
        let at = begins.len() / 4 * 3;
        let (_, limit, _) = begins.select_nth_unstable(at);
        let limit = *limit;
        let mut kept: Vec<(i64, WrittenRange)> = Vec::new();
        for (start, mut piece) in std::mem::take(&mut self.ranges) {
            if piece.begin_ns < limit {
                piece.memory = UNKNOWN_MEMORY;
                if let Some((_, before)) = kept.last_mut().filter(|(_, before)| before.memory == UNKNOWN_MEMORY) {
                    let until_ns = before.until_ns().max(piece.until_ns());
                    let begin_ns = before.begin_ns.max(piece.begin_ns);
                    *before = WrittenRange::new(
                        piece.end,
                        UNKNOWN_MEMORY,
                        WriteCall { until_ns, begin_ns, ..before.writer() },
                    );
                    continue;
                }
            }
            kept.push((start, piece));
        }
        self.ranges = kept.into_iter().collect();
    }

    /// Origins of the bytes of a read that began at this time and has ended.
    pub(super) fn origins(
        &self,
        extents: impl Iterator<Item = ByteRange>,
        read_begin_ns: u64,
        bytes: u64,
    ) -> Vec<OriginRange> {
        let mut list = Vec::new();
        let strayed = self.unplaced_writes > 0 || self.unplaced_until_ns.is_some_and(|ns| ns >= read_begin_ns);
        if !strayed {
            for extent in extents {
                self.origins_of(extent, read_begin_ns, &mut list);
                if list.len() > MAX_ORIGINS {
                    list.truncate(MAX_ORIGINS - 1);
                    break;
                }
            }
        }
        let known: u64 = list.iter().map(|origin| origin.bytes).sum();
        push_origin(&mut list, bytes.saturating_sub(known), DataOrigin::Unknown);
        list
    }

    fn origins_of(&self, extent: ByteRange, read_begin_ns: u64, list: &mut Vec<OriginRange>) {
        let (start, end) = (extent.at, extent.at.saturating_add_unsigned(extent.bytes));
        let from = self.ranges.range(..=start).next_back().map_or(start, |(begin, _)| *begin);
        let mut at = start;
        for (begin, piece) in self.ranges.range(from..end) {
            if piece.end <= at {
                continue;
            }
            if *begin > at {
                self.push_initial(at, *begin, list);
                at = *begin;
            }
            let stop = piece.end.min(end);
            let is_sure = piece.memory != UNKNOWN_MEMORY
                && piece.until_ns() < read_begin_ns
                && self.unplaced_until_ns.is_none_or(|ns| ns < piece.begin_ns);
            let content = if is_sure {
                DataOrigin::Call { rank: piece.rank, begin_ns: piece.begin_ns, memory: piece.memory + (at - begin) }
            } else {
                DataOrigin::Unknown
            };
            push_origin(list, (stop - at) as u64, content);
            at = stop;
            if list.len() > MAX_ORIGINS {
                return;
            }
        }
        if at < end {
            self.push_initial(at, end, list);
        }
    }

    /// Appends the origin of bytes without a write. A library that reports bytes beyond the end of the file has not delivered them.
    fn push_initial(&self, start: i64, end: i64, list: &mut Vec<OriginRange>) {
        let size = self.initial_bytes.map(|bytes| i64::try_from(bytes).unwrap_or(i64::MAX));
        match size.filter(|_| self.unplaced_until_ns.is_none()) {
            None => push_origin(list, (end - start) as u64, DataOrigin::Unknown),
            Some(size) => {
                let middle = size.clamp(start, end);
                push_origin(list, (middle - start) as u64, DataOrigin::File);
                let mut at = middle;
                for (from, to) in &self.external_growth {
                    let (from, to) = ((*from).clamp(at, end), (*to).clamp(at, end));
                    push_origin(list, (from - at) as u64, DataOrigin::Hole);
                    push_origin(list, (to - from) as u64, DataOrigin::File);
                    at = to;
                }
                let file_end = self.end().clamp(at, end);
                push_origin(list, (file_end - at) as u64, DataOrigin::Hole);
                push_origin(list, (end - file_end) as u64, DataOrigin::Unknown);
            }
        }
    }
}

/// Origin of bytes in a file of which nothing is known.
pub(super) fn unknown_origin(bytes: u64) -> Vec<OriginRange> {
    let mut list = Vec::new();
    push_origin(&mut list, bytes, DataOrigin::Unknown);
    list
}

/// Appends bytes to a list of origins; joins contiguous ones.
fn push_origin(list: &mut Vec<OriginRange>, bytes: u64, content: DataOrigin) {
    if bytes == 0 {
        return;
    }
    if let Some(last) = list.last_mut() {
        let goes_on = match (last.origin, content) {
            (DataOrigin::Call { rank, begin_ns, memory }, DataOrigin::Call { rank: r, begin_ns: b, memory: m }) => {
                (rank, begin_ns) == (r, b) && memory.checked_add_unsigned(last.bytes) == Some(m)
            }
            (one, other) => one == other,
        };
        if goes_on {
            last.bytes += bytes;
            return;
        }
    }
    list.push(OriginRange { bytes, origin: content });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn growth_without_a_call_originates_from_the_file() {
        let mut contents = FileContents::new(Some(100), 1000);
        let writer = WriteCall { rank: 0, begin_ns: 5, until_ns: 6 };
        contents.write(ByteRange { at: 150, bytes: 50 }, Some(0), writer);
        // The size results from the calls; the hole remains.
        contents.set_open_size(200);
        let list =
            |contents: &FileContents, bytes| contents.origins([ByteRange { at: 0, bytes }].into_iter(), 10, bytes);
        let of = |bytes, content| OriginRange { bytes, origin: content };
        let call = DataOrigin::Call { rank: 0, begin_ns: 5, memory: 0 };
        assert_eq!(list(&contents, 200), [of(100, DataOrigin::File), of(50, DataOrigin::Hole), of(50, call)]);
        contents.set_open_size(300);
        contents.set_open_size(300);
        let grown = [
            of(100, DataOrigin::File),
            of(50, DataOrigin::Hole),
            of(50, call),
            of(100, DataOrigin::File),
            of(20, DataOrigin::Unknown),
        ];
        assert_eq!(list(&contents, 320), grown);
        // An unknown initial size cannot be compared.
        let mut unknown = FileContents::new(None, 1000);
        unknown.set_open_size(50);
        assert_eq!(list(&unknown, 60), [of(60, DataOrigin::Unknown)]);
    }

    #[test]
    fn contents_that_mpi_does_not_define_are_unknown() {
        let writer = WriteCall { rank: 0, begin_ns: 5, until_ns: 6 };
        let of = |bytes, content| OriginRange { bytes, origin: content };
        let call = |memory| DataOrigin::Call { rank: 0, begin_ns: 5, memory };
        let written = || {
            let mut contents = FileContents::new(Some(0), 1000);
            contents.write(ByteRange { at: 0, bytes: 10 }, Some(0), writer);
            contents
        };
        let origins = |contents: &FileContents| contents.origins([ByteRange { at: 0, bytes: 40 }].into_iter(), 10, 40);
        // Beyond the end of the file, whatever the library reports.
        assert_eq!(origins(&written()), [of(10, call(0)), of(30, DataOrigin::Unknown)]);
        let write_end = |contents: &mut FileContents| contents.write(ByteRange { at: 30, bytes: 10 }, Some(0), writer);
        let mut gap = written();
        write_end(&mut gap);
        assert_eq!(origins(&gap), [of(10, call(0)), of(20, DataOrigin::Hole), of(10, call(0))]);
        let later = WriteCall { rank: 0, begin_ns: 7, until_ns: 8 };
        let last = DataOrigin::Call { rank: 0, begin_ns: 9, memory: 0 };
        for extend in [FileContents::set_size, FileContents::preallocate] {
            let mut extended = written();
            extend(&mut extended, 20, later);
            extended.write(ByteRange { at: 30, bytes: 10 }, Some(0), WriteCall { rank: 0, begin_ns: 9, until_ns: 9 });
            let found = origins(&extended);
            assert_eq!(
                (found[0], found[1].origin, found.last()),
                (of(10, call(0)), DataOrigin::Unknown, Some(&of(10, last)))
            );
            assert!(found[1].bytes >= 10);
        }
        let mut shorter = written();
        shorter.preallocate(4, later);
        assert_eq!(origins(&shorter)[0], of(10, call(0)), "an allocation within the file changes nothing");
        shorter.set_size(4, later);
        assert_eq!(origins(&shorter), [of(4, call(0)), of(36, DataOrigin::Unknown)]);
    }
}
