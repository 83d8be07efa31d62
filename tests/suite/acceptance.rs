//! A run and its result against requirements: exit codes, the document, the protocol on paper.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::support::{document, Launch, Scratch, SHORT};

const LADDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/runs/mpich-2ranks-60s-ladder.json");

fn requirements(scratch: &Scratch, name: &str, text: &str) -> std::path::PathBuf {
    let path = scratch.join(name);
    fs::write(&path, text).unwrap();
    path
}

/// Facts are decided however busy the machine is; speeds are those of reports.
#[test]
fn a_run_is_judged_by_what_was_required() {
    let scratch = Scratch::new();
    let loose = requirements(&scratch, "loose.txt", "T >= 1 s # as given\nwrong words = 0\n");
    let run =
        Launch::new(2).args(SHORT).args(["--types", "0,2", "--quiet", "--require"]).arg(&loose).into(&scratch).run();
    run.expect(0);
    assert!(run.stdout.trim_end().ends_with("Acceptance: PASS (2 PASS)"), "{}", run.stdout);
    let result = document(&scratch);
    assert_eq!(
        (&result["derived"]["acceptance"]["verdict"], &result["config"]["requirements"][0]["text"]),
        (&"pass".into(), &"T >= 1 s".into())
    );

    let report = |text: &str, more: &[&str]| {
        let file = requirements(&scratch, "other.txt", text);
        Launch::alone().arg("report").arg(scratch.join("out.json")).arg("--require").arg(file).args(more).run()
    };
    report("T >= 15 min\n", &[]).expect(4);
    let open = report("T >= 1 s\nvalue >= 1 kB/s\n", &[]);
    assert!(open.expect(5).stdout.contains("UNDECIDED  value >= 1 kB/s: -; "), "{}", open.stdout);
    report("value >= 1 kB/s\n", &["--inconclusive", "pass"]).expect(0);
    let json: Value = serde_json::from_str(&report("T >= 15 min\n", &["--format", "json"]).expect(4).stdout).unwrap();
    assert_eq!(json["derived"]["acceptance"]["requirements"][0]["verdict"], "fail");
    report("T >= 15 min\n", &["--format", "csv"]).expect(2).says(&["no other format"]);
    report("T >= 15\n", &[]).expect(2).says(&["other.txt: line 1: 'T >= 15': the unit is missing; allowed: s, min, h"]);
    Launch::alone().args(["report", "--inconclusive", "pass"]).arg(scratch.join("out.json")).run().expect(2);
}

/// On all ranks, before anything is measured.
#[test]
fn a_run_with_a_wrong_line_does_not_begin() {
    let scratch = Scratch::new();
    let wrong = requirements(&scratch, "wrong.txt", "value => 5 GB/s\n");
    let run = Launch::new(2).args(SHORT).args(["--quiet", "--require"]).arg(&wrong).into(&scratch).run();
    run.expect(2).says(&["wrong.txt: line 1: "]);
    assert!(!scratch.join("out.json").exists());
}

#[test]
fn a_plan_says_what_cannot_be_decided() {
    let example = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/acceptance-example.txt");
    let plan = |args: &[&str]| Launch::alone().args(["plan", "-n", "4", "--require", example]).args(args).run();
    let short = plan(&["-T", "60s", "--space", "100G"]);
    let text = short.expect(0).stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    for part in [
        "Acceptance",
        "The run measures for about 1.0 min",
        "-T 15m",
        "--backend mpiio,posix",
        "cannot be decided, or will fail",
    ] {
        assert!(text.contains(part), "{part}: {}", short.stdout);
    }
    let long = plan(&[
        "-T",
        "15m",
        "--backend",
        "mpiio,posix",
        "--rounds",
        "1",
        "--repeat",
        "auto",
        "--space",
        "10T",
        "--json",
    ]);
    let json: Value = serde_json::from_str(&long.expect(0).stdout).unwrap();
    let open: Vec<&Value> =
        json["requirements"].as_array().unwrap().iter().filter(|r| !r["obstacle"].is_null()).collect();
    assert!(open.iter().all(|r| r["requirement"] == "cache 20x"), "{open:#?}");
}

#[test]
fn a_protocol_has_the_hashes_of_sha256sum() {
    let scratch = Scratch::new();
    let file = requirements(&scratch, "requirements.txt", "T >= 1 min\n");
    let page = scratch.join("protocol.html");
    Launch::alone().args(["report", LADDER, "--require"]).arg(&file).arg("--html").arg(&page).run().expect(0);
    let html = fs::read_to_string(&page).unwrap();
    for path in [Path::new(LADDER), &file] {
        let sum = std::process::Command::new("sha256sum").arg(path).output().unwrap();
        let sum = String::from_utf8(sum.stdout).unwrap();
        assert!(html.contains(sum.split_whitespace().next().unwrap()), "{}", path.display());
    }
    assert!(html.contains("Acceptance protocol") && html.contains("class=protocol"));
}
