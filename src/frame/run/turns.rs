//! Our loop and a bare one in turns: how long each, how often, in which order.

/// Whose loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// Ours.
    Ours,
    /// The one in C, without anything around its calls.
    Bare,
}

/// Time for one comparison, and what bounds it.
#[derive(Clone, Copy, Debug)]
pub struct Turns {
    /// All of it, about.
    pub share_seconds: f64,
    /// Pairs at least and at most.
    pub pairs: [u64; 2],
}

impl Turns {
    /// Lets both sides run, each pair in the order given, with so many calls: `pair` returns the seconds of ours and of the
    /// bare one, of the slowest rank. `calls` says how many fill a loop, from the seconds of one. Returns that number and
    /// the pairs. What `pair` returns must be equal on all ranks.
    ///
    /// # Errors
    /// Those of `pair`, at the first.
    pub fn take<E>(
        &self,
        first_calls: u64,
        calls: impl FnOnce(f64) -> u64,
        mut pair: impl FnMut([Side; 2], u64) -> Result<[f64; 2], E>,
    ) -> Result<(u64, Vec<[f64; 2]>), E> {
        // Both once before it counts; the second says how many there is time for.
        pair([Side::Ours, Side::Bare], first_calls)?;
        let first = pair([Side::Ours, Side::Bare], first_calls)?;
        let one = (first[0].max(first[1]) / first_calls as f64).max(1e-9);
        let calls = calls(one);
        let count = ((self.share_seconds / (2.0 * one * calls as f64)) as u64).clamp(self.pairs[0], self.pairs[1]);
        // A B B A: what drifts meets both alike.
        let order = |n| if n % 2 == 0 { [Side::Ours, Side::Bare] } else { [Side::Bare, Side::Ours] };
        let pairs = (0..count).map(|n| pair(order(n), calls)).collect::<Result<_, _>>()?;
        Ok((calls, pairs))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_turn_round_and_fill_their_share() {
        let mut orders = Vec::new();
        let turns = Turns { share_seconds: 1.0, pairs: [3, 100] };
        let (calls, pairs) = turns
            .take::<()>(
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
        let expected = [(Side::Ours, 2), (Side::Ours, 2), (Side::Ours, 100), (Side::Bare, 100), (Side::Ours, 100)];
        assert_eq!(orders[..5], expected);
        assert_eq!(turns.take(1, |_| 1, |_, _| Err("away")), Err("away"));
    }

    #[test]
    fn loops_that_are_too_long_or_too_short_have_pairs_all_the_same() {
        let pairs = |seconds: f64| {
            let turns = Turns { share_seconds: 1.0, pairs: [3, 100] };
            turns.take::<()>(1, |_| 1, |_, _| Ok([seconds; 2])).unwrap().1.len()
        };
        assert_eq!([pairs(60.0), pairs(0.0), pairs(0.1)], [3, 100, 5]);
    }
}
