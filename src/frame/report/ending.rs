//! How a run ended, in words, and what went wrong in it: the same for every benchmark.

use crate::frame::records::{ErrorRecord, Machine, Outcome, Record};

/// What the reader must know before any number and again at the end; None: nothing.
pub(crate) fn sentence(outcome: Outcome) -> Option<&'static str> {
    match outcome {
        Outcome::Complete => None,
        Outcome::Interrupted => Some("INTERRUPTED by a signal: these results end where the run was stopped."),
        Outcome::Failed => Some("FAILED: an error ended this run; these results end where it happened."),
        Outcome::Killed => Some("KILLED: no end was recorded; these results are what the journal holds."),
    }
}

/// What the line with the value says of the run.
pub(crate) fn marks(result: &impl Record) -> String {
    format!("{}{}", mark(result.outcome()), if result.is_corrupt() { ", DATA CORRUPTION" } else { "" })
}

/// What it says of the end alone.
pub(crate) fn mark(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Complete => "",
        Outcome::Interrupted => ", INTERRUPTED",
        Outcome::Failed => ", FAILED",
        Outcome::Killed => ", KILLED",
    }
}

/// What the line with the value says of the machine.
pub(crate) fn crowded(machine: &Machine) -> &'static str {
    if machine.hosts.iter().any(|h| h.ranks > h.cores) {
        ", OVERSUBSCRIBED"
    } else {
        ""
    }
}

/// An error as a whole: during what, on which rank, what failed and why.
pub(crate) fn told(error: &ErrorRecord) -> String {
    let others = match error.ranks_affected {
        0 | 1 => String::new(),
        all => format!(" ({all} ranks saw an error)"),
    };
    format!("{}, rank {}{others}: {}", error.during, error.rank, error.message)
}
