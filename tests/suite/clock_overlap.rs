//! The overlap of IMB-IO under planted time. Its load is the one thing that takes the processor's own time, so nobody else may
//! have it.

use serde_json::Value;

use crate::clock::imb::{check_times, made, name, near, slowest, take, OfRank, Opened, CALLS};
use crate::planted::Planted;
use crate::support::{items, number};

/// What the program itself computes between barrier and call.
const STEP: f64 = 200e-6;
/// Launches until the loads are as long as asked. A load is a number of units, and where other machines share the processor its
/// speed changes by two within a second; a program that asks for the wrong number is wrong in each launch.
const LAUNCHES: usize = 4;

/// The three runs of a non-blocking benchmark: the blocking call, the other one alone, and with the load inside. The clock goes on
/// while the program computes: only so it has a load.
#[test]
fn every_run_of_an_overlap_is_its_calls() {
    let mut wrong = Vec::new();
    for _ in 0..LAUNCHES {
        let loads = loads_of_a_launch();
        if loads.is_empty() {
            return;
        }
        wrong.push(loads);
    }
    panic!("in {LAUNCHES} launches: {wrong:#?}");
}

/// The loads that are not as long as asked; all else must hold at once.
fn loads_of_a_launch() -> Vec<String> {
    // Rank 0 alone would have a fourth of the load.
    let slow =
        ["MPI_File_*write*@1=8000000+40000", "MPI_File_*read*@1=7000000+30000", "MPI_Wait*=9000000", "computing"];
    let rules: Vec<&str> = CALLS.into_iter().chain(slow).collect();
    let names = ["S_IWrite_Indv", "P_IRead_Expl", "C_IWrite_Expl"];
    let args =
        [&["imb"][..], &names, &["--npmin", "2", "--msglog", "10:11", "--iter", "6,1,4,off", "--quiet"]].concat();
    let run = Planted::run(2, &rules, &args);
    let mut opened = made(&run);
    items(&run.result["rows"]).iter().flat_map(|row| loads_of_a_row(row, &mut opened)).collect()
}
fn loads_of_a_row(row: &Value, opened: &mut Vec<Vec<Opened>>) -> Vec<String> {
    let what = name(row);
    assert_eq!(row["ended"]["by"], "complete", "{what}: {row}");
    let (n, overlap) = (number(&row["iterations"]) as f64, &row["overlap"]);
    let beside = take(opened, row, &overlap["overlapped_seconds"], STEP);
    let alone = take(opened, row, &overlap["alone_seconds"], STEP);
    let blocking = take(opened, row, &overlap["blocking_seconds"], STEP);
    let begins = |of: &[OfRank]| {
        let function = &of[0].moves[0].function;
        function.starts_with("MPI_File_i") || function.ends_with("_begin")
    };
    assert_eq!([&beside, &alone, &blocking].map(|of| begins(of)), [true, true, false], "{what}: calls");
    let load = slowest(&alone, |of| of.between_seconds) / n;
    assert!(load < STEP, "{what}: a load of {load} s in the run without");
    let load = slowest(&beside, |of| of.between_seconds) / n;
    near(&overlap["cpu_overlapped_seconds"], load, STEP, &format!("{what}: the load beside the calls"));
    check_times(row, &beside, STEP);
    let asked = overlap["blocking_seconds"].as_f64().unwrap();
    let loads = beside.iter().map(|of| of.between_seconds / n).chain([overlap["cpu_seconds"].as_f64().unwrap()]);
    let wrong = loads.filter(|load| !(0.5..2.0).contains(&(load / asked)));
    wrong.map(|load| format!("{what}: a load of {load} s in place of {asked}: {row}")).collect()
}
