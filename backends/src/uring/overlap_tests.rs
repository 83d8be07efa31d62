use std::panic::{catch_unwind, AssertUnwindSafe};

use super::*;
use crate::testing::{fill_stream, pattern, scratch};
use crate::uring::tests::{all, assert_idle, uring};
use crate::{AccessKind, AccessPattern, Batches, CallForm, Direct, OpenFile, OpenMode, RankPartition};

/// Nonblocking calls on a part counted in bytes.
fn requests(chunk: u64, calls: u64) -> AccessPattern {
    let form = CallForm { style: CallStyle::Request, unit: crate::ElementUnit::Byte, ..CallForm::default() };
    AccessPattern { base_bytes: 3, form, partition: RankPartition::Unequal, ..pattern(chunk, 1, calls) }
}

#[test]
fn work_runs_once_under_a_batch_of_any_depth() {
    let dir = scratch();
    for (n, (depth, chunk, calls)) in [(32, 5, 7), (2, 4097, 9), (1, 0, 3), (4, 1 << 20, 3)].into_iter().enumerate() {
        for direct in [Direct::Off, Direct::Auto] {
            let path = dir.path().join(format!("f{n}{direct:?}"));
            let mut file = uring(&path, OpenMode::CreateNew, direct, depth);
            let p = requests(chunk, calls);
            let mut buffer = TransferBuffer::new(4 << 20, 0).unwrap();
            buffer.set_period_bytes((chunk * calls).max(1));
            fill_stream(&mut buffer, 1);
            let right = buffer.bytes()[..(chunk * calls) as usize].to_vec();
            let prepared = file.prepare(&p, Direction::Write, &mut buffer, &[]).unwrap();
            assert_eq!(
                prepared.strategy.contains("exceeds the depth"),
                calls > u64::from(depth),
                "{}",
                prepared.strategy
            );
            let mut ran = 0;
            assert_eq!(
                file.write(Batches::new(all(&p), &mut Latency::off()).with_computation(&mut || ran += 1), &buffer)
                    .unwrap(),
                calls * chunk
            );
            file.sync().unwrap();
            assert_eq!(std::fs::read(&path).unwrap().get(3..).unwrap_or_default(), right);
            buffer.bytes_mut().fill(0);
            file.prepare(&p, Direction::Read, &mut buffer, &[]).unwrap();
            assert_eq!(
                file.read(Batches::new(all(&p), &mut Latency::off()).with_computation(&mut || ran += 1), &mut buffer)
                    .unwrap(),
                calls * chunk
            );
            assert!(buffer.bytes()[..right.len()] == right);
            assert_eq!(ran, 2);
            let stopped = catch_unwind(AssertUnwindSafe(|| {
                file.read(
                    Batches::new(all(&p), &mut Latency::off()).with_computation(&mut || panic!("in the work")),
                    &mut buffer,
                )
            }));
            assert!(stopped.is_err());
            assert!(file.queue.ring.submission().is_empty() && file.queue.ring.completion().is_empty());
            assert!(!file.queue.abandoned, "operations started before the work were submitted");
            assert_eq!(file.read(Batches::new(all(&p), &mut Latency::off()), &mut buffer).unwrap(), calls * chunk);
            assert_idle(&mut file);
        }
    }
}

#[test]
fn work_runs_also_where_nothing_can_be_in_flight() {
    let dir = scratch();
    let mut file = uring(&dir.path().join("f"), OpenMode::CreateNew, Direct::Off, 4);
    let mut buffer = TransferBuffer::new(1 << 16, 4096).unwrap();
    let mut ran = 0;
    let one = Batch { first_call: 0, calls: 1 };
    assert!(file
        .write(Batches::new(one, &mut Latency::off()).with_computation(&mut || ran += 1), &buffer)
        .unwrap_err()
        .text
        .contains("prepare"));
    file.prepare(&pattern(4096, 1, 4), Direction::Write, &mut buffer, &[]).unwrap();
    assert!(file
        .write(Batches::new(one, &mut Latency::off()).with_computation(&mut || ran += 1), &buffer)
        .unwrap_err()
        .text
        .contains("overlapped transfers"));
    file.prepare(&requests(1, 5000), Direction::Write, &mut buffer, &[]).unwrap();
    let many = Batch { first_call: 0, calls: MAX_PENDING_CALLS + 1 };
    assert!(file
        .write(Batches::new(many, &mut Latency::off()).with_computation(&mut || ran += 1), &buffer)
        .unwrap_err()
        .text
        .contains("at once"));
    assert_eq!(ran, 3);
    for (kind, style) in [(AccessKind::Collective, CallStyle::Request), (AccessKind::Independent, CallStyle::Split)] {
        let form = CallForm { style, ..CallForm::default() };
        let refused = AccessPattern { kind, form, ..pattern(8, 1, 1) };
        assert!(file.support(&refused).reason().unwrap().contains("mpiio"));
        assert_eq!(
            file.prepare(&refused, Direction::Write, &mut buffer, &[]).unwrap_err().cause,
            FailureCause::Unsupported
        );
    }
}
