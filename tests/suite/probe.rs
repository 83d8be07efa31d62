//! The probe of the storage at both ends of a run.

use serde_json::Value;

use crate::planted::Planted;
use crate::support::{document, items, number, skip, Launch, Scratch};

/// Patterns that end by their space at once, in a run that is long enough for probes.
const BY_SPACE: [&str; 8] = ["-T", "20s", "--memory-per-process", "64M", "--types", "2", "--space", "100M"];

fn does_direct(result: &Value) -> bool {
    let does = result["manifest"]["storage"]["direct_align_basis"] == "statx";
    if !does {
        skip("the file system of the target directory tells no alignment of direct I/O (STATX_DIOALIGN)");
    }
    does
}

#[test]
fn a_run_has_a_probe_at_both_ends_and_nothing_of_it_stays() {
    for ranks in [1, 3] {
        let scratch = Scratch::new();
        let args = ["--backend", "mpiio,posix", "--keep-files", "--run-dir", "kept", "--full"];
        let run = Launch::new(ranks).args(BY_SPACE).args(args).into(&scratch).run();
        run.expect(0);
        let result = document(&scratch);
        let probes = items(&result["probes"]);
        assert_eq!(probes.iter().map(|p| p["at"].as_str().unwrap()).collect::<Vec<_>>(), ["start", "end"]);
        let kept = [scratch.list("disk/kept/mpiio"), scratch.list("disk/kept/posix")].concat();
        assert!(kept.iter().all(|name| !name.contains("probe")), "{kept:?}");
        if !does_direct(&result) {
            assert!(probes.iter().all(|p| p["unknown_reason"].as_str().unwrap().contains("direct I/O")), "{probes:?}");
            continue;
        }
        for p in probes {
            let rounds = items(&p["write_seconds"]).len();
            assert!(rounds >= 3 && rounds == items(&p["read_seconds"]).len(), "{p}");
            assert!(p["seconds"].as_f64().unwrap() > 0.0 && number(&p["round_bytes"]) == 4 << 20, "{p}");
        }
        // Storage that other tests use moves; what is said of it must be by the interval.
        let moves = items(&result["derived"]["storage_drift"]);
        assert_eq!(moves.iter().map(|m| m["access"].as_str().unwrap()).collect::<Vec<_>>(), ["write", "read"]);
        for m in moves {
            let [low, high] = [0, 1].map(|n| m["interval"][n].as_f64().unwrap());
            let expected = if low > 1.1 || high < 0.9 {
                "changed"
            } else if low >= 0.9 && high <= 1.1 {
                "steady"
            } else {
                "not_decided"
            };
            assert_eq!(m["verdict"], expected, "{m}");
        }
        let changed = moves.iter().any(|m| m["verdict"] == "changed");
        let warned = items(&result["derived"]["warnings"]).iter().any(|w| w["kind"] == "storage_drift");
        assert_eq!(warned, changed);
        assert!(run.stdout.contains("rank 0 alone, direct"), "{run}");
    }
}

/// By a planted clock writes take half as long before the run as after it, reads the same.
#[test]
fn storage_drift_is_reported_with_its_factor() {
    let first: Vec<String> = (16..36).map(|n| format!("pwrite64@0#{n}=25000000+100000")).collect();
    let mut rules = vec!["pwrite64@0=50000000+100000", "pread64@0=40000000+100000"];
    rules.extend(first.iter().map(String::as_str));
    let args: Vec<&str> = BY_SPACE.into_iter().chain(["--backend", "mpiio"]).collect();
    let run = Planted::run(2, &rules, &args);
    if !does_direct(&run.result) {
        return;
    }
    let moves = items(&run.result["derived"]["storage_drift"]);
    let [write, read] = moves else { panic!("{moves:?}") };
    assert_eq!((&write["verdict"], &read["verdict"]), (&"changed".into(), &"steady".into()), "{moves:?}");
    assert!((write["ratio"].as_f64().unwrap() - 0.5).abs() < 0.02, "{write}");
    assert!((write["start_mb_per_second"].as_f64().unwrap() - 41.5).abs() < 1.0, "{write}");
    let warned = items(&run.result["derived"]["warnings"]).iter().find(|w| w["kind"] == "storage_drift");
    assert_eq!(warned.expect("a warning")["access"], "write");
    assert!(run.run.stdout.contains("storage drift: write at the end"), "{}", run.run);
}

#[test]
fn where_there_is_no_probe_the_reason_is_reported() {
    for (args, why) in [
        (&["-T", "1s", "--backend", "posix"][..], "T is below 20 s"),
        (&["-T", "20s", "--backend", "null"], "no backend of the run writes files"),
    ] {
        let scratch = Scratch::new();
        Launch::new(1).args(&BY_SPACE[2..]).args(args).into(&scratch).run().expect(0);
        let result = document(&scratch);
        let probes = items(&result["probes"]);
        assert!(
            probes.len() == 2 && probes.iter().all(|p| p["unknown_reason"].as_str().unwrap().contains(why)),
            "{probes:?}"
        );
        assert_eq!(items(&result["derived"]["storage_drift"]), [] as [Value; 0]);
    }
}
