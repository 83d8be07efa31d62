//! Layout of a block.

use super::clock::ClockSample;
use super::BLOCK_BYTES;

/// Bytes of the header of a block.
pub const HEADER_BYTES: usize = 64;

/// Maximum bytes of records in a block.
pub const PAYLOAD_BYTES: usize = BLOCK_BYTES - HEADER_BYTES;

const MAGIC: u32 = u32::from_le_bytes(*b"BFr1");

/// Kind of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockKind {
    /// Head of the file.
    Head = 1,
    /// Records, with a checksum.
    Closed = 2,
    /// Records up to the first zero word; no checksum.
    Live = 3,
}

/// Header of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockHeader {
    /// Kind of the block.
    pub kind: BlockKind,
    /// Lane of the records.
    pub lane: u32,
    /// Thread of the first record.
    pub thread: u32,
    /// Index within its lane, from 0.
    pub sequence: u32,
    /// Bytes of records; 0 in a live block.
    pub length: u32,
    /// Tick that the first record is relative to.
    pub base_tick: u64,
    /// Clock sample at the begin of the block.
    pub clock_sample: ClockSample,
}

fn checksum(head: &[u8], records: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&head[..20]);
    hasher.update(&head[24..HEADER_BYTES]);
    hasher.update(records);
    hasher.finalize()
}

/// Header of a block that is not live, with the checksum over it and its records.
#[must_use]
pub fn closed_header(head: &BlockHeader, records: &[u8]) -> [u8; HEADER_BYTES] {
    let mut bytes = head.bytes();
    let sum = checksum(&bytes, records);
    bytes[20..24].copy_from_slice(&sum.to_le_bytes());
    bytes
}

impl BlockHeader {
    /// Encodes the header without the checksum.
    #[must_use]
    pub fn bytes(&self) -> [u8; HEADER_BYTES] {
        let mut out = [0; HEADER_BYTES];
        out[0..4].copy_from_slice(&MAGIC.to_le_bytes());
        out[4] = self.kind as u8;
        out[8..12].copy_from_slice(&self.lane.to_le_bytes());
        out[12..16].copy_from_slice(&self.sequence.to_le_bytes());
        out[16..20].copy_from_slice(&self.length.to_le_bytes());
        out[24..32].copy_from_slice(&self.base_tick.to_le_bytes());
        out[32..40].copy_from_slice(&self.clock_sample.tick.to_le_bytes());
        out[40..48].copy_from_slice(&self.clock_sample.ns.to_le_bytes());
        out[48..52].copy_from_slice(&self.thread.to_le_bytes());
        out
    }

    /// Decodes the header of a block, which may be truncated; None if it is invalid or damaged.
    #[must_use]
    pub fn read(block: &[u8]) -> Option<Self> {
        let head: &[u8; HEADER_BYTES] = block.get(..HEADER_BYTES)?.try_into().ok()?;
        let word = |at: usize| u32::from_le_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
        let long = |at: usize| u64::from(word(at)) | u64::from(word(at + 4)) << 32;
        let kind = match head[4] {
            1 => BlockKind::Head,
            2 => BlockKind::Closed,
            3 => BlockKind::Live,
            _ => return None,
        };
        let length = word(16);
        if word(0) != MAGIC || length as usize > PAYLOAD_BYTES {
            return None;
        }
        let records = block.get(HEADER_BYTES..HEADER_BYTES + length as usize);
        if kind != BlockKind::Live && records.map(|records| checksum(head, records)) != Some(word(20)) {
            return None;
        }
        let moment = ClockSample { tick: long(32), ns: long(40) };
        Some(Self {
            kind,
            lane: word(8),
            thread: word(48),
            sequence: word(12),
            length,
            base_tick: long(24),
            clock_sample: moment,
        })
    }

    /// Records of a block with this header.
    #[must_use]
    pub fn records<'a>(&self, block: &'a [u8]) -> &'a [u8] {
        match self.kind {
            BlockKind::Live => block.get(HEADER_BYTES..).unwrap_or_default(),
            _ => block.get(HEADER_BYTES..HEADER_BYTES + self.length as usize).unwrap_or_default(),
        }
    }
}
