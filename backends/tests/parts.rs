//! The drivers without MPI also transfer the parts of IMB-IO, on 1, 2 and 3 ranks, including empty ones; unsupported patterns are
//! refused.

#![allow(clippy::unwrap_used)] // helpers of tests

mod world;

use std::fs::File;

use beff_backends::error::FailureCause;
use beff_backends::{
    driver, AccessKind, Batches, CallAddressing, CallStyle, Collective, Direct, Direction, DriverOptions, FilePath,
    Latency, OpenMode, OpenRequest,
};
use world::{
    buffer_for, call_variants, fill_expected, is_read_back, name_of, on_all_ranks, pattern_of, RankFixture, ALL, CALLS,
    ORIGIN,
};

/// The drivers with explicit offsets transfer the same parts, including empty ones; unsupported patterns are refused.
fn other_drivers(world: &RankFixture<'_>, bytes: u64) {
    let (rank, ranks) = (world.comm.rank(), world.comm.size());
    let mut off = Latency::off();
    for (driver_name, direct) in
        [("posix", Direct::Off), ("posix", Direct::Auto), ("uring", Direct::Off), ("uring", Direct::Auto)]
    {
        for form in call_variants() {
            let p = pattern_of(rank, ranks, bytes, form);
            let name = format!("{driver_name}-{direct:?}-{}", name_of("same", bytes, form));
            let mut file = world.open_with(driver_name, &name, OpenMode::CreateNew, direct);
            let overlaps = driver_name == "uring" && form.0 == AccessKind::Independent && form.2 == CallStyle::Request;
            let runs = form.0 != AccessKind::SharedArrival && (form.2 == CallStyle::Blocking || overlaps);
            assert_eq!(file.support(&p).reason().is_none(), runs, "{name}");
            let mut buffer = buffer_for(&p);
            world.comm.idle_barrier().unwrap();
            let prepared = file.prepare(&p, Direction::Write, &mut buffer, &[]);
            if !runs {
                assert_eq!(prepared.unwrap_err().cause, FailureCause::Unsupported, "{name}");
                file.close().unwrap();
                world.remove(&name);
                continue;
            }
            if ranks > 1 {
                assert_eq!(prepared.unwrap().direct, Some(false), "{name}: ranks may share sectors");
            }
            fill_expected(&mut buffer, &p);
            let mut ran = 0;
            let wrote = if overlaps {
                file.write(Batches::new(ALL, &mut Latency::off()).with_computation(&mut || ran += 1), &buffer)
            } else {
                file.write(Batches::new(ALL, &mut off), &buffer)
            };
            assert_eq!(wrote.unwrap(), CALLS * p.call_bytes(), "{name}");
            world.sync_all(file.as_mut());
            world.expect_file(&name, bytes, &name);
            file.prepare(&p, Direction::Read, &mut buffer, &[]).unwrap();
            buffer.bytes_mut().fill(0);
            let read = if overlaps {
                file.read(Batches::new(ALL, &mut Latency::off()).with_computation(&mut || ran += 1), &mut buffer)
            } else {
                file.read(Batches::new(ALL, &mut off), &mut buffer)
            };
            assert_eq!(read.unwrap(), CALLS * p.call_bytes(), "{name}");
            assert_eq!(ran, if overlaps { 2 } else { 0 }, "{name}");
            assert!(is_read_back(&buffer, &p), "{name}");
            world.comm.idle_barrier().unwrap();
            if bytes > 0 {
                world.on_root(|| {
                    File::options().write(true).open(world.path(&name)).unwrap().set_len(ORIGIN).unwrap();
                });
                let read = if overlaps {
                    file.read(Batches::new(ALL, &mut Latency::off()).with_computation(&mut || ran += 1), &mut buffer)
                } else {
                    file.read(Batches::new(ALL, &mut off), &mut buffer)
                };
                let expected = if p.call_bytes() > 0 { Err(FailureCause::Short) } else { Ok(0) };
                assert_eq!(read.map_err(|e| e.cause), expected, "{name}");
            }
            file.close().unwrap();
            world.remove(&name);
        }
    }
}

/// Without equal parts the owners of bytes are unknown.
fn two_phase_needs_equal_parts(world: &RankFixture<'_>) {
    let p = pattern_of(
        world.comm.rank(),
        world.comm.size(),
        4097,
        (AccessKind::Collective, CallAddressing::Pointer, CallStyle::Blocking),
    );
    for driver_name in ["posix", "uring"] {
        let options = DriverOptions { collective: Collective::TwoPhase, ..DriverOptions::default() };
        let (path, comm) = (FilePath::of(&world.path("two-phase")).unwrap(), world.comm);
        let request = OpenRequest { path: &path, mode: OpenMode::CreateNew, comm, hints: &[] };
        let mut file = (driver(driver_name).unwrap().create)(&options).open(&request).unwrap();
        let refused = file.support(&p).reason().is_some_and(|why| why.contains("one length"));
        assert_eq!(refused, world.comm.size() > 1, "{driver_name}");
        if refused {
            let mut buffer = buffer_for(&p);
            assert!(file.prepare(&p, Direction::Write, &mut buffer, &[]).unwrap_err().text.contains("one length"));
        }
        file.close().unwrap();
        world.remove("two-phase");
    }
}

fn null_accepts_everything(world: &RankFixture<'_>) {
    for form in call_variants() {
        let p = pattern_of(world.comm.rank(), world.comm.size(), 5, form);
        let mut buffer = buffer_for(&p);
        let mut file = world.open("null", "null", OpenMode::CreateNew);
        assert_eq!(file.support(&p).reason(), None);
        file.prepare(&p, Direction::Write, &mut buffer, &[]).unwrap();
        let mut ran = 0;
        assert_eq!(
            file.write(Batches::new(ALL, &mut Latency::off()).with_computation(&mut || ran += 1), &buffer).unwrap(),
            CALLS * p.call_bytes()
        );
        assert_eq!(
            file.read(Batches::new(ALL, &mut Latency::off()).with_computation(&mut || ran += 1), &mut buffer).unwrap(),
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
