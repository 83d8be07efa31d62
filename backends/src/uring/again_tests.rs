//! A file that says EAGAIN to every operation, for ever.

use std::fs::File;
use std::io::PipeWriter;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use super::tests::{all, assert_idle};
use super::*;
use crate::direct::FdPair;
use crate::testing::{pattern, scratch};
use crate::two_phase::lane::{Lane, Op, Slot, Way as LaneWay};
use crate::{Direct, OpenMode};

/// A pipe without data, which is not waited for (RWF_NOWAIT); its other end, and how to read from it.
fn never_ready(path: &Path) -> (FdPair, PipeWriter, Way) {
    let mut files = FdPair::open_alone(path, OpenMode::CreateNew, Direct::Off).unwrap();
    let (reader, writer) = std::io::pipe().unwrap();
    files.buffered = File::from(OwnedFd::from(reader));
    (files, writer, Way { direction: Direction::Read, direct: false, flags: libc::RWF_NOWAIT })
}

#[test]
fn an_operation_that_is_never_ready_is_an_error() {
    let dir = scratch();
    let (files, _writer, way) = never_ready(&dir.path().join("f"));
    let settings = Settings::from(&DriverOptions { queue_depth: 4, ..DriverOptions::default() });
    let mut file = UringFile::new(Offsets::alone(files), settings).unwrap();
    let mut ring = Ring::new(1 << 16, 4096).unwrap();
    let (p, route) = (pattern(4096, 1, 8), Route::Buffered { reason: None });
    for _ in 0..2 {
        let walk = Walk::new(&p, all(&p), &ring, &PathBuf::new()).unwrap();
        let base = ring.bytes_mut().as_mut_ptr();
        let job = Job { way, base, depth: 4, wait_for: 1, operation_bytes: None, span: 16, route: &route };
        // SAFETY: the windows of the walk lie inside of the ring, which nobody else uses.
        let outcome = unsafe { file.pump.run(&mut file.queue, &job, walk, &mut Latency::off(), None) };
        let Err(Failure::Chunk { number, errno, .. }) = outcome else { panic!("{outcome:?}") };
        // Whichever of those in flight was asked once too often.
        assert!(number < 4 && errno == libc::EAGAIN, "{number} {errno}");
        assert_idle(&mut file);
    }
}

#[test]
fn a_domain_that_is_never_ready_is_an_error() {
    let dir = scratch();
    let path = dir.path().join("f");
    let (files, _writer, queued) = never_ready(&path);
    let mut queue = Queue::of(&files, 2, MAX_PIECE_SHIFT).unwrap();
    let (mut memory, mut slots, mut latency) = ([0_u8; 64], [Slot::default()], Latency::off());
    let way = LaneWay { file: &files.buffered, path: &path, queued, align: 1 };
    let mut lane = Lane::new(way, Some(&mut queue), &mut slots, &mut latency);
    let op = Op { offset: 0, memory: memory.as_mut_ptr(), len: 64, need: 64, buffer: None };
    // SAFETY: the memory lives until the slot has been finished.
    unsafe { lane.begin(0, op) };
    let error = lane.finish(0).unwrap_err();
    assert!(error.text.contains("Resource temporarily unavailable"), "{error}");
}
