//! What cannot be run is refused before anything is made, with cause and next step.

use std::fs;
use std::process::Command;

use crate::support::{is_command, launcher, skip, Launch, Scratch, SHORT};

/// Options, and what the message must have. All refused with exit code 2.
const REFUSED: [(&[&str], &[&str]); 19] = [
    (&["-T", "0.5s"], &["-T 0.5", "at least 1s"]),
    (&["--backend", "mpio"], &["no backend 'mpio'", "Choose from", "mpiio"]),
    (&["--backend", "posix,posix"], &["listed twice"]),
    (&["--backend", "posix,null", "--repeat", "rounds"], &["no two backends to compare", "--repeat auto"]),
    (
        &["--backend", "posix,uring", "--until", "5%"],
        &["there are no repetitions for a confidence interval", "--repeat auto"],
    ),
    (&["--bakend", "posix"], &["--bakend", "--backend"]),
    (&["--direct", "required", "--backend", "mpiio"], &["--direct required: mpiio", "posix, uring"]),
    (&["--direct", "required", "--backend", "uring,mmap"], &["--direct required: mmap cannot", "posix, uring"]),
    (&["--types", "3,4"], &["types 3 and 4", "--types 2,3,4"]),
    (&["--partitions", "1,3", "--types", "2"], &["partition of 3 ranks", "start more of them"]),
    (&["--hints", "no-such-file"], &["--hints no-such-file", "cannot be read"]),
    (&["--depth", "8", "--backend", "posix"], &["--depth has no effect", "uring"]),
    (&["--domain", "1", "--backend", "uring"], &["--domain 1", "4096 to"]),
    (
        &["--set", "exchange=messages", "--backend", "posix"],
        &["--set exchange has no effect", "--collective two-phase"],
    ),
    (&["--set", "shared-pointer=off", "--backend", "posix"], &["--set shared-pointer has no effect", "mpiio"]),
    (&["--set", "segment-multiple=1P"], &["needs 4.0 PiB", "but may use"]),
    (&["--hints", "/dev/zero"], &["--hints /dev/zero", "more than 1 MiB"]),
    (&["--run-dir", "../up"], &["--run-dir '../up'", "without '/'"]),
    (&["--space", "12 apples"], &["12 apples"]),
];

#[test]
fn options_that_cannot_be_run() {
    for (options, parts) in REFUSED {
        let scratch = Scratch::new();
        let run = Launch::new(2).args(options).args(["--memory-per-process", "64M"]).into(&scratch).run();
        run.expect(2).says(parts);
        assert_eq!(run.stdout, "", "{options:?}");
        assert_eq!(scratch.list("disk"), [] as [&str; 0], "{options:?}");
        assert_eq!(scratch.list(""), ["disk"], "{options:?}");
    }
}

#[test]
fn a_message_comes_once() {
    let run = Launch::new(3).args(["-T", "0.5s"]).run();
    run.expect(2);
    assert_eq!(run.stderr.matches("-T 0.5").count(), 1, "{run}");
}

#[test]
fn what_needs_no_mpi_comes_once() {
    for (words, code, part) in [
        ("imb --no-such-option", 2, "--no-such-option"),
        ("imb -npmins 2", 2, "-npmins"),
        ("comm --quiet --no-such-option", 2, "--no-such-option"),
        ("imb --plan 2 -msglog 5:4", 2, "--msglog 5:4"),
        ("imb --list", 0, "Benchmarks of IMB-IO"),
        ("imb --plan 2 Open_Close", 0, "Plan of an IMB-IO run"),
        ("imb --help", 0, "Usage: beff-raw imb"),
        ("plan --ranks 2 --types 2 --space 10G", 0, "M_PART"),
    ] {
        let run = Launch::new(2).args(words.split(' ')).run();
        run.expect(code);
        let (said, silent) = if code == 0 { (&run.stdout, &run.stderr) } else { (&run.stderr, &run.stdout) };
        let lines = |text: &str| text.lines().filter(|line| line.contains(part)).count();
        let alone = Launch::alone().args(words.split(' ')).run();
        alone.expect(code);
        let expected = lines(if code == 0 { &alone.stdout } else { &alone.stderr });
        assert!(expected > 0 && lines(said) == expected && lines(silent) == 0, "{words}: {expected}; {run}");
        if code == 0 {
            assert_eq!(run.stdout, alone.stdout, "{words}");
        }
    }
}

/// Somebody who only wants to know what it is. Under a launcher, also as the only rank, the same words measure.
#[test]
fn nothing_typed_is_a_short_help() {
    let scratch = Scratch::new();
    let run = Command::new(crate::support::PROGRAM).current_dir(scratch.join("")).output().unwrap();
    let (stdout, stderr) = (String::from_utf8_lossy(&run.stdout), String::from_utf8_lossy(&run.stderr));
    assert_eq!(run.status.code(), Some(2), "{stdout}{stderr}");
    assert!(stdout.contains("Usage: beff-raw") && stdout.lines().count() <= 48, "{stdout}");
    assert!(stderr.contains("nothing was measured") && stderr.contains("mpirun -n"), "{stderr}");
}

#[test]
fn a_closed_pipe_is_no_failure() {
    for words in ["imb --list", "imb --help", "imb --plan 2"] {
        let closed = format!("{{ sleep 0.2; {} {words}; echo $? >&2; }} | true", crate::support::PROGRAM);
        let run = Command::new("sh").arg("-c").arg(closed).output().unwrap();
        assert_eq!(String::from_utf8_lossy(&run.stderr), "0\n", "{words}");
    }
}

#[test]
fn a_bad_line_of_hints_is_named() {
    let scratch = Scratch::new();
    let file = scratch.join("hints.txt");
    fs::write(&file, "# fine\nall write scatter all cb_nodes 1\nall wriet scatter all cb_nodes 1\n").unwrap();
    let run = Launch::new(1).args(SHORT).arg("--hints").arg(&file).into(&scratch).run();
    run.expect(2).says(&["hints.txt", "line 3", "wriet", "rewrite"]);
}

#[test]
fn the_launcher_of_another_mpi_is_refused() {
    let (other, flags): (&str, &[&str]) = match launcher().mpi.as_str() {
        "openmpi" => ("mpirun.mpich", &[]),
        _ => ("mpirun.openmpi", &["--oversubscribe", "--bind-to", "none"]),
    };
    if !is_command(other) {
        return skip(&format!("{other} is not installed: no launcher of another MPI to start the program with"));
    }
    let scratch = Scratch::new();
    let words = [&[other], flags].concat();
    let run = Launch::under(&words, 2).args(SHORT).into(&scratch).run();
    run.expect(2).says(&["2 processes were started", "built with", "Start it with"]);
    assert_eq!(run.stderr.matches("processes were started").count(), 1, "one message for all copies; {run}");
    assert_eq!(scratch.list("disk"), [] as [&str; 0]);
}

/// As the launcher of no MPI that the program could be built with.
const UNKNOWN: [(&[(&str, &str)], &str); 5] = [
    (&[("FLUX_JOB_SIZE", "2"), ("FLUX_TASK_RANK", "0")], "`flux run -n 2"),
    (&[("JSM_NAMESPACE_SIZE", "2"), ("JSM_NAMESPACE_RANK", "0")], "set by jsrun"),
    (&[("PALS_RANKID", "1")], "`mpiexec -n N"),
    (&[("ALPS_APP_PE", "1")], "`aprun -n N"),
    (&[("PMIX_RANK", "1")], "a PMIx launcher started several processes"),
];

#[test]
fn copies_under_unknown_launchers_are_refused() {
    let scratch = Scratch::new();
    for (variables, part) in UNKNOWN {
        let launch = variables.iter().fold(Launch::alone(), |launch, (name, value)| launch.env(name, value));
        let run = launch.args(SHORT).into(&scratch).run();
        run.expect(2).says(&["MPI_COMM_WORLD has 1 rank", "measure alone", part, "Start it with"]);
        assert_eq!(scratch.list(""), ["disk"], "{run}");
    }
    // In a process of one of them, one rank is what its own mpirun was asked for.
    let all = UNKNOWN.iter().flat_map(|(variables, _)| *variables);
    let launch = all.fold(Launch::new(1), |launch, (name, value)| launch.env(name, value));
    launch.args(["imb", "S_Write_Indv", "--iter", "1", "--msglog", "4:4"]).into(&scratch).run().expect(0);
}

#[test]
fn the_help_names_every_command_and_exit_code() {
    let help = Command::new(crate::support::PROGRAM).arg("--help").output().unwrap();
    let text = String::from_utf8(help.stdout).unwrap();
    for part in ["mpirun -n", "plan", "report", "info", "--backend", "130  interrupted"] {
        assert!(text.contains(part), "{part}");
    }
}
