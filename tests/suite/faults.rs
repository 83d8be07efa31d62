//! Paths that cannot be used, and files that are there already.

use std::fs;
use std::path::Path;

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
        run.expect(2).says(&["cannot make the run directory", "readonly", "Read-only file system", "--path"]);
        assert_eq!(run.stdout, "");
    }
}

#[test]
fn an_existing_run_directory_is_not_touched() {
    let scratch = Scratch::new();
    let taken = scratch.join("disk/taken");
    fs::create_dir_all(&taken).unwrap();
    fs::write(taken.join("results.dat"), "precious").unwrap();
    for ranks in [1, 2] {
        let run = Launch::new(ranks).args(SHORT).args(["--space", "120M", "--run-dir", "taken"]).into(&scratch).run();
        run.expect(2).says(&["taken", "File exists", "--run-dir"]);
        assert_eq!(list(&taken), ["results.dat"]);
        assert_eq!(fs::read(taken.join("results.dat")).unwrap(), b"precious");
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
    let args = ["-T", "4s", "--memory-per-process", "64M", "--space", "120M", "--run-dir", "run"];
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
