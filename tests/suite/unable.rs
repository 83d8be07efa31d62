//! Backends that cannot work here: not run, with the reason, before anything is measured; the others are. And file systems that
//! are the clients of a server: what is read from them is never called from storage.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use serde_json::Value;

use crate::memory_fuse;
use crate::support::{document, items, launcher, number, skip, succeed, Launch, Mount, Run, Scratch, SHORT};

const SOURCE: &str = include_str!("../planted/refusing.c");

/// A library that refuses system calls, in `scratch`.
fn refusing(scratch: &Scratch) -> PathBuf {
    let (source, library) = (scratch.join("refusing.c"), scratch.join("refusing.so"));
    fs::write(&source, SOURCE).unwrap();
    let compiler = std::env::var("CC").unwrap_or_else(|_| "cc".into());
    let mut command = Command::new(compiler);
    command.args(["-shared", "-fPIC", "-O1", "-o"]).arg(&library).arg(&source).arg("-ldl");
    succeed(&mut command).expect("a C compiler, as the build needs one");
    library
}

/// Ranks of which these system calls are refused.
fn without(scratch: &Scratch, calls: &str) -> Launch {
    let preload = format!("LD_PRELOAD={}", refusing(scratch).display());
    Launch::through(&["env", &preload, &format!("REFUSED={calls}")], 2)
}

fn patterns<'a>(result: &'a Value, backend: &str) -> Vec<&'a Value> {
    let own: Vec<_> = items(&result["patterns"]).iter().filter(|p| p["backend"] == backend).collect();
    assert!(!own.is_empty(), "{backend}");
    own
}

/// Nothing of this backend was run, for this reason; all of the others was.
fn check_not_run(run: &Run, result: &Value, backend: &str, reason: &str) {
    run.expect(0).says(&[&format!("{backend} is not run"), reason]);
    for p in patterns(result, backend) {
        assert_eq!((&p["ended"]["by"], number(&p["moved_bytes"])), (&Value::from("not_run"), 0), "{p}");
        let why = p["ended"]["reason"].as_str().unwrap();
        assert!(why.contains("cannot work here") && why.contains(reason) || why.contains("first write"), "{p}");
    }
    for p in patterns(result, "posix") {
        assert_ne!(p["ended"]["by"], "not_run", "{p}");
    }
    let warnings = items(&result["derived"]["warnings"]);
    assert!(warnings.iter().any(|w| w["kind"] == "not_run" && w["backend"] == backend), "{warnings:?}");
    assert_eq!(items(&result["errors"]), [] as [Value; 0]);
    assert!(run.stdout.contains("x not run"), "{run}");
}

#[test]
fn without_io_uring_the_others_are_run() {
    let scratch = Scratch::new();
    let run = without(&scratch, "io_uring_setup")
        .args(SHORT)
        .args(["--types", "0,2", "--space", "200M", "--backend", "uring,posix", "--full"])
        .into(&scratch)
        .run();
    check_not_run(&run, &document(&scratch), "uring", "io_uring is not available");
    // The directory of the run is gone with all in it.
    assert_eq!(scratch.list("disk"), [] as [&str; 0]);
}

#[test]
fn without_io_uring_a_replay_goes_on_with_the_others() {
    let scratch = Scratch::new();
    let profile = scratch.join("app.csv");
    fs::write(&profile, crate::replay::program()).unwrap();
    let replay = |backends: &str| {
        let launch = without(&scratch, "io_uring_setup").arg("replay").arg(&profile);
        launch.args(["--backend", backends, "--repeat", "2", "--full"]).into(&scratch).run()
    };
    let run = replay("uring");
    run.expect(2).says(&["--backend uring cannot work here", "io_uring is not available"]);
    assert!(!scratch.join("out.json").exists());
    let run = replay("uring,posix");
    run.expect(0).says(&["uring is not run", "io_uring is not available"]);
    let result = document(&scratch);
    for repetition in items(&result["repetitions"]) {
        let by = if repetition["backend"] == "uring" { "not_run" } else { "complete" };
        assert_eq!(repetition["ended"]["by"], by, "{repetition}");
    }
    assert_eq!(result["derived"]["verdict"]["repetitions_not_run"], 2, "{}", result["derived"]["verdict"]);
    assert!(items(&result["derived"]["warnings"]).iter().any(|w| w["kind"] == "not_run" && w["repetitions"] == 2));
    assert!(run.stdout.contains("x not run") && run.stdout.contains(", 2 not run, "), "{run}");
    assert_eq!(scratch.list("disk"), [] as [&str; 0]);
}

#[test]
fn without_io_uring_a_run_of_uring_alone_is_refused() {
    let scratch = Scratch::new();
    let launch = |command: &[&str]| without(&scratch, "io_uring_setup").args(command).args(["--backend", "uring"]);
    let io = launch(&[]).args(SHORT).args(["--space", "200M"]).into(&scratch).run();
    let imb = launch(&["imb", "P_Write_Priv"]).into(&scratch).run();
    for run in [io, imb] {
        run.expect(2).says(&["--backend uring cannot work here", "io_uring is not available", "posix"]);
        assert_eq!(run.stdout, "");
    }
    assert_eq!(scratch.list("disk"), [] as [&str; 0]);
    assert!(!scratch.join("out.json").exists() && !scratch.join("out.jsonl").exists());
}

#[test]
fn without_io_uring_rows_of_imb_are_not_run() {
    let scratch = Scratch::new();
    let args = ["imb", "P_Write_Priv", "--msglog", "12:12", "--backend", "uring,posix"];
    let run = without(&scratch, "io_uring_setup").args(args).into(&scratch).run();
    run.expect(0).says(&["uring is not run"]);
    for row in items(&document(&scratch)["rows"]) {
        let expected = if row["backend"] == "uring" { "not_run" } else { "complete" };
        assert_eq!(row["ended"]["by"], expected, "{row}");
    }
}

/// ROMIO takes what stands before a colon for a type of file system.
#[test]
fn in_a_directory_with_a_colon_only_mpi_io_is_not_run() {
    if launcher().mpi == "openmpi" {
        return skip("names with a colon are refused: OMPIO opens them");
    }
    let scratch = Scratch::new();
    let (disk, profile) = (scratch.join("DIR:Y"), scratch.join("app.csv"));
    fs::create_dir(&disk).unwrap();
    fs::write(&profile, crate::replay::program()).unwrap();
    let launch = |command: &[&str], backends: &str| {
        let launch = Launch::new(2).args(command).args(["--backend", backends]).within(Duration::from_secs(60));
        launch.arg("--path").arg(&disk).arg("--out").arg(scratch.join("out")).run()
    };
    let io = [&SHORT[..], &["--space", "200M"]].concat();
    let (imb, replay) = (["imb", "P_Write_Priv", "--msglog", "12:12"], ["replay", profile.to_str().unwrap()]);
    for command in [&io[..], &imb, &replay] {
        launch(command, "mpiio").expect(2).says(&[
            "--backend mpiio cannot work here",
            "DIR:Y",
            "before ':'",
            "use a --path",
        ]);
    }
    for (command, records) in [(&imb[..], "rows"), (&replay, "repetitions")] {
        launch(command, "mpiio,posix").expect(0).says(&["mpiio is not run", "DIR:Y"]);
        for record in items(&document(&scratch)[records]) {
            let expected = if record["backend"] == "mpiio" { "not_run" } else { "complete" };
            assert_eq!(record["ended"]["by"], expected, "{record}");
        }
        for suffix in ["json", "jsonl", "csv"] {
            fs::remove_file(scratch.join(&format!("out.{suffix}"))).unwrap();
        }
    }
    assert_eq!(scratch.list("DIR:Y"), [] as [&str; 0]);
}

#[test]
fn memory_that_is_refused_is_not_missing() {
    let scratch = Scratch::new();
    let args = ["--space", "200M", "--backend", "posix", "--collective", "two-phase", "--types", "0"];
    let run = without(&scratch, "memfd_create").args(SHORT).args(args).into(&scratch).run();
    assert!(run.code() != 0 && !run.stderr.contains("--memory-per-process"), "{run}");
    run.says(&["memfd_create", "--set exchange=messages"]);
    // Backends that do not share memory are run.
    let backends = ["--space", "200M", "--backend", "uring,posix", "--types", "0", "--full"];
    let run = without(&scratch, "memfd_create").args(SHORT).args(backends).into(&scratch).run();
    check_not_run(&run, &document(&scratch), "uring", "memfd_create: Operation not permitted");
    for suffix in ["json", "jsonl", "csv"] {
        let _ = fs::remove_file(scratch.join(&format!("out.{suffix}")));
    }
    // The advice helps.
    let run = without(&scratch, "memfd_create")
        .args(SHORT)
        .args(args)
        .args(["--set", "exchange=messages"])
        .into(&scratch)
        .run();
    run.expect(0);
}

/// ramfs tells no size, and has all the space there is.
#[test]
fn a_file_system_that_reports_no_space_is_used_with_space() {
    let scratch = Scratch::new();
    let _mount = match Mount::new(&["-t", "ramfs", "ramfs"], &scratch.join("disk")) {
        Ok(mount) => mount,
        Err(reason) => return skip(&format!("no ramfs can be mounted: {reason}")),
    };
    let launch = || Launch::new(2).args(SHORT).args(["--types", "0,2", "--backend", "posix,mmap"]).into(&scratch);
    launch().run().expect(2).says(&["ramfs", "does not report its free space", "--space"]);
    launch().args(["--space", "200M"]).run().expect(0);
    for r in items(&document(&scratch)["derived"]["reads"]) {
        assert_eq!(r["cached"], true, "{r}");
    }
}

/// The file system at `disk` in `scratch`; None where FUSE cannot be used, which is told.
fn fuse(scratch: &Scratch, subtype: &str, direct: bool) -> Option<fuser::BackgroundSession> {
    let mounted = memory_fuse::mount(&scratch.join("disk"), subtype, direct);
    mounted.map_err(|reason| skip(&format!("no FUSE file system can be mounted: {reason}"))).ok()
}

fn check_sources(scratch: &Scratch, run: &Run) {
    let result = document(scratch);
    let storage = &result["manifest"]["storage"];
    // Without the subtype where no helper program mounts it.
    assert!(storage["fs_type"].as_str().is_some_and(|t| t == "fuse" || t == "fuse.mergerfs"), "{storage}");
    let reads = items(&result["derived"]["reads"]);
    assert!(reads.len() > 5);
    for r in reads {
        assert!(r["storage_bytes"].is_null() && r["cache_share"].is_null() && r["cached"] == false, "{r}");
    }
    // All that was seen of it looks like storage.
    let empty = |p: &&Value| p["access"] == "read" && p["evidence"]["resident_before_bytes"] == 0;
    println!("{} reads from an empty page cache", items(&result["patterns"]).iter().filter(empty).count());
    assert!(run.stdout.contains('?') && !run.stdout.contains("% from storage"), "{run}");
    let of_one = scratch.join("out.sum");
    let sum = if of_one.exists() { of_one } else { scratch.join("out.posix.sum") };
    let sum = fs::read_to_string(sum).unwrap();
    assert!(sum.contains("# Not known whether read from storage or from a cache: patterns "), "{sum}");
}

#[test]
fn what_comes_from_the_memory_behind_fuse_is_not_known() {
    let scratch = Scratch::new();
    let Some(_mount) = fuse(&scratch, "mergerfs", false) else { return };
    let args = ["--types", "0,2", "--space", "120M", "--backend", "posix", "--cache", "drop"];
    let run = Launch::new(1).args(SHORT).args(args).into(&scratch).run();
    run.expect(0);
    check_sources(&scratch, &run);
    let imb = Launch::new(1).args(["imb", "P_Read_Priv", "--msglog", "16:16", "--backend", "posix"]);
    let imb = imb.arg("--path").arg(scratch.join("disk")).arg("--out").arg(scratch.join("imb")).run();
    imb.expect(0);
    let rows = crate::support::read_json(&scratch.join("imb.json"));
    // The row of 0 bytes has no source.
    let sources: Vec<_> = items(&rows["derived"]["rows"]).iter().filter(|row| row["has_source"] == true).collect();
    assert!(!sources.is_empty());
    for row in sources {
        assert!(row["storage_bytes"].is_null() && row["cached"] == false, "{row}");
    }
}

/// Files of FUSE that bypass the page cache have no shared mappings.
#[test]
fn without_shared_mappings_the_others_are_run() {
    let scratch = Scratch::new();
    let Some(_mount) = fuse(&scratch, "mergerfs", true) else { return };
    if maps(&scratch.join("disk")) {
        return skip("this kernel maps files of FUSE that bypass the page cache");
    }
    let launch = |backends| {
        let args = ["--types", "2", "--space", "120M", "--full", "--backend", backends];
        Launch::new(1).args(SHORT).args(args).into(&scratch).run()
    };
    let run = launch("mmap,posix");
    check_not_run(&run, &document(&scratch), "mmap", "no shared mappings");
    check_sources(&scratch, &run);
}

/// True if a file in this directory can be mapped shared: `info` tries it.
fn maps(dir: &Path) -> bool {
    let info = Command::new(crate::support::PROGRAM).args(["info", "--path"]).arg(dir).output().unwrap();
    !String::from_utf8_lossy(&info.stdout).contains("no shared mappings")
}

/// Open MPI 4.1 writes beyond its memory for such names.
#[test]
fn names_too_long_for_a_library_are_refused() {
    let scratch = Scratch::new();
    let long = scratch.join(&"x".repeat(240));
    fs::create_dir(&long).unwrap();
    let words = ["imb", "S_Write_Indv", "--msglog", "4:6", "--iter", "4"];
    let path = format!("--path={}", long.display());
    let is_open_mpi = launcher().mpi == "openmpi";
    let run = Launch::new(2).args(words).arg(&path).run();
    run.expect(if is_open_mpi { 2 } else { 0 });
    if is_open_mpi {
        run.says(&["too long for this MPI library", "a shorter name"]);
    }
    Launch::new(2).args(words).arg(&path).args(["--backend", "posix"]).run().expect(0);
    assert_eq!(fs::read_dir(&long).unwrap().count(), 0);
}
