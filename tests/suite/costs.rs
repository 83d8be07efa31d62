//! Times of commands that need no MPI.

use std::process::Command;
use std::time::Instant;

use serde_json::Value;

use crate::offline::plan;
use crate::support::{items, number, PROGRAM};

#[test]
fn ten_million_ranks_are_planned_at_once() {
    let begin = Instant::now();
    let done = plan(&["--ranks", "10000000", "--space", "2000T", "--memory-per-process", "1G", "--json"]);
    assert!(begin.elapsed().as_secs() < 5, "{:?}", begin.elapsed());
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    let plan: Value = serde_json::from_slice(&done.stdout).unwrap();
    let partition = &items(&plan["partitions"])[0];
    assert_eq!(number(&partition["ranks"]), 10_000_000);
    assert_eq!(items(&partition["patterns"]).len(), 43);
    for file in items(&partition["files"]) {
        assert!(number(&file["file_bytes"]) < i64::MAX as u64, "{file}");
    }
    assert!(number(&plan["total_bytes"]) <= 2000 << 40);
}

#[test]
fn info_reports_the_overhead_of_the_harness() {
    let done = Command::new(PROGRAM).args(["info", "--path", env!("CARGO_TARGET_TMPDIR")]).output().unwrap();
    let text = String::from_utf8_lossy(&done.stdout).into_owned();
    assert!(done.status.success(), "{text}");
    let line = text.lines().find(|line| line.contains("null backend")).expect("the cost of an access");
    let ns: f64 = line.split_whitespace().nth(1).unwrap().parse().unwrap();
    assert!(ns > 0.0 && ns < 1000.0, "{line}");
    for part in ["built with", "MPI-IO layer", "mpiio", "posix", "uring", "mpirun"] {
        assert!(text.contains(part), "no '{part}' in {text}");
    }
}
