//! Configuration of a run: validated, immutable, recorded in every result.

use std::borrow::Cow;
use std::path::PathBuf;

use beff_backends::{OrderKind, ReadWriteMix};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::b_eff_io::hints::HintRule;
use crate::b_eff_io::pattern_type::PatternType;
use crate::b_eff_io::requirements::Requirement;
use crate::frame::backends;
use crate::frame::config::{BindPolicy, CachePolicy, DirectPolicy, Stripe, TimeLimit};
use crate::frame::rank_directories::DEFAULT_FILES_PER_DIRECTORY;
use crate::frame::records::StorageKey;

/// Published definition of b_eff_io that determines the schedule, the default partitions and the validity. The values of all three are
/// always computed from the same measurement.
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
    /// Name on the command line and in output.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::R0_5 => "0.5",
            Self::R1 => "1",
            Self::R2_1 => "2.1",
        }
    }
}

/// How a time-driven loop ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Termination {
    /// Batches grow geometrically; one agreement per batch.
    Geometric,
    /// Barrier, clock at the root and broadcast after every call, as in release 2.1.
    PerCall,
}

/// Order in which the chunks of a pattern are accessed, in a measurement beside the definition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ChunkOrder {
    /// Ascending offsets, for comparison with the others.
    Sequential,
    /// A random order, selected by the seed.
    Random,
    /// Every 16th chunk, in 16 passes.
    Strided,
    /// Descending offsets.
    Reverse,
}

impl ChunkOrder {
    /// Name on the command line and in output.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Sequential => "sequential",
            Self::Random => "random",
            Self::Strided => "strided",
            Self::Reverse => "reverse",
        }
    }

    /// Its arithmetic.
    #[must_use]
    pub fn kind(self) -> OrderKind {
        match self {
            Self::Sequential => OrderKind::Sequential,
            Self::Random => OrderKind::Random,
            Self::Strided => OrderKind::Strided,
            Self::Reverse => OrderKind::Reverse,
        }
    }
}

/// Share of the calls of a mixed pattern that read; the others write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub struct ReadShare {
    /// In percent.
    #[schemars(range(min = 1, max = 99))]
    pub read_percent: u8,
}

impl ReadShare {
    /// Reads and writes on the command line and in output, e.g. 70:30.
    #[must_use]
    pub fn name(self) -> String {
        format!("{}:{}", self.read_percent, 100_u8.saturating_sub(self.read_percent))
    }

    /// Its arithmetic. A share that no run can have, in a file that was edited, is rounded to one that it can.
    #[must_use]
    pub fn mix(self) -> ReadWriteMix {
        ReadWriteMix::new(self.read_percent.clamp(1, 99))
    }
}

/// How the calls of a measurement beside the definition access the chunks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CallOrder {
    /// Sequence of the chunks.
    pub order: ChunkOrder,
    /// Reads among writes; None: all calls have one direction.
    pub mix: Option<ReadShare>,
}

impl CallOrder {
    /// Name in output: of the order, and of the mix.
    #[must_use]
    pub fn name(self) -> String {
        match self.mix {
            None => self.order.name().to_owned(),
            Some(mix) => format!("{} {}", self.order.name(), mix.name()),
        }
    }
}

/// Measurements beside the definition, in sequence: each order, and the mix in each of them; a mix alone is in random order.
#[must_use]
pub fn call_orders(orders: &[ChunkOrder], mix: Option<ReadShare>) -> Vec<CallOrder> {
    let mixed = |order: ChunkOrder| mix.map(|mix| CallOrder { order, mix: Some(mix) });
    if orders.is_empty() {
        return mixed(ChunkOrder::Random).into_iter().collect();
    }
    let of_order = |order: &ChunkOrder| [CallOrder { order: *order, mix: None }].into_iter().chain(mixed(*order));
    orders.iter().flat_map(of_order).collect()
}

/// Amount of data verified outside the measured time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Verify {
    /// Buffers of the last reads of each pattern, and after each pattern a sample of its bytes in the file.
    Sample,
    /// Buffers of all reads, and untimed passes over every byte of every file, by another rank than the writer.
    Full,
}

/// What follows wrong data of a contestant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CorruptionPolicy {
    /// All contestants are measured to the end.
    #[default]
    Continue,
    /// The contestant is not run any more, from the next type on; the others are.
    Skip,
    /// The run ends.
    End,
}

/// How drivers without collective calls run collective patterns.
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
    /// Plain read-modify-write of shared sectors: loses data; for tests of the verification.
    UnsafeReadModifyWrite,
}

/// Transfer buffer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum BufferPolicy {
    /// Each call uses cache-cold memory, not used by recent calls.
    #[default]
    Cold,
    /// One window for all calls of a pattern.
    Reused,
}

/// Preallocation of a new file before direct writes extend it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PreallocatePolicy {
    /// Blocks by fallocate; none, which is reported, if the file system rejects it. None for chunks larger than a block that are written in
    /// parts of blocks, in a file or a segment of one rank.
    Auto,
    /// Blocks by fallocate; a pattern is not run if the file system rejects it.
    Native,
    /// As native, and zeros are written into the blocks of chunks smaller than a block.
    Zeros,
    /// Length only, by ftruncate.
    Size,
    /// None: each write extends the file.
    Off,
}

/// For results recorded before preallocation was introduced.
fn no_preallocation() -> PreallocatePolicy {
    PreallocatePolicy::Off
}

/// Use of the time that remains after the first measurement.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RepeatPolicy {
    /// The run ends.
    #[default]
    Off,
    /// Types are repeated until T has elapsed, so that values have confidence intervals.
    Auto,
    /// Patterns with fewer than three rounds are repeated twice, so that ratios of backends have confidence intervals.
    Rounds,
}

/// How ranks exchange data in a two-phase transfer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ExchangePolicy {
    /// Shared memory where possible, else messages.
    #[default]
    Auto,
    /// Shared memory, or an error.
    SharedMemory,
    /// MPI messages.
    Messages,
}

/// Fault injected into the files between writing and reading, to test the verification.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum InjectedFault {
    /// One bit of one word is flipped.
    Flip,
    /// A chunk is replaced by the data of another rank.
    OtherRank,
    /// A chunk holds the data of the first write after the rewrite.
    Stale,
    /// A chunk becomes zeros.
    Zero,
    /// A chunk is punched out of the file, which keeps its length.
    Hole,
    /// Two chunks are swapped.
    Swap,
    /// A chunk holds the data that belongs 4096 bytes further on in the same stream.
    Misplaced,
}

/// When a fault is injected, at one location of every pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum InjectionPoint {
    /// During the first write, before any verification.
    Write,
    /// In the file, between first write and rewrite.
    AfterWrite,
    /// During the rewrite.
    Rewrite,
    /// In the file, between rewrite and read.
    AfterRewrite,
    /// During the read: in memory, when it returns.
    Read,
    /// In the file, after the read of the pattern.
    AfterRead,
    /// In the file, after a measurement with reads and writes (`--mix`).
    Mixed,
}

/// Requested partition sizes.
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

/// Limit of the storage space for all files of a run.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SpaceLimit {
    /// Bytes.
    Bytes(u64),
    /// Share of the space that is free at the start of the run; above 0, at most 100.
    Percent(#[schemars(extend("exclusiveMinimum" = 0, "maximum" = 100))] f64),
}

impl SpaceLimit {
    /// Limit in bytes if `free_bytes` are free. An absolute limit may exceed that: the caller compares.
    #[must_use]
    pub fn bytes(self, free_bytes: u64) -> u64 {
        match self {
            Self::Bytes(bytes) => bytes,
            // Rounded down; f64 is precise enough for a share of the free space.
            Self::Percent(percent) => ((free_bytes as f64 * (percent / 100.0)) as u64).min(free_bytes),
        }
    }
}

/// For results recorded before rounds were introduced.
fn one_round() -> u32 {
    1
}

/// A backend with options of its own, measured beside the backends. What it does not set is as in the run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Variant {
    /// Its name in all records: that of its backend, `+`, and its own.
    pub backend: String,
    /// Direct I/O.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub direct: Option<DirectPolicy>,
    /// Maximum number of operations in flight.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue_depth: Option<u32>,
    /// Collective patterns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub collective: Option<CollectivePolicy>,
    /// Number of aggregators in a two-phase transfer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub aggregators: Option<u64>,
    /// Bytes that one aggregator transfers in one step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub domain_bytes: Option<u64>,
    /// Preallocation before direct first writes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preallocate: Option<PreallocatePolicy>,
    /// MPI-IO hints, key and value, for all files and patterns; they override those of the run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hints: Vec<(String, String)>,
}

impl Variant {
    /// Its own name, without that of its backend.
    #[must_use]
    pub fn name(&self) -> &str {
        backends::variant_name(&self.backend).unwrap_or(&self.backend)
    }
}

fn default_files_per_directory() -> u64 {
    DEFAULT_FILES_PER_DIRECTORY
}

/// All settings that determine what is measured and how.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Config {
    /// Definition of schedule, default partitions and validity. All three values are always computed.
    pub release: Release,
    /// Exactly the loops of the definition: no time guard for first writes of types 3 and 4, no time deducted for overruns or kept for syncs.
    #[serde(default)]
    pub strict: bool,
    /// Scheduled time T; of one partition (0.5, 1) or of all of them (2.1). Per backend.
    pub time_seconds: f64,
    /// Time limit of the run; None: no limit.
    #[serde(default)]
    pub time_limit: Option<TimeLimit>,
    /// Names of the contestants, in the order of their turns: backends, then variants.
    pub backends: Vec<String>,
    /// The contestants with options of their own.
    #[serde(default)]
    pub variants: Vec<Variant>,
    /// Directory in which the run directory is created.
    #[serde(with = "crate::frame::paths")]
    #[schemars(with = "String")]
    pub path: PathBuf,
    /// Name of the run directory (mode 0700); None: derived from time and process id.
    pub run_dir: Option<String>,
    /// The measured files are kept.
    pub keep_files: bool,
    /// Maximum number of files of ranks in a directory; with more ranks they are in subdirectories.
    #[serde(default = "default_files_per_directory")]
    pub files_per_directory: u64,
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
    /// A collective write and read establish connections before the first pattern; false in older results, which did not.
    #[serde(default)]
    pub connection_setup: bool,
    /// Memory available to one rank; None: detected.
    pub memory_per_process_bytes: Option<u64>,
    /// Space limit for all files of the run.
    pub space_limit: SpaceLimit,
    /// Segments of types 3 and 4 are rounded up to a multiple of this.
    pub segment_multiple_bytes: u64,
    /// Termination of the time-driven loops.
    pub termination: Termination,
    /// Depth of verification.
    pub verify: Verify,
    /// What follows wrong data of a contestant.
    #[serde(default)]
    pub on_corruption: CorruptionPolicy,
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
    /// Maximum number of operations in flight (uring); None: by calibration for each chunk size (`queue_calibrations`).
    #[serde(default)]
    pub queue_depth: Option<u32>,
    /// Page-cache policy.
    #[serde(default)]
    pub cache: CachePolicy,
    /// Collective patterns of posix and uring.
    #[serde(default)]
    pub collective: CollectivePolicy,
    /// Number of aggregators in a two-phase transfer; None: all ranks of the partition if they are on one host, else one on each host, at
    /// most 64.
    #[serde(default)]
    pub aggregators: Option<u64>,
    /// Bytes that one aggregator transfers in one step; None: default of the drivers.
    #[serde(default)]
    pub domain_bytes: Option<u64>,
    /// Exchange of two-phase transfers.
    #[serde(default)]
    pub exchange: ExchangePolicy,
    /// Preallocation before direct first writes (posix, uring).
    #[serde(default = "no_preallocation")]
    pub preallocate: PreallocatePolicy,
    /// Transfer buffer.
    #[serde(default)]
    pub buffers: BufferPolicy,
    /// Rounds into which each pattern is divided, so that several backends take turns within it; 1: one after the other.
    #[serde(default = "one_round")]
    pub rounds: u32,
    /// Use of the time that remains after the first measurement.
    #[serde(default)]
    pub repeat: RepeatPolicy,
    /// Repetitions end when the half-width of the confidence interval of b_eff_io is at most this share of it, in percent; None: when T has
    /// elapsed.
    #[serde(default)]
    pub until_percent: Option<f64>,
    /// Orders in which chunks are rewritten and read after the first measurement, beside the definition.
    #[serde(default)]
    pub orders: Vec<ChunkOrder>,
    /// Share of reads of the measurements with reads and writes, in each of these orders, or in random order without one; beside the
    /// definition. None: none.
    #[serde(default)]
    pub mix: Option<ReadShare>,
    /// The time of every call is recorded.
    #[serde(default)]
    pub latency: bool,
    /// Binding of ranks that may run on several CPUs.
    #[serde(default)]
    pub bind: BindPolicy,
    /// Files are opened with MPI_MODE_UNIQUE_OPEN.
    pub unique_open: bool,
    /// Hint rules in file order; later ones win.
    pub hints: Vec<HintRule>,
    /// Rmax of LINPACK in 1e9 floating-point operations per second, for the balance factor; None if not specified.
    #[serde(default)]
    pub rmax_gflops: Option<f64>,
    /// Requirements of the acceptance (`--require`); empty if not given.
    #[serde(default)]
    pub requirements: Vec<Requirement>,
    /// Seed of the data.
    pub seed: u64,
    /// Fault injection, for tests of the verification; None: off.
    pub inject: Option<InjectedFault>,
    /// When the fault is injected, at one location of every pattern; None: once in each file, between rewrite and read.
    #[serde(default)]
    pub inject_at: Option<InjectionPoint>,
}

impl Config {
    /// The settings of a contestant: those of the run, with the options of its variant.
    #[must_use]
    pub fn of(&self, contestant: &str) -> Cow<'_, Self> {
        let Some(variant) = self.variants.iter().find(|variant| variant.backend == contestant) else {
            return Cow::Borrowed(self);
        };
        let everywhere = |(key, value): &(String, String)| HintRule::everywhere(key, value);
        Cow::Owned(Self {
            direct: variant.direct.unwrap_or(self.direct),
            queue_depth: variant.queue_depth.or(self.queue_depth),
            collective: variant.collective.unwrap_or(self.collective),
            aggregators: variant.aggregators.or(self.aggregators),
            domain_bytes: variant.domain_bytes.or(self.domain_bytes),
            preallocate: variant.preallocate.unwrap_or(self.preallocate),
            hints: self.hints.iter().cloned().chain(variant.hints.iter().map(everywhere)).collect(),
            ..self.clone()
        })
    }

    /// Direct I/O of a contestant.
    #[must_use]
    pub fn direct_of(&self, contestant: &str) -> DirectPolicy {
        self.of(contestant).direct.of(contestant)
    }

    /// The first contestant whose transfers may be direct.
    #[must_use]
    pub fn first_direct(&self) -> Option<&str> {
        DirectPolicy::first_direct(&self.backends, |name| self.direct_of(name))
    }

    /// True if a contestant may write directly at offsets of its own.
    #[must_use]
    pub fn may_be_direct(&self) -> bool {
        let may = |name: &String| {
            backends::supports(name, |row| row.can_preallocate) && self.direct_of(name) != DirectPolicy::Off
        };
        self.backends.iter().any(may)
    }

    /// The measurements beside the definition.
    #[must_use]
    pub fn call_orders(&self) -> Vec<CallOrder> {
        call_orders(&self.orders, self.mix)
    }
}
