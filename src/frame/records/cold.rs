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
    /// Largest share of the caches that a rank has.
    pub cache_share_bytes: u64,
    /// What a rank walks through with calls of any size: one period of its data.
    pub memory_bytes: u64,
    /// Time of the measurement, outside of every clock, part of `calibrate_seconds`.
    pub seconds: f64,
    /// The rank whose memory was the warmest.
    pub rank: u64,
    /// Single loads of each kind, in up to 16 pieces of 256 KiB.
    pub lines: u64,
    /// One load, one lap after the line was used last: median over the pieces; 0: not measured.
    pub found_ns: f64,
    /// The same after the lines were taken out of all caches.
    pub flushed_ns: f64,
    /// The same once more at once.
    pub cached_ns: f64,
    /// Why nothing is known: processors but x86-64, memory below 512 KiB, `--buffers reused`, a run of `null` alone, which touches no
    /// memory. None: it is known.
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
