//! What a run tells while it goes on.

use std::fs;
use std::process::Command;

use serde_json::Value;

use crate::support::{is_command, items, launcher, skip, Launch, Run, Scratch, PROGRAM, SHORT};

fn io(scratch: &Scratch, more: &[&str]) -> Run {
    Launch::new(2)
        .args(SHORT)
        .args(["--types", "0,2", "--backend", "posix,mmap", "--space", "200M"])
        .args(more)
        .into(scratch)
        .run()
}

#[test]
fn a_log_gets_lines_with_rates_and_an_end() {
    let scratch = Scratch::new();
    // A stage has a line if it takes a second.
    let args = ["--time", "12s", "--types", "0,2", "--backend", "posix,mmap", "--space", "200M"];
    let run = Launch::new(2).args(args).into(&scratch).run();
    run.expect(0).says(&["b_eff_io on 2 ranks, posix, mmap: about", "until about"]);
    let lines: Vec<&str> = run.stderr.lines().filter(|line| line.contains(" %  ")).collect();
    assert!(lines.iter().any(|l| l.contains("write, type 0 (scatter), 2 ranks: posix") && l.contains("mmap")), "{run}");
    for line in &lines {
        assert!(line.contains("MB/s, took ") && line.contains(" left, until ") && line.ends_with(" UTC"), "{line}");
    }
    let shares: Vec<u32> = lines
        .iter()
        .map(|l| l.split('%').next().unwrap().rsplit(':').next().unwrap().trim().parse().unwrap())
        .collect();
    assert!(shares.windows(2).all(|two| two[0] <= two[1]) && shares.iter().all(|share| *share <= 100), "{shares:?}");
}

/// All that stderr has is for a program, but the files that were written.
#[test]
fn json_is_one_object_in_a_line() {
    let scratch = Scratch::new();
    let run = io(&scratch, &["--progress", "json"]);
    run.expect(0);
    let events: Vec<Value> = run
        .stderr
        .lines()
        .filter(|line| line.starts_with('{'))
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let of = |name: &str| events.iter().filter(|event| event["event"] == name).collect::<Vec<_>>();
    assert_eq!(
        (&events[0]["event"], &events[0]["benchmark"]),
        (&"begin".into(), &"b_eff_io on 2 ranks".into()),
        "{run}"
    );
    assert_eq!(events.last().unwrap()["event"], "end", "{run}");
    // Three accesses of two types.
    assert_eq!(of("stage").len(), 6, "{run}");
    for event in of("stage") {
        let who: Vec<&str> = items(&event["rates"]).iter().map(|rate| rate["who"].as_str().unwrap()).collect();
        assert_eq!(who, ["posix", "mmap"], "{event}");
    }
    assert!(of("part").len() > 12 && !run.stderr.contains("about"), "{run}");
    let keys = |event: &Value| event.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    assert!(events.iter().all(|event| keys(event) == keys(&events[0])), "{run}");
}

#[test]
fn quiet_is_quiet() {
    for how in [&["--quiet"][..], &["--progress", "off"]] {
        let scratch = Scratch::new();
        let run = io(&scratch, how);
        run.expect(0);
        assert!(run.stderr.lines().all(|line| line.contains("beff-raw: wrote ")), "{run}");
    }
}

#[test]
fn metrics_are_there_in_every_benchmark() {
    let commands: [&[&str]; 3] = [
        &["io", "--time", "2s", "--types", "2", "--space", "200M"],
        &["comm", "--quick", "--time", "2s", "--families", "ping-pong"],
        &["imb", "P_Write_Priv", "--msglog", "12:12"],
    ];
    for command in commands {
        let scratch = Scratch::new();
        let file = scratch.join("run.prom");
        let launch = Launch::new(2).args(command).arg("--metrics").arg(&file);
        let run = if command[0] == "comm" { launch.run() } else { launch.into(&scratch).run() };
        run.expect(0);
        let text = fs::read_to_string(&file).unwrap();
        assert!(text.ends_with("# EOF\n") && text.contains("\nbeff_raw_finished 1\n"), "{command:?}: {text}");
        let moved = text.lines().find_map(|line| line.strip_prefix("beff_raw_moved_bytes_total ")).unwrap();
        assert!(moved.parse::<u64>().unwrap() > 0, "{command:?}: {text}");
    }
}

#[test]
fn what_cannot_be_watched_as_asked_is_not_begun() {
    let scratch = Scratch::new();
    io(&scratch, &["--progress", "bar"]).expect(2).says(&["stderr is no terminal", "--progress lines"]);
    io(&scratch, &["--metrics", "/nowhere/run.prom"]).expect(2).says(&["--metrics /nowhere/run.prom", "directory"]);
    io(&scratch, &["--quiet", "--progress", "json"]).expect(2).says(&["--quiet", "--progress"]);
    assert_eq!(scratch.list("disk"), [] as [&str; 0]);
    assert!(!scratch.join("out.jsonl").exists());
}

/// Nothing of it is counted as allocated in the clock, whatever is drawn meanwhile.
#[test]
fn a_terminal_gets_a_bar_that_moves() {
    if !is_command("script") {
        return skip("no `script` (util-linux) to give the run a terminal");
    }
    let scratch = Scratch::new();
    let out = scratch.join("bar");
    fs::create_dir(scratch.join("disk")).unwrap();
    let line = format!(
        "{} -n 1 {PROGRAM} --time 4s --types 2 --space 200M --backend posix --verify ring --path {} --out {}",
        launcher().words.join(" "),
        scratch.join("disk").display(),
        out.display()
    );
    let mut terminal = Command::new("script");
    terminal.args(["-qfec", &line, "/dev/null"]);
    let run = Launch::of(terminal).run();
    run.expect(0);
    let text = &run.stdout;
    let shares = text.split('%').filter_map(|part| part.rsplit([' ', '\u{1b}', '\r']).next()?.parse::<u32>().ok());
    let mut shares: Vec<u32> = shares.collect();
    shares.dedup();
    assert!(shares.len() > 10, "{shares:?}\n{text}");
    assert!(text.contains("MB/s, about ") && text.contains(" left: posix, 1 rank, "), "{text}");
    let result: Value = serde_json::from_slice(&fs::read(out.with_extension("json")).unwrap()).unwrap();
    for pattern in items(&result["patterns"]) {
        assert_eq!(pattern["allocations_in_clock"], 0, "{pattern}");
    }
}
