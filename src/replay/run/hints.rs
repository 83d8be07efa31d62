//! Whether the library takes the hints that were given for all files. A recorded program asks for its hints in the clock, and asks
//! nobody what became of them; so a file of its own is opened with them before.

use std::path::Path;

use beff_backends::{driver, DriverOptions, OpenMode, OpenRequest};
use beff_ffi::{Comm, MpiError};

use crate::frame::records::Warning;
use crate::frame::run::able::{self, NotRun};
use crate::frame::run::agree;
use crate::frame::run::run_dir::RunDir;
use crate::frame::values::hints::missing;
use crate::replay::config::ReplayConfig;

/// The warning of what it does not take, if a backend has hints. Collective over the ranks of the replay.
///
/// # Errors
/// MPI between the ranks.
pub(super) fn not_taken(
    comm: &Comm,
    config: &ReplayConfig,
    (run_dir, not_run): (&RunDir, &[NotRun]),
    options: impl Fn(&str) -> DriverOptions,
) -> Result<Option<Warning>, MpiError> {
    let rows = config.backends.iter().filter_map(|name| driver(name));
    let Some(row) = rows.into_iter().find(|row| row.has_hints && able::reason(not_run, row.name).is_none()) else {
        return Ok(None);
    };
    if config.hints.is_empty() {
        return Ok(None);
    }
    let path = run_dir.file(&Path::new(row.name).join("hints.dat"));
    let driver = (row.make)(&options(row.name));
    let opened = driver.open(&OpenRequest { path: &path, mode: OpenMode::CreateNew, comm, hints: &config.hints });
    // What cannot be opened is told by the pass.
    let Ok(file) = agree::all(comm, opened.map_err(|e| e.to_string()))? else { return Ok(None) };
    let granted = file.hints_in_force().unwrap_or_default();
    let _ = file.close();
    comm.barrier()?;
    if comm.is_root() {
        let _ = path.remove();
    }
    Ok(missing([(config.hints.as_slice(), granted.as_slice())].into_iter(), row.name))
}
