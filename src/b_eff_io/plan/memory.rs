//! Memory of one rank.

use super::{PatternSpec, PATTERNS};

const PAGE_BYTES: u64 = 4096;

/// Shortest period in pages: more than one call of 1 MB.
const MIN_PERIOD_PAGES: u64 = 257;

/// What a rank needs beside its transfer buffer: the program and the MPI library with its eager buffers.
pub const BASE_RANK_MEMORY_BYTES: u64 = 48 << 20;

/// Period of the data stream: 4096 times a prime, so that it aligns with nothing larger than a page and blocks of data
/// do not repeat where deduplication would look; larger than the last-level cache, so that the buffers are as cold as
/// in a real program. At most 1/16 of the memory of a rank, even if the cache is larger; at least 257 pages.
#[must_use]
pub fn period_bytes(last_level_cache_bytes: u64, memory_per_rank_bytes: u64) -> u64 {
    let most = memory_per_rank_bytes / 16 / PAGE_BYTES;
    let least = (last_level_cache_bytes / PAGE_BYTES + 1).max(MIN_PERIOD_PAGES);
    let fits = |pages: &u64| *pages <= most;
    let above = || (least..=most).find(|&p| is_prime(p));
    let below = || (MIN_PERIOD_PAGES..=most).rev().find(|&p| is_prime(p));
    let pages = Some(least).filter(fits).and_then(|_| above()).or_else(below);
    pages.unwrap_or(MIN_PERIOD_PAGES) * PAGE_BYTES
}

/// Trial division: periods are some hundred thousand pages at most.
fn is_prime(n: u64) -> bool {
    n >= 2 && (2..).take_while(|d| d * d <= n).all(|d| n % d != 0)
}

/// Largest call of one rank: of the patterns of these types, and of a fill-up that is as long as it can be.
#[must_use]
pub fn max_call_bytes(specs: &[PatternSpec; PATTERNS], types: &[u8], segment_multiple_bytes: u64) -> u64 {
    let calls = specs.iter().filter(|s| types.contains(&s.pattern_type)).map(|s| s.call_bytes).max().unwrap_or(0);
    let segmented = types.iter().any(|&t| t >= 3);
    calls.max(if segmented { segment_multiple_bytes } else { 0 })
}

/// Memory one rank needs: one period of the stream, the largest call behind it, and [`BASE_RANK_MEMORY_BYTES`].
#[must_use]
pub fn rank_memory_bytes(period_bytes: u64, max_call_bytes: u64) -> u64 {
    period_bytes.saturating_add(max_call_bytes).saturating_add(BASE_RANK_MEMORY_BYTES)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::b_eff_io::plan::patterns::patterns;
    use crate::frame::units::MIB;
    use proptest::prelude::*;

    #[test]
    fn known_periods() {
        assert_eq!(period_bytes(0, 1 << 30), 257 * 4096);
        // 32 MiB are 8192 pages; the next prime is 8209.
        assert_eq!(period_bytes(32 * MIB, 8 << 30), 8209 * 4096);
        // 128 MiB / 16 are 2048 pages; the prime below is 2039.
        assert_eq!(period_bytes(32 * MIB, 128 * MIB), 2039 * 4096);
        assert_eq!(period_bytes(32 * MIB, 0), 257 * 4096);
        // The cache fits, but the next prime above it does not.
        assert_eq!(period_bytes(8209 * 4096, 16 * 8212 * 4096), 8209 * 4096);
    }

    #[test]
    fn memory_adds_up() {
        let specs = patterns(8 * MIB);
        assert_eq!(max_call_bytes(&specs, &[0, 1, 2, 3, 4], MIB), 8 * MIB);
        assert_eq!(max_call_bytes(&specs, &[0, 3], 64 * MIB), 64 * MIB);
        assert_eq!(max_call_bytes(&specs, &[0], 64 * MIB), 8 * MIB);
        assert_eq!(rank_memory_bytes(257 * 4096, 8 * MIB), 257 * 4096 + 56 * MIB);
    }

    proptest! {
        #[test]
        fn periods_are_primes_in_bounds(cache in 0_u64..(1 << 30), memory in 0_u64..(1 << 36)) {
            let period = period_bytes(cache, memory);
            prop_assert_eq!(period % PAGE_BYTES, 0);
            prop_assert!(is_prime(period / PAGE_BYTES));
            prop_assert!(period <= (memory / 16).max(MIN_PERIOD_PAGES * PAGE_BYTES));
            prop_assert!(period > cache || cache >= memory / 16 - (memory / 16).min(1 << 20));
        }
    }
}
