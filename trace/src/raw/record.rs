//! Records: words of 8 bytes. The lowest byte of the first word tells what it is; zero is the end of a live block.

use crate::call::{Call, Completion};
use crate::function::Function;

/// A tag: the next word is the tick from which the next record counts.
pub const TAG_BASE: u8 = 0xf0;
/// A tag: from here on another thread, in the upper half of the word.
pub const TAG_THREAD: u8 = 0xf1;
/// A tag: part of an event; its bytes are counted in the upper half of the word and padded to whole words.
pub const TAG_PART: u8 = 0xf2;
/// A tag: the last part of an event.
pub const TAG_LAST: u8 = 0xf3;
/// A tag: a call like that of the last compact record of the block but for times and offset, in 16 bytes; see [`again`].
pub const TAG_AGAIN: u8 = 0xf4;

/// A tag: address of the memory of the data accesses that follow in the block, up to the next such word; see [`buffer`].
pub const TAG_BUFFER: u8 = 0xf5;

/// Longest time in ticks in a record of [`TAG_AGAIN`], exclusive.
pub const AGAIN_TICKS: u64 = 1 << 28;

/// A call like the one before: ticks since its begin, ticks that it took (both less than [`AGAIN_TICKS`]), offset.
#[inline]
#[must_use]
pub fn again(since_ticks: u64, took_ticks: u64, offset: i64) -> [u64; 2] {
    [u64::from(TAG_AGAIN) | (since_ticks << 8) | (took_ticks << 36), offset as u64]
}

/// The word of [`TAG_BUFFER`]. Its lower 56 bits name an address: no program has more.
#[inline]
#[must_use]
pub fn buffer(address: u64) -> u64 {
    u64::from(TAG_BUFFER) | address << 8
}

/// What a compact record has; bits of [`Compact::has`].
pub mod has {
    /// It is the twin with large counts.
    pub const LARGE: u8 = 1;
    /// `offset` counts.
    pub const OFFSET: u8 = 2;
    /// `count` counts.
    pub const COUNT: u8 = 4;
    /// `bytes` counts.
    pub const BYTES: u8 = 8;
    /// `bytes` is the request that the call left.
    pub const REQUEST: u8 = 16;
    /// `offset` is the one request that it was asked for and completed.
    pub const COMPLETES: u8 = 32;
    /// `handle` counts.
    pub const HANDLE: u8 = 64;
    /// `datatype` counts.
    pub const DATATYPE: u8 = 128;
}

/// Almost every call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Compact {
    /// Number of the function.
    pub function: u8,
    /// Which of the fields count.
    pub has: u8,
    /// Type in memory.
    pub datatype: u16,
    /// Opening of the file.
    pub handle: u16,
    /// Ticks since the begin of the record before in this lane.
    pub since_ticks: u32,
    /// Ticks that the call took.
    pub took_ticks: u32,
    /// Offset, or request.
    pub offset: i64,
    /// Elements.
    pub count: u32,
    /// Bytes, or request.
    pub bytes: u32,
}

impl Compact {
    /// As words. The first is never zero.
    #[inline]
    #[must_use]
    pub fn words(&self) -> [u64; 4] {
        [
            (u64::from(self.function) + 1)
                | (u64::from(self.has) << 8)
                | (u64::from(self.datatype) << 16)
                | (u64::from(self.handle) << 32),
            u64::from(self.since_ticks) | (u64::from(self.took_ticks) << 32),
            self.offset as u64,
            u64::from(self.count) | (u64::from(self.bytes) << 32),
        ]
    }

    /// From words.
    #[must_use]
    pub fn from_words(words: [u64; 4]) -> Self {
        Self {
            function: (words[0] as u8).wrapping_sub(1),
            has: (words[0] >> 8) as u8,
            datatype: (words[0] >> 16) as u16,
            handle: (words[0] >> 32) as u16,
            since_ticks: words[1] as u32,
            took_ticks: (words[1] >> 32) as u32,
            offset: words[2] as i64,
            count: words[3] as u32,
            bytes: (words[3] >> 32) as u32,
        }
    }

    /// This record, as [`again`] repeats it.
    #[must_use]
    pub fn repeated(&self, words: [u64; 2]) -> Self {
        let ticks = |at: u32| (words[0] >> at) as u32 & (AGAIN_TICKS as u32 - 1);
        Self { since_ticks: ticks(8), took_ticks: ticks(36), offset: words[1] as i64, ..*self }
    }

    /// The call, with ticks for times; None if there is no such function.
    #[must_use]
    pub fn call(&self, before_tick: u64, thread: u32) -> Option<Call> {
        let has = |bit: u8| self.has & bit != 0;
        let begin = before_tick.wrapping_add(u64::from(self.since_ticks));
        let function = Function::from_number(self.function)?;
        let mut call = Call::new(function, begin, begin.wrapping_add(u64::from(self.took_ticks)));
        call.thread = thread;
        call.large = has(has::LARGE) && function.has_large_twin();
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
