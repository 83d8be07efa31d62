//! What the user typed. [`crate::config_build`] makes of it what will run.

pub mod comm;
mod help;
pub mod imb;
pub mod legacy;
pub mod values;

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

use crate::config::{
    CachePolicy, CollectivePolicy, DirectPolicy, ExchangePolicy, Inject, Partitions, Release, SpaceLimit, Termination,
    Verify,
};
use crate::error::UsageError;
use values::{ReportFormat, Rewrite};

/// Seed of the data when none is given: the day of the Euro-Par 2000 paper, so that two runs write the same bytes.
pub const DEFAULT_SEED: u64 = 20_000_829;

const MEASURED: &str = "What is measured";
const PLACE: &str = "Where the files go";
const ACCESS: &str = "How the files are accessed";
const TRUST: &str = "Checks";
const OUTPUT: &str = "Output";

/// Effective parallel-I/O bandwidth (b_eff_io) through MPI-IO, POSIX, io_uring and mmap.
///
/// Measures how fast the ranks of a parallel program write, rewrite and read files in 43 access patterns, and condenses
/// that to one number. Several backends in one run show how much of what the storage can do reaches MPI-IO.
/// Without a command, `io` runs.
#[derive(Clone, Debug, Parser)]
#[command(name = "beff-raw", version, args_conflicts_with_subcommands = true, disable_help_subcommand = true)]
#[command(after_help = help::MAIN, max_term_width = 110)]
pub struct Cli {
    /// The command; none: `io` with the options below.
    #[command(subcommand)]
    pub command: Option<Command>,
    /// Options of `io`.
    #[command(flatten)]
    pub io: IoArgs,
}

impl Cli {
    /// The command to run: `io` if none was typed.
    #[must_use]
    pub fn into_command(self) -> Command {
        self.command.unwrap_or_else(|| Command::Io(Box::new(self.io)))
    }
}

/// The command of these arguments.
///
/// # Errors
/// What there is to say where they ask for help or are no command line.
pub fn parse(args: impl IntoIterator<Item = OsString>) -> Result<Command, NoCommand> {
    let args = legacy::translate(args.into_iter().collect()).map_err(NoCommand::Refused)?;
    Cli::try_parse_from(args).map(Cli::into_command).map_err(NoCommand::Said)
}

/// What there is instead of a command.
#[derive(Debug)]
pub enum NoCommand {
    /// What [`legacy::translate`] refuses.
    Refused(UsageError),
    /// Help, version or an error, with their own streams and exit codes.
    Said(clap::Error),
}

/// The commands.
#[derive(Clone, Debug, Subcommand)]
pub enum Command {
    /// Measure b_eff_io (the default command; start it with mpirun)
    #[command(after_help = help::IO)]
    Io(Box<IoArgs>),
    /// Measure b_eff, the effective bandwidth of communication (start it with mpirun)
    #[command(after_help = help::COMM)]
    Comm(Box<comm::CommArgs>),
    /// Run the benchmarks of IMB-IO: single MPI-IO calls by size (start it with mpirun)
    #[command(after_help = help::IMB)]
    Imb(Box<imb::ImbArgs>),
    /// Show what would run: schedule, bytes, file sizes, memory, for any number of ranks; no MPI needed
    #[command(after_help = help::PLAN)]
    Plan(Box<PlanArgs>),
    /// Show results again from their files, also those of a run that was killed; no MPI needed
    #[command(after_help = help::REPORT)]
    Report(ReportArgs),
    /// Show what this build and this machine can do, and what is missing
    #[command(after_help = help::INFO)]
    Info(InfoArgs),
}

/// Options of `io`.
#[derive(Clone, Debug, Args)]
pub struct IoArgs {
    /// What decides the plan.
    #[command(flatten)]
    pub measure: MeasureArgs,
    /// What else decides the run.
    #[command(flatten)]
    pub run: RunArgs,
    /// Print one line for each pattern, not only the values of the types
    #[arg(long, help_heading = OUTPUT)]
    pub details: bool,
    /// No progress on stderr
    #[arg(long, short, help_heading = OUTPUT)]
    pub quiet: bool,
}

/// Options that decide what is planned; common to `io` and `plan`.
#[derive(Clone, Debug, Args)]
pub struct MeasureArgs {
    /// How to reach the storage: mpiio, posix, uring, mmap or null (moves nothing: cost of the program itself). Several,
    /// separated by commas, take turns pattern by pattern and are reported side by side
    #[arg(long, value_name = "NAMES", value_delimiter = ',', default_value = "mpiio", help_heading = MEASURED)]
    pub backend: Vec<String>,
    /// Scheduled time T of each backend: of one partition (releases 0.5 and 1) or of all partitions together (2.1). A
    /// comparable value needs 10m (0.5), 15m (1), or 30m for each partition (2.1)
    #[arg(long, short = 'T', value_name = "TIME", default_value = "60s", value_parser = values::seconds,
        help_heading = MEASURED)]
    pub time: f64,
    /// Definition of b_eff_io that sets the schedule, the default partitions and the validity; the values of all three
    /// are shown anyway
    #[arg(long, value_enum, value_name = "RELEASE", default_value = "1", help_heading = MEASURED)]
    pub release: Release,
    /// Numbers of ranks to measure with: `all`, `small,medium,all` (formula of release 2.1), or a list such as 1,4,16.
    /// A partition of n is ranks 0 to n-1, the others wait [default: all; for release 2.1 small,medium,all]
    #[arg(long, value_name = "WHICH", value_parser = values::partitions, help_heading = MEASURED)]
    pub partitions: Option<Partitions>,
    /// Pattern types: 0 scattered, collective; 1 shared file pointer; 2 one file per rank; 3 segments; 4 segments,
    /// collective. Types 3 and 4 take their sizes from 0, 1 and 2, so at least one of these must run
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "0,1,2,3,4", help_heading = MEASURED)]
    pub types: Vec<u8>,
    /// Types that are rewritten: all, or only the scattered one (type 0) [default: all; for release 2.1 scatter]
    #[arg(long, value_enum, value_name = "TYPES", help_heading = MEASURED)]
    pub rewrite: Option<Rewrite>,
    /// Type 1 without the shared file pointer: a strided view, one chunk per collective call
    #[arg(long, help_heading = MEASURED)]
    pub no_shared: bool,
    /// Memory of the unit that one rank runs on; decides the largest chunk, M_PART = max(2M, SIZE / 128) [default:
    /// memory of the node or of its control group, divided by the ranks on it]
    #[arg(long, value_name = "SIZE", value_parser = values::size, help_heading = MEASURED)]
    pub memory_per_process: Option<u64>,
    /// Segments of types 3 and 4 are rounded up to a multiple of SIZE, itself a multiple of 8; give the striping unit of
    /// the file system if it is larger
    #[arg(long, value_name = "SIZE", default_value = "1M", value_parser = values::size, help_heading = MEASURED)]
    pub segment_multiple: u64,
    /// How a timed loop ends: batches that grow geometrically with one common decision each, or a decision after each
    /// call as release 2.1 did (slower with small chunks)
    #[arg(long, value_enum, value_name = "HOW", default_value = "geometric", help_heading = MEASURED)]
    pub termination: Termination,
    /// Directory on the storage to measure, seen by all ranks
    #[arg(long, value_name = "DIR", default_value = ".", help_heading = PLACE)]
    pub path: PathBuf,
    /// Storage that all files of the run may take: a size such as 200G, or a percentage of what is free [default: 80% for
    /// a run; `plan` plans without a limit]
    #[arg(long, value_name = "LIMIT", value_parser = values::space_limit, help_heading = PLACE)]
    pub space: Option<SpaceLimit>,
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
    /// Bypass the page cache (O_DIRECT) in posix and uring. required: a pattern that cannot be direct is not run; auto:
    /// direct where the alignment allows it, reported for each pattern; off: always through the cache. mpiio leaves this
    /// to the MPI library (see --hints), mmap is the page cache, null has no files: they refuse `required`
    #[arg(long, value_enum, value_name = "POLICY", default_value = "by-backend", help_heading = ACCESS)]
    pub direct: DirectPolicy,
    /// Operations in flight at most, 1 to 4096 (uring) [default: found by a short calibration for each chunk size]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=4096), help_heading = ACCESS)]
    pub depth: Option<u32>,
    /// Let a kernel thread submit (uring; costs a core)
    #[arg(long, help_heading = ACCESS)]
    pub sqpoll: bool,
    /// What is done about the page cache, so that reads tell about the storage. What of the files was in it before each
    /// pattern is measured and reported whatever the policy; reads from memory are marked
    #[arg(long, value_enum, value_name = "POLICY", default_value = "drop", help_heading = ACCESS)]
    pub cache: CachePolicy,
    /// Collective patterns of posix and uring, which have no collective calls. auto: each rank at its own offsets, or
    /// two-phase where direct I/O would need sectors that ranks share; independent: never two-phase; two-phase: ranks
    /// exchange their data, aggregators move aligned domains of the file
    #[arg(long, value_enum, value_name = "HOW", default_value = "auto", help_heading = ACCESS)]
    pub collective: CollectivePolicy,
    /// Ranks that move data in a two-phase transfer [default: all ranks]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..), help_heading = ACCESS)]
    pub aggregators: Option<u64>,
    /// Bytes one aggregator moves in one step of a two-phase transfer [default: 4M]
    #[arg(long, value_name = "SIZE", value_parser = values::size, help_heading = ACCESS)]
    pub domain: Option<u64>,
    /// How ranks exchange data in a two-phase transfer
    #[arg(long, value_enum, value_name = "HOW", default_value = "auto", help_heading = ACCESS)]
    pub exchange: ExchangePolicy,
    /// MPI-IO hints, one per line: partition, access, pattern type, chunk size, key, value (mpiio)
    #[arg(long, value_name = "FILE", help_heading = ACCESS)]
    pub hints: Option<PathBuf>,
    /// Open with MPI_MODE_UNIQUE_OPEN (mpiio). The definition forbids it: it may delay every sync to the close
    #[arg(long, help_heading = ACCESS)]
    pub unique_open: bool,
    /// Rounds into which each pattern is divided: the backends take turns round by round, and a write ends each round with
    /// its sync; gives the intervals of the ratios [default: 8 with several backends, else 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000), help_heading = TRUST)]
    pub rounds: Option<u32>,
    /// Record the time of every call: median, 99 %, 99.9 % and largest
    #[arg(long, help_heading = TRUST)]
    pub latency: bool,
    /// How much of the data is compared: ring, what the last reads of each pattern left in memory; full, also every byte
    /// of every file, outside the measured time
    #[arg(long, value_enum, value_name = "DEPTH", default_value = "ring", help_heading = TRUST)]
    pub verify: Verify,
    /// Seed of the data; two runs with the same seed write the same bytes
    #[arg(long, value_name = "N", default_value_t = DEFAULT_SEED, help_heading = TRUST)]
    pub seed: u64,
    /// Damage the files between writing and reading, to prove that it is found
    #[arg(long, value_enum, value_name = "DAMAGE", hide = true, help_heading = TRUST)]
    pub inject: Option<Inject>,
    /// Write PREFIX.jsonl (journal, kept up to date during the run), PREFIX.json and further views; without it only
    /// stdout
    #[arg(long, value_name = "PREFIX", help_heading = OUTPUT)]
    pub out: Option<PathBuf>,
}

impl Default for RunArgs {
    /// The values of a command line without any of these options.
    fn default() -> Self {
        Self {
            run_dir: None,
            keep_files: false,
            direct: DirectPolicy::ByBackend,
            depth: None,
            sqpoll: false,
            cache: CachePolicy::Drop,
            collective: CollectivePolicy::Auto,
            aggregators: None,
            domain: None,
            exchange: ExchangePolicy::Auto,
            rounds: None,
            latency: false,
            hints: None,
            unique_open: false,
            verify: Verify::Ring,
            seed: DEFAULT_SEED,
            inject: None,
            out: None,
        }
    }
}

/// Options of `plan`.
#[derive(Clone, Debug, Args)]
pub struct PlanArgs {
    /// Number of ranks of the run
    #[arg(long, short = 'n', value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub ranks: u64,
    /// Assumed speed of all ranks together in bytes per second; decides the bytes and file sizes shown
    #[arg(long, value_name = "SIZE", default_value = "1G", value_parser = values::rate)]
    pub rate: u64,
    /// The plan as JSON instead of a table
    #[arg(long)]
    pub json: bool,
    /// What decides the plan.
    #[command(flatten)]
    pub measure: MeasureArgs,
}

/// Options of `report`.
#[derive(Clone, Debug, Args)]
pub struct ReportArgs {
    /// Results: journals (.jsonl) or documents (.json)
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// One line for each pattern, not only the values of the types (table)
    #[arg(long)]
    pub details: bool,
    /// View to print
    #[arg(long, value_enum, value_name = "FORMAT", default_value = "table")]
    pub format: ReportFormat,
}

/// Options of `info`.
#[derive(Clone, Debug, Args)]
pub struct InfoArgs {
    /// Directory whose storage is looked at
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub path: PathBuf,
}

#[cfg(test)]
#[path = "cli/tests.rs"]
mod tests;
