//! MPI_Finalize does not return: the run ends all the same, with its exit code.

use crate::patient;
use crate::support::{document, Launch, Run, Scratch};

const ROW: [&str; 6] = ["imb", "S_Write_Indv", "--iter", "1", "--msglog", "4:4"];

/// Ends what hangs on `ranks` after `seconds`.
fn hang(launch: Launch, ranks: &str, seconds: &str) -> Run {
    let library = patient::library_of("hang", include_str!("../planted/hang.c"));
    let both = format!("{}:{}", patient::library().display(), library.display());
    launch.env("LD_PRELOAD", both).env("BEFF_HANG", ranks).env("BEFF_RAW_FINALIZE_SECONDS", seconds).run()
}

/// One line says it, and the launcher takes it for an ordinary end.
#[track_caller]
fn check(run: &Run, code: i32, lines: usize) {
    run.expect(code);
    let of_run = |line: &&str| line.contains("MPI_Finalize of") && line.contains(&format!("exit code {code}"));
    assert_eq!(run.stderr.lines().filter(of_run).count(), lines, "{run}");
    let both = format!("{}{}", run.stdout, run.stderr);
    for part in ["BAD TERMINATION", "improperly", "proxy:", "mpiexec@"] {
        assert!(!both.contains(part), "{part}; {run}");
    }
}

#[test]
fn a_run_ends_although_mpi_hangs() {
    let scratch = Scratch::new();
    let run = hang(Launch::new(2).args(ROW).into(&scratch), "all", "1");
    check(&run, 0, 1);
    assert_eq!(document(&scratch)["ending"]["outcome"], "complete");
    assert!(run.stdout.contains("S_Write_Indv"), "{run}");
    assert_eq!(scratch.list("disk"), [] as [&str; 0]);
    // One rank, not the first. MPICH's others wait for it.
    check(&hang(Launch::new(3).args(ROW).into(&Scratch::new()), "2", "1"), 0, 1);
}

#[test]
fn the_exit_code_is_kept() {
    // A run that was refused on all ranks.
    let refused = hang(Launch::new(2).args(["imb", "--path", "/nowhere/at/all", "S_Write_Indv"]), "all", "1");
    check(&refused, 2, 1);
    refused.says(&["/nowhere/at/all"]);
    // A single process without a launcher.
    check(&hang(Launch::alone().args(ROW).into(&Scratch::new()), "all", "1"), 0, 1);
}

#[test]
fn a_finalize_that_works_is_left_alone() {
    check(&hang(Launch::new(2).args(ROW).into(&Scratch::new()), "none", "600"), 0, 0);
    let refused = hang(Launch::new(1).args(ROW).into(&Scratch::new()), "none", "soon");
    refused.expect(2).says(&["BEFF_RAW_FINALIZE_SECONDS=soon", "above 0"]);
}
