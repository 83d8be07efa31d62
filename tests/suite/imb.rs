//! IMB-IO: `beff-raw imb`. All names and numbers of ranks, files, backends, time limits.

use std::fs;
use std::path::PathBuf;

use serde_json::Value;

use crate::support::{document, items, journal, launcher, list, number, Launch, Run, Scratch};

/// The names that are not in the default list.
const OURS: &str = "C_IWrite_All_Indv,C_IRead_All_Indv,C_IWrite_All_Expl,C_IRead_All_Expl";
/// Few repetitions.
pub const FEW: &str = "--iter 3,1,2";

/// `imb` with these words, files and outputs in `scratch`.
pub fn launch(ranks: u64, scratch: &Scratch, words: &str) -> Launch {
    let full = (!words.contains("--imb-format")).then_some("--full");
    Launch::new(ranks).arg("imb").args(words.split_whitespace()).args(full).into(scratch)
}

/// A run that ends well with every row complete or not run.
#[track_caller]
pub fn run(ranks: u64, scratch: &Scratch, words: &str) -> (Run, Value) {
    let run = launch(ranks, scratch, words).run();
    run.expect(0);
    let result = document(scratch);
    assert_eq!(result["ending"]["outcome"], "complete", "{run}");
    assert_eq!((items(&result["errors"]).len(), items(&result["corruptions"]).len()), (0, 0), "{run}");
    (run, result)
}

/// A list of sizes in a file.
pub fn sizes(scratch: &Scratch, text: &str) -> String {
    let path: PathBuf = scratch.join("sizes");
    fs::write(&path, text).unwrap();
    format!("--msglen {}", path.display())
}

pub fn rows(result: &Value) -> &[Value] {
    items(&result["rows"])
}

pub fn is_complete(row: &Value) -> bool {
    row["ended"]["by"] == "complete"
}

fn what(row: &Value) -> String {
    ["backend", "benchmark", "ranks", "groups", "mode", "sample_bytes"].map(|key| row[key].to_string()).join(" ")
}

/// A row that ran: everything moved and compared (null moves nothing that could be compared), nothing allocated.
#[track_caller]
fn check_row(row: &Value) {
    let what = what(row);
    assert!(is_complete(row), "{what}: {}", row["ended"]);
    let repetitions = number(&row["iterations"]);
    assert!(repetitions >= 1 && repetitions <= number(&row["iterations_requested"]), "{what}");
    assert_eq!(number(&row["bytes_wrong"]), 0, "{what}");
    let times = items(&row["times"]);
    assert_eq!(times.len() as u64, number(&row["groups"]), "{what}");
    for t in times {
        let of = |key: &str| t[key].as_f64().unwrap();
        let (min, mean, max) = (of("min_seconds"), of("mean_seconds"), of("max_seconds"));
        assert!(min >= 0.0 && min <= mean * 1.001 + 1e-9 && mean <= max * 1.001 + 1e-9, "{what}: {t}");
    }
    let Some(sample) = row["sample_bytes"].as_u64() else {
        // Open_Close allocates where it opens; a byte of each rank.
        assert_eq!(number(&row["moved_bytes"]), repetitions * number(&row["ranks"]) * number(&row["groups"]), "{what}");
        assert_eq!(number(&row["bytes_checked"]), number(&row["groups"]), "{what}");
        return;
    };
    let moved = sample * repetitions * number(&row["groups"]);
    assert_eq!(number(&row["moved_bytes"]), moved, "{what}");
    assert_eq!(number(&row["allocations_in_clock"]), 0, "{what}");
    let files = if row["overlap"].is_null() { 1 } else { 3 };
    if row["backend"] != "null" {
        assert!(number(&row["bytes_checked"]) >= files * moved, "{what}: {} compared", row["bytes_checked"]);
    }
}

/// All names on so many ranks. Three and four on two cores take turns in every barrier, milliseconds each: fewer sizes.
fn every_name(ranks: u64, list: &str) {
    let scratch = Scratch::new();
    let sizes = sizes(&scratch, list);
    let (run, result) = run(ranks, &scratch, &format!("--include {OURS} --npmin {ranks} {FEW} {sizes}"));
    println!("{ranks} ranks, all names: {:.1} s", run.seconds);
    let count = list.split_whitespace().count();
    // 36 + 4 names with sizes, 9 of them in two modes, and Open_Close.
    assert_eq!(rows(&result).len(), (40 + 9) * count + 1);
    for row in rows(&result) {
        check_row(row);
        let single = row["benchmark"].as_str().unwrap().starts_with("S_");
        assert_eq!(number(&row["ranks"]), if single { 1 } else { ranks }, "{}", what(row));
    }
    check_pure(rows(&result));
    assert_eq!(journal(&scratch, "row").len(), rows(&result).len());
    assert_eq!(scratch.list("disk"), [] as [&str; 0], "files are left");
    let last = run.stdout.lines().last().unwrap_or_default();
    assert!(last.starts_with("IMB-IO = complete and verified"), "{last}");
}

/// t_pure of each of the 18 non-blocking names, and of our four, is the time of the calls that its blocking name makes.
#[track_caller]
fn check_pure(rows: &[Value]) {
    let mut names: Vec<&str> = Vec::new();
    for row in rows.iter().filter(|row| !row["overlap"].is_null()) {
        let name = row["benchmark"].as_str().unwrap();
        let blocking = name.replace("_All", "").replace("_IWrite", "_Write").replace("_IRead", "_Read");
        let same = |other: &&Value| other["benchmark"] == blocking && other["sample_bytes"] == row["sample_bytes"];
        let blocking = rows.iter().find(same).unwrap();
        assert_eq!(row["blocking_strategy"], blocking["strategy"], "{}", what(row));
        assert_ne!(row["blocking_strategy"], row["strategy"], "{}", what(row));
        assert!(row["overlap"]["blocking_seconds"].as_f64().is_some_and(|s| s > 0.0), "{}", what(row));
        names.push(name);
    }
    names.dedup();
    assert_eq!(names.len(), 18 + 4);
}

#[test]
fn every_name_on_one_rank() {
    every_name(1, "0 1 2 3 5 6 4097");
}

#[test]
fn every_name_on_two_ranks() {
    every_name(2, "0 1 2 3 5 6 4097");
}

#[test]
fn every_name_on_three_ranks() {
    every_name(3, "5 4097");
}

#[test]
fn every_name_on_four_ranks() {
    every_name(4, "6 4097");
}

/// Lengths of the files below `kept`, by name.
fn kept(scratch: &Scratch, backend: &str) -> Vec<(String, u64)> {
    let dir = scratch.join("disk/kept").join(backend);
    list(&dir).into_iter().map(|name| (name.clone(), fs::metadata(dir.join(&name)).unwrap().len())).collect()
}

#[test]
fn files_have_the_length_of_their_samples() {
    let names = "P_Write_Expl,C_Write_Indv,C_Write_Shared,S_Write_Indv,P_Write_Priv";
    for ranks in [2, 3] {
        let scratch = Scratch::new();
        let sizes = sizes(&scratch, "5 4097");
        run(ranks, &scratch, &format!("{names} --npmin {ranks} {FEW} {sizes} --keep-files --run-dir kept"));
        let lengths: Vec<u64> = kept(&scratch, "mpiio").into_iter().map(|(_, bytes)| bytes).collect();
        // 4097 bytes are 1025 units of 4, the last one cut to 1 byte: 513 and 512 of them, or 342, 342 and 341. The last
        // row is non-aggregate, 2 repetitions.
        let parts: &[u64] = if ranks == 2 { &[513 * 4, 511 * 4 + 1] } else { &[342 * 4, 342 * 4, 340 * 4 + 1] };
        assert_eq!(parts.iter().sum::<u64>(), 4097);
        let private = parts.iter().map(|part| 2 * part);
        assert_eq!(lengths, [2 * 4097; 4].into_iter().chain(private).collect::<Vec<_>>());
    }
}

/// The release reads a file that is too short here: 590 of its 640 reads return nothing.
#[test]
fn all_reads_are_whole_where_the_release_meets_the_end_of_file() {
    let scratch = Scratch::new();
    let (_, result) = run(1, &scratch, "-msglog 16:16 S_Read_Indv");
    let row = rows(&result).iter().find(|row| row["sample_bytes"] == 65536).unwrap();
    check_row(row);
    assert_eq!((number(&row["iterations"]), number(&row["moved_bytes"])), (640, 640 * 65536));
    // One more than there are: what the last one has left, and all of them once more.
    assert_eq!(number(&row["bytes_checked"]), 641 * 65536);
}

/// The release never rewinds its pointers with this policy.
#[test]
fn all_reads_are_whole_without_a_policy() {
    let scratch = Scratch::new();
    let words = "-iter_policy off S_Read_Indv P_Read_Indv C_Read_Expl -msglog 12:12 -npmin 2";
    let (_, result) = run(2, &scratch, words);
    let long: Vec<_> = rows(&result).iter().filter(|row| row["sample_bytes"] == 4096).collect();
    assert_eq!(long.len(), 3);
    for row in long {
        check_row(row);
        assert_eq!((number(&row["iterations"]), number(&row["moved_bytes"])), (1000, 1000 * 4096), "{}", what(row));
    }
    assert!(result["announcement"]["limit_seconds"].is_null());
}

/// Ranks of each group, and groups.
type Shapes<'a> = &'a [(u64, u64)];

/// Distinct (ranks, groups) of a benchmark in order.
fn shapes(result: &Value, name: &str) -> Vec<(u64, u64)> {
    let of = rows(result).iter().filter(|row| row["benchmark"] == name);
    let mut all: Vec<_> = of.map(|row| (number(&row["ranks"]), number(&row["groups"]))).collect();
    all.dedup();
    all
}

#[test]
fn numbers_of_ranks_and_groups() {
    let words = format!("S_Read_Expl,P_Write_Indv,C_Read_Shared,P_IWrite_Priv,Open_Close {FEW} --msglog 5:5");
    let cases: [(u64, &str, Shapes<'_>); 5] = [
        (3, "--npmin 1", &[(1, 1), (2, 1), (3, 1)]),
        (3, "--npmin 2", &[(2, 1), (3, 1)]),
        (3, "--npmin 2 --multi 0", &[(2, 1), (3, 1)]),
        (4, "--npmin 2 --multi 1", &[(2, 2), (4, 1)]),
        (4, "-npmin 2 -multi 0 --aggregate-mode aggregate", &[(2, 2), (4, 1)]),
    ];
    for (ranks, options, expected) in cases {
        let scratch = Scratch::new();
        let (run, result) = run(ranks, &scratch, &format!("{words} {options}"));
        rows(&result).iter().for_each(check_row);
        for name in ["P_Write_Indv", "C_Read_Shared", "P_IWrite_Priv", "Open_Close"] {
            assert_eq!(shapes(&result, name), expected, "{ranks} ranks, {options}, {name}");
        }
        assert_eq!(shapes(&result, "S_Read_Expl"), [(1, 1)]);
        let waiting = expected.iter().any(|(n, groups)| n * groups < ranks);
        assert!(!waiting || run.stdout.contains("1 rank waiting"), "{run}");
    }
}

#[test]
fn every_backend_that_can() {
    let plain = "S_Write_Indv,S_Read_Expl,P_Write_Expl,P_Read_Indv,P_Read_Priv";
    let requests = "S_IWrite_Expl,S_IRead_Indv,P_IWrite_Indv,P_IRead_Expl,P_IWrite_Priv";
    for (backend, names) in
        [("posix", plain.to_owned()), ("uring", format!("{plain},{requests}")), ("null", plain.to_owned())]
    {
        let scratch = Scratch::new();
        let sizes = sizes(&scratch, "0 3 5 4097 65536");
        let (_, result) = run(2, &scratch, &format!("{names} --npmin 2 {FEW} {sizes} --backend {backend}"));
        rows(&result).iter().for_each(check_row);
        let verdict = &result["derived"]["verdict"]["verdict"];
        assert_eq!(verdict, if backend == "null" { "not_verified" } else { "verified" });
    }
}

#[test]
fn what_a_backend_cannot_do_is_not_run() {
    let scratch = Scratch::new();
    let words = format!("C_Write_Expl,P_Read_Shared,Open_Close,P_IRead_Expl,S_Write_Expl --npmin 2 {FEW} --msglog 4:4");
    let (run, result) = run(2, &scratch, &format!("{words} --backend mpiio,posix"));
    for row in rows(&result) {
        if row["backend"] == "posix" && row["benchmark"] != "S_Write_Expl" {
            assert_eq!(row["ended"]["by"], "not_run", "{}", what(row));
            assert!(row["ended"]["reason"].as_str().is_some_and(|r| r.len() > 20), "{}", row["ended"]);
        } else {
            check_row(row);
        }
    }
    assert!(run.stdout.contains("not run: "), "{run}");
}

/// The data of a row depends on its number: each backend runs alone with the same rows.
#[test]
fn identical_files_from_all_backends() {
    let names = "S_Write_Expl,S_Write_Indv,P_Write_Priv,P_Write_Expl,P_Write_Indv";
    let contents = |backend: &str| -> Vec<(String, Vec<u8>)> {
        let scratch = Scratch::new();
        let sizes = sizes(&scratch, "6 70001");
        let words = format!("{names} --npmin 2 {FEW} {sizes} --backend {backend} --keep-files --run-dir kept");
        run(2, &scratch, &words);
        let dir = scratch.join("disk/kept").join(backend);
        kept(&scratch, backend).into_iter().map(|(name, _)| (name.clone(), fs::read(dir.join(name)).unwrap())).collect()
    };
    let one = contents("mpiio");
    // Four files of all, and one of each rank; two repetitions of the last row.
    assert_eq!(one.len(), 6);
    assert!(
        one.iter().all(|(_, bytes)| bytes.len() > 60_000),
        "{:?}",
        one.iter().map(|f| f.1.len()).collect::<Vec<_>>()
    );
    for other in ["posix", "uring"] {
        assert!(one == contents(other), "mpiio and {other} differ");
    }
}

#[test]
fn hints_reach_the_library() {
    let scratch = Scratch::new();
    let words = format!("C_Write_Indv,C_Read_Expl --npmin 2 {FEW} --msglog 8:8 --hint romio_cb_write=disable");
    let (run, result) = run(2, &scratch, &words);
    rows(&result).iter().for_each(check_row);
    assert_eq!(items(&result["config"]["hints"])[0][0], "romio_cb_write");
    assert!(run.stdout.contains("romio_cb_write=disable"), "{run}");
    // Open MPI answers with whatever was asked; ROMIO with what is in force.
    let granted = Value::from(vec![Value::from(vec!["romio_cb_write", "disable"])]);
    for row in rows(&result) {
        assert_eq!(row["hints_granted"], granted, "{}", what(row));
    }
}

#[test]
fn a_time_limit_reduces_repetitions_and_is_announced() {
    let scratch = Scratch::new();
    let sizes = sizes(&scratch, "4M");
    let words = format!("S_Write_Expl --time 0.01 --aggregate-mode non-aggregate {sizes} --iter 100,400,100");
    let (run, result) = run(2, &scratch, &words);
    let row = &rows(&result)[0];
    check_row(row);
    assert!(number(&row["iterations"]) < number(&row["iterations_requested"]), "{}", what(row));
    assert_eq!(number(&row["iterations_requested"]), 100);
    assert!(run.stdout.contains("fewer iterations"), "{run}");
    run.says(&["IMB-IO on 2 ranks: 1 row, about ", "iterations are reduced where a row would take more than "]);
    let kinds: Vec<String> = fs::read_to_string(scratch.join("out.jsonl"))
        .unwrap()
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap()["record"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(kinds[..3], ["start", "announcement", "row"]);
    let last = run.stdout.lines().last().unwrap_or_default();
    assert!(last.contains("took ") && last.contains(" announced"), "{last}");
}

/// What both cost is a matter of an idle machine; here only that both run and are told.
#[test]
fn bare_loops_take_turns_with_ours() {
    let scratch = Scratch::new();
    let (run, result) = run(2, &scratch, &format!("S_Write_Expl,P_Read_Indv {FEW} --msglog 3:3 --bare"));
    println!("bare loops on {}: {:.1} s", launcher().mpi, run.seconds);
    let bare = items(&result["bare"]);
    assert_eq!(bare.len(), 2 * 4);
    for record in bare {
        let ranks = if record["benchmark"].as_str().unwrap().starts_with("S_") { 1 } else { 2 };
        assert_eq!(record["ranks"], ranks, "{record}");
        assert!(items(&record["pairs"]).len() >= 7, "{record}");
    }
    let derived = items(&result["derived"]["bare"]);
    assert_eq!(derived.len(), bare.len());
    for value in derived {
        assert!(value["ratio"].as_f64().is_some_and(|r| r.is_finite() && r > 0.0), "{value}");
    }
    assert_eq!(journal(&scratch, "bare").len(), bare.len());
}
