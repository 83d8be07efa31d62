//! A pattern: name, shape, and the messages of any rank, computed without those of other ranks.

use super::grid::{dims_2d, dims_3d, CartesianGrid};
use super::random::{RandomRing, RANDOM_RINGS};
use super::rings;
use super::rings::{RingPartition, RING_PATTERNS};
use super::{ExchangeStep, PatternFamily};

/// Largest number of ranks for which the shape of a ring lists all of them.
const MAX_NAMED_RANKS: u64 = 8;

/// A pattern of b_eff.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommPattern {
    /// `ring-1` to `ring-6`, `random-1` to `random-30`, `worst-cycle`, `cart-2d-cyclic-1`, ...
    pub name: String,
    /// Family.
    pub family: PatternFamily,
    /// Ring sizes in the order of the ranks (`5x2+3`), the order of a single ring (`3-0-2-1`) or its size (`100 ranks`), or
    /// extents of a grid (`3x2`).
    pub shape: String,
    /// Messages of all ranks in one iteration: the number of (rank, step) with `send_to`.
    pub messages: u64,
    pub(super) ranks: u64,
    pub(super) topology: PatternTopology,
}

/// Topology: the neighbours of each rank.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum PatternTopology {
    /// Rings, or pairs, of consecutive ranks.
    Blocks(RingPartition),
    Random(RandomRing),
    WorstCycle,
    /// Pairs of k and ranks - 1 - k.
    MirroredPairs,
    Grid(CartesianGrid),
    /// Ranks 0 and 1.
    PingPong,
}

impl CommPattern {
    fn new(name: impl Into<String>, family: PatternFamily, ranks: u64, topology: PatternTopology) -> Self {
        Self {
            name: name.into(),
            family,
            shape: topology.shape(ranks),
            messages: topology.messages(ranks),
            ranks,
            topology,
        }
    }

    /// Steps of a rank in one iteration; none if it is not part of the pattern. Step k of the sender of a message is step k
    /// of its receiver; no rank sends two messages to the same rank, nor one to itself. For a random ring, the time of this
    /// call grows with the number of ranks.
    #[must_use]
    pub fn steps(&self, rank: u64) -> Vec<ExchangeStep> {
        if rank >= self.ranks {
            return Vec::new();
        }
        match &self.topology {
            PatternTopology::Blocks(blocks) => {
                let (size, left, right) = blocks.neighbours(rank);
                rings::steps(size, left, right)
            }
            PatternTopology::Random(ring) => {
                let (left, right) = ring.neighbours(rank);
                rings::steps(self.ranks, left, right)
            }
            PatternTopology::WorstCycle => {
                let (left, right) = rings::worst_cycle_neighbours(self.ranks, rank);
                rings::steps(self.ranks, left, right)
            }
            PatternTopology::MirroredPairs => {
                let other = self.ranks - 1 - rank;
                rings::steps(if other == rank { 1 } else { 2 }, other, other)
            }
            PatternTopology::Grid(grid) => grid.steps(rank),
            PatternTopology::PingPong if rank < 2 => rings::steps(2, 1 - rank, 1 - rank),
            PatternTopology::PingPong => Vec::new(),
        }
    }

    /// The largest number of steps of a rank.
    #[must_use]
    pub fn max_steps(&self) -> u64 {
        let of_ring = |size: u64| size.saturating_sub(1).min(2);
        match &self.topology {
            PatternTopology::Blocks(blocks) => of_ring(blocks.largest_ring()),
            PatternTopology::Random(_) | PatternTopology::WorstCycle => of_ring(self.ranks),
            PatternTopology::MirroredPairs | PatternTopology::PingPong => 1,
            PatternTopology::Grid(grid) => grid.max_steps(),
        }
    }

    /// The ranks of every ring in order: each sends to its left neighbour first. Pairs are rings of two, and a rank
    /// without a partner is a ring of one. None for grids.
    #[must_use]
    pub fn rings(&self) -> Option<Vec<Vec<u64>>> {
        match &self.topology {
            PatternTopology::Blocks(blocks) => Some(blocks.rings()),
            PatternTopology::Random(ring) => Some(vec![ring.order()]),
            PatternTopology::WorstCycle => Some(vec![worst_cycle(self.ranks)]),
            PatternTopology::MirroredPairs => Some(rings::mirrored_pairs(self.ranks)),
            PatternTopology::PingPong => Some(vec![vec![0, 1]]),
            PatternTopology::Grid(_) => None,
        }
    }

    /// The grid; None for rings and pairs.
    #[must_use]
    pub fn grid(&self) -> Option<&CartesianGrid> {
        match &self.topology {
            PatternTopology::Grid(grid) => Some(grid),
            _ => None,
        }
    }
}

impl PatternTopology {
    fn messages(&self, ranks: u64) -> u64 {
        match self {
            Self::Blocks(blocks) => blocks.messages(),
            Self::Random(_) | Self::WorstCycle => rings::messages(ranks),
            Self::MirroredPairs => ranks / 2 * 2,
            Self::Grid(grid) => grid.messages(),
            Self::PingPong => 2,
        }
    }

    fn shape(&self, ranks: u64) -> String {
        match self {
            Self::Blocks(blocks) => blocks.shape(),
            Self::MirroredPairs => RingPartition::pairs(ranks).shape(),
            Self::Grid(grid) => grid.shape(),
            Self::PingPong => "2".to_owned(),
            Self::Random(_) | Self::WorstCycle if ranks > MAX_NAMED_RANKS => format!("{ranks} ranks"),
            Self::Random(ring) => order_text(&ring.order()),
            Self::WorstCycle => order_text(&worst_cycle(ranks)),
        }
    }
}

fn worst_cycle(ranks: u64) -> Vec<u64> {
    (0..ranks).map(|position| rings::worst_cycle_rank(ranks, position)).collect()
}

/// `3-0-2-1`.
#[must_use]
pub fn order_text(order: &[u64]) -> String {
    order.iter().map(u64::to_string).collect::<Vec<_>>().join("-")
}

pub(super) fn family_patterns(family: PatternFamily, ranks: u64, seed: u64) -> Vec<CommPattern> {
    let make = |name: String, route| CommPattern::new(name, family, ranks, route);
    match family {
        PatternFamily::PingPong => vec![make("ping-pong".into(), PatternTopology::PingPong)],
        PatternFamily::Ring => (1..=RING_PATTERNS)
            .map(|number| {
                make(format!("ring-{number}"), PatternTopology::Blocks(RingPartition::for_ring_pattern(number, ranks)))
            })
            .collect(),
        PatternFamily::Random => (1..=RANDOM_RINGS)
            .map(|number| make(format!("random-{number}"), PatternTopology::Random(RandomRing { ranks, seed, number })))
            .collect(),
        PatternFamily::WorstCycle => vec![make("worst-cycle".into(), PatternTopology::WorstCycle)],
        PatternFamily::Bisection => vec![
            make("best-bisection".into(), PatternTopology::Blocks(RingPartition::pairs(ranks))),
            make("worst-bisection".into(), PatternTopology::MirroredPairs),
        ],
        PatternFamily::Cartesian => cartesian_patterns(ranks, &make),
    }
}

/// Acyclic grids in all directions, then cyclic grids in each direction and in all. A direction of extent 1 has no pattern.
fn cartesian_patterns(ranks: u64, make: &dyn Fn(String, PatternTopology) -> CommPattern) -> Vec<CommPattern> {
    let grids: [&[u64]; 2] = [&dims_2d(ranks), &dims_3d(ranks)];
    let acyclic = grids.iter().map(|dims| {
        make(
            format!("cart-{}d-acyclic", dims.len()),
            PatternTopology::Grid(CartesianGrid::in_all_directions(dims, false)),
        )
    });
    let cyclic = grids.iter().flat_map(|dims| {
        let number = dims.len();
        let all = CartesianGrid::in_all_directions(dims, true);
        let single = all.directions.clone().into_iter().map(move |direction| {
            make(
                format!("cart-{number}d-cyclic-{}", direction + 1),
                PatternTopology::Grid(CartesianGrid::in_one_direction(dims, direction)),
            )
        });
        single.chain([make(format!("cart-{number}d-cyclic-all"), PatternTopology::Grid(all))])
    });
    acyclic.chain(cyclic).collect()
}
