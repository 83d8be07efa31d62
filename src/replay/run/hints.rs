//! Checks that the library applies the hints given for all files. A recorded program sets its hints in the timed region and does not
//! query them; so a separate file is opened with them before.

use beff_backends::{driver, DriverOptions};
use beff_ffi::{Comm, MpiError};

use crate::frame::records::Warning;
use crate::frame::run::availability::{self, SkippedBackend};
use crate::frame::run::granted_hints::granted_hints;
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
    // A failing open is reported by the repetition.
    let granted = granted_hints(comm, run_dir, &*(row.create)(options), name, hints)?;
    Ok(granted.and_then(|granted| ungranted_warning([(hints, granted.as_slice())].into_iter(), name)))
}
