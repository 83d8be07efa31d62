//! The run directory of a command: created with a name that no other run has, removed at the end.

use std::path::Path;

use beff_ffi::{Comm, MpiError};

use super::crash_report;
use super::start::CommandError;
use crate::frame::error::UsageError;
use crate::frame::records::{kinds, RunOutcome, Warning};
use crate::frame::report::Outputs;
use crate::frame::run::run_dir::RunDir;
use crate::frame::words::clause;

/// Creates the directory; without a `name`, one from time and process of rank 0. `outputs` are returned if it is created, and removed if
/// not. Collective.
///
/// # Errors
/// Equal on every rank; MPI errors.
pub(crate) fn create_run_directory(
    world: &Comm,
    parent: &Path,
    name: Option<&str>,
    backends: &[String],
    outputs: Option<Outputs>,
) -> Result<(RunDir, Option<Outputs>), CommandError> {
    let name = agree_on_name(world, name)?;
    match RunDir::create(world, parent, &name, backends)? {
        Ok(run_dir) => {
            crash_report::watch(&run_dir, world.rank(), world.size());
            Ok((run_dir, outputs))
        }
        Err(message) => {
            if let Some(outputs) = outputs {
                outputs.discard();
            }
            Err(CommandError::Collective(UsageError::new(message, "Nothing was measured.").into()))
        }
    }
}

fn agree_on_name(world: &Comm, name: Option<&str>) -> Result<String, MpiError> {
    let name = name.map(str::to_owned).unwrap_or_else(|| {
        let now = jiff::Timestamp::now().strftime("%Y%m%dT%H%M%S");
        format!("beff-raw-{now}-{}", std::process::id())
    });
    let bytes = world.bcast_bytes(name.into_bytes(), 0)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Removes the directory on rank 0, unless the files of a complete run are kept.
pub(crate) fn clean_up(world: &Comm, run_dir: &RunDir, keep_files: bool, outcome: RunOutcome) -> Option<Warning> {
    // Every rank has closed its files, or will not use them any more.
    if outcome != RunOutcome::Failed {
        let _ = world.barrier();
    }
    if !world.is_root() || (keep_files && outcome == RunOutcome::Complete) {
        return None;
    }
    run_dir.remove().err().map(|e| removal_warning(&run_dir.current_path(), &e.to_string()))
}

/// Warning for a run directory that could not be removed.
pub(crate) fn removal_warning(path: &str, reason: &str) -> Warning {
    kinds::FILES_LEFT
        .warning()
        .with_figure("path", path)
        .with_figure("reason", reason)
        .with_text(
            format!("files remain in {path}"),
            format!("The run directory {path} could not be removed: {}.", clause(reason)),
        )
        .with_next_step(format!("Check {path}, and remove it by hand if nobody needs the files."))
}
