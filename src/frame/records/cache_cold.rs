//! Whether the transfer memory was cache-cold.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Size of the ranks' transfer memory compared with their caches, and latency of single loads from it, measured before the first pattern
/// by all ranks at once.
///
/// A rank traverses its whole memory. In some blocks it loads cache lines in an order that no prefetcher predicts, each load dependent on
/// the one before: once in the state one traversal after their last use, once after they were flushed from all caches, and once more at
/// once. The medians are those of the rank with the largest share of cache hits.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CacheColdRecord {
    /// Largest cache share of a rank.
    pub cache_share_bytes: u64,
    /// Memory that a rank traverses with calls of any size: one period of its data.
    pub memory_bytes: u64,
    /// Time of this measurement, outside all timed intervals, part of `calibrate_seconds`.
    pub seconds: f64,
    /// Rank with the largest share of cache hits.
    pub rank: u64,
    /// Single loads of each kind, in up to 16 blocks of 256 KiB.
    pub lines: u64,
    /// One load, one traversal after the last use of the line: median over the blocks; 0 if not measured.
    pub load_ns: f64,
    /// The same after the lines were flushed from all caches.
    pub flushed_ns: f64,
    /// The same, repeated at once (cache-hot).
    pub cached_ns: f64,
    /// Why the result is unknown: processor other than x86-64, memory below 512 KiB, `--buffers reused`, a run of `null` alone, which
    /// touches no memory. None if it is known.
    pub unknown_reason: Option<String>,
}

impl CacheColdRecord {
    /// Share of the loads served from memory, 0 to 1, interpolated. None if unknown.
    #[must_use]
    pub fn memory_share(&self) -> Option<f64> {
        if self.unknown_reason.is_some() {
            return None;
        }
        memory_share([self.load_ns, self.flushed_ns, self.cached_ns])
    }
}

/// The same from three latencies: measured, flushed, cached. None if flushed and cached are too close to be distinguished.
#[must_use]
pub fn memory_share([found_ns, flushed_ns, cached_ns]: [f64; 3]) -> Option<f64> {
    let apart = cached_ns > 0.0 && flushed_ns > MIN_LATENCY_RATIO * cached_ns;
    apart.then(|| ((found_ns - cached_ns) / (flushed_ns - cached_ns)).clamp(0.0, 1.0))
}

/// Smallest ratio of flushed to cached latency. A load from memory takes several times as long as one from the nearest cache; a smaller
/// ratio is an effect of the clock or of an emulator.
const MIN_LATENCY_RATIO: f64 = 1.5;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_memory_share_is_interpolated_and_clamped() {
        assert_eq!(memory_share([100.0, 100.0, 5.0]), Some(1.0));
        assert_eq!(memory_share([5.0, 105.0, 5.0]), Some(0.0));
        assert_eq!(memory_share([55.0, 105.0, 5.0]), Some(0.5));
        assert_eq!(memory_share([300.0, 105.0, 5.0]), Some(1.0), "page tables too");
        assert_eq!(memory_share([1.0, 105.0, 5.0]), Some(0.0));
        assert_eq!(memory_share([5.0, 6.0, 5.0]), None);
        assert_eq!(memory_share([0.0; 3]), None);
        let unknown = CacheColdRecord { load_ns: 9.0, flushed_ns: 9.0, cached_ns: 1.0, ..CacheColdRecord::default() };
        assert_eq!(unknown.memory_share(), Some(1.0));
        assert_eq!(CacheColdRecord { unknown_reason: Some("x".into()), ..unknown }.memory_share(), None);
    }
}
