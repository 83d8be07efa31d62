//! Writes files of processes as the profiler does, from events with ns as ticks. Also part of the example `synthetic`.
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

use beff_trace::raw::block::{closed_header, BlockHeader, BlockKind, HEADER_BYTES, PAYLOAD_BYTES};
use beff_trace::raw::clock::ClockSample;
use beff_trace::raw::record::{has, CompactRecord, TAG_LAST};
use beff_trace::raw::{event, Event, ProcessHeader, BLOCK_BYTES, VERSION};
use beff_trace::{Call, RecordingStatus};

pub struct FixtureRecorder {
    out: BufWriter<File>,
    block: Vec<u8>,
    sequence: u32,
    tick: u64,
    base_tick: u64,
}

/// A head with equal clocks.
pub fn head(rank: u32, ranks: u32, library: &str, last_ns: u64) -> ProcessHeader {
    ProcessHeader {
        version: VERSION,
        rank,
        ranks,
        host: format!("host{rank}"),
        pid: 100 + rank,
        library: library.to_owned(),
        command: vec!["./app".to_owned()],
        started_unix_ns: 1,
        clock_offset_ns: [0; 2],
        cost_ns: Some(10.0),
        storage_bytes: None,
        end: RecordingStatus::Complete,
        clock_samples: [ClockSample { tick: 0, ns: 0 }, ClockSample { tick: last_ns, ns: last_ns }],
    }
}

impl FixtureRecorder {
    pub fn new(directory: &Path, head: &ProcessHeader) -> std::io::Result<Self> {
        let mut out =
            BufWriter::with_capacity(1 << 20, File::create(directory.join(format!("rank-{}.beff", head.rank)))?);
        let mut block = head.block();
        block.resize(BLOCK_BYTES, 0);
        out.write_all(&block)?;
        Ok(Self { out, block: vec![0; HEADER_BYTES], sequence: 0, tick: 0, base_tick: 0 })
    }

    fn reserve(&mut self, bytes: usize) -> std::io::Result<()> {
        assert!(bytes <= PAYLOAD_BYTES, "an event of several blocks");
        if self.block.len() + bytes > BLOCK_BYTES {
            self.flush()?;
        }
        Ok(())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        let moment = ClockSample { tick: self.base_tick, ns: self.base_tick };
        let length = (self.block.len() - HEADER_BYTES) as u32;
        let head = BlockHeader {
            kind: BlockKind::Closed,
            lane: 0,
            thread: 0,
            sequence: self.sequence,
            length,
            base_tick: self.base_tick,
            clock_sample: moment,
        };
        let bytes = closed_header(&head, &self.block[HEADER_BYTES..]);
        self.block[..HEADER_BYTES].copy_from_slice(&bytes);
        self.block.resize(BLOCK_BYTES, 0);
        self.out.write_all(&self.block)?;
        self.block.clear();
        self.block.resize(HEADER_BYTES, 0);
        self.sequence += 1;
        self.base_tick = self.tick;
        Ok(())
    }

    pub fn event(&mut self, given: &Event) -> std::io::Result<()> {
        let mut bytes = Vec::new();
        let tick = match given {
            Event::Type { id, datatype } => {
                event::put_type(&mut bytes, self.tick, *id, datatype);
                self.tick
            }
            Event::Comm { id, ranks } => {
                event::put_comm(&mut bytes, self.tick, *id, ranks);
                self.tick
            }
            Event::Info { id, pairs } => {
                event::put_info(&mut bytes, self.tick, *id, pairs);
                self.tick
            }
            Event::Storage { id, path, fs_type } => {
                event::put_storage(&mut bytes, self.tick, *id, path, fs_type);
                self.tick
            }
            Event::Removed { path } => {
                event::put_removed(&mut bytes, self.tick, path);
                self.tick
            }
            Event::Call(call) => {
                event::put_call(&mut bytes, call);
                call.begin_ns
            }
        };
        let length = bytes.len().next_multiple_of(8);
        self.reserve(8 + length)?;
        self.block.extend_from_slice(&(u64::from(TAG_LAST) | (bytes.len() as u64) << 32).to_le_bytes());
        bytes.resize(length, 0);
        self.block.extend_from_slice(&bytes);
        self.tick = tick;
        Ok(())
    }

    /// A data access with explicit offset as a compact record.
    #[allow(dead_code)] // one of its users has no such calls
    pub fn compact(&mut self, call: &Call) -> std::io::Result<()> {
        self.reserve(32)?;
        let record = CompactRecord {
            function: call.function as u8,
            present: has::OFFSET | has::COUNT | has::BYTES | has::HANDLE | has::DATATYPE,
            datatype: call.datatype.unwrap_or(0) as u16,
            handle: call.handle.unwrap_or(0) as u16,
            since_ticks: (call.begin_ns - self.tick) as u32,
            duration_ticks: (call.end_ns - call.begin_ns) as u32,
            offset: call.offset.unwrap_or(0),
            count: call.count.unwrap_or(0) as u32,
            bytes: call.bytes.unwrap_or(0) as u32,
        };
        record.words().iter().for_each(|word| self.block.extend_from_slice(&word.to_le_bytes()));
        self.tick = call.begin_ns;
        Ok(())
    }

    pub fn finish(mut self) -> std::io::Result<()> {
        self.flush()?;
        self.out.flush()
    }
}
