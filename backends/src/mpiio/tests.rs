//! MPI calls of the driver, from open to close. The library is `beff_fake_mpi`.

use beff_fake_mpi::{as_rank, error_code, name_memory, script, set_file_bytes, take_log, ScriptedResult};
use beff_ffi::Universe;

use crate::error::FailureCause;
use crate::{
    driver, AccessKind, AccessPattern, BackendError, Batch, Batches, CallAddressing, CallForm, CallStyle, Direction,
    DriverOptions, ElementUnit, FilePath, Latency, OpenFile, OpenMode, OpenRequest, RankPartition, TransferBuffer,
};

const FILE: &str = "f";

fn pairs(all: &[(&str, &str)]) -> Vec<(String, String)> {
    all.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}

fn open(mode: OpenMode, hints: &[(&str, &str)]) -> crate::Result<Box<dyn OpenFile>> {
    let universe = Universe::init().unwrap();
    let path = FilePath::of(&std::env::temp_dir().join(FILE)).unwrap();
    let request = OpenRequest { path: &path, mode, comm: &universe.world(), hints: &pairs(hints) };
    let opened = (driver("mpiio").unwrap().create)(&DriverOptions::default()).open(&request);
    std::mem::forget(universe);
    opened
}

/// Rank 1 of 3, two chunks of 16 bytes per call, or 15 if counted in bytes.
fn pattern(kind: AccessKind, place: CallAddressing, style: CallStyle, unit: ElementUnit) -> AccessPattern {
    let chunk_bytes = if unit == ElementUnit::Word { 16 } else { 15 };
    let chunks_per_call = if place == CallAddressing::Explicit { 1 } else { 2 };
    AccessPattern {
        kind,
        chunk_bytes,
        chunks_per_call,
        base_bytes: 1000 + chunk_bytes,
        stride_bytes: 3 * chunk_bytes,
        origin_bytes: 1000,
        rank: 1,
        ranks: 3,
        rank_distance_bytes: chunk_bytes,
        partition: RankPartition::Equal,
        form: CallForm { addressing: place, style, unit },
        stream_bytes: 48,
        max_calls: 4,
        order: None,
        mix: None,
    }
}

fn buffer_for(p: &AccessPattern) -> TransferBuffer {
    let buffer = TransferBuffer::new(4096, p.call_bytes()).unwrap();
    name_memory("ring", buffer.mapped());
    buffer
}

fn words(log: Vec<String>) -> Vec<String> {
    let directory = format!("{}/", std::env::temp_dir().display());
    log.into_iter().map(|line| line.replace(&directory, "").replace("File_", "")).collect()
}

/// Expected calls of a batch of two, by the standard's names.
fn calls(p: &AccessPattern, direction: Direction, whole: u64) -> Vec<String> {
    let CallForm { addressing: place, style, unit } = p.form;
    let verb = if direction == Direction::Write { "write" } else { "read" };
    let name = match (p.kind, place) {
        (AccessKind::Independent, CallAddressing::Pointer) => "",
        (AccessKind::Independent, CallAddressing::Explicit) => "_at",
        (AccessKind::Collective, CallAddressing::Pointer) => "_all",
        (AccessKind::Collective, CallAddressing::Explicit) => "_at_all",
        (AccessKind::SharedArrival, _) => "_shared",
        (AccessKind::SharedOrdered, _) => "_ordered",
    };
    let (bytes, element) = if unit == ElementUnit::Word { (8, "DOUBLE") } else { (1, "BYTE") };
    let mut all = Vec::new();
    for call in 1..3 {
        let offset = (p.base_bytes + call * p.stride_bytes * p.chunks_per_call) / bytes;
        let at = if place == CallAddressing::Explicit { format!("at {offset} ") } else { String::new() };
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

/// Expected file view.
fn view(p: &AccessPattern, hints: &str) -> String {
    let element = if p.form.unit == ElementUnit::Word { "DOUBLE" } else { "BYTE" };
    let elements = p.chunk_bytes / if p.form.unit == ElementUnit::Word { 8 } else { 1 };
    let (place, tile) = match (p.kind, p.form.addressing) {
        (AccessKind::SharedArrival | AccessKind::SharedOrdered, _) => (p.origin_bytes, element.to_owned()),
        (_, CallAddressing::Explicit) => (0, element.to_owned()),
        _ => (p.base_bytes, format!("{elements}*{element} from 0 every {}", p.stride_bytes)),
    };
    format!("set_view from {place} of {element} in {tile} native hints {hints}")
}

fn forms() -> Vec<(AccessKind, CallAddressing, CallStyle)> {
    use AccessKind::{Collective, Independent, SharedArrival, SharedOrdered};
    let mut all = Vec::new();
    for place in [CallAddressing::Pointer, CallAddressing::Explicit] {
        for style in [CallStyle::Blocking, CallStyle::Request, CallStyle::Split] {
            all.extend([Independent, Collective, SharedArrival, SharedOrdered].map(|kind| (kind, place, style)));
        }
    }
    all.retain(|(kind, place, style)| match kind {
        Independent => *style != CallStyle::Split,
        Collective => true,
        SharedArrival => *place == CallAddressing::Pointer && *style != CallStyle::Split,
        SharedOrdered => *place == CallAddressing::Pointer && *style != CallStyle::Request,
    });
    all
}

#[test]
fn every_pattern_is_the_calls_of_its_form_from_open_to_close() {
    for (kind, place, style) in forms() {
        for unit in [ElementUnit::Word, ElementUnit::Byte] {
            for direction in [Direction::Write, Direction::Read] {
                let p = pattern(kind, place, style, unit);
                let batch = Batch { first_call: 1, calls: 2 };
                let log = as_rank(1, 3, || {
                    let mut file = open(OpenMode::Update, &[("cb_nodes", "1")]).unwrap();
                    let mut buffer = buffer_for(&p);
                    set_file_bytes(100_000);
                    file.prepare(&p, direction, &mut buffer, &pairs(&[("cb_read", "no")])).unwrap();
                    let mut latency = Latency::on();
                    let moved = match direction {
                        Direction::Write => file.write(Batches::new(batch, &mut latency), &buffer),
                        Direction::Read => file.read(Batches::new(batch, &mut latency), &mut buffer),
                    };
                    assert_eq!(moved.unwrap(), 2 * p.call_bytes());
                    assert_eq!(latency.histogram().map_or(0, |times| times.len()), 2, "each call is timed");
                    file.sync().unwrap();
                    assert_eq!(file.hints_in_use().unwrap(), pairs(&[("in_force", "yes")]));
                    file.close().unwrap();
                    words(take_log())
                });
                let mut expected = vec!["open f by world rdwr hints {cb_nodes=1}".to_owned(), view(&p, "{cb_read=no}")];
                let asks = direction == Direction::Read && (unit == ElementUnit::Byte || style != CallStyle::Blocking);
                expected.extend(asks.then(|| "get_size".to_owned()));
                expected.extend(calls(&p, direction, 4));
                expected.extend(["sync", "get_info", "close"].map(str::to_owned));
                assert_eq!(log, expected, "{p:?} {direction:?}");
            }
        }
    }
}

/// A collective call beyond the end of the file is made with an empty transfer, so that no rank waits for it forever.
#[test]
fn nothing_beyond_the_end_of_the_file_is_requested() {
    for (kind, place, style) in forms() {
        let p = pattern(kind, place, style, ElementUnit::Byte);
        let log = as_rank(1, 3, || {
            let mut file = open(OpenMode::ReadOnly, &[]).unwrap();
            let mut buffer = buffer_for(&p);
            // Call 1 lies within the file, call 2 ends one byte beyond.
            let end = p.chunk_offset(3 * p.chunks_per_call - 1) + p.chunk_bytes;
            set_file_bytes(end as i64 - 1);
            file.prepare(&p, Direction::Read, &mut buffer, &[]).unwrap();
            let _ = take_log();
            let error = file
                .read(Batches::new(Batch { first_call: 1, calls: 2 }, &mut Latency::off()), &mut buffer)
                .unwrap_err();
            assert_eq!(
                (error.cause, error.offset_bytes),
                (FailureCause::Short, Some(p.chunk_offset(2 * p.chunks_per_call)))
            );
            words(take_log())
        });
        let all = calls(&p, Direction::Read, 2);
        let issued = if kind.is_collective() { all.len() } else { all.len() / 2 };
        assert_eq!(log, all[..issued], "{p:?}");
    }
}

#[test]
fn a_view_is_set_unless_the_file_is_seen_like_that_already() {
    let explicit = |unit| pattern(AccessKind::Independent, CallAddressing::Explicit, CallStyle::Blocking, unit);
    let pointer = pattern(AccessKind::Independent, CallAddressing::Pointer, CallStyle::Blocking, ElementUnit::Byte);
    let log = as_rank(1, 3, || {
        let mut file = open(OpenMode::CreateNew, &[]).unwrap();
        let mut prepare = |p: &AccessPattern, hints: &[(&str, &str)]| {
            let mut buffer = TransferBuffer::new(4096, p.call_bytes()).unwrap();
            file.prepare(p, Direction::Write, &mut buffer, &pairs(hints)).unwrap();
        };
        prepare(&explicit(ElementUnit::Byte), &[]);
        prepare(&explicit(ElementUnit::Byte), &[("a", "b")]);
        prepare(&explicit(ElementUnit::Word), &[]);
        prepare(&pointer, &[]);
        prepare(&AccessPattern { stride_bytes: 15, ..pointer }, &[]);
        prepare(&AccessPattern { chunk_bytes: 0, ..pointer }, &[]);
        prepare(&explicit(ElementUnit::Byte), &[]);
        words(take_log())
    });
    let plain = |place, element: &str, hints: &str| {
        format!("set_view from {place} of {element} in {element} native hints {hints}")
    };
    assert_eq!(
        log,
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
fn work_overlaps_calls_that_can_be_in_flight() {
    let batch = Batch { first_call: 0, calls: 3 };
    for style in [CallStyle::Request, CallStyle::Split] {
        let p = pattern(AccessKind::Collective, CallAddressing::Pointer, style, ElementUnit::Word);
        let (during, after) = as_rank(1, 3, || {
            let mut file = open(OpenMode::CreateNew, &[]).unwrap();
            let mut buffer = buffer_for(&p);
            file.prepare(&p, Direction::Write, &mut buffer, &[]).unwrap();
            let _ = take_log();
            let mut during = Vec::new();
            let moved = file
                .write(
                    Batches::new(batch, &mut Latency::off()).with_computation(&mut || during.push(take_log().len())),
                    &buffer,
                )
                .unwrap();
            assert_eq!(moved, 3 * p.call_bytes());
            (during, take_log().len())
        });
        // All started, one Waitall; or begin and end of each in turn.
        let expected = if style == CallStyle::Request { (vec![3], 1) } else { (vec![1, 2, 2], 1) };
        assert_eq!((during, after), expected);
    }
}

fn failing(kind: AccessKind, direction: Direction, answers: &[ScriptedResult]) -> (BackendError, usize) {
    let p = pattern(kind, CallAddressing::Explicit, CallStyle::Blocking, ElementUnit::Word);
    as_rank(1, 3, || {
        let mut file = open(OpenMode::Update, &[]).unwrap();
        let mut buffer = buffer_for(&p);
        file.prepare(&p, direction, &mut buffer, &[]).unwrap();
        let _ = take_log();
        let verb = if direction == Direction::Write { "write" } else { "read" };
        let name = if kind == AccessKind::Collective { "at_all" } else { "at" };
        script(&format!("File_{verb}_{name}"), answers);
        let (batch, mut off) = (Batch { first_call: 0, calls: 4 }, Latency::off());
        let result = match direction {
            Direction::Write => file.write(Batches::new(batch, &mut off), &buffer),
            Direction::Read => file.read(Batches::new(batch, &mut off), &mut buffer),
        };
        (result.unwrap_err(), take_log().len())
    })
}

/// The first error is reported with its offset; other ranks are in the next collective call already.
#[test]
fn errors_and_short_transfers_are_never_lost() {
    let io = ScriptedResult::Code(error_code("MPI_ERR_IO"));
    let full = ScriptedResult::Code(error_code("MPI_ERR_NO_SPACE"));
    for direction in [Direction::Write, Direction::Read] {
        for (kind, calls) in [(AccessKind::Independent, 2), (AccessKind::Collective, 4)] {
            let (error, issued) = failing(kind, direction, &[ScriptedResult::Success, io, full]);
            assert_eq!((error.cause, error.offset_bytes, issued), (FailureCause::Io, Some(1016 + 48), calls));
            let (error, issued) = failing(kind, direction, &[ScriptedResult::Success, ScriptedResult::Bytes(8), io]);
            let failure = (error.cause, error.offset_bytes, error.expected_got_bytes, issued);
            assert_eq!(failure, (FailureCause::Short, Some(1016 + 48), Some((16, 8)), calls));
            let (error, _) = failing(
                kind,
                direction,
                &[ScriptedResult::Success, ScriptedResult::Success, ScriptedResult::Success, full],
            );
            assert_eq!((error.cause, error.offset_bytes), (FailureCause::NoSpace, Some(1016 + 3 * 48)));
        }
    }
}

#[test]
fn errors_of_open_view_sync_and_close_are_reported() {
    let fail = ScriptedResult::Code(error_code("MPI_ERR_NO_SPACE"));
    as_rank(0, 1, || {
        script("File_open", &[fail]);
        let error = open(OpenMode::Update, &[]).err().unwrap();
        assert_eq!((error.operation, error.cause), ("MPI_File_open", FailureCause::NoSpace));
        let mut file = open(OpenMode::Update, &[]).unwrap();
        let p = AccessPattern::private(16, 1, 4);
        let mut buffer = buffer_for(&p);
        script("File_set_view", &[fail]);
        let error = file.prepare(&p, Direction::Write, &mut buffer, &[]).unwrap_err();
        assert_eq!((error.operation, error.cause), ("MPI_File_set_view", FailureCause::NoSpace));
        file.prepare(&p, Direction::Write, &mut buffer, &[]).unwrap();
        let other =
            file.read(Batches::new(Batch { first_call: 0, calls: 1 }, &mut Latency::off()), &mut buffer).unwrap_err();
        assert_eq!(other.cause, FailureCause::Unsupported, "prepared for the other direction");
        script("File_sync", &[fail]);
        assert_eq!(file.sync().unwrap_err().operation, "MPI_File_sync");
        script("File_get_info", &[fail]);
        assert_eq!(file.hints_in_use().unwrap_err().operation, "MPI_File_get_info");
        script("File_close", &[fail]);
        assert_eq!(file.close().unwrap_err().operation, "MPI_File_close");
    });
}

/// MPI_MODE_UNIQUE_OPEN only where requested.
#[test]
fn files_are_opened_as_the_options_say() {
    for (unique_open, mode, expected) in [
        (true, OpenMode::CreateNew, "create|rdwr|unique_open|excl"),
        (false, OpenMode::Update, "rdwr"),
        (true, OpenMode::ReadOnly, "rdonly|unique_open"),
    ] {
        let log = as_rank(0, 2, || {
            let universe = Universe::init().unwrap();
            let path = FilePath::of(&std::env::temp_dir().join(FILE)).unwrap();
            let options = DriverOptions { unique_open, ..DriverOptions::default() };
            let request = OpenRequest { path: &path, mode, comm: &universe.world(), hints: &[] };
            (driver("mpiio").unwrap().create)(&options).open(&request).unwrap().close().unwrap();
            words(take_log())
        });
        assert_eq!(log, [format!("open f by world {expected} hints none"), "close".to_owned()]);
    }
}
