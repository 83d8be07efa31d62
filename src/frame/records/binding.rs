//! On which CPUs ranks were found, what was asked, and where they ran.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::frame::config::BindPolicy;

/// Where the ranks of a run were allowed to run, and who decided it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Binding {
    /// What was asked for: --bind.
    pub asked: BindPolicy,
    /// What binds ranks, as the launcher of rank 0 tells in its environment; None: it does not tell.
    pub launcher: Option<String>,
    /// One for each host of the machine, in the same order.
    pub hosts: Vec<HostBinding>,
}

/// The same for the ranks of one host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HostBinding {
    /// Who decided, or why nobody did.
    pub state: BindState,
    /// CPUs of all its ranks together as the program found them, as a list such as `0-3,8`.
    pub found_cpus: String,
    /// CPUs of all its ranks together while it measured.
    pub cpus: String,
    /// Physical cores that these are; fewer than ranks: hardware threads are shared. None: not known.
    pub cores: Option<u64>,
    /// A busy program of others on a core that the program has given to a rank (--bind core); None: none was seen.
    pub neighbour: Option<Neighbour>,
    /// Its ranks, ascending.
    pub ranks: Vec<RankBinding>,
}

/// The same for one rank.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RankBinding {
    /// Rank in the world.
    pub rank: u64,
    /// CPUs it was allowed when the program began.
    pub found_cpus: String,
    /// CPUs it was allowed while it measured, as the kernel tells.
    pub cpus: String,
    /// Physical cores that these are; None: not known. With more than one the kernel may move the rank.
    pub cores: Option<u64>,
}

/// Who decided where the ranks of a host run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum BindState {
    /// The ranks of the host were on different CPUs (or on one core alone) before the program began, or Open MPI, srun or Intel MPI were
    /// told to bind: left as it was.
    Before,
    /// The program has given each rank a CPU of its own.
    Program,
    /// Not bound: `--bind none`.
    NotAsked,
    /// Not bound: a rank alone on its host has no other one in its way, and the kernel knows best which CPU is free. `--bind core` binds
    /// it.
    Alone,
    /// Not bound: there are fewer CPUs than ranks.
    TooFewCpus {
        /// Ranks of the host.
        ranks: u64,
        /// CPUs that they may use together, at most those of the quota of the control group, rounded up.
        cpus: u64,
    },
    /// Not bound: there are too few CPUs without the cores to which busy programs of others are bound.
    Neighbours {
        /// CPUs found without such a program.
        free_cpus: u64,
        /// One of the programs.
        first: Neighbour,
    },
    /// Not bound: in 0.25 s before, while the ranks slept, others used more of the CPUs than there are besides one for each rank, by more
    /// than a quarter of a CPU. A bound rank waits for them, one that is free goes elsewhere.
    Busy {
        /// Use of the CPUs found by others just before, steal included, in percent of one CPU.
        others_percent: u64,
    },
    /// Not bound: the kernel did not do it. With `--bind core` the run is refused.
    Refused {
        /// What it said.
        message: String,
    },
}

/// A program of others that is bound to CPUs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Neighbour {
    /// Number of its process.
    pub process: u64,
    /// Name of its program, at most 15 bytes, as the kernel has it.
    pub program: String,
    /// CPUs that it is bound to.
    pub cpus: String,
}
