//! Measurements in another order, beside the definition.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{PatternRecord, TypeRecord};
use crate::b_eff_io::config::{CallOrder, ChunkOrder, ReadShare};
use crate::frame::records::AccessMethod;

/// A rewrite or read of a pattern's data in another order, or both mixed. No value derives from it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OrderedRecord {
    /// The order.
    pub order: ChunkOrder,
    /// Reads among the writes; None: all calls have one direction.
    #[serde(default)]
    pub mix: Option<MixRecord>,
    /// The measurement: one chunk per call, each chunk at most once. It has the time that the definition gives to the pattern. With reads and
    /// writes its access method is rewrite, and its bytes are those of both directions.
    pub measurement: PatternRecord,
}

impl OrderedRecord {
    /// The order, and the share of reads.
    #[must_use]
    pub fn call_order(&self) -> CallOrder {
        CallOrder { order: self.order, mix: self.mix.map(|mix| ReadShare { read_percent: mix.read_percent }) }
    }

    /// The reads of a mix as a record of their own, for the question where their bytes came from; None without a mix. Bytes that the kernel
    /// fetched to complete blocks for the writes count for them, too, so that the bytes from storage are an upper bound.
    #[must_use]
    pub fn mixed_reads(&self) -> Option<PatternRecord> {
        let p = &self.measurement;
        let moved_bytes = self.mix?.read_calls.saturating_mul(p.call_bytes).saturating_mul(p.ranks);
        Some(PatternRecord { access: AccessMethod::Read, moved_bytes, ..p.clone() })
    }
}

/// Reads and writes of a measurement. Which calls read follows from their position in the order: call `i`, from 0, reads if and only if
/// (i + 1) * read_percent / 100, rounded down, is larger than i * read_percent / 100, rounded down.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MixRecord {
    /// Share of the calls that read, in percent.
    pub read_percent: u8,
    /// Calls of each rank that read, of `calls`.
    pub read_calls: u64,
    /// Data that a read must find.
    pub reads_expect: ReadExpectation,
    /// Generation of the data that the writes leave: the number of this measurement among those beside the definition of its partition, from
    /// 1. What a read expects has a smaller one, or that of the first write or the rewrite.
    pub written_generation: u32,
}

/// Generation of the data that a read of a mixed measurement must find.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ReadExpectation {
    /// That which the chunk had before this measurement: each chunk is accessed at most once, so no read finds what the measurement writes.
    GenerationBefore,
}

/// Opening and closing of the file(s) of a type for an order.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OrderedTypeRecord {
    /// The order.
    pub order: ChunkOrder,
    /// Share of reads; None: all calls have one direction.
    #[serde(default)]
    pub mix: Option<ReadShare>,
    /// The measurement.
    pub measurement: TypeRecord,
}
