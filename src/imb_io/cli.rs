//! Options of `beff-raw imb`. [`super::config_build`] makes of them what will run, [`super::legacy`] understands the
//! spellings of the release.

use std::path::PathBuf;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::Args;

use crate::frame::backends;
use crate::frame::config::{CachePolicy, DirectPolicy, Repeat};
use crate::frame::options::{
    self, common_help, words, BindArgs, InjectArgs, ProgressArgs, ACCESS, DEFAULT_SEED, MEASURED, OUTPUT, PLACE, TRUST,
};
use crate::imb_io::config::{Buffers, FileState, Multi};
use crate::imb_io::plan::{ModeChoice, Policy};

/// Options of `imb`.
#[derive(Clone, Debug, Args)]
pub struct ImbArgs {
    /// Benchmarks to run, in this order, in any case of letters [default: the 37 of the release]
    #[arg(value_name = "NAMES", value_delimiter = ',')]
    pub names: Vec<String>,
    /// What is measured.
    #[command(flatten)]
    pub measure: ImbMeasureArgs,
    /// How it is measured.
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
    #[arg(long, value_name = "NAMES", value_delimiter = ',', default_value = "mpiio", help_heading = MEASURED,
        value_parser = backends::named,
        help = format!("How to reach the storage: {}. Several, separated by commas, run each row one after the other; what \
            a backend cannot do is marked as not run. --list tells who can", backends::listed(|row| row.grows_files)))]
    pub backend: Vec<String>,
    /// Ranks of the first row of P and C; then twice as many, and so on, and all. More than there are: all ranks only
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..),
        help_heading = MEASURED)]
    pub npmin: u64,
    /// Several groups of ranks at the same time, as many as fit [default: one group, the other ranks wait]
    #[arg(long, value_enum, value_name = "WHICH", help_heading = MEASURED)]
    pub multi: Option<Multi>,
    /// Repetitions of each size at most: number, volume of all of them in MiB, number in non-aggregate mode, policy (see
    /// --iter-policy) [default: 1000,40,100,dynamic]
    #[arg(long, value_name = "N[,VOLUME[,NONAGGR[,POLICY]]]", help_heading = MEASURED)]
    pub iter: Option<String>,
    /// What reduces the repetitions further [default: dynamic]
    #[arg(long, alias = "iter_policy", value_enum, value_name = "POLICY", ignore_case = true, help_heading = MEASURED)]
    pub iter_policy: Option<Policy>,
    /// Time limit of a row, its preparation included: repetitions are reduced by an estimate, from a trial of each row that
    /// may come near the limit. A row has one repetition at least [default: 10s]
    #[arg(long, short = 'T', value_name = "TIME", value_parser = options::seconds, help_heading = MEASURED)]
    pub time: Option<f64>,
    /// Measure the rows again, round after round behind the first one, each time with as many repetitions on files of the same
    /// state, for a 95 % interval of every row. N: so many times; auto: a row until its interval is as narrow as --until says, or
    /// the --time of a row is used up, all its rounds together. The row stays what the first round measured
    #[arg(long, value_name = "auto|off|N", value_parser = options::repeat, default_value = "off", help_heading = MEASURED)]
    pub repeat: Repeat,
    /// Measure a row no more when its 95 % interval reaches no farther than this from its mean, e.g. 5%; five rounds at least
    /// [default: 5% with --repeat auto, else never]
    #[arg(long, value_name = "PERCENT", value_parser = options::percent, help_heading = MEASURED)]
    pub until: Option<f64>,
    /// Where the sync of blocking writes belongs; what has one mode only keeps it
    #[arg(long, alias = "aggregate_mode", value_enum, value_name = "MODE", default_value = "multi", ignore_case = true,
        help_heading = MEASURED)]
    pub aggregate_mode: ModeChoice,
    /// What writes find. existing: a file with all its bytes, written before, outside the clock, that are overwritten, as in the
    /// release; new: an empty file that grows, which has blocks to find and more to sync
    #[arg(long, value_enum, value_name = "WHICH", default_value = "existing", help_heading = MEASURED)]
    pub file: FileState,
    /// Memory of the repetitions. reused: one buffer for all, as in the release; of reads the last one is compared, and a second
    /// pass over the file, outside the clock. cold: memory of its own for each, compared as it came. Pending reads never share any
    #[arg(long, value_enum, value_name = "WHICH", default_value = "reused", help_heading = MEASURED)]
    pub buffers: Buffers,
    /// Sizes of the samples from a file: bytes, or with K, M, G; between blanks, commas or lines
    #[arg(long, value_name = "FILE", conflicts_with = "msglog", help_heading = MEASURED)]
    pub msglen: Option<PathBuf>,
    /// Sizes 0 and 2^MIN to 2^MAX bytes, MAX at most 30 [default: 0:22]
    #[arg(long, value_name = "[MIN:]MAX", help_heading = MEASURED)]
    pub msglog: Option<String>,
    /// Benchmarks to run besides
    #[arg(long, value_name = "LIST", value_delimiter = ',', help_heading = MEASURED)]
    pub include: Vec<String>,
    /// Benchmarks not to run
    #[arg(long, value_name = "LIST", value_delimiter = ',', help_heading = MEASURED)]
    pub exclude: Vec<String>,
    /// A file with names of benchmarks, run behind NAMES; # begins a comment
    #[arg(long, value_name = "FILE", help_heading = MEASURED)]
    pub input: Option<PathBuf>,
    /// Directory on the storage to measure, seen by all ranks
    #[arg(long, value_name = "DIR", default_value = ".", help_heading = PLACE)]
    pub path: PathBuf,
    /// Name of the directory made under --path for the files; refused if it exists [default: made from time and process]
    #[arg(long, value_name = "NAME", help_heading = PLACE)]
    pub run_dir: Option<String>,
    /// Leave the files of the last row of each benchmark in place
    #[arg(long, help_heading = PLACE)]
    pub keep_files: bool,
}

/// Options that change how the rows are measured.
#[derive(Clone, Debug, Args)]
pub struct ImbAccessArgs {
    /// Bypass the page cache (O_DIRECT) in posix and uring. required: what cannot be direct is not run; auto: direct where
    /// the alignment allows it, reported for each row; off: always through the cache
    #[arg(long, value_enum, value_name = "POLICY", default_value = "by-backend", help_heading = ACCESS)]
    pub direct: DirectPolicy,
    /// Operations in flight at most, 1 to 4096 (uring) [default: 32]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=4096), help_heading = ACCESS)]
    pub depth: Option<u32>,
    /// What is done about the page cache before reads, whose file was just written. drop: its pages are dropped, outside
    /// the clock; keep: nothing, as in the release: reads come from memory. Where they came from is reported anyway
    #[arg(long, value_name = "POLICY", default_value = "drop", help_heading = ACCESS,
        value_parser = PossibleValuesParser::new(["drop", "keep"]).map(|word| cache(&word)))]
    pub cache: CachePolicy,
    /// An MPI-IO hint for every file (mpiio); wins over --hints
    #[arg(long = "hint", value_name = "KEY=VALUE", value_parser = options::key_value, help_heading = ACCESS)]
    pub hint: Vec<(String, String)>,
    /// MPI-IO hints for every file, one per line: key, value; # begins a comment (mpiio)
    #[arg(long, value_name = "FILE", help_heading = ACCESS)]
    pub hints: Option<PathBuf>,
    /// Open with MPI_MODE_UNIQUE_OPEN (mpiio)
    #[arg(long, help_heading = ACCESS)]
    pub unique_open: bool,
    /// Where ranks run.
    #[command(flatten)]
    pub ranks: BindArgs,
    /// After the rows, run some of them in turns with bare C loops of the same MPI calls, and show what this program costs
    /// beside them (mpiio)
    #[arg(long, help_heading = TRUST)]
    pub bare: bool,
    /// Seed of the data; two runs with the same seed write the same bytes
    #[arg(long, value_name = "N", default_value_t = DEFAULT_SEED, help_heading = TRUST)]
    pub seed: u64,
    /// Damage on purpose.
    #[command(flatten)]
    pub damage: InjectArgs,
}

/// Options about what is shown.
#[derive(Clone, Debug, Args)]
pub struct ImbOutputArgs {
    /// Show all benchmarks, their MPI calls and the backends that can run them, and end; no MPI needed
    #[arg(long, help_heading = OUTPUT)]
    pub list: bool,
    /// Show the rows for N ranks and end; no MPI needed
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..), help_heading = OUTPUT)]
    pub plan: Option<u64>,
    /// Print the columns of the release instead of our tables, for scripts that read them
    #[arg(long, conflicts_with_all = ["full", "details"], help_heading = OUTPUT)]
    pub imb_format: bool,
    /// Print all tables, warnings and settings, not one screen
    #[arg(long, help_heading = OUTPUT)]
    pub full: bool,
    /// The same with more about each size: sync, bytes moved, compared and wrong, share of reads that came from storage, real time;
    /// and the calls used
    #[arg(long, help_heading = OUTPUT)]
    pub details: bool,
    /// Write PREFIX.jsonl (journal, kept up to date during the run), PREFIX.json, PREFIX.csv and PREFIX.imb (the
    /// columns of the release); without it only stdout.
    /// {date} and {host} in it are filled in
    #[arg(long, value_name = "PREFIX", value_parser = options::prefix(), help_heading = OUTPUT)]
    pub out: Option<PathBuf>,
    /// What is told meanwhile.
    #[command(flatten)]
    pub progress: ProgressArgs,
}

/// Of the policies of `io`, those that mean something here.
fn cache(word: &str) -> CachePolicy {
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
words! { FileState:
    Existing = "existing", "all bytes are there and are overwritten";
    New = "new", "empty";
}
words! { Buffers:
    Reused = "reused", "one buffer for all repetitions";
    Cold = "cold", "memory of its own for each repetition";
}
words! { Policy:
    Dynamic = "dynamic", "the time limit";
    MultipleNp = "multiple_np" or "multiple-np", "the time limit, and no more than the size before had";
    Auto = "auto", "as dynamic";
    Off = "off", "nothing";
    Set = "set", "nothing, and the volume does not count: exactly the number given";
}
words! { ModeChoice:
    Both = "multi" or "multiple", "both, one after the other";
    Aggregate = "aggregate", "one sync behind all repetitions";
    NonAggregate = "non_aggregate" or "non-aggregate", "a sync behind each repetition";
}

pub(crate) const IMB: &str = concat!(
    "Examples:
  The 37 benchmarks of the release on 1, 2, 4, ... and all ranks, kept in imb.json:
      mpirun -n 8 beff-raw imb --path /scratch --out imb
  A command line of the release, as it is behind the name of the program:
      mpirun -n 4 beff-raw imb -npmin 4 -msglog 16:22 -iter 100,40 -time 3 P_Write_Indv C_Write_Indv
  One benchmark through MPI-IO and beneath it:
      mpirun -n 4 beff-raw imb P_Write_Expl --backend mpiio,posix,uring --path /scratch
  The columns of the release, for a script that reads them:
      mpirun -n 4 beff-raw imb S_Read_Indv --imb-format > s_read.txt

Options of the release may be spelled with one dash. As in the release, files are there with all
their bytes before they are written (--file), all repetitions have one buffer (--buffers), and t_pure is
the blocking call. What differs from it:
  - The count of every transfer is checked and data is compared. A row with a short transfer is an
    error and has no time; the release counts reads behind the end of the file as fast ones.
  - Reads do not come from the pages that the preparation left in the cache; --cache keep lets them.
  - Each repetition has a place of its own in the file, each pending read memory of its own.
  - Bandwidths of P_*_Priv are those of the bytes that were moved, and their ranks begin together.
  - The files lie in a directory of the run under --path and are removed; --keep-files leaves them.
  - Names of --include and --exclude are joined by commas.

",
    common_help!()
);
