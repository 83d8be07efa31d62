//! Differences between ranks and between hosts, in records whose size does not depend on the number of ranks.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The rank with the longest own time in one round of a pattern. The own time is that without the agreements (`decide_seconds`); waiting
/// inside collective calls and collective syncs belongs to it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SlowestRank {
    /// Rank in MPI_COMM_WORLD; the lowest of equal ones.
    pub rank: u64,
    /// Its host: index into `hosts` of the machine.
    pub host: u64,
    /// Its own time.
    pub seconds: f64,
    /// Own times of all ranks of the partition, added.
    pub all_ranks_seconds: f64,
}

/// What the ranks of one host transferred in the patterns of a type.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HostTransfer {
    /// The host: index into `hosts` of the machine.
    pub host: u64,
    /// Its ranks in the partition.
    pub ranks: u64,
    /// Bytes that they moved.
    pub bytes: u64,
    /// Own time of the slowest of them over all patterns: without the agreements.
    pub seconds: f64,
}
