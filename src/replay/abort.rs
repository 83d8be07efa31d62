//! End of all ranks where others may wait in a call that this rank will never issue.

use super::run::ReplayAbort;
use crate::frame::command::{print_diagnostic, LAST_MESSAGE_DELAY};
use crate::frame::error::Exit;
use crate::frame::run::run_dir::RunDir;

/// Ends all ranks: others may wait in a call that this rank will never issue.
pub(super) fn abort_run(stuck: &ReplayAbort, run_dir: &RunDir) -> ! {
    let code = report_abort(stuck, run_dir);
    beff_ffi::universe::abort(code);
    std::process::exit(code)
}

/// Removes the files, reports why the run ends, and returns the exit code.
pub(super) fn report_abort(stuck: &ReplayAbort, run_dir: &RunDir) -> i32 {
    let left = run_dir
        .remove()
        .err()
        .map_or_else(String::new, |error| format!("; files in {} remain: {error}", run_dir.current_path()));
    print_diagnostic(&format!("{stuck}. Earlier measurements are in the journal of --out{left}"));
    let exit = if matches!(stuck, ReplayAbort::Interrupted) { Exit::Interrupted } else { Exit::Failure };
    // Launchers kill all processes at an abort and discard output that they have not read.
    std::thread::sleep(LAST_MESSAGE_DELAY);
    i32::from(exit.code())
}
