//! What the driver asks of MPI, from open to close. The library is `beff_fake_mpi`.

use beff_fake_mpi::{error_code, name_memory, pose, script, set_file_bytes, take_log, Answer};
use beff_ffi::Universe;

use crate::error::Cause;
use crate::{
    driver, AccessKind, BackendError, Batch, Batches, CallForm, CallPlace, CallStyle, Direction, DriverOptions,
    FilePath, Latency, OpenFile, OpenMode, OpenRequest, Parts, Pattern, Ring, Unit,
};

const FILE: &str = "f";

fn pairs(all: &[(&str, &str)]) -> Vec<(String, String)> {
    all.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}

fn open(mode: OpenMode, hints: &[(&str, &str)]) -> crate::Result<Box<dyn OpenFile>> {
    let universe = Universe::init().unwrap();
    let path = FilePath::of(&std::env::temp_dir().join(FILE)).unwrap();
    let request = OpenRequest { path: &path, mode, comm: &universe.world(), hints: &pairs(hints) };
    let opened = (driver("mpiio").unwrap().make)(&DriverOptions::default()).open(&request);
    std::mem::forget(universe);
    opened
}

/// Rank 1 of 3, two chunks of 16 bytes a call; of a unit of bytes 15.
fn pattern(kind: AccessKind, place: CallPlace, style: CallStyle, unit: Unit) -> Pattern {
    let chunk_bytes = if unit == Unit::Word { 16 } else { 15 };
    let chunks_per_call = if place == CallPlace::Explicit { 1 } else { 2 };
    Pattern {
        kind,
        chunk_bytes,
        chunks_per_call,
        base_bytes: 1000 + chunk_bytes,
        stride_bytes: 3 * chunk_bytes,
        origin_bytes: 1000,
        rank: 1,
        ranks: 3,
        rank_distance_bytes: chunk_bytes,
        parts: Parts::Equal,
        form: CallForm { place, style, unit },
        stream_bytes: 48,
        max_calls: 4,
    }
}

fn ring_for(p: &Pattern) -> Ring {
    let ring = Ring::new(4096, p.call_bytes()).unwrap();
    name_memory("ring", ring.mapped());
    ring
}

fn words(log: Vec<String>) -> Vec<String> {
    let directory = format!("{}/", std::env::temp_dir().display());
    log.into_iter().map(|line| line.replace(&directory, "").replace("File_", "")).collect()
}

/// What the calls of a batch of two must be, by the standard's names.
fn calls(p: &Pattern, direction: Direction, whole: u64) -> Vec<String> {
    let CallForm { place, style, unit } = p.form;
    let verb = if direction == Direction::Write { "write" } else { "read" };
    let name = match (p.kind, place) {
        (AccessKind::Independent, CallPlace::Pointer) => "",
        (AccessKind::Independent, CallPlace::Explicit) => "_at",
        (AccessKind::Collective, CallPlace::Pointer) => "_all",
        (AccessKind::Collective, CallPlace::Explicit) => "_at_all",
        (AccessKind::SharedArrival, _) => "_shared",
        (AccessKind::SharedOrdered, _) => "_ordered",
    };
    let (bytes, element) = if unit == Unit::Word { (8, "DOUBLE") } else { (1, "BYTE") };
    let mut all = Vec::new();
    for call in 1..3 {
        let offset = (p.base_bytes + call * p.stride_bytes * p.chunks_per_call) / bytes;
        let at = if place == CallPlace::Explicit { format!("at {offset} ") } else { String::new() };
        let memory = format!("ring+{}", p.stream_bytes + call * p.call_bytes());
        let count = if call < whole { p.call_bytes() / bytes } else { 0 };
        let given = format!("{at}{count}x {element} {memory}");
        match style {
            CallStyle::Blocking => all.push(format!("{verb}{name} {given}")),
            CallStyle::Request => all.extend([format!("i{verb}{name} {given}"), "Waitall of 1".to_owned()]),
            CallStyle::Split => {
                all.extend([format!("{verb}{name}_begin {given}"), format!("{verb}{name}_end {memory}")]);
            }
        }
    }
    all
}

/// How the file must be seen.
fn view(p: &Pattern, hints: &str) -> String {
    let element = if p.form.unit == Unit::Word { "DOUBLE" } else { "BYTE" };
    let elements = p.chunk_bytes / if p.form.unit == Unit::Word { 8 } else { 1 };
    let (place, tile) = match (p.kind, p.form.place) {
        (AccessKind::SharedArrival | AccessKind::SharedOrdered, _) => (p.origin_bytes, element.to_owned()),
        (_, CallPlace::Explicit) => (0, element.to_owned()),
        _ => (p.base_bytes, format!("{elements}*{element} from 0 every {}", p.stride_bytes)),
    };
    format!("set_view from {place} of {element} in {tile} native hints {hints}")
}

fn forms() -> Vec<(AccessKind, CallPlace, CallStyle)> {
    use AccessKind::{Collective, Independent, SharedArrival, SharedOrdered};
    let mut all = Vec::new();
    for place in [CallPlace::Pointer, CallPlace::Explicit] {
        for style in [CallStyle::Blocking, CallStyle::Request, CallStyle::Split] {
            all.extend([Independent, Collective, SharedArrival, SharedOrdered].map(|kind| (kind, place, style)));
        }
    }
    all.retain(|(kind, place, style)| match kind {
        Independent => *style != CallStyle::Split,
        Collective => true,
        SharedArrival => *place == CallPlace::Pointer && *style != CallStyle::Split,
        SharedOrdered => *place == CallPlace::Pointer && *style != CallStyle::Request,
    });
    all
}

#[test]
fn every_pattern_is_the_calls_of_its_form_from_open_to_close() {
    for (kind, place, style) in forms() {
        for unit in [Unit::Word, Unit::Byte] {
            for direction in [Direction::Write, Direction::Read] {
                let p = pattern(kind, place, style, unit);
                let batch = Batch { first_call: 1, calls: 2 };
                let told = pose(1, 3, || {
                    let mut file = open(OpenMode::Update, &[("cb_nodes", "1")]).unwrap();
                    let mut ring = ring_for(&p);
                    set_file_bytes(100_000);
                    file.prepare(&p, direction, &mut ring, &pairs(&[("cb_read", "no")])).unwrap();
                    let mut latency = Latency::on();
                    let moved = match direction {
                        Direction::Write => file.write(Batches::new(batch, &mut latency), &ring),
                        Direction::Read => file.read(Batches::new(batch, &mut latency), &mut ring),
                    };
                    assert_eq!(moved.unwrap(), 2 * p.call_bytes());
                    assert_eq!(latency.histogram().map_or(0, |times| times.len()), 2, "each call is timed");
                    file.sync().unwrap();
                    assert_eq!(file.hints_in_force().unwrap(), pairs(&[("in_force", "yes")]));
                    file.close().unwrap();
                    words(take_log())
                });
                let mut expected = vec!["open f by world rdwr hints {cb_nodes=1}".to_owned(), view(&p, "{cb_read=no}")];
                let asks = direction == Direction::Read && (unit == Unit::Byte || style != CallStyle::Blocking);
                expected.extend(asks.then(|| "get_size".to_owned()));
                expected.extend(calls(&p, direction, 4));
                expected.extend(["sync", "get_info", "close"].map(str::to_owned));
                assert_eq!(told, expected, "{p:?} {direction:?}");
            }
        }
    }
}

/// A collective call beyond the end is made with nothing to move, so that the others are not left in it.
#[test]
fn what_lies_behind_the_end_of_the_file_is_not_asked_for() {
    for (kind, place, style) in forms() {
        let p = pattern(kind, place, style, Unit::Byte);
        let told = pose(1, 3, || {
            let mut file = open(OpenMode::ReadOnly, &[]).unwrap();
            let mut ring = ring_for(&p);
            // Call 1 lies within, call 2 ends one byte behind.
            let end = p.chunk_offset(3 * p.chunks_per_call - 1) + p.chunk_bytes;
            set_file_bytes(end as i64 - 1);
            file.prepare(&p, Direction::Read, &mut ring, &[]).unwrap();
            let _ = take_log();
            let error =
                file.read(Batches::new(Batch { first_call: 1, calls: 2 }, &mut Latency::off()), &mut ring).unwrap_err();
            assert_eq!((error.cause, error.offset_bytes), (Cause::Short, Some(p.chunk_offset(2 * p.chunks_per_call))));
            words(take_log())
        });
        let all = calls(&p, Direction::Read, 2);
        let made = if kind.is_collective() { all.len() } else { all.len() / 2 };
        assert_eq!(told, all[..made], "{p:?}");
    }
}

#[test]
fn a_view_is_set_unless_the_file_is_seen_like_that_already() {
    let explicit = |unit| pattern(AccessKind::Independent, CallPlace::Explicit, CallStyle::Blocking, unit);
    let pointer = pattern(AccessKind::Independent, CallPlace::Pointer, CallStyle::Blocking, Unit::Byte);
    let told = pose(1, 3, || {
        let mut file = open(OpenMode::CreateNew, &[]).unwrap();
        let mut prepare = |p: &Pattern, hints: &[(&str, &str)]| {
            let mut ring = Ring::new(4096, p.call_bytes()).unwrap();
            file.prepare(p, Direction::Write, &mut ring, &pairs(hints)).unwrap();
        };
        prepare(&explicit(Unit::Byte), &[]);
        prepare(&explicit(Unit::Byte), &[("a", "b")]);
        prepare(&explicit(Unit::Word), &[]);
        prepare(&pointer, &[]);
        prepare(&Pattern { stride_bytes: 15, ..pointer }, &[]);
        prepare(&Pattern { chunk_bytes: 0, ..pointer }, &[]);
        prepare(&explicit(Unit::Byte), &[]);
        words(take_log())
    });
    let plain = |place, element: &str, hints: &str| {
        format!("set_view from {place} of {element} in {element} native hints {hints}")
    };
    assert_eq!(
        told,
        [
            "open f by world create|rdwr|excl hints none".to_owned(),
            plain(0, "BYTE", "{a=b}"),
            plain(0, "DOUBLE", "none"),
            view(&pointer, "none"),
            plain(1015, "BYTE", "none"),
            plain(0, "BYTE", "none"),
            plain(0, "BYTE", "none"),
        ]
    );
}

#[test]
fn work_runs_under_the_calls_that_can_be_under_way() {
    let batch = Batch { first_call: 0, calls: 3 };
    for style in [CallStyle::Request, CallStyle::Split] {
        let p = pattern(AccessKind::Collective, CallPlace::Pointer, style, Unit::Word);
        let (during, after) = pose(1, 3, || {
            let mut file = open(OpenMode::CreateNew, &[]).unwrap();
            let mut ring = ring_for(&p);
            file.prepare(&p, Direction::Write, &mut ring, &[]).unwrap();
            let _ = take_log();
            let mut during = Vec::new();
            let moved = file
                .write(
                    Batches::new(batch, &mut Latency::off()).overlapping(&mut || during.push(take_log().len())),
                    &ring,
                )
                .unwrap();
            assert_eq!(moved, 3 * p.call_bytes());
            (during, take_log().len())
        });
        // All begun, one Waitall; or begin and end of each in turn.
        let expected = if style == CallStyle::Request { (vec![3], 1) } else { (vec![1, 2, 2], 1) };
        assert_eq!((during, after), expected);
    }
}

fn failing(kind: AccessKind, direction: Direction, answers: &[Answer]) -> (BackendError, usize) {
    let p = pattern(kind, CallPlace::Explicit, CallStyle::Blocking, Unit::Word);
    pose(1, 3, || {
        let mut file = open(OpenMode::Update, &[]).unwrap();
        let mut ring = ring_for(&p);
        file.prepare(&p, direction, &mut ring, &[]).unwrap();
        let _ = take_log();
        let verb = if direction == Direction::Write { "write" } else { "read" };
        let name = if kind == AccessKind::Collective { "at_all" } else { "at" };
        script(&format!("File_{verb}_{name}"), answers);
        let (batch, mut off) = (Batch { first_call: 0, calls: 4 }, Latency::off());
        let result = match direction {
            Direction::Write => file.write(Batches::new(batch, &mut off), &ring),
            Direction::Read => file.read(Batches::new(batch, &mut off), &mut ring),
        };
        (result.unwrap_err(), take_log().len())
    })
}

/// The first error is told, with its place; other ranks are in the next collective call already.
#[test]
fn errors_and_short_transfers_are_never_lost() {
    let io = Answer::Code(error_code("MPI_ERR_IO"));
    let full = Answer::Code(error_code("MPI_ERR_NO_SPACE"));
    for direction in [Direction::Write, Direction::Read] {
        for (kind, calls) in [(AccessKind::Independent, 2), (AccessKind::Collective, 4)] {
            let (error, made) = failing(kind, direction, &[Answer::Fine, io, full]);
            assert_eq!((error.cause, error.offset_bytes, made), (Cause::Io, Some(1016 + 48), calls));
            let (error, made) = failing(kind, direction, &[Answer::Fine, Answer::Bytes(8), io]);
            let told = (error.cause, error.offset_bytes, error.expected_got_bytes, made);
            assert_eq!(told, (Cause::Short, Some(1016 + 48), Some((16, 8)), calls));
            let (error, _) = failing(kind, direction, &[Answer::Fine, Answer::Fine, Answer::Fine, full]);
            assert_eq!((error.cause, error.offset_bytes), (Cause::NoSpace, Some(1016 + 3 * 48)));
        }
    }
}

#[test]
fn errors_of_open_view_sync_and_close_are_told() {
    let fail = Answer::Code(error_code("MPI_ERR_NO_SPACE"));
    pose(0, 1, || {
        script("File_open", &[fail]);
        let error = open(OpenMode::Update, &[]).err().unwrap();
        assert_eq!((error.operation, error.cause), ("MPI_File_open", Cause::NoSpace));
        let mut file = open(OpenMode::Update, &[]).unwrap();
        let p = Pattern::private(16, 1, 4);
        let mut ring = ring_for(&p);
        script("File_set_view", &[fail]);
        let error = file.prepare(&p, Direction::Write, &mut ring, &[]).unwrap_err();
        assert_eq!((error.operation, error.cause), ("MPI_File_set_view", Cause::NoSpace));
        file.prepare(&p, Direction::Write, &mut ring, &[]).unwrap();
        let other =
            file.read(Batches::new(Batch { first_call: 0, calls: 1 }, &mut Latency::off()), &mut ring).unwrap_err();
        assert_eq!(other.cause, Cause::Unsupported, "prepared for the other direction");
        script("File_sync", &[fail]);
        assert_eq!(file.sync().unwrap_err().operation, "MPI_File_sync");
        script("File_get_info", &[fail]);
        assert_eq!(file.hints_in_force().unwrap_err().operation, "MPI_File_get_info");
        script("File_close", &[fail]);
        assert_eq!(file.close().unwrap_err().operation, "MPI_File_close");
    });
}

/// MPI_MODE_UNIQUE_OPEN, where it was asked for and nowhere else.
#[test]
fn files_are_opened_as_the_options_say() {
    for (unique_open, mode, expected) in [
        (true, OpenMode::CreateNew, "create|rdwr|unique_open|excl"),
        (false, OpenMode::Update, "rdwr"),
        (true, OpenMode::ReadOnly, "rdonly|unique_open"),
    ] {
        let told = pose(0, 2, || {
            let universe = Universe::init().unwrap();
            let path = FilePath::of(&std::env::temp_dir().join(FILE)).unwrap();
            let options = DriverOptions { unique_open, ..DriverOptions::default() };
            let request = OpenRequest { path: &path, mode, comm: &universe.world(), hints: &[] };
            (driver("mpiio").unwrap().make)(&options).open(&request).unwrap().close().unwrap();
            words(take_log())
        });
        assert_eq!(told, [format!("open f by world {expected} hints none"), "close".to_owned()]);
    }
}
