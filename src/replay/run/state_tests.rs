//! Replays of programs whose results depend on names, sizes and the shared file pointer, on several ranks (`ranks_tests`).

use super::ranks_tests::{assert_repetition, replay_profile};
use crate::replay::config::Pace;

/// A profile of ranks that have the communicators 0 (world) and 1 + n (rank n alone).
fn profile(files: &[&str], ranks: &[&[&str]]) -> String {
    let mut text = format!("beff-raw profile,1\nranks,{}\ncomm,0,world\n", ranks.len());
    (0..ranks.len()).for_each(|rank| text += &format!("comm,{},{rank}\n", rank + 1));
    text += "type,0,BYTE\n";
    files.iter().enumerate().for_each(|(n, file)| text += &format!("file,{n},{file}\n"));
    for (rank, calls) in ranks.iter().enumerate() {
        text += &format!("calls,{rank},{}\n", calls.len());
        calls.iter().for_each(|call| text += &format!("{call}\n"));
    }
    text
}

/// Rank 0 asks for the pointer between the begin of its access and its completion, after an access of rank 1 that follows that begin.
#[test]
fn a_nonblocking_access_has_moved_the_shared_pointer_when_it_returns() {
    let open = "0,5,File_open,handle=1,comm=0,file=0,mode=create;rdwr,number=-1";
    let close = "900,905,File_close,handle=1";
    let of_0 = [
        open,
        "10,12,File_iwrite_shared,handle=1,count=4,type=0,request=1",
        "50,52,File_get_position_shared,handle=1,number=12,after=1@20",
        "60,62,Wait,requests=1,done=1:4",
        close,
    ];
    let of_1 = [open, "20,22,File_write_shared,handle=1,count=4,type=0,bytes=4,after=0@10", close];
    let (seen, _) = replay_profile(&profile(&["x"], &[&of_0, &of_1]), 2, &["mpiio"], Pace::Fast);
    assert_repetition(&seen.passes[0], 8, [0; 3]);
    assert!(seen.passes[0].waits <= 2 && seen.others.is_empty(), "{:?}", seen.others);
}

/// Calls of one rank on one file: an opening for each state, each followed by these calls.
fn openings(states: &[(&str, &str)]) -> String {
    let mut calls = Vec::new();
    for (n, (opening, between)) in (1..).zip(states) {
        let at = 1000 * n;
        calls.push(format!("{at},{},File_open,handle={n},comm=0,file=0,{opening}", at + 5));
        for (m, call) in (1..).zip(between.split('|').filter(|call| !call.is_empty())) {
            let at = at + 10 * m;
            calls.push(format!("{at},{},{}", at + 5, call.replace("H,", &format!("handle={n},"))));
        }
        calls.push(format!("{},{},File_close,handle={n}", at + 900, at + 905));
    }
    let calls: Vec<&str> = calls.iter().map(String::as_str).collect();
    profile(&["x"], &[&calls])
}

fn calls_of(profile: &str) -> u64 {
    profile.lines().filter(|line| line.starts_with(|c: char| c.is_ascii_digit())).count() as u64
}

/// Other means than MPI-IO truncated, removed, emptied, created and extended it, with and without exclusive creation.
#[test]
fn a_file_is_at_each_opening_as_recorded() {
    let write = "File_write_at,H,offset=0,count=100,type=0,bytes=100";
    let read =
        |moved: u64| format!("File_get_size,H,number={moved}|File_read_at,H,offset=0,count=500,type=0,bytes={moved}");
    let text = openings(&[
        ("mode=create;excl;rdwr,number=-1", write),
        ("mode=rdwr,number=40", &format!("{},from=40@0:1010+0", read(40))),
        ("mode=create;excl;rdwr,number=-1", write),
        ("mode=create;excl;wronly,number=-1", "File_write_at,H,offset=50,count=10,type=0,bytes=10"),
        ("mode=rdwr,number=60", &format!("{},from=50@hole;10@0:4010+0", read(60))),
        ("mode=rdwr,number=300", &read(300)),
        ("mode=rdwr,number=0", &format!("{}|{write}", read(0))),
    ]);
    for backend in ["posix", "uring"] {
        let (seen, files) = replay_profile(&text, 1, &[backend], Pace::Fast);
        assert_repetition(&seen.passes[0], calls_of(&text), [100, 0, 0]);
        assert_eq!(files[0].len(), 100);
        assert!(seen.passes[0].allocations_in_clock == 0 && seen.others.is_empty(), "{:?}", seen.others);
    }
}

/// The opening of an absent file fails, that of an empty one succeeds; a deletion finds what it found.
#[test]
fn a_call_on_a_name_finds_what_it_found() {
    let text = profile(
        &["x", "y"],
        &[&[
            "100,105,File_delete,file=1",
            "200,205,File_open,handle=1,comm=0,file=0,mode=rdwr,number=-1,error=MPI_ERR_NO_SUCH_FILE",
            "300,305,File_open,handle=2,comm=0,file=0,mode=rdwr,number=0",
            "400,405,File_close,handle=2",
            "500,505,File_open,handle=3,comm=0,file=0,mode=rdwr,number=-1,error=MPI_ERR_NO_SUCH_FILE",
            "600,605,File_open,handle=4,comm=0,file=0,mode=create;excl;rdwr,number=3,error=MPI_ERR_FILE_EXISTS",
            "700,705,File_delete,file=0,error=MPI_ERR_NO_SUCH_FILE",
            "800,805,File_open,handle=5,comm=0,file=0,mode=create;excl;rdwr,number=-1",
            "900,905,File_close,handle=5",
            "1000,1005,File_delete,file=0",
            "1100,1105,File_delete,file=0",
        ]],
    );
    let (seen, files) = replay_profile(&text, 1, &["posix"], Pace::Fast);
    assert_repetition(&seen.passes[0], 11, [0; 3]);
    assert!(files.is_empty());
}

/// All ranks remove a file and create it again in each round, rank 0 by other means than MPI-IO; the others may still use the old file when
/// rank 0 comes to the next opening.
#[test]
fn a_file_is_removed_when_all_ranks_have_used_it() {
    const ROUNDS: u64 = 5;
    let calls = |rank: u64| {
        let round = |n: u64| {
            let at = 10_000 * n;
            let bytes = if rank == 1 { 3_000_000 } else { 10 };
            [
                format!("{at},{},File_open,handle={n},comm=0,file=0,mode=create;excl;rdwr,number=-1", at + 100),
                format!(
                    "{},{},File_write_at,handle={n},offset={},count={bytes},type=0,bytes={bytes}",
                    at + 200,
                    at + 300 + 900 * rank,
                    rank * 10
                ),
                format!("{},{},File_close,handle={n}", at + 1300, at + 1400),
            ]
        };
        (1..=ROUNDS).flat_map(round).collect::<Vec<_>>()
    };
    let [of_0, of_1] = [0, 1].map(calls);
    let [of_0, of_1] = [&of_0, &of_1].map(|calls| calls.iter().map(String::as_str).collect::<Vec<_>>());
    let (seen, files) = replay_profile(&profile(&["x"], &[&of_0, &of_1]), 2, &["posix"], Pace::Fast);
    assert_repetition(&seen.passes[0], ROUNDS * 6, [0; 3]);
    assert_eq!(files[0].len(), 3_000_010);
}

/// Each rank opens it alone, at nearly the same time: none of them removes or truncates the file of the other.
#[test]
fn a_file_that_two_ranks_create_at_the_same_time_is_not_removed() {
    let of = |rank: u64| {
        [
            format!("{rank},{},File_open,handle=1,comm={},file=0,mode=create;rdwr,number=-1", 200 + rank, rank + 1),
            format!(
                "{},{},File_write_at,handle=1,offset={},count=10,type=0,bytes=10",
                300 + rank,
                400 + rank,
                10 * rank
            ),
            format!("{},{},File_close,handle=1", 20_000_000 + rank, 20_000_100 + rank),
        ]
    };
    let [of_0, of_1] = [0, 1].map(of);
    let [of_0, of_1] = [&of_0, &of_1].map(|calls| calls.iter().map(String::as_str).collect::<Vec<_>>());
    let (seen, files) = replay_profile(&profile(&["x"], &[&of_0, &of_1]), 2, &["posix"], Pace::Fast);
    assert_repetition(&seen.passes[0], 6, [0; 3]);
    assert!(files[0].len() == 20 && files[0].chunks(10).all(|part| part.iter().any(|byte| *byte != 0)), "{files:?}");
}

/// The recorded library did not synchronize the ranks in File_sync: rank 1 came to it after a later call of rank 0. A library or backend that
/// synchronizes them would deadlock.
#[test]
fn a_wait_that_would_deadlock_with_a_collective_call_is_given_up() {
    let open = "0,5,File_open,handle=1,comm=0,file=0,mode=create;rdwr,number=-1";
    let close = "900,905,File_close,handle=1";
    let write = "60,65,File_write_at,handle=1,offset=0,count=10,type=0,bytes=10";
    let of_0 = [open, "40,50,File_sync,handle=1", write, close];
    let read = "220,230,File_read_at,handle=1,offset=0,count=10,type=0,bytes=10,from=10@0:60+0";
    let of_1 = [open, "200,210,File_sync,handle=1,after=0@60", read, close];
    let (seen, _) = replay_profile(&profile(&["x"], &[&of_0, &of_1]), 2, &["posix"], Pace::Fast);
    let pass = &seen.passes[0];
    // The read may come before the write: its bytes are not compared.
    assert_eq!([pass.calls, pass.waits, pass.bytes_checked, pass.bytes_wrong], [8, 0, 0, 0]);
}
