//! Checks that the library applies the hints given for all files. A recorded program sets its hints in the timed region and does not
//! query them; so a separate file is opened with them before.

use std::path::Path;

use beff_backends::{driver, DriverOptions, OpenMode, OpenRequest};
use beff_ffi::{Comm, MpiError};

use crate::frame::records::Warning;
use crate::frame::run::agree;
use crate::frame::run::availability::{self, SkippedBackend};
use crate::frame::run::run_dir::RunDir;
use crate::frame::values::hints::ungranted_warning;
use crate::replay::config::{ReplayConfig, WhatIf};

/// Warning about hints of the repetitions of this name that are not applied. Collective over the ranks of the replay.
///
/// # Errors
/// MPI between the ranks.
pub(super) fn unapplied_hints_warning(
    comm: &Comm,
    config: &ReplayConfig,
    name: &str,
    (run_dir, not_run): (&RunDir, &[SkippedBackend]),
    options: &DriverOptions,
) -> Result<Option<Warning>, MpiError> {
    let hints = config.change_of(name).map_or(config.hints.as_slice(), WhatIf::hints);
    let row = driver(config.backend_of(name)).filter(|row| row.has_hints && !hints.is_empty());
    let Some(row) = row.filter(|row| availability::skip_reason(not_run, row.name).is_none()) else { return Ok(None) };
    let path = run_dir.file(&Path::new(name).join("hints.dat"));
    let driver = (row.create)(options);
    let opened = driver.open(&OpenRequest { path: &path, mode: OpenMode::CreateNew, comm, hints });
    // A failing open is reported by the repetition.
    let Ok(file) = agree::all_or_first_error(comm, opened.map_err(|e| e.to_string()))? else { return Ok(None) };
    let granted = file.hints_in_use().unwrap_or_default();
    let _ = file.close();
    comm.barrier()?;
    if comm.is_root() {
        let _ = path.remove();
    }
    Ok(ungranted_warning([(hints, granted.as_slice())].into_iter(), name))
}
