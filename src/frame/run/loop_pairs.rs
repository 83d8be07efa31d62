//! Pairs of the harness loop and the bare loop: length, number and order.

/// One of the two loops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoopKind {
    /// Loop of the harness.
    Harness,
    /// Bare loop: the same calls in C.
    Bare,
}

/// Time and limits of one comparison.
#[derive(Clone, Copy, Debug)]
pub struct LoopPairs {
    /// Approximate time of all pairs.
    pub share_seconds: f64,
    /// Minimum and maximum number of pairs.
    pub pair_limits: [u64; 2],
}

impl LoopPairs {
    /// Runs pairs of loops: `pair` gets the order and the number of calls, and returns the seconds of the harness loop and of the bare
    /// loop on the slowest rank, equal on all ranks. `calls` derives the number of calls in a loop from the seconds of one call. Returns
    /// that number and the pairs.
    ///
    /// # Errors
    /// The first error of `pair`.
    pub fn run<E>(
        &self,
        first_calls: u64,
        calls: impl FnOnce(f64) -> u64,
        mut pair: impl FnMut([LoopKind; 2], u64) -> Result<[f64; 2], E>,
    ) -> Result<(u64, Vec<[f64; 2]>), E> {
        // Two pairs that do not count; the second determines the number of calls.
        pair([LoopKind::Harness, LoopKind::Bare], first_calls)?;
        let first = pair([LoopKind::Harness, LoopKind::Bare], first_calls)?;
        let one = (first[0].max(first[1]) / first_calls as f64).max(1e-9);
        let calls = calls(one);
        let count =
            ((self.share_seconds / (2.0 * one * calls as f64)) as u64).clamp(self.pair_limits[0], self.pair_limits[1]);
        // A B B A: drift affects both alike.
        let order =
            |n| if n % 2 == 0 { [LoopKind::Harness, LoopKind::Bare] } else { [LoopKind::Bare, LoopKind::Harness] };
        let pairs = (0..count).map(|n| pair(order(n), calls)).collect::<Result<_, _>>()?;
        Ok((calls, pairs))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_alternate_and_fill_their_share() {
        let mut orders = Vec::new();
        let turns = LoopPairs { share_seconds: 1.0, pair_limits: [3, 100] };
        let (calls, pairs) = turns
            .run::<()>(
                2,
                |one| (0.1 / one) as u64,
                |order, calls| {
                    orders.push((order[0], calls));
                    Ok([1e-3 * calls as f64, 0.5e-3 * calls as f64])
                },
            )
            .unwrap();
        // 100 calls of 1 ms: 0.1 s for each of the two.
        assert_eq!((calls, pairs.len()), (100, 5));
        let expected = [
            (LoopKind::Harness, 2),
            (LoopKind::Harness, 2),
            (LoopKind::Harness, 100),
            (LoopKind::Bare, 100),
            (LoopKind::Harness, 100),
        ];
        assert_eq!(orders[..5], expected);
        assert_eq!(turns.run(1, |_| 1, |_, _| Err("away")), Err("away"));
    }

    #[test]
    fn loops_that_are_too_long_or_too_short_have_pairs_all_the_same() {
        let pairs = |seconds: f64| {
            let turns = LoopPairs { share_seconds: 1.0, pair_limits: [3, 100] };
            turns.run::<()>(1, |_| 1, |_, _| Ok([seconds; 2])).unwrap().1.len()
        };
        assert_eq!([pairs(60.0), pairs(0.0), pairs(0.1)], [3, 100, 5]);
    }
}
