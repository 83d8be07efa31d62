//! Several ranks on one file through every driver with explicit offsets: contents compared with the definition of the pattern. The ranks
//! are threads; MPI is `beff_fake_mpi`.

use std::path::Path;

use beff_fake_mpi::{error_code, ranks, script, ScriptedResult};
use beff_ffi::{Comm, Universe};

use crate::error::FailureCause;
use crate::testing::{fill_stream, scratch, stream_byte};
use crate::{
    driver, AccessKind, AccessPattern, Batch, Batches, Collective, Direct, Direction, DriverOptions, ExchangeMethod,
    FilePath, Latency, OpenFile, OpenMode, OpenRequest, Preallocate, TransferBuffer,
};

const RANKS: usize = 3;
const PERIOD: u64 = 15 * 4096;
const CALLS: u64 = 6;

/// The part of a rank: interleaved chunks, or a segment.
#[derive(Clone, Copy, Debug)]
enum ChunkPlacement {
    Interleaved { chunk: u64, per_call: u64, origin: u64 },
    Segmented { chunk: u64, distance: u64 },
}

impl ChunkPlacement {
    fn pattern(self, rank: u64) -> AccessPattern {
        let (ranks, kind) = (RANKS as u64, AccessKind::Collective);
        match self {
            Self::Interleaved { chunk, per_call, origin } => AccessPattern {
                kind,
                base_bytes: origin + rank * chunk,
                stride_bytes: ranks * chunk,
                origin_bytes: origin,
                rank,
                ranks,
                rank_distance_bytes: chunk,
                stream_bytes: origin / ranks,
                ..AccessPattern::private(chunk, per_call, CALLS)
            },
            Self::Segmented { chunk, distance } => AccessPattern {
                kind,
                base_bytes: rank * distance,
                rank,
                ranks,
                rank_distance_bytes: distance,
                ..AccessPattern::private(chunk, 1, CALLS)
            },
        }
    }

    /// The file after all calls over `before`.
    fn file(self, before: &[u8]) -> Vec<u8> {
        let mut file = before.to_vec();
        for rank in 0..RANKS as u64 {
            let p = self.pattern(rank);
            for chunk in 0..CALLS * p.chunks_per_call {
                let (at, position) = (p.chunk_offset(chunk), p.stream_bytes + chunk * p.chunk_bytes);
                file.resize(file.len().max((at + p.chunk_bytes) as usize), 0);
                for byte in 0..p.chunk_bytes {
                    file[(at + byte) as usize] = stream_byte(rank, position + byte, PERIOD);
                }
            }
        }
        file
    }
}

fn ring(p: &AccessPattern, seed: u64, shareable: bool) -> TransferBuffer {
    let new = if shareable { TransferBuffer::new_shareable } else { TransferBuffer::new };
    let mut buffer = new(PERIOD, p.call_bytes()).unwrap();
    buffer.set_period_bytes(PERIOD);
    fill_stream(&mut buffer, seed);
    buffer
}

fn open(name: &str, options: &DriverOptions, path: &Path, mode: OpenMode, comm: &Comm) -> Box<dyn OpenFile> {
    let path = FilePath::of(path).unwrap();
    let request = OpenRequest { path: &path, mode, comm, hints: &[] };
    (driver(name).unwrap().create)(options).open(&request).unwrap()
}

/// Every rank writes its part in batches, some followed by a sync, closes the file, and reads it back in other batches.
fn write_and_read(
    name: &str,
    options: &DriverOptions,
    shape: ChunkPlacement,
    path: &Path,
    shareable: bool,
) -> Vec<String> {
    ranks(RANKS, |rank| {
        let universe = Universe::init().unwrap();
        let comm = universe.world();
        let p = shape.pattern(rank as u64);
        let mut memory = ring(&p, rank as u64, shareable);
        let mut latency = Latency::off();
        let mut file = open(name, options, path, OpenMode::CreateNew, &comm);
        assert_eq!(file.support(&p).reason(), None, "{name} {shape:?}");
        let description = file.prepare(&p, Direction::Write, &mut memory, &[]).unwrap().strategy;
        comm.barrier().unwrap();
        let mut first_call = 0;
        for calls in [1, 3, 2] {
            let batch = Batch { first_call, calls };
            file.preallocate(batch).unwrap();
            assert_eq!(file.write(Batches::new(batch, &mut latency), &memory).unwrap(), calls * p.call_bytes());
            first_call += calls;
            comm.barrier().unwrap();
            if calls != 3 {
                file.trim().unwrap();
                comm.barrier().unwrap();
                file.sync().unwrap();
                comm.barrier().unwrap();
            }
        }
        file.close().unwrap();
        comm.barrier().unwrap();

        let whole = memory.bytes().to_vec();
        let mut file = open(name, options, path, OpenMode::ReadOnly, &comm);
        file.prepare(&p, Direction::Read, &mut memory, &[]).unwrap();
        comm.barrier().unwrap();
        for batch in [Batch { first_call: 0, calls: 4 }, Batch { first_call: 4, calls: 2 }] {
            let windows = |buffer: &TransferBuffer| -> Vec<u8> {
                let calls = batch.first_call..batch.first_call + batch.calls;
                calls
                    .flat_map(|call| buffer.window(p.stream_position(call), p.call_bytes() as usize).to_vec())
                    .collect()
            };
            let expected = windows(&memory);
            memory.bytes_mut().fill(0);
            assert_eq!(
                file.read(Batches::new(batch, &mut latency), &mut memory).unwrap(),
                batch.calls * p.call_bytes()
            );
            assert!(
                windows(&memory) == expected,
                "{name} {shape:?} rank {rank}: what was read is not what was written"
            );
            memory.bytes_mut().copy_from_slice(&whole);
            comm.barrier().unwrap();
        }
        file.close().unwrap();
        description
    })
}

/// In the first, a call spans several domains of each aggregator; in the others, a part of one.
fn shapes() -> [ChunkPlacement; 4] {
    [
        ChunkPlacement::Interleaved { chunk: 8232, per_call: 2, origin: 3 * 1032 },
        ChunkPlacement::Interleaved { chunk: 512, per_call: 1, origin: 0 },
        ChunkPlacement::Interleaved { chunk: 24, per_call: 5, origin: 3 * 8 },
        ChunkPlacement::Segmented { chunk: 520, distance: 4096 },
    ]
}

/// With the shortest domains.
fn two_phase(exchange: ExchangeMethod, aggregators: Option<u64>) -> DriverOptions {
    DriverOptions {
        collective: Collective::TwoPhase,
        exchange,
        aggregators,
        domain_bytes: 4096,
        queue_depth: 4,
        ..DriverOptions::default()
    }
}

fn check_file(name: &str, options: &DriverOptions, shareable: bool, expected: &str) {
    for shape in shapes() {
        let dir = scratch();
        let path = dir.path().join("f");
        let strategies = write_and_read(name, options, shape, &path, shareable);
        assert!(strategies.iter().all(|one| one.contains(expected)), "{strategies:?}");
        let (mut found, right) = (std::fs::read(&path).unwrap(), shape.file(&[]));
        if matches!(shape, ChunkPlacement::Segmented { .. }) && options.direct == Direct::Auto {
            // The last sector of a segment is written completely.
            let behind = found.split_off(right.len());
            assert!(behind.len() < 4096 && behind.iter().all(|byte| *byte == 0));
        }
        let wrong = found.iter().zip(&right).position(|(one, other)| one != other);
        assert_eq!((found.len(), wrong), (right.len(), None), "{name} {options:?} {shape:?}");
    }
}

#[test]
fn two_phase_by_messages_leaves_the_bytes_of_the_definition() {
    for name in ["posix", "uring"] {
        for aggregators in [None, Some(1), Some(2)] {
            check_file(name, &two_phase(ExchangeMethod::Messages, aggregators), false, "two-phase");
        }
    }
}

#[test]
fn two_phase_through_memory_leaves_the_bytes_of_the_definition() {
    for name in ["posix", "uring"] {
        for aggregators in [None, Some(2)] {
            check_file(name, &two_phase(ExchangeMethod::SharedMemory, aggregators), true, "two-phase");
        }
    }
}

#[test]
fn ranks_by_themselves_leave_the_bytes_of_the_definition() {
    let independent = DriverOptions { collective: Collective::Independent, ..DriverOptions::default() };
    for (name, expected) in [("posix", "pwrite"), ("uring", "io_uring"), ("mmap", "memcpy")] {
        check_file(name, &independent, false, expected);
    }
}

/// With direct I/O where this file system supports it: chunks that share sectors and blocks, preallocated.
#[test]
fn direct_transfers_leave_the_bytes_of_the_definition() {
    for (name, preallocate) in [("posix", Preallocate::Auto), ("uring", Preallocate::Size)] {
        let options = DriverOptions {
            direct: Direct::Auto,
            preallocate,
            domain_bytes: 8192,
            exchange: ExchangeMethod::Messages,
            ..DriverOptions::default()
        };
        check_file(name, &options, false, "");
    }
}

/// Over existing contents: bytes between and after the parts are unchanged.
#[test]
fn bytes_outside_the_pattern_are_unchanged() {
    for (name, options) in [
        ("posix", two_phase(ExchangeMethod::Messages, None)),
        ("uring", two_phase(ExchangeMethod::SharedMemory, None)),
        ("posix", DriverOptions::default()),
        ("mmap", DriverOptions::default()),
    ] {
        let shape = ChunkPlacement::Segmented { chunk: 520, distance: 4096 };
        let dir = scratch();
        let path = dir.path().join("f");
        let before: Vec<u8> = (0..20_000_u32).map(|n| (n % 199) as u8 + 1).collect();
        std::fs::write(&path, &before).unwrap();
        ranks(RANKS, |rank| {
            let universe = Universe::init().unwrap();
            let comm = universe.world();
            let p = shape.pattern(rank as u64);
            let mut memory = ring(&p, rank as u64, true);
            let mut file = open(name, &options, &path, OpenMode::Update, &comm);
            file.prepare(&p, Direction::Write, &mut memory, &[]).unwrap();
            let batch = Batch { first_call: 0, calls: CALLS };
            file.preallocate(batch).unwrap();
            file.write(Batches::new(batch, &mut Latency::off()), &memory).unwrap();
            file.sync().unwrap();
            file.close().unwrap();
        });
        assert!(std::fs::read(&path).unwrap() == shape.file(&before), "{name}");
    }
}

/// Each rank reads the part that another rank has written, from the same transfer buffer.
#[test]
fn ranks_read_what_their_neighbours_have_written() {
    for exchange in [ExchangeMethod::Messages, ExchangeMethod::SharedMemory] {
        let (shape, options) = (shapes()[0], two_phase(exchange, None));
        let dir = scratch();
        let path = dir.path().join("f");
        std::fs::write(&path, shape.file(&[])).unwrap();
        ranks(RANKS, |rank| {
            let universe = Universe::init().unwrap();
            let comm = universe.world();
            let other = (rank as u64 + 1) % RANKS as u64;
            let p = shape.pattern(other);
            let mut memory = ring(&p, 77, true);
            let mut file = open("posix", &options, &path, OpenMode::ReadOnly, &comm);
            file.prepare(&p, Direction::Read, &mut memory, &[]).unwrap();
            let batch = Batch { first_call: 0, calls: 5 };
            file.read(Batches::new(batch, &mut Latency::off()), &mut memory).unwrap();
            for call in 0..5 {
                let first = p.stream_position(call);
                let right: Vec<u8> = (0..p.call_bytes()).map(|n| stream_byte(other, first + n, PERIOD)).collect();
                assert!(memory.window(first, p.call_bytes() as usize) == right, "{exchange:?} rank {rank} call {call}");
            }
            file.close().unwrap();
        });
    }
}

/// A file that ends too early is an error on all ranks, and none blocks.
#[test]
fn an_error_of_one_is_an_error_of_all() {
    for (exchange, cause) in
        [(ExchangeMethod::Messages, FailureCause::Short), (ExchangeMethod::SharedMemory, FailureCause::Short)]
    {
        let (shape, options) = (shapes()[1], two_phase(exchange, None));
        let dir = scratch();
        let path = dir.path().join("f");
        let mut right = shape.file(&[]);
        right.truncate(right.len() - 100);
        std::fs::write(&path, right).unwrap();
        let errors = ranks(RANKS, |rank| {
            let universe = Universe::init().unwrap();
            let comm = universe.world();
            let p = shape.pattern(rank as u64);
            let mut memory = ring(&p, 5, true);
            let mut file = open("posix", &options, &path, OpenMode::ReadOnly, &comm);
            file.prepare(&p, Direction::Read, &mut memory, &[]).unwrap();
            let error = file
                .read(Batches::new(Batch { first_call: 0, calls: CALLS }, &mut Latency::off()), &mut memory)
                .unwrap_err();
            comm.barrier().unwrap();
            file.close().unwrap();
            error
        });
        assert!(errors.iter().all(|error| error.cause == cause), "{errors:?}");
        assert!(errors.iter().any(|error| error.text.contains("aggregator on rank")), "{errors:?}");
    }
}

#[test]
fn a_failed_message_is_an_error_of_all() {
    let (shape, options) = (shapes()[0], two_phase(ExchangeMethod::Messages, None));
    let dir = scratch();
    let path = dir.path().join("f");
    let failed = ranks(RANKS, |rank| {
        let universe = Universe::init().unwrap();
        let comm = universe.world();
        let p = shape.pattern(rank as u64);
        let mut memory = ring(&p, 5, false);
        let mut file = open("posix", &options, &path, OpenMode::CreateNew, &comm);
        file.prepare(&p, Direction::Write, &mut memory, &[]).unwrap();
        if rank == 1 {
            // No rank sends, so that none waits for a message.
            script("Irecv", &[ScriptedResult::Code(error_code("MPI_ERR_OTHER"))]);
        }
        let written = file.write(Batches::new(Batch { first_call: 0, calls: 2 }, &mut Latency::off()), &memory);
        comm.barrier().unwrap();
        written.is_err()
    });
    assert_eq!(failed, [true; RANKS]);
}

/// Rank 0 alone creates the file, the others open it; if it fails, all fail.
#[test]
fn a_file_is_created_once_or_not_at_all() {
    for name in ["posix", "uring", "mmap"] {
        let dir = scratch();
        let path = dir.path().join("f");
        let opened = |mode| {
            ranks(RANKS, |_| {
                let universe = Universe::init().unwrap();
                let held = FilePath::of(&path).unwrap();
                let request = OpenRequest { path: &held, mode, comm: &universe.world(), hints: &[] };
                (driver(name).unwrap().create)(&DriverOptions::default())
                    .open(&request)
                    .map(|file| file.close())
                    .is_ok()
            })
        };
        assert_eq!(opened(OpenMode::Update), [false; RANKS]);
        assert_eq!(opened(OpenMode::CreateNew), [true; RANKS]);
        assert_eq!(opened(OpenMode::CreateNew), [false; RANKS]);
        assert_eq!(opened(OpenMode::Update), [true; RANKS]);
    }
}
