//! What `beff-raw comm` will run: validated, immutable, written into every result.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::b_eff::plan::{Buffers, Family};
use crate::frame::config::{BindPolicy, Repeat};

/// Everything that decides what b_eff measures and how.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CommConfig {
    /// Longest time of the whole measurement, announced and kept.
    pub time_seconds: f64,
    /// The quick mode: little time, marked in every output, never valid.
    pub quick: bool,
    /// Seed of the random rings and of the data.
    pub seed: u64,
    /// Families of patterns that are measured, in order; all of them for a value.
    pub families: Vec<Family>,
    /// Memory that the messages use. Results from before there was a choice reused theirs.
    #[serde(default)]
    pub buffers: Buffers,
    /// What is done with the time that is left behind the three repetitions. Results from before it could be used left it.
    #[serde(default)]
    pub repeat: Repeat,
    /// Reach of the 95 % interval of b_eff at which the repeats end, as a share; None: the time ends them.
    #[serde(default)]
    pub until_share: Option<f64>,
    /// Memory of the unit one rank runs on; None: found out. Decides Lmax.
    pub memory_per_process_bytes: Option<u64>,
    /// Rmax of LINPACK in 1e9 floating-point operations per second, for the balance factor; None: not given.
    pub rmax_gflops: Option<f64>,
    /// What is done about ranks that may run on several CPUs.
    #[serde(default)]
    pub bind: BindPolicy,
    /// Prefix of the output files; None: only stdout.
    #[serde(default, with = "crate::frame::paths::optional")]
    #[schemars(with = "Option<String>")]
    pub out: Option<PathBuf>,
    /// Our loops are compared with bare ones in C after the patterns.
    pub bare: bool,
    /// One byte of a received message is turned over on purpose.
    pub inject: bool,
}
