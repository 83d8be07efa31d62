//! Paths that cannot be used, and files that are there already.

use std::fs::{self, File};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::support::{document, items, journal, list, skip, Launch, Mount, Run, Scratch, SHORT};

fn run_at(path: &Path, backend: &str) -> Run {
    Launch::new(2).args(SHORT).args(["--space", "120M", "--backend", backend, "--path"]).arg(path).run()
}

#[test]
fn a_missing_path() {
    let scratch = Scratch::new();
    let run = run_at(&scratch.join("nowhere"), "mpiio");
    assert!([1, 2].contains(&run.code()), "{run}");
    run.says(&["nowhere", "No such file or directory", "--path"]);
    assert_eq!(scratch.list(""), [] as [&str; 0]);
}

#[test]
fn a_path_that_is_a_file() {
    let scratch = Scratch::new();
    let file = scratch.join("file");
    fs::write(&file, "precious").unwrap();
    let run = run_at(&file, "posix");
    assert!([1, 2].contains(&run.code()), "{run}");
    run.says(&["/file", "Not a directory", "--path"]);
    assert_eq!(fs::read(&file).unwrap(), b"precious");
}

#[test]
fn a_path_that_cannot_be_written() {
    let scratch = Scratch::new();
    // Permissions do not stop root; a mount without the right to write does.
    let dir = scratch.join("readonly");
    let _mount = match Mount::new(&["-t", "tmpfs", "-o", "ro,size=512M", "tmpfs"], &dir) {
        Ok(mount) => mount,
        Err(reason) => return skip(&format!("no read-only file system can be mounted: {reason}")),
    };
    for backend in ["mpiio", "posix"] {
        let run = run_at(&dir, backend);
        run.expect(2).says(&["cannot create the run directory", "readonly", "Read-only file system", "--path"]);
        assert_eq!(run.stdout, "");
    }
}

#[test]
fn an_existing_run_directory_is_not_touched() {
    let scratch = Scratch::new();
    let existing = scratch.join("disk/taken");
    fs::create_dir_all(&existing).unwrap();
    fs::write(existing.join("results.dat"), "precious").unwrap();
    for ranks in [1, 2] {
        let run = Launch::new(ranks).args(SHORT).args(["--space", "120M", "--run-dir", "taken"]).into(&scratch).run();
        run.expect(2).says(&["taken", "File exists", "--run-dir"]);
        assert_eq!(list(&existing), ["results.dat"]);
        assert_eq!(fs::read(existing.join("results.dat")).unwrap(), b"precious");
        assert_eq!(scratch.list(""), ["disk"], "output files are left");
    }
}

#[test]
fn existing_output_files_are_not_touched() {
    for name in ["out.json", "out.jsonl", "out.csv", "out.sum"] {
        let scratch = Scratch::new();
        fs::write(scratch.join(name), "precious").unwrap();
        let run = Launch::new(2).args(SHORT).args(["--space", "120M"]).into(&scratch).run();
        run.expect(2).says(&[name, "exists", "--out"]);
        assert_eq!(fs::read(scratch.join(name)).unwrap(), b"precious");
        assert_eq!(scratch.list(""), ["disk", name]);
        assert_eq!(scratch.list("disk"), [] as [&str; 0]);
    }
}

/// The directory vanishes while the run is under way: the next open fails on all ranks.
#[test]
fn an_mpi_error_has_its_class_and_text() {
    let scratch = Scratch::new();
    let args = ["-T", "4s", "--memory-per-process", "64M", "--space", "120M", "--run-dir", "run", "--full"];
    let mut running = Launch::new(2).args(args).into(&scratch).start();
    let out = scratch.join("out.jsonl");
    running.until("a pattern", || fs::read_to_string(&out).is_ok_and(|text| text.contains(r#""record":"pattern""#)));
    fs::rename(scratch.join("disk/run/mpiio"), scratch.join("elsewhere")).unwrap();
    let run = running.wait();
    run.expect(1);
    let result = document(&scratch);
    assert_eq!(result["ending"]["outcome"], "failed");
    let error = &items(&result["errors"])[0];
    let message = error["message"].as_str().unwrap();
    assert!(message.contains("MPI_File_") && message.contains("MPI_ERR_"), "{message}");
    assert!(message.contains("disk/run/mpiio"), "{message}");
    assert!(error["during"].as_str().is_some_and(|d| d.contains("mpiio")), "{error}");
    assert!(error["next_step"].as_str().is_some_and(|s| s.len() > 10), "{error}");
    assert!(!journal(&scratch, "pattern").is_empty());
    assert!(run.stdout.contains("MPI_ERR_"), "{run}");
}

/// Cuts off the files of a run through mappings during its rewrites.
fn truncated_while_mapped() -> (Run, Scratch) {
    let scratch = Scratch::new();
    let args = ["-T", "20s", "--memory-per-process", "64M", "--space", "120M", "--backend", "mmap", "--run-dir", "run"];
    let mut running = Launch::new(2).args(args).into(&scratch).start();
    let out = scratch.join("out.jsonl");
    running.until("a rewrite", || fs::read_to_string(&out).is_ok_and(|text| text.contains(r#""access":"rewrite""#)));
    let dir = scratch.join("disk/run/mmap");
    let files: Vec<_> = list(&dir).into_iter().map(|name| dir.join(name)).collect();
    let over = AtomicBool::new(false);
    let run = thread::scope(|scope| {
        // Between two patterns a cut is only a hole that the next one fills: again and again, until one hits a pattern.
        scope.spawn(|| {
            let begin = Instant::now();
            while !over.load(Ordering::Relaxed) && begin.elapsed() < Duration::from_secs(60) {
                for file in &files {
                    let _ = File::options().write(true).open(file).and_then(|file| file.set_len(0));
                }
                thread::sleep(Duration::from_millis(5));
            }
        });
        let run = running.wait();
        over.store(true, Ordering::Relaxed);
        run
    });
    (run, scratch)
}

/// No error number, but a message before the end.
#[test]
fn a_bus_error_names_the_file_and_the_offset() {
    let (mut run, mut scratch) = truncated_while_mapped();
    for _ in 0..5 {
        // A cut before the first store of a batch is seen there, and is an error like any other. It stands in the result.
        let result = fs::read_to_string(scratch.join("out.json")).unwrap_or_default();
        if !result.contains("the file ends at") {
            break;
        }
        println!("the cut came between two batches: once more");
        // A cut behind the last store of a pattern may have left a hole, which the next comparison finds: wrong data has its own code.
        let wrong = !journal(&scratch, "corruption").is_empty();
        assert_eq!(run.code(), if wrong { 3 } else { 1 }, "{run}");
        (run, scratch) = truncated_while_mapped();
    }
    assert_ne!(run.code(), 0, "{run}");
    run.says(&["bus error (SIGBUS) on", "disk/run/mmap/n2-type", "at offset", "truncated", "--backend posix"]);
    assert!(!journal(&scratch, "pattern").is_empty());
}
