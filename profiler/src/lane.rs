//! A thread's buffer: the block that is being filled, which is part of the file.

use std::sync::atomic::{compiler_fence, AtomicU32, Ordering};

use beff_trace::raw::block::{closed_head, BlockHead, Kind, HEAD_BYTES};
use beff_trace::raw::record::{again, buffer, has, Compact, AGAIN_TICKS, TAG_BASE, TAG_LAST, TAG_PART, TAG_THREAD};
use beff_trace::raw::{event, BLOCK_BYTES, EVENT_BYTES, LANES};
use beff_trace::{Call, Completion};

use crate::mpi::Word;
use crate::{clock, sink};

/// The buffer of a thread, and what it remembers so that a call needs no lock.
pub struct Lane {
    buffer: *mut u8,
    block: u32,
    mapped: bool,
    used: usize,
    /// Begin of the last record.
    tick: u64,
    /// First and last word of the last compact record of the block; only set in a mapped one.
    like: [u64; 2],
    /// Memory of the last data access, as the word that says it; never zero.
    buffer_word: u64,
    /// When an unmapped block is to be written next.
    save_tick: u64,
    number: u32,
    sequence: u32,
    thread: u32,
    event: Vec<u8>,
    /// What the dictionary said, until it changes.
    pub memory: Memory,
    /// Requests of a call.
    pub requests: Vec<Asked>,
    /// Statuses for a program that ignores them.
    pub statuses: Vec<u128>,
    /// Lists of the last call with requests, kept for their memory.
    pub lists: (Vec<u64>, Vec<Completion>),
}

/// A request of a file that a call was asked about.
#[derive(Clone, Copy)]
pub struct Asked {
    pub index: usize,
    pub handle: Word,
    pub number: u64,
}

/// Numbers of handles.
pub struct Memory {
    pub generation: u32,
    pub files: [(Word, u32); 8],
    pub types: [(Word, u32); 16],
}

static NEXT_LANE: AtomicU32 = AtomicU32::new(0);

impl Lane {
    /// A lane for a thread. None: there are too many threads, or no room; the recording has ended.
    pub fn new(thread: u32) -> Option<Self> {
        let number = NEXT_LANE.fetch_add(1, Ordering::Relaxed);
        if number as usize >= LANES {
            sink::stop(&format!("more than {LANES} threads at once call MPI-IO"));
            return None;
        }
        let block = sink::reserve()?;
        let (buffer, mapped) = sink::map(block)?;
        let mut lane = Self {
            buffer,
            block,
            mapped,
            used: HEAD_BYTES,
            tick: clock::ticks(),
            like: [0; 2],
            buffer_word: beff_trace::raw::record::buffer(u64::MAX),
            save_tick: 0,
            number,
            sequence: 0,
            thread,
            event: Vec::with_capacity(1 << 12),
            memory: Memory { generation: 0, files: [(0, 0); 8], types: [(0, 0); 16] },
            requests: Vec::with_capacity(64),
            statuses: Vec::with_capacity(64),
            lists: (Vec::with_capacity(64), Vec::with_capacity(64)),
        };
        // Before the first call the base may be later than a call that is under way.
        lane.tick = 0;
        lane.write_head(Kind::Live);
        Some(lane)
    }

    fn head(&self, kind: Kind) -> BlockHead {
        BlockHead {
            kind,
            lane: self.number,
            thread: self.thread,
            sequence: self.sequence,
            length: if kind == Kind::Live { 0 } else { (self.used - HEAD_BYTES) as u32 },
            base_tick: self.tick,
            moment: clock::moment(),
        }
    }

    fn write_head(&mut self, kind: Kind) {
        let bytes = self.head(kind).bytes();
        // SAFETY: the buffer is a block long and only this thread has it.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), self.buffer, HEAD_BYTES) };
    }

    fn records(&self) -> &[u8] {
        // SAFETY: the buffer is a block long, `used` is inside, and only this thread writes it.
        unsafe { std::slice::from_raw_parts(self.buffer.add(HEAD_BYTES), self.used - HEAD_BYTES) }
    }

    /// Appends a copy of the full block to the file and begins a new one. False: the recording has ended.
    #[cold]
    fn close(&mut self) -> bool {
        let Some(block) = sink::reserve() else { return false };
        // The base of the block is written already: it stands in its live head.
        // SAFETY: the buffer is a block long.
        let live = unsafe { std::slice::from_raw_parts(self.buffer, BLOCK_BYTES) };
        let Some(live) = BlockHead::read(live) else { return false };
        let head = BlockHead { kind: Kind::Closed, length: (self.used - HEAD_BYTES) as u32, ..live };
        sink::append(block, &closed_head(&head, self.records()), self.records());
        if !sink::recording() {
            return false;
        }
        // SAFETY: as above. Zeros first: a live block is read up to the first zero.
        unsafe { std::ptr::write_bytes(self.buffer.add(HEAD_BYTES), 0, BLOCK_BYTES - HEAD_BYTES) };
        compiler_fence(Ordering::Release);
        self.used = HEAD_BYTES;
        self.like = [0; 2];
        self.sequence += 1;
        self.write_head(Kind::Live);
        self.put([self.buffer_word]);
        true
    }

    /// Writes words; the first one last, because it makes the others valid.
    #[inline(always)]
    fn put<const N: usize>(&mut self, words: [u64; N]) {
        // SAFETY: the caller has seen that there is room; `used` is a multiple of 8 in a buffer that begins with a page.
        unsafe {
            let place = self.buffer.add(self.used).cast::<u64>();
            for (index, word) in words.iter().enumerate().skip(1) {
                place.add(index).write(word.to_le());
            }
            compiler_fence(Ordering::Release);
            place.write_volatile(words[0].to_le());
        }
        self.used += 8 * N;
    }

    /// A data access with memory that fits, if its times do.
    #[inline(always)]
    pub fn access(&mut self, record: Compact, address: u64, begin: u64, end: u64) {
        if self.buffer_word != buffer(address) {
            self.other_buffer(buffer(address));
        }
        self.compact(record, begin, end);
    }

    #[inline(never)]
    fn other_buffer(&mut self, word: u64) {
        // Room for the record too, so that no block ends between them.
        if self.used + 64 <= BLOCK_BYTES || self.close() {
            self.buffer_word = word;
            self.put([word]);
        }
    }

    /// A call that fits, if its times do.
    #[inline(always)]
    pub fn compact(&mut self, mut record: Compact, begin: u64, end: u64) {
        let (since, took) = (begin.wrapping_sub(self.tick), end.wrapping_sub(begin));
        let [first, _, _, last] = record.words();
        if self.like == [first, last] && (since | took) < AGAIN_TICKS && self.used + 16 <= BLOCK_BYTES {
            self.tick = begin;
            return self.put(again(since, took, record.offset));
        }
        if (since | took) >> 32 != 0 || self.used + 32 > BLOCK_BYTES || !self.mapped {
            return self.compact_slowly(record, begin, end);
        }
        record.since_ticks = since as u32;
        record.took_ticks = took as u32;
        self.tick = begin;
        self.like = [first, last];
        self.put(record.words());
    }

    #[cold]
    fn compact_slowly(&mut self, mut record: Compact, begin: u64, end: u64) {
        let begin = begin.max(self.tick);
        let end = end.max(begin);
        if (end - begin) >> 32 != 0 {
            record.since_ticks = 0;
            record.took_ticks = 0;
            if let Some(mut call) = record.call(begin, self.thread) {
                call.end_ns = end;
                call.buffer = (record.has & has::COUNT != 0).then_some((self.buffer_word >> 8) as i64);
                self.call(&mut call);
            }
            return;
        }
        if self.used + 48 > BLOCK_BYTES && !self.close() {
            return;
        }
        if (begin - self.tick) >> 32 != 0 {
            self.put([u64::from(TAG_BASE), begin]);
            self.tick = begin;
        }
        record.since_ticks = (begin - self.tick) as u32;
        record.took_ticks = (end - begin) as u32;
        self.tick = begin;
        self.like = [0; 2];
        self.put(record.words());
        self.save();
    }

    /// A block that is not mapped is written now and then.
    fn save(&mut self) {
        if self.mapped {
            return;
        }
        let now = clock::monotonic_ns();
        if now >= self.save_tick {
            self.save_tick = now + 1_000_000_000;
            self.save_now();
        }
    }

    fn save_now(&self) {
        // SAFETY: the buffer is a block long.
        let block = unsafe { std::slice::from_raw_parts(self.buffer, BLOCK_BYTES) };
        if let Err(e) = sink::write(self.block, block) {
            sink::stop(&format!("cannot write its record: {e}"));
        }
    }

    /// Any call. Its times are ticks, its thread is this one.
    #[cold]
    pub fn call(&mut self, call: &mut Call) {
        call.begin_ns = call.begin_ns.max(self.tick);
        call.thread = self.thread;
        let mut out = std::mem::take(&mut self.event);
        out.clear();
        event::put_call(&mut out, call);
        self.event(&out, call.begin_ns);
        self.event = out;
    }

    /// A tick, or that of the last record where the counters of two processors differ: a record must not come before it.
    pub fn not_before(&self, tick: u64) -> u64 {
        tick.max(self.tick)
    }

    /// An event that is encoded already, of this tick, see [`Lane::not_before`].
    pub fn event(&mut self, bytes: &[u8], tick: u64) {
        if bytes.len() > EVENT_BYTES {
            return sink::stop("a datatype or a list of requests is too large to be recorded");
        }
        let mut rest = bytes;
        loop {
            if self.used + 64 > BLOCK_BYTES && !self.close() {
                return;
            }
            let room = (BLOCK_BYTES - self.used - 8) / 8 * 8;
            let (part, after) = rest.split_at(rest.len().min(room));
            let tag = if after.is_empty() { TAG_LAST } else { TAG_PART };
            // SAFETY: there is room for the part and its word.
            unsafe { std::ptr::copy_nonoverlapping(part.as_ptr(), self.buffer.add(self.used + 8), part.len()) };
            self.put([u64::from(tag) | (part.len() as u64) << 32]);
            self.used += part.len().next_multiple_of(8);
            rest = after;
            if rest.is_empty() {
                break;
            }
        }
        self.tick = self.tick.max(tick);
        self.save();
    }

    /// From now on it is that of another thread.
    pub fn taken_over(&mut self, thread: u32) {
        if self.used + 8 > BLOCK_BYTES && !self.close() {
            return;
        }
        self.thread = thread;
        self.put([u64::from(TAG_THREAD) | u64::from(thread) << 32]);
    }

    /// The last block of this thread gets its checksum in its place.
    pub fn finish(&mut self) {
        // SAFETY: the buffer is a block long.
        let live = unsafe { std::slice::from_raw_parts(self.buffer, BLOCK_BYTES) };
        if let Some(live) = BlockHead::read(live).filter(|_| self.used > HEAD_BYTES) {
            let head = BlockHead { kind: Kind::Closed, length: (self.used - HEAD_BYTES) as u32, ..live };
            let bytes = closed_head(&head, self.records());
            // SAFETY: as above.
            unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), self.buffer, HEAD_BYTES) };
        }
    }
}
