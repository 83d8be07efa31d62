//! Families of patterns.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Family of a pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PatternFamily {
    /// The six ring patterns, in the average.
    Ring,
    /// Rings of all ranks in random order, 30 in the average.
    Random,
    /// One ring with distant neighbours.
    WorstCycle,
    /// Pairs: best and worst bisection.
    Bisection,
    /// Neighbours in two and three dimensions.
    Cartesian,
    /// The first two ranks.
    PingPong,
}

impl PatternFamily {
    /// All families in the order of measurement.
    pub const ALL: [Self; 6] =
        [Self::PingPong, Self::Ring, Self::Random, Self::WorstCycle, Self::Bisection, Self::Cartesian];

    /// Name on the command line and in output.
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

    /// True if b_eff is an average over this family; the others are only reported.
    #[must_use]
    pub fn in_average(self) -> bool {
        matches!(self, Self::Ring | Self::Random)
    }
}
