//! What a run tells of itself: memory, values, outputs.

use std::fs;
use std::process::{Command, Output};

use serde_json::Value;

use crate::support::{document, items, number, read_json, Launch, Scratch, PROGRAM, SHORT};

fn program(args: &[&str]) -> Output {
    Command::new(PROGRAM).args(args).output().unwrap()
}

/// One run, seen through everything that is made of it.
#[test]
fn one_result_in_all_formats() {
    let scratch = Scratch::new();
    let run = Launch::new(2).args(SHORT).args(["--space", "300M", "--full"]).into(&scratch).run();
    run.expect(0);
    let result = document(&scratch);
    check_memory(&result);
    check_values(&result, &run.stdout);
    check_sum(&fs::read_to_string(scratch.join("out.sum")).unwrap(), &result);
    let path = |name: &str| scratch.join(name).to_string_lossy().into_owned();
    for source in ["out.json", "out.jsonl"] {
        for (format, same) in [("csv", "out.csv"), ("sum", "out.sum"), ("json", "out.json")] {
            let shown = program(&["report", "--format", format, &path(source)]);
            assert!(shown.status.success(), "{}", String::from_utf8_lossy(&shown.stderr));
            assert!(shown.stdout == fs::read(scratch.join(same)).unwrap(), "{source} as {format} is not {same}");
        }
        let table = program(&["report", "--full", &path(source)]);
        assert_eq!(String::from_utf8_lossy(&table.stdout), run.stdout, "table of {source}");
    }
    assert_eq!(program(&["report", &path("out.csv")]).status.code(), Some(2), "a table is no result");
    // The summary is one in itself, with less in it.
    let summary = program(&["report", &path("out.sum")]);
    assert!(summary.status.success(), "{}", String::from_utf8_lossy(&summary.stderr));
    assert!(String::from_utf8_lossy(&summary.stdout).contains("b_eff_io (release 2.1) = "));
    let schema = read_json(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/results-schema.json").as_ref());
    let errors: Vec<_> =
        jsonschema::validator_for(&schema).unwrap().iter_errors(&result).map(|e| e.to_string()).collect();
    assert_eq!(errors, [] as [String; 0]);
}

fn check_memory(result: &Value) {
    let (high, planned) =
        (&result["ending"]["rank_memory_high_water_bytes"], &result["ending"]["rank_memory_planned_bytes"]);
    let (high, planned) = (number(high), number(planned));
    assert!(high <= 2 * planned && planned <= 2 * high, "VmHWM {high}, planned {planned}");
}

fn check_values(result: &Value, stdout: &str) {
    for name in ["release 0.5 (", "release 1 (", "release 2.1 ("] {
        assert!(stdout.contains(name), "{name}");
    }
    let values = &items(&result["derived"]["systems"])[0]["values"];
    for name in ["release_0_5", "release_1", "release_2_1"] {
        assert!(values[name].as_f64().is_some_and(|v| v > 0.0), "{values}");
    }
}

/// Columns of release 2.1: ranks, `PEs`, number of the chunk, chunk, access, one bandwidth for each type.
fn check_sum(text: &str, result: &Value) {
    for access in ["write", "rewrite", "read"] {
        let rows: Vec<Vec<&str>> = text
            .lines()
            .map(|line| line.split_whitespace().collect::<Vec<_>>())
            .filter(|words| words.len() == 10 && words[1] == "PEs" && words[4] == access)
            .collect();
        let chunks: Vec<u64> = rows.iter().map(|row| row[3].parse().unwrap()).collect();
        assert_eq!(chunks, [1024, 1032, 32768, 32776, 1_048_576, 1_048_584, 2_097_152], "{access}");
        for (n, row) in rows.iter().enumerate() {
            assert_eq!((row[0], row[2]), ("2", (n + 1).to_string().as_str()));
            assert!(row[5..].iter().all(|cell| cell.parse::<f64>().is_ok_and(|v| v >= 0.0)), "{row:?}");
        }
    }
    let line = text.lines().find(|l| l.starts_with(" b_eff_io =")).expect("the line with the value");
    let value: f64 = line.split_whitespace().nth(2).unwrap().parse().unwrap();
    let exact = items(&result["derived"]["systems"])[0]["values"]["release_2_1"].as_f64().unwrap();
    assert!((value - exact).abs() <= 0.0011, "{value} {exact}");
}
