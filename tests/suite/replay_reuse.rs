//! A program that does everything with one buffer: that is recorded, and a replay that reuses memory too is as right as any.

use std::fs;
use std::path::Path;

use crate::profile_support::{application, calls_of, profile};
use crate::replay::{calls, launch, replay, HEAD};
use crate::support::{document, items, number, Scratch};

/// The profile of `reuse.c` on two ranks.
#[track_caller]
fn recorded(rounds: &str) -> String {
    let scratch = Scratch::new();
    let program = application(&scratch, "reuse");
    let (output, data) = (scratch.join("reuse.csv"), scratch.join("data"));
    let data: &Path = &data;
    let run = profile(&output, 2, &program, &[data.to_str().unwrap(), rounds]).run();
    assert_eq!(run.code(), 0, "{run}");
    assert_eq!(run.stdout, format!("2 ranks, {rounds} rounds, 0 wrong\n"), "{run}");
    fs::read_to_string(&output).unwrap()
}

#[test]
fn one_buffer_is_one_buffer_in_the_replay() {
    let text = recorded("8");
    for (function, count) in [("File_write_at", 32), ("File_iwrite_at", 16), ("File_read_at", 48)] {
        let lines = calls_of(&text, function);
        assert_eq!(lines.len(), count, "{function}\n{text}");
        // The only memory of the program, somewhere in the first page.
        let at = |line: &str| line.split(',').find_map(|field| field.strip_prefix("buffer=")?.parse::<u64>().ok());
        let first = at(lines[0]);
        assert!(first.is_some_and(|at| at < 4096), "{function}\n{text}");
        assert!(lines.iter().all(|line| at(line) == first), "{function}\n{text}");
    }
    let (_scratch, run, result) = replay(2, &text, "--backend mpiio,posix,uring");
    let repetitions = items(&result["repetitions"]);
    assert_eq!(repetitions.len(), 6);
    for repetition in repetitions {
        let checked = if repetition["repetition"] == 0 { 2 * 3 * 2 * (1 + 4096 + 100_000 + (1 << 20)) } else { 0 };
        assert_eq!(number(&repetition["bytes_checked"]), checked, "{repetition}; {run}");
        assert_eq!(
            (number(&repetition["bytes_wrong"]), number(&repetition["bytes_unknown"])),
            (0, 0),
            "{repetition}; {run}"
        );
        assert_eq!(number(&repetition["calls"]), number(&repetition["calls_as_recorded"]), "{repetition}; {run}");
        assert_eq!(number(&repetition["allocations_in_clock"]), 0, "{repetition}; {run}");
    }

    for backend in ["mpiio", "posix", "uring"] {
        let scratch = Scratch::new();
        launch(2, &scratch, &text, &format!("--backend {backend} --inject")).run().expect(3);
        let found = document(&scratch);
        let found = items(&found["corruptions"]);
        assert_eq!((found.len(), &found[0]["diagnosis"]), (1, &"one bit flipped".into()), "{backend}");
        let scratch = Scratch::new();
        launch(2, &scratch, &text, &format!("--backend {backend} --verify=off")).run().expect(0);
    }
}

/// Writes and reads of one rank in turns, `buffer` each; the last read is said to come from another write.
fn turns(buffer: &str, wrong: bool) -> String {
    let mut own = "10,20,File_open,handle=1,file=0,comm=1,mode=rdwr;create\n".to_owned();
    for n in 1..40 {
        let (begin, at) = (n * 1000, n % 3 * 4096);
        let from = if wrong && n == 39 { begin - 1000 } else { begin };
        own +=
            &format!("{begin},{},File_write_at,handle=1,offset={at},count=4096,type=0{buffer},bytes=4096\n", begin + 9);
        own += &format!(
            "{},{},File_read_at,handle=1,offset={at},count=4096,type=0{buffer},bytes=4096,from=4096@0:{from}+0\n",
            begin + 500,
            begin + 600
        );
    }
    own += "90000,90010,File_close,handle=1";
    format!("{HEAD}{}", calls(&[&own, "100,101,Pcontrol,number=1"]))
}

#[test]
fn a_buffer_written_by_hand_finds_wrong_data_as_any() {
    for buffer in [",buffer=7", ""] {
        for backend in ["mpiio", "posix", "uring"] {
            let (_scratch, run, result) = replay(2, &turns(buffer, false), &format!("--backend {backend}"));
            assert_eq!(number(&items(&result["repetitions"])[0]["bytes_checked"]), 39 * 4096, "{run}");
            let scratch = Scratch::new();
            let run = launch(2, &scratch, &turns(buffer, true), &format!("--backend {backend}")).run();
            run.expect(3);
            let result = document(&scratch);
            assert_eq!(items(&result["corruptions"])[0]["diagnosis"], "other data: of another call or another offset");
        }
    }
}
