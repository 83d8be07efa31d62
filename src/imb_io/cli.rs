//! Options of `beff-raw imb`. [`super::config_build`] derives the configuration, [`super::legacy`] translates the
//! spellings of the release.

use std::path::PathBuf;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::Args;

use crate::frame::backends;
use crate::frame::config::{CachePolicy, DirectPolicy, RepetitionPolicy};
use crate::frame::options::{
    self, common_help, words, BindArgs, DirectAlignArgs, InjectArgs, ProgressArgs, StorageArgs, TimeLimitArgs,
    DEFAULT_SEED, HEADING_ACCESS, HEADING_CHECKS, HEADING_FILES, HEADING_MEASUREMENT, HEADING_OUTPUT,
};
use crate::frame::variants::{self, VariantOption};
use crate::imb_io::config::{InitialFileState, IterationBuffers, Multi};
use crate::imb_io::plan::{IterationPolicy, ModeChoice};

/// Options of `imb`.
#[derive(Clone, Debug, Args)]
pub struct ImbArgs {
    /// Benchmarks to run, in this order; case does not matter [default: the 37 of the release]
    #[arg(value_name = "NAMES", value_delimiter = ',')]
    pub names: Vec<String>,
    /// What is measured.
    #[command(flatten)]
    pub measure: ImbMeasureArgs,
    /// How the rows are measured.
    #[command(flatten)]
    pub access: ImbAccessArgs,
    /// Where the results go.
    #[command(flatten)]
    pub output: ImbOutputArgs,
}

/// Options that decide the rows.
#[derive(Clone, Debug, Args)]
pub struct ImbMeasureArgs {
    /// How to reach the storage.
    #[arg(long, value_name = "NAMES", value_delimiter = ',', default_value = "mpiio", help_heading = HEADING_MEASUREMENT,
        value_parser = backends::canonical_name,
        help = format!("How to reach the storage: {}. Several, separated by commas, run each row in turn; rows that \
            a backend does not support are marked as not run, see --list", backends::list_for_help(|row| row.grows_files)))]
    pub backend: Vec<String>,
    /// Ranks of the first row of P and C; doubled for each further row, up to all ranks. More than available: all ranks only
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..),
        help_heading = HEADING_MEASUREMENT)]
    pub npmin: u64,
    /// Run several groups of ranks at the same time, as many as fit [default: one group, the other ranks wait]
    #[arg(long, value_enum, value_name = "WHICH", help_heading = HEADING_MEASUREMENT)]
    pub multi: Option<Multi>,
    /// Maximum iterations of each size: number, total volume in MiB, number in non-aggregate mode, policy (see
    /// --iter-policy) [default: 1000,40,100,dynamic]
    #[arg(long, value_name = "N[,VOLUME[,NONAGGR[,POLICY]]]", help_heading = HEADING_MEASUREMENT)]
    pub iter: Option<String>,
    /// What reduces the iterations further [default: dynamic]
    #[arg(long, alias = "iter_policy", value_enum, value_name = "POLICY", ignore_case = true, help_heading = HEADING_MEASUREMENT)]
    pub iter_policy: Option<IterationPolicy>,
    /// Time limit of a row, including its preparation: iterations are reduced by an estimate, from a pilot measurement of
    /// each row that may approach the limit. A row has at least one iteration [default: 10s]
    #[arg(long, short = 'T', value_name = "TIME", value_parser = options::parse_seconds, help_heading = HEADING_MEASUREMENT)]
    pub time: Option<f64>,
    /// Time limit of the run.
    #[command(flatten)]
    pub limit: TimeLimitArgs,
    /// Repeat the measurement of the rows, round by round, with the same iterations on files of the same state, for a 95 %
    /// confidence interval of every row. N: number of repetitions; auto: until the interval of a row is as narrow as --until,
    /// or the --time of the row is used by all its rounds together. The row keeps its first measurement [default: off; with
    /// --variant auto]
    #[arg(long, value_name = "auto|off|N", value_parser = options::parse_repetitions, help_heading = HEADING_MEASUREMENT)]
    pub repeat: Option<RepetitionPolicy>,
    /// End the repetitions of a row when the half-width of its 95 % interval is at most this share of the mean, e.g. 5%; at
    /// least five rounds [default: 5% with --repeat auto, else never]
    #[arg(long, value_name = "PERCENT", value_parser = options::parse_percent, help_heading = HEADING_MEASUREMENT)]
    pub until: Option<f64>,
    /// Variants.
    #[arg(long, value_name = "NAME:KEY=VALUE,...", value_parser = variants::parse,
        help = variants::help("direct=POLICY and depth=N, as of the options of this name"), help_heading = HEADING_MEASUREMENT)]
    pub variant: Vec<VariantOption>,
    /// Position of the sync of blocking writes; benchmarks with a single mode keep it
    #[arg(long, alias = "aggregate_mode", value_enum, value_name = "MODE", default_value = "multi", ignore_case = true,
        help_heading = HEADING_MEASUREMENT)]
    pub aggregate_mode: ModeChoice,
    /// Initial state of files that are written. existing: a file of full length, filled outside the timed loop, is overwritten,
    /// as in the release; new: an empty file grows, which includes block allocation and more to sync
    #[arg(long, value_enum, value_name = "WHICH", default_value = "existing", help_heading = HEADING_MEASUREMENT)]
    pub file: InitialFileState,
    /// Memory of the iterations. reused: one buffer for all, as in the release; of reads the last one is compared, then all are
    /// repeated for comparison outside the timed loop. cold: cache-cold memory for each, every read is compared. Pending reads
    /// never share memory
    #[arg(long, value_enum, value_name = "WHICH", default_value = "reused", help_heading = HEADING_MEASUREMENT)]
    pub buffers: IterationBuffers,
    /// Read sample sizes from a file: bytes, or with K, M, G; separated by blanks, commas or line ends
    #[arg(long, value_name = "FILE", conflicts_with = "msglog", help_heading = HEADING_MEASUREMENT)]
    pub msglen: Option<PathBuf>,
    /// Sizes 0 and 2^MIN to 2^MAX bytes, MAX at most 30 [default: 0:22]
    #[arg(long, value_name = "[MIN:]MAX", help_heading = HEADING_MEASUREMENT)]
    pub msglog: Option<String>,
    /// Additional benchmarks to run
    #[arg(long, value_name = "LIST", value_delimiter = ',', help_heading = HEADING_MEASUREMENT)]
    pub include: Vec<String>,
    /// Benchmarks not to run
    #[arg(long, value_name = "LIST", value_delimiter = ',', help_heading = HEADING_MEASUREMENT)]
    pub exclude: Vec<String>,
    /// A file with names of benchmarks, run after NAMES; # begins a comment
    #[arg(long, value_name = "FILE", help_heading = HEADING_MEASUREMENT)]
    pub input: Option<PathBuf>,
    /// Options of the release that have no effect, each with its value; see the translation of its command lines
    #[arg(long, hide = true, allow_hyphen_values = true, value_name = "OPTION", help_heading = HEADING_MEASUREMENT)]
    pub not_applied: Vec<String>,
    /// Directory on the storage to measure, visible to all ranks
    #[arg(long, value_name = "DIR", default_value = ".", help_heading = HEADING_FILES)]
    pub path: PathBuf,
    /// Name of the directory created under --path for the files; refused if it exists [default: from time and process id]
    #[arg(long, value_name = "NAME", help_heading = HEADING_FILES)]
    pub run_dir: Option<String>,
    /// Keep the files of the last row of each benchmark
    #[arg(long, help_heading = HEADING_FILES)]
    pub keep_files: bool,
    /// Storage sheet.
    #[command(flatten)]
    pub sheet: StorageArgs,
}

/// Options that change how the rows are measured.
#[derive(Clone, Debug, Args)]
pub struct ImbAccessArgs {
    /// Bypass the page cache (O_DIRECT) in posix and uring. required: rows that cannot be direct are not run; auto: direct
    /// where the alignment allows it, reported for each row; off: always through the cache
    #[arg(long, value_enum, value_name = "POLICY", default_value = "by-backend", help_heading = HEADING_ACCESS)]
    pub direct: DirectPolicy,
    /// Alignment of direct transfers.
    #[command(flatten)]
    pub alignment: DirectAlignArgs,
    /// Maximum operations in flight, 1 to 4096 (uring) [default: 32]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=4096), help_heading = HEADING_ACCESS)]
    pub depth: Option<u32>,
    /// Page cache before reads of the file that was just written. drop: drop its pages outside the timed loop; keep: leave
    /// them, as in the release, so that reads come from memory. The source of reads is reported anyway
    #[arg(long, value_name = "POLICY", default_value = "drop", help_heading = HEADING_ACCESS,
        value_parser = PossibleValuesParser::new(["drop", "keep"]).map(|word| cache_policy(&word)))]
    pub cache: CachePolicy,
    /// An MPI-IO hint for every file (mpiio); overrides --hints
    #[arg(long = "hint", value_name = "KEY=VALUE", value_parser = options::parse_key_value, help_heading = HEADING_ACCESS)]
    pub hint: Vec<(String, String)>,
    /// MPI-IO hints for every file, one per line: key, value; # begins a comment (mpiio)
    #[arg(long, value_name = "FILE", help_heading = HEADING_ACCESS)]
    pub hints: Option<PathBuf>,
    /// Open with MPI_MODE_UNIQUE_OPEN (mpiio)
    #[arg(long, help_heading = HEADING_ACCESS)]
    pub unique_open: bool,
    /// Binding of the ranks.
    #[command(flatten)]
    pub ranks: BindArgs,
    /// After the rows, run the benchmarks with blocking calls at known offsets in turns with bare C loops of the same MPI
    /// calls, and show the overhead of this program (mpiio)
    #[arg(long, help_heading = HEADING_CHECKS)]
    pub bare: bool,
    /// Seed of the data; two runs with the same seed write the same bytes
    #[arg(long, value_name = "N", default_value_t = DEFAULT_SEED, help_heading = HEADING_CHECKS)]
    pub seed: u64,
    /// Fault injection.
    #[command(flatten)]
    pub inject: InjectArgs,
}

/// Options of the output.
#[derive(Clone, Debug, Args)]
pub struct ImbOutputArgs {
    /// Show all benchmarks, their MPI calls and the backends that support them, and exit; needs no MPI
    #[arg(long, help_heading = HEADING_OUTPUT)]
    pub list: bool,
    /// Show the rows for N ranks and exit; needs no MPI
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..), help_heading = HEADING_OUTPUT)]
    pub plan: Option<u64>,
    /// Print the columns of the release instead of the tables of this program, for scripts that read them
    #[arg(long, conflicts_with_all = ["full", "details"], help_heading = HEADING_OUTPUT)]
    pub imb_format: bool,
    /// Print all tables, warnings and settings, not one screen
    #[arg(long, help_heading = HEADING_OUTPUT)]
    pub full: bool,
    /// The same with more about each size: sync, bytes moved, compared and wrong, share of reads from storage, real time; and
    /// the calls used
    #[arg(long, help_heading = HEADING_OUTPUT)]
    pub details: bool,
    /// Write PREFIX.jsonl (journal, updated during the run), PREFIX.json, PREFIX.csv and PREFIX.imb (the columns of the
    /// release) [default: stdout only].
    /// {date} and {host} in it are replaced
    #[arg(long, value_name = "PREFIX", value_parser = options::output_prefix_parser(), help_heading = HEADING_OUTPUT)]
    pub out: Option<PathBuf>,
    /// Progress display.
    #[command(flatten)]
    pub progress: ProgressArgs,
}

/// The cache policies of `io` that IMB-IO supports.
fn cache_policy(word: &str) -> CachePolicy {
    if word == "keep" {
        CachePolicy::Keep
    } else {
        CachePolicy::Drop
    }
}

words! { Multi:
    Slowest = "0", "one line for all groups, of the slowest one";
    Each = "1", "one line for each group";
}
words! { InitialFileState:
    Existing = "existing", "of full length, overwritten";
    New = "new", "empty";
}
words! { IterationBuffers:
    Reused = "reused", "one buffer for all iterations";
    Cold = "cold", "cache-cold memory for each iteration";
}
words! { IterationPolicy:
    Dynamic = "dynamic", "the time limit";
    MultipleNp = "multiple_np" or "multiple-np", "the time limit, and no more than the previous size had";
    Auto = "auto", "as dynamic";
    Off = "off", "nothing";
    Set = "set", "nothing, not even the volume: exactly the number given";
}
words! { ModeChoice:
    Both = "multi" or "multiple", "both, one after the other";
    Aggregate = "aggregate", "one sync after all iterations";
    NonAggregate = "non_aggregate" or "non-aggregate", "a sync after each iteration";
}

pub(crate) const AFTER_HELP: &str = concat!(
    "Examples:
  The 37 benchmarks of the release on 1, 2, 4, ... and all ranks, saved to imb.json:
      mpirun -n 8 beff-raw imb --path /scratch --out imb
  The options of a command line of the release:
      mpirun -n 4 beff-raw imb -npmin 4 -msglog 16:22 -iter 100,40 -time 3 P_Write_Indv C_Write_Indv
  One benchmark through MPI-IO and below it:
      mpirun -n 4 beff-raw imb P_Write_Expl --backend mpiio,posix,uring --path /scratch
  The columns of the release, for a script that reads them:
      mpirun -n 4 beff-raw imb S_Read_Indv --imb-format > s_read.txt

Options of the release may be spelled with one dash. As in the release, files have their full length
before they are written (--file), all iterations use one buffer (--buffers), and t_pure is the blocking
call. Differences from the release:
  - The count of every transfer is checked and data is compared. A row with a short transfer is an
    error and has no time; the release counts reads beyond the end of the file as fast reads.
  - Reads do not use pages that the preparation left in the cache, unless with --cache keep.
  - Each iteration has its own offset in the file, each pending read its own memory.
  - Bandwidths of P_*_Priv are computed from the bytes moved, and their ranks begin together.
  - Files are in a run directory under --path and are removed, unless with --keep-files.
  - Names of --include and --exclude are separated by commas.
  - -mem, -off_cache, -imb_barrier, -warm_up, -msg_pause and -thread_level have no effect, nor
    has -time with -iter_policy off; a message on stderr says so.
  - -map, -dump and -load are refused.

",
    common_help!()
);
