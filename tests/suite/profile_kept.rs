//! A recording outlives a profile that cannot be written: its name is taken meanwhile, the disk is full, the merge is killed.

use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::profile_support::{application, calls_of, launched};
use crate::support::{is_command, list, skip, succeed, Launch, Scratch, PROGRAM};

/// `beff-raw profile merge PARTS -o OUTPUT` behind other words.
fn merge(before: &[&str], parts: &Path, output: &Path) -> Command {
    let (first, rest) = before.split_first().unwrap_or((&"env", &[]));
    let mut command = Command::new(first);
    command.args(rest).arg(PROGRAM).args(["profile", "merge"]).arg(parts).arg("-o").arg(output);
    command
}

fn check_whole(output: &Path) {
    let shown = Launch::alone().args(["profile", "show"]).arg(output).run();
    assert!(shown.code() == 0 && shown.stdout.contains("2 ranks"), "{shown}");
}

/// What two ranks recorded, not merged.
fn recording(scratch: &Scratch) -> PathBuf {
    let program = application(scratch, "turns");
    let parts = scratch.join("a.csv.parts");
    fs::create_dir(&parts).unwrap();
    let library = Path::new(PROGRAM).with_file_name("libbeff_profiler.so");
    let mut command = Command::new(&launched(2)[0]);
    command.args(&launched(2)[1..]).arg("env");
    command.arg(format!("LD_PRELOAD={}", library.display())).arg(format!("BEFF_PROFILE_DIR={}", parts.display()));
    succeed(command.arg(program).arg(scratch.join("data")).args(["message", "50"])).unwrap();
    assert_eq!(list(&parts), ["rank-0.beff", "rank-1.beff"]);
    parts
}

/// The program itself makes what has the name then; `code` is its own end.
fn taken(name: &str, plant: &str, code: i32) {
    let scratch = Scratch::new();
    let program = application(&scratch, "turns");
    let output = scratch.join(name);
    let script = format!("{plant}; {} {} message 5; exit {code}", program.display(), scratch.join("data").display());
    let script = script.replace("OUT", &output.display().to_string());
    let launch = Launch::alone().arg("profile").arg("-o").arg(&output).arg("--").args(launched(2));
    let run = launch.args(["sh", "-c", &script]).run();
    assert_eq!(run.code(), if code == 0 { 1 } else { code }, "{run}");
    assert!(run.stderr.contains(&format!("{} exists already", output.display())), "{run}");
    assert!(!run.stderr.contains("wrote "), "{run}");
    let is_link = output.symlink_metadata().unwrap().is_symlink();
    assert!(is_link || fs::read_to_string(&output).unwrap() == "precious\n", "{run}");
    assert!(!is_link || !output.exists(), "a link that led nowhere leads to a file: {run}");
    let files = list(&scratch.join(&format!("{name}.parts")));
    assert!(files.iter().filter(|file| file.ends_with(".beff")).count() == 2, "{files:?}: {run}");

    let next = run.stderr.lines().find_map(|line| line.split_once("beff-raw profile merge "));
    let (_, next) = next.unwrap_or_else(|| panic!("no command that merges: {run}"));
    succeed(Command::new("bash").arg("-c").arg(format!("{PROGRAM} profile merge {next}"))).unwrap();
    let other = PathBuf::from(next.split(" -o ").nth(1).expect("a name"));
    assert!(other != output && other.extension() == output.extension(), "{next}");
    check_whole(&other);
}

#[test]
fn a_file_that_appears_while_the_program_runs_stays() {
    taken("a.csv", "echo precious > OUT", 0);
}

#[test]
fn a_link_to_nothing_stays() {
    taken("a.csv.zst", "ln -sfn nowhere OUT", 0);
}

#[test]
fn the_code_is_that_of_a_program_that_failed() {
    taken("a.csv.zst", "echo precious > OUT", 7);
}

#[test]
fn an_empty_recording_is_not_a_profile() {
    let scratch = Scratch::new();
    let output = scratch.join("a.csv");
    let launch = Launch::alone().arg("profile").arg("-o").arg(&output).args(["--", "sh", "-c"]);
    let run = launch.arg(format!("echo precious > {}", output.display())).run();
    assert!(run.code() == 1 && run.stderr.contains("nothing was recorded"), "{run}");
    assert!(!run.stderr.contains("wrote "), "{run}");
    assert_eq!(fs::read_to_string(&output).unwrap(), "precious\n");
}

/// The limit of the process is met by the last bytes; the kernel's answer is that of a full disk but for the words.
#[test]
fn a_profile_without_space_leaves_nothing() {
    for name in ["a.csv", "a.csv.zst"] {
        let scratch = Scratch::new();
        let parts = recording(&scratch);
        let (text, output) = (scratch.join("whole.csv"), scratch.join(name));
        succeed(&mut merge(&[], &parts, &text)).unwrap();
        let before = scratch.list(".");
        let limit = format!("--fsize={}", fs::metadata(&text).unwrap().len() - 1);
        let limit = if name.ends_with(".zst") { "--fsize=1000" } else { &limit };
        let run = merge(&["prlimit", limit], &parts, &output).output().unwrap();
        let said = String::from_utf8_lossy(&run.stderr);
        assert!(run.status.code() == Some(2) && said.contains("File too large"), "{said}");
        assert!(said.contains("profile merge"), "{said}");
        assert_eq!(scratch.list("."), before);
        assert_eq!(list(&parts).len(), 2);
    }
}

/// Killed at each of its writes: a name that is there stands for a whole profile.
#[test]
fn a_merge_that_is_killed_leaves_no_half_of_a_profile() {
    if !is_command("strace") {
        return skip("no strace");
    }
    let scratch = Scratch::new();
    let parts = recording(&scratch);
    let mut killed = 0;
    for nth in 1..100 {
        let output = scratch.join("a.csv");
        let kill = format!("inject=write:signal=KILL:when={nth}");
        let run = merge(&["strace", "-o", "/dev/null", "-e", &kill], &parts, &output).output().unwrap();
        if run.status.signal() != Some(9) {
            assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
            break;
        }
        killed += 1;
        if output.symlink_metadata().is_ok() {
            check_whole(&output);
            fs::remove_file(&output).unwrap();
        }
        assert_eq!(list(&parts).len(), 2);
    }
    assert!(killed > 2, "{killed}");
    let text = fs::read_to_string(scratch.join("a.csv")).unwrap();
    assert_eq!(calls_of(&text, "File_write_at").len(), 100);
}
