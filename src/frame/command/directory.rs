//! The run directory as the commands use it: made with a name that no other run has, removed at the end.

use std::path::Path;

use beff_ffi::{Comm, MpiError};

use super::start::Early;
use crate::frame::error::UsageError;
use crate::frame::records::{kinds, Outcome, Warning};
use crate::frame::report::Outputs;
use crate::frame::run::run_dir::RunDir;
use crate::frame::words::clause;

/// Makes the directory; without a `name`, one from time and process of rank 0. `outputs` come back if it is made, and
/// are taken away if not. Collective.
///
/// # Errors
/// On every rank the same; MPI between the ranks.
pub(crate) fn make(
    world: &Comm,
    parent: &Path,
    name: Option<&str>,
    backends: &[String],
    outputs: Option<Outputs>,
) -> Result<(RunDir, Option<Outputs>), Early> {
    let name = agreed_name(world, name)?;
    match RunDir::make(world, parent, &name, backends)? {
        Ok(run_dir) => Ok((run_dir, outputs)),
        Err(message) => {
            if let Some(outputs) = outputs {
                outputs.discard();
            }
            Err(Early::Everywhere(UsageError::new(message, "Nothing was measured.").into()))
        }
    }
}

fn agreed_name(world: &Comm, name: Option<&str>) -> Result<String, MpiError> {
    let name = name.map(str::to_owned).unwrap_or_else(|| {
        let now = jiff::Timestamp::now().strftime("%Y%m%dT%H%M%S");
        format!("beff-raw-{now}-{}", std::process::id())
    });
    let bytes = world.bcast_bytes(name.into_bytes(), 0)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Removes the directory on rank 0, unless the user wants to keep the files of a run that is complete.
pub(crate) fn clean_up(world: &Comm, run_dir: &RunDir, keep_files: bool, outcome: Outcome) -> Option<Warning> {
    // Every rank has closed its files, or will not use them any more.
    if outcome != Outcome::Failed {
        let _ = world.barrier();
    }
    if !world.is_root() || (keep_files && outcome == Outcome::Complete) {
        return None;
    }
    run_dir.remove().err().map(|e| files_left(&run_dir.whereabouts(), &e.to_string()))
}

/// The run directory could not be removed.
pub(crate) fn files_left(path: &str, reason: &str) -> Warning {
    kinds::FILES_LEFT
        .warning()
        .figure("path", path)
        .figure("reason", reason)
        .told(
            format!("files are left: look into {path}"),
            format!("The run directory {path} could not be removed: {}.", clause(reason)),
        )
        .next(format!("Look into {path}, and remove by hand what nobody needs."))
}
