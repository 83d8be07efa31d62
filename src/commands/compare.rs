//! `beff-raw compare`: compares results of one benchmark, without MPI.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};

use super::results::{check_names, expand_directories, open};
use crate::frame::benchmark::{parse_options, BenchmarkModule, Command};
use crate::frame::command::publish;
use crate::frame::error::{Exit, UsageError};
use crate::frame::options::{common_help, InconclusivePolicy};
use crate::frame::report::comparison::{json, markdown, text, ComparisonSide, ComparisonView};
use crate::frame::report::text::list;
use crate::frame::values::comparable::{ComparableRun, FactKind};
use crate::frame::values::compare::{compare, inconsistent_facts, Comparison};
use crate::frame::values::gate::{gate, GateOutcome, GateResult};

/// The command.
pub const COMMAND: Command = Command {
    name: "compare",
    about: "Compare results of one benchmark: differences, ratios with intervals, causes; no MPI needed",
    after_help: AFTER_HELP,
    options: CompareArgs::augment_args,
    translate,
    run: |options| run(&parse_options(options)?),
    measures: false,
    is_host_specific: true,
};

const AFTER_HELP: &str = concat!(
    "Examples:
  Two runs:
      beff-raw compare before.json after.json
  Three runs per side, measured alternately, for confidence intervals:
      beff-raw compare old1.json old2.json old3.json -- new1.json new2.json new3.json
  For a build: a Markdown page, exit code 4 if anything is slower by more than 5 %, 5 if that is inconclusive:
      beff-raw compare base1.json,base2.json,base3.json new.json --fail-below 0.95 --markdown

Sides:
  Each FILE is a side, or several runs of it with commas between, or a directory with its
  runs (*.json); with `--` between, all files up to it are one side. Each side is compared with the first.

",
    common_help!()
);

/// Replaces `--` between sides, which clap would remove. No result has this name.
const SIDE_SEPARATOR: &str = "/";

/// Format of a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum CompareFormat {
    /// for people
    Text,
    /// for the page of a CI build
    Markdown,
    /// for programs
    Json,
}

/// Options of `compare`.
#[derive(Clone, Debug, Args)]
pub struct CompareArgs {
    /// Results: journals (.jsonl), documents (.json), or directories with documents; runs of a side with commas, or sides with -- between
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// Exit code 4 if a number is judged slower, and its speed is less than this share of that of the first side: 95%, or 0.95
    #[arg(long, value_name = "SHARE", value_parser = parse_limit)]
    pub fail_below: Option<f64>,
    /// Exit code where a limit is given and the results do not decide it: a machine that was shared, a run that was cut or too short, storage drift
    #[arg(long, value_name = "POLICY", value_enum, default_value = "fail", requires = "fail_below")]
    pub inconclusive: InconclusivePolicy,
    /// Variation from run to run, used where each side has one run: 5%, or 0.05; by default 14% with direct I/O, 100% through caches
    #[arg(long, value_name = "SHARE", value_parser = parse_noise)]
    pub noise: Option<f64>,
    /// All facts that differ, and every number with its interval
    #[arg(long)]
    pub full: bool,
    /// The same as --format markdown
    #[arg(long, conflicts_with = "format")]
    pub markdown: bool,
    /// View to print
    #[arg(long, value_name = "FORMAT", value_enum, default_value = "text")]
    pub format: CompareFormat,
}

/// Largest variation that can be meant.
const MAX_NOISE: f64 = 100.0;

/// A share from `5%` or `0.05`. A number above 1 without a sign is refused: `5` may mean a percentage or a factor.
fn parse_share(text: &str, example: &str) -> Result<f64, String> {
    let no_number = || format!("'{text}' is not a share; write {example}");
    let number =
        |text: &str| text.trim().parse::<f64>().ok().filter(|n| n.is_finite() && *n >= 0.0).ok_or_else(no_number);
    match text.strip_suffix('%') {
        Some(percent) => Ok(number(percent)? / 100.0),
        None => match number(text)? {
            share if share > 1.0 => {
                Err(format!("{text} is more than 1, the whole; write {text}% for a percentage, e.g. {example}"))
            }
            share => Ok(share),
        },
    }
}

/// A factor, 1 or more.
fn parse_noise(text: &str) -> Result<f64, String> {
    match parse_share(text, "5% or 0.05")? {
        share if share > MAX_NOISE => {
            Err(format!("with a variation of {text} every result would be equal; write e.g. 5%"))
        }
        share => Ok(1.0 + share),
    }
}

/// A share above 0, at most 1.
pub(super) fn parse_limit(text: &str) -> Result<f64, String> {
    match parse_share(text, "95% or 0.95")? {
        share if share <= 0.0 => Err("the share must be above zero; write e.g. 95%, or 0.95".into()),
        share if share > 1.0 => {
            Err(format!("a speed of {text} of the first side is not slower; write a share of at most 100%, e.g. 95%"))
        }
        share => Ok(share),
    }
}

fn translate(mut args: Vec<OsString>) -> Result<Vec<OsString>, UsageError> {
    if args.get(1).is_some_and(|name| name == COMMAND.name) {
        args.iter_mut().filter(|arg| *arg == "--").for_each(|arg| *arg = SIDE_SEPARATOR.into());
    }
    Ok(args)
}

fn split_sides(files: &[PathBuf]) -> Vec<Vec<PathBuf>> {
    let mut sides = Vec::new();
    let has_between = files.iter().any(|file| file == Path::new(SIDE_SEPARATOR));
    for group in files.split(|file| file == Path::new(SIDE_SEPARATOR)) {
        if has_between {
            sides.push(group.iter().flat_map(|file| split_files(file)).collect());
        } else {
            sides.extend(group.iter().map(|file| split_files(file)));
        }
    }
    sides
}

/// Splits a word at commas into files. An existing file with commas in its name is one file.
fn split_files(word: &Path) -> Vec<PathBuf> {
    if word.exists() {
        return vec![word.to_owned()];
    }
    let parts = word.as_os_str().as_bytes().split(|byte| *byte == b',').filter(|part| !part.is_empty());
    parts.map(|part| PathBuf::from(std::ffi::OsStr::from_bytes(part))).collect()
}

/// Runs the command.
///
/// # Errors
/// Files that are not results, results of different benchmarks, fewer than two sides; a limit for sides that are not comparable.
pub fn run(args: &CompareArgs) -> anyhow::Result<Exit> {
    let sides = split_sides(&args.files);
    if sides.len() < 2 || sides.iter().any(Vec::is_empty) {
        return Err(UsageError::new(
            "a comparison needs two sides with a file each",
            "Name them one after the other, or with -- between: beff-raw compare A1.json A2.json -- B1.json B2.json.",
        )
        .into());
    }
    sides.iter().try_for_each(|files| check_names(files))?;
    let sides = sides.iter().map(|files| expand_directories(files)).collect::<Result<Vec<_>, _>>()?;
    let (benchmark, loaded) = load_all(&sides)?;
    let named: Vec<ComparisonSide> =
        sides.iter().zip(&loaded).enumerate().map(|(n, (files, runs))| describe_side(n, files, runs)).collect();
    check_sides(&named, &loaded)?;
    let comparisons: Vec<Comparison> =
        loaded[1..].iter().map(|other| compare([&loaded[0], other], args.noise, loaded.len() - 1)).collect();
    let gates: Vec<Option<GateResult>> =
        comparisons.iter().map(|comparison| args.fail_below.map(|limit| gate(comparison, limit))).collect();
    let views: Vec<ComparisonView<'_>> = comparisons
        .iter()
        .zip(&gates)
        .zip(&named[1..])
        .map(|((comparison, gate), other)| ComparisonView {
            title: benchmark.title,
            sides: [&named[0], other],
            comparison,
            gate: gate.as_ref().filter(|_| comparison.is_comparable()),
            full: args.full,
        })
        .collect();
    publish(&render(args, benchmark, &named, &views)?)?;
    exit_status(args, &views)
}

fn render(
    args: &CompareArgs,
    benchmark: &BenchmarkModule,
    sides: &[ComparisonSide],
    views: &[ComparisonView<'_>],
) -> anyhow::Result<Vec<u8>> {
    let format = if args.markdown { CompareFormat::Markdown } else { args.format };
    let pages =
        |page: fn(&ComparisonView<'_>) -> String| views.iter().map(page).collect::<Vec<_>>().join("\n").into_bytes();
    Ok(match format {
        CompareFormat::Text => pages(text),
        CompareFormat::Markdown => pages(markdown),
        CompareFormat::Json => json(benchmark.title, sides, views)?,
    })
}

/// Refuses a limit for sides that are not comparable, after the comparison was shown.
fn exit_status(args: &CompareArgs, views: &[ComparisonView<'_>]) -> anyhow::Result<Exit> {
    let unfair: Vec<String> =
        views.iter().filter(|view| !view.comparison.is_comparable()).map(|view| view.sides[1].name.clone()).collect();
    if args.fail_below.is_some() && !unfair.is_empty() {
        return Err(UsageError::new(
            format!("--fail-below: {} measured something else than A, see above", list(&unfair)),
            "Measure both sides with the same definition, or leave --fail-below out.",
        )
        .into());
    }
    let has = |outcome| views.iter().filter_map(|view| view.gate).any(|gate| gate.outcome == outcome);
    Ok(match args.inconclusive {
        _ if has(GateOutcome::Failed) => Exit::BelowLimit,
        InconclusivePolicy::Fail if has(GateOutcome::Inconclusive) => Exit::Inconclusive,
        _ => Exit::Ok,
    })
}

type LoadedResults = (&'static BenchmarkModule, Vec<Vec<ComparableRun>>);

/// Reads all files, which must be of one benchmark.
fn load_all(sides: &[Vec<PathBuf>]) -> anyhow::Result<LoadedResults> {
    let mut first: Option<(&'static BenchmarkModule, &Path)> = None;
    let mut loaded = Vec::new();
    for files in sides {
        let mut runs = Vec::new();
        for file in files {
            let (benchmark, report) = open(file)?;
            let (known, of) = *first.get_or_insert((benchmark, file));
            if known.name != benchmark.name {
                return Err(UsageError::new(
                    format!(
                        "{} is a result of {}, {} one of {}: there is nothing to compare",
                        of.display(),
                        known.title,
                        file.display(),
                        benchmark.title
                    ),
                    "Name results of one benchmark.",
                )
                .into());
            }
            runs.push(report.comparable());
        }
        loaded.push(runs);
    }
    let (benchmark, _) = first.ok_or_else(|| anyhow::anyhow!("no file was named"))?;
    Ok((benchmark, loaded))
}

fn describe_side(number: usize, files: &[PathBuf], runs: &[ComparableRun]) -> ComparisonSide {
    let letter = u8::try_from(number).ok().filter(|n| *n < 26).map(|n| char::from(b'A' + n).to_string());
    let files: Vec<String> = files.iter().map(|file| file.display().to_string()).collect();
    let trouble = |(file, run): (&String, &ComparableRun)| {
        (!run.troubles.is_empty()).then(|| format!("{file}: {}", list(&run.troubles)))
    };
    ComparisonSide {
        name: letter.unwrap_or_else(|| format!("side {}", number + 1)),
        troubles: files.iter().zip(runs).filter_map(trouble).collect(),
        files,
    }
}

/// Runs of one side must have one definition, and each of them counts once.
fn check_sides(named: &[ComparisonSide], loaded: &[Vec<ComparableRun>]) -> Result<(), UsageError> {
    for (side, runs) in named.iter().zip(loaded) {
        for (n, run) in runs.iter().enumerate() {
            if let Some(other) = runs[..n].iter().position(|known| known.identity == run.identity) {
                return Err(UsageError::new(
                    format!("side {}: {} and {} are the same run", side.name, side.files[other], side.files[n]),
                    "Name each run once: a run counted twice looks more certain than it is.",
                ));
            }
        }
        let differ = inconsistent_facts(runs, FactKind::Definition);
        if !differ.is_empty() {
            return Err(UsageError::new(
                format!("side {}: its runs measured different things: {}", side.name, list(&differ)),
                "Runs of one side must have the same definition. Name others as sides of their own.",
            ));
        }
    }
    Ok(())
}

#[cfg(test)]
#[path = "compare_tests.rs"]
mod tests;
