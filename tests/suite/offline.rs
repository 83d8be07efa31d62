//! Commands that need no MPI: plan and info.

use std::fs;
use std::process::{Command, Output};

use crate::support::{Scratch, PROGRAM};

/// Output of `plan` with these words.
pub fn plan(args: &[&str]) -> Output {
    Command::new(PROGRAM).arg("plan").args(args).output().unwrap()
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
    for part in [
        "scatter",
        "seg-coll",
        "memory",
        "4 ranks",
        "write    does NOT fit the space: ",
        "ended by counts: 0, 9, 17, 25-42; space: 1-8",
    ] {
        assert!(text.contains(part), "no '{part}' in {text}");
    }
}

/// What is left of a run that was killed while it wrote its results.
#[test]
fn an_empty_result_names_its_journal() {
    let scratch = Scratch::new();
    let report = |name: &str| {
        let done = Command::new(PROGRAM).arg("report").arg(scratch.join(name)).output().unwrap();
        assert_eq!(done.status.code(), Some(2), "{done:?}");
        String::from_utf8(done.stderr).unwrap()
    };
    for name in ["run.1.json", "run.1.mpiio.sum", "run.1.jsonl"] {
        fs::write(scratch.join(name), "").unwrap();
        let said = report(name);
        assert!(said.contains(&format!("{name} is empty")) && said.contains("measure again"), "{said}");
    }
    fs::write(scratch.join("run.1.jsonl"), "{}\n").unwrap();
    for name in ["run.1.json", "run.1.mpiio.sum"] {
        let said = report(name);
        assert!(said.contains(&format!("beff-raw report {}", scratch.join("run.1.jsonl").display())), "{said}");
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
fn command_lines_of_the_release_work_with_options_without_effect() {
    let line =
        "P_IWrite_Indv -iter 5 -npmin 2 -msglog 20:20 -iter_policy off -time 500 -mem 0.5 -off_cache -1 --plan 2";
    let done = imb(&line.split(' ').collect::<Vec<_>>());
    let [shown, said] = [done.stdout, done.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    assert!(done.status.success() && shown.contains("P_IWrite_Indv") && shown.contains("1048576"), "{shown}{said}");
    for option in ["-time 500", "-mem 0.5", "-off_cache -1"] {
        assert!(said.contains(&format!("{option} has no effect: ")), "{said}");
    }
}

#[test]
fn options_of_the_release_that_are_missing_are_named() {
    for (args, parts) in [
        (&["-map", "2x2"][..], ["-map:", "launcher"]),
        (&["-npmin", "2", "-root_shift", "on"], ["-root_shift:", "not supported"]),
        (&["-exclude", "S_Read_Indv", "Open_Close"], ["'Open_Close'", "commas"]),
    ] {
        let done = imb(args);
        let text = String::from_utf8_lossy(&done.stderr).into_owned();
        assert_eq!(done.status.code(), Some(2), "{text}");
        assert!(parts.iter().all(|part| text.contains(part)), "{args:?}: {text}");
    }
}

/// The balance factor of the value that is in the file: 45.909 MB/s and 4447 MB/s by 20 Gflop/s.
#[test]
fn a_report_has_the_balance_factor_for_a_given_rmax() {
    let report = |file: &str, rmax: &str| {
        let file = format!("{}/{file}", env!("CARGO_MANIFEST_DIR"));
        Command::new(PROGRAM).args(["report", &file, "--full", "--rmax", rmax]).output().unwrap()
    };
    for (file, balance) in [
        ("docs/runs/mpich-2ranks-15m-strict.json", "  2.295e-3\n"),
        ("docs/runs/mpich-2ranks-b_eff.jsonl", " 0.22236 bytes per floating-point operation"),
    ] {
        let text = String::from_utf8(report(file, "20").stdout).unwrap();
        assert!(text.contains(balance), "{file}: {text}");
    }
    for (file, rmax, reason) in [
        ("docs/runs/mpich-2ranks-15m-strict.json", "0", "above zero"),
        ("tests/schema-2/imb_io.json", "20", "it has no balance factor"),
    ] {
        let refused = report(file, rmax);
        assert_eq!(refused.status.code(), Some(2), "{file}");
        assert!(String::from_utf8_lossy(&refused.stderr).contains(reason), "{file}: {refused:?}");
    }
}
