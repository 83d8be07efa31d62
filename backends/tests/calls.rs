//! Every call of MPI-IO through the backend interface, on 1, 2 and 3 ranks: parts of different lengths including zero, both directions,
//! files that are too short, and computation during a transfer with a panic in it.

#![allow(clippy::unwrap_used)] // helpers of tests

mod world;

use std::panic::{catch_unwind, resume_unwind, AssertUnwindSafe};
use std::path::Path;

use beff_backends::error::FailureCause;
use beff_backends::{
    AccessKind, AccessPattern, BackendError, Batch, Batches, CallAddressing, CallStyle, Direction, Latency, OpenFile,
    OpenMode, TransferBuffer, MAX_PENDING_CALLS,
};
use world::{
    buffer_for, byte_at, call_variants, fill_expected, is_read_back, name_of, on_all_ranks, parts, pattern_of,
    CallVariant, RankFixture, ALL, CALLS, ORIGIN,
};

/// All calls write the defined bytes, in two batches, and read them back; twice, because `prepare` returns to the start.
fn write_and_read_back(world: &RankFixture<'_>, bytes: u64, form: CallVariant) {
    let (rank, ranks) = (world.comm.rank(), world.comm.size());
    let p = pattern_of(rank, ranks, bytes, form);
    let (name, mut buffer, mut off) = (name_of("both", bytes, form), buffer_for(&p), Latency::off());
    let arrival = form.0 == AccessKind::SharedArrival;
    let mut file = world.open("mpiio", &name, OpenMode::CreateNew);
    assert_eq!(file.support(&p).reason(), None);
    for _ in 0..2 {
        world.comm.idle_barrier().unwrap();
        let prepared = file.prepare(&p, Direction::Write, &mut buffer, &[]).unwrap();
        assert!(prepared.strategy.starts_with("MPI_File_"), "{}", prepared.strategy);
        fill_expected(&mut buffer, &p);
        if arrival {
            for call in 0..CALLS {
                let stamp = 1 + (rank * CALLS + call) as u8;
                buffer.window_mut(p.stream_position(call), p.call_bytes() as usize).fill(stamp);
            }
        }
        let first = file.write(Batches::new(Batch { first_call: 0, calls: 2 }, &mut off), &buffer).unwrap();
        let rest = file.write(Batches::new(Batch { first_call: 2, calls: CALLS - 2 }, &mut off), &buffer).unwrap();
        assert_eq!(first + rest, CALLS * p.call_bytes());
        world.sync_all(file.as_mut());
    }
    if arrival {
        world.on_root(|| records_are_contiguous(&world.path(&name), bytes, ranks));
        world.make_file(&name, ORIGIN + CALLS * bytes);
    } else {
        world.expect_file(&name, bytes, &name);
    }
    for _ in 0..2 {
        world.comm.idle_barrier().unwrap();
        file.prepare(&p, Direction::Read, &mut buffer, &[]).unwrap();
        buffer.bytes_mut().fill(0);
        let first = file.read(Batches::new(Batch { first_call: 0, calls: 2 }, &mut off), &mut buffer).unwrap();
        let rest = file.read(Batches::new(Batch { first_call: 2, calls: CALLS - 2 }, &mut off), &mut buffer).unwrap();
        assert_eq!(first + rest, CALLS * p.call_bytes(), "{name}");
        check_read(world, &buffer, &p, bytes, &name);
    }
    file.close().unwrap();
    world.remove(&name);
}

/// Expects the own bytes, or in order of arrival every byte of the file on one rank, and one contiguous range per call.
fn check_read(world: &RankFixture<'_>, buffer: &TransferBuffer, p: &AccessPattern, bytes: u64, name: &str) {
    if p.kind != AccessKind::SharedArrival {
        assert!(is_read_back(buffer, p), "{name}");
        return;
    }
    let mut mine = Vec::new();
    for call in 0..CALLS {
        let window = buffer.window(p.stream_position(call), p.call_bytes() as usize);
        assert!(window.windows(2).all(|w| w[1] == w[0] % 251 + 1), "{name}: a call reads one contiguous range");
        mine.extend_from_slice(window);
    }
    let mut all = world.comm.gather_bytes(&mine).unwrap().concat();
    if world.comm.is_root() {
        all.sort_unstable();
        let mut expected: Vec<_> = (ORIGIN..ORIGIN + CALLS * bytes).map(byte_at).collect();
        expected.sort_unstable();
        assert!(all == expected, "{name}: every byte once");
    }
}

/// Each record exists once and is contiguous, in any order.
fn records_are_contiguous(path: &Path, bytes: u64, ranks: u64) {
    let content = std::fs::read(path).unwrap();
    let content = content.get(ORIGIN as usize..).unwrap_or_default();
    assert_eq!(content.len() as u64, CALLS * bytes);
    let lengths = parts(bytes, ranks);
    for record in 0..ranks * CALLS {
        let (stamp, len) = (1 + record as u8, lengths[(record / CALLS) as usize] as usize);
        let first = content.iter().position(|byte| *byte == stamp).unwrap_or(0);
        let there = content.iter().filter(|byte| **byte == stamp).count();
        assert_eq!(there, len, "record {record}");
        assert!(content[first..first + len].iter().all(|byte| *byte == stamp), "record {record}");
    }
}

/// A file without its last byte: the call that reads it fails, one by one and overlapped; no rank blocks.
fn short_reads_are_errors(world: &RankFixture<'_>, bytes: u64, form: CallVariant) {
    let p = pattern_of(world.comm.rank(), world.comm.size(), bytes, form);
    let (name, mut buffer) = (name_of("short", bytes, form), buffer_for(&p));
    let len = ORIGIN + CALLS * bytes - 1;
    world.make_file(&name, len);
    let mut file = world.open("mpiio", &name, OpenMode::ReadOnly);
    let reaches_beyond = p.call_bytes() > 0 && p.chunk_offset(CALLS - 1) + p.call_bytes() > len;
    let expect = |result: Result<u64, BackendError>, how: &str| match result {
        Ok(moved) => assert!(!reaches_beyond && moved == CALLS * p.call_bytes(), "{name} {how}: {moved}"),
        Err(error) => {
            assert!(reaches_beyond, "{name} {how}: {error}");
            assert_eq!(error.cause, FailureCause::Short, "{name} {how}: {error}");
            assert_eq!(error.offset_bytes, Some(p.chunk_offset(CALLS - 1)), "{name} {how}: {error}");
        }
    };
    world.comm.idle_barrier().unwrap();
    file.prepare(&p, Direction::Read, &mut buffer, &[]).unwrap();
    expect(file.read(Batches::new(ALL, &mut Latency::off()), &mut buffer), "one by one");
    if form.2 != CallStyle::Blocking {
        world.comm.idle_barrier().unwrap();
        file.prepare(&p, Direction::Read, &mut buffer, &[]).unwrap();
        expect(
            file.read(Batches::new(ALL, &mut Latency::off()).with_computation(&mut || {}), &mut buffer),
            "overlapped",
        );
    }
    // Calls that begin beyond the end.
    let far = AccessPattern { base_bytes: p.base_bytes + (1 << 20), origin_bytes: ORIGIN + (1 << 20), ..p };
    world.comm.idle_barrier().unwrap();
    file.prepare(&far, Direction::Read, &mut buffer, &[]).unwrap();
    let beyond = file.read(Batches::new(ALL, &mut Latency::off()), &mut buffer);
    assert_eq!(
        beyond.map_err(|e| e.cause),
        if p.call_bytes() == 0 { Ok(0) } else { Err(FailureCause::Short) },
        "{name}"
    );
    file.close().unwrap();
    world.remove(&name);
}

/// The computation runs once, or once in each split call; also if the driver leaves nothing pending.
fn computation_during_transfers(world: &RankFixture<'_>, bytes: u64, form: CallVariant) {
    let p = pattern_of(world.comm.rank(), world.comm.size(), bytes, form);
    let (name, mut buffer) = (name_of("under", bytes, form), buffer_for(&p));
    let arrival = form.0 == AccessKind::SharedArrival;
    let mut file = world.open("mpiio", &name, OpenMode::CreateNew);
    let mut ran = 0;
    world.comm.idle_barrier().unwrap();
    file.prepare(&p, Direction::Write, &mut buffer, &[]).unwrap();
    fill_expected(&mut buffer, &p);
    let wrote = file.write(Batches::new(ALL, &mut Latency::off()).with_computation(&mut || ran += 1), &buffer);
    let times = if form.2 == CallStyle::Split { CALLS } else { 1 };
    assert_eq!(ran, times, "{name}");
    if form.2 == CallStyle::Blocking {
        assert_eq!(wrote.unwrap_err().cause, FailureCause::Unsupported, "{name}");
        file.close().unwrap();
        world.remove(&name);
        return;
    }
    assert_eq!(wrote.unwrap(), CALLS * p.call_bytes(), "{name}");
    world.sync_all(file.as_mut());
    if arrival {
        world.make_file(&name, ORIGIN + CALLS * bytes);
    } else {
        world.expect_file(&name, bytes, &name);
    }
    world.comm.idle_barrier().unwrap();
    file.prepare(&p, Direction::Read, &mut buffer, &[]).unwrap();
    buffer.bytes_mut().fill(0);
    let mut ran = 0;
    assert_eq!(
        file.read(Batches::new(ALL, &mut Latency::off()).with_computation(&mut || ran += 1), &mut buffer).unwrap(),
        CALLS * p.call_bytes(),
        "{name}"
    );
    assert_eq!(ran, times, "{name}");
    check_read(world, &buffer, &p, bytes, &name);
    a_panic_leaves_nothing_pending(world, file.as_mut(), &p, bytes, &name);
    file.close().unwrap();
    world.remove(&name);
}

/// All ranks panic in the computation, and then continue to use the file.
fn a_panic_leaves_nothing_pending(
    world: &RankFixture<'_>,
    file: &mut dyn OpenFile,
    p: &AccessPattern,
    bytes: u64,
    name: &str,
) {
    let mut buffer = buffer_for(p);
    world.comm.idle_barrier().unwrap();
    file.prepare(p, Direction::Read, &mut buffer, &[]).unwrap();
    let one = Batch { first_call: 0, calls: 1 };
    let begun = if p.form.style == CallStyle::Split { one } else { ALL };
    let panicked = catch_unwind(AssertUnwindSafe(|| {
        file.read(
            Batches::new(begun, &mut Latency::off()).with_computation(&mut || resume_unwind(Box::new("on purpose"))),
            &mut buffer,
        )
    }));
    assert!(panicked.is_err());
    if begun == ALL {
        check_read(world, &buffer, p, bytes, name);
    }
    world.comm.idle_barrier().unwrap();
    file.prepare(p, Direction::Write, &mut buffer, &[]).unwrap();
    fill_expected(&mut buffer, p);
    let panicked = catch_unwind(AssertUnwindSafe(|| {
        file.write(
            Batches::new(begun, &mut Latency::off()).with_computation(&mut || resume_unwind(Box::new("on purpose"))),
            &buffer,
        )
    }));
    assert!(panicked.is_err());
    assert_eq!(
        file.write(Batches::new(Batch { first_call: begun.calls, calls: 0 }, &mut Latency::off()), &buffer).unwrap(),
        0
    );
    world.sync_all(file);
}

/// Combinations without a call in the standard, and batches that are too long.
fn check_refusals(world: &RankFixture<'_>) {
    let (rank, ranks) = (world.comm.rank(), world.comm.size());
    let mut file = world.open("mpiio", "refusals", OpenMode::CreateNew);
    let none =
        |kind, place, style| file.support(&pattern_of(rank, ranks, 4096, (kind, place, style))).reason().unwrap();
    let (pointer, explicit) = (CallAddressing::Pointer, CallAddressing::Explicit);
    assert!(none(AccessKind::SharedOrdered, pointer, CallStyle::Request).contains("split"));
    assert!(none(AccessKind::SharedArrival, pointer, CallStyle::Split).contains("collective"));
    assert!(none(AccessKind::Independent, pointer, CallStyle::Split).contains("collective"));
    assert!(none(AccessKind::Independent, explicit, CallStyle::Split).contains("collective"));
    assert!(none(AccessKind::SharedOrdered, explicit, CallStyle::Blocking).contains("offset"));
    assert!(none(AccessKind::SharedArrival, explicit, CallStyle::Request).contains("offset"));

    let form = (AccessKind::Independent, CallAddressing::Explicit, CallStyle::Request);
    let p = AccessPattern { max_calls: u64::MAX, ..pattern_of(rank, ranks, 4, form) };
    let mut buffer = TransferBuffer::new(4096, 4096).unwrap();
    file.prepare(&p, Direction::Write, &mut buffer, &[]).unwrap();
    let mut ran = 0;
    let too_many = Batch { first_call: 0, calls: MAX_PENDING_CALLS + 1 };
    let error = file
        .write(Batches::new(too_many, &mut Latency::off()).with_computation(&mut || ran += 1), &buffer)
        .unwrap_err();
    assert_eq!((error.cause, ran), (FailureCause::Unsupported, 1), "{error}");
    assert_eq!(
        file.write(
            Batches::new(Batch { first_call: 0, calls: MAX_PENDING_CALLS }, &mut Latency::off())
                .with_computation(&mut || {}),
            &buffer
        )
        .unwrap(),
        MAX_PENDING_CALLS * p.call_bytes()
    );
    file.close().unwrap();
    world.remove("refusals");
}

fn run_every_call(name: &str, bytes: u64) {
    on_all_ranks(name, |world| {
        for form in call_variants() {
            write_and_read_back(world, bytes, form);
            computation_during_transfers(world, bytes, form);
            if bytes > 0 {
                short_reads_are_errors(world, bytes, form);
            }
        }
    });
}

#[test]
fn every_call_with_5_bytes() {
    run_every_call("every_call_with_5_bytes", 5);
}

#[test]
fn every_call_with_4097_bytes() {
    run_every_call("every_call_with_4097_bytes", 4097);
}

#[test]
fn every_call_with_nothing() {
    run_every_call("every_call_with_nothing", 0);
}

#[test]
fn what_cannot_be_called_is_refused() {
    on_all_ranks("what_cannot_be_called_is_refused", check_refusals);
}
