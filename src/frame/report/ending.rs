//! How a run ended, in words, and the errors and warnings of it: the same for every benchmark.

use crate::frame::records::{ErrorRecord, Outcome};

use super::text::Page;

/// What the reader must know before any number and again at the end; None: nothing.
pub(crate) fn sentence(outcome: Outcome) -> Option<&'static str> {
    match outcome {
        Outcome::Complete => None,
        Outcome::Interrupted => Some("INTERRUPTED by a signal: these results end where the run was stopped."),
        Outcome::Failed => Some("FAILED: an error ended this run; these results end where it happened."),
        Outcome::Killed => Some("KILLED: no end was recorded; these results are what the journal holds."),
    }
}

/// What the line with the value says of it.
pub(crate) fn mark(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Complete => "",
        Outcome::Interrupted => ", INTERRUPTED",
        Outcome::Failed => ", FAILED",
        Outcome::Killed => ", KILLED",
    }
}

/// The section on errors; nothing without any.
pub(crate) fn errors(page: &mut Page, errors: &[ErrorRecord]) {
    if errors.is_empty() {
        return;
    }
    page.heading("Errors");
    for error in errors {
        let others = match error.ranks_affected {
            0 | 1 => String::new(),
            all => format!(" ({all} ranks saw an error)"),
        };
        page.hanging("  - ", &format!("{}, rank {}{others}: {}", error.during, error.rank, error.message));
        page.hanging("    -> ", &error.next_step);
    }
}

/// The section on warnings, each with its cause and next step; nothing without any.
pub(crate) fn warnings(page: &mut Page, warnings: impl Iterator<Item = (String, String)>) {
    for (number, (cause, next_step)) in warnings.enumerate() {
        if number == 0 {
            page.heading("Warnings");
        }
        page.hanging("  - ", &cause);
        page.hanging("    -> ", &next_step);
    }
}
