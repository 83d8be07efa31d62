//! The same bytes and errors as posix, and nothing in flight after a batch, whatever its outcome.

use std::path::Path;

use io_uring::opcode;
use proptest::prelude::*;

use super::*;
use crate::direct::FdPair;
use crate::queue::in_flight::InFlightOperations;
use crate::statx::direct_align;
use crate::testing::{
    fill_stream, open_alone, pattern, scratch, stream_byte, with_little_lockable_memory, LOCKABLE_BYTES,
};
use crate::{AccessKind, Batches, CallForm, Direct, OpenMode, RankPartition};

fn settings(queue_depth: u32) -> QueueSettings {
    (&DriverOptions { queue_depth, ..DriverOptions::default() }).into()
}

pub(super) fn uring(path: &Path, mode: OpenMode, direct: Direct, depth: u32) -> UringFile {
    UringFile::new(OffsetFile::single_rank(FdPair::open_alone(path, mode, direct).unwrap()), settings(depth)).unwrap()
}

/// A part with sectors shared with another rank.
fn shared(chunk: u64) -> AccessPattern {
    AccessPattern { stride_bytes: 2 * chunk, ranks: 2, rank_distance_bytes: chunk, ..pattern(chunk, 1, 4) }
}

pub(super) fn all(pattern: &AccessPattern) -> Batch {
    Batch { first_call: 0, calls: pattern.max_calls }
}

/// Empty queues and counters: the batch has really completed.
pub(super) fn assert_idle(file: &mut UringFile) {
    assert!(file.queue.ring.submission().is_empty());
    assert!(file.queue.ring.completion().is_empty());
    assert!(!file.queue.abandoned);
    assert!(file.pump.is_idle());
}

/// Transfers of several ranks on one file, and its expected content.
#[derive(Clone, Debug)]
struct TransferCase {
    ranks: Vec<AccessPattern>,
    period: u64,
    depth: u32,
    piece_shift: u32,
    split: u64,
    /// Batches of `split` calls are pipelined.
    flows: bool,
}

impl TransferCase {
    fn ring(&self, rank: usize) -> TransferBuffer {
        let mut buffer =
            TransferBuffer::new(self.period.next_multiple_of(4096), self.ranks[rank].call_bytes()).unwrap();
        buffer.set_period_bytes(self.period);
        fill_stream(&mut buffer, rank as u64 + 1);
        buffer
    }

    fn batches(&self) -> Vec<Batch> {
        let calls = self.ranks[0].max_calls;
        let split = self.split.min(calls);
        vec![Batch { first_call: 0, calls: split }, Batch { first_call: split, calls: calls - split }]
    }

    fn pipelined_batches(&self) -> (Batch, impl FnMut(u64) -> Option<u64>) {
        let mut left = self.ranks[0].max_calls;
        let step = self.split.max(1);
        let mut take = move || {
            let calls = step.min(left);
            left -= calls;
            calls
        };
        let first = Batch { first_call: 0, calls: take() };
        (first, move |_| Some(take()).filter(|calls| *calls > 0))
    }

    /// The file by the definition of a pattern, byte for byte.
    fn expected_file(&self) -> Vec<u8> {
        let mut file = Vec::new();
        for (rank, p) in self.ranks.iter().enumerate() {
            for k in 0..p.max_calls * p.chunks_per_call {
                let (start, position) = (p.chunk_offset(k) as usize, p.stream_bytes + k * p.chunk_bytes);
                let end = start + p.chunk_bytes as usize;
                file.resize(file.len().max(end), 0);
                for (i, byte) in file[start..end].iter_mut().enumerate() {
                    *byte = stream_byte(rank as u64 + 1, position + i as u64, self.period);
                }
            }
        }
        file
    }

    /// A poisoned buffer after all reads of a rank from `file`, by the definition.
    fn expected_ring(&self, rank: usize, file: &[u8], buffer: &TransferBuffer) -> Vec<u8> {
        let p = &self.ranks[rank];
        let mut memory = vec![0; buffer.bytes().len()];
        for call in 0..p.max_calls {
            for j in 0..p.chunks_per_call {
                let index = buffer.index(p.stream_position(call)) + (j * p.chunk_bytes) as usize;
                let offset = p.chunk_offset(call * p.chunks_per_call + j) as usize;
                let len = p.chunk_bytes as usize;
                memory[index..index + len].copy_from_slice(&file[offset..offset + len]);
            }
        }
        memory
    }

    fn open(&self, name: &str, path: &Path, mode: OpenMode, direct: Direct) -> Box<dyn OpenFile> {
        if name == "uring" {
            let files = FdPair::open_alone(path, mode, direct).unwrap();
            return Box::new(
                UringFile::with_piece_shift(OffsetFile::single_rank(files), settings(self.depth), self.piece_shift)
                    .unwrap(),
            );
        }
        open_alone(name, path, mode, direct, self.depth).unwrap().unwrap()
    }

    fn write_all(&self, name: &str, path: &Path, direct: Direct) {
        for (rank, p) in self.ranks.iter().enumerate() {
            let mode = if rank == 0 { OpenMode::CreateNew } else { OpenMode::Update };
            let mut file = self.open(name, path, mode, direct);
            let mut buffer = self.ring(rank);
            file.prepare(p, Direction::Write, &mut buffer, &[]).unwrap();
            if self.flows {
                let (first, mut next) = self.pipelined_batches();
                let moved = file.write(Batches::new(first, &mut Latency::off()).with_next(&mut next), &buffer);
                assert_eq!(moved.unwrap(), p.max_calls * p.call_bytes());
            } else {
                for batch in self.batches() {
                    assert_eq!(
                        file.write(Batches::new(batch, &mut Latency::off()), &buffer).unwrap(),
                        batch.calls * p.call_bytes()
                    );
                }
            }
            file.sync().unwrap();
            file.close().unwrap();
        }
    }

    fn read_all(&self, name: &str, path: &Path, direct: Direct, content: &[u8]) {
        for (rank, p) in self.ranks.iter().enumerate() {
            let mut file = self.open(name, path, OpenMode::ReadOnly, direct);
            let mut buffer = self.ring(rank);
            buffer.bytes_mut().fill(0);
            file.prepare(p, Direction::Read, &mut buffer, &[]).unwrap();
            if self.flows {
                let (first, mut next) = self.pipelined_batches();
                let moved = file.read(Batches::new(first, &mut Latency::off()).with_next(&mut next), &mut buffer);
                assert_eq!(moved.unwrap(), p.max_calls * p.call_bytes());
            } else {
                for batch in self.batches() {
                    assert_eq!(
                        file.read(Batches::new(batch, &mut Latency::off()), &mut buffer).unwrap(),
                        batch.calls * p.call_bytes()
                    );
                }
            }
            assert!(buffer.bytes() == self.expected_ring(rank, content, &buffer), "rank {rank} read other bytes");
            file.close().unwrap();
        }
    }
}

prop_compose! {
    fn cases()(
        ranks in 1_u64..4,
        chunk in prop_oneof![Just(512), Just(1024), Just(1032), Just(4096), Just(4104), Just(32768), Just(32776), (1_u64..500).prop_map(|w| 8 * w)],
        chunks_per_call in 1_u64..5,
        max_calls in 1_u64..12,
        gap in prop_oneof![Just(0), Just(512), Just(8)],
        origin in prop_oneof![Just(0), Just(4096), Just(1 << 20), (0_u64..1000).prop_map(|w| 8 * w)],
        stream in prop_oneof![Just(0), Just(4096 * 7), (0_u64..100_000).prop_map(|w| 8 * w)],
        segmented in any::<bool>(),
        pages in 1_u64..20,
        odd in prop_oneof![3 => Just(0), 1 => 1_u64..4096],
        depth in 1_u32..40,
        piece_shift in prop_oneof![Just(12_u32), Just(14), Just(30)],
        split in 0_u64..12,
        flows in any::<bool>(),
    ) -> TransferCase {
        let segment = (chunk + gap) * chunks_per_call * max_calls;
        let rank = |r| AccessPattern {
            kind: AccessKind::Collective,
            chunk_bytes: chunk,
            chunks_per_call,
            base_bytes: origin + r * if segmented { segment } else { chunk + gap },
            stride_bytes: (chunk + gap) * if segmented { 1 } else { ranks },
            origin_bytes: origin,
            rank: r,
            ranks,
            rank_distance_bytes: if segmented { segment } else { chunk + gap },
            partition: RankPartition::Equal,
            form: CallForm::default(),
            stream_bytes: stream,
            max_calls,
            order: None,
            mix: None,
        };
        TransferCase { ranks: (0..ranks).map(rank).collect(), period: 4096 * pages - odd, depth, piece_shift, split, flows }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn same_bytes_by_every_route(case in cases()) {
        let content = case.expected_file();
        let ways = [("posix", Direct::Off), ("uring", Direct::Off), ("uring", Direct::Auto), ("posix", Direct::Auto)];
        for (i, (name, direct)) in ways.into_iter().enumerate() {
            let dir = scratch();
            let path = dir.path().join("f");
            case.write_all(name, &path, direct);
            prop_assert!(std::fs::read(&path).unwrap() == content, "{} {:?} wrote other bytes", name, direct);
            // Read by another route than it was written.
            let (name, direct) = ways[(i + 1) % ways.len()];
            case.read_all(name, &path, direct, &content);
        }
    }

    #[test]
    fn short_reads_are_reported_alike(case in cases(), cut in 1_u64..100_000) {
        let dir = scratch();
        let path = dir.path().join("f");
        let content = case.expected_file();
        let len = content.len() as u64 - cut.min(content.len() as u64);
        std::fs::write(&path, &content[..len as usize]).unwrap();
        for (rank, p) in case.ranks.iter().enumerate() {
            let numbers = 0..p.max_calls * p.chunks_per_call;
            let first = numbers.map(|k| p.chunk_offset(k)).find(|offset| offset + p.chunk_bytes > len);
            for (name, direct) in [("posix", Direct::Off), ("uring", Direct::Off), ("uring", Direct::Auto), ("posix", Direct::Auto)] {
                let mut file = case.open(name, &path, OpenMode::ReadOnly, direct);
                let mut buffer = case.ring(rank);
                file.prepare(p, Direction::Read, &mut buffer, &[]).unwrap();
                for attempt in 0..2 {
                    match (file.read(Batches::new(all(p), &mut Latency::off()), &mut buffer), first) {
                        (Ok(bytes), None) => prop_assert_eq!(bytes, p.max_calls * p.call_bytes()),
                        (Err(error), Some(offset)) => {
                            prop_assert_eq!(error.cause, FailureCause::Short, "{} {}", error, attempt);
                            prop_assert_eq!(error.offset_bytes, Some(offset));
                            prop_assert_eq!(error.expected_got_bytes, Some((p.chunk_bytes, len.saturating_sub(offset))));
                        }
                        (outcome, first) => prop_assert!(false, "{name} {direct:?}: {outcome:?}, expected {first:?}"),
                    }
                }
                file.close().unwrap();
            }
        }
    }
}

/// Ranks that share file-system blocks and cached pages write a new file at the same time.
#[test]
fn ranks_write_at_the_same_time() {
    const RANKS: u64 = 4;
    for (chunk, name, direct) in [
        (512, "uring", Direct::Auto),
        (1024, "uring", Direct::Auto),
        (1024, "posix", Direct::Auto),
        (1032, "uring", Direct::Auto),
        (1032, "uring", Direct::Off),
    ] {
        let rank = |r| AccessPattern { base_bytes: r * chunk, stride_bytes: RANKS * chunk, ..pattern(chunk, 4, 50) };
        let case = TransferCase {
            ranks: (0..RANKS).map(rank).collect(),
            period: 4096 * 11,
            depth: 8,
            piece_shift: 30,
            split: 7,
            flows: false,
        };
        let dir = scratch();
        let path = dir.path().join("f");
        drop(case.open(name, &path, OpenMode::CreateNew, direct));
        std::thread::scope(|scope| {
            for (rank, p) in case.ranks.iter().enumerate() {
                let (case, path) = (&case, &path);
                scope.spawn(move || {
                    let mut file = case.open(name, path, OpenMode::Update, direct);
                    let mut buffer = case.ring(rank);
                    file.prepare(p, Direction::Write, &mut buffer, &[]).unwrap();
                    for batch in case.batches() {
                        file.write(Batches::new(batch, &mut Latency::off()), &buffer).unwrap();
                    }
                    file.sync().unwrap();
                });
            }
        });
        let content = case.expected_file();
        assert!(std::fs::read(&path).unwrap() == content, "{name} {direct:?} chunk {chunk}");
        case.read_all("posix", &path, Direct::Off, &content);
    }
}

#[test]
fn strategy_describes_the_settings_in_force() {
    let dir = scratch();
    let path = dir.path().join("f");
    let mut file = uring(&path, OpenMode::CreateNew, Direct::Auto, 32);
    let mut buffer = TransferBuffer::new(1 << 16, 1 << 16).unwrap();
    let small = AccessPattern { kind: AccessKind::SharedOrdered, ..shared(1032) };
    let prepared = file.prepare(&small, Direction::Write, &mut buffer, &[]).unwrap();
    assert_eq!(prepared.direct, Some(false));
    for part in [
        "io_uring write at offsets in rank order",
        "no shared pointer",
        "buffered, not direct",
        "depth 32",
        "registered",
    ] {
        assert!(prepared.strategy.contains(part), "{part}: {}", prepared.strategy);
    }
    let large = pattern(1 << 14, 1, 1);
    let prepared = file.prepare(&large, Direction::Read, &mut buffer, &[]).unwrap();
    assert!(
        prepared.strategy.contains("depth 4, waits for 1 at once,"),
        "windows in flight must not overlap: {}",
        prepared.strategy
    );
    let has_direct = direct_align(&std::fs::File::open(&path).unwrap()).unwrap().is_some();
    assert_eq!(prepared.direct, Some(has_direct));
    let prepared = file.prepare(&pattern(1 << 16, 1, 1), Direction::Read, &mut buffer, &[]).unwrap();
    assert!(prepared.strategy.contains("depth 1,"), "{}", prepared.strategy);
}

#[test]
fn full_device_is_no_space_and_leaves_nothing_in_flight() {
    let mut file = uring(Path::new("/dev/full"), OpenMode::Update, Direct::Auto, 32);
    let mut buffer = TransferBuffer::new(1 << 20, 4096).unwrap();
    let p = AccessPattern { base_bytes: 8192, ..pattern(4096, 1, 1000) };
    assert!(file.write(Batches::new(all(&p), &mut Latency::off()), &buffer).unwrap_err().text.contains("prepare"));
    file.prepare(&p, Direction::Write, &mut buffer, &[]).unwrap();
    for _ in 0..3 {
        let error = file.write(Batches::new(all(&p), &mut Latency::off()), &buffer).unwrap_err();
        assert_eq!(
            (error.operation, error.cause, error.offset_bytes),
            ("io_uring write", FailureCause::NoSpace, Some(8192))
        );
        assert_idle(&mut file);
    }
}

#[test]
fn required_refuses_before_anything_runs() {
    let dir = scratch();
    let path = dir.path().join("f");
    let mut file = uring(&path, OpenMode::CreateNew, Direct::Required, 8);
    let odd = shared(1032);
    let reason = file.support(&odd).reason().unwrap();
    assert!(reason.contains("ranks share sectors of") || reason.contains("reports no alignment"), "{reason}");
    let mut buffer = TransferBuffer::new(1 << 16, 1 << 16).unwrap();
    let error = file.prepare(&odd, Direction::Write, &mut buffer, &[]).unwrap_err();
    assert_eq!(error.cause, FailureCause::Unsupported);
    assert!(error.text.contains(&reason), "{error}");
    let full = uring(Path::new("/dev/full"), OpenMode::Update, Direct::Required, 8);
    assert!(full.support(&pattern(4096, 1, 4)).reason().unwrap().contains("reports no alignment"));
}

#[test]
fn another_buffer_is_registered_anew_or_refused() {
    let dir = scratch();
    let path = dir.path().join("f");
    let mut file = uring(&path, OpenMode::CreateNew, Direct::Off, 8);
    let p = pattern(4096, 1, 4);
    // Successive buffers are mapped at the same address; each must be written from its own memory.
    for seed in 1..5 {
        let mut buffer = TransferBuffer::new(1 << 16, 4096).unwrap();
        fill_stream(&mut buffer, seed);
        file.prepare(&p, Direction::Write, &mut buffer, &[]).unwrap();
        file.write(Batches::new(all(&p), &mut Latency::off()), &buffer).unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), buffer.bytes()[..4 * 4096]);
        let stranger = TransferBuffer::new(1 << 16, 4096).unwrap();
        assert!(file
            .write(Batches::new(all(&p), &mut Latency::off()), &stranger)
            .unwrap_err()
            .text
            .contains("not the one passed"));
    }
}

#[test]
fn without_lockable_memory_it_runs_unregistered_and_says_so() {
    with_little_lockable_memory(|| {
        let dir = scratch();
        let path = dir.path().join("f");
        let mut file = uring(&path, OpenMode::CreateNew, Direct::Off, 8);
        let p = pattern(32768, 1, 40);
        let mut buffer = TransferBuffer::new(2 * LOCKABLE_BYTES, 32768).unwrap();
        fill_stream(&mut buffer, 3);
        let prepared = file.prepare(&p, Direction::Write, &mut buffer, &[]).unwrap();
        for part in ["buffers NOT registered", "RLIMIT_MEMLOCK is", "ulimit -l"] {
            assert!(prepared.strategy.contains(part), "{part}: {}", prepared.strategy);
        }
        file.write(Batches::new(all(&p), &mut Latency::off()), &buffer).unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), buffer.bytes()[..40 * 32768]);
        buffer.bytes_mut().fill(0);
        file.prepare(&p, Direction::Read, &mut buffer, &[]).unwrap();
        file.read(Batches::new(all(&p), &mut Latency::off()), &mut buffer).unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), buffer.bytes()[..40 * 32768]);
    });
}

#[test]
fn nothing_can_fail_too() {
    let dir = scratch();
    let path = dir.path().join("f");
    std::fs::write(&path, [1; 100]).unwrap();
    let mut file = uring(&path, OpenMode::ReadOnly, Direct::Off, 4);
    let mut buffer = TransferBuffer::new(4096, 0).unwrap();
    let p = pattern(0, 1, 4);
    file.prepare(&p, Direction::Write, &mut buffer, &[]).unwrap();
    assert!(file.write(Batches::new(all(&p), &mut Latency::off()), &buffer).is_err(), "not open for writing");
    assert_idle(&mut file);
    file.prepare(&p, Direction::Read, &mut buffer, &[]).unwrap();
    assert_eq!(file.read(Batches::new(all(&p), &mut Latency::off()), &mut buffer).unwrap(), 0);
}

#[test]
fn what_was_never_submitted_makes_the_queue_unusable() {
    let dir = scratch();
    let mut file = uring(&dir.path().join("f"), OpenMode::CreateNew, Direct::Off, 4);
    let mut buffer = TransferBuffer::new(1 << 16, 4096).unwrap();
    let p = pattern(4096, 1, 4);
    file.prepare(&p, Direction::Write, &mut buffer, &[]).unwrap();
    let mut flight = InFlightOperations::new(&mut file.queue);
    // SAFETY: an operation without memory.
    unsafe { flight.push(&opcode::Nop::new().build()) };
    drop(flight);
    let error = file.write(Batches::new(all(&p), &mut Latency::off()), &buffer).unwrap_err();
    assert!(error.text.contains("reopen it"), "{error}");
}
