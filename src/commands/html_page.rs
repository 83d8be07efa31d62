//! `beff-raw report --html`, `--svg`, `--gnuplot`: results as an HTML page, and its pictures as files.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::thread;

use anyhow::anyhow;

use super::results::{open_with, short_names};
use crate::frame::command::publish;
use crate::frame::error::{Exit, UsageError};
use crate::frame::report::html::{self, records, PageRun};
use crate::frame::report::model::{ReportBlock, ReportSection};
use crate::frame::report::over_time::section;
use crate::frame::report::picture::{MeasuredPoint, Picture};
use crate::frame::report::text::count;
use crate::frame::report::DetailLevel;
use crate::frame::terminal_escape::line;
use crate::frame::values::over_time::{self, DatedRun, TimeSeries};

const STDOUT: &str = "-";

#[derive(Clone, Copy, Debug)]
pub(super) struct PageOutputs<'a> {
    /// HTML page.
    pub page: Option<&'a Path>,
    /// Directory of the pictures.
    pub svg: Option<&'a Path>,
    /// Directory of the gnuplot scripts.
    pub gnuplot: Option<&'a Path>,
}

impl PageOutputs<'_> {
    pub fn is_requested(&self) -> bool {
        self.page.is_some() || self.svg.is_some() || self.gnuplot.is_some()
    }
}

/// Writes the page, the pictures, their scripts.
///
/// # Errors
/// A file that cannot be read or is not a result; an output that exists; write errors.
pub(super) fn write(files: &[PathBuf], rmax: Option<f64>, wanted: PageOutputs<'_>) -> anyhow::Result<Exit> {
    // Before the work: an output that exists.
    let to_file = wanted.page.filter(|path| *path != Path::new(STDOUT));
    if let Some(path) = to_file.filter(|path| path.symlink_metadata().is_ok()) {
        return Err(exists_error(path).into());
    }
    let (sources, common) = load_sources(files, rmax)?;
    let named =
        if wanted.svg.is_some() || wanted.gnuplot.is_some() { name_pictures(&sources, &common) } else { Vec::new() };
    let mut texts = Vec::new();
    if let Some(directory) = wanted.svg {
        texts.push((
            directory,
            "pictures",
            render_pictures(&named, ".svg", |picture| Some(html::standalone_svg(picture))),
        ));
    }
    if let Some(directory) = wanted.gnuplot {
        texts.push((directory, "scripts of gnuplot", render_pictures(&named, ".gp", html::gnuplot)));
    }
    for (directory, _, texts) in &texts {
        prepare_directory(directory, texts)?;
    }
    let mut written = Vec::new();
    if let Some(path) = wanted.page {
        let text = html::page(&sources, &common);
        match to_file {
            Some(path) => written.push(write_new_file(path, &text)?),
            None => drop(publish(text.as_bytes())?),
        }
        debug_assert!(to_file.is_some() || path == Path::new(STDOUT));
    }
    for (directory, what, texts) in &texts {
        for (name, text) in texts {
            write_new_file(&directory.join(name), text)?;
        }
        written.push(format!("{} {what} in {}", texts.len(), directory.display()));
    }
    if !written.is_empty() {
        eprintln!("beff-raw: wrote {}", line(&written.join(", ")));
    }
    Ok(Exit::Ok)
}

/// Writes a page of these sections to a new file, or to stdout.
///
/// # Errors
/// An output that exists; write errors.
pub(super) fn write_sections(path: &Path, title: &str, sections: &[ReportSection]) -> anyhow::Result<Exit> {
    write_page(path, &html::section_page(title, &[format!("beff-raw {}", env!("CARGO_PKG_VERSION"))], sections))?;
    Ok(Exit::Ok)
}

/// Writes this page to a new file, or to stdout.
///
/// # Errors
/// An output that exists; write errors.
pub(super) fn write_page(path: &Path, text: &str) -> anyhow::Result<()> {
    if path == Path::new(STDOUT) {
        publish(text.as_bytes())?;
    } else {
        eprintln!("beff-raw: wrote {}", line(&write_new_file(path, text)?));
    }
    Ok(())
}

/// Names and texts of the files of all pictures that have such a text.
fn render_pictures(
    named: &[(String, &Picture)],
    ending: &str,
    text: impl Fn(&Picture) -> Option<String>,
) -> Vec<(String, String)> {
    named.iter().filter_map(|(name, picture)| Some((format!("{name}{ending}"), text(picture)?))).collect()
}

/// Runs of time series that are shown in full; earlier ones only over time.
const MAX_FULL_RUNS: usize = 24;

/// Reads the runs, and derives what is shown of all of them together.
fn load_sources(files: &[PathBuf], rmax: Option<f64>) -> anyhow::Result<(Vec<PageRun>, Vec<ReportSection>)> {
    let names = short_names(files);
    let (mut reports, mut dated) = (Vec::new(), Vec::new());
    for (path, name) in files.iter().zip(&names) {
        let (benchmark, report) = open_with(path, rmax)?;
        if files.len() > 1 {
            dated.push(DatedRun { benchmark: benchmark.title, file: name.clone(), run: report.comparable() });
        }
        // Many are read again when they are shown.
        reports.push(Some(report).filter(|_| files.len() <= MAX_FULL_RUNS));
    }
    let all_series = over_time::series(&dated);
    let newest: Vec<&str> = newest_runs(&all_series, 1);
    let in_full: Vec<&str> = newest_runs(&all_series, MAX_FULL_RUNS);
    let all_of_series: Vec<&str> = newest_runs(&all_series, usize::MAX);
    let (mut sources, mut points) = (Vec::new(), Vec::new());
    let (mut left, mut runs_over_ranks, mut omitted) = (records::MAX_BYTES, 0, 0);
    for ((report, path), name) in reports.into_iter().zip(files).zip(&names) {
        let is_of_series = all_of_series.contains(&name.as_str());
        if is_of_series && !in_full.contains(&name.as_str()) {
            omitted += 1;
            continue;
        }
        let report = report.map_or_else(|| Ok(open_with(path, rmax)?.1), Ok::<_, anyhow::Error>)?;
        // The others of a series are over time.
        if newest.contains(&name.as_str()) || !is_of_series {
            points.extend(report.over_ranks().into_iter().map(|p| MeasuredPoint { run: name.clone(), ..p }));
            runs_over_ranks += 1;
        }
        let (model, records) = thread::scope(|scope| {
            // Both take long with many records.
            let records = scope.spawn(|| report.records(left));
            let model = report.model(DetailLevel::Page);
            (model, records.join().unwrap_or_else(|panic| resume_unwind(panic)))
        });
        left -= records.as_ref().map_or(0, Vec::len);
        sources.push(PageRun { model, file: path.display().to_string(), records });
        // Freed in the background: there can be millions of values.
        drop(thread::spawn(move || drop(report)));
    }
    let mut dates = section(&all_series);
    if let (Some(dates), true) = (&mut dates, omitted > 0) {
        dates.blocks.push(ReportBlock::Notes(vec![format!(
            "The last {MAX_FULL_RUNS} runs of each series are below in full; {} only here.",
            count(omitted, "earlier run")
        )]));
    }
    let over_ranks = if files.len() > 1 { html::ranks_section(&points, runs_over_ranks) } else { None };
    Ok((sources, dates.into_iter().chain(over_ranks).collect()))
}

/// The last runs of each series, by their names.
fn newest_runs<'a>(all: &[TimeSeries<'a>], most: usize) -> Vec<&'a str> {
    let of =
        |series: &TimeSeries<'a>| series.runs.iter().rev().take(most).map(|run| run.file.as_str()).collect::<Vec<_>>();
    all.iter().flat_map(of).collect()
}

/// All pictures with file names: the run if there are several, the benchmark, the picture.
fn name_pictures<'a>(sources: &'a [PageRun], common: &'a [ReportSection]) -> Vec<(String, &'a Picture)> {
    let mut all: Vec<(String, &Picture)> =
        common.iter().flat_map(ReportSection::pictures).map(|p| (format!("all-{}", p.name), p)).collect();
    for (number, source) in sources.iter().enumerate() {
        let stem = Path::new(&source.file).file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let of = if sources.len() > 1 { format!("{}-{}-", number + 1, html::slug(&stem)) } else { String::new() };
        let own = source.model.sections.iter().flat_map(ReportSection::pictures);
        all.extend(own.map(|p| (format!("{of}{}-{}", source.model.benchmark, p.name), p)));
    }
    let mut names: Vec<String> = Vec::new();
    for (name, _) in &mut all {
        // Names of two backends may map to one file name.
        let same = names.iter().filter(|known| *known == name).count();
        names.push(name.clone());
        if same > 0 {
            name.push_str(&format!("-{}", same + 1));
        }
    }
    all
}

/// Creates the directory if it is missing, and refuses names that exist.
fn prepare_directory(directory: &Path, named: &[(String, String)]) -> anyhow::Result<()> {
    let created = match fs::create_dir(directory) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && directory.is_dir() => Ok(()),
        other => other,
    };
    created.map_err(|e| anyhow!("cannot create the directory {}: {e}. Give another directory", directory.display()))?;
    let paths = named.iter().map(|(name, _)| directory.join(name));
    match paths.into_iter().find(|path| path.symlink_metadata().is_ok()) {
        Some(path) => Err(exists_error(&path).into()),
        None => Ok(()),
    }
}

pub(super) fn exists_error(path: &Path) -> UsageError {
    UsageError::new(
        format!("{} exists already and is not overwritten", path.display()),
        "Move it away, or give another name.",
    )
}

/// Creates the file; returns its name and length.
pub(super) fn write_new_file(path: &Path, text: &str) -> anyhow::Result<String> {
    let file = OpenOptions::new().write(true).create_new(true).open(path);
    let mut file = match file {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Err(exists_error(path).into()),
        other => other.map_err(|e| anyhow!("cannot create {}: {e}. Give another name", path.display()))?,
    };
    if let Err(error) = file.write_all(text.as_bytes()).and_then(|()| file.sync_all()) {
        // Created here, and incomplete.
        let _ = fs::remove_file(path);
        return Err(anyhow!("cannot write {}: {error}. Free space, or give another name", path.display()));
    }
    Ok(format!("{} ({} kB)", path.display(), text.len().div_ceil(1000)))
}
