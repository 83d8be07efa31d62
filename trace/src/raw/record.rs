//! Records: words of 8 bytes. The lowest byte of the first word is the tag; zero is the end of a live block.

use crate::call::{Call, Completion};
use crate::function::Function;

/// Tag: the next word is the tick that the next record is relative to.
pub const TAG_BASE: u8 = 0xf0;
/// Tag: another thread from here on, in the upper half of the word.
pub const TAG_THREAD: u8 = 0xf1;
/// Tag: part of an event; the upper half of the word is its length in bytes, padded to whole words.
pub const TAG_PART: u8 = 0xf2;
/// Tag: last part of an event.
pub const TAG_LAST: u8 = 0xf3;
/// Tag: call equal to the last compact record of the block except for times and offset, in 16 bytes; see [`repeat_words`].
pub const TAG_REPEAT: u8 = 0xf4;

/// Tag: buffer address of the following data accesses in the block, up to the next such word; see [`buffer_word`].
pub const TAG_BUFFER: u8 = 0xf5;

/// Exclusive limit of the times in a record of [`TAG_REPEAT`], in ticks.
pub const REPEAT_TICKS: u64 = 1 << 28;

/// Encodes a repeated call: ticks since the previous begin, duration in ticks (both less than [`REPEAT_TICKS`]), offset.
#[inline]
#[must_use]
pub fn repeat_words(since_ticks: u64, took_ticks: u64, offset: i64) -> [u64; 2] {
    [u64::from(TAG_REPEAT) | (since_ticks << 8) | (took_ticks << 36), offset as u64]
}

/// The word of [`TAG_BUFFER`]. It has the lower 56 bits of an address, which suffice for user space.
#[inline]
#[must_use]
pub fn buffer_word(address: u64) -> u64 {
    u64::from(TAG_BUFFER) | address << 8
}

/// Fields of a compact record; bits of [`CompactRecord::present`].
pub mod has {
    /// Large-count variant.
    pub const LARGE: u8 = 1;
    /// `offset` is set.
    pub const OFFSET: u8 = 2;
    /// `count` is set.
    pub const COUNT: u8 = 4;
    /// `bytes` is set.
    pub const BYTES: u8 = 8;
    /// `bytes` is the request that the call returned.
    pub const REQUEST: u8 = 16;
    /// `offset` is the only request of the call, which completed it.
    pub const COMPLETES: u8 = 32;
    /// `handle` is set.
    pub const HANDLE: u8 = 64;
    /// `datatype` is set.
    pub const DATATYPE: u8 = 128;
}

/// Compact record, used for almost every call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CompactRecord {
    /// Number of the function.
    pub function: u8,
    /// The fields that are set.
    pub present: u8,
    /// Type in memory.
    pub datatype: u16,
    /// Opening of the file.
    pub handle: u16,
    /// Ticks since the begin of the previous record in this lane.
    pub since_ticks: u32,
    /// Duration in ticks.
    pub duration_ticks: u32,
    /// Offset, or request.
    pub offset: i64,
    /// Number of elements.
    pub count: u32,
    /// Bytes, or request.
    pub bytes: u32,
}

impl CompactRecord {
    /// Encodes the record. The first word is never zero.
    #[inline]
    #[must_use]
    pub fn words(&self) -> [u64; 4] {
        [
            (u64::from(self.function) + 1)
                | (u64::from(self.present) << 8)
                | (u64::from(self.datatype) << 16)
                | (u64::from(self.handle) << 32),
            u64::from(self.since_ticks) | (u64::from(self.duration_ticks) << 32),
            self.offset as u64,
            u64::from(self.count) | (u64::from(self.bytes) << 32),
        ]
    }

    /// Decodes the record.
    #[must_use]
    pub fn from_words(words: [u64; 4]) -> Self {
        Self {
            function: (words[0] as u8).wrapping_sub(1),
            present: (words[0] >> 8) as u8,
            datatype: (words[0] >> 16) as u16,
            handle: (words[0] >> 32) as u16,
            since_ticks: words[1] as u32,
            duration_ticks: (words[1] >> 32) as u32,
            offset: words[2] as i64,
            count: words[3] as u32,
            bytes: (words[3] >> 32) as u32,
        }
    }

    /// This record with the changes of [`repeat_words`].
    #[must_use]
    pub fn repeat(&self, words: [u64; 2]) -> Self {
        let ticks = |at: u32| (words[0] >> at) as u32 & (REPEAT_TICKS as u32 - 1);
        Self { since_ticks: ticks(8), duration_ticks: ticks(36), offset: words[1] as i64, ..*self }
    }

    /// The call, with times in ticks; None if the function does not exist.
    #[must_use]
    pub fn call(&self, before_tick: u64, thread: u32) -> Option<Call> {
        let has = |bit: u8| self.present & bit != 0;
        let begin = before_tick.wrapping_add(u64::from(self.since_ticks));
        let function = Function::from_number(self.function)?;
        let mut call = Call::new(function, begin, begin.wrapping_add(u64::from(self.duration_ticks)));
        call.thread = thread;
        call.large_count = has(has::LARGE) && function.has_large_count_variant();
        call.handle = has(has::HANDLE).then(|| u32::from(self.handle));
        call.datatype = has(has::DATATYPE).then(|| u32::from(self.datatype));
        call.offset = has(has::OFFSET).then_some(self.offset);
        call.count = has(has::COUNT).then(|| i64::from(self.count));
        call.request = has(has::REQUEST).then(|| u64::from(self.bytes));
        let bytes = (has(has::BYTES) && !has(has::REQUEST)).then(|| u64::from(self.bytes));
        if has(has::COMPLETES) {
            let request = self.offset as u64;
            call.offset = None;
            call.requests.push(request);
            call.completions.push(Completion { request, bytes, error: None });
        } else {
            call.bytes = bytes;
        }
        Some(call)
    }
}
