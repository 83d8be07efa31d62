//! One screen of a run: the value and whether it counts, a table of the types and one of the chunk sizes, what stands out,
//! what to trust, and what to type next. At most 40 lines of 80 columns for one backend, 60 for four.

pub(super) mod findings;
mod numbers;

use crate::b_eff_io::config::{Buffers, Release, RepeatPolicy};
use crate::b_eff_io::records::RunResult;
use crate::b_eff_io::values::Derived;
use crate::frame::report::screen;
use crate::frame::report::sheet::{span, Look, Screen};
use crate::frame::report::text::{count, list};
use crate::frame::report::Place;
use crate::frame::units::{format_seconds, format_size};
use crate::frame::values::MPI_IO;

use super::layout::measuring;
use super::table::values::{best_ranks, value};
use super::table::{header, validity};

/// The screen of one run.
#[must_use]
pub fn screen(result: &RunResult, derived: &Derived, place: &Place) -> Screen {
    let backends = measuring(result).count();
    Screen::within(place.columns, screen::most_lines(backends), |page| write(page, result, derived, place))
}

fn write(page: &mut Screen, result: &RunResult, derived: &Derived, place: &Place) {
    let (config, manifest) = (&result.config, &result.manifest);
    screen::banner(page, result, "DATA CORRUPTION: the storage did not give back what was written.");
    screen::head(page, &manifest.machine, "b_eff_io", Some(&manifest.storage));
    let each = if config.backends.len() > 1 { " for each backend" } else { "" };
    let asked = format!("release {}, T = {}{each}", config.release.name(), format_seconds(config.time_seconds));
    screen::times(page, &asked, result.ending.outcome, result.ending.real_seconds);
    screen::settings(page, header::unusual(config));
    let backends: Vec<&str> = measuring(result).map(String::as_str).collect();
    values(page, result, derived, &backends);
    let shown = &backends[..backends.len().min(screen::BACKENDS)];
    if let Some(ranks) = partition(result, derived, &backends) {
        numbers::write(page, result, derived, shown, ranks);
        findings::write(page, result, derived, ranks);
    }
    screen::not_shown(page, backends.len() - shown.len(), "backend");
    screen::trust(page, result, checked(result), &derived.warnings, backends.len() > 1);
    screen::end(page, place, screen::has_failed(result), longer(derived, config.release));
}

/// A line for each backend, and why a value does not count.
fn values(page: &mut Screen, result: &RunResult, derived: &Derived, backends: &[&str]) {
    page.blank();
    if backends.is_empty() {
        return page.line([span(
            Look::Plain,
            "The null backend moves nothing: there is no b_eff_io, only the cost of the program.",
        )]);
    }
    let release = result.config.release;
    let warm = if result.config.buffers == Buffers::Reused { ", from warm buffers" } else { "" };
    for backend in backends.iter().take(screen::BACKENDS) {
        let system = derived.systems.iter().find(|s| s.backend == *backend);
        let found = system.and_then(|s| Some((value(&s.values, release)?, best_ranks(s, release))));
        let value = match found {
            Some((value, Some(ranks))) => {
                let within = within(derived, backend, ranks);
                format!("{} MB/s{within} on {}", screen::rate(value, None), count(ranks, "rank"))
            }
            Some((value, None)) => format!("{} MB/s", screen::rate(value, None)),
            None => "not measured".to_owned(),
        };
        let valid = validity::find(derived, backend, release).is_some_and(|v| v.valid);
        let [verdict, marks] = screen::verdict(valid, result);
        page.line([
            span(Look::Plain, format!("b_eff_io (release {}) = ", release.name())),
            span(Look::Strong, value),
            span(Look::Plain, format!(", {backend}{warm}, ")),
            verdict,
            marks,
        ]);
    }
    known(page, result, derived, backends);
    // Without MPI-IO there is no b_eff_io at all: of the others only what else is missing would be news.
    let has_mpi_io = backends.contains(&MPI_IO);
    let judged = backends.iter().filter(|backend| !has_mpi_io || **backend == MPI_IO);
    let judged =
        judged.filter_map(|backend| Some((*backend, validity::find(derived, backend, release)?.criteria.as_slice())));
    screen::missing(page, result, judged);
    let others: Vec<String> = backends.iter().filter(|b| **b != MPI_IO).map(|b| (*b).to_owned()).collect();
    if has_mpi_io && !others.is_empty() {
        let text = format!("{}: not MPI-IO, only to compare with", list(&others));
        page.field(span(Look::Plain, ""), &text, Look::Plain, 1);
    }
}

/// ` [405, 460]`; nothing where it is not known.
pub(super) fn within(derived: &Derived, backend: &str, ranks: u64) -> String {
    derived.intervals.value(backend, ranks).map_or_else(String::new, |interval| {
        format!(" [{}, {}]", screen::rate(interval.low, None), screen::rate(interval.high, None))
    })
}

/// What the interval is, or why there is none although something was to be measured again; nothing of a run that failed.
fn known(page: &mut Screen, result: &RunResult, derived: &Derived, backends: &[&str]) {
    if result.config.repeat != RepeatPolicy::Auto || screen::has_failed(result) {
        return;
    }
    let repeats = count(result.repeats.len() as u64, "repeat");
    let is_known = derived.intervals.values.iter().any(|i| backends.contains(&i.backend.as_str()));
    let text = if is_known {
        let cut = result.repeats.iter().filter(|r| r.share < 1.0).count() as u64;
        let cut = if cut > 0 { format!(", {cut} of them short") } else { String::new() };
        format!("[low, high]: 95 % interval, from {repeats} within T{cut}")
    } else {
        format!("no interval: {repeats} of patterns within T are too few; a smaller --space leaves time for more")
    };
    screen::note(page, &text);
}

/// The partition that is shown: that of the best value through MPI-IO, else through any backend, else the largest that was
/// reached.
pub(super) fn partition(result: &RunResult, derived: &Derived, backends: &[&str]) -> Option<u64> {
    let release = result.config.release;
    let of = |backend: &str| derived.systems.iter().find(|s| s.backend == backend).and_then(|s| best_ranks(s, release));
    let valued = Some(MPI_IO).filter(|b| backends.contains(b)).and_then(of);
    let valued = valued.or_else(|| backends.iter().find_map(|backend| of(backend)));
    let is_reached =
        |ranks: &u64| result.patterns.iter().any(|p| p.ranks == *ranks && backends.contains(&p.backend.as_str()));
    valued.or_else(|| result.partitions.iter().map(|p| p.ranks).filter(is_reached).max())
}

/// How much of the data was compared.
pub(super) fn checked(result: &RunResult) -> Option<String> {
    const WORD_BYTES: u64 = 8;
    let words = result.patterns.iter().map(|r| r.verification.words_checked).fold(0, u64::saturating_add);
    (words > 0)
        .then(|| format!("{} read back and compared: all as written", format_size(words.saturating_mul(WORD_BYTES))))
}

/// The time that would make the value valid, if that is what is missing.
fn longer(derived: &Derived, release: Release) -> Option<(String, &'static str)> {
    let minutes = match release {
        Release::R0_5 => 10,
        Release::R1 => 15,
        Release::R2_1 => 30,
    };
    let is_short = |v: &crate::b_eff_io::values::Validity| {
        v.release == release
            && v.backend == MPI_IO
            && v.criteria.iter().any(|c| !c.met && c.lack.starts_with("too short"))
    };
    derived
        .validity
        .iter()
        .any(is_short)
        .then(|| (format!("the same with --time {minutes}m"), "for a value that counts"))
}

#[cfg(test)]
mod tests;
