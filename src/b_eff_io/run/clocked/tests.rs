use beff_backends::{driver, DriverOptions, FilePath, OpenMode, OpenRequest};

use super::*;
use crate::b_eff_io::run::batching::CallsEnd;

/// A write of `calls` calls that posix cannot prepare: a call is longer than the memory. What came out, and the bytes of the file.
fn refused(calls: u64) -> (Measured, u64) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("f");
    let comm = Comm::own();
    let request =
        OpenRequest { path: &FilePath::of(&path).unwrap(), mode: OpenMode::CreateNew, comm: &comm, hints: &[] };
    let posix = (driver("posix").unwrap().make)(&DriverOptions::default());
    let mut file = posix.open(&request).unwrap();
    let mut ring = Ring::new(4096, 4096).unwrap();
    let pattern = Pattern::private(1 << 20, 1, calls);
    let limits = Limits {
        max_calls: calls,
        calls_end: CallsEnd::Count,
        time_seconds: Some(1.0),
        whole_seconds: Some(1.0),
        rounds: 1,
        time_is_guard: false,
        sync: None,
        expected_call_seconds: None,
        call_bytes_all_ranks: 1 << 20,
        termination: Termination::Geometric,
    };
    let task = Task { pattern: &pattern, direction: Direction::Write, limits: &limits, hints: &[], resume: None };
    let interrupt = Interrupt::watch().unwrap();
    let m = run(file.as_mut(), &comm, &mut ring, task, &mut Notes::default(), (&interrupt, None)).unwrap();
    file.close().unwrap();
    (m, std::fs::metadata(&path).unwrap().len())
}

#[test]
fn a_single_call_that_could_not_be_prepared_is_an_error_and_moves_nothing() {
    for (calls, decisions) in [(1, 0), (5, 1)] {
        let (m, bytes) = refused(calls);
        assert_eq!((m.ended, m.moved_bytes, bytes, m.decisions), (Ended::Error, 0, 0, decisions), "{calls} calls");
        assert!(m.error.is_some() && m.in_force.is_none(), "{calls} calls");
    }
}
