//! What will run: validated, immutable, written into every result.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::b_eff_io::hints::HintRule;
use crate::b_eff_io::pattern_type::PatternType;
use crate::frame::backends;
use crate::frame::config::{BindPolicy, CachePolicy, DirectPolicy};

/// Which published definition of b_eff_io sets the schedule, the default partitions and the validity.
/// The values of all three are always computed from the one measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Release {
    /// Euro-Par 2000 paper.
    #[serde(rename = "0.5")]
    R0_5,
    /// The paper "Benchmark Design for Characterization of Balanced High-Performance Architectures".
    #[serde(rename = "1")]
    R1,
    /// The published program of December 2001.
    #[serde(rename = "2.1")]
    R2_1,
}

impl Release {
    /// The name as it is typed and printed.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::R0_5 => "0.5",
            Self::R1 => "1",
            Self::R2_1 => "2.1",
        }
    }
}

/// How a time-driven loop finds its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Termination {
    /// Batches grow geometrically; one common decision per batch.
    Geometric,
    /// Barrier, clock at the root and broadcast after every call, as release 2.1 did.
    PerCall,
}

/// How much of the data is looked at after the clock has stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Verify {
    /// What the last reads of each pattern left in memory, and after each pattern a sample of its bytes in the file.
    Ring,
    /// All that reads leave in memory, and untimed passes over every byte of every file, by another rank than the writer.
    Full,
}

/// How the drivers without collective calls do collective patterns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CollectivePolicy {
    /// Independent where no sector is shared between ranks or transfers are buffered, else two-phase.
    #[default]
    Auto,
    /// Every rank at its own offsets.
    Independent,
    /// Exchange, then aligned domains.
    TwoPhase,
    /// Plain read-modify-write of shared sectors: loses data, for tests of the verification.
    UnsafeReadModifyWrite,
}

/// Memory of the calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Buffers {
    /// Each call has memory that was not used just before.
    #[default]
    Cold,
    /// One window for all calls of a pattern.
    Reused,
}

/// Room in a new file before direct writes make it longer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PreallocatePolicy {
    /// Blocks by fallocate; where the file system refuses, none, which is told. Nor for chunks above a block that are written in parts of
    /// blocks, in a file or a segment of one rank.
    Auto,
    /// Blocks by fallocate; a pattern is not run where the file system refuses.
    Native,
    /// As native, and zeros into the blocks of chunks that are smaller.
    Zeros,
    /// The length alone, by ftruncate.
    Size,
    /// No room: each write makes the file longer.
    Off,
}

/// Results of before room was made.
fn no_room() -> PreallocatePolicy {
    PreallocatePolicy::Off
}

/// What is done with the time that the first pass leaves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RepeatPolicy {
    /// Nothing: the run ends.
    #[default]
    Off,
    /// Types are measured again until T is over, so that values have intervals.
    Auto,
    /// Patterns with fewer than three rounds are measured twice again, so that ratios of backends have intervals.
    Rounds,
}

/// How ranks exchange data in a two-phase transfer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ExchangePolicy {
    /// Shared memory where it can be, else messages.
    #[default]
    Auto,
    /// Shared memory, or an error.
    SharedMemory,
    /// MPI messages.
    Messages,
}

/// Deliberate damage to the files between writing and reading, to prove that it is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Inject {
    /// One bit of one word is turned over.
    Flip,
    /// A chunk is replaced by what another rank would have written.
    OtherRank,
    /// A chunk holds what the first write wrote, after the rewrite.
    Stale,
    /// A chunk becomes zeros.
    Zero,
    /// The bytes of a chunk go out of the file, which keeps its length.
    Hole,
    /// Two places change their data.
    Swap,
    /// A chunk holds what belongs 4096 bytes further on in the same stream.
    Misplaced,
}

/// When damage is done, to one place of every pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum InjectAt {
    /// On the way of the first write: before anybody looks at it.
    Write,
    /// At rest between first write and rewrite.
    AfterWrite,
    /// On the way of the rewrite.
    Rewrite,
    /// At rest between rewrite and read.
    AfterRewrite,
    /// On the way of the read: in memory, when it returns.
    Read,
    /// At rest, after the read of the pattern.
    AfterRead,
}

/// Partition sizes as the user asks for them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Partitions {
    /// One partition of all ranks (releases 0.5 and 1).
    All,
    /// Small, medium, all, by the formula of release 2.1.
    SmallMediumAll,
    /// These numbers of ranks.
    List(#[schemars(inner(range(min = 1)))] Vec<u64>),
}

/// How much of the storage all files of a run may take together.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SpaceLimit {
    /// This many bytes.
    Bytes(u64),
    /// This share of what is free when the run starts; above 0, at most 100.
    Percent(#[schemars(extend("exclusiveMinimum" = 0, "maximum" = 100))] f64),
}

impl SpaceLimit {
    /// The limit in bytes when `free_bytes` are free. An absolute limit may be larger than that: the caller compares.
    #[must_use]
    pub fn bytes(self, free_bytes: u64) -> u64 {
        match self {
            Self::Bytes(bytes) => bytes,
            // Rounded down; a float is exact enough for a share of the free space.
            Self::Percent(percent) => ((free_bytes as f64 * (percent / 100.0)) as u64).min(free_bytes),
        }
    }
}

/// Results of before rounds existed.
fn one_round() -> u32 {
    1
}

/// Everything that decides what is measured and how.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Config {
    /// Definition of schedule, default partitions and validity. All three values are computed whatever it is.
    pub release: Release,
    /// Scheduled time T; of one partition (0.5, 1) or of all of them (2.1). Per backend.
    pub time_seconds: f64,
    /// Backends in the order they take turns, by name.
    pub backends: Vec<String>,
    /// Directory under which the run directory is made.
    #[serde(with = "crate::frame::paths")]
    #[schemars(with = "String")]
    pub path: PathBuf,
    /// Name of the run directory, which is its owner's alone (mode 0700); None: made from time and process id.
    pub run_dir: Option<String>,
    /// The measured files stay.
    pub keep_files: bool,
    /// Prefix of the output files; None: only stdout.
    #[serde(default, with = "crate::frame::paths::optional")]
    #[schemars(with = "Option<String>")]
    pub out: Option<PathBuf>,
    /// Partition sizes.
    pub partitions: Partitions,
    /// Pattern types that run, 0 to 4, in order.
    pub types: Vec<PatternType>,
    /// All types are rewritten; false: type 0 only.
    pub full_rewrite: bool,
    /// Type 1 uses the shared file pointer; false: a strided view, one chunk per collective call.
    pub shared_pointer: bool,
    /// Memory of the unit one rank runs on; None: found out.
    pub memory_per_process_bytes: Option<u64>,
    /// Limit for all files of the run together.
    pub space_limit: SpaceLimit,
    /// The segments of types 3 and 4 are rounded up to a multiple of this.
    pub segment_multiple_bytes: u64,
    /// End of the time-driven loops.
    pub termination: Termination,
    /// Depth of verification.
    pub verify: Verify,
    /// Direct I/O of the backends that can choose.
    pub direct: DirectPolicy,
    /// Operations in flight at most (uring); None: found by calibration, for each chunk size (`queue_calibrations`).
    #[serde(default)]
    pub queue_depth: Option<u32>,
    /// What is done about the page cache.
    #[serde(default)]
    pub cache: CachePolicy,
    /// Collective patterns of posix and uring.
    #[serde(default)]
    pub collective: CollectivePolicy,
    /// Ranks that move data in a two-phase transfer; None: all of the partition.
    #[serde(default)]
    pub aggregators: Option<u64>,
    /// Bytes one aggregator moves in one step; None: the default of the drivers.
    #[serde(default)]
    pub domain_bytes: Option<u64>,
    /// Exchange of two-phase transfers.
    #[serde(default)]
    pub exchange: ExchangePolicy,
    /// Room before direct first writes (posix, uring).
    #[serde(default = "no_room")]
    pub preallocate: PreallocatePolicy,
    /// Memory of the calls.
    #[serde(default)]
    pub buffers: Buffers,
    /// Rounds into which each pattern is divided, so that several backends take turns within it; 1: one after the other.
    #[serde(default = "one_round")]
    pub rounds: u32,
    /// What is done with the time that the first pass leaves.
    #[serde(default)]
    pub repeat: RepeatPolicy,
    /// Repeats end when the interval of b_eff_io reaches no farther than this share of it, in percent; None: when T is over.
    #[serde(default)]
    pub until_percent: Option<f64>,
    /// The time of every call is recorded.
    #[serde(default)]
    pub latency: bool,
    /// What is done about ranks that may run on several CPUs.
    #[serde(default)]
    pub bind: BindPolicy,
    /// Files are opened with MPI_MODE_UNIQUE_OPEN.
    pub unique_open: bool,
    /// Hint rules in file order; later ones win.
    pub hints: Vec<HintRule>,
    /// Seed of the data.
    pub seed: u64,
    /// Damage on purpose, for tests of the verification; None: none.
    pub inject: Option<Inject>,
    /// When the damage is done, to one place of every pattern; None: once in each file, between rewrite and read.
    #[serde(default)]
    pub inject_at: Option<InjectAt>,
}

impl Config {
    /// True if some writes of some backend may bypass the page cache at offsets of their own.
    #[must_use]
    pub fn may_be_direct(&self) -> bool {
        let may =
            |name: &String| backends::can(name, |row| row.can_preallocate) && self.direct.of(name) != DirectPolicy::Off;
        self.backends.iter().any(may)
    }
}
