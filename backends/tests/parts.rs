//! The drivers without MPI move the parts of IMB-IO too, on 1, 2 and 3 ranks, also empty ones; what they cannot do, they say.

#![allow(clippy::unwrap_used)] // helpers of tests

mod world;

use std::fs::File;

use beff_backends::error::Cause;
use beff_backends::{
    driver, AccessKind, Batches, CallPlace, CallStyle, Collective, Direct, Direction, DriverOptions, FilePath, Latency,
    OpenMode, OpenRequest,
};
use world::{has_read, lay_out, name_of, on_all_ranks, pattern_of, ring_for, table, World, ALL, CALLS, ORIGIN};

/// The drivers at offsets move the same parts, also empty ones; what they cannot do, they say.
fn other_drivers(world: &World<'_>, bytes: u64) {
    let (rank, ranks) = (world.comm.rank(), world.comm.size());
    let mut off = Latency::off();
    for (driver_name, direct) in
        [("posix", Direct::Off), ("posix", Direct::Auto), ("uring", Direct::Off), ("uring", Direct::Auto)]
    {
        for form in table() {
            let p = pattern_of(rank, ranks, bytes, form);
            let name = format!("{driver_name}-{direct:?}-{}", name_of("same", bytes, form));
            let mut file = world.open_with(driver_name, &name, OpenMode::CreateNew, direct);
            let overlaps = driver_name == "uring" && form.0 == AccessKind::Independent && form.2 == CallStyle::Request;
            let runs = form.0 != AccessKind::SharedArrival && (form.2 == CallStyle::Blocking || overlaps);
            assert_eq!(file.support(&p).reason().is_none(), runs, "{name}");
            let mut ring = ring_for(&p);
            world.comm.idle_barrier().unwrap();
            let told = file.prepare(&p, Direction::Write, &mut ring, &[]);
            if !runs {
                assert_eq!(told.unwrap_err().cause, Cause::Unsupported, "{name}");
                file.close().unwrap();
                world.remove(&name);
                continue;
            }
            if ranks > 1 {
                assert_eq!(told.unwrap().direct, Some(false), "{name}: ranks may share sectors");
            }
            lay_out(&mut ring, &p);
            let mut ran = 0;
            let wrote = if overlaps {
                file.write(Batches::new(ALL, &mut Latency::off()).overlapping(&mut || ran += 1), &ring)
            } else {
                file.write(Batches::new(ALL, &mut off), &ring)
            };
            assert_eq!(wrote.unwrap(), CALLS * p.call_bytes(), "{name}");
            world.settle(file.as_mut());
            world.expect_file(&name, bytes, &name);
            file.prepare(&p, Direction::Read, &mut ring, &[]).unwrap();
            ring.bytes_mut().fill(0);
            let read = if overlaps {
                file.read(Batches::new(ALL, &mut Latency::off()).overlapping(&mut || ran += 1), &mut ring)
            } else {
                file.read(Batches::new(ALL, &mut off), &mut ring)
            };
            assert_eq!(read.unwrap(), CALLS * p.call_bytes(), "{name}");
            assert_eq!(ran, if overlaps { 2 } else { 0 }, "{name}");
            assert!(has_read(&ring, &p), "{name}");
            world.comm.idle_barrier().unwrap();
            if bytes > 0 {
                world.on_root(|| {
                    File::options().write(true).open(world.path(&name)).unwrap().set_len(ORIGIN).unwrap();
                });
                let read = if overlaps {
                    file.read(Batches::new(ALL, &mut Latency::off()).overlapping(&mut || ran += 1), &mut ring)
                } else {
                    file.read(Batches::new(ALL, &mut off), &mut ring)
                };
                let expected = if p.call_bytes() > 0 { Err(Cause::Short) } else { Ok(0) };
                assert_eq!(read.map_err(|e| e.cause), expected, "{name}");
            }
            file.close().unwrap();
            world.remove(&name);
        }
    }
}

/// Without equal parts nobody knows who owns which byte.
fn two_phase_needs_equal_parts(world: &World<'_>) {
    let p = pattern_of(
        world.comm.rank(),
        world.comm.size(),
        4097,
        (AccessKind::Collective, CallPlace::Pointer, CallStyle::Blocking),
    );
    for driver_name in ["posix", "uring"] {
        let options = DriverOptions { collective: Collective::TwoPhase, ..DriverOptions::default() };
        let (path, comm) = (FilePath::of(&world.path("two-phase")).unwrap(), world.comm);
        let request = OpenRequest { path: &path, mode: OpenMode::CreateNew, comm, hints: &[] };
        let mut file = (driver(driver_name).unwrap().make)(&options).open(&request).unwrap();
        let refused = file.support(&p).reason().is_some_and(|why| why.contains("one length"));
        assert_eq!(refused, world.comm.size() > 1, "{driver_name}");
        if refused {
            let mut ring = ring_for(&p);
            assert!(file.prepare(&p, Direction::Write, &mut ring, &[]).unwrap_err().text.contains("one length"));
        }
        file.close().unwrap();
        world.remove("two-phase");
    }
}

fn null_accepts_everything(world: &World<'_>) {
    for form in table() {
        let p = pattern_of(world.comm.rank(), world.comm.size(), 5, form);
        let mut ring = ring_for(&p);
        let mut file = world.open("null", "null", OpenMode::CreateNew);
        assert_eq!(file.support(&p).reason(), None);
        file.prepare(&p, Direction::Write, &mut ring, &[]).unwrap();
        let mut ran = 0;
        assert_eq!(
            file.write(Batches::new(ALL, &mut Latency::off()).overlapping(&mut || ran += 1), &ring).unwrap(),
            CALLS * p.call_bytes()
        );
        assert_eq!(
            file.read(Batches::new(ALL, &mut Latency::off()).overlapping(&mut || ran += 1), &mut ring).unwrap(),
            CALLS * p.call_bytes()
        );
        assert_eq!(ran, if form.2 == CallStyle::Split { 2 * CALLS } else { 2 });
        file.close().unwrap();
    }
}

#[test]
fn other_drivers_move_the_same_parts() {
    on_all_ranks("other_drivers_move_the_same_parts", |world| {
        for bytes in [5, 4097, 0, 4096] {
            other_drivers(world, bytes);
        }
        null_accepts_everything(world);
        two_phase_needs_equal_parts(world);
    });
}
