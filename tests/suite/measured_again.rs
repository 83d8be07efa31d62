//! `--repeat` of `comm` and `imb`: what is measured again behind the whole measurement, and what it leaves alone.

use std::fs;
use std::process::Command;

use serde_json::Value;

use crate::imb;
use crate::support::{document, items, journal, number, read_json, signal, Launch, Scratch, PROGRAM};

const SHORT: [&str; 8] =
    ["comm", "--quick", "--full", "--memory-per-process", "16M", "--families", "ping-pong,ring", "--time"];
/// The same of one pattern, which leaves time on a busy machine too.
const SHORTEST: [&str; 8] =
    ["comm", "--quick", "--full", "--memory-per-process", "16M", "--families", "ping-pong", "--time"];

fn report(path: &std::path::Path, words: &[&str]) -> String {
    let output = Command::new(PROGRAM).arg("report").arg(path).args(words).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// Repetition numbers of a record of a pattern, each once.
fn repetitions(record: &Value) -> Vec<u64> {
    let loops = items(&record["sizes"]).iter().flat_map(|size| items(&size["loops"]));
    let mut all: Vec<u64> = loops.map(|one| number(&one["repetition"])).collect();
    all.sort_unstable();
    all.dedup();
    all
}

#[test]
fn patterns_are_repeated_behind_the_definition_and_leave_it_alone() {
    for (ranks, words, time, repeat) in
        [(2, SHORT, "40s", "2"), (3, SHORTEST, "6s", "auto"), (2, SHORTEST, "6s", "off")]
    {
        let scratch = Scratch::new();
        let run =
            Launch::new(ranks).args(words).args([time, "--repeat", repeat, "--out"]).arg(scratch.join("out")).run();
        run.expect(0);
        let result = document(&scratch);
        assert_eq!(result["config"]["repeat"], repeat);
        let patterns = items(&result["patterns"]);
        assert!(patterns.iter().flat_map(repetitions).all(|number| number < 3), "{run}");
        let lines = journal(&scratch, "repetition");
        let records = items(&result["repetitions"]);
        assert_eq!(lines.len(), records.iter().map(|p| repetitions(p).len()).sum::<usize>(), "a line for each repeat");
        assert!(records.iter().flat_map(repetitions).all(|number| number >= 3), "{run}");
        assert_eq!(journal(&scratch, "definition").len(), 1);
        for again in records {
            assert_eq!((number(&again["bytes_wrong"]), number(&again["allocations_in_clock"])), (0, 0), "{run}");
            let first =
                patterns.iter().find(|p| p["pattern"] == again["pattern"]).expect("a pattern of the definition");
            // Two rounds at most where two were asked for.
            assert!(repeat != "2" || repetitions(again).len() <= 2, "{run}");
            assert_eq!(first["messages"], again["messages"]);
        }
        assert_eq!(records.is_empty(), repeat == "off", "there was time for some; {run}");
        // The best at a size is that of the first three, whatever came later.
        let derived = items(&result["derived"]["curves"]);
        for (curve, record) in derived.iter().zip(patterns) {
            for (point, size) in items(&curve["points"]).iter().zip(items(&record["sizes"])) {
                let seconds = |one: &Value| one["seconds"].as_f64().unwrap() / number(&one["iterations"]) as f64;
                let best = items(&size["loops"]).iter().map(seconds).fold(f64::INFINITY, f64::min);
                assert!((point["seconds_per_iteration"].as_f64().unwrap() / best - 1.0).abs() < 1e-9, "{point}");
            }
            let known = number(&curve["repeated"]["repetitions"]);
            let again = records.iter().find(|p| p["pattern"] == curve["pattern"]).map_or(0, |p| repetitions(p).len());
            assert!(known >= 1 && known <= 3 + again as u64, "{}: {known}", curve["pattern"]);
            assert_eq!(curve["repeated"]["interval_bytes_per_second"].is_null(), known < 3, "{curve}");
        }
        assert_eq!(report(&scratch.join("out.jsonl"), &["--full"]), run.stdout);
    }
}

/// The definition is whole: what ends the repeats takes nothing from it.
#[test]
fn a_kill_during_repetitions_leaves_the_definition_complete() {
    let scratch = Scratch::new();
    let mut running = Launch::new(2).args(SHORT).args(["120s", "--out"]).arg(scratch.join("out")).start();
    let out = scratch.join("out.jsonl");
    running.until("two repeats", || {
        fs::read_to_string(&out).is_ok_and(|text| text.matches(r#""record":"repetition""#).count() >= 2)
    });
    signal(running.ranks()[1], "KILL");
    let run = running.wait();
    assert_ne!(run.code(), 0, "{run}");
    let result: Value = serde_json::from_str(&report(&out, &["--format", "json"])).unwrap();
    let result = if result.is_array() { result[0].clone() } else { result };
    let criteria = items(&result["derived"]["criteria"]);
    let complete = criteria.iter().find(|c| c["text"].as_str().unwrap().starts_with("run complete")).unwrap();
    assert_eq!((complete["met"].as_bool(), items(&result["patterns"]).len()), (Some(true), 7), "{complete}");
    assert!(report(&out, &[]).contains("KILLED"));
}

#[test]
fn results_without_repetitions_are_read() {
    let scratch = Scratch::new();
    let run = Launch::new(2).args(SHORT).args(["2s", "--repeat", "off", "--out"]).arg(scratch.join("out")).run();
    run.expect(0);
    let mut old = read_json(&scratch.join("out.json"));
    for field in ["repetitions", "definition"] {
        old.as_object_mut().unwrap().remove(field);
    }
    for field in ["repeat", "until_share"] {
        old["config"].as_object_mut().unwrap().remove(field);
    }
    let path = scratch.join("old.json");
    fs::write(&path, serde_json::to_vec(&old).unwrap()).unwrap();
    assert_eq!(report(&path, &["--full"]), run.stdout);
}

#[test]
fn what_can_never_be_reached_is_refused() {
    let refused: [(&[&str], &str); 7] = [
        (&["comm", "--until", "5%", "--repeat", "off"], "--repeat off"),
        (&["comm", "--until", "5%", "--families", "ring"], "ring and random"),
        (&["comm", "--until", "narrow"], "e.g. 5%"),
        (&["comm", "--repeat", "0"], "auto, off, or a number of repetitions"),
        (&["imb", "--until", "5%"], "without --repeat"),
        (&["imb", "--repeat", "auto", "--iter-policy", "off"], "--repeat N"),
        (&["imb", "--repeat", "always"], "auto, off, or a number of repetitions"),
    ];
    for (words, part) in refused {
        let run = Launch::new(2).args(words).run();
        run.expect(2).says(&[part]);
    }
}

#[test]
fn rows_are_repeated_with_as_many_repetitions_and_have_an_interval() {
    let cases = [
        (2, "S_Write_Indv P_Read_Indv --repeat 4 --backend mpiio,posix,uring"),
        (3, "C_Write_Expl Open_Close --repeat 2 --keep-files"),
        (4, "P_Write_Shared P_IRead_Expl -multi 1 -npmin 2 --repeat 2 --file new"),
    ];
    for (ranks, words) in cases {
        let scratch = Scratch::new();
        let (run, result) = imb::run(ranks, &scratch, &format!("{words} --msglog 12:13 {}", imb::FEW));
        let times: u64 = number_behind(words, "--repeat");
        let rows = imb::rows(&result);
        let complete = rows.iter().filter(|row| imb::is_complete(row)).count() as u64;
        let records = items(&result["repetitions"]);
        assert_eq!(
            (records.len() as u64, journal(&scratch, "repetition").len()),
            (complete * times, records.len()),
            "{run}"
        );
        for again in records {
            let (row, measured) = (&rows[number(&again["row"]) as usize], &again["measurement"]);
            for field in
                ["backend", "benchmark", "ranks", "groups", "mode", "sample_bytes", "iterations", "moved_bytes"]
            {
                assert_eq!(row[field], measured[field], "{field}; {run}");
            }
            assert!(imb::is_complete(measured) && number(&measured["bytes_wrong"]) == 0, "{measured}");
            assert_eq!(row["bytes_checked"], measured["bytes_checked"], "{measured}");
        }
        for (row, value) in rows.iter().zip(items(&result["derived"]["rows"])) {
            let found = &value["repeated"];
            assert_eq!(found.is_null(), !imb::is_complete(row), "{found}");
            if imb::is_complete(row) {
                assert_eq!(number(&found["measurements"]), times + 1);
                let ends = items(&found["interval_seconds"]);
                let mean = found["mean_seconds"].as_f64().unwrap();
                assert!(ends[0].as_f64().unwrap() <= mean && mean <= ends[1].as_f64().unwrap(), "{found}");
            }
        }
        assert!(run.stdout.contains("Repetitions\n"), "{run}");
        assert_eq!(report(&scratch.join("out.jsonl"), &["--full"]), run.stdout);
        let csv = fs::read_to_string(scratch.join("out.csv")).unwrap();
        assert!(csv.lines().next().unwrap().contains("repeated_low_mb_per_second"), "{csv}");
    }
}

fn number_behind(words: &str, option: &str) -> u64 {
    let mut words = words.split_whitespace().skip_while(|word| *word != option);
    words.nth(1).and_then(|word| word.parse().ok()).expect("a number")
}

#[test]
fn a_row_ends_by_its_time_or_when_it_is_known() {
    let scratch = Scratch::new();
    let words = format!("S_Write_Indv S_Read_Indv --repeat auto --until 90% -T 2s --msglog 10:10 {}", imb::FEW);
    let (run, result) = imb::run(2, &scratch, &words);
    assert_eq!(result["config"]["until_share"], 0.9);
    for (place, row) in imb::rows(&result).iter().enumerate() {
        let own: Vec<&Value> =
            items(&result["repetitions"]).iter().filter(|again| number(&again["row"]) == place as u64).collect();
        let value = &items(&result["derived"]["rows"])[place]["repeated"];
        let all = own.iter().map(|again| &again["measurement"]).chain([row]);
        let spent: f64 = all.map(|record| record["real_seconds"].as_f64().unwrap()).sum();
        let known = own.len() >= 4 && value["half_width_share"].as_f64().is_some_and(|half_width| half_width <= 0.9);
        assert!(known || row["sample_bytes"] == 0 || spent > 1.0, "{spent} s in {} rounds; {run}", own.len());
    }
}

#[test]
fn a_kill_during_repetitions_leaves_the_rows() {
    let scratch = Scratch::new();
    let words = format!("S_Write_Indv --repeat 9999 --msglog 10:10 {}", imb::FEW);
    let mut running = imb::launch(2, &scratch, &words).start();
    let out = scratch.join("out.jsonl");
    running.until("three repeats", || {
        fs::read_to_string(&out).is_ok_and(|text| text.matches(r#""record":"repetition""#).count() >= 3)
    });
    signal(running.ranks()[0], "KILL");
    assert_ne!(running.wait().code(), 0);
    let text = report(&out, &["--full"]);
    let last = text.lines().last().unwrap_or_default();
    assert!(last.starts_with("IMB-IO = complete and verified") && last.contains("KILLED"), "{last}");
}
