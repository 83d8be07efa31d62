//! The time that is left measures again: the bound of T holds, values are those of the first pass, a stop keeps them.

use std::collections::BTreeMap;
use std::fs;
use std::process::Command;

use serde_json::Value;

use crate::patient;
use crate::support::{document, items, journal, number, signal, skip, Launch, Scratch, PROGRAM};

/// Small data, so that most of T is left.
pub const SMALL: [&str; 9] =
    ["--memory-per-process", "64M", "--space", "150M", "--repeat", "auto", "--quiet", "--direct", "off"];

pub fn words_wrong(result: &Value) -> u64 {
    let of = |record: &Value| {
        let sample = record["sample"]["words_wrong"].as_u64().unwrap_or(0);
        number(&record["verification"]["words_wrong"]) + sample
    };
    let repetitions = items(&result["repetitions"]).iter().map(|r| of(&r["measurement"])).sum::<u64>();
    items(&result["patterns"]).iter().map(of).sum::<u64>() + repetitions
}

/// Every byte is compared, before and after each access, of repeats too: what is read is what was written last.
#[test]
fn every_byte_of_a_repetition_is_compared() {
    let scratch = Scratch::new();
    let options = ["-T", "15s", "--backend", "posix", "--verify", "full", "--types", "2"];
    Launch::new(2).args(SMALL).args(options).into(&scratch).run().expect(0);
    let result = document(&scratch);
    let repetitions = items(&result["repetitions"]);
    let of = |access: &str| repetitions.iter().filter(|r| r["measurement"]["access"] == access).collect::<Vec<_>>();
    assert!(!of("rewrite").is_empty() && !of("read").is_empty());
    let checked = of("read").iter().map(|r| number(&r["measurement"]["verification"]["words_checked"])).sum::<u64>();
    assert!(checked > 0);
    for t in items(&result["type_repetitions"]) {
        let full = &t["measurement"]["full_verification"];
        assert!(number(&full["words_checked"]) > 0 && full["words_wrong"] == 0, "{t}");
    }
    assert_eq!(words_wrong(&result), 0);
}

#[test]
fn several_partitions_share_the_time() {
    let scratch = Scratch::new();
    let options = ["-T", "10s", "--backend", "posix", "--partitions", "1,2", "--types", "0,2"];
    Launch::new(2).args(SMALL).args(options).into(&scratch).run().expect(0);
    let result = document(&scratch);
    for ranks in [1, 2] {
        assert!(items(&result["repetitions"]).iter().any(|r| r["measurement"]["ranks"] == ranks), "{ranks}");
    }
    assert_eq!(words_wrong(&result), 0);
}

#[test]
fn without_repetitions_the_run_ends_after_the_first_measurement() {
    let scratch = Scratch::new();
    let options =
        ["-T", "10s", "--backend", "posix", "--repeat", "off", "--memory-per-process", "64M", "--space", "150M"];
    Launch::new(2).args(options).args(["--types", "2", "--quiet"]).into(&scratch).run().expect(0);
    let result = document(&scratch);
    assert!(items(&result["repetitions"]).is_empty() && items(&result["derived"]["intervals"]["types"]).is_empty());
    assert_eq!(result["config"]["repeat"], "off");
}

/// `--until` ends early where it can be met, not before all types were measured three times (where the time does for that), and says that
/// it was not where it cannot.
#[test]
fn until_ends_or_says_that_it_did_not() {
    for (percent, can_be_met, time) in [("100%", true, 30.0), ("0.001%", false, 20.0)] {
        let scratch = Scratch::new();
        let seconds = format!("{time}s");
        let options = ["-T", &seconds, "--backend", "posix", "--until", percent];
        let run = Launch::new(2).args(SMALL).args(options).into(&scratch).run();
        run.expect(0);
        let result = document(&scratch);
        let warned = items(&result["derived"]["warnings"]).iter().any(|w| w["kind"] == "not_narrow");
        assert!(!items(&result["derived"]["intervals"]["values"]).is_empty(), "{run}");
        assert!(can_be_met || warned, "{percent}: {run}");
        let real = result["ending"]["real_seconds"].as_f64().unwrap();
        // How often each type was measured again with each access method.
        let mut times = BTreeMap::new();
        for t in items(&result["type_repetitions"]).iter().map(|t| &t["measurement"]) {
            *times.entry(format!("{} {}", t["access"], t["pattern_type"])).or_insert(0_u64) += 1;
        }
        let (least, most) = (*times.values().min().unwrap(), *times.values().max().unwrap());
        println!("--until {percent}: {least} to {most} repeats, {real:.1} s, warned: {warned}");
        if items(&result["repetitions"]).iter().any(|r| r["share"] != 1.0) {
            skip(&format!("this storage is too slow for whole repeats in {time} s"));
        } else if warned {
            // The time was used: reads of such small data take a moment.
            assert!(most > 2 && real > time - 5.0, "{real} s, {times:?}");
        } else {
            assert!(most == 2 || real < time - 2.0, "ran on, {real} s, {times:?}");
            assert!(real > time - 5.0 || (least >= 2 && times.len() == 15), "ended too early, {real} s, {times:?}");
        }
    }
    let run = Launch::new(1).args(["-T", "2s", "--until", "5%", "--backend", "posix"]).run();
    run.expect(2).says(&["--until 5% has no effect", "--repeat auto"]);
}

/// Killed while it repeats: the journal is a result whose first pass is whole.
#[test]
fn a_kill_during_repetitions_keeps_the_first_measurement() {
    for kill in ["KILL", "INT"] {
        let scratch = Scratch::new();
        let options = ["-T", "40s", "--backend", "posix", "--types", "2,3"];
        let mut running = Launch::new(2).args(SMALL).args(options).into(&scratch).start();
        let out = scratch.join("out.jsonl");
        running.until("a repeat", || fs::read_to_string(&out).is_ok_and(|t| t.contains(r#""record":"repetition""#)));
        let ranks = running.ranks();
        let target = if kill == "KILL" { ranks[1] } else { running.pid() };
        signal(target, kill);
        let run = running.wait();
        assert!(run.seconds < 35.0, "{run}");
        // Types 2 and 3: eight and nine patterns, three access methods.
        assert_eq!(journal(&scratch, "pattern").len(), 3 * 17, "{run}");
        let json = Command::new(PROGRAM).args(["report", "--format", "json"]).arg(&out).output().unwrap();
        let result: Value = serde_json::from_slice(&json.stdout).unwrap();
        let own = items(&result["derived"]["validity"]).iter().find(|v| v["release"] == "1").unwrap();
        let complete = items(&own["criteria"]).iter().find(|c| c["text"].as_str().unwrap().starts_with("run complete"));
        assert_eq!(complete.unwrap()["met"], true, "{own}");
        assert!(items(&result["derived"]["types"]).iter().all(|t| t["complete"] == true));
    }
}

/// A repeat is the same measurement as the first pass: with rounds each of them has its sync, which counts. Here a sync takes 30 ms.
#[test]
fn a_repetition_has_the_rounds_of_the_first_measurement() {
    let slow = patient::library_of("slow_sync", include_str!("../planted/slow_sync.c"));
    let scratch = Scratch::new();
    let preload = format!("{} {}", patient::library().display(), slow.display());
    let launch = Launch::new(2).env("LD_PRELOAD", preload).args(&SMALL[..4]).args(["--quiet", "--repeat", "auto"]);
    let options = ["-T", "15s", "--rounds", "4", "--backend", "posix", "--types", "2"];
    launch.args(options).into(&scratch).run().expect(0);
    let result = document(&scratch);
    let sync_seconds = |p: &Value| p["intervals"]["sync_seconds"].as_f64().unwrap();
    let mut compared = 0;
    for repetition in items(&result["repetitions"]).iter().map(|r| &r["measurement"]) {
        let is_it = |p: &&Value| p["access"] == repetition["access"] && p["pattern"] == repetition["pattern"];
        let first = items(&result["patterns"]).iter().find(is_it).unwrap();
        let whole = first["calls"] == repetition["calls"] && repetition["access"] != "read";
        let rounds = items(&first["rounds"]).len();
        if whole && rounds > 1 {
            assert!(sync_seconds(first) > 0.029 * rounds as f64, "{rounds} rounds: {first}");
            assert!(sync_seconds(repetition) > 0.029 * rounds as f64, "{rounds} rounds: {repetition}");
            compared += 1;
        }
    }
    assert!(compared > 0, "no pattern was repeated in several rounds");
}
