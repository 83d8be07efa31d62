use beff_backends::{driver, DriverOptions, FilePath, OpenMode, OpenRequest};

use super::*;
use crate::b_eff_io::run::batching::CallsEnd;

/// A write of `calls` calls that posix cannot prepare, because a call exceeds the buffer. Returns the measurement and the file size.
fn run_unprepared(calls: u64) -> (LoopMeasurement, u64) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("f");
    let comm = Comm::comm_self();
    let request =
        OpenRequest { path: &FilePath::of(&path).unwrap(), mode: OpenMode::CreateNew, comm: &comm, hints: &[] };
    let posix = (driver("posix").unwrap().create)(&DriverOptions::default());
    let mut file = posix.open(&request).unwrap();
    let mut buffer = TransferBuffer::new(4096, 4096).unwrap();
    let pattern = AccessPattern::private(1 << 20, 1, calls);
    let limits = LoopLimits {
        max_calls: calls,
        calls_end: CallsEnd::Count,
        time_seconds: Some(1.0),
        pattern_seconds: Some(1.0),
        rounds: 1,
        time_is_guard: false,
        sync: None,
        expected_call_seconds: None,
        call_bytes_all_ranks: 1 << 20,
        termination: Termination::Geometric,
    };
    let task = LoopTask { pattern: &pattern, direction: Direction::Write, limits: &limits, hints: &[], resume: None };
    let interrupt = Interrupt::watch().unwrap();
    let m = run(file.as_mut(), &comm, &mut buffer, task, &mut LoopRecorder::default(), (&interrupt, None)).unwrap();
    file.close().unwrap();
    (m, std::fs::metadata(&path).unwrap().len())
}

#[test]
fn a_single_call_that_could_not_be_prepared_is_an_error_and_moves_nothing() {
    for (calls, decisions) in [(1, 0), (5, 1)] {
        let (m, bytes) = run_unprepared(calls);
        assert_eq!((m.ended, m.moved_bytes, bytes, m.decisions), (StopReason::Error, 0, 0, decisions), "{calls} calls");
        assert!(m.error.is_some() && m.in_force.is_none(), "{calls} calls");
    }
}
