//! Options of `beff-raw tune` and their conversion to a configuration.

use std::path::PathBuf;

use clap::Args;

use super::config::{parse_space, TuneConfig, MIN_BUDGET_SECONDS};
use crate::frame::backends;
use crate::frame::config::{BindPolicy, CachePolicy, DirectPolicy};
use crate::frame::error::UsageError;
use crate::frame::options::{
    self, common_help, words, BindArgs, ProgressArgs, TimeLimitArgs, DEFAULT_SEED, HEADING_ACCESS, HEADING_CHECKS,
    HEADING_FILES, HEADING_MEASUREMENT, HEADING_OUTPUT,
};
use crate::frame::records::AccessMethod;
use crate::frame::trials::{TrialConfig, TrialGoal};

/// Chunk sizes of the patterns.
const CHUNKS: [(&str, u64); 6] =
    [("1K", 1024), ("1K+8", 1032), ("32K", 32768), ("32K+8", 32776), ("1M", 1 << 20), ("1M+8", (1 << 20) + 8)];

/// Options of `tune`.
#[derive(Clone, Debug, Args)]
pub struct TuneArgs {
    /// Profile of a recorded application, instead of patterns: the setting that makes its own calls fast
    #[arg(value_name = "PROFILE")]
    pub profile: Option<PathBuf>,
    /// Wall-clock time of the whole search, with files and syncs
    #[arg(long, short = 'T', value_name = "TIME", default_value = "10m", value_parser = options::parse_seconds,
        help_heading = HEADING_MEASUREMENT)]
    pub budget: f64,
    /// Backend whose settings are searched: mpiio, posix or uring
    #[arg(long, value_name = "NAME", default_value = "mpiio", value_parser = backends::canonical_name, help_heading = HEADING_MEASUREMENT)]
    pub backend: String,
    /// Access method to make fast; rewrites and reads are prepared by an untimed write
    #[arg(long, value_enum, value_name = "METHOD", default_value = "write", help_heading = HEADING_MEASUREMENT)]
    pub access: TunedAccess,
    /// Pattern types: 0 scattered, collective; 1 shared file pointer; 2 one file per rank; 3 segments; 4 segments, collective
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "0", value_parser = clap::value_parser!(u8).range(0..=4),
        help_heading = HEADING_MEASUREMENT)]
    pub types: Vec<u8>,
    /// Chunk sizes: 1K, 1K+8, 32K, 32K+8, 1M, 1M+8 [default: all, and M_PART]
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = chunk, help_heading = HEADING_MEASUREMENT)]
    pub chunks: Vec<u64>,
    /// Figure to increase: value, the mean bandwidth of the patterns; seconds, all bytes divided by all time; or the number of a pattern, for its
    /// bandwidth alone. With a profile, it is the time of its own calls
    #[arg(long, value_name = "value|seconds|N", default_value = "value", value_parser = goal, help_heading = HEADING_MEASUREMENT)]
    pub goal: TrialGoal,
    /// Keys and values to try instead of those that this program knows: KEY VALUE VALUE ... on each line
    #[arg(long, value_name = "FILE", help_heading = HEADING_MEASUREMENT)]
    pub space_file: Option<PathBuf>,
    /// Time limit.
    #[command(flatten)]
    pub limit: TimeLimitArgs,
    /// Directory on the storage, visible to all ranks
    #[arg(long, value_name = "DIR", default_value = ".", help_heading = HEADING_FILES)]
    pub path: PathBuf,
    /// Name of the directory created under --path for the files; rejected if it exists [default: derived from time and process id]
    #[arg(long, value_name = "NAME", help_heading = HEADING_FILES)]
    pub run_dir: Option<String>,
    /// Storage space for the files of one trial [default: 80% of the free space]
    #[arg(long, value_name = "SIZE", value_parser = options::parse_size, help_heading = HEADING_FILES)]
    pub space: Option<u64>,
    /// Memory available to one rank; determines the largest chunk, M_PART [default: memory of the node or of its control group, divided by the
    /// ranks on it]
    #[arg(long, value_name = "SIZE", value_parser = options::parse_size, help_heading = HEADING_MEASUREMENT)]
    pub memory_per_process: Option<u64>,
    /// MPI-IO hint of all trials, also of the default
    #[arg(long = "hint", value_name = "KEY=VALUE", value_parser = options::parse_key_value, help_heading = HEADING_ACCESS)]
    pub hint: Vec<(String, String)>,
    /// Page-cache policy before rewrites and reads. With keep, reads are tuned for data that is cached
    #[arg(long, value_enum, value_name = "POLICY", default_value = "drop", help_heading = HEADING_ACCESS)]
    pub cache: CachePolicy,
    /// Bypass of the page cache (O_DIRECT) in posix and uring, as of io
    #[arg(long, value_enum, value_name = "POLICY", default_value = "by-backend", help_heading = HEADING_ACCESS)]
    pub direct: DirectPolicy,
    /// CPU binding of the ranks.
    #[command(flatten)]
    pub ranks: BindArgs,
    /// Seed of the data
    #[arg(long, value_name = "N", default_value_t = DEFAULT_SEED, help_heading = HEADING_CHECKS)]
    pub seed: u64,
    /// Continue a search that was killed or interrupted, with its options: its trials are kept. Give another --out
    #[arg(long = "continue", value_name = "FILE", help_heading = HEADING_MEASUREMENT)]
    pub continued: Option<PathBuf>,
    /// Print a shell script instead, for settings that need a launch of their own (components of Open MPI, file-system drivers of ROMIO): it
    /// measures each three times in turn with the default, and compares the results
    #[arg(long, conflicts_with_all = ["continued", "out"], help_heading = HEADING_OUTPUT)]
    pub script: bool,
    /// Write PREFIX.jsonl (journal, updated during the search), PREFIX.json, PREFIX.csv, and the setting for programs: PREFIX.hints, PREFIX.romio,
    /// PREFIX.mca, PREFIX.txt. {date} and {host} are substituted
    #[arg(long, value_name = "PREFIX", value_parser = options::output_prefix_parser(), help_heading = HEADING_OUTPUT)]
    pub out: Option<PathBuf>,
    /// Print all effects and settings instead of one screen
    #[arg(long, help_heading = HEADING_OUTPUT)]
    pub full: bool,
    /// Progress output.
    #[command(flatten)]
    pub progress: ProgressArgs,
}

/// Access method to make fast.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TunedAccess {
    /// First write.
    Write,
    /// Rewrite.
    Rewrite,
    /// Read.
    Read,
}

words! { TunedAccess:
    Write = "write", "first write";
    Rewrite = "rewrite", "rewrite";
    Read = "read", "read";
}

impl From<TunedAccess> for AccessMethod {
    fn from(access: TunedAccess) -> Self {
        match access {
            TunedAccess::Write => Self::Write,
            TunedAccess::Rewrite => Self::Rewrite,
            TunedAccess::Read => Self::Read,
        }
    }
}

impl TuneArgs {
    /// The configuration.
    ///
    /// # Errors
    /// Options that cannot be combined, and a space file that cannot be read.
    pub fn config(&self) -> Result<TuneConfig, UsageError> {
        if self.budget < MIN_BUDGET_SECONDS {
            return Err(UsageError::new(
                format!("--budget of {} s is too short for a search", self.budget),
                "Give some minutes: each setting is measured several times.",
            ));
        }
        if !backends::supports(&self.backend, |row| row.uses_space) {
            return Err(UsageError::new(
                format!("{} has no settings that make storage faster", self.backend),
                "Choose mpiio, posix or uring.",
            ));
        }
        if !self.hint.is_empty() && !backends::supports(&self.backend, |row| row.has_hints) {
            return Err(UsageError::new(format!("{} has no hints", self.backend), "Omit --hint, or choose mpiio."));
        }
        let mut types = self.types.clone();
        types.sort_unstable();
        types.dedup();
        let space = self.space_file.as_ref().map(|path| {
            let next_step = "Write a key and its values on each line, separated by blanks.";
            let refused =
                |cause: String| UsageError::new(format!("--space-file {}: {cause}", path.display()), next_step);
            let text = std::fs::read_to_string(path).map_err(|e| refused(e.to_string()))?;
            parse_space(&text).map_err(refused)
        });
        Ok(TuneConfig {
            trials: TrialConfig {
                profile: self.profile.clone(),
                backend: self.backend.clone(),
                path: self.path.clone(),
                run_dir: self.run_dir.clone(),
                access: self.access.into(),
                types: if self.profile.is_some() { Vec::new() } else { types },
                chunks_bytes: self.chunks.clone(),
                goal: if self.profile.is_some() { TrialGoal::Seconds } else { self.goal },
                hints: self.hint.clone(),
                cache: self.cache,
                direct: self.direct,
                memory_per_process_bytes: self.memory_per_process,
                space_bytes: self.space,
                bind: self.ranks.policy(BindPolicy::Auto),
                seed: self.seed,
            },
            budget_seconds: self.budget,
            space: space.transpose()?,
            time_limit: self.limit.time_limit,
            out: self.out.clone(),
        })
    }
}

fn chunk(word: &str) -> Result<u64, String> {
    let known = CHUNKS.iter().find(|(name, _)| name.eq_ignore_ascii_case(word.trim()));
    let bytes = known.map(|(_, bytes)| *bytes).or_else(|| word.trim().parse().ok());
    bytes.filter(|bytes| CHUNKS.iter().any(|(_, known)| known == bytes)).ok_or_else(|| {
        let names = CHUNKS.map(|(name, _)| name).join(", ");
        format!("'{word}' is no chunk size of the patterns; give some of {names}")
    })
}

fn goal(word: &str) -> Result<TrialGoal, String> {
    match word {
        "value" => Ok(TrialGoal::Value),
        "seconds" => Ok(TrialGoal::Seconds),
        number => number
            .strip_prefix("pattern ")
            .unwrap_or(number)
            .parse()
            .ok()
            .filter(|number| *number < 43)
            .map(TrialGoal::Pattern)
            .ok_or_else(|| format!("'{word}' is no goal; give value, seconds, or the number of a pattern, 0 to 42")),
    }
}

pub(crate) const TUNE_HELP: &str = concat!(
    "Examples:
  Hints for collective writes of small chunks, in five minutes:
      mpirun -n 16 beff-raw tune --path /scratch --types 0 --chunks 32K,32K+8 --budget 5m --out tuned
  Does the result hold? The default and the setting in turn, as tuned.txt states it:
      mpirun -n 16 beff-raw io --path /scratch --types 0 --variant tuned:cb_nodes=2
  Hints for a recorded application:
      mpirun -n 16 beff-raw tune --path /scratch app.csv --budget 20m --out app
  Components of Open MPI, which need a launch of their own:
      beff-raw tune --path /scratch --script > launches.sh

The first part of the search measures the default against itself, which gives the smallest ratio that the budget can
prove. A setting is recommended only if it was faster than the default on new files, in a separate confirmation whose
99.5 % interval excludes 1. Each trial has new files; its data is read back, and a setting with wrong data is disqualified.

",
    common_help!()
);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::benchmark::options_from_words;

    fn config(words: &str) -> Result<TuneConfig, String> {
        options_from_words::<TuneArgs>(words.split_whitespace()).config().map_err(|e| e.to_string())
    }

    #[test]
    fn options_become_a_configuration() {
        let found = config("--types 4,0,4 --chunks 32k,32K+8,1024 --goal 9 --access read --budget 5m").unwrap();
        assert_eq!(found.trials.types, [0, 4]);
        assert_eq!(found.trials.chunks_bytes, [32768, 32776, 1024]);
        assert_eq!((found.trials.goal, found.trials.access), (TrialGoal::Pattern(9), AccessMethod::Read));
        assert_eq!(found.budget_seconds, 300.0);
        let recorded = config("app.csv").unwrap();
        assert_eq!((recorded.trials.types.len(), recorded.trials.goal), (0, TrialGoal::Seconds));
    }

    #[test]
    fn what_cannot_be_tuned_is_refused() {
        for (words, cause) in [
            ("--budget 1s", "too short for a search"),
            ("--backend null", "null has no settings"),
            ("--backend uring --hint a=b", "uring has no hints"),
            ("--space-file /nonexistent", "--space-file /nonexistent"),
        ] {
            let error = config(words).unwrap_err();
            assert!(error.contains(cause), "{words}: {error}");
        }
        assert!(chunk("2K").unwrap_err().contains("1K+8") && goal("43").is_err() && goal("pattern 3").is_ok());
    }
}
