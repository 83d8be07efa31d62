use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;

use super::*;

mod costs;

const HEAD: &str = "beff-raw profile,1\ncommand,./app,-x\nprocess,0,n0,1\nprocess,1,n1,2,end=cut\ncomm,0,world\ntype,0,BYTE\n\
    type,1,DOUBLE\ninfo,0,cb_nodes=4,spaghetti=1\ninfo,1,cb_nodes=2\nfile,0,out.dat,100,fs=lustre\nfile,1,in.dat,4096\n";

fn summary(calls: &str) -> ProfileSummary {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    write!(file, "{HEAD}{calls}").unwrap();
    summarize(file.path()).unwrap()
}

fn function<'a>(of: &'a [FunctionSummary], name: &str) -> &'a FunctionSummary {
    of.iter().find(|f| f.function == name).unwrap_or_else(|| panic!("no {name} in {of:?}"))
}

/// Rank 1 writes 1000 times 8 bytes, far apart; rank 0 writes once.
fn small_writes() -> ProfileSummary {
    let mut text = "calls,0,2\n0,1000,File_open,handle=1,comm=0,file=0,mode=create;wronly,info=0,granted=1\n\
        2000,12000,File_write_at,handle=1,offset=0,count=2097152,type=0,bytes=2097152\ncalls,1,1001\n\
        0,1000,File_open,handle=1,comm=0,file=0,mode=create;wronly,info=0,granted=1\n"
        .to_owned();
    for n in 1..=1000 {
        let (begin, offset) = (n * 2000, n * 4096);
        writeln!(text, "{begin},{},File_write_at,handle=1,offset={offset},count=1,type=1,bytes=8", begin + 1000)
            .unwrap();
    }
    summary(&text)
}

#[test]
fn the_library_is_shown_on_one_line_without_tabs() {
    let mut s = small_writes();
    s.library = "MPICH Version:\t4.0.2\nMPICH Release date:\tThu".to_owned();
    assert!(s.text(100).contains("2 hosts, MPICH Version: 4.0.2; 1003 calls"), "{}", s.text(100));
}

#[test]
fn the_largest_cost_is_described() {
    let s = small_writes();
    assert_eq!((s.calls, s.data_calls, s.written_bytes, s.read_bytes), (1003, 1001, 2_097_152 + 8000, 0));
    assert_eq!(s.slowest_rank.unwrap().0, 1);
    // The calls of rank 1 could be collective, but rank 0 made one.
    assert!(s.costs.iter().all(|cost| cost.kind == "function"), "{:?}", s.costs);
    let first = &s.costs[0];
    assert!(first.share > 0.99, "{first:?}");
    assert!(
        first.what.starts_with(
            "2 ranks spent 100 % of the I/O time (1.01 ms) in 1001 calls of MPI_File_write_at of 8 bytes to 2 MiB ("
        ),
        "{first:?}"
    );
    assert!(first.what.ends_with("on out.dat; 99 % of that is rank 1"), "{first:?}");
    assert!(
        first.next.contains("small, scattered, independent writes") && first.next.contains("MPI_File_write_at_all"),
        "{first:?}"
    );
    let file = &s.files[0];
    assert_eq!(file.writes, PatternCounts { sequential: 2, strided: 999, random: 0, unknown: 0 });
    assert_eq!((file.collective_calls_share, file.ranks), (Some(0.0), 2));
    let text = s.text(100);
    assert!(text.lines().count() <= 30 && text.lines().all(|line| line.chars().count() <= 100), "{text}");
    for words in [
        "./app -x",
        "2 ranks on 2 hosts",
        "2 hints were requested",
        "Rank 1 ended without MPI_Finalize",
        "Largest costs:",
        "replay",
    ] {
        assert!(text.contains(words), "no '{words}' in\n{text}");
    }
    let details = s.details(80);
    for words in [
        "hint cb_nodes=4: not granted, 2 is in force",
        "hint spaghetti=1: unknown",
        "smallest 8 bytes, median 8 bytes",
        "999 strided",
    ] {
        assert!(details.contains(words), "no '{words}' in\n{details}");
    }
}

#[test]
fn requests_and_split_accesses_are_counted_once_and_where_they_belong() {
    let s = summary(
        "calls,0,12\n0,1,File_open,handle=1,comm=0,file=0,mode=rdwr\n2,3,File_open,handle=2,comm=0,file=1,mode=rdonly\n\
        4,5,File_iread_at,handle=2,offset=0,count=100,type=0,request=1\n6,7,File_iwrite_at,handle=1,offset=0,count=10,type=1,request=2\n\
        8,9,File_iread_at,handle=2,offset=100,count=100,type=0,request=3\n\
        10,60,Waitall,requests=1;2,done=1:60;2:80,polls=7\n70,71,File_write_all_begin,handle=1,count=4,type=0\n\
        72,80,File_write_all_end,handle=1,bytes=4\n81,82,File_read_shared,handle=2,count=8,type=0,bytes=8\n\
        83,84,File_read_at,handle=2,offset=-4,count=8,type=0,error=MPI_ERR_ARG\n85,86,File_close,handle=1\n87,88,File_close,handle=2\n",
    );
    assert_eq!((s.data_calls, s.read_bytes, s.written_bytes, s.never_completed, s.polls), (6, 68, 84, 1, 7));
    let file = |name: &str| s.files.iter().find(|file| file.path == name).unwrap();
    assert_eq!((file("in.dat").read_bytes, file("out.dat").written_bytes), (68, 84));
    let reads = function(&file("in.dat").functions, "MPI_File_iread_at");
    assert_eq!((reads.calls, reads.short, reads.bytes), (2, 1, 60));
    assert_eq!(file("in.dat").reads, PatternCounts { sequential: 2, strided: 0, random: 0, unknown: 1 });
    assert_eq!(function(&file("in.dat").functions, "MPI_File_read_at").errors, [("MPI_ERR_ARG", 1)]);
    // The wait belongs to the file of its first request.
    assert_eq!(function(&file("in.dat").functions, "MPI_Waitall").calls, 1);
    assert_eq!(file("out.dat").collective_calls_share, Some(0.5));
    assert!((file("out.dat").collective_bytes_share.unwrap() - 4.0 / 84.0).abs() < 1e-9);
    assert!(s.costs[0].what.contains("MPI_Waitall") && s.costs[0].next.contains("nonblocking"), "{:?}", s.costs[0]);
    let text = s.text(80);
    for words in [
        "1 call failed: MPI_File_read_at of in.dat with MPI_ERR_ARG",
        "1 access moved less",
        "1 request was never completed",
    ] {
        assert!(text.contains(words), "no '{words}' in\n{text}");
    }
}

#[test]
fn a_profile_without_data_lists_its_calls() {
    let text = summary("calls,0,2\n0,5,Init\n6,9,Finalize\n").text(80);
    assert!(text.contains("This profile has no data access") && text.contains("MPI_Init (1)"), "{text}");
    assert!(!text.contains("replay"), "{text}");
    assert!(summary("calls,0,0\n").text(80).contains("It has no calls."));
}

#[test]
fn control_characters_are_escaped() {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    writeln!(file, "beff-raw profile,1\nranks,1\ncommand,\"a\\n\u{1b}[31m\"\ncalls,0,0").unwrap();
    let text = summarize(file.path()).unwrap().text(80);
    assert!(text.starts_with("a??[31m\n"), "{text:?}");
}

#[test]
fn json_agrees_with_the_text() {
    let s = small_writes();
    let json: serde_json::Value = serde_json::from_str(&s.json().unwrap()).unwrap();
    assert_eq!(json["version"], 1);
    assert_eq!(json["files"][0]["writes"]["strided"], 999);
    assert_eq!(json["cut"][0]["end"], "cut");
    assert_eq!(json["costs"][0]["function"], "MPI_File_write_at");
}

#[test]
fn the_strided_workload_reads_and_is_strided() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("workloads/strided.csv");
    let s = summarize(&path).unwrap();
    assert_eq!((s.ranks, s.read_bytes, s.written_bytes, s.no_places.as_deref()), (4, 4 * 65536, 4 * 65536, None));
    let file = &s.files[0];
    for pattern in [file.reads, file.writes] {
        assert_eq!((pattern.strided, pattern.unknown), (4 * 11, 0), "{pattern:?}");
    }
    assert_eq!(file.collective_calls_share, Some(1.0 / 3.0));
    // Every byte of the file is written once and read once, by the same rank.
    let layouts = TypeLayouts::new(&text::read_head(&path).unwrap().types).unwrap();
    let (mut written, mut read) = (vec![0_u8; 262_144], vec![0_u8; 262_144]);
    for rank in 0..4 {
        let mut tracker = crate::access::AccessTracker::new(&layouts);
        for call in text::read_rank(&path, rank).unwrap().1 {
            if let crate::access::CallEffect::Access(access) = tracker.resolve(&call.unwrap()) {
                let into = if access.direction == crate::Direction::Read { &mut read } else { &mut written };
                for extent in access.file_ranges(&layouts) {
                    let at = usize::try_from(extent.at).unwrap();
                    into[at..at + usize::try_from(extent.bytes).unwrap()].iter_mut().for_each(|n| *n += 1);
                }
            }
        }
    }
    assert!(written.iter().chain(&read).all(|n| *n == 1));
}

/// Count and type give the bytes that a workload written by hand omits.
#[test]
fn bytes_of_a_workload_written_by_hand_follow_from_its_counts() {
    let head = "beff-raw profile,1\nranks,1\ncomm,0,0\ntype,0,DOUBLE\nfile,0,out.dat\n";
    let calls = "calls,0,8
0,1,File_open,handle=1,comm=0,file=0,mode=create;rdwr
2,3,File_write_at,handle=1,offset=0,count=4,type=0
4,5,File_iwrite_at,handle=1,offset=32,count=2,type=0,request=1
6,7,Wait,requests=1
8,9,File_write_all_begin,handle=1,count=1,type=0
10,11,File_write_all_end,handle=1
12,13,File_read_at,handle=1,offset=0,count=3,type=0
14,15,File_write_at,handle=1,offset=0,count=1,type=0,error=MPI_ERR_IO
";
    let mut file = tempfile::NamedTempFile::new().unwrap();
    write!(file, "{head}{calls}").unwrap();
    let found = summarize(file.path()).unwrap();
    assert_eq!((found.written_bytes, found.read_bytes), (32 + 16 + 8, 24));
    assert_eq!((found.unknown_bytes_calls, found.never_completed), (0, 0));
    // Unknown bytes of a recording stay unknown.
    let mut file = tempfile::NamedTempFile::new().unwrap();
    write!(file, "{}command,app\n{}{calls}", &head[..19], &head[19..]).unwrap();
    let found = summarize(file.path()).unwrap();
    assert_eq!((found.written_bytes, found.read_bytes), (0, 0));
}
