//! `--continue RUN.jsonl`: the journal of a run that was cut, and the conditions under which its units are comparable with those of this run.

use std::path::Path;

use serde_json::Value;

use super::config::Config;
use super::records::{PartitionRecord, RunResult};
use crate::frame::error::UsageError;
use crate::frame::input;
use crate::frame::records::{HostRecord, MachineRecord, RunOutcome};
use crate::frame::report::journal::read_journal;

/// Fields of the configuration that do not affect the measurement.
const UNRELATED_FIELDS: [&str; 5] = ["out", "run_dir", "keep_files", "time_limit", "requirements"];

fn refused(path: &Path, cause: &str, next_step: &str) -> UsageError {
    UsageError::new(format!("--continue {}: {cause}", path.display()), next_step)
}

/// Reads the journal. Its run had this configuration, and was cut.
///
/// # Errors
/// The file is no journal of such a run.
pub(super) fn load(path: &Path, config: &Config, ranks: u64) -> Result<RunResult, UsageError> {
    let name_journal = "Name the journal (PREFIX.jsonl) of a run that was killed or interrupted.";
    let bytes = input::read_result(path).map_err(|e| refused(path, &e.to_string(), name_journal))?;
    let result: RunResult = read_journal(&bytes).map_err(|e| refused(path, &e.to_string(), name_journal))?;
    match result.ending.outcome {
        RunOutcome::Killed | RunOutcome::Interrupted | RunOutcome::Limit => {}
        RunOutcome::Complete => return Err(refused(path, "the run is complete", name_journal)),
        RunOutcome::Failed => {
            let next_step = "Remove the cause of the error, and start the run anew.";
            return Err(refused(path, "the run ended by an error, which may have affected earlier units", next_step));
        }
    }
    if result.manifest.machine.ranks != ranks {
        let cause = format!("the number of ranks was {}, and is {ranks} now", result.manifest.machine.ranks);
        return Err(refused(path, &cause, "Start as many ranks."));
    }
    let differences = differing_fields(&result.config, config);
    if differences.is_empty() {
        return Ok(result);
    }
    let cause = format!("the run had other options: {}", differences.join(", "));
    Err(refused(
        path,
        &cause,
        "With --continue, give output options and --time-limit only: all others are those of the run.",
    ))
}

fn differing_fields(then: &Config, now: &Config) -> Vec<String> {
    let fields = |config: &Config| match serde_json::to_value(config) {
        Ok(Value::Object(fields)) => fields,
        _ => serde_json::Map::new(),
    };
    let (then, now) = (fields(then), fields(now));
    let differs = |key: &&String| then.get(*key) != now.get(*key) && !UNRELATED_FIELDS.contains(&key.as_str());
    now.keys().filter(differs).cloned().collect()
}

/// Checks that this run has the same program, library and hosts.
///
/// # Errors
/// What differs.
pub(super) fn check_machine(path: &Path, then: &MachineRecord, now: &MachineRecord) -> Result<(), UsageError> {
    let hosts = |machine: &MachineRecord| {
        let host = |host: &HostRecord| format!("{} ({}, {} ranks)", host.name, host.cpu, host.ranks);
        machine.hosts.iter().map(host).collect::<Vec<_>>().join(", ")
    };
    let facts = [
        ("source revision", then.git_revision.clone(), now.git_revision.clone()),
        ("version", then.program_version.clone(), now.program_version.clone()),
        ("MPI library", then.mpi_library.clone(), now.mpi_library.clone()),
        ("hosts", hosts(then), hosts(now)),
    ];
    let differs = facts.iter().find(|(_, then, now)| then != now);
    differs.map_or(Ok(()), |(what, then, now)| {
        let cause = format!("the {what} was {then}, and is {now} now");
        Err(refused(path, &cause, "Continue with the same program, MPI and hosts, or start the run anew."))
    })
}

/// Checks that the plan is that of the run.
///
/// # Errors
/// It differs.
pub(super) fn check_plan(
    path: &Path,
    then: (&[PartitionRecord], u64),
    now: (&[PartitionRecord], u64),
) -> Result<(), UsageError> {
    if then == now {
        return Ok(());
    }
    let cause = "memory or caches of the ranks differ, and so would the patterns";
    Err(refused(path, cause, "Start the run anew, or give the memory by --memory-per-process in the first place."))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::b_eff_io::cli::IoArgs;
    use crate::b_eff_io::report::fixtures;
    use crate::frame::benchmark::options_from_words;
    use crate::frame::command::backend_capabilities;

    fn config(options: &str) -> Config {
        options_from_words::<IoArgs>(options.split_whitespace()).config(&backend_capabilities()).unwrap()
    }

    #[test]
    fn output_options_alone_may_differ() {
        let then = config("-T 5s --types 0,2");
        assert_eq!(differing_fields(&then, &config("-T 5s --types 0,2 --out x --keep-files")), [""; 0]);
        assert_eq!(differing_fields(&then, &config("-T 6s --types 0")), ["time_seconds", "types"]);
    }

    #[test]
    fn another_machine_is_refused_with_the_difference() {
        let then = fixtures::ladder().manifest.machine;
        let path = Path::new("run.jsonl");
        assert_eq!(check_machine(path, &then, &then).map_err(|e| e.cause), Ok(()));
        let mut now = then.clone();
        now.git_revision = "another".into();
        now.hosts[0].ranks += 1;
        let error = check_machine(path, &then, &now).unwrap_err();
        assert!(error.cause.contains("the source revision was") && error.cause.contains("is another now"), "{error}");
    }
}
