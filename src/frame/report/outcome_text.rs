//! Texts about outcome and errors of a run, common to all benchmarks.

use crate::frame::records::{ErrorRecord, JournaledResult, MachineRecord, RunOutcome};

/// Notice before all numbers and again at the end; None for a complete run.
pub(crate) fn outcome_notice(outcome: RunOutcome) -> Option<&'static str> {
    match outcome {
        RunOutcome::Complete => None,
        RunOutcome::Limit => Some("ENDED BY THE TIME LIMIT: these results end where the run was stopped."),
        RunOutcome::Interrupted => Some("INTERRUPTED by a signal: these results end where the run was stopped."),
        RunOutcome::Failed => Some("FAILED: an error ended this run; these results end where it occurred."),
        RunOutcome::Killed => Some("KILLED: no end was recorded; these results are those in the journal."),
    }
}

/// Suffix of the value line for the run: outcome and data corruption.
pub(crate) fn result_suffix(result: &impl JournaledResult) -> String {
    format!("{}{}", outcome_suffix(result.outcome()), if result.is_corrupt() { ", DATA CORRUPTION" } else { "" })
}

pub(crate) fn outcome_suffix(outcome: RunOutcome) -> &'static str {
    match outcome {
        RunOutcome::Complete => "",
        RunOutcome::Limit => ", ENDED BY THE TIME LIMIT",
        RunOutcome::Interrupted => ", INTERRUPTED",
        RunOutcome::Failed => ", FAILED",
        RunOutcome::Killed => ", KILLED",
    }
}

/// Suffix of the value line for the machine.
pub(crate) fn oversubscription_suffix(machine: &MachineRecord) -> &'static str {
    if machine.hosts.iter().any(|h| h.ranks > h.cores) {
        ", OVERSUBSCRIBED"
    } else {
        ""
    }
}

/// Text of an error: measurement, rank and message.
pub(crate) fn error_text(error: &ErrorRecord) -> String {
    let others = match error.ranks_affected {
        0 | 1 => String::new(),
        all => format!(" ({all} ranks had an error)"),
    };
    format!("{}, rank {}{others}: {}", error.during, error.rank, error.message)
}
