use std::panic::{catch_unwind, AssertUnwindSafe};

use beff_ffi::MaxReduction;

use super::*;

#[test]
fn all_ranks_leave_a_collective_call_at_the_time_of_the_last_one() {
    let script = |rank| Script::default().cost("work", rank as f64).cost("barrier", 0.5).cost("tell", 0.25);
    let ends = run_ranks(3, script, |comm| {
        scripted_call("work", "");
        let mut agreement = MaxReduction::new(comm, 1).unwrap();
        agreement.post(&[comm.rank() as f64]).unwrap();
        scripted_call("work", "");
        assert_eq!(agreement.complete().unwrap(), [2.0]);
        // The last rank posts at 2 s and has finished its work at 4.25 s.
        let completed = now().unwrap().as_secs_f64();
        comm.barrier().unwrap();
        (completed, now().unwrap().as_secs_f64(), log().last().cloned().unwrap())
    });
    let at = |seconds, line: &str| (seconds, 4.75, format!("4.25 {line}"));
    assert_eq!(ends, [at(2.0, "barrier"), at(2.25, "barrier"), at(4.25, "barrier")]);
}

#[test]
fn collective_calls_return_what_mpi_defines() {
    run_ranks(
        3,
        |_| Script::default(),
        |comm| {
            let mine = comm.rank() + 1;
            let (mut max, mut min, mut sum) = ([mine as f64, -1.0], [u64::MAX - mine], [mine, 10 * mine]);
            comm.max_f64(&mut max).unwrap();
            comm.min_u64(&mut min).unwrap();
            comm.sum_u64(&mut sum).unwrap();
            assert_eq!((max, min, sum), ([3.0, -1.0], [u64::MAX - 3], [6, 60]));
            let mut value = [mine as f64];
            comm.bcast_f64(&mut value, 1).unwrap();
            assert_eq!(value, [2.0]);
            assert_eq!(comm.bcast_bytes(vec![mine as u8; mine as usize], 2).unwrap(), [3; 3]);
            let all = comm.gather_bytes(&vec![7; mine as usize]).unwrap();
            assert_eq!(
                all.iter().map(Vec::len).collect::<Vec<_>>(),
                if comm.is_root() { vec![1, 2, 3] } else { vec![] }
            );
            assert_eq!(comm.allgather_u64(&[mine]).unwrap(), [1, 2, 3]);
            let pair = comm.blocks(2, 1).unwrap();
            assert_eq!(pair.map(|pair| (pair.rank(), pair.size())), (comm.rank() < 2).then_some((comm.rank(), 2)));
            let node = comm.node().unwrap().unwrap();
            assert_eq!((node.rank(), node.size()), (comm.rank(), 3));
        },
    );
}

#[test]
fn ranks_that_wait_for_ever_or_for_different_things_end_the_test() {
    let message = |work: fn(&beff_ffi::Comm)| {
        let panic = catch_unwind(AssertUnwindSafe(|| run_ranks(2, |_| Script::default(), work))).unwrap_err();
        panic.downcast_ref::<String>().cloned().unwrap_or_default()
    };
    let alone = message(|comm| {
        if comm.is_root() {
            comm.barrier().unwrap();
        }
    });
    assert!(alone.contains("rank 0 waits in barrier") && alone.contains("rank 1 has left"), "{alone}");
    let apart = message(|comm| {
        if comm.is_root() {
            comm.barrier().unwrap();
        } else {
            comm.max_u64(&mut [0]).unwrap();
        }
    });
    assert!(apart.contains("barrier") && apart.contains("max"), "{apart}");
}
