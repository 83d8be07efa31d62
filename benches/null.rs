//! Cost of the harness: accesses of the null backend, and data stamps. `benches/README.md` explains the figures.

use beff_backends::{
    driver, AccessPattern, Batch, Batches, Direction, DriverOptions, FilePath, Latency, OpenMode, OpenRequest,
    OrderKind, TransferBuffer,
};
use beff_ffi::Comm;
use beff_raw::frame::run::harness::null_file;
use beff_stamp::{Generation, StampStream};
use divan::counter::{BytesCount, ItemsCount};
use divan::{black_box, Bencher};

/// 4096 times a prime, as in a run on a machine with 32 MiB of last-level cache.
const PERIOD_BYTES: u64 = 4096 * 8209;
/// Bytes of a large call.
const MIB: u64 = 1 << 20;

fn main() {
    divan::main();
}

/// One batch through the backend interface. `items/s` are accesses: the inverse is the time per chunk.
#[divan::bench(args = [
    ("pattern 5: 1 kB chunks, 1 MB calls", 1024, 1024, 16),
    ("pattern 7: 1 kB+8 chunks, 1 MB+8 kB calls", 1032, 1024, 16),
    ("pattern 13: 1 kB chunks, one per call", 1024, 1, 16384),
    ("pattern 15: 1 kB+8 chunks, one per call", 1032, 1, 16384),
])]
fn null_write(bencher: Bencher, (_, chunk_bytes, chunks_per_call, calls): (&str, u64, u64, u64)) {
    let mut buffer = TransferBuffer::new(PERIOD_BYTES, 2 * MIB).expect("transfer buffer");
    let mut file = null_file(chunk_bytes, chunks_per_call, &mut buffer).expect("a call fits the transfer buffer");
    let mut first_call = 0;
    bencher.counter(ItemsCount::new(calls * chunks_per_call)).bench_local(|| {
        let moved = file.write(Batches::new(black_box(Batch { first_call, calls }), &mut Latency::off()), &buffer);
        first_call += calls;
        moved
    });
}

/// The same in another order. `items/s` are calls of one chunk.
#[divan::bench(args = [OrderKind::Sequential, OrderKind::Random, OrderKind::Strided, OrderKind::Reverse])]
fn null_order(bencher: Bencher, kind: OrderKind) {
    const CALLS: u64 = 16384;
    // Not a power of two: the hash is evaluated 1.6 times per call.
    let pattern = AccessPattern::private(1024, 1, 640 * CALLS).in_order(kind, 1);
    let mut buffer = TransferBuffer::new(PERIOD_BYTES, 2 * MIB).expect("transfer buffer");
    let (own, path) = (Comm::comm_self(), FilePath::unbacked("null"));
    let request = OpenRequest { path: &path, mode: OpenMode::Update, comm: &own, hints: &[] };
    let row = driver("null").expect("the null driver");
    let mut file = (row.create)(&DriverOptions::default()).open(&request).expect("a file of the null driver");
    file.prepare(&pattern, Direction::Write, &mut buffer, &[]).expect("a call fits the transfer buffer");
    let mut first_call = 0;
    bencher.counter(ItemsCount::new(CALLS)).bench_local(|| {
        let batch = Batch { first_call, calls: CALLS };
        first_call = (first_call + CALLS) % pattern.max_calls;
        file.write(Batches::new(black_box(batch), &mut Latency::off()), &buffer)
    });
}

/// Generation of a stream, once per generation and access method, outside the timed region.
#[divan::bench]
fn stamp_fill(bencher: Bencher) {
    let stream = StampStream::new(1, Generation::First, 0, PERIOD_BYTES);
    let mut bytes = vec![0_u8; (PERIOD_BYTES + MIB) as usize];
    bencher.counter(BytesCount::of_slice(&bytes)).bench_local(|| stream.fill(black_box(&mut bytes)));
}

/// Comparison of read data in the transfer buffer, outside the timed region.
#[divan::bench]
fn stamp_compare(bencher: Bencher) {
    let stream = StampStream::new(1, Generation::First, 0, PERIOD_BYTES);
    let mut bytes = vec![0_u8; (PERIOD_BYTES + MIB) as usize];
    stream.fill(&mut bytes);
    bencher.counter(BytesCount::of_slice(&bytes)).bench_local(|| stream.compare(black_box(&bytes), 0));
}
