//! Room before direct first writes: files are as long as their data behind it, however it is made, by whom and whatever hinders it.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::hidden_errors::faulty;
use crate::memory_fuse;
use crate::patient;
use crate::support::{document, items, number, skip, succeed, Launch, Mount, Run, Scratch, SHORT};

/// What an ext4 keeps of its own about the extents of a file.
const TREE_BYTES: u64 = 64 << 10;

/// First writes that have moved something.
fn written<'a>(result: &'a Value, backend: &str) -> Vec<&'a Value> {
    let is_one = |p: &&Value| p["access"] == "write" && p["backend"] == backend && number(&p["calls"]) > 0;
    items(&result["patterns"]).iter().filter(is_one).collect()
}

fn strategy(p: &Value) -> &str {
    p["strategy"].as_str().unwrap()
}

fn room_seconds(p: &Value) -> f64 {
    p["intervals"]["preallocate_seconds"].as_f64().unwrap()
}

fn bytes_of(patterns: &[&Value], key: &str) -> u64 {
    patterns.iter().map(|p| number(&p[key])).sum()
}

/// How long the file of a type is to be: exactly, or None where a pattern of a segment was cut.
fn length(result: &Value, of: &Value, own: &[&Value]) -> Option<u64> {
    let ranks = number(&of["ranks"]);
    let one: u64 = own.iter().map(|p| number(&p["calls"]) * number(&p["call_bytes"])).sum();
    match number(&of["pattern_type"]) {
        2 => Some(one),
        0 | 1 => Some(bytes_of(own, "moved_bytes")),
        _ if own.iter().any(|p| p["ended"]["by"] != "count") => None,
        _ => Some((ranks - 1) * number(&of["segment_bytes"]) + one),
    }
    .inspect(|length| assert!(*length > 0, "{result}"))
}

fn check_lengths(result: &Value, backend: &str, directory: &Path, what: &str) {
    let writes = written(result, backend);
    for of in items(&result["types"]).iter().filter(|of| of["backend"] == backend) {
        let number_of_type = number(&of["pattern_type"]);
        let own: Vec<&Value> = writes.iter().copied().filter(|p| p["pattern_type"] == of["pattern_type"]).collect();
        let (is, what) = (number(&of["file_bytes"]), format!("{what}, {} of type {number_of_type}", of["access"]));
        let Some(length) = length(result, of, &own) else {
            assert!(is <= number(&of["ranks"]) * number(&of["segment_bytes"]), "{what}: {is}");
            continue;
        };
        // The last sector of a segment is the rank's own up to its end.
        let most = if number_of_type < 3 { length } else { length.next_multiple_of(4096) };
        assert!((length..=most).contains(&is), "{what}: {is} and not {length}");
    }
    for name in crate::support::list(&directory.join(backend)) {
        let stat = fs::metadata(directory.join(backend).join(&name)).unwrap();
        if name.contains("type0") || name.contains("type1") || name.contains("type2") {
            let most = stat.len().next_multiple_of(4096) + TREE_BYTES;
            assert!(stat.blocks() * 512 <= most, "{what}: {name} of {} has {} blocks", stat.len(), stat.blocks());
        }
    }
}

fn direct(scratch: &Scratch, ranks: u64, args: &[&str]) -> Run {
    let own = ["--space", "300M", "--keep-files", "--run-dir", "run", "--verify", "full"];
    Launch::new(ranks).args(SHORT).args(own).args(args).into(scratch).run()
}

/// The option for a policy.
fn room(policy: &str) -> [&str; 2] {
    match policy {
        "zeros" => ["--set", "preallocate=zeros"],
        "size" => ["--set", "preallocate=size"],
        usual => ["--preallocate", usual],
    }
}

/// Each policy has two numbers of ranks and both drivers in all of them, and every type; where both drivers take turns, each round ends with its own sync.
fn files_are_as_long_as_their_data(ranks: u64, policies: &[(&str, &[&str])]) {
    for (policy, backends) in policies {
        let scratch = Scratch::new();
        let names = backends.join(",");
        let run = direct(&scratch, ranks, &["--backend", &names, "--direct", "auto", room(policy)[0], room(policy)[1]]);
        run.expect(0);
        let (result, what) = (document(&scratch), format!("{names}, {policy}, {ranks} ranks"));
        assert_eq!(result["corruptions"], Value::Array(Vec::new()), "{what}");
        assert_eq!(result["config"]["preallocate"], *policy);
        for backend in *backends {
            if !check_preallocation(&result, backend, policy, &what) {
                return skip("no direct I/O on the disk of the build: no room is made");
            }
            check_lengths(&result, backend, &scratch.join("disk/run"), &what);
        }
    }
}

/// What is told and timed of the room; false if nothing was direct.
fn check_preallocation(result: &Value, backend: &str, policy: &str, what: &str) -> bool {
    let expected = match policy {
        "off" => "",
        "size" => "preallocated by ftruncate",
        _ => "preallocated by fallocate",
    };
    let writes = written(result, backend);
    let mine: Vec<&Value> = writes.iter().copied().filter(|p| p["direct"] == true).collect();
    let is_separate = |p: &Value| number(&p["pattern_type"]) == 2 || number(&p["ranks"]) == 1;
    for p in &mine {
        assert!(strategy(p).contains(expected), "{what}: {}", strategy(p));
        // Chunks of a rank alone that would cut blocks go in whole ones.
        let cuts = number(&p["chunk_bytes"]) > 4096 && !number(&p["chunk_bytes"]).is_multiple_of(4096);
        let in_blocks = cuts && is_separate(p) && !strategy(p).contains("two-phase");
        assert!(!in_blocks || strategy(p).contains("whole blocks of 4096"), "{what}: {}", strategy(p));
        assert_eq!(strategy(p).contains("preallocated"), policy != "off", "{what}: {}", strategy(p));
        assert_eq!(p["allocations_in_clock"], 0, "{what}, pattern {}", p["pattern"]);
    }
    let zeros = mine.iter().any(|p| strategy(p).contains("zeros written"));
    assert_eq!(zeros, policy == "zeros" && !mine.is_empty(), "{what}");
    let preallocate_seconds: f64 = mine.iter().map(|p| room_seconds(p)).sum();
    assert!(policy == "off" || mine.is_empty() || preallocate_seconds > 0.0, "{what}: room took no time");
    for p in items(&result["patterns"]).iter().filter(|p| p["access"] != "write") {
        assert!(!strategy(p).contains("preallocated"), "{what}: {}", strategy(p));
    }
    !mine.is_empty()
}

const BOTH: &[&str] = &["posix", "uring"];
const POSIX: &[&str] = &["posix"];
const URING: &[&str] = &["uring"];

#[test]
fn files_of_one_rank_are_as_long_as_their_data() {
    let policies = [("auto", URING), ("native", POSIX), ("size", URING)];
    files_are_as_long_as_their_data(1, &policies);
}

#[test]
fn files_of_two_ranks_are_as_long_as_their_data() {
    let policies = [("auto", BOTH), ("zeros", POSIX), ("off", URING)];
    files_are_as_long_as_their_data(2, &policies);
}

#[test]
fn files_of_three_ranks_are_as_long_as_their_data() {
    let policies = [("native", URING), ("zeros", URING), ("size", POSIX), ("off", POSIX)];
    files_are_as_long_as_their_data(3, &policies);
}

/// The first write past a limit of file sizes fails by itself; that room was refused before is told beside.
#[test]
fn a_limit_of_file_sizes_ends_the_run_at_a_write() {
    if crate::support::launcher().mpi != "mpich" {
        return skip("the launcher of this MPI writes files of its own, which the limit would hit first");
    }
    let scratch = Scratch::new();
    let launch = Launch::through(&["prlimit", "--fsize=16777216:16777216"], 1);
    let args = ["-T", "20s", "--memory-per-process", "64M", "--backend", "uring", "--types", "2", "--space", "200M"];
    let run = launch.args(args).into(&scratch).run();
    run.expect(1);
    let message = document(&scratch)["errors"][0]["message"].as_str().unwrap().to_owned();
    assert!(message.contains("File too large") && !message.contains("fallocate"), "{message}");
}

/// Reservations find no space, writes do: it goes on without room, and that is told.
#[test]
fn without_space_for_preallocation_the_run_continues() {
    for backend in ["posix", "uring"] {
        let args = ["--backend", backend, "--direct", "auto", "--types", "2", "--verify", "full"];
        let (run, result, hit) = faulty("room enospc 3 n2-type2", &args);
        if hit.is_none() {
            return skip("no direct I/O on the disk of the build: no room is made");
        }
        run.expect(0);
        assert_eq!(items(&result["errors"]), [] as [Value; 0]);
        let without: Vec<&str> = written(&result, backend).into_iter().map(strategy).collect();
        let reports =
            without.iter().filter(|s| s.contains("; not preallocated from offset") && s.contains("No space left"));
        assert!(reports.count() > 0, "{without:?}");
        let of = &items(&result["types"])[0];
        assert_eq!(Some(number(&of["file_bytes"])), length(&result, of, &written(&result, backend)));
    }
}

/// In a two-phase write the ranks wait for each other: one that cannot make room comes all the same, and tells its error.
#[test]
fn a_storage_that_fails_strands_nobody() {
    for (args, file) in [(&["--types", "0"][..], "n2-type0"), (&["--types", "2"], "n2-type2")] {
        let args: Vec<&str> = ["--backend", "uring"].iter().chain(args).copied().collect();
        for n in [1, 6] {
            let (run, result, hit) = faulty(&format!("room eio {n} {file}"), &args);
            if hit.is_none() {
                return skip("no direct I/O on the disk of the build: no room is made");
            }
            run.expect(1);
            let message = items(&result["errors"])[0]["message"].as_str().unwrap();
            assert!(message.contains("fallocate on ") && message.contains("Input/output error"), "{message}");
            assert!(message.contains(file) && message.contains("at offset"), "{message}");
        }
    }
}

/// All of the space of a small disk: where blocks for more than the data were kept, the run would end early.
#[test]
fn a_run_that_fits_is_not_ended_by_preallocation() {
    let scratch = Scratch::new();
    let _mount = match ext4(&scratch, 96 << 20, &[]) {
        Ok(mount) => mount,
        Err(reason) => return skip(&format!("no small ext4 can be mounted: {reason}")),
    };
    let args = ["--backend", "uring", "--types", "2", "--space", "100%", "--run-dir", "run", "--verify", "full"];
    let run = Launch::new(2)
        .args(["-T", "40s", "--memory-per-process", "64M", "--repeat", "off"])
        .args(args)
        .into(&scratch)
        .run();
    let result = document(&scratch);
    if run.code() != 0 {
        // What the file system keeps for itself is nobody's fault; room is never the cause.
        let message = items(&result["errors"])[0]["message"].as_str().unwrap();
        assert!(!message.contains("fallocate"), "{message}; {run}");
    }
    assert!(written(&result, "uring").iter().any(|p| p["ended"]["by"] == "space"), "the disk was not filled; {run}");
}

/// An ext4 of its own in `scratch`/disk.
fn ext4(scratch: &Scratch, bytes: u64, features: &[&str]) -> Result<Mount, String> {
    let image = scratch.join("image");
    let created = fs::File::create(&image).and_then(|file| file.set_len(bytes));
    created.map_err(|e| e.to_string())?;
    succeed(Command::new("mkfs.ext4").args(["-q", "-m", "0"]).args(features).arg(&image))?;
    Mount::new(&["-o", "loop", &image.to_string_lossy()], &scratch.join("disk"))
}

/// An ext4 without extents does direct I/O and has no fallocate.
#[test]
fn a_file_system_that_refuses_fallocate_is_reported_and_refused_with_native() {
    let scratch = Scratch::new();
    let _mount = match ext4(&scratch, 512 << 20, &["-O", "^extents,^64bit,^metadata_csum"]) {
        Ok(mount) => mount,
        Err(reason) => return skip(&format!("no ext4 without extents can be mounted: {reason}")),
    };
    let args = ["--backend", "uring", "--types", "0,2", "--space", "200M"];
    let run = |policy: &str| Launch::new(2).args(SHORT).args(args).args(room(policy)).into(&scratch).run();
    run("auto").expect(0);
    let result = document(&scratch);
    for p in written(&result, "uring") {
        assert!(strategy(p).contains("not preallocated: fallocate refused by ext4: "), "{}", strategy(p));
        assert!(p["direct"] == true && room_seconds(p) < 0.01, "{p}");
    }
    clear(&scratch);
    run("size").expect(0);
    assert!(written(&document(&scratch), "uring").iter().all(|p| strategy(p).contains("preallocated by ftruncate")));
    for policy in ["native", "zeros"] {
        clear(&scratch);
        let refused = run(policy);
        refused.expect(2);
        assert!(refused.stderr.contains("nothing was measured"), "{refused}");
        let result = document(&scratch);
        assert_eq!(written(&result, "uring"), [] as [&Value; 0]);
        for p in items(&result["patterns"]).iter().filter(|p| p["access"] == "write") {
            assert_eq!(p["ended"]["by"], "not_run", "{p}");
            let why = p["ended"]["reason"].as_str().unwrap();
            assert!(why.contains("fallocate refused by ext4") && why.contains("--preallocate auto"), "{why}");
        }
    }
}

/// Success of fallocate is not believed: blocks are looked for.
#[test]
fn a_file_system_that_allocates_no_blocks_is_reported_and_refused_with_native() {
    let scratch = Scratch::new();
    let _mount = match ext4(&scratch, 512 << 20, &[]) {
        Ok(mount) => mount,
        Err(reason) => return skip(&format!("no ext4 can be mounted: {reason}")),
    };
    let library = patient::library_of("no_blocks", include_str!("../planted/no_blocks.c"));
    let both = format!("{}:{}", patient::library().display(), library.display());
    let args = ["--backend", "uring", "--types", "0,2", "--space", "200M"];
    let run = |policy: &str| {
        let launch = Launch::new(2).env("LD_PRELOAD", &both).args(SHORT).args(args);
        launch.args(room(policy)).into(&scratch).run()
    };
    run("auto").expect(0);
    let result = document(&scratch);
    let writes = written(&result, "uring");
    assert!(!writes.is_empty());
    for p in writes {
        let expected = "not preallocated: fallocate accepted by ext4, which allocated no blocks";
        assert!(strategy(p).contains(expected), "{}", strategy(p));
        assert!(p["direct"] == true && room_seconds(p) < 0.01, "{p}");
    }
    clear(&scratch);
    let refused = run("native");
    refused.expect(2).says(&["nothing was measured"]);
    let result = document(&scratch);
    for p in items(&result["patterns"]).iter().filter(|p| p["access"] == "write") {
        assert_eq!(p["ended"]["by"], "not_run", "{p}");
        let why = p["ended"]["reason"].as_str().unwrap();
        assert!(why.contains("which allocated no blocks") && why.contains("--preallocate auto"), "{why}");
    }
}

/// Without extents the kernel writes new blocks inside of a file through its page cache, whatever flag the file has. A block that is
/// written both ways at once loses data, so nobody shares one: neither ranks (type 0) nor calls of one rank (type 2).
#[test]
fn blocks_that_the_kernel_caches_by_itself_are_not_shared() {
    let scratch = Scratch::new();
    let _mount = match ext4(&scratch, 512 << 20, &["-O", "^extents,^64bit,^metadata_csum"]) {
        Ok(mount) => mount,
        Err(reason) => return skip(&format!("no ext4 without extents can be mounted: {reason}")),
    };
    let args = ["-T", "4s", "--memory-per-process", "64M", "--types", "0,2", "--space", "300M", "--verify", "full"];
    let run = |backend: &str, direct: &str| {
        clear(&scratch);
        Launch::new(2).args(args).args(["--backend", backend, "--direct", direct]).into(&scratch).run()
    };
    for backend in ["uring", "posix"] {
        run(backend, "auto").expect(0);
        let result = document(&scratch);
        assert_eq!(items(&result["errors"]), [] as [Value; 0]);
        for p in written(&result, backend) {
            assert!(p["direct"] == true && !strategy(p).contains("aligned to 512"), "{}", strategy(p));
            assert!(strategy(p).contains("the file has no extents"), "{}", strategy(p));
            let shares = p["pattern_type"] == 0 && number(&p["chunk_bytes"]) < 4096;
            assert!(!shares || strategy(p).contains("two-phase write, O_DIRECT, aligned to 4096"), "{}", strategy(p));
        }
        let refused = run(backend, "required");
        refused.expect(2);
        assert!(refused.stderr.contains("nothing was measured"), "{refused}");
        let result = document(&scratch);
        assert_eq!(written(&result, backend), [] as [&Value; 0]);
        let why = items(&result["patterns"])[0]["ended"]["reason"].as_str().unwrap();
        assert!(why.contains("the file has no extents"), "{why}");
    }
}

/// For the outputs of the next run.
fn clear(scratch: &Scratch) {
    for output in scratch.list(".").iter().filter(|name| name.starts_with("out.")) {
        fs::remove_file(scratch.join(output)).unwrap();
    }
}

/// FUSE tells no alignment, and accepts any: what it did with a transfer is unknown, and so not called direct.
#[test]
fn behind_fuse_direct_io_is_accepted_and_unproven() {
    for (policy, code) in [("auto", 0), ("size", 0), ("native", 2)] {
        let scratch = Scratch::new();
        let _mounted = match memory_fuse::mount(&scratch.join("disk"), "memory", true) {
            Ok(mounted) => mounted,
            Err(reason) => return skip(&format!("no FUSE file system can be mounted: {reason}")),
        };
        let args = ["--backend", "uring", "--types", "2", "--space", "100M", room(policy)[0], room(policy)[1]];
        Launch::new(1).args(SHORT).args(args).into(&scratch).run().expect(code);
        let result = document(&scratch);
        assert_eq!(result["manifest"]["storage"]["direct_align_basis"], "trial-unproven");
        let writes = written(&result, "uring");
        assert_eq!(writes.is_empty(), code == 2, "this file system has no fallocate");
        for p in writes {
            assert_eq!(p["direct"], Value::Null);
            assert!(strategy(p).contains("accepted, bypass of the page cache unproven"), "{}", strategy(p));
        }
    }
}

#[test]
fn without_an_effect_the_option_is_refused() {
    for (args, reason) in [
        (&["--backend", "mpiio"][..], "preallocate has no effect with --backend mpiio"),
        (&["--backend", "mmap,null"], "preallocate has no effect with --backend mmap,null"),
        (&["--backend", "posix"], "no write is direct"),
        (&["--backend", "uring", "--direct", "off"], "no write is direct"),
    ] {
        for policy in ["native", "zeros", "size", "off"] {
            let run = Launch::alone().args(SHORT).args(args).args(room(policy)).run();
            run.expect(2).says(&[reason]);
        }
    }
}
