//! Decoding of the records of one lane.

use super::block::{BlockHeader, BlockKind};
use super::record::{has, CompactRecord, TAG_BASE, TAG_BUFFER, TAG_LAST, TAG_PART, TAG_REPEAT, TAG_THREAD};
use super::{event, Event, MAX_EVENT_BYTES};
use crate::call::Call;

/// A block and the read position in it.
#[derive(Debug)]
pub struct BlockReader {
    records: Vec<u8>,
    at: usize,
    tick: u64,
    thread: u32,
    last: Option<CompactRecord>,
    /// Buffer address of data accesses.
    buffer: Option<i64>,
    live: bool,
}

/// Next item of a block.
pub enum NextEvent {
    Event(u64, Event),
    EndOfBlock,
    Damaged,
}

impl BlockReader {
    pub fn new(head: &BlockHeader, block: &[u8]) -> Self {
        let records = head.records(block).to_vec();
        let (tick, live) = (head.base_tick, head.kind == BlockKind::Live);
        Self { records, at: 0, tick, thread: head.thread, last: None, buffer: None, live }
    }

    fn word(&self, index: usize) -> Option<u64> {
        let at = self.at + 8 * index;
        Some(u64::from_le_bytes(self.records.get(at..at + 8)?.try_into().ok()?))
    }

    /// Returns the next event; `parts` holds those of an incomplete event across blocks.
    pub fn next(&mut self, parts: &mut Vec<u8>) -> NextEvent {
        loop {
            if self.at == self.records.len() {
                return NextEvent::EndOfBlock;
            }
            let Some(first) = self.word(0) else { return NextEvent::Damaged };
            match first as u8 {
                0 if self.live => return NextEvent::EndOfBlock,
                TAG_BASE => match self.word(1) {
                    Some(tick) if tick >= self.tick => {
                        self.tick = tick;
                        self.at += 16;
                    }
                    _ => return NextEvent::Damaged,
                },
                TAG_THREAD => {
                    self.thread = (first >> 32) as u32;
                    self.at += 8;
                }
                TAG_BUFFER => {
                    self.buffer = Some((first >> 8) as i64);
                    self.at += 8;
                }
                tag @ (TAG_PART | TAG_LAST) => {
                    let length = (first >> 32) as usize;
                    let Some(bytes) = self.records.get(self.at + 8..self.at + 8 + length) else {
                        return NextEvent::Damaged;
                    };
                    if parts.len() + length > MAX_EVENT_BYTES {
                        return NextEvent::Damaged;
                    }
                    parts.extend_from_slice(bytes);
                    self.at = (self.at + 8 + length.next_multiple_of(8)).min(self.records.len());
                    if tag == TAG_LAST {
                        let read = event::read(parts);
                        parts.clear();
                        parts.shrink_to(1 << 20);
                        return match read {
                            Some((tick, event)) if tick >= self.tick => {
                                self.tick = tick;
                                NextEvent::Event(tick, event)
                            }
                            _ => NextEvent::Damaged,
                        };
                    }
                }
                TAG_REPEAT => {
                    let record = self.last.zip(self.word(1)).map(|(last, second)| last.repeat([first, second]));
                    return self.compact(record, 16);
                }
                _ => {
                    let words = (self.word(1), self.word(2), self.word(3));
                    let (Some(second), Some(third), Some(fourth)) = words else { return NextEvent::Damaged };
                    self.last = Some(CompactRecord::from_words([first, second, third, fourth]));
                    return self.compact(self.last, 32);
                }
            }
        }
    }

    fn compact(&mut self, record: Option<CompactRecord>, bytes: usize) -> NextEvent {
        // Data accesses with a buffer are those with a count.
        let buffer = self.buffer.filter(|_| record.is_some_and(|record| record.present & has::COUNT != 0));
        match record.and_then(|record| record.call(self.tick, self.thread)).map(|call| Call { buffer, ..call }) {
            Some(call) if call.begin_ns >= self.tick && call.end_ns >= call.begin_ns => {
                self.at += bytes;
                self.tick = call.begin_ns;
                NextEvent::Event(self.tick, Event::Call(Box::new(call)))
            }
            _ => NextEvent::Damaged,
        }
    }
}
