//! b_eff_io beneath MPI-IO: intervals of posix and mmap are what the calls of the kernel took.

use super::io::{check_file, part, patterns_of, sessions, text, total, with, KERNEL};
use crate::planted::{largest, same, seconds, Call, Planted, Session, STEP_SECONDS};
use crate::support::{items, number, skip};

#[test]
fn intervals_of_posix_are_what_the_calls_took() {
    let rules: Vec<&str> = ["MPI_Barrier=1000000", "MPI_Ibarrier=1000000", "MPI_Iallreduce=50000", "MPI_Bcast=0"]
        .into_iter()
        .chain(KERNEL)
        .collect();
    let args = ["-T", "3s", "--backend", "posix", "--direct", "off", "--types", "0,2,3", "--cache", "keep"];
    let run = Planted::run(2, &rules, &with(&args));
    for of in items(&run.result["types"]) {
        let what = format!("{}, type {}", text(of, "access"), of["pattern_type"]);
        let sessions = sessions(&run, of);
        check_file(of, &sessions, &what);
        // The records one after the other take their calls from those of each rank.
        let mut left: Vec<Vec<&Call>> =
            sessions.iter().map(|s| s.own().filter(|c| c.moves() || c.is("fsync")).collect()).collect();
        for p in patterns_of(&run, of).into_iter().filter(|p| number(&p["calls"]) > 0) {
            let what = format!("{what}, pattern {}", p["pattern"]);
            let chunks = number(&p["calls"]) * (number(&p["call_bytes"]) / number(&p["chunk_bytes"]));
            let written = p["access"] != "read";
            let mut spent = Vec::new();
            for (rank, left) in left.iter_mut().enumerate() {
                let rest = left.split_off(chunks as usize + usize::from(written));
                let calls = std::mem::replace(left, rest);
                let (moves, syncs): (Vec<&Call>, Vec<&Call>) = calls.iter().partition(|call| call.moves());
                assert_eq!(syncs.len(), usize::from(written), "{what}, rank {rank}: syncs");
                assert!(!written || calls.last().is_some_and(|call| call.is("fsync")), "{what}: calls behind the sync");
                spent.push([seconds(moves), seconds(syncs)]);
            }
            let recorded = |name: &str| part(p, name);
            assert!(recorded("view_seconds") + recorded("preallocate_seconds") < STEP_SECONDS, "{what}: {p}");
            let totals: Vec<f64> = spent.iter().map(|[moves, sync]| moves + sync).collect();
            let slowest = spent[largest(&totals)];
            same(&p["intervals"]["transfer_seconds"], slowest[0], &format!("{what}: transfer"));
            same(&p["intervals"]["sync_seconds"], slowest[1], &format!("{what}: sync"));
        }
        assert!(left.iter().all(Vec::is_empty), "{what}: calls that no record tells of: {left:?}");
    }
}

/// mmap makes its files longer before it writes: that is room, not transfer. Its transfers are no calls and take no time here.
#[test]
fn preallocation_time_is_that_of_extending_the_file() {
    let rules: Vec<&str> = ["MPI_Barrier=1000000", "MPI_Ibarrier=1000000", "MPI_Iallreduce=50000", "MPI_Bcast=0"]
        .into_iter()
        .chain(KERNEL)
        .chain(["fallocate*=900000+30000", "fallocate*@1=1300000+20000"])
        .collect();
    let args = ["-T", "2s", "--backend", "mmap", "--types", "0,2", "--cache", "keep", "--space=60M"];
    let args: Vec<&str> =
        args.into_iter().chain(["--memory-per-process", "64M", "--release", "1", "--quiet"]).collect();
    let run = Planted::run(2, &rules, &args);
    let (mut patterns, mut rooms) = (0, 0);
    for of in items(&run.result["types"]).iter().filter(|of| of["access"] == "write") {
        let name = format!("/mmap/n2-type{}-", of["pattern_type"]);
        let sessions: Vec<_> = (0..2)
            .map(|rank| {
                let all = run.sessions(rank, &name);
                all.into_iter().find(|s| s.own().any(|call| call.is("fsync"))).expect("a file that is synced")
            })
            .collect();
        let of_ranks: Vec<Vec<Vec<&Call>>> = sessions.iter().map(from_sync_to_sync).collect();
        let records: Vec<_> = patterns_of(&run, of).into_iter().filter(|p| number(&p["calls"]) > 0).collect();
        for groups in &of_ranks {
            assert_eq!(groups.len(), records.len(), "type {}: syncs", of["pattern_type"]);
        }
        for (n, p) in records.into_iter().enumerate() {
            let what = format!("type {}, pattern {}", of["pattern_type"], p["pattern"]);
            let preallocation =
                |group: &[&Call]| seconds(group.iter().copied().filter(|c| reserves(c) && c.count == 0));
            let sync = |group: &[&Call]| seconds(group.iter().copied().filter(|c| c.is("fsync")));
            let spent: Vec<[f64; 2]> =
                of_ranks.iter().map(|groups| [preallocation(&groups[n]), sync(&groups[n])]).collect();
            let slowest =
                spent[largest(&spent.iter().map(|[preallocation, sync]| preallocation + sync).collect::<Vec<_>>())];
            same(&p["intervals"]["preallocate_seconds"], slowest[0], &format!("{what}: room"));
            same(&p["intervals"]["sync_seconds"], slowest[1], &format!("{what}: sync"));
            assert!(part(p, "transfer_seconds") < STEP_SECONDS, "{what}: {p}");
            let rounds: f64 = items(&p["rounds"]).iter().map(|r| r["seconds"].as_f64().unwrap()).sum();
            assert!((rounds - total(p)).abs() < STEP_SECONDS, "{what}: {rounds} s in rounds: {p}");
            (patterns, rooms) = (patterns + 1, rooms + u32::from(slowest[0] > 0.0));
        }
    }
    if rooms == 0 {
        skip("the file system of the build has no fallocate: no room is made in one call");
    }
    assert!(patterns > 10 && (rooms == 0 || rooms == patterns), "{rooms} of {patterns}");
}

fn reserves(call: &Call) -> bool {
    call.function.starts_with("fallocate")
}

/// The calls on a file up to each sync.
fn from_sync_to_sync<'a>(session: &Session<'a>) -> Vec<Vec<&'a Call>> {
    let mut groups = vec![Vec::new()];
    for call in session.own() {
        groups.last_mut().expect("never empty").push(call);
        if call.is("fsync") {
            groups.push(Vec::new());
        }
    }
    groups.pop();
    groups
}
