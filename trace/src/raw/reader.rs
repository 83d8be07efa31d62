//! Reads the file of a process: first which blocks are valid, then their events, merged in the order of begin.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::ErrorKind;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use super::block::{BlockHeader, BlockKind, HEADER_BYTES};
use super::clock::{ClockSample, TickConversion};
use super::lane::{BlockReader, NextEvent};
use super::{Event, ProcessHeader, RawError, BLOCK_BYTES, MAX_LANES, VERSION};
use crate::head::RecordingStatus;

/// File of a process with verified blocks; damaged blocks and all later ones of their lane are ignored.
#[derive(Debug)]
pub struct ProcessFile {
    path: PathBuf,
    file: File,
    head: ProcessHeader,
    clock: TickConversion,
    /// Numbers of the blocks of each lane, in their order.
    lanes: Vec<Vec<u32>>,
}

/// Reads a block, up to the end of the file.
fn read_block(file: &File, number: u64, block: &mut [u8]) -> std::io::Result<usize> {
    let mut filled = 0;
    while filled < block.len() {
        match file.read_at(&mut block[filled..], number * BLOCK_BYTES as u64 + filled as u64) {
            Ok(0) => break,
            Ok(n) => filled += n,
            Err(e) if e.kind() == ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    Ok(filled)
}

#[derive(Default)]
struct BlockIndex {
    /// By lane and sequence: block number and whether it is closed.
    blocks: BTreeMap<u32, BTreeMap<u32, (u32, bool)>>,
    damaged: bool,
    last: ClockSample,
}

impl BlockIndex {
    fn insert(&mut self, number: u32, head: &BlockHeader) {
        if self.blocks.len() == MAX_LANES && !self.blocks.contains_key(&head.lane) {
            self.damaged = true;
            return;
        }
        let closed = head.kind == BlockKind::Closed;
        let place = self.blocks.entry(head.lane).or_default().entry(head.sequence).or_insert((number, closed));
        if closed && !place.1 {
            *place = (number, true);
        }
        if head.clock_sample.tick > self.last.tick && head.clock_sample.ns > self.last.ns {
            self.last = head.clock_sample;
        }
    }

    /// Blocks of each lane up to the first missing one. A live block is always the last.
    fn lanes(&mut self) -> Vec<Vec<u32>> {
        let mut lanes = Vec::new();
        for blocks in self.blocks.values() {
            let mut lane = Vec::new();
            for (expected, (sequence, (number, closed))) in blocks.iter().enumerate() {
                let last = expected + 1 == blocks.len();
                if *sequence as usize != expected || !(*closed || last) {
                    self.damaged = true;
                    break;
                }
                lane.push(*number);
            }
            lanes.push(lane);
        }
        lanes
    }
}

impl ProcessFile {
    /// Opens the file of a process and verifies its blocks.
    ///
    /// # Errors
    /// It cannot be read, its head is damaged, or it has a newer version.
    pub fn open(path: &Path) -> Result<Self, RawError> {
        let io = |source| RawError::Io { path: path.to_owned(), source };
        let wrong = |why| RawError::Head { path: path.to_owned(), why };
        let file = File::open(path).map_err(io)?;
        let length = file.metadata().map_err(io)?.len();
        let mut block = vec![0; BLOCK_BYTES];
        let filled = read_block(&file, 0, &mut block).map_err(io)?;
        let first = BlockHeader::read(&block[..filled]).filter(|head| head.kind == BlockKind::Head);
        let first = first.ok_or_else(|| wrong("not the recording of a process, or its first block is damaged"))?;
        if first.sequence > VERSION {
            return Err(RawError::Version { path: path.to_owned(), found: first.sequence });
        }
        let head = ProcessHeader::read(first.records(&block)).ok_or_else(|| wrong("its head is invalid"))?;
        let mut found = BlockIndex { last: head.clock_samples[1], ..BlockIndex::default() };
        let blocks =
            u32::try_from(length.div_ceil(BLOCK_BYTES as u64)).map_err(|_| wrong("too large for a recording"))?;
        for number in 1..blocks {
            let filled = read_block(&file, u64::from(number), &mut block).map_err(io)?;
            match BlockHeader::read(&block[..filled]) {
                Some(head) if head.kind != BlockKind::Head => found.insert(number, &head),
                // Block that a thread reserved and did not write, or not completely.
                None if block[..filled.min(HEADER_BYTES)].iter().all(|byte| *byte == 0)
                    && head.end != RecordingStatus::Complete => {}
                _ => found.damaged = true,
            }
        }
        let lanes = found.lanes();
        let mut head = head;
        // A process that reported the loss of its file also knows the reason of the damage.
        if found.damaged && head.end != RecordingStatus::LimitReached {
            head.end = RecordingStatus::Truncated;
        }
        let clock = TickConversion::new(head.clock_samples[0], found.last);
        Ok(Self { path: path.to_owned(), file, head, clock, lanes })
    }

    /// Head of the file. `end` is Truncated if blocks are damaged or missing, unless the process reported that it could not write them.
    #[must_use]
    pub fn head(&self) -> &ProcessHeader {
        &self.head
    }

    /// Path of the file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// All events, in the order of begin. Memory holds one block per lane and the current event.
    #[must_use]
    pub fn events(&self) -> Events<'_> {
        let cursor = |blocks: &Vec<u32>| LaneCursor {
            blocks: blocks.clone().into_iter(),
            reading: None,
            parts: Vec::new(),
            next: None,
        };
        let mut events = Events { file: self, cursors: self.lanes.iter().map(cursor).collect(), is_truncated: false };
        for index in 0..events.cursors.len() {
            events.advance(index);
        }
        events
    }
}

#[derive(Debug)]
struct LaneCursor {
    blocks: std::vec::IntoIter<u32>,
    reading: Option<BlockReader>,
    parts: Vec<u8>,
    next: Option<(u64, Event)>,
}

/// Events of a process. Ends at the first invalid record, see [`Events::end`].
#[derive(Debug)]
pub struct Events<'a> {
    file: &'a ProcessFile,
    cursors: Vec<LaneCursor>,
    is_truncated: bool,
}

impl Events<'_> {
    /// How the recording ended, as far as it was read.
    #[must_use]
    pub fn end(&self) -> RecordingStatus {
        if self.is_truncated && self.file.head.end != RecordingStatus::LimitReached {
            RecordingStatus::Truncated
        } else {
            self.file.head.end
        }
    }

    fn advance(&mut self, index: usize) {
        let cursor = &mut self.cursors[index];
        cursor.next = None;
        loop {
            if let Some(reading) = &mut cursor.reading {
                match reading.next(&mut cursor.parts) {
                    NextEvent::Event(tick, event) => {
                        cursor.next = Some((tick, event));
                        return;
                    }
                    NextEvent::EndOfBlock => {}
                    NextEvent::Damaged => {
                        self.is_truncated = true;
                        cursor.blocks = Vec::new().into_iter();
                    }
                }
            }
            cursor.reading = None;
            let Some(number) = cursor.blocks.next() else {
                self.is_truncated |= !cursor.parts.is_empty();
                return;
            };
            let mut block = vec![0; BLOCK_BYTES];
            let filled = read_block(&self.file.file, u64::from(number), &mut block).unwrap_or(0);
            match BlockHeader::read(&block[..filled]) {
                Some(head) => cursor.reading = Some(BlockReader::new(&head, &block[..filled])),
                None => {
                    self.is_truncated = true;
                    return;
                }
            }
        }
    }
}

impl Iterator for Events<'_> {
    type Item = Event;

    fn next(&mut self) -> Option<Event> {
        // At the same tick a dictionary event precedes a call.
        let key = |cursor: &LaneCursor| cursor.next.as_ref().map(|(tick, e)| (*tick, matches!(e, Event::Call(_))));
        let keys = self.cursors.iter().enumerate().filter_map(|(index, cursor)| Some((key(cursor)?, index)));
        let (_, index) = keys.min()?;
        let (_, mut event) = self.cursors[index].next.take()?;
        self.advance(index);
        if let Event::Call(call) = &mut event {
            call.begin_ns = self.file.clock.ns(call.begin_ns);
            call.end_ns = self.file.clock.ns(call.end_ns);
        }
        Some(event)
    }
}
