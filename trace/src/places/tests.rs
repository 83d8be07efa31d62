//! One process followed through its calls.
use crate::{
    Access, Amode, Call, Completion, Direction, ErrorClass, Extent, Function, Layouts, Placed, Tracker, Type, View,
    Whence,
};

fn types() -> Vec<Type> {
    vec![
        Type::Named { name: "BYTE".to_owned(), size_bytes: 1, extent_bytes: 1 },
        Type::Named { name: "INT".to_owned(), size_bytes: 4, extent_bytes: 4 },
        // 8 bytes of every 16.
        Type::Vector { count: 2, block: 2, stride: 4, of: 1 },
        Type::Resized { lower_bound_bytes: 0, extent_bytes: 32, of: 2 },
        Type::Contiguous { count: 0, of: 0 },
    ]
}

fn call(function: Function) -> Call {
    let mut call = Call::new(function, 0, 1);
    call.handle = Some(1);
    call
}

fn open(tracker: &mut Tracker<'_>, amode: u16, size: i64) {
    let mut open = call(Function::Open);
    (open.file, open.amode, open.number) = (Some(5), Some(Amode(amode)), Some(size));
    assert_eq!(tracker.place(&open), Placed::Nothing);
}

fn view(tracker: &mut Tracker<'_>, displacement: i64, etype: u32, filetype: u32) {
    let mut set = call(Function::SetView);
    (set.offset, set.etype, set.filetype) = (Some(displacement), Some(etype), Some(filetype));
    assert_eq!(tracker.place(&set), Placed::Nothing);
}

fn data(function: Function, offset: Option<i64>, count: i64, datatype: u32, bytes: Option<u64>) -> Call {
    let mut call = call(function);
    (call.offset, call.count, call.datatype, call.bytes) = (offset, Some(count), Some(datatype), bytes);
    call
}

fn access(placed: Placed) -> Access {
    match placed {
        Placed::Data(access) | Placed::Ends(access) => access,
        other => panic!("{other:?}"),
    }
}

fn at(tracker: &mut Tracker<'_>, call: &Call) -> u64 {
    access(tracker.place(call)).first_byte
}

fn seek(tracker: &mut Tracker<'_>, whence: Whence, offset: i64) {
    let mut seek = call(Function::Seek);
    (seek.whence, seek.offset) = (Some(whence), Some(offset));
    tracker.place(&seek);
}

#[test]
fn offsets_count_in_etypes_of_the_view() {
    let layouts = Layouts::new(&types()).unwrap();
    let mut tracker = Tracker::new(&layouts);
    open(&mut tracker, 2, 0);
    view(&mut tracker, 100, 1, 3);
    let found = access(tracker.place(&data(Function::WriteAt, Some(3), 3, 1, Some(12))));
    assert_eq!(
        (found.file, found.direction, found.first_byte, found.bytes, found.settled),
        (Some(5), Direction::Write, 12, 12, true)
    );
    assert_eq!(found.view, View { displacement_bytes: 100, filetype: Some(3) });
    let extents: Vec<Extent> = found.extents(&layouts).collect();
    assert_eq!(extents, [Extent { at: 120, bytes: 4 }, Extent { at: 132, bytes: 8 }]);
    assert!(found.hull(&layouts).start <= 120 && found.hull(&layouts).end >= 140);
    let memory: Vec<Extent> =
        access(tracker.place(&data(Function::ReadAt, Some(0), 1, 2, Some(16)))).memory(&layouts, 4, 8).collect();
    assert_eq!(memory, [Extent { at: 4, bytes: 4 }, Extent { at: 16, bytes: 4 }]);
}

#[test]
fn the_individual_pointer_follows_accesses_and_seeks() {
    for (library, after_short) in [("MPICH", 120), ("Open MPI", 140)] {
        let layouts = Layouts::of_library(&types(), library).unwrap();
        let mut tracker = Tracker::new(&layouts);
        open(&mut tracker, 2, 0);
        let read = |bytes| data(Function::Read, None, 10, 1, Some(bytes));
        assert_eq!(at(&mut tracker, &read(40)), 0);
        seek(&mut tracker, Whence::Set, 90);
        seek(&mut tracker, Whence::Current, 10);
        assert_eq!(at(&mut tracker, &read(20)), 100);
        assert_eq!(at(&mut tracker, &read(0)), after_short);
        // What was asked for counts where the end is not seen.
        seek(&mut tracker, Whence::Set, 7);
        let mut begun = data(Function::Iread, None, 10, 1, None);
        begun.request = Some(3);
        let found = access(tracker.place(&begun));
        assert_eq!((found.first_byte, found.bytes, found.settled), (7, 40, false));
        assert_eq!(at(&mut tracker, &read(40)), 47);
        let done = tracker.completed(&Completion { request: 3, bytes: Some(8), error: None }).unwrap();
        assert_eq!((access(done).bytes, access(done).settled), (8, true));
        assert_eq!(tracker.completed(&Completion { request: 3, bytes: Some(8), error: None }), None);

        // A view sets it back.
        view(&mut tracker, 0, 1, 2);
        assert_eq!(at(&mut tracker, &data(Function::Write, None, 1, 2, Some(16))), 0);
        assert_eq!(at(&mut tracker, &data(Function::WriteAll, None, 1, 2, Some(16))), 16);
        seek(&mut tracker, Whence::Set, 5);
        assert_eq!(at(&mut tracker, &data(Function::Write, None, 1, 2, Some(16))), 20);
    }
}

#[test]
fn what_is_not_known_is_said_until_it_is_known_again() {
    let layouts = Layouts::new(&types()).unwrap();
    let mut tracker = Tracker::new(&layouts);
    let write = data(Function::Write, None, 4, 0, Some(4));
    let is_unknown = |placed: Placed| matches!(placed, Placed::Unknown { .. });
    assert!(is_unknown(tracker.place(&write)), "not open");
    open(&mut tracker, 2, 0);
    seek(&mut tracker, Whence::End, 0);
    assert!(is_unknown(tracker.place(&write)));
    let mut position = call(Function::GetPosition);
    position.number = Some(64);
    tracker.place(&position);
    assert_eq!(at(&mut tracker, &write), 64);
    let shared = tracker.place(&data(Function::WriteShared, None, 4, 0, Some(4)));
    assert!(matches!(shared, Placed::Unknown { file: Some(5), direction: Direction::Write, .. }));
    assert_eq!(at(&mut tracker, &write), 68);
    for wrong in [
        data(Function::WriteAt, Some(-1), 4, 0, None),
        data(Function::WriteAt, Some(0), -4, 0, None),
        data(Function::WriteAt, Some(0), 4, 99, None),
    ] {
        assert!(is_unknown(tracker.place(&wrong)), "{wrong:?}");
    }
    assert!(is_unknown(tracker.place(&data(Function::WriteAt, Some(i64::MAX), 2, 0, None))));
    view(&mut tracker, 0, 0, 4);
    assert!(is_unknown(tracker.place(&write)), "a view without data");
    view(&mut tracker, 8, 0, 0);
    assert_eq!(at(&mut tracker, &write), 0);
    tracker.place(&call(Function::Close));
    assert!(is_unknown(tracker.place(&write)), "closed");
    // Appending begins at the end of the file.
    open(&mut tracker, 1 << 7 | 2, 30);
    assert_eq!(at(&mut tracker, &write), 30);
}

#[test]
fn failed_calls_change_nothing() {
    let layouts = Layouts::new(&types()).unwrap();
    let mut tracker = Tracker::new(&layouts);
    open(&mut tracker, 2, 0);
    let write = data(Function::Write, None, 4, 0, Some(4));
    let mut failed = write.clone();
    failed.error = Some(ErrorClass::OTHER);
    assert_eq!(tracker.place(&failed), Placed::Nothing);
    for function in [Function::Close, Function::SetView, Function::Seek] {
        let mut failed = call(function);
        (failed.error, failed.offset, failed.whence) = (Some(ErrorClass::OTHER), Some(9), Some(Whence::Set));
        tracker.place(&failed);
    }
    assert_eq!(at(&mut tracker, &write), 0);
}

#[test]
fn split_accesses_end_with_what_they_moved() {
    for (library, next) in [("MPICH", 24), ("Open MPI", 40)] {
        let layouts = Layouts::of_library(&types(), library).unwrap();
        let mut tracker = Tracker::new(&layouts);
        open(&mut tracker, 2, 0);
        let begun = access(tracker.place(&data(Function::ReadAllBegin, None, 10, 1, None)));
        assert_eq!((begun.first_byte, begun.bytes, begun.settled), (0, 40, false));
        let mut end = call(Function::ReadAllEnd);
        end.bytes = Some(24);
        let Placed::Ends(ended) = tracker.place(&end) else { panic!("no end") };
        assert_eq!((ended.first_byte, ended.bytes, ended.settled), (0, 24, true));
        assert_eq!(at(&mut tracker, &data(Function::Read, None, 1, 0, Some(1))), next);
        assert!(matches!(tracker.place(&end), Placed::Unknown { .. }), "ended twice");
    }
}
