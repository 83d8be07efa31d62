//! Ranks that had met before a collective call, as behind a barrier, meet in the replay with think times.

use std::fs;

use crate::replay::{calls, launch, replay, HEAD};
use crate::support::{document, items, number, slow_storage, Scratch};

const CLOSE: &str = "205000000,206000000,File_close,handle=1";

/// Rank 0 thinks for 0.2 s; the others write that long, which here takes no time. Then all call together.
fn late(met: bool, last: &str) -> String {
    let met = |ns: u64| if met { format!(",met={ns}") } else { String::new() };
    let rank = |rank: u64| {
        let write_end = if rank == 0 { 2_000_000 } else { 200_900_000 };
        format!(
            "{},1000,File_open,handle=1,file=0,comm=0,mode=rdwr;create\n\
             1100,{write_end},File_write_at,handle=1,offset={},count=100,type=0,bytes=100\n\
             {},202000000,File_set_view,handle=1,offset=0,etype=0,filetype=0{}\n\
             {last}",
            100 + rank,
            rank * 100,
            200_900_100 + rank,
            met(100 + rank),
        )
    };
    let head =
        HEAD.replace("ranks,2", "ranks,3").replace("process,1,node1,2\n", "process,1,node1,2\nprocess,2,node1,3\n");
    format!("{head}{}", calls(&[&rank(0), &rank(1), &rank(2)]))
}

/// Seconds that ranks 1 and 2 were in the collective call behind the long think time of rank 0.
fn waited(profile: &str, words: &str) -> Vec<f64> {
    let (scratch, run, _) = replay(3, profile, &format!("--detail request {words}"));
    let seconds = |rank: u64| {
        let text = fs::read_to_string(scratch.join(&format!("out.{rank}.calls.csv"))).unwrap();
        let mut lines = text.lines().map(|line| line.split(',').map(str::to_owned).collect::<Vec<_>>());
        let head = lines.next().unwrap();
        let column =
            |name: &str| head.iter().position(|word| word == name).unwrap_or_else(|| panic!("{name}: {head:?}"));
        let line =
            lines.find(|line| line[column("function")] == "File_set_view").unwrap_or_else(|| panic!("{run}\n{text}"));
        line[column("replayed_ns")].parse::<f64>().unwrap()
    };
    (1..3).map(|rank| seconds(rank) / 1e9).collect()
}

#[test]
fn ranks_that_had_met_do_not_wait_inside_the_call() {
    for backend in ["mpiio", "posix"] {
        let words = format!("--pace think --verify=off --backend {backend}");
        let met = waited(&late(true, CLOSE), &words);
        assert!(met.iter().all(|seconds| *seconds < 0.1), "{backend}: {met:?}");
    }
    let apart = waited(&late(false, CLOSE), "--pace think --verify=off");
    assert!(apart.iter().all(|seconds| *seconds > 0.1), "without `met` they wait for rank 0 in the call: {apart:?}");
    waited(&late(true, CLOSE), "--pace fast --verify=off --backend null");
}

/// Rank 0 came out of a collective call and wrote before rank 1 began the same call, which reads that: both meet before it, and rank 1
/// waits behind the meeting. Each would wait for the other if it waited before.
#[test]
fn what_lies_behind_the_meeting_is_waited_for_behind_it() {
    let one = "100,1000,File_open,handle=1,file=0,comm=0,mode=rdwr;create\n\
               1100,1200,File_write_at_all,handle=1,offset=0,count=100,type=0,bytes=100,met=50\n\
               1300,1400,File_write_at,handle=1,offset=100,count=100,type=0,bytes=100\n\
               5000,6000,File_close,handle=1";
    let two = "101,1000,File_open,handle=1,file=0,comm=0,mode=rdwr;create\n\
               1500,1600,File_read_at_all,handle=1,offset=100,count=100,type=0,bytes=100,met=450,after=0@1300\n\
               5001,6000,File_close,handle=1";
    let scratch = Scratch::new();
    let profile = format!("{HEAD}{}", calls(&[one, two]));
    let run = launch(2, &scratch, &profile, "--pace think --backend posix").run();
    run.expect(0);
    let result = document(&scratch);
    let repetition = &items(&result["repetitions"])[0];
    assert_eq!((number(&repetition["calls"]), number(&repetition["calls_as_recorded"])), (7, 7), "{run}");
}

#[test]
fn a_meeting_before_a_call_that_is_left_out_holds_nobody_up() {
    // Only the shared pointer knows where this goes: posix leaves it out, in the midst and at the end.
    let ordered = "203000000,204000000,File_write_ordered,handle=1,count=10,type=0,bytes=10,met=100";
    for last in [format!("{ordered}\n{CLOSE}"), ordered.to_owned()] {
        let scratch = Scratch::new();
        let run = launch(3, &scratch, &late(true, &last), "--pace think --backend posix").run();
        run.expect(0);
        let result = document(&scratch);
        assert_eq!(items(&result["setup"]["omissions"])[0]["omitted"][0]["calls"], 3, "{run}");
        assert_eq!(number(&items(&result["repetitions"])[0]["bytes_wrong"]), 0, "{run}");
    }
}

/// Rank 0 waits for a call of rank 1 that takes longer than ranks are waited for: whoever reads this knows what holds rank 1.
#[test]
fn a_rank_that_is_waited_for_in_vain_says_where_it_stands() {
    let one = "100,1000,File_open,handle=1,file=0,comm=0,mode=rdwr;create\n\
               4000,4100,File_read_at,handle=1,offset=0,count=100,type=0,bytes=100,after=1@3000\n\
               5000,6000,File_close,handle=1";
    let two = "101,1000,File_open,handle=1,file=0,comm=0,mode=rdwr;create\n\
               1001,1010,File_open,handle=2,file=0,comm=2,mode=rdwr\n\
               1100,1200,File_write_at,handle=2,offset=0,count=1048576,type=0,bytes=1048576\n\
               3000,3100,File_sync,handle=2\n\
               3200,3210,File_close,handle=2\n\
               5001,6000,File_close,handle=1";
    let scratch = Scratch::new();
    let profile = format!("{HEAD}{}", calls(&[one, two]));
    let launch = launch(2, &scratch, &profile, "--pace think --verify=off --backend posix")
        .env("BEFF_RAW_STRANDED_SECONDS", "2");
    let run = slow_storage(launch, "sync 8000").run();
    run.expect(1);
    let text = run.to_string();
    assert!(
        text.contains("rank 1: in MPI_File_sync, recorded at 3000 ns, for over 1 s so far. Other ranks may wait"),
        "{text}"
    );
    let waited = "rank 0: the call at 4000 ns waited 2 s for the call of rank 1 at 3000 ns, which has not ended. What rank 1 reports above";
    assert!(text.contains(waited), "{text}");
}
