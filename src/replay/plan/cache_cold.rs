//! Amount of cache-cold memory for accesses whose buffer was not just used.

/// Minimum.
pub const MIN_COLD_BYTES: u64 = 16 << 20;

/// Multiple of a rank's share of the caches. Writes begin at random addresses: with four shares a cache that keeps its lines serves at
/// most a quarter of them.
const CACHE_SHARES: u64 = 4;

/// Divisor of the memory of a rank, which limits the amount.
const MEMORY_DIVISOR: u64 = 16;

/// Memory for writes, and the same for reads, of a rank with this share of the caches and this memory.
#[must_use]
pub fn cache_cold_bytes(cache_share_bytes: u64, memory_per_rank_bytes: u64) -> u64 {
    cache_share_bytes.saturating_mul(CACHE_SHARES).min(memory_per_rank_bytes / MEMORY_DIVISOR).max(MIN_COLD_BYTES)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cold_bytes_exceed_the_caches_and_are_a_small_part_of_the_memory() {
        assert_eq!(cache_cold_bytes(16 << 20, 8 << 30), 64 << 20);
        assert_eq!(cache_cold_bytes(260 << 20, 8 << 30), 512 << 20);
        assert_eq!(cache_cold_bytes(1 << 20, 8 << 30), MIN_COLD_BYTES);
        assert_eq!(cache_cold_bytes(u64::MAX, 0), MIN_COLD_BYTES);
    }
}
