//! The calibration of the queue: every trial is reported, nothing stays behind.

use std::fs;

use serde_json::Value;

use crate::support::{document, items, journal, number, signal, skip, Launch, Scratch, SHORT};

/// Patterns that end by their space at once; what takes time is the calibration.
const BY_SPACE: [&str; 6] = ["--memory-per-process", "64M", "--types", "2", "--space", "300M"];

/// Checks what holds for all calibrations: a record for each direction and chunk size, and a choice that was tried, or none.
fn check(result: &Value, ranks: u64, m_part_bytes: u64) {
    let calibrations = items(&result["queue_calibrations"]);
    let what: Vec<_> =
        calibrations.iter().map(|t| (t["access"].as_str().unwrap(), number(&t["chunk_bytes"]))).collect();
    let chunks = [1 << 10, 32 << 10, 1 << 20, m_part_bytes];
    let expected: Vec<_> = ["write", "read"].into_iter().flat_map(|a| chunks.map(|c| (a, c))).collect();
    assert_eq!(what, expected);
    for t in calibrations {
        assert_eq!(t["backend"], "uring");
        let (depth, wait_for) = (number(&t["depth"]), number(&t["wait_for"]));
        assert!((1..=64).contains(&depth) && (1..=depth).contains(&wait_for), "{t}");
        let trials = items(&t["trials"]);
        let setting = |of: &Value| [&of["depth"], &of["wait_for"], &of["operation_bytes"]].map(Value::clone);
        let is_chosen = |trial: &Value| setting(trial) == setting(t);
        // The default where the rate still rises: 32, no more than 64 MiB in flight.
        let default = 32.min((64 << 20) / number(&t["chunk_bytes"]));
        assert!(trials.is_empty() || depth == default || trials.iter().any(is_chosen), "{t}");
        for trial in trials {
            assert!(number(&trial["bytes"]) >= ranks * number(&t["chunk_bytes"]), "{trial}");
            assert!(trial["seconds"].as_f64().is_some_and(|s| s > 0.0), "{trial}");
            let same = trials.iter().filter(|other| setting(other) == setting(trial));
            assert_eq!(same.count(), 3, "every setting three times: {t}");
            let operation = trial["operation_bytes"].as_u64();
            let chunk = number(&t["chunk_bytes"]);
            assert!(operation.is_none_or(|bytes| [1 << 20, 2 << 20].contains(&bytes) && bytes < chunk), "{trial}");
        }
    }
}

/// Strategies tell the operations that were chosen for chunks of M_PART, and no others.
fn check_strategies(result: &Value, m_part_bytes: u64) {
    let of_m_part = |row: &&Value| number(&row["chunk_bytes"]) == m_part_bytes;
    let calibrations: Vec<&Value> = items(&result["queue_calibrations"]).iter().filter(of_m_part).collect();
    for p in items(&result["patterns"]).iter().filter(of_m_part).filter(|p| p["backend"] == "uring") {
        let access = if p["access"] == "read" { "read" } else { "write" };
        let chosen = calibrations.iter().find(|t| t["access"] == access).and_then(|t| t["operation_bytes"].as_u64());
        let strategy = p["strategy"].as_str().unwrap();
        let reported = strategy.split("chunks in operations of ").nth(1).map(|rest| rest.split(' ').next().unwrap());
        assert_eq!(reported.map(str::to_owned), chosen.map(|bytes| bytes.to_string()), "{p}");
    }
}

#[test]
fn chunks_of_four_mib_are_tried_in_operations_of_one_and_of_two() {
    let scratch = Scratch::new();
    let args = ["-T", "300s", "--repeat", "off", "--backend", "uring", "--types", "2"];
    let space = ["--memory-per-process", "512M", "--space", "600M"];
    Launch::new(2).args(args).args(space).into(&scratch).run().expect(0);
    let result = document(&scratch);
    check(&result, 2, 4 << 20);
    check_strategies(&result, 4 << 20);
    for t in items(&result["queue_calibrations"]).iter().filter(|t| number(&t["chunk_bytes"]) == 4 << 20) {
        let settings = items(&t["trials"]).len() / 3;
        if settings < 5 {
            skip(&format!("operations of 2 MiB, {}: the storage had time for {settings} settings only", t["access"]));
            continue;
        }
        for bytes in [1 << 20, 2 << 20] {
            assert!(items(&t["trials"]).iter().any(|trial| trial["operation_bytes"] == bytes), "{bytes}: {t}");
        }
    }
}

#[test]
fn every_trial_is_in_the_result_and_its_file_is_gone() {
    for (ranks, direct) in [(2, "auto"), (3, "off")] {
        let scratch = Scratch::new();
        let args = ["-T", "240s", "--backend", "posix,uring", "--direct", direct, "--keep-files", "--run-dir", "kept"];
        Launch::new(ranks).args(BY_SPACE).args(args).args(["--repeat", "off"]).into(&scratch).run().expect(0);
        let result = document(&scratch);
        check(&result, ranks, 2 << 20);
        let calibrations = items(&result["queue_calibrations"]);
        assert!(calibrations.iter().any(|t| !items(&t["trials"]).is_empty()), "no trial in 7 s");
        check_strategies(&result, 2 << 20);
        assert_eq!(journal(&scratch, "queue_calibration").len(), calibrations.len());
        let calibrate_seconds = result["ending"]["calibrate_seconds"].as_f64().unwrap();
        let trials = calibrations.iter().flat_map(|t| items(&t["trials"]));
        assert!(trials.map(|t| t["seconds"].as_f64().unwrap()).sum::<f64>() < calibrate_seconds);
        let kept = scratch.list("disk/kept/uring");
        assert!(!kept.is_empty() && kept.iter().all(|name| !name.contains("calibration")), "{kept:?}");
    }
}

#[test]
fn a_short_run_says_that_nothing_was_tried_and_a_given_depth_is_not_questioned() {
    let scratch = Scratch::new();
    let args = ["--backend", "uring", "--types", "2", "--space", "300M"];
    Launch::new(2).args(SHORT).args(args).into(&scratch).run().expect(0);
    let result = document(&scratch);
    check(&result, 2, 2 << 20);
    assert!(items(&result["queue_calibrations"]).iter().all(|t| items(&t["trials"]).is_empty()));

    let scratch = Scratch::new();
    Launch::new(2).args(SHORT).args(args).args(["--depth", "8"]).into(&scratch).run().expect(0);
    assert_eq!(document(&scratch)["queue_calibrations"], Value::Array(Vec::new()));
}

#[test]
fn a_signal_ends_the_calibration_and_leaves_nothing() {
    let scratch = Scratch::new();
    let args = ["-T", "1h", "--backend", "uring", "--run-dir", "run"];
    let mut running = Launch::alone().args(BY_SPACE).args(args).into(&scratch).start();
    let file = scratch.join("disk/run/uring/queue-calibration-rank0000000.dat");
    running.until("the file of the calibration", || fs::metadata(&file).is_ok_and(|m| m.len() > 0));
    signal(running.pid(), "TERM");
    let run = running.wait();
    run.expect(130);
    assert!(run.seconds < 20.0, "too late; {run}");
    assert_eq!(document(&scratch)["ending"]["outcome"], "interrupted");
    assert_eq!(scratch.list("disk"), [] as [&str; 0], "files are left");
}
