//! How a run ended, in words, and what went wrong in it: the same for every benchmark.

use crate::frame::records::{ErrorRecord, Machine, Outcome, Record};

use super::text::Page;
use super::Views;

/// Places of corruption shown; all are in the JSON document.
const PLACES: usize = 20;

/// What the reader must know before any number and again at the end; None: nothing.
pub(crate) fn sentence(outcome: Outcome) -> Option<&'static str> {
    match outcome {
        Outcome::Complete => None,
        Outcome::Interrupted => Some("INTERRUPTED by a signal: these results end where the run was stopped."),
        Outcome::Failed => Some("FAILED: an error ended this run; these results end where it happened."),
        Outcome::Killed => Some("KILLED: no end was recorded; these results are what the journal holds."),
    }
}

/// What the reader must know before any number; `wrong_data` is said if data was wrong.
pub(crate) fn banner(page: &mut Page, result: &impl Record, wrong_data: &str) {
    let wrong_data = result.is_corrupt().then_some(wrong_data);
    let said: Vec<&str> = sentence(result.outcome()).into_iter().chain(wrong_data).collect();
    for text in &said {
        page.hanging("*** ", text);
    }
    if !said.is_empty() {
        page.blank();
    }
}

/// The same at the end; `complete` is said of a run that has its end.
pub(crate) fn reminder(page: &mut Page, result: &impl Record, complete: &str) {
    page.blank();
    if result.is_corrupt() {
        page.hanging("*** ", "DATA CORRUPTION was found.");
    }
    match sentence(result.outcome()) {
        Some(text) => page.hanging("*** ", text),
        None => page.line(complete),
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

/// What is told of wrong data.
pub(crate) struct Corruption<'a, C> {
    /// Heading of the section.
    pub title: &'a str,
    /// How much of what was compared is wrong.
    pub amount: String,
    /// The places that were recorded.
    pub places: &'a [C],
    /// One of them in words.
    pub place: fn(&C) -> String,
    /// What to do.
    pub next_step: &'a str,
}

/// The sections on wrong data, errors and warnings; nothing of what there is none of.
pub(crate) fn troubles<R: Views, C>(page: &mut Page, result: &R, derived: &R::Derived, corruption: &Corruption<'_, C>) {
    if result.is_corrupt() {
        corruptions(page, corruption);
    }
    errors(page, result);
    for (number, warning) in R::warnings(derived).iter().enumerate() {
        if number == 0 {
            page.heading("Warnings");
        }
        page.hanging("  - ", &warning.cause);
        page.hanging("    -> ", &warning.next_step);
    }
}

fn corruptions<C>(page: &mut Page, corruption: &Corruption<'_, C>) {
    page.heading(corruption.title);
    page.line(format!("  {}", corruption.amount));
    for place in corruption.places.iter().take(PLACES) {
        page.hanging("  - ", &(corruption.place)(place));
    }
    let more = corruption.places.len().saturating_sub(PLACES);
    if more > 0 {
        page.line(format!("  ... and {more} more places in the JSON document"));
    }
    page.hanging("  -> ", corruption.next_step);
}

fn errors(page: &mut Page, result: &impl Record) {
    for (number, error) in result.errors().iter().enumerate() {
        if number == 0 {
            page.heading("Errors");
        }
        page.hanging("  - ", &told(error));
        page.hanging("    -> ", &error.next_step);
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
