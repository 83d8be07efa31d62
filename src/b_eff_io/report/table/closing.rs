//! The last lines, where the result of each backend has one line.

use crate::b_eff_io::config::Buffers;
use crate::b_eff_io::records::RunResult;
use crate::b_eff_io::values::Derived;
use crate::frame::report::criteria;
use crate::frame::report::ending;
use crate::frame::report::text::{count, Page};

use super::validity;
use super::values::{best_ranks, value};
use crate::b_eff_io::report::layout::measuring;

/// How it ended, and one line for each backend with the value by the release of the run, its ranks and its validity, all
/// of it on one line for grep.
pub(super) fn end(page: &mut Page, result: &RunResult, derived: &Derived) {
    let run = count(result.patterns.iter().filter(|r| r.was_run()).count() as u64, "pattern run");
    let checked =
        count(result.patterns.iter().map(|r| r.verification.words_checked).fold(0, u64::saturating_add), "word");
    let complete = format!("Run complete: {run}, {checked} of data compared with what was written.");
    ending::reminder(page, result, &complete);
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
    let warm = if result.config.buffers == Buffers::Reused { ", from warm buffers" } else { "" };
    format!("b_eff_io (release {}) = {value}, {backend}{warm}, {verdict}{}", release.name(), ending::marks(result))
}
