//! Options of `beff-raw comm` and their conversion to a configuration.

use std::path::PathBuf;

use clap::Args;

use crate::b_eff::config::CommConfig;
use crate::b_eff::plan::{BufferMode, PatternFamily};
use crate::frame::config::{BindPolicy, RepetitionPolicy};
use crate::frame::error::UsageError;
use crate::frame::options::{
    self, common_help, words, BindArgs, InjectArgs, ProgressArgs, TimeLimitArgs, DEFAULT_SEED, HEADING_CHECKS,
    HEADING_MEASUREMENT, HEADING_OUTPUT,
};

/// Default time of the whole measurement in seconds.
pub const DEFAULT_TIME_SECONDS: f64 = 240.0;
/// The same with --quick.
pub const QUICK_TIME_SECONDS: f64 = 10.0;
/// Shortest accepted time in seconds: the pilot alone needs some of it.
const MIN_TIME_SECONDS: f64 = 1.0;

/// Options of `comm`.
#[derive(Clone, Debug, Args)]
pub struct CommArgs {
    /// Time limit of the whole measurement. The expected time is announced after a short pilot measurement; if it exceeds
    /// the limit, the effort is reduced in a fixed order, and a warning reports it [default: 4m, with --quick 10s]
    #[arg(long, short = 'T', value_name = "TIME", value_parser = options::parse_seconds, help_heading = HEADING_MEASUREMENT)]
    pub time: Option<f64>,
    /// Time limit of the run.
    #[command(flatten)]
    pub limit: TimeLimitArgs,
    /// A preliminary measurement in 10 seconds with reduced effort: marked QUICK everywhere, never valid
    #[arg(long, help_heading = HEADING_MEASUREMENT)]
    pub quick: bool,
    /// Families of patterns to measure; the value b_eff requires ring and random
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_enum, default_values_t = PatternFamily::ALL,
        hide_default_value = true, help_heading = HEADING_MEASUREMENT)]
    pub families: Vec<PatternFamily>,
    /// Placement of the messages in memory: cyclic, as defined, walks through six times Lmax; reused sends from the same
    /// few windows, which measures the caches and is never valid
    #[arg(long, value_name = "WHICH", value_enum, default_value_t = BufferMode::Cyclic, help_heading = HEADING_MEASUREMENT)]
    pub buffers: BufferMode,
    /// Use of the time that remains after the three repetitions of the definition. auto: further repetitions of all patterns
    /// in rounds, those with the widest confidence intervals first; N: at most N rounds; off: none. The value is always
    /// that of the three repetitions
    #[arg(long, value_name = "auto|off|N", value_parser = options::parse_repetitions, default_value = "auto", help_heading = HEADING_MEASUREMENT)]
    pub repeat: RepetitionPolicy,
    /// End the repetitions when the half-width of the 95 % interval of b_eff, over single repetitions, is at most this
    /// share of the mean, e.g. 5% [default: at the time limit]
    #[arg(long, value_name = "PERCENT", value_parser = options::parse_percent, help_heading = HEADING_MEASUREMENT)]
    pub until: Option<f64>,
    /// Memory per process; determines the longest message, Lmax = SIZE / 128, at most 128M [default: memory of the node
    /// or of its control group, divided by the ranks on it]
    #[arg(long, value_name = "SIZE", value_parser = options::parse_size, help_heading = HEADING_MEASUREMENT)]
    pub memory_per_process: Option<u64>,
    /// Rmax of LINPACK on this system in Gflop/s, for the balance factor
    #[arg(long, value_name = "GFLOPS", value_parser = options::parse_positive, help_heading = HEADING_MEASUREMENT)]
    pub rmax: Option<f64>,
    /// Binding of ranks.
    #[command(flatten)]
    pub ranks: BindArgs,
    /// Seed of the random rings and of the data; runs with the same seed have the same plan
    #[arg(long, value_name = "N", default_value_t = DEFAULT_SEED, help_heading = HEADING_CHECKS)]
    pub seed: u64,
    /// After the patterns, run ping-pong and the largest ring in turns with bare C loops of the same calls, and report the
    /// overhead of this program at every size; takes 15 seconds more (with --quick 7, the smallest and the largest)
    #[arg(long, help_heading = HEADING_CHECKS)]
    pub bare: bool,
    /// Fault injection.
    #[command(flatten)]
    pub injection: InjectArgs,
    /// Show the plan for N ranks and exit; no MPI needed
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(2..), help_heading = HEADING_OUTPUT)]
    pub plan: Option<u64>,
    /// The plan as JSON instead of a table
    #[arg(long, requires = "plan", help_heading = HEADING_OUTPUT)]
    pub json: bool,
    /// Write PREFIX.jsonl (journal, updated during the run), PREFIX.json and PREFIX.csv; without it only stdout.
    /// {date} and {host} are replaced
    #[arg(long, value_name = "PREFIX", value_parser = options::output_prefix_parser(), help_heading = HEADING_OUTPUT)]
    pub out: Option<PathBuf>,
    /// Print all tables, warnings and settings instead of one screen
    #[arg(long, help_heading = HEADING_OUTPUT)]
    pub full: bool,
    /// As --full, with the curves of all patterns by method
    #[arg(long, help_heading = HEADING_OUTPUT)]
    pub details: bool,
    /// Progress output.
    #[command(flatten)]
    pub progress: ProgressArgs,
}

impl CommArgs {
    /// Converts the options to a configuration.
    ///
    /// # Errors
    /// The first option that cannot be used.
    pub fn config(&self) -> Result<CommConfig, UsageError> {
        let time_seconds = self.time.unwrap_or(if self.quick { QUICK_TIME_SECONDS } else { DEFAULT_TIME_SECONDS });
        if time_seconds < MIN_TIME_SECONDS {
            return Err(UsageError::new(
                format!(
                    "--time {time_seconds} s is too short: the pilot measurement alone takes a good part of a second"
                ),
                format!("Specify at least {MIN_TIME_SECONDS} s."),
            ));
        }
        self.check_until()?;
        let families = PatternFamily::ALL.into_iter().filter(|family| self.families.contains(family)).collect();
        Ok(CommConfig {
            time_seconds,
            time_limit: self.limit.time_limit,
            quick: self.quick,
            seed: self.seed,
            families,
            buffers: self.buffers,
            repeat: self.repeat,
            until_share: self.until,
            memory_per_process_bytes: self.memory_per_process,
            rmax_gflops: self.rmax,
            bind: self.ranks.policy(BindPolicy::Auto),
            out: self.out.clone(),
            bare: self.bare,
            inject: self.injection.is_requested(),
        })
    }

    /// Rejects `--until` if b_eff cannot have the requested interval.
    fn check_until(&self) -> Result<(), UsageError> {
        if self.until.is_none() {
            return Ok(());
        }
        if self.repeat == RepetitionPolicy::Off {
            return Err(UsageError::new(
                "--until ends the repetitions, and --repeat off disables them",
                "Omit one of the two.",
            ));
        }
        let has = |family| self.families.contains(&family);
        if !(has(PatternFamily::Ring) && has(PatternFamily::Random)) {
            return Err(UsageError::new(
                "--until applies to the interval of b_eff, which requires the families ring and random",
                "Add them to --families, or omit --until.",
            ));
        }
        Ok(())
    }
}

words! { PatternFamily:
    PingPong = "ping-pong", "the first two ranks, back and forth";
    Ring = "ring", "the six rings of the average";
    Random = "random", "30 rings in random order, the other half of the average";
    WorstCycle = "worst-cycle", "a ring with distant neighbours; only reported";
    Bisection = "bisection", "best and worst pairs; only reported";
    Cartesian = "cartesian", "neighbours in two and three dimensions; only reported";
}

words! { BufferMode:
    Cyclic = "cyclic", "walk through memory, as defined";
    Reused = "reused", "the same few windows: measures the caches";
}

pub(crate) const COMM_HELP: &str = concat!(
    "Examples:
  The effective bandwidth of all ranks, kept in comm.json:
      mpirun -n 64 beff-raw comm --out comm
  A preliminary result, with the balance factor of a system of 3.2 Tflop/s:
      mpirun -n 64 beff-raw comm --quick --rmax 3200
  Only ping-pong and rings, with the curves of every method:
      mpirun -n 4 beff-raw comm --families ping-pong,ring --details
  Repeat until the 95 % interval of b_eff is within 2 %:
      mpirun -n 64 beff-raw comm --until 2%
  The rings of 1000 ranks:
      beff-raw comm --plan 1000

Patterns, sizes, loops and the value are those of the paper on b_eff: 21 message sizes from 1 byte to Lmax, three
methods, three repetitions, messages that walk through memory; the value is the geometric mean of rings and random rings.

",
    common_help!()
);
