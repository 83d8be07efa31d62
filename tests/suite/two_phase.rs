//! Two-phase transfers: what ranks exchange arrives, sectors that they share keep the bytes of all, and files are the same
//! as with plain writes, to the byte.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::patient;
use crate::support::{
    document, first_difference, is_command, items, list, number, proves_direct, signal, skip, Launch, Scratch, SHORT,
};

const TWO_PHASE: [&str; 4] = ["--backend", "posix,uring", "--collective", "two-phase"];

/// Runs the collective types on `ranks` ranks, every byte compared; returns the document, or None where nothing is direct.
fn checked(ranks: u64, args: &[&str]) -> Option<Value> {
    let scratch = Scratch::new();
    let fixed = ["--types", "0,1,4", "--space", "200M", "--verify", "full"];
    Launch::new(ranks).args(SHORT).args(TWO_PHASE).args(fixed).args(args).into(&scratch).run().expect(0);
    let result = document(&scratch);
    assert_eq!(result["corruptions"], Value::Array(Vec::new()));
    for p in items(&result["patterns"]) {
        assert_eq!(p["allocations_in_clock"], 0, "{p}");
        assert_eq!(number(&p["verification"]["words_wrong"]), 0, "{p}");
    }
    if !proves_direct(&result) {
        skip("the file system of the target directory tells no alignment of direct I/O (STATX_DIOALIGN)");
        return None;
    }
    Some(result)
}

/// Every pattern was moved as `parts` say; fill-ups of no bytes have nothing to say.
#[track_caller]
fn all_say(result: &Value, pattern_types: &[u64], parts: &[&str]) {
    let mut seen = 0;
    for p in items(&result["patterns"]).iter().filter(|p| number(&p["calls"]) > 0) {
        if pattern_types.contains(&number(&p["pattern_type"])) {
            let strategy = p["strategy"].as_str().unwrap_or_default();
            assert!(parts.iter().all(|part| strategy.contains(part)), "no {parts:?} in '{strategy}'");
            seen += 1;
        }
    }
    assert!(seen >= 8 * pattern_types.len(), "{seen} patterns");
}

#[test]
fn shared_memory_moves_everything_directly() {
    let Some(result) = checked(3, &["--direct", "required", "--set", "exchange=shared-memory"]) else { return };
    all_say(&result, &[0, 1], &["two-phase", "O_DIRECT", "3 aggregators", "shared memory"]);
    all_say(&result, &[4], &["two-phase", "O_DIRECT", "each rank its own segment"]);
    assert!(items(&result["patterns"]).iter().all(|p| p["direct"] == true || number(&p["calls"]) == 0));
}

/// What the strategy says of registered memory is what was counted.
#[test]
fn what_is_said_of_registered_memory_is_counted() {
    let scratch = Scratch::new();
    let args = ["--types", "0,2,4", "--space", "300M"];
    Launch::new(2).args(SHORT).args(TWO_PHASE).args(args).into(&scratch).run().expect(0);
    let result = document(&scratch);
    let mut straight = 0;
    for p in items(&result["patterns"]).iter().filter(|p| number(&p["calls"]) > 0) {
        let (strategy, submissions) = (p["strategy"].as_str().unwrap(), &p["submissions"]);
        if p["backend"] == "posix" {
            assert!(submissions.is_null(), "{p}");
            continue;
        }
        let [registered, plain] = ["registered", "plain"].map(|name| number(&submissions[name]));
        assert!(number(&p["chunk_bytes"]) < 1 << 20 || registered + plain > 0, "{p}");
        if strategy.contains("buffers NOT registered") || strategy.contains("domains NOT registered") {
            assert_eq!(registered, 0, "{p}");
        } else if strategy.contains("without a copy, NOT registered") {
            skip("this user cannot lock as much memory as the ring of a rank");
        } else {
            assert_eq!(plain, 0, "{strategy}: {submissions}");
            if strategy.contains("without a copy, registered buffers") {
                assert_eq!(p["pattern_type"], 4, "{p}");
                straight += registered;
            }
            assert!(strategy.contains("registered buffers") || strategy.contains("registered domains"), "{strategy}");
        }
        assert!(number(&submissions["workers"]) > 0 || submissions["worker_cpu_seconds"] == 0.0, "{p}");
    }
    let direct = proves_direct(&result);
    assert!(!direct || straight > 0, "whole sectors of segments went straight");
}

/// Lockable memory is enough for the domains of two ranks and not for a ring: what goes through domains is registered, whole sectors
/// are not, and the strategy says both.
#[test]
fn a_buffer_that_cannot_be_locked_is_reported_and_used() {
    let little = "ulimit -l 6144 && if [ \"$(id -u)\" = 0 ]; then exec setpriv --bounding-set -ipc_lock \"$@\"; else exec \"$@\"; fi";
    if !is_command("setpriv") {
        return skip("no setpriv here: root may lock any amount of memory");
    }
    let scratch = Scratch::new();
    let args = ["--backend", "uring", "--types", "2,4", "--space", "1G", "--domain", "64K", "--verify", "full"];
    let memory = ["-T", "6s", "--memory-per-process", "512M", "--collective", "two-phase", "--repeat", "off"];
    Launch::through(&["sh", "-c", little, "sh"], 2).args(memory).args(args).into(&scratch).run().expect(0);
    let result = document(&scratch);
    assert_eq!(result["corruptions"], Value::Array(Vec::new()));
    let (mut by_domains, mut straight) = (0, 0);
    for p in items(&result["patterns"]).iter().filter(|p| number(&p["calls"]) > 0 && p["pattern_type"] == 4) {
        let strategy = p["strategy"].as_str().unwrap();
        if strategy.contains("domains NOT registered") || strategy.contains("buffers NOT registered") {
            return skip(&format!("not even the domains can be locked here: {strategy}"));
        }
        for part in ["registered domains for partial sectors", "without a copy, NOT registered", "ulimit -l"] {
            assert!(strategy.contains(part), "{part}: {strategy}");
        }
        by_domains += number(&p["submissions"]["registered"]);
        straight += number(&p["submissions"]["plain"]);
        assert_eq!(number(&p["verification"]["words_wrong"]), 0, "{p}");
    }
    assert!(straight > 0, "whole sectors went straight");
    let direct = proves_direct(&result);
    assert!(!direct || by_domains > 0, "what is not whole sectors went by domains");
}

#[test]
fn messages_move_everything_directly() {
    let Some(result) = checked(3, &["--direct", "required", "--set", "exchange=messages"]) else { return };
    all_say(&result, &[0, 1], &["two-phase", "O_DIRECT", "exchanged by messages"]);
}

#[test]
fn odd_domains_and_a_single_aggregator() {
    for exchange in ["exchange=shared-memory", "exchange=messages"] {
        let args = ["--direct", "auto", "--set", exchange, "--domain", "20480", "--aggregators", "1"];
        let Some(result) = checked(2, &args) else { return };
        all_say(&result, &[0, 1], &["1 aggregator, domains of 20 KiB"]);
        checked(4, &["--direct", "auto", "--set", exchange, "--domain", "1000000", "--aggregators", "3"]);
    }
}

#[test]
fn through_the_page_cache_and_after_each_call() {
    checked(2, &["--direct", "off", "--domain", "100000"]);
    checked(2, &["--direct", "auto", "--termination", "per-call"]);
}

/// Or blocks of a new file: the first chunk of 1 kB in one holds up all that come to its rest.
#[test]
fn only_what_shares_sectors_is_exchanged_by_default() {
    let scratch = Scratch::new();
    let args = ["--backend", "uring", "--types", "0,1", "--space", "200M", "--direct", "required", "--verify", "full"];
    Launch::new(2).args(SHORT).args(args).into(&scratch).run().expect(0);
    let result = document(&scratch);
    if result["manifest"]["storage"]["direct_offset_align_bytes"] != 512 {
        return skip("sectors are not of 512 bytes here");
    }
    assert_eq!(result["corruptions"], Value::Array(Vec::new()));
    let block_size = fs::metadata(scratch.join("disk")).unwrap().blksize();
    // Larger ones are never completed in memory.
    let block_bytes = if (512..=4096).contains(&block_size) { block_size } else { 512 };
    let shares = |p: &&Value| {
        let whole_bytes = if p["access"] == "write" { block_bytes } else { 512 };
        !number(&p["chunk_bytes"]).is_multiple_of(whole_bytes)
    };
    let of_blocks = if block_bytes > 1024 { 2 } else { 0 };
    assert_eq!(items(&result["patterns"]).iter().filter(shares).count(), 3 * 6 + of_blocks);
    for p in items(&result["patterns"]).iter().filter(|p| number(&p["calls"]) > 0) {
        let two_phase = p["strategy"].as_str().is_some_and(|s| s.starts_with("two-phase"));
        assert!(p["direct"] == true && two_phase == shares(&p), "{p}");
    }
}

/// The same calls, bounded by space, through the cache and in two phases; files must not differ, lengths included. T is so long that no pause
/// of the storage ends a pattern.
fn identical_files(ranks: u64, space: &str, both: &[&str], more: &[&str]) {
    let of = |name: &str, args: &[&str]| {
        let scratch = Scratch::new();
        let fixed = ["-T", "960s", "--memory-per-process", "64M", "--space", space, "--types", "0,1,4"];
        // A depth is given, or uring would be calibrated for seconds.
        let kept =
            ["--keep-files", "--run-dir", "kept", "--backend", "posix,uring", "--depth", "32", "--repeat", "off"];
        Launch::new(ranks).args(fixed).args(kept).args(both).args(args).into(&scratch).run().expect(0);
        let calls: Vec<u64> = items(&document(&scratch)["patterns"]).iter().map(|p| number(&p["calls"])).collect();
        (name.to_owned(), scratch, calls)
    };
    let plain = of("plain", &["--direct", "off"]);
    let two = of("two-phase", &[&["--direct", "auto", "--collective", "two-phase"], more].concat());
    assert_eq!(plain.2, two.2, "other counts: another space or time is needed to compare");
    for backend in ["posix", "uring"] {
        let dir = format!("disk/kept/{backend}");
        let is_data = |name: &String| Path::new(name).extension().is_some_and(|e| e == "dat");
        let names: Vec<String> = list(&plain.1.join(&dir)).into_iter().filter(is_data).collect();
        assert_eq!(names.len(), 3);
        for name in names {
            let read = |scratch: &Scratch| fs::read(scratch.join(&dir).join(&name)).unwrap();
            let (one, other) = (read(&plain.1), read(&two.1));
            let differ = first_difference(&one, &other);
            assert_eq!((one.len(), None), (other.len(), differ), "{backend} {name}: length and first difference");
        }
    }
}

#[test]
fn files_are_the_same_as_with_plain_writes() {
    identical_files(3, "200M", &[], &["--set", "exchange=shared-memory", "--domain", "65536"]);
}

#[test]
fn files_are_the_same_after_an_exchange_by_messages() {
    identical_files(2, "140M", &[], &["--set", "exchange=messages"]);
}

#[test]
fn segments_that_are_no_multiple_of_a_sector() {
    identical_files(3, "200M", &["--set", "segment-multiple=8"], &[]);
}

/// The system lets one rank write only so far: its transfers fail, those of the others do not. All ranks end with its error.
#[test]
fn an_error_of_one_rank_ends_all() {
    for (ranks, failing) in [(2, 1), (2, 0), (3, 2)] {
        for exchange in ["exchange=shared-memory", "exchange=messages"] {
            let little = format!(
                "if [ ${{PMI_RANK:-$OMPI_COMM_WORLD_RANK}} = {failing} ]; then ulimit -f 40000; fi; \
                 exec env --ignore-signal=XFSZ \"$@\""
            );
            let scratch = Scratch::new();
            let args =
                ["-T", "30s", "--memory-per-process", "64M", "--types", "0", "--backend", "uring", "--space", "1G"];
            let two_phase = ["--collective", "two-phase", "--set", exchange, "--preallocate", "off", "--depth", "8"];
            let launch = Launch::through(&["sh", "-c", &little, "sh"], ranks).args(args).args(two_phase);
            let run = launch.into(&scratch).within(Duration::from_secs(60)).run();
            let what = format!("rank {failing} of {ranks}, {exchange}: {run}");
            assert_eq!(run.code(), 1, "{what}");
            assert!(run.seconds < 30.0, "{what}");
            let errors = document(&scratch)["errors"].clone();
            assert!(items(&errors)[0]["message"].as_str().unwrap().contains("File too large"), "{what}");
        }
    }
}

/// The other rank is stopped until this one sleeps in its wait, and then killed. A shell between them keeps the launcher from seeing that
/// and from ending this rank itself.
#[test]
fn a_rank_that_is_killed_is_not_waited_for() {
    let scratch = Scratch::new();
    let hidden = ["sh", "-c", "\"$@\"; exec sleep 30", "sh"];
    let args = ["-T", "60s", "--memory-per-process", "64M", "--types", "0", "--backend", "posix", "--space", "200M"];
    let two_phase = ["--collective", "two-phase", "--set", "exchange=shared-memory"];
    let mut running = Launch::through(&hidden, 2).args(args).args(two_phase).into(&scratch).start();
    let out = scratch.join("out.jsonl");
    running.until("a pattern", || fs::read_to_string(&out).is_ok_and(|text| text.contains(r#""record":"pattern""#)));
    let ranks = running.ranks();
    let [first, other] = ranks[..] else { panic!("{ranks:?}") };
    // In the system call futex(2), number 202 of x86-64 and 98 elsewhere; otherwise it waits in MPI.
    let sleeps = || {
        let call = fs::read_to_string(format!("/proc/{first}/syscall")).unwrap_or_default();
        call.split(' ').next().is_some_and(|number| number == if cfg!(target_arch = "x86_64") { "202" } else { "98" })
    };
    let stopped = (0..200).find(|_| {
        signal(other, "STOP");
        thread::sleep(Duration::from_millis(50));
        sleeps() || {
            signal(other, "CONT");
            thread::sleep(Duration::from_millis(7));
            false
        }
    });
    assert!(stopped.is_some(), "it never sleeps");
    signal(other, "KILL");
    let killed = Instant::now();
    let run = running.wait();
    assert!(run.code() != 0 && killed.elapsed() < Duration::from_secs(20), "{run}");
    run.says(&["has ended while rank", "aborting all ranks"]);
}

/// The first touch of memory is dear. What domains and messages need is there before the first file, and what a file has used is what the next one uses.
#[test]
fn domain_and_message_buffers_are_allocated_before_the_first_file() {
    let library = patient::library_of("mappings", include_str!("../planted/mappings.c"));
    for backend in ["posix", "uring"] {
        let scratch = Scratch::new();
        let log_path = scratch.join("mappings");
        let both = format!("{}:{}", patient::library().display(), library.display());
        let launch = Launch::new(2).env("LD_PRELOAD", both).env("BEFF_MAPPINGS", log_path.to_str().unwrap());
        // By messages: they need memory too, and no memory of neighbours is mapped, which happens when a file is opened.
        let fixed =
            ["--backend", backend, "--collective", "two-phase", "--set", "exchange=messages", "--direct", "required"];
        let run = launch.args(SHORT).args(fixed).args(["--types", "0,1,4", "--space", "200M"]).into(&scratch).run();
        run.expect(0);
        let result = document(&scratch);
        if !proves_direct(&result) {
            skip("the file system of the target directory tells no alignment of direct I/O (STATX_DIOALIGN)");
            return;
        }
        all_say(&result, &[0, 1], &["two-phase", "O_DIRECT"]);
        let mappings = fs::read_to_string(&log_path).unwrap();
        let after: Vec<&str> = mappings.lines().filter(|line| line.starts_with("after")).collect();
        let lines = |word: &str| mappings.lines().filter(|line| line.starts_with(word)).count();
        assert!(lines("before") >= 2 && lines("opened") >= 2, "{backend}: not all ranks were seen: {mappings}\n{run}");
        assert!(after.is_empty(), "{backend}: {mappings}");
    }
}
