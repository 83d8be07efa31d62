//! The first block of the file: which process it is of.

use super::block::{closed_head, BlockHead, Kind, HEAD_BYTES, ROOM_BYTES};
use super::clock::Moment;
use super::code::{put, put_signed, put_text, Bytes};
use super::VERSION;
use crate::head::End;

/// Most bytes of the command line and of any other text that are kept.
const TEXT_BYTES: usize = 16_384;

/// A process of the recorded program.
#[derive(Clone, Debug, PartialEq)]
pub struct ProcessHead {
    /// Version of the format.
    pub version: u32,
    /// World rank.
    pub rank: u32,
    /// Ranks of the world.
    pub ranks: u32,
    /// Name of the host.
    pub host: String,
    /// Process id there.
    pub pid: u32,
    /// MPI_Get_library_version.
    pub library: String,
    /// Command line, one element a word; a very long one is cut.
    pub command: Vec<String>,
    /// Start of the recording, Unix time in ns.
    pub started_unix_ns: u64,
    /// What is added to this clock to have that of rank 0, at the begin and at the end, in ns. Until the end is known it is that of the begin.
    pub clock_offset_ns: [i64; 2],
    /// What the profiler costs a call, in ns.
    pub cost_ns: Option<f64>,
    /// Bytes that the process read from and wrote to storage (/proc/self/io), known at the end.
    pub storage_bytes: Option<[u64; 2]>,
    /// How the recording ended; Cut as long as nothing else is known.
    pub end: End,
    /// Two moments, as far apart as was possible when this was written.
    pub moments: [Moment; 2],
}

const ENDS: [End; 4] = [End::Complete, End::Aborted, End::Cut, End::Full];

fn clip(text: &str) -> &str {
    let end = (0..=text.len().min(TEXT_BYTES)).rev().find(|at| text.is_char_boundary(*at));
    &text[..end.unwrap_or(0)]
}

impl ProcessHead {
    /// The block, as it is written.
    #[must_use]
    pub fn block(&self) -> Vec<u8> {
        let mut out = vec![0; HEAD_BYTES];
        put(&mut out, u64::from(self.version));
        [self.rank, self.ranks, self.pid].iter().for_each(|n| put(&mut out, u64::from(*n)));
        put(&mut out, self.started_unix_ns);
        self.clock_offset_ns.iter().for_each(|n| put_signed(&mut out, *n));
        put(&mut out, self.cost_ns.map_or(0, |ns| ns.to_bits().saturating_add(1)));
        out.push(u8::from(self.storage_bytes.is_some()));
        self.storage_bytes.unwrap_or_default().iter().for_each(|n| put(&mut out, *n));
        out.push(ENDS.iter().position(|end| *end == self.end).unwrap_or(2) as u8);
        for moment in self.moments {
            put(&mut out, moment.tick);
            put(&mut out, moment.ns);
        }
        put_text(&mut out, clip(&self.host));
        put_text(&mut out, clip(&self.library));
        let mut left = TEXT_BYTES;
        let words: Vec<&str> = self
            .command
            .iter()
            .map(|word| clip(word))
            .take_while(|word| {
                let fits = left > word.len() + 4;
                left -= if fits { word.len() + 4 } else { 0 };
                fits
            })
            .collect();
        put(&mut out, words.len() as u64);
        words.iter().for_each(|word| put_text(&mut out, word));
        debug_assert!(out.len() <= HEAD_BYTES + ROOM_BYTES);
        let length = (out.len() - HEAD_BYTES) as u32;
        let head = BlockHead {
            kind: Kind::Head,
            lane: 0,
            thread: 0,
            sequence: VERSION,
            length,
            base_tick: 0,
            moment: self.moments[0],
        };
        let bytes = closed_head(&head, &out[HEAD_BYTES..]);
        out[..HEAD_BYTES].copy_from_slice(&bytes);
        out
    }

    /// What a head block says.
    pub(super) fn read(records: &[u8]) -> Option<Self> {
        let mut from = Bytes(records);
        let version = from.number32()?;
        let (rank, ranks, pid) = (from.number32()?, from.number32()?, from.number32()?);
        let started_unix_ns = from.number()?;
        let clock_offset_ns = [from.signed()?, from.signed()?];
        let cost_ns = from.number()?.checked_sub(1).map(f64::from_bits).filter(|ns| ns.is_finite());
        let has_storage = from.byte()? == 1;
        let storage = [from.number()?, from.number()?];
        let end = *ENDS.get(usize::from(from.byte()?))?;
        let mut moment = || Some(Moment { tick: from.number()?, ns: from.number()? });
        let moments = [moment()?, moment()?];
        let (host, library) = (from.text()?, from.text()?);
        let command = from.many(Bytes::text)?;
        from.all(Self {
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
            moments,
        })
    }
}
