//! Chunks in other orders, by every backend: each at most once, with the data that belongs to its place.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::support::{document, is_command, items, number, skip, Launch, Scratch};

/// One second of every pattern type that has orders.
const RUN: [&str; 9] =
    ["-T", "1s", "--types", "0,2,3", "--memory-per-process", "16M", "--space=400M", "--verify", "full"];

fn check(result: &Value, ranks: u64, orders: &[&str]) {
    assert_eq!(items(&result["corruptions"]).len(), 0);
    let backends = items(&result["config"]["backends"]);
    // Rewrites and reads of 8 + 7 + 7 patterns.
    assert_eq!(items(&result["ordered"]).len(), orders.len() * backends.len() * 2 * 22);
    for record in items(&result["ordered"]) {
        let p = &record["measurement"];
        let what = format!("{} {} {} pattern {}", record["order"], p["backend"], p["access"], p["pattern"]);
        assert!(orders.contains(&record["order"].as_str().unwrap()), "{what}");
        assert!(p["ended"]["by"] == "time" || p["ended"]["by"] == "count", "{what}: {}", p["ended"]);
        assert_eq!(p["call_bytes"], p["chunk_bytes"], "{what}");
        assert_eq!(number(&p["moved_bytes"]), ranks * number(&p["calls"]) * number(&p["chunk_bytes"]), "{what}");
        assert_eq!((&p["verification"]["words_wrong"], &p["allocations_in_clock"]), (&0.into(), &0.into()), "{what}");
        if p["access"] == "read" {
            let compared = 8 * number(&p["verification"]["words_checked"]);
            assert_eq!(compared, number(&p["moved_bytes"]), "{what}: not every read was compared");
        }
        if p["backend"] == "mpiio" {
            let all = if p["pattern_type"] == 0 { "_at_all" } else { "_at" };
            let verb = if p["access"] == "read" { "read" } else { "write" };
            let call = format!("MPI_File_{verb}{all}, explicit offsets");
            assert_eq!(p["strategy"].as_str(), Some(call.as_str()), "{what}");
        }
    }
    assert_eq!(items(&result["derived"]["orders"]).len(), items(&result["ordered"]).len());
}

#[test]
fn every_backend_reads_in_any_order_what_was_written_in_any() {
    let scratch = Scratch::new();
    let options = ["--backend", "posix,mpiio,uring,mmap", "--order", "random,strided"];
    Launch::new(3).args(RUN).args(options).into(&scratch).run().expect(0);
    check(&document(&scratch), 3, &["random", "strided"]);
}

#[test]
fn direct_transfers_keep_any_order_and_reused_buffers_their_data() {
    let scratch = Scratch::new();
    let options = ["--backend", "uring,posix", "--direct", "auto", "--order", "reverse", "--buffers", "reused"];
    Launch::new(2).args(RUN).args(options).into(&scratch).run().expect(0);
    check(&document(&scratch), 2, &["reverse"]);
}

/// As the kernel sees it: in the file of each rank no byte is rewritten twice in an order, and all that the result states.
#[test]
fn the_kernel_sees_each_chunk_at_most_once() {
    if !is_command("strace") {
        return skip("no strace");
    }
    let (scratch, traces) = (Scratch::new(), Scratch::new());
    let prefix = traces.join("calls");
    let strace =
        ["strace", "-f", "-ff", "-o", prefix.to_str().unwrap(), "-e", "trace=openat,pwrite64", "-e", "signal=none"];
    let options =
        ["--backend", "posix", "-T", "2s", "--types", "2", "--order", "random", "--memory-per-process", "32M"];
    Launch::through(&strace, 2).args(options).args(["--space=200M", "--repeat", "off"]).into(&scratch).run().expect(0);
    let result = document(&scratch);
    let rewrites = || items(&result["ordered"]).iter().map(|o| &o["measurement"]).filter(|p| p["access"] == "rewrite");
    let expected: u64 = rewrites().map(|p| number(&p["calls"]) * number(&p["chunk_bytes"])).sum();
    assert!(expected > 0 && rewrites().any(|p| p["ended"]["by"] == "count"));
    // A few chunks may be in ascending order by chance.
    let is_random = rewrites().any(|p| number(&p["calls"]) >= 16);
    if !is_random {
        skip("this machine had time for fewer than 16 chunks of each pattern");
    }
    let mut ranks = 0;
    for name in traces.list("") {
        let text = std::fs::read_to_string(traces.join(&name)).unwrap();
        let Some((bytes, offsets)) = last_rewrite(&text) else { continue };
        ranks += 1;
        assert_eq!(bytes, expected, "{name}");
        assert!(!is_random || !offsets.is_sorted(), "{name}: not in random order: {offsets:?}");
        let distinct: BTreeSet<u64> = offsets.iter().copied().collect();
        assert_eq!(distinct.len(), offsets.len(), "{name}: chunks were rewritten twice");
    }
    assert_eq!(ranks, 2);
}

/// Bytes and offsets written through the last descriptor with which an existing file of a rank was opened for update.
fn last_rewrite(trace: &str) -> Option<(u64, Vec<u64>)> {
    let (mut descriptor, mut found) = (String::new(), None);
    for line in trace.lines() {
        if line.starts_with("openat(") && line.contains("-rank") && line.contains("O_RDWR") {
            let is_new = line.contains("O_CREAT");
            descriptor = line.rsplit("= ").next().unwrap().to_owned();
            found = if is_new { found } else { Some((0, Vec::new())) };
        } else if let (Some(rest), Some((bytes, offsets))) =
            (line.strip_prefix(&format!("pwrite64({descriptor}, ")), &mut found)
        {
            let (call, written) = rest.rsplit_once(" = ").unwrap();
            let offset = call.trim_end().trim_end_matches(')').rsplit(", ").next().unwrap();
            *bytes += written.trim().parse::<u64>().unwrap();
            offsets.push(offset.parse().unwrap());
        }
    }
    found
}

#[test]
fn an_order_without_a_type_that_has_one_is_refused() {
    let refused = |options: &[&str], says: &[&str]| {
        Launch::alone().arg("plan").args(["--ranks", "2"]).args(options.iter().copied()).run().expect(2).says(says);
    };
    refused(&["--order", "random", "--types", "1"], &["--order has no effect", "0, 2, 3"]);
    refused(&["--order", "random,random"], &["random is listed twice"]);
    refused(&["--order", "backwards"], &["sequential", "reverse"]);
    let planned = Launch::alone().args(["plan", "--ranks", "2", "--order", "random,reverse", "-T", "60s"]).run();
    planned.expect(0);
    assert!(planned.stdout.contains("other orders  random, reverse: 52.5 s more for one backend"), "{planned}");
}
