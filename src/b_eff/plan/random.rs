//! Rings of all ranks in random order. The release seeds them from the clock; here a seed yields the same rings on every
//! machine and with every version of the generator's library: all steps from the seed to the order are defined here.

use rand_pcg::rand_core::Rng;
use rand_pcg::Pcg64Mcg;

/// Number of random rings.
pub const RANDOM_RINGS: u64 = 30;

/// A random ring, stored as its parameters, so that thirty rings of a million ranks need no memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RandomRing {
    /// Ranks, all of them in the ring.
    pub ranks: u64,
    /// Seed of the plan.
    pub seed: u64,
    /// Number of the ring, from 1. Each has its own generator, so that omitting others changes nothing.
    pub number: u64,
}

impl RandomRing {
    /// Ranks in the order of the ring (Fisher and Yates); time and memory grow with their number.
    #[must_use]
    pub fn order(&self) -> Vec<u64> {
        let mut order: Vec<u64> = (0..self.ranks).collect();
        let mut random = self.generator();
        for last in (1..order.len()).rev() {
            order.swap(last, uniform_below(&mut random, last as u64 + 1) as usize);
        }
        order
    }

    pub(super) fn neighbours(&self, rank: u64) -> (u64, u64) {
        let order = self.order();
        let size = order.len();
        let position = order.iter().position(|&other| other == rank).unwrap_or(0);
        (order[(position + size - 1) % size], order[(position + 1) % size])
    }

    /// Seed and number are mixed first: seeds that differ by one bit must not yield related generators.
    fn generator(&self) -> Pcg64Mcg {
        let high = mix(mix(self.seed) ^ self.number);
        let low = mix(high);
        Pcg64Mcg::new(u128::from(high) << 64 | u128::from(low))
    }
}

/// One step of SplitMix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014).
fn mix(value: u64) -> u64 {
    let z = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// Uniform random number below `end`: the upper half of a product. The relative bias is at most end / 2^64, less than 2^-32
/// for any number of ranks of MPI.
fn uniform_below(random: &mut impl Rng, end: u64) -> u64 {
    ((u128::from(random.next_u64()) * u128::from(end)) >> 64) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    fn order(ranks: u64, seed: u64, number: u64) -> Vec<u64> {
        RandomRing { ranks, seed, number }.order()
    }

    #[test]
    fn the_same_rings_for_ever() {
        // From a second implementation of the generator: if these numbers change, results with the same seed are not
        // comparable.
        assert_eq!(order(4, 1, 1), [2, 3, 0, 1]);
        assert_eq!(order(8, 1, 1), [3, 0, 6, 7, 5, 4, 1, 2]);
        assert_eq!(order(8, 1, 2), [6, 5, 0, 4, 3, 1, 2, 7]);
        assert_eq!(order(8, u64::MAX, 30), [4, 7, 6, 5, 1, 0, 3, 2]);
    }

    #[test]
    fn seeds_and_numbers_give_different_rings() {
        let rings: BTreeSet<_> = (0..20).flat_map(|seed| (1..=30).map(move |number| order(64, seed, number))).collect();
        assert_eq!(rings.len(), 600);
    }

    #[test]
    fn every_order_is_as_probable_as_another() {
        // Chi-squared over the 24 orders of 4 ranks: 23 degrees of freedom, below 49.7 with a probability of 0.999.
        let mut seen = std::collections::BTreeMap::new();
        let draws = 24_000;
        for seed in 0..draws / RANDOM_RINGS {
            for number in 1..=RANDOM_RINGS {
                *seen.entry(order(4, seed, number)).or_insert(0.0) += 1.0;
            }
        }
        let expected = draws as f64 / 24.0;
        let chi_squared: f64 = seen.values().map(|n: &f64| (n - expected).powi(2) / expected).sum();
        assert!(seen.len() == 24 && chi_squared < 49.7, "{chi_squared}");
    }

    proptest! {
        #[test]
        fn every_rank_is_in_the_ring_once(ranks in 2..2000_u64, seed: u64, number in 1..=RANDOM_RINGS) {
            let mut order = order(ranks, seed, number);
            order.sort_unstable();
            prop_assert_eq!(order, (0..ranks).collect::<Vec<_>>());
        }
    }
}
