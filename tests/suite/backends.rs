//! The same bytes from all backends, direct I/O, hints.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::support::{
    document, first_difference, items, launcher, list, number, proves_direct, skip, Launch, Scratch, SHORT,
};

/// True if the file system of the scratch directories tells the alignment of direct I/O.
fn direct_here(result: &Value) -> bool {
    let proven = proves_direct(result);
    if !proven {
        skip("the file system of the target directory tells no alignment of direct I/O (STATX_DIOALIGN)");
    }
    proven
}

fn is_odd(p: &Value) -> bool {
    // Chunks of 1 kB + 8 and the like; fill-ups (U = 0 beside the warm-up) have any size.
    !number(&p["chunk_bytes"]).is_multiple_of(512)
}

#[test]
fn without_an_exchange_shared_sectors_are_not_direct() {
    let scratch = Scratch::new();
    let args = ["--backend", "posix,uring", "--direct", "required", "--collective", "independent", "--space", "300M"];
    Launch::new(2).args(SHORT).args(args).args(["--verify", "full"]).into(&scratch).run().expect(0);
    let result = document(&scratch);
    if !direct_here(&result) {
        return;
    }
    let mut left_out = 0;
    for p in items(&result["patterns"]) {
        // Types 0 and 1 interleave the chunks of the ranks.
        if is_odd(p) && number(&p["pattern_type"]) <= 1 {
            left_out += 1;
            assert_eq!(p["ended"]["by"], "not_run", "{p}");
            assert!(p["ended"]["reason"].as_str().is_some_and(|r| r.len() > 20), "{p}");
        } else if p["ended"]["by"] != "not_run" {
            assert!(p["direct"] == true || p["calls"] == 0, "{p}");
        }
    }
    assert_eq!(left_out, 2 * 3 * 3 * 2, "odd patterns of two types, three sizes, three accesses, two backends");
    assert_eq!(result["corruptions"], Value::Array(Vec::new()));
}

/// Where counts are driven by time they differ between backends; here the space ends every pattern, long before its time.
fn identical_files(ranks: u64, space: &str, more: &[&str]) {
    let scratch = Scratch::new();
    let args = ["-T", "2400s", "--memory-per-process", "64M", "--space", space, "--keep-files", "--run-dir", "kept"];
    Launch::new(ranks)
        .args(args)
        .args(["--backend", "mpiio,posix,uring,mmap", "--repeat", "off", "--files-per-directory", "2"])
        .args(more)
        .into(&scratch)
        .run()
        .expect(0);
    let result = document(&scratch);
    let calls_of = |backend: &str, access: &str| -> Vec<u64> {
        let of = |p: &&Value| p["backend"] == backend && p["access"] == access;
        items(&result["patterns"]).iter().filter(of).map(|p| number(&p["calls"])).collect()
    };
    for access in ["write", "rewrite"] {
        let first = calls_of("posix", access);
        assert_eq!(first.len(), 43);
        // Otherwise there is nothing to compare, and the test must be given another space or time.
        assert_eq!(first, calls_of("mpiio", access), "{access}: other counts");
        assert_eq!(first, calls_of("uring", access), "{access}: other counts");
        assert_eq!(first, calls_of("mmap", access), "{access}: other counts");
    }
    let kept = scratch.join("disk/kept");
    // Those of type 2, at most two in a directory.
    let in_directories = |name: &String| name.starts_with("from-rank");
    let (directories, mut names): (Vec<String>, Vec<String>) =
        list(&kept.join("posix")).into_iter().partition(in_directories);
    assert_eq!(directories.len() as u64, if ranks > 2 { ranks.div_ceil(2) } else { 0 }, "{directories:?}");
    for directory in directories {
        let inside = list(&kept.join("posix").join(&directory));
        assert!(inside.len() <= 2, "{directory}: {inside:?}");
        names.extend(inside.into_iter().map(|name| format!("{directory}/{name}")));
    }
    names.retain(|name| Path::new(name).extension().is_some_and(|e| e == "dat"));
    assert_eq!(names.len() as u64, 4 + ranks, "{names:?}");
    for name in names {
        let one = fs::read(kept.join("posix").join(&name)).unwrap();
        assert!(one.len() > 1 << 20, "{name}");
        for other in ["mpiio", "uring", "mmap"] {
            let two = fs::read(kept.join(other).join(&name)).unwrap();
            let differ = first_difference(&one, &two);
            assert_eq!(
                (one.len(), differ),
                (two.len(), None),
                "{name}: posix and {other}, length and first difference"
            );
        }
    }
}

#[test]
fn identical_files_from_one_rank() {
    identical_files(1, "142M", &[]);
}

#[test]
fn identical_files_from_three_ranks() {
    // A depth is given, or uring would be calibrated for seconds again.
    identical_files(3, "422M", &["--depth", "32"]);
}

#[test]
fn hints_are_asked_for_and_what_is_granted_is_reported() {
    let scratch = Scratch::new();
    let file = scratch.join("hints.txt");
    let text = "# for all patterns, and for one chunk size of the rewrite\n\
                all all scatter all cb_buffer_size 4194304\n\
                all rewrite scatter 1024 romio_cb_write disable\n";
    fs::write(&file, text).unwrap();
    let args = ["--types", "0", "--space", "300M", "--hints"];
    Launch::new(2).args(SHORT).args(args).arg(&file).into(&scratch).run().expect(0);
    let result = document(&scratch);
    let has = |list: &Value, key: &str, value: &str| items(list).iter().any(|h| h[0] == key && h[1] == value);
    for t in items(&result["types"]) {
        assert!(has(&t["hints_requested"], "cb_buffer_size", "4194304"), "{t}");
        assert!(has(&t["hints_granted"], "cb_buffer_size", "4194304"), "{t}");
    }
    let mut special = 0;
    for p in items(&result["patterns"]) {
        let asked = p["access"] == "rewrite" && p["chunk_bytes"] == 1024;
        assert_eq!(has(&p["hints_requested"], "romio_cb_write", "disable"), asked, "{p}");
        special += u32::from(asked);
        // Open MPI answers with whatever was asked; ROMIO with what is in force.
        if asked && launcher().mpi != "openmpi" {
            assert!(has(&p["hints_granted"], "romio_cb_write", "disable"), "{p}");
        }
    }
    assert_eq!(special, 1);
}
