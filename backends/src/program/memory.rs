//! Memory of a program: the source of its writes, the area where its reads land, and what is under way in it.

use std::io::Error;
use std::ops::Range;

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

/// The source is only read. The landing area is written by transfers that may be under way; a program gets a part of it in its
/// hands only when none of them touches it.
///
/// Both areas are used by address alone from the begin on: a reference to all of the landing area would claim bytes that a
/// library or a kernel is about to write. Whoever begins transfers owns this value, and drops it after the last of them.
#[derive(Debug)]
pub struct Memory {
    /// Holds the mapping.
    _source: Ring,
    /// Holds the mapping.
    _landing: Ring,
    source_at: *const u8,
    source_bytes: u64,
    landing_at: *mut u8,
    landing_bytes: u64,
    /// Parts of the landing area that something is about to write; an empty one is free.
    under_way: Vec<Range<u64>>,
    free: Vec<u32>,
}

/// A part of the landing area that is under way.
#[derive(Debug, PartialEq, Eq)]
#[must_use = "what is never ended stays under way"]
pub struct Landing(u32);

impl Memory {
    /// Takes the source, and maps `landing_bytes` for reads.
    ///
    /// # Errors
    /// As [`area`].
    pub fn new(source: Ring, landing_bytes: u64) -> std::io::Result<Self> {
        let mut landing = area(landing_bytes)?;
        let (source_at, source_bytes) = (source.bytes().as_ptr(), source.bytes().len() as u64);
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
        self.source_at
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
        // SAFETY: mapped for as long as this value lives, and never written: transfers only read from it.
        unsafe { std::slice::from_raw_parts(self.source_at, self.source_bytes as usize) }
    }

    /// Makes room for so many transfers at once, so that [`Memory::begin`] does not allocate.
    pub fn reserve(&mut self, transfers: usize) {
        self.under_way.reserve(transfers.saturating_sub(self.under_way.len()));
        self.free.reserve(transfers.saturating_sub(self.free.len()));
    }

    /// From now on something may write to this part.
    pub fn begin(&mut self, part: Range<u64>) -> Landing {
        if let Some(free) = self.free.pop() {
            self.under_way[free as usize] = part;
            return Landing(free);
        }
        self.under_way.push(part);
        // There are fewer transfers at once than 2^32: each has a request in memory.
        Landing((self.under_way.len() - 1) as u32)
    }

    /// Nothing writes to that part any more.
    pub fn end(&mut self, landing: Landing) {
        self.under_way[landing.0 as usize] = 0..0;
        self.free.push(landing.0);
    }

    /// True if something may write to a part of the landing area.
    #[must_use]
    pub fn is_under_way(&self) -> bool {
        self.under_way.len() > self.free.len()
    }

    /// A part of the landing area in which nothing is under way.
    ///
    /// # Errors
    /// What is wrong with it, in words: it lies outside, or something is about to write to it.
    pub fn landed(&mut self, part: Range<u64>) -> Result<&mut [u8], String> {
        if part.start > part.end || part.end > self.landing_bytes {
            return Err(format!("bytes {part:?} of a landing area of {} bytes", self.landing_bytes));
        }
        let meets = |other: &&Range<u64>| !part.is_empty() && other.start < part.end && part.start < other.end;
        if let Some(other) = self.under_way.iter().find(meets) {
            return Err(format!("bytes {part:?} of the landing area, while a read into {other:?} is pending"));
        }
        // SAFETY: inside the mapping; nothing writes to it but what is under way, and of that nothing touches this part; the
        // exclusive borrow of this value keeps more from being begun.
        unsafe {
            let begin = self.landing_at.add(part.start as usize);
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

        let (first, second) = (memory.begin(10..20), memory.begin(50..60));
        for refused in [0..11, 10..20, 12..13, 19..50, 0..100, 59..60] {
            assert!(memory.landed(refused.clone()).unwrap_err().contains("pending"), "{refused:?}");
        }
        for free in [0..10, 20..50, 60..100, 15..15, 100..100] {
            assert_eq!(memory.landed(free.clone()).unwrap().len() as u64, free.end - free.start);
        }
        assert!(memory.landed(0..101).unwrap_err().contains("100 bytes"));
        memory.end(first);
        memory.landed(0..20).unwrap().fill(7);
        assert_eq!(memory.begin(0..5), Landing(0));
        assert!(memory.is_under_way());
        memory.end(second);
        memory.end(Landing(0));
        assert!(!memory.is_under_way());
        assert_eq!(memory.landed(0..100).unwrap()[..21], [[7; 20].as_slice(), &[0]].concat());
    }

    #[test]
    fn more_than_an_address_can_name_is_refused() {
        assert_eq!(area(u64::MAX).unwrap_err().kind(), std::io::ErrorKind::OutOfMemory);
        assert_eq!(area(0).unwrap().bytes().len(), 4096);
    }
}
