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
use crate::replay::config::ReplayConfig;

/// Warning about hints that are not applied, if a backend has hints. Collective over the ranks of the replay.
///
/// # Errors
/// MPI between the ranks.
pub(super) fn unapplied_hints_warning(
    comm: &Comm,
    config: &ReplayConfig,
    (run_dir, not_run): (&RunDir, &[SkippedBackend]),
    options: impl Fn(&str) -> DriverOptions,
) -> Result<Option<Warning>, MpiError> {
    let rows = config.backends.iter().filter_map(|name| driver(name));
    let Some(row) =
        rows.into_iter().find(|row| row.has_hints && availability::skip_reason(not_run, row.name).is_none())
    else {
        return Ok(None);
    };
    if config.hints.is_empty() {
        return Ok(None);
    }
    let path = run_dir.file(&Path::new(row.name).join("hints.dat"));
    let driver = (row.create)(&options(row.name));
    let opened = driver.open(&OpenRequest { path: &path, mode: OpenMode::CreateNew, comm, hints: &config.hints });
    // A failing open is reported by the repetition.
    let Ok(file) = agree::all_or_first_error(comm, opened.map_err(|e| e.to_string()))? else { return Ok(None) };
    let granted = file.hints_in_use().unwrap_or_default();
    let _ = file.close();
    comm.barrier()?;
    if comm.is_root() {
        let _ = path.remove();
    }
    Ok(ungranted_warning([(config.hints.as_slice(), granted.as_slice())].into_iter(), row.name))
}
