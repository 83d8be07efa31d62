//! Neighbours in Cartesian grids of two and three dimensions.

use super::ExchangeStep;

/// Grid of ranks, numbered as by MPI_Cart_create: the last dimension varies fastest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CartesianGrid {
    /// Extents, non-increasing.
    pub dims: Vec<u64>,
    /// Directions of the messages, as indices into `dims`, from 0. All have an extent of at least 2.
    pub directions: Vec<usize>,
    /// True if the grid is periodic: the last rank of a direction is a neighbour of the first.
    pub cyclic: bool,
}

impl CartesianGrid {
    /// Grid with messages in all directions of an extent above 1.
    #[must_use]
    pub fn in_all_directions(dims: &[u64], cyclic: bool) -> Self {
        let directions = (0..dims.len()).filter(|&d| dims[d] > 1).collect();
        Self { dims: dims.to_vec(), directions, cyclic }
    }

    /// Cyclic grid with messages in one direction.
    #[must_use]
    pub fn in_one_direction(dims: &[u64], direction: usize) -> Self {
        Self { dims: dims.to_vec(), directions: vec![direction], cyclic: true }
    }

    /// Messages to the lower and the upper neighbour in each direction in turn: step k is the same shift on all ranks. In a
    /// cyclic direction of extent 2, both neighbours are the same process, and the second message is omitted.
    pub(super) fn steps(&self, rank: u64) -> Vec<ExchangeStep> {
        let mut steps = Vec::with_capacity(2 * self.directions.len());
        for &direction in &self.directions {
            let (lower, upper) = self.neighbours(rank, direction);
            steps.push(ExchangeStep { send_to: lower, receive_from: upper });
            if self.messages_per_direction(direction) == 2 {
                steps.push(ExchangeStep { send_to: upper, receive_from: lower });
            }
        }
        steps
    }

    pub(super) fn max_steps(&self) -> u64 {
        self.directions.iter().map(|&d| self.messages_per_direction(d)).sum()
    }

    pub(super) fn messages(&self) -> u64 {
        let ranks: u64 = self.dims.iter().product();
        let of = |&d: &usize| {
            let border = if self.cyclic { 0 } else { ranks / self.dims[d] };
            self.messages_per_direction(d) * (ranks - border)
        };
        self.directions.iter().map(of).sum()
    }

    /// `3x2`.
    pub(super) fn shape(&self) -> String {
        self.dims.iter().map(u64::to_string).collect::<Vec<_>>().join("x")
    }

    fn messages_per_direction(&self, direction: usize) -> u64 {
        if self.cyclic && self.dims[direction] == 2 {
            1
        } else {
            2
        }
    }

    /// Lower and upper neighbour in a direction; None beyond the border.
    fn neighbours(&self, rank: u64, direction: usize) -> (Option<u64>, Option<u64>) {
        let extent = self.dims[direction];
        let stride: u64 = self.dims[direction + 1..].iter().product();
        let coordinate = rank / stride % extent;
        let around = (extent - 1) * stride;
        let lower = if coordinate > 0 { Some(rank - stride) } else { self.cyclic.then(|| rank + around) };
        let upper = if coordinate + 1 < extent { Some(rank + stride) } else { self.cyclic.then(|| rank - around) };
        (lower, upper)
    }
}

/// Extents of a two-dimensional grid: as close to each other as possible, non-increasing.
#[must_use]
pub fn dims_2d(ranks: u64) -> [u64; 2] {
    let smaller = divisors_to_root(ranks).max().unwrap_or(1);
    [ranks / smaller, smaller]
}

/// Extents of a three-dimensional grid, non-increasing; the largest as small as possible, then the second.
///
/// This is the documented result of MPI_Dims_create ("as close to each other as possible, using an appropriate
/// divisibility algorithm", MPI 4.0, section 8.5.2); the smallest difference of the largest and smallest extent, or the
/// smallest sum, are equivalent up to 4096 ranks. Compared with the libraries up to 4096 ranks: MPICH 4.0.2 agrees in two
/// dimensions, and in three except for 360 (10x6x6 instead of 9x8x5) and 3696; Open MPI 4.1.4 differs at some numbers with
/// many divisors, from 72 on (12x6 instead of 9x8). Own arithmetic yields a plan without MPI, and the same pattern with
/// every library.
#[must_use]
pub fn dims_3d(ranks: u64) -> [u64; 3] {
    let candidates =
        divisors_to_root(ranks).filter(|&smallest| smallest * smallest <= ranks / smallest).map(|smallest| {
            let [first, second] = dims_2d(ranks / smallest);
            [first, second, smallest]
        });
    // If even the closest two factors of the quotient are below `smallest`, no three extents end with it.
    candidates.filter(|dims| dims[1] >= dims[2]).min().unwrap_or([ranks, 1, 1])
}

fn divisors_to_root(number: u64) -> impl Iterator<Item = u64> {
    (1..).take_while(move |d| d * d <= number).filter(move |d| number.is_multiple_of(*d))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn dims_are_those_of_mpi() {
        for (ranks, two, three) in [
            (2, [2, 1], [2, 1, 1]),
            (3, [3, 1], [3, 1, 1]),
            (4, [2, 2], [2, 2, 1]),
            (6, [3, 2], [3, 2, 1]),
            (7, [7, 1], [7, 1, 1]),
            (8, [4, 2], [2, 2, 2]),
            (12, [4, 3], [3, 2, 2]),
            (16, [4, 4], [4, 2, 2]),
            (24, [6, 4], [4, 3, 2]),
            (36, [6, 6], [4, 3, 3]),
            (60, [10, 6], [5, 4, 3]),
            (64, [8, 8], [4, 4, 4]),
            (72, [9, 8], [6, 4, 3]),
            (100, [10, 10], [5, 5, 4]),
            (360, [20, 18], [9, 8, 5]),
            (1000, [40, 25], [10, 10, 10]),
            (1021, [1021, 1], [1021, 1, 1]),
            (1024, [32, 32], [16, 8, 8]),
        ] {
            assert_eq!((dims_2d(ranks), dims_3d(ranks)), (two, three), "{ranks}");
        }
    }

    #[test]
    fn no_other_three_factors_are_nearer_to_each_other() {
        for ranks in 1..=1024_u64 {
            let all = (1..=ranks)
                .filter(|a| ranks % a == 0)
                .flat_map(|a| (1..=a).filter(move |b| (ranks / a) % b == 0).map(move |b| [a, b, ranks / a / b]));
            let sorted: Vec<_> = all.filter(|d| d[1] >= d[2]).collect();
            let nearest = sorted.iter().min_by_key(|d| (d[0] - d[2], d[0], d[1]));
            assert_eq!(Some(&dims_3d(ranks)), nearest, "{ranks}");
            assert_eq!(Some(&dims_3d(ranks)), sorted.iter().min_by_key(|d| (d.iter().sum::<u64>(), d[0])), "{ranks}");
        }
    }

    #[test]
    fn neighbours_of_a_small_grid() {
        // 0 1
        // 2 3
        // 4 5
        let step = |send_to, receive_from| ExchangeStep { send_to, receive_from };
        let open = CartesianGrid::in_all_directions(&[3, 2], false);
        assert_eq!(open.steps(0), [step(None, Some(2)), step(Some(2), None), step(None, Some(1)), step(Some(1), None)]);
        assert_eq!((open.messages(), open.max_steps(), open.shape().as_str()), (14, 4, "3x2"));
        let closed = CartesianGrid::in_all_directions(&[3, 2], true);
        assert_eq!(closed.steps(1), [step(Some(5), Some(3)), step(Some(3), Some(5)), step(Some(0), Some(0))]);
        assert_eq!((closed.messages(), closed.max_steps()), (18, 3));
        assert_eq!(CartesianGrid::in_one_direction(&[3, 2], 1).steps(4), [step(Some(5), Some(5))]);
        assert_eq!(CartesianGrid::in_all_directions(&[7, 1, 1], true).directions, [0]);
    }

    proptest! {
        #[test]
        fn dims_multiply_to_the_ranks_and_do_not_increase(ranks in 1..10_000_000_u64) {
            let (two, three) = (dims_2d(ranks), dims_3d(ranks));
            prop_assert_eq!(two.iter().product::<u64>(), ranks);
            prop_assert_eq!(three.iter().product::<u64>(), ranks);
            prop_assert!(two[0] >= two[1] && three[0] >= three[1] && three[1] >= three[2]);
        }
    }
}
