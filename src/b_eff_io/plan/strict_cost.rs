//! What `--strict` can cost: the time that nothing bounds any more.

use serde::{Deserialize, Serialize};

use super::outlook::Outlook;
use super::schedule::guard_seconds;
use crate::b_eff_io::pattern_type::PatternType;

/// Time of one backend that only the storage bounds, over all partitions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct StrictCost {
    /// Bytes of the first writes of types 3 and 4, whose calls are counted.
    pub counted_bytes: u64,
    /// Their scheduled time.
    pub counted_scheduled_seconds: f64,
    /// Their time at the assumed rate; N times that if these types are N times slower than types 0 to 2, from which the counts follow.
    pub counted_seconds: f64,
    /// Their maximum time without `--strict`, by the time guard.
    pub guarded_seconds: f64,
    /// Timed first writes and rewrites; each ends with a sync.
    pub syncs: u64,
    /// Upper bound of the time of these syncs at the assumed rate: each writes back the memory of all ranks of the partition.
    pub sync_seconds: f64,
}

impl StrictCost {
    /// Adds a timed pattern of a partition with `memory_bytes` of memory; `outlook`: write, rewrite, read.
    pub fn add(
        &mut self,
        pattern_type: PatternType,
        (bytes, outlook): (u64, &[Option<Outlook>; 3]),
        memory_bytes: f64,
        rate_bytes_per_second: f64,
    ) {
        let [write, rewrite, _] = outlook;
        let syncs = [write, rewrite].into_iter().flatten().count() as u64;
        self.syncs += syncs;
        self.sync_seconds += syncs as f64 * memory_bytes / rate_bytes_per_second;
        if let Some(write) = write.filter(|_| pattern_type.has_segments()) {
            self.counted_bytes = self.counted_bytes.saturating_add(bytes);
            self.counted_scheduled_seconds += write.scheduled_seconds;
            self.counted_seconds += write.seconds;
            self.guarded_seconds += guard_seconds(write.scheduled_seconds);
        }
    }
}
