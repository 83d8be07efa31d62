//! `beff-raw replay`: workloads written by hand, absolute addresses, positions at the end of the file, contents that MPI does not define,
//! and crashes of the library.

use serde_json::Value;

use crate::replay::{calls, launch, replay};
use crate::support::{items, launcher, number, Launch, Run, Scratch};

/// Two ranks write and read their parts through views, without any result; types as in a checkpoint.
fn workload() -> String {
    let head = "beff-raw profile,1
ranks,2
comm,0,world
comm,1,0
comm,2,1
type,0,DOUBLE
type,1,subarray,sizes=64;64,subsizes=32;64,starts=0;0,order=c,of=0
type,2,subarray,sizes=64;64,subsizes=32;64,starts=32;0,order=c,of=0
file,0,ckpt.dat
";
    let rank = |rank: u64| {
        let view = rank + 1;
        format!(
            "{rank},10,File_open,handle=1,comm=0,file=0,mode=create;rdwr
2{rank},30,File_set_view,handle=1,offset=0,etype=0,filetype={view},name=native
4{rank},50,File_write_all,handle=1,count=2048,type=0
6{rank},70,File_iwrite_at,handle=1,offset=2048,count=2048,type=0,request=1
8{rank},90,Wait,requests=1
10{rank},110,File_seek,handle=1,offset=0,whence=set
12{rank},130,File_read_all_begin,handle=1,count=4096,type=0
13{rank},138,File_read_all_end,handle=1
14{rank},150,File_close,handle=1"
        )
    };
    format!("{head}{}", calls(&[&rank(0), &rank(1)]))
}

#[track_caller]
fn check_all(result: &Value, run: &Run, calls: u64, checked: u64, unknown: u64) {
    for repetition in items(&result["repetitions"]) {
        let what = format!("{repetition}; {run}");
        assert_eq!((number(&repetition["calls"]), number(&repetition["calls_as_recorded"])), (calls, calls), "{what}");
        let bytes = ["bytes_checked", "bytes_unknown", "bytes_wrong"].map(|name| number(&repetition[name]));
        let expected = if repetition["repetition"] == 0 { [checked, unknown, 0] } else { [0; 3] };
        assert_eq!(bytes, expected, "{what}");
    }
    assert!(items(&result["setup"]["omissions"]).iter().all(|all| items(&all["omitted"]).is_empty()), "{run}");
}

#[test]
fn a_workload_written_by_hand_is_a_benchmark_of_its_own() {
    let (_, run, result) = replay(2, &workload(), "--backend mpiio,posix,uring");
    check_all(&result, &run, 18, 2 * 32768, 0);
    assert_eq!(number(&result["setup"]["profile"]["written_bytes"]), 65536, "{run}");
    assert_eq!(number(&result["setup"]["profile"]["read_bytes"]), 65536, "{run}");
    assert!(run.stdout.contains("a workload written by hand") && !run.stdout.contains("ratio"), "{run}");
    let line = run.stdout.lines().find(|line| line.trim_start().starts_with("write, collective")).unwrap();
    assert!(!line.contains(" - "), "a bandwidth for each backend: {run}");
    assert!(!run.stdout.contains("times as fast") && run.stdout.contains(": MB/s "), "{run}");
}

#[test]
fn absolute_addresses_are_relocated() {
    let (heap, stack) = (0x5555_5555_6010_i64, 0x7fff_ffff_e018_i64);
    let head = format!(
        "beff-raw profile,1
ranks,1
comm,0,world
type,0,DOUBLE
type,1,struct,blocks=3;1000,displacements_bytes={stack};{heap},of=0;0
type,2,hindexed_block,block=500,displacements_bytes={heap};{stack},of=0
file,0,out.dat
"
    );
    let of_0 = "
0,10,File_open,handle=1,comm=0,file=0,mode=create;rdwr
20,30,File_write_at,handle=1,offset=0,count=1,type=1,buffer=-93824992231424
40,50,File_iwrite_at,handle=1,offset=8024,count=1,type=2,request=1,buffer=-93824992231424
60,70,Wait,requests=1
80,90,File_read_at,handle=1,offset=0,count=1,type=1,buffer=-93824992231424
100,110,File_iread_at,handle=1,offset=8024,count=1,type=2,request=2,buffer=-93824992231424
120,130,Wait,requests=2
140,150,File_close,handle=1";
    let profile = format!("{head}{}", calls(&[of_0]));
    for verify in ["on", "off"] {
        let (_, run, result) = replay(1, &profile, &format!("--backend mpiio,posix,uring --verify={verify}"));
        if verify == "on" {
            // The arrays of 500 on the stack and on the heap are those of one datatype each.
            let wrong: u64 = items(&result["repetitions"]).iter().map(|r| number(&r["bytes_wrong"])).sum();
            assert_eq!(wrong, 0, "{run}");
            let mut verified = items(&result["repetitions"]).iter().filter(|r| r["repetition"] == 0);
            assert!(verified.all(|r| number(&r["bytes_checked"]) >= 12_000), "{run}");
        }
        assert!(number(&result["setup"]["data_bytes"]) < 256 << 20, "{run}");
    }
}

/// Gaps of strided writes, extensions by set_size and preallocate, unordered overlapping writes, and writes that failed when recorded.
#[test]
fn undefined_contents_are_never_wrong() {
    let head = "beff-raw profile,1
ranks,2
comm,0,world
comm,1,0
comm,2,1
type,0,BYTE
type,1,INT
type,2,vector,count=64,block=1,stride=2,of=1
file,0,out.dat
";
    let rank = |rank: u64| {
        format!(
            "{rank},10,File_open,handle=1,comm=0,file=0,mode=create;rdwr
2{rank},30,File_set_view,handle=1,offset={},etype=1,filetype=2
4{rank},50,File_write_all,handle=1,count=64,type=1
6{rank},70,File_set_view,handle=1,offset=0,etype=0,filetype=0
8{rank},90,File_iwrite_at,handle=1,offset=2000,count=500,type=0,request=1
10{rank},110,Wait,requests=1
12{rank},130,File_set_size,handle=1,offset=5000
14{rank},150,File_preallocate,handle=1,offset=6000
16{rank},170,File_write_at,handle=1,offset={},count=100,type=0,error=MPI_ERR_NO_SPACE
18{rank},190,File_sync,handle=1
20{rank},210,File_write_at,handle=1,offset={},count=100,type=0
22{rank},230,File_read_at_all,handle=1,offset=0,count=8000,type=0
24{rank},250,File_close,handle=1",
            rank * 1024,
            3000 + 100 * rank,
            7000 + 200 * rank,
        )
    };
    let profile = format!("{head}{}", calls(&[&rank(0), &rank(1)]));
    let scratch = Scratch::new();
    let run = launch(2, &scratch, &profile, "--backend mpiio,posix,uring --repeat 0").run();
    // The failed writes succeed now.
    run.expect(0);
    let result = crate::support::document(&scratch);
    for repetition in items(&result["repetitions"]) {
        assert_eq!(number(&repetition["bytes_wrong"]), 0, "{repetition}; {run}");
        assert!(
            number(&repetition["bytes_checked"]) >= 2 * 2 * 256 && number(&repetition["bytes_unknown"]) > 2000,
            "{run}"
        );
    }
}

#[test]
fn accesses_at_the_end_of_the_file_are_replayed_by_every_backend() {
    let head = "beff-raw profile,1
ranks,2
comm,0,world
comm,1,0
comm,2,1
type,0,BYTE
file,0,log.dat,50
";
    let of_0 = "
0,10,File_open,handle=1,comm=0,file=0,mode=rdwr;append
20,30,File_write,handle=1,count=100,type=0
60,70,File_seek,handle=1,offset=0,whence=end
80,90,File_write,handle=1,count=7,type=0
500,510,File_close,handle=1";
    let of_1 = "
1,10,File_open,handle=1,comm=0,file=0,mode=rdwr;append
100,110,File_seek,handle=1,offset=-7,whence=end
120,130,File_read,handle=1,count=7,type=0
140,150,File_seek,handle=1,offset=0,whence=end
160,170,File_write,handle=1,count=9,type=0
180,190,File_read_at,handle=1,offset=0,count=166,type=0
500,510,File_close,handle=1";
    let profile = format!("{head}{}", calls(&[of_0, of_1]));
    let (_, run, result) = replay(2, &profile, "--backend mpiio,posix,uring");
    check_all(&result, &run, 12, 7 + 166, 0);
}

/// ROMIO of MPICH divides by a hint that it has not checked.
#[test]
fn a_crash_inside_the_library_is_reported_with_hints_and_environment() {
    if launcher().mpi != "mpich" {
        crate::support::skip("the value crashes ROMIO of MPICH only");
        return;
    }
    let hint = ["--hint", "cb_buffer_size=0"];
    let check = |scratch: &Scratch, run: &Run| {
        assert_ne!(run.code(), 0, "{run}");
        run.says(&["crash (SIGFPE", "inside MPI_File_", "rank ", "cb_buffer_size=0", "ROMIO_HINTS", "--backend posix"]);
        assert_eq!(scratch.list("disk"), [] as [&str; 0], "{run}");
    };
    let scratch = Scratch::new();
    let run = launch(2, &scratch, &workload(), "--backend mpiio --hint cb_buffer_size=0");
    let run = run.env("ROMIO_HINTS", "/nowhere/hints").run();
    check(&scratch, &run);
    let scratch = Scratch::new();
    let io = Launch::new(2).args(["io", "-T", "2s", "--backend", "mpiio"]).args(hint);
    let run = io.env("ROMIO_HINTS", "/nowhere/hints").into(&scratch).run();
    check(&scratch, &run);
}
