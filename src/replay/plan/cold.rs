//! How much memory the accesses of a rank go through whose buffer was not just used, so that they find it cold.

/// Least memory.
pub const LEAST_BYTES: u64 = 16 << 20;

/// So many times a rank's share of the caches. Writes begin at random places: with four shares a cache that keeps what it has answers a
/// quarter of them at most.
const SHARES: u64 = 4;

/// At most this part of the memory of a rank.
const PART_OF_MEMORY: u64 = 16;

/// Memory for writes, and for reads, of a rank with this share of the caches and so much memory.
#[must_use]
pub fn cold_bytes(cache_share_bytes: u64, memory_per_rank_bytes: u64) -> u64 {
    cache_share_bytes.saturating_mul(SHARES).min(memory_per_rank_bytes / PART_OF_MEMORY).max(LEAST_BYTES)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_gone_through_exceeds_the_caches_and_stays_a_small_part_of_the_memory() {
        assert_eq!(cold_bytes(16 << 20, 8 << 30), 64 << 20);
        assert_eq!(cold_bytes(260 << 20, 8 << 30), 512 << 20);
        assert_eq!(cold_bytes(1 << 20, 8 << 30), LEAST_BYTES);
        assert_eq!(cold_bytes(u64::MAX, 0), LEAST_BYTES);
    }
}
