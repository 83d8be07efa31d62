//! Overhead of the harness compared with bare loops.

use schemars::JsonSchema;
use serde::Serialize;

use crate::frame::values::bare_loop::{compare_pairs, BareLoopRatio};
use crate::imb_io::records::ImbBareRecord;

/// One comparison, by the median of its pairs.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct ImbBareValue {
    /// Benchmark name.
    pub benchmark: String,
    /// Ranks.
    pub ranks: u64,
    /// X.
    pub sample_bytes: u64,
    /// Times of both loops per call, and their ratio.
    #[serde(flatten)]
    pub compared: BareLoopRatio,
}

pub(super) fn of(record: &ImbBareRecord) -> Option<ImbBareValue> {
    Some(ImbBareValue {
        benchmark: record.benchmark.clone(),
        ranks: record.ranks,
        sample_bytes: record.sample_bytes,
        compared: compare_pairs(&record.pairs, record.iterations)?,
    })
}
