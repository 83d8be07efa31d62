//! `beff-raw report`: shows results from their files, without MPI.

use std::path::{Path, PathBuf};

use anyhow::anyhow;
use clap::builder::{PossibleValue, PossibleValuesParser};
use clap::Args;

use super::acceptance::{self, AcceptanceRequest};
use super::html_page;
use super::over_time::OverTime;
use super::results::{check_names, expand_directories, open, open_with, short_names, skip};
use crate::benchmarks::formats;
use crate::frame::benchmark::{keep_arguments, parse_options, BenchmarkModule, Command};
use crate::frame::command::publish;
use crate::frame::command::stdout::publish_sheet;
use crate::frame::error::{Exit, UsageError};
use crate::frame::options::{common_help, parse_positive, RequireArgs, UndecidedArgs};
use crate::frame::report::html;
use crate::frame::report::picture::{MeasuredPoint, PictureLabels};
use crate::frame::report::system_list::{self, ListedValue};
use crate::frame::report::{DetailLevel, LoadedReport, SaveStatus};
use crate::frame::result_directory::name_of;

/// The command.
pub const COMMAND: Command = Command {
    name: "report",
    about: "Show results from their files, also those of a run that was killed; no MPI needed",
    after_help: AFTER_HELP,
    options: ReportArgs::augment_args,
    translate: keep_arguments,
    run: |options| run(&parse_options(options)?),
    measures: false,
    is_host_specific: true,
};

const AFTER_HELP: &str = concat!(
    "Examples:
  All tables of a run; with --details also every pattern; of a run that was killed scratch.jsonl:
      beff-raw report scratch.json --full
  A page for a browser, with pictures, tables and records in one file; several runs, here all of a directory, also over ranks and over time:
      beff-raw report nightly --html nightly.html
  The value of a system: the maximum over runs, and a list of all results:
      beff-raw report --system run*.json other.sum

",
    common_help!()
);

const TABLE: &str = "table";
const CSV: &str = "csv";
const JSON: &str = "json";
const SVG: &str = "svg";

const PICTURE_LABELS: PictureLabels =
    PictureLabels { title: "Bandwidth per process over processes", x: "processes", y: "MB/s per process" };

const COMMON_FORMATS: [(&str, &str); 3] = [
    (TABLE, "for people"),
    (JSON, "everything, with derived values; of several files an array"),
    (CSV, "one line per pattern and access method; of several files one table, with the changes of the set-up between runs of one definition"),
];

/// Options of `report`.
#[derive(Clone, Debug, Args)]
pub struct ReportArgs {
    /// Results: journals (.jsonl), documents (.json), or directories with documents
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// All tables, warnings and settings, not one screen
    #[arg(long)]
    pub full: bool,
    /// The same with a line for each pattern (method, size)
    #[arg(long)]
    pub details: bool,
    /// The value of a system: the maximum over all FILEs, which may also be summaries (.sum) of other programs, the run that achieved it, what was
    /// tried, and a list; with --format csv or json, or --html OUT
    #[arg(long, conflicts_with_all = ["full", "details", "svg", "gnuplot"])]
    pub system: bool,
    /// View to print
    #[arg(long, value_name = "FORMAT", default_value = TABLE, value_parser = format_parser())]
    pub format: String,
    /// Rmax of LINPACK on this system in Gflop/s, for the balance factors b_eff_io / Rmax and b_eff / Rmax of results of `io` and `comm`;
    /// replaces the one of the run
    #[arg(long, value_name = "GFLOPS", value_parser = parse_positive)]
    pub rmax: Option<f64>,
    /// Write an HTML page to this new file instead ('-': stdout): pictures, tables and records of all FILEs, no script, no network
    #[arg(long, value_name = "OUT", conflicts_with_all = ["full", "details", "format"])]
    pub html: Option<PathBuf>,
    /// Write each picture of that page to this directory, which is created if it is missing
    #[arg(long, value_name = "DIR", conflicts_with_all = ["full", "details", "format"])]
    pub svg: Option<PathBuf>,
    /// Write each picture with curves as a gnuplot script with its data to this directory
    #[arg(long, value_name = "DIR", conflicts_with_all = ["full", "details", "format"])]
    pub gnuplot: Option<PathBuf>,
    /// Requirements.
    #[command(flatten)]
    pub acceptance: RequireArgs,
    /// Exit code of an undecided acceptance.
    #[command(flatten)]
    pub undecided: UndecidedArgs,
}

fn format_parser() -> PossibleValuesParser {
    let own = formats().map(|format| (format.name, format.help));
    COMMON_FORMATS
        .into_iter()
        .chain(own)
        .map(|(word, help)| PossibleValue::new(word).help(help))
        .collect::<Vec<_>>()
        .into()
}

impl ReportArgs {
    /// Refuses files whose extension is not that of a result.
    ///
    /// # Errors
    /// The first such file.
    pub fn check(&self) -> Result<(), UsageError> {
        check_names(&self.files)
    }
}

/// Runs the command.
///
/// # Errors
/// The first file that cannot be read or is not a result.
pub fn run(args: &ReportArgs) -> anyhow::Result<Exit> {
    args.check()?;
    let named = &args.files;
    let args = &ReportArgs { files: expand_directories(named)?, ..args.clone() };
    if let Some(requirements) = &args.acceptance.require {
        return acceptance::run(&acceptance_request(args, requirements)?);
    }
    if args.system {
        return system(args, named);
    }
    let wanted = html_page::PageOutputs {
        page: args.html.as_deref(),
        svg: args.svg.as_deref(),
        gnuplot: args.gnuplot.as_deref(),
    };
    if wanted.is_requested() {
        return html_page::write(&args.files, args.rmax, wanted);
    }
    if args.format == SVG {
        publish(picture(&args.files)?.as_bytes())?;
        return Ok(Exit::Ok);
    }
    if args.files.len() > 1 && [CSV, JSON].contains(&args.format.as_str()) {
        publish(&join_results(args)?)?;
        return Ok(Exit::Ok);
    }
    let mut dates = OverTime::new(&args.files);
    for path in &args.files {
        let (benchmark, report) = open_with(path, args.rmax)?;
        dates.add(benchmark, report.as_ref());
        let is_read = if args.format == TABLE {
            let level = DetailLevel::of(args.full, args.details);
            publish_sheet(|place| report.sheet(level, place), SaveStatus::LoadedFrom(path.clone()))?
        } else {
            publish(&render_format(report.as_ref(), benchmark, args, path)?)?
        };
        if !is_read {
            return Ok(Exit::Ok);
        }
    }
    if let Some(text) = dates.text().filter(|_| args.format == TABLE) {
        publish(text.as_bytes())?;
    }
    Ok(Exit::Ok)
}

/// The acceptance has a table, the document and a protocol.
fn acceptance_request<'a>(args: &'a ReportArgs, requirements: &'a Path) -> Result<AcceptanceRequest<'a>, UsageError> {
    if args.system || args.svg.is_some() || args.gnuplot.is_some() || ![TABLE, JSON].contains(&args.format.as_str()) {
        return Err(UsageError::new(
            "--require has no --system, --svg, --gnuplot and no other format than table and json",
            "Use --full, --details, --format json or --html OUT, or omit --require.",
        ));
    }
    Ok(AcceptanceRequest {
        files: &args.files,
        requirements,
        rmax: args.rmax,
        level: DetailLevel::of(args.full, args.details),
        is_json: args.format == JSON,
        page: args.html.as_deref(),
        undecided: args.undecided.inconclusive,
    })
}

/// The list of results, and the maxima of their systems. Of a directory other results are skipped.
fn system(args: &ReportArgs, named: &[PathBuf]) -> anyhow::Result<Exit> {
    let mut all = Vec::new();
    for path in &args.files {
        let (benchmark, report) = open(path)?;
        let own = report.listed();
        if own.is_empty() && !named.contains(path) {
            let directory = path.parent().unwrap_or(Path::new("."));
            skip(directory, &[name_of(path)], "results without a value of b_eff_io");
            continue;
        }
        if own.is_empty() {
            return Err(UsageError::new(
                format!(
                    "{} is a result of {} without values of partitions: it has no b_eff_io",
                    path.display(),
                    benchmark.title
                ),
                "Leave it out.",
            )
            .into());
        }
        let file = path.display().to_string();
        all.extend(own.into_iter().map(|value| ListedValue { file: file.clone(), ..value }));
    }
    if let Some(path) = &args.html {
        return html_page::write_sections(path, "Value of a system", &system_list::section_list(&all));
    }
    let bytes = match args.format.as_str() {
        TABLE => system_list::text(&all).into_bytes(),
        CSV => system_list::csv(&all)?,
        JSON => system_list::document(&all)?,
        other => {
            return Err(UsageError::new(
                format!("--system has no format {other}"),
                format!("Use --format {TABLE}, {CSV} or {JSON}, or --html OUT."),
            )
            .into())
        }
    };
    publish(&bytes)?;
    Ok(Exit::Ok)
}

/// Several results as one table with one header, or as one array of documents.
fn join_results(args: &ReportArgs) -> anyhow::Result<Vec<u8>> {
    let (mut all, mut first): (Vec<u8>, Option<(&Path, Vec<u8>)>) = (Vec::new(), None);
    let (mut dates, mut tables) = (OverTime::new(&args.files), Vec::new());
    for path in &args.files {
        let (benchmark, report) = open_with(path, args.rmax)?;
        let bytes = render_format(report.as_ref(), benchmark, args, path)?;
        if args.format == JSON {
            all.extend_from_slice(if all.is_empty() { b"[\n" } else { b",\n" });
            all.extend_from_slice(bytes.trim_ascii_end());
            continue;
        }
        let end = bytes.iter().position(|byte| *byte == b'\n').map_or(bytes.len(), |at| at + 1);
        let (header, lines) = bytes.split_at(end);
        match &first {
            None => first = Some((path, header.to_vec())),
            Some((of, known)) if known != header => {
                return Err(UsageError::new(
                    format!(
                        "{} and {} are results of two benchmarks: their tables have other columns",
                        of.display(),
                        path.display()
                    ),
                    "Name the files of one benchmark at a time.",
                )
                .into());
            }
            Some(_) => {}
        }
        dates.add(benchmark, report.as_ref());
        tables.push(lines.to_vec());
    }
    if args.format == JSON {
        all.extend_from_slice(b"\n]\n");
        return Ok(all);
    }
    let (_, header) = first.unwrap_or((Path::new(""), Vec::new()));
    dates.join_tables(&header, &tables)
}

fn picture(files: &[PathBuf]) -> anyhow::Result<String> {
    let mut points = Vec::new();
    for (path, name) in files.iter().zip(short_names(files)) {
        let (benchmark, report) = open(path)?;
        if benchmark.formats.iter().all(|own| own.name != SVG) {
            return Err(unsupported_format(benchmark, SVG, path).into());
        }
        let own = report.points();
        if own.is_empty() {
            return Err(UsageError::new(
                format!("{}: nothing in it moved bytes, so there is no bandwidth to draw", path.display()),
                "Leave it out.",
            )
            .into());
        }
        points.extend(own.into_iter().map(|point| MeasuredPoint { run: name.clone(), ..point }));
    }
    html::ranks_svg(&points, PICTURE_LABELS)
        .ok_or_else(|| anyhow!("the picture cannot be drawn: there is nothing to draw"))
}

fn render_format(
    report: &dyn LoadedReport,
    benchmark: &BenchmarkModule,
    args: &ReportArgs,
    path: &Path,
) -> anyhow::Result<Vec<u8>> {
    report
        .format(&args.format)
        .map_or_else(|| Err(unsupported_format(benchmark, &args.format, path).into()), |bytes| Ok(bytes?))
}

fn unsupported_format(benchmark: &BenchmarkModule, format: &str, path: &Path) -> UsageError {
    let what = formats().find(|known| known.name == format).map_or("", |known| known.refusal);
    let words: Vec<&str> =
        COMMON_FORMATS.into_iter().map(|(word, _)| word).chain(benchmark.formats.iter().map(|own| own.name)).collect();
    let (last, others) = words.split_last().unwrap_or((&"", &[]));
    UsageError::new(
        format!("{} is a result of {}: --format {format} {what}", path.display(), benchmark.title),
        format!("Use --format {} or {last}.", others.join(", ")),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::benchmark::options_from_words;
    use crate::frame::options::InconclusivePolicy;
    use crate::frame::report::{DisplayContext, ResultReport};
    use crate::{b_eff, b_eff_io, imb_io};

    fn args(format: &str) -> ReportArgs {
        ReportArgs {
            files: Vec::new(),
            full: false,
            details: false,
            system: false,
            format: format.to_owned(),
            rmax: None,
            html: None,
            svg: None,
            gnuplot: None,
            acceptance: RequireArgs::default(),
            undecided: UndecidedArgs { inconclusive: InconclusivePolicy::Fail },
        }
    }

    #[test]
    fn reports_are_of_results() {
        let check = |line: &str| options_from_words::<ReportArgs>(line.split(' ')).check();
        check("a.json b.jsonl old.sum table.txt").unwrap();
        assert!(check("a.json b.png").unwrap_err().to_string().contains("b.png"));
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
        let results: [(&BenchmarkModule, Box<dyn LoadedReport>, &str); 3] = [
            (&b_eff_io::BENCHMARK, Box::new(ResultReport::new(b_eff_io::report::fixtures::complete())), "sum"),
            (&b_eff::BENCHMARK, Box::new(ResultReport::new(b_eff::report::fixtures::complete())), ""),
            (&imb_io::BENCHMARK, Box::new(ResultReport::new(imb_io::report::fixtures::complete())), "imb"),
        ];
        for (benchmark, report, own) in &results {
            let view = |format: &str| render_format(report.as_ref(), benchmark, &args(format), Path::new("run1.json"));
            assert!(!report.sheet(DetailLevel::Screen, &DisplayContext::default()).render(false).is_empty());
            for (format, _) in COMMON_FORMATS.into_iter().skip(1) {
                assert!(!view(format).unwrap().is_empty());
            }
            for format in ["sum", "imb", SVG] {
                if format == *own {
                    assert!(!view(format).unwrap().is_empty());
                    continue;
                }
                if format == SVG {
                    assert!(benchmark.formats.iter().all(|own| own.name != SVG) && report.points().is_empty());
                }
                let error = view(format).unwrap_err().downcast::<UsageError>().unwrap();
                let begin = format!("run1.json is a result of {}: --format ", benchmark.title);
                assert!(error.cause.starts_with(&begin), "{error}");
                assert!(error.next_step.contains("--format table"), "{error}");
            }
        }
    }
}
