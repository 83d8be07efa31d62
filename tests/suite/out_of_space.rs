//! Results that do not fit where they were to go, and what a path must not be.

use std::fs::{self, File};
use std::process::Command;

use crate::support::{launcher, read_json, skip, succeed, Launch, Mount, Scratch, PROGRAM, SHORT};

const SMALL: [&str; 7] = ["imb", "S_Write_Expl", "S_Read_Expl", "--npmin", "1", "--quiet", "--full"];

/// Two pages for the outputs: the journal begins and ends early, the document does not fit.
#[test]
fn a_result_that_does_not_fit_is_kept_elsewhere() {
    let scratch = Scratch::new();
    let (full, elsewhere) = (scratch.join("full"), scratch.join("elsewhere"));
    let _mount = match Mount::new(&["-t", "tmpfs", "-o", "size=8k", "tmpfs"], &full) {
        Ok(mount) => mount,
        Err(reason) => return skip(&format!("no small tmpfs can be mounted: {reason}")),
    };
    fs::create_dir(&elsewhere).unwrap();
    let launch =
        Launch::new(1).args(SMALL).args(["--iter", "10", "--msglog", "10:16"]).arg("--path").arg(scratch.path());
    let run = launch.arg("--out").arg(full.join("run")).env("TMPDIR", &elsewhere).run();
    run.expect(1).says(&["cannot be written any more", "run.json: No space left", "is incomplete too"]);
    assert!(!run.stderr.contains("has all records"), "{run}");
    assert!(run.stdout.contains("S_Read_Expl"), "the table is on stdout; {run}");
    let kept = crate::support::list(&elsewhere);
    let kept: Vec<_> = kept.iter().filter(|name| name.starts_with("beff-raw-run-")).collect();
    assert_eq!(kept.len(), 1, "{kept:?}; {run}");
    assert!(run.stderr.contains(kept[0].as_str()), "{run}");
    let result = read_json(&elsewhere.join(kept[0]));
    assert_eq!(result["ending"]["outcome"], "complete", "{run}");
    let shown = Command::new(PROGRAM).args(["report", "--full"]).arg(elsewhere.join(kept[0])).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&shown.stdout), run.stdout);
    assert_eq!(fs::metadata(full.join("run.json")).unwrap().len(), 0, "half a document is none");
}

/// Without a handler the kernel ends the process by SIGXFSZ.
#[test]
fn a_limit_of_file_sizes_is_an_error_like_others() {
    if launcher().mpi != "mpich" {
        return skip("the launcher of this MPI writes files of its own, which the limit would hit first");
    }
    let scratch = Scratch::new();
    for backend in ["posix", "uring", "mpiio"] {
        let out = scratch.join(backend);
        // 16 MiB: enough for the outputs and the memory of the MPI library, not for the 40 MiB of the last row.
        let launch = Launch::through(&["prlimit", "--fsize=16777216:16777216"], 1).args(SMALL);
        let large = ["--msglog", "20:22", "--iter", "10,1000", "--backend", backend];
        let run = launch.args(large).arg("--path").arg(scratch.path()).arg("--out").arg(&out).run();
        run.expect(1);
        assert!(run.stdout.contains("File too large") || run.stdout.contains("MPI_ERR"), "{backend}: {run}");
        assert!(run.stdout.contains("S_Write_Expl"), "{backend}: {run}");
        assert_eq!(crate::support::list(scratch.path()).iter().filter(|n| n.starts_with("beff-raw-")).count(), 0);
    }
}

#[test]
fn stdout_on_a_full_disk_is_an_error() {
    for command in ["info", "plan --ranks 2", "imb --list", "comm --plan 2", "--help"] {
        let full = File::options().write(true).open("/dev/full").unwrap();
        let words = command.split_whitespace();
        let output = Command::new(PROGRAM).args(words).stdout(full).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{command}: {said}");
        assert!(said.contains("stdout cannot be written: No space left"), "{command}: {said}");
    }
}

/// Whoever opens a FIFO waits for the other end.
#[test]
fn a_path_that_is_a_fifo_or_a_device_is_refused_and_not_opened() {
    let scratch = Scratch::new();
    let fifo = scratch.join("fifo");
    succeed(Command::new("mkfifo").arg(&fifo)).unwrap();
    for command in [&["info"][..], &["imb", "S_Write_Expl"], &SHORT] {
        for (path, kind) in [(fifo.as_path(), "a FIFO"), ("/dev/null".as_ref(), "a character device")] {
            let run = Launch::alone().args(command).arg("--path").arg(path).run();
            assert!([1, 2].contains(&run.code()), "{run}");
            run.says(&["Not a directory", kind, "--path"]);
        }
    }
}

/// A name may hold anything: what a terminal would obey is shown.
#[test]
fn names_are_shown_and_not_obeyed() {
    let scratch = Scratch::new();
    let path = scratch.join("\u{1b}[31m\u{7}\nFORGED\r");
    fs::create_dir(&path).unwrap();
    let launch = Launch::alone().args(SMALL).args(["--iter", "3", "--msglog", "10:12"]).arg("--path").arg(&path);
    let run = launch.args(["--hint", "\u{1b}[2J=\u{9b}1m"]).arg("--out").arg(path.join("out")).run();
    run.expect(0);
    let other = Launch::alone().args(["--backend", "\u{1b}[31m"]).run();
    other.expect(2);
    let bad = Launch::alone().args(["--release", "\u{1b}[31m"]).run();
    bad.expect(2);
    let report = Launch::alone().args(["report", "--format", "imb"]).arg(path.join("out.json")).run();
    report.expect(0);
    for (number, run) in [&run, &other, &report, &bad].into_iter().enumerate() {
        let all = format!("{}{}", run.stdout, run.stderr);
        assert!(!all.contains(|c: char| c != '\n' && c.is_control()), "{run}");
        assert!(!all.lines().any(|line| line.starts_with("FORGED")), "{run}");
        // The parser of the command line leaves such characters out of its own messages.
        assert!(number == 3 || all.contains("\\u{1b}["), "{run}");
    }
}
