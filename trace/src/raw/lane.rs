//! The records of one lane, one behind the other.

use super::block::{BlockHead, Kind};
use super::record::{has, Compact, TAG_AGAIN, TAG_BASE, TAG_BUFFER, TAG_LAST, TAG_PART, TAG_THREAD};
use super::{event, Event, EVENT_BYTES};
use crate::call::Call;

/// One block, and where reading stands in it.
#[derive(Debug)]
pub struct Reading {
    records: Vec<u8>,
    at: usize,
    tick: u64,
    thread: u32,
    last: Option<Compact>,
    /// Memory of data accesses.
    buffer: Option<i64>,
    live: bool,
}

/// What comes next in a block.
pub enum Next {
    /// An event at a tick.
    Event(u64, Event),
    /// Nothing: the block is read.
    End,
    /// Something that cannot be.
    Damaged,
}

impl Reading {
    /// A block that was just read.
    pub fn new(head: &BlockHead, block: &[u8]) -> Self {
        let records = head.records(block).to_vec();
        let (tick, live) = (head.base_tick, head.kind == Kind::Live);
        Self { records, at: 0, tick, thread: head.thread, last: None, buffer: None, live }
    }

    fn word(&self, index: usize) -> Option<u64> {
        let at = self.at + 8 * index;
        Some(u64::from_le_bytes(self.records.get(at..at + 8)?.try_into().ok()?))
    }

    /// The next event; `parts` holds those of an event that is not whole yet, over the ends of blocks.
    pub fn next(&mut self, parts: &mut Vec<u8>) -> Next {
        loop {
            if self.at == self.records.len() {
                return Next::End;
            }
            let Some(first) = self.word(0) else { return Next::Damaged };
            match first as u8 {
                0 if self.live => return Next::End,
                TAG_BASE => match self.word(1) {
                    Some(tick) if tick >= self.tick => {
                        self.tick = tick;
                        self.at += 16;
                    }
                    _ => return Next::Damaged,
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
                    let Some(bytes) = self.records.get(self.at + 8..self.at + 8 + length) else { return Next::Damaged };
                    if parts.len() + length > EVENT_BYTES {
                        return Next::Damaged;
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
                                Next::Event(tick, event)
                            }
                            _ => Next::Damaged,
                        };
                    }
                }
                TAG_AGAIN => {
                    let record = self.last.zip(self.word(1)).map(|(last, second)| last.repeated([first, second]));
                    return self.compact(record, 16);
                }
                _ => {
                    let words = (self.word(1), self.word(2), self.word(3));
                    let (Some(second), Some(third), Some(fourth)) = words else { return Next::Damaged };
                    self.last = Some(Compact::from_words([first, second, third, fourth]));
                    return self.compact(self.last, 32);
                }
            }
        }
    }

    fn compact(&mut self, record: Option<Compact>, bytes: usize) -> Next {
        // Data accesses with memory are those with a count.
        let buffer = self.buffer.filter(|_| record.is_some_and(|record| record.has & has::COUNT != 0));
        match record.and_then(|record| record.call(self.tick, self.thread)).map(|call| Call { buffer, ..call }) {
            Some(call) if call.begin_ns >= self.tick && call.end_ns >= call.begin_ns => {
                self.at += bytes;
                self.tick = call.begin_ns;
                Next::Event(self.tick, Event::Call(Box::new(call)))
            }
            _ => Next::Damaged,
        }
    }
}
