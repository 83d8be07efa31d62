//! `beff-raw report --require`: results against the requirements of a file, as table, document and protocol.

use std::fmt::Write;
use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::{Path, PathBuf};

use anyhow::anyhow;
use serde::Serialize;
use sha2::{Digest, Sha256};

use super::html_page::write_page;
use super::results::open_with;
use crate::frame::benchmark::BenchmarkModule;
use crate::frame::command::finish::acceptance_exit;
use crate::frame::command::publish;
use crate::frame::command::stdout::publish_sheet;
use crate::frame::error::{Exit, UsageError};
use crate::frame::input::{requirements_error, requirements_text};
use crate::frame::options::InconclusivePolicy;
use crate::frame::report::acceptance::{summary_line, text_section, HashedFile, Protocol};
use crate::frame::report::{html, render, text, DetailLevel, LoadedReport, SaveStatus};
use crate::frame::values::acceptance::{combine, Acceptance};
use crate::frame::values::comparable::{ComparableRun, FactKind};
use crate::frame::values::compare::inconsistent_facts;

const READ_BYTES: usize = 1 << 20;

/// What is judged, and how it is shown.
#[derive(Clone, Copy, Debug)]
pub(super) struct AcceptanceRequest<'a> {
    /// Results, which are repeated runs if they are several.
    pub files: &'a [PathBuf],
    /// File of the requirements.
    pub requirements: &'a Path,
    /// Rmax of LINPACK, if it is given.
    pub rmax: Option<f64>,
    /// Level of the report on a terminal.
    pub level: DetailLevel,
    /// The document instead.
    pub is_json: bool,
    /// The protocol instead.
    pub page: Option<&'a Path>,
    /// Exit code where nothing fails and something is undecided.
    pub undecided: InconclusivePolicy,
}

/// Acceptance of several runs as JSON.
#[derive(Serialize)]
struct SeveralRuns<'a> {
    results: Vec<String>,
    #[serde(flatten)]
    acceptance: &'a Acceptance,
}

/// Judges the results.
///
/// # Errors
/// Files that are no results, of a benchmark without requirements, or of different measurements; a line that is no requirement.
pub(super) fn run(request: &AcceptanceRequest<'_>) -> anyhow::Result<Exit> {
    let text = requirements_text(request.requirements)?;
    let reports = request.files.iter().map(|path| load(path, &text, request)).collect::<anyhow::Result<Vec<_>>>()?;
    let runs: Vec<ComparableRun> = reports.iter().map(|report| report.comparable()).collect();
    check_runs(request.files, &runs)?;
    let figures: Vec<_> = reports.iter().map(|report| report.required_figures()).collect();
    let acceptance = Acceptance::of(&combine(&figures)).ok_or_else(|| anyhow!("there is no requirement"))?;
    match (request.page, reports.as_slice()) {
        (Some(page), _) => {
            write_page(page, &protocol(request, &reports, &runs, &acceptance)?)?;
            // The page may go to stdout.
            eprintln!("beff-raw: {}", summary_line(&acceptance));
        }
        (None, [one]) if request.is_json => {
            let bytes = one.format("json").ok_or_else(|| anyhow!("the result has no document"))??;
            publish(&bytes)?;
        }
        (None, [one]) => {
            let file = SaveStatus::LoadedFrom(request.files[0].clone());
            publish_sheet(|place| one.sheet(request.level, place), file)?;
        }
        (None, _) if request.is_json => {
            let results = request.files.iter().map(|path| path.display().to_string()).collect();
            let mut bytes = serde_json::to_vec_pretty(&SeveralRuns { results, acceptance: &acceptance })?;
            bytes.push(b'\n');
            publish(&bytes)?;
        }
        (None, _) => {
            let mut page = text::TextPage::default();
            let shown = text_section(&acceptance);
            page.heading(&format!("{} of {}", shown.title, text::count(runs.len() as u64, "run")));
            render::blocks(&mut page, &shown.blocks);
            page.hanging("  ", &shown.note);
            publish(page.finish().as_bytes())?;
        }
    }
    let is_corrupt = runs.iter().any(|run| run.is_corrupt);
    Ok(if is_corrupt { Exit::Corruption } else { acceptance_exit(acceptance.verdict, request.undecided) })
}

fn load(path: &Path, text: &str, request: &AcceptanceRequest<'_>) -> anyhow::Result<Box<dyn LoadedReport>> {
    let (benchmark, mut report) = open_with(path, request.rmax)?;
    match report.set_requirements(text) {
        Some(Ok(())) => Ok(report),
        Some(Err(cause)) => Err(requirements_error(request.requirements, &cause).into()),
        None => Err(without_requirements(path, benchmark).into()),
    }
}

fn without_requirements(path: &Path, benchmark: &BenchmarkModule) -> UsageError {
    let title = benchmark.title;
    UsageError::new(
        format!("{} is a result of {title} for which --require has no meaning", path.display()),
        "Name results that beff-raw io wrote, or compare others with beff-raw compare --fail-below.",
    )
}

/// Several results are repeated runs of one measurement.
fn check_runs(files: &[PathBuf], runs: &[ComparableRun]) -> Result<(), UsageError> {
    for (n, run) in runs.iter().enumerate() {
        if let Some(other) = runs[..n].iter().position(|known| known.identity == run.identity) {
            return Err(UsageError::new(
                format!("{} and {} are the same run", files[other].display(), files[n].display()),
                "Name each run once: a run counted twice looks more certain than it is.",
            ));
        }
    }
    let differ = inconsistent_facts(runs, FactKind::Definition);
    if differ.is_empty() {
        return Ok(());
    }
    Err(UsageError::new(
        format!("--require: the results are not of one measurement: they differ in {}", text::list(&differ)),
        "Name repeated runs with the same options, or judge each result alone.",
    ))
}

fn protocol(
    request: &AcceptanceRequest<'_>,
    reports: &[Box<dyn LoadedReport>],
    runs: &[ComparableRun],
    acceptance: &Acceptance,
) -> anyhow::Result<String> {
    let models: Vec<_> = reports.iter().map(|report| report.model(DetailLevel::Full)).collect();
    let raw = request.files.iter().flat_map(|path| with_siblings(path));
    let hashed = raw.chain([request.requirements.to_owned()]).map(|path| hash(&path)).collect::<Result<Vec<_>, _>>()?;
    let troubles = request.files.iter().zip(runs);
    let troubles =
        troubles.flat_map(|(path, run)| run.troubles.iter().map(move |text| format!("{}: {text}", path.display())));
    let protocol = Protocol {
        models: &models,
        acceptance,
        files: &hashed,
        troubles: troubles.collect(),
        version: env!("CARGO_PKG_VERSION"),
        revision: env!("BEFF_GIT_REVISION"),
        date: &jiff::Timestamp::now().strftime("%Y-%m-%d %H:%M UTC").to_string(),
    };
    Ok(html::printed_page(&protocol.title(), &protocol.facts(), &protocol.sections()))
}

/// The journal of a document, and the document of a journal: both are raw data.
fn with_siblings(path: &Path) -> Vec<PathBuf> {
    let other = match path.extension().and_then(|ending| ending.to_str()) {
        Some("json") => Some(path.with_extension("jsonl")),
        Some("jsonl") => Some(path.with_extension("json")),
        _ => None,
    };
    [path.to_owned()].into_iter().chain(other.filter(|other| other.is_file())).collect()
}

/// SHA-256 of a file, as sha256sum prints it.
fn hash(path: &Path) -> anyhow::Result<HashedFile> {
    let (bytes, sha256) = hash_content(path).map_err(|e| anyhow!("cannot read {}: {e}", path.display()))?;
    Ok(HashedFile { name: path.display().to_string(), bytes, sha256 })
}

fn hash_content(path: &Path) -> io::Result<(u64, String)> {
    let mut file = BufReader::with_capacity(READ_BYTES, File::open(path)?);
    let (mut hasher, mut bytes, mut buffer) = (Sha256::new(), 0, vec![0; READ_BYTES]);
    loop {
        match file.read(&mut buffer)? {
            0 => break,
            read => {
                hasher.update(&buffer[..read]);
                bytes += read as u64;
            }
        }
    }
    let mut text = String::new();
    for byte in hasher.finalize() {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
    }
    Ok((bytes, text))
}

#[cfg(test)]
#[path = "acceptance_tests.rs"]
mod tests;
