//! Unusual programs, which must neither disturb the recording nor be disturbed by it.

mod support;

use std::collections::BTreeSet;

use beff_trace::raw::{Event, ProcessFile, BLOCK_BYTES};
use beff_trace::{Call, RecordingStatus};
use support::{ProgramRun, TestProgram};

fn calls(file: &ProcessFile) -> Vec<Call> {
    let call = |event| if let Event::Call(call) = event { Some(*call) } else { None };
    file.events().filter_map(call).collect()
}

fn calls_named(file: &ProcessFile, name: &str) -> Vec<Call> {
    calls(file).into_iter().filter(|call| call.function.name() == name).collect()
}

fn offsets(file: &ProcessFile) -> Vec<i64> {
    calls_named(file, "File_write_at").iter().filter_map(|call| call.offset).collect()
}

fn profiler_messages(run: &ProgramRun) -> Vec<&String> {
    run.stderr.iter().filter(|line| line.contains("profiler")).collect()
}

#[test]
fn a_rank_that_is_no_longer_recorded_keeps_nobody_waiting() {
    let scene = TestProgram::new("ends.c", &[]).unwrap();
    let limit = (4 * BLOCK_BYTES).to_string();
    for clocks in [vec![], vec![("BEFF_PROFILE_CLOCKS", "always")]] {
        let mut variables = vec![("BEFF_PROFILE_LIMIT_BYTES", limit.as_str())];
        variables.extend(clocks);
        let run = scene.record(2, &variables, &["uneven", "40000"]);
        assert_eq!(
            (run.code, run.stdout.concat()),
            (Some(0), "unevenuneven".to_owned()),
            "{variables:?} {:?}",
            run.stderr
        );
        assert_eq!(
            (scene.file(0).head().end, scene.file(1).head().end),
            (RecordingStatus::Complete, RecordingStatus::LimitReached)
        );
        assert_eq!(offsets(&scene.file(0)).len(), 10);
    }
}

#[test]
fn a_rank_without_the_library_keeps_nobody_waiting() {
    let scene = TestProgram::new("ends.c", &[]).unwrap();
    let run = scene.record(2, &[], &["half", "100"]);
    // The launcher may join lines of two ranks.
    assert_eq!((run.code, run.stdout.concat()), (Some(0), "halfhalf".to_owned()), "{:?}", run.stderr);
    assert_eq!((scene.file(0).head().end, offsets(&scene.file(0)).len()), (RecordingStatus::Complete, 100));
    assert!(!scene.path("profile/rank-1.beff").exists());
}

#[test]
fn files_of_threads_at_one_address_are_kept_apart() {
    let scene = TestProgram::new("ends.c", &[]).unwrap();
    // One heap, so that one thread reuses what another one frees.
    let one_heap = [("MALLOC_ARENA_MAX", "1"), ("GLIBC_TUNABLES", "glibc.malloc.tcache_count=0")];
    let run = scene.record(1, &one_heap, &["opens", "1500"]);
    assert_eq!(run.stdout, ["opens"], "{:?}", run.stderr);
    let file = scene.file(0);
    let (opens, writes, closes) =
        (calls_named(&file, "File_open"), calls_named(&file, "File_write_at"), calls_named(&file, "File_close"));
    let handles = |calls: &[Call]| calls.iter().filter_map(|call| call.handle).collect::<BTreeSet<_>>();
    assert_eq!((opens.len(), writes.len(), closes.len()), (6001, 6000, 6001));
    let (opens, writes, closes) = (handles(&opens), handles(&writes), handles(&closes));
    assert_eq!((opens.len(), writes.len(), closes.len()), (6001, 6000, 6001));
}

#[test]
fn the_largest_size_of_a_file_ends_the_record_and_not_the_program() {
    let scene = TestProgram::new("ends.c", &[]).unwrap();
    let run = scene.record(1, &[], &["size", "20000"]);
    assert_eq!(
        (run.stdout.as_slice(), run.files["file-0"].len()),
        (&["size".to_owned()][..], 20_000),
        "{:?}",
        run.stderr
    );
    let said = profiler_messages(&run);
    assert!(said.len() == 1 && said[0].contains("RLIMIT_FSIZE"), "{said:?}");
    let (file, end) = (scene.file(0), scene.file(0).head().end);
    let offsets = offsets(&file);
    assert_eq!(end, RecordingStatus::LimitReached);
    assert!(offsets.len() > 1000 && offsets.len() < 20_000, "{}", offsets.len());
    assert_eq!(offsets, (0..offsets.len() as i64).collect::<Vec<i64>>());
}

#[test]
fn what_is_said_goes_into_no_file_of_the_program() {
    let scene = TestProgram::new("ends.c", &[]).unwrap();
    let limit = (4 * BLOCK_BYTES).to_string();
    let run = scene.record(1, &[("BEFF_PROFILE_LIMIT_BYTES", &limit)], &["stderr", "40000"]);
    assert_eq!(run.stdout, ["stderr"], "{:?}", run.stderr);
    assert!(run.files["file-0"] == [b'x'; 40_000], "{}", String::from_utf8_lossy(&run.files["file-0"][..100]));
    assert_eq!(scene.file(0).head().end, RecordingStatus::LimitReached);
}

#[test]
fn a_handler_that_aborts_is_an_abort() {
    let scene = TestProgram::new("ends.c", &[]).unwrap();
    let run = scene.record(1, &[], &["handler", "50"]);
    let file = scene.file(0);
    assert_eq!((file.head().end, offsets(&file)), (RecordingStatus::Aborted, (0..50).collect()), "{:?}", run.stderr);
}

#[test]
fn without_mapped_files_nothing_of_other_threads_is_lost() {
    let scene = TestProgram::new("unmapped.c", &["-rdynamic"]).unwrap();
    for calls in [300, 9000] {
        // The mmap hooks of UCX would bypass the mmap of the program.
        let run = scene.record(1, &[("UCX_MEM_MMAP_HOOK_MODE", "none")], &[&calls.to_string()]);
        assert_eq!(run.stdout, ["unmapped"], "{:?}", run.stderr);
        let file = scene.file(0);
        let mut offsets = offsets(&file);
        offsets.sort_unstable();
        assert_eq!(file.head().end, RecordingStatus::Complete);
        assert_eq!((offsets.len(), offsets), (4 * calls, (0..4 * calls as i64).collect()));
    }
}

#[test]
fn what_a_refused_call_was_given_is_not_asked_about() {
    let scene = TestProgram::new("ends.c", &[]).unwrap();
    let run = scene.record(1, &[], &["stale", "5"]);
    assert_eq!(run.stdout, ["stale"], "{:?}", run.stderr);
    let file = scene.file(0);
    assert_eq!(file.head().end, RecordingStatus::Complete);
    let failed: Vec<Call> = calls(&file).into_iter().filter(|call| call.error.is_some()).collect();
    let types: Vec<_> = failed.iter().map(|call| call.datatype.or(call.etype).or(call.filetype)).collect();
    assert_eq!(types.iter().map(Option::is_some).collect::<Vec<_>>(), [false, true, false], "{failed:?}");
}

#[test]
fn parts_that_are_the_same_are_looked_at_once() {
    let scene = TestProgram::new("ends.c", &[]).unwrap();
    let run = scene.record(1, &[], &["nested", "5"]);
    assert_eq!(run.stdout, ["nested"], "{:?}", run.stderr);
    let file = scene.file(0);
    assert_eq!(file.head().end, RecordingStatus::Complete);
    assert!(calls_named(&file, "File_write_at").iter().all(|call| call.datatype.is_some() && call.bytes == Some(1)));
    let types = file.events().filter(|event| matches!(event, Event::Type { .. })).count();
    assert!(types == 7 || types == 4, "{types}");
}

/// Processes that a rank starts have the environment that they would have without the profiler; those that start ranks have it whole.
#[test]
fn processes_that_a_rank_starts_do_not_see_the_profiler() {
    let scene = TestProgram::new("children.c", &[]).unwrap();
    let other = scene.path("x.so");
    let status =
        std::process::Command::new("cc").args(["-shared", "-fPIC", "-x", "c", "/dev/null", "-o"]).arg(&other).status();
    assert!(status.unwrap().success());
    let library = support::library();
    let (library, other) = (library.to_str().unwrap(), other.to_str().unwrap());
    for (preload, seen) in [
        (library.to_owned(), ""),
        (format!("{library}:{other}"), "LD_PRELOAD=x.so "),
        (format!("{other} {library}"), "LD_PRELOAD=x.so "),
    ] {
        let variables = [("LD_PRELOAD", preload.as_str()), ("BEFF_PROFILE_LAUNCHED", "1")];
        let run = scene.record(1, &variables, &["processes"]);
        let expected = format!("system {seen}popen {seen}fork {seen}spawn {seen}end");
        assert_eq!((run.code, run.stdout.concat()), (Some(0), expected), "{run:?}");
    }
    // The launcher passes the variables on to spawned ranks only if it has set them itself.
    let profile = scene.path("profile");
    std::fs::remove_dir_all(&profile).unwrap();
    std::fs::create_dir(&profile).unwrap();
    let launcher = std::env::var("BEFF_MPIRUN").unwrap_or_else(|_| "mpirun".into());
    let mut command = std::process::Command::new("timeout");
    command.arg("30").args(launcher.split_whitespace());
    for (name, value) in [("LD_PRELOAD", library), ("BEFF_PROFILE_DIR", profile.to_str().unwrap())] {
        if cfg!(open_mpi) {
            command.arg("-x").arg(format!("{name}={value}"));
        } else {
            command.args(["-genv", name, value]);
        }
    }
    let run =
        command.args(["-n", "1"]).arg(&scene.program).arg("x").arg(scene.path("data")).arg("ranks").output().unwrap();
    if !run.status.success() && !cfg!(open_mpi) {
        return eprintln!("SKIPPED: MPI_Comm_spawn does not work with this MPI");
    }
    let stdout = String::from_utf8_lossy(&run.stdout);
    assert_eq!((run.status.code(), &*stdout), (Some(0), "system popen fork spawn end\n"), "{run:?}");
    let worlds = std::fs::read_dir(scene.path("profile")).unwrap().map(|entry| entry.unwrap().path());
    let spawned: Vec<_> = worlds.filter(|path| path.is_dir()).collect();
    assert_eq!(spawned.len(), 1, "the spawned world: {run:?}");
    assert!(spawned[0].join("rank-0.beff").exists(), "{spawned:?}");
}

/// Not those of the library itself, of which MPI_File_delete and MPI_File_open have some.
#[test]
fn posix_calls_that_change_files_of_mpi_io_are_in_the_profile() {
    let scene = TestProgram::new("posix.c", &[]).unwrap();
    let run = scene.record(1, &[], &[]);
    assert_eq!((run.code, run.stdout.concat().as_str()), (Some(0), "as before"), "{run:?}");
    let out = scene.path("posix.csv");
    beff_trace::merge::merge(&scene.path("profile"), &out, &beff_trace::merge::MergeOptions::default()).unwrap();
    let (head, calls) = beff_trace::text::read_rank(&out, 0).unwrap();
    let text = |call: &Call| {
        let mut line = format!("{} {}", call.function.name(), call.file.unwrap());
        call.target.iter().for_each(|target| line += &format!(" to {target}"));
        call.offset.iter().for_each(|offset| line += &format!(" offset {offset}"));
        call.amode.iter().filter(|mode| mode.has("create")).for_each(|_| line += " create");
        call.error.iter().for_each(|error| line += &format!(" {}", error.name()));
        line
    };
    let of_files = |call: &Call| call.function.role() == beff_trace::Role::Posix;
    let lines: Vec<String> = calls.map(Result::unwrap).filter(of_files).map(|call| text(&call)).collect();
    let expected = [
        "truncate 0 offset 3",
        "truncate 0 offset 5",
        "rename 0 to 1",
        "open_truncate 0 create",
        "open_truncate 0 create",
        "open_truncate 0 create",
        "unlink 0",
        "unlink 1",
        "unlink 0 MPI_ERR_NO_SUCH_FILE",
    ];
    assert_eq!(lines, expected);
    assert_eq!(head.files.len(), 2, "{:?}", head.files);
}
