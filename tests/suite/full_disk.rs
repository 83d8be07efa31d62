//! A disk that becomes full while the run is under way.

use std::fs::{self, File};
use std::io::Write;
use std::path::Path;
use std::process::Command;

use crate::support::{document, items, journal, list, skip, succeed, Launch, Mount, Scratch};

/// An ext4 of its own; the reason if it cannot be made here.
fn small_disk(scratch: &Scratch, dir: &Path) -> Result<Mount, String> {
    let image = scratch.join("image");
    let created = File::create(&image).and_then(|file| file.set_len(192 << 20));
    created.map_err(|e| e.to_string())?;
    succeed(Command::new("mkfs.ext4").args(["-q", "-m", "0"]).arg(&image))?;
    let image = image.to_string_lossy().into_owned();
    Mount::new(&["-o", "loop", &image], dir)
}

/// Takes all the space that is left.
fn fill(path: &Path) {
    let mut file = File::create(path).unwrap();
    for size in [1 << 20, 4096] {
        let block = vec![0xA5_u8; size];
        while file.write_all(&block).is_ok() {}
    }
    let _ = file.sync_all();
}

fn becomes_full(backend: &str, more: &[&str]) {
    let scratch = Scratch::new();
    let disk = scratch.join("disk");
    let _mount = match small_disk(&scratch, &disk) {
        Ok(mount) => mount,
        Err(reason) => return skip(&format!("no small ext4 can be mounted: {reason}")),
    };
    let args = ["-T", "20s", "--memory-per-process", "64M", "--space", "120M", "--run-dir", "run"];
    let mut running = Launch::new(2).args(args).args(["--backend", backend]).args(more).into(&scratch).start();
    let out = scratch.join("out.jsonl");
    running.until("a pattern", || fs::read_to_string(&out).is_ok_and(|text| text.contains(r#""record":"pattern""#)));
    let ballast = disk.join("ballast");
    fill(&ballast);
    let size = fs::metadata(&ballast).unwrap().len();
    let run = running.wait();
    let result = document(&scratch);
    assert_eq!(result["ending"]["outcome"], "failed");
    let error = &items(&result["errors"])[0];
    assert_eq!(error["no_space"], true, "{error}");
    let message = error["message"].as_str().unwrap();
    assert!(message.contains("disk/run/") && message.contains(backend), "{message}");
    assert!(message.contains("No space left") || message.contains("NO_SPACE"), "{message}");
    // OMPIO hides errors of collective calls. Then the kernel's count tells of them, and what it called written is wrong data.
    let hidden =
        backend == "mpiio" && message.contains("MPI-IO reported success") && message.contains("kernel counted");
    run.expect(if hidden { 3 } else { 1 });
    let place = hidden || message.contains("sync") || message.contains("offset");
    assert!(place, "neither an offset nor the sync: {message}");
    if backend == "mpiio" && !hidden {
        // OMPIO ends some calls with success and fewer bytes; then there is no class to report.
        let silent = message.contains("the MPI library reported no error");
        assert!(message.contains("MPI_File_") && (message.contains("MPI_ERR_") || silent), "{message}");
    }
    assert!(error["rank"].is_u64() && error["during"].as_str().is_some_and(|d| d.contains("pattern")), "{error}");
    assert!(error["next_step"].as_str().is_some_and(|s| s.contains("free space")), "{error}");
    assert!(!journal(&scratch, "pattern").is_empty());
    assert_eq!(journal(&scratch, "error").len(), items(&result["errors"]).len());
    // The screen begins with all of it, whatever is in the way of a line's end.
    let bare = |text: &str| text.split_whitespace().collect::<String>();
    let begin = bare(run.stdout.split("beff-raw 0.").next().unwrap());
    let words = ["during", "message", "next_step"].map(|field| bare(error[field].as_str().unwrap()));
    assert!(words.iter().all(|words| begin.contains(words.as_str())), "{words:?}; {run}");
    assert!(begin.contains(&format!("rank{}", error["rank"])) && begin.to_lowercase().contains("nospace"), "{run}");
    assert!(!run.stdout.contains("the same with"), "advice for a run that has ended; {run}");
    assert!(run.stdout.contains("write"), "what was measured is not shown; {run}");
    let left: Vec<_> = list(&disk).into_iter().filter(|name| name != "lost+found").collect();
    assert_eq!(left, ["ballast"]);
    assert_eq!(fs::metadata(&ballast).unwrap().len(), size);
}

#[test]
fn through_mpiio() {
    becomes_full("mpiio", &[]);
}

#[test]
fn through_posix() {
    becomes_full("posix", &[]);
}

#[test]
fn through_uring() {
    becomes_full("uring", &[]);
}

#[test]
fn two_phase_writes_on_a_full_disk() {
    for backend in ["posix", "uring"] {
        becomes_full(backend, &["--direct", "auto", "--collective", "two-phase", "--types", "0,1"]);
    }
    becomes_full(
        "posix",
        &["--direct", "auto", "--collective", "two-phase", "--types", "0,1", "--set", "exchange=messages"],
    );
}

#[test]
fn through_mmap() {
    becomes_full("mmap", &[]);
}
