//! b_eff: `beff-raw comm`.

use std::fs;
use std::process::{Command, Output};

use serde_json::Value;

use crate::matrix::is_shared;
use crate::support::{document, items, journal, launcher, number, read_json, signal, Launch, Run, Scratch, PROGRAM};

/// Settings of a short run: Lmax = 128 KiB.
const SHORT: [&str; 6] = ["comm", "--quick", "--full", "--memory-per-process", "16M", "--out"];

fn short(ranks: u64, scratch: &Scratch) -> Launch {
    Launch::new(ranks).args(SHORT).arg(scratch.join("out"))
}

fn plan(args: &[&str]) -> Output {
    let output = Command::new(PROGRAM).args(["comm", "--plan"]).args(args).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    output
}

/// Lines that were wrapped become one.
fn flat(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// A whole run: every pattern that its effort has, every size, data right, nothing allocated in the clock.
#[track_caller]
fn check_whole(result: &Value, run: &Run, ranks: u64) {
    assert_eq!(result["ending"]["outcome"], "complete", "{run}");
    assert_eq!(result["setup"]["machine"]["ranks"], ranks);
    let patterns = items(&result["patterns"]);
    for name in ["ping-pong", "ring-1", "ring-2", "ring-3", "ring-4", "ring-5", "ring-6", "random-1"] {
        assert!(patterns.iter().any(|p| p["pattern"] == name), "no {name}; {run}");
    }
    for p in patterns {
        let name = &p["pattern"];
        assert_eq!(items(&p["sizes"]).len(), 21, "{name}; {run}");
        assert!(number(&p["bytes_checked"]) > 0, "{name}: nothing compared");
        assert_eq!(number(&p["bytes_wrong"]), 0, "{name}; {run}");
        assert_eq!(number(&p["allocations_in_clock"]), 0, "{name}: allocations in the clock");
        for size in items(&p["sizes"]) {
            assert!(items(&size["loops"]).iter().all(|l| l["seconds"].as_f64().unwrap() > 0.0), "{name}: {size}");
        }
    }
    let last = run.stdout.lines().last().unwrap_or_default();
    assert!(last.starts_with("b_eff = ") && last.contains("NOT VALID") && last.contains("QUICK"), "{last}");
    let hosts = items(&result["setup"]["machine"]["hosts"]);
    let crowded = hosts.iter().any(|h| number(&h["ranks"]) > number(&h["cores"]));
    assert_eq!(last.contains("OVERSUBSCRIBED"), crowded, "{last}");
}

/// The repetition is the outermost loop: a line of the journal has loops of one, and all patterns come before the next.
#[track_caller]
fn check_repetitions(lines: &[Value], patterns: &[Value]) {
    let repetitions_of = |line: &Value| -> Vec<u64> {
        items(&line["sizes"]).iter().flat_map(|s| items(&s["loops"])).map(|l| number(&l["repetition"])).collect()
    };
    let mut last = 0;
    for line in lines {
        let all = repetitions_of(line);
        assert!(!all.is_empty() && all.iter().all(|r| *r == all[0]) && all[0] >= last, "{} after {last}", all[0]);
        last = all[0];
    }
    let first = lines.iter().take_while(|line| repetitions_of(line)[0] == 0).count();
    assert_eq!(first, patterns.len());
    for p in patterns {
        let own = lines.iter().filter(|line| line["pattern"] == p["pattern"]);
        assert_eq!(own.flat_map(repetitions_of).count(), repetitions_of(p).len(), "{}", p["pattern"]);
    }
}

#[test]
fn whole_on_two_to_seven_ranks() {
    // With two MPIs each has an even and an odd number.
    let with_each = if launcher().mpi == "mpich" { [2, 7] } else { [4, 3] };
    for ranks in if is_shared() { &with_each[..] } else { &[2, 3, 4, 7] }.iter().copied() {
        let scratch = Scratch::new();
        let run = short(ranks, &scratch).run();
        run.expect(0);
        println!("{ranks} ranks: {:.1} s", run.seconds);
        let result = document(&scratch);
        check_whole(&result, &run, ranks);
        assert!(run.stderr.contains(&format!("b_eff on {ranks} ranks: about")), "no announcement; {run}");
        check_repetitions(&journal(&scratch, "pattern"), items(&result["patterns"]));
        let csv = fs::read_to_string(scratch.join("out.csv")).unwrap();
        let loops =
            items(&result["patterns"]).iter().flat_map(|p| items(&p["sizes"])).map(|s| items(&s["loops"]).len());
        assert_eq!(csv.lines().count(), 1 + loops.sum::<usize>());
        for (name, file) in [("json", "out.json"), ("journal", "out.jsonl")] {
            let report = Command::new(PROGRAM).args(["report", "--full"]).arg(scratch.join(file)).output().unwrap();
            assert_eq!(String::from_utf8_lossy(&report.stdout), run.stdout, "{name}");
        }
    }
}

#[test]
fn the_same_seed_is_the_same_plan_byte_for_byte() {
    let of = |seed: &str| plan(&["13", "--seed", seed, "--memory-per-process", "1G", "--json"]).stdout;
    assert_eq!(of("5"), of("5"));
    let (one, other): (Value, Value) =
        (serde_json::from_slice(&of("5")).unwrap(), serde_json::from_slice(&of("6")).unwrap());
    for (a, b) in items(&one["patterns"]).iter().zip(items(&other["patterns"])) {
        assert_eq!(a == b, a["family"] != "random", "{a} {b}");
    }
    let text = String::from_utf8(plan(&["13", "--seed", "5"]).stdout).unwrap();
    assert!(text.contains("5x2+3") && text.contains("random-30"), "{text}");
}

#[test]
fn two_runs_of_one_seed_measure_the_same_rings() {
    let shapes = |scratch: &Scratch| {
        let run = short(4, scratch).args(["--seed", "77", "--time", "2s", "--families", "random"]).run();
        run.expect(0);
        let result = document(scratch);
        items(&result["patterns"]).iter().map(|p| p["shape"].clone()).collect::<Vec<_>>()
    };
    let (one, other) = (shapes(&Scratch::new()), shapes(&Scratch::new()));
    assert!(!one.is_empty() && !other.is_empty());
    assert!(one.iter().zip(&other).all(|(a, b)| a == b), "{one:?} {other:?}");
}

#[test]
fn a_wrong_byte_is_found_and_named() {
    let cases = [
        (2, "ping-pong", 0, "cyclic"),
        (3, "ring", 0, "cyclic"),
        (4, "random", u64::MAX, "cyclic"),
        (3, "ring", 0, "reused"),
    ];
    for (ranks, families, sender, buffers) in cases {
        let scratch = Scratch::new();
        let args = ["--time", "2s", "--families", families, "--buffers", buffers, "--inject"];
        let run = short(ranks, &scratch).args(args).run();
        run.expect(3);
        let result = document(&scratch);
        let all = items(&result["corruptions"]);
        assert_eq!(all.len(), 1, "{all:?}");
        let c = &all[0];
        // The last rank that receives, in the middle of a message of 4096 bytes, in the first loop of the first pattern.
        assert_eq!(c["receiver"], ranks - 1, "{c}");
        assert_eq!(c["message_bytes"], 4096, "{c}");
        assert_eq!(c["diagnosis"], "one bit flipped", "{c}");
        assert_eq!(number(&c["actual"]) ^ number(&c["expected"]), 0x10, "{c}");
        assert_eq!(c["bytes_wrong"], 1, "{c}");
        assert!(sender == u64::MAX || c["sender"] == sender, "{c}");
        assert_eq!(journal(&scratch, "corruption").len(), 1);
        for part in ["DATA CORRUPTION", "one bit flipped", "4096"] {
            assert!(flat(&run.stdout).contains(part), "no '{part}'; {run}");
        }
    }
}

/// How far apart they are is a matter of an idle machine; here only that both run and are told.
#[test]
fn bare_loops_take_turns_with_ours() {
    // In the quick mode the smallest and the largest size, else all of them.
    let (both, one) = ("ping-pong,ring", "ping-pong");
    for (ranks, buffers, families, quick) in [(2, "cyclic", one, false), (3, "reused", both, true)] {
        let scratch = Scratch::new();
        let args = ["--time", "8s", "--families", families, "--bare", "--buffers", buffers];
        let short = SHORT.iter().filter(|word| quick || **word != "--quick");
        let run = Launch::new(ranks).args(short).arg(scratch.join("out")).args(args).run();
        run.expect(0);
        let result = document(&scratch);
        let all: Vec<_> =
            items(&result["bare"]).iter().map(|b| (b["pattern"].clone(), number(&b["message_bytes"]))).collect();
        let sizes: Vec<u64> = items(&result["setup"]["sizes_bytes"]).iter().map(number).collect();
        let sizes = if quick { vec![1, 1 << 17] } else { sizes };
        let of = |pattern: &'static str| sizes.iter().map(move |bytes| (pattern.into(), *bytes));
        let expected: Vec<_> = of("ping-pong").chain(of("ring-6").filter(|_| families == both)).collect();
        assert_eq!(all, expected);
        for value in items(&result["derived"]["bare"]) {
            assert!(number(&value["pairs"]) >= 5 && value["ratio"].as_f64().unwrap() > 0.0, "{value}");
        }
        assert!(run.stdout.contains("compared with bare C loops"), "{run}");
        assert_eq!(journal(&scratch, "bare").len(), expected.len());
    }
}

#[test]
fn families_left_out_leave_no_value() {
    let scratch = Scratch::new();
    let run = short(2, &scratch).args(["--time", "4s", "--families", "ping-pong,bisection"]).run();
    run.expect(0);
    let last = run.stdout.lines().last().unwrap_or_default();
    assert!(last.starts_with("b_eff = not measured"), "{last}");
    let names: Vec<_> = items(&document(&scratch)["patterns"]).iter().map(|p| p["pattern"].clone()).collect();
    assert!(
        names.iter().all(|n| n == "ping-pong" || n.as_str().is_some_and(|n| n.ends_with("bisection"))),
        "{names:?}"
    );
}

#[test]
fn what_cannot_run_is_refused() {
    let refused: [(u64, &[&str], &[&str]); 5] = [
        (1, &[], &["only one", "mpirun -n 2"]),
        (2, &["--time", "0.2s"], &["--time 0.2", "at least"]),
        (2, &["--memory-per-process", "64K"], &["64"]),
        (2, &["--families", "spiral"], &["spiral", "ring"]),
        (2, &["--rmax", "0"], &["above zero"]),
    ];
    for (ranks, options, parts) in refused {
        let scratch = Scratch::new();
        let run = Launch::new(ranks).arg("comm").args(options).arg("--out").arg(scratch.join("out")).run();
        run.expect(2).says(parts);
        assert_eq!(run.stdout, "");
        assert_eq!(scratch.list(""), [] as [&str; 0], "{options:?}");
    }
    let json = Command::new(PROGRAM).args(["comm", "--json"]).output().unwrap();
    assert_eq!(json.status.code(), Some(2));
}

#[test]
fn a_signal_keeps_what_was_measured() {
    let scratch = Scratch::new();
    let args = ["comm", "--time", "3m", "--memory-per-process", "64M", "--out"];
    let mut running = Launch::new(2).args(args).arg(scratch.join("out")).start();
    let out = scratch.join("out.jsonl");
    running.until("three patterns", || {
        fs::read_to_string(&out).is_ok_and(|text| text.matches(r#""record":"pattern""#).count() >= 3)
    });
    signal(running.pid(), "INT");
    let run = running.wait();
    let result = read_json(&scratch.join("out.json"));
    assert_eq!(result["ending"]["outcome"], "interrupted", "{run}");
    assert!(items(&result["patterns"]).len() >= 3);
    let report = Command::new(PROGRAM).arg("report").arg(&out).output().unwrap();
    assert!(String::from_utf8_lossy(&report.stdout).contains("INTERRUPTED"), "{run}");
}

#[test]
fn a_killed_rank_leaves_a_journal_that_is_a_result() {
    let scratch = Scratch::new();
    let args = ["comm", "--time", "3m", "--memory-per-process", "64M", "--out"];
    let mut running = Launch::new(2).args(args).arg(scratch.join("out")).start();
    let out = scratch.join("out.jsonl");
    running.until("two patterns", || {
        fs::read_to_string(&out).is_ok_and(|text| text.matches(r#""record":"pattern""#).count() >= 2)
    });
    signal(running.ranks()[1], "KILL");
    let run = running.wait();
    assert_ne!(run.code(), 0, "{run}");
    let report = Command::new(PROGRAM).arg("report").arg(&out).output().unwrap();
    let text = String::from_utf8_lossy(&report.stdout);
    assert!(report.status.success() && text.contains("KILLED") && text.contains("not measured"), "{text}");
}

/// Locks that no second thread needs would be in the time of every short message.
#[test]
fn mpi_is_asked_for_one_thread() {
    let scratch = Scratch::new();
    let run = short(2, &scratch).args(["--time", "2s", "--families", "ping-pong"]).run();
    run.expect(0);
    assert_eq!(document(&scratch)["setup"]["machine"]["mpi_thread_level"], "single", "{run}");
    assert!(flat(&run.stdout).contains("thread level single"), "{run}");
}

/// Windows used again and again show caches: the result says so, and is not the definition.
#[test]
fn the_memory_of_the_messages_is_reported() {
    for (buffers, from, half_bytes) in
        [("cyclic", "small_memory", Some(6 * ((1 << 17) + 16))), ("reused", "reused_windows", None)]
    {
        let scratch = Scratch::new();
        let run = short(3, &scratch).args(["--time", "2s", "--families", "ring,random", "--buffers", buffers]).run();
        run.expect(0);
        let result = document(&scratch);
        assert_eq!(result["config"]["buffers"], buffers);
        assert_eq!(result["derived"]["messages_from"], from, "{run}");
        let memory = &result["announcement"]["memory"];
        assert!(half_bytes.is_none_or(|bytes| number(&memory["half_bytes"]) == bytes), "{memory}");
        assert!(memory["huge_page_total_bytes"].is_u64(), "{memory}");
        let criterion = format!("messages walk through memory ({buffers} buffers)");
        let met = items(&result["derived"]["criteria"]).iter().find(|c| c["text"] == criterion).map(|c| &c["met"]);
        assert_eq!(met, Some(&Value::from(buffers == "cyclic")), "{run}");
        assert!(run.stdout.lines().last().unwrap_or_default().contains("from cache"), "{run}");
        assert!(items(&result["patterns"]).iter().all(|p| number(&p["bytes_wrong"]) == 0), "{run}");
    }
}
