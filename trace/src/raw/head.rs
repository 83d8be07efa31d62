//! First block of the file: the process and its clock.

use super::block::{closed_header, BlockHeader, BlockKind, HEADER_BYTES, PAYLOAD_BYTES};
use super::clock::ClockSample;
use super::varint::{put, put_signed, put_text, VarintReader};
use super::VERSION;
use crate::head::RecordingStatus;

/// Maximum bytes of the command line and of any other text.
const MAX_TEXT_BYTES: usize = 16_384;

/// A process of the recorded program.
#[derive(Clone, Debug, PartialEq)]
pub struct ProcessHeader {
    /// Version of the format.
    pub version: u32,
    /// World rank.
    pub rank: u32,
    /// Size of MPI_COMM_WORLD.
    pub ranks: u32,
    /// Name of the host.
    pub host: String,
    /// Process id on the host.
    pub pid: u32,
    /// MPI_Get_library_version.
    pub library: String,
    /// Command line, one element per word; truncated if very long.
    pub command: Vec<String>,
    /// Start of the recording, Unix time in ns.
    pub started_unix_ns: u64,
    /// Offset of the clock of rank 0 relative to this one, at begin and end, in ns. Until the end both are that of the begin.
    pub clock_offset_ns: [i64; 2],
    /// Overhead of the profiler per call in ns.
    pub cost_ns: Option<f64>,
    /// Bytes read from and written to storage (/proc/self/io), known at the end.
    pub storage_bytes: Option<[u64; 2]>,
    /// How the recording ended; Cut until that is known.
    pub end: RecordingStatus,
    /// Two clock samples, as far apart as possible when this was written.
    pub clock_samples: [ClockSample; 2],
}

const ENDS: [RecordingStatus; 4] =
    [RecordingStatus::Complete, RecordingStatus::Aborted, RecordingStatus::Truncated, RecordingStatus::LimitReached];

fn truncate_text(text: &str) -> &str {
    let end = (0..=text.len().min(MAX_TEXT_BYTES)).rev().find(|at| text.is_char_boundary(*at));
    &text[..end.unwrap_or(0)]
}

impl ProcessHeader {
    /// Encodes the block.
    #[must_use]
    pub fn block(&self) -> Vec<u8> {
        let mut out = vec![0; HEADER_BYTES];
        put(&mut out, u64::from(self.version));
        [self.rank, self.ranks, self.pid].iter().for_each(|n| put(&mut out, u64::from(*n)));
        put(&mut out, self.started_unix_ns);
        self.clock_offset_ns.iter().for_each(|n| put_signed(&mut out, *n));
        put(&mut out, self.cost_ns.map_or(0, |ns| ns.to_bits().saturating_add(1)));
        out.push(u8::from(self.storage_bytes.is_some()));
        self.storage_bytes.unwrap_or_default().iter().for_each(|n| put(&mut out, *n));
        out.push(ENDS.iter().position(|end| *end == self.end).unwrap_or(2) as u8);
        for moment in self.clock_samples {
            put(&mut out, moment.tick);
            put(&mut out, moment.ns);
        }
        put_text(&mut out, truncate_text(&self.host));
        put_text(&mut out, truncate_text(&self.library));
        let mut left = MAX_TEXT_BYTES;
        let words: Vec<&str> = self
            .command
            .iter()
            .map(|word| truncate_text(word))
            .take_while(|word| {
                let fits = left > word.len() + 4;
                left -= if fits { word.len() + 4 } else { 0 };
                fits
            })
            .collect();
        put(&mut out, words.len() as u64);
        words.iter().for_each(|word| put_text(&mut out, word));
        debug_assert!(out.len() <= HEADER_BYTES + PAYLOAD_BYTES);
        let length = (out.len() - HEADER_BYTES) as u32;
        let head = BlockHeader {
            kind: BlockKind::Head,
            lane: 0,
            thread: 0,
            sequence: VERSION,
            length,
            base_tick: 0,
            clock_sample: self.clock_samples[0],
        };
        let bytes = closed_header(&head, &out[HEADER_BYTES..]);
        out[..HEADER_BYTES].copy_from_slice(&bytes);
        out
    }

    /// Decodes the records of a head block.
    pub(super) fn read(records: &[u8]) -> Option<Self> {
        let mut from = VarintReader(records);
        let version = from.number32()?;
        let (rank, ranks, pid) = (from.number32()?, from.number32()?, from.number32()?);
        let started_unix_ns = from.number()?;
        let clock_offset_ns = [from.signed()?, from.signed()?];
        let cost_ns = from.number()?.checked_sub(1).map(f64::from_bits).filter(|ns| ns.is_finite());
        let has_storage = from.byte()? == 1;
        let storage = [from.number()?, from.number()?];
        let end = *ENDS.get(usize::from(from.byte()?))?;
        let mut moment = || Some(ClockSample { tick: from.number()?, ns: from.number()? });
        let moments = [moment()?, moment()?];
        let (host, library) = (from.text()?, from.text()?);
        let command = from.sequence(VarintReader::text)?;
        from.finish(Self {
            version,
            rank,
            ranks,
            host,
            pid,
            library,
            command,
            started_unix_ns,
            clock_offset_ns,
            cost_ns,
            storage_bytes: has_storage.then_some(storage),
            end,
            clock_samples: moments,
        })
    }
}
