//! The list as text, sections of a page, CSV and JSON.

use serde::Serialize;

use super::maxima::{systems, Maximum, SystemMaxima, Tried};
use super::value::{ListedStatus, ListedValue, ReleaseEntry};
use crate::frame::report::csv::without_formula;
use crate::frame::report::model::{labelled_texts, LabelledText, ReportBlock, ReportSection};
use crate::frame::report::render;
use crate::frame::report::table::Table;
use crate::frame::report::text::{count, TextPage};
use crate::frame::terminal_escape;
use crate::frame::units::format_seconds;
use crate::frame::words::{or_hyphen, rate};

/// Title of the list.
fn title(all: &[ListedValue]) -> String {
    let found = systems(all);
    let files: usize = found.iter().map(|system| system.tried.files.len()).sum();
    format!("Values of {}: maxima over {}", count(found.len() as u64, "system"), count(files as u64, "result"))
}

/// `run.json: mpiio, 4 ranks, 2 per host, T = 15.0 min, MPICH 4.0.2, no hints`.
fn run_text(run: &ListedValue) -> String {
    let per_host = run.ranks_per_host.map(|ranks| format!("{ranks} per host"));
    let time = run.time_seconds.map(|seconds| format!("T = {}", format_seconds(seconds)));
    let mpi = Some(run.mpi.clone()).filter(|mpi| !mpi.is_empty());
    let hints = if run.hints.is_empty() { "no hints".to_owned() } else { format!("hints {}", run.hints) };
    let parts = [Some(run.backend.clone()), Some(count(run.ranks, "rank")), per_host, time, mpi, Some(hints)];
    let parts: Vec<String> =
        parts.into_iter().flatten().chain([run.started.clone()]).filter(|p| !p.is_empty()).collect();
    format!("{}: {}", run.file, parts.join(", "))
}

fn maximum_text(maximum: &Maximum<'_>) -> String {
    let not_mpi_io = if maximum.run.is_mpi_io { "" } else { ", not MPI-IO" };
    let (value, status) = (rate(maximum.mb_per_second, None), maximum.status.text());
    format!("{value} MB/s, {status}{not_mpi_io}, by {}", run_text(maximum.run))
}

/// Maxima of a system and what was tried, with labels.
fn system_lines(system: &SystemMaxima<'_>) -> Vec<LabelledText> {
    let mut lines = Vec::new();
    for highest in &system.highest {
        let label = format!("release {}", highest.release);
        let accepted = system.accepted.iter().find(|maximum| maximum.release == highest.release);
        match accepted {
            Some(accepted) => lines.push((label, maximum_text(accepted))),
            None => lines.push((label, "no value that is comparable with those of other systems".to_owned())),
        }
        if accepted.is_none_or(|accepted| accepted.mb_per_second < highest.mb_per_second) {
            lines.push(("  highest".to_owned(), maximum_text(highest)));
        }
    }
    if system.highest.is_empty() {
        lines.push(("value".to_owned(), "none was measured".to_owned()));
    }
    lines.extend(tried_lines(&system.tried));
    lines
}

fn tried_lines(tried: &Tried) -> Vec<LabelledText> {
    fn joined<T: ToString>(all: &[T]) -> Option<String> {
        let texts: Vec<String> = all.iter().map(ToString::to_string).collect();
        (!texts.is_empty()).then(|| texts.join(", "))
    }
    // Hints contain commas.
    let hints = (!tried.hints.is_empty()).then(|| tried.hints.join("; "));
    labelled_texts([
        ("tried T", joined(&tried.times)),
        ("ranks", joined(&tried.ranks)),
        ("per host", joined(&tried.ranks_per_host)),
        ("MPI", joined(&tried.mpi)),
        ("hints", hints),
        ("backends", joined(&tried.backends)),
        ("results", joined(&tried.files)),
    ])
}

/// Sections: the maxima of each system, and the list.
#[must_use]
pub fn section_list(all: &[ListedValue]) -> Vec<ReportSection> {
    let note = "The value of a system is the maximum over T, partitions, ranks on a host, hints and MPI libraries, through MPI-IO. \
                Comparable are values that are VALID by the release, and those of release 2.1 from three partitions in 30 minutes, as its \
                program was used.";
    let mut blocks = Vec::new();
    for system in &systems(all) {
        blocks.push(ReportBlock::Text(format!("System: {}", system.system)));
        blocks.push(ReportBlock::Pairs(system_lines(system)));
    }
    let maxima = ReportSection { name: "maxima", title: title(all), note: note.to_owned(), blocks };
    let list = ReportSection {
        name: "results",
        title: "Results".into(),
        note: "MB/s by each release; * the definition by which the run was scheduled.".into(),
        blocks: vec![ReportBlock::Table(table(all)), ReportBlock::Pairs(names(all))],
    };
    vec![maxima, list]
}

/// Number of a result in the table, from 1.
fn numbers(all: &[ListedValue]) -> Vec<usize> {
    let mut files: Vec<&str> = Vec::new();
    let mut found = Vec::with_capacity(all.len());
    for value in all {
        if !files.contains(&value.file.as_str()) {
            files.push(&value.file);
        }
        found.push(files.iter().position(|file| *file == value.file).unwrap_or(0) + 1);
    }
    found
}

/// Number, file, program and system of each result.
fn names(all: &[ListedValue]) -> Vec<LabelledText> {
    let mut texts = Vec::new();
    for (number, value) in numbers(all).into_iter().zip(all) {
        if number > texts.len() {
            let text = format!("{}: {}, {}, {}", value.file, value.program, value.system, value.started);
            texts.push((number.to_string(), text));
        }
    }
    texts
}

fn table(all: &[ListedValue]) -> Table {
    let mut releases: Vec<&'static str> = all.iter().flat_map(|v| v.values.iter().map(|e| e.release)).collect();
    releases.sort_unstable();
    releases.dedup();
    let head = ["result", "backend", "ranks", "per host", "T"].map(str::to_owned).into_iter();
    let head = head.chain(releases.iter().map(|release| format!("rel. {release}")));
    let head: Vec<String> = head.chain(["validity", "MPI", "hints"].map(str::to_owned)).collect();
    let row = |(number, value): (usize, &ListedValue)| {
        let cell = |release: &&'static str| {
            let own = value.values.iter().find(|entry| entry.release == *release)?;
            let mark = if own.is_own_definition { "*" } else { "" };
            Some(format!("{}{mark}", rate(own.mb_per_second?, None)))
        };
        let own = value.values.iter().find(|entry| entry.is_own_definition);
        let names = [
            number.to_string(),
            value.backend.clone(),
            value.ranks.to_string(),
            or_hyphen(value.ranks_per_host),
            or_hyphen(value.time_seconds.map(format_seconds)),
        ];
        let words = [
            own.map_or("", |entry| entry.status.text()).to_owned(),
            or_hyphen(Some(&value.mpi).filter(|mpi| !mpi.is_empty())),
            or_hyphen(Some(&value.hints).filter(|hints| !hints.is_empty())),
        ];
        names
            .into_iter()
            .chain(releases.iter().map(|release| or_hyphen(cell(release))))
            .chain(words)
            .collect::<Vec<_>>()
    };
    Table::new("", 2, head).with_words().with_rows(numbers(all).into_iter().zip(all).map(row))
}

/// The list as text.
#[must_use]
pub fn text(all: &[ListedValue]) -> String {
    let mut page = TextPage::default();
    for section in section_list(all) {
        page.heading(&section.title);
        page.hanging("", &section.note);
        page.blank();
        render::blocks(&mut page, &section.blocks);
    }
    page.finish()
}

#[derive(Serialize)]
struct Row<'a> {
    file: &'a str,
    program: &'a str,
    started: &'a str,
    system: &'a str,
    hosts: &'a str,
    backend: &'a str,
    ranks: u64,
    ranks_per_host: Option<u64>,
    time_seconds: Option<f64>,
    mpi: &'a str,
    hints: &'a str,
    release: &'a str,
    own_definition: bool,
    mb_per_second: Option<f64>,
    status: ListedStatus,
    is_highest: bool,
    is_maximum: bool,
}

/// The list as CSV, a line for each value by a release. `is_maximum`: of its system, over the values that may be compared.
///
/// # Errors
/// Those of the CSV writer.
pub fn csv(all: &[ListedValue]) -> Result<Vec<u8>, ::csv::Error> {
    let found = systems(all);
    let mut writer = ::csv::Writer::from_writer(Vec::new());
    // A cell is one line without control sequences.
    let escaped = |text: &str| without_formula(terminal_escape::line(text).into_owned());
    for value in all {
        let texts = [
            &value.file,
            &value.program,
            &value.started,
            &value.system,
            &value.hosts,
            &value.backend,
            &value.mpi,
            &value.hints,
        ];
        let [file, program, started, system, hosts, backend, mpi, hints] = texts.map(|text| escaped(text));
        for entry in &value.values {
            let is_in = |maxima: &[Maximum<'_>]| {
                maxima.iter().any(|m| std::ptr::eq(m.run, value) && m.release == entry.release)
            };
            let own = found.iter().find(|known| known.system == value.system);
            let ReleaseEntry { release, mb_per_second, status, is_own_definition } = entry;
            writer.serialize(Row {
                file: &file,
                program: &program,
                started: &started,
                system: &system,
                hosts: &hosts,
                backend: &backend,
                ranks: value.ranks,
                ranks_per_host: value.ranks_per_host,
                time_seconds: value.time_seconds,
                mpi: &mpi,
                hints: &hints,
                release,
                own_definition: *is_own_definition,
                mb_per_second: *mb_per_second,
                status: *status,
                is_highest: own.is_some_and(|own| is_in(&own.highest)),
                is_maximum: own.is_some_and(|own| is_in(&own.accepted)),
            })?;
        }
    }
    writer.into_inner().map_err(|e| ::csv::Error::from(e.into_error()))
}

#[derive(Serialize)]
struct Document<'a> {
    program: &'static str,
    systems: Vec<SystemMaxima<'a>>,
    results: &'a [ListedValue],
}

/// The list as JSON.
///
/// # Errors
/// Those of the serializer.
pub fn document(all: &[ListedValue]) -> Result<Vec<u8>, serde_json::Error> {
    let document =
        Document { program: concat!("beff-raw ", env!("CARGO_PKG_VERSION")), systems: systems(all), results: all };
    let mut bytes = serde_json::to_vec_pretty(&document)?;
    bytes.push(b'\n');
    Ok(bytes)
}
