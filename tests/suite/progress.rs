//! What a run tells while it goes on.

use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use serde_json::Value;

use crate::support::{is_command, items, launcher, signal, skip, Launch, Run, Scratch, PROGRAM, SHORT};

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

/// The value of the only sample of this name in what a file or an exporter says.
fn metric(text: &str, name: &str) -> f64 {
    let begin = format!("beff_raw_{name}{{");
    let samples: Vec<&str> = text.lines().filter(|line| line.starts_with(&begin)).collect();
    assert_eq!(samples.len(), 1, "{name}: {text}");
    samples[0].rsplit(' ').next().unwrap().parse().unwrap()
}

#[test]
fn metrics_of_an_interrupted_run_say_how_far_it_came() {
    let commands: [&[&str]; 2] = [
        &["io", "-T", "30s", "--memory-per-process", "64M", "--space", "200M", "--backend", "posix"],
        &["comm", "--time", "30s"],
    ];
    for command in commands {
        let scratch = Scratch::new();
        let file = scratch.join("run.prom");
        let is_comm = command[0] == "comm";
        let launch = if is_comm { Launch::new(2) } else { Launch::alone() };
        let launch = launch.args(command).args(["--progress", "json", "--metrics"]).arg(&file);
        let mut running = if is_comm { launch.start() } else { launch.into(&scratch).start() };
        let is_under_way = |text: String| metric(&text, "progress_ratio") > 0.02;
        running.until("a part", || fs::read_to_string(&file).is_ok_and(is_under_way));
        let to = if is_comm { running.ranks() } else { vec![running.pid()] };
        to.into_iter().for_each(|pid| signal(pid, "INT"));
        let run = running.wait();
        // Launchers have codes of their own.
        assert!(is_comm || run.code() == 130, "{run}");
        let text = fs::read_to_string(&file).unwrap();
        assert_eq!([metric(&text, "finished"), metric(&text, "remaining_seconds")], [0.0, 0.0], "{text}");
        let share = metric(&text, "progress_ratio");
        // b_eff tells of its first part late.
        assert!(share > 0.02 && share < if is_comm { 1.0 } else { 0.7 }, "{text}");
        let end = run.stderr.lines().rfind(|line| line.contains(r#""event":"end""#)).unwrap();
        assert_eq!(serde_json::from_str::<Value>(end).unwrap()["share"], share, "{run}");
    }
}

/// What a node exporter says that reads the files in this directory; the reason if it cannot be asked.
fn exported(directory: &Path) -> Result<String, String> {
    const EXPORTER: &str = "prometheus-node-exporter";
    if !is_command(EXPORTER) {
        return Err(format!("no {EXPORTER}"));
    }
    // Free a moment ago. If another program has taken it, the exporter ends, and the reason is in its words.
    let port =
        TcpListener::bind("127.0.0.1:0").and_then(|socket| socket.local_addr()).map_err(|e| e.to_string())?.port();
    let mut exporter = Command::new(EXPORTER)
        .arg(format!("--web.listen-address=127.0.0.1:{port}"))
        .args(["--web.disable-exporter-metrics", "--collector.disable-defaults", "--collector.textfile"])
        .arg(format!("--collector.textfile.directory={}", directory.display()))
        .stderr(Stdio::null())
        .spawn()
        .map_err(|e| format!("{EXPORTER}: {e}"))?;
    let connected = (0..200).find_map(|_| {
        thread::sleep(Duration::from_millis(20));
        TcpStream::connect(("127.0.0.1", port)).ok()
    });
    let mut answer = String::new();
    let asked = connected.ok_or_else(|| "it listens on no port".to_owned()).and_then(|mut socket| {
        let asked = socket.write_all(b"GET /metrics HTTP/1.0\r\n\r\n");
        asked.and_then(|()| socket.read_to_string(&mut answer)).map_err(|e| e.to_string())
    });
    let _ = exporter.kill();
    let _ = exporter.wait();
    asked.map(|_| answer).map_err(|e| format!("{EXPORTER}: {e}"))
}

/// Every sample of two runs whose files are in one directory, under names that the format would break at.
#[test]
fn a_node_exporter_reads_the_metrics_of_all_runs() {
    let scratch = Scratch::new();
    let directory = scratch.join("metrics");
    fs::create_dir(&directory).unwrap();
    let names = ["a.prom", "b \"\\\n{}.prom"];
    for name in names {
        let io = ["--time", "1s", "--types", "2", "--backend", "null", "--metrics"];
        Launch::new(2).args(io).arg(directory.join(name)).into(&Scratch::new()).run().expect(0);
    }
    let answer = match exported(&directory) {
        Ok(answer) => answer,
        Err(reason) => return skip(&reason),
    };
    assert!(answer.contains("\nnode_textfile_scrape_error 0\n"), "{answer}");
    for name in names {
        let file = fs::read_to_string(directory.join(name)).unwrap();
        for line in file.lines().filter(|line| !line.starts_with('#')) {
            // It sorts labels and writes numbers in its own way.
            let (sample, value) = line.rsplit_once(' ').unwrap();
            let (metric, labels) = sample.split_once('{').unwrap();
            let labels: Vec<&str> = labels.trim_end_matches("\"}").split("\",").collect();
            let is_same = |l: &&str| {
                let has = |label: &&str| l.contains(&format!("{label}\""));
                l.starts_with(&format!("{metric}{{")) && labels.iter().all(has)
            };
            let samples: Vec<&str> = answer.lines().filter(is_same).collect();
            let of = |text: &str| text.rsplit(' ').next().unwrap().parse::<f64>().unwrap();
            assert_eq!(samples.iter().map(|l| of(l)).collect::<Vec<_>>(), [of(value)], "{line}: {answer}");
        }
    }
    assert!(answer.contains(r#"run="b \"\\\n{}""#), "{answer}");
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
        // The collector is another user, whatever the umask of the run is.
        let launch = Launch::through(&["sh", "-c", "umask 077; exec \"$@\"", "sh"], 2);
        let launch = launch.args(command).arg("--metrics").arg(&file);
        let run = if command[0] == "comm" { launch.run() } else { launch.into(&scratch).run() };
        run.expect(0);
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o644, "{command:?}");
        let text = fs::read_to_string(&file).unwrap();
        assert_eq!([metric(&text, "finished"), metric(&text, "progress_ratio")], [1.0, 1.0], "{command:?}: {text}");
        assert!(metric(&text, "moved_bytes_total") > 0.0, "{command:?}: {text}");
    }
}

#[test]
fn what_cannot_be_watched_as_asked_is_not_begun() {
    let scratch = Scratch::new();
    io(&scratch, &["--progress", "bar"]).expect(2).says(&["stderr is not a terminal", "--progress lines"]);
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
        "{} -n 1 {PROGRAM} --time 4s --types 2 --space 200M --backend posix --verify sample --path {} --out {}",
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
    // A long remaining time takes the words from around it.
    let is_whole = text.contains("MB/s, about ") && text.contains(" left: posix, 1 rank, ");
    assert!(is_whole || (text.contains(" MB/s, ") && text.contains(" s: posix, 1 rank, ")), "{text}");
    let result: Value = serde_json::from_slice(&fs::read(out.with_extension("json")).unwrap()).unwrap();
    for pattern in items(&result["patterns"]) {
        assert_eq!(pattern["allocations_in_clock"], 0, "{pattern}");
    }
}
