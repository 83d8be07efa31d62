//! Correct data is never called wrong: files are made ready beside data that is under way, and gaps of strided writes hold what the library left there.

use serde_json::Value;

use crate::replay::{calls, launch};
use crate::support::{document, items, number, Run, Scratch};

/// Long enough for a write to be under way while another rank goes on.
const LARGE: u64 = 33_554_432;

fn head(ranks: u64, comms: &[&str], files: &[&str]) -> String {
    let mut text = format!("beff-raw profile,1\nranks,{ranks}\ntype,0,BYTE\n");
    comms.iter().enumerate().for_each(|(n, comm)| text += &format!("comm,{n},{comm}\n"));
    files.iter().enumerate().for_each(|(n, file)| text += &format!("file,{n},{file}\n"));
    text
}

/// A replay without wrong data, and its passes.
#[track_caller]
fn right(ranks: u64, profile: &str, words: &str) -> (Vec<Value>, Run) {
    let scratch = Scratch::new();
    let run = launch(ranks, &scratch, profile, &format!("{words} --repeat 0")).run();
    run.expect(0);
    let repetitions = items(&document(&scratch)["repetitions"]).to_vec();
    for repetition in &repetitions {
        assert_eq!(
            (number(&repetition["bytes_wrong"]), &repetition["ended"]["by"]),
            (0, &Value::from("complete")),
            "{repetition}; {run}"
        );
        assert_eq!(repetition["calls"], repetition["calls_as_recorded"], "{repetition}; {run}");
    }
    (repetitions, run)
}

/// Rank 1 writes; both open the file again, together or rank 0 by itself, when the write had ended. `opens`: the communicator.
fn opened_again(opens: u64) -> String {
    let of_0 = format!(
        "0,10,File_open,handle=1,comm=0,file=0,mode=create;rdwr,number=-1\n\
         1000,1010,File_close,handle=1\n\
         1100,1110,File_open,handle=2,comm={opens},file=0,mode=create;rdwr,number={LARGE}\n\
         3000,3010,File_close,handle=2"
    );
    let of_1 = format!(
        "0,10,File_open,handle=1,comm=0,file=0,mode=create;rdwr,number=-1\n\
         20,900,File_write_at,handle=1,offset=0,count={LARGE},type=0,bytes={LARGE}\n\
         1000,1010,File_close,handle=1\n\
         1101,1111,File_open,handle=2,comm={},file=0,mode=create;rdwr,number={LARGE}\n\
         1200,1210,File_read_at,handle=2,offset=0,count={LARGE},type=0,bytes={LARGE},from={LARGE}@1:20+0\n\
         3000,3010,File_close,handle=2",
        if opens == 0 { 0 } else { 2 }
    );
    head(2, &["world", "0", "1"], &["x.dat"]) + &calls(&[&of_0, &of_1])
}

#[test]
fn an_opening_waits_for_writes_that_had_ended() {
    for opens in [0, 1] {
        let (repetitions, run) = right(2, &opened_again(opens), "--backend posix,uring,mpiio");
        for repetition in repetitions {
            assert_eq!(number(&repetition["bytes_checked"]), LARGE, "communicator {opens}: {repetition}; {run}");
        }
    }
}

/// A write is under way at the opening, nonblocking or of another rank: what it has left so far is in the recorded length.
#[test]
fn a_file_is_not_filled_where_a_write_is_under_way() {
    let half = LARGE / 2;
    let of_0 = format!(
        "0,10,File_open,handle=1,comm=0,file=0,mode=create;rdwr,number=-1\n\
         100,110,File_open,handle=2,comm=1,file=0,mode=rdwr,number={half}\n\
         120,130,File_close,handle=2\n\
         2000,2100,File_read_at,handle=1,offset=0,count={LARGE},type=0,bytes={LARGE},after=1@20,from={LARGE}@1:20+0\n\
         3000,3010,File_close,handle=1"
    );
    let blocking = format!("20,900,File_write_at,handle=1,offset=0,count={LARGE},type=0,bytes={LARGE}");
    let pending = format!(
        "20,30,File_iwrite_at,handle=1,offset=0,count={LARGE},type=0,request=1\n\
         800,900,Wait,requests=1,done=1:{LARGE}"
    );
    for write in [blocking, pending] {
        let of_1 = format!(
            "0,10,File_open,handle=1,comm=0,file=0,mode=create;rdwr,number=-1\n{write}\n3000,3010,File_close,handle=1"
        );
        let profile = head(2, &["world", "0"], &["x.dat"]) + &calls(&[&of_0, &of_1]);
        right(2, &profile, "--backend posix,uring,mpiio");
    }
}

/// The program made the file longer by itself. Each rank opens it alone, at nearly the same time, and writes: no rank fills it over another's data.
#[test]
fn one_rank_fills_a_file_and_the_others_wait_for_that() {
    let of_rank = |rank: u64| {
        let comm = 1 + rank;
        // The end is what a rank fills last.
        let (offset, other) = (LARGE - 4096 * (rank + 1), 0);
        format!(
            "{0},{1},File_open,handle=1,comm={comm},file=0,mode=rdwr,number={LARGE}\n\
             {2},{3},File_write_at,handle=1,offset={offset},count=4096,type=0,bytes=4096\n\
             {4},{5},File_read_at,handle=1,offset={offset},count=4096,type=0,bytes=4096,from=4096@{rank}:{2}+0\n\
             {6},{7},File_read_at,handle=1,offset={other},count=4096,type=0,bytes=4096,from=4096@file\n\
             9000,9010,File_close,handle=1",
            100 + rank,
            200 + rank,
            300 + rank,
            400 + rank,
            500 + rank,
            600 + rank,
            700 + rank,
            800 + rank,
        )
    };
    let file = format!("x.dat,{LARGE},made=50");
    let profile = head(3, &["world", "0", "1", "2"], &[&file]) + &calls(&[&of_rank(0), &of_rank(1), &of_rank(2)]);
    let (repetitions, run) = right(3, &profile, "--backend posix,uring,mpiio");
    for repetition in repetitions {
        assert_eq!(number(&repetition["bytes_checked"]), 3 * 8192, "{repetition}; {run}");
    }
}

/// A file that was removed by other means is removed when those who had used it are through with it, and before it is used again.
#[test]
fn a_file_is_not_removed_under_those_who_still_open_it() {
    let of_0 = "0,10,File_open,handle=1,comm=0,file=0,mode=create;rdwr,number=-1\n\
                300,310,File_close,handle=1\n\
                1000,1010,File_open,handle=2,comm=1,file=1,mode=create;rdwr,number=-1\n\
                1100,1110,File_close,handle=2";
    let of_1 = format!(
        "0,10,File_open,handle=1,comm=0,file=0,mode=create;rdwr,number=-1\n\
         20,250,File_write_at,handle=1,offset=0,count={LARGE},type=0,bytes={LARGE}\n\
         300,310,File_close,handle=1\n\
         400,410,File_open,handle=2,comm=2,file=0,mode=rdonly,number={LARGE}\n\
         420,430,File_read_at,handle=2,offset=0,count={LARGE},type=0,bytes={LARGE},from={LARGE}@1:20+0\n\
         440,450,File_close,handle=2"
    );
    let profile = head(2, &["world", "0", "1"], &["x.dat,-,gone=900", "y.dat"]) + &calls(&[of_0, &of_1]);
    let (repetitions, run) = right(2, &profile, "--backend posix,uring,mpiio");
    for repetition in repetitions {
        assert_eq!(number(&repetition["bytes_checked"]), LARGE, "{repetition}; {run}");
    }
}

/// Numbers with gaps between them, written by one call; then all is read, with gaps and beyond.
fn strided() -> String {
    let calls_of_0 = "0,10,File_open,handle=1,comm=0,file=0,mode=create;rdwr\n\
         20,30,File_set_view,handle=1,offset=1000,etype=1,filetype=2\n\
         40,50,File_write,handle=1,count=64,type=1,bytes=256\n\
         60,70,File_set_view,handle=1,offset=0,etype=0,filetype=0\n\
         80,90,File_read_at,handle=1,offset=900,count=112,type=0,bytes=112,from=100@hole;4@0:40+0;4@hole;4@0:40+4\n\
         100,110,File_close,handle=1";
    let types = "type,1,INT\ntype,2,vector,count=64,block=1,stride=2,of=1\n";
    format!("{}{types}{}", head(1, &["world"], &["out.dat,-"]), calls(&[calls_of_0]))
}

/// (checked, unknown) of the pass of a backend.
fn bytes(repetitions: &[Value], backend: &str) -> (u64, u64) {
    let repetition = repetitions.iter().find(|repetition| repetition["backend"] == backend).unwrap();
    (number(&repetition["bytes_checked"]), number(&repetition["bytes_unknown"]))
}

#[test]
fn what_a_library_leaves_in_gaps_is_unknown() {
    let (repetitions, run) = right(1, &strided(), "--backend mpiio,posix,uring");
    assert_eq!(bytes(&repetitions, "mpiio"), (108, 4), "{run}");
    assert_eq!(bytes(&repetitions, "posix"), (112, 0), "{run}");
    assert_eq!(bytes(&repetitions, "uring"), (112, 0), "{run}");
    // The bytes that the program wrote are compared as before.
    let scratch = Scratch::new();
    launch(1, &scratch, &strided().replace("4@0:40+4\n", "4@0:40+8\n"), "--backend mpiio").run().expect(3);
}

/// All write together, each contiguous bytes: the gaps between the ranks belong to nobody either.
#[test]
fn gaps_between_ranks_that_write_together_are_unknown() {
    for ranks in 2..=4_u64 {
        let of_rank = |rank: u64| {
            let pieces: Vec<String> = (0..ranks).map(|n| format!("100@{n}:{}+0;28@hole", 20 + n)).collect();
            // Nothing was written behind the last piece and before the one far away.
            let from = format!("{};372@hole", pieces.join(";"));
            let count = ranks * 128 + 372;
            let others = (0..ranks).filter(|n| *n != rank).map(|n| format!("{n}@{}", 20 + n));
            let after = others.collect::<Vec<_>>().join(";");
            format!(
                "{rank},10,File_open,handle=1,comm=0,file=0,mode=create;rdwr\n\
                 {},100,File_write_at_all,handle=1,offset={},count=100,type=0,bytes=100\n\
                 {},200,File_write_at,handle=1,offset={},count=10,type=0,bytes=10\n\
                 {},300,File_sync,handle=1\n\
                 {},400,File_read_at_all,handle=1,offset=0,count={count},type=0,bytes={count},after={after},from={from}\n\
                 {},500,File_close,handle=1",
                20 + rank,
                rank * 128,
                120 + rank,
                100_000 + 100 * rank,
                220 + rank,
                320 + rank,
                420 + rank,
            )
        };
        let all: Vec<String> = (0..ranks).map(of_rank).collect();
        let all: Vec<&str> = all.iter().map(String::as_str).collect();
        let profile = head(ranks, &["world"], &["out.dat,-"]) + &calls(&all);
        let (repetitions, run) = right(ranks, &profile, "--backend mpiio,posix");
        let (gaps, all) = (28 * (ranks - 1), ranks * 128 + 372);
        assert_eq!(bytes(&repetitions, "mpiio"), (ranks * (all - gaps), ranks * gaps), "{run}");
        assert_eq!(bytes(&repetitions, "posix"), (ranks * all, 0), "{run}");
    }
}
