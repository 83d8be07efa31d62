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

/// Checks the rows of a mix, beside or without those of the order.
fn check_mix(result: &Value, ranks: u64, order: &str, read_percent: u64) {
    assert_eq!(items(&result["corruptions"]).len(), 0);
    let is_mixed = |o: &&Value| !o["mix"].is_null();
    let is_first = |p: &&Value| {
        p["access"] == "write"
            && p["time_units"] != 0
            && ["0", "2", "3"].contains(&p["pattern_type"].to_string().as_str())
    };
    let measured = items(&result["patterns"]).iter().filter(is_first).count();
    assert!(measured > 0);
    assert_eq!(items(&result["ordered"]).iter().filter(is_mixed).count(), measured);
    for record in items(&result["ordered"]).iter().filter(is_mixed) {
        let (p, mix) = (&record["measurement"], &record["mix"]);
        let what = format!("{} {} pattern {}", record["order"], p["backend"], p["pattern"]);
        assert!(record["order"] == order && p["access"] == "rewrite", "{what}");
        assert_eq!((number(&mix["read_percent"]), &mix["reads_expect"]), (read_percent, &"generation_before".into()));
        let (calls, chunk) = (number(&p["calls"]), number(&p["chunk_bytes"]));
        assert_eq!(number(&mix["read_calls"]), calls * read_percent / 100, "{what}");
        assert_eq!(number(&p["moved_bytes"]), ranks * calls * chunk, "{what}");
        assert_eq!((&p["verification"]["words_wrong"], &p["allocations_in_clock"]), (&0.into(), &0.into()), "{what}");
        // Reads in memory, and the pattern before it is written.
        assert!(
            p["backend"] == "null"
                || 8 * number(&p["verification"]["words_checked"]) >= ranks * number(&mix["read_calls"]) * chunk,
            "{what}"
        );
        if p["backend"] == "mpiio" {
            let all = if p["pattern_type"] == 0 { "_at_all" } else { "_at" };
            let calls = format!("MPI_File_read{all} and MPI_File_write{all}, explicit offsets");
            assert_eq!(p["strategy"].as_str(), Some(calls.as_str()), "{what}");
        }
    }
}

#[test]
fn every_backend_mixes_reads_and_writes() {
    let scratch = Scratch::new();
    let options = ["--backend", "posix,mpiio,uring,mmap,null", "--mix", "70:30"];
    Launch::new(3).args(RUN).args(options).into(&scratch).run().expect(0);
    check_mix(&document(&scratch), 3, "random", 70);
    let scratch = Scratch::new();
    let options = ["--backend", "uring", "--direct", "auto", "--order", "reverse", "--buffers", "reused"];
    let small = ["-T", "1s", "--types", "2", "--memory-per-process", "16M", "--space=100M", "--verify", "full"];
    let run = Launch::new(2).args(small).args(options).args(["--mix=25:75", "--full"]).into(&scratch).run();
    run.expect(0);
    assert!(run.stdout.contains("reverse 25:75") && run.stdout.contains("Rows with a ratio"), "{run}");
    check_mix(&document(&scratch), 2, "reverse", 25);
}

/// Calls of a rank through the last descriptor with which its existing file was opened for update, until it was closed: the name of the call
/// and the offset.
fn last_update(trace: &str) -> Vec<(&str, u64)> {
    let (mut descriptor, mut found) = (None, Vec::new());
    for line in trace.lines() {
        if line.starts_with("openat(") && line.contains("-rank") && line.contains("O_RDWR") {
            descriptor = (!line.contains("O_CREAT")).then(|| line.rsplit("= ").next().unwrap());
            found.clear();
        }
        let Some(open) = descriptor else { continue };
        if line.starts_with(&format!("close({open})")) {
            descriptor = None;
        }
        let call = ["pread64", "pwrite64"].into_iter().find(|call| line.starts_with(&format!("{call}({open}, ")));
        if let Some(call) = call {
            let (arguments, _) = line.rsplit_once(" = ").unwrap();
            let offset = arguments.trim_end().trim_end_matches(')').rsplit(", ").next().unwrap();
            found.push((call, offset.parse().unwrap()));
        }
    }
    found
}

/// A run with a mix on one rank, and the calls of the mix as the kernel sees them.
fn traced_mix(seed: &str) -> (Value, Vec<(bool, u64)>) {
    let (scratch, traces) = (Scratch::new(), Scratch::new());
    let prefix = traces.join("calls");
    let calls = "trace=openat,close,pread64,pwrite64";
    let strace = ["strace", "-f", "-ff", "-o", prefix.to_str().unwrap(), "-e", calls, "-e", "signal=none"];
    let options = ["--backend", "posix", "-T", "4s", "--types", "2", "--mix", "70:30", "--seed", seed];
    let launch = Launch::through(&strace, 1).args(options).args(["--memory-per-process", "32M", "--space=12M"]);
    launch.args(["--repeat", "off"]).into(&scratch).run().expect(0);
    let texts: Vec<String> =
        traces.list("").iter().map(|name| std::fs::read_to_string(traces.join(name)).unwrap()).collect();
    let found: Vec<Vec<(&str, u64)>> = texts.iter().map(|text| last_update(text)).filter(|c| !c.is_empty()).collect();
    assert_eq!(found.len(), 1, "one thread makes the calls");
    let seen = found[0].iter().map(|(call, offset)| (*call == "pread64", *offset)).collect();
    (document(&scratch), seen)
}

/// As the kernel sees it: each chunk is read or rewritten once, in the stated share, and the seed alone determines which and when.
#[test]
fn the_kernel_sees_each_chunk_of_a_mix_once() {
    if !is_command("strace") {
        return skip("no strace");
    }
    let (result, seen) = traced_mix("1");
    let records = || items(&result["ordered"]).iter();
    let sum = |of: fn(&Value) -> u64| records().map(of).sum::<u64>();
    let (calls, reads) = (sum(|o| number(&o["measurement"]["calls"])), sum(|o| number(&o["mix"]["read_calls"])));
    assert_eq!((seen.len() as u64, seen.iter().filter(|(is_read, _)| *is_read).count() as u64), (calls, reads));
    let distinct: BTreeSet<u64> = seen.iter().map(|(_, offset)| *offset).collect();
    assert_eq!(distinct.len(), seen.len(), "chunks were accessed twice");
    let written = |result: &Value| -> Vec<(u64, u64)> {
        let first = items(&result["patterns"]).iter().filter(|p| p["access"] == "write" && p["time_units"] != 0);
        first.map(|p| (number(&p["calls"]), number(&p["call_bytes"]) / number(&p["chunk_bytes"]))).collect()
    };
    let is_complete = |result: &Value| {
        let chunks = written(result).iter().map(|(calls, per_call)| calls * per_call).sum::<u64>();
        chunks == items(&result["ordered"]).iter().map(|o| number(&o["measurement"]["calls"])).sum::<u64>()
    };
    let ((same, again), (other, otherwise)) = (traced_mix("1"), traced_mix("2"));
    let results = [&result, &same, &other];
    if !results.iter().all(|r| is_complete(r) && written(r) == written(&result)) {
        return skip("this machine had no time for all chunks");
    }
    assert_eq!(seen, again, "the same seed");
    assert_ne!(seen, otherwise, "another seed");
    let offsets = |seen: &[(bool, u64)]| seen.iter().map(|(_, offset)| *offset).collect::<BTreeSet<_>>();
    assert_eq!(offsets(&seen), offsets(&otherwise), "the same chunks");
    let directions = |seen: &[(bool, u64)]| seen.iter().map(|(is_read, _)| *is_read).collect::<Vec<_>>();
    assert_eq!(directions(&seen), directions(&otherwise), "positions of the reads");
}

#[test]
fn an_order_without_a_type_that_has_one_is_refused() {
    let refused = |options: &[&str], says: &[&str]| {
        Launch::alone().arg("plan").args(["--ranks", "2"]).args(options.iter().copied()).run().expect(2).says(says);
    };
    refused(&["--order", "random", "--types", "1"], &["--order has no effect", "0, 2, 3"]);
    refused(&["--order", "random,random"], &["random is listed twice"]);
    refused(&["--order", "backwards"], &["sequential", "reverse"]);
    refused(&["--mix", "70:30", "--types", "1"], &["--mix has no effect", "0, 2, 3"]);
    refused(&["--mix", "70:20"], &["70 % and 20 % are together 90 %"]);
    refused(&["--mix", "100:0"], &["one direction alone"]);
    refused(&["--mix", "70"], &["such as 70:30"]);
    refused(&["--mix", "300:1"], &["'300' is not a percentage"]);
    let planned = Launch::alone().args(["plan", "--ranks", "2", "--order", "random,reverse", "-T", "60s"]).run();
    planned.expect(0);
    assert!(planned.stdout.contains("other orders  random, reverse: 52.5 s more for one backend"), "{planned}");
    let planned = Launch::alone().args(["plan", "--ranks", "2", "--mix", "70:30", "-T", "60s"]).run();
    planned.expect(0);
    assert!(planned.stdout.contains("other orders  random 70:30: 13.1 s more for one backend"), "{planned}");
}
