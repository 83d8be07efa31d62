//! Reads the file of a process: first which blocks are whole, then their events, woven in the order of begin.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::ErrorKind;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use super::block::{BlockHead, Kind, HEAD_BYTES};
use super::clock::{Clock, Moment};
use super::lane::{Next, Reading};
use super::{Event, ProcessHead, RawError, BLOCK_BYTES, LANES, VERSION};
use crate::head::End;

/// The file of a process, checked: damaged blocks and all behind them are left out.
#[derive(Debug)]
pub struct ProcessFile {
    path: PathBuf,
    file: File,
    head: ProcessHead,
    clock: Clock,
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

/// Which blocks there are.
#[derive(Default)]
struct Found {
    /// By lane and sequence: block and whether it is closed.
    blocks: BTreeMap<u32, BTreeMap<u32, (u32, bool)>>,
    damaged: bool,
    last: Moment,
}

impl Found {
    fn add(&mut self, number: u32, head: &BlockHead) {
        if self.blocks.len() == LANES && !self.blocks.contains_key(&head.lane) {
            self.damaged = true;
            return;
        }
        let closed = head.kind == Kind::Closed;
        let place = self.blocks.entry(head.lane).or_default().entry(head.sequence).or_insert((number, closed));
        if closed && !place.1 {
            *place = (number, true);
        }
        if head.moment.tick > self.last.tick && head.moment.ns > self.last.ns {
            self.last = head.moment;
        }
    }

    /// The blocks of each lane up to the first that is missing. A live block is always the last.
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
    /// Opens the file of a process and checks its blocks.
    ///
    /// # Errors
    /// It cannot be read, its head is damaged, or it is of a newer version.
    pub fn open(path: &Path) -> Result<Self, RawError> {
        let io = |source| RawError::Io { path: path.to_owned(), source };
        let wrong = |why| RawError::Head { path: path.to_owned(), why };
        let file = File::open(path).map_err(io)?;
        let length = file.metadata().map_err(io)?.len();
        let mut block = vec![0; BLOCK_BYTES];
        let filled = read_block(&file, 0, &mut block).map_err(io)?;
        let first = BlockHead::read(&block[..filled]).filter(|head| head.kind == Kind::Head);
        let first = first.ok_or_else(|| wrong("not the record of a process, or its first block is damaged"))?;
        if first.sequence > VERSION {
            return Err(RawError::Version { path: path.to_owned(), found: first.sequence });
        }
        let head = ProcessHead::read(first.records(&block)).ok_or_else(|| wrong("its head makes no sense"))?;
        let mut found = Found { last: head.moments[1], ..Found::default() };
        let blocks = u32::try_from(length.div_ceil(BLOCK_BYTES as u64)).map_err(|_| wrong("too large for a record"))?;
        for number in 1..blocks {
            let filled = read_block(&file, u64::from(number), &mut block).map_err(io)?;
            match BlockHead::read(&block[..filled]) {
                Some(head) if head.kind != Kind::Head => found.add(number, &head),
                // What a thread reserved and did not come to write, or not wholly.
                None if block[..filled.min(HEAD_BYTES)].iter().all(|byte| *byte == 0) && head.end != End::Complete => {}
                _ => found.damaged = true,
            }
        }
        let lanes = found.lanes();
        let mut head = head;
        if found.damaged {
            head.end = End::Cut;
        }
        let clock = Clock::new(head.moments[0], found.last);
        Ok(Self { path: path.to_owned(), file, head, clock, lanes })
    }

    /// What the file says about the process. `end` is Cut if blocks are damaged or missing.
    #[must_use]
    pub fn head(&self) -> &ProcessHead {
        &self.head
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Everything that was recorded, in the order of begin. One block of each lane is in memory, and the event that is read.
    #[must_use]
    pub fn events(&self) -> Events<'_> {
        let cursor = |blocks: &Vec<u32>| Cursor {
            blocks: blocks.clone().into_iter(),
            reading: None,
            parts: Vec::new(),
            next: None,
        };
        let mut events = Events { file: self, cursors: self.lanes.iter().map(cursor).collect(), cut: false };
        for index in 0..events.cursors.len() {
            events.advance(index);
        }
        events
    }
}

#[derive(Debug)]
struct Cursor {
    blocks: std::vec::IntoIter<u32>,
    reading: Option<Reading>,
    parts: Vec<u8>,
    next: Option<(u64, Event)>,
}

/// The events of a process. Ends at the first thing that makes no sense; [`Events::end`] says so.
#[derive(Debug)]
pub struct Events<'a> {
    file: &'a ProcessFile,
    cursors: Vec<Cursor>,
    cut: bool,
}

impl Events<'_> {
    /// How the recording ended, as far as was read.
    #[must_use]
    pub fn end(&self) -> End {
        if self.cut {
            End::Cut
        } else {
            self.file.head.end
        }
    }

    /// Reads the next event of a lane.
    fn advance(&mut self, index: usize) {
        let cursor = &mut self.cursors[index];
        cursor.next = None;
        loop {
            if let Some(reading) = &mut cursor.reading {
                match reading.next(&mut cursor.parts) {
                    Next::Event(tick, event) => {
                        cursor.next = Some((tick, event));
                        return;
                    }
                    Next::End => {}
                    Next::Damaged => {
                        self.cut = true;
                        cursor.blocks = Vec::new().into_iter();
                    }
                }
            }
            cursor.reading = None;
            let Some(number) = cursor.blocks.next() else {
                self.cut |= !cursor.parts.is_empty();
                return;
            };
            let mut block = vec![0; BLOCK_BYTES];
            let filled = read_block(&self.file.file, u64::from(number), &mut block).unwrap_or(0);
            match BlockHead::read(&block[..filled]) {
                Some(head) => cursor.reading = Some(Reading::new(&head, &block[..filled])),
                None => {
                    self.cut = true;
                    return;
                }
            }
        }
    }
}

impl Iterator for Events<'_> {
    type Item = Event;

    fn next(&mut self) -> Option<Event> {
        // At the same tick a dictionary comes before a call.
        let key = |cursor: &Cursor| cursor.next.as_ref().map(|(tick, e)| (*tick, matches!(e, Event::Call(_))));
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
