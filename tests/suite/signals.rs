//! A run that is interrupted or killed keeps what it measured.

use std::fs;
use std::process::Command;

use crate::support::{document, journal, launcher, signal, Launch, Run, Running, Scratch, PROGRAM};

/// A run of half a minute in a directory of its own, with some patterns done.
fn half_a_minute(launch: Launch, scratch: &Scratch) -> Running {
    let args = ["-T", "30s", "--memory-per-process", "64M", "--space", "300M", "--backend", "mpiio,posix"];
    let mut running = launch.args(args).into(scratch).start();
    let out = scratch.join("out.jsonl");
    running.until("five patterns", || {
        fs::read_to_string(&out).is_ok_and(|text| text.matches(r#""record":"pattern""#).count() >= 5)
    });
    running
}

/// Patterns kept, outcome told, files gone. The text is asked of the files: after a signal some launchers read nothing more
/// of what the program prints.
fn check_kept(run: &Run, scratch: &Scratch) {
    assert!(run.seconds < 20.0, "too late; {run}");
    let report = Command::new(PROGRAM).arg("report").arg(scratch.join("out.json")).output().unwrap();
    assert!(String::from_utf8_lossy(&report.stdout).contains("INTERRUPTED"), "{run}");
    let result = document(scratch);
    assert_eq!(result["ending"]["outcome"], "interrupted", "{run}");
    assert!(journal(scratch, "pattern").len() >= 5);
    assert_eq!(journal(scratch, "end").len(), 1);
    assert_eq!(scratch.list("disk"), [] as [&str; 0], "files are left");
}

#[test]
fn one_process_without_launcher() {
    for name in ["INT", "TERM"] {
        let scratch = Scratch::new();
        let running = half_a_minute(Launch::alone(), &scratch);
        signal(running.pid(), name);
        let run = running.wait();
        run.expect(130);
        assert!(run.stdout.contains("INTERRUPTED"), "{run}");
        check_kept(&run, &scratch);
    }
}

/// True if the process has a handler of SIGINT (bit 1 of SigCgt, proc(5)).
fn catches_sigint(pid: i32) -> bool {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
    caught.is_some_and(|mask| u64::from_str_radix(mask.trim(), 16).is_ok_and(|mask| mask & 2 != 0))
}

/// Before MPI_Init, which may wait: nothing was created, so there is nothing to keep.
#[test]
fn a_signal_at_the_start_ends_with_the_code_of_an_interrupted_run() {
    let scratch = Scratch::new();
    let mut running = Launch::alone().args(["-T", "30s", "--backend", "posix"]).into(&scratch).start();
    let pid = running.pid();
    running.until("a handler", || catches_sigint(pid));
    signal(pid, "INT");
    let run = running.wait();
    run.expect(130);
    assert!(run.seconds < 10.0 && scratch.list("disk").is_empty() && !scratch.join("out.jsonl").exists(), "{run}");
}

#[test]
fn through_the_launcher() {
    for name in ["INT", "TERM"] {
        let scratch = Scratch::new();
        let running = half_a_minute(Launch::new(2), &scratch);
        signal(running.pid(), name);
        let run = running.wait();
        println!("{} after SIG{name}: {}", launcher().mpi, run.status);
        // MPICH's hydra ends with 130 or 0 after a signal, as chance has it, also with processes that all end with 130.
        assert!(run.code() != 0 || launcher().mpi == "mpich", "{run}");
        check_kept(&run, &scratch);
    }
}

#[test]
fn a_killed_rank_leaves_a_journal_that_is_a_result() {
    let scratch = Scratch::new();
    let running = half_a_minute(Launch::new(2), &scratch);
    let ranks = running.ranks();
    assert_eq!(ranks.len(), 2, "{ranks:?}");
    signal(ranks[1], "KILL");
    let run = running.wait();
    assert!(run.code() != 0 && run.seconds < 20.0, "{run}");
    let report = Command::new(PROGRAM).args(["report", "--full"]).arg(scratch.join("out.jsonl")).output().unwrap();
    let text = String::from_utf8_lossy(&report.stdout);
    assert!(report.status.success(), "{}", String::from_utf8_lossy(&report.stderr));
    assert!(text.to_lowercase().contains("killed"), "{text}");
    assert!(text.contains("scatter") && text.contains("Backends side by side, 2 ranks"), "{text}");
}
