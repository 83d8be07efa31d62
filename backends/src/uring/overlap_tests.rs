use std::panic::{catch_unwind, AssertUnwindSafe};

use super::*;
use crate::testing::{fill, pattern, scratch};
use crate::uring::tests::{all, assert_idle, uring};
use crate::{AccessKind, Batches, CallForm, Direct, OpenFile, OpenMode, Parts, Pattern};

/// A part counted in bytes whose calls return before they are done.
fn requests(chunk: u64, calls: u64) -> Pattern {
    let form = CallForm { style: CallStyle::Request, unit: crate::Unit::Byte, ..CallForm::default() };
    Pattern { base_bytes: 3, form, parts: Parts::Unequal, ..pattern(chunk, 1, calls) }
}

#[test]
fn work_runs_once_under_a_batch_of_any_depth() {
    let dir = scratch();
    for (n, (depth, chunk, calls)) in [(32, 5, 7), (2, 4097, 9), (1, 0, 3), (4, 1 << 20, 3)].into_iter().enumerate() {
        for direct in [Direct::Off, Direct::Auto] {
            let path = dir.path().join(format!("f{n}{direct:?}"));
            let mut file = uring(&path, OpenMode::CreateNew, direct, depth);
            let p = requests(chunk, calls);
            let mut ring = Ring::new(4 << 20, 0).unwrap();
            ring.set_period_bytes((chunk * calls).max(1));
            fill(&mut ring, 1);
            let right = ring.bytes()[..(chunk * calls) as usize].to_vec();
            let told = file.prepare(&p, Direction::Write, &mut ring, &[]).unwrap();
            assert_eq!(told.strategy.contains("exceeds the depth"), calls > u64::from(depth), "{}", told.strategy);
            let mut ran = 0;
            assert_eq!(
                file.write(Batches::new(all(&p), &mut Latency::off()).overlapping(&mut || ran += 1), &ring).unwrap(),
                calls * chunk
            );
            file.sync().unwrap();
            assert_eq!(std::fs::read(&path).unwrap().get(3..).unwrap_or_default(), right);
            ring.bytes_mut().fill(0);
            file.prepare(&p, Direction::Read, &mut ring, &[]).unwrap();
            assert_eq!(
                file.read(Batches::new(all(&p), &mut Latency::off()).overlapping(&mut || ran += 1), &mut ring).unwrap(),
                calls * chunk
            );
            assert!(ring.bytes()[..right.len()] == right);
            assert_eq!(ran, 2);
            let stopped = catch_unwind(AssertUnwindSafe(|| {
                file.read(
                    Batches::new(all(&p), &mut Latency::off()).overlapping(&mut || panic!("in the work")),
                    &mut ring,
                )
            }));
            assert!(stopped.is_err());
            assert!(file.queue.ring.submission().is_empty() && file.queue.ring.completion().is_empty());
            assert!(!file.queue.abandoned, "what was begun before the work was submitted");
            assert_eq!(file.read(Batches::new(all(&p), &mut Latency::off()), &mut ring).unwrap(), calls * chunk);
            assert_idle(&mut file);
        }
    }
}

#[test]
fn work_runs_also_where_nothing_can_be_under_way() {
    let dir = scratch();
    let mut file = uring(&dir.path().join("f"), OpenMode::CreateNew, Direct::Off, 4);
    let mut ring = Ring::new(1 << 16, 4096).unwrap();
    let mut ran = 0;
    let one = Batch { first_call: 0, calls: 1 };
    assert!(file
        .write(Batches::new(one, &mut Latency::off()).overlapping(&mut || ran += 1), &ring)
        .unwrap_err()
        .text
        .contains("prepare"));
    file.prepare(&pattern(4096, 1, 4), Direction::Write, &mut ring, &[]).unwrap();
    assert!(file
        .write(Batches::new(one, &mut Latency::off()).overlapping(&mut || ran += 1), &ring)
        .unwrap_err()
        .text
        .contains("under way"));
    file.prepare(&requests(1, 5000), Direction::Write, &mut ring, &[]).unwrap();
    let many = Batch { first_call: 0, calls: MOST_PENDING + 1 };
    assert!(file
        .write(Batches::new(many, &mut Latency::off()).overlapping(&mut || ran += 1), &ring)
        .unwrap_err()
        .text
        .contains("at once"));
    assert_eq!(ran, 3);
    for (kind, style) in [(AccessKind::Collective, CallStyle::Request), (AccessKind::Independent, CallStyle::Split)] {
        let form = CallForm { style, ..CallForm::default() };
        let refused = Pattern { kind, form, ..pattern(8, 1, 1) };
        assert!(file.support(&refused).reason().unwrap().contains("mpiio"));
        assert_eq!(file.prepare(&refused, Direction::Write, &mut ring, &[]).unwrap_err().cause, Cause::Unsupported);
    }
}
