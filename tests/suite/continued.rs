//! `--continue`: a run that was killed goes on where it was cut.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::support::{items, journal, number, read_json, signal, Launch, Run, Scratch};

const OPTIONS: [&str; 12] = [
    "-T",
    "3s",
    "--types",
    "0,2,3",
    "--backend",
    "mpiio,posix",
    "--memory-per-process",
    "64M",
    "--space",
    "200M",
    "--verify",
    "full",
];

/// A run on two ranks, killed when it has recorded so many types.
fn killed(scratch: &Scratch, types: usize) {
    let mut running = Launch::new(2).args(OPTIONS).into(scratch).start();
    let out = scratch.join("out.jsonl");
    running.until("so many types", || {
        fs::read_to_string(&out).is_ok_and(|text| text.matches(r#""record":"type""#).count() >= types)
    });
    for rank in running.ranks() {
        signal(rank, "KILL");
    }
    running.wait();
}

fn key(record: &Value) -> String {
    ["backend", "ranks", "access", "pattern"].map(|field| record[field].to_string()).join(" ")
}

/// Continues the run; nothing is measured twice, and all data is correct.
fn continued(scratch: &Scratch, name: &str) -> (Run, Value) {
    let prefix = scratch.join(name);
    let run = Launch::new(2).arg("--continue").arg(scratch.join("out.jsonl")).arg("--out").arg(&prefix).run();
    run.expect(0);
    let result = read_json(&prefix.with_extension("json"));
    let patterns = items(&result["patterns"]);
    let measured: BTreeSet<String> = patterns.iter().map(key).collect();
    assert_eq!((measured.len(), patterns.len()), (2 * 3 * (9 + 8 + 9), 2 * 3 * (9 + 8 + 9)), "{run}");
    let wrong = patterns.iter().map(|pattern| number(&pattern["verification"]["words_wrong"])).sum::<u64>();
    let checked = items(&result["types"]).iter().map(|t| number(&t["full_verification"]["words_checked"])).sum::<u64>();
    assert!(wrong == 0 && checked > 0 && items(&result["corruptions"]).is_empty(), "{run}");
    assert_eq!(scratch.list("disk"), [] as [&str; 0], "{run}");
    (run, result)
}

#[test]
fn a_killed_run_keeps_its_complete_types() {
    let scratch = Scratch::new();
    // Three types of two backends are written, one is rewritten.
    killed(&scratch, 8);
    let before = journal(&scratch, "pattern");
    let (run, result) = continued(&scratch, "again");
    let record = &items(&result["continuations"])[0];
    assert!(number(&record["units_kept"]) >= 4 && record["files_left"].is_null(), "{run} {record}");
    // The type in which it was cut has data of two generations; the others are as they were.
    let cut = &record["cut_in"];
    let rebuilt = u64::from(cut["access"] == "rewrite");
    assert_eq!([number(&record["types_reused"]), number(&record["types_rebuilt"])], [3 - rebuilt, rebuilt], "{record}");
    let is_kept = |line: &&Value| {
        let mut pattern = (*line).clone();
        pattern.as_object_mut().unwrap().remove("record");
        items(&result["patterns"]).contains(&pattern)
    };
    let kept = before.iter().filter(is_kept).count();
    assert!(kept >= 2 * (9 + 8 + 9 + 9) && kept < items(&result["patterns"]).len(), "{kept} of {}", before.len());
    let criteria = result["derived"]["validity"].to_string();
    assert!(
        criteria.contains("cut in an earlier run and measured again") && run.stdout.contains("continued from"),
        "{run}"
    );

    // Its directory is gone: all files are written again.
    let (_, result) = continued(&scratch, "once-more");
    let record = &items(&result["continuations"])[0];
    assert_eq!([number(&record["types_reused"]), number(&record["types_rebuilt"])], [0, 3], "{record}");

    let refused = |ranks: u64, journal: &Path, options: &[&str], parts: &[&str]| {
        let launch = Launch::new(ranks).arg("--continue").arg(journal).args(options);
        launch.inside(&scratch).run().expect(2).says(parts);
    };
    let out = scratch.join("out.jsonl");
    refused(1, &out, &["--out", "x"], &["number of ranks was 2, and is 1 now"]);
    refused(2, &out, &["--out", "x", "--types", "0"], &["the run had other options: types"]);
    refused(2, &scratch.join("again.jsonl"), &["--out", "x"], &["the run is complete"]);
}

/// The file in which the run was cut is one that this run has not opened when it removes the directory.
#[test]
fn a_run_killed_in_its_first_writes_leaves_nothing() {
    let scratch = Scratch::new();
    killed(&scratch, 2);
    let (run, result) = continued(&scratch, "again");
    let record = &items(&result["continuations"])[0];
    assert!(number(&record["units_kept"]) >= 1 && record["files_left"].is_null(), "{run} {record}");
}
