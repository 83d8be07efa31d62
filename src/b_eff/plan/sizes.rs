//! The 21 message sizes: 13 powers of two up to 4096, then 8 that reach Lmax in equal steps of the logarithm.

/// Number of message sizes.
pub const SIZE_COUNT: usize = 21;

/// Maximum of Lmax. The paper sets it where an int has fewer than 64 bits, which is everywhere today: counts and
/// displacements of MPI_Alltoallv are ints.
pub const MAX_LMAX_BYTES: u64 = 128 << 20;

/// Memory of a process divided by Lmax.
pub const MEMORY_PER_LMAX: u64 = 128;

/// Minimum memory per process: with less, Lmax would be so close to 4096 that sizes coincide.
pub const MIN_MEMORY_BYTES: u64 = 1 << 20;

/// Largest of the power-of-two sizes, where the second part begins.
const LAST_POWER_OF_TWO_BYTES: u64 = 1 << 12;

/// Lmax: the memory of a process / 128, at most [`MAX_LMAX_BYTES`].
#[must_use]
pub fn lmax_bytes(memory_per_process_bytes: u64) -> u64 {
    (memory_per_process_bytes / MEMORY_PER_LMAX).min(MAX_LMAX_BYTES)
}

/// The [`SIZE_COUNT`] message sizes in bytes, ascending and each once if `lmax_bytes` is that of [`MIN_MEMORY_BYTES`] or more:
/// 2^0 to 2^12, then 4096 * f^k with k = 1 to 8 and f = (Lmax / 4096)^(1/8), rounded to the nearest integer.
#[must_use]
pub fn message_sizes(lmax_bytes: u64) -> Vec<u64> {
    // Square roots are rounded identically on every machine; general powers are not.
    let factor = (lmax_bytes as f64 / LAST_POWER_OF_TWO_BYTES as f64).sqrt().sqrt().sqrt();
    let large = std::iter::successors(Some(LAST_POWER_OF_TWO_BYTES as f64 * factor), |size| Some(size * factor));
    (0..13).map(|k| 1 << k).chain(large.take(8).map(|size| size.round() as u64)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn check_values() {
        let of_memory = |mib: u64| message_sizes(lmax_bytes(mib << 20));
        let small: Vec<u64> = (0..=12).map(|k| 1 << k).collect();
        for mib in [1, 128, 512, 1 << 20] {
            assert_eq!(of_memory(mib)[..13], small, "{mib}");
        }
        assert_eq!(of_memory(128)[13..], (13..=20).map(|k| 1 << k).collect::<Vec<u64>>());
        assert_eq!(of_memory(512)[13..], [9742, 23170, 55109, 131_072, 311_744, 741_455, 1_763_488, 4_194_304]);
    }

    #[test]
    fn lmax_is_a_share_of_memory_with_a_cap() {
        for (memory, lmax) in [
            (MIN_MEMORY_BYTES, 8192),
            (128 << 20, 1 << 20),
            ((128 << 20) + 127, 1 << 20),
            (16 << 30, 128 << 20),
            ((16 << 30) - 1, (128 << 20) - 1),
            (u64::MAX, 128 << 20),
        ] {
            assert_eq!(lmax_bytes(memory), lmax, "{memory}");
        }
    }

    proptest! {
        #[test]
        fn twenty_one_sizes_ascend_to_lmax(memory in MIN_MEMORY_BYTES..(32_u64 << 30)) {
            let lmax = lmax_bytes(memory);
            let sizes = message_sizes(lmax);
            prop_assert_eq!(sizes.len(), SIZE_COUNT);
            prop_assert_eq!(sizes.last(), Some(&lmax));
            prop_assert!(sizes.windows(2).all(|w| w[0] < w[1]), "{:?}", sizes);
        }
    }
}
