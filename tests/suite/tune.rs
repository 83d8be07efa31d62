//! Searches with a real library: every trial has files of its own, nothing is left, the setting reaches other programs.

use std::fs;

use serde_json::Value;

use crate::replay;
use crate::support::{document, items, journal, launcher, number, read_json, signal, Launch, Scratch};

fn real(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value}"))
}

/// Long enough for a whole search where a trial takes half a second. A shorter one ends after the pilots, as where
/// creating and synchronizing files takes seconds: there the same search gets more time.
const BUDGETS: [&str; 3] = ["12s", "30s", "75s"];

fn search(scratch: &Scratch, ranks: u64, options: &[&str]) -> Value {
    let quick = |budget| ["tune", "--budget", budget, "--memory-per-process", "64M", "--space", "200M"];
    let launch = |budget| Launch::new(ranks).args(quick(budget)).args(options).into(scratch).run();
    let mut run = launch(BUDGETS[0]);
    for budget in &BUDGETS[1..] {
        run.expect(0);
        if items(&document(scratch)["trials"]).len() > 1 {
            break;
        }
        // Results are not overwritten.
        let outputs = fs::read_dir(scratch.path()).unwrap().map(|entry| entry.unwrap().path());
        outputs
            .filter(|path| path.file_stem().is_some_and(|stem| stem == "out"))
            .for_each(|path| fs::remove_file(path).unwrap());
        run = launch(budget);
    }
    run.expect(0);
    assert!(run.stdout.contains("\ntune: "), "{run}");
    let result = document(scratch);
    assert_eq!(result["benchmark"], "tune");
    let trials = items(&result["trials"]);
    assert!(!trials.is_empty(), "{run}");
    for trial in trials.iter().filter(|trial| trial["outcome"]["refusal"].is_null()) {
        assert!(real(&trial["outcome"]["bytes_per_second"]) > 0.0, "{trial}");
        assert_eq!(number(&trial["outcome"]["words_wrong"]), 0, "{trial}");
    }
    // A recording is compared in the first trial of each setting.
    assert!(trials.iter().any(|trial| number(&trial["outcome"]["words_checked"]) > 0), "{run}");
    for form in ["hints", "romio", "mca", "txt"] {
        let text = fs::read_to_string(scratch.join(&format!("out.{form}"))).unwrap();
        assert!(text.starts_with("# beff-raw tune, "), "{text}");
    }
    result
}

/// The same calls in all trials of the default with the same planned time, which the first two have; fewer where the guard, at twice the
/// time, has cut them.
fn assert_equal_work(result: &Value) {
    let parts = |trial: &'_ Value| items(&trial["outcome"]["parts"]).to_vec();
    let bytes = |trial: &Value| parts(trial).iter().map(|part| number(&part["bytes"])).sum::<u64>();
    let is_cut = |trial: &Value| {
        let seconds: f64 = parts(trial).iter().map(|part| real(&part["seconds"])).sum();
        seconds >= 1.5 * real(&trial["planned"]["seconds"])
    };
    let trials = items(&result["trials"]);
    assert!(trials.len() > 1 && trials[0]["planned"]["seconds"] == trials[1]["planned"]["seconds"], "{trials:?}");
    for (n, one) in trials.iter().enumerate().filter(|(_, t)| items(&t["planned"]["setting"]).is_empty()) {
        let alike = trials[..n].iter().filter(|t| t["planned"]["seconds"] == one["planned"]["seconds"]);
        for other in alike.filter(|t| items(&t["planned"]["setting"]).is_empty()) {
            assert!(bytes(other) == bytes(one) || is_cut(other) || is_cut(one), "{other} {one}");
        }
    }
}

#[test]
fn hints_of_collective_writes() {
    let scratch = Scratch::new();
    let result = search(&scratch, 2, &["--types", "0", "--chunks", "32K,32K+8"]);
    assert_equal_work(&result);
    let keys: Vec<&str> = items(&result["setup"]["factors"]).iter().filter_map(|f| f["key"].as_str()).collect();
    assert!(keys.contains(&"cb_buffer_size") && !keys.contains(&"romio_ds_read"), "{keys:?}");
}

#[test]
fn segments_alone_and_reads_of_private_files() {
    let scratch = Scratch::new();
    let result = search(&scratch, 3, &["--types", "4", "--chunks", "1K", "--access", "rewrite"]);
    assert_equal_work(&result);
    let scratch = Scratch::new();
    let result = search(&scratch, 1, &["--backend", "uring", "--types", "2", "--chunks", "1M", "--access", "read"]);
    assert!(items(&result["setup"]["factors"]).iter().any(|f| f["key"] == "depth"), "{}", result["setup"]);
}

#[test]
fn a_recorded_program() {
    let scratch = Scratch::new();
    fs::write(scratch.join("app.csv"), replay::program()).unwrap();
    let profile = scratch.join("app.csv");
    let result = search(&scratch, 2, &[profile.to_str().unwrap()]);
    assert!(result["setup"]["work"].as_str().unwrap().contains("app.csv"), "{}", result["setup"]);
}

#[test]
fn a_key_without_meaning_is_not_tried_and_wrong_values_are_refused() {
    let scratch = Scratch::new();
    fs::write(scratch.join("space"), "nonsense_hint 1\ncb_buffer_size 4194304\n").unwrap();
    let space = scratch.join("space");
    let result = search(&scratch, 2, &["--chunks", "32K", "--space-file", space.to_str().unwrap()]);
    // Open MPI grants whatever is asked.
    let tried = items(&result["setup"]["factors"]).len();
    assert_eq!(tried, if launcher().mpi == "openmpi" { 2 } else { 1 }, "{}", result["setup"]);
    for (options, cause) in [
        (&["--budget", "1s"][..], "too short"),
        (&["--backend", "null"], "null has no settings"),
        (&["--space-file", "/nonexistent"], "--space-file /nonexistent"),
        (&["/nonexistent.csv"], "nonexistent.csv"),
        (&["--types", "2", "--chunks", "32K", "--goal", "3"], "pattern"),
        (&["--continue", "/nonexistent.jsonl"], "--continue /nonexistent.jsonl"),
    ] {
        let scratch = Scratch::new();
        let run = Launch::new(2).arg("tune").args(options).into(&scratch).run();
        run.expect(2).says(&[cause]);
        assert_eq!(scratch.list("disk"), [] as [&str; 0], "{options:?}: {run}");
    }
}

#[test]
fn a_killed_search_is_continued() {
    let scratch = Scratch::new();
    let search = ["tune", "--budget", "12s", "--memory-per-process", "64M", "--space", "200M", "--chunks", "32K"];
    let mut running = Launch::new(2).args(search).into(&scratch).start();
    let path = scratch.join("out.jsonl");
    let trials = || fs::read_to_string(&path).unwrap_or_default().matches(r#""record":"trial""#).count();
    running.until("there are trials", || trials() >= 5);
    signal(running.ranks()[1], "KILL");
    assert_ne!(running.wait().code(), 0);
    let kept = trials();
    let again = Launch::new(2).args(search).arg("--continue").arg(&path).arg("--path").arg(scratch.join("disk"));
    again.arg("--out").arg(scratch.join("again")).run().expect(0);
    let result = read_json(&scratch.join("again.json"));
    let first = |result: &Value| items(&result["trials"])[..kept].to_vec();
    let before: Vec<Value> = journal(&scratch, "trial");
    assert_eq!(first(&result).len(), before.len());
    assert!(first(&result).iter().zip(&before).all(|(now, then)| now["planned"] == then["planned"]));
}
