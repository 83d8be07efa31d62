//! When the next batch is requested, and the state after an error.

use super::tests::{all, assert_idle, uring};
use super::*;
use crate::testing::{fill_stream, pattern, scratch};
use crate::{Batches, Direct, OpenMode};

const CHUNK: u64 = 4096;

fn file_of(chunks: u64) -> (tempfile::TempDir, std::path::PathBuf) {
    let dir = scratch();
    let path = dir.path().join("f");
    std::fs::write(&path, vec![7; (chunks * CHUNK) as usize]).unwrap();
    (dir, path)
}

#[test]
fn the_next_batch_is_requested_while_the_last_is_in_flight() {
    let (_dir, path) = file_of(200);
    let p = pattern(CHUNK, 2, 100);
    let mut buffer = TransferBuffer::new(64 * CHUNK, p.call_bytes()).unwrap();
    for direction in [Direction::Read, Direction::Write] {
        let mut file = uring(&path, OpenMode::Update, Direct::Auto, 8);
        file.prepare(&p, direction, &mut buffer, &[]).unwrap();
        assert!(file.protocol().pipelined);
        let (mut newest, mut asked, mut left) = (1, Vec::new(), 99);
        let mut next = |under_way: u64| {
            asked.push((newest, under_way));
            let calls = (2 * newest).min(left);
            (newest, left) = (calls, left - calls);
            (calls > 0).then_some(calls)
        };
        let (first, mut latency) = (Batch { first_call: 0, calls: 1 }, Latency::on());
        let moved = match direction {
            Direction::Read => file.read(Batches::new(first, &mut latency).with_next(&mut next), &mut buffer),
            Direction::Write => file.write(Batches::new(first, &mut latency).with_next(&mut next), &buffer),
        };
        assert_eq!(moved.unwrap(), 200 * CHUNK);
        let batches: Vec<u64> = asked.iter().map(|(calls, _)| *calls).collect();
        assert_eq!(batches, [1, 2, 4, 8, 16, 32, 37], "each once, the last one too");
        for (calls, under_way) in asked {
            assert!(under_way < 2 * calls && under_way <= 8, "{under_way} of {} chunks are in flight", 2 * calls);
        }
        assert_idle(&mut file);
    }
    assert_eq!(std::fs::metadata(&path).unwrap().len(), 200 * CHUNK);
}

#[test]
fn nothing_is_requested_after_an_error() {
    let (_dir, path) = file_of(10);
    let p = pattern(CHUNK, 1, 100);
    let mut buffer = TransferBuffer::new(64 * CHUNK, CHUNK).unwrap();
    let mut file = uring(&path, OpenMode::ReadOnly, Direct::Auto, 4);
    file.prepare(&p, Direction::Read, &mut buffer, &[]).unwrap();
    let mut asked = 0;
    let mut next = |_| {
        asked += 1;
        Some(4)
    };
    let first = Batch { first_call: 0, calls: 4 };
    let error = file.read(Batches::new(first, &mut Latency::off()).with_next(&mut next), &mut buffer).unwrap_err();
    assert_eq!((error.offset_bytes, error.expected_got_bytes), (Some(10 * CHUNK), Some((CHUNK, 0))));
    // The batch with chunks 8 to 11 failed; the next one may have been requested before, but none of its chunks started.
    assert!((2..=3).contains(&asked), "{asked}");
    assert_idle(&mut file);
}

#[test]
fn edge_sectors_prevent_pipelining() {
    let (_dir, path) = file_of(10);
    let mut buffer = TransferBuffer::new(64 * CHUNK, CHUNK).unwrap();
    let mut flows = |path: &std::path::Path, mode, chunk, direction| {
        let mut file = uring(path, mode, Direct::Auto, 4);
        let prepared = file.prepare(&pattern(chunk, 1, 8), direction, &mut buffer, &[]).unwrap();
        (prepared.direct == Some(true), file.protocol().pipelined)
    };
    for (chunk, expected) in [(CHUNK, true), (CHUNK - 8, false)] {
        let (is_direct, flows) = flows(&path, OpenMode::Update, chunk, Direction::Write);
        // Without direct I/O there are no edges.
        assert_eq!(flows, expected || !is_direct, "chunks of {chunk}");
    }
    let mut file = uring(&path, OpenMode::ReadOnly, Direct::Auto, 4);
    assert!(!file.protocol().pipelined, "no pattern is prepared");
    let batch = all(&pattern(CHUNK, 1, 8));
    fill_stream(&mut buffer, 1);
    assert!(file.read(Batches::new(batch, &mut Latency::off()).with_next(&mut |_| None), &mut buffer).is_err());
}
