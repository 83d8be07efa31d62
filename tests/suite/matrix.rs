//! Every pattern and access, verified in full: in every pair of what may differ, and (`make campaign`) with every backend on
//! every number of ranks.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::direct_checks::check_direct;
use crate::pairs::pairs;
use crate::support::{document, items, launcher, number, proves_direct, skip, Launch, Scratch, SHORT};

const ALL: &str = "mpiio,posix,uring,mmap";

/// A run that must end well; its document.
fn run(ranks: u64, args: &[&str]) -> Value {
    let scratch = Scratch::new();
    let run =
        Launch::new(ranks).args(["--verify", "full", "--space", "800M", "--full"]).args(args).into(&scratch).run();
    run.expect(0);
    assert!(run.stdout.contains("Run complete"), "{run}");
    assert_eq!(scratch.list("disk"), [] as [&str; 0], "files are left");
    document(&scratch)
}

/// Nothing wrong, nothing unchecked, nothing allocated.
fn check_trust(result: &Value) {
    assert_eq!(result["errors"], Value::Array(Vec::new()));
    assert_eq!(result["corruptions"], Value::Array(Vec::new()));
    for p in items(&result["patterns"]) {
        let what = format!("{} {} pattern {} on {}", p["backend"], p["access"], p["pattern"], p["ranks"]);
        assert_eq!(p["allocations_in_clock"], 0, "{what}");
        assert_eq!(p["verification"]["words_wrong"], 0, "{what}");
        let words = number(&p["verification"]["words_checked"]);
        // What is written over is compared before, what is read as it is read.
        let is_compared = p["access"] != "write" && number(&p["moved_bytes"]) > 0;
        assert_eq!(words > 0, is_compared, "{what}: {words} words compared");
        assert_eq!(number(&p["moved_bytes"]), number(&p["calls"]) * number(&p["call_bytes"]) * number(&p["ranks"]));
    }
    for t in items(&result["types"]) {
        let what = format!("{} {} type {}", t["backend"], t["access"], t["pattern_type"]);
        assert!(number(&t["full_verification"]["words_checked"]) > 0, "{what}");
        assert_eq!(t["full_verification"]["words_wrong"], 0, "{what}");
    }
}

/// 43 patterns x 3 access methods for each backend and partition, once each and all of them run.
fn check_all_there(result: &Value, backends: u64, partitions: u64) {
    let patterns = items(&result["patterns"]);
    let key = |p: &Value| [&p["backend"], &p["ranks"], &p["access"], &p["pattern"]].map(Value::to_string).join(" ");
    let seen: BTreeSet<String> = patterns.iter().map(key).collect();
    assert_eq!(seen.len(), patterns.len(), "a pattern is there twice");
    assert_eq!(patterns.len() as u64, 43 * 3 * backends * partitions);
    for p in patterns {
        assert_ne!(p["ended"]["by"], "not_run", "{}", key(p));
        assert!(number(&p["calls"]) > 0 || number(&p["call_bytes"]) == 0, "{}", key(p));
    }
}

fn everything(ranks: u64) {
    let result = run(ranks, &[&SHORT[..], &["--backend", ALL]].concat());
    check_trust(&result);
    check_all_there(&result, 4, 1);
}

/// What a case of [`every_pair`] is made of, beside its number of ranks (from 1).
const BACKENDS: [&str; 4] = ["mpiio", "posix", "uring", "mmap"];
const DIRECT: [&str; 2] = ["off", "auto"];
const TERMINATION: [&str; 2] = ["geometric", "per-call"];
const RELEASE: [&str; 2] = ["1", "0.5"];
const MPI: [&str; 2] = ["mpich", "openmpi"];

/// True if the tests run with both of [`MPI`], which then share the cases.
pub fn is_shared() -> bool {
    std::env::var("BEFF_MPIS").is_ok_and(|mpis| MPI.iter().all(|mpi| mpis.split(' ').any(|name| name == *mpi)))
}

/// The cases with so many ranks. What goes through MPI-IO is tested with each MPI.
fn every_pair(ranks: usize) {
    let mpis = if is_shared() { MPI.len() } else { 1 };
    let own_mpi = MPI[..mpis].iter().position(|mpi| *mpi == launcher().mpi).unwrap_or(0);
    let sizes = [4, BACKENDS.len(), DIRECT.len(), TERMINATION.len(), RELEASE.len(), mpis];
    let can_be_direct = |backend: &str| ["posix", "uring"].contains(&backend);
    let cases = pairs(&sizes, |case| case[2] == 0 || can_be_direct(BACKENDS[case[1]]));
    let cases: Vec<_> = cases.into_iter().filter(|case| case[0] + 1 == ranks).collect();
    assert!(cases.len() >= BACKENDS.len(), "{cases:?}");
    for case in cases.iter().filter(|case| case[5] == own_mpi || BACKENDS[case[1]] == "mpiio") {
        let backend = BACKENDS[case[1]];
        let mut args = [&SHORT[..], &["--backend", backend]].concat();
        args.extend(["--termination", TERMINATION[case[3]], "--release", RELEASE[case[4]]]);
        if can_be_direct(backend) {
            args.extend(["--direct", DIRECT[case[2]]]);
        }
        println!("{ranks} ranks: {args:?}");
        let result = run(ranks as u64, &args);
        check_trust(&result);
        check_all_there(&result, 1, 1);
        let by_time = items(&result["patterns"]).iter().filter(|p| p["ended"]["by"] == "time");
        assert!(case[3] == 0 || by_time.flat_map(|p| items(&p["batches"])).all(|b| b["calls"] == 1));
        if case[2] == 1 {
            if !proves_direct(&result) {
                skip("direct I/O: the kernel tells no alignment for this disk; the rest of the test ran");
            } else {
                check_direct(&result, 1);
            }
        }
    }
}

#[test]
fn every_pair_on_one_rank() {
    every_pair(1);
}

#[test]
fn every_pair_on_two_ranks() {
    every_pair(2);
}

#[test]
fn every_pair_on_three_ranks() {
    every_pair(3);
}

#[test]
fn every_pair_on_four_ranks() {
    every_pair(4);
}

#[test]
#[ignore = "all combinations: make campaign"]
fn one_rank() {
    everything(1);
}

#[test]
#[ignore = "all combinations: make campaign"]
fn two_ranks() {
    everything(2);
}

#[test]
#[ignore = "all combinations: make campaign"]
fn three_ranks() {
    everything(3);
}

#[test]
#[ignore = "all combinations: make campaign"]
fn four_ranks() {
    everything(4);
}

#[test]
fn without_the_shared_pointer() {
    let result = run(3, &[&SHORT[..], &["--backend", ALL, "--set", "shared-pointer=off", "--types", "1"]].concat());
    check_trust(&result);
    let mpiio: Vec<_> = items(&result["patterns"]).iter().filter(|p| p["backend"] == "mpiio").collect();
    assert_eq!(mpiio.len(), 8 * 3);
    for p in mpiio {
        let strategy = p["strategy"].as_str().unwrap();
        assert!(!strategy.contains("ordered"), "{strategy}");
    }
}

#[test]
fn several_partitions() {
    let args = ["--backend", "posix,mpiio", "--partitions", "1,2,3", "--types", "0,1"];
    let result = run(3, &[&SHORT[..], &args].concat());
    check_trust(&result);
    let ranks: Vec<u64> = items(&result["partitions"]).iter().map(|p| number(&p["ranks"])).collect();
    assert_eq!(ranks, [1, 2, 3]);
    assert_eq!(items(&result["patterns"]).len(), (9 + 8) * 3 * 2 * 3);
}

#[test]
fn release_0_5() {
    let result = run(2, &[&SHORT[..], &["--backend", "mpiio", "--release", "0.5"]].concat());
    check_trust(&result);
    check_all_there(&result, 1, 1);
}

#[test]
fn release_2_1_rewrites_type_0_only_and_repeats_the_counts() {
    let result = run(2, &[&SHORT[..], &["--backend", "posix,mpiio", "--release", "2.1"]].concat());
    check_trust(&result);
    let patterns = items(&result["patterns"]);
    let rewritten: BTreeSet<u64> =
        patterns.iter().filter(|p| p["access"] == "rewrite").map(|p| number(&p["pattern_type"])).collect();
    assert_eq!(rewritten, BTreeSet::from([0]));
    for read in patterns.iter().filter(|p| p["access"] == "read") {
        let same = |p: &&Value| ["backend", "ranks", "pattern"].iter().all(|k| p[k] == read[k]);
        let write = patterns.iter().filter(|p| p["access"] == "write").find(same).unwrap();
        assert_eq!(read["calls"], write["calls"], "{read}");
    }
}

#[test]
fn decisions_after_each_call() {
    let args = ["--backend", ALL, "--termination", "per-call", "--types", "0,2"];
    let result = run(2, &[&SHORT[..], &args].concat());
    check_trust(&result);
    for p in items(&result["patterns"]).iter().filter(|p| p["ended"]["by"] == "time") {
        assert!(items(&p["batches"]).iter().all(|b| b["calls"] == 1), "{p}");
    }
}
