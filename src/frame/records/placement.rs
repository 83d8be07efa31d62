//! Placement of ranks.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::rank_runs::OfRank;

/// Placement of one rank.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Placement {
    /// Index into the hosts of the machine.
    pub host: u64,
    /// CPUs it may run on, as a list such as `0-3,8`.
    pub cpus: String,
    /// Physical cores of these CPUs; None if unknown. With more than one the kernel may migrate the rank.
    #[serde(default)]
    #[schemars(range(min = 1))]
    pub cores: Option<u64>,
}

impl OfRank for Placement {
    fn of_later_rank(&self, _: u64) -> Self {
        self.clone()
    }
}
