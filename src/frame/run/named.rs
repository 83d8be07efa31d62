//! Files that a library opens by their names. A name may lead elsewhere by now; then nothing is opened, or what was opened is not
//! used. What is opened relative to a held directory needs none of this.

use beff_backends::error::Cause;
use beff_backends::{BackendError, FilePath};

use crate::frame::backends;

/// Before and after a file is opened through this backend: its name leads to the run directory. Of this rank alone; to be agreed
/// on before the next collective call.
///
/// # Errors
/// It does not.
pub fn check(backend: &str, path: &FilePath) -> Result<(), BackendError> {
    if !backends::can(backend, |row| row.opens_by_name) {
        return Ok(());
    }
    path.check_name().map_err(|e| {
        BackendError::new(
            "open by name",
            path,
            Cause::Path,
            format!("{e}. Nothing was written there, and nothing removed"),
        )
    })
}
