//! Tracking of one process through its calls.
use crate::{
    AccessTracker, Amode, ByteRange, Call, CallEffect, Completion, Datatype, Direction, ErrorClass, Function,
    ResolvedAccess, TrackedView, TypeLayouts, Whence,
};

fn types() -> Vec<Datatype> {
    vec![
        Datatype::Named { name: "BYTE".to_owned(), size_bytes: 1, extent_bytes: 1 },
        Datatype::Named { name: "INT".to_owned(), size_bytes: 4, extent_bytes: 4 },
        // 8 bytes of every 16.
        Datatype::Vector { count: 2, block: 2, stride: 4, of: 1 },
        Datatype::Resized { lower_bound_bytes: 0, extent_bytes: 32, of: 2 },
        Datatype::Contiguous { count: 0, of: 0 },
    ]
}

fn call(function: Function) -> Call {
    let mut call = Call::new(function, 0, 1);
    call.handle = Some(1);
    call
}

fn open(tracker: &mut AccessTracker<'_>, amode: u16, size: i64) {
    let mut open = call(Function::Open);
    (open.file, open.amode, open.number) = (Some(5), Some(Amode(amode)), Some(size));
    assert_eq!(tracker.resolve(&open), CallEffect::NoAccess);
}

fn view(tracker: &mut AccessTracker<'_>, displacement: i64, etype: u32, filetype: u32) {
    let mut set = call(Function::SetView);
    (set.offset, set.etype, set.filetype) = (Some(displacement), Some(etype), Some(filetype));
    assert_eq!(tracker.resolve(&set), CallEffect::NoAccess);
}

fn data(function: Function, offset: Option<i64>, count: i64, datatype: u32, bytes: Option<u64>) -> Call {
    let mut call = call(function);
    (call.offset, call.count, call.datatype, call.bytes) = (offset, Some(count), Some(datatype), bytes);
    call
}

fn access(placed: CallEffect) -> ResolvedAccess {
    match placed {
        CallEffect::Access(access) | CallEffect::SplitEnd(access) => access,
        other => panic!("{other:?}"),
    }
}

fn at(tracker: &mut AccessTracker<'_>, call: &Call) -> u64 {
    access(tracker.resolve(call)).first_byte
}

fn seek(tracker: &mut AccessTracker<'_>, whence: Whence, offset: i64) {
    let mut seek = call(Function::Seek);
    (seek.whence, seek.offset) = (Some(whence), Some(offset));
    tracker.resolve(&seek);
}

#[test]
fn offsets_count_in_etypes_of_the_view() {
    let layouts = TypeLayouts::new(&types()).unwrap();
    let mut tracker = AccessTracker::new(&layouts);
    open(&mut tracker, 2, 0);
    view(&mut tracker, 100, 1, 3);
    let found = access(tracker.resolve(&data(Function::WriteAt, Some(3), 3, 1, Some(12))));
    assert_eq!(
        (found.file, found.direction, found.first_byte, found.bytes, found.is_complete),
        (Some(5), Direction::Write, 12, 12, true)
    );
    assert_eq!(found.view, TrackedView { displacement_bytes: 100, filetype: Some(3) });
    let extents: Vec<ByteRange> = found.file_ranges(&layouts).collect();
    assert_eq!(extents, [ByteRange { at: 120, bytes: 4 }, ByteRange { at: 132, bytes: 8 }]);
    assert!(found.hull(&layouts).start <= 120 && found.hull(&layouts).end >= 140);
    let memory: Vec<ByteRange> = access(tracker.resolve(&data(Function::ReadAt, Some(0), 1, 2, Some(16))))
        .memory_ranges(&layouts, 4, 8)
        .collect();
    assert_eq!(memory, [ByteRange { at: 4, bytes: 4 }, ByteRange { at: 16, bytes: 4 }]);
}

#[test]
fn the_individual_pointer_follows_accesses_and_seeks() {
    for (library, after_short) in [("MPICH", 120), ("Open MPI", 140)] {
        let layouts = TypeLayouts::for_library(&types(), library).unwrap();
        let mut tracker = AccessTracker::new(&layouts);
        open(&mut tracker, 2, 0);
        let read = |bytes| data(Function::Read, None, 10, 1, Some(bytes));
        assert_eq!(at(&mut tracker, &read(40)), 0);
        seek(&mut tracker, Whence::Set, 90);
        seek(&mut tracker, Whence::Current, 10);
        assert_eq!(at(&mut tracker, &read(20)), 100);
        assert_eq!(at(&mut tracker, &read(0)), after_short);
        // Requested bytes count where the end is not seen.
        seek(&mut tracker, Whence::Set, 7);
        let mut begun = data(Function::Iread, None, 10, 1, None);
        begun.request = Some(3);
        let found = access(tracker.resolve(&begun));
        assert_eq!((found.first_byte, found.bytes, found.is_complete), (7, 40, false));
        assert_eq!(at(&mut tracker, &read(40)), 47);
        let done = tracker.complete(&Completion { request: 3, bytes: Some(8), error: None }).unwrap();
        assert_eq!((access(done).bytes, access(done).is_complete), (8, true));
        assert_eq!(tracker.complete(&Completion { request: 3, bytes: Some(8), error: None }), None);

        // A view resets the pointer.
        view(&mut tracker, 0, 1, 2);
        assert_eq!(at(&mut tracker, &data(Function::Write, None, 1, 2, Some(16))), 0);
        assert_eq!(at(&mut tracker, &data(Function::WriteAll, None, 1, 2, Some(16))), 16);
        seek(&mut tracker, Whence::Set, 5);
        assert_eq!(at(&mut tracker, &data(Function::Write, None, 1, 2, Some(16))), 20);
    }
}

#[test]
fn unknown_positions_stay_unknown_until_set_again() {
    let layouts = TypeLayouts::new(&types()).unwrap();
    let mut tracker = AccessTracker::new(&layouts);
    let write = data(Function::Write, None, 4, 0, Some(4));
    let is_unknown = |placed: CallEffect| matches!(placed, CallEffect::Unknown { .. });
    assert!(is_unknown(tracker.resolve(&write)), "not open");
    open(&mut tracker, 2, 0);
    seek(&mut tracker, Whence::End, 0);
    assert!(is_unknown(tracker.resolve(&write)));
    let mut position = call(Function::GetPosition);
    position.number = Some(64);
    tracker.resolve(&position);
    assert_eq!(at(&mut tracker, &write), 64);
    let shared = tracker.resolve(&data(Function::WriteShared, None, 4, 0, Some(4)));
    assert!(matches!(shared, CallEffect::Unknown { file: Some(5), direction: Direction::Write, .. }));
    assert_eq!(at(&mut tracker, &write), 68);
    for wrong in [
        data(Function::WriteAt, Some(-1), 4, 0, None),
        data(Function::WriteAt, Some(0), -4, 0, None),
        data(Function::WriteAt, Some(0), 4, 99, None),
    ] {
        assert!(is_unknown(tracker.resolve(&wrong)), "{wrong:?}");
    }
    assert!(is_unknown(tracker.resolve(&data(Function::WriteAt, Some(i64::MAX), 2, 0, None))));
    view(&mut tracker, 0, 0, 4);
    assert!(is_unknown(tracker.resolve(&write)), "a view without data");
    view(&mut tracker, 8, 0, 0);
    assert_eq!(at(&mut tracker, &write), 0);
    tracker.resolve(&call(Function::Close));
    assert!(is_unknown(tracker.resolve(&write)), "closed");
    // Append mode begins at the end of the file.
    open(&mut tracker, 1 << 7 | 2, 30);
    assert_eq!(at(&mut tracker, &write), 30);
}

#[test]
fn failed_calls_change_nothing() {
    let layouts = TypeLayouts::new(&types()).unwrap();
    let mut tracker = AccessTracker::new(&layouts);
    open(&mut tracker, 2, 0);
    let write = data(Function::Write, None, 4, 0, Some(4));
    let mut failed = write.clone();
    failed.error = Some(ErrorClass::OTHER);
    assert_eq!(tracker.resolve(&failed), CallEffect::NoAccess);
    for function in [Function::Close, Function::SetView, Function::Seek] {
        let mut failed = call(function);
        (failed.error, failed.offset, failed.whence) = (Some(ErrorClass::OTHER), Some(9), Some(Whence::Set));
        tracker.resolve(&failed);
    }
    assert_eq!(at(&mut tracker, &write), 0);
}

#[test]
fn split_accesses_end_with_the_moved_bytes() {
    for (library, next) in [("MPICH", 24), ("Open MPI", 40)] {
        let layouts = TypeLayouts::for_library(&types(), library).unwrap();
        let mut tracker = AccessTracker::new(&layouts);
        open(&mut tracker, 2, 0);
        let begun = access(tracker.resolve(&data(Function::ReadAllBegin, None, 10, 1, None)));
        assert_eq!((begun.first_byte, begun.bytes, begun.is_complete), (0, 40, false));
        let mut end = call(Function::ReadAllEnd);
        end.bytes = Some(24);
        let CallEffect::SplitEnd(ended) = tracker.resolve(&end) else { panic!("no end") };
        assert_eq!((ended.first_byte, ended.bytes, ended.is_complete), (0, 24, true));
        assert_eq!(at(&mut tracker, &data(Function::Read, None, 1, 0, Some(1))), next);
        assert!(matches!(tracker.resolve(&end), CallEffect::Unknown { .. }), "ended twice");
    }
}

#[test]
fn the_end_of_the_file_is_found_in_the_view() {
    let layouts = TypeLayouts::new(&types()).unwrap();
    let mut tracker = AccessTracker::new(&layouts);
    open(&mut tracker, 2, 0);
    let mut end = call(Function::Seek);
    (end.whence, end.offset) = (Some(Whence::End), Some(-1));
    assert_eq!(tracker.end_position(&end, 100), Some(99));
    // 16 bytes of data in 32: at 0 and at 16, 8 bytes each.
    view(&mut tracker, 10, 1, 3);
    for (size, etypes) in [(0, 0), (10, 0), (11, 1), (18, 2), (26, 2), (27, 3), (42, 4), (43, 5), (74, 8)] {
        assert_eq!(tracker.end_position(&end, size), Some(etypes - 1), "{size}");
    }
    end.number = Some(7);
    tracker.resolve(&end);
    assert_eq!(at(&mut tracker, &data(Function::Write, None, 1, 1, Some(4))), 28);
    end.number = None;
    tracker.resolve(&end);
    assert!(matches!(tracker.resolve(&data(Function::Write, None, 1, 1, Some(4))), CallEffect::Unknown { .. }));
    assert_eq!(tracker.end_position(&call(Function::Seek), 10), None);
}
