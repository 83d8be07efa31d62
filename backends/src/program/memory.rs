//! Memory of a program: the source of its writes, the area where its reads land, and what is under way in it.

use std::io::Error;
use std::ops::Range;

use beff_trace::Direction;

use crate::memory::Ring;

/// Pages are whole, so that memory is aligned wherever its place is.
const PAGE_BYTES: u64 = 4096;

/// Memory with `bytes` bytes or more, page aligned and zeroed, for [`crate::ProgramRequest::source`].
///
/// # Errors
/// The kernel's answer if the memory cannot be mapped; [`std::io::ErrorKind::OutOfMemory`] for more than an address can name.
pub fn area(bytes: u64) -> std::io::Result<Ring> {
    let too_much = || Error::new(std::io::ErrorKind::OutOfMemory, format!("{bytes} bytes of memory"));
    let whole =
        bytes.max(1).checked_next_multiple_of(PAGE_BYTES).filter(|whole| *whole < 1 << 47).ok_or_else(too_much)?;
    Ring::new(whole, 0)
}

/// Transfers read from the source and write to the landing area, and may be under way; a program gets a part of either in its
/// hands to change it only when none of them touches it.
///
/// Both areas are used by address alone from the begin on: a reference to all of the landing area would claim bytes that a
/// library or a kernel is about to write. Whoever begins transfers owns this value, and drops it after the last of them.
#[derive(Debug)]
pub struct Memory {
    /// Holds the mapping.
    _source: Ring,
    /// Holds the mapping.
    _landing: Ring,
    source_at: *mut u8,
    source_bytes: u64,
    landing_at: *mut u8,
    landing_bytes: u64,
    /// Parts that something is about to read or write; an empty one is free.
    under_way: Vec<(Area, Range<u64>)>,
    free: Vec<u32>,
}

/// Which memory a transfer uses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Area {
    /// That of writes.
    Source,
    /// That of reads.
    #[default]
    Landing,
}

impl Area {
    /// The one that accesses of a direction use.
    #[must_use]
    pub fn of(direction: Direction) -> Self {
        match direction {
            Direction::Read => Self::Landing,
            Direction::Write => Self::Source,
        }
    }
}

/// A part of an area that is under way.
#[derive(Debug, PartialEq, Eq)]
#[must_use = "what is never ended stays under way"]
pub struct Landing(u32);

impl Memory {
    /// Takes the source, and maps `landing_bytes` for reads.
    ///
    /// # Errors
    /// As [`area`].
    pub fn new(mut source: Ring, landing_bytes: u64) -> std::io::Result<Self> {
        let mut landing = area(landing_bytes)?;
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
            under_way,
            free,
        })
    }

    /// Where the source begins.
    #[must_use]
    pub fn source_at(&self) -> *const u8 {
        self.source_at.cast_const()
    }

    /// Where the landing area begins.
    #[must_use]
    pub fn landing_at(&self) -> *mut u8 {
        self.landing_at
    }

    /// Bytes of the source; whole pages.
    #[must_use]
    pub fn source_bytes(&self) -> u64 {
        self.source_bytes
    }

    /// Bytes of the landing area, as asked for.
    #[must_use]
    pub fn landing_bytes(&self) -> u64 {
        self.landing_bytes
    }

    /// The source.
    #[must_use]
    pub fn source(&self) -> &[u8] {
        // SAFETY: mapped for as long as this value lives; transfers only read from it, and who writes to it borrows this value alone.
        unsafe { std::slice::from_raw_parts(self.source_at, self.source_bytes as usize) }
    }

    /// Makes room for so many transfers at once, so that [`Memory::begin`] does not allocate.
    pub fn reserve(&mut self, transfers: usize) {
        self.under_way.reserve(transfers.saturating_sub(self.under_way.len()));
        self.free.reserve(transfers.saturating_sub(self.free.len()));
    }

    /// From now on something may use this part.
    pub fn begin(&mut self, area: Area, part: Range<u64>) -> Landing {
        if let Some(free) = self.free.pop() {
            self.under_way[free as usize] = (area, part);
            return Landing(free);
        }
        self.under_way.push((area, part));
        // There are fewer transfers at once than 2^32: each has a request in memory.
        Landing((self.under_way.len() - 1) as u32)
    }

    /// Nothing uses that part any more.
    pub fn end(&mut self, landing: Landing) {
        self.under_way[landing.0 as usize].1 = 0..0;
        self.free.push(landing.0);
    }

    /// True if something may use a part of an area.
    #[must_use]
    pub fn is_under_way(&self) -> bool {
        self.under_way.len() > self.free.len()
    }

    /// A part of the landing area in which nothing is under way.
    ///
    /// # Errors
    /// What is wrong with it, in words: it lies outside, or something is about to write to it.
    pub fn landed(&mut self, part: Range<u64>) -> Result<&mut [u8], String> {
        self.part(Area::Landing, part)
    }

    /// A part of the source from which nothing is under way, to be changed.
    ///
    /// # Errors
    /// What is wrong with it, in words: it lies outside, or something is about to read from it.
    pub fn source_mut(&mut self, part: Range<u64>) -> Result<&mut [u8], String> {
        self.part(Area::Source, part)
    }

    fn part(&mut self, area: Area, part: Range<u64>) -> Result<&mut [u8], String> {
        let (name, begin, bytes) = match area {
            Area::Source => ("source", self.source_at, self.source_bytes),
            Area::Landing => ("landing area", self.landing_at, self.landing_bytes),
        };
        if part.start > part.end || part.end > bytes {
            return Err(format!("bytes {part:?} of a {name} of {bytes} bytes"));
        }
        let meets = |other: &Range<u64>| !part.is_empty() && other.start < part.end && part.start < other.end;
        if let Some((_, other)) = self.under_way.iter().find(|(of, other)| *of == area && meets(other)) {
            return Err(format!("bytes {part:?} of the {name}, while a transfer of {other:?} is pending"));
        }
        // SAFETY: inside the mapping; nothing uses it but what is under way, and of that nothing touches this part; the exclusive
        // borrow of this value keeps more from being begun, and other references from being there.
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
    fn what_is_under_way_is_not_handed_out() {
        let mut source = area(5).unwrap();
        source.bytes_mut()[4] = 9;
        let mut memory = Memory::new(source, 100).unwrap();
        assert_eq!((memory.source()[4], memory.source_bytes(), memory.landing_bytes()), (9, 4096, 100));
        assert_eq!(memory.landing_at() as usize % 4096, 0);

        let (first, second) = (memory.begin(Area::Landing, 10..20), memory.begin(Area::Landing, 50..60));
        for refused in [0..11, 10..20, 12..13, 19..50, 0..100, 59..60] {
            assert!(memory.landed(refused.clone()).unwrap_err().contains("pending"), "{refused:?}");
        }
        for free in [0..10, 20..50, 60..100, 15..15, 100..100] {
            assert_eq!(memory.landed(free.clone()).unwrap().len() as u64, free.end - free.start);
        }
        assert!(memory.landed(0..101).unwrap_err().contains("100 bytes"));
        memory.end(first);
        memory.landed(0..20).unwrap().fill(7);
        assert_eq!(memory.begin(Area::Landing, 0..5), Landing(0));
        assert!(memory.is_under_way());
        memory.end(second);
        memory.end(Landing(0));
        assert!(!memory.is_under_way());
        assert_eq!(memory.landed(0..100).unwrap()[..21], [[7; 20].as_slice(), &[0]].concat());
    }

    #[test]
    fn the_source_changes_only_where_nothing_is_under_way() {
        let mut memory = Memory::new(area(5).unwrap(), 100).unwrap();
        let (write, _read) =
            (memory.begin(Area::of(Direction::Write), 10..20), memory.begin(Area::of(Direction::Read), 0..90));
        for refused in [0..11, 19..30, 12..13] {
            assert!(memory.source_mut(refused.clone()).unwrap_err().contains("pending"), "{refused:?}");
        }
        assert!(memory.source_mut(0..4097).unwrap_err().contains("4096 bytes"));
        memory.source_mut(20..30).unwrap().fill(7);
        memory.landed(90..100).unwrap().fill(9);
        memory.end(write);
        memory.source_mut(10..20).unwrap().fill(8);
        assert_eq!(memory.source()[9..31], [[0].as_slice(), &[8; 10], &[7; 10], &[0]].concat());
        assert!(memory.landed(0..1).is_err(), "the areas are told apart");
    }

    #[test]
    fn more_than_an_address_can_name_is_refused() {
        assert_eq!(area(u64::MAX).unwrap_err().kind(), std::io::ErrorKind::OutOfMemory);
        assert_eq!(area(0).unwrap().bytes().len(), 4096);
    }
}
