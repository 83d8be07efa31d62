//! Workloads that the program writes are replayed by every backend, with all of their calls and data.

use crate::replay::replay;
use crate::support::{items, number, Launch};

fn check(ranks: u64, words: &str, written_bytes: u64) {
    let made = Launch::alone().arg("workload").args(words.split(' ')).args(["--ranks", &ranks.to_string()]).run();
    let profile = made.expect(0).stdout.clone();
    let (_, run, result) = replay(ranks, &profile, "--backend mpiio,posix,uring --repeat 1");
    assert_eq!(number(&result["setup"]["profile"]["written_bytes"]), written_bytes, "{words}: {run}");
    assert!(items(&result["setup"]["omissions"]).iter().all(|all| items(&all["omitted"]).is_empty()), "{run}");
    let read = number(&result["setup"]["profile"]["read_bytes"]);
    let mut verified = 0;
    for repetition in items(&result["repetitions"]) {
        assert_eq!(repetition["calls"], repetition["calls_as_recorded"], "{words}: {repetition}");
        assert_eq!(
            (&repetition["bytes_wrong"], &repetition["bytes_unknown"]),
            (&0.into(), &0.into()),
            "{words}: {repetition}"
        );
        if repetition["repetition"] == 0 {
            assert_eq!(number(&repetition["bytes_checked"]), read, "{words}: {repetition}");
            verified += 1;
        }
    }
    assert_eq!(verified, 3, "{words}: every backend: {run}");
}

#[test]
fn bt_io_is_replayed_by_every_backend() {
    check(4, "btio --class S", 12 * 40 * 12 * 12 * 12);
}

#[test]
fn strided_access_and_checkpoints_are_replayed_by_every_backend() {
    check(3, "strided --block 1000 --blocks 6", 3 * 12 * 1000);
    check(3, "checkpoint --size 100000 --header 100 --transfer 30000 --checkpoints 2", 2 * 300_100);
    check(2, "checkpoint --layout n-n --size 100000 --header 100 --transfer 30000 --checkpoints 2", 4 * 100_100);
}

#[test]
fn the_workloads_of_io500_are_replayed_by_every_backend() {
    check(3, "ior-hard --segments 7", 3 * 7 * 47_008);
    check(2, "ior-easy --size 5M", 10 << 20);
}
