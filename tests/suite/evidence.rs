//! Where the bytes went: devices below the path, the page cache before and after, and what is said of reads.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread::sleep;
use std::time::Duration;

use serde_json::Value;

use crate::support::{document, items, launcher, number, skip, succeed, Launch, Mount, Scratch, SHORT};

/// Bytes of page cache that the control group may have.
const LIMIT_BYTES: u64 = 128 << 20;
/// What is written in it at least.
const WRITTEN_BYTES: u64 = 300 << 20;

/// Reads of the run.
fn reads(result: &Value) -> Vec<&Value> {
    let reads: Vec<&Value> = items(&result["patterns"]).iter().filter(|p| p["access"] == "read").collect();
    assert!(!reads.is_empty());
    reads
}

/// True if the page cache of the scratch directories can be looked at.
fn residency_here(result: &Value) -> bool {
    let by = &reads(result)[0]["evidence"]["residency_source"];
    let known = by == "cachestat" || by == "mincore";
    if !known {
        skip(&format!("residency is not known here: {by}"));
    }
    known
}

fn run(scratch: &Scratch, args: &[&str]) -> Value {
    Launch::new(2).args(SHORT).args(["--types", "0,2,3", "--space", "300M"]).args(args).into(scratch).run().expect(0);
    document(scratch)
}

/// True if this kernel takes cold pages back on its own account (Documentation/admin-guide/mm/damon).
fn kernel_reclaims() -> bool {
    let daemons = fs::read_dir("/sys/kernel/mm/damon/admin/kdamonds").into_iter().flatten().flatten();
    let is_on = |state: String| state.trim() == "on";
    daemons.filter_map(|daemon| fs::read_to_string(daemon.path().join("state")).ok()).any(is_on)
}

/// A run whose pages stayed in the cache between writing and reading; None where that cannot be seen. A kernel that takes pages
/// back may have done so meanwhile: then once more, aloud.
fn left_in_the_cache(args: &[&str]) -> Option<(Scratch, Value)> {
    for tries_left in (0..5).rev() {
        let scratch = Scratch::new();
        let result = run(&scratch, args);
        if !residency_here(&result) {
            return None;
        }
        let stayed = |p: &&Value| p["evidence"]["resident_before_bytes"] == p["evidence"]["range_bytes"];
        if tries_left == 0 || !kernel_reclaims() || reads(&result).iter().all(stayed) {
            return Some((scratch, result));
        }
        println!("the kernel has taken pages back (DAMON): once more");
    }
    None
}

#[test]
fn what_was_written_a_moment_ago_is_a_cached_read_in_every_output() {
    let Some((scratch, result)) = left_in_the_cache(&["--backend", "posix", "--cache", "keep"]) else { return };
    for p in reads(&result).into_iter().filter(|p| number(&p["moved_bytes"]) > 0) {
        let e = &p["evidence"];
        assert!(number(&e["resident_before_bytes"]) as f64 > 0.9 * number(&e["range_bytes"]) as f64, "{p}");
        assert!(number(&e["range_bytes"]) == number(&p["moved_bytes"]), "{p}");
    }
    let sources = items(&result["derived"]["reads"]);
    assert!(!sources.is_empty() && sources.iter().all(|r| r["cached"] == true), "{sources:?}");
    let mut csv = csv::Reader::from_path(scratch.join("out.csv")).unwrap();
    let header = csv.headers().unwrap().clone();
    let column = |name: &str| header.iter().position(|h| h == name).unwrap();
    let (access, moved, marks, share) =
        (column("access"), column("moved_bytes"), column("marks"), column("cache_share"));
    for row in csv.records().map(|r| r.unwrap()).filter(|r| &r[access] == "read" && &r[moved] != "0") {
        assert!(row[marks].contains('c') && row[share].parse::<f64>().unwrap() > 0.9, "{row:?}");
    }
    let sum = fs::read_to_string(scratch.join("out.sum")).unwrap();
    assert!(sum.contains("came from a cache") && sum.contains("pattern 17 "), "{sum}");
}

#[test]
fn dropped_pages_are_read_from_storage_again() {
    let scratch = Scratch::new();
    let result = run(&scratch, &["--backend", "posix,mpiio", "--cache", "drop"]);
    if !residency_here(&result) {
        return;
    }
    for r in items(&result["derived"]["reads"]) {
        assert!(r["cached"] == false && r["cache_share"].is_number(), "{r}");
    }
    let stayed = |w: &&Value| w["kind"] == "cache_not_dropped" || w["kind"] == "all_caches_dropped";
    assert_eq!(items(&result["derived"]["warnings"]).iter().find(stayed), None);
    for p in reads(&result).into_iter().filter(|p| items(&p["evidence"]["devices"]).len() == 1) {
        assert!(number(&p["evidence"]["devices"][0]["read_bytes"]) >= number(&p["moved_bytes"]), "{p}");
    }
}

/// An ext4 in a file; the reason if it cannot be made here.
fn disk_in_a_file(scratch: &Scratch, dir: &Path) -> Result<Mount, String> {
    let image = scratch.join("image");
    File::create(&image).and_then(|file| file.set_len(512 << 20)).map_err(|e| e.to_string())?;
    succeed(Command::new("mkfs.ext4").args(["-q", "-m", "0"]).arg(&image))?;
    Mount::new(&["-o", "loop", &image.to_string_lossy()], dir)
}

/// The pages of the file system are dropped; those of the file below the loop device are not, and only the disk at the
/// bottom shows it.
#[test]
fn a_cache_below_a_loop_device_is_seen() {
    let scratch = Scratch::new();
    let _mount = match disk_in_a_file(&scratch, &scratch.join("disk")) {
        Ok(mount) => mount,
        Err(reason) => return skip(&format!("no ext4 can be mounted from a file: {reason}")),
    };
    let result = run(&scratch, &["--backend", "posix", "--cache", "drop"]);
    let first = &reads(&result)[0]["evidence"];
    let devices = items(&first["devices"]);
    let name = devices.first().and_then(|d| d["device"].as_str()).unwrap_or_default();
    assert!(name.starts_with("loop"), "{first}");
    if devices.len() < 2 {
        return skip(&format!("the disk below the loop device is not known here: {}", first["devices_unknown"]));
    }
    if fs::read_to_string(format!("/sys/block/{name}/loop/dio")).is_ok_and(|dio| dio.trim() == "1") {
        return skip("loop devices are direct here: there is no cache below them");
    }
    for p in reads(&result).into_iter().filter(|p| number(&p["moved_bytes"]) > 0) {
        let (moved, e) = (number(&p["moved_bytes"]), &p["evidence"]);
        assert!(number(&p["storage_read_bytes"]) >= moved, "the process saw a storage: {p}");
        assert!(number(&e["devices"][0]["read_bytes"]) >= moved, "and so did the loop device: {p}");
    }
    let sources = items(&result["derived"]["reads"]);
    let (all, cached) = (sources.len(), sources.iter().filter(|r| r["cached"] == true).count());
    // Others may read from the disk at the same time, which makes its number larger: not each of them need be seen.
    assert!(2 * cached > all, "{cached} of {all}: {sources:#?}");
}

/// A control group with little memory; removed at the end.
struct SmallMemory(PathBuf);

impl SmallMemory {
    fn new(bytes: u64) -> Result<Self, String> {
        let (v1, v2) = (Path::new("/sys/fs/cgroup/memory"), Path::new("/sys/fs/cgroup"));
        let delegated = fs::read_to_string(v2.join("cgroup.subtree_control")).unwrap_or_default();
        let (parent, file) = if v1.join("memory.limit_in_bytes").exists() {
            (v1, "memory.limit_in_bytes")
        } else if delegated.split_whitespace().any(|controller| controller == "memory") {
            (v2, "memory.max")
        } else {
            return Err("no memory controller of control groups under /sys/fs/cgroup".into());
        };
        let group = Self(parent.join(format!("beff-test-{}", std::process::id())));
        fs::create_dir(&group.0).map_err(|e| format!("{}: {e}", group.0.display()))?;
        fs::write(group.0.join(file), bytes.to_string()).map_err(|e| format!("{file}: {e}"))?;
        Ok(group)
    }
}

impl Drop for SmallMemory {
    fn drop(&mut self) {
        for _ in 0..50 {
            if fs::remove_dir(&self.0).is_ok() {
                return;
            }
            sleep(Duration::from_millis(100));
        }
        println!("{} could not be removed", self.0.display());
    }
}

#[test]
fn a_control_group_bounds_the_page_cache_and_the_evidence_shows_it() {
    let group = match SmallMemory::new(LIMIT_BYTES) {
        Ok(group) => group,
        Err(reason) => return skip(&format!("no control group can be made: {reason}")),
    };
    let scratch = Scratch::new();
    let directory = group.0.to_string_lossy().into_owned();
    let mut words = vec!["sh", "-c", r#"echo $$ > "$0/cgroup.procs" && exec "$@""#, directory.as_str()];
    words.extend(launcher().words.iter().map(String::as_str));
    let args = ["--backend", "posix", "--cache", "keep", "--types", "0", "-T", "40s", "--memory-per-process", "64M"];
    Launch::under(&words, 2).args(args).args(["--space", "1500M"]).into(&scratch).run().expect(0);
    let result = document(&scratch);
    assert_eq!(result["manifest"]["hosts"][0]["cgroup_memory_limit_bytes"], LIMIT_BYTES);
    if !residency_here(&result) {
        return;
    }
    let sum = |access: &str, value: fn(&Value) -> u64| -> u64 {
        items(&result["patterns"]).iter().filter(|p| p["access"] == access).map(value).sum()
    };
    for p in items(&result["patterns"]) {
        assert!(number(&p["evidence"]["resident_after_bytes"]) <= LIMIT_BYTES, "{p}");
    }
    let written = sum("write", |p| number(&p["evidence"]["range_bytes"]));
    if written < WRITTEN_BYTES {
        return skip(&format!("this storage took {written} bytes in the time of the test, too few to tell"));
    }
    // Once the reads have begun, nothing but read-ahead brings pages of later patterns in: what was there before each of
    // them was there at one time. Without a limit that is all of it.
    let there = sum("read", |p| number(&p["evidence"]["resident_before_bytes"]));
    assert!(there <= LIMIT_BYTES + LIMIT_BYTES / 4, "{there} of {written} bytes stayed");
    let fetched = sum("read", |p| number(&p["storage_read_bytes"]));
    assert!(fetched > (written - there) / 4, "{fetched} bytes came from storage");
}
