//! Commands that need no MPI: plan and info.

use std::process::{Command, Output};
use std::time::Instant;

use serde_json::Value;

use crate::support::{items, number, PROGRAM};

fn plan(args: &[&str]) -> Output {
    Command::new(PROGRAM).arg("plan").args(args).output().unwrap()
}

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
fn offsets_beyond_a_file_are_refused() {
    let done = plan(&["--ranks", "10000000", "--backend", "null", "--memory-per-process", "8000T"]);
    let text = String::from_utf8_lossy(&done.stderr).into_owned();
    assert_eq!(done.status.code(), Some(2), "{text}");
    assert!(text.contains("beyond the largest") && text.contains("use fewer ranks"), "{text}");
}

#[test]
fn the_table_of_a_plan_has_times_bytes_and_memory() {
    let done = plan(&["--ranks", "4", "-T", "15m", "--space", "20G", "--memory-per-process", "1G"]);
    let text = String::from_utf8_lossy(&done.stdout).into_owned();
    assert!(done.status.success(), "{text}");
    for part in ["scatter", "seg-coll", "memory", "4 ranks"] {
        assert!(text.contains(part), "no '{part}' in {text}");
    }
}

#[test]
fn info_tells_the_cost_of_the_harness() {
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

fn imb(args: &[&str]) -> Output {
    Command::new(PROGRAM).arg("imb").args(args).output().unwrap()
}

#[test]
fn benchmarks_and_rows_of_imb_are_shown_without_mpi() {
    for (args, parts) in [
        (&["-list"][..], &["37 of the release", "C_IRead_All_Expl", "MPI_File_write_ordered_begin"][..]),
        (&["--plan", "10000000", "-npmin", "64", "P_Read_Priv"], &["10000000", "4194304", "64 x 1, 128 x 1"]),
        (&["-help"], &["--imb-format", "-npmin 4"]),
    ] {
        let done = imb(args);
        let text = String::from_utf8_lossy(&done.stdout).into_owned();
        assert!(done.status.success(), "{args:?}: {}", String::from_utf8_lossy(&done.stderr));
        assert!(parts.iter().all(|part| text.contains(part)), "{args:?}: {text}");
    }
}

#[test]
fn options_of_the_release_that_are_missing_are_named() {
    for (args, parts) in [
        (&["-map", "2x2"][..], ["-map:", "launcher"]),
        (&["-npmin", "2", "-off_cache", "-1"], ["-off_cache:", "not supported"]),
        (&["-exclude", "S_Read_Indv", "Open_Close"], ["'Open_Close'", "commas"]),
    ] {
        let done = imb(args);
        let text = String::from_utf8_lossy(&done.stderr).into_owned();
        assert_eq!(done.status.code(), Some(2), "{text}");
        assert!(parts.iter().all(|part| text.contains(part)), "{args:?}: {text}");
    }
}
