//! The storage sheet in the results of all benchmarks of files, and the list of results of a system.

use std::fs;
use std::process::Command;

use serde_json::Value;

use crate::replay;
use crate::support::{items, read_json, Launch, Scratch, PROGRAM, SHORT};

/// A run of `words` on two ranks with these parameters of the storage; its result.
fn run(scratch: &Scratch, name: &str, words: &[&str], parameters: &[&str]) -> Value {
    fs::create_dir_all(scratch.join("disk")).unwrap();
    let given = parameters.iter().flat_map(|parameter| ["--storage", parameter]);
    let launch = Launch::new(2).args(words).args(given).arg("--quiet");
    launch.arg("--path").arg(scratch.join("disk")).arg("--out").arg(scratch.join(name)).run().expect(0);
    read_json(&scratch.join(&format!("{name}.json")))
}

fn io(scratch: &Scratch, name: &str, parameters: &[&str]) -> Value {
    let words = [&SHORT[..], &["--types", "0,2", "--backend", "mpiio", "--space", "100M", "--repeat", "off"]].concat();
    run(scratch, name, &words, parameters)
}

/// Value and source of a parameter.
fn parameter<'a>(storage: &'a Value, key: &str) -> (&'a str, &'a str) {
    let own = items(&storage["sheet"]).iter().find(|p| p["key"] == key).unwrap_or_else(|| panic!("{key}: {storage}"));
    (own["value"].as_str().unwrap_or("unknown"), own["source"].as_str().unwrap())
}

fn shown(args: &[&str]) -> String {
    let output = Command::new(PROGRAM).args(args).output().unwrap();
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn every_benchmark_of_files_states_its_storage() {
    let scratch = Scratch::new();
    fs::write(scratch.join("app.csv"), replay::program()).unwrap();
    let app = scratch.join("app.csv").display().to_string();
    let given = ["stripes=4", "servers=2 OSS", "redundancy=RAID 6"];
    let imb = ["imb", "P_Write_Indv", "--npmin", "2", "--iter", "2,1,2", "--msglog", "12:12"];
    let io = io(&scratch, "io", &given);
    let imb = run(&scratch, "imb", &imb, &given);
    let replay = run(&scratch, "replay", &["replay", &app, "--backend", "posix"], &given);
    for storage in [&io["manifest"]["storage"], &imb["setup"]["storage"], &replay["setup"]["storage"]] {
        assert_eq!(
            items(&storage["sheet"]).iter().take(6).map(|p| p["key"].as_str().unwrap()).collect::<Vec<_>>(),
            ["block", "stripe", "stripes", "servers", "cache", "redundancy"]
        );
        assert!(parameter(storage, "stripes").0 == "4" && parameter(storage, "stripes").1.starts_with("given"));
        assert_eq!((parameter(storage, "servers").0, parameter(storage, "redundancy").0), ("2 OSS", "RAID 6"));
        assert_eq!(parameter(storage, "block").1, "statvfs");
    }
    assert_eq!(fs::read_dir(scratch.join("disk")).unwrap().count(), 0, "the queried files are removed");
    for name in ["io", "imb", "replay"] {
        let path = scratch.join(&format!("{name}.json")).display().to_string();
        let (screen, full) = (shown(&["report", &path]), shown(&["report", &path, "--full"]));
        assert!(screen.contains("stripes 4") && screen.contains("servers 2 OSS"), "{screen}");
        assert!(full.contains("redundancy    RAID 6 (given"), "{full}");
        let page = shown(&["report", &path, "--html", "-"]);
        assert!(page.contains("servers 2 OSS"), "{name}");
        let csv = fs::read_to_string(scratch.join(&format!("{name}.csv"))).unwrap();
        assert!(
            csv.lines().next().unwrap().contains(",storage,") && csv.contains("stripes=4; servers=2 OSS;"),
            "{csv}"
        );
    }
    let sum = fs::read_to_string(scratch.join("io.sum")).unwrap();
    assert!(sum.contains("\n# Storage, stripe count: 4 (given"), "{sum}");
}

#[test]
fn another_stripe_count_is_named_and_the_best_run_too() {
    let scratch = Scratch::new();
    let first = io(&scratch, "a", &["stripes=4", "cache=1K"]);
    io(&scratch, "b", &["stripes=8", "cache=100G"]);
    let path = |name: &str| scratch.join(name).display().to_string();
    let compared = shown(&["compare", &path("a.json"), &path("b.json")]);
    assert!(compared.contains("storage: stripe count"), "{compared}");
    let met = |name: &str| {
        shown(&["report", &path(name)]).lines().find(|line| line.contains("20 x cache")).map(str::to_owned)
    };
    assert!(met("a.json").unwrap().contains("met by write, rewrite and read"), "{first}");
    let unmet = met("b.json").unwrap();
    assert!(unmet.contains("not met by write, rewrite and read"), "{unmet}");
    // Types 0 and 2 alone have no value: what was tried is listed all the same.
    let files = [path("a.json"), path("a.sum"), path("b.jsonl")];
    let list = [&["report", "--system"], &files.each_ref().map(String::as_str)[..]].concat();
    let text = shown(&list);
    assert!(text.contains("none was measured") && text.contains("b.jsonl"), "{text}");
    let csv = shown(&[&list[..], &["--format", "csv"]].concat());
    assert_eq!(csv.lines().count(), 1 + 3 + 1 + 3, "{csv}");
    let json: Value = serde_json::from_str(&shown(&[&list[..], &["--format", "json"]].concat())).unwrap();
    assert_eq!(items(&json["systems"]).len(), 1, "the summary is of the same system: {json}");
    let page = shown(&[&list[..], &["--html", "-"]].concat());
    assert!(page.contains("a.sum") && page.starts_with("<!doctype html>"), "{page}");
    // The rates of a run for the plan of another.
    let plan =
        shown(&["plan", "-n", "2", "--rate", &path("a.json"), "--types", "0,2", "--storage", "cache=1G", "--json"]);
    let plan: Value = serde_json::from_str(&plan).unwrap();
    let all = items(&plan["cache_yardsticks"]);
    assert!(
        all.len() == 3 && all.iter().all(|f| f["required_bytes"] == 20_u64 << 30 && f["is_given"] == true),
        "{plan}"
    );
}

#[test]
fn mistakes_in_parameters_are_refused() {
    for (words, parts) in [
        (["io", "--storage", "strips=4"], ["--storage", "did you mean stripes?"]),
        (["imb", "--storage", "cache=much"], ["--storage", "'much' is not a size"]),
        (["plan", "--storage", "stripes"], ["--storage", "stripes=4"]),
    ] {
        let output = Command::new(PROGRAM).args(words).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(parts.iter().all(|part| said.contains(part)), "{said}");
    }
}
