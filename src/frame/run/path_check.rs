//! Files that a library opens by name. If the name does not lead to the run directory, the file is not opened, or not used. Files opened
//! relative to a held directory need no check.

use beff_backends::error::FailureCause;
use beff_backends::{BackendError, FilePath};

use crate::frame::backends;

/// Checks before and after a file is opened through this backend that its name leads to the run directory. Not collective; ranks must
/// agree on the result before the next collective call.
///
/// # Errors
/// The name leads elsewhere.
pub fn check_name(backend: &str, path: &FilePath) -> Result<(), BackendError> {
    if !backends::supports(backend, |row| row.opens_by_name) {
        return Ok(());
    }
    path.check_name().map_err(|e| {
        BackendError::new(
            "open by name",
            path,
            FailureCause::Path,
            format!("{e}. Nothing was written there, and nothing removed"),
        )
    })
}
