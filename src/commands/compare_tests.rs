use std::ffi::OsString;
use std::fs;

use super::*;
use crate::frame::benchmark::options_from_words;
use crate::frame::records::{InterferenceRecord, ProbeRecord, ProbeTime};
use crate::frame::report::{ResultReport, Views};
use crate::{b_eff, b_eff_io, imb_io, replay};

/// Maximum width, and maximum number of lines of the text without `--full`.
const WIDTH: usize = 80;
const MAX_LINES: usize = 50;

fn comparable<R: Views + std::fmt::Debug>(result: R) -> ComparableRun
where
    R::Derived: std::fmt::Debug,
{
    crate::frame::report::LoadedReport::comparable(&ResultReport::new(result))
}

fn started_at(minute: usize, mut run: ComparableRun) -> ComparableRun {
    run.started_utc = format!("2025-01-31T12:{minute:02}:00Z");
    run.identity = format!("{minute}");
    run
}

/// A b_eff_io run with a factor for the time of its transfers, and of its syncs where chunks are odd.
fn io(minute: usize, transfer: f64, odd_sync: f64) -> ComparableRun {
    let mut result = b_eff_io::report::fixtures::complete();
    result.config.backends.truncate(1);
    result.patterns.retain(|p| p.backend == "mpiio");
    result.types.retain(|t| t.backend == "mpiio");
    for (n, p) in result.patterns.iter_mut().enumerate() {
        let wobble = 1.0 + 0.01 * ((n * 7 + minute * 3) % 5) as f64;
        p.intervals.transfer_seconds *= transfer * wobble;
        if p.chunk_bytes % 1024 != 0 {
            p.intervals.sync_seconds += p.seconds() * odd_sync;
        }
    }
    started_at(minute, comparable(result))
}

/// The same on a shared machine, with storage that drifted.
fn disturbed(minute: usize, transfer: f64) -> ComparableRun {
    let mut result = b_eff_io::report::fixtures::complete();
    result.config.backends.truncate(1);
    result.patterns.retain(|p| p.backend == "mpiio");
    result.types.retain(|t| t.backend == "mpiio");
    for p in &mut result.patterns {
        p.intervals.transfer_seconds *= transfer;
        p.interference =
            Some(InterferenceRecord { cpu_seconds: 10.0, other_process_seconds: 2.3, ..Default::default() });
    }
    let probe = |at, seconds: f64| ProbeRecord {
        at,
        round_bytes: 1_000_000,
        write_seconds: vec![0.01; 9],
        read_seconds: vec![seconds; 9],
        ..ProbeRecord::default()
    };
    result.probes = vec![probe(ProbeTime::Start, 0.007), probe(ProbeTime::End, 0.01)];
    started_at(minute, comparable(result))
}

fn with_hints(mut run: ComparableRun) -> ComparableRun {
    for fact in run.facts.iter_mut().filter(|fact| fact.name == "hints") {
        fact.value = "romio_ds_write=enable".into();
    }
    run
}

fn named(sides: &[Vec<ComparableRun>]) -> Vec<ComparisonSide> {
    let files = |n: usize, runs: &[ComparableRun]| -> Vec<PathBuf> {
        let letter = ["old", "new", "other"][n];
        (1..=runs.len()).map(|run| format!("{letter}{run}.json").into()).collect()
    };
    sides.iter().enumerate().map(|(n, runs)| describe_side(n, &files(n, runs), runs)).collect()
}

/// Text, Markdown and the document of two sides.
fn views(title: &str, sides: &[Vec<ComparableRun>], limit: Option<f64>, full: bool) -> [String; 3] {
    let named = named(sides);
    let comparison = compare([&sides[0], &sides[1]], None, 1);
    let gate = limit.map(|limit| gate(&comparison, limit));
    let view =
        ComparisonView { title, sides: [&named[0], &named[1]], comparison: &comparison, gate: gate.as_ref(), full };
    let document = String::from_utf8(json(title, &named, &[view]).unwrap()).unwrap();
    [text(&view), markdown(&view), document]
}

fn assert_fits(name: &str, text: &str) {
    for line in text.lines() {
        assert!(line.chars().count() <= WIDTH, "{name}: {line}");
        assert_eq!(line, line.trim_end(), "{name}");
    }
}

/// Name, benchmark, sides, limit.
type ComparisonCase = (&'static str, &'static str, [Vec<ComparableRun>; 2], Option<f64>);

fn cases() -> Vec<ComparisonCase> {
    let slower = [1, 3, 5].map(|m| io(m, 1.0, 0.0)).to_vec();
    let hurt = [2, 4, 6].map(|m| with_hints(io(m, 1.0, 9.0))).to_vec();
    let mut other = b_eff_io::report::fixtures::complete();
    other.config.time_seconds = 60.0;
    other.manifest.machine.kernel = "Linux 6.19.0 x86_64".into();
    let good = [1, 3, 5].map(|m| io(m, 1.0, 0.0)).to_vec();
    let comm = b_eff::report::fixtures::complete();
    let imb = imb_io::report::fixtures::complete();
    let mut slow = imb.clone();
    slow.rows.iter_mut().flat_map(|row| &mut row.times).for_each(|times| times.max_seconds *= 5.0);
    vec![
        ("hurt", "b_eff_io", [slower.clone(), hurt], Some(0.95)),
        ("itself", "b_eff_io", [vec![io(1, 1.0, 0.0)], vec![io(1, 1.0, 0.0)]], Some(0.95)),
        ("one_beside_three", "b_eff_io", [slower, vec![io(7, 1.3, 0.0)]], None),
        (
            "definition",
            "b_eff_io",
            [vec![comparable(b_eff_io::report::fixtures::complete())], vec![comparable(other)]],
            None,
        ),
        (
            "interrupted",
            "b_eff",
            [vec![comparable(comm)], vec![comparable(b_eff::report::fixtures::interrupted())]],
            Some(0.9),
        ),
        ("shared", "b_eff_io", [good, [2, 4, 6].map(|m| disturbed(m, 1.5)).to_vec()], Some(0.95)),
        ("rows", "IMB-IO", [vec![comparable(imb)], vec![comparable(slow)]], Some(0.9)),
    ]
}

#[test]
fn golden_comparisons() {
    for (name, title, sides, limit) in cases() {
        let [text, page, document] = views(title, &sides, limit, false);
        assert_fits(name, &text);
        assert!(text.lines().count() <= MAX_LINES, "{name}: {} lines", text.lines().count());
        insta::assert_snapshot!(format!("{name}.text"), text);
        insta::assert_snapshot!(format!("{name}.md"), page);
        assert!(document.starts_with("{\n"));
        let [full, page, _] = views(title, &sides, limit, true);
        assert_fits(name, &full);
        assert!(full.len() >= text.len() && page.contains("| --- |") || page.contains("|---|"), "{name}");
    }
}

#[test]
fn every_line_of_all_fits_and_nothing_in_it_is_obeyed() {
    let mut run = io(1, 1.0, 0.0);
    run.troubles.push("an error ".repeat(40));
    run.facts.iter_mut().for_each(|fact| fact.value = format!("{} \u{1b}[2J{}", fact.value, "long ".repeat(60)));
    for quantity in &mut run.quantities {
        quantity.row = format!("{} {}", quantity.row, "x".repeat(90));
        quantity.context.facts.push(("calls".into(), "\u{1b}|`<b>".repeat(40)));
    }
    for full in [false, true] {
        let [text, page, _] = views("title", &[vec![run.clone()], vec![with_hints(run.clone())]], Some(0.5), full);
        assert_fits("long", &text);
        assert!(!text.contains('\u{1b}') && !page.contains('\u{1b}') && !page.contains("<b>"));
    }
}

#[test]
fn replays_are_compared_too() {
    let run = || vec![comparable(replay::report::fixtures::complete())];
    let [text, ..] = views("Replay", &[run(), run()], Some(0.95), false);
    assert!(text.contains("Gate 0.95: passed") && text.contains("all calls"), "{text}");
}

#[test]
fn the_document_has_the_reasons() {
    let sides = [vec![io(1, 1.0, 0.0)], vec![disturbed(2, 1.5)]];
    let [text, page, document] = views("b_eff_io", &sides, Some(0.95), false);
    assert!(text.starts_with("INCONCLUSIVE: B was shared: other processes used 23 % of the CPUs; B was on"), "{text}");
    assert!(page.contains("**INCONCLUSIVE: B was shared"), "{page}");
    let document: serde_json::Value = serde_json::from_str(&document).unwrap();
    let found = &document["comparisons"][0];
    let shares = ["other_process_share", "steal_share"].map(|name| found["inconclusive"][0][name].as_f64().unwrap());
    assert!((shares[0] - 0.23).abs() < 1e-9 && shares[1] == 0.0, "{shares:?}");
    let expected = serde_json::json!([
        {"side": 1, "run": 0, "reason": "shared", "other_process_share": shares[0], "steal_share": shares[1]},
        {"side": 1, "run": 0, "reason": "storage_drift", "access": "read", "ratio": found["inconclusive"][1]["ratio"]},
    ]);
    assert_eq!(found["inconclusive"], expected);
    assert_eq!((&found["gate"]["outcome"], &found["gate"]["passed"]), (&"inconclusive".into(), &false.into()));
}

/// Files as written by runs, each with its own start time.
fn files(dir: &Path) -> Vec<PathBuf> {
    let io = |minute: u64, t: f64| {
        let mut result = b_eff_io::report::fixtures::complete();
        result.manifest.machine.started_utc = format!("2025-01-31T12:{minute:02}:00Z");
        result.config.time_seconds = t;
        result.patterns.iter_mut().for_each(|p| p.intervals.transfer_seconds *= 1.0 + 0.001 * minute as f64);
        ResultReport::new(result).format_of("json")
    };
    let comm = ResultReport::new(b_eff::report::fixtures::complete()).format_of("json");
    let all =
        [("a1", io(1, 900.0)), ("a2", io(2, 900.0)), ("b1", io(3, 900.0)), ("other", io(4, 60.0)), ("comm", comm)];
    all.into_iter()
        .map(|(name, bytes)| {
            let path = dir.join(format!("{name}.json"));
            fs::write(&path, bytes).unwrap();
            path
        })
        .collect()
}

trait RenderFormat {
    fn format_of(&self, word: &str) -> Vec<u8>;
}

impl<R: Views + std::fmt::Debug> RenderFormat for ResultReport<R>
where
    R::Derived: std::fmt::Debug,
{
    fn format_of(&self, word: &str) -> Vec<u8> {
        crate::frame::report::LoadedReport::format(self, word).unwrap().unwrap()
    }
}

fn words(line: &[&str]) -> CompareArgs {
    let all = ["beff-raw", "compare"].into_iter().chain(line.iter().copied()).map(OsString::from).collect();
    options_from_words(translate(all).unwrap().split_off(2))
}

#[test]
fn sides_are_separated_by_dashes_and_commas() {
    let of = |line: &[&str]| -> Vec<Vec<String>> {
        let name = |path: &PathBuf| path.display().to_string();
        split_sides(&words(line).files).iter().map(|files| files.iter().map(name).collect()).collect()
    };
    assert_eq!(of(&["a", "b", "c"]), [["a"], ["b"], ["c"]]);
    assert_eq!(of(&["a1,a2", "b1,,b2"]), [["a1", "a2"], ["b1", "b2"]]);
    assert_eq!(of(&["a1", "a2", "--", "b1", "b2", "--full"]), [["a1", "a2"], ["b1", "b2"]]);
    assert_eq!(of(&["a1,a2", "--", "b1", "--", "c1"]), [vec!["a1", "a2"], vec!["b1"], vec!["c1"]]);
    assert_eq!(of(&["a", "--"]).len(), 2);
    let other = vec!["beff-raw".into(), "report".into(), "--".into()];
    assert_eq!(translate(other.clone()).unwrap(), other, "no other command");
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a,b.json");
    fs::write(&path, "").unwrap();
    assert_eq!(split_files(&path), vec![path]);
}

#[test]
fn what_cannot_be_compared_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let files = files(dir.path());
    let [a1, a2, b1, other, comm] = [0, 1, 2, 3, 4].map(|n| files[n].to_str().unwrap());
    for (line, parts) in [
        (vec![a1], ["needs two sides", "A1.json A2.json --"]),
        (vec![a1, "--"], ["needs two sides", "--"]),
        (vec![a1, comm], ["b_eff_io", "one of b_eff"]),
        (vec!["a.json", "b.png"], ["b.png", "neither a journal"]),
        (vec![a1, a1, "--", b1], ["are the same run", "once"]),
        (vec![a1, other, "--", b1], ["measured different things: T", "same definition"]),
        (vec![a1, other, "--fail-below", "0.9"], ["measured something else than A", "leave --fail-below out"]),
    ] {
        let error = run(&words(&line)).unwrap_err().downcast::<UsageError>().unwrap().to_string();
        assert!(parts.iter().all(|part| error.contains(part)), "{line:?}: {error}");
    }
    assert_eq!(run(&words(&[a1, a2, "--", b1, "--fail-below", "0.95"])).unwrap(), Exit::Ok);
    assert_eq!(run(&words(&[a1, a1, b1])).unwrap(), Exit::Ok, "a run with itself is a comparison");
    // A run that its signal ended decides nothing.
    let mut cut = b_eff_io::report::fixtures::complete();
    cut.manifest.machine.started_utc = "2025-01-31T12:59:00Z".into();
    cut.ending.outcome = crate::frame::records::RunOutcome::Interrupted;
    let path = dir.path().join("cut.json");
    fs::write(&path, ResultReport::new(cut).format_of("json")).unwrap();
    let cut = path.to_str().unwrap();
    for (more, exit) in [
        (&["--fail-below", "0.95"][..], Exit::Inconclusive),
        (&["--fail-below", "0.95", "--inconclusive", "fail"], Exit::Inconclusive),
        (&["--fail-below", "0.95", "--inconclusive", "pass"], Exit::Ok),
        (&[], Exit::Ok),
    ] {
        assert_eq!(run(&words(&[&[a1, cut], more].concat())).unwrap(), exit, "{more:?}");
    }
    let error = run(&words(&[a1, "no-such.json"])).unwrap_err().to_string();
    assert!(error.contains("cannot read no-such.json"), "{error}");
}

#[test]
fn noise_is_a_share() {
    assert_eq!([parse_noise("50%"), parse_noise("25 %"), parse_noise("0")], [Ok(1.5), Ok(1.25), Ok(1.0)]);
    assert_eq!([parse_noise("0.5"), parse_noise("150%"), parse_noise("1")], [Ok(1.5), Ok(2.5), Ok(2.0)]);
    assert!(["", "-1", "nan", "x%", "inf", "1e9%"].iter().all(|text| parse_noise(text).is_err()));
    assert!(parse_noise("14").unwrap_err().contains("14%"));
}

#[test]
fn the_limit_is_in_the_unit_of_the_noise() {
    assert_eq!([parse_limit("95%"), parse_limit("0.95"), parse_limit("100%")], [Ok(0.95), Ok(0.95), Ok(1.0)]);
    assert!(parse_limit("95").unwrap_err().contains("95%"));
    assert!(parse_limit("105%").unwrap_err().contains("at most 100%"));
    assert!(["", "-1", "0", "0%", "nan", "x"].iter().all(|text| parse_limit(text).is_err()));
}
