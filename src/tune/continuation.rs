//! `--continue TUNE.jsonl`: the journal of a search that was cut. Its trials are kept, and the search continues with the next one.

use std::path::Path;

use super::config::TuneConfig;
use super::records::{TuneResult, TuneSetup};
use crate::frame::error::UsageError;
use crate::frame::input;
use crate::frame::records::RunOutcome;
use crate::frame::report::journal::read_journal;

fn refused(path: &Path, cause: &str, next_step: &str) -> UsageError {
    UsageError::new(format!("--continue {}: {cause}", path.display()), next_step)
}

/// Reads the journal of a search with this configuration that was cut.
///
/// # Errors
/// The file is no journal of such a search.
pub(super) fn load(path: &Path, config: &TuneConfig) -> Result<TuneResult, UsageError> {
    let name_journal = "Name the journal (PREFIX.jsonl) of a search that was killed or interrupted.";
    let bytes = input::read_result(path).map_err(|e| refused(path, &e.to_string(), name_journal))?;
    let result: TuneResult = read_journal(&bytes).map_err(|e| refused(path, &e.to_string(), name_journal))?;
    match result.ending.outcome {
        RunOutcome::Killed | RunOutcome::Interrupted | RunOutcome::Limit => {}
        RunOutcome::Complete => return Err(refused(path, "the search is complete", name_journal)),
        RunOutcome::Failed => {
            return Err(refused(path, "the search ended by an error", "Remove its cause, and search anew."));
        }
    }
    let comparable = |config: &TuneConfig| {
        let mut config = config.clone();
        (config.out, config.time_limit, config.trials.run_dir) = (None, None, None);
        config
    };
    if comparable(&result.config) != comparable(config) {
        let next_step = "With --continue, give output options and --time-limit only, beside the options of the search.";
        return Err(refused(path, "the search had other options", next_step));
    }
    Ok(result)
}

/// Checks that this search has the same ranks, program, library and hosts, and the same keys.
///
/// # Errors
/// What differs.
pub(super) fn check(path: &Path, then: &TuneSetup, now: &TuneSetup) -> Result<(), UsageError> {
    let hosts =
        |setup: &TuneSetup| setup.machine.hosts.iter().map(|host| host.name.clone()).collect::<Vec<_>>().join(", ");
    let ranks = |setup: &TuneSetup| setup.machine.ranks.to_string();
    let facts = [
        ("number of ranks", ranks(then), ranks(now)),
        ("source revision", then.machine.git_revision.clone(), now.machine.git_revision.clone()),
        ("MPI library", then.machine.mpi_library.clone(), now.machine.mpi_library.clone()),
        ("list of hosts", hosts(then), hosts(now)),
    ];
    if let Some((what, then, now)) = facts.into_iter().find(|(_, then, now)| then != now) {
        let cause = format!("the {what} was {then}, and is {now} now");
        return Err(refused(path, &cause, "Continue it with the same launch, or search anew."));
    }
    if then.factors != now.factors {
        return Err(refused(path, "the library grants other hints now", "Search anew."));
    }
    Ok(())
}
