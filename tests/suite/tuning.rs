//! The calibration of the queue: every trial is reported, nothing stays behind.

use std::fs;

use serde_json::Value;

use crate::support::{document, items, journal, number, signal, Launch, Scratch, SHORT};

/// Patterns that end by their space at once; what takes time is the calibration.
const BY_SPACE: [&str; 6] = ["--memory-per-process", "64M", "--types", "2", "--space", "300M"];

/// Checks what holds for all tunings: a record for each direction and chunk size, and a choice that was tried, or none.
fn check(result: &Value, ranks: u64) {
    let tunings = items(&result["tunings"]);
    let what: Vec<_> = tunings.iter().map(|t| (t["access"].as_str().unwrap(), number(&t["chunk_bytes"]))).collect();
    let chunks = [1 << 10, 32 << 10, 1 << 20, 2 << 20];
    let expected: Vec<_> = ["write", "read"].into_iter().flat_map(|a| chunks.map(|c| (a, c))).collect();
    assert_eq!(what, expected);
    for t in tunings {
        assert_eq!(t["backend"], "uring");
        let (depth, wait_for) = (number(&t["depth"]), number(&t["wait_for"]));
        assert!((1..=64).contains(&depth) && (1..=depth).contains(&wait_for), "{t}");
        let trials = items(&t["trials"]);
        let setting = |of: &Value| [&of["depth"], &of["wait_for"], &of["operation_bytes"]].map(Value::clone);
        let is_chosen = |trial: &Value| setting(trial) == setting(t);
        assert!(trials.is_empty() || depth == 32 || trials.iter().any(is_chosen), "{t}");
        for trial in trials {
            assert!(number(&trial["bytes"]) >= ranks * number(&t["chunk_bytes"]), "{trial}");
            assert!(trial["seconds"].as_f64().is_some_and(|s| s > 0.0), "{trial}");
            let same = trials.iter().filter(|other| setting(other) == setting(trial));
            assert_eq!(same.count(), 3, "every setting three times: {t}");
            let is_cut = trial["operation_bytes"] == 1 << 20;
            assert!(trial["operation_bytes"].is_null() || (is_cut && number(&t["chunk_bytes"]) == 2 << 20), "{trial}");
        }
    }
}

#[test]
fn every_trial_is_in_the_result_and_its_file_is_gone() {
    for (ranks, direct) in [(2, "auto"), (3, "off")] {
        let scratch = Scratch::new();
        let args = ["-T", "240s", "--backend", "posix,uring", "--direct", direct, "--keep-files", "--run-dir", "kept"];
        Launch::new(ranks).args(BY_SPACE).args(args).into(&scratch).run().expect(0);
        let result = document(&scratch);
        check(&result, ranks);
        let tunings = items(&result["tunings"]);
        assert!(tunings.iter().any(|t| !items(&t["trials"]).is_empty()), "no trial in 7 s");
        let is_cut = tunings.iter().map(|t| (&t["access"], t["operation_bytes"].is_u64()));
        let cut: Vec<&Value> = is_cut.filter(|(_, cut)| *cut).map(|(access, _)| access).collect();
        for p in items(&result["patterns"]).iter().filter(|p| number(&p["chunk_bytes"]) == 2 << 20) {
            let access = if p["access"] == "read" { "read" } else { "write" };
            let told = p["strategy"].as_str().unwrap().contains("chunks in operations of 1048576 bytes");
            assert_eq!(told, cut.iter().any(|a| **a == access), "{p}");
        }
        assert_eq!(journal(&scratch, "tuning").len(), tunings.len());
        let calibrate_seconds = result["ending"]["calibrate_seconds"].as_f64().unwrap();
        let trials = tunings.iter().flat_map(|t| items(&t["trials"]));
        assert!(trials.map(|t| t["seconds"].as_f64().unwrap()).sum::<f64>() < calibrate_seconds);
        let kept = scratch.list("disk/kept/uring");
        assert!(!kept.is_empty() && kept.iter().all(|name| !name.contains("tuning")), "{kept:?}");
    }
}

#[test]
fn a_short_run_says_that_nothing_was_tried_and_a_given_depth_is_not_questioned() {
    let scratch = Scratch::new();
    let args = ["--backend", "uring", "--types", "2", "--space", "300M"];
    Launch::new(2).args(SHORT).args(args).into(&scratch).run().expect(0);
    let result = document(&scratch);
    check(&result, 2);
    assert!(items(&result["tunings"]).iter().all(|t| items(&t["trials"]).is_empty()));

    let scratch = Scratch::new();
    Launch::new(2).args(SHORT).args(args).args(["--depth", "8"]).into(&scratch).run().expect(0);
    assert_eq!(document(&scratch)["tunings"], Value::Array(Vec::new()));
}

#[test]
fn a_signal_ends_the_calibration_and_leaves_nothing() {
    let scratch = Scratch::new();
    let args = ["-T", "1h", "--backend", "uring", "--run-dir", "run"];
    let mut running = Launch::alone().args(BY_SPACE).args(args).into(&scratch).start();
    let file = scratch.join("disk/run/uring/tuning-rank0000000.dat");
    running.until("the file of the calibration", || fs::metadata(&file).is_ok_and(|m| m.len() > 0));
    signal(running.pid(), "TERM");
    let run = running.wait();
    run.expect(130);
    assert!(run.seconds < 20.0, "too late; {run}");
    assert_eq!(document(&scratch)["ending"]["outcome"], "interrupted");
    assert_eq!(scratch.list("disk"), [] as [&str; 0], "files are left");
}
