//! Messages and collections between ranks, where something is wrong or too long for one call.

#![allow(clippy::unwrap_used)] // helpers of tests

mod ranks;

use std::path::Path;
use std::time::Duration;

use beff_ffi::{Agreement, Comm, Message, Requests};

/// One program for both: MPI starts once in a process.
#[test]
fn failed_waits_and_long_gathers() {
    ranks::on_1_2_and_3("failed_waits_and_long_gathers", Path::new(env!("CARGO_TARGET_TMPDIR")), |comm, _| {
        lengths_that_differ_are_gathered_in_rounds(comm);
        agreements_are_under_way_while_ranks_work(comm);
        the_ranks_of_a_host_have_a_communicator_of_their_own(comm);
        if comm.size() > 1 {
            who_begins_an_agreement_waits_for_nobody(comm);
            what_is_pending_behind_an_error_is_waited_for(comm);
        }
    });
}

fn lengths_that_differ_are_gathered_in_rounds(comm: &Comm) {
    let of = |rank: u64| -> Vec<u8> { (0..rank * 7 + 3).map(|n| (n * 31 + rank) as u8).collect() };
    let expected: Vec<Vec<u8>> = if comm.is_root() { (0..comm.size()).map(of).collect() } else { Vec::new() };
    // Rounds that cut lengths, are as long as one, and longer than all; none would never end.
    for most_bytes in [0, 1, 2, 3, 4, 10, 1000] {
        assert_eq!(comm.gather_in_rounds(&of(comm.rank()), most_bytes).unwrap(), expected, "{most_bytes}");
    }
    assert_eq!(comm.gather_bytes(&of(comm.rank())).unwrap(), expected);
    let only_last = if comm.rank() + 1 == comm.size() { vec![7; 100] } else { Vec::new() };
    let all = comm.gather_in_rounds(&only_last, 9).unwrap();
    assert!(!comm.is_root() || all[all.len() - 1] == [7; 100]);
    assert!(comm.gather_in_rounds(&[], 9).unwrap().iter().all(Vec::is_empty));
}

/// All ranks of a test are on one host. What is under way on one communicator does not meet what is under way on the other.
fn the_ranks_of_a_host_have_a_communicator_of_their_own(comm: &Comm) {
    let node = comm.node().unwrap().unwrap();
    assert_eq!((node.rank(), node.size()), (comm.rank(), comm.size()));
    let (mut on_all, mut on_node) = (Agreement::new(comm, 1), Agreement::new(&node, 1));
    let own = comm.rank() as f64;
    // Ranks begin them in turns: which is first on the one rank is second on the other.
    if comm.rank().is_multiple_of(2) {
        on_all.begin(&[own]).unwrap();
        on_node.begin(&[-own]).unwrap();
    } else {
        on_node.begin(&[-own]).unwrap();
        on_all.begin(&[own]).unwrap();
    }
    assert_eq!(on_all.finish().unwrap(), [comm.size() as f64 - 1.0]);
    assert_eq!(on_node.finish().unwrap(), [0.0]);
}

/// Several at once, ranks late in turns, all over again in the same memory.
fn agreements_are_under_way_while_ranks_work(comm: &Comm) {
    let mut agreements: Vec<Agreement<'_>> = (0..3).map(|_| Agreement::new(comm, 2)).collect();
    let (mine, largest) = (comm.rank() as f64, comm.size() as f64 - 1.0);
    for round in 0..30 {
        for (n, agreement) in agreements.iter_mut().enumerate() {
            if (round + n as u64) % comm.size() == comm.rank() {
                std::thread::sleep(Duration::from_millis(1));
            }
            agreement.begin(&[mine + n as f64, -mine]).unwrap();
            agreement.ask().unwrap();
            assert!(agreement.is_under_way());
        }
        for (n, agreement) in agreements.iter_mut().enumerate() {
            for _ in 0..2 {
                assert_eq!(agreement.finish().unwrap(), [largest + n as f64, 0.0], "round {round}");
                assert!(!agreement.is_under_way());
                agreement.ask().unwrap();
            }
        }
    }
    // Who lets go of one that is under way completes it.
    agreements[1].begin(&[mine, mine]).unwrap();
    drop(agreements);
    let mut after = [mine];
    comm.max_f64(&mut after).unwrap();
    assert_eq!(after, [largest]);
}

/// The others begin only when rank 0 has told them that it has.
fn who_begins_an_agreement_waits_for_nobody(comm: &Comm) {
    let mut agreement = Agreement::new(comm, 1);
    let mut requests = Requests::with_capacity(comm.size() as usize);
    let mut word = [7_u8];
    if comm.is_root() {
        agreement.begin(&[1.0]).unwrap();
        for rank in 1..comm.size() {
            // SAFETY: the memory outlives the wait and does not change.
            unsafe { comm.begin(Message::Send, word.as_mut_ptr(), 1, rank, &mut requests).unwrap() };
        }
        requests.wait_all().unwrap();
    } else {
        // SAFETY: the memory outlives the wait and is not looked at before.
        unsafe { comm.begin(Message::Receive, word.as_mut_ptr(), 1, 0, &mut requests).unwrap() };
        requests.wait_all().unwrap();
        agreement.begin(&[1.0 + comm.rank() as f64]).unwrap();
    }
    assert_eq!(agreement.finish().unwrap(), [comm.size() as f64]);
}

/// The first message is longer than its memory; the second comes much later, into memory that must not be given back before.
fn what_is_pending_behind_an_error_is_waited_for(comm: &Comm) {
    let mut requests = Requests::with_capacity(2);
    let (mut short, mut late) = ([0_u8; 4], [0_u8; 8]);
    match comm.rank() {
        0 => {
            // SAFETY: both memories outlive the wait and are not looked at before.
            unsafe {
                comm.begin(Message::Receive, short.as_mut_ptr(), 4, 1, &mut requests).unwrap();
                comm.begin(Message::Receive, late.as_mut_ptr(), 8, 1, &mut requests).unwrap();
            }
            let error = requests.wait_all().unwrap_err();
            assert!(!error.class.is_empty(), "{error}");
            assert!(requests.is_empty());
            assert_eq!(&late, b"in time!", "given back while the message was under way");
        }
        1 => {
            let (mut long, mut last) = (*b"too long", *b"in time!");
            // SAFETY: both memories outlive the wait and do not change.
            unsafe {
                comm.begin(Message::Send, long.as_mut_ptr(), 8, 0, &mut requests).unwrap();
                requests.wait_all().unwrap();
                std::thread::sleep(Duration::from_millis(500));
                comm.begin(Message::Send, last.as_mut_ptr(), 8, 0, &mut requests).unwrap();
                requests.wait_all().unwrap();
            }
        }
        _ => {}
    }
    comm.barrier().unwrap();
}
