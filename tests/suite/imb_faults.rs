//! IMB-IO: damaged files, full disks, signals.

use std::fs::{self, File};
use std::io::Write;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use serde_json::Value;

use crate::imb::{self, is_complete, launch, rows, FEW};
use crate::memory_fuse;
use crate::support::{
    document, items, journal, launcher, number, signal, skip, succeed, Launch, Mount, Run, Running, Scratch, PROGRAM,
};

const DAMAGED: &str = "S_Write_Indv,S_Read_Indv,P_Write_Shared,P_Read_Shared,P_Write_Priv,C_Read_Indv,S_IRead_Expl";

/// Rows of 4096 bytes must be wrong, those of 0 have nothing to damage.
fn check_damage(result: &Value, run: &Run) {
    for row in rows(result) {
        let what = format!("{} {}; {run}", row["benchmark"], row["mode"]);
        assert!(is_complete(row), "{what}");
        assert_eq!(number(&row["bytes_wrong"]) > 0, row["sample_bytes"] == 4096, "{what}");
    }
    let all = items(&result["corruptions"]);
    assert_eq!(all.len(), rows(result).iter().filter(|row| row["sample_bytes"] == 4096).count(), "{all:?}");
    for c in all {
        assert!(c["file"].as_str().is_some_and(|f| f.starts_with("mpiio/row")), "{c}");
        assert_eq!(c["diagnosis"], "one bit flipped", "{c}");
        assert_eq!((number(&c["actual"]) ^ number(&c["expected"]), number(&c["bytes_wrong"])), (0x10, 1), "{c}");
        // What was read in any order has no place that could be named.
        assert_eq!(c["offset_bytes"].is_u64(), c["benchmark"] != "P_Read_Shared", "{c}");
    }
}

#[test]
fn a_flipped_bit_is_found_and_named() {
    let scratch = Scratch::new();
    let run = launch(2, &scratch, &format!("{DAMAGED} --npmin 2 {FEW} --msglog 12:12 --inject")).run();
    run.expect(3);
    let result = document(&scratch);
    check_damage(&result, &run);
    assert_eq!(journal(&scratch, "corruption").len(), items(&result["corruptions"]).len());
    assert_eq!(result["derived"]["verdict"]["verdict"], "wrong_data");
    for part in ["*** WRONG DATA", "! data wrong", "one bit flipped", "IMB-IO = WRONG DATA"] {
        assert!(run.stdout.contains(part), "no '{part}'; {run}");
    }
}

/// The storage has another byte than was written, the page cache of the client the right one.
#[test]
fn damage_behind_the_page_cache_is_found() {
    let scratch = Scratch::new();
    let lie = memory_fuse::Lie { begin: "row", offset_bytes: 4097 };
    let _mount = match memory_fuse::mount_lying(&scratch.join("disk"), "mergerfs", false, Some(lie)) {
        Ok(mount) => mount,
        Err(reason) => return skip(&format!("no FUSE file system can be mounted: {reason}")),
    };
    let names = "S_Write_Indv,P_Write_Indv,P_Write_Shared,P_Write_Priv,C_Write_Indv";
    let run = launch(2, &scratch, &format!("{names} --backend mpiio,posix --npmin 2 {FEW} --msglog 16:16")).run();
    run.expect(3);
    let result = document(&scratch);
    let moved: Vec<_> = rows(&result).iter().filter(|row| row["sample_bytes"] == 1 << 16 && is_complete(row)).collect();
    assert!(moved.len() >= 5, "{run}");
    for row in moved {
        let what = format!("{} {} {}; {run}", row["backend"], row["benchmark"], row["mode"]);
        // Each rank has a file of its own, or all have one.
        let files = if row["benchmark"] == "P_Write_Priv" { 2 } else { 1 };
        assert_eq!(number(&row["bytes_wrong"]), files, "{what}");
    }
}

/// More than memory holds at once: damage in what came first is not covered by what came later.
#[test]
fn reads_of_any_volume_are_compared() {
    let names = "S_Read_Indv,P_Read_Shared,P_IRead_Expl,C_Read_Indv";
    let words = format!("{names} --npmin 2 --iter 1000,130,2 --msglog 20:20");
    let scratch = Scratch::new();
    let (run, result) = imb::run(2, &scratch, &words);
    assert_eq!(result["derived"]["verdict"]["verdict"], "verified", "{run}");
    for row in rows(&result).iter().filter(|row| row["sample_bytes"] != 0) {
        // Of what is read into one buffer the last sample is compared twice.
        let compared = if row["benchmark"] == "P_IRead_Expl" { 3 * 130 + 1 } else { 130 + 1 };
        let found = ["iterations", "moved_bytes", "bytes_checked"].map(|key| number(&row[key]));
        assert_eq!(found, [130, 130 << 20, compared << 20], "{}; {run}", row["benchmark"]);
        assert_eq!(number(&row["allocations_in_clock"]), 0, "{}", row["benchmark"]);
    }
    // In the middle: step 65, whose window is used again by step 129.
    let scratch = Scratch::new();
    let run = launch(2, &scratch, &(words + " --inject")).run();
    run.expect(3);
    let result = document(&scratch);
    let wrong: Vec<_> = items(&result["corruptions"]).iter().map(|c| number(&c["bytes_wrong"])).collect();
    assert_eq!(wrong, [1; 4], "{run}");
    let places: Vec<_> = items(&result["corruptions"]).iter().filter_map(|c| c["offset_bytes"].as_u64()).collect();
    assert_eq!(places, [65 << 20; 3], "all but P_Read_Shared, where no place can be named; {run}");
}

#[test]
fn wrong_rows_are_comments_in_the_columns_of_the_release() {
    let scratch = Scratch::new();
    let run = launch(2, &scratch, &format!("{DAMAGED} --npmin 2 {FEW} --msglog 12:12 --inject --imb-format")).run();
    run.expect(3).says(&["not all rows are valid"]);
    // Behind what was written.
    let [wrote, said] = ["wrote ", "not all rows are valid"].map(|words| run.stderr.find(words));
    assert!(wrote.is_some() && wrote < said, "{run}");
    check_damage(&document(&scratch), &run);
    assert!(run.stdout.contains("# 4096 3 WRONG DATA: 1 byte of 12288 compared"), "{run}");
    let numbers = run.stdout.lines().filter(|line| !line.starts_with('#') && line.trim_start().starts_with("4096 "));
    assert_eq!(numbers.count(), 0, "{run}");
}

/// An ext4 of its own; the reason if it cannot be made here.
fn small_disk(scratch: &Scratch, dir: &Path) -> Result<Mount, String> {
    let image = scratch.join("image");
    let created = File::create(&image).and_then(|file| file.set_len(192 << 20));
    created.map_err(|e| e.to_string())?;
    succeed(Command::new("mkfs.ext4").args(["-q", "-m", "0"]).arg(&image))?;
    let image = image.to_string_lossy().into_owned();
    Mount::new(&["-o", "loop", &image], dir)
}

/// Takes what is free, again and again: the files of a row that failed are removed.
fn keep_full(path: &Path, over: &AtomicBool) {
    let mut file = File::create(path).unwrap();
    while !over.load(Ordering::Relaxed) {
        for size in [1 << 20, 4096] {
            let block = vec![0xA5_u8; size];
            while file.write_all(&block).is_ok() && !over.load(Ordering::Relaxed) {}
        }
        thread::sleep(Duration::from_millis(2));
    }
}

/// A run whose disk becomes full behind its first row of 1 MiB.
fn on_a_full_disk(scratch: &Scratch, backend: &str, names: &str) -> Result<Run, String> {
    let disk = scratch.join("disk");
    let _mount = small_disk(scratch, &disk).map_err(|reason| format!("no small ext4 can be mounted: {reason}"))?;
    let words = format!("{names} --backend {backend} --npmin 2 --iter 40,40,40 --msglog 20:20 --time 2");
    let mut running = launch(2, scratch, &words).start();
    let out = scratch.join("out.jsonl");
    running.until("a row", || fs::read_to_string(&out).is_ok_and(|text| text.contains(r#""sample_bytes":1048576"#)));
    let over = AtomicBool::new(false);
    let run = thread::scope(|scope| {
        scope.spawn(|| keep_full(&disk.join("ballast"), &over));
        // Also if waiting fails: the scope ends with the thread.
        let run = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| running.wait()));
        over.store(true, Ordering::Relaxed);
        run
    });
    let run = run.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    println!("{backend}: {:.1} s", run.seconds);
    Ok(run)
}

fn becomes_full(backend: &str, names: &str) {
    let scratch = Scratch::new();
    let run = match on_a_full_disk(&scratch, backend, names) {
        Ok(run) => run,
        Err(reason) => return skip(&reason),
    };
    check_full(&run, &scratch, backend);
}

/// Rows without room are errors, the others go on; nothing without room has a number that looks right.
fn check_full(run: &Run, scratch: &Scratch, backend: &str) {
    let result = document(scratch);
    let (rows, errors) = (rows(&result), items(&result["errors"]));
    let failed: Vec<_> = rows.iter().filter(|row| row["ended"]["by"] == "error").collect();
    assert!(!failed.is_empty(), "{run}");
    assert_eq!(errors.len(), failed.len());
    assert_eq!(result["setup"]["rows"], rows.len(), "rows are missing; {run}");
    for row in &failed {
        assert_eq!((&row["times"], &row["bytes_wrong"]), (&Value::Array(Vec::new()), &0.into()), "{row}");
    }
    for error in errors {
        assert!(error["message"].as_str().is_some_and(|m| m.contains(backend)), "{error}");
        assert_eq!(error["next_step"].as_str().unwrap().contains("free space"), error["no_space"] == true, "{error}");
    }
    assert!(errors.iter().any(|error| error["no_space"] == true), "{run}");
    for part in ["ERROR", "free space", "IMB-IO = "] {
        assert!(run.stdout.contains(part), "no '{part}'; {run}");
    }
    if backend == "mpiio" && launcher().mpi == "openmpi" {
        // OMPIO ends collective writes with success and all bytes, whose data are not in the file: found by comparing. And
        // it syncs with an error of no class, also empty files.
        let lost: Vec<_> = rows.iter().filter(|row| number(&row["bytes_wrong"]) > 0).collect();
        assert!(lost.iter().all(|row| row["benchmark"].as_str().unwrap().starts_with("C_")), "{lost:?}");
        assert_eq!(run.code(), if lost.is_empty() { 1 } else { 3 }, "{run}");
        return;
    }
    run.expect(1);
    assert_eq!(items(&result["corruptions"]), [] as [Value; 0]);
    assert_eq!(result["derived"]["verdict"]["verdict"], "not_complete");
    assert!(failed.iter().all(|row| row["sample_bytes"] == 1 << 20), "{failed:?}");
    assert!(errors.iter().all(|error| error["no_space"] == true), "{errors:?}");
    let first = rows.iter().position(|row| row["ended"]["by"] == "error").unwrap();
    assert!(rows[first..].iter().any(|row| is_complete(row) && row["sample_bytes"] == 0), "{run}");
}

#[test]
fn a_full_disk_through_mpiio() {
    becomes_full("mpiio", "S_Write_Expl,P_Write_Expl,C_Write_Indv,C_IWrite_Expl,P_Read_Indv,P_Write_Priv");
}

/// ROMIO keeps the shared pointer in a file beside the data. Where that cannot be written, MPI_File_write_shared of MPICH
/// makes an error of the kind that is fatal (write_sh.c: MPIR_ERR_FATAL), and the program ends although errors are to be
/// returned. Then the journal is the result.
#[test]
fn a_full_disk_and_the_shared_pointer() {
    let scratch = Scratch::new();
    let run = match on_a_full_disk(&scratch, "mpiio", "S_Write_Expl,P_Write_Shared,C_Write_Shared,P_Write_Expl") {
        Ok(run) => run,
        Err(reason) => return skip(&reason),
    };
    if launcher().mpi == "mpich" && run.stderr.contains("Could not access shared file pointer") {
        println!("MPICH ended the program: the shared pointer could not be written");
        assert_ne!(run.code(), 0, "{run}");
        let text = report(&scratch, "out.jsonl");
        assert!(text.contains("KILLED") && text.contains("S_Write_Expl"), "{text}");
        return;
    }
    check_full(&run, &scratch, "mpiio");
}

const WITHOUT_MPI_FILES: &str = "S_Write_Expl,P_Write_Expl,P_Write_Indv,P_Read_Indv,P_Write_Priv,S_Write_Indv";

#[test]
fn a_full_disk_through_posix() {
    becomes_full("posix", WITHOUT_MPI_FILES);
}

#[test]
fn a_full_disk_through_uring() {
    becomes_full("uring", WITHOUT_MPI_FILES);
}

/// The process that is this rank, by what the launcher told it.
fn process_of_rank(running: &Running, rank: u64) -> i32 {
    let variables = ["PMI_RANK", "OMPI_COMM_WORLD_RANK"].map(|name| format!("{name}={rank}"));
    let is_it = |pid: &i32| {
        let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        environment.split(|b| *b == 0).any(|line| variables.iter().any(|variables| variables.as_bytes() == line))
    };
    running.ranks().into_iter().find(is_it).expect("a launcher that numbers its ranks")
}

/// OMPIO makes a file of its own when it opens one. If that fails on one rank, its MPI_File_open never returns on the others.
const OTHER_THAN_OMPIO: &str = "OMPI_MCA_io=^ompio";

/// One rank alone may not write any more: the others must not wait for it in the next opening.
#[test]
fn an_error_of_one_rank_ends_opening_and_closing_on_all() {
    let scratch = Scratch::new();
    let row = "imb Open_Close --npmin 2 --iter-policy set --iter 10000";
    let mut running = Launch::through(&["env", "--ignore-signal=XFSZ", OTHER_THAN_OMPIO], 2)
        .args(row.split_whitespace())
        .into(&scratch)
        .start();
    let out = scratch.join("out.jsonl");
    running.until("the row", || fs::read_to_string(&out).is_ok_and(|text| text.contains("\"announcement\"")));
    let pid = process_of_rank(&running, 1).to_string();
    succeed(Command::new("prlimit").args(["--fsize=0:0", "--pid", &pid])).unwrap();
    let run = running.wait();
    run.expect(1);
    let errors = document(&scratch)["errors"].clone();
    assert_eq!(items(&errors).len(), 1, "{errors}; {run}");
    assert_eq!((number(&errors[0]["rank"]), number(&errors[0]["ranks_affected"])), (1, 1), "{errors}");
}

/// A run of many seconds with some rows done.
pub fn long(launch: Launch, scratch: &Scratch) -> Running {
    let words = "P_Write_Expl,C_Write_Expl,P_Read_Priv --npmin 2 --time 0.5 --iter 1000000,1000,100000";
    let mut running = launch.arg("imb").args(words.split_whitespace()).into(scratch).start();
    let out = scratch.join("out.jsonl");
    running.until("three rows", || {
        fs::read_to_string(&out).is_ok_and(|text| text.matches(r#""record":"row""#).count() >= 3)
    });
    running
}

/// Text of `beff-raw report`, without line breaks.
fn report(scratch: &Scratch, name: &str) -> String {
    let output = Command::new(PROGRAM).args(["report", "--full"]).arg(scratch.join(name)).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).split_whitespace().collect::<Vec<_>>().join(" ")
}

pub fn check_interrupted(run: &Run, scratch: &Scratch) {
    assert!(run.seconds < 30.0, "too late; {run}");
    let result = document(scratch);
    assert_eq!(result["ending"]["outcome"], "interrupted", "{run}");
    assert!(rows(&result).len() >= 3 && rows(&result).iter().any(is_complete), "{run}");
    assert_eq!(journal(scratch, "end").len(), 1);
    for name in ["out.json", "out.jsonl"] {
        let text = report(scratch, name);
        assert!(text.contains("INTERRUPTED"), "{name}: {text}");
    }
    assert_eq!(scratch.list("disk"), [] as [&str; 0], "files are left");
}

#[test]
fn a_signal_to_one_rank_ends_all() {
    for name in ["INT", "TERM"] {
        let scratch = Scratch::new();
        let running = long(Launch::new(2), &scratch);
        let ranks = running.ranks();
        assert_eq!(ranks.len(), 2, "{ranks:?}");
        signal(ranks[1], name);
        let run = running.wait();
        assert_eq!(run.code(), 130, "{run}");
        check_interrupted(&run, &scratch);
    }
}

#[test]
fn a_killed_rank_leaves_a_journal_that_is_a_result() {
    let scratch = Scratch::new();
    let running = long(Launch::new(2), &scratch);
    signal(running.ranks()[1], "KILL");
    let run = running.wait();
    assert!(run.code() != 0 && run.seconds < 30.0, "{run}");
    let text = report(&scratch, "out.jsonl");
    assert!(text.contains("KILLED") && text.contains("P_Write_Expl"), "{text}");
}
