//! Options of `beff-raw io` and `beff-raw plan`; [`super::config_build`] turns them into the configuration.

use std::path::{Path, PathBuf};

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, ValueEnum};

use super::config::{
    BufferPolicy, ChunkOrder, CollectivePolicy, CorruptionPolicy, InjectedFault, InjectionPoint, Partitions,
    PreallocatePolicy, ReadShare, Release, RepeatPolicy, SpaceLimit, Termination, Verify,
};
use super::settings::{self, SettingOverride};
use crate::frame::backends;
use crate::frame::config::{CachePolicy, DirectPolicy};
use crate::frame::options::{
    self, common_help, words, BindArgs, DirectAlignArgs, ProgressArgs, RequireArgs, StorageArgs, TimeLimitArgs,
    UndecidedArgs, DEFAULT_SEED, HEADING_ACCESS, HEADING_CHECKS, HEADING_FILES, HEADING_MEASUREMENT, HEADING_OUTPUT,
};
use crate::frame::rank_directories::DEFAULT_FILES_PER_DIRECTORY;
use crate::frame::variants::{self, VariantOption};

/// Keys of `--variant`.
const VARIANT_OPTIONS: &str =
    "direct, depth, collective, aggregators, domain, preallocate, as the options of these names";

/// Options of `io`.
#[derive(Clone, Debug, Args)]
pub struct IoArgs {
    /// Options that determine the plan.
    #[command(flatten)]
    pub measure: MeasureArgs,
    /// How data is transferred.
    #[command(flatten)]
    pub transfer: TransferArgs,
    /// Options that affect the run only.
    #[command(flatten)]
    pub run: RunArgs,
    /// Less common settings.
    #[arg(long, value_name = "KEY=VALUE", value_parser = settings::parse_for_io, help = settings::help("io"), help_heading = HEADING_ACCESS)]
    pub set: Vec<SettingOverride>,
    /// Print all tables, warnings and settings instead of one screen
    #[arg(long, help_heading = HEADING_OUTPUT)]
    pub full: bool,
    /// As --full, with a line for each pattern
    #[arg(long, help_heading = HEADING_OUTPUT)]
    pub details: bool,
    /// Exit code of an undecided acceptance.
    #[command(flatten)]
    pub undecided: UndecidedArgs,
    /// Progress output.
    #[command(flatten)]
    pub progress: ProgressArgs,
}

/// Options that determine the plan; common to `io` and `plan`.
#[derive(Clone, Debug, Args)]
pub struct MeasureArgs {
    /// Backends.
    #[arg(long, value_name = "NAMES", value_delimiter = ',', default_value = "mpiio", help_heading = HEADING_MEASUREMENT,
        value_parser = backends::canonical_name,
        help = format!("Interfaces to the storage: {}. Several, separated by commas, are interleaved pattern by pattern and \
            reported side by side", backends::list_for_help(|_| true)))]
    pub backend: Vec<String>,
    /// Scheduled time T of each backend, for each partition (releases 0.5 and 1) or for all partitions together (2.1). A comparable value
    /// requires 10m (0.5), 15m (1), or 30m for each partition (2.1)
    #[arg(long, short = 'T', value_name = "TIME", default_value = "60s", value_parser = options::parse_seconds,
        help_heading = HEADING_MEASUREMENT)]
    pub time: f64,
    /// Time limit.
    #[command(flatten)]
    pub limit: TimeLimitArgs,
    /// Definition of b_eff_io that determines the schedule, the default partitions and the validity; the values of all three are computed; --full prints them
    #[arg(long, value_enum, value_name = "RELEASE", default_value = "1", help_heading = HEADING_MEASUREMENT)]
    pub release: Release,
    /// Run the loops of releases 0.5 and 1 exactly as the papers define them: first writes of types 3 and 4 end by their counts alone, and
    /// no pattern loses time to earlier overruns or to its sync. Without it, a slow type is cut at twice its time, and overruns are made up
    /// for; both are caveats of a valid value. `plan` states what it can cost
    #[arg(long, help_heading = HEADING_MEASUREMENT)]
    pub strict: bool,
    /// Numbers of ranks to measure with: `all`, `small,medium,all` (formula of release 2.1), or a list such as 1,4,16. A partition of n
    /// consists of ranks 0 to n-1; the others wait [default: all; for release 2.1 small,medium,all]
    #[arg(long, value_name = "WHICH", value_parser = partitions, help_heading = HEADING_MEASUREMENT)]
    pub partitions: Option<Partitions>,
    /// Pattern types: 0 scattered, collective; 1 shared file pointer; 2 one file per rank; 3 segments; 4 segments, collective. Segment
    /// sizes of types 3 and 4 derive from types 0, 1 and 2, so at least one of these is required
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "0,1,2,3,4", help_heading = HEADING_MEASUREMENT)]
    pub types: Vec<u8>,
    /// Types that are rewritten: all, or only the scattered one (type 0) [default: all; for release 2.1 scatter]
    #[arg(long, value_enum, value_name = "TYPES", help_heading = HEADING_MEASUREMENT)]
    pub rewrite: Option<RewriteScope>,
    /// Memory available to one rank; determines the largest chunk, M_PART = max(2M, SIZE / 128), rounded by less than 1 %. A value is comparable only if M_PART is that of the installed memory [default: memory of the node or of its control group, divided by the ranks
    /// on it]
    #[arg(long, value_name = "SIZE", value_parser = options::parse_size, help_heading = HEADING_MEASUREMENT)]
    pub memory_per_process: Option<u64>,
    /// How ranks agree on the end of a timed loop: after batches that grow geometrically, or after each call as in release 2.1 (slower with small chunks)
    #[arg(long, value_enum, value_name = "HOW", default_value = "geometric", help_heading = HEADING_MEASUREMENT)]
    pub termination: Termination,
    /// After the first measurement, rewrite and read the data of types 0, 2 and 3 again in these orders, one chunk per call. The rows stand beside the
    /// definition and do not affect b_eff_io; the run takes the time of these access methods longer for each order
    #[arg(long, value_enum, value_name = "LIST", value_delimiter = ',', help_heading = HEADING_MEASUREMENT)]
    pub order: Vec<ChunkOrder>,
    /// After that, access the data once more with reads and writes mixed in this ratio in percent, e.g. 70:30, in each of these orders, or in
    /// random order without --order. Each chunk is read or rewritten once; a read expects the data that the chunk had before this measurement.
    /// The rows stand beside the definition, too
    #[arg(long, value_name = "READ:WRITE", value_parser = read_share, help_heading = HEADING_MEASUREMENT)]
    pub mix: Option<ReadShare>,
    /// Rounds into which each pattern is divided: the backends take turns in each round, and first writes and rewrites end each round with a sync; ratios of
    /// patterns with three rounds or more have confidence intervals [default: 8 with several backends, else 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000), help_heading = HEADING_CHECKS)]
    pub rounds: Option<u32>,
    /// Use of the time of T that remains after the first measurement. auto: types are repeated, so that each pattern, type and b_eff_io has
    /// a 95 % confidence interval; if less than a quarter of T remains, for a quarter of T in any case. rounds: patterns with fewer than three rounds (few long calls) are repeated twice, so that the ratio of two backends has a confidence interval for each type. off: the run ends. Values are always those of the first measurement [default: with T of 10 s or
    /// more auto with one backend, rounds with several; else off]
    #[arg(long, value_enum, value_name = "HOW", help_heading = HEADING_CHECKS)]
    pub repeat: Option<RepeatPolicy>,
    /// Directory on the storage to measure, visible to all ranks
    #[arg(long, value_name = "DIR", default_value = ".", help_heading = HEADING_FILES)]
    pub path: PathBuf,
    /// Storage space for all files of the run: a size such as 200G, or a percentage of the free space [default: 80%]
    #[arg(long, value_name = "LIMIT", value_parser = space_limit, help_heading = HEADING_FILES)]
    pub space: Option<SpaceLimit>,
    /// Maximum number of files of ranks in a directory (type 2: one file per rank). With more ranks they are in subdirectories, those of
    /// consecutive ranks together
    #[arg(long, value_name = "N", default_value_t = DEFAULT_FILES_PER_DIRECTORY, value_parser = clap::value_parser!(u64).range(1..),
        help_heading = HEADING_FILES)]
    pub files_per_directory: u64,
    /// Storage sheet.
    #[command(flatten)]
    pub sheet: StorageArgs,
    /// Requirements.
    #[command(flatten)]
    pub acceptance: RequireArgs,
}

/// Options of the transfers, which also determine the memory per rank; common to `io` and `plan`.
#[derive(Clone, Debug, Args)]
pub struct TransferArgs {
    /// Bypass the page cache (O_DIRECT) in posix and uring. required: a pattern that cannot be direct is not run; auto: direct where the
    /// alignment allows it, reported for each pattern; two-phase first writes are buffered if a trial before the run measures them clearly
    /// faster (T of 20 s or more); off: always through the page cache. mpiio leaves this to the MPI library (see --hints), mmap uses the
    /// page cache, null has no files: these three reject `required`
    #[arg(long, value_enum, value_name = "POLICY", default_value = "by-backend", help_heading = HEADING_ACCESS)]
    pub direct: DirectPolicy,
    /// Maximum number of operations in flight, 1 to 4096 (uring) [default: determined for each chunk size by a short calibration]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=4096), help_heading = HEADING_ACCESS)]
    pub depth: Option<u32>,
    /// How posix and uring, which have no collective calls, execute collective patterns. auto: each rank accesses its own offsets, but two-phase where ranks share sectors (direct I/O) or new blocks (first writes); independent: never two-phase; two-phase: ranks
    /// exchange their data, aggregators transfer aligned domains of the file
    #[arg(long, value_enum, value_name = "HOW", default_value = "auto", help_heading = HEADING_ACCESS)]
    pub collective: CollectivePolicy,
    /// Number of aggregators (ranks that access the file) in a two-phase transfer [default: all ranks of
    /// one host; one on each of several hosts, at most 64]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..), help_heading = HEADING_ACCESS)]
    pub aggregators: Option<u64>,
    /// Bytes that one aggregator transfers in one step of a two-phase transfer, 4K to 1G [default: 4M]
    #[arg(long, value_name = "SIZE", value_parser = options::parse_size, help_heading = HEADING_ACCESS)]
    pub domain: Option<u64>,
    /// Variants.
    #[arg(long, value_name = "NAME:KEY=VALUE,...", value_parser = variants::parse, help = variants::help(VARIANT_OPTIONS),
        help_heading = HEADING_ACCESS)]
    pub variant: Vec<VariantOption>,
    /// Transfer buffer. cold: each call uses cache-cold memory, not used by recent calls, as in a program that computes between its calls;
    /// reused: one buffer for all calls of a pattern (uring: one for each read in flight), as in IOR and fio, for comparison with them.
    /// With reused, copies from and to the page cache are faster, which is a caveat of the value
    #[arg(long, value_enum, value_name = "WHICH", default_value = "cold", help_heading = HEADING_ACCESS)]
    pub buffers: BufferPolicy,
}

/// Options of `io` that affect the run but not the plan.
#[derive(Clone, Debug, Args)]
pub struct RunArgs {
    /// Name of the directory created under --path for the files; rejected if it exists [default: derived from time and process id]
    #[arg(long, value_name = "NAME", help_heading = HEADING_FILES)]
    pub run_dir: Option<String>,
    /// Keep the measured files after the run
    #[arg(long, help_heading = HEADING_FILES)]
    pub keep_files: bool,
    /// Page-cache policy before rewrites and reads, so that reads measure the storage. Page-cache residency of the files before each
    /// pattern is measured and reported with every policy; reads from memory are marked
    #[arg(long, value_enum, value_name = "POLICY", default_value = "drop", help_heading = HEADING_ACCESS)]
    pub cache: CachePolicy,
    /// Alignment of direct transfers.
    #[command(flatten)]
    pub alignment: DirectAlignArgs,
    /// Preallocate before direct first writes (posix, uring); the time is part of the measured time and reported separately. Without it
    /// each write extends the file, which the kernel serialises. Buffered writes are not preallocated: their blocks are allocated at
    /// write-back. If the file system rejects fallocate, this is reported for each pattern (auto), or the pattern is not run (native). auto
    /// does not preallocate for chunks larger than a block that begin or end inside a block, because preallocation slows them down
    #[arg(long, value_name = "HOW", default_value = "auto", value_parser = preallocate_values(), help_heading = HEADING_ACCESS)]
    pub preallocate: PreallocatePolicy,
    /// MPI-IO hint for all files and patterns (mpiio); overrides --hints
    #[arg(long = "hint", value_name = "KEY=VALUE", value_parser = options::parse_key_value, help_heading = HEADING_ACCESS)]
    pub hint: Vec<(String, String)>,
    /// MPI-IO hints, one per line: partition, access, pattern type, chunk size, key, value (mpiio)
    #[arg(long, value_name = "FILE", help_heading = HEADING_ACCESS)]
    pub hints: Option<PathBuf>,
    /// CPU binding of the ranks.
    #[command(flatten)]
    pub ranks: BindArgs,
    /// End the repetitions when the half-width of the 95 % confidence interval of b_eff_io is at most this share of b_eff_io and each type was measured three times, or as often as T allows; a warning is issued if T ends first
    #[arg(long, value_name = "PERCENT", value_parser = percentage, help_heading = HEADING_CHECKS)]
    pub until: Option<f64>,
    /// Record the time of every call: median, 99th and 99.9th percentile, maximum
    #[arg(long, help_heading = HEADING_CHECKS)]
    pub latency: bool,
    /// Amount of data verified, outside the timed region: sample, the buffers of the last reads of each pattern and a sample of the files;
    /// full, all reads and every byte of every file, before and after each access
    #[arg(long, value_enum, value_name = "LEVEL", default_value = "sample", help_heading = HEADING_CHECKS)]
    pub verify: Verify,
    /// What follows wrong data of a backend; the exit code is 3 in any case
    #[arg(long, value_enum, value_name = "WHAT", default_value = "continue", help_heading = HEADING_CHECKS)]
    pub on_corruption: CorruptionPolicy,
    /// Rmax of LINPACK on this system in Gflop/s, for the balance factor
    #[arg(long, value_name = "GFLOPS", value_parser = options::parse_positive, help_heading = HEADING_MEASUREMENT)]
    pub rmax: Option<f64>,
    /// Seed of the data; two runs with the same seed write the same bytes
    #[arg(long, value_name = "N", default_value_t = DEFAULT_SEED, help_heading = HEADING_CHECKS)]
    pub seed: u64,
    /// Fault injection.
    #[command(flatten)]
    pub faults: FaultInjectionArgs,
    /// Continue a run that was killed or interrupted, with its options: pattern types that it measured completely with an access method are
    /// kept, its files are used or written again, and everything else is measured. Give another --out
    #[arg(long = "continue", value_name = "FILE", help_heading = HEADING_MEASUREMENT)]
    pub continued: Option<PathBuf>,
    /// Write PREFIX.jsonl (journal, updated during the run), PREFIX.json and further formats; without it only stdout is written. {date} and
    /// {host} are substituted
    #[arg(long, value_name = "PREFIX", value_parser = options::output_prefix_parser(), help_heading = HEADING_OUTPUT)]
    pub out: Option<PathBuf>,
}

/// Fault injection, to test the verification.
#[derive(Clone, Copy, Debug, Args)]
pub struct FaultInjectionArgs {
    /// Corrupt the files between writing and reading, to test the verification
    #[cfg(feature = "test-hooks")]
    #[arg(long, value_enum, value_name = "DAMAGE", hide = true, help_heading = HEADING_CHECKS)]
    pub inject: Option<InjectedFault>,
    /// When to inject the fault; then at one location of every pattern
    #[cfg(feature = "test-hooks")]
    #[arg(long, value_enum, value_name = "MOMENT", hide = true, requires = "inject", help_heading = HEADING_CHECKS)]
    pub inject_at: Option<InjectionPoint>,
}

impl FaultInjectionArgs {
    /// Requested fault and its time; None without the feature `test-hooks`.
    #[must_use]
    pub fn requested(self) -> (Option<InjectedFault>, Option<InjectionPoint>) {
        #[cfg(feature = "test-hooks")]
        return (self.inject, self.inject_at);
        #[cfg(not(feature = "test-hooks"))]
        (None, None)
    }
}

/// Options of `plan`.
#[derive(Clone, Debug, Args)]
pub struct PlanArgs {
    /// Number of ranks of the run
    #[arg(long, short = 'n', value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub ranks: u64,
    /// Bandwidth of all ranks together: assumed, in bytes per second, or as measured by the run of this result (.json, .jsonl; of a
    /// directory the newest .json); determines the bytes and file sizes shown
    #[arg(long, value_name = "SIZE|FILE", default_value = "1G", value_parser = rate)]
    pub rate: PlannedRate,
    /// Print the plan as JSON instead of a table
    #[arg(long)]
    pub json: bool,
    /// Options that determine the plan.
    #[command(flatten)]
    pub measure: MeasureArgs,
    /// How data is transferred.
    #[command(flatten)]
    pub transfer: TransferArgs,
    /// Less common settings.
    #[arg(long, value_name = "KEY=VALUE", value_parser = settings::parse_for_plan, help = settings::help("plan"), help_heading = HEADING_ACCESS)]
    pub set: Vec<SettingOverride>,
}

/// Bandwidth of a plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PlannedRate {
    /// Bytes per second of every access method.
    Assumed(u64),
    /// That of this result.
    Measured(PathBuf),
}

/// Types that are rewritten.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RewriteScope {
    /// Every type.
    All,
    /// Type 0 alone.
    Scatter,
}

words! { Release:
    R0_5 = "0.5", "Euro-Par 2000 paper: all bytes / all time";
    R1 = "1", "paper on balanced architectures: weighted means, T for each partition";
    R2_1 = "2.1", "program of December 2001: sqrt(write * read), T for all partitions";
}
words! { RewriteScope:
    All = "all", "every type";
    Scatter = "scatter", "type 0 alone";
}
words! { Termination:
    Geometric = "geometric", "growing batches, one agreement each";
    PerCall = "per-call", "an agreement after each call";
}
words! { ChunkOrder:
    Sequential = "sequential", "ascending offsets, for comparison";
    Random = "random", "a random order, selected by --seed";
    Strided = "strided", "every 16th chunk, in 16 passes";
    Reverse = "reverse", "descending offsets";
}
words! { Verify:
    Sample = "sample", "buffers of the last reads of each pattern, and a sample of the files";
    Full = "full", "all reads, and every byte of every file";
}
words! { CorruptionPolicy:
    Continue = "continue", "all backends are measured to the end";
    Skip = "skip", "the backend is not run any more, from the next pattern type on; the others are";
    End = "end", "the run ends";
}
words! { CollectivePolicy:
    Auto = "auto", "two-phase where ranks share sectors or new blocks, else independent";
    Independent = "independent", "every rank at its own offsets";
    TwoPhase = "two-phase", "exchange, then aligned domains";
    #[cfg(feature = "test-hooks")]
    UnsafeReadModifyWrite = "unsafe-read-modify-write", "";
}
words! { BufferPolicy:
    Cold = "cold", "cache-cold memory, not used by recent calls";
    Reused = "reused", "one buffer for all calls";
}
words! { RepeatPolicy:
    Off = "off", "the run ends after the first measurement";
    Auto = "auto", "types are repeated until T has elapsed, for confidence intervals of values";
    Rounds = "rounds", "patterns with fewer than three rounds are repeated twice, for confidence intervals of ratios";
}
words! { PreallocatePolicy:
    Auto = "auto", "native where the file system supports it";
    Native = "native", "blocks and length, by fallocate";
    Zeros = "zeros", "native, and zeros before chunks below a block";
    Size = "size", "length only, by ftruncate";
    Off = "off", "no preallocation: each write extends the file";
}
#[cfg(feature = "test-hooks")]
words! { InjectedFault:
    Flip = "flip", "one bit of one word is flipped";
    OtherRank = "other-rank", "a chunk holds another rank's data";
    Stale = "stale", "a chunk holds the first write after the rewrite";
    Zero = "zero", "a chunk becomes zeros";
    Hole = "hole", "a chunk is punched out of the file";
    Swap = "swap", "two chunks are swapped";
    Misplaced = "misplaced", "a chunk holds the data of another offset";
}
#[cfg(feature = "test-hooks")]
words! { InjectionPoint:
    Write = "write", "during the first write";
    AfterWrite = "after-write", "before the rewrite";
    Rewrite = "rewrite", "during the rewrite";
    AfterRewrite = "after-rewrite", "before the read";
    Read = "read", "during the read";
    AfterRead = "after-read", "after the read";
    Mixed = "mixed", "after the measurement of --mix";
}

/// The common values; the others are settings.
fn preallocate_values() -> impl TypedValueParser<Value = PreallocatePolicy> {
    let usual = [PreallocatePolicy::Auto, PreallocatePolicy::Native, PreallocatePolicy::Off];
    PossibleValuesParser::new(usual.iter().filter_map(ValueEnum::to_possible_value))
        .try_map(|word| PreallocatePolicy::from_str(&word, false))
}

/// Bytes per second, with an optional `/s`, or a result.
pub(crate) fn rate(text: &str) -> Result<PlannedRate, String> {
    let size = options::parse_size(text.strip_suffix("/s").unwrap_or(text));
    let is_directory = size.is_err() && Path::new(text).is_dir();
    if text.ends_with(".json") || text.ends_with(".jsonl") || is_directory {
        return Ok(PlannedRate::Measured(text.into()));
    }
    let rate = size?;
    if rate == 0 {
        return Err("at 0 bytes per second nothing would be written; give the expected bandwidth, e.g. 1G".into());
    }
    Ok(PlannedRate::Assumed(rate))
}

/// `5%`, or 5.
pub(crate) fn percentage(text: &str) -> Result<f64, String> {
    match text.strip_suffix('%').unwrap_or(text).trim().parse::<f64>() {
        Ok(percent) if percent > 0.0 && percent <= 100.0 => Ok(percent),
        Ok(_) => Err("the half-width must be above 0% and at most 100%".into()),
        Err(_) => Err(format!("'{text}' is not a number; write a percentage such as 5%")),
    }
}

pub(crate) fn read_share(text: &str) -> Result<ReadShare, String> {
    let usage = "write the percentages of reads and writes, such as 70:30";
    let (reads, writes) = text.split_once(':').ok_or_else(|| format!("'{text}' is not a ratio; {usage}"))?;
    let percent = |word: &str| word.trim().parse::<u8>().map_err(|_| format!("'{word}' is not a percentage; {usage}"));
    match (percent(reads)?, percent(writes)?) {
        (0, 100) | (100, 0) => Err("one direction alone is no mix; --order alone measures rewrites and reads".into()),
        (reads, writes) if u16::from(reads) + u16::from(writes) == 100 => Ok(ReadShare { read_percent: reads }),
        (reads, writes) => {
            Err(format!("{reads} % and {writes} % are together {} %, not 100 %", u16::from(reads) + u16::from(writes)))
        }
    }
}

pub(crate) fn space_limit(text: &str) -> Result<SpaceLimit, String> {
    let Some(number) = text.strip_suffix('%') else {
        return match options::parse_size(text)? {
            0 => {
                Err("with a limit of 0 nothing can be written; give a size such as 200G or a percentage such as 80%"
                    .into())
            }
            bytes => Ok(SpaceLimit::Bytes(bytes)),
        };
    };
    match number.trim().parse::<f64>() {
        Ok(percent) if percent > 0.0 && percent <= 100.0 => Ok(SpaceLimit::Percent(percent)),
        Ok(_) => Err("a percentage of the free space must be above 0% and at most 100%".into()),
        Err(_) => Err(format!("'{number}' is not a number; write a percentage such as 80% or a size such as 200G")),
    }
}

/// `all`, `small,medium,all`, or a list of sizes.
pub(crate) fn partitions(text: &str) -> Result<Partitions, String> {
    match text {
        "all" => return Ok(Partitions::All),
        "small,medium,all" => return Ok(Partitions::SmallMediumAll),
        _ => {}
    }
    let mut sizes = Vec::new();
    for word in text.split(',') {
        let size = word.trim().parse::<u64>().map_err(|_| {
            format!("'{word}' is not a number of ranks; write `all`, `small,medium,all`, or a list such as 1,4,16")
        })?;
        if size == 0 {
            return Err("a partition must have at least 1 rank".into());
        }
        if sizes.contains(&size) {
            return Err(format!("the partition of {size} ranks is listed twice; list each size once"));
        }
        sizes.push(size);
    }
    Ok(Partitions::List(sizes))
}

pub(crate) const IO_EXAMPLES: &str = concat!(
    "Examples:
  A value that is comparable with other systems (release 1: 15 minutes):
      mpirun -n 16 beff-raw io -T 15m --path /scratch --out scratch
  MPI-IO beside the kernel's interfaces, with direct I/O where possible:
      mpirun -n 4 beff-raw io --backend mpiio,posix,uring --direct auto --depth 64 --path /scratch
  By the definition of release 2.1, half an hour for each of its three partitions, with hints:
      mpirun -n 64 beff-raw io --release 2.1 -T 90m --hints hints.txt --path /scratch

",
    common_help!()
);

pub(crate) const PLAN_EXAMPLES: &str = concat!(
    "Examples:
  Would a comparable run on 1024 ranks at 20 GiB/s fit into 100 TiB?
      beff-raw plan --ranks 1024 --rate 20G -T 15m --space 100T
  Which T moves twenty times the cache of 2 TiB, at the rate of a short run?
      beff-raw plan --ranks 64 --rate run1.json -T 15m --storage cache=2T
  The partitions of release 2.1 on 142 ranks, for a script:
      beff-raw plan --ranks 142 --release 2.1 -T 90m --json

",
    common_help!()
);
