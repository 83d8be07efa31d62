//! Patterns with an order through every driver that one rank can run without MPI: every chunk once, with the data of its place.

use crate::testing::{fill_stream, open_alone, scratch, stream_byte};
use crate::{
    AccessPattern, Batch, Batches, Direct, Direction, Latency, OpenFile, OpenMode, OrderKind, ReadWriteMix,
    TransferBuffer,
};

const KINDS: [OrderKind; 4] = [OrderKind::Sequential, OrderKind::Random, OrderKind::Strided, OrderKind::Reverse];
const PERIOD: u64 = 15 * 4096;
const FIRST: u64 = 1;
const SECOND: u64 = 2;

fn buffer_of(seed: u64, pattern: &AccessPattern) -> TransferBuffer {
    let mut buffer = TransferBuffer::new(PERIOD, pattern.call_bytes()).unwrap();
    buffer.set_period_bytes(PERIOD);
    fill_stream(&mut buffer, seed);
    buffer
}

fn all(calls: u64) -> Batch {
    Batch { first_call: 0, calls }
}

/// Writes `calls` calls in three batches; the last two without a pause where the driver permits it.
fn write(file: &mut dyn OpenFile, p: &AccessPattern, seed: u64, calls: u64) -> String {
    let mut buffer = buffer_of(seed, p);
    let in_force = file.prepare(p, Direction::Write, &mut buffer, &[]).unwrap();
    let (first, second) = (calls / 3, calls / 2);
    file.preallocate(all(calls)).unwrap();
    let latency = &mut Latency::off();
    assert_eq!(file.write(Batches::new(all(first), latency), &buffer).unwrap(), first * p.call_bytes());
    let mut rest = vec![calls - second];
    let batch = Batch { first_call: first, calls: second - first };
    let mut next = |_| rest.pop();
    let moved = file.write(Batches::new(batch, latency).with_next(&mut next), &buffer).unwrap();
    assert_eq!(moved, (calls - first) * p.call_bytes());
    file.trim().unwrap();
    file.sync().unwrap();
    in_force.strategy
}

/// Bytes of the file: `rewritten` states which chunks hold the data of the second write.
fn expected(p: &AccessPattern, rewritten: impl Fn(u64) -> bool) -> Vec<u8> {
    let mut bytes = vec![0; (p.chunk_offset(p.max_calls - 1) + p.chunk_bytes) as usize];
    for chunk in 0..p.max_calls {
        let seed = if rewritten(chunk) { SECOND } else { FIRST };
        for byte in 0..p.chunk_bytes {
            let position = p.stream_bytes + chunk * p.chunk_bytes + byte;
            bytes[(p.chunk_offset(chunk) + byte) as usize] = stream_byte(seed, position, PERIOD);
        }
    }
    bytes
}

fn check(name: &str, direct: Direct, plain: &AccessPattern, kind: OrderKind) -> String {
    let dir = scratch();
    let path = dir.path().join("f");
    let open = |mode| open_alone(name, &path, mode, direct, 8).unwrap().unwrap();
    let mut file = open(OpenMode::CreateNew);
    write(file.as_mut(), plain, FIRST, plain.max_calls);
    file.close().unwrap();

    let p = plain.in_order(kind, 7);
    let order = p.order.unwrap();
    let about = format!("{name} {direct:?} {kind:?} chunk {}", p.chunk_bytes);
    // A part of the calls, then all of them in another order of the same kind.
    let mut file = open(OpenMode::Update);
    let part = p.max_calls * 2 / 3;
    let strategy = write(file.as_mut(), &p, SECOND, part);
    assert!(std::fs::read(&path).unwrap() == expected(&p, |chunk| order.position(chunk) < part), "{about}: a part");
    write(file.as_mut(), &plain.in_order(kind, 8), SECOND, p.max_calls);
    file.close().unwrap();
    assert!(std::fs::read(&path).unwrap() == expected(&p, |_| true), "{about}: all");

    let mut file = open(OpenMode::ReadOnly);
    let mut buffer = buffer_of(FIRST, &p);
    buffer.bytes_mut().fill(0);
    file.prepare(&p, Direction::Read, &mut buffer, &[]).unwrap();
    let mut rest = vec![p.max_calls - 5];
    let mut next = |_| rest.pop();
    let moved = file.read(Batches::new(all(5), &mut Latency::off()).with_next(&mut next), &mut buffer).unwrap();
    assert_eq!(moved, p.max_calls * p.call_bytes(), "{about}");
    let retained = (PERIOD / p.call_bytes()).min(p.max_calls);
    for call in p.max_calls - retained..p.max_calls {
        let window = buffer.window(p.stream_position(call), p.call_bytes() as usize);
        let position = p.stream_position(order.at(call));
        let expected = (position..).map(|at| stream_byte(SECOND, at, PERIOD));
        assert!(window.iter().copied().zip(expected).all(|(got, byte)| got == byte), "{about}: read {call}");
    }
    file.close().unwrap();
    strategy
}

#[test]
fn all_drivers_access_each_chunk_once_in_any_order() {
    for name in ["posix", "uring", "mmap"] {
        for kind in KINDS {
            for chunk in [512, 1024, 4096, 1032] {
                let contiguous =
                    AccessPattern { base_bytes: 8192, stream_bytes: 8192, ..AccessPattern::private(chunk, 1, 67) };
                let apart = AccessPattern { stride_bytes: 3 * chunk, ..contiguous };
                for plain in [contiguous, apart] {
                    for direct in if name == "mmap" { &[Direct::Off][..] } else { &[Direct::Off, Direct::Auto] } {
                        let strategy = check(name, *direct, &plain, kind);
                        let unaligned = chunk == 1032 && *direct == Direct::Auto;
                        assert!(!unaligned || strategy.contains("buffered"), "{name}: {strategy}");
                    }
                }
            }
        }
    }
}

const LANDING: u64 = 5 * 4096;

/// Reads and writes in one pattern: each read finds what the file held before, and the file afterwards holds new data where it was written.
fn check_mixed(name: &str, direct: Direct, plain: &AccessPattern, kind: OrderKind, percent: u8) {
    let dir = scratch();
    let path = dir.path().join("f");
    let open = |mode| open_alone(name, &path, mode, direct, 8).unwrap().unwrap();
    let mut file = open(OpenMode::CreateNew);
    write(file.as_mut(), plain, FIRST, plain.max_calls);
    file.close().unwrap();

    let mix = ReadWriteMix::new(percent);
    let p = plain.in_order(kind, 7).with_mix(mix);
    let order = p.order.unwrap();
    let about = format!("{name} {direct:?} {kind:?} chunk {} mix {percent}", p.chunk_bytes);
    let mut file = open(OpenMode::Update);
    let begin = (PERIOD + p.call_bytes()).next_multiple_of(4096);
    let mut buffer = TransferBuffer::new(PERIOD, begin - PERIOD + LANDING + p.call_bytes()).unwrap();
    fill_stream(&mut buffer, SECOND);
    buffer.set_landing(begin as usize, LANDING, p.call_bytes());
    buffer.bytes_mut()[begin as usize..].fill(0);
    file.prepare(&p, Direction::Write, &mut buffer, &[]).unwrap();
    let calls = p.max_calls - 4;
    file.preallocate(all(calls)).unwrap();
    let moved = file.transfer_mixed(Batches::new(all(7), &mut Latency::off()), &mut buffer).unwrap();
    assert_eq!(moved, 7 * p.call_bytes(), "{about}");
    let mut rest = vec![calls - 20];
    let mut next = |_| rest.pop();
    let batch = Batch { first_call: 7, calls: 13 };
    let moved =
        file.transfer_mixed(Batches::new(batch, &mut Latency::off()).with_next(&mut next), &mut buffer).unwrap();
    assert_eq!(moved, (calls - 7) * p.call_bytes(), "{about}");
    file.trim().unwrap();
    file.sync().unwrap();
    file.close().unwrap();
    let is_new = |chunk| order.position(chunk) < calls && mix.direction(order.position(chunk)) == Direction::Write;
    assert!(std::fs::read(&path).unwrap() == expected(&p, is_new), "{about}: the file");
    let mut compared = 0;
    for call in calls - LANDING / p.call_bytes()..calls {
        if mix.direction(call) == Direction::Read {
            let begin = p.memory_index(&buffer, Direction::Read, call);
            let position = p.stream_position(order.at(call));
            let found = buffer.bytes()[begin..begin + p.call_bytes() as usize].iter().copied();
            let mut wanted = (position..).map(|at| stream_byte(FIRST, at, PERIOD));
            assert!(found.into_iter().all(|byte| Some(byte) == wanted.next()), "{about}: read {call}");
            compared += 1;
        }
    }
    assert!(compared > 0 || percent == 1, "{about}");
}

#[test]
fn all_drivers_mix_reads_and_writes() {
    for name in ["posix", "uring", "mmap"] {
        for (kind, percent) in KINDS.into_iter().zip([70, 50, 1, 99]) {
            for chunk in [512, 1024, 4096, 1032] {
                let contiguous =
                    AccessPattern { base_bytes: 8192, stream_bytes: 8192, ..AccessPattern::private(chunk, 1, 67) };
                let apart = AccessPattern { stride_bytes: 3 * chunk, ..contiguous };
                for plain in [contiguous, apart] {
                    for direct in if name == "mmap" { &[Direct::Off][..] } else { &[Direct::Off, Direct::Auto] } {
                        check_mixed(name, *direct, &plain, kind, percent);
                    }
                }
            }
        }
    }
}

/// A pattern in one direction is not run as a mixed one, nor the reverse.
#[test]
fn a_mixed_batch_needs_a_mixed_pattern() {
    for name in ["posix", "uring", "mmap"] {
        let dir = scratch();
        let path = dir.path().join("f");
        let plain = AccessPattern::private(4096, 1, 8);
        let mut file = open_alone(name, &path, OpenMode::CreateNew, Direct::Off, 8).unwrap().unwrap();
        write(file.as_mut(), &plain, FIRST, 8);
        let mut buffer = buffer_of(SECOND, &plain);
        file.prepare(&plain, Direction::Write, &mut buffer, &[]).unwrap();
        assert!(file.transfer_mixed(Batches::new(all(8), &mut Latency::off()), &mut buffer).is_err(), "{name}");
        assert!(std::fs::read(&path).unwrap() == expected(&plain, |_| false), "{name}");
        file.close().unwrap();
    }
}

/// Calls of several chunks become calls of one, and the chunks of all calls are permuted.
#[test]
fn each_chunk_of_a_longer_call_is_a_call_of_the_order() {
    let plain = AccessPattern::private(1024, 4, 16);
    let p = plain.in_order(OrderKind::Random, 1);
    assert_eq!((p.chunks_per_call, p.max_calls, p.call_bytes()), (1, 64, 1024));
    let mut offsets: Vec<u64> = (0..64).map(|call| p.call_offset(call)).collect();
    assert!(!offsets.is_sorted());
    offsets.sort_unstable();
    assert!(offsets.into_iter().eq((0..64).map(|chunk| plain.chunk_offset(chunk))));
}
