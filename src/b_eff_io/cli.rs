//! Options of `beff-raw io` and `beff-raw plan`. [`super::config_build`] makes of them what will run.

use std::path::PathBuf;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, ValueEnum};

use super::config::{
    Buffers, CollectivePolicy, Inject, InjectAt, Partitions, PreallocatePolicy, Release, RepeatPolicy, SpaceLimit,
    Termination, Verify,
};
use super::settings::{self, Setting};
use crate::frame::backends;
use crate::frame::config::{CachePolicy, DirectPolicy};
use crate::frame::options::{
    self, common_help, words, BindArgs, ProgressArgs, ACCESS, DEFAULT_SEED, MEASURED, OUTPUT, PLACE, TRUST,
};

/// Options of `io`.
#[derive(Clone, Debug, Args)]
pub struct IoArgs {
    /// What decides the plan.
    #[command(flatten)]
    pub measure: MeasureArgs,
    /// How data moves.
    #[command(flatten)]
    pub way: WayArgs,
    /// What else decides the run.
    #[command(flatten)]
    pub run: RunArgs,
    /// Settings that few runs need.
    #[arg(long, value_name = "KEY=VALUE", value_parser = settings::of_io, help = settings::help("io"), help_heading = ACCESS)]
    pub set: Vec<Setting>,
    /// Print all tables, warnings and settings, not one screen
    #[arg(long, help_heading = OUTPUT)]
    pub full: bool,
    /// The same with a line for each pattern
    #[arg(long, help_heading = OUTPUT)]
    pub details: bool,
    /// What is told meanwhile.
    #[command(flatten)]
    pub progress: ProgressArgs,
}

/// Options that decide what is planned; common to `io` and `plan`.
#[derive(Clone, Debug, Args)]
pub struct MeasureArgs {
    /// How to reach the storage.
    #[arg(long, value_name = "NAMES", value_delimiter = ',', default_value = "mpiio", help_heading = MEASURED,
        value_parser = backends::named,
        help = format!("How to reach the storage: {}. Several, separated by commas, take turns pattern by pattern and are \
            reported side by side", backends::listed(|_| true)))]
    pub backend: Vec<String>,
    /// Scheduled time T of each backend: of one partition (releases 0.5 and 1) or of all partitions together (2.1). A
    /// comparable value needs 10m (0.5), 15m (1), or 30m for each partition (2.1)
    #[arg(long, short = 'T', value_name = "TIME", default_value = "60s", value_parser = options::seconds,
        help_heading = MEASURED)]
    pub time: f64,
    /// Definition of b_eff_io that sets the schedule, the default partitions and the validity; the values of all three
    /// are shown anyway
    #[arg(long, value_enum, value_name = "RELEASE", default_value = "1", help_heading = MEASURED)]
    pub release: Release,
    /// Numbers of ranks to measure with: `all`, `small,medium,all` (formula of release 2.1), or a list such as 1,4,16.
    /// A partition of n is ranks 0 to n-1, the others wait [default: all; for release 2.1 small,medium,all]
    #[arg(long, value_name = "WHICH", value_parser = partitions, help_heading = MEASURED)]
    pub partitions: Option<Partitions>,
    /// Pattern types: 0 scattered, collective; 1 shared file pointer; 2 one file per rank; 3 segments; 4 segments,
    /// collective. Types 3 and 4 take their sizes from 0, 1 and 2, so at least one of these must run
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "0,1,2,3,4", help_heading = MEASURED)]
    pub types: Vec<u8>,
    /// Types that are rewritten: all, or only the scattered one (type 0) [default: all; for release 2.1 scatter]
    #[arg(long, value_enum, value_name = "TYPES", help_heading = MEASURED)]
    pub rewrite: Option<Rewrite>,
    /// Memory of the unit that one rank runs on; decides the largest chunk, M_PART = max(2M, SIZE / 128), rounded by less
    /// than 1 %. A value may be compared only with the M_PART of the memory that is there [default: memory of the node or of
    /// its control group, divided by the ranks on it]
    #[arg(long, value_name = "SIZE", value_parser = options::size, help_heading = MEASURED)]
    pub memory_per_process: Option<u64>,
    /// How a timed loop ends: batches that grow geometrically with one common decision each, or a decision after each
    /// call as release 2.1 did (slower with small chunks)
    #[arg(long, value_enum, value_name = "HOW", default_value = "geometric", help_heading = MEASURED)]
    pub termination: Termination,
    /// Directory on the storage to measure, seen by all ranks
    #[arg(long, value_name = "DIR", default_value = ".", help_heading = PLACE)]
    pub path: PathBuf,
    /// Storage that all files of the run may take: a size such as 200G, or a percentage of what is free [default: 80% for
    /// a run; `plan` plans without a limit]
    #[arg(long, value_name = "LIMIT", value_parser = space_limit, help_heading = PLACE)]
    pub space: Option<SpaceLimit>,
}

/// Options that decide how data moves, and with it how much memory a rank takes; common to `io` and `plan`.
#[derive(Clone, Debug, Args)]
pub struct WayArgs {
    /// Bypass the page cache (O_DIRECT) in posix and uring. required: a pattern that cannot be direct is not run; auto:
    /// direct where the alignment allows it, reported for each pattern, but two-phase first writes as a trial before the run finds
    /// them clearly faster (T of 20 s or more); off: always through the cache. mpiio leaves this to the MPI library (see
    /// --hints), mmap is the page cache, null has no files: they refuse `required`
    #[arg(long, value_enum, value_name = "POLICY", default_value = "by-backend", help_heading = ACCESS)]
    pub direct: DirectPolicy,
    /// Operations in flight at most, 1 to 4096 (uring) [default: found by a short calibration for each chunk size]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=4096), help_heading = ACCESS)]
    pub depth: Option<u32>,
    /// Collective patterns of posix and uring, which have no collective calls. auto: each rank at its own offsets, or
    /// two-phase where direct I/O would need sectors that ranks share, or first writes new blocks that they share; independent:
    /// never two-phase; two-phase: ranks exchange their data, aggregators move aligned domains of the file
    #[arg(long, value_enum, value_name = "HOW", default_value = "auto", help_heading = ACCESS)]
    pub collective: CollectivePolicy,
    /// Ranks that move data in a two-phase transfer [default: all ranks]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..), help_heading = ACCESS)]
    pub aggregators: Option<u64>,
    /// Bytes one aggregator moves in one step of a two-phase transfer, 4K to 1G [default: 4M]
    #[arg(long, value_name = "SIZE", value_parser = options::size, help_heading = ACCESS)]
    pub domain: Option<u64>,
    /// Memory of the calls. cold: each has memory that was not used just before, as in a program that computes in between; reused: one
    /// window for all calls of a pattern (uring: one for each read under way), as IOR and fio do, to compare with them. Copies from and
    /// to the page cache are faster then, and the result is never valid
    #[arg(long, value_enum, value_name = "WHICH", default_value = "cold", help_heading = ACCESS)]
    pub buffers: Buffers,
}

/// Options of `io` that change the run but not the plan.
#[derive(Clone, Debug, Args)]
pub struct RunArgs {
    /// Name of the directory made under --path for the files; refused if it exists [default: made from time and process]
    #[arg(long, value_name = "NAME", help_heading = PLACE)]
    pub run_dir: Option<String>,
    /// Leave the measured files in place after the run
    #[arg(long, help_heading = PLACE)]
    pub keep_files: bool,
    /// What is done about the page cache, so that reads tell about the storage. What of the files was in it before each
    /// pattern is measured and reported whatever the policy; reads from memory are marked
    #[arg(long, value_enum, value_name = "POLICY", default_value = "drop", help_heading = ACCESS)]
    pub cache: CachePolicy,
    /// Room before direct first writes (posix, uring), in the measured time, with a part of its own (room). Without it each write
    /// makes the file longer, which the kernel does one at a time. Through the page cache none is made: blocks come at write-back. A
    /// file system that refuses fallocate is told for each pattern (auto), or the pattern is not run (native). auto makes none for chunks
    /// above a block that begin or end inside of one, which lose by it
    #[arg(long, value_name = "HOW", default_value = "auto", value_parser = usual_room(), help_heading = ACCESS)]
    pub preallocate: PreallocatePolicy,
    /// An MPI-IO hint for all files and patterns (mpiio); wins over --hints
    #[arg(long = "hint", value_name = "KEY=VALUE", value_parser = options::key_value, help_heading = ACCESS)]
    pub hint: Vec<(String, String)>,
    /// MPI-IO hints, one per line: partition, access, pattern type, chunk size, key, value (mpiio)
    #[arg(long, value_name = "FILE", help_heading = ACCESS)]
    pub hints: Option<PathBuf>,
    /// Where ranks run.
    #[command(flatten)]
    pub ranks: BindArgs,
    /// Rounds into which each pattern is divided: the backends take turns round by round, and a write ends each round with
    /// its sync; ratios of patterns with three rounds or more have intervals [default: 8 with several backends, else 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000), help_heading = TRUST)]
    pub rounds: Option<u32>,
    /// What is done with the time that the first pass leaves of T. auto: types are measured again, so that each pattern, type and
    /// b_eff_io has a 95 % interval. rounds: patterns with fewer than three rounds, the long calls, are measured twice
    /// again, so that the ratio of two backends in each type has one. off: the run ends. The values stay those of the first pass
    /// [default: with T of 10 s or more auto with one backend, rounds with several; else off]
    #[arg(long, value_enum, value_name = "HOW", help_heading = TRUST)]
    pub repeat: Option<RepeatPolicy>,
    /// End the repeats when the interval of b_eff_io reaches no farther than this share of it and all types were measured three times, or as
    /// often as T has time for; if it never does by the end of T, that is said
    #[arg(long, value_name = "PERCENT", value_parser = percentage, help_heading = TRUST)]
    pub until: Option<f64>,
    /// Record the time of every call: median, 99 %, 99.9 % and largest
    #[arg(long, help_heading = TRUST)]
    pub latency: bool,
    /// How much of the data is compared, outside the measured time: ring, what the last reads of each pattern left in memory and a
    /// sample of the files; full, all reads and every byte of every file, before and after each access
    #[arg(long, value_enum, value_name = "DEPTH", default_value = "ring", help_heading = TRUST)]
    pub verify: Verify,
    /// Seed of the data; two runs with the same seed write the same bytes
    #[arg(long, value_name = "N", default_value_t = DEFAULT_SEED, help_heading = TRUST)]
    pub seed: u64,
    /// Damage on purpose.
    #[command(flatten)]
    pub damage: DamageArgs,
    /// Write PREFIX.jsonl (journal, kept up to date during the run), PREFIX.json and further views; without it only
    /// stdout. {date} and {host} in it are filled in
    #[arg(long, value_name = "PREFIX", value_parser = options::prefix(), help_heading = OUTPUT)]
    pub out: Option<PathBuf>,
}

/// Damage on purpose, to prove that it is found.
#[derive(Clone, Copy, Debug, Args)]
pub struct DamageArgs {
    /// Damage the files between writing and reading, to prove that it is found
    #[cfg(feature = "test-hooks")]
    #[arg(long, value_enum, value_name = "DAMAGE", hide = true, help_heading = TRUST)]
    pub inject: Option<Inject>,
    /// When to damage; then one place of every pattern
    #[cfg(feature = "test-hooks")]
    #[arg(long, value_enum, value_name = "MOMENT", hide = true, requires = "inject", help_heading = TRUST)]
    pub inject_at: Option<InjectAt>,
}

impl DamageArgs {
    /// What was asked for, and when: only a program with test hooks can be.
    #[must_use]
    pub fn asked(self) -> (Option<Inject>, Option<InjectAt>) {
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
    /// Assumed speed of all ranks together in bytes per second; decides the bytes and file sizes shown
    #[arg(long, value_name = "SIZE", default_value = "1G", value_parser = rate)]
    pub rate: u64,
    /// The plan as JSON instead of a table
    #[arg(long)]
    pub json: bool,
    /// What decides the plan.
    #[command(flatten)]
    pub measure: MeasureArgs,
    /// How data moves.
    #[command(flatten)]
    pub way: WayArgs,
    /// Settings that few runs need.
    #[arg(long, value_name = "KEY=VALUE", value_parser = settings::of_plan, help = settings::help("plan"), help_heading = ACCESS)]
    pub set: Vec<Setting>,
}

/// Types that are rewritten.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rewrite {
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
words! { Rewrite:
    All = "all", "every type";
    Scatter = "scatter", "type 0 alone";
}
words! { Termination:
    Geometric = "geometric", "growing batches, one common decision each";
    PerCall = "per-call", "a decision after each call";
}
words! { Verify:
    Ring = "ring", "what the last reads of each pattern left in memory, and a sample of the files";
    Full = "full", "all reads, and every byte of every file";
}
words! { CollectivePolicy:
    Auto = "auto", "two-phase where ranks share sectors or new blocks, else independent";
    Independent = "independent", "every rank at its own offsets";
    TwoPhase = "two-phase", "exchange, then aligned domains";
    #[cfg(feature = "test-hooks")]
    UnsafeReadModifyWrite = "unsafe-read-modify-write", "";
}
words! { Buffers:
    Cold = "cold", "memory that was not used just before";
    Reused = "reused", "one window for all calls";
}
words! { RepeatPolicy:
    Off = "off", "the run ends after the first pass";
    Auto = "auto", "types are measured again until T is over, for intervals of values";
    Rounds = "rounds", "patterns with fewer than three rounds are measured twice again, for intervals of ratios";
}
words! { PreallocatePolicy:
    Auto = "auto", "native where the file system can";
    Native = "native", "blocks and length, by fallocate";
    Zeros = "zeros", "native, and zeros before chunks below a block";
    Size = "size", "the length alone, by ftruncate";
    Off = "off", "each write makes the file longer";
}
#[cfg(feature = "test-hooks")]
words! { Inject:
    Flip = "flip", "one bit of one word is turned over";
    OtherRank = "other-rank", "a chunk holds another rank's data";
    Stale = "stale", "a chunk holds the first write after the rewrite";
    Zero = "zero", "a chunk becomes zeros";
    Hole = "hole", "a chunk goes out of the file";
    Swap = "swap", "two places change their data";
    Misplaced = "misplaced", "a chunk holds the data of another place";
}
#[cfg(feature = "test-hooks")]
words! { InjectAt:
    Write = "write", "on the way of the first write";
    AfterWrite = "after-write", "before the rewrite";
    Rewrite = "rewrite", "on the way of the rewrite";
    AfterRewrite = "after-rewrite", "before the read";
    Read = "read", "on the way of the read";
    AfterRead = "after-read", "after the read";
}

/// The usual values; the others are settings.
fn usual_room() -> impl TypedValueParser<Value = PreallocatePolicy> {
    let usual = [PreallocatePolicy::Auto, PreallocatePolicy::Native, PreallocatePolicy::Off];
    PossibleValuesParser::new(usual.iter().filter_map(ValueEnum::to_possible_value))
        .try_map(|word| PreallocatePolicy::from_str(&word, false))
}

/// Bytes per second; `/s` may be written.
pub(crate) fn rate(text: &str) -> Result<u64, String> {
    let rate = options::size(text.strip_suffix("/s").unwrap_or(text))?;
    if rate == 0 {
        return Err("at 0 bytes per second nothing would ever be written; give the speed you expect, e.g. 1G".into());
    }
    Ok(rate)
}

/// `5%`, or 5.
pub(crate) fn percentage(text: &str) -> Result<f64, String> {
    match text.strip_suffix('%').unwrap_or(text).trim().parse::<f64>() {
        Ok(percent) if percent > 0.0 && percent <= 100.0 => Ok(percent),
        Ok(_) => Err("a share of the value is above 0% and at most 100%".into()),
        Err(_) => Err(format!("'{text}' is not a number; write a percentage such as 5%")),
    }
}

/// A size, or a percentage of the free space.
pub(crate) fn space_limit(text: &str) -> Result<SpaceLimit, String> {
    let Some(number) = text.strip_suffix('%') else {
        return match options::size(text)? {
            0 => {
                Err("without any space nothing can be written; give a size such as 200G or a percentage such as 80%"
                    .into())
            }
            bytes => Ok(SpaceLimit::Bytes(bytes)),
        };
    };
    match number.trim().parse::<f64>() {
        Ok(percent) if percent > 0.0 && percent <= 100.0 => Ok(SpaceLimit::Percent(percent)),
        Ok(_) => Err("a percentage of the free space is above 0% and at most 100%".into()),
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
            return Err("a partition of 0 ranks measures nothing; sizes begin at 1".into());
        }
        if sizes.contains(&size) {
            return Err(format!("the partition of {size} ranks is listed twice; name each size once"));
        }
        sizes.push(size);
    }
    Ok(Partitions::List(sizes))
}

pub(crate) const IO: &str = concat!(
    "Examples:
  A value that may be compared with other systems (release 1: 15 minutes):
      mpirun -n 16 beff-raw io -T 15m --path /scratch --out scratch
  MPI-IO beside the kernel's interfaces, past the page cache where possible:
      mpirun -n 4 beff-raw io --backend mpiio,posix,uring --direct auto --depth 64 --path /scratch
  As release 2.1 did it, half an hour for each of its three partitions, with hints:
      mpirun -n 64 beff-raw io --release 2.1 -T 90m --hints hints.txt --path /scratch

",
    common_help!()
);

pub(crate) const PLAN: &str = concat!(
    "Examples:
  Schedule and sizes of the default run on 4 ranks:
      beff-raw plan --ranks 4
  Would a comparable run on 1024 ranks at 20 GiB/s fit into 100 TiB?
      beff-raw plan --ranks 1024 --rate 20G -T 15m --space 100T
  The partitions of release 2.1 on 142 ranks, for a script:
      beff-raw plan --ranks 142 --release 2.1 -T 90m --json

",
    common_help!()
);
