//! Rejected input, with line, field, cause and next step.

use std::io::Write;

use super::*;

const HEAD: &str = "beff-raw profile,1\nranks,2\ncomm,0,world\ntype,0,BYTE\ninfo,0,a=b\nfile,0,out.dat,100\n";

fn read_error(text: impl AsRef<[u8]>) -> TextError {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(text.as_ref()).unwrap();
    match read_all_ranks(file.path()) {
        Err(e) => e,
        Ok((_, calls)) => calls
            .filter_map(Result::err)
            .next()
            .unwrap_or_else(|| panic!("accepted: {:.400}", String::from_utf8_lossy(text.as_ref()))),
    }
}

/// Asserts the error at a line and a field (0: none) with words in its cause, and a next step.
fn assert_rejected(text: impl AsRef<[u8]>, line: u64, field: usize, words: &str) {
    let shown: String = String::from_utf8_lossy(text.as_ref()).chars().take(400).collect();
    let e = read_error(text);
    assert!(e.cause().contains(words), "{e}\nfor {shown}");
    assert_eq!((e.line().unwrap_or(0), e.field_number().unwrap_or(0)), (line, field), "{e}\nfor {shown}");
    assert!(e.next_step().len() > 8, "{e}");
    assert!(e.to_string().contains(&format!(":{line}: ")), "{e}");
}

/// A call of rank 0 in line 8.
fn call(line: &str, field: usize, words: &str) {
    assert_rejected(format!("{HEAD}calls,0,1\n{line}\n"), 8, field, words);
}

/// Line 7 of the head.
fn head(line: &str, field: usize, words: &str) {
    assert_rejected(format!("{HEAD}{line}\ncalls,0,0\n"), 7, field, words);
}

#[test]
fn other_files_and_other_versions() {
    assert_rejected("hello\n", 1, 0, "this is not a profile");
    assert_rejected("beff-raw profile,2\n", 1, 2, "newer release");
    assert_rejected("beff-raw profile,0\n", 1, 0, "this is not a profile");
    assert!(read_error("").cause().contains("empty"));
    assert_rejected("beff-raw profile,1\n", 1, 0, "number of ranks is missing");
    assert_rejected(HEAD, 6, 0, "only a head, with 2 ranks, 1 files, 1 types");
    assert!(read_head(Path::new("/nowhere/at.all"))
        .unwrap_err()
        .to_string()
        .starts_with("/nowhere/at.all: cannot be read"));
}

#[test]
fn lines_of_the_head() {
    head("cals,0,1", 1, "is not a section");
    head("1,2,File_sync,handle=1", 1, "before any 'calls' line");
    head("ranks,3", 1, "after another");
    head("comm,0,0", 2, "comm 0 where 1 is the next");
    head("comm,1,0;2", 3, "is not a rank");
    head("comm,1,0;0", 3, "duplicate");
    head("comm,1,1-0", 3, "is descending");
    head("comm,1,0-1;0", 3, "more ranks than there are");
    head("type,1,TYPE", 3, "size of 'TYPE' is unknown");
    head("type,1,spiral,of=0", 3, "is not a type constructor");
    head("type,1,contiguous,count=1,of=1", 5, "type 1 is not defined");
    head("type,1,contiguous,count=-1,of=0", 4, "is not a number from 0");
    head("type,1,contiguous,count=9223372036854775808,of=0", 4, "beyond 63 bits");
    head("type,1,contiguous,count=1", 0, "of= is missing");
    head("type,1,contiguous,count=1,count=1,of=0", 5, "duplicate");
    head("type,1,vector,count=1,size=2,of=0", 5, "no key");
    head("type,1,indexed,blocks=1;2,displacements=1,of=0", 5, "1 numbers, but blocks has 2");
    head("type,1,subarray,sizes=4,subsizes=3,starts=2,of=0", 6, "exceeds its array");
    head("type,1,darray,ranks=4,rank=0,sizes=4,distributions=block,arguments=-,grid=3,of=0", 9, "product of the grid");
    head("info,1,a", 3, "not KEY=VALUE");
    head("file,1,a,x", 4, "is not a number");
    head("file,1,a,1,2", 5, "not a field of a file");
    head("process,0", 3, "host is missing");
    head("process,0,h,1,end=never", 5, "is not a valid end");
    head("process,0,h,1,clock=1", 5, "not two numbers");
    head("library,a,b", 3, "too many fields");
    head("cost,many", 2, "is not a cost");
    head("ranks,9", 1, "after another");
    head("info,1,\"a=b", 3, "is not closed");
    head("info,1,a=\"b\"", 3, "a quote inside a field");
    head("info,1,\"a=\\q\"", 3, "is not an escape");
    assert_rejected("beff-raw profile,1\nranks,99999999999\n", 2, 2, "ranks");
    assert_rejected("beff-raw profile,1\ncomm,0,world\n", 2, 1, "number of ranks is not known");
}

#[test]
fn lines_of_calls() {
    call("1,2,File_jump,handle=1", 3, "not a recorded function");
    call("1", 2, "end is missing");
    call("1,2", 3, "function is missing");
    call("2,1,File_sync,handle=1", 2, "ends before it begins");
    call("1,99999999999999999999,File_sync,handle=1", 2, "beyond 63 bits");
    call("1,2,File_sync", 0, "handle= is missing");
    call("1,2,File_sync,handle=0", 4, "no handle 0");
    call("1,2,File_sync,handle=1,handle=1", 5, "duplicate");
    call("1,2,File_sync,handle=1,offset=4", 5, "no such key");
    call("1,2,File_sync,handle=1,speed=4", 5, "is not a key");
    call("1,2,File_sync,handle=1,flush", 5, "not KEY=VALUE");
    call("1,2,File_write_at,handle=1,count=1,type=0", 0, "offset= is missing");
    call("1,2,File_write_at,handle=1,count=4K,type=0,offset=0", 5, "is not a number");
    call("1,2,File_write_at,handle=1,count=1,type=1,offset=0", 6, "type 1 is not defined");
    call("1,2,File_open,handle=1,comm=0,file=1,mode=rdwr", 6, "file 1 is not defined");
    call("1,2,File_open,handle=1,comm=1,file=0,mode=rdwr", 5, "comm 1 is not defined");
    call("1,2,File_open,handle=1,comm=0,file=0,mode=rw", 7, "is not a mode");
    call("1,2,File_open,handle=1,comm=0,file=0,mode=rdwr,info=1", 8, "info 1 is not defined");
    call("1,2,File_seek,handle=1,offset=0,whence=here", 6, "is not a whence");
    call("1,2,File_sync,handle=1,error=5", 5, "is not an error class");
    call("1,2,File_sync,handle=1,after=2@0", 5, "no rank 2");
    call("1,2,File_sync,handle=1,after=1", 5, "not RANK@BEGIN");
    call("1,2,File_read,handle=1,count=1,type=0,from=1@tape", 7, "is not an origin");
    call("1,2,Wait,done=1:x", 4, "is not a number");
    call("type,1,BYTE", 1, "comes after calls");
    call("hello", 1, "is not a section");
    call("calls,1,0", 0, "the calls of rank 0 end here: 0 of 1");
    assert_rejected([HEAD.as_bytes(), b"calls,0,1\n1,2,File_sync,handle=\xff\n"].concat(), 8, 0, "not UTF-8");
}

#[test]
fn parts_and_their_ends() {
    let parts = |text: &str, line, field, words| assert_rejected(format!("{HEAD}{text}"), line, field, words);
    parts("calls,2,0\n", 7, 2, "there is no rank 2");
    parts("calls,0\n", 7, 3, "number of calls is missing");
    parts("calls,0,1,2\n", 7, 4, "too many fields");
    parts("calls,0,0\ncalls,1,0\ncalls,0,0\n", 9, 2, "duplicate calls");
    parts("calls,0,1\n1,2,Init\n3,4,Init\n", 9, 0, "more calls");
    parts("calls,0,2\n3,4,Init\n3,4,Init\n", 9, 1, "does not begin after the call of line 8");
    parts(
        "calls,0,2\n3,4,Init\n# the end\n",
        9,
        0,
        "the file ends with 1 of 2 calls of rank 0; 0 ranks before are complete",
    );
    parts("calls,0,2\n3,4,Init\n5,6,In", 9, 0, "the last line has no end");
    let said = "beff-raw profile,1\nprocess,0,h\nprocess,1,h,1,calls=2\ncalls,0,0\n";
    assert_rejected(said, 4, 0, "without the 2 calls of rank 1");
    assert_rejected(format!("{said}calls,1,1\n1,2,Init\n"), 5, 3, "but 2 by the line 'process'");
}

#[test]
fn sizes_have_limits() {
    let mut deep = HEAD.to_owned();
    (1..200).for_each(|n| deep.push_str(&format!("type,{n},contiguous,count=1,of={}\n", n - 1)));
    assert_rejected(format!("{deep}calls,0,0\n"), 6 + 129, 0, "nested deeper than 128");
    let long = [HEAD.as_bytes(), &vec![b'x'; lines::MAX_LINE_BYTES + 9], b"\n"].concat();
    assert_rejected(long, 7, 0, "longer than 16 MiB");
    // 1 GiB of blank lines in some KiB.
    let mut bomb = zstd::Encoder::new(Vec::new(), 1).unwrap();
    bomb.write_all(HEAD.as_bytes()).unwrap();
    let blank = [[b' '; 65535].as_slice(), b"\n"].concat();
    (0..5000).for_each(|_| bomb.write_all(&blank).unwrap());
    assert_rejected(bomb.finish().unwrap(), 6 + 4096, 0, "more than 256 MiB before the calls");
}

#[test]
fn a_cut_or_damaged_compressed_profile() {
    let mut writer = ProfileWriter::new(Vec::new(), true);
    let process = |calls| crate::Process {
        host: "h".into(),
        pid: 1,
        clock_offset_ns: [0, 0],
        end: crate::RecordingStatus::Complete,
        calls,
        storage_bytes: None,
    };
    writer.head(&ProfileHead { processes: vec![process(9), process(5)], ..ProfileHead::default() }).unwrap();
    for (rank, calls) in [(0, 9), (1, 5)] {
        writer.begin_calls(rank, calls).unwrap();
        (0..calls).for_each(|n| writer.call(&Call::new(crate::Function::Init, n * 10, n * 10 + 5)).unwrap());
    }
    let whole = writer.finish().unwrap();
    for length in 1..whole.len() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(&whole[..length]).unwrap();
        for rank in 0..2 {
            let calls = read_rank(file.path(), rank).map(|(_, calls)| calls.collect::<Result<Vec<_>, _>>());
            let calls = calls.and_then(|calls| calls);
            // Complete sections before the truncation can be read by their rank, never more, never less.
            assert!(calls.as_ref().map_or(true, |calls| calls.len() == [9, 5][rank as usize]), "{length}");
        }
        assert!(
            read_all_ranks(file.path()).and_then(|(_, calls)| calls.collect::<Result<Vec<_>, _>>()).is_err(),
            "{length}"
        );
    }
    // Line numbers of rank 1 count the skipped lines of rank 0.
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(&whole).unwrap();
    let (_, mut calls) = read_rank(file.path(), 1).unwrap();
    calls.next().unwrap().unwrap();
    let (_, mut all) = read_all_ranks(file.path()).unwrap();
    let first = all.find(|call| call.as_ref().is_ok_and(|(rank, _)| *rank == 1));
    assert!(first.is_some());
    assert_eq!(calls.line(), all.line());
    assert_eq!(calls.line(), 5 + 1 + 9 + 1 + 1);
}

#[test]
fn writers_reject_wrong_calls() {
    let process = crate::Process {
        host: "h".into(),
        pid: 1,
        clock_offset_ns: [0, 0],
        end: crate::RecordingStatus::Complete,
        calls: 2,
        storage_bytes: None,
    };
    let head = ProfileHead { processes: vec![process], ..ProfileHead::default() };
    let begun = || {
        let mut writer = ProfileWriter::new(Vec::new(), false);
        writer.head(&head).unwrap();
        writer
    };
    let call = Call::new(crate::Function::Init, 1, 2);
    assert!(begun().begin_calls(0, 3).is_err());
    assert!(begun().begin_calls(1, 2).is_err());
    assert!(begun().call(&call).is_err());
    let mut writer = begun();
    writer.begin_calls(0, 2).unwrap();
    writer.call(&call).unwrap();
    assert!(writer.finish().unwrap_err().to_string().contains("1 calls of rank 0 are missing"));
}
