//! A file whose operations always fail with EAGAIN.

use std::fs::File;
use std::io::PipeWriter;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use super::tests::{all, assert_idle};
use super::*;
use crate::direct::FdPair;
use crate::testing::{pattern, scratch};
use crate::two_phase::pipeline::{DomainTransfer, TransferPipeline, TransferSlot, TransferTarget as LaneWay};
use crate::{Direct, OpenMode};

/// A pipe without data and RWF_NOWAIT; its write end, and the operation to read from it.
fn never_ready(path: &Path) -> (FdPair, PipeWriter, TransferMode) {
    let mut files = FdPair::open_alone(path, OpenMode::CreateNew, Direct::Off).unwrap();
    let (reader, writer) = std::io::pipe().unwrap();
    files.buffered = File::from(OwnedFd::from(reader));
    (files, writer, TransferMode { direction: Direction::Read, direct: false, flags: libc::RWF_NOWAIT })
}

#[test]
fn an_operation_that_is_never_ready_is_an_error() {
    let dir = scratch();
    let (files, _writer, way) = never_ready(&dir.path().join("f"));
    let settings = QueueSettings::from(&DriverOptions { queue_depth: 4, ..DriverOptions::default() });
    let mut file = UringFile::new(OffsetFile::single_rank(files), settings).unwrap();
    let mut buffer = TransferBuffer::new(1 << 16, 4096).unwrap();
    let (p, route) = (pattern(4096, 1, 8), FileRoute::Buffered { reason: None });
    for _ in 0..2 {
        let walk = ChunkWalk::new(&p, Direction::Read, all(&p), &buffer, &PathBuf::new()).unwrap();
        let base = buffer.bytes_mut().as_mut_ptr();
        let job =
            PumpJob { way, base, depth: 4, wait_for: 1, operation_bytes: None, reuse_distance: 16, route: &route };
        // SAFETY: the windows of the walk lie inside the buffer, which has no other user.
        let outcome = unsafe { file.pump.run(&mut file.queue, &job, walk, &mut Latency::off(), None) };
        let Err(BatchFailure::Operation { number, errno, .. }) = outcome else { panic!("{outcome:?}") };
        // Any of those in flight may have exceeded the retries.
        assert!(number < 4 && errno == libc::EAGAIN, "{number} {errno}");
        assert_idle(&mut file);
    }
}

#[test]
fn a_domain_that_is_never_ready_is_an_error() {
    let dir = scratch();
    let path = dir.path().join("f");
    let (files, _writer, queued) = never_ready(&path);
    let mut queue = Queue::for_files(&files, 2, MAX_BUFFER_SHIFT).unwrap();
    let (mut memory, mut slots, mut latency) = ([0_u8; 64], [TransferSlot::default()], Latency::off());
    let way = LaneWay { file: &files.buffered, path: &path, mode: queued, align: 1 };
    let mut lane = TransferPipeline::new(way, Some(&mut queue), &mut slots, &mut latency);
    let op = DomainTransfer { offset: 0, memory: memory.as_mut_ptr(), len: 64, required_bytes: 64, buffer: None };
    // SAFETY: the memory lives until the slot has been finished.
    unsafe { lane.begin(0, op) };
    let error = lane.finish(0).unwrap_err();
    assert!(error.text.contains("Resource temporarily unavailable"), "{error}");
}
