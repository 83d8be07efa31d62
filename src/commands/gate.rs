//! `beff-raw gate`: judges a run by those before it, without MPI.

use std::path::{Path, PathBuf};

use anyhow::anyhow;
use clap::Args;

use super::compare::{parse_limit, CompareFormat};
use super::results::{check_names, open};
use crate::frame::benchmark::{keep_arguments, parse_options, Command};
use crate::frame::command::publish;
use crate::frame::error::{Exit, UsageError};
use crate::frame::options::{common_help, InconclusivePolicy};
use crate::frame::report::comparison::history::{json, markdown, text, HistoryView};
use crate::frame::result_directory::{name_of, ResultDirectory};
use crate::frame::values::history::{judge, HistoryOptions, HistoryRun, HistoryVerdict};

/// The command.
pub const COMMAND: Command = Command {
    name: "gate",
    about: "Judge a run by the runs before it; no MPI needed",
    after_help: AFTER_HELP,
    options: GateArgs::augment_args,
    translate: keep_arguments,
    run: |options| run(&parse_options(options)?),
    measures: false,
    is_host_specific: true,
};

const AFTER_HELP: &str = concat!(
    "Examples:
  A run against the earlier ones in a directory, for example after each nightly run:
      beff-raw gate nightly nightly/2026-11-30.json
  The newest run of the directory:
      beff-raw gate nightly nightly
  Across updates of kernel or MPI, as Markdown, ignoring what is within 3 %:
      beff-raw gate nightly new.json --set-up any --fail-below 97% --markdown

Verdicts:
  PASS, exit code 0; SLOWER, 4; INCONCLUSIVE, 5: the run was shared, cut, or on storage that drifted, or fewer than
  3 good runs are before it; WRONG DATA, 3. Equal runs with independent, normal noise are called slower in fewer than
  1 of 100 gates; docs/compare.md has the figures for drift, outliers and correlated nights, which are up to 2 of 100.

",
    common_help!()
);

/// Runs of other set-ups in the baseline.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum SetUpPolicy {
    /// only runs with the set-up of NEW
    Same,
    /// all runs with its definition; changes are named
    Any,
}

/// Options of `gate`.
#[derive(Clone, Debug, Args)]
pub struct GateArgs {
    /// Directory with the results (.json) of the runs before it; its subdirectories are not read
    #[arg(value_name = "DIR")]
    pub directory: PathBuf,
    /// Result to judge: a journal (.jsonl) or document (.json), which may be in DIR; of a directory the newest result
    #[arg(value_name = "NEW")]
    pub file: PathBuf,
    /// Runs of the baseline: the last N good ones before NEW
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u16).range(3..=100))]
    pub last: u16,
    /// Set-up of the runs of the baseline: kernel, MPI, hosts, hints, storage, ...
    #[arg(long, value_name = "WHICH", value_enum, default_value = "same")]
    pub set_up: SetUpPolicy,
    /// A slower run counts only if its speed is less than this share of the median of the baseline: 97%, or 0.97
    #[arg(long, value_name = "SHARE", value_parser = parse_limit)]
    pub fail_below: Option<f64>,
    /// Exit code if the results do not decide it
    #[arg(long, value_name = "POLICY", value_enum, default_value = "fail")]
    pub inconclusive: InconclusivePolicy,
    /// The same as --format markdown
    #[arg(long, conflicts_with = "format")]
    pub markdown: bool,
    /// View to print
    #[arg(long, value_name = "FORMAT", value_enum, default_value = "text")]
    pub format: CompareFormat,
}

/// Runs the command.
///
/// # Errors
/// A file that is not a result, or a directory that cannot be read.
pub fn run(args: &GateArgs) -> anyhow::Result<Exit> {
    let new = if args.file.is_dir() { ResultDirectory::newest_of(&args.file)? } else { args.file.clone() };
    check_names(std::slice::from_ref(&new))?;
    let (benchmark, report) = open(&new)?;
    let newest = report.comparable();
    let Earlier { runs, unreadable, other_benchmarks } = read_directory(&args.directory, benchmark.name)?;
    let options = HistoryOptions {
        last: args.last.into(),
        any_set_up: args.set_up == SetUpPolicy::Any,
        limit: args.fail_below.unwrap_or(1.0),
    };
    let history = judge(&newest, &runs, options);
    let view = HistoryView {
        title: benchmark.title,
        file: &new.display().to_string(),
        directory: &args.directory.display().to_string(),
        unreadable: &unreadable,
        other_benchmarks,
        history: &history,
        options,
    };
    publish(&match if args.markdown { CompareFormat::Markdown } else { args.format } {
        CompareFormat::Text => text(&view).into_bytes(),
        CompareFormat::Markdown => markdown(&view).into_bytes(),
        CompareFormat::Json => json(&view)?,
    })?;
    Ok(match (history.verdict, args.inconclusive) {
        (HistoryVerdict::Pass, _) | (HistoryVerdict::Inconclusive, InconclusivePolicy::Pass) => Exit::Ok,
        (HistoryVerdict::Slower, _) => Exit::BelowLimit,
        (HistoryVerdict::Inconclusive, InconclusivePolicy::Fail) => Exit::Inconclusive,
        (HistoryVerdict::Corrupt, _) => Exit::Corruption,
    })
}

/// Results of a directory.
#[derive(Debug, Default)]
struct Earlier {
    runs: Vec<HistoryRun>,
    unreadable: Vec<String>,
    other_benchmarks: u64,
}

/// Reads all results of a directory, in order of their names.
fn read_directory(directory: &Path, benchmark: &str) -> anyhow::Result<Earlier> {
    let name = directory.display();
    if !directory.is_dir() {
        return Err(UsageError::new(
            format!("{name} is not a directory"),
            "Name the directory with the results of earlier runs first, then the result to judge: beff-raw gate DIR NEW.json.",
        )
        .into());
    }
    let ResultDirectory { results, others, .. } = ResultDirectory::read(directory)
        .map_err(|e| anyhow!("cannot read the directory {name}: {e}. Name a directory that can be read."))?;
    let mut earlier = Earlier { unreadable: others, ..Earlier::default() };
    for path in results {
        let file = name_of(&path);
        match open(&path) {
            Ok((known, report)) if known.name == benchmark => {
                earlier.runs.push(HistoryRun { file, run: report.comparable() });
            }
            Ok(_) => earlier.other_benchmarks += 1,
            Err(_) => earlier.unreadable.push(file),
        }
    }
    earlier.unreadable.sort();
    Ok(earlier)
}

#[cfg(test)]
#[path = "gate_tests.rs"]
mod tests;
