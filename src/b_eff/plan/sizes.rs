//! The 21 message sizes: 13 powers of two up to 4096, then 8 that reach Lmax in equal steps of the logarithm.

/// Number of message sizes.
pub const SIZES: usize = 21;

/// Largest Lmax. The paper has it where an int has fewer than 64 bits, which is everywhere today: counts and displacements
/// of MPI_Alltoallv are ints.
pub const LARGEST_LMAX_BYTES: u64 = 128 << 20;

/// Lmax is this part of the memory of a process.
pub const MEMORY_SHARE: u64 = 128;

/// With less memory per process, Lmax would come so near to 4096 that sizes run into each other.
pub const LEAST_MEMORY_BYTES: u64 = 1 << 20;

/// The largest power of two among the sizes, where the second part begins.
const MIDDLE_BYTES: u64 = 1 << 12;

/// Lmax: the memory of a process / 128, at most [`LARGEST_LMAX_BYTES`].
#[must_use]
pub fn lmax_bytes(memory_per_process_bytes: u64) -> u64 {
    (memory_per_process_bytes / MEMORY_SHARE).min(LARGEST_LMAX_BYTES)
}

/// The [`SIZES`] message sizes in bytes, ascending and each once if `lmax_bytes` is that of [`LEAST_MEMORY_BYTES`] or more:
/// 2^0 to 2^12, then 4096 * f^k with k = 1 to 8 and f = (Lmax / 4096)^(1/8), rounded to the nearest integer.
#[must_use]
pub fn sizes(lmax_bytes: u64) -> Vec<u64> {
    // Square roots are rounded the same way by every machine; a general power is not.
    let factor = (lmax_bytes as f64 / MIDDLE_BYTES as f64).sqrt().sqrt().sqrt();
    let large = std::iter::successors(Some(MIDDLE_BYTES as f64 * factor), |size| Some(size * factor));
    (0..13).map(|k| 1 << k).chain(large.take(8).map(|size| size.round() as u64)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn check_values() {
        let of_memory = |mib: u64| sizes(lmax_bytes(mib << 20));
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
            (LEAST_MEMORY_BYTES, 8192),
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
        fn twenty_one_sizes_ascend_to_lmax(memory in LEAST_MEMORY_BYTES..(32_u64 << 30)) {
            let lmax = lmax_bytes(memory);
            let sizes = sizes(lmax);
            prop_assert_eq!(sizes.len(), SIZES);
            prop_assert_eq!(sizes.last(), Some(&lmax));
            prop_assert!(sizes.windows(2).all(|w| w[0] < w[1]), "{:?}", sizes);
        }
    }
}
