//! Two-phase first writes go through the page cache where that is faster, the sync included, and say so. Storage that answers one way or
//! the other is made: see `tests/planted/slow.c`.

use std::fs;

use serde_json::Value;

use crate::support::{
    document, items, journal, number, proves_direct, signal, skip, slow_storage, Launch, Run, Scratch, SHORT,
};

/// Long enough for a trial; patterns end by their space.
const LONG: [&str; 4] = ["-T", "480s", "--memory-per-process", "64M"];
const TYPES: [&str; 6] = ["--types", "0,4", "--space", "200M", "--repeat", "off"];
const CHOSEN: &str = "buffered, not direct: first writes with their sync were ";

/// A launch on two ranks whose storage is slow by this rule.
fn slow(rule: &str) -> Launch {
    slow_storage(Launch::new(2), rule)
}

/// All bytes of a run of posix are compared; None where nothing can be direct.
fn run(rule: &str, time: &[&str], args: &[&str]) -> Option<(Run, Value)> {
    let scratch = Scratch::new();
    let own = ["--backend", "posix", "--verify", "full", "--full"];
    let run = slow(rule).args(time).args(own).args(TYPES).args(args).into(&scratch).run();
    run.expect(0);
    let result = document(&scratch);
    assert_eq!(result["corruptions"], Value::Array(Vec::new()), "{run}");
    assert!(items(&result["patterns"]).iter().all(|p| number(&p["verification"]["words_wrong"]) == 0), "{run}");
    assert_eq!(journal(&scratch, "first_write_trial").len(), items(&result["first_write_trials"]).len());
    assert_eq!(scratch.list("disk"), [] as [&str; 0], "files are left");
    if !proves_direct(&result) {
        skip("the file system of the target directory tells no alignment of direct I/O (STATX_DIOALIGN)");
        return None;
    }
    Some((run, result))
}

/// Patterns with calls in two phases, first writes or all others.
fn two_phase(result: &Value, first: bool) -> Vec<&Value> {
    let strategy = |p: &Value| p["strategy"].as_str().unwrap_or_default().starts_with("two-phase");
    let is_one = |p: &&Value| number(&p["calls"]) > 0 && (p["access"] == "write") == first && strategy(p);
    items(&result["patterns"]).iter().filter(is_one).collect()
}

/// No two-phase transfer of `patterns` goes through the page cache.
#[track_caller]
fn all_direct(patterns: &[&Value]) {
    assert!(patterns.len() >= 6, "{} patterns", patterns.len());
    for p in patterns {
        let strategy = p["strategy"].as_str().unwrap();
        assert!(p["direct"] == true && strategy.contains("O_DIRECT") && !strategy.contains("buffered"), "{strategy}");
    }
}

/// The only trial, which was one.
#[track_caller]
fn trial(result: &Value, chosen: &str) -> (f64, Vec<(f64, f64)>) {
    let [trial] = items(&result["first_write_trials"]) else { panic!("{}", result["first_write_trials"]) };
    assert_eq!((&trial["backend"], &trial["skip_reason"]), (&"posix".into(), &Value::Null), "{trial}");
    assert_eq!(trial["chosen"], chosen, "{trial}");
    assert!(number(&trial["bytes"]) >= 2 * 4 * number(&trial["chunk_bytes"]), "{trial}");
    let seconds = |pair: &Value, way: &str| pair[way].as_f64().unwrap();
    let pairs = items(&trial["pairs"]).iter().map(|p| (seconds(p, "direct_seconds"), seconds(p, "buffered_seconds")));
    let pairs: Vec<(f64, f64)> = pairs.collect();
    assert_eq!(pairs.len(), 4, "{trial}");
    (trial["ratio"].as_f64().unwrap(), pairs)
}

#[test]
fn buffered_first_writes_are_chosen_where_direct_ones_are_slow() {
    for collective in ["two-phase", "auto"] {
        let args = ["--direct", "auto", "--collective", collective, "--set", "preallocate=size"];
        let Some((run, result)) = run("direct 15", &LONG, &args) else { return };
        let (ratio, pairs) = trial(&result, "buffered");
        assert!(ratio >= 1.1 && pairs.iter().all(|(direct, buffered)| buffered < direct), "{ratio}, {pairs:?}");
        let first = two_phase(&result, true);
        let types: Vec<u64> = first.iter().map(|p| number(&p["pattern_type"])).collect();
        assert!(types.contains(&0) && types.contains(&4) == (collective == "two-phase"), "{types:?}");
        for p in first {
            let strategy = p["strategy"].as_str().unwrap();
            assert!(p["direct"] == false && strategy.contains(CHOSEN), "{strategy}");
            assert!(strategy.contains("not preallocated: not direct"), "{strategy}");
        }
        all_direct(&two_phase(&result, false));
        let warnings = items(&result["derived"]["warnings"]);
        let warning = warnings.iter().find(|w| w["kind"] == "buffered").unwrap_or_else(|| panic!("{warnings:?}"));
        assert!(warning["reason"].as_str().unwrap().contains(CHOSEN), "{warning}");
        assert!(run.stdout.contains("two-phase ones of posix buffered: in 4 pairs"), "{run}");
    }
}

/// The writes alone are as fast as memory: only their sync tells.
#[test]
fn the_sync_of_buffered_first_writes_counts() {
    let args = ["--direct", "auto", "--collective", "two-phase"];
    let Some((_, result)) = run("sync 20", &LONG, &args) else { return };
    let (ratio, pairs) = trial(&result, "direct");
    assert!(ratio < 1.0 && pairs.iter().any(|(direct, buffered)| direct < buffered), "{ratio}, {pairs:?}");
    all_direct(&two_phase(&result, true));
    all_direct(&two_phase(&result, false));
    assert!(two_phase(&result, true).iter().all(|p| p["strategy"].as_str().unwrap().contains("preallocated")));
}

/// Who says how it is to be is not asked again, and without time nothing is tried.
#[test]
fn nothing_is_tried_where_it_was_said_or_where_time_is_short() {
    let policy = |policy| ["--direct", policy, "--collective", "two-phase"];
    let Some((_, result)) = run("direct 1", &LONG, &policy("required")) else { return };
    assert_eq!(result["first_write_trials"], Value::Array(Vec::new()));
    all_direct(&two_phase(&result, true));

    let Some((_, result)) = run("direct 1", &LONG, &policy("off")) else { return };
    assert_eq!(result["first_write_trials"], Value::Array(Vec::new()));

    let Some((run, result)) = run("direct 1", &SHORT, &policy("auto")) else { return };
    let [trial] = items(&result["first_write_trials"]) else { panic!("{}", result["first_write_trials"]) };
    assert_eq!((&trial["chosen"], &trial["ratio"], number(&trial["bytes"])), (&"direct".into(), &Value::Null, 0));
    assert_eq!(trial["skip_reason"], "T is below 20 s");
    all_direct(&two_phase(&result, true));
    assert!(run.stdout.contains("posix direct: no trial, T is below 20 s"), "{run}");
}

#[test]
fn a_signal_ends_the_trial_and_leaves_nothing() {
    let scratch = Scratch::new();
    let args = ["--backend", "posix", "--direct", "auto", "--collective", "two-phase", "--run-dir", "run"];
    let mut running = slow("direct 15").args(LONG).args(TYPES).args(args).into(&scratch).start();
    let file = scratch.join("disk/run/posix/first-write-rank0000000.dat");
    running.until("the file of the trial", || fs::metadata(&file).is_ok_and(|m| m.len() > 0));
    signal(running.pid(), "TERM");
    let run = running.wait();
    assert!(run.seconds < 20.0, "too late; {run}");
    let result = document(&scratch);
    assert_eq!((&result["ending"]["outcome"], items(&result["patterns"]).len()), (&"interrupted".into(), 0), "{run}");
    assert_eq!(scratch.list("disk"), [] as [&str; 0], "files are left");
}
