//! Reports of b_eff_io: its model, PREFIX.csv, PREFIX.json, a summary of each backend, and the journal. Pure functions of the records and
//! of their derived values ([`super::values`]).

pub mod acceptance_plan;
mod bandwidth;
mod cache_yardstick;
pub(crate) mod cells;
mod coffee_cup;
mod comparable;
mod costs;
pub mod csv;
mod details;
mod evidence;
mod findings;
#[cfg(test)]
pub mod fixtures;
mod harness_cost;
mod head;
mod interval_notes;
#[cfg(test)]
mod journal_tests;
pub mod json;
mod ladder;
mod latency;
pub mod layout;
mod listed;
mod measured_rates;
mod metrics;
mod options;
mod orders;
mod partition_view;
mod partitions;
pub mod plan_communication;
pub mod plan_table;
mod setup;
mod slow_ranks;
pub mod sum;
mod summary;
#[cfg(test)]
mod tests;
mod time;
mod timeline;
mod values;
mod variants;
pub mod verdicts;

pub use measured_rates::MeasuredRates;

use std::ffi::OsStr;
use std::io;

use self::partition_view::{PartitionIndex, PartitionView};
use super::records::RunResult;
use super::requirements;
use super::values::acceptance::required_figures;
use super::values::kinds::KINDS;
use super::values::standout;
use super::values::{derive, without_ladder, Derived, Validity, TOO_SHORT};
use crate::b_eff_io::config::Release;
use crate::frame::backends::is_variant;
use crate::frame::paths::quoted_word;
use crate::frame::records::{JournaledResult, Warning, WarningKind};
use crate::frame::report::metrics::ResultMetric;
use crate::frame::report::model::{ReportModel, ReportSection};
use crate::frame::report::picture::MeasuredPoint;
use crate::frame::report::system_list::ListedValue;
use crate::frame::report::{acceptance, common, render, DetailLevel, DisplayContext, TerminalOutput, Views};
use crate::frame::values::acceptance::{Acceptance, RequiredFigures};
use crate::frame::values::comparable::ComparableRun;
use crate::frame::values::MPI_IO;

impl Views for RunResult {
    type Derived = Derived;
    const TITLE: &'static str = "b_eff_io";
    const SCHEMA: &'static str = "docs/results-schema.json";
    const KINDS: &'static [WarningKind] = KINDS;

    fn derived(&self) -> Derived {
        derive(self)
    }

    fn derived_for_page(&self) -> Derived {
        without_ladder(self)
    }

    fn warnings(derived: &Derived) -> &[Warning] {
        &derived.warnings
    }

    fn model(&self, derived: &Derived, level: DetailLevel) -> ReportModel {
        model(self, derived, level)
    }

    /// The acceptance is below the screen: all of it is shown, however many lines there are.
    fn sheet(&self, derived: &Derived, level: DetailLevel, place: &DisplayContext) -> TerminalOutput {
        let sheet = render::sheet(&self.model(derived, level), level, place);
        match (sheet, Acceptance::of(&required_figures(self, derived))) {
            (TerminalOutput::Screen(screen), Some(judged)) => {
                TerminalOutput::Screen(acceptance::below_screen(screen, &judged))
            }
            (sheet, _) => sheet,
        }
    }

    fn over_ranks(&self, derived: &Derived) -> Vec<MeasuredPoint> {
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

    fn set_rmax(&mut self, gflops: f64) -> bool {
        self.config.rmax_gflops = Some(gflops);
        true
    }

    fn set_requirements(&mut self, text: &str) -> Option<Result<(), String>> {
        Some(requirements::parse(text).map(|all| self.config.requirements = all).map_err(|error| error.to_string()))
    }

    fn required_figures(&self, derived: &Derived) -> Vec<RequiredFigures> {
        required_figures(self, derived)
    }

    fn comparable(&self, derived: &Derived) -> ComparableRun {
        comparable::comparable(self, derived)
    }

    fn listed(&self, derived: &Derived) -> Vec<ListedValue> {
        listed::listed(self, derived)
    }

    fn metrics(&self, derived: &Derived) -> Vec<ResultMetric> {
        metrics::metrics(self, derived)
    }

    /// A summary of each backend.
    fn own_suffixes(&self) -> Vec<String> {
        suffixes(&self.config.backends).split_off(2)
    }

    fn own_file(&self, derived: &Derived, suffix: &str) -> Option<String> {
        let backends = &self.config.backends;
        let backend = backends.iter().find(|backend| sum_suffix(backends, backend) == suffix)?;
        Some(sum::summary(self, derived, backend))
    }

    /// As a format, all summaries form one text.
    fn format(&self, derived: &Derived, word: &str) -> Option<io::Result<Vec<u8>>> {
        let summary = |backend: &String| sum::summary(self, derived, backend);
        match word {
            "json" | "csv" => Some(self.file_bytes(derived, &format!(".{word}"))),
            "sum" => Some(Ok(self.config.backends.iter().map(summary).collect::<String>().into_bytes())),
            _ => None,
        }
    }
}

/// Suffixes of the files beside the journal.
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

/// Maximum number of backends on a page; a corrupt file may name any number.
const MAX_PAGE_BACKENDS: usize = 8;

/// Backends and variants with rows of their own; on a screen, variants are compared with their backends only.
fn shown_backends(result: &RunResult, level: DetailLevel) -> Vec<String> {
    let most = match level {
        DetailLevel::Screen => values::MAX_SCREEN_BACKENDS,
        DetailLevel::Page => MAX_PAGE_BACKENDS,
        DetailLevel::Full | DetailLevel::Details => usize::MAX,
    };
    let is_shown = |name: &&String| level != DetailLevel::Screen || !is_variant(name);
    layout::storage_backends(result).filter(is_shown).take(most).cloned().collect()
}

fn model(result: &RunResult, derived: &Derived, level: DetailLevel) -> ReportModel {
    let (manifest, release) = (&result.manifest, result.config.release);
    let common = common::common_model(
        result,
        derived,
        &common::ReportSubject {
            machine: &manifest.machine,
            storage: Some(&manifest.storage),
            name: "b_eff_io",
            subject: "effective I/O bandwidth (b_eff_io)",
            units: "sizes: 1 kB = 1024 bytes, 1 MB = 1024 kB; bandwidth: 1 MB/s = 1 000 000 bytes/s",
            wrong_data: "DATA CORRUPTION: the storage did not return what was written.",
            real_seconds: result.ending.real_seconds,
        },
    );
    let backends = shown_backends(result, level);
    let has_several = layout::storage_backends(result).count() > 1;
    let is_cut = result.ending.outcome.is_cut();
    let split = PartitionIndex::new(result, &derived.ladder, backends.clone());
    let shown = values::shown_partition(result, derived).map(|ranks| split.partition(ranks));
    let shown = if level == DetailLevel::Page { shown.map(PartitionView::with_ladder) } else { shown };
    let found = shown.iter().flat_map(|s| standout::findings(&s.result, &s.derived.ladder, s.ranks));
    let slow = shown.iter().flat_map(|s| slow_ranks::findings(derived, s.ranks, has_several));
    let findings = found.map(|f| findings::sentence(&f, has_several)).chain(slow).collect();
    let is_screen = level == DetailLevel::Screen;
    let trust = shown.as_ref().and_then(|shown| cache_yardstick::screen_line(derived, shown.ranks));
    let summary = shown.as_ref().filter(|_| is_screen).map(|shown| summary::blocks(shown, result.partitions.len()));
    ReportModel {
        head: head::head(result, derived, common.head),
        corruption: result.is_corrupt().then(|| head::corruption(result)),
        values: values::values(result, derived, &backends),
        notes: values::notes(result, derived, common.has_failed || is_cut),
        assessed_by: Some(format!("the definition of release {}", release.name())),
        assessments: values::criteria_by_backend(result, derived, release),
        alternative_assessments: values::other_release_criteria(result, derived),
        findings,
        trust: trust.into_iter().collect(),
        verification: head::compared_bytes(result),
        has_several_backends: has_several,
        summary: summary.unwrap_or_default(),
        sections: if is_screen { Vec::new() } else { sections(result, derived, level, &split, shown) },
        method: if is_screen { Vec::new() } else { vec![costs::section(result, derived), setup::section(result)] },
        complete: head::completion_line(result),
        rerun: if is_cut { Some(continuation(result)) } else { longer_run(derived, release) },
        ..common
    }
}

/// The values, then each partition; on a page only the selected one and an overview of all.
fn sections(
    result: &RunResult,
    derived: &Derived,
    level: DetailLevel,
    split: &PartitionIndex<'_>,
    shown: Option<PartitionView>,
) -> Vec<ReportSection> {
    let judged = Acceptance::of(&required_figures(result, derived));
    let judged = judged.as_ref().map(|judged| match level {
        DetailLevel::Page => acceptance::section(judged),
        _ => acceptance::text_section(judged),
    });
    let mut sections: Vec<ReportSection> = judged.into_iter().chain([values::section(result, derived)]).collect();
    sections.extend(cache_yardstick::section(derived));
    if level != DetailLevel::Page {
        let partitions = result.partitions.iter().map(|p| split.partition(p.ranks));
        sections.extend(partitions.flat_map(|shown| partition_sections(&shown, level)));
        sections.extend(result.partitions.iter().filter_map(|p| slow_ranks::section(derived, p.ranks)));
        sections.extend(evidence::queue_section(result).filter(|_| level == DetailLevel::Details));
    } else if let Some(shown) = shown {
        let mut own = partition_sections(&shown, level);
        let bandwidth = own.iter_mut().find(|section| section.name == "bandwidth");
        bandwidth.into_iter().for_each(|s| s.blocks.extend(bandwidth::folded_partitions(result, split, shown.ranks)));
        sections.extend(own);
        sections.extend(timeline::section(result, &shown));
        sections.extend(slow_ranks::section(derived, shown.ranks));
        sections.extend(partitions::section(result, derived));
    }
    sections
}

fn partition_sections(shown: &PartitionView, level: DetailLevel) -> Vec<ReportSection> {
    let details = |backend: &String| [details::section(shown, backend), evidence::section(shown, backend)];
    let is_detailed = level == DetailLevel::Details;
    [
        ladder::section(shown, level),
        variants::section(shown),
        Some(bandwidth::section(shown, level)),
        time::section(shown, level),
    ]
    .into_iter()
    .chain([orders::section(shown), latency::section(shown, level), harness_cost::section(shown)])
    .chain(shown.result.config.backends.iter().filter(|_| is_detailed).flat_map(details))
    .flatten()
    .collect()
}

/// Advises to measure the rest of a cut run.
fn continuation(result: &RunResult) -> (String, &'static str) {
    let Some(prefix) = &result.config.out else {
        return ("the same with --out NAME".into(), "a run that is cut can then be continued");
    };
    let prefix = prefix.to_string_lossy();
    let [journal, other] =
        [format!("{prefix}.jsonl"), format!("{prefix}-2")].map(|name| quoted_word(OsStr::new(&name)));
    let ranks = result.manifest.machine.ranks;
    (format!("mpirun -n {ranks} beff-raw io --continue {journal} --out {other}"), "the rest of this run")
}

/// Advises a longer time if only that prevents validity.
fn longer_run(derived: &Derived, release: Release) -> Option<(String, &'static str)> {
    let minutes = match release {
        Release::R0_5 => 10,
        Release::R1 => 15,
        Release::R2_1 => 30,
    };
    let is_short = |v: &Validity| {
        v.release == release
            && v.backend == MPI_IO
            && v.criteria.iter().any(|c| !c.met && c.lack.starts_with(TOO_SHORT))
    };
    let is_short = derived.validity.iter().any(is_short);
    is_short.then(|| (format!("the same with --time {minutes}m"), "for a valid value"))
}
