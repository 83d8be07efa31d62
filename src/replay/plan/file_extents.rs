//! Space that a file will need: the ranges that a replay writes. Holes of sparse files need none.

use std::ops::Range;

use beff_trace::access::ResolvedAccess;
use beff_trace::layout::TypeLayouts;
use serde::{Deserialize, Serialize};

use super::range_set::RangeSet;

/// File systems allocate whole blocks.
const BLOCK_BYTES: u64 = 4096;
/// Gaps of this length inside strided and collective writes count as written: MPI libraries write them where they lie in one of their
/// buffers (data sieving, two-phase; ROMIO: `cb_buffer_size`).
const SIEVED_BYTES: u64 = 16 << 20;
/// Maximum number of ranges of one access; beyond it, the access counts from its first byte to its last one.
const MAX_ACCESS_RANGES: usize = 4096;
/// Maximum number of recorded lengths of a file. Beyond it every second one is dropped.
const MAX_LENGTHS: usize = 64;

/// Writes to one file by one rank, or by all.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileExtents {
    /// Blocks of contiguous writes of single ranks, and of preallocation.
    alone: RangeSet,
    /// Sum of their lengths, which is smaller than `alone` if that has merged distant ranges.
    alone_bytes: u64,
    /// Strided and collective writes.
    sieved: RangeSet,
    /// Bytes written at unknown offsets.
    unlocated_bytes: u64,
    /// Lengths of the file due to calls: begin of the call and length.
    lengths: Vec<(u64, u64)>,
    /// Openings that this rank prepares: begin and length of the file then.
    openings: Vec<(u64, u64)>,
}

impl Default for FileExtents {
    fn default() -> Self {
        Self {
            alone: RangeSet::default(),
            alone_bytes: 0,
            sieved: RangeSet::with_gaps_merged(SIEVED_BYTES),
            unlocated_bytes: 0,
            lengths: Vec::new(),
            openings: Vec::new(),
        }
    }
}

impl FileExtents {
    /// Adds a write; `together` if several ranks call it.
    pub fn add_write(&mut self, begin_ns: u64, access: &ResolvedAccess, layouts: &TypeLayouts, together: bool) {
        let hull = access.hull(layouts);
        let [begin, end] = [hull.start, hull.end].map(|at| u64::try_from(at).unwrap_or(0));
        if begin >= end {
            return;
        }
        self.add_length(begin_ns, end);
        let is_run = access.file_ranges(layouts).next().is_none_or(|extent| extent.bytes >= access.bytes);
        if is_run && !together {
            return self.add_alone(begin..end);
        }
        if access.file_ranges(layouts).nth(MAX_ACCESS_RANGES).is_some() {
            return self.sieved.add(whole_blocks(begin..end));
        }
        for extent in access.file_ranges(layouts) {
            let start = u64::try_from(extent.at).unwrap_or(0);
            self.sieved.add(whole_blocks(start..start.saturating_add(extent.bytes)));
        }
    }

    /// Adds a write at an unknown offset.
    pub fn add_unlocated_write(&mut self, bytes: u64) {
        self.unlocated_bytes = self.unlocated_bytes.saturating_add(bytes);
    }

    /// Adds a preallocation of the first bytes of the file.
    pub fn add_preallocation(&mut self, begin_ns: u64, bytes: u64) {
        self.add_length(begin_ns, bytes);
        self.add_alone(0..bytes);
    }

    /// Adds a length that a call gives the file. It writes nothing.
    pub fn add_length(&mut self, begin_ns: u64, bytes: u64) {
        if self.length() >= bytes {
            return;
        }
        self.lengths.push((begin_ns, bytes));
        if self.lengths.len() > MAX_LENGTHS {
            let mut number = 0;
            self.lengths.retain(|_| {
                number += 1;
                number % 2 == 1
            });
        }
    }

    /// Adds an opening, before which this rank writes what the file then lacks of its recorded length.
    pub fn add_opening(&mut self, begin_ns: u64, bytes: u64) {
        let known = self.openings.last().map_or(0, |(_, bytes)| *bytes).max(self.length());
        if bytes > known {
            self.openings.push((begin_ns, bytes));
        }
    }

    /// Adds the writes of another rank.
    pub fn merge(&mut self, other: &Self) {
        self.alone.merge(&other.alone);
        self.alone_bytes = self.alone_bytes.saturating_add(other.alone_bytes);
        self.sieved.merge(&other.sieved);
        self.add_unlocated_write(other.unlocated_bytes);
        self.lengths.extend(&other.lengths);
        self.openings.extend(&other.openings);
    }

    /// Upper limit of the space for the file, which has `initial_bytes` before the first call.
    #[must_use]
    pub fn required_bytes(&self, initial_bytes: u64) -> u64 {
        let extensions = self.extensions(initial_bytes);
        let mut all = RangeSet::default();
        all.merge(&self.alone);
        all.merge(&self.sieved);
        extensions.iter().cloned().chain(std::iter::once(0..initial_bytes)).for_each(|range| all.add(range));
        let extended = extensions.iter().map(|range| range.end - range.start);
        let parts = [initial_bytes, self.alone_bytes, self.sieved.bytes()].into_iter().chain(extended);
        let sum = parts.fold(0, u64::saturating_add);
        all.bytes().min(sum).saturating_add(self.unlocated_bytes)
    }

    fn add_alone(&mut self, range: Range<u64>) {
        let range = whole_blocks(range);
        self.alone_bytes = self.alone_bytes.saturating_add(range.end - range.start);
        self.alone.add(range);
    }

    fn length(&self) -> u64 {
        self.lengths.last().map_or(0, |(_, bytes)| *bytes)
    }

    /// Ranges written before openings, because no earlier call has made the file as long.
    fn extensions(&self, initial_bytes: u64) -> Vec<Range<u64>> {
        let mut openings = self.openings.clone();
        openings.sort_unstable();
        let mut found = Vec::new();
        let mut extended_bytes = initial_bytes;
        for (begin_ns, bytes) in openings {
            let earlier = self.lengths.iter().filter(|(since_ns, _)| *since_ns < begin_ns).map(|(_, bytes)| *bytes);
            let length = earlier.fold(extended_bytes, u64::max);
            if bytes > length {
                found.push(length..bytes);
                extended_bytes = bytes;
            }
        }
        found
    }
}

fn whole_blocks(range: Range<u64>) -> Range<u64> {
    let end = range.end.checked_next_multiple_of(BLOCK_BYTES).unwrap_or(u64::MAX);
    range.start - range.start % BLOCK_BYTES..end
}

#[cfg(test)]
mod tests {
    use beff_trace::access::{TrackedView, TypedBuffer};
    use beff_trace::Direction;

    use super::*;

    const TIB: u64 = 1 << 40;

    fn write(file: &mut FileExtents, begin_ns: u64, offset: u64, bytes: u64, together: bool) {
        let access = ResolvedAccess {
            handle: 1,
            file: Some(0),
            direction: Direction::Write,
            view: TrackedView::default(),
            first_byte: offset,
            bytes,
            requested_bytes: bytes,
            is_complete: true,
            memory: TypedBuffer { datatype: None, count: bytes },
        };
        file.add_write(begin_ns, &access, &TypeLayouts::default(), together);
    }

    #[test]
    fn holes_take_no_space() {
        let mut file = FileExtents::default();
        write(&mut file, 10, TIB, 4096, false);
        assert_eq!(file.required_bytes(0), 4096);
        file.add_length(20, 2 * TIB);
        file.add_opening(30, 2 * TIB);
        assert_eq!(file.required_bytes(0), 4096, "the file is as long as at its opening");
        assert_eq!(file.required_bytes(10_000), 14_096, "the initial file is written");
        file.add_preallocation(40, 1 << 20);
        assert_eq!(file.required_bytes(10_000), (1 << 20) + 4096);
    }

    #[test]
    fn blocks_written_twice_count_once_and_distant_ones_as_such() {
        let mut file = FileExtents::default();
        (0..1000).for_each(|n| write(&mut file, n, 100 * n, 100, false));
        assert_eq!(file.required_bytes(0), 102_400, "25 blocks");
        let mut file = FileExtents::default();
        (0..50_000).for_each(|n| write(&mut file, n, n * (TIB / 50_000), 1, false));
        assert!(file.required_bytes(0) <= 50_000 * 4096, "{}", file.required_bytes(0));
    }

    #[test]
    fn gaps_that_a_library_may_fill_count() {
        let (mut file, mut other) = (FileExtents::default(), FileExtents::default());
        write(&mut file, 1, 0, 4096, true);
        write(&mut other, 1, 10 << 20, 4096, true);
        write(&mut other, 2, TIB, 4096, true);
        file.merge(&other);
        assert_eq!(file.required_bytes(0), (10 << 20) + 4096 + 4096);
    }

    #[test]
    fn what_no_call_has_written_before_an_opening_is_written_there() {
        let (mut file, mut other) = (FileExtents::default(), FileExtents::default());
        write(&mut other, 10, 0, 8192, false);
        write(&mut other, 30, TIB, 4096, false);
        file.add_opening(20, 1 << 20);
        file.add_opening(40, TIB + 4096);
        file.merge(&other);
        assert_eq!(file.required_bytes(0), (1 << 20) + 4096);
        assert_eq!(file.required_bytes(1 << 21), (1 << 21) + 4096);
    }

    #[test]
    fn the_number_of_lengths_is_limited() {
        let mut file = FileExtents::default();
        (1..=1000).for_each(|n| write(&mut file, n, n * 4096, 4096, false));
        assert!(file.lengths.len() <= MAX_LENGTHS + 1, "{}", file.lengths.len());
        file.add_opening(2000, 1001 * 4096);
        assert!(file.required_bytes(0) <= 1001 * 4096);
    }

    #[test]
    fn writes_at_unknown_offsets_count() {
        let mut file = FileExtents::default();
        file.add_unlocated_write(1000);
        assert_eq!(file.required_bytes(50), 1050);
    }
}
