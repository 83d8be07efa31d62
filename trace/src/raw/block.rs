//! Layout of a block.

use super::clock::Moment;
use super::BLOCK_BYTES;

/// Bytes before the records of a block.
pub const HEAD_BYTES: usize = 64;

/// Most bytes of records in a block.
pub const ROOM_BYTES: usize = BLOCK_BYTES - HEAD_BYTES;

const MAGIC: u32 = u32::from_le_bytes(*b"BFr1");

/// What a block holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The head of the file.
    Head = 1,
    /// Records, with a checksum.
    Closed = 2,
    /// Records up to the first that is zero; no checksum.
    Live = 3,
}

/// What stands before the records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockHead {
    /// What the block holds.
    pub kind: Kind,
    /// Which buffer it comes from.
    pub lane: u32,
    /// Thread that writes its first record.
    pub thread: u32,
    /// The how manieth of its lane, from 0.
    pub sequence: u32,
    /// Bytes of records; 0 in a live block.
    pub length: u32,
    /// Tick from which the first record counts.
    pub base_tick: u64,
    /// When the block was begun.
    pub moment: Moment,
}

fn checksum(head: &[u8], records: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&head[..20]);
    hasher.update(&head[24..HEAD_BYTES]);
    hasher.update(records);
    hasher.finalize()
}

/// The head of a block that is not live, with the checksum over it and its records.
#[must_use]
pub fn closed_head(head: &BlockHead, records: &[u8]) -> [u8; HEAD_BYTES] {
    let mut bytes = head.bytes();
    let sum = checksum(&bytes, records);
    bytes[20..24].copy_from_slice(&sum.to_le_bytes());
    bytes
}

impl BlockHead {
    /// As bytes, without the checksum.
    #[must_use]
    pub fn bytes(&self) -> [u8; HEAD_BYTES] {
        let mut out = [0; HEAD_BYTES];
        out[0..4].copy_from_slice(&MAGIC.to_le_bytes());
        out[4] = self.kind as u8;
        out[8..12].copy_from_slice(&self.lane.to_le_bytes());
        out[12..16].copy_from_slice(&self.sequence.to_le_bytes());
        out[16..20].copy_from_slice(&self.length.to_le_bytes());
        out[24..32].copy_from_slice(&self.base_tick.to_le_bytes());
        out[32..40].copy_from_slice(&self.moment.tick.to_le_bytes());
        out[40..48].copy_from_slice(&self.moment.ns.to_le_bytes());
        out[48..52].copy_from_slice(&self.thread.to_le_bytes());
        out
    }

    /// The head of a block, which may be cut short at its end; None if it is none, or damaged.
    #[must_use]
    pub fn read(block: &[u8]) -> Option<Self> {
        let head: &[u8; HEAD_BYTES] = block.get(..HEAD_BYTES)?.try_into().ok()?;
        let word = |at: usize| u32::from_le_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
        let long = |at: usize| u64::from(word(at)) | u64::from(word(at + 4)) << 32;
        let kind = match head[4] {
            1 => Kind::Head,
            2 => Kind::Closed,
            3 => Kind::Live,
            _ => return None,
        };
        let length = word(16);
        if word(0) != MAGIC || length as usize > ROOM_BYTES {
            return None;
        }
        let records = block.get(HEAD_BYTES..HEAD_BYTES + length as usize);
        if kind != Kind::Live && records.map(|records| checksum(head, records)) != Some(word(20)) {
            return None;
        }
        let moment = Moment { tick: long(32), ns: long(40) };
        Some(Self { kind, lane: word(8), thread: word(48), sequence: word(12), length, base_tick: long(24), moment })
    }

    /// The records of a block with this head.
    #[must_use]
    pub fn records<'a>(&self, block: &'a [u8]) -> &'a [u8] {
        match self.kind {
            Kind::Live => block.get(HEAD_BYTES..).unwrap_or_default(),
            _ => block.get(HEAD_BYTES..HEAD_BYTES + self.length as usize).unwrap_or_default(),
        }
    }
}
