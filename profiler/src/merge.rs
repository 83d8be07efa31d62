//! After MPI_Finalize, rank 0 merges the files of all ranks into one profile.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use beff_trace::raw::ProcessFile;
use beff_trace::RecordingStatus;

use crate::environment::variable;
use crate::message::{is_original_stderr, report};

/// Maximum time from MPI_Finalize on rank 0 to the end of the last rank's file.
const MERGE_WAIT_LIMIT: Duration = Duration::from_secs(30);

/// Runs `BEFF_PROFILE_MERGER profile merge DIR -o OUT`. Its stdout and stderr go to the stderr of this process.
pub fn merge_after_finalize(dir: &Path, out: &Path, ranks: u32) {
    let Some(merger) = variable("BEFF_PROFILE_MERGER") else {
        return report("BEFF_PROFILE_OUT is set but BEFF_PROFILE_MERGER is not: merge with `beff-raw profile merge`");
    };
    wait_for_ranks(dir, ranks);
    let mut command = Command::new(&merger);
    command.args(["profile", "merge"]).arg(dir).arg("-o").arg(out).env_remove("LD_PRELOAD");
    if let Some(launched) = variable("BEFF_PROFILE_LAUNCHED") {
        command.env("BEFF_PROFILE_LAUNCHED", launched);
    }
    command.stdin(Stdio::null());
    if is_original_stderr() {
        command.stdout(std::io::stderr());
    } else {
        command.stdout(Stdio::null()).stderr(Stdio::null());
    }
    match command.status() {
        Ok(status) if status.success() => {}
        Ok(status) => report(&format!(
            "{} ended with {status}; the files of the ranks are in {}",
            merger.to_string_lossy(),
            dir.display()
        )),
        Err(e) => report(&format!(
            "cannot run {}: {e}; the files of the ranks are in {}",
            merger.to_string_lossy(),
            dir.display()
        )),
    }
}

/// Waits until every rank has written its end. Otherwise its file is merged as it is.
fn wait_for_ranks(dir: &Path, ranks: u32) {
    let until = Instant::now() + MERGE_WAIT_LIMIT;
    for rank in 1..ranks {
        let path = dir.join(format!("rank-{rank}.beff"));
        while Instant::now() < until
            && ProcessFile::open(&path).is_ok_and(|file| file.head().end == RecordingStatus::Truncated)
        {
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}
