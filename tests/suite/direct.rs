//! All 43 patterns without the page cache, on sectors of 512 and of 4096 bytes, and what happens where that is not possible.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::direct_checks::check_direct;
use crate::support::{document, items, launcher, number, skip, succeed, Launch, Mount, Run, Scratch, SHORT};

/// A loop device, detached at the end.
struct Loop(PathBuf);

impl Loop {
    /// A sparse image of `size_bytes` in `dir` as a device with sectors of `sector_bytes`; the reason if it cannot be made.
    fn new(dir: &Path, size_bytes: u64, sector_bytes: u32) -> Result<Self, String> {
        let image = dir.join("image");
        File::create(&image).and_then(|file| file.set_len(size_bytes)).map_err(|e| e.to_string())?;
        let mut setup = Command::new("losetup");
        setup.args(["--find", "--show", "--direct-io=on"]).arg(format!("--sector-size={sector_bytes}")).arg(&image);
        let output = setup.output().map_err(|e| format!("losetup: {e}"))?;
        let name = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        if !output.status.success() || name.is_empty() {
            return Err(format!("losetup: {}", String::from_utf8_lossy(&output.stderr).trim()));
        }
        Ok(Self(name.into()))
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        let _ = succeed(Command::new("losetup").arg("--detach").arg(&self.0));
    }
}

/// A file system of its own with sectors of `sector_bytes`.
fn file_system(scratch: &Scratch, mkfs: &[&str], sector_bytes: u32) -> Result<(Mount, Loop), String> {
    let device = Loop::new(scratch.path(), 2 << 30, sector_bytes)?;
    succeed(Command::new(mkfs[0]).args(&mkfs[1..]).arg(&device.0))?;
    let name = device.0.to_string_lossy().into_owned();
    Ok((Mount::new(&[&name], &scratch.join("disk"))?, device))
}

fn all_direct(scratch: &Scratch, ranks: u64, more: &[&str]) {
    let args = ["--backend", "posix,uring", "--direct", "required", "--verify", "full", "--space", "600M"];
    let run = Launch::new(ranks).args(SHORT).args(args).args(more).into(scratch).run();
    run.expect(0);
    check_direct(&document(scratch), 2);
    for output in scratch.list(".").iter().filter(|name| name.starts_with("out.")) {
        std::fs::remove_file(scratch.join(output)).unwrap();
    }
}

/// Direct I/O as the disk of the build has it, or the reason why it has none.
fn direct_here(scratch: &Scratch) -> Result<(), String> {
    let info = Command::new(crate::support::PROGRAM).args(["info", "--path"]).arg(scratch.path()).output().unwrap();
    let text = String::from_utf8_lossy(&info.stdout).into_owned();
    let line = text.lines().find(|line| line.contains("direct I/O")).unwrap_or_default().to_owned();
    (line.contains("multiples of") && !line.contains("unproven"))
        .then_some(())
        .ok_or(format!("no direct I/O on the disk of the build: {line}"))
}

#[test]
#[ignore = "all combinations: make campaign"]
fn all_patterns_on_the_disk_of_the_build() {
    for ranks in 1..=4 {
        let scratch = Scratch::new();
        match direct_here(&scratch) {
            Ok(()) => all_direct(&scratch, ranks, &[]),
            Err(reason) => return skip(&reason),
        }
    }
}

#[test]
fn all_patterns_on_sectors_of_4096_bytes() {
    let kinds: [(&[&str], &[u64]); 2] =
        [(&["mkfs.ext4", "-q", "-m", "0"], &[2]), (&["mkfs.xfs", "-q", "-s", "size=4096"], &[1, 2, 3, 4])];
    for (mkfs, all_ranks) in kinds {
        let scratch = Scratch::new();
        let _disk = match file_system(&scratch, mkfs, 4096) {
            Ok(disk) => disk,
            Err(reason) => {
                skip(&format!("no {} with 4096-byte sectors: {reason}", mkfs[0]));
                continue;
            }
        };
        for ranks in all_ranks {
            all_direct(&scratch, *ranks, &["--run-dir", "run"]);
        }
    }
}

/// Two ranks that read, modify and write the same sectors without talking to each other.
fn halves_of_sectors(how: &str) -> Result<(Run, u64), String> {
    let scratch = Scratch::new();
    direct_here(&scratch)?;
    let args = ["--backend", "posix", "--direct", "required", "--verify", "full", "--space", "400M", "--types", "0,1"];
    let run = Launch::new(2).args(["-T", "4s", "--memory-per-process", "64M"]).args(args);
    let run = run.args(["--collective", how]).into(&scratch).run();
    let wrong = |kind: &str, key: &str| -> u64 {
        items(&document(&scratch)[kind]).iter().map(|r| r[key]["words_wrong"].as_u64().unwrap_or(0)).sum()
    };
    let words_wrong = wrong("types", "full_verification") + wrong("patterns", "verification");
    Ok((run, words_wrong))
}

#[test]
fn halves_of_one_sector_are_never_lost() {
    match halves_of_sectors("auto") {
        Ok((run, wrong)) => {
            run.expect(0);
            assert_eq!(wrong, 0, "{run}");
        }
        Err(reason) => skip(&reason),
    }
}

#[test]
fn plain_read_modify_write_loses_them_and_that_is_seen() {
    // The proof that the test above can fail: the same run with the ranks not exchanging their data.
    for _ in 0..5 {
        match halves_of_sectors("unsafe-read-modify-write") {
            Ok((run, wrong)) if wrong > 0 => {
                run.expect(3);
                return;
            }
            Ok(_) => {}
            Err(reason) => return skip(&reason),
        }
    }
    panic!("no word was lost in five runs with {}", launcher().mpi);
}

/// A kernel before 6.1: the trial finds the alignment of the disk, on all ranks, and proves the bypass; the option replaces it.
#[test]
fn without_statx_a_trial_finds_the_alignment() {
    let scratch = Scratch::new();
    if let Err(reason) = direct_here(&scratch) {
        return skip(&reason);
    }
    let run = |more: &[&str]| {
        let args = [
            "--backend",
            "posix,uring",
            "--direct",
            "required",
            "--verify",
            "full",
            "--space",
            "300M",
            "--types",
            "0,2",
        ];
        let launch = Launch::new(2).args(SHORT).args(args).args(more).env("BEFF_RAW_NO_DIOALIGN", "1");
        launch.into(&scratch).run().expect(0);
        let result = document(&scratch);
        for p in items(&result["patterns"]).iter().filter(|p| number(&p["calls"]) > 0) {
            assert_eq!(p["direct"], true, "{}", p["strategy"]);
            assert_eq!(p["verification"]["words_wrong"], 0, "{p}");
        }
        for output in scratch.list(".").iter().filter(|name| name.starts_with("out.")) {
            std::fs::remove_file(scratch.join(output)).unwrap();
        }
        result["manifest"]["storage"].clone()
    };
    let tried = run(&[]);
    assert_eq!(tried["direct_align_basis"], "trial-proven", "{tried}");
    let given = run(&["--dio-align", "2K"]);
    assert_eq!(
        (&given["direct_align_basis"], number(&given["direct_offset_align_bytes"])),
        (&"option-proven".into(), 2048)
    );
}

/// An alignment that the file system refuses is known before the first pattern.
#[test]
fn an_alignment_that_is_refused_is_not_used() {
    let scratch = Scratch::new();
    if let Err(reason) = direct_here(&scratch) {
        return skip(&reason);
    }
    let args = ["--backend", "posix", "--direct", "auto", "--space", "100M", "--types", "2", "--dio-align", "1"];
    Launch::new(1).args(SHORT).args(args).into(&scratch).run().expect(0);
    let result = document(&scratch);
    assert_eq!(result["manifest"]["storage"]["direct_align_basis"], "not-direct");
    for p in items(&result["patterns"]).iter().filter(|p| number(&p["calls"]) > 0) {
        assert_eq!(p["direct"], false, "{p}");
        assert!(p["strategy"].as_str().unwrap().contains("refuses direct I/O with multiples of 1 bytes"), "{p}");
    }
}

#[test]
fn acceptance_of_the_flag_proves_nothing() {
    let scratch = Scratch::new();
    let disk = scratch.join("disk");
    let _mount = match Mount::new(&["-t", "tmpfs", "-o", "size=1g", "none"], &disk) {
        Ok(mount) => mount,
        Err(reason) => return skip(&format!("no tmpfs can be mounted: {reason}")),
    };
    let args = ["--backend", "posix,uring", "--direct", "auto", "--space", "300M", "--types", "2"];
    Launch::new(1).args(SHORT).args(args).into(&scratch).run().expect(0);
    for p in items(&document(&scratch)["patterns"]).iter().filter(|p| number(&p["calls"]) > 0) {
        assert_eq!(p["direct"], false, "{}", p["strategy"]);
        assert!(
            p["strategy"]
                .as_str()
                .unwrap()
                .contains("buffered, not direct: the file system accepts O_DIRECT, but uses the page cache or memory"),
            "{}",
            p["strategy"]
        );
    }
}
