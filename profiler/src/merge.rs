//! Behind MPI_Finalize, rank 0 has the files of all ranks made into one profile.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use beff_trace::raw::ProcessFile;
use beff_trace::End;

use crate::message::{is_heard, say};

/// How long the last ranks may take from the end of MPI to the end of their files.
const PATIENCE: Duration = Duration::from_secs(30);

/// Runs `BEFF_PROFILE_MERGER profile merge DIR -o OUT`. What it says goes to the stderr of this process, its stdout there too.
pub fn merge_behind_finalize(dir: &Path, out: &Path, ranks: u32) {
    let Some(merger) = std::env::var_os("BEFF_PROFILE_MERGER") else {
        return say("BEFF_PROFILE_OUT is set but BEFF_PROFILE_MERGER is not: merge with `beff-raw profile merge`");
    };
    wait_for_all(dir, ranks);
    let mut command = Command::new(&merger);
    command.args(["profile", "merge"]).arg(dir).arg("-o").arg(out).env_remove("LD_PRELOAD");
    command.stdin(Stdio::null());
    if is_heard() {
        command.stdout(std::io::stderr());
    } else {
        command.stdout(Stdio::null()).stderr(Stdio::null());
    }
    match command.status() {
        Ok(status) if status.success() => {}
        Ok(status) => say(&format!(
            "{} ended with {status}; the files of the ranks are in {}",
            merger.to_string_lossy(),
            dir.display()
        )),
        Err(e) => say(&format!(
            "cannot run {}: {e}; the files of the ranks are in {}",
            merger.to_string_lossy(),
            dir.display()
        )),
    }
}

/// Waits until every rank has written its end. A rank that does not is merged as it is.
fn wait_for_all(dir: &Path, ranks: u32) {
    let until = Instant::now() + PATIENCE;
    for rank in 1..ranks {
        let path = dir.join(format!("rank-{rank}.beff"));
        while Instant::now() < until && ProcessFile::open(&path).is_ok_and(|file| file.head().end == End::Cut) {
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}
