//! Every call of MPI-IO through the seam, on 1, 2 and 3 ranks: parts of different lengths and of none, both directions, files
//! that are too short, work under a transfer and a panic in it.

#![allow(clippy::unwrap_used)] // helpers of tests

mod world;

use std::panic::{catch_unwind, resume_unwind, AssertUnwindSafe};
use std::path::Path;

use beff_backends::error::Cause;
use beff_backends::{
    AccessKind, BackendError, Batch, Batches, CallPlace, CallStyle, Direction, Latency, OpenFile, OpenMode, Pattern,
    Ring, MOST_PENDING,
};
use world::{
    byte_at, has_read, lay_out, name_of, on_all_ranks, parts, pattern_of, ring_for, table, Form, World, ALL, CALLS,
    ORIGIN,
};

/// All calls write what the pattern says, in two batches, and read it back; twice, because `prepare` goes back to the start.
fn write_and_read_back(world: &World<'_>, bytes: u64, form: Form) {
    let (rank, ranks) = (world.comm.rank(), world.comm.size());
    let p = pattern_of(rank, ranks, bytes, form);
    let (name, mut ring, mut off) = (name_of("both", bytes, form), ring_for(&p), Latency::off());
    let arrival = form.0 == AccessKind::SharedArrival;
    let mut file = world.open("mpiio", &name, OpenMode::CreateNew);
    assert_eq!(file.support(&p).reason(), None);
    for _ in 0..2 {
        world.comm.idle_barrier().unwrap();
        let told = file.prepare(&p, Direction::Write, &mut ring, &[]).unwrap();
        assert!(told.strategy.starts_with("MPI_File_"), "{}", told.strategy);
        lay_out(&mut ring, &p);
        if arrival {
            for call in 0..CALLS {
                let stamp = 1 + (rank * CALLS + call) as u8;
                ring.window_mut(p.stream_position(call), p.call_bytes() as usize).fill(stamp);
            }
        }
        let first = file.write(Batches::new(Batch { first_call: 0, calls: 2 }, &mut off), &ring).unwrap();
        let rest = file.write(Batches::new(Batch { first_call: 2, calls: CALLS - 2 }, &mut off), &ring).unwrap();
        assert_eq!(first + rest, CALLS * p.call_bytes());
        world.settle(file.as_mut());
    }
    if arrival {
        world.on_root(|| records_are_whole(&world.path(&name), bytes, ranks));
        world.make_file(&name, ORIGIN + CALLS * bytes);
    } else {
        world.expect_file(&name, bytes, &name);
    }
    for _ in 0..2 {
        world.comm.idle_barrier().unwrap();
        file.prepare(&p, Direction::Read, &mut ring, &[]).unwrap();
        ring.bytes_mut().fill(0);
        let first = file.read(Batches::new(Batch { first_call: 0, calls: 2 }, &mut off), &mut ring).unwrap();
        let rest = file.read(Batches::new(Batch { first_call: 2, calls: CALLS - 2 }, &mut off), &mut ring).unwrap();
        assert_eq!(first + rest, CALLS * p.call_bytes(), "{name}");
        check_read(world, &ring, &p, bytes, &name);
    }
    file.close().unwrap();
    world.remove(&name);
}

/// What was read: its own bytes, or for an order of arrival every byte of the file by one rank, in one piece each call.
fn check_read(world: &World<'_>, ring: &Ring, p: &Pattern, bytes: u64, name: &str) {
    if p.kind != AccessKind::SharedArrival {
        assert!(has_read(ring, p), "{name}");
        return;
    }
    let mut mine = Vec::new();
    for call in 0..CALLS {
        let window = ring.window(p.stream_position(call), p.call_bytes() as usize);
        assert!(window.windows(2).all(|w| w[1] == w[0] % 251 + 1), "{name}: a call reads one piece");
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

/// Each record is there once and in one piece, in any order.
fn records_are_whole(path: &Path, bytes: u64, ranks: u64) {
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

/// A file that lacks its last byte: whose call it is gets an error, one by one and all at once; nobody waits for ever.
fn short_reads_are_errors(world: &World<'_>, bytes: u64, form: Form) {
    let p = pattern_of(world.comm.rank(), world.comm.size(), bytes, form);
    let (name, mut ring) = (name_of("short", bytes, form), ring_for(&p));
    let len = ORIGIN + CALLS * bytes - 1;
    world.make_file(&name, len);
    let mut file = world.open("mpiio", &name, OpenMode::ReadOnly);
    let reaches_beyond = p.call_bytes() > 0 && p.chunk_offset(CALLS - 1) + p.call_bytes() > len;
    let expect = |result: Result<u64, BackendError>, how: &str| match result {
        Ok(moved) => assert!(!reaches_beyond && moved == CALLS * p.call_bytes(), "{name} {how}: {moved}"),
        Err(error) => {
            assert!(reaches_beyond, "{name} {how}: {error}");
            assert_eq!(error.cause, Cause::Short, "{name} {how}: {error}");
            assert_eq!(error.offset_bytes, Some(p.chunk_offset(CALLS - 1)), "{name} {how}: {error}");
        }
    };
    world.comm.idle_barrier().unwrap();
    file.prepare(&p, Direction::Read, &mut ring, &[]).unwrap();
    expect(file.read(Batches::new(ALL, &mut Latency::off()), &mut ring), "one by one");
    if form.2 != CallStyle::Blocking {
        world.comm.idle_barrier().unwrap();
        file.prepare(&p, Direction::Read, &mut ring, &[]).unwrap();
        expect(file.read(Batches::new(ALL, &mut Latency::off()).overlapping(&mut || {}), &mut ring), "overlapped");
    }
    // Calls wholly behind the end.
    let far = Pattern { base_bytes: p.base_bytes + (1 << 20), origin_bytes: ORIGIN + (1 << 20), ..p };
    world.comm.idle_barrier().unwrap();
    file.prepare(&far, Direction::Read, &mut ring, &[]).unwrap();
    let beyond = file.read(Batches::new(ALL, &mut Latency::off()), &mut ring);
    assert_eq!(beyond.map_err(|e| e.cause), if p.call_bytes() == 0 { Ok(0) } else { Err(Cause::Short) }, "{name}");
    file.close().unwrap();
    world.remove(&name);
}

/// `during` runs once, or once in each split call; also where the driver leaves nothing under way.
fn work_under_transfers(world: &World<'_>, bytes: u64, form: Form) {
    let p = pattern_of(world.comm.rank(), world.comm.size(), bytes, form);
    let (name, mut ring) = (name_of("under", bytes, form), ring_for(&p));
    let arrival = form.0 == AccessKind::SharedArrival;
    let mut file = world.open("mpiio", &name, OpenMode::CreateNew);
    let mut ran = 0;
    world.comm.idle_barrier().unwrap();
    file.prepare(&p, Direction::Write, &mut ring, &[]).unwrap();
    lay_out(&mut ring, &p);
    let wrote = file.write(Batches::new(ALL, &mut Latency::off()).overlapping(&mut || ran += 1), &ring);
    let times = if form.2 == CallStyle::Split { CALLS } else { 1 };
    assert_eq!(ran, times, "{name}");
    if form.2 == CallStyle::Blocking {
        assert_eq!(wrote.unwrap_err().cause, Cause::Unsupported, "{name}");
        file.close().unwrap();
        world.remove(&name);
        return;
    }
    assert_eq!(wrote.unwrap(), CALLS * p.call_bytes(), "{name}");
    world.settle(file.as_mut());
    if arrival {
        world.make_file(&name, ORIGIN + CALLS * bytes);
    } else {
        world.expect_file(&name, bytes, &name);
    }
    world.comm.idle_barrier().unwrap();
    file.prepare(&p, Direction::Read, &mut ring, &[]).unwrap();
    ring.bytes_mut().fill(0);
    let mut ran = 0;
    assert_eq!(
        file.read(Batches::new(ALL, &mut Latency::off()).overlapping(&mut || ran += 1), &mut ring).unwrap(),
        CALLS * p.call_bytes(),
        "{name}"
    );
    assert_eq!(ran, times, "{name}");
    check_read(world, &ring, &p, bytes, &name);
    a_panic_leaves_nothing_pending(world, file.as_mut(), &p, bytes, &name);
    file.close().unwrap();
    world.remove(&name);
}

/// All ranks panic in `during`, and go on with the file as if nothing had been.
fn a_panic_leaves_nothing_pending(world: &World<'_>, file: &mut dyn OpenFile, p: &Pattern, bytes: u64, name: &str) {
    let mut ring = ring_for(p);
    world.comm.idle_barrier().unwrap();
    file.prepare(p, Direction::Read, &mut ring, &[]).unwrap();
    let one = Batch { first_call: 0, calls: 1 };
    let begun = if p.form.style == CallStyle::Split { one } else { ALL };
    let panicked = catch_unwind(AssertUnwindSafe(|| {
        file.read(
            Batches::new(begun, &mut Latency::off()).overlapping(&mut || resume_unwind(Box::new("on purpose"))),
            &mut ring,
        )
    }));
    assert!(panicked.is_err());
    if begun == ALL {
        check_read(world, &ring, p, bytes, name);
    }
    world.comm.idle_barrier().unwrap();
    file.prepare(p, Direction::Write, &mut ring, &[]).unwrap();
    lay_out(&mut ring, p);
    let panicked = catch_unwind(AssertUnwindSafe(|| {
        file.write(
            Batches::new(begun, &mut Latency::off()).overlapping(&mut || resume_unwind(Box::new("on purpose"))),
            &ring,
        )
    }));
    assert!(panicked.is_err());
    assert_eq!(
        file.write(Batches::new(Batch { first_call: begun.calls, calls: 0 }, &mut Latency::off()), &ring).unwrap(),
        0
    );
    world.settle(file);
}

/// What the standard has no call for, and what would not fit.
fn refusals(world: &World<'_>) {
    let (rank, ranks) = (world.comm.rank(), world.comm.size());
    let mut file = world.open("mpiio", "refusals", OpenMode::CreateNew);
    let none =
        |kind, place, style| file.support(&pattern_of(rank, ranks, 4096, (kind, place, style))).reason().unwrap();
    let (pointer, explicit) = (CallPlace::Pointer, CallPlace::Explicit);
    assert!(none(AccessKind::SharedOrdered, pointer, CallStyle::Request).contains("split"));
    assert!(none(AccessKind::SharedArrival, pointer, CallStyle::Split).contains("collective"));
    assert!(none(AccessKind::Independent, pointer, CallStyle::Split).contains("collective"));
    assert!(none(AccessKind::Independent, explicit, CallStyle::Split).contains("collective"));
    assert!(none(AccessKind::SharedOrdered, explicit, CallStyle::Blocking).contains("offset"));
    assert!(none(AccessKind::SharedArrival, explicit, CallStyle::Request).contains("offset"));

    let form = (AccessKind::Independent, CallPlace::Explicit, CallStyle::Request);
    let p = Pattern { max_calls: u64::MAX, ..pattern_of(rank, ranks, 4, form) };
    let mut ring = Ring::new(4096, 4096).unwrap();
    file.prepare(&p, Direction::Write, &mut ring, &[]).unwrap();
    let mut ran = 0;
    let too_many = Batch { first_call: 0, calls: MOST_PENDING + 1 };
    let error =
        file.write(Batches::new(too_many, &mut Latency::off()).overlapping(&mut || ran += 1), &ring).unwrap_err();
    assert_eq!((error.cause, ran), (Cause::Unsupported, 1), "{error}");
    assert_eq!(
        file.write(
            Batches::new(Batch { first_call: 0, calls: MOST_PENDING }, &mut Latency::off()).overlapping(&mut || {}),
            &ring
        )
        .unwrap(),
        MOST_PENDING * p.call_bytes()
    );
    file.close().unwrap();
    world.remove("refusals");
}

fn every_call(name: &str, bytes: u64) {
    on_all_ranks(name, |world| {
        for form in table() {
            write_and_read_back(world, bytes, form);
            work_under_transfers(world, bytes, form);
            if bytes > 0 {
                short_reads_are_errors(world, bytes, form);
            }
        }
    });
}

#[test]
fn every_call_with_5_bytes() {
    every_call("every_call_with_5_bytes", 5);
}

#[test]
fn every_call_with_4097_bytes() {
    every_call("every_call_with_4097_bytes", 4097);
}

#[test]
fn every_call_with_nothing() {
    every_call("every_call_with_nothing", 0);
}

#[test]
fn what_cannot_be_called_is_refused() {
    on_all_ranks("what_cannot_be_called_is_refused", refusals);
}
