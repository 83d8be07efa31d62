//! Ways in which a program ends or starts: threads, forks, signals, limits, a privately loaded library.

mod support;

use std::collections::BTreeMap;
use std::process::Command;

use beff_trace::raw::{Event, ProcessFile, BLOCK_BYTES};
use beff_trace::{Call, RecordingStatus};
use support::TestProgram;

fn calls(file: &ProcessFile) -> Vec<Call> {
    let call = |event| if let Event::Call(call) = event { Some(*call) } else { None };
    file.events().filter_map(call).collect()
}

/// Offsets of writes, in the order of their begin.
fn writes(file: &ProcessFile) -> Vec<i64> {
    calls(file).iter().filter(|call| call.function.name() == "File_write_at").filter_map(|call| call.offset).collect()
}

#[test]
fn a_killed_rank_keeps_every_call() {
    let scene = TestProgram::new("ends.c", &[]).unwrap();
    for (how, calls, end) in [
        ("kill", 9000, RecordingStatus::Truncated),
        ("abort", 5000, RecordingStatus::Aborted),
        ("exit", 5000, RecordingStatus::Truncated),
        ("_exit", 70, RecordingStatus::Truncated),
    ] {
        let number = calls.to_string();
        let run = scene.record(1, &[], &[how, &number]);
        let file = scene.file(0);
        assert_eq!(file.head().end, end, "{how}: {run:?}");
        assert_eq!(writes(&file), (0..calls).collect::<Vec<i64>>(), "{how}");
    }
    scene.record(1, &[], &["fatal", "500"]);
    assert_eq!(writes(&scene.file(0)).len(), 500);
}

#[test]
fn threads_are_woven_by_begin() {
    let scene = TestProgram::new("ends.c", &[]).unwrap();
    let run = scene.record(2, &[], &["threads", "4000"]);
    assert_eq!(run.stdout.concat(), "threadsthreads", "{run:?}");
    for rank in 0..2 {
        let file = scene.file(rank);
        assert_eq!(file.head().end, RecordingStatus::Complete);
        let mut of_thread: BTreeMap<u32, Vec<i64>> = BTreeMap::new();
        let mut last_ns = 0;
        for call in calls(&file).iter().filter(|call| call.function.name() == "File_write_at") {
            assert!(call.begin_ns >= last_ns);
            last_ns = call.begin_ns;
            of_thread.entry(call.thread).or_default().extend(call.offset);
        }
        assert_eq!(of_thread.len(), 8, "{:?}", of_thread.keys());
        let mut first: Vec<i64> = of_thread.values().map(|offsets| offsets[0]).collect();
        for offsets in of_thread.values() {
            assert_eq!(*offsets, (offsets[0]..offsets[0] + 4000).collect::<Vec<i64>>());
        }
        first.sort_unstable();
        assert_eq!(first, (0..8).map(|n| n * 4000).collect::<Vec<i64>>());
    }
}

#[test]
fn a_forked_child_records_nothing() {
    let scene = TestProgram::new("ends.c", &[]).unwrap();
    let run = scene.record(1, &[], &["fork", "10"]);
    assert_eq!(run.stdout, ["child 3", "fork"], "{run:?}");
    let file = scene.file(0);
    assert_eq!(file.head().end, RecordingStatus::Complete);
    let names: Vec<&str> = calls(&file).iter().map(|call| call.function.name()).collect();
    assert_eq!(names.len(), 14, "{names:?}");
    assert!(!names.contains(&"File_get_size"), "{names:?}");
    assert_eq!(std::fs::read_dir(scene.path("profile")).unwrap().count(), 1);
}

#[test]
fn a_limit_ends_the_record_and_not_the_program() {
    let scene = TestProgram::new("ends.c", &[]).unwrap();
    let limit = 4 * BLOCK_BYTES;
    let run = scene.record(1, &[("BEFF_PROFILE_LIMIT_BYTES", &limit.to_string())], &["limit", "40000"]);
    assert_eq!(run.stdout, ["limit"], "{run:?}");
    let said: Vec<&String> = run.stderr.iter().filter(|line| line.contains("profiler")).collect();
    assert_eq!(said.len(), 1, "{said:?}");
    assert!(
        said[0].contains("BEFF_PROFILE_LIMIT_BYTES; later calls are not recorded, the program continues"),
        "{said:?}"
    );
    let file = scene.file(0);
    assert_eq!(file.head().end, RecordingStatus::LimitReached);
    assert!(std::fs::metadata(file.path()).unwrap().len() <= limit as u64);
    let offsets = writes(&file);
    assert!(offsets.len() > 8000 && offsets.len() < 40_000, "{}", offsets.len());
    assert_eq!(offsets, (0..offsets.len() as i64).collect::<Vec<i64>>());
    assert_eq!(run.files["file-0"].len(), 40_000);
}

#[test]
fn nothing_is_created_without_a_directory_or_without_mpi() {
    let scene = TestProgram::new("ends.c", &[]).unwrap();
    let library = support::library();
    let preload = library.to_string_lossy();
    let run = scene.run(1, &[("LD_PRELOAD", &preload)], &["plain", "10"]);
    assert_eq!((run.code, run.stdout), (Some(4), vec!["plain".to_owned()]));
    let said: Vec<&String> = run.stderr.iter().filter(|line| line.contains("profiler")).collect();
    assert!(said.len() == 1 && said[0].contains("is not recorded: BEFF_PROFILE_DIR"), "{said:?}");
    let profile = scene.path("nothing");
    std::fs::create_dir(&profile).unwrap();
    let shell = Command::new("sh")
        .args(["-c", "echo $((6 * 7)); ls / | wc -l > /dev/null; exit 6"])
        .env("LD_PRELOAD", &*preload)
        .env("BEFF_PROFILE_DIR", &profile)
        .output()
        .unwrap();
    assert_eq!(
        (shell.status.code(), shell.stdout.as_slice(), shell.stderr.as_slice()),
        (Some(6), &b"42\n"[..], &b""[..])
    );
    assert_eq!(std::fs::read_dir(&profile).unwrap().count(), 0);
}

#[test]
fn a_library_that_was_loaded_privately_is_found() {
    let scene = TestProgram::new("private.c", &["-ldl"]).unwrap();
    // The program itself must not have MPI: compiled again without the libraries of the wrapper.
    let part = scene.path("part.so");
    let build = |arguments: &[&str]| {
        let status = Command::new(support::mpicc()).args(arguments).status().unwrap();
        assert!(status.success(), "{arguments:?}");
    };
    let (source, object) = (support::source("private.c"), scene.path("main.o"));
    let (source, object, program) =
        (source.to_str().unwrap(), object.to_str().unwrap(), scene.program.to_str().unwrap());
    build(&["-DPART", "-shared", "-fPIC", source, "-o", part.to_str().unwrap()]);
    build(&["-c", source, "-o", object]);
    assert!(Command::new("cc").args([object, "-ldl", "-o", program]).status().unwrap().success());
    let run = scene.record(1, &[], &[part.to_str().unwrap()]);
    assert_eq!((run.code, run.stderr.len()), (Some(0), 0), "{run:?}");
    let file = scene.file(0);
    assert_eq!(file.head().end, RecordingStatus::Complete);
    let lines = support::text(&file);
    assert_eq!(lines[1], "File_write_at handle=1 offset=5 count=8 type=BYTE bytes=8");
    assert_eq!(lines.len(), 3, "{lines:?}");
}

#[test]
fn behind_finalize_rank_0_has_the_files_merged() {
    let scene = TestProgram::new("ends.c", &[]).unwrap();
    let merger = scene.path("merger");
    std::fs::write(&merger, "#!/bin/sh\necho merged \"$@\" \"$LD_PRELOAD\" >&2\nls \"$3\" > \"$5\"\n").unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&merger, mode).unwrap();
    let out = scene.path("out");
    let variables = [("BEFF_PROFILE_MERGER", merger.to_str().unwrap()), ("BEFF_PROFILE_OUT", out.to_str().unwrap())];
    let run = scene.record(2, &variables, &["merge", "10"]);
    assert!(
        run.stderr.iter().any(|line| line.starts_with("merged profile merge /") && line.ends_with("/out ")),
        "{run:?}"
    );
    assert_eq!(std::fs::read_to_string(&out).unwrap(), "rank-0.beff\nrank-1.beff\n");
}

#[test]
fn a_session_is_recorded_like_a_world() {
    let scene = TestProgram::new("session.c", &[]).unwrap();
    // MPICH 4.0 has sessions, but its files need MPI_COMM_WORLD: such a program may crash, with and without the profiler.
    let run = scene.record(2, &[], &[]);
    if run.stdout.concat() != "sessionsession" {
        return eprintln!("SKIPPED: this MPI has no sessions, or none with files: {:?}", run.stdout);
    }
    for rank in 0..2 {
        let file = scene.file(rank);
        assert_eq!((file.head().end, file.head().rank, file.head().ranks), (RecordingStatus::Complete, rank, 2));
        let calls = calls(&file);
        // MPI_Comm_create_from_group is not recorded: what the library does inside it is.
        let of_program = |call: &&Call| call.name.as_deref().is_none_or(|name| !name.starts_with("/dev/shm/"));
        let names: Vec<&str> = calls.iter().filter(of_program).map(|call| call.function.name()).collect();
        assert_eq!(names, ["Session_init", "File_open", "File_write_at", "File_close", "Session_finalize"]);
        let ranks =
            file.events().find_map(|event| if let Event::Comm { ranks, .. } = event { Some(ranks) } else { None });
        assert_eq!(ranks, Some(vec![0, 1]));
    }
}

#[test]
fn a_second_program_in_the_directory_says_once_that_it_is_not_recorded() {
    let scene = TestProgram::new("ends.c", &[]).unwrap();
    assert_eq!(scene.record(2, &[], &["plain", "10"]).code, Some(0));
    let profile = scene.path("profile");
    let (library, profile) = (support::library(), profile.to_str().unwrap());
    let variables = [("LD_PRELOAD", library.to_str().unwrap()), ("BEFF_PROFILE_DIR", profile)];
    let run = scene.run(2, &variables, &["plain", "20"]);
    let said: Vec<&String> = run.stderr.iter().filter(|line| line.contains("profiler")).collect();
    assert!(run.code == Some(0) && said.len() == 1, "{run:?}");
    assert!(said[0].contains("is not recorded") && said[0].contains("the recording of another program"), "{said:?}");
    assert_eq!((0..2).map(|rank| writes(&scene.file(rank)).len()).collect::<Vec<_>>(), [10, 10]);
}

#[test]
fn without_the_twins_fortran_may_be_missed_but_c_is_not() {
    let scene = TestProgram::new("ends.c", &[]).unwrap();
    scene.record(1, &[("BEFF_PROFILE_PMPI", "0")], &["plain", "100"]);
    assert_eq!(writes(&scene.file(0)).len(), 100);
    assert_eq!(scene.file(0).head().end, RecordingStatus::Complete);
}

#[test]
fn clocks_of_one_host_are_the_same() {
    let scene = TestProgram::new("ends.c", &[]).unwrap();
    // A measured offset is almost never exactly 0, and not three times.
    let is_measured = (0..3).any(|_| {
        scene.record(2, &[("BEFF_PROFILE_CLOCKS", "always")], &["plain", "10"]);
        scene.file(1).head().clock_offset_ns[0] != 0
    });
    assert!(is_measured, "the offset of rank 1 is 0 ns, three times");
    for rank in 0..2 {
        let file = scene.file(rank);
        assert!(rank == 1 || file.head().clock_offset_ns[0] == 0, "rank 0 is the reference");
        for offset in file.head().clock_offset_ns {
            assert!(offset.abs() < 20_000_000, "rank {rank}: {offset} ns");
        }
        let begin = calls(&file)[0].begin_ns;
        let now = std::fs::read_to_string("/proc/uptime").unwrap();
        let now: f64 = now.split(' ').next().unwrap().parse().unwrap();
        let ago = now - begin as f64 / 1e9;
        assert!((-0.1..60.0).contains(&ago), "MPI_Init was {ago} s ago");
    }
}

/// A mounted file system, unmounted on drop.
struct MountedFileSystem(std::path::PathBuf);

impl Drop for MountedFileSystem {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(&self.0).status();
    }
}

#[test]
fn a_full_disk_ends_the_record_and_not_the_program() {
    let scene = TestProgram::new("ends.c", &[]).unwrap();
    let small = scene.path("small");
    std::fs::create_dir(&small).unwrap();
    let mount = Command::new("mount").args(["-t", "tmpfs", "-o", "size=300k", "none"]).arg(&small).output();
    if !mount.is_ok_and(|output| output.status.success()) {
        return eprintln!("SKIPPED: a small file system cannot be mounted");
    }
    let mounted = MountedFileSystem(small.clone());
    let run = scene.record(1, &[("BEFF_PROFILE_DIR", small.to_str().unwrap())], &["full", "40000"]);
    assert_eq!((run.stdout, run.files["file-0"].len()), (vec!["full".to_owned()], 40_000));
    let said: Vec<&String> = run.stderr.iter().filter(|line| line.contains("profiler")).collect();
    assert_eq!(said.len(), 1, "{said:?}");
    assert!(said[0].contains("No space left on device") && said[0].contains("the program continues"), "{said:?}");
    let file = ProcessFile::open(&small.join("rank-0.beff")).unwrap();
    let (offsets, end) = (writes(&file), file.head().end);
    drop(file);
    drop(mounted);
    assert_eq!(end, RecordingStatus::LimitReached);
    assert!(offsets.len() > 8000 && offsets.len() < 40_000, "{}", offsets.len());
    assert_eq!(offsets, (0..offsets.len() as i64).collect::<Vec<i64>>());
}

/// A file-system error and a truncation are the same for a mapping: SIGBUS.
#[test]
fn a_record_that_is_truncated_ends_and_the_program_continues() {
    let scene = TestProgram::new("lost.c", &[]).unwrap();
    for how in ["all", "part", "unlink", "thread", "masked", "own", "restore", "before", "after"] {
        let bare = scene.run(1, &[], &[how, "30000"]);
        let run = scene.record(1, &[], &[how, "30000"]);
        assert_eq!((run.code, &run.stdout, &run.files), (Some(0), &bare.stdout, &bare.files), "{how}: {run:?}");
        let said: Vec<&String> = run.stderr.iter().filter(|line| line.contains("profiler")).collect();
        assert_eq!(said.len(), 1, "{how}: {said:?}");
        assert!(said[0].contains("later calls are not recorded, the program continues"), "{how}: {said:?}");
        if how != "unlink" {
            let file = scene.file(0);
            assert_eq!(file.head().end, RecordingStatus::LimitReached, "{how}");
            let offsets = writes(&file);
            assert_eq!(offsets, (0..offsets.len() as i64).collect::<Vec<i64>>(), "{how}");
        }
    }
}

#[test]
fn a_file_is_known_by_its_inode_and_not_by_its_name() {
    let scene = TestProgram::new("names.c", &[]).unwrap();
    let run = scene.record(2, &[], &[]);
    assert_eq!(run.code, Some(0), "{run:?}");
    let out = scene.path("names.csv");
    beff_trace::merge::merge(&scene.path("profile"), &out, &beff_trace::merge::MergeOptions::default()).unwrap();
    let (head, calls) = beff_trace::text::read_rank(&out, 0).unwrap();
    let files: Vec<u32> = calls.filter_map(|call| call.unwrap().file).collect();
    assert_eq!(files, [0, 1, 0, 0, 0, 2, 0]);
    let data = scene.path("data").canonicalize().unwrap();
    let expected = ["a/f", "b/f"].map(|name| data.join(name).to_str().unwrap().to_owned());
    let paths: Vec<&String> = head.files.iter().map(|file| &file.path).collect();
    assert_eq!(paths, [&expected[0], &expected[1], "./link"]);
    assert_eq!(head.files[0].size_bytes, None);
    assert!(!head.files[0].fs_type.is_empty());
}
