use std::fs;

use super::*;
use crate::b_eff_io::report::fixtures;
use crate::frame::benchmark::options_from_words;
use crate::frame::records::RunOutcome;
use crate::frame::report::{LoadedReport, ResultReport};
use crate::{b_eff, imb_io};

/// Result of a night, with times longer by a factor.
fn document(day: u32, factor: f64, change: impl Fn(&mut crate::b_eff_io::records::RunResult)) -> Vec<u8> {
    let mut result = fixtures::complete();
    result.manifest.machine.started_utc = format!("2026-11-{day:02}T03:00:00Z");
    result.config.backends.truncate(1);
    result.patterns.retain(|p| p.backend == "mpiio");
    result.types.retain(|t| t.backend == "mpiio");
    let factor = factor * (1.0 + 0.01 * f64::from(day * 7 % 5));
    result.patterns.iter_mut().for_each(|p| p.intervals.transfer_seconds *= factor);
    change(&mut result);
    ResultReport::new(result).format("json").unwrap().unwrap()
}

/// A directory with 12 nights, one of which was interrupted, and other files.
fn nights() -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    let write = |name: &str, bytes: &[u8]| fs::write(directory.path().join(name), bytes).unwrap();
    for day in 1..=12 {
        let change = |result: &mut crate::b_eff_io::records::RunResult| {
            if day == 5 {
                result.ending.outcome = RunOutcome::Interrupted;
            }
            if day < 3 {
                result.manifest.machine.kernel = "Linux 6.1.0".into();
            }
        };
        write(&format!("{day:02}.json"), &document(day, 1.0, change));
    }
    write("comm.json", &ResultReport::new(b_eff::report::fixtures::complete()).format("json").unwrap().unwrap());
    write("notes.json", b"{}");
    write("empty.json", b"");
    write("table.csv", b"a,b\n");
    fs::create_dir(directory.path().join("older.json")).unwrap();
    directory
}

fn words(line: &[&str]) -> GateArgs {
    options_from_words(line.iter().copied())
}

/// Exit code of the command, and its output in three forms, with names instead of paths.
fn outputs(directory: &Path, new: &str, options: HistoryOptions) -> [String; 3] {
    let (benchmark, report) = open(&directory.join(new)).unwrap();
    let earlier = read_directory(directory, benchmark.name).unwrap();
    let history = judge(&report.comparable(), &earlier.runs, options);
    let view = HistoryView {
        title: benchmark.title,
        file: new,
        directory: "nightly",
        unreadable: &earlier.unreadable,
        other_benchmarks: earlier.other_benchmarks,
        history: &history,
        options,
    };
    [text(&view), markdown(&view), String::from_utf8(json(&view).unwrap()).unwrap()]
}

#[test]
fn golden_gates() {
    let nights = nights();
    let at = nights.path();
    let options = HistoryOptions { last: 10, any_set_up: false, limit: 1.0 };
    fs::write(at.join("slow.json"), document(13, 1.4, |_| {})).unwrap();
    fs::write(at.join("pass.json"), document(14, 1.0, |_| {})).unwrap();
    let cut = document(15, 1.4, |result| result.ending.outcome = RunOutcome::Limit);
    fs::write(at.join("cut.json"), cut).unwrap();
    for name in ["slow", "pass", "cut"] {
        let [text, page, document] = outputs(at, &format!("{name}.json"), options);
        assert!(text.lines().all(|line| line.chars().count() <= 80 && line == line.trim_end()), "{text}");
        insta::assert_snapshot!(format!("{name}.text"), text);
        insta::assert_snapshot!(format!("{name}.md"), page);
        if name == "slow" {
            insta::assert_snapshot!(format!("{name}.json"), document);
        }
    }
    let [text, ..] = outputs(at, "03.json", options);
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(line.starts_with("INCONCLUSIVE: 0 good runs before it with its definition and set-up, 3 are"), "{text}");
    assert!(!text.contains("median 95 %"), "columns of a baseline that does not exist: {text}");
    let [text, ..] = outputs(at, "slow.json", HistoryOptions { limit: 0.5, ..options });
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(line.starts_with("PASS: ") && line.contains("; slower, but not below the limit of 0.50"), "{text}");
    let [text, ..] = outputs(at, "slow.json", HistoryOptions { any_set_up: true, ..options });
    assert!(text.starts_with("SLOWER: ") && !text.contains("another set-up"), "{text}");
}

#[test]
fn exit_codes_are_those_of_the_verdicts() {
    let nights = nights();
    let at = nights.path();
    let write = |name: &str, bytes: Vec<u8>| {
        let path = at.join(name);
        fs::write(&path, bytes).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let slow = write("slow.json", document(13, 1.4, |_| {}));
    let cut = write("cut.json", document(14, 1.0, |result| result.ending.outcome = RunOutcome::Killed));
    let rows =
        write("rows.json", ResultReport::new(imb_io::report::fixtures::complete()).format("json").unwrap().unwrap());
    let first = at.join("01.json").to_str().unwrap().to_owned();
    let last = at.join("12.json").to_str().unwrap().to_owned();
    let directory = at.to_str().unwrap();
    for (file, more, exit) in [
        (&slow, &[][..], Exit::BelowLimit),
        (&slow, &["--inconclusive", "pass", "--format", "json"], Exit::BelowLimit),
        (&slow, &["--fail-below", "50%"], Exit::Ok),
        (&last, &["--markdown"], Exit::Ok),
        (&cut, &[], Exit::Inconclusive),
        (&cut, &["--inconclusive", "pass"], Exit::Ok),
        (&first, &["--set-up", "any"], Exit::Inconclusive),
        (&rows, &["--last", "3"], Exit::Inconclusive),
    ] {
        assert_eq!(run(&words(&[&[directory, file.as_str()], more].concat())).unwrap(), exit, "{file} {more:?}");
    }
    // The newest run of a directory: the one that was cut.
    assert_eq!(run(&words(&[directory, directory])).unwrap(), Exit::Inconclusive);
    fs::remove_file(&cut).unwrap();
    assert_eq!(run(&words(&[directory, directory])).unwrap(), Exit::BelowLimit);
    for (line, parts) in [
        ([slow.as_str(), directory], ["is not a directory", "beff-raw gate DIR NEW.json"]),
        (["no-such-directory", &slow], ["is not a directory", "beff-raw gate DIR NEW.json"]),
    ] {
        let error = run(&words(&line)).unwrap_err().to_string();
        assert!(parts.iter().all(|part| error.contains(part)), "{error}");
    }
}
