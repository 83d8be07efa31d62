//! What our loops cost beside bare ones.

use schemars::JsonSchema;
use serde::Serialize;

use crate::frame::values::pairs::{compare, Compared};
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
    /// Ours beside the bare one, by call.
    #[serde(flatten)]
    pub compared: Compared,
}

pub(super) fn of(record: &ImbBareRecord) -> Option<ImbBareValue> {
    Some(ImbBareValue {
        benchmark: record.benchmark.clone(),
        ranks: record.ranks,
        sample_bytes: record.sample_bytes,
        compared: compare(&record.pairs, record.repetitions)?,
    })
}
