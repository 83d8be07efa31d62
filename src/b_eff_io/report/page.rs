//! A run as a page for a browser: the values, the papers' panels, the ladder, where the time went, latencies, the timeline, and what
//! must be known of all that.

mod bandwidth;
mod ladder;
mod latency;
mod partitions;
mod shown;
mod time;
mod timeline;

use crate::b_eff_io::records::RunResult;
use crate::b_eff_io::values::{standout, Derived};
use crate::frame::records::Access;
use crate::frame::report::html::{facts, Finding, Headline, Run};
use crate::frame::report::screen::rate;
use crate::frame::report::text::count;
use crate::frame::values::MPI_IO;

pub(super) use self::shown::over_ranks;
use self::shown::Shown;
use super::comparable;
use super::layout::{access_index, measuring, partition_value};
use super::screen::{checked, findings, partition, within};
use super::table::validity;
use super::table::values::{best_ranks, value};

/// Backends with pictures of their own; a damaged file may name any number.
const BACKENDS: usize = 8;

/// The page of one run.
#[must_use]
pub(super) fn page(result: &RunResult, derived: &Derived) -> Run {
    let (machine, storage) = (&result.manifest.machine, &result.manifest.storage);
    let backends: Vec<String> = measuring(result).take(BACKENDS).cloned().collect();
    let names: Vec<&str> = backends.iter().map(String::as_str).collect();
    let best = partition(result, derived, &names);
    let shown = best.map(|ranks| Shown::new(result, &backends, ranks).compared());
    let mut sections = Vec::new();
    if let Some(shown) = &shown {
        sections.push(bandwidth::section(result, shown));
        sections.extend(ladder::section(shown));
        sections.extend(time::section(shown));
        sections.extend(latency::section(shown));
        sections.push(timeline::section(result, shown));
        sections.extend(partitions::sections(result, derived));
    }
    let release = result.config.release;
    let judged = derived.validity.iter().filter(|v| v.release == release);
    sections.push(facts::validity(judged.map(|v| (v.backend.clone(), v.criteria.as_slice()))));
    sections.push(facts::warnings(result, derived));
    sections.push(facts::set_up(&comparable::facts(result)));
    Run {
        benchmark: "b_eff_io",
        title: facts::title("b_eff_io", machine, Some(storage)),
        facts: facts::line(machine, Some(storage), result.ending.outcome, result.ending.real_seconds),
        alarms: facts::alarms(result, "DATA CORRUPTION: the storage did not give back what was written."),
        headlines: backends.iter().map(|backend| headline(result, derived, backend)).collect(),
        findings: words(result, derived, shown.as_ref(), &names),
        sections,
    }
}

fn headline(result: &RunResult, derived: &Derived, backend: &str) -> Headline {
    let release = result.config.release;
    let system = derived.systems.iter().find(|s| s.backend == backend);
    let found = system.and_then(|s| value(&s.values, release));
    let ranks = system.and_then(|s| best_ranks(s, release));
    let averages = ranks.and_then(|ranks| partition_value(derived, backend, ranks));
    let numbers = Access::ALL.iter().filter_map(|access| {
        let mean = averages?.access_mb_per_second[access_index(*access)]?;
        Some((access.name().to_owned(), rate(mean, None)))
    });
    let is_valid = validity::find(derived, backend, release).is_some_and(|v| v.valid);
    let on = ranks.map(|ranks| format!(", {}", count(ranks, "rank"))).unwrap_or_default();
    let within = ranks.map_or_else(String::new, |ranks| within(derived, backend, ranks));
    Headline {
        label: format!("b_eff_io (release {}), {backend}{on}", release.name()),
        value: found.map_or_else(|| "not measured".into(), |v| rate(v, None) + &within),
        unit: if found.is_some() { "MB/s" } else { "" },
        verdict: Some(facts::verdict(is_valid, result)),
        numbers: numbers.collect(),
    }
}

fn words(result: &RunResult, derived: &Derived, shown: Option<&Shown>, backends: &[&str]) -> Vec<Finding> {
    let release = result.config.release;
    // Without MPI-IO there is no b_eff_io at all: of the others only what else is missing would be news.
    let judged = backends.iter().filter(|backend| !backends.contains(&MPI_IO) || **backend == MPI_IO);
    let judged = judged.filter_map(|b| Some((*b, validity::find(derived, b, release)?.criteria.as_slice())));
    let several = backends.len() > 1;
    let found =
        shown.map(|shown| standout::findings(&shown.result, &shown.derived.ladder, shown.ranks)).unwrap_or_default();
    let found = found.iter().map(|f| findings::sentence(f, several)).collect();
    [
        facts::lacks(judged),
        facts::stands_out(found),
        Some(facts::trust(result, checked(result), &derived.warnings, several)),
    ]
    .into_iter()
    .flatten()
    .collect()
}

#[cfg(test)]
mod tests;
