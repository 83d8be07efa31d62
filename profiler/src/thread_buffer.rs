//! Buffer of a thread: the current block, which is part of the process file.

use std::sync::atomic::{compiler_fence, AtomicU32, Ordering};

use beff_trace::raw::block::{closed_header, BlockHeader, BlockKind, HEADER_BYTES};
use beff_trace::raw::record::{
    buffer_word, has, repeat_words, CompactRecord, REPEAT_TICKS, TAG_BASE, TAG_LAST, TAG_PART, TAG_THREAD,
};
use beff_trace::raw::{event, BLOCK_BYTES, MAX_EVENT_BYTES, MAX_LANES};
use beff_trace::{Call, Completion};

use crate::mpi::Word;
use crate::{clock, sink};

/// Buffer of a thread, with a cache so that a call needs no lock.
pub struct ThreadBuffer {
    buffer: *mut u8,
    block: u32,
    mapped: bool,
    used: usize,
    /// Begin of the last record, in ticks.
    tick: u64,
    /// First and last word of the last compact record of the block; set in mapped blocks only.
    last_words: [u64; 2],
    /// Encoded buffer address of the last data access; never 0.
    buffer_word: u64,
    /// Time of the next write of an unmapped block.
    save_at_ns: u64,
    number: u32,
    sequence: u32,
    thread: u32,
    event: Vec<u8>,
    /// Cached numbers of the dictionary.
    pub handle_cache: HandleCache,
    /// Requests of the current call.
    pub requests: Vec<MatchedRequest>,
    /// Statuses for a program that ignores them.
    pub statuses: Vec<u128>,
    /// Lists of the last call with requests, kept to reuse their memory.
    pub scratch_lists: (Vec<u64>, Vec<Completion>),
}

/// A request of a file in the array of a call.
#[derive(Clone, Copy)]
pub struct MatchedRequest {
    pub index: usize,
    pub handle: Word,
    pub number: u64,
}

/// Cached numbers of handles.
pub struct HandleCache {
    pub generation: u32,
    pub files: [(Word, u32); 8],
    pub types: [(Word, u32); 16],
}

static NEXT_BUFFER: AtomicU32 = AtomicU32::new(0);

impl ThreadBuffer {
    /// Creates a buffer for a thread. None, and the recording has ended, if there are too many threads or no space.
    pub fn new(thread: u32) -> Option<Self> {
        let number = NEXT_BUFFER.fetch_add(1, Ordering::Relaxed);
        if number as usize >= MAX_LANES {
            sink::stop(&format!("more than {MAX_LANES} concurrent threads call MPI-IO"));
            return None;
        }
        let block = sink::reserve_block()?;
        let (buffer, mapped) = sink::map_block(block)?;
        let mut lane = Self {
            buffer,
            block,
            mapped,
            used: HEADER_BYTES,
            tick: clock::ticks(),
            last_words: [0; 2],
            buffer_word: buffer_word(u64::MAX),
            save_at_ns: 0,
            number,
            sequence: 0,
            thread,
            event: Vec::with_capacity(1 << 12),
            handle_cache: HandleCache { generation: 0, files: [(0, 0); 8], types: [(0, 0); 16] },
            requests: Vec::with_capacity(64),
            statuses: Vec::with_capacity(64),
            scratch_lists: (Vec::with_capacity(64), Vec::with_capacity(64)),
        };
        // Before the first call the base may be later than a call in progress.
        lane.tick = 0;
        lane.write_head(BlockKind::Live);
        Some(lane)
    }

    fn head(&self, kind: BlockKind) -> BlockHeader {
        BlockHeader {
            kind,
            lane: self.number,
            thread: self.thread,
            sequence: self.sequence,
            length: if kind == BlockKind::Live { 0 } else { (self.used - HEADER_BYTES) as u32 },
            base_tick: self.tick,
            clock_sample: clock::sample_clock(),
        }
    }

    fn write_head(&mut self, kind: BlockKind) {
        let bytes = self.head(kind).bytes();
        // SAFETY: the buffer has the length of a block and is exclusive to this thread.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), self.buffer, HEADER_BYTES) };
    }

    fn records(&self) -> &[u8] {
        // SAFETY: the buffer has the length of a block, `used` is inside, and only this thread writes it.
        unsafe { std::slice::from_raw_parts(self.buffer.add(HEADER_BYTES), self.used - HEADER_BYTES) }
    }

    /// Appends a copy of the full block to the file and starts a new one. False if the recording has ended.
    #[cold]
    fn close_block(&mut self) -> bool {
        let Some(block) = sink::reserve_block() else { return false };
        // The live head already contains the base of the block.
        // SAFETY: the buffer has the length of a block.
        let live = unsafe { std::slice::from_raw_parts(self.buffer, BLOCK_BYTES) };
        let Some(live) = BlockHeader::read(live) else {
            sink::stop("cannot write its record: something has truncated its file");
            return false;
        };
        let head = BlockHeader { kind: BlockKind::Closed, length: (self.used - HEADER_BYTES) as u32, ..live };
        let closed = closed_header(&head, self.records());
        // The block may just have been lost.
        if !sink::is_recording() {
            return false;
        }
        sink::append_block(block, &closed, self.records());
        if !sink::is_recording() {
            return false;
        }
        // SAFETY: as above. Zeros first: a live block is read up to the first zero.
        unsafe { std::ptr::write_bytes(self.buffer.add(HEADER_BYTES), 0, BLOCK_BYTES - HEADER_BYTES) };
        compiler_fence(Ordering::Release);
        self.used = HEADER_BYTES;
        self.last_words = [0; 2];
        self.sequence += 1;
        self.write_head(BlockKind::Live);
        self.put_words([self.buffer_word]);
        true
    }

    /// Writes words; the first one last, because it makes the others valid.
    #[inline(always)]
    fn put_words<const N: usize>(&mut self, words: [u64; N]) {
        // SAFETY: the caller has checked the space; `used` is a multiple of 8 in a page-aligned buffer.
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

    /// Records a data access that fits a compact record, unless its times do not.
    #[inline(always)]
    pub fn record_access(&mut self, record: CompactRecord, address: u64, begin: u64, end: u64) {
        if self.buffer_word != buffer_word(address) {
            self.record_buffer(buffer_word(address));
        }
        self.record_compact(record, begin, end);
    }

    #[inline(never)]
    fn record_buffer(&mut self, word: u64) {
        // Space for the record too, so that no block ends in between.
        if self.used + 64 <= BLOCK_BYTES || self.close_block() {
            self.buffer_word = word;
            self.put_words([word]);
        }
    }

    /// Records a call that fits a compact record, unless its times do not.
    #[inline(always)]
    pub fn record_compact(&mut self, mut record: CompactRecord, begin: u64, end: u64) {
        let (since, took) = (begin.wrapping_sub(self.tick), end.wrapping_sub(begin));
        let [first, _, _, last] = record.words();
        if self.last_words == [first, last] && (since | took) < REPEAT_TICKS && self.used + 16 <= BLOCK_BYTES {
            self.tick = begin;
            return self.put_words(repeat_words(since, took, record.offset));
        }
        if (since | took) >> 32 != 0 || self.used + 32 > BLOCK_BYTES || !self.mapped {
            return self.record_compact_checked(record, begin, end);
        }
        record.since_ticks = since as u32;
        record.duration_ticks = took as u32;
        self.tick = begin;
        self.last_words = [first, last];
        self.put_words(record.words());
    }

    #[cold]
    fn record_compact_checked(&mut self, mut record: CompactRecord, begin: u64, end: u64) {
        let begin = begin.max(self.tick);
        let end = end.max(begin);
        if (end - begin) >> 32 != 0 {
            record.since_ticks = 0;
            record.duration_ticks = 0;
            if let Some(mut call) = record.call(begin, self.thread) {
                call.end_ns = end;
                call.buffer = (record.present & has::COUNT != 0).then_some((self.buffer_word >> 8) as i64);
                self.record_call(&mut call);
            }
            return;
        }
        if self.used + 48 > BLOCK_BYTES && !self.close_block() {
            return;
        }
        if (begin - self.tick) >> 32 != 0 {
            self.put_words([u64::from(TAG_BASE), begin]);
            self.tick = begin;
        }
        record.since_ticks = (begin - self.tick) as u32;
        record.duration_ticks = (end - begin) as u32;
        self.tick = begin;
        self.last_words = [0; 2];
        self.put_words(record.words());
        self.save_if_due();
    }

    /// Writes an unmapped block periodically.
    fn save_if_due(&mut self) {
        if self.mapped {
            return;
        }
        let now = clock::monotonic_ns();
        if now >= self.save_at_ns {
            self.save_at_ns = now + 1_000_000_000;
            self.save_now();
        }
    }

    fn save_now(&self) {
        // SAFETY: the buffer has the length of a block.
        let block = unsafe { std::slice::from_raw_parts(self.buffer, BLOCK_BYTES) };
        if let Err(e) = sink::write_block(self.block, block) {
            sink::stop(&format!("cannot write its record: {e}"));
        }
    }

    /// Records any call. Sets its thread; its times are in ticks.
    #[cold]
    pub fn record_call(&mut self, call: &mut Call) {
        call.begin_ns = call.begin_ns.max(self.tick);
        call.thread = self.thread;
        let mut out = std::mem::take(&mut self.event);
        out.clear();
        event::put_call(&mut out, call);
        self.record_event(&out, call.begin_ns);
        self.event = out;
    }

    /// The tick, but not before that of the last record, if the counters of two processors differ.
    pub fn clamp_tick(&self, tick: u64) -> u64 {
        tick.max(self.tick)
    }

    /// Records an encoded event of this tick, see [`ThreadBuffer::clamp_tick`].
    pub fn record_event(&mut self, bytes: &[u8], tick: u64) {
        if bytes.len() > MAX_EVENT_BYTES {
            return sink::stop("a datatype or a list of requests is too large to be recorded");
        }
        let mut rest = bytes;
        loop {
            if self.used + 64 > BLOCK_BYTES && !self.close_block() {
                return;
            }
            let capacity = (BLOCK_BYTES - self.used - 8) / 8 * 8;
            let (part, after) = rest.split_at(rest.len().min(capacity));
            let tag = if after.is_empty() { TAG_LAST } else { TAG_PART };
            // SAFETY: there is space for the part and its word.
            unsafe { std::ptr::copy_nonoverlapping(part.as_ptr(), self.buffer.add(self.used + 8), part.len()) };
            self.put_words([u64::from(tag) | (part.len() as u64) << 32]);
            self.used += part.len().next_multiple_of(8);
            rest = after;
            if rest.is_empty() {
                break;
            }
        }
        self.tick = self.tick.max(tick);
        self.save_if_due();
    }

    /// Reassigns the buffer to another thread.
    pub fn reassign(&mut self, thread: u32) {
        if self.used + 8 > BLOCK_BYTES && !self.close_block() {
            return;
        }
        self.thread = thread;
        self.put_words([u64::from(TAG_THREAD) | u64::from(thread) << 32]);
    }

    /// Writes the checksum of this thread's last block in place.
    pub fn finish(&mut self) {
        // SAFETY: the buffer has the length of a block.
        let live = unsafe { std::slice::from_raw_parts(self.buffer, BLOCK_BYTES) };
        if let Some(live) = BlockHeader::read(live).filter(|_| self.used > HEADER_BYTES) {
            let head = BlockHeader { kind: BlockKind::Closed, length: (self.used - HEADER_BYTES) as u32, ..live };
            let bytes = closed_header(&head, self.records());
            // SAFETY: as above.
            unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), self.buffer, HEADER_BYTES) };
        }
    }
}
