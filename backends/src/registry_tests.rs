use super::*;
use crate::skeleton;
use crate::testing::{fill_stream, open_row, pattern, scratch};
use crate::{Batch, Batches, Direct, Direction, Latency, OpenMode, TransferBuffer};
use std::collections::BTreeSet;

const CALLS: Batch = Batch { first_call: 0, calls: 9 };

#[test]
fn names_are_unique_and_resolved() {
    let names: BTreeSet<_> = drivers().iter().map(|row| row.name).collect();
    assert_eq!(names, BTreeSet::from(["mmap", "mpiio", "null", "posix", "uring"]));
    assert_eq!(names.len(), drivers().len());
    for row in drivers() {
        assert!(std::ptr::eq(driver(row.name).unwrap(), row));
    }
    assert!(driver("").is_none());
    assert!(driver("POSIX").is_none());
}

#[test]
fn summaries_are_one_short_line_and_capabilities_agree() {
    for row in drivers() {
        assert!(!row.summary.trim().is_empty(), "{}", row.name);
        assert!(!row.summary.contains('\n') && row.summary.len() <= 100, "{}", row.name);
        assert!(!row.can_direct || row.uses_space, "{}: direct, but stores nothing", row.name);
        assert!(!row.can_preallocate || row.can_direct, "{}: preallocation precedes direct writes", row.name);
        assert!(!row.has_shared_pointer || row.is_collective_native, "{}", row.name);
    }
}

#[test]
fn every_driver_is_constructed() {
    let options = DriverOptions { direct: Direct::Auto, queue_depth: 4, ..DriverOptions::default() };
    for row in drivers() {
        let _driver: Box<dyn Driver> = (row.create)(&options);
    }
}

#[test]
fn every_driver_without_mpi_writes_and_reads() {
    let mut without_mpi = Vec::new();
    for row in drivers().iter().chain([&skeleton::ROW]) {
        for direct in [Direct::Off, Direct::Auto] {
            let dir = scratch();
            let path = dir.path().join("f");
            let Some(file) = open_row(row, &path, OpenMode::CreateNew, direct, 4) else {
                continue;
            };
            without_mpi.push(row.name);
            let mut file = file.unwrap();
            let p = pattern(4096, 2, 9);
            let mut buffer = TransferBuffer::new(5 * 4096, p.call_bytes()).unwrap();
            fill_stream(&mut buffer, 7);
            let data = buffer.bytes().to_vec();
            assert_eq!(file.support(&p).reason(), None);
            let prepared = file.prepare(&p, Direction::Write, &mut buffer, &[]).unwrap();
            assert!(!prepared.strategy.is_empty());
            assert!(!row.can_direct || prepared.direct.is_some(), "{}", row.name);
            assert!(row.can_direct || prepared.direct != Some(true), "{}", row.name);
            file.preallocate(CALLS).unwrap();
            assert_eq!(
                file.write(Batches::new(CALLS, &mut Latency::off()), &buffer).unwrap(),
                9 * p.call_bytes(),
                "{}",
                row.name
            );
            file.sync().unwrap();
            buffer.bytes_mut().fill(0);
            file.prepare(&p, Direction::Read, &mut buffer, &[]).unwrap();
            assert_eq!(
                file.read(Batches::new(CALLS, &mut Latency::off()), &mut buffer).unwrap(),
                9 * p.call_bytes(),
                "{}",
                row.name
            );
            file.close().unwrap();
            assert_eq!(path.exists(), row.uses_space, "{}", row.name);
            // Nine windows begin at every page of the period and end at most one page beyond it.
            let seen = buffer.period_bytes() as usize + 4096;
            assert_eq!(buffer.bytes()[..seen] == data[..seen], row.uses_space, "{}", row.name);
        }
    }
    without_mpi.dedup();
    assert_eq!(without_mpi, ["posix", "uring", "mmap", "null", "skeleton"]);
}

#[test]
fn nothing_that_exists_is_overwritten() {
    for row in drivers().iter().chain([&skeleton::ROW]).filter(|row| row.uses_space) {
        let dir = scratch();
        let path = dir.path().join("f");
        std::fs::write(&path, b"precious").unwrap();
        let Some(opened) = open_row(row, &path, OpenMode::CreateNew, Direct::Auto, 4) else {
            continue;
        };
        assert!(opened.is_err(), "{}", row.name);
        assert_eq!(std::fs::read(&path).unwrap(), b"precious");
    }
}
