//! `beff-raw report`: results shown again from their files, without MPI.

use std::path::{Path, PathBuf};

use anyhow::anyhow;
use clap::builder::{PossibleValue, PossibleValuesParser};
use clap::Args;

use crate::benchmarks::{formats, load};
use crate::frame::benchmark::{as_typed, typed, Benchmark, Command};
use crate::frame::command::publish;
use crate::frame::command::stdout::publish_sheet;
use crate::frame::error::{Exit, UsageError};
use crate::frame::input::{self, MOST_RESULT_BYTES};
use crate::frame::options::common_help;
use crate::frame::report::picture::{svg, Words};
use crate::frame::report::{Level, Report, Saved};

/// The command.
pub const COMMAND: Command = Command {
    name: "report",
    about: "Show results again from their files, also those of a run that was killed; no MPI needed",
    after_help: AFTER_HELP,
    options: ReportArgs::augment_args,
    translate: as_typed,
    run: |options| run(&typed(options)?),
    measures: false,
    of_this_host: true,
};

/// What stands below the options in `--help`.
const AFTER_HELP: &str = concat!(
    "Examples:
  All tables of a run; with --details also every pattern:
      beff-raw report scratch.json --full
  What a run that was killed had measured so far:
      beff-raw report scratch.jsonl
  Replays of one application on 1, 2, 4 ... processes as a picture:
      beff-raw report app-1.json app-2.json app-4.json --format svg > app.svg

",
    common_help!()
);

const TABLE: &str = "table";
const CSV: &str = "csv";
const SVG: &str = "svg";

/// What stands at the picture of replays.
const PICTURE: Words = Words { title: "Bandwidth per process over processes", x: "processes", y: "MB/s per process" };

/// Formats that every benchmark has.
const COMMON: [(&str, &str); 3] = [
    (TABLE, "for people"),
    ("json", "everything, with derived values"),
    (CSV, "one line per pattern and access method"),
];

/// Options of `report`.
#[derive(Clone, Debug, Args)]
pub struct ReportArgs {
    /// Results: journals (.jsonl) or documents (.json)
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// All tables, warnings and settings, not one screen
    #[arg(long)]
    pub full: bool,
    /// The same with a line for each pattern (method, size)
    #[arg(long)]
    pub details: bool,
    /// View to print
    #[arg(long, value_name = "FORMAT", default_value = TABLE, value_parser = words())]
    pub format: String,
}

fn words() -> PossibleValuesParser {
    let own = formats().map(|format| (format.word, format.help));
    COMMON.into_iter().chain(own).map(|(word, help)| PossibleValue::new(word).help(help)).collect::<Vec<_>>().into()
}

impl ReportArgs {
    /// Refuses files that are no results by their name.
    ///
    /// # Errors
    /// The first file with another ending than .jsonl or .json.
    pub fn check(&self) -> Result<(), UsageError> {
        check_names(&self.files)
    }
}

/// Refuses files that are no results by their name.
pub(super) fn check_names(files: &[PathBuf]) -> Result<(), UsageError> {
    let is_result = |path: &&PathBuf| path.extension().is_some_and(|ending| ending == "jsonl" || ending == "json");
    files.iter().find(|path| !is_result(path)).map_or(Ok(()), |path| {
        Err(UsageError::new(
            format!("{}: neither a journal (.jsonl) nor a result (.json)", path.display()),
            "Name the files that a run with --out PREFIX wrote: PREFIX.jsonl or PREFIX.json.",
        ))
    })
}

/// Runs the command.
///
/// # Errors
/// The first file that cannot be read or is no result.
pub fn run(args: &ReportArgs) -> anyhow::Result<Exit> {
    args.check()?;
    if args.format == CSV && args.files.len() > 1 {
        return Err(UsageError::new(
            "--format csv of several files would not be one table: the rows do not say which run they are of",
            "Name one file at a time.",
        )
        .into());
    }
    if args.format == SVG {
        publish(picture(&args.files)?.as_bytes())?;
        return Ok(Exit::Ok);
    }
    for path in &args.files {
        let (benchmark, report) = open(path)?;
        let is_read = if args.format == TABLE {
            let level = Level::of(args.full, args.details);
            publish_sheet(|place| report.sheet(level, place), Saved::From(path.clone()))?
        } else {
            publish(&view(report.as_ref(), benchmark, args, path)?)?
        };
        if !is_read {
            break;
        }
    }
    Ok(Exit::Ok)
}

/// A result, and what measured it.
pub(super) fn open(path: &Path) -> anyhow::Result<(&'static Benchmark, Box<dyn Report>)> {
    let name = path.display();
    let next = "Name a file that a run with --out PREFIX wrote: PREFIX.jsonl or PREFIX.json.";
    let bytes = input::bytes(path, MOST_RESULT_BYTES).map_err(|e| anyhow!("cannot read {name}: {e}. {next}"))?;
    load(&bytes).map_err(|e| anyhow!("{name}: {e}"))
}

/// One picture of all results.
fn picture(files: &[PathBuf]) -> anyhow::Result<String> {
    let mut points = Vec::new();
    for path in files {
        let (benchmark, report) = open(path)?;
        if benchmark.formats.iter().all(|own| own.word != SVG) {
            return Err(not_a_view(benchmark, SVG, path).into());
        }
        let own = report.points();
        if own.is_empty() {
            return Err(UsageError::new(
                format!("{}: nothing in it moved bytes, so there is no bandwidth to draw", path.display()),
                "Leave it out.",
            )
            .into());
        }
        points.extend(own);
    }
    svg(&points, PICTURE).map_err(|e| anyhow!("the picture cannot be drawn: {e}"))
}

fn view(report: &dyn Report, benchmark: &Benchmark, args: &ReportArgs, path: &Path) -> anyhow::Result<Vec<u8>> {
    report
        .format(&args.format)
        .map_or_else(|| Err(not_a_view(benchmark, &args.format, path).into()), |bytes| Ok(bytes?))
}

/// A view that the results of this benchmark do not have.
fn not_a_view(benchmark: &Benchmark, format: &str, path: &Path) -> UsageError {
    let what = formats().find(|known| known.word == format).map_or("", |known| known.of);
    let words: Vec<&str> =
        COMMON.into_iter().map(|(word, _)| word).chain(benchmark.formats.iter().map(|own| own.word)).collect();
    let (last, others) = words.split_last().unwrap_or((&"", &[]));
    UsageError::new(
        format!("{} is a result of {}: --format {format} {what}", path.display(), benchmark.title),
        format!("Use --format {} or {last}.", others.join(", ")),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::benchmark::of_words;
    use crate::frame::report::{Place, Shown};
    use crate::{b_eff, b_eff_io, imb_io};

    fn args(format: &str) -> ReportArgs {
        ReportArgs { files: Vec::new(), full: false, details: false, format: format.to_owned() }
    }

    #[test]
    fn reports_are_of_results() {
        let check = |line: &str| of_words::<ReportArgs>(line.split(' ')).check();
        check("a.json b.jsonl").unwrap();
        assert!(check("a.json b.txt").unwrap_err().to_string().contains("b.txt"));
    }

    /// A name that leads to a device without an end.
    #[test]
    fn results_have_an_end() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("run.json");
        std::os::unix::fs::symlink("/dev/zero", &path).unwrap();
        let error = format!("{:#}", run(&ReportArgs { files: vec![path], ..args(TABLE) }).unwrap_err());
        assert!(error.contains("run.json: it has more than 256 MiB"), "{error}");
    }

    #[test]
    fn every_benchmark_has_its_views_and_no_other() {
        let results: [(&Benchmark, Box<dyn Report>, &str); 3] = [
            (&b_eff_io::BENCHMARK, Box::new(Shown::new(b_eff_io::report::fixtures::complete())), "sum"),
            (&b_eff::BENCHMARK, Box::new(Shown::new(b_eff::report::fixtures::complete())), ""),
            (&imb_io::BENCHMARK, Box::new(Shown::new(imb_io::report::fixtures::complete())), "imb"),
        ];
        for (benchmark, report, own) in &results {
            let view = |format: &str| view(report.as_ref(), benchmark, &args(format), Path::new("run1.json"));
            assert!(!report.sheet(Level::Screen, &Place::default()).render(false).is_empty());
            for (format, _) in COMMON.into_iter().skip(1) {
                assert!(!view(format).unwrap().is_empty());
            }
            for format in ["sum", "imb", SVG] {
                if format == *own {
                    assert!(!view(format).unwrap().is_empty());
                    continue;
                }
                if format == SVG {
                    assert!(benchmark.formats.iter().all(|own| own.word != SVG) && report.points().is_empty());
                }
                let error = view(format).unwrap_err().downcast::<UsageError>().unwrap();
                let begin = format!("run1.json is a result of {}: --format ", benchmark.title);
                assert!(error.cause.starts_with(&begin), "{error}");
                assert!(error.next_step.contains("--format table"), "{error}");
            }
        }
    }
}
