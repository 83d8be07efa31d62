//! Configuration of trials: what is measured with different settings.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::frame::config::{BindPolicy, CachePolicy, DirectPolicy};
use crate::frame::records::AccessMethod;

/// Options that a trial uses instead of the default, with the keys of `--variant`; keys that are no options are MPI-IO hints. Empty: the
/// default.
pub type Setting = Vec<(String, String)>;

/// The figure that a better setting increases.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TrialGoal {
    /// Mean of the bandwidths of the patterns, weighted by their time units.
    Value,
    /// Bandwidth of one pattern.
    Pattern(u8),
    /// Bytes of all patterns, or calls, divided by their time.
    Seconds,
}

/// What is measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TrialConfig {
    /// Profile of a recorded application; None: patterns.
    #[serde(default, with = "crate::frame::paths::optional")]
    #[schemars(with = "Option<String>")]
    pub profile: Option<PathBuf>,
    /// Backend.
    pub backend: String,
    /// Directory on the storage.
    #[serde(with = "crate::frame::paths")]
    #[schemars(with = "String")]
    pub path: PathBuf,
    /// Name of the directory below it.
    pub run_dir: Option<String>,
    /// Access method of the patterns.
    pub access: AccessMethod,
    /// Pattern types.
    pub types: Vec<u8>,
    /// Chunk sizes in bytes; empty: all.
    pub chunks_bytes: Vec<u64>,
    /// The figure to increase.
    pub goal: TrialGoal,
    /// Hints of all trials.
    pub hints: Setting,
    /// Page-cache policy before rewrites and reads.
    pub cache: CachePolicy,
    /// Direct I/O policy.
    pub direct: DirectPolicy,
    /// Memory of a rank, which determines the largest chunk; None: that of the node, divided by its ranks.
    pub memory_per_process_bytes: Option<u64>,
    /// Most storage space of the files of one trial; None: 80 % of the free space.
    pub space_bytes: Option<u64>,
    /// Binding of the ranks.
    pub bind: BindPolicy,
    /// Seed of the data.
    pub seed: u64,
}
