//! What our loops cost beside bare ones.

use serde::Serialize;

use crate::frame::values::pairs;
use crate::imb_io::records::ImbBareRecord;

/// One comparison, by the median of its pairs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ImbBareValue {
    /// Benchmark name.
    pub benchmark: String,
    /// Ranks.
    pub ranks: u64,
    /// X.
    pub sample_bytes: u64,
    /// Number of pairs.
    pub pairs: u64,
    /// Seconds of a call of ours, median.
    pub ours_seconds: f64,
    /// The same of the bare loop.
    pub bare_seconds: f64,
    /// ours / bare of the times, median over the pairs.
    pub ratio: f64,
    /// 95 % interval of that median by the order of the pairs (sign test); None with fewer than 6.
    pub interval: Option<[f64; 2]>,
}

pub(super) fn of(record: &ImbBareRecord) -> Option<ImbBareValue> {
    let all: Vec<[f64; 2]> = record.pairs.iter().map(|p| [p.ours_seconds, p.bare_seconds]).collect();
    let found = pairs::compare(&all)?;
    let calls = record.repetitions.max(1) as f64;
    Some(ImbBareValue {
        benchmark: record.benchmark.clone(),
        ranks: record.ranks,
        sample_bytes: record.sample_bytes,
        pairs: found.pairs,
        ours_seconds: found.ours_seconds / calls,
        bare_seconds: found.bare_seconds / calls,
        ratio: found.ratio,
        interval: found.interval,
    })
}
