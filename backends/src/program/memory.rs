//! Memory of a program: source of its writes, landing area of its reads, and accesses in flight.

use std::io::Error;
use std::ops::Range;

use beff_trace::Direction;

use crate::transfer_buffer::TransferBuffer;

/// Areas are whole pages, so that any address is aligned.
const PAGE_BYTES: u64 = 4096;

/// At least `bytes` bytes of memory, page aligned and zeroed, for [`crate::ProgramRequest::source`].
///
/// # Errors
/// The error of the kernel; [`std::io::ErrorKind::OutOfMemory`] beyond the address space.
pub fn allocate_area(bytes: u64) -> std::io::Result<TransferBuffer> {
    let too_much = || Error::new(std::io::ErrorKind::OutOfMemory, format!("{bytes} bytes of memory"));
    let whole =
        bytes.max(1).checked_next_multiple_of(PAGE_BYTES).filter(|whole| *whole < 1 << 47).ok_or_else(too_much)?;
    TransferBuffer::new(whole, 0)
}

/// Transfers from the source and to the landing area may be in flight; only parts that none of them accesses may be changed.
///
/// Both areas are accessed by address only: a reference to the whole landing area would claim bytes that a library or a kernel is
/// about to write. The owner of this value starts the transfers, and drops it after the last of them.
#[derive(Debug)]
pub struct ProgramMemory {
    _source: TransferBuffer,
    _landing: TransferBuffer,
    source_at: *mut u8,
    source_bytes: u64,
    landing_at: *mut u8,
    landing_bytes: u64,
    /// Parts in use by transfers; an empty one is free.
    in_flight: Vec<(MemoryArea, Range<u64>)>,
    free: Vec<u32>,
}

/// Which memory a transfer uses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MemoryArea {
    /// Memory of writes.
    Source,
    /// Memory of reads.
    #[default]
    Landing,
}

impl MemoryArea {
    /// The area of a direction.
    #[must_use]
    pub fn of(direction: Direction) -> Self {
        match direction {
            Direction::Read => Self::Landing,
            Direction::Write => Self::Source,
        }
    }
}

/// A part of an area in use by a transfer.
#[derive(Debug, PartialEq, Eq)]
#[must_use = "without end() the part stays in use"]
pub struct AccessId(u32);

impl ProgramMemory {
    /// Stores the source, and maps `landing_bytes` for reads.
    ///
    /// # Errors
    /// As [`allocate_area`].
    pub fn new(mut source: TransferBuffer, landing_bytes: u64) -> std::io::Result<Self> {
        let mut landing = allocate_area(landing_bytes)?;
        let (source_at, source_bytes) = (source.bytes_mut().as_mut_ptr(), source.bytes().len() as u64);
        let landing_at = landing.bytes_mut().as_mut_ptr();
        let (under_way, free) = (Vec::new(), Vec::new());
        Ok(Self {
            _source: source,
            _landing: landing,
            source_at,
            source_bytes,
            landing_at,
            landing_bytes,
            in_flight: under_way,
            free,
        })
    }

    /// Address of the source.
    #[must_use]
    pub fn source_at(&self) -> *const u8 {
        self.source_at.cast_const()
    }

    /// Address of the landing area.
    #[must_use]
    pub fn landing_at(&self) -> *mut u8 {
        self.landing_at
    }

    /// Bytes of the source; whole pages.
    #[must_use]
    pub fn source_bytes(&self) -> u64 {
        self.source_bytes
    }

    /// Bytes of the landing area, as requested.
    #[must_use]
    pub fn landing_bytes(&self) -> u64 {
        self.landing_bytes
    }

    /// The source.
    #[must_use]
    pub fn source(&self) -> &[u8] {
        // SAFETY: mapped while this value lives; transfers only read from it, and writing requires an exclusive borrow of this
        // value.
        unsafe { std::slice::from_raw_parts(self.source_at, self.source_bytes as usize) }
    }

    /// Reserves entries, so that [`ProgramMemory::begin_access`] does not allocate.
    pub fn reserve(&mut self, transfers: usize) {
        self.in_flight.reserve(transfers.saturating_sub(self.in_flight.len()));
        self.free.reserve(transfers.saturating_sub(self.free.len()));
    }

    /// Marks this part as in use.
    pub fn begin_access(&mut self, area: MemoryArea, part: Range<u64>) -> AccessId {
        if let Some(free) = self.free.pop() {
            self.in_flight[free as usize] = (area, part);
            return AccessId(free);
        }
        self.in_flight.push((area, part));
        // Fewer than 2^32 simultaneous transfers: each has a request in memory.
        AccessId((self.in_flight.len() - 1) as u32)
    }

    /// Marks that part as free.
    pub fn end_access(&mut self, landing: AccessId) {
        self.in_flight[landing.0 as usize].1 = 0..0;
        self.free.push(landing.0);
    }

    /// True if any part is in use.
    #[must_use]
    pub fn has_in_flight(&self) -> bool {
        self.in_flight.len() > self.free.len()
    }

    /// A part of the landing area not in use.
    ///
    /// # Errors
    /// A message: it lies outside, or a transfer may write to it.
    pub fn landing_range(&mut self, part: Range<u64>) -> Result<&mut [u8], String> {
        let (begin, bytes) = (self.landing_at, self.landing_bytes);
        if part.start > part.end || part.end > bytes {
            return Err(format!("bytes {part:?} of a landing area of {bytes} bytes"));
        }
        let overlaps = |other: &Range<u64>| !part.is_empty() && other.start < part.end && part.start < other.end;
        if let Some((_, other)) =
            self.in_flight.iter().find(|(of, other)| *of == MemoryArea::Landing && overlaps(other))
        {
            return Err(format!("bytes {part:?} of the landing area, while a transfer of {other:?} is pending"));
        }
        // SAFETY: inside the mapping; no registered transfer accesses this part; the exclusive borrow of this value prevents new
        // transfers and other references.
        unsafe {
            let begin = begin.add(part.start as usize);
            Ok(std::slice::from_raw_parts_mut(begin, (part.end - part.start) as usize))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_in_flight_is_not_lent() {
        let mut source = allocate_area(5).unwrap();
        source.bytes_mut()[4] = 9;
        let mut memory = ProgramMemory::new(source, 100).unwrap();
        assert_eq!((memory.source()[4], memory.source_bytes(), memory.landing_bytes()), (9, 4096, 100));
        assert_eq!(memory.landing_at() as usize % 4096, 0);

        let (first, second) =
            (memory.begin_access(MemoryArea::Landing, 10..20), memory.begin_access(MemoryArea::Landing, 50..60));
        for refused in [0..11, 10..20, 12..13, 19..50, 0..100, 59..60] {
            assert!(memory.landing_range(refused.clone()).unwrap_err().contains("pending"), "{refused:?}");
        }
        for free in [0..10, 20..50, 60..100, 15..15, 100..100] {
            assert_eq!(memory.landing_range(free.clone()).unwrap().len() as u64, free.end - free.start);
        }
        assert!(memory.landing_range(0..101).unwrap_err().contains("100 bytes"));
        memory.end_access(first);
        memory.landing_range(0..20).unwrap().fill(7);
        assert_eq!(memory.begin_access(MemoryArea::Landing, 0..5), AccessId(0));
        assert!(memory.has_in_flight());
        memory.end_access(second);
        memory.end_access(AccessId(0));
        assert!(!memory.has_in_flight());
        assert_eq!(memory.landing_range(0..100).unwrap()[..21], [[7; 20].as_slice(), &[0]].concat());
    }

    #[test]
    fn the_areas_are_distinct() {
        let mut memory = ProgramMemory::new(allocate_area(5).unwrap(), 100).unwrap();
        let _write = memory.begin_access(MemoryArea::of(Direction::Write), 10..20);
        memory.landing_range(0..100).unwrap().fill(9);
        let _read = memory.begin_access(MemoryArea::of(Direction::Read), 0..10);
        assert!(memory.landing_range(0..1).is_err());
    }

    #[test]
    fn more_than_an_address_can_name_is_refused() {
        assert_eq!(allocate_area(u64::MAX).unwrap_err().kind(), std::io::ErrorKind::OutOfMemory);
        assert_eq!(allocate_area(0).unwrap().bytes().len(), 4096);
    }
}
