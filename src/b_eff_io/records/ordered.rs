//! Measurements in another order, beside the definition.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{PatternRecord, TypeRecord};
use crate::b_eff_io::config::ChunkOrder;

/// A rewrite or read of a pattern's data in another order. No value derives from it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OrderedRecord {
    /// The order.
    pub order: ChunkOrder,
    /// The measurement: one chunk per call, each chunk at most once. It has the time that the definition gives to the pattern.
    pub measurement: PatternRecord,
}

/// Opening and closing of the file(s) of a type for an order.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OrderedTypeRecord {
    /// The order.
    pub order: ChunkOrder,
    /// The measurement.
    pub measurement: TypeRecord,
}
