//! Ranks that would wait for each other for ever: refused by name before anything is made, or ended by a limit or a signal.

use std::fs;
use std::time::Duration;

use crate::replay::{calls, launch, HEAD};
use crate::support::{document, items, launcher, number, signal, Launch, Run, Running, Scratch};

/// What stands before the calls of three ranks: the world, and each pair.
const PAIRS: &str = "beff-raw profile,1
ranks,3
comm,0,world
comm,1,world
comm,2,0;1
comm,3,1;2
comm,4,2;0
type,0,BYTE
file,0,a.dat
file,1,b.dat
file,2,c.dat
";

fn two_ranks(of_0: &str, of_1: &str) -> String {
    format!("{PAIRS}{}", calls(&[of_0, of_1])).replace("ranks,3", "ranks,2").replace("comm,3,1;2\ncomm,4,2;0\n", "")
}

/// Two threads of each rank write collectively to two files; they begin in another order on rank 1.
fn threads(first: &str) -> String {
    let write = |handle: u64, offset: u64, begin: u64| {
        format!("{begin},5000,{first},handle={handle},offset={offset},count=4096,type=0,thread={}", handle - 1)
    };
    let rank = |rank: u64, order: [u64; 2]| {
        format!(
            "{rank},100,File_open,handle=1,comm=0,file=0,mode=create;rdwr\n\
             20{rank},300,File_open,handle=2,comm=1,file=1,mode=create;rdwr\n\
             {}\n{}\n\
             900{rank},9100,File_close,handle=1\n\
             920{rank},9300,File_close,handle=2",
            write(order[0], 4096 * rank, 1000 + rank),
            write(order[1], 4096 * rank, 2000 + rank),
        )
    };
    two_ranks(&rank(0, [1, 2]), &rank(1, [2, 1]))
}

/// Refused, with these words; nothing was made.
#[track_caller]
fn refused(ranks: u64, profile: &str, words: &str, parts: &[&str]) {
    let scratch = Scratch::new();
    let run = launch(ranks, &scratch, profile, words).within(Duration::from_secs(30)).run();
    run.expect(2).says(parts).says(&["No file was created"]);
    assert_eq!(scratch.list("disk"), [] as [&str; 0], "{run}");
    assert_eq!(scratch.list("."), ["app.csv", "disk"], "{run}");
}

#[test]
fn collective_calls_in_another_order_are_refused_by_name() {
    let parts = [
        "rank 0, call 3, File_write_at_all (handle 1, a.dat), waits for rank 1",
        "rank 1, call 3, File_write_at_all (handle 2, b.dat), waits for rank 0",
    ];
    refused(2, &threads("File_write_at_all"), "--backend mpiio", &parts);
    refused(2, &threads("File_write_at_all"), "--backend posix,mpiio --plan", &parts);
    // There collective writes wait for nobody.
    let scratch = Scratch::new();
    let run = launch(2, &scratch, &threads("File_write_at_all"), "--backend posix,uring").run();
    run.expect(0);
    assert_eq!(number(&items(&document(&scratch)["repetitions"])[0]["calls_as_recorded"]), 12, "{run}");
}

/// Begun in any order, completed when all are begun.
#[test]
fn nonblocking_collective_calls_may_begin_in_another_order() {
    let profile = |waits: [&str; 2]| {
        let rank = |rank: u64, order: [u64; 2], waits: &str| {
            let begin = |handle: u64, at: u64| {
                format!(
                    "{at},{at}5,File_iwrite_at_all,handle={handle},offset={},count=4096,type=0,request={handle}",
                    4096 * rank
                )
            };
            let [first, second] = [begin(order[0], 1001), begin(order[1], 20001)];
            let (between, behind) = waits.split_once('|').unwrap();
            format!(
                "1,100,File_open,handle=1,comm=0,file=0,mode=create;rdwr\n\
                 200,300,File_open,handle=2,comm=1,file=1,mode=create;rdwr\n\
                 {first}\n{between}{second}\n{behind}\n\
                 900000,900100,File_close,handle=1\n\
                 920000,920100,File_close,handle=2"
            )
        };
        two_ranks(&rank(0, [1, 2], waits[0]), &rank(1, [2, 1], waits[1]))
    };
    let all = "|300000,300100,Waitall,requests=1;2,done=1:4096;2:4096";
    let scratch = Scratch::new();
    let run = launch(2, &scratch, &profile([all, all]), "--backend mpiio,posix").within(Duration::from_secs(60)).run();
    run.expect(0);
    let each = |first: u64, second: u64| {
        format!("15000,15100,Wait,requests={first},done={first}:4096\n|300000,300100,Wait,requests={second},done={second}:4096")
    };
    let crossed = profile([&each(1, 2), &each(2, 1)]);
    refused(2, &crossed, "--backend mpiio", &["rank 0, call 4, Wait (handle 1, a.dat), waits for rank 1"]);
}

/// Three communicators of two ranks each, in a circle: no backend can open so.
#[test]
fn a_circle_of_communicators_is_refused_by_name() {
    let rank = |first: (u64, u64), second: (u64, u64)| {
        format!(
            "100,200,File_open,handle=1,comm={},file={},mode=create;rdwr\n\
             300,400,File_open,handle=2,comm={},file={},mode=create;rdwr\n\
             450,460,File_write_at,handle=1,offset=0,count=1,type=0\n\
             500,600,File_close,handle=1\n\
             700,800,File_close,handle=2",
            first.0, first.1, second.0, second.1
        )
    };
    let profile = |last: String| format!("{PAIRS}{}", calls(&[&rank((2, 0), (4, 2)), &rank((3, 1), (2, 0)), &last]));
    for backend in ["posix", "mpiio", "uring"] {
        let parts = [
            "rank 0, call 1, File_open (handle 1, a.dat), waits for rank 1",
            "rank 1, call 1, File_open (handle 1, b.dat), waits for rank 2",
            "rank 2, call 1, File_open (handle 1, c.dat), waits for rank 0",
        ];
        refused(3, &profile(rank((4, 2), (3, 1))), &format!("--backend {backend}"), &parts);
    }
    let scratch = Scratch::new();
    let fits = profile(rank((3, 1), (4, 2)));
    launch(3, &scratch, &fits, "--backend posix,mpiio").within(Duration::from_secs(60)).run().expect(0);
}

/// In the same place of an opening, but not the same call.
#[test]
fn calls_of_different_functions_do_not_match() {
    let rank = |calls: [&str; 2]| {
        let [first, second] = calls;
        format!(
            "100,200,File_open,handle=1,comm=0,file=0,mode=create;rdwr\n\
             300,400,{first}\n500,600,{second}\n700,800,File_write_at,handle=1,offset=0,count=1,type=0\n900,950,File_close,handle=1"
        )
    };
    let (size, sync) = ("File_set_size,handle=1,offset=10", "File_sync,handle=1");
    let profile = two_ranks(&rank([size, sync]), &rank([sync, size]));
    let parts = ["rank 0, call 2, File_set_size (handle 1, a.dat)", "rank 1, call 2, File_sync (handle 1, a.dat)"];
    refused(2, &profile, "--backend mpiio", &parts);
}

/// Rank 0 is inside MPI_File_set_size; rank 1 waits before it for a call of rank 0 that comes later, and is stopped there. With the process id of rank 0.
fn blocked(backend: &str, limit_seconds: &str) -> (Scratch, Running, i32) {
    let one = "100,1000,File_open,handle=1,file=0,comm=0,mode=rdwr;create\n\
               4000,4100,File_set_size,handle=1,offset=1000\n\
               4500,4600,File_write_at,handle=1,offset=0,count=100,type=0,bytes=100\n\
               5000,6000,File_close,handle=1";
    let two = "101,1000,File_open,handle=1,file=0,comm=0,mode=rdwr;create\n\
               4001,4100,File_set_size,handle=1,offset=1000,after=0@4500\n\
               5001,6000,File_close,handle=1";
    let scratch = Scratch::new();
    let profile = format!("{HEAD}{}", calls(&[one, two]));
    let path = scratch.join("app.csv");
    fs::write(&path, profile).unwrap();
    // Once a stopped rank got SIGHUP before hydra ended it, and hydra gave the code of that.
    let launch =
        Launch::through(&["env", "--ignore-signal=HUP"], 2).arg("replay").arg(path).args(["--backend", backend]);
    let launch = launch.into(&scratch).env("BEFF_RAW_STRANDED_SECONDS", limit_seconds).within(Duration::from_secs(50));
    let mut running = launch.start();
    let disk = scratch.join("disk");
    running.until("the opening", || {
        let runs = fs::read_dir(&disk).into_iter().flatten().flatten();
        runs.into_iter().any(|run| run.path().join(backend).join("file-0001").exists())
    });
    // To where both stand.
    std::thread::sleep(Duration::from_millis(700));
    let is_rank_1 = |pid: &i32| {
        let all = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        all.split(|byte| *byte == 0).any(|one| one == b"PMI_RANK=1" || one == b"OMPI_COMM_WORLD_RANK=1")
    };
    let (stopped, others): (Vec<i32>, Vec<i32>) = running.ranks().into_iter().partition(is_rank_1);
    assert_eq!((stopped.len(), others.len()), (1, 1), "two ranks");
    signal(stopped[0], "STOP");
    (scratch, running, others[0])
}

#[track_caller]
fn left_nothing(scratch: &Scratch, run: &Run) {
    assert_eq!(scratch.list("disk"), [] as [&str; 0], "{run}");
    assert!(fs::metadata(scratch.join("out.jsonl")).is_ok(), "the journal stays; {run}");
}

/// Hydra of MPICH says 9, the code of a rank that it ended, or that of the rank that ended first.
#[track_caller]
fn ended(run: &Run, code: i32) {
    assert!(run.code() == code || launcher().mpi == "mpich" && run.code() == 9, "{run}");
}

#[test]
fn a_rank_that_stays_in_a_collective_call_ends_the_run_at_the_limit() {
    for backend in ["posix", "mpiio"] {
        let (scratch, running, _) = blocked(backend, "3");
        let run = running.wait();
        ended(&run, 1);
        assert!(run.seconds < 15.0, "{run}");
        run.says(&["rank 0: in MPI_File_set_size, recorded at 4000 ns, for 3 s:", "BEFF_RAW_STRANDED_SECONDS"]);
        left_nothing(&scratch, &run);
    }
}

/// 8 seconds are the time in which ranks could be helped out of their calls.
#[test]
fn a_signal_ends_a_run_whose_ranks_stay_in_collective_calls() {
    for backend in ["posix", "mpiio"] {
        let (scratch, running, rank_0) = blocked(backend, "60");
        // Not to the launcher: that of Open MPI lets stopped ranks go on, and ends all by itself.
        signal(rank_0, "TERM");
        let run = running.wait();
        ended(&run, 130);
        assert!(run.seconds < 25.0, "{run}");
        left_nothing(&scratch, &run);
    }
}
