//! Options of `beff-raw comm`, and what will run from them.

use std::path::PathBuf;

use clap::Args;

use crate::b_eff::config::CommConfig;
use crate::b_eff::plan::{Buffers, Family};
use crate::frame::config::{BindPolicy, Repeat};
use crate::frame::error::UsageError;
use crate::frame::options::{
    self, common_help, words, BindArgs, InjectArgs, ProgressArgs, DEFAULT_SEED, MEASURED, OUTPUT, TRUST,
};

/// Time of the whole measurement when nothing is said, seconds.
pub const DEFAULT_SECONDS: f64 = 240.0;
/// The same with --quick.
pub const QUICK_SECONDS: f64 = 10.0;
/// Shortest time that can be asked for, seconds: the pilot alone needs some of it.
const SHORTEST_SECONDS: f64 = 1.0;

/// Options of `comm`.
#[derive(Clone, Debug, Args)]
pub struct CommArgs {
    /// Longest time of the whole measurement. What it will take is announced after a short pilot; what does not fit is
    /// cut in a fixed order and told [default: 4m, with --quick 10s]
    #[arg(long, short = 'T', value_name = "TIME", value_parser = options::seconds, help_heading = MEASURED)]
    pub time: Option<f64>,
    /// A first look in 10 seconds: what does not fit is cut, marked QUICK everywhere, never valid
    #[arg(long, help_heading = MEASURED)]
    pub quick: bool,
    /// Families of patterns to measure; a value of b_eff needs ring and random
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_enum, default_values_t = Family::ALL,
        hide_default_value = true, help_heading = MEASURED)]
    pub families: Vec<Family>,
    /// Memory that the messages use: cyclic, as the definition has it, walks through six times Lmax; reused sends the same
    /// few windows again and again, which shows the caches and is never valid
    #[arg(long, value_name = "WHICH", value_enum, default_value_t = Buffers::Cyclic, help_heading = MEASURED)]
    pub buffers: Buffers,
    /// What is done with the time that is left behind the three repetitions of the definition. auto: all patterns are measured
    /// again, round after round, those first that know least about themselves, so that the intervals of their means become
    /// narrower; N: so many rounds at most; off: nothing. The value is that of the three repetitions in each case
    #[arg(long, value_name = "auto|off|N", value_parser = options::repeat, default_value = "auto", help_heading = MEASURED)]
    pub repeat: Repeat,
    /// End the repeats when the 95 % interval of b_eff, over single repetitions, reaches no farther than this from its mean,
    /// e.g. 5% [default: when the time is over]
    #[arg(long, value_name = "PERCENT", value_parser = options::percent, help_heading = MEASURED)]
    pub until: Option<f64>,
    /// Memory of the unit that one rank runs on; decides the longest message, Lmax = SIZE / 128, at most 128M [default:
    /// memory of the node or of its control group, divided by the ranks on it]
    #[arg(long, value_name = "SIZE", value_parser = options::size, help_heading = MEASURED)]
    pub memory_per_process: Option<u64>,
    /// Rmax of LINPACK on this system in Gflop/s, for the balance factor
    #[arg(long, value_name = "GFLOPS", value_parser = options::positive, help_heading = MEASURED)]
    pub rmax: Option<f64>,
    /// Where ranks run.
    #[command(flatten)]
    pub ranks: BindArgs,
    /// Seed of the random rings and of the data; two runs with the same seed have the same plan
    #[arg(long, value_name = "N", default_value_t = DEFAULT_SEED, help_heading = TRUST)]
    pub seed: u64,
    /// After the patterns, run ping-pong and the largest ring in turns with bare C loops of the same calls, and show what
    /// this program costs beside them, at every size; takes 15 seconds more (with --quick 7, the smallest and the largest)
    #[arg(long, help_heading = TRUST)]
    pub bare: bool,
    /// Damage on purpose.
    #[command(flatten)]
    pub damage: InjectArgs,
    /// Show the plan for N ranks and end; no MPI needed
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(2..), help_heading = OUTPUT)]
    pub plan: Option<u64>,
    /// The plan as JSON instead of a table
    #[arg(long, requires = "plan", help_heading = OUTPUT)]
    pub json: bool,
    /// Write PREFIX.jsonl (journal, kept up to date during the run), PREFIX.json and PREFIX.csv; without it only stdout.
    /// {date} and {host} in it are filled in
    #[arg(long, value_name = "PREFIX", value_parser = options::prefix(), help_heading = OUTPUT)]
    pub out: Option<PathBuf>,
    /// Print all tables, warnings and settings, not one screen
    #[arg(long, help_heading = OUTPUT)]
    pub full: bool,
    /// The same with the curves of all patterns by method
    #[arg(long, help_heading = OUTPUT)]
    pub details: bool,
    /// What is told meanwhile.
    #[command(flatten)]
    pub progress: ProgressArgs,
}

impl CommArgs {
    /// The configuration of this command line.
    ///
    /// # Errors
    /// The first thing that cannot be run.
    pub fn config(&self) -> Result<CommConfig, UsageError> {
        let time_seconds = self.time.unwrap_or(if self.quick { QUICK_SECONDS } else { DEFAULT_SECONDS });
        if time_seconds < SHORTEST_SECONDS {
            return Err(UsageError::new(
                format!("--time {time_seconds} s is too short: the pilot alone takes a good part of a second"),
                format!("Give at least {SHORTEST_SECONDS} s."),
            ));
        }
        self.check_until()?;
        let families = Family::ALL.into_iter().filter(|family| self.families.contains(family)).collect();
        Ok(CommConfig {
            time_seconds,
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
            inject: self.damage.is_asked(),
        })
    }

    /// What can never be reached is refused.
    fn check_until(&self) -> Result<(), UsageError> {
        if self.until.is_none() {
            return Ok(());
        }
        if self.repeat == Repeat::Off {
            return Err(UsageError::new(
                "--until says when the repeats end, and with --repeat off there are none",
                "Leave one of the two out.",
            ));
        }
        let has = |family| self.families.contains(&family);
        if !(has(Family::Ring) && has(Family::Random)) {
            return Err(UsageError::new(
                "--until is about the interval of b_eff, and without ring and random there is no b_eff",
                "Add them to --families, or leave --until out.",
            ));
        }
        Ok(())
    }
}

words! { Family:
    PingPong = "ping-pong", "the first two ranks, there and back";
    Ring = "ring", "the six rings of the average";
    Random = "random", "30 rings in random order, the other half of the average";
    WorstCycle = "worst-cycle", "a ring whose neighbours are far apart; only reported";
    Bisection = "bisection", "best and worst pairs; only reported";
    Cartesian = "cartesian", "neighbours in two and three dimensions; only reported";
}

words! { Buffers:
    Cyclic = "cyclic", "walk through memory, as the definition has it";
    Reused = "reused", "the same few windows again and again: what caches give";
}

pub(crate) const COMM: &str = concat!(
    "Examples:
  The effective bandwidth of all ranks, kept in comm.json:
      mpirun -n 64 beff-raw comm --out comm
  A first look, with the balance factor of a system of 3.2 Tflop/s:
      mpirun -n 64 beff-raw comm --quick --rmax 3200
  Only ping-pong and rings, with the curves of every method:
      mpirun -n 4 beff-raw comm --families ping-pong,ring --details
  No longer than needed to know b_eff within 2 %:
      mpirun -n 64 beff-raw comm --until 2%
  Which rings 1000 ranks would form:
      beff-raw comm --plan 1000

Patterns, sizes, loops and the value are those of the paper on b_eff: 21 message sizes from 1 byte to Lmax, three
methods, three repetitions, messages that walk through memory; the value is the geometric mean of rings and random rings.

",
    common_help!()
);
