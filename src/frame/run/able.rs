//! Which backends can work here, on every rank, with files where they will be: asked before anything is measured.

use std::path::Path;

use beff_backends::{driver, trial, DriverOptions, Trial};
use beff_ffi::{Comm, MpiError};

use crate::frame::error::UsageError;
use crate::frame::run::agree::first_message;
use crate::frame::run::run_dir::RunDir;

/// A backend that is not run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotRun {
    /// Its name.
    pub backend: String,
    /// Why, and on which rank.
    pub reason: String,
}

/// Those of `backends` that cannot work here. Inner: rank and message of a trial that the storage failed. Equal on all ranks. Collective.
///
/// # Errors
/// MPI between the ranks.
pub fn not_run(
    world: &Comm,
    run_dir: &RunDir,
    backends: &[String],
    options: impl Fn(&str) -> DriverOptions,
) -> Result<Result<Vec<NotRun>, (u64, String)>, MpiError> {
    let mut all = Vec::new();
    for row in backends.iter().filter_map(|name| driver(name)) {
        let name = Path::new(row.name).join(format!("trial-rank{:07}.dat", world.rank()));
        let (unable, failed) = match trial(row, &options(row.name), &run_dir.file(&name)) {
            Trial::Works => (None, None),
            Trial::Unable(e) => (Some(format!("{}: {}", e.operation, e.text)), None),
            Trial::Failed(e) => (None, Some(format!("trial of {}: {e}", row.name))),
        };
        if let Some(failed) = first_message(world, failed)? {
            return Ok(Err(failed));
        }
        if let Some((rank, reason)) = first_message(world, unable)? {
            all.push(NotRun {
                backend: row.name.to_owned(),
                reason: format!("cannot work here: {reason} (rank {rank})"),
            });
        }
    }
    Ok(Ok(all))
}

/// Refuses a run of which nothing is left.
///
/// # Errors
/// The reason of each backend, if none of them can work.
pub fn refuse_if_all(backends: &[String], not_run: &[NotRun]) -> Result<(), UsageError> {
    if not_run.is_empty() || not_run.len() < backends.len() {
        return Ok(());
    }
    let reasons: Vec<String> = not_run.iter().map(|n| format!("--backend {} {}", n.backend, n.reason)).collect();
    Err(UsageError::new(reasons.join("; "), "Take another backend: posix needs nothing that is missing here."))
}

/// Why this backend is not run; None: it is.
#[must_use]
pub fn reason<'a>(not_run: &'a [NotRun], backend: &str) -> Option<&'a str> {
    not_run.iter().find(|n| n.backend == backend).map(|n| n.reason.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_is_refused_only_if_nothing_is_left_of_it() {
        let names = |list: &[&str]| list.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        let uring = [NotRun { backend: "uring".into(), reason: "cannot work here: no".into() }];
        assert!(refuse_if_all(&names(&["uring", "null"]), &uring).is_ok());
        assert!(refuse_if_all(&names(&["mpiio"]), &[]).is_ok());
        let error = refuse_if_all(&names(&["uring"]), &uring).unwrap_err();
        assert!(error.to_string().contains("--backend uring cannot work here: no"), "{error}");
        assert_eq!((reason(&uring, "uring"), reason(&uring, "posix")), (Some("cannot work here: no"), None));
    }
}
