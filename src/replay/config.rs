//! What `beff-raw replay` will run: validated, immutable, written into every result.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::frame::config::{BindPolicy, CachePolicy, DirectPolicy};

/// When a call begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Pace {
    /// As soon as the one before has ended.
    Fast,
    /// After the time that passed between the two in the recorded program.
    Think,
    /// At its recorded time, times the scale.
    Absolute,
}

/// How much is shown: each level holds those before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Detail {
    /// All calls together.
    Run,
    /// By file.
    File,
    /// By class of function.
    Function,
    /// By process.
    Process,
    /// Every call, in files of their own.
    Request,
}

/// Everything that decides what is replayed and how.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ReplayConfig {
    /// The profile.
    #[serde(with = "crate::frame::paths")]
    #[schemars(with = "String")]
    pub profile: PathBuf,
    /// Backends by name; never empty. Each pass runs with each of them, one after the other.
    pub backends: Vec<String>,
    /// Directory under which the run directory is made.
    #[serde(with = "crate::frame::paths")]
    #[schemars(with = "String")]
    pub path: PathBuf,
    /// Name of the run directory; None: made from time and process id.
    pub run_dir: Option<String>,
    /// Leave the files of the last pass in place.
    pub keep_files: bool,
    /// Prefix of the output files; None: only stdout.
    #[serde(default, with = "crate::frame::paths::optional")]
    #[schemars(with = "Option<String>")]
    pub out: Option<PathBuf>,
    /// When calls begin.
    pub pace: Pace,
    /// What recorded times are multiplied by (absolute).
    pub scale: f64,
    /// Passes with each backend.
    pub repeat: u64,
    /// Page cache before a pass; `drop` or `keep`.
    pub cache: CachePolicy,
    /// Direct I/O of the backends that can choose.
    pub direct: DirectPolicy,
    /// Hints for all files; they win over the recorded ones.
    #[serde(default)]
    pub hints: Vec<(String, String)>,
    /// What reads bring is compared.
    pub verify: bool,
    /// How much is shown.
    pub detail: Detail,
    /// What is done about ranks that may run on several CPUs.
    #[serde(default)]
    pub bind: BindPolicy,
    /// Seed of the data.
    pub seed: u64,
    /// One bit of what was read is turned over on purpose.
    pub inject: bool,
}
