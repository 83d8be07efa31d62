//! Order of calls that touch no common bytes, but depend on names, sizes or the shared file pointer.

use super::merged;
use crate::merge::MergeOptions;
use crate::names::Whence;
use crate::{Amode, Call, CallId, Completion, DataOrigin, ErrorClass, Function};

const OWN: u32 = 1;

fn on_file(function: Function, begin_ns: u64) -> Call {
    Call { handle: Some(1), ..Call::new(function, begin_ns, begin_ns + 5) }
}

fn open_at(begin_ns: u64, comm: u32, size_bytes: i64) -> Call {
    let (name, amode) = (Some("f".to_owned()), Some(Amode(2)));
    Call { name, amode, comm: Some(comm), number: Some(size_bytes), ..on_file(Function::Open, begin_ns) }
}

fn delete(begin_ns: u64) -> Call {
    Call { handle: None, name: Some("f".to_owned()), ..on_file(Function::Delete, begin_ns) }
}

fn failed(call: Call) -> Call {
    Call { error: ErrorClass::from_name("MPI_ERR_NO_SUCH_FILE"), ..call }
}

fn access(function: Function, begin_ns: u64, offset: i64, [asked, moved]: [u64; 2]) -> Call {
    Call {
        offset: Some(offset),
        count: Some(asked as i64),
        datatype: Some(0),
        bytes: Some(moved),
        ..on_file(function, begin_ns)
    }
}

fn write(begin_ns: u64, offset: i64, bytes: u64) -> Call {
    access(Function::WriteAt, begin_ns, offset, [bytes; 2])
}

fn shared(function: Function, begin_ns: u64) -> Call {
    Call { offset: None, ..access(function, begin_ns, 0, [4; 2]) }
}

/// What the calls of each rank wait for, as (rank, begin). Comms: 0 world, 1 + n the rank n.
fn waits(programs: &[Vec<Call>]) -> Vec<Vec<Vec<(u32, u64)>>> {
    let ranks = programs.len() as u32;
    let comms: Vec<Vec<u32>> = std::iter::once((0..ranks).collect()).chain((0..ranks).map(|rank| vec![rank])).collect();
    let (_, found, _) = merged(programs, &comms, |_| {}, &MergeOptions::default());
    let zero = programs.iter().flatten().map(|call| call.begin_ns).min().unwrap_or(0);
    let of_call = |call: &Call| call.after.iter().map(|CallId { rank, begin_ns }| (*rank, begin_ns + zero)).collect();
    found.iter().map(|calls| calls.iter().map(of_call).collect()).collect()
}

/// Calls of two ranks that have the file open together, from 10 on: what the last call of rank 1 waits for.
fn waits_of_last(rank_0: Vec<Call>, rank_1: Vec<Call>) -> Vec<(u32, u64)> {
    let with_open = |calls: Vec<Call>| std::iter::once(open_at(0, 0, -1)).chain(calls).collect::<Vec<_>>();
    waits(&[with_open(rank_0), with_open(rank_1)])[1].last().cloned().unwrap_or_default()
}

#[test]
fn calls_on_a_name_wait_for_earlier_ones_that_failed_or_succeeded() {
    let opening = || open_at(100, OWN + 1, -1);
    for first in [failed(delete(10)), failed(open_at(10, OWN, -1)), delete(10), open_at(10, OWN, 0)] {
        for next in [opening(), failed(opening()), delete(100), failed(delete(100))] {
            let of_both = waits(&[vec![first.clone()], vec![next]]);
            assert_eq!(of_both[1], [vec![(0, 10)]], "{:?}", first.function);
        }
    }
}

#[test]
fn calls_that_extend_a_file_wait_for_those_that_found_it_shorter() {
    let size = |bytes| Call { number: Some(bytes), ..on_file(Function::GetSize, 20) };
    let to_end = Call { offset: Some(0), whence: Some(Whence::End), ..on_file(Function::Seek, 20) };
    let short = |asked, moved| access(Function::ReadAt, 20, 0, [asked, moved]);
    let start = || write(10, 0, 100);
    let after = |first: &Call, last: Call| waits_of_last(vec![start(), first.clone()], vec![last]);
    let extension = || write(100, 200, 10);
    for first in [size(100), to_end.clone(), short(150, 100), access(Function::ReadAt, 20, 100, [10, 0])] {
        assert_eq!(after(&first, extension()), [(0, 20)], "{first:?}");
        let larger = Call { offset: Some(500), ..on_file(Function::SetSize, 100) };
        assert_eq!(after(&first, larger), [(0, 20)], "{first:?}");
    }
    assert_eq!(after(&size(100), write(100, 50, 50)), [(0, 10)], "the size stays");
    assert_eq!(after(&short(50, 50), extension()), [], "a complete read");
    let iread = Call { bytes: None, request: Some(7), ..access(Function::IreadAt, 20, 0, [150, 100]) };
    let done = Completion { request: 7, bytes: Some(100), error: None };
    let wait = Call { handle: None, requests: vec![7], completions: vec![done], ..on_file(Function::Wait, 30) };
    assert_eq!(waits_of_last(vec![start(), iread, wait], vec![extension()]), [(0, 30)]);
}

#[test]
fn calls_that_depend_on_the_size_wait_for_those_that_determined_it() {
    let hole = |begin_ns| access(Function::ReadAt, begin_ns, 50, [10; 2]);
    let after = |last: Call| waits_of_last(vec![write(10, 0, 10), write(20, 100, 10), write(30, 0, 10)], vec![last]);
    assert_eq!(after(hole(100)), [(0, 20)], "bytes that no call wrote, because of the write beyond");
    assert_eq!(after(access(Function::ReadAt, 100, 105, [20, 5])), [(0, 20)]);
    assert_eq!(after(access(Function::ReadAt, 100, 0, [10; 2])), [(0, 30)]);
    assert_eq!(after(Call { number: Some(110), ..on_file(Function::GetSize, 100) }), [(0, 30)]);
    assert_eq!(after(Call { offset: Some(5), ..on_file(Function::SetSize, 100) }), [(0, 30)]);
    let append = Call { handle: Some(2), ..open_at(100, OWN + 1, 110) };
    assert_eq!(after(append), [(0, 30)]);
}

#[test]
fn calls_at_the_shared_file_pointer_keep_their_order() {
    let to = |begin_ns| Call { offset: Some(0), whence: Some(Whence::Set), ..on_file(Function::SeekShared, begin_ns) };
    let query = |begin_ns| Call { number: Some(4), ..on_file(Function::GetPositionShared, begin_ns) };
    let view =
        |begin_ns| Call { offset: Some(0), etype: Some(0), filetype: Some(0), ..on_file(Function::SetView, begin_ns) };
    use Function::{IreadShared, IwriteShared, ReadOrdered, ReadShared, WriteOrdered, WriteOrderedBegin, WriteShared};
    for last in [shared(ReadShared, 100), shared(WriteShared, 100), to(100), query(100), view(100)] {
        assert_eq!(waits_of_last(vec![shared(WriteShared, 20)], vec![last]), [(0, 20)]);
    }
    let begin = |function| Call { bytes: None, ..shared(function, 100) };
    for last in [shared(ReadOrdered, 100), begin(WriteOrderedBegin), begin(IreadShared)] {
        assert_eq!(waits_of_last(vec![shared(ReadShared, 20)], vec![last]), [(0, 20)]);
    }
    assert_eq!(waits_of_last(vec![query(20)], vec![shared(WriteShared, 100)]), [(0, 20)]);
    assert_eq!(waits_of_last(vec![query(20)], vec![query(100)]), []);
    let begun = Call { bytes: None, request: Some(7), ..shared(IwriteShared, 20) };
    assert_eq!(waits_of_last(vec![begun], vec![query(100)]), [(0, 20)], "its begin has moved the pointer");
    // Collective calls of one communicator are ordered by the library.
    assert_eq!(waits_of_last(vec![shared(WriteOrdered, 20)], vec![shared(WriteOrdered, 20), to(100)]), []);
    assert_eq!(waits_of_last(vec![to(20)], vec![to(21), query(100)]), [(0, 20)]);
    assert_eq!(waits_of_last(vec![view(20)], vec![view(20)]), [], "no shared pointer, no order");
}

/// Otherwise each call would wait for one of every other rank.
#[test]
fn an_order_that_others_imply_is_not_recorded() {
    let rank = |n: u64| {
        vec![open_at(n, 0, -1), shared(Function::WriteShared, 100 * n + 100), shared(Function::WriteShared, 500)]
    };
    let programs: Vec<_> = (0..3).map(rank).collect();
    let found = waits(&programs);
    let of_first: Vec<_> = found.iter().map(|calls| calls[1].clone()).collect();
    assert_eq!(of_first, [vec![], vec![(0, 100)], vec![(1, 200)]]);
}

/// The library that recorded did not synchronize the ranks in a collective call, another one does: rank 1 began it after rank 0 had left it
/// and written.
#[test]
fn no_call_waits_for_what_follows_its_own_collective_call() {
    let collective = |function, begin_ns| access(function, begin_ns, 0, [4; 2]);
    let rank_0 = vec![
        open_at(0, 0, -1),
        collective(Function::WriteAtAll, 20),
        collective(Function::ReadAtAll, 40),
        write(60, 0, 4),
        access(Function::ReadAt, 300, 0, [4; 2]),
    ];
    let rank_1 = vec![
        open_at(1, 0, -1),
        collective(Function::WriteAtAll, 100),
        collective(Function::ReadAtAll, 120),
        access(Function::ReadAt, 200, 0, [4; 2]),
    ];
    let programs = [rank_0, rank_1];
    let comms = vec![vec![0, 1]];
    let (_, found, _) = merged(&programs, &comms, |_| {}, &MergeOptions::default());
    assert!(found[1][1].after.is_empty(), "write_at_all: {:?}", found[1][1].after);
    assert!(found[1][2].after.is_empty(), "read_at_all: {:?}", found[1][2].after);
    let is_unknown = |call: &Call| call.from.iter().all(|part| part.origin == DataOrigin::Unknown);
    assert!(found[1][2..].iter().chain(&found[0][4..]).all(is_unknown), "either write may be the last one: {found:?}");
}
