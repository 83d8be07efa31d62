//! Depths by chunk size, and chunks split into operations.

use std::path::Path;

use super::*;
use crate::direct::FdPair;
use crate::testing::{fill_stream, pattern, scratch};
use crate::{Batches, CalibratedDepth, Direct, OpenMode};

fn row(direction: Direction, chunk_bytes: u64, depth: u32, wait_for: u32) -> CalibratedDepth {
    CalibratedDepth { direction, chunk_bytes, depth, wait_for, operation_bytes: None }
}

fn calibrated() -> DriverOptions {
    let rows = [(1024, 64, 16), (32768, 8, 2), (1 << 20, 2, 1)];
    let calibrated = rows.map(|(chunk, depth, wait)| row(Direction::Write, chunk, depth, wait)).to_vec();
    DriverOptions { queue_depth: 32, calibrated, ..DriverOptions::default() }
}

fn write_and_read(file: &mut UringFile, path: &Path, p: &AccessPattern) {
    let mut buffer = TransferBuffer::new(1 << 18, p.call_bytes()).unwrap();
    fill_stream(&mut buffer, 4);
    let all = Batch { first_call: 0, calls: p.max_calls };
    file.prepare(p, Direction::Write, &mut buffer, &[]).unwrap();
    file.write(Batches::new(all, &mut Latency::off()), &buffer).unwrap();
    let bytes = (p.max_calls * p.call_bytes()) as usize;
    assert!(std::fs::read(path).unwrap() == buffer.bytes()[..bytes]);
    let written = buffer.bytes().to_vec();
    buffer.bytes_mut().fill(0);
    file.prepare(p, Direction::Read, &mut buffer, &[]).unwrap();
    file.read(Batches::new(all, &mut Latency::off()), &mut buffer).unwrap();
    assert!(buffer.bytes()[..bytes] == written[..bytes]);
}

#[test]
fn rows_are_chosen_by_direction_and_chunk() {
    let settings = QueueSettings::from(&calibrated());
    let depth = |direction, chunk| settings.row(direction, chunk).map(|row| row.depth);
    for (chunk, expected) in [(8, 64), (1024, 64), (1032, 64), (32768, 8), (32776, 8), (8 << 20, 2)] {
        assert_eq!(depth(Direction::Write, chunk), Some(expected), "{chunk}");
        assert_eq!(depth(Direction::Read, chunk), None);
    }
    assert_eq!(settings.largest_depth(), 64);
    let only_small = DriverOptions {
        queue_depth: 128,
        calibrated: vec![row(Direction::Write, 0, 4, 1), row(Direction::Read, 0, 8, 1)],
        ..DriverOptions::default()
    };
    assert_eq!(QueueSettings::from(&only_small).largest_depth(), 8, "queue_depth is not in force");
}

#[test]
fn a_chunk_moves_by_operations_at_the_same_time() {
    let dir = scratch();
    for (n, direct) in [Direct::Off, Direct::Auto].into_iter().enumerate() {
        let path = dir.path().join(n.to_string());
        let files = FdPair::open_alone(&path, OpenMode::CreateNew, direct).unwrap();
        let rows = [Direction::Write, Direction::Read]
            .map(|d| CalibratedDepth { operation_bytes: Some(8000), ..row(d, 4096, 3, 1) });
        let options = DriverOptions { calibrated: rows.to_vec(), ..DriverOptions::default() };
        let mut file = UringFile::new(OffsetFile::single_rank(files), (&options).into()).unwrap();
        let mut buffer = TransferBuffer::new(1 << 18, 1 << 16).unwrap();
        // Whole sectors: 8192. Chunks up to that size stay one operation.
        for (chunk, expected) in [(65536, true), (20000, true), (8192, false), (4096, false)] {
            let in_force = file.prepare(&pattern(chunk, 1, 4), Direction::Write, &mut buffer, &[]).unwrap();
            let is_reported = in_force.strategy.contains(", chunks in operations of 8192 bytes");
            assert_eq!(is_reported, expected, "{chunk}: {}", in_force.strategy);
        }
        write_and_read(&mut file, &path, &pattern(65536, 1, 4));
        let operations = file.submission_statistics().map(|s| s.registered + s.unregistered);
        assert_eq!(operations, Some(2 * 4 * 8), "writes and reads of four chunks, eight operations each");
        // The file ends inside the third operation of the last chunk: the chunk is reported as short by the missing bytes.
        let cut = 3 * 65536 + 2 * 8192 + 4096;
        std::fs::File::options().write(true).open(&path).unwrap().set_len(cut).unwrap();
        let p = pattern(65536, 1, 4);
        file.prepare(&p, Direction::Read, &mut buffer, &[]).unwrap();
        let error =
            file.read(Batches::new(Batch { first_call: 0, calls: 4 }, &mut Latency::off()), &mut buffer).unwrap_err();
        assert_eq!(error.offset_bytes, Some(3 * 65536), "{error}");
        assert_eq!(error.expected_got_bytes, Some((65536, 20480)), "{error}");
        assert!(file.pump.is_idle());
    }
}

#[test]
fn parts_of_chunks_larger_than_the_period_of_the_memory_do_not_share_it() {
    let dir = scratch();
    let path = dir.path().join("f");
    let (chunk, calls) = (48 * 4096, 9);
    let content: Vec<u8> = (0..chunk * calls).map(|i| (i / 512 % 251) as u8).collect();
    std::fs::write(&path, &content).unwrap();
    let files = FdPair::open_alone(&path, OpenMode::ReadOnly, Direct::Auto).unwrap();
    let rows = vec![CalibratedDepth { operation_bytes: Some(4096), ..row(Direction::Read, 4096, 64, 8) }];
    let options = DriverOptions { calibrated: rows, ..DriverOptions::default() };
    let mut file = UringFile::new(OffsetFile::single_rank(files), (&options).into()).unwrap();
    let mut buffer = TransferBuffer::new(20 * 4096, chunk).unwrap();
    let p = pattern(chunk, 1, calls);
    let description = file.prepare(&p, Direction::Read, &mut buffer, &[]).unwrap().strategy;
    assert!(description.contains("depth 20, waits for 8"), "limited by the period: {description}");
    let (mut latency, mut batches) = (Latency::on(), Vec::new());
    let mut next = |under_way: u64| {
        batches.push(under_way);
        (batches.len() < 3).then_some(3)
    };
    let moved = file
        .read(Batches::new(Batch { first_call: 0, calls: 3 }, &mut latency).with_next(&mut next), &mut buffer)
        .unwrap();
    assert_eq!((moved, batches.len()), (chunk * calls, 3));
    assert_eq!(latency.histogram().map(|h| h.len()), Some(calls), "one time for each chunk");
    // The window of the last chunk is not reused.
    let at = buffer.index(p.stream_position(calls - 1));
    assert!(buffer.bytes()[at..][..chunk as usize] == content[(chunk * (calls - 1)) as usize..]);
    assert!(file.pump.is_idle());
}

#[test]
fn where_chunks_stay_whole_no_more_memory_is_in_flight() {
    let rows = vec![CalibratedDepth { operation_bytes: Some(1 << 20), ..row(Direction::Read, 4 << 20, 16, 4) }];
    let settings = QueueSettings::from(&DriverOptions { calibrated: rows, ..DriverOptions::default() });
    let found = |chunk_bytes, is_whole, most| settings.depth_and_wait(Direction::Read, chunk_bytes, is_whole, most);
    assert_eq!(found(4 << 20, false, 64), (16, 4));
    assert_eq!(found(4 << 20, true, 64), (4, 4));
    assert_eq!(found(94 << 20, true, 64), (2, 2), "at least two");
    assert_eq!(found(94 << 20, true, 1), (1, 1));
    assert_eq!(found(1 << 20, true, 64), (16, 4), "no larger than an operation");
}

#[test]
fn calls_with_work_under_them_stay_whole() {
    let dir = scratch();
    let files = FdPair::open_alone(&dir.path().join("f"), OpenMode::CreateNew, Direct::Off).unwrap();
    let rows = vec![CalibratedDepth { operation_bytes: Some(4096), ..row(Direction::Write, 4096, 4, 1) }];
    let options = DriverOptions { calibrated: rows, ..DriverOptions::default() };
    let mut file = UringFile::new(OffsetFile::single_rank(files), (&options).into()).unwrap();
    let mut buffer = TransferBuffer::new(1 << 18, 1 << 16).unwrap();
    let mut p = pattern(65536, 1, 4);
    for (style, expected) in [(CallStyle::Blocking, true), (CallStyle::Request, false)] {
        p.form.style = style;
        let description = file.prepare(&p, Direction::Write, &mut buffer, &[]).unwrap().strategy;
        assert_eq!(description.contains("in operations of"), expected, "{description}");
    }
}

#[test]
fn calibrated_depths_are_applied_and_reported() {
    let dir = scratch();
    let path = dir.path().join("f");
    let files = FdPair::open_alone(&path, OpenMode::CreateNew, Direct::Off).unwrap();
    let mut file = UringFile::new(OffsetFile::single_rank(files), (&calibrated()).into()).unwrap();
    let mut buffer = TransferBuffer::new(1 << 22, 1 << 20).unwrap();
    for (chunk, direction, expected) in [
        (1024, Direction::Write, "depth 64, waits for 16 at once"),
        (40_000, Direction::Write, "depth 8, waits for 2 at once"),
        (1024, Direction::Read, "depth 32, waits for 8 at once"),
    ] {
        let prepared = file.prepare(&pattern(chunk, 1, 1), direction, &mut buffer, &[]).unwrap();
        assert!(prepared.strategy.contains(expected), "{}", prepared.strategy);
    }
    write_and_read(&mut file, &path, &pattern(1024, 4, 60));
}

#[test]
fn the_other_direction_is_refused() {
    let dir = scratch();
    let files = FdPair::open_alone(&dir.path().join("f"), OpenMode::CreateNew, Direct::Off).unwrap();
    let mut file = UringFile::new(OffsetFile::single_rank(files), (&DriverOptions::default()).into()).unwrap();
    let mut buffer = TransferBuffer::new(1 << 16, 4096).unwrap();
    file.prepare(&pattern(4096, 1, 1), Direction::Write, &mut buffer, &[]).unwrap();
    let error =
        file.read(Batches::new(Batch { first_call: 0, calls: 1 }, &mut Latency::off()), &mut buffer).unwrap_err();
    assert!(error.text.contains("other direction"), "{error}");
}
