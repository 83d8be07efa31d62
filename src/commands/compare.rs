//! `beff-raw compare`: results of one benchmark against each other, without MPI.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};

use super::results::{check_names, open};
use crate::frame::benchmark::{typed, Benchmark, Command};
use crate::frame::command::publish;
use crate::frame::error::{Exit, UsageError};
use crate::frame::options::{common_help, positive};
use crate::frame::report::comparison::{json, markdown, text, Side, View};
use crate::frame::report::text::list;
use crate::frame::values::comparable::{Comparable, Kind};
use crate::frame::values::compare::{compare, gate, mixed, Comparison, Gate};

/// The command.
pub const COMMAND: Command = Command {
    name: "compare",
    about: "Compare results of one kind: what differs, ratios with intervals, causes; no MPI needed",
    after_help: AFTER_HELP,
    options: CompareArgs::augment_args,
    translate,
    run: |options| run(&typed(options)?),
    measures: false,
    of_this_host: true,
};

/// What stands below the options in `--help`.
const AFTER_HELP: &str = concat!(
    "Examples:
  Two runs:
      beff-raw compare before.json after.json
  Three runs a side, measured in turns, so that there are intervals:
      beff-raw compare old1.json old2.json old3.json -- new1.json new2.json new3.json
  For a build: a page for people, exit code 4 if anything is slower by more than 5 %:
      beff-raw compare base1.json,base2.json,base3.json new.json --fail-below 0.95 --markdown

Sides:
  Each FILE is a side, or several runs of it with commas between; with `--` between, all
  files up to it are one side. Each side is compared with the first.

",
    common_help!()
);

/// Stands for `--` between sides: clap would take that away. No result has this name.
const BETWEEN: &str = "/";

/// How a comparison is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum CompareFormat {
    /// for people
    Text,
    /// for the page of a build
    Markdown,
    /// for programs
    Json,
}

/// Options of `compare`.
#[derive(Clone, Debug, Args)]
pub struct CompareArgs {
    /// Results: journals (.jsonl) or documents (.json); repetitions of a side with commas, or sides with -- between
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// Exit code 4 if a number is called slower, and its speed is less than LIMIT times that of the first side
    #[arg(long, value_name = "LIMIT", value_parser = positive)]
    pub fail_below: Option<f64>,
    /// How much a value differs from run to run, where each side has one run; by default 14 % with direct I/O, 100 % through caches
    #[arg(long, value_name = "PERCENT", value_parser = percent)]
    pub noise: Option<f64>,
    /// Everything: all facts that differ, every number with its interval
    #[arg(long)]
    pub full: bool,
    /// The same as --format markdown
    #[arg(long, conflicts_with = "format")]
    pub markdown: bool,
    /// View to print
    #[arg(long, value_name = "FORMAT", value_enum, default_value = "text")]
    pub format: CompareFormat,
}

/// A factor, 1 or more, from `14%` or `14`.
fn percent(text: &str) -> Result<f64, String> {
    match text.strip_suffix('%').unwrap_or(text).trim().parse::<f64>() {
        Ok(percent) if (0.0..=1e6).contains(&percent) => Ok(1.0 + percent / 100.0),
        _ => Err("a share in percent, e.g. 14%".into()),
    }
}

/// Keeps `--` between sides.
fn translate(mut args: Vec<OsString>) -> Result<Vec<OsString>, UsageError> {
    if args.get(1).is_some_and(|name| name == COMMAND.name) {
        args.iter_mut().filter(|arg| *arg == "--").for_each(|arg| *arg = BETWEEN.into());
    }
    Ok(args)
}

/// The files of each side.
fn sides(files: &[PathBuf]) -> Vec<Vec<PathBuf>> {
    let mut sides = Vec::new();
    let has_between = files.iter().any(|file| file == Path::new(BETWEEN));
    for group in files.split(|file| file == Path::new(BETWEEN)) {
        if has_between {
            sides.push(group.iter().flat_map(|file| repetitions(file)).collect());
        } else {
            sides.extend(group.iter().map(|file| repetitions(file)));
        }
    }
    sides
}

/// The files of a word with commas. A file whose name has some is one.
fn repetitions(word: &Path) -> Vec<PathBuf> {
    if word.exists() {
        return vec![word.to_owned()];
    }
    let parts = word.as_os_str().as_bytes().split(|byte| *byte == b',').filter(|part| !part.is_empty());
    parts.map(|part| PathBuf::from(std::ffi::OsStr::from_bytes(part))).collect()
}

/// Runs the command.
///
/// # Errors
/// Files that are no results, of different benchmarks, or no two sides; a limit for sides that are not comparable.
pub fn run(args: &CompareArgs) -> anyhow::Result<Exit> {
    let sides = sides(&args.files);
    if sides.len() < 2 || sides.iter().any(Vec::is_empty) {
        return Err(UsageError::new(
            "a comparison needs two sides with a file each",
            "Name them one after the other, or with -- between: beff-raw compare A1.json A2.json -- B1.json B2.json.",
        )
        .into());
    }
    sides.iter().try_for_each(|files| check_names(files))?;
    let (benchmark, loaded) = load_all(&sides)?;
    let named: Vec<Side> =
        sides.iter().zip(&loaded).enumerate().map(|(n, (files, runs))| side(n, files, runs)).collect();
    check_sides(&named, &loaded)?;
    let comparisons: Vec<Comparison> =
        loaded[1..].iter().map(|other| compare([&loaded[0], other], args.noise, loaded.len() - 1)).collect();
    let gates: Vec<Option<Gate>> =
        comparisons.iter().map(|comparison| args.fail_below.map(|limit| gate(comparison, limit))).collect();
    let views: Vec<View<'_>> = comparisons
        .iter()
        .zip(&gates)
        .zip(&named[1..])
        .map(|((comparison, gate), other)| View {
            title: benchmark.title,
            sides: [&named[0], other],
            comparison,
            gate: gate.as_ref().filter(|_| comparison.is_fair()),
            full: args.full,
        })
        .collect();
    publish(&shown(args, benchmark, &named, &views)?)?;
    finish(args, &views)
}

fn shown(args: &CompareArgs, benchmark: &Benchmark, sides: &[Side], views: &[View<'_>]) -> anyhow::Result<Vec<u8>> {
    let format = if args.markdown { CompareFormat::Markdown } else { args.format };
    let pages = |page: fn(&View<'_>) -> String| views.iter().map(page).collect::<Vec<_>>().join("\n").into_bytes();
    Ok(match format {
        CompareFormat::Text => pages(text),
        CompareFormat::Markdown => pages(markdown),
        CompareFormat::Json => json(benchmark.title, sides, views)?,
    })
}

/// A limit that asks for what cannot be compared is refused, after it was shown why.
fn finish(args: &CompareArgs, views: &[View<'_>]) -> anyhow::Result<Exit> {
    let unfair: Vec<String> =
        views.iter().filter(|view| !view.comparison.is_fair()).map(|view| view.sides[1].name.clone()).collect();
    if args.fail_below.is_some() && !unfair.is_empty() {
        return Err(UsageError::new(
            format!("--fail-below: {} measured something else than A, see above", list(&unfair)),
            "Measure both sides with the same definition, or leave --fail-below out.",
        )
        .into());
    }
    let failed = views.iter().filter_map(|view| view.gate).any(|gate| !gate.passed);
    Ok(if failed { Exit::Below } else { Exit::Ok })
}

type Loaded = (&'static Benchmark, Vec<Vec<Comparable>>);

/// What all files offer; they are of one benchmark.
fn load_all(sides: &[Vec<PathBuf>]) -> anyhow::Result<Loaded> {
    let mut first: Option<(&'static Benchmark, &Path)> = None;
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

fn side(number: usize, files: &[PathBuf], runs: &[Comparable]) -> Side {
    let letter = u8::try_from(number).ok().filter(|n| *n < 26).map(|n| char::from(b'A' + n).to_string());
    let files: Vec<String> = files.iter().map(|file| file.display().to_string()).collect();
    let trouble = |(file, run): (&String, &Comparable)| {
        (!run.troubles.is_empty()).then(|| format!("{file}: {}", list(&run.troubles)))
    };
    Side {
        name: letter.unwrap_or_else(|| format!("side {}", number + 1)),
        troubles: files.iter().zip(runs).filter_map(trouble).collect(),
        files,
    }
}

/// Runs of one side stand for one thing, and each of them counts once.
fn check_sides(named: &[Side], loaded: &[Vec<Comparable>]) -> Result<(), UsageError> {
    for (side, runs) in named.iter().zip(loaded) {
        for (n, run) in runs.iter().enumerate() {
            if let Some(other) = runs[..n].iter().position(|known| known.identity == run.identity) {
                return Err(UsageError::new(
                    format!("side {}: {} and {} are the same run", side.name, side.files[other], side.files[n]),
                    "Name each run once: a run counted twice looks more certain than it is.",
                ));
            }
        }
        let differ = mixed(runs, Kind::Definition);
        if !differ.is_empty() {
            return Err(UsageError::new(
                format!("side {}: its runs measured different things: {}", side.name, list(&differ)),
                "Runs of one side must be repetitions of one measurement. Name others as sides of their own.",
            ));
        }
    }
    Ok(())
}

#[cfg(test)]
#[path = "compare_tests.rs"]
mod tests;
