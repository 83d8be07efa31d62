//! Room before direct first writes on file systems that the disk of a build seldom has: what each makes of it is told, data is right, and
//! no block is left behind the end.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::process::Command;

use serde_json::Value;

use crate::support::{document, items, number, skip, succeed, Launch, Mount, Scratch};

/// A file system of its own in `scratch`/disk.
fn mounted(scratch: &Scratch, make: &[&str]) -> Result<Mount, String> {
    let image = scratch.join("image");
    fs::File::create(&image).and_then(|file| file.set_len(1 << 30)).map_err(|e| e.to_string())?;
    succeed(Command::new(make[0]).args(&make[1..]).arg(&image))?;
    Mount::new(&["-o", "loop", &image.to_string_lossy()], &scratch.join("disk"))
}

/// Posix and uring in turns; the first writes that have moved something. All bytes are compared before.
fn first_writes(scratch: &Scratch) -> Vec<Value> {
    let small = ["-T", "6s", "--memory-per-process", "64M", "--space", "300M", "--types", "0,2", "--verify", "full"];
    let args = ["--backend", "uring,posix", "--direct", "auto", "--repeat", "off", "--keep-files", "--run-dir", "run"];
    Launch::new(2).args(small).args(args).into(scratch).run().expect(0);
    let result = document(scratch);
    assert_eq!(result["corruptions"], Value::Array(Vec::new()));
    let is_write = |p: &&Value| p["access"] == "write" && number(&p["calls"]) > 0;
    let writes: Vec<Value> = items(&result["patterns"]).iter().filter(is_write).cloned().collect();
    assert!(!writes.is_empty());
    writes
}

fn strategy(p: &Value) -> &str {
    p["strategy"].as_str().unwrap()
}

/// Where files have an extent size hint the file system takes more than it was asked for; the rest is given back all the same.
#[test]
fn xfs_preallocates_with_and_without_an_extent_size_hint() {
    for hint in [false, true] {
        let scratch = Scratch::new();
        let _mount = match mounted(&scratch, &["mkfs.xfs", "-q"]) {
            Ok(mount) => mount,
            Err(reason) => return skip(&format!("no xfs can be mounted: {reason}")),
        };
        if hint {
            if let Err(reason) = succeed(Command::new("xfs_io").args(["-c", "extsize 1m"]).arg(scratch.join("disk"))) {
                return skip(&format!("no extent size hint can be set: {reason}"));
            }
        }
        let writes = first_writes(&scratch);
        if writes.iter().any(|p| p["direct"] != true) {
            return skip(&format!("no direct I/O on this xfs: {}", strategy(&writes[0])));
        }
        for p in &writes {
            assert!(strategy(p).contains("preallocated by fallocate"), "{}", strategy(p));
        }
        for backend in ["uring", "posix"] {
            for name in scratch.list(&format!("disk/run/{backend}")) {
                let stat = fs::metadata(scratch.join("disk/run").join(backend).join(&name)).unwrap();
                let most = stat.len().next_multiple_of(4096) + (64 << 10);
                assert!(stat.blocks() * 512 <= most, "{name} of {} bytes has {} blocks", stat.len(), stat.blocks());
            }
        }
    }
}

/// Btrfs opens with O_DIRECT and tells no alignment, since it may buffer by itself: nothing is called direct, and no room is made.
#[test]
fn on_btrfs_nothing_is_called_direct() {
    let scratch = Scratch::new();
    let _mount = match mounted(&scratch, &["mkfs.btrfs", "-q"]) {
        Ok(mount) => mount,
        Err(reason) => return skip(&format!("no btrfs can be mounted: {reason}")),
    };
    let writes = first_writes(&scratch);
    if writes.iter().any(|p| p["direct"] == true) {
        return skip("this btrfs tells an alignment: newer kernels may know when it does direct I/O");
    }
    for p in &writes {
        assert!(
            strategy(p).contains("buffered, not direct: the file system accepts O_DIRECT, but uses the page cache"),
            "{}",
            strategy(p)
        );
        assert!(!strategy(p).contains("preallocated"), "{}", strategy(p));
        assert!(p["intervals"]["preallocate_seconds"].as_f64().unwrap() < 0.01, "{p}");
    }
}
