//! Families of patterns.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a pattern is one of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Family {
    /// The six ring patterns of the average.
    Ring,
    /// One ring of all ranks in random order; 30 of them in the average.
    Random,
    /// One ring in an order that puts neighbours far apart.
    WorstCycle,
    /// Pairs: best and worst bisection.
    Bisection,
    /// Neighbours in two and three dimensions.
    Cartesian,
    /// The first two ranks.
    PingPong,
}

impl Family {
    /// All of them in the order in which they are measured.
    pub const ALL: [Self; 6] =
        [Self::PingPong, Self::Ring, Self::Random, Self::WorstCycle, Self::Bisection, Self::Cartesian];

    /// The name as it is typed, printed and written.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Ring => "ring",
            Self::Random => "random",
            Self::WorstCycle => "worst-cycle",
            Self::Bisection => "bisection",
            Self::Cartesian => "cartesian",
            Self::PingPong => "ping-pong",
        }
    }

    /// Whether b_eff is an average over this family; the others are only reported.
    #[must_use]
    pub fn in_average(self) -> bool {
        matches!(self, Self::Ring | Self::Random)
    }
}
