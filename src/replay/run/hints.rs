//! Checks that the library applies the hints given for all files. A recorded program sets its hints in the timed region and does not
//! query them; so a separate file is opened with them before.

use beff_backends::{driver, DriverOptions};
use beff_ffi::{Comm, MpiError};

use crate::frame::backends::is_variant;
use crate::frame::records::Warning;
use crate::frame::run::availability::{self, SkippedBackend};
use crate::frame::run::granted_hints::granted_hints;
use crate::frame::run::run_dir::RunDir;
use crate::frame::values::hints::ungranted_warning;
use crate::replay::config::ReplayConfig;

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
    // Those of the run are reported with the backend.
    let is_base = config.checked_as(name) == name && !is_variant(name);
    let hints = if is_base { config.hints.as_slice() } else { config.own_hints(name) };
    let row = driver(config.backend_of(name)).filter(|row| row.has_hints && !hints.is_empty());
    let can_run = availability::skip_reason(not_run, config.checked_as(name)).is_none();
    let Some(row) = row.filter(|_| can_run) else { return Ok(None) };
    // A failing open is reported by the repetition.
    let granted = granted_hints(comm, run_dir, &*(row.create)(options), name, hints)?;
    Ok(granted.and_then(|granted| ungranted_warning([(hints, granted.as_slice())].into_iter(), name)))
}
