//! Small programs with known order, origins and times.

use std::path::Path;

use super::{merged, types};
use crate::merge::{merge, MergeError, MergeOptions};
use crate::raw::recorder::{head, FixtureRecorder};
use crate::raw::Event;
use crate::{text, Amode, Call, CallId, Completion, DataOrigin, Function, OriginRange, RecordingStatus};

fn simple(function: Function, begin_ns: u64, end_ns: u64) -> Call {
    let mut call = Call::new(function, begin_ns, end_ns);
    call.handle = Some(1);
    call
}

fn opened(begin_ns: u64, end_ns: u64, comm: u32, number: i64) -> Call {
    let mut open = simple(Function::Open, begin_ns, end_ns);
    (open.name, open.comm, open.amode, open.number) = (Some("f".to_owned()), Some(comm), Some(Amode(2)), Some(number));
    open
}

fn data(function: Function, begin_ns: u64, end_ns: u64, offset: i64, bytes: u64) -> Call {
    let mut call = simple(function, begin_ns, end_ns);
    (call.offset, call.count, call.datatype, call.bytes) = (Some(offset), Some(bytes as i64), Some(0), Some(bytes));
    call
}

fn from(bytes: u64, rank: u32, begin_ns: u64, memory: i64) -> OriginRange {
    OriginRange { bytes, origin: DataOrigin::Call { rank, begin_ns, memory } }
}

#[test]
fn no_call_waits_for_one_after_a_pending_collective_call() {
    let write = |begin| data(Function::WriteAt, begin, begin + 5, 0, 4);
    let all = |begin| data(Function::WriteAtAll, begin, begin + 5, 100 + begin as i64, 4);
    // Rank 0 leaves the collective call before rank 1 enters it, and writes what rank 1 reads before it.
    let programs = [
        vec![opened(0, 9, 0, 0), all(20), write(30), all(70), write(80)],
        vec![
            opened(0, 9, 0, 0),
            data(Function::ReadAt, 40, 45, 0, 4),
            all(50),
            data(Function::ReadAt, 60, 65, 0, 4),
            all(70),
            data(Function::ReadAt, 90, 95, 0, 4),
        ],
    ];
    let (_, found, remarks) = merged(&programs, &[vec![0, 1]], |_| {}, &MergeOptions::default());
    assert_eq!(remarks, [""; 0]);
    let after: Vec<_> = found[1].iter().map(|call| call.after.clone()).collect();
    let wait = |begin_ns| vec![CallId { rank: 0, begin_ns }];
    assert_eq!(after, [vec![], vec![], vec![], wait(30), vec![], wait(80)]);
    assert_eq!(
        found[1][1].from,
        [OriginRange { bytes: 4, origin: DataOrigin::Unknown }],
        "a replay cannot keep the order"
    );
}

#[test]
fn barriers_before_collective_calls_are_detected() {
    let rank = |open: u64, calls: &[(u64, u64)]| {
        let all = |&(begin_ns, end_ns): &(u64, u64)| data(Function::WriteAtAll, begin_ns, end_ns, 0, 4);
        let mut program = vec![opened(open, open + 10, 0, 0)];
        program.extend(calls.iter().map(all));
        program
    };
    // Ready at 200 and 160, begun at 205 and 210: synchronized. Ready at 300 and 380, begun at the same distance: not. Begun before the
    // other was ready: not. Ready at the same time: undecidable, so not.
    let one = rank(0, &[(100, 200), (205, 300), (310, 600), (650, 900), (905, 950)]);
    let two = rank(1, &[(101, 160), (210, 380), (390, 700), (701, 900), (902, 960)]);
    let (_, ranks, _) = merged(&[one, two], &[vec![0, 1]], |_| (), &MergeOptions::default());
    let met = |rank: usize| ranks[rank].iter().map(|call| call.since_barrier_ns).collect::<Vec<_>>();
    assert_eq!(met(0), [None, None, Some(5), None, None, None]);
    assert_eq!(met(1), [None, None, Some(10), None, None, None]);
}

/// Markers lie between the calls, and change nothing in what is found about these.
#[test]
fn markers_are_in_place_and_no_calls_that_ranks_wait_for() {
    let mark = |begin_ns: u64, name: Option<&str>| {
        let mut mark = Call::new(Function::Marker, begin_ns, begin_ns);
        (mark.name, mark.flag) = (name.map(str::to_owned), Some(name.is_some()));
        mark
    };
    let all = |begin_ns, end_ns| data(Function::WriteAtAll, begin_ns, end_ns, 0, 4);
    let read = |begin_ns| data(Function::ReadAt, begin_ns, begin_ns + 5, 0, 4);
    let plain = [
        vec![opened(0, 10, 0, 0), all(100, 200), all(205, 300), read(310)],
        vec![opened(1, 11, 0, 0), all(101, 160), all(210, 380), read(390)],
    ];
    let mut marked = plain.clone();
    for (rank, program) in marked.iter_mut().enumerate() {
        program.insert(2, mark(203, Some("H5Dwrite /u, of \"x\"")));
        program.insert(2, mark(203, Some("H5Dwrite /t")));
        program.insert(5, mark([301, 381][rank], None));
        program.push(mark(400, Some("H5Fclose")));
    }
    let run = |programs: &[Vec<Call>; 2]| merged(programs, &[vec![0, 1]], |_| (), &MergeOptions::default()).1;
    let (expected, found) = (run(&plain), run(&marked));
    assert_eq!(expected[1][2].since_barrier_ns, Some(10));
    for (expected, found) in expected.iter().zip(&found) {
        let (marks, calls): (Vec<&Call>, Vec<&Call>) = found.iter().partition(|call| call.function == Function::Marker);
        assert_eq!(calls, expected.iter().collect::<Vec<_>>());
        let names: Vec<_> = marks.iter().map(|mark| (mark.name.as_deref(), mark.flag)).collect();
        let begin = |name| (Some(name), Some(true));
        assert_eq!(
            names,
            [begin("H5Dwrite /t"), begin("H5Dwrite /u, of \"x\""), (None, Some(false)), begin("H5Fclose")]
        );
        assert!(found.windows(2).all(|pair| pair[0].begin_ns < pair[1].begin_ns), "{found:?}");
        assert_eq!(found[2].function, Function::Marker);
    }
}

#[test]
fn files_created_during_the_run_are_detected() {
    let open = |size_bytes: i64, unchanged_ns: Option<u64>| Call { unchanged_ns, ..opened(500, 510, 0, size_bytes) };
    let first = simple(Function::Delete, 100, 102);
    let delete = |name: &str| Call { handle: None, name: Some(name.to_owned()), ..first.clone() };
    let made_ns = |programs: &[Vec<Call>], comms: &[Vec<u32>]| {
        merged(programs, comms, |_| (), &MergeOptions::default())
            .0
            .files
            .iter()
            .find(|file| file.path == "f")
            .unwrap()
            .created_ns
    };
    let one = |call: Call| made_ns(&[vec![delete("other"), call]], &[vec![0]]);
    assert_eq!(one(open(8, Some(150))), Some(250), "since the first call, which began at 100");
    assert_eq!(one(open(8, Some(400))), Some(0));
    assert_eq!(one(open(8, Some(401))), None, "before it");
    assert_eq!(one(open(8, None)), None, "not known");
    assert_eq!(one(open(0, Some(150))), None, "nothing to be made");
    assert_eq!(one(open(-1, None)), None, "it was not there");
    assert_eq!(made_ns(&[vec![delete("f"), open(8, Some(150))]], &[vec![0]]), None, "it was there before");
    let own = |comm: u32, begin_ns: u64| Call { begin_ns, ..Call { comm: Some(comm), ..open(8, Some(150)) } };
    let two = |comms: [u32; 2]| [vec![delete("other"), own(comms[0], 400)], vec![own(comms[1], 402)]];
    let comms = [vec![0], vec![1], vec![0, 1]];
    assert_eq!(made_ns(&two([2, 2]), &comms), Some(150), "together");
    assert_eq!(made_ns(&two([0, 1]), &comms), None, "each for itself");
}

#[test]
fn a_file_is_lost_with_deletion_size_and_unknown_places() {
    let mut size = simple(Function::SetSize, 30, 32);
    size.offset = Some(6);
    let mut shared = data(Function::WriteShared, 50, 52, 0, 2);
    shared.offset = None;
    let mut delete = simple(Function::Delete, 100, 102);
    (delete.handle, delete.name) = (None, Some("f".to_owned()));
    let read = |begin| data(Function::ReadAt, begin, begin + 1, 0, 8);
    let mut again = opened(110, 112, 0, -1);
    again.handle = Some(2);
    let mut last = read(120);
    last.handle = Some(2);
    let programs = [vec![
        opened(0, 9, 0, 20),
        data(Function::WriteAt, 10, 11, 4, 4),
        read(20),
        size,
        read(40),
        shared,
        read(60),
        data(Function::WriteAt, 70, 71, 0, 4),
        read(80),
        simple(Function::Close, 90, 92),
        delete,
        again,
        last,
    ]];
    let (_, found, _) = merged(&programs, &[vec![0]], |_| {}, &MergeOptions::default());
    let content = |bytes, content| OriginRange { bytes, origin: content };
    assert_eq!(found[0][2].from, [content(4, DataOrigin::File), from(4, 0, 10, 0)]);
    assert_eq!(found[0][4].from, [content(4, DataOrigin::File), from(2, 0, 10, 0), content(2, DataOrigin::Unknown)]);
    assert_eq!(found[0][6].from, [content(8, DataOrigin::Unknown)]);
    assert_eq!(found[0][8].from, [from(4, 0, 70, 0), content(4, DataOrigin::Unknown)]);
    assert_eq!(found[0][12].from, [content(8, DataOrigin::Unknown)], "beyond the end of the new file");
}

/// At its next opening the file is shorter or absent, because other means than MPI-IO truncated or removed it.
#[test]
fn data_that_was_removed_between_openings_has_no_origin() {
    let write = |begin, offset, bytes| data(Function::WriteAt, begin, begin + 5, offset, bytes);
    let read = |handle, begin| Call { handle: Some(handle), ..data(Function::ReadAt, begin, begin + 5, 0, 8) };
    let again = |begin, comm, number| Call { handle: Some(2), ..opened(begin, begin + 5, comm, number) };
    let close = || simple(Function::Close, 30, 35);
    let content = |bytes, content| OriginRange { bytes, origin: content };
    let of = |number: i64, is_closed: bool| {
        let mut program = vec![opened(0, 5, 0, 0), write(10, 0, 8), again(50, 1, number), write(60, 6, 1)];
        program[3].handle = Some(2);
        if is_closed {
            program.insert(2, close());
        }
        program.push(read(2, 70));
        let rank_1 = vec![opened(0, 5, 0, 0), simple(Function::Close, 30, 35)];
        merged(&[program, rank_1], &[vec![0, 1], vec![0]], |_| {}, &MergeOptions::default()).1[0].pop().unwrap().from
    };
    let (old, unknown) = (|bytes, at| from(bytes, 0, 10, at), |bytes| content(bytes, DataOrigin::Unknown));
    let new = || from(1, 0, 60, 0);
    assert_eq!(of(8, true), [old(6, 0), new(), old(1, 7)]);
    assert_eq!(of(3, true), [old(3, 0), unknown(3), new(), unknown(1)]);
    assert_eq!(of(3, false), [old(3, 0), unknown(3), new(), unknown(1)]);
    assert_eq!(of(-1, true), [content(6, DataOrigin::Hole), new(), unknown(1)], "the last byte is beyond its end");
    assert_eq!(of(-1, false), [unknown(6), new(), unknown(1)], "the old file remains open");
    // A write under way has not made it that long yet.
    let programs = [
        vec![opened(0, 5, 0, 0), again(50, 1, 0), read(2, 100)],
        vec![opened(0, 5, 0, 0), data(Function::WriteAt, 10, 60, 0, 8)],
    ];
    let found = merged(&programs, &[vec![0, 1], vec![0]], |_| {}, &MergeOptions::default()).1;
    assert_eq!(found[0][2].from, [from(8, 1, 10, 0)]);
}

/// The content of the rest is unknown: it may be the old data, or part of the write.
#[test]
fn the_rest_of_a_short_nonblocking_write_has_no_origin() {
    let short = |moved: u64, from_offset: i64| {
        let mut begin = data(Function::IwriteAt, 10, 11, 4, 8);
        (begin.bytes, begin.request) = (None, Some(7));
        let mut wait = Call { handle: None, requests: vec![7], ..simple(Function::Wait, 20, 22) };
        wait.completions = vec![Completion { request: 7, bytes: Some(moved), error: None }];
        let read = data(Function::ReadAt, 30, 31, from_offset, 8);
        merged(&[vec![opened(0, 9, 0, 20), begin, wait, read]], &[vec![0]], |_| {}, &MergeOptions::default()).1[0][3]
            .from
            .clone()
    };
    let unknown = |bytes| OriginRange { bytes, origin: DataOrigin::Unknown };
    let file = |bytes| OriginRange { bytes, origin: DataOrigin::File };
    assert_eq!(short(8, 4), [from(8, 0, 10, 0)]);
    assert_eq!(short(5, 4), [from(5, 0, 10, 0), unknown(3)]);
    assert_eq!(short(5, 9), [unknown(3), file(5)]);
    assert_eq!(short(0, 4), [unknown(8)]);
}

/// The first process that finds the file missing determines the time; a file that is opened again, deleted by a call or used by several
/// communicators has no removal time.
#[test]
fn a_file_that_the_program_removed_has_an_end() {
    let open = |begin_ns: u64, name: &str, comm: u32| {
        let call = opened(begin_ns, begin_ns + 1, 0, -1);
        Event::Call(Box::new(Call {
            handle: Some(begin_ns as u32),
            name: Some(name.to_owned()),
            comm: Some(comm),
            ..call
        }))
    };
    let gone = |path: &str| Event::Removed { path: path.to_owned() };
    let ends = |ranks: [Vec<Event>; 2]| {
        let directory = tempfile::tempdir().unwrap();
        for (rank, events) in (0..).zip(ranks) {
            let mut recorder = FixtureRecorder::new(directory.path(), &head(rank, 2, "MPICH 4", 100)).unwrap();
            for (id, ranks) in (0..).zip([vec![0, 1], vec![rank]]) {
                recorder.event(&Event::Comm { id, ranks }).unwrap();
            }
            events.iter().for_each(|event| recorder.event(event).unwrap());
            recorder.finish().unwrap();
        }
        let out = directory.path().join("all.csv");
        merge(directory.path(), &out, &MergeOptions::default()).unwrap();
        let (head, _) = text::read_all_ranks(&out).unwrap();
        head.files.iter().find(|file| file.path == "f").unwrap().removed_ns
    };
    let two =
        |first: Vec<Event>| ends([first, vec![open(100, "f", 0), open(400, "g", 0), gone("ufs:f"), open(500, "h", 0)]]);
    assert_eq!(two(vec![open(100, "ufs:f", 0), gone("f"), open(300, "g", 0), open(400, "h", 0)]), Some(200));
    assert_eq!(two(vec![open(100, "f", 0)]), Some(400), "seen by one alone");
    assert_eq!(two(vec![open(100, "f", 0), gone("f"), open(300, "g", 0), open(400, "f", 0)]), None, "opened again");
    assert_eq!(two(vec![open(100, "f", 1), gone("f"), open(300, "g", 0)]), None, "each for itself");
    let delete = Call { handle: None, name: Some("f".into()), ..simple(Function::Delete, 200, 202) };
    assert_eq!(
        two(vec![open(100, "f", 0), Event::Call(Box::new(delete)), gone("f"), open(300, "g", 0)]),
        None,
        "by a call"
    );
}

/// The type is set if all processes agree, and empty if they differ or if none reported one.
#[test]
fn files_have_the_kind_of_file_system_that_was_seen() {
    let directory = tempfile::tempdir().unwrap();
    for (rank, kind) in [(0, "xfs"), (1, "nfs4")] {
        let mut recorder = FixtureRecorder::new(directory.path(), &head(rank, 2, "MPICH 4", 100)).unwrap();
        recorder.event(&Event::Comm { id: 0, ranks: vec![rank] }).unwrap();
        for (id, (path, fs_type)) in (0..).zip([("f", "ext4"), ("/data/g", kind)]) {
            let (path, fs_type) = (path.to_owned(), fs_type.to_owned());
            recorder.event(&Event::Storage { id, path, fs_type }).unwrap();
        }
        for (number, name) in [(1, "ufs:f"), (2, "/data/g"), (3, "/data/h")] {
            let mut open = opened(number * 10, number * 10 + 1, 0, -1);
            (open.handle, open.name) = (Some(number as u32), Some(name.to_owned()));
            recorder.event(&Event::Call(Box::new(open))).unwrap();
        }
        recorder.finish().unwrap();
    }
    let out = directory.path().join("all.csv");
    merge(directory.path(), &out, &MergeOptions::default()).unwrap();
    let (head, _) = text::read_all_ranks(&out).unwrap();
    let kinds: Vec<_> = head.files.iter().map(|file| (file.path.as_str(), file.fs_type.as_str())).collect();
    assert_eq!(kinds, [("f", "ext4"), ("/data/g", ""), ("/data/h", "")]);
}

#[test]
fn ranks_that_are_missing_or_cut_are_named_and_make_origins_unknown() {
    let programs = || {
        [
            vec![opened(0, 9, 0, 0), data(Function::WriteAt, 20, 25, 0, 4), data(Function::ReadAt, 50, 55, 0, 4)],
            vec![opened(0, 9, 0, 0), data(Function::WriteAt, 20, 25, 4, 4)],
        ]
    };
    let (head, found, remarks) = merged(
        &programs(),
        &[vec![0, 1]],
        |at| std::fs::remove_file(at.join("rank-1.beff")).unwrap(),
        &MergeOptions::default(),
    );
    assert_eq!(remarks, ["rank 1 is missing: it has no file"]);
    assert_eq!(
        (head.processes.len(), head.processes[1].calls, head.processes[1].end),
        (2, 0, RecordingStatus::Truncated)
    );
    assert_eq!(found[0][2].from, [OriginRange { bytes: 4, origin: DataOrigin::Unknown }]);

    let cut = |at: &Path| {
        let path = at.join("rank-1.beff");
        let mut bytes = std::fs::read(&path).unwrap();
        bytes.extend_from_slice(&[7; 100]);
        std::fs::write(path, bytes).unwrap();
    };
    let (head, found, remarks) = merged(&programs(), &[vec![0, 1]], cut, &MergeOptions::default());
    assert_eq!(remarks, ["the recording of rank 1 ends without MPI_Finalize, its last calls may be missing"]);
    assert_eq!((head.processes[1].calls, head.processes[1].end), (2, RecordingStatus::Truncated));
    assert_eq!(found[0][2].from, [OriginRange { bytes: 4, origin: DataOrigin::Unknown }]);
}

#[test]
fn clocks_of_hosts_are_brought_together() {
    // The clock of rank 1 is late by 1000 ns at the begin and by 1100 ns at the end.
    let other = |at: &Path| {
        let mut second = head(1, 2, "MPICH", 1000);
        second.clock_offset_ns = [1000, 1100];
        let mut recorder = FixtureRecorder::new(at, &second).unwrap();
        recorder.event(&Event::Type { id: 0, datatype: types().remove(0) }).unwrap();
        recorder.event(&Event::Comm { id: 0, ranks: vec![0, 1] }).unwrap();
        for call in [opened(0, 10, 0, 0), data(Function::WriteAt, 500, 600, 0, 4)] {
            recorder.event(&Event::Call(Box::new(call))).unwrap();
        }
        recorder.finish().unwrap();
    };
    let programs = [vec![opened(1000, 1010, 0, 0)], vec![]];
    let (_, found, _) = merged(&programs, &[vec![0, 1]], other, &MergeOptions::default());
    let times: Vec<_> = found[1].iter().map(|call| (call.begin_ns, call.end_ns)).collect();
    assert_eq!(times, [(0, 11), (550, 660)]);
    assert_eq!(found[0][0].begin_ns, 0);
}

#[test]
fn directories_without_a_recording_are_refused() {
    let directory = tempfile::tempdir().unwrap();
    let out = directory.path().join("out.csv");
    let refusal = || merge(directory.path(), &out, &MergeOptions::default()).unwrap_err().to_string();
    assert!(refusal().contains("no file of a process"), "{}", refusal());
    std::fs::write(directory.path().join("rank-0.beff"), "nothing").unwrap();
    assert!(refusal().contains("rank-0.beff"), "{}", refusal());
    for (name, ranks) in [(0, 2), (1, 3)] {
        FixtureRecorder::new(directory.path(), &head(name, ranks, "", 1)).unwrap().finish().unwrap();
    }
    assert!(refusal().contains("more than one recording"), "{}", refusal());
    assert!(!out.exists());
}

#[test]
fn existing_files_are_not_overwritten() {
    let directory = tempfile::tempdir().unwrap();
    FixtureRecorder::new(directory.path(), &head(0, 1, "", 1)).unwrap().finish().unwrap();
    let beside = tempfile::tempdir().unwrap();
    let (file, link) = (beside.path().join("a.csv"), beside.path().join("b.csv.zst"));
    std::fs::write(&file, "precious").unwrap();
    std::os::unix::fs::symlink("nowhere", &link).unwrap();
    for out in [&file, &link] {
        let error = merge(directory.path(), out, &MergeOptions::default()).unwrap_err();
        assert!(matches!(&error, MergeError::Exists(path) if path == out), "{error}");
    }
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "precious");
    assert_eq!(std::fs::read_link(&link).unwrap().to_str(), Some("nowhere"));
    let out = beside.path().join("c.csv");
    merge(directory.path(), &out, &MergeOptions::default()).unwrap();
    std::fs::write(beside.path().join("new"), "").unwrap();
    let mode = |name: &str| std::fs::metadata(beside.path().join(name)).unwrap().permissions();
    assert_eq!(mode("c.csv"), mode("new"), "as of any new file");
    assert_eq!(std::fs::read_dir(beside.path()).unwrap().count(), 4, "nothing else is left");
}
