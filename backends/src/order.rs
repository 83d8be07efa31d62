//! Order of the calls of a pattern: a bijection on call numbers that is computed, without a list.

use beff_stamp::{inverse, mix};

/// Distance, in calls, between successive calls of [`OrderKind::Strided`].
pub const STRIDE_CALLS: u64 = 16;

/// Order of access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OrderKind {
    /// Ascending offsets.
    Sequential,
    /// A pseudo-random permutation.
    Random,
    /// Every [`STRIDE_CALLS`]-th call number from 0 on, then every one from 1 on, and so on.
    Strided,
    /// Descending offsets.
    Reverse,
}

/// A permutation of the call numbers below [`AccessOrder::calls`]. Equal arguments give equal permutations.
///
/// The random one is an invertible hash of as many bits as the largest number has, repeated until the result is below the number of calls
/// (cycle walking): at most two evaluations per call on average.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AccessOrder {
    kind: OrderKind,
    calls: u64,
    /// Bits of the hash.
    mask: u64,
    /// At least half of the bits, so that `x ^ (x >> shift)` is its own inverse.
    shift: u32,
    keys: [u64; ROUNDS],
}

const ROUNDS: usize = 4;
/// Odd, and so invertible modulo any power of two.
const MULTIPLIER: u64 = 0x9E6C_63D0_676A_9A99;
const INVERSE: u64 = inverse(MULTIPLIER);

impl AccessOrder {
    /// The order of `calls` calls; `seed` selects one of the random orders.
    #[must_use]
    pub fn new(kind: OrderKind, calls: u64, seed: u64) -> Self {
        let bits = u64::BITS - calls.saturating_sub(1).leading_zeros();
        let mask = u64::MAX.checked_shr(u64::BITS - bits).unwrap_or(0);
        let keys = std::array::from_fn(|round| mix(mix(seed).wrapping_add(round as u64)));
        Self { kind, calls, mask, shift: bits.div_ceil(2).max(1), keys }
    }

    /// Kind of the order.
    #[must_use]
    pub fn kind(&self) -> OrderKind {
        self.kind
    }

    /// Number of calls.
    #[must_use]
    pub fn calls(&self) -> u64 {
        self.calls
    }

    /// Call number at `position` of the order. Beyond the last one the position itself.
    #[must_use]
    #[inline]
    pub fn at(&self, position: u64) -> u64 {
        if position >= self.calls {
            return position;
        }
        match self.kind {
            OrderKind::Sequential => position,
            OrderKind::Random => self.walk(position, Self::hash),
            OrderKind::Strided => self.strided(position),
            OrderKind::Reverse => self.calls - 1 - position,
        }
    }

    /// Position of call number `call`: the inverse of [`AccessOrder::at`].
    #[must_use]
    pub fn position(&self, call: u64) -> u64 {
        if call >= self.calls {
            return call;
        }
        match self.kind {
            OrderKind::Random => self.walk(call, Self::unhash),
            OrderKind::Strided => {
                let (row, column) = (call / STRIDE_CALLS, call % STRIDE_CALLS);
                let (rows, longer) = (self.calls / STRIDE_CALLS, self.calls % STRIDE_CALLS);
                column * rows + column.min(longer) + row
            }
            OrderKind::Sequential | OrderKind::Reverse => self.at(call),
        }
    }

    #[inline]
    fn walk(&self, from: u64, step: impl Fn(&Self, u64) -> u64) -> u64 {
        let mut number = from;
        loop {
            number = step(self, number);
            if number < self.calls {
                return number;
            }
        }
    }

    #[inline]
    fn hash(&self, mut x: u64) -> u64 {
        for key in self.keys {
            x = (x ^ key).wrapping_mul(MULTIPLIER) & self.mask;
            x ^= x >> self.shift;
        }
        x
    }

    fn unhash(&self, mut x: u64) -> u64 {
        for key in self.keys.into_iter().rev() {
            x ^= x >> self.shift;
            x = (x.wrapping_mul(INVERSE) ^ key) & self.mask;
        }
        x
    }

    /// The first `longer` columns have one row more than the others.
    fn strided(&self, position: u64) -> u64 {
        let (rows, longer) = (self.calls / STRIDE_CALLS, self.calls % STRIDE_CALLS);
        let in_longer = longer * (rows + 1);
        let (row, column) = if position < in_longer {
            (position % (rows + 1), position / (rows + 1))
        } else {
            ((position - in_longer) % rows, longer + (position - in_longer) / rows)
        };
        row * STRIDE_CALLS + column
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const KINDS: [OrderKind; 4] = [OrderKind::Sequential, OrderKind::Random, OrderKind::Strided, OrderKind::Reverse];

    fn is_permutation(order: &AccessOrder) -> bool {
        let mut seen = vec![false; order.calls() as usize];
        (0..order.calls()).for_each(|position| seen[order.at(position) as usize] = true);
        seen.iter().all(|seen| *seen) && (0..order.calls()).all(|call| order.at(order.position(call)) == call)
    }

    /// Few calls, primes, powers of two and their neighbours, multiples of the stride and their neighbours.
    #[test]
    fn every_call_occurs_once() {
        let powers = (0..13).flat_map(|bits| [(1_u64 << bits) - 1, 1 << bits, (1 << bits) + 1]);
        let others = [0, 1, 2, 3, 5, 7, 13, 15, 17, 31, 47, 48, 49, 97, 997, 4999, 7919, 65_537];
        for calls in powers.chain(others) {
            for (kind, seed) in KINDS.into_iter().flat_map(|kind| [(kind, 0), (kind, 1), (kind, u64::MAX)]) {
                assert!(is_permutation(&AccessOrder::new(kind, calls, seed)), "{kind:?} of {calls}, seed {seed}");
            }
        }
    }

    proptest! {
        #[test]
        fn every_call_of_any_number_occurs_once(calls in 0_u64..3000, seed: u64) {
            for kind in KINDS {
                prop_assert!(is_permutation(&AccessOrder::new(kind, calls, seed)), "{:?}", kind);
            }
        }

        /// Where no list is possible: the inverse leads back, so no two positions have the same call.
        #[test]
        fn huge_orders_are_inverted(calls in 1_u64.., seed: u64, at in any::<u64>()) {
            for kind in KINDS {
                let order = AccessOrder::new(kind, calls, seed);
                let number = at % calls;
                prop_assert!(order.at(number) < calls && order.position(number) < calls);
                prop_assert_eq!(order.position(order.at(number)), number);
                prop_assert_eq!(order.at(order.position(number)), number);
            }
        }
    }

    #[test]
    fn the_seed_alone_selects_the_random_order() {
        let list = |kind, seed| {
            let order = AccessOrder::new(kind, 1000, seed);
            (0..1000).map(|position| order.at(position)).collect::<Vec<_>>()
        };
        assert_eq!(list(OrderKind::Random, 1), list(OrderKind::Random, 1));
        assert_ne!(list(OrderKind::Random, 1), list(OrderKind::Random, 2));
        let sorted: Vec<u64> = (0..1000).collect();
        assert_eq!(list(OrderKind::Sequential, 1), sorted);
        assert!(list(OrderKind::Reverse, 1).into_iter().rev().eq(sorted));
        assert_eq!(list(OrderKind::Strided, 1)[..3], [0, 16, 32]);
        assert_eq!(
            list(OrderKind::Strided, 1)[62..65],
            [992, 1, 17],
            "1000 = 62 * 16 + 8: 63 in the first eight columns"
        );
    }

    /// No trace of the offsets' order, for many seeds: neighbours follow each other as often as by chance, and each part of the order covers
    /// the whole range evenly.
    #[test]
    fn the_random_order_looks_random() {
        for calls in [1000_u64, 1024, 4095, 100_003] {
            let (mut neighbours, mut counts, seeds) = (0_u64, [[0_u64; 8]; 8], 40);
            for seed in 0..seeds {
                let order = AccessOrder::new(OrderKind::Random, calls, seed);
                let numbers: Vec<u64> = (0..calls).map(|position| order.at(position)).collect();
                neighbours += numbers.windows(2).filter(|pair| pair[0].abs_diff(pair[1]) == 1).count() as u64;
                for (position, number) in numbers.iter().enumerate() {
                    counts[(position as u64 * 8 / calls) as usize][(number * 8 / calls) as usize] += 1;
                }
            }
            // Two of `calls` numbers are neighbours of any number.
            let expected = 2.0 * seeds as f64;
            assert!((neighbours as f64) < expected + 6.0 * expected.sqrt(), "{calls}: {neighbours}");
            let cell = seeds as f64 * calls as f64 / 64.0;
            let worst = counts.iter().flatten().map(|n| (*n as f64 - cell).abs() / cell.sqrt()).fold(0.0, f64::max);
            assert!(worst < 6.0, "{calls}: {worst} {counts:?}");
        }
    }
}
