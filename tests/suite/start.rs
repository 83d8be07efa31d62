//! Before the measurement: names of every kind, and steps that fail on one rank alone. Nobody is left waiting, nothing is left.

use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStringExt;
use std::process::Command;
use std::time::Duration;

use crate::replay;
use crate::support::{read_json, Launch, Run, Scratch, PROGRAM};

/// A few seconds of each benchmark that measures.
const COMMANDS: [(&str, &str); 5] = [
    ("io", "io -T 1s --memory-per-process 64M --space 120M --backend posix --full"),
    ("comm", "comm --quick --time 2s --families ping-pong --memory-per-process 16M --full"),
    ("imb", "imb S_Write_Indv,P_Read_Expl --npmin 2 --iter 3,1,2 --msglog 12:12 --full"),
    ("replay", "replay --backend mpiio --detail request"),
    ("tune", "tune --budget 5s --backend posix --types 2 --chunks 32K --memory-per-process 64M --full"),
];
/// So long a launch takes at most; one that waits for a rank that has left never ends.
const LIMIT: Duration = Duration::from_secs(120);

/// A name that is no text.
fn odd(name: &str) -> OsString {
    OsString::from_vec([name.as_bytes(), b"-\xff\xfe"].concat())
}

/// The command on 2 ranks, with a profile where it needs one; files go to `disk`, results to `out`.
fn launch(scratch: &Scratch, (command, words): (&str, &str), disk: &OsString, out: &OsString) -> Launch {
    let disk = scratch.path().join(disk);
    fs::create_dir_all(&disk).unwrap();
    let mut launch = Launch::new(2).args(words.split(' ')).arg("--out").arg(scratch.path().join(out)).within(LIMIT);
    if command == "replay" {
        fs::write(scratch.path().join(odd("app")), replay::program()).unwrap();
        launch = launch.arg(scratch.path().join(odd("app")));
    }
    if command == "comm" {
        launch
    } else {
        launch.arg("--path").arg(disk)
    }
}

/// Everything as it is with other names: files, results, reports.
fn any_name_will_do(command: (&str, &str)) {
    let scratch = Scratch::new();
    let run = launch(&scratch, command, &odd("disk"), &odd("out")).run();
    run.expect(0);
    let mut document = odd("out");
    document.push(".json");
    let document = scratch.path().join(document);
    let result = read_json(&document);
    let escaped = |value: &serde_json::Value| value.as_str().is_some_and(|text| text.ends_with("-\0ff\0fe"));
    assert!(escaped(&result["config"]["out"]), "{}", result["config"]);
    let config = if command.0 == "tune" { &result["config"]["trials"] } else { &result["config"] };
    assert!(command.0 == "comm" || escaped(&config["path"]), "{config}");
    assert!(result.to_string().contains(r"-\\xff\\xfe'"), "the command line: {}", result["manifest"]);
    assert_eq!(fs::read_dir(scratch.path().join(odd("disk"))).unwrap().count(), 0, "{run}");
    let report = Command::new(PROGRAM).args(["report", "--full"]).arg(&document).output().unwrap();
    assert!(report.status.success(), "{}", String::from_utf8_lossy(&report.stderr));
    assert_eq!(String::from_utf8_lossy(&report.stdout), run.stdout);
    // And again: what is there is not overwritten, and all ranks hear of it.
    let again = launch(&scratch, command, &odd("disk"), &odd("out")).run();
    again.expect(2).says(&["exists", "--out"]);
}

#[test]
fn names_that_are_no_text_io() {
    any_name_will_do(COMMANDS[0]);
}

#[test]
fn names_that_are_no_text_comm() {
    any_name_will_do(COMMANDS[1]);
}

#[test]
fn names_that_are_no_text_imb() {
    any_name_will_do(COMMANDS[2]);
}

#[test]
fn names_that_are_no_text_replay() {
    any_name_will_do(COMMANDS[3]);
}

#[test]
fn names_that_are_no_text_tune() {
    any_name_will_do(COMMANDS[4]);
}

#[test]
fn a_name_that_is_no_text_among_other_arguments_is_refused() {
    let missing = odd("missing");
    for (words, parts) in [
        ("io --hints", &["cannot be read"][..]),
        ("imb --hints", &["cannot be read"]),
        ("imb --msglen", &["cannot be read"]),
        ("replay", &["missing"]),
        ("io --path", &["missing"]),
        ("io --run-dir", &["--run-dir", "UTF-8"]),
        ("imb --run-dir", &["--run-dir", "UTF-8"]),
        ("io --seed", &["--seed"]),
        ("comm", &["unexpected"]),
        ("imb", &["missing"]),
    ] {
        let run = Launch::new(2).args(words.split(' ')).arg(&missing).within(LIMIT).run();
        run.expect(2).says(parts);
        assert_eq!(run.stdout, "", "{words}");
        assert!(!run.stderr.contains("panicked"), "{words}: {run}");
    }
}

/// The steps that this command comes to.
fn steps(command: (&str, &str)) -> Vec<String> {
    let scratch = Scratch::new();
    let run = launch(&scratch, command, &"disk".into(), &"out".into()).env("BEFF_RAW_FAIL_START", "list").run();
    run.expect(0);
    let steps = run.stderr.lines().filter_map(|line| line.split_once("step: ")).map(|(_, step)| step.to_owned());
    steps.collect()
}

/// Each of these steps fails on one rank alone, another one each time.
fn fails_together(command: (&str, &str), steps: &[String]) {
    for (step, rank) in steps.iter().zip((0..2).cycle()) {
        let scratch = Scratch::new();
        let asked = format!("{step}@{rank}");
        let run = launch(&scratch, command, &"disk".into(), &"out".into()).env("BEFF_RAW_FAIL_START", &asked).run();
        check_end(&run, &asked, rank);
        assert_eq!(scratch.list("disk"), [] as [&str; 0], "{asked}: files are left; {run}");
        let left = scratch.list("").into_iter().filter(|name| name.starts_with("out")).collect::<Vec<_>>();
        // By then there is a result, which has the error.
        let has_result = step == "files of calls";
        assert_eq!(has_result, !left.is_empty(), "{asked}: {left:?}; {run}");
    }
}

fn check_end(run: &Run, asked: &str, rank: u64) {
    assert_ne!(run.code(), 0, "{asked}: {run}");
    let said = format!("injected fault on rank {rank} (BEFF_RAW_FAIL_START={asked})");
    let all = format!("{} {}", run.stderr, run.stdout).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(all.contains(&said), "{asked}: {run}");
    assert!(run.stderr.matches("injected fault on rank").count() <= 1, "said more than once: {run}");
}

#[track_caller]
fn assert_known(steps: &[String], known: &[&str]) {
    for step in ["configuration", "survey", "plan", "signals", "machine", "output files"].iter().chain(known) {
        assert!(steps.iter().any(|found| found == step), "no step '{step}' in {steps:?}");
    }
}

/// The steps of all benchmarks are one piece of code, so each is tested with the first benchmark that has it.
#[test]
fn every_step_fails_on_all_ranks_or_none() {
    let known: [&[&str]; 4] = [
        &["storage", "run directory", "sight of the run directory", "memory"],
        &["memory"],
        &["storage", "run directory", "sight of the run directory", "memory"],
        &["storage", "profile", "calls", "sums", "run directory", "sight of the run directory", "files of calls"],
    ];
    let mut tested: Vec<String> = Vec::new();
    for (command, known) in COMMANDS.into_iter().zip(known) {
        let mut steps = steps(command);
        assert_known(&steps, known);
        steps.retain(|step| !tested.contains(step));
        fails_together(command, &steps);
        tested.append(&mut steps);
    }
}
