//! Whether the memory of the transfers was cold.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The transfer memory of the ranks beside the caches that they sit under, and what single loads from it took, before the first
/// pattern, with all ranks at once.
///
/// A rank walks through its whole memory. On the way it loads lines of some pieces in an order that no prefetcher guesses, each load
/// after the one before: as they are found one lap after they were used last, again after they were taken out of all caches, and
/// again at once. The medians are those of the rank whose memory was the warmest.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ColdRecord {
    /// A rank's share of the caches, the largest of all ranks.
    pub cache_share_bytes: u64,
    /// Transfer memory that a rank walks through.
    pub memory_bytes: u64,
    /// Time that all of this took.
    pub seconds: f64,
    /// The rank.
    pub rank: u64,
    /// Lines loaded of each kind.
    pub lines: u64,
    /// One load a lap after the last; 0: not measured.
    pub found_ns: f64,
    /// One load that is known to come from memory.
    pub flushed_ns: f64,
    /// One load that is known to come from a cache.
    pub cached_ns: f64,
    /// Why nothing is known.
    pub not_known: Option<String>,
}

impl ColdRecord {
    /// Part of the loads that came from memory: 1 all, 0 none. Between the two in proportion. None: not known.
    #[must_use]
    pub fn from_memory(&self) -> Option<f64> {
        if self.not_known.is_some() {
            return None;
        }
        from_memory([self.found_ns, self.flushed_ns, self.cached_ns])
    }
}

/// The same of three times: as found, flushed, cached. None where flushed and cached are too close to tell anything apart.
#[must_use]
pub fn from_memory([found_ns, flushed_ns, cached_ns]: [f64; 3]) -> Option<f64> {
    let apart = cached_ns > 0.0 && flushed_ns > LEAST_RATIO * cached_ns;
    apart.then(|| ((found_ns - cached_ns) / (flushed_ns - cached_ns)).clamp(0.0, 1.0))
}

/// A load from memory takes several times as long as one from the nearest cache; below this the clock or an emulator hides it.
const LEAST_RATIO: f64 = 1.5;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_part_from_memory_lies_between_both_ends() {
        assert_eq!(from_memory([100.0, 100.0, 5.0]), Some(1.0));
        assert_eq!(from_memory([5.0, 105.0, 5.0]), Some(0.0));
        assert_eq!(from_memory([55.0, 105.0, 5.0]), Some(0.5));
        assert_eq!(from_memory([300.0, 105.0, 5.0]), Some(1.0), "page tables too");
        assert_eq!(from_memory([1.0, 105.0, 5.0]), Some(0.0));
        assert_eq!(from_memory([5.0, 6.0, 5.0]), None);
        assert_eq!(from_memory([0.0; 3]), None);
        let unknown = ColdRecord { found_ns: 9.0, flushed_ns: 9.0, cached_ns: 1.0, ..ColdRecord::default() };
        assert_eq!(unknown.from_memory(), Some(1.0));
        assert_eq!(ColdRecord { not_known: Some("x".into()), ..unknown }.from_memory(), None);
    }
}
