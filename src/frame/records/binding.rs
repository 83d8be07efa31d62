//! Initial, requested and effective CPU binding of the ranks.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::rank_runs::{self, OfRank, RankRun};
use crate::frame::config::BindPolicy;

/// CPU binding of the ranks of a run and its origin.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Binding {
    /// Requested policy (--bind).
    pub requested: BindPolicy,
    /// Binding option of the launcher, from the environment of rank 0; None if the launcher does not set it.
    pub launcher: Option<String>,
    /// One entry for each host of the machine, in the same order.
    pub hosts: Vec<HostBinding>,
}

/// CPU binding of the ranks of one host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HostBinding {
    /// Origin of the binding, or why there is none.
    pub state: BindState,
    /// CPUs of all its ranks at program start, as a list such as `0-3,8`.
    pub initial_cpus: String,
    /// CPUs of all its ranks during the measurements.
    pub cpus: String,
    /// Physical cores of these CPUs; if fewer than ranks, ranks share cores by hardware threads. None if unknown.
    pub cores: Option<u64>,
    /// A busy process of another job on a core to which the program bound a rank (--bind core); None if none was detected.
    pub neighbour: Option<BoundProcess>,
    /// Ranks of the host, ascending; consecutive ranks with equal values have one entry.
    #[serde(with = "rank_runs")]
    #[schemars(with = "Vec<RankRun<RankBinding>>")]
    pub ranks: Vec<RankBinding>,
}

/// CPU binding of one rank.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RankBinding {
    /// Rank in MPI_COMM_WORLD.
    pub rank: u64,
    /// CPU affinity at program start.
    pub initial_cpus: String,
    /// CPU affinity during the measurements, as reported by the kernel.
    pub cpus: String,
    /// Physical cores of these CPUs; None if unknown. With more than one the kernel may migrate the rank.
    pub cores: Option<u64>,
}

impl OfRank for RankBinding {
    fn of_later_rank(&self, ranks: u64) -> Self {
        Self { rank: self.rank.saturating_add(ranks), ..self.clone() }
    }
}

/// Origin of the binding of a host's ranks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum BindState {
    /// The ranks of the host were on different CPUs (or a single rank on one core) before the program started, or Open MPI, srun or Intel
    /// MPI were requested to bind: the binding was not changed.
    Before,
    /// The program bound each rank to a separate CPU.
    Program,
    /// Not bound: `--bind none`.
    NotAsked,
    /// Not bound: a single rank on its host competes with no other rank, and the kernel can choose an idle CPU. `--bind core` binds it.
    Alone,
    /// Not bound: there are fewer CPUs than ranks.
    TooFewCpus {
        /// Ranks of the host.
        ranks: u64,
        /// CPUs that they may use together, at most the CPU quota of the control group, rounded up.
        cpus: u64,
    },
    /// Not bound: too few CPUs remain without the cores to which busy processes of other jobs are bound.
    Neighbours {
        /// CPUs without such a process.
        free_cpus: u64,
        /// One of the processes.
        first: BoundProcess,
    },
    /// Not bound: in 0.25 s before the start, while the ranks slept, other processes used more CPUs than remain beside one for each rank,
    /// by more than a quarter of a CPU. A bound rank would wait for them; an unbound rank can be migrated.
    Busy {
        /// Use of the initial CPUs by others just before the start, including steal time, in percent of one CPU.
        other_process_percent: u64,
    },
    /// Not bound: the kernel refused it. With `--bind core` the run is refused.
    Refused {
        /// Error of the kernel.
        message: String,
    },
}

/// A process of another job that is bound to CPUs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BoundProcess {
    /// Process ID.
    pub process: u64,
    /// Command name from the kernel, at most 15 bytes.
    pub program: String,
    /// CPUs to which it is bound.
    pub cpus: String,
}
