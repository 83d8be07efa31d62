//! Results against each other: short real runs, what is refused, the limit for builds.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::support::{read_json, Launch, Run, Scratch, SHORT};

/// Short runs of b_eff_io with files `NAME.json` and `NAME.jsonl`.
fn measured(scratch: &Scratch, name: &str) {
    fs::create_dir_all(scratch.join("disk")).unwrap();
    let run = Launch::new(2).args(SHORT).args(["--types", "0,2", "--backend", "posix", "--quiet"]);
    run.arg("--path").arg(scratch.join("disk")).arg("--out").arg(scratch.join(name)).run().expect(0);
}

/// The same with another speed, as on an idle machine: all times of the clock are multiplied.
fn changed(from: &Path, to: &Path, factor: f64, minute: u32) {
    let mut document = read_json(from);
    document["probes"] = Value::Array(Vec::new());
    document["manifest"]["started_utc"] = format!("2025-01-31T12:{minute:02}:00Z").into();
    for pattern in document["patterns"].as_array_mut().unwrap() {
        let noise = 1.0 + 0.01 * f64::from(minute % 3);
        pattern["interference"] = Value::Null;
        for (_, part) in pattern["intervals"].as_object_mut().unwrap() {
            *part = (part.as_f64().unwrap() * factor * noise).into();
        }
    }
    fs::write(to, document.to_string()).unwrap();
}

fn compare(scratch: &Scratch, args: &[&str]) -> Run {
    let word = |arg: &&str| -> String {
        let path = |name: &str| scratch.join(name).display().to_string();
        let is_file = arg.contains(".json");
        if is_file {
            arg.split(',').map(path).collect::<Vec<_>>().join(",")
        } else {
            (*arg).to_owned()
        }
    };
    Launch::alone().arg("compare").args(args.iter().map(word)).run()
}

fn flat(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn two_runs_and_a_run_with_itself() {
    let scratch = Scratch::new();
    measured(&scratch, "a");
    measured(&scratch, "b");
    let two = compare(&scratch, &["a.json", "b.jsonl"]);
    let text = flat(&two.expect(0).stdout);
    for part in
        ["b_eff_io, B against A", "Comparable: the definition of the numbers is the same", "One run each", "B/A"]
    {
        assert!(text.contains(part), "no '{part}' in {}", two.stdout);
    }
    assert!(two.stdout.lines().all(|line| line.chars().count() <= 80), "{}", two.stdout);
    // A journal and the document of one run are the same run.
    // Other tests share the machine.
    let itself = compare(&scratch, &["a.json", "a.jsonl", "--fail-below", "0.99", "--inconclusive", "pass"]);
    let text = flat(&itself.expect(0).stdout);
    assert!(text.contains("single lines are equal") && text.contains("Gate 0.99: "), "{}", itself.stdout);
    assert!(!text.contains("not decided."), "{}", itself.stdout);
    compare(&scratch, &["a.json,a.jsonl", "b.json"]).expect(2).says(&["are the same run"]);
}

#[test]
fn what_is_slower_is_found_and_stopped() {
    let scratch = Scratch::new();
    measured(&scratch, "run");
    let runs = [("a1", 1.0, 1), ("b1", 1.25, 2), ("a2", 1.0, 3), ("b2", 1.25, 4), ("a3", 1.0, 5), ("b3", 1.25, 6)];
    for (name, factor, minute) in runs {
        changed(&scratch.join("run.json"), &scratch.join(&format!("{name}.json")), factor, minute);
    }
    let sides = ["a1.json", "a2.json", "a3.json", "--", "b1.json", "b2.json", "b3.json"];
    let with = |more: &[&str]| compare(&scratch, &[&sides, more].concat());
    let found = with(&["--fail-below", "0.95"]);
    let text = flat(&found.expect(4).stdout);
    assert!(text.contains("Gate 0.95: FAILED: slower:") && text.contains("0.80 <"), "{}", found.stdout);
    with(&["--fail-below", "0.5"]).expect(0);
    let mut cut = read_json(&scratch.join("b3.json"));
    cut["ending"]["outcome"] = "interrupted".into();
    fs::write(scratch.join("b3.json"), cut.to_string()).unwrap();
    let doubtful = with(&["--fail-below", "0.95"]);
    assert!(flat(&doubtful.expect(5).stdout).starts_with("INCONCLUSIVE: B ("), "{}", doubtful.stdout);
    with(&["--fail-below", "0.95", "--inconclusive", "pass"]).expect(0);
    with(&["--inconclusive", "pass"]).expect(2);
    changed(&scratch.join("run.json"), &scratch.join("b3.json"), 1.25, 6);
    with(&[]).expect(0);
    let page = with(&["--markdown", "--fail-below", "0.95"]);
    assert!(page.expect(4).stdout.starts_with("## b"), "{}", page.stdout);
    let document: Value = serde_json::from_str(&with(&["--format", "json"]).expect(0).stdout).unwrap();
    assert_eq!((&document["compared"], &document["comparisons"][0]["comparable"]), (&"b_eff_io".into(), &true.into()));
    let back = compare(&scratch, &["b1.json,b2.json,b3.json", "a1.json,a2.json,a3.json", "--fail-below", "0.95"]);
    assert!(flat(&back.expect(0).stdout).contains("1.25 >"), "{}", back.stdout);
}

#[test]
fn what_is_no_pair_is_refused() {
    let scratch = Scratch::new();
    let runs = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/runs");
    for (from, to) in [("mpich-2ranks-60s-ladder.json", "a.json"), ("mpich-2ranks-b_eff.jsonl", "net.jsonl")] {
        fs::copy(runs.join(from), scratch.join(to)).unwrap();
    }
    compare(&scratch, &["a.json", "net.jsonl"]).expect(2).says(&[
        "is a result of b_eff_io",
        "one of b_eff",
        "Name results",
    ]);
    compare(&scratch, &["a.json"]).expect(2).says(&["needs two sides"]);
    compare(&scratch, &["a.json", "a.csv.json"]).expect(2).says(&["cannot read"]);
    fs::write(scratch.join("text.json"), "{}").unwrap();
    compare(&scratch, &["a.json", "text.json"]).expect(1);
    let mut other = read_json(&scratch.join("a.json"));
    other["config"]["time_seconds"] = 90.0.into();
    fs::write(scratch.join("t.json"), other.to_string()).unwrap();
    let unfair = compare(&scratch, &["a.json", "t.json", "--fail-below", "0.1"]);
    unfair.expect(2).says(&["measured something else"]);
    assert!(flat(&unfair.stdout).contains("NOT COMPARABLE: the sides differ in T,"), "{}", unfair.stdout);
}
