//! Messages and gathers between ranks, with errors or too long for one call.

#![allow(clippy::unwrap_used)] // helpers of tests

mod ranks;

use std::path::Path;
use std::time::Duration;

use beff_ffi::{Comm, Encoding, MaxReduction, MessageDirection, Requests};

/// One program for all: MPI can be initialized once per process.
#[test]
fn failed_waits_and_long_gathers() {
    ranks::on_1_2_and_3("failed_waits_and_long_gathers", Path::new(env!("CARGO_TARGET_TMPDIR")), |comm, _| {
        unequal_lengths_are_gathered_in_rounds(comm);
        values_are_combined_in_a_tree(comm);
        reductions_overlap_with_work(comm);
        node_communicators_are_independent(comm);
        if comm.size() > 1 {
            posting_a_reduction_does_not_block(comm);
            pending_messages_are_completed_after_an_error(comm);
        }
    });
}

fn unequal_lengths_are_gathered_in_rounds(comm: &Comm) {
    let of = |rank: u64| -> Vec<u8> { (0..rank * 7 + 3).map(|n| (n * 31 + rank) as u8).collect() };
    let expected: Vec<Vec<u8>> = if comm.is_root() { (0..comm.size()).map(of).collect() } else { Vec::new() };
    // Rounds that split lengths, equal one, and exceed all; a round of 0 bytes would never end.
    for most_bytes in [0, 1, 2, 3, 4, 10, 1000] {
        assert_eq!(comm.gather_in_rounds(&of(comm.rank()), most_bytes).unwrap(), expected, "{most_bytes}");
    }
    assert_eq!(comm.gather_bytes(&of(comm.rank())).unwrap(), expected);
    let only_last = if comm.rank() + 1 == comm.size() { vec![7; 100] } else { Vec::new() };
    let all = comm.gather_in_rounds(&only_last, 9).unwrap();
    assert!(!comm.is_root() || all[all.len() - 1] == [7; 100]);
    assert!(comm.gather_in_rounds(&[], 9).unwrap().iter().all(Vec::is_empty));
}

/// Short and long values, one reduction right after the other.
fn values_are_combined_in_a_tree(comm: &Comm) {
    let encoding = Encoding { encode: Vec::clone, decode: <[u8]>::to_vec };
    for length in [0, 1, 1016, 1017, 3 << 20] {
        let of = |rank: u64| vec![rank as u8 + 1; length];
        let append = |lower: Vec<u8>, higher: Vec<u8>| [lower, higher].concat();
        let all = comm.reduce_in_tree(of(comm.rank()), &encoding, append).unwrap();
        assert_eq!(all, comm.is_root().then(|| (0..comm.size()).flat_map(of).collect()), "{length} bytes");
    }
}

/// All ranks of a test are on one host. Operations pending on one communicator do not match those on the other.
fn node_communicators_are_independent(comm: &Comm) {
    let node = comm.node().unwrap().unwrap();
    assert_eq!((node.rank(), node.size()), (comm.rank(), comm.size()));
    let (mut on_all, mut on_node) = (MaxReduction::new(comm, 1).unwrap(), MaxReduction::new(&node, 1).unwrap());
    let own = comm.rank() as f64;
    // Ranks post them in different order.
    if comm.rank().is_multiple_of(2) {
        on_all.post(&[own]).unwrap();
        on_node.post(&[-own]).unwrap();
    } else {
        on_node.post(&[-own]).unwrap();
        on_all.post(&[own]).unwrap();
    }
    assert_eq!(on_all.complete().unwrap(), [comm.size() as f64 - 1.0]);
    assert_eq!(on_node.complete().unwrap(), [0.0]);
}

/// Several are pending at once, ranks are late in turns, and the memory is reused.
fn reductions_overlap_with_work(comm: &Comm) {
    let mut agreements: Vec<MaxReduction<'_>> = (0..3).map(|_| MaxReduction::new(comm, 2).unwrap()).collect();
    let (mine, largest) = (comm.rank() as f64, comm.size() as f64 - 1.0);
    for round in 0..30 {
        for (n, agreement) in agreements.iter_mut().enumerate() {
            if (round + n as u64) % comm.size() == comm.rank() {
                std::thread::sleep(Duration::from_millis(1));
            }
            agreement.post(&[mine + n as f64, -mine]).unwrap();
            agreement.progress().unwrap();
            assert!(agreement.is_pending());
        }
        for (n, agreement) in agreements.iter_mut().enumerate() {
            for _ in 0..2 {
                assert_eq!(agreement.complete().unwrap(), [largest + n as f64, 0.0], "round {round}");
                assert!(!agreement.is_pending());
                agreement.progress().unwrap();
            }
        }
    }
    // Dropping a pending one completes it.
    agreements[1].post(&[mine, mine]).unwrap();
    drop(agreements);
    let mut after = [mine];
    comm.max_f64(&mut after).unwrap();
    assert_eq!(after, [largest]);
}

/// The other ranks post only after rank 0 has sent a message that it has posted.
fn posting_a_reduction_does_not_block(comm: &Comm) {
    let mut agreement = MaxReduction::new(comm, 1).unwrap();
    let mut requests = Requests::with_capacity(comm.size() as usize);
    let mut word = [7_u8];
    if comm.is_root() {
        agreement.post(&[1.0]).unwrap();
        for rank in 1..comm.size() {
            // SAFETY: the memory outlives the wait and is unchanged.
            unsafe { comm.post_message(MessageDirection::Send, word.as_mut_ptr(), 1, rank, &mut requests).unwrap() };
        }
        requests.wait_all().unwrap();
    } else {
        // SAFETY: the memory outlives the wait and is not accessed before.
        unsafe { comm.post_message(MessageDirection::Receive, word.as_mut_ptr(), 1, 0, &mut requests).unwrap() };
        requests.wait_all().unwrap();
        agreement.post(&[1.0 + comm.rank() as f64]).unwrap();
    }
    assert_eq!(agreement.complete().unwrap(), [comm.size() as f64]);
}

/// The first message exceeds its buffer; the second arrives much later, in memory that must not be released before.
fn pending_messages_are_completed_after_an_error(comm: &Comm) {
    let mut requests = Requests::with_capacity(2);
    let (mut short, mut late) = ([0_u8; 4], [0_u8; 8]);
    match comm.rank() {
        0 => {
            // SAFETY: both memories outlive the wait and are not accessed before.
            unsafe {
                comm.post_message(MessageDirection::Receive, short.as_mut_ptr(), 4, 1, &mut requests).unwrap();
                comm.post_message(MessageDirection::Receive, late.as_mut_ptr(), 8, 1, &mut requests).unwrap();
            }
            let error = requests.wait_all().unwrap_err();
            assert!(!error.class.is_empty(), "{error}");
            assert!(requests.is_empty());
            assert_eq!(&late, b"in time!", "released while the message was in flight");
        }
        1 => {
            let (mut long, mut last) = (*b"too long", *b"in time!");
            // SAFETY: both memories outlive the wait and are unchanged.
            unsafe {
                comm.post_message(MessageDirection::Send, long.as_mut_ptr(), 8, 0, &mut requests).unwrap();
                requests.wait_all().unwrap();
                std::thread::sleep(Duration::from_millis(500));
                comm.post_message(MessageDirection::Send, last.as_mut_ptr(), 8, 0, &mut requests).unwrap();
                requests.wait_all().unwrap();
            }
        }
        _ => {}
    }
    comm.barrier().unwrap();
}
