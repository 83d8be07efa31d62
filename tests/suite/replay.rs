//! `beff-raw replay`: order, contents, errors and short reads that were recorded, backends, paces, ranks, passes.

use std::fmt::Write;
use std::fs;

use serde_json::Value;

use crate::support::{document, items, journal, list, number, Launch, Run, Scratch};

/// What stands before the calls: two ranks, a file that was not there and one of 100000 bytes.
pub const HEAD: &str = "beff-raw profile,1
ranks,2
library,MPICH Version: 4.0.2
command,./app,input file
process,0,node1,1
process,1,node1,2
comm,0,world
comm,1,0
comm,2,1
type,0,BYTE
type,1,vector,count=10,block=100,stride=200,of=0
file,0,/work/out.dat
file,1,/work/in.dat,100000
";

/// Every rank its calls.
pub fn calls(ranks: &[&str]) -> String {
    let mut text = String::new();
    for (rank, calls) in ranks.iter().enumerate() {
        writeln!(text, "calls,{rank},{}\n{}", calls.trim().lines().count(), calls.trim()).unwrap();
    }
    text
}

/// Rank 1 reads what rank 0 wrote, through a view; both read the old file together, one beyond its end.
pub fn program() -> String {
    let of_0 = "
100,200,File_open,handle=1,file=0,comm=0,mode=rdwr;create
300,400,File_write_at,handle=1,offset=500,count=3000,type=0,bytes=3000
410,500,File_iwrite_at,handle=1,offset=10000,count=2000,type=0,request=1
510,600,Wait,requests=1,done=1:2000
900,1000,File_close,handle=1
1010,1020,File_open,handle=2,file=1,comm=0,mode=rdonly
1030,1040,File_read_at_all,handle=2,offset=0,count=50000,type=0,bytes=50000,from=50000@file
1050,1060,File_close,handle=2";
    let of_1 = "
101,210,File_open,handle=1,file=0,comm=0,mode=rdwr;create
700,710,File_read_at,handle=1,offset=0,count=2,type=1,bytes=2000,after=0@300,from=500@hole;1500@0:300+0
720,730,File_read_at,handle=1,offset=11000,count=5000,type=0,bytes=1000,after=0@410,from=1000@0:410+1000
740,745,File_get_size,handle=1,number=12000
900,1000,File_close,handle=1
1011,1021,File_open,handle=2,file=1,comm=0,mode=rdonly
1031,1041,File_read_at_all,handle=2,offset=90000,count=50000,type=0,bytes=10000,from=10000@file
1050,1060,File_close,handle=2";
    format!("{HEAD}{}", calls(&[of_0, of_1]))
}

/// `replay` of a profile with this text.
pub fn launch(ranks: u64, scratch: &Scratch, profile: &str, words: &str) -> Launch {
    let path = scratch.join("app.csv");
    fs::write(&path, profile).unwrap();
    Launch::new(ranks).arg("replay").arg(path).args(words.split_whitespace()).into(scratch)
}

/// A replay that ends well.
#[track_caller]
pub fn replay(ranks: u64, profile: &str, words: &str) -> (Scratch, Run, Value) {
    let scratch = Scratch::new();
    let run = launch(ranks, &scratch, profile, words).run();
    run.expect(0);
    let result = document(&scratch);
    assert_eq!(result["ending"]["outcome"], "complete", "{run}");
    assert_eq!((items(&result["errors"]).len(), items(&result["corruptions"]).len()), (0, 0), "{run}");
    (scratch, run, result)
}

#[track_caller]
fn check_repetitions(result: &Value, run: &Run, calls: u64, checked: u64) {
    for repetition in items(&result["repetitions"]) {
        let what = format!("{repetition}; {run}");
        assert_eq!(repetition["ended"]["by"], "complete", "{what}");
        assert_eq!((number(&repetition["calls"]), number(&repetition["calls_as_recorded"])), (calls, calls), "{what}");
        let verifies = repetition["repetition"] == 0;
        assert_eq!(number(&repetition["bytes_checked"]), if verifies { checked } else { 0 }, "{what}");
        assert_eq!((number(&repetition["bytes_wrong"]), number(&repetition["allocations_in_clock"])), (0, 0), "{what}");
    }
}

#[test]
fn every_backend_replays_in_order_with_the_right_data() {
    let (scratch, run, result) = replay(2, &program(), "--backend mpiio,posix,uring,null --repeat 2 --full");
    assert_eq!(items(&result["repetitions"]).len(), 3 + 8, "{run}");
    check_repetitions(&result, &run, 16, 2000 + 1000 + 50_000 + 10_000);
    assert_eq!(result["derived"]["verdict"]["verdict"], "as_recorded", "{run}");
    assert_eq!(number(&result["setup"]["profile"]["orderings"]), 2);
    assert_eq!(journal(&scratch, "repetition").len(), 11);
    assert_eq!(scratch.list("disk"), [] as [&str; 0], "files are left");
    let last = run.stdout.lines().last().unwrap();
    assert!(last.starts_with("replay = complete, as recorded: 11 of 11 repetitions complete"), "{run}");
    for part in ["How fast", "Can it be trusted", "By file", "read, collective", "100 % of what was read"] {
        assert!(run.stdout.contains(part), "no '{part}'; {run}");
    }
}

#[test]
fn more_ranks_idle_and_kept_files_have_our_names() {
    let (scratch, run, result) = replay(3, &program(), "--keep-files --run-dir kept");
    check_repetitions(&result, &run, 16, 63_000);
    assert_eq!(list(&scratch.join("disk/kept/mpiio")), ["file-0001", "file-0002"]);
    assert_eq!(fs::metadata(scratch.join("disk/kept/mpiio/file-0001")).unwrap().len(), 12_000);
}

#[test]
fn a_file_that_grew_without_mpi_is_as_long_when_it_is_opened_again() {
    let of_0 = "
100,200,File_open,handle=1,file=0,comm=0,mode=rdwr;create,number=-1
300,400,File_write_at,handle=1,offset=0,count=1000,type=0,bytes=1000
410,420,File_close,handle=1
500,510,File_open,handle=2,file=0,comm=0,mode=rdwr,number=5000
600,610,File_read_at,handle=2,offset=0,count=6000,type=0,bytes=5000,from=1000@0:300+0;4000@file
620,630,File_close,handle=2";
    let of_1 = "
101,200,File_open,handle=1,file=0,comm=0,mode=rdwr;create,number=-1
411,420,File_close,handle=1
501,510,File_open,handle=2,file=0,comm=0,mode=rdwr,number=5000
601,610,File_read_at,handle=2,offset=4000,count=1000,type=0,bytes=1000,from=1000@file
621,630,File_close,handle=2";
    let profile = format!("{HEAD}{}", calls(&[of_0, of_1]));
    let (_, run, result) = replay(2, &profile, "--backend mpiio,posix,uring,null --repeat 2");
    check_repetitions(&result, &run, 11, 6000);
}

/// Before the program had made it, it was not there to be opened.
#[test]
fn a_file_that_the_program_made_is_there_from_its_opening_on() {
    let of_0 = "
100,200,File_open,handle=1,file=1,comm=0,error=MPI_ERR_NO_SUCH_FILE,mode=rdonly
500,510,File_open,handle=2,file=1,comm=0,mode=rdonly,number=100000
600,610,File_read_at,handle=2,offset=0,count=200000,type=0,bytes=100000,from=100000@file
620,630,File_close,handle=2";
    let of_1 = "
101,200,File_open,handle=1,file=1,comm=0,error=MPI_ERR_NO_SUCH_FILE,mode=rdonly
501,510,File_open,handle=2,file=1,comm=0,mode=rdonly,number=100000
621,630,File_close,handle=2";
    let there = format!("{HEAD}{}", calls(&[of_0, of_1]));
    let created = there.replace("in.dat,100000", "in.dat,100000,made=300");
    for (profile, as_recorded) in [(&created, 7), (&there, 5)] {
        let scratch = Scratch::new();
        let run = launch(2, &scratch, profile, "--backend mpiio --cache keep").run();
        run.expect(0);
        let repetition = document(&scratch)["repetitions"][0].clone();
        assert_eq!(number(&repetition["calls_as_recorded"]), as_recorded, "{repetition}; {run}");
        assert_eq!(
            (number(&repetition["bytes_checked"]), number(&repetition["bytes_wrong"])),
            (100_000, 0),
            "{repetition}; {run}"
        );
    }
}

#[test]
fn what_a_write_would_have_left_that_is_not_made_is_unknown() {
    let of_0 = "
100,200,File_open,handle=1,file=0,comm=0,mode=rdwr;create
300,400,File_write_shared,handle=1,count=3000,type=0,bytes=3000,after=1@210
900,1000,File_close,handle=1";
    let of_1 = "
101,200,File_open,handle=1,file=0,comm=0,mode=rdwr;create
210,220,File_write_at,handle=1,offset=0,count=4000,type=0,bytes=4000
700,710,File_read_at,handle=1,offset=0,count=4000,type=0,bytes=4000,after=0@300,from=3000@0:300+0;1000@1:210+3000
900,1000,File_close,handle=1";
    let profile = format!("{HEAD}{}", calls(&[of_0, of_1]));
    let (_, run, result) = replay(2, &profile, "--backend mpiio,posix");
    let found = |backend: &str, what: &str| {
        let repetitions = items(&result["repetitions"]);
        number(&repetitions.iter().find(|repetition| repetition["backend"] == backend).unwrap()[what])
    };
    assert_eq!((found("mpiio", "bytes_checked"), found("mpiio", "bytes_unknown")), (4000, 0), "{run}");
    assert_eq!((found("posix", "bytes_checked"), found("posix", "bytes_unknown")), (1000, 3000), "{run}");

    // Rank 1 has fewer collective calls, so rank 0 goes no further than those: its write behind them is not made.
    let of_0 = "
100,200,File_open,handle=1,file=0,comm=0,mode=rdwr;create
230,240,File_sync,handle=1
250,260,File_sync,handle=1
270,280,File_sync,handle=1
300,400,File_write_at,handle=1,offset=0,count=3000,type=0,bytes=3000,after=1@210
900,1000,File_close,handle=1";
    let of_1 =
        of_1.replace("700,710", "231,241,File_sync,handle=1\n700,710").replace("\n900,1000,File_close,handle=1", "");
    let cut = format!("{HEAD}{}", calls(&[of_0, &of_1]));
    let (_, run, result) = replay(2, &cut, "--backend posix");
    let repetition = &items(&result["repetitions"])[0];
    assert_eq!((number(&repetition["bytes_wrong"]), number(&repetition["bytes_unknown"])), (0, 3000), "{run}");
}

#[test]
fn an_order_that_is_missing_is_found_as_wrong_data_or_not_at_all() {
    // The write comes 300 ms later than the read asks for it: only the order makes the read wait.
    let slow = program().replace("300,400,File_write_at", "300000300,300000400,File_write_at");
    let slow = slow.replace("410,500,File_iwrite_at", "300000410,300000500,File_iwrite_at");
    let slow = slow.replace("510,600,Wait", "300000510,300000600,Wait").replace("0@300", "0@300000300");
    let slow = slow.replace("0@410", "0@300000410").replace("0:300+", "0:300000300+").replace("0:410+", "0:300000410+");
    let slow = slow.replacen("900,1000,File_close,handle=1", "300000900,300001000,File_close,handle=1", 1);
    let slow = slow.replacen("1010,1020,", "300001010,300001020,", 1).replacen("1030,1040,", "300001030,300001040,", 1);
    let slow = slow.replacen("1050,1060,", "300001050,300001060,", 1);
    let (_scratch, run, result) = replay(2, &slow, "--pace think");
    check_repetitions(&result, &run, 16, 63_000);
    let repetition = &items(&result["repetitions"])[1];
    assert!(number(&repetition["waits"]) >= 1 && repetition["wait_seconds"].as_f64().unwrap() > 0.2, "{repetition}");
    assert!(repetition["late_seconds"].is_number());
}

#[test]
fn a_hundred_fast_replays_without_a_short_or_wrong_read() {
    let mut ranks = [String::new(), String::new()];
    for (rank, text) in ranks.iter_mut().enumerate() {
        writeln!(text, "{},{},File_open,handle=1,file=0,comm=0,mode=rdwr;create", rank + 1, rank + 90).unwrap();
    }
    for n in 0..20 {
        let (writer, begin, offset) = (n % 2, 1000 + 1000 * n, 4096 * n);
        writeln!(
            ranks[writer],
            "{begin},{},File_write_at,handle=1,offset={offset},count=4096,type=0,bytes=4096",
            begin + 100
        )
        .unwrap();
        writeln!(
            ranks[1 - writer],
            "{},{},File_read_at,handle=1,offset={offset},count=4096,type=0,bytes=4096,after={writer}@{begin},\
             from=4096@{writer}:{begin}+0",
            begin + 500,
            begin + 600
        )
        .unwrap();
    }
    ranks.iter_mut().for_each(|text| text.push_str("90000,90010,File_close,handle=1\n"));
    let profile = format!("{HEAD}{}", calls(&[&ranks[0], &ranks[1]]));
    let (_scratch, run, result) = replay(2, &profile, "--repeat 100");
    assert_eq!(items(&result["repetitions"]).len(), 101);
    check_repetitions(&result, &run, 44, 20 * 4096);
    for _ in 0..10 {
        let (_scratch, run, result) = replay(2, &profile, "--repeat 0");
        check_repetitions(&result, &run, 44, 20 * 4096);
    }
}

#[test]
fn errors_that_were_recorded_are_expected() {
    let failing = "
100,200,File_open,handle=1,file=0,comm=1,error=MPI_ERR_NO_SUCH_FILE,mode=rdonly
300,400,File_open,handle=2,file=1,comm=1,mode=rdonly
500,600,File_write_at,handle=2,offset=0,count=10,type=0,error=MPI_ERR_READ_ONLY
610,620,File_read_at,handle=2,offset=0,count=10,type=0,bytes=10,from=10@file
700,800,File_close,handle=2";
    let profile = format!("{HEAD}{}", calls(&[failing, "100,101,Pcontrol,number=1"]));
    let scratch = Scratch::new();
    let run = launch(2, &scratch, &profile, "").run();
    run.expect(0);
    let result = document(&scratch);
    let repetition = &items(&result["repetitions"])[0];
    assert_eq!(number(&repetition["calls"]), 5, "marks are no calls of files");
    // Libraries have their own classes for a write that is not allowed.
    assert!(number(&repetition["calls_as_recorded"]) >= 4, "{repetition}; {run}");
    let unexpected = profile.replace(",error=MPI_ERR_READ_ONLY", ",bytes=10");
    let scratch = Scratch::new();
    let run = launch(2, &scratch, &unexpected, "").run();
    run.expect(1);
    assert!(run.stdout.contains("replay = NOT complete") && run.stdout.contains("no speed to compare"), "{run}");
    let result = document(&scratch);
    let differences = items(&items(&result["repetitions"])[0]["differences"]);
    assert_eq!((differences.len(), &differences[0]["kind"]), (1, &Value::from("failure")), "{run}");
    assert_eq!(differences[0]["recorded"], "no error");
    let message = items(&result["errors"])[0]["message"].as_str().unwrap();
    assert!(message.contains("MPI_File_write_at") && message.contains("recorded at 500 ns"), "{message}");
}

#[test]
fn a_flipped_bit_is_found_and_named() {
    let scratch = Scratch::new();
    let run = launch(2, &scratch, &program(), "--inject").run();
    run.expect(3);
    let result = document(&scratch);
    let found = items(&result["corruptions"]);
    assert_eq!(found.len(), 1, "{run}");
    let c = &found[0];
    assert_eq!(c["diagnosis"], "one bit flipped", "{c}");
    assert_eq!((number(&c["actual"]) ^ number(&c["expected"]), number(&c["bytes_wrong"])), (0x10, 1), "{c}");
    assert_eq!((number(&c["rank"]), number(&c["file"]), number(&c["offset_bytes"])), (0, 2, 0), "{c}");
    assert!(run.stdout.contains("replay = WRONG DATA"), "{run}");
}

#[test]
fn wrong_origins_are_wrong_data() {
    let profile = program().replace("from=1000@0:410+1000", "from=1000@0:410+1001");
    let scratch = Scratch::new();
    launch(2, &scratch, &profile, "").run().expect(3);
    let scratch = Scratch::new();
    launch(2, &scratch, &profile, "--verify=off").run().expect(0);
}

#[test]
fn every_call_has_a_line() {
    let (scratch, _run, _) = replay(2, &program(), "--detail request --verify=off");
    for rank in 0..2 {
        let text = fs::read_to_string(scratch.join(&format!("out.{rank}.calls.csv"))).unwrap();
        assert_eq!(text.lines().count(), 9, "{text}");
        assert!(text.lines().skip(1).all(|line| line.ends_with(",true")), "{text}");
    }
}
