//! One call of the kernel that goes wrong behind the back of the program: see `tests/faulty/faulty.c`.

use std::fs;

use serde_json::Value;

use crate::patient;
use crate::replay;
use crate::support::{document, items, journal, launcher, skip, Launch, Run, Scratch};

const SOURCE: &str = include_str!("../faulty/faulty.c");

/// A run with one fault (`DIRECTION WHAT NTH NAME`), and what was hit: path, offset, length.
pub fn faulty(rule: &str, args: &[&str]) -> (Run, Value, Option<Vec<String>>) {
    let scratch = Scratch::new();
    let (run, hit) = faulty_in(&scratch, rule, args);
    let result = if is_stranded(&run) { Value::Null } else { document(&scratch) };
    (run, result, hit)
}

/// True if the library left ranks in a collective call, which ended the run.
fn is_stranded(run: &Run) -> bool {
    run.stderr.contains("the MPI library leaves them in it")
}

/// The rank that gives up ends with 1. Hydra ends the others by SIGKILL, and its own exit code is 1 or 9: that of the rank it looks at first.
fn ended_by_force(run: &Run) {
    assert!(matches!(run.code(), 1 | 9), "{run}");
}

fn faulty_in(scratch: &Scratch, rule: &str, args: &[&str]) -> (Run, Option<Vec<String>>) {
    let mark = scratch.join("mark");
    let both = format!("{}:{}", patient::library().display(), patient::library_of("faulty", SOURCE).display());
    let launch = Launch::new(2).env("LD_PRELOAD", both).env("BEFF_FAULT", rule).env("BEFF_FAULT_MARK", &mark);
    let sizes = ["-T", "4s", "--memory-per-process", "64M", "--space", "200M"];
    let run = launch.env("BEFF_RAW_STRANDED_SECONDS", "5").args(sizes).args(args).into(scratch).run();
    let hit = fs::read_to_string(&mark).ok().map(|text| text.split_whitespace().map(str::to_owned).collect());
    (run, hit)
}

/// OMPIO of Open MPI 4.1 reports success for collective calls whose pwrite or pread failed; ROMIO reports the error.
#[test]
fn a_library_that_hides_an_error_is_named() {
    for (rule, types) in [
        ("write eio 3 n2-type0", "0"),
        ("read eio 3 n2-type0", "0"),
        ("write eio 3 n2-type4", "0,4"),
        ("read eio 2 n2-type4", "0,4"),
    ] {
        let (run, result, hit) = faulty(rule, &["--backend", "mpiio", "--types", types]);
        assert!(hit.is_some(), "{rule}: no call was hit; {run}");
        assert_ne!(run.code(), 0, "{rule}: {run}");
        if is_stranded(&run) {
            // ROMIO, if the call that was hit is one of its two-phase reads.
            assert!(rule.starts_with("read") && launcher().mpi != "openmpi", "{rule}: {run}");
            continue;
        }
        let errors = items(&result["errors"]);
        assert_eq!(errors.len(), 1, "{rule}: {errors:?}");
        let message = errors[0]["message"].as_str().unwrap();
        assert!(message.contains(if types == "0" { "type0" } else { "type4" }), "{rule}: {message}");
        if launcher().mpi == "openmpi" {
            assert!(message.contains("MPI-IO reported success") && message.contains("kernel counted"), "{message}");
        }
        assert_eq!(result["ending"]["outcome"], "failed", "{rule}: {run}");
    }
}

/// ROMIO leaves the other ranks in a two-phase read that failed on one rank: what they do next, they never do.
#[test]
fn ranks_that_a_library_leaves_waiting_are_ended() {
    if launcher().mpi == "openmpi" {
        return skip("OMPIO ends a collective read with success on all ranks");
    }
    let scratch = Scratch::new();
    let hints = scratch.join("hints");
    fs::write(&hints, "all all all all romio_cb_read enable\n").expect("hints");
    let args = ["--backend", "mpiio", "--types", "0", "--hints", hints.to_str().expect("UTF-8")];
    let (run, hit) = faulty_in(&scratch, "read eio 2 n2-type0", &args);
    let hit = hit.unwrap_or_else(|| panic!("no call was hit; {run}"));
    assert!(is_stranded(&run), "{run}");
    ended_by_force(&run);
    assert!(run.seconds < 60.0, "{run}");
    run.says(&[
        "rank ",
        "MPI_File_read_all",
        hit[0].rsplit('/').next().expect("a name"),
        "After 5 s",
        "--backend posix",
    ]);
    assert!(!journal(&scratch, "pattern").is_empty(), "what was measured before is kept; {run}");
}

/// The same in a replay: the failed call is the last of a go, or the first of several, or the last of all.
#[test]
fn ranks_that_a_library_leaves_waiting_are_ended_in_a_replay() {
    if launcher().mpi == "openmpi" {
        return skip("OMPIO ends a collective read with success on all ranks");
    }
    for (pace, nth) in [("fast", 1), ("fast", 2), ("fast", 6), ("think", 2)] {
        let of_rank = |rank: u64| {
            let mut text = String::from("100,200,File_open,handle=1,file=1,comm=0,mode=rdonly\n");
            for n in 1..=6 {
                let (begin, from) = (n * 1000 + rank, 20_000 * rank);
                let end = begin + 500;
                text += &format!("{begin},{end},File_read_at_all,handle=1,offset={from},count=40000,type=0,bytes=40000,from=40000@file\n");
            }
            text + "9000,9100,File_close,handle=1"
        };
        let profile = format!("{}{}", replay::HEAD, replay::calls(&[&of_rank(0), &of_rank(1)]));
        let scratch = Scratch::new();
        let mark = scratch.join("mark");
        let both = format!("{}:{}", patient::library().display(), patient::library_of("faulty", SOURCE).display());
        let launch = replay::launch(2, &scratch, &profile, &format!("--pace {pace}")).env("LD_PRELOAD", both);
        let launch = launch.env("BEFF_FAULT", format!("read eio {nth} file-0002")).env("BEFF_FAULT_MARK", &mark);
        let run = launch.env("BEFF_RAW_STRANDED_SECONDS", "3").run();
        let what = format!("{pace}, read {nth}: {run}");
        assert!(mark.exists(), "no call was hit; {what}");
        ended_by_force(&run);
        assert!(is_stranded(&run) && run.seconds < 40.0, "{what}");
        run.says(&[
            "rank ",
            "MPI_File_read_at_all",
            "file-0002",
            "offset",
            "recorded at",
            "After 3 s",
            "--backend posix",
        ]);
    }
}

/// A lost or damaged first write, which the rewrite would cover, and a read that delivers other data than there is.
#[test]
fn what_goes_wrong_on_the_way_is_found_by_the_full_check() {
    // Each through one of the drivers, a lost write through both.
    for (backend, rules) in [
        ("posix", ["write lose", "write zero", "read lose", "read misplace"]),
        ("mpiio", ["write lose", "write flip", "write misplace", "read flip"]),
    ] {
        for rule in rules {
            let rule = format!("{rule} 9 n2-type0");
            let (run, result, hit) = faulty(&rule, &["--backend", backend, "--types", "0", "--verify", "full"]);
            let hit = hit.unwrap_or_else(|| panic!("{rule}: no call was hit; {run}"));
            run.expect(3);
            let (begin, bytes): (u64, u64) = (hit[1].parse().unwrap(), hit[2].parse().unwrap());
            let offset = |c: &Value| c["offset_bytes"].as_u64().unwrap();
            let places: Vec<u64> = items(&result["corruptions"]).iter().map(offset).collect();
            let here = places.iter().any(|at| (begin..begin + bytes).contains(at));
            assert!(here, "{backend}, {rule}: {begin} + {bytes} is not in {places:?}");
            assert!(run.stdout.contains("DATA CORRUPTION"), "{run}");
        }
    }
}

/// The trial of a backend is the first that meets the storage. The run may not meet the same error again.
#[test]
fn an_error_of_the_storage_in_a_trial_is_reported() {
    for backends in ["mmap", "posix,mmap"] {
        let scratch = Scratch::new();
        let (run, hit) = faulty_in(&scratch, "room eio 1 trial-rank", &["--backend", backends, "--types", "2"]);
        assert!(hit.is_some(), "no call was hit; {run}");
        run.expect(1).says(&["trial of mmap", "Input/output error", "trial-rank", "--path"]);
    }
}

/// The first question for blocks asks whether the file system can reserve any; that it failed is no answer.
#[test]
fn an_error_of_the_first_reservation_is_reported() {
    let (run, result, hit) = faulty("room eio 1 n2-type2", &["--backend", "mmap", "--types", "2"]);
    assert!(hit.is_some(), "no call was hit; {run}");
    run.expect(1);
    let message = result["errors"][0]["message"].as_str().unwrap_or_default();
    assert!(message.contains("fallocate") && message.contains("Input/output error"), "{message}; {run}");
}

/// As where a signal comes again and again.
#[test]
fn a_call_that_is_interrupted_for_ever_is_an_error() {
    for backend in ["mmap", "uring"] {
        interrupted_for_ever(backend);
    }
}

fn interrupted_for_ever(backend: &str) {
    let (run, result, hit) = faulty("room eintr 3 n2-type2", &["--backend", backend, "--types", "2"]);
    if hit.is_none() && backend == "uring" {
        return skip("no direct I/O on the disk of the build: no room is made");
    }
    assert!(hit.is_some(), "no call was hit; {run}");
    run.expect(1);
    let message = result["errors"][0]["message"].as_str().unwrap_or_default();
    assert!(message.contains("fallocate") && message.contains("Interrupted system call"), "{message}; {run}");
}
