//! `beff-raw profile`: applications recorded, merged and shown as their users do it.

use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStringExt;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use crate::profile_support::{application, calls_of, launched, profile};
use crate::replay::replay;
use crate::support::{items, launcher, number, signal, skip, succeed, Launch, Scratch, PROGRAM};

fn path(path: &Path) -> &str {
    path.to_str().expect("names of scratch files are text")
}

#[test]
fn a_program_is_recorded_and_shown_and_is_as_before() {
    let scratch = Scratch::new();
    let program = application(&scratch, "turns");
    let (output, data) = (scratch.join("turns.csv"), scratch.join("data"));
    let run = profile(&output, 2, &program, &[path(&data), "message", "5"]).run();
    assert_eq!(run.code(), 0, "{run}");
    assert_eq!(run.stdout, "2 ranks, 5 rounds, 0 wrong\n", "{run}");
    let text = fs::read_to_string(&output).unwrap();
    assert!(text.starts_with("beff-raw profile,1\n"), "{text}");
    for (function, calls) in [("File_open", 2), ("File_write_at", 10), ("File_read_at", 10), ("File_close", 2)] {
        assert_eq!(calls_of(&text, function).len(), calls, "{function}\n{text}");
    }
    // Rank 1 reads what rank 0 wrote: the order and the origin are in the text.
    assert!(calls_of(&text, "File_read_at").iter().all(|line| line.contains(",from=4096@")), "{text}");
    assert!(text.contains(",after="), "{text}");
    assert!(!scratch.join("turns.csv.parts").exists(), "the files of the processes are removed");

    let shown = Launch::alone().args(["profile", "show", "--details"]).arg(&output).run();
    assert_eq!(shown.code(), 0, "{shown}");
    for part in ["2 ranks", "MPI_File_write_at", "MPI_File_read_at", "data"] {
        assert!(shown.stdout.contains(part), "{part}: {shown}");
    }
    let json = Launch::alone().args(["profile", "show", "--format", "json"]).arg(&output).run();
    let json: serde_json::Value = serde_json::from_str(&json.stdout).unwrap();
    assert!(json.is_object(), "{json}");
}

/// What the kernel counted proves something on some kinds only.
#[test]
fn the_file_system_of_each_file_is_in_the_profile() {
    let scratch = Scratch::new();
    let program = application(&scratch, "turns");
    let (output, data) = (scratch.join("turns.csv"), scratch.join("data"));
    let run = profile(&output, 2, &program, &[path(&data), "message", "2"]).run();
    assert_eq!(run.code(), 0, "{run}");
    let kind = match Command::new("df").arg("--output=fstype").arg(&data).output() {
        Ok(listing) if listing.status.success() => String::from_utf8_lossy(&listing.stdout).into_owned(),
        other => return skip(&format!("df does not tell the kind of a file system: {other:?}")),
    };
    let kind = kind.lines().last().unwrap_or_default().trim();
    let text = fs::read_to_string(&output).unwrap();
    let line = text.lines().find(|line| line.starts_with("file,")).unwrap_or_else(|| panic!("{text}"));
    assert!(line.ends_with(&format!(",fs={kind}")), "{line}: df says {kind}");
}

/// A file that the program made while it ran is made at its opening in the replay, the other one before the first call.
#[test]
fn files_created_by_the_program_are_distinguished_from_existing_ones() {
    let scratch = Scratch::new();
    let program = application(&scratch, "made");
    let (output, old, new) = (scratch.join("made.csv"), scratch.join("old"), scratch.join("new"));
    fs::write(&old, [b'o'; 300_000]).unwrap();
    let run = profile(&output, 2, &program, &[path(&old), path(&new)]).run();
    assert_eq!((run.code(), run.stdout.as_str()), (0, "0 wrong\n"), "{run}");
    let text = fs::read_to_string(&output).unwrap();
    let file = |name: &Path| {
        let line = text.lines().find(|line| line.starts_with("file,") && line.contains(path(name)));
        line.unwrap_or_else(|| panic!("{text}")).to_owned()
    };
    assert!(!file(&old).contains("made="), "{text}");
    let (_, created_ns) =
        file(&new).split_once(",made=").map(|(a, b)| (a.to_owned(), b.parse::<u64>().unwrap())).unwrap();
    let opened_ns = |n: usize| calls_of(&text, "File_open")[n].split(',').next().unwrap().parse::<u64>().unwrap();
    // The clock of the file system ticks every few milliseconds.
    assert!(opened_ns(0) < created_ns + 20_000_000 && created_ns <= opened_ns(1), "{text}");

    let (_scratch, run, result) = replay(2, &text, "--backend mpiio,posix,uring --repeat 1");
    for repetition in items(&result["repetitions"]) {
        let checked = if repetition["repetition"] == 0 { 2 * 2 * 300_000 } else { 0 };
        assert_eq!(number(&repetition["calls"]), number(&repetition["calls_as_recorded"]), "{repetition}; {run}");
        assert_eq!(number(&repetition["bytes_checked"]), checked, "{repetition}; {run}");
        assert_eq!(number(&repetition["prefilled_bytes"]), 300_000, "the other one is made later: {repetition}; {run}");
    }
}

/// A file that the program removed itself is gone in the replay, too, where another one is opened: then it cannot be opened any more.
#[test]
fn files_that_the_program_removed_itself_are_removed_in_the_replay() {
    let scratch = Scratch::new();
    let program = application(&scratch, "gone");
    let (output, first, second) = (scratch.join("gone.csv"), scratch.join("first"), scratch.join("second"));
    profile(&output, 2, &program, &[path(&first), path(&second)]).run().expect(0);
    let text = fs::read_to_string(&output).unwrap();
    let file =
        |n: usize| text.lines().filter(|line| line.starts_with("file,")).nth(n).unwrap_or_else(|| panic!("{text}"));
    let (_, gone_ns) = file(0).split_once(",gone=").unwrap_or_else(|| panic!("{text}"));
    let openings = calls_of(&text, "File_open");
    let mut begins = openings.iter().filter(|line| line.contains(",file=1,")).map(|line| line.split(',').next());
    assert!(begins.any(|begin| begin == Some(gone_ns)), "{gone_ns} is no opening of the second file: {text}");
    assert!(!file(1).contains("gone="), "{text}");
    assert_eq!(openings.iter().filter(|line| line.contains("error=")).count(), 2, "{text}");

    for repetition in items(&replay(2, &text, "--backend mpiio,posix,uring").2["repetitions"]) {
        assert_eq!(number(&repetition["calls"]), number(&repetition["calls_as_recorded"]), "{repetition}");
    }
}

#[test]
fn what_exists_is_not_overwritten() {
    let scratch = Scratch::new();
    let output = scratch.join("there.csv");
    fs::write(&output, "precious").unwrap();
    let run = profile(&output, 1, Path::new("true"), &[]).run();
    assert_eq!(run.code(), 2, "{run}");
    assert!(run.stderr.contains("exists already"), "{run}");
    assert_eq!(fs::read_to_string(&output).unwrap(), "precious");
    let other = scratch.join("other.csv");
    fs::create_dir(scratch.join("other.csv.parts")).unwrap();
    let run = profile(&other, 1, Path::new("true"), &[]).run();
    assert_eq!(run.code(), 2, "{run}");
}

/// Next steps can be typed as they stand.
#[test]
fn a_profile_with_a_name_that_is_no_text() {
    let scratch = Scratch::new();
    let program = application(&scratch, "turns");
    let output = scratch.path().join(OsString::from_vec(b"turns\xff.csv".to_vec()));
    let run = profile(&output, 2, &program, &[path(&scratch.join("data")), "message", "5"]).run();
    assert_eq!(run.code(), 0, "{run}");
    assert!(fs::read(&output).unwrap().starts_with(b"beff-raw profile,1\n"), "{run}");
    let next = run.stderr.split('`').nth(1).expect("a command").strip_prefix("beff-raw ").expect("of ours");
    assert!(next.starts_with("profile show $'"), "{run}");
    // Only bash and its like know these quotes.
    let typed = Command::new("bash").arg("-c").arg(format!("{PROGRAM} {next}")).output().unwrap();
    assert!(String::from_utf8_lossy(&typed.stdout).contains("2 ranks"), "{typed:?}");
}

/// The launcher stands behind `--`. Before it, one process would record and wait for others that never start.
#[test]
fn under_a_launcher_the_next_step_is_named() {
    let scratch = Scratch::new();
    let output = scratch.path().join(OsString::from_vec(b"turns\xff.csv".to_vec()));
    let launch = Launch::new(2).args(["profile", "-o"]).arg(&output).args(["--", "./app", "input"]);
    let run = launch.within(Duration::from_secs(60)).run();
    run.expect(2).says(&[
        "as 2 processes",
        "after `--`: beff-raw profile -o $'",
        r"\xff.csv' -- mpirun -n 2 ./app input",
    ]);
    assert_eq!(run.stderr.matches("Put the launcher").count(), 1, "{run}");
    assert_eq!(scratch.list(""), [] as [&str; 0], "{run}");
}

#[test]
fn the_exit_code_is_that_of_the_program() {
    let scratch = Scratch::new();
    let script = scratch.join("seven");
    fs::write(&script, "#!/bin/sh\necho said\nexit 7\n").unwrap();
    succeed(Command::new("chmod").arg("+x").arg(&script)).unwrap();
    let output = scratch.join("seven.csv");
    let run = Launch::alone().arg("profile").arg("-o").arg(&output).arg("--").arg(&script).run();
    assert_eq!((run.code(), run.stdout.as_str()), (7, "said\n"), "{run}");
    assert!(run.stderr.contains("nothing was recorded"), "{run}");
    assert!(!output.exists());
    for (words, reason) in
        [(&["true"][..], "no process with the profiler started MPI"), (&["env", "-i", "true"], "`env -i`")]
    {
        let run = Launch::alone().arg("profile").arg("-o").arg(&output).arg("--").args(words).run();
        assert!(run.code() == 1 && run.stderr.contains("nothing was recorded") && run.stderr.contains(reason), "{run}");
    }
    let run = profile(&scratch.join("none.csv"), 1, Path::new("./not-there-at-all"), &[]).run();
    assert_ne!(run.code(), 0, "{run}");
    assert!(run.stderr.contains("no word of the command is a program"), "{run}");
}

#[test]
fn a_static_program_runs_without_a_profile() {
    let scratch = Scratch::new();
    let program = scratch.join("static");
    let source = scratch.join("static.c");
    fs::write(&source, "#include <stdio.h>\nint main(void) { puts(\"static\"); return 5; }\n").unwrap();
    if let Err(reason) = succeed(Command::new("cc").args(["-static", "-o"]).arg(&program).arg(&source)) {
        println!("SKIPPED: no static C library here: {reason}");
        return;
    }
    let run = Launch::alone().arg("profile").arg("--").arg(&program).run();
    assert_eq!((run.code(), run.stdout.as_str()), (5, "static\n"), "{run}");
    assert!(run.stderr.contains("is linked statically"), "{run}");
}

#[test]
fn a_program_behind_a_script_is_recorded() {
    let scratch = Scratch::new();
    let program = application(&scratch, "turns");
    let script = scratch.join("start");
    fs::write(&script, format!("#!/bin/sh\nexec {} \"$@\"\n", program.display())).unwrap();
    succeed(Command::new("chmod").arg("+x").arg(&script)).unwrap();
    let output = scratch.join("script.csv.zst");
    let run = profile(&output, 2, &script, &[path(&scratch.join("data")), "barrier", "3"]).run();
    assert_eq!((run.code(), run.stdout.as_str()), (0, "2 ranks, 3 rounds, 0 wrong\n"), "{run}");
    assert_eq!(fs::read(&output).unwrap()[..4], [0x28, 0xb5, 0x2f, 0xfd], "zstd by its name");
    let shown = Launch::alone().args(["profile", "show", "--details"]).arg(&output).run();
    assert!(shown.code() == 0 && shown.stdout.contains("MPI_File_write_at"), "{shown}");
}

/// Each MPI program that a script starts, also two at a time.
#[test]
fn every_world_of_a_script_has_a_profile() {
    let scratch = Scratch::new();
    let program = application(&scratch, "turns");
    let start = |ranks: u64, data: &str, rounds: u64| {
        // Open MPI 4 may fail if two jobs create their directories at once.
        let own = format!("mkdir {0}-jobs; OMPI_MCA_orte_tmpdir_base={0}-jobs", scratch.join(data).display());
        let (launcher, program) = (launched(ranks).join(" "), program.display());
        format!("{{ {own} {launcher} {program} {} message {rounds}; }}", scratch.join(data).display())
    };
    let script = format!("{} & {}; wait; {}", start(2, "a", 5), start(2, "b", 5), start(1, "c", 3));
    let output = scratch.join("a.csv");
    let launch = Launch::alone().arg("profile").arg("-o").arg(&output).args(["--", "bash", "-c", &script]);
    let run = launch.within(Duration::from_secs(60)).run();
    assert_eq!(run.code(), 0, "{run}");
    assert!(!run.stderr.contains("not recorded"), "{run}");
    let mut files = Vec::new();
    for (name, writes) in [("a.csv", 10), ("a-2.csv", 10), ("a-3.csv", 3)] {
        let text = fs::read_to_string(scratch.join(name)).unwrap_or_else(|e| panic!("{name}: {e}: {run}"));
        assert_eq!(calls_of(&text, "File_write_at").len(), writes, "{name}: {run}");
        files.extend(text.lines().filter(|line| line.starts_with("file,")).map(str::to_owned));
    }
    files.sort();
    assert!(files.len() == 3 && files[0] != files[1] && files[1] != files[2], "one file in each: {files:?}");
    assert!(!scratch.join("a.csv.parts").exists(), "{run}");
}

/// A preload in the options of the launcher is no program, and does not replace the profiler.
#[test]
fn a_preload_of_the_command_stays_and_the_program_is_recorded() {
    let scratch = Scratch::new();
    let (program, library, source) = (application(&scratch, "turns"), scratch.join("x.so"), scratch.join("x.c"));
    fs::write(&source, "int beff_test;\n").unwrap();
    succeed(Command::new("cc").args(["-shared", "-fPIC", "-o"]).arg(&library).arg(&source)).unwrap();
    let output = scratch.join("a.csv");
    let mut words = launched(1);
    let setting = match launcher().mpi.as_str() {
        "openmpi" => vec!["-x".to_owned(), format!("LD_PRELOAD={}", library.display())],
        _ => vec!["-genv".to_owned(), "LD_PRELOAD".to_owned(), library.display().to_string()],
    };
    words.splice(1..1, setting);
    let launch = Launch::alone().arg("profile").arg("-o").arg(&output).arg("--").args(words);
    let script = format!("echo $LD_PRELOAD; exec {} {} message 2", program.display(), scratch.join("data").display());
    let run = launch.args(["sh", "-c", &script]).run();
    assert_eq!(run.code(), 0, "{run}");
    assert!(run.stdout.contains("libbeff_profiler.so:") && run.stdout.contains("/x.so\n"), "{run}");
    assert_eq!(calls_of(&fs::read_to_string(&output).unwrap(), "File_write_at").len(), 2, "{run}");
}

#[test]
fn preloads_that_are_there_stay() {
    // The suite itself preloads a library: a rank prints both.
    let scratch = Scratch::new();
    let mut words: Vec<OsString> = launched(1).into_iter().map(Into::into).collect();
    words.extend(["sh".into(), "-c".into(), "echo $LD_PRELOAD".into()]);
    let run = Launch::alone().args(["profile", "-o"]).arg(scratch.join("p.csv")).arg("--").args(words).run();
    let (first, rest) = run.stdout.trim().split_once(':').unwrap_or_else(|| panic!("{run}"));
    assert!(first.ends_with("libbeff_profiler.so") && rest.contains("patient"), "{run}");
}

#[test]
fn a_killed_program_leaves_what_it_did() {
    let scratch = Scratch::new();
    let program = application(&scratch, "turns");
    let output = scratch.join("killed.csv");
    let mut running = profile(&output, 2, &program, &[path(&scratch.join("data")), "message", "100000000"]).start();
    let parts = scratch.join("killed.csv.parts");
    let recorded = || {
        let entries = fs::read_dir(&parts).into_iter().flatten().flatten();
        entries.filter(|entry| entry.metadata().is_ok_and(|m| m.len() > 200_000)).count()
    };
    let begin = Instant::now();
    while recorded() < 2 {
        assert!(!running.is_over() && begin.elapsed() < Duration::from_secs(120), "{}", running.log("stderr"));
        std::thread::sleep(Duration::from_millis(20));
    }
    let ranks: Vec<i32> = below(running.pid()).into_iter().filter(|pid| is(*pid, "turns")).collect();
    assert_eq!(ranks.len(), 2);
    signal(ranks[1], "KILL");
    let run = running.wait();
    assert_ne!(run.code(), 0, "{run}");
    let text = fs::read_to_string(&output).unwrap_or_else(|e| panic!("{e}: {run}"));
    assert!(text.lines().any(|line| line.starts_with("process,1,") && line.contains("cut")), "{}", &text[..2000]);
    assert!(calls_of(&text, "File_write_at").len() > 1000);
    let shown = Launch::alone().args(["profile", "show", "--details"]).arg(&output).run();
    assert!(shown.code() == 0 && shown.stdout.contains("ended without MPI_Finalize"), "{shown}");
}

/// All processes below one.
fn below(root: i32) -> Vec<i32> {
    let all: Vec<(i32, i32)> = procfs::process::all_processes()
        .unwrap()
        .flatten()
        .filter_map(|process| Some((process.pid, process.stat().ok()?.ppid)))
        .collect();
    let mut found = vec![root];
    let mut at = 0;
    while at < found.len() {
        let root = found[at];
        found.extend(all.iter().filter(|(_, parent)| *parent == root).map(|(pid, _)| *pid));
        at += 1;
    }
    found
}

fn is(pid: i32, name: &str) -> bool {
    fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|comm| comm.trim() == name)
}

#[test]
fn merging_says_what_is_wrong() {
    let scratch = Scratch::new();
    let empty = scratch.join("empty.parts");
    fs::create_dir(&empty).unwrap();
    let merge = |what: &Path| Launch::alone().args(["profile", "merge"]).arg(what).run();
    let run = merge(&empty);
    assert!(run.code() == 2 && run.stderr.contains("empty.parts"), "{run}");
    let run = merge(&scratch.join("not there.parts"));
    assert!(run.code() == 2 && run.stderr.contains("not there.parts"), "{run}");
    fs::write(empty.join("rank-0.beff"), "no recording").unwrap();
    let run = merge(&empty);
    assert!(run.code() == 2 && run.stderr.contains("rank-0.beff"), "{run}");
    assert!(!scratch.join("empty").exists(), "nothing is left of a profile that cannot be made");
}
