//! Damage is found and named by pattern, rank and offset.

use serde_json::Value;

use crate::support::{document, items, journal, number, Launch, Scratch};

/// Last pattern of each type that runs here, and whether each rank has a file of its own.
const TYPES: [(u64, bool); 2] = [(0, false), (2, true)];

/// Where the damage must be: the last call of the type's last pattern, in the data of the last rank.
fn place(result: &Value, backend: &str, pattern_type: u64, private: bool, ranks: u64) -> (u64, u64, u64) {
    let of_type = |p: &&Value| p["backend"] == backend && p["access"] == "write" && p["pattern_type"] == pattern_type;
    let writes: Vec<_> = items(&result["patterns"]).iter().filter(of_type).collect();
    let bytes = |p: &Value| number(&p["calls"]) * number(&p["call_bytes"]);
    let last = writes.last().unwrap();
    let before: u64 = writes[..writes.len() - 1].iter().map(|p| bytes(p)).sum();
    let (chunk, call) = (number(&last["chunk_bytes"]), number(&last["call_bytes"]));
    let in_stream = before + bytes(last) - call;
    // Chunks of the ranks lie side by side in a file of all; the last pattern has one chunk in each call.
    assert_eq!(chunk, call);
    let offset = if private { in_stream } else { in_stream * ranks + (ranks - 1) * chunk };
    (number(&last["pattern"]), offset, chunk)
}

fn found(ranks: u64, backends: &[&str], damage: &str, looks_like: &str, first_word: u64) {
    let scratch = Scratch::new();
    // Time enough for all reads to come to their end, and little to do.
    let space = format!("{}M", 80 * ranks);
    let args = ["-T", "120s", "--memory-per-process", "64M", "--types", "0,2", "--space", &space, "--repeat", "off"];
    let launch = Launch::new(ranks).args(args).args(["--backend", &backends.join(","), "--inject", damage, "--full"]);
    // With a depth uring is not calibrated, which takes seconds.
    let launch = if backends.contains(&"uring") { launch.args(["--depth", "32"]) } else { launch };
    let run = launch.into(&scratch).run();
    run.expect(3);
    let result = document(&scratch);
    let corruptions = items(&result["corruptions"]);
    assert_eq!(journal(&scratch, "corruption").len(), corruptions.len());
    let mut seen = 0;
    for &backend in backends {
        for (pattern_type, private) in TYPES {
            let (pattern, offset, chunk) = place(&result, backend, pattern_type, private, ranks);
            let here = |c: &&Value| c["backend"] == backend && c["pattern"] == pattern;
            let all: Vec<_> = corruptions.iter().filter(here).collect();
            // By the read, and once more by places of the sample after it.
            assert!(!all.is_empty(), "{backend}, type {pattern_type}");
            for c in &all {
                assert!((offset + first_word..offset + chunk).contains(&number(&c["offset_bytes"])), "{c}");
            }
            seen += all.len();
            assert_eq!(number(&all[0]["rank"]), ranks - 1);
            assert_eq!(number(&all[0]["offset_bytes"]), offset + first_word, "{}", all[0]);
            assert_eq!(all[0]["access"], "read");
            let words = all[0]["diagnosis"].as_str().unwrap();
            assert!(words.contains(looks_like), "{words}");
            assert!(run.stdout.contains(&(offset + first_word).to_string()), "no offset on stdout; {run}");
        }
    }
    assert_eq!(corruptions.len(), seen, "{corruptions:?}");
    assert!(run.stdout.contains(looks_like), "{run}");
}

#[test]
fn one_flipped_bit() {
    found(1, &["mpiio", "uring"], "flip", "one bit", 1 << 19);
    found(3, &["mpiio", "posix", "uring", "mmap"], "flip", "one bit", 1 << 19);
}

#[test]
fn the_data_of_another_rank() {
    found(3, &["mpiio", "posix"], "other-rank", "data of rank 0", 0);
    // A single rank has no other: the damage is refused, and the run says that nothing was proved.
    let run = Launch::new(1).args(["-T", "1s", "--memory-per-process", "64M", "--types", "0", "--space", "60M"]);
    let scratch = Scratch::new();
    run.args(["--backend", "posix", "--inject", "other-rank"]).into(&scratch).run().expect(1);
    assert!(journal(&scratch, "error")[0]["message"].as_str().unwrap().contains("no other rank"));
}

#[test]
fn data_from_before_the_rewrite() {
    found(1, &["posix", "mmap"], "stale", "first write", 0);
    found(3, &["mpiio", "uring"], "stale", "first write", 0);
}

#[test]
fn a_hole() {
    found(1, &["mpiio", "uring"], "hole", "hole", 0);
    found(3, &["posix", "mmap"], "hole", "hole", 0);
}
