//! Reports of b_eff_io: its model, PREFIX.csv, PREFIX.json, a summary of each backend, and the journal. Pure functions of the records and
//! of what [`super::values`] derived from them.

mod bandwidth;
pub(crate) mod cells;
mod comparable;
mod costs;
pub mod csv;
mod details;
mod evidence;
mod findings;
#[cfg(test)]
pub mod fixtures;
mod head;
#[cfg(test)]
mod journal_tests;
pub mod json;
mod ladder;
mod latency;
pub mod layout;
mod options;
mod partitions;
pub mod plan_table;
mod program;
mod setup;
mod shown;
pub mod sum;
mod summary;
#[cfg(test)]
mod tests;
mod time;
mod timeline;
mod values;
pub mod verdicts;

use std::io;

use self::shown::{Shown, Split};
use super::records::RunResult;
use super::values::kinds::KINDS;
use super::values::standout;
use super::values::{derive, without_ladder, Derived, Validity};
use crate::b_eff_io::config::Release;
use crate::frame::records::{Kind, Record, Warning};
use crate::frame::report::model::{Model, Section};
use crate::frame::report::picture::Point;
use crate::frame::report::{common, Level, Views};
use crate::frame::values::comparable::Comparable;
use crate::frame::values::MPI_IO;

impl Views for RunResult {
    type Derived = Derived;
    const TITLE: &'static str = "b_eff_io";
    const SCHEMA: &'static str = "docs/results-schema.json";
    const KINDS: &'static [Kind] = KINDS;

    fn derived(&self) -> Derived {
        derive(self)
    }

    fn derived_for_page(&self) -> Derived {
        without_ladder(self)
    }

    fn warnings(derived: &Derived) -> &[Warning] {
        &derived.warnings
    }

    fn model(&self, derived: &Derived, level: Level) -> Model {
        model(self, derived, level)
    }

    fn over_ranks(&self, derived: &Derived) -> Vec<Point> {
        partitions::over_ranks(self, derived)
    }

    fn document(&self, derived: &Derived) -> Result<Vec<u8>, serde_json::Error> {
        json::document(self, derived)
    }

    fn schema() -> String {
        json::schema()
    }

    fn csv(&self, derived: &Derived) -> Result<Vec<u8>, ::csv::Error> {
        csv::rows(self, derived)
    }

    fn comparable(&self, derived: &Derived) -> Comparable {
        comparable::comparable(self, derived)
    }

    /// A summary of each backend.
    fn own_suffixes(&self) -> Vec<String> {
        suffixes(&self.config.backends).split_off(2)
    }

    fn own_view(&self, derived: &Derived, suffix: &str) -> Option<String> {
        let backends = &self.config.backends;
        let backend = backends.iter().find(|backend| sum_suffix(backends, backend) == suffix)?;
        Some(sum::summary(self, derived, backend))
    }

    /// As a format all summaries are one text.
    fn format(&self, derived: &Derived, word: &str) -> Option<io::Result<Vec<u8>>> {
        let summary = |backend: &String| sum::summary(self, derived, backend);
        match word {
            "json" | "csv" => Some(self.view(derived, &format!(".{word}"))),
            "sum" => Some(Ok(self.config.backends.iter().map(summary).collect::<String>().into_bytes())),
            _ => None,
        }
    }
}

/// Suffixes of the files beside the journal of a run with these backends.
pub(super) fn suffixes(backends: &[String]) -> Vec<String> {
    let sums = backends.iter().map(|backend| sum_suffix(backends, backend));
    [".json".to_owned(), ".csv".to_owned()].into_iter().chain(sums).collect()
}

fn sum_suffix(backends: &[String], backend: &str) -> String {
    if backends.len() == 1 {
        ".sum".to_owned()
    } else {
        format!(".{backend}.sum")
    }
}

/// Backends with values and pictures on a page; a damaged file may name any number.
const BACKENDS: usize = 8;

fn model(result: &RunResult, derived: &Derived, level: Level) -> Model {
    let (manifest, release) = (&result.manifest, result.config.release);
    let common = common::model(
        result,
        derived,
        &common::Of {
            machine: &manifest.machine,
            storage: Some(&manifest.storage),
            name: "b_eff_io",
            subject: "effective I/O bandwidth (b_eff_io)",
            units: "sizes: 1 kB = 1024 bytes, 1 MB = 1024 kB; bandwidth: 1 MB/s = 1 000 000 bytes/s",
            wrong_data: "DATA CORRUPTION: the storage did not give back what was written.",
            real_seconds: result.ending.real_seconds,
        },
    );
    let most = match level {
        Level::Screen => values::BACKENDS,
        Level::Page => BACKENDS,
        Level::Full | Level::Details => usize::MAX,
    };
    let has_several = layout::measuring(result).count() > 1;
    let split = Split::new(result, &derived.ladder, most);
    let shown = values::partition(result, derived).map(|ranks| split.one(ranks));
    let shown = if level == Level::Page { shown.map(Shown::compared) } else { shown };
    let found = shown.iter().flat_map(|s| standout::findings(&s.result, &s.derived.ladder, s.ranks));
    let findings = found.map(|f| findings::sentence(&f, has_several)).collect();
    let is_screen = level == Level::Screen;
    let summary = shown.as_ref().filter(|_| is_screen).map(|shown| summary::blocks(shown, result.partitions.len()));
    Model {
        head: head::head(result, derived, common.head),
        corruption: result.is_corrupt().then(|| head::corruption(result)),
        values: values::values(result, derived, most),
        notes: values::notes(result, derived, common.has_failed),
        judged: values::judged(result, derived, release),
        judged_otherwise: values::judged_otherwise(result, derived),
        findings,
        checked: head::checked(result),
        has_several,
        summary: summary.unwrap_or_default(),
        sections: if is_screen { Vec::new() } else { sections(result, derived, level, &split, shown) },
        method: if is_screen { Vec::new() } else { vec![costs::section(result, derived), setup::section(result)] },
        complete: head::complete(result),
        again: longer(derived, release),
        ..common
    }
}

/// The values, then each partition; on a page the one that is shown, and what all of them have in common.
fn sections(
    result: &RunResult,
    derived: &Derived,
    level: Level,
    split: &Split<'_>,
    shown: Option<Shown>,
) -> Vec<Section> {
    let mut sections = vec![values::section(result, derived)];
    if level != Level::Page {
        let partitions = result.partitions.iter().map(|p| split.one(p.ranks));
        sections.extend(partitions.flat_map(|shown| of_partition(&shown, level)));
        sections.extend(evidence::queue(result).filter(|_| level == Level::Details));
    } else if let Some(shown) = shown {
        let mut own = of_partition(&shown, level);
        let bandwidth = own.iter_mut().find(|section| section.name == "bandwidth");
        bandwidth.into_iter().for_each(|s| s.blocks.extend(bandwidth::others(result, split, shown.ranks)));
        sections.extend(own);
        sections.extend(timeline::section(result, &shown));
        sections.extend(partitions::section(result, derived));
    }
    sections
}

fn of_partition(shown: &Shown, level: Level) -> Vec<Section> {
    let details = |backend: &String| [details::section(shown, backend), evidence::section(shown, backend)];
    let is_detailed = level == Level::Details;
    [ladder::section(shown, level), Some(bandwidth::section(shown, level)), time::section(shown, level)]
        .into_iter()
        .chain([latency::section(shown, level), program::section(shown)])
        .chain(shown.result.config.backends.iter().filter(|_| is_detailed).flat_map(details))
        .flatten()
        .collect()
}

/// The time that would make the value valid, if that is what is missing.
fn longer(derived: &Derived, release: Release) -> Option<(String, &'static str)> {
    let minutes = match release {
        Release::R0_5 => 10,
        Release::R1 => 15,
        Release::R2_1 => 30,
    };
    let is_short = |v: &Validity| {
        v.release == release
            && v.backend == MPI_IO
            && v.criteria.iter().any(|c| !c.met && c.lack.starts_with("too short"))
    };
    let is_short = derived.validity.iter().any(is_short);
    is_short.then(|| (format!("the same with --time {minutes}m"), "for a value that counts"))
}
