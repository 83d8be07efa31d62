use std::fs;
use std::path::{Path, PathBuf};

use super::*;
use crate::b_eff_io::records::RunResult;
use crate::b_eff_io::report::fixtures;
use crate::commands::report::{self, ReportArgs};
use crate::commands::results::open;
use crate::frame::benchmark::options_from_words;
use crate::frame::report::csv::read_csv;
use crate::frame::report::{html, ResultReport};
use crate::{b_eff, imb_io};

/// Results of nights, the third of which is on another kernel and was interrupted.
fn nights(directory: &Path, nights: u32) -> Vec<PathBuf> {
    let night = |day: u32| {
        let mut result = fixtures::repeated();
        result.manifest.machine.started_utc = format!("2026-11-{day:02}T03:00:00Z");
        let factor = 1.0 + 0.01 * f64::from(day * 7 % 5);
        let repetitions = result.repetitions.iter_mut().map(|again| &mut again.measurement);
        result.patterns.iter_mut().chain(repetitions).for_each(|p| p.intervals.transfer_seconds *= factor);
        if day == 3 {
            result.manifest.machine.kernel = "Linux 6.12.0".into();
            result.ending.outcome = crate::frame::records::RunOutcome::Interrupted;
        }
        let path = directory.join(format!("night{day:02}.json"));
        fs::write(&path, document(result)).unwrap();
        path
    };
    (1..=nights).map(night).collect()
}

fn document(result: RunResult) -> Vec<u8> {
    ResultReport::new(result).format("json").unwrap().unwrap()
}

/// The last digits of intervals depend on the C library.
fn rounded(text: &str) -> String {
    let word = |word: &str| match word.parse::<f64>() {
        Ok(number) if word.contains('.') => format!("{number:.3}"),
        _ => word.to_owned(),
    };
    let line = |line: &str| line.split(' ').map(word).collect::<Vec<_>>().join(" ");
    text.lines().map(line).collect::<Vec<_>>().join("\n")
}

fn all_of(files: &[PathBuf]) -> OverTime {
    let mut all = OverTime::new(files);
    for file in files {
        let (benchmark, report) = open(file).unwrap();
        all.add(benchmark, report.as_ref());
    }
    all
}

#[test]
fn golden_nights() {
    let directory = tempfile::tempdir().unwrap();
    let files = nights(directory.path(), 4);
    let all = all_of(&files);
    let text = all.text().unwrap();
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    insta::assert_snapshot!("nights.text", text);
    let series = series(&all.runs);
    let section = crate::frame::report::over_time::section(&series).unwrap();
    let scripts: Vec<String> = section.pictures().iter().filter_map(|picture| html::gnuplot(picture)).collect();
    insta::assert_snapshot!("nights.gp", rounded(&scripts.join("\n")));
    let page = html::section_page("Nights", &[], &[section]);
    insta::assert_snapshot!("nights.html", page.split("</style>").nth(1).unwrap());
}

#[test]
fn a_table_of_several_results_names_the_changes_of_the_set_up() {
    let directory = tempfile::tempdir().unwrap();
    let files = nights(directory.path(), 3);
    let tables: Vec<Vec<u8>> = files.iter().map(|file| open(file).unwrap().1.format("csv").unwrap().unwrap()).collect();
    let (header, lines): (Vec<Vec<u8>>, Vec<Vec<u8>>) = tables
        .iter()
        .map(|table| table.split_at(table.iter().position(|byte| *byte == b'\n').unwrap() + 1))
        .map(|(header, lines)| (header.to_vec(), lines.to_vec()))
        .unzip();
    let joined = all_of(&files).join_tables(&header[0], &lines).unwrap();
    let (column, rows) = read_csv(&joined);
    let changes: Vec<(&str, &str)> =
        rows.iter().map(|row| (&row[column("started_utc")], &row[column(CHANGE_COLUMN)])).collect();
    let (same, changed): (Vec<_>, Vec<_>) =
        changes.into_iter().partition(|(start, _)| !start.starts_with("2026-11-03"));
    assert!(!same.is_empty() && same.iter().all(|(_, change)| change.is_empty()), "{same:?}");
    assert!(
        !changed.is_empty()
            && changed.iter().all(|(_, change)| change.starts_with("kernel ") && change.ends_with(" -> Linux 6.12.0")),
        "{changed:?}"
    );
}

#[test]
fn results_of_other_benchmarks_have_series_too() {
    let directory = tempfile::tempdir().unwrap();
    let mut files = Vec::new();
    for day in 1..=2 {
        let start = format!("2026-11-{day:02}T03:00:00Z");
        let mut messages = b_eff::report::fixtures::complete();
        messages.setup.machine.started_utc.clone_from(&start);
        let mut rows = imb_io::report::fixtures::complete();
        rows.setup.machine.started_utc = start;
        for (name, bytes) in [
            ("comm", ResultReport::new(messages).format("json").unwrap().unwrap()),
            ("imb", ResultReport::new(rows).format("json").unwrap().unwrap()),
        ] {
            let path = directory.path().join(format!("{name}{day}.json"));
            fs::write(&path, bytes).unwrap();
            files.push(path);
        }
    }
    let text = all_of(&files).text().unwrap();
    for part in ["b_eff, 2 runs", "IMB-IO, 2 runs", "comm1", "imb2", "geometric mean of"] {
        assert!(text.contains(part), "no {part} in {text}");
    }
    assert!(all_of(&files[..2]).text().is_none(), "one run each");
    assert!(all_of(&files[..1]).text().is_none());
}

/// A report of a directory with other documents, as page, scripts and pictures, and of its files by name.
#[test]
fn a_directory_is_reported_like_its_files() {
    let directory = tempfile::tempdir().unwrap();
    let at = directory.path().join("nightly");
    fs::create_dir_all(at.join("older.json")).unwrap();
    nights(&at, 3);
    fs::write(at.join("notes.json"), b"{}").unwrap();
    fs::write(at.join("cut.json"), &fs::read(at.join("night01.json")).unwrap()[..5000]).unwrap();
    let report = |words: &[&str]| {
        let args = options_from_words::<ReportArgs>(words.iter().copied());
        report::run(&args)
    };
    let out = |name: &str| directory.path().join(name).to_str().unwrap().to_owned();
    let [page, scripts, named] = ["page.html", "scripts", "named.html"].map(out);
    let nightly = at.to_str().unwrap();
    report(&[nightly, "--html", &page, "--gnuplot", &scripts]).unwrap();
    let files: Vec<String> =
        (1..=3).map(|day| at.join(format!("night{day:02}.json")).to_str().unwrap().to_owned()).collect();
    report(&[files[2].as_str(), &files[0], &files[1], "--html", &named]).unwrap();
    let [text, named] = [&page, &named].map(|path| fs::read_to_string(path).unwrap());
    for text in [&text, &named] {
        assert_eq!(text.matches("<article ").count(), 3);
        assert!(text.contains("id=\"all-over-time\"") && text.contains("a: since 2026-11-03 03:00, night03: kernel"));
        // All are over time: over ranks there is one of them, as for a single run.
        assert!(!text.contains(", night01<"));
    }
    let mut names: Vec<String> =
        fs::read_dir(&scripts).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    names.retain(|name| name.contains("-over-time"));
    names.sort();
    assert_eq!(names, ["all-means-over-time.gp", "all-selected-over-time.gp", "all-value-over-time.gp"]);
    report(&[nightly, "--format", "csv"]).unwrap();
    report(&[nightly, "--system"]).unwrap();
    let empty = at.join("older.json");
    let error = report(&[empty.to_str().unwrap()]).unwrap_err().to_string();
    assert!(error.contains("older.json is a directory without results"), "{error}");
}

/// Two runs of other definitions with as many ranks are told apart by name.
#[test]
fn runs_that_are_no_series_are_named_over_ranks() {
    let directory = tempfile::tempdir().unwrap();
    let page = directory.path().join("page.html");
    let mut files = Vec::new();
    for (name, time_seconds) in [("short", 60.0), ("long", 900.0)] {
        let mut result = fixtures::complete();
        result.config.time_seconds = time_seconds;
        result.manifest.machine.started_utc = format!("2026-11-01T03:{:02}:00Z", time_seconds as u32 / 60);
        result.patterns.iter_mut().for_each(|p| p.intervals.transfer_seconds *= time_seconds / 60.0);
        let path = directory.path().join(format!("{name}.json"));
        fs::write(&path, document(result)).unwrap();
        files.push(path.to_str().unwrap().to_owned());
    }
    let words = [files[0].as_str(), &files[1], "--html", page.to_str().unwrap()];
    report::run(&options_from_words::<ReportArgs>(words)).unwrap();
    let text = fs::read_to_string(&page).unwrap();
    assert!(!text.contains("id=\"all-over-time\""));
    for name in ["mpiio, short", "mpiio, long"] {
        assert!(text.contains(name), "no {name}");
    }
}
