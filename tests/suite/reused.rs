//! `--buffers reused`: one window for all calls of a pattern, marked wherever a value stands, and verified as far as that goes.

use std::fs;

use serde_json::Value;

use crate::support::{document, items, list, number, Launch, Run, Scratch, SHORT};

fn launch(scratch: &Scratch, ranks: u64, args: &[&str]) -> Run {
    Launch::new(ranks).args(SHORT).args(["--buffers", "reused", "--space", "300M"]).args(args).into(scratch).run()
}

fn words_wrong(result: &Value) -> u64 {
    let patterns = items(&result["patterns"])
        .iter()
        .map(|p| number(&p["verification"]["words_wrong"]) + p["sample"]["words_wrong"].as_u64().unwrap_or(0));
    let types = items(&result["types"]).iter().map(|t| t["full_verification"]["words_wrong"].as_u64().unwrap_or(0));
    patterns.chain(types).sum()
}

/// Through every backend, with reads of a queue and of two phases, on odd and even numbers of ranks: what is in the files and in memory is
/// right, and no value goes without its mark.
#[test]
fn one_window_serves_every_backend_and_is_marked() {
    for (ranks, args) in [
        (1, &["--backend", "mpiio,posix,uring,mmap", "--types", "0,2", "--verify", "full"][..]),
        (2, &["--backend", "posix,uring", "--collective", "two-phase", "--types", "1,4"]),
        (3, &["--backend", "mpiio,mmap", "--types", "0,1,3", "--verify", "full"]),
    ] {
        let scratch = Scratch::new();
        let run = launch(&scratch, ranks, args);
        run.expect(0);
        assert!(run.stdout.contains("reused buffers") && run.stdout.contains("NOT VALID"), "{run}");
        let result = document(&scratch);
        assert_eq!(words_wrong(&result), 0, "{args:?}");
        assert!(
            items(&result["patterns"]).iter().map(|p| number(&p["verification"]["words_checked"])).sum::<u64>() > 0
        );
        for v in items(&result["derived"]["validity"]) {
            let is_reported = |c: &Value| c.as_str().unwrap().contains("reused buffers");
            assert!(v["valid"] == false && items(&v["caveats"]).iter().any(is_reported), "{v}");
        }
        assert!(result["cache_cold"][0]["unknown_reason"].as_str().unwrap().contains("--buffers reused"));
        assert!(items(&result["patterns"]).iter().all(|p| p["allocations_in_clock"] == 0));
    }
}

/// In the file of a rank, calls of whole pages repeat the same bytes; with cold memory they differ.
#[test]
fn calls_write_the_same_bytes_only_if_that_was_asked_for() {
    for (buffers, same) in [("reused", true), ("cold", false)] {
        let scratch = Scratch::new();
        let short = ["-T", "15s", "--repeat", "off", "--memory-per-process", "64M"];
        let args = ["--backend", "posix", "--types", "2", "--space", "100M", "--keep-files", "--run-dir", "kept"];
        Launch::new(1).args(short).args(args).args(["--buffers", buffers]).into(&scratch).run().expect(0);
        let kept = scratch.join("disk/kept/posix");
        let [name] = &list(&kept)[..] else { panic!("one file of one rank") };
        let file = fs::read(kept.join(name)).unwrap();
        // The first timed pattern of the type has calls of M_PART, 2 MiB, behind the warm-up.
        let call = |n: usize| &file[n << 20..(n + 1) << 20];
        let repeats = (0..(file.len() >> 20) - 2).any(|n| call(n) == call(n + 2));
        assert_eq!(repeats, same, "{buffers}");
    }
}

#[test]
fn damage_is_found_and_what_cannot_be_is_refused() {
    for (how, backend) in [("flip", "posix"), ("zero", "uring"), ("stale", "posix"), ("other-rank", "uring")] {
        let scratch = Scratch::new();
        // Time enough for all reads to come to their end, and little to do.
        let args =
            ["-T", "120s", "--memory-per-process", "64M", "--types", "0,2", "--space", "160M", "--buffers", "reused"];
        let damaged = ["--backend", backend, "--repeat", "off", "--inject", how];
        Launch::new(2).args(args).args(damaged).into(&scratch).run().expect(3);
        assert!(words_wrong(&document(&scratch)) > 0, "{how}");
    }
    for how in ["swap", "misplaced"] {
        let run = Launch::alone().args(SHORT).args(["--buffers", "reused", "--inject", how]).run();
        run.expect(2).says(&["misplaced data cannot be detected", "--buffers cold"]);
    }
}
