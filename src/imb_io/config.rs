//! Configuration of `beff-raw imb`: validated, immutable, part of every result.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::frame::config::{BindPolicy, CachePolicy, DirectPolicy, RepetitionPolicy, Stripe, TimeLimit};
use crate::frame::records::StorageKey;
use crate::frame::variants::{override_hints, BackendVariant};
use crate::imb_io::plan::{IterationRule, ModeChoice, SampleSizes};

/// Groups of `-multi` that are reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Multi {
    /// One line for all groups, of the slowest one (`-multi 0`).
    Slowest,
    /// One line for each group (`-multi 1`).
    Each,
}

/// Initial state of the file before writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum InitialFileState {
    /// The file has its full length, filled outside the timed loop; writes overwrite it, as in the release.
    Existing,
    /// The file is empty and grows.
    New,
}

/// Memory of the iterations of a rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum IterationBuffers {
    /// One buffer for all iterations, as in the release; reads that may be pending together have one each.
    Reused,
    /// Each iteration has its own, cache-cold memory.
    Cold,
}

/// Parameters of a run of IMB-IO.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ImbConfig {
    /// Names of the benchmarks in run order, as in the catalogue; never empty.
    pub benchmarks: Vec<String>,
    /// Names of the contestants, backends before variants; each row runs with each one that supports it, one after the other.
    pub backends: Vec<String>,
    /// The contestants with options of their own; absent in older results.
    #[serde(default)]
    pub variants: Vec<BackendVariant>,
    /// Directory under which the run directory is created.
    #[serde(with = "crate::frame::paths")]
    #[schemars(with = "String")]
    pub path: PathBuf,
    /// Name of the run directory; None: derived from time and process id.
    pub run_dir: Option<String>,
    /// Keep the files of the last row of each benchmark.
    pub keep_files: bool,
    /// Prefix of the output files; None: only stdout.
    #[serde(default, with = "crate::frame::paths::optional")]
    #[schemars(with = "Option<String>")]
    pub out: Option<PathBuf>,
    /// Ranks of the first row of each benchmark; the number is doubled up to all ranks.
    pub npmin: u64,
    /// Several groups of ranks run at the same time; None: one group, the other ranks wait.
    pub multi: Option<Multi>,
    /// Sample sizes.
    pub sizes: SampleSizes,
    /// Limits of the iterations.
    pub iterations: IterationRule,
    /// Repetitions after the first measurement of all rows; absent in older results.
    #[serde(default)]
    pub repeat: RepetitionPolicy,
    /// Half-width of the 95 % confidence interval at which repetitions of a row end, as a share of the mean; None: no such limit.
    #[serde(default)]
    pub until_share: Option<f64>,
    /// Time limit of the run; None: no limit.
    #[serde(default)]
    pub time_limit: Option<TimeLimit>,
    /// Aggregate, non-aggregate or both.
    pub modes: ModeChoice,
    /// Initial state of files that are written; None if unknown, in older results.
    #[serde(default)]
    pub file: Option<InitialFileState>,
    /// Memory of the iterations; None if unknown, in older results.
    #[serde(default)]
    pub buffers: Option<IterationBuffers>,
    /// MPI-IO hints for every file, as (key, value) in order; later ones override.
    pub hints: Vec<(String, String)>,
    /// MPI_MODE_UNIQUE_OPEN.
    pub unique_open: bool,
    /// Treatment of the page cache before reads: `drop` or `keep`.
    pub cache: CachePolicy,
    /// Direct I/O of the backends that support it.
    pub direct: DirectPolicy,
    /// Alignment of offsets and lengths of direct transfers (--dio-align); None: that of the file system, or of a trial.
    #[serde(default)]
    pub dio_align_bytes: Option<u64>,
    /// Parameters of the storage given by `--storage`; those in force are in `sheet` of the storage.
    #[serde(default)]
    pub storage: Vec<(StorageKey, String)>,
    /// Stripes of new files (--stripe); None: as the directory --path.
    #[serde(default)]
    pub stripe: Option<Stripe>,
    /// Maximum number of operations in flight (uring).
    pub queue_depth: u32,
    /// Binding of ranks that may run on several CPUs.
    #[serde(default)]
    pub bind: BindPolicy,
    /// Seed of the data.
    pub seed: u64,
    /// Compare the loops of this program with bare loops in C after the rows.
    pub bare: bool,
    /// Fault injection: one bit of a file or of read data is flipped.
    pub inject: bool,
}

impl ImbConfig {
    fn variant(&self, contestant: &str) -> Option<&BackendVariant> {
        self.variants.iter().find(|variant| variant.backend == contestant)
    }

    /// Direct I/O of a contestant.
    #[must_use]
    pub fn direct_of(&self, contestant: &str) -> DirectPolicy {
        self.variant(contestant).and_then(|variant| variant.direct).unwrap_or(self.direct).of(contestant)
    }

    /// The first contestant whose transfers may be direct.
    #[must_use]
    pub fn first_direct(&self) -> Option<&str> {
        DirectPolicy::first_direct(&self.backends, |name| self.direct_of(name))
    }

    /// Maximum number of operations in flight of a contestant.
    #[must_use]
    pub fn queue_depth_of(&self, contestant: &str) -> u32 {
        self.variant(contestant).and_then(|variant| variant.queue_depth).unwrap_or(self.queue_depth)
    }

    /// Hints of a contestant.
    #[must_use]
    pub fn hints_of(&self, contestant: &str) -> Vec<(String, String)> {
        self.variant(contestant)
            .map_or_else(|| self.hints.clone(), |variant| override_hints(&self.hints, &variant.hints))
    }
}
