//! Configuration of `beff-raw replay`: validated, immutable, part of every result.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::frame::config::{BindPolicy, CachePolicy, DirectPolicy};

/// When a call begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Pace {
    /// As soon as the previous one has ended.
    Fast,
    /// After the recorded time since the end of the previous one.
    Think,
    /// At its recorded time, times the scale.
    Absolute,
}

/// Level of detail; each includes the previous ones.
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
    /// Every call, in separate files.
    Request,
}

/// Everything that determines what is replayed and how.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ReplayConfig {
    /// The profile.
    #[serde(with = "crate::frame::paths")]
    #[schemars(with = "String")]
    pub profile: PathBuf,
    /// Backends by name; never empty. Each repetition runs with each of them, one after the other.
    pub backends: Vec<String>,
    /// Directory in which the run directory is created.
    #[serde(with = "crate::frame::paths")]
    #[schemars(with = "String")]
    pub path: PathBuf,
    /// Name of the run directory; None: derived from time and process id.
    pub run_dir: Option<String>,
    /// Keep the files of the last repetition.
    pub keep_files: bool,
    /// Prefix of the output files; None: only stdout.
    #[serde(default, with = "crate::frame::paths::optional")]
    #[schemars(with = "Option<String>")]
    pub out: Option<PathBuf>,
    /// When calls begin.
    pub pace: Pace,
    /// Factor for recorded times (absolute).
    pub scale: f64,
    /// Timed repetitions with each backend.
    pub repeat: u64,
    /// Page cache before a repetition; `drop` or `keep`.
    pub cache: CachePolicy,
    /// Direct I/O of the backends that support it.
    pub direct: DirectPolicy,
    /// Hints for all files; they override the recorded ones.
    #[serde(default)]
    pub hints: Vec<(String, String)>,
    /// Compare the data of reads, in a repetition of its own.
    pub verify: bool,
    /// Level of detail.
    pub detail: Detail,
    /// Binding of ranks that may run on several CPUs.
    #[serde(default)]
    pub bind: BindPolicy,
    /// Seed of the data.
    pub seed: u64,
    /// Fault injection: one bit of the data read is inverted.
    pub inject: bool,
}
