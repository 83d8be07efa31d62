//! What is left under way.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;

use beff_trace::Function as F;

use super::*;

#[test]
fn requests_end_in_any_order_and_over_windows() {
    each(Direct::Off, |rig| {
        rig.open(&["rdwr", "create"]);
        // More than the depth of the queue, with holes in memory.
        let begun = (0..9).map(|n| left(n, data(F::IwriteAt, Some(n as i64 * 40), 10, HOLES, n * 100)));
        let outcomes = rig.steps(begun.collect());
        assert!(outcomes.iter().all(|outcome| (outcome.error, outcome.bytes) == (None, None)));
        let outcomes =
            rig.steps(vec![wait(F::Wait, &[7]), wait(F::Testsome, &[8, 0, 3]), wait(F::Waitall, &[1, 2, 4, 5, 6])]);
        let told: Vec<Vec<_>> =
            outcomes.iter().map(|o| o.completions.iter().map(|c| (c.request, c.bytes)).collect()).collect();
        let all = |requests: &[u64]| requests.iter().map(|r| (*r, Some(40))).collect::<Vec<_>>();
        assert_eq!(told, [all(&[7]), all(&[8, 0, 3]), all(&[1, 2, 4, 5, 6])]);
        let expected: Vec<u8> =
            (0..90).flat_map(|n| (0..4).map(move |b| source_byte(n / 10 * 100 + n % 10 * 8 + b))).collect();
        assert_eq!(rig.file(), expected);

        // Freed and never asked for; the numbers come again.
        rig.steps(vec![
            left(0, data(F::IreadAt, Some(0), 40, BYTE, 0)),
            left(1, data(F::IreadAt, Some(40), 40, BYTE, 40)),
            wait(F::RequestFree, &[0]),
            left(0, data(F::IreadAt, Some(80), 40, BYTE, 80)),
            wait(F::Waitall, &[0, 1]),
        ]);
        rig.steps(vec![manage(F::Close)]);
        rig.steps(Vec::new());
        assert_eq!(rig.landing(0, 120), expected[..120]);
    });
}

#[test]
fn tests_that_found_nothing_and_waits_by_hand() {
    each(Direct::Off, |rig| {
        rig.open(&["rdwr", "create"]);
        let bare = |function, requests: &[u64]| {
            let mut step = wait(function, requests);
            step.call.completions.clear();
            step
        };
        let outcomes = rig.steps(vec![
            left(1, data(F::IwriteAt, Some(0), 4, BYTE, 0)),
            left(2, data(F::IwriteAt, Some(4), 4, BYTE, 4)),
            bare(F::Testall, &[1, 2]),
            bare(F::Waitany, &[2, 1]),
            bare(F::Waitall, &[1]),
            wait(F::Wait, &[77]),
        ]);
        let told: Vec<Vec<u64>> = outcomes.iter().map(|o| o.completions.iter().map(|c| c.request).collect()).collect();
        assert_eq!(told, [vec![], vec![], vec![], vec![2], vec![1], vec![]]);
    });
}

#[test]
fn an_error_of_a_request_is_found_where_it_ends() {
    for name in ["posix", "uring"] {
        let Some(mut rig) = Rig::with(name, DriverOptions::default(), |_| "/dev/full".into()) else { continue };
        rig.open(&["rdwr"]);
        let outcomes = rig.steps(vec![
            left(1, data(F::IwriteAt, Some(0), 4, BYTE, 0)),
            left(2, data(F::IwriteAt, Some(9), 0, BYTE, 0)),
            wait(F::Waitall, &[2, 1]),
            data(F::WriteAtAllBegin, Some(0), 1, INT, 0),
            manage(F::WriteAtAllEnd),
        ]);
        assert_eq!(outcomes[0].error, None);
        assert_eq!(outcomes[2].error, class("MPI_ERR_IN_STATUS"));
        assert_eq!(outcomes[2].completions[0], Completion { request: 2, bytes: Some(0), error: None });
        assert_eq!(
            (outcomes[2].completions[1].error, outcomes[2].completions[1].bytes),
            (class("MPI_ERR_NO_SPACE"), None)
        );
        assert_eq!(outcomes[4].error, class("MPI_ERR_NO_SPACE"));
        let said = rig.program.complaint().unwrap();
        assert!(said.contains("No space left") && said.contains("MPI_File") || said.contains("MPI_Waitall"), "{said}");
        assert_eq!(rig.program.complaint(), None);
        rig.program.finish().unwrap();
    }
}

/// A read from a pipe stays under way until somebody writes.
fn pipe(rig: &Rig) -> PathBuf {
    let path = rig.path();
    let name = std::ffi::CString::new(path.as_os_str().as_encoded_bytes()).unwrap();
    // SAFETY: a string that ends with 0.
    assert_eq!(unsafe { libc::mkfifo(name.as_ptr(), 0o600) }, 0);
    path
}

fn write_late(path: PathBuf) -> (Arc<AtomicBool>, std::thread::JoinHandle<()>) {
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
fn memory_under_way_is_not_handed_out_and_outlives_what_is_pending() {
    for ends in ["wait", "finish", "drop", "close"] {
        let Some(mut rig) = Rig::new("uring", Direct::Off) else { return };
        let path = pipe(&rig);
        rig.open(&["rdwr"]);
        rig.one(left(3, data(F::IreadAt, Some(0), 8, BYTE, 100)));
        let refused = rig.program.landed(107..200).unwrap_err();
        assert!(refused.text.contains("pending"), "{refused}");
        assert_eq!(rig.landing(108, 92), [0; 92]);
        let (written, late) = write_late(path);
        match ends {
            "wait" => {
                let outcome = rig.one(wait(F::Wait, &[3]));
                assert_eq!(outcome.completions[0].bytes, Some(8));
                assert_eq!(rig.landing(100, 8), b"in time!");
            }
            "close" => {
                rig.one(manage(F::Close));
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
fn a_freed_read_gives_its_memory_back() {
    let Some(mut rig) = Rig::new("uring", Direct::Off) else { return };
    let path = pipe(&rig);
    rig.open(&["rdwr"]);
    rig.steps(vec![left(3, data(F::IreadAt, Some(0), 8, BYTE, 0)), wait(F::RequestFree, &[3])]);
    assert!(rig.program.landed(0..1).is_err());
    let (_, late) = write_late(path);
    late.join().unwrap();
    for _ in 0..1000 {
        rig.steps(Vec::new());
        if rig.program.landed(0..1).is_ok() {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    assert_eq!(rig.landing(0, 8), b"in time!");
    rig.program.finish().unwrap();
}
