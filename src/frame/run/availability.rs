//! Finds backends that cannot work on every rank with files in the run directory, before anything is measured.

use std::path::Path;

use beff_backends::{check_availability, Availability, DriverOptions};
use beff_ffi::{Comm, MpiError};

use crate::frame::backends;
use crate::frame::error::UsageError;
use crate::frame::rank_directories::rank_file_name;
use crate::frame::run::agree::first_message;
use crate::frame::run::run_dir::RunDir;

/// The backend with the fewest requirements.
const POSIX: &str = "posix";

/// A backend that is not run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SkippedBackend {
    /// Its name.
    pub backend: String,
    /// Reason and rank.
    pub reason: String,
}

/// The `contestants` that cannot work here. Inner: rank and message of a trial that failed with a storage error. Equal on all ranks.
/// Collective.
///
/// # Errors
/// MPI errors.
pub fn find_unavailable(
    world: &Comm,
    run_dir: &RunDir,
    contestants: &[String],
    options: impl Fn(&str) -> DriverOptions,
) -> Result<Result<Vec<SkippedBackend>, (u64, String)>, MpiError> {
    let mut all = Vec::new();
    for (contestant, row) in contestants.iter().filter_map(|name| Some((name, backends::row(name)?))) {
        let name = Path::new(contestant).join(rank_file_name("trial", world.rank()));
        let (unable, failed) = match check_availability(row, &options(contestant), &run_dir.file(&name)) {
            Availability::Available => (None, None),
            Availability::Unavailable(e) => (Some(format!("{}: {}", e.operation, e.text)), None),
            Availability::Failed(e) => (None, Some(format!("trial of {contestant}: {e}"))),
        };
        if let Some(failed) = first_message(world, failed)? {
            return Ok(Err(failed));
        }
        if let Some((rank, reason)) = first_message(world, unable)? {
            all.push(SkippedBackend {
                backend: contestant.clone(),
                reason: format!("cannot work here: {reason} (rank {rank})"),
            });
        }
    }
    Ok(Ok(all))
}

/// Refuses a run without a backend that can work.
///
/// # Errors
/// The reason of each backend, if none of them can work.
pub fn check_any_available(backends: &[String], not_run: &[SkippedBackend]) -> Result<(), UsageError> {
    if not_run.is_empty() || not_run.len() < backends.len() {
        return Ok(());
    }
    let reasons: Vec<String> = not_run.iter().map(|n| format!("--backend {} {}", n.backend, n.reason)).collect();
    let next_step = if not_run.iter().any(|n| n.backend.starts_with(POSIX)) {
        "Follow the advice of one of these reasons, or choose another backend."
    } else {
        "Choose another backend: posix needs nothing that is missing here."
    };
    Err(UsageError::new(reasons.join("; "), next_step))
}

/// Reason why this backend is not run; None if it is.
#[must_use]
pub fn skip_reason<'a>(not_run: &'a [SkippedBackend], backend: &str) -> Option<&'a str> {
    not_run.iter().find(|n| n.backend == backend).map(|n| n.reason.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_is_refused_only_if_no_backend_is_available() {
        let names = |list: &[&str]| list.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        let uring = [SkippedBackend { backend: "uring".into(), reason: "cannot work here: no".into() }];
        assert!(check_any_available(&names(&["uring", "null"]), &uring).is_ok());
        assert!(check_any_available(&names(&["mpiio"]), &[]).is_ok());
        let error = check_any_available(&names(&["uring"]), &uring).unwrap_err();
        assert!(error.to_string().contains("--backend uring cannot work here: no"), "{error}");
        assert_eq!((skip_reason(&uring, "uring"), skip_reason(&uring, "posix")), (Some("cannot work here: no"), None));
    }
}
