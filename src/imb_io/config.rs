//! What `beff-raw imb` will run: validated, immutable, written into every result.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::frame::config::{BindPolicy, CachePolicy, DirectPolicy, Repeat};
use crate::imb_io::plan::{ModeChoice, Repetitions, Sizes};

/// Which groups of `-multi` are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Multi {
    /// One line for all groups, of the slowest one (`-multi 0`).
    Slowest,
    /// One line for each group (`-multi 1`).
    Each,
}

/// What writes find where they write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FileState {
    /// The file is there with all its bytes, written before, outside the clock; they are overwritten. As in the release.
    Existing,
    /// The file is empty and grows.
    New,
}

/// Memory of the repetitions of a rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Buffers {
    /// One buffer for all of them, as in the release; only reads that may be pending together have one each.
    Reused,
    /// Each has memory of its own, which was not used just before.
    Cold,
}

/// Everything that decides what IMB-IO measures and how.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ImbConfig {
    /// Benchmarks in the order they run, by their names in the catalogue; never empty.
    pub benchmarks: Vec<String>,
    /// Backends by name; each row runs with each of them that can do it, one after the other.
    pub backends: Vec<String>,
    /// Directory under which the run directory is made.
    #[serde(with = "crate::frame::paths")]
    #[schemars(with = "String")]
    pub path: PathBuf,
    /// Name of the run directory; None: made from time and process id.
    pub run_dir: Option<String>,
    /// Leave the files of the last row of each benchmark in place.
    pub keep_files: bool,
    /// Prefix of the output files; None: only stdout.
    #[serde(default, with = "crate::frame::paths::optional")]
    #[schemars(with = "Option<String>")]
    pub out: Option<PathBuf>,
    /// Ranks of the first row of each benchmark; then twice as many, and so on, and all.
    pub npmin: u64,
    /// Several groups of ranks at the same time; None: one group, the other ranks wait.
    pub multi: Option<Multi>,
    /// Sizes of the samples.
    pub sizes: Sizes,
    /// How often, and how long.
    pub repetitions: Repetitions,
    /// What is measured again after all rows were measured once. Results from before there was a choice have nothing of it.
    #[serde(default)]
    pub repeat: Repeat,
    /// Reach of the 95 % interval at which a row is measured no more, as a share; None: it does not end the repeats.
    #[serde(default)]
    pub until_share: Option<f64>,
    /// Aggregate, non-aggregate or both.
    pub modes: ModeChoice,
    /// What writes find; None: not known, in a result from before it was told.
    #[serde(default)]
    pub file: Option<FileState>,
    /// Memory of the repetitions; None: not known, in a result from before it was told.
    #[serde(default)]
    pub buffers: Option<Buffers>,
    /// MPI-IO hints for every file, as (key, value) in order; later ones win.
    pub hints: Vec<(String, String)>,
    /// MPI_MODE_UNIQUE_OPEN.
    pub unique_open: bool,
    /// Page cache before reads; `drop` or `keep`.
    pub cache: CachePolicy,
    /// Direct I/O of the backends that can choose.
    pub direct: DirectPolicy,
    /// Operations in flight at most (uring).
    pub queue_depth: u32,
    /// What is done about ranks that may run on several CPUs.
    #[serde(default)]
    pub bind: BindPolicy,
    /// Seed of the data.
    pub seed: u64,
    /// After the rows, our loops are compared with bare ones in C.
    pub bare: bool,
    /// One bit of a file or of what was read is turned over on purpose.
    pub inject: bool,
}
