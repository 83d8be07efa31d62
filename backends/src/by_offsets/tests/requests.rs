//! Nonblocking accesses.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;

use beff_trace::Function as F;

use super::*;

#[test]
fn requests_end_in_any_order_and_over_windows() {
    for_each_backend(Direct::Off, |rig| {
        rig.open(&["rdwr", "create"]);
        // More than the queue depth, with holes in memory.
        let begun = (0..9).map(|n| nonblocking(n, data(F::IwriteAt, Some(n as i64 * 40), 10, HOLES, n * 100)));
        let outcomes = rig.run_steps(begun.collect());
        assert!(outcomes.iter().all(|outcome| (outcome.error, outcome.bytes) == (None, None)));
        let outcomes =
            rig.run_steps(vec![wait(F::Wait, &[7]), wait(F::Testsome, &[8, 0, 3]), wait(F::Waitall, &[1, 2, 4, 5, 6])]);
        let completed: Vec<Vec<_>> =
            outcomes.iter().map(|o| o.completions.iter().map(|c| (c.request, c.bytes)).collect()).collect();
        let all = |requests: &[u64]| requests.iter().map(|r| (*r, Some(40))).collect::<Vec<_>>();
        assert_eq!(completed, [all(&[7]), all(&[8, 0, 3]), all(&[1, 2, 4, 5, 6])]);
        let expected: Vec<u8> =
            (0..90).flat_map(|n| (0..4).map(move |b| source_byte(n / 10 * 100 + n % 10 * 8 + b))).collect();
        assert_eq!(rig.file(), expected);

        // Freed and never completed; request numbers are reused.
        rig.run_steps(vec![
            nonblocking(0, data(F::IreadAt, Some(0), 40, BYTE, 0)),
            nonblocking(1, data(F::IreadAt, Some(40), 40, BYTE, 40)),
            wait(F::RequestFree, &[0]),
            nonblocking(0, data(F::IreadAt, Some(80), 40, BYTE, 80)),
            wait(F::Waitall, &[0, 1]),
        ]);
        rig.run_steps(vec![file_call(F::Close)]);
        rig.run_steps(Vec::new());
        assert_eq!(rig.landing(0, 120), expected[..120]);
    });
}

#[test]
fn tests_without_completions_and_handwritten_waits() {
    for_each_backend(Direct::Off, |rig| {
        rig.open(&["rdwr", "create"]);
        let bare = |function, requests: &[u64]| {
            let mut step = wait(function, requests);
            step.call.completions.clear();
            step
        };
        let outcomes = rig.run_steps(vec![
            nonblocking(1, data(F::IwriteAt, Some(0), 4, BYTE, 0)),
            nonblocking(2, data(F::IwriteAt, Some(4), 4, BYTE, 4)),
            bare(F::Testall, &[1, 2]),
            bare(F::Waitany, &[2, 1]),
            bare(F::Waitall, &[1]),
            wait(F::Wait, &[77]),
        ]);
        let completed: Vec<Vec<u64>> =
            outcomes.iter().map(|o| o.completions.iter().map(|c| c.request).collect()).collect();
        assert_eq!(completed, [vec![], vec![], vec![], vec![2], vec![1], vec![]]);
    });
}

#[test]
fn an_error_of_a_request_is_reported_at_its_completion() {
    for name in ["posix", "uring"] {
        let Some(mut rig) = ProgramRig::with(name, DriverOptions::default(), |_| "/dev/full".into()) else { continue };
        rig.open(&["rdwr"]);
        let outcomes = rig.run_steps(vec![
            nonblocking(1, data(F::IwriteAt, Some(0), 4, BYTE, 0)),
            nonblocking(2, data(F::IwriteAt, Some(9), 0, BYTE, 0)),
            wait(F::Waitall, &[2, 1]),
            data(F::WriteAtAllBegin, Some(0), 1, INT, 0),
            file_call(F::WriteAtAllEnd),
        ]);
        assert_eq!(outcomes[0].error, None);
        assert_eq!(outcomes[2].error, class("MPI_ERR_IN_STATUS"));
        assert_eq!(outcomes[2].completions[0], Completion { request: 2, bytes: Some(0), error: None });
        assert_eq!(
            (outcomes[2].completions[1].error, outcomes[2].completions[1].bytes),
            (class("MPI_ERR_NO_SPACE"), None)
        );
        assert_eq!(outcomes[4].error, class("MPI_ERR_NO_SPACE"));
        let said = rig.program.unexpected_error().unwrap();
        assert!(said.contains("No space left") && said.contains("MPI_File") || said.contains("MPI_Waitall"), "{said}");
        assert_eq!(rig.program.unexpected_error(), None);
        rig.program.finish().unwrap();
    }
}

/// A read from a pipe is pending until there is a writer.
fn pipe(rig: &ProgramRig) -> PathBuf {
    let path = rig.path();
    let name = std::ffi::CString::new(path.as_os_str().as_encoded_bytes()).unwrap();
    // SAFETY: a string that ends with 0.
    assert_eq!(unsafe { libc::mkfifo(name.as_ptr(), 0o600) }, 0);
    path
}

fn write_delayed(path: PathBuf) -> (Arc<AtomicBool>, std::thread::JoinHandle<()>) {
    let written = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&written);
    let late = std::thread::spawn(move || {
        let mut pipe = std::fs::OpenOptions::new().write(true).open(path).unwrap();
        std::thread::sleep(std::time::Duration::from_millis(150));
        flag.store(true, Ordering::SeqCst);
        std::io::Write::write_all(&mut pipe, b"in time!").unwrap();
    });
    (written, late)
}

#[test]
fn memory_of_pending_requests_is_not_accessible_and_outlives_them() {
    for ends in ["wait", "finish", "drop", "close"] {
        let Some(mut rig) = ProgramRig::new("uring", Direct::Off) else { return };
        let path = pipe(&rig);
        rig.open(&["rdwr"]);
        rig.run_step(nonblocking(3, data(F::IreadAt, Some(0), 8, BYTE, 100)));
        let refused = rig.program.landing_range(107..200).unwrap_err();
        assert!(refused.text.contains("pending"), "{refused}");
        assert_eq!(rig.landing(108, 92), [0; 92]);
        let (written, late) = write_delayed(path);
        match ends {
            "wait" => {
                let outcome = rig.run_step(wait(F::Wait, &[3]));
                assert_eq!(outcome.completions[0].bytes, Some(8));
                assert_eq!(rig.landing(100, 8), b"in time!");
            }
            "close" => {
                rig.run_step(file_call(F::Close));
                assert_eq!(rig.landing(100, 8), b"in time!");
            }
            "finish" => rig.program.finish().unwrap(),
            _ => drop(rig),
        }
        assert!(written.load(Ordering::SeqCst), "{ends}: it must wait for the kernel");
        late.join().unwrap();
    }
}

#[test]
fn a_freed_read_releases_its_memory() {
    let Some(mut rig) = ProgramRig::new("uring", Direct::Off) else { return };
    let path = pipe(&rig);
    rig.open(&["rdwr"]);
    rig.run_steps(vec![nonblocking(3, data(F::IreadAt, Some(0), 8, BYTE, 0)), wait(F::RequestFree, &[3])]);
    assert!(rig.program.landing_range(0..1).is_err());
    let (_, late) = write_delayed(path);
    late.join().unwrap();
    for _ in 0..1000 {
        rig.run_steps(Vec::new());
        if rig.program.landing_range(0..1).is_ok() {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    assert_eq!(rig.landing(0, 8), b"in time!");
    rig.program.finish().unwrap();
}
