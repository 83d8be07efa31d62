//! A pattern: its name and shape, and the messages of any rank without looking at the others.

use super::grid::{dims_2d, dims_3d, Grid};
use super::random::{RandomRing, RANDOM_RINGS};
use super::rings;
use super::rings::{Blocks, RING_PATTERNS};
use super::{Family, Step};

/// Up to so many ranks, the shape of a ring names them all.
const NAMED_RANKS: u64 = 8;

/// A pattern of b_eff.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommPattern {
    /// `ring-1` to `ring-6`, `random-1` to `random-30`, `worst-cycle`, `cart-2d-cyclic-1`, ...
    pub name: String,
    /// What it is one of.
    pub family: Family,
    /// Sizes of its rings in the order of the ranks (`5x2+3`), the order of a single ring (`3-0-2-1`) or its size
    /// (`100 ranks`), extents of a grid (`3x2`).
    pub shape: String,
    /// Messages of all ranks in one iteration: the number of (rank, step) with `send_to`.
    pub messages: u64,
    pub(super) ranks: u64,
    pub(super) route: Route,
}

/// Who talks to whom.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Route {
    /// Rings, or pairs, of consecutive ranks.
    Blocks(Blocks),
    Random(RandomRing),
    WorstCycle,
    /// Pairs of k and ranks - 1 - k.
    Mirrored,
    Grid(Grid),
    /// Ranks 0 and 1.
    PingPong,
}

impl CommPattern {
    fn new(name: impl Into<String>, family: Family, ranks: u64, route: Route) -> Self {
        Self { name: name.into(), family, shape: route.shape(ranks), messages: route.messages(ranks), ranks, route }
    }

    /// What a rank does in one iteration; nothing if it has no part in the pattern. Step k of the sender of a message is
    /// step k of its receiver; no rank has two messages for the same rank, nor one for itself. For a random ring, the time
    /// this takes grows with the number of ranks.
    #[must_use]
    pub fn steps(&self, rank: u64) -> Vec<Step> {
        if rank >= self.ranks {
            return Vec::new();
        }
        match &self.route {
            Route::Blocks(blocks) => {
                let (size, left, right) = blocks.neighbours(rank);
                rings::steps(size, left, right)
            }
            Route::Random(ring) => {
                let (left, right) = ring.neighbours(rank);
                rings::steps(self.ranks, left, right)
            }
            Route::WorstCycle => {
                let (left, right) = rings::worst_cycle_neighbours(self.ranks, rank);
                rings::steps(self.ranks, left, right)
            }
            Route::Mirrored => {
                let other = self.ranks - 1 - rank;
                rings::steps(if other == rank { 1 } else { 2 }, other, other)
            }
            Route::Grid(grid) => grid.steps(rank),
            Route::PingPong if rank < 2 => rings::steps(2, 1 - rank, 1 - rank),
            Route::PingPong => Vec::new(),
        }
    }

    /// The largest number of steps of a rank.
    #[must_use]
    pub fn most_steps(&self) -> u64 {
        let of_ring = |size: u64| size.saturating_sub(1).min(2);
        match &self.route {
            Route::Blocks(blocks) => of_ring(blocks.largest()),
            Route::Random(_) | Route::WorstCycle => of_ring(self.ranks),
            Route::Mirrored | Route::PingPong => 1,
            Route::Grid(grid) => grid.most_steps(),
        }
    }

    /// The ranks of every ring, in its order: each sends to its left neighbour first. Pairs are rings of two, a rank
    /// without a partner is alone in one. None for grids.
    #[must_use]
    pub fn rings(&self) -> Option<Vec<Vec<u64>>> {
        match &self.route {
            Route::Blocks(blocks) => Some(blocks.rings()),
            Route::Random(ring) => Some(vec![ring.order()]),
            Route::WorstCycle => Some(vec![worst_cycle(self.ranks)]),
            Route::Mirrored => Some(rings::mirrored(self.ranks)),
            Route::PingPong => Some(vec![vec![0, 1]]),
            Route::Grid(_) => None,
        }
    }

    /// The grid; None for rings and pairs.
    #[must_use]
    pub fn grid(&self) -> Option<&Grid> {
        match &self.route {
            Route::Grid(grid) => Some(grid),
            _ => None,
        }
    }
}

impl Route {
    fn messages(&self, ranks: u64) -> u64 {
        match self {
            Self::Blocks(blocks) => blocks.messages(),
            Self::Random(_) | Self::WorstCycle => rings::messages(ranks),
            Self::Mirrored => ranks / 2 * 2,
            Self::Grid(grid) => grid.messages(),
            Self::PingPong => 2,
        }
    }

    fn shape(&self, ranks: u64) -> String {
        match self {
            Self::Blocks(blocks) => blocks.shape(),
            Self::Mirrored => Blocks::pairs(ranks).shape(),
            Self::Grid(grid) => grid.shape(),
            Self::PingPong => "2".to_owned(),
            Self::Random(_) | Self::WorstCycle if ranks > NAMED_RANKS => format!("{ranks} ranks"),
            Self::Random(ring) => chain(&ring.order()),
            Self::WorstCycle => chain(&worst_cycle(ranks)),
        }
    }
}

fn worst_cycle(ranks: u64) -> Vec<u64> {
    (0..ranks).map(|position| rings::worst_cycle_rank(ranks, position)).collect()
}

/// `3-0-2-1`.
#[must_use]
pub fn chain(order: &[u64]) -> String {
    order.iter().map(u64::to_string).collect::<Vec<_>>().join("-")
}

/// The patterns of a family, in order.
pub(super) fn of_family(family: Family, ranks: u64, seed: u64) -> Vec<CommPattern> {
    let make = |name: String, route| CommPattern::new(name, family, ranks, route);
    match family {
        Family::PingPong => vec![make("ping-pong".into(), Route::PingPong)],
        Family::Ring => (1..=RING_PATTERNS)
            .map(|number| make(format!("ring-{number}"), Route::Blocks(Blocks::of_pattern(number, ranks))))
            .collect(),
        Family::Random => (1..=RANDOM_RINGS)
            .map(|number| make(format!("random-{number}"), Route::Random(RandomRing { ranks, seed, number })))
            .collect(),
        Family::WorstCycle => vec![make("worst-cycle".into(), Route::WorstCycle)],
        Family::Bisection => vec![
            make("best-bisection".into(), Route::Blocks(Blocks::pairs(ranks))),
            make("worst-bisection".into(), Route::Mirrored),
        ],
        Family::Cartesian => cartesian(ranks, &make),
    }
}

/// Acyclic grids in all directions at once, then cyclic ones in each direction and in all. A direction of extent 1 has no
/// pattern.
fn cartesian(ranks: u64, make: &dyn Fn(String, Route) -> CommPattern) -> Vec<CommPattern> {
    let grids: [&[u64]; 2] = [&dims_2d(ranks), &dims_3d(ranks)];
    let acyclic =
        grids.iter().map(|dims| make(format!("cart-{}d-acyclic", dims.len()), Route::Grid(Grid::all(dims, false))));
    let cyclic = grids.iter().flat_map(|dims| {
        let number = dims.len();
        let all = Grid::all(dims, true);
        let single = all.directions.clone().into_iter().map(move |direction| {
            make(format!("cart-{number}d-cyclic-{}", direction + 1), Route::Grid(Grid::one(dims, direction)))
        });
        single.chain([make(format!("cart-{number}d-cyclic-all"), Route::Grid(all))])
    });
    acyclic.chain(cyclic).collect()
}
