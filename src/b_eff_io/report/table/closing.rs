//! How the run ended: said at the top and at the end, where the result of each backend has one line.

use crate::b_eff_io::config::Release;
use crate::b_eff_io::records::RunResult;
use crate::b_eff_io::values::{Derived, SystemValue};
use crate::frame::records::Outcome;
use crate::frame::report::criteria;
use crate::frame::report::ending;
use crate::frame::report::text::{count, Page};

use super::values::value;
use super::{measuring, validity};

/// What the reader must know before any number.
pub(super) fn banner(page: &mut Page, result: &RunResult) {
    if let Some(text) = ending::sentence(result.ending.outcome) {
        page.hanging("*** ", text);
    }
    if is_corrupt(result) {
        page.hanging("*** ", "DATA CORRUPTION: the storage did not give back what was written; see below.");
    }
    if result.ending.outcome != Outcome::Complete || is_corrupt(result) {
        page.blank();
    }
}

/// The last lines: how it ended, and one line for each backend with the value by the release of the run, its ranks and
/// its validity, all of it on one line for grep.
pub(super) fn end(page: &mut Page, result: &RunResult, derived: &Derived) {
    page.blank();
    if is_corrupt(result) {
        page.hanging("*** ", "DATA CORRUPTION was found.");
    }
    match ending::sentence(result.ending.outcome) {
        Some(text) => page.hanging("*** ", text),
        None => {
            let run = result.patterns.iter().filter(|r| r.was_run()).count() as u64;
            let checked: u64 = result.patterns.iter().map(|r| r.verification.words_checked).sum();
            page.line(format!(
                "Run complete: {}, {} of data compared with what was written.",
                count(run, "pattern run"),
                count(checked, "word")
            ));
        }
    }
    for backend in measuring(result) {
        page.line(value_line(result, derived, backend));
    }
    if measuring(result).next().is_none() {
        page.line("The null backend moves nothing: there is no b_eff_io, only the cost of the program itself.");
    }
}

fn value_line(result: &RunResult, derived: &Derived, backend: &str) -> String {
    let release = result.config.release;
    let system = derived.systems.iter().find(|s| s.backend == backend);
    let value = match system.and_then(|s| value(&s.values, release).map(|v| (v, best_ranks(s, release)))) {
        Some((value, Some(ranks))) => format!("{value:.3} MB/s on {}", count(ranks, "rank")),
        Some((value, None)) => format!("{value:.3} MB/s"),
        None => "not measured".to_owned(),
    };
    let verdict = validity::find(derived, backend, release)
        .map_or_else(|| "NOT VALID".to_owned(), |v| criteria::verdict(&v.criteria));
    let outcome = ending::mark(result.ending.outcome);
    let corrupt = if is_corrupt(result) { ", DATA CORRUPTION" } else { "" };
    format!("b_eff_io (release {}) = {value}, {backend}, {verdict}{outcome}{corrupt}", release.name())
}

/// Ranks of the partition with the best value.
pub(super) fn best_ranks(system: &SystemValue, release: Release) -> Option<u64> {
    let [r0_5, r1, r2_1] = system.ranks;
    match release {
        Release::R0_5 => r0_5,
        Release::R1 => r1,
        Release::R2_1 => r2_1,
    }
}

pub(super) fn is_corrupt(result: &RunResult) -> bool {
    !result.corruptions.is_empty()
        || result.patterns.iter().any(|r| r.verification.words_wrong > 0)
        || result.types.iter().any(|t| t.full_verification.is_some_and(|v| v.words_wrong > 0))
}
