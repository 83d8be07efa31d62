//! How the time that is left is used, by the clock: the bound of T, and what is done where it is short.

use std::collections::HashMap;

use serde_json::Value;

use crate::repeat::{words_wrong, SMALL};
use crate::support::{document, items, number, skip, Launch, Scratch};

/// Calls that a repeat was to make.
fn asked(first: &Value, repetition: &Value) -> u64 {
    (number(&first["calls"]) as f64 * repetition["share"].as_f64().unwrap()).ceil() as u64
}

/// The bound of T, whatever else the machine does: a repeat is begun where 1.15 times what it took before fits into what is left. What a
/// repeat took is at least the time from the begin of its first pattern to that of its last one.
fn only_what_fits_is_begun(result: &Value, all_seconds: f64) {
    let at = |r: &Value| r["measurement"]["at_seconds"].as_f64().unwrap();
    let unit = |r: &Value| (r["measurement"]["access"].to_string(), r["measurement"]["pattern_type"].to_string());
    let mut took: HashMap<_, f64> = HashMap::new();
    let mut began = 0.0;
    for records in
        items(&result["repetitions"]).chunk_by(|a, b| unit(a) == unit(b) && a["repetition"] == b["repetition"])
    {
        let (first, last) = (&records[0], &records[records.len() - 1]);
        let before = took.entry(unit(first)).or_default();
        assert!(began + *before * 1.15 <= all_seconds, "behind {began} s begins what took {before} s: {first}");
        began = at(last);
        *before = before.max(began - at(first));
    }
}

/// A first pass that leaves little of T: repeats are cut, first writes too, and what is read is what was written last. How much of T is
/// left depends on the machine: where it was the wrong part, T is chosen by what the first pass took.
#[test]
#[ignore = "a minute of real time: make campaign"]
fn where_little_time_remains_repetitions_are_short() {
    let mut seconds = 30.0_f64;
    for _ in 0..3 {
        let scratch = Scratch::new();
        let options =
            ["--backend", "uring", "--memory-per-process", "256M", "--space", "4G", "--repeat", "auto", "--quiet"];
        let time = format!("{seconds:.0}s");
        Launch::new(2).args(["-T", &time]).args(options).into(&scratch).run().expect(0);
        let result = document(&scratch);
        assert_eq!(words_wrong(&result), 0);
        let repetitions = items(&result["repetitions"]);
        for repetition in repetitions {
            let again = &repetition["measurement"];
            let is_it = |p: &&Value| p["access"] == again["access"] && p["pattern"] == again["pattern"];
            let first = items(&result["patterns"]).iter().find(is_it).unwrap();
            let share = repetition["share"].as_f64().unwrap();
            assert!(share > 0.0 && share <= 1.0);
            let asked = asked(first, repetition);
            assert!(number(&again["calls"]) <= asked, "{} {}: {share}", again["access"], again["pattern"]);
        }
        assert_eq!(scratch.list("disk"), [] as [&str; 0], "files are left");
        let is_short = |r: &&Value| r["share"].as_f64() < Some(1.0);
        let writes = repetitions.iter().filter(is_short).filter(|r| r["measurement"]["access"] == "write").count();
        if writes > 0 {
            return;
        }
        let real = &result["ending"]["real_seconds"];
        let first = repetitions.first().map_or(real, |r| &r["measurement"]["at_seconds"]).as_f64().unwrap();
        println!("{} repeats, none a short first write; first pass {first} s of {time}", repetitions.len());
        seconds = (1.6 * first).max(10.0);
    }
    skip("no first write was cut in three runs");
}

#[test]
fn the_time_left_measures_again() {
    measures_again(&[("mpiio", 3)]);
}

#[test]
#[ignore = "a minute of real time: make campaign"]
fn the_time_left_measures_again_with_other_drivers() {
    measures_again(&[("posix", 2), ("uring", 1)]);
}

/// Repeats of all access methods within T, each with the calls of the first pass, with evidence and right data; intervals in all views.
fn measures_again(runs: &[(&str, u64)]) {
    let all_seconds = 20.0_f64;
    let time = format!("{all_seconds}s");
    for &(backend, ranks) in runs {
        let scratch = Scratch::new();
        let direct = if backend == "mpiio" { &SMALL[..7] } else { &SMALL[..] };
        let run = Launch::new(ranks).args(direct).args(["-T", &time, "--backend", backend]).into(&scratch).run();
        run.expect(0);
        let result = document(&scratch);
        let real = result["ending"]["real_seconds"].as_f64().unwrap();
        let repetitions = items(&result["repetitions"]);
        assert!(!repetitions.is_empty(), "{backend}: {run}");
        // A quarter of T in any case.
        let end = all_seconds.max(repetitions[0]["measurement"]["at_seconds"].as_f64().unwrap() + 0.25 * all_seconds);
        assert!(real < end + 0.5, "{backend}: {real} s of {time}");
        only_what_fits_is_begun(&result, end);
        // Two repeats of all take 2.3 times the first pass at most.
        let has_time = repetitions[0]["measurement"]["at_seconds"].as_f64().unwrap() < all_seconds / 3.3;
        for repetition in repetitions {
            assert!(!has_time || repetition["share"] == 1.0, "{backend}: cut although there was time: {repetition}");
            let again = &repetition["measurement"];
            let is_it = |p: &&Value| p["access"] == again["access"] && p["pattern"] == again["pattern"];
            let first = items(&result["patterns"]).iter().find(is_it).unwrap();
            let what = format!("{backend}, {}, pattern {}", again["access"], again["pattern"]);
            assert!(number(&again["calls"]) <= number(&first["calls"]), "{what}");
            assert!(
                again["ended"]["by"] == "time_guard" || number(&again["calls"]) == asked(first, repetition),
                "{what}: {again}"
            );
            assert_eq!(again["allocations_in_clock"], 0, "{what}");
            assert!(again["evidence"]["residency_source"] != "" || number(&again["calls"]) == 0, "{what}");
            assert!(again["at_seconds"].as_f64() > first["at_seconds"].as_f64(), "{what}");
        }
        for access in ["write", "rewrite", "read"] {
            assert!(
                repetitions.iter().any(|r| r["measurement"]["access"] == access),
                "{backend}: no repeat of {access}"
            );
        }
        assert_eq!(words_wrong(&result), 0, "{backend}");
        let intervals = &result["derived"]["intervals"];
        let value = &result["derived"]["partitions"][0]["values"]["release_1"];
        let known = &items(&intervals["values"])[0];
        assert!(known["low"].as_f64() <= value.as_f64() && value.as_f64() <= known["high"].as_f64(), "{known} {value}");
        assert_eq!(items(&intervals["types"]).len(), 15, "{backend}");
        let is_shown = run.stdout.contains("[low, high]: 95 % interval") && run.stdout.contains("MB/s [");
        let is_narrow = known["resolving_time_seconds"].is_null();
        assert!(is_shown == is_narrow && run.stdout.contains("no interval: with T = ") != is_narrow, "{run}");
        let mut csv = csv::Reader::from_path(scratch.join("out.csv")).unwrap();
        let header = csv.headers().unwrap().clone();
        let lines: Vec<_> = csv.records().map(Result::unwrap).collect();
        assert_eq!(lines.len(), items(&result["patterns"]).len());
        for line in &lines {
            let text = |name: &str| &line[header.iter().position(|column| column == name).unwrap()];
            let shown = |name: &str| text(name).parse::<f64>().unwrap();
            let is_it = |t: &&Value| {
                t["access"] == text("access")
                    && number(&t["pattern_type"]) == text("pattern_type").parse::<u64>().unwrap()
            };
            let of_type = items(&intervals["types"]).iter().find(is_it).unwrap();
            for (name, of) in [("type", of_type), ("b_eff_io", known)] {
                let [low, high] = ["low", "high"].map(|end| shown(&format!("{name}_{end}_mb_per_second")));
                assert_eq!([Some(low), Some(high)], [of["low"].as_f64(), of["high"].as_f64()], "{backend}: {line:?}");
                assert!((low..=high).contains(&shown(&format!("{name}_mb_per_second"))), "{backend}: {line:?}");
            }
        }
        let path = scratch.join("out.json");
        let details = Launch::alone().args(["report", "--details"]).arg(&path).run();
        let words = details.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
        let known = ["95 % intervals, MB/s 0 [", "known to no factor of two 0"];
        assert!(known.iter().any(|known| words.contains(known)), "{details}");
        assert_eq!(scratch.list("disk"), [] as [&str; 0], "files are left");
    }
}

fn is_same(a: &Value, b: &Value) -> bool {
    ["backend", "ranks", "access", "pattern"].iter().all(|key| a[key] == b[key])
}

/// Several backends: what has fewer than three rounds in one of them is measured twice again, and nothing else; then the ratios of all types
/// have intervals, and the run ends. Values are those of the first pass.
#[test]
#[ignore = "a minute of real time: make campaign"]
fn long_calls_are_measured_again_until_ratios_have_intervals() {
    for (ranks, types, keep) in [(2, "0", false), (3, "2", true)] {
        let scratch = Scratch::new();
        // Calls of 32 MiB, of which few fit into the time of their pattern; T of the types that are left out is time for repeats.
        let args = ["-T", "16s", "--types", types, "--memory-per-process", "4G", "--space", "4G", "--full"];
        let keep: &[&str] = if keep { &["--keep-files", "--run-dir", "kept"] } else { &[] };
        let run = Launch::new(ranks).args(args).args(["--backend", "mpiio,posix"]).args(keep).into(&scratch).run();
        run.expect(0);
        let result = document(&scratch);
        assert_eq!(result["config"]["repeat"], "rounds");
        let (patterns, repetitions) = (items(&result["patterns"]), items(&result["repetitions"]));
        let few = |p: &Value| {
            let own = patterns.iter().filter(|q| q["access"] == p["access"] && q["pattern"] == p["pattern"]);
            number(&p["time_units"]) > 0
                && own.clone().any(|q| number(&q["calls"]) > 0 && items(&q["rounds"]).len() < 3)
        };
        if !patterns.iter().any(few) {
            skip("no pattern had few rounds: this storage is too fast for calls of 32 MiB");
            continue;
        }
        let mut cut = 0;
        for p in patterns {
            let own: Vec<&Value> = repetitions.iter().filter(|r| is_same(&r["measurement"], p)).collect();
            let whole_type = !keep.is_empty() && p["access"] == "write";
            if number(&p["time_units"]) > 0 && !whole_type && !few(p) {
                assert_eq!(own.len(), 0, "measured again for nothing: {p}");
            }
            if few(p) && number(&p["calls"]) > 0 {
                assert!(own.len() <= 2, "{p}");
                cut += usize::from(own.len() < 2 || own.iter().any(|r| r["share"] != 1.0));
            }
        }
        assert_eq!(words_wrong(&result), 0);
        let real = result["ending"]["real_seconds"].as_f64().unwrap();
        if let Some(first) = repetitions.first() {
            let begin = first["measurement"]["at_seconds"].as_f64().unwrap();
            // What is begun fits by what it took before; storage may be slower then.
            assert!(real < (begin + 16.0).max(32.0) + 5.0, "{real} s, repeats from {begin} s on");
        }
        let verdicts = items(&result["derived"]["ladder"]["verdicts"]);
        let of_types: Vec<&Value> = verdicts.iter().filter(|v| v["pattern"].is_null()).collect();
        assert_eq!(of_types.len(), 3);
        for v in &of_types {
            let ratio = &v["ratio"];
            let interval = &ratio["interval"];
            if !interval.is_null() {
                let [low, value, high] = [&interval["low"], &ratio["value"], &interval["high"]].map(Value::as_f64);
                assert!(
                    low <= value && value <= high && (ratio["measurements"] == 3 || ratio["measurements"] == 0),
                    "{v}"
                );
            }
        }
        // The first pass alone gives the values.
        let types = items(&result["derived"]["types"]);
        for t in items(&result["derived"]["ladder"]["types"]) {
            let own = |p: &&Value| {
                p["backend"] == t["backend"] && p["access"] == t["access"] && p["pattern_type"] == t["pattern_type"]
            };
            let of_type = types.iter().find(own).unwrap()["mb_per_second"].as_f64().unwrap();
            assert!((of_type / t["mb_per_second"].as_f64().unwrap() - 1.0).abs() < 1e-12, "{of_type} {t}");
        }
        let intervals = &result["derived"]["intervals"];
        assert_eq!((items(&intervals["types"]).len(), items(&intervals["values"]).len()), (0, 0));
        let kept = scratch.list("disk");
        assert_eq!(kept.is_empty(), keep.is_empty(), "{kept:?}");
        if cut > 0 {
            skip(&format!("{cut} patterns had no time for two whole repeats"));
            continue;
        }
        assert!(of_types.iter().all(|v| !v["ratio"]["interval"].is_null()), "{of_types:?}");
        assert!(run.stdout.contains("In brackets: 95 % intervals"), "{run}");
    }
}

/// Files that hold a few patterns after their repeats are what every byte is compared with: two partitions, an odd one, the shared pointer,
/// segments.
#[test]
fn every_byte_is_compared_where_only_long_calls_are_written_again() {
    let scratch = Scratch::new();
    let args = ["-T", "10s", "--partitions", "2,3", "--types", "1,3", "--backend", "mpiio,uring", "--quiet"];
    // 8 MiB a call, and space for one or two of them.
    let space = ["--memory-per-process", "1G", "--space", "240M", "--verify", "full"];
    Launch::new(3).args(args).args(space).into(&scratch).run().expect(0);
    let result = document(&scratch);
    let again =
        |access: &str| items(&result["repetitions"]).iter().filter(|r| r["measurement"]["access"] == access).count();
    let counts = ["write", "rewrite", "read"].map(again);
    println!("repeats {counts:?}, {} s", result["ending"]["real_seconds"]);
    for t in items(&result["type_repetitions"]) {
        let full = &t["measurement"]["full_verification"];
        assert!(number(&full["words_checked"]) > 0 && full["words_wrong"] == 0, "{t}");
    }
    assert_eq!(words_wrong(&result), 0);
    assert_eq!(scratch.list("disk"), [] as [&str; 0], "files are left");
    if counts.contains(&0) {
        skip(&format!("not all was measured again in the time that there was: {counts:?}"));
    }
}
