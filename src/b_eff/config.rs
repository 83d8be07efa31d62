//! Configuration of `beff-raw comm`: validated, immutable, part of every result.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::b_eff::plan::{BufferMode, PatternFamily};
use crate::frame::config::{BindPolicy, RepetitionPolicy, TimeLimit};

/// Configuration of a b_eff run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CommConfig {
    /// Time limit of the whole measurement.
    pub time_seconds: f64,
    /// Time limit of the run; None: no limit.
    #[serde(default)]
    pub time_limit: Option<TimeLimit>,
    /// Quick mode: short, marked in every output, never valid.
    pub quick: bool,
    /// Seed of the random rings and of the data.
    pub seed: u64,
    /// Families of patterns to measure, in order.
    pub families: Vec<PatternFamily>,
    /// Placement of the messages in memory. Results without this field used reused windows.
    #[serde(default)]
    pub buffers: BufferMode,
    /// Use of the time that remains after the three repetitions. Results without this field have no further repetitions.
    #[serde(default)]
    pub repeat: RepetitionPolicy,
    /// Half-width of the 95 % interval of b_eff at which the repetitions end, as a share; None: they end at the time limit.
    #[serde(default)]
    pub until_share: Option<f64>,
    /// Memory per process, which determines Lmax; None: detected.
    pub memory_per_process_bytes: Option<u64>,
    /// Rmax of LINPACK in 1e9 floating-point operations per second, for the balance factor; None if not specified.
    pub rmax_gflops: Option<f64>,
    /// Binding of ranks that may run on several CPUs.
    #[serde(default)]
    pub bind: BindPolicy,
    /// Prefix of the output files; None: only stdout.
    #[serde(default, with = "crate::frame::paths::optional")]
    #[schemars(with = "Option<String>")]
    pub out: Option<PathBuf>,
    /// True if the loops are compared with bare C loops after the patterns.
    pub bare: bool,
    /// Fault injection: one byte of a received message is changed.
    pub inject: bool,
}
