//! Reports of replays: the model, PREFIX.csv, PREFIX.json, and the journal PREFIX.jsonl. Pure functions of the records and the values
//! that [`crate::replay::values`] derives from them.

mod comparable;
mod csv;
mod finding_text;
#[cfg(test)]
pub mod fixtures;
mod head;
pub use head::repetitions_text;
#[cfg(test)]
mod journal_tests;
#[cfg(test)]
mod json_tests;
mod levels;
mod method;
mod picture;
pub mod plan;
mod summary;
#[cfg(test)]
mod tests;
mod trust;
mod values;

use super::records::ReplayResult;
use super::values::kinds::KINDS;
use super::values::standout::findings;
use super::values::{derive, ReplayDerived};
use crate::frame::records::{JournaledResult, Warning, WarningKind};
use crate::frame::report::model::{ReportBlock, ReportModel, ReportSection};
use crate::frame::report::picture::MeasuredPoint;
use crate::frame::report::{common, DetailLevel, Views};
use crate::frame::values::comparable::ComparableRun;

/// Suffixes of the files besides the journal.
pub(super) const SUFFIXES: [&str; 2] = [".json", ".csv"];

impl Views for ReplayResult {
    type Derived = ReplayDerived;
    const TITLE: &'static str = "replay";
    const SCHEMA: &'static str = "docs/replay-schema.json";
    const KINDS: &'static [WarningKind] = KINDS;

    fn derived(&self) -> ReplayDerived {
        derive(self)
    }

    fn warnings(derived: &ReplayDerived) -> &[Warning] {
        &derived.warnings
    }

    fn model(&self, derived: &ReplayDerived, level: DetailLevel) -> ReportModel {
        model(self, derived, level)
    }

    fn comparable(&self, derived: &ReplayDerived) -> ComparableRun {
        comparable::comparable(self, derived)
    }

    fn points(&self, derived: &ReplayDerived) -> Vec<MeasuredPoint> {
        picture::points(self, derived)
    }

    fn csv(&self, derived: &ReplayDerived) -> Result<Vec<u8>, ::csv::Error> {
        csv::csv(self, derived)
    }
}

fn model(result: &ReplayResult, derived: &ReplayDerived, level: DetailLevel) -> ReportModel {
    let setup = &result.setup;
    let mut common = common::common_model(
        result,
        derived,
        &common::ReportSubject {
            machine: &setup.machine,
            storage: Some(&setup.storage),
            name: "replay",
            subject: "replay of a recorded application",
            units: "bandwidths per process: bytes over the time in the calls, MB/s = 1 000 000 bytes/s; ratio: replayed / recorded",
            wrong_data: "WRONG DATA: bytes read differ from those expected by the profile.",
            real_seconds: result.ending.real_seconds,
        },
    );
    for (caveat, warning) in common.warnings.iter_mut().zip(&derived.warnings) {
        caveat.is_on_screen = !trust::is_omission(warning);
    }
    let is_screen = level == DetailLevel::Screen;
    let several = summary::shown_backends(result).len() > 1;
    let sections = || {
        let variants = summary::variant_table(derived, true).map(ReportBlock::Table).into_iter().collect();
        let variants = ReportSection::of("variants", "Variants and their backends", "", variants);
        let first = [levels::run_section(result, derived, level), variants, Some(trust::section(result, derived))];
        first.into_iter().chain(levels::detail_sections(result, derived, level)).flatten().collect()
    };
    ReportModel {
        head: head::head(result, common.head),
        corruption: result.is_corrupt().then(|| trust::corruption(result, derived)),
        values: values::values(result, derived),
        shortcomings: values::verdict_reasons(result, derived),
        findings: findings(result, derived).iter().map(|f| finding_text::finding_text(f, several)).collect(),
        trust: trust::facts(result, derived, level),
        has_several_backends: several,
        summary: if is_screen { summary::blocks(result, derived) } else { Vec::new() },
        sections: if is_screen { Vec::new() } else { sections() },
        method: if is_screen { Vec::new() } else { vec![method::costs_section(result), method::setup_section(result)] },
        ..common
    }
}
