//! The overlap of IMB-IO under planted time. Its load is the one thing that takes the processor's own time, so nobody else may
//! have it.

use crate::clock::imb::{check_times, made, name, near, slowest, take, OfRank, CALLS};
use crate::planted::Planted;
use crate::support::{items, number};

/// The three runs of a non-blocking benchmark: the blocking call, the other one alone, and with the load inside. The clock goes on
/// while the program computes: only so it has a load.
#[test]
fn every_run_of_an_overlap_is_its_calls() {
    // What the program itself computes between barrier and call.
    const STEP: f64 = 200e-6;
    let names = ["S_IWrite_Indv", "P_IRead_Expl", "C_IWrite_Expl"];
    // Rank 0 alone would have a fourth of the load.
    let slow =
        ["MPI_File_*write*@1=8000000+40000", "MPI_File_*read*@1=7000000+30000", "MPI_Wait*=9000000", "computing"];
    let rules: Vec<&str> = CALLS.into_iter().chain(slow).collect();
    let args =
        [&["imb"][..], &names, &["--npmin", "2", "--msglog", "10:11", "--iter", "6,1,4,off", "--quiet"]].concat();
    let run = Planted::run(2, &rules, &args);
    let mut made = made(&run);
    for row in items(&run.result["rows"]) {
        let what = name(row);
        assert_eq!(row["ended"]["by"], "complete", "{what}: {row}");
        let (n, overlap) = (number(&row["repetitions"]) as f64, &row["overlap"]);
        let beside = take(&mut made, row, &overlap["overlapped_seconds"], STEP);
        let alone = take(&mut made, row, &overlap["alone_seconds"], STEP);
        let blocking = take(&mut made, row, &overlap["blocking_seconds"], STEP);
        let begins = |of: &[OfRank]| {
            let function = &of[0].moves[0].function;
            function.starts_with("MPI_File_i") || function.ends_with("_begin")
        };
        assert_eq!([&beside, &alone, &blocking].map(|of| begins(of)), [true, true, false], "{what}: calls");
        let load = slowest(&alone, |of| of.between_seconds) / n;
        assert!(load < STEP, "{what}: a load of {load} s in the run without");
        let load = slowest(&beside, |of| of.between_seconds) / n;
        near(&overlap["cpu_overlapped_seconds"], load, STEP, &format!("{what}: the load beside the calls"));
        let asked = overlap["blocking_seconds"].as_f64().unwrap();
        let loads = beside.iter().map(|of| of.between_seconds / n);
        for load in loads.chain([overlap["cpu_seconds"].as_f64().unwrap()]) {
            assert!((0.5..2.0).contains(&(load / asked)), "{what}: a load of {load} s in place of {asked}: {row}");
        }
        check_times(row, &beside, STEP);
    }
}
