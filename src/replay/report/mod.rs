//! Reports of replays: its model, PREFIX.csv, PREFIX.json, and the journal PREFIX.jsonl. Pure functions of the records and of what
//! [`crate::replay::values`] derived from them.

mod comparable;
mod csv;
#[cfg(test)]
pub mod fixtures;
mod head;
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
mod words;

use super::records::ReplayResult;
use super::values::kinds::KINDS;
use super::values::standout::findings;
use super::values::{derive, ReplayDerived};
use crate::frame::records::{Kind, Record, Warning};
use crate::frame::report::model::Model;
use crate::frame::report::picture::Point;
use crate::frame::report::{common, Level, Views};
use crate::frame::values::comparable::Comparable;

/// Suffixes of the files beside the journal.
pub(super) const SUFFIXES: [&str; 2] = [".json", ".csv"];

impl Views for ReplayResult {
    type Derived = ReplayDerived;
    const TITLE: &'static str = "replay";
    const SCHEMA: &'static str = "docs/replay-schema.json";
    const KINDS: &'static [Kind] = KINDS;

    fn derived(&self) -> ReplayDerived {
        derive(self)
    }

    fn warnings(derived: &ReplayDerived) -> &[Warning] {
        &derived.warnings
    }

    fn model(&self, derived: &ReplayDerived, level: Level) -> Model {
        model(self, derived, level)
    }

    fn comparable(&self, derived: &ReplayDerived) -> Comparable {
        comparable::comparable(self, derived)
    }

    fn points(&self, derived: &ReplayDerived) -> Vec<Point> {
        picture::points(self, derived)
    }

    fn csv(&self, derived: &ReplayDerived) -> Result<Vec<u8>, ::csv::Error> {
        csv::csv(self, derived)
    }
}

fn model(result: &ReplayResult, derived: &ReplayDerived, level: Level) -> Model {
    let setup = &result.setup;
    let mut common = common::model(
        result,
        derived,
        &common::Of {
            machine: &setup.machine,
            storage: Some(&setup.storage),
            name: "replay",
            subject: "replay of a recorded application",
            units: "bandwidths per process: bytes over the time in the calls, MB/s = 1 000 000 bytes/s; ratio: replayed / recorded",
            wrong_data: "WRONG DATA: bytes read were not what the profile says must be there.",
            real_seconds: result.ending.real_seconds,
        },
    );
    for (caveat, warning) in common.caveats.iter_mut().zip(&derived.warnings) {
        caveat.is_on_screen = !trust::is_left_out(warning);
    }
    let is_screen = level == Level::Screen;
    let several = result.config.backends.len() > 1;
    let sections = || {
        let first = [levels::run(result, derived, level), Some(trust::section(result, derived))];
        first.into_iter().chain(levels::others(result, derived, level)).flatten().collect()
    };
    Model {
        head: head::head(result, common.head),
        corruption: result.is_corrupt().then(|| trust::corruption(result, derived)),
        values: values::values(result, derived),
        because: values::because(result, derived),
        findings: findings(result, derived).iter().map(|f| words::sentence(f, several)).collect(),
        trust: trust::facts(result, derived, level),
        has_several: several,
        summary: if is_screen { summary::blocks(result, derived) } else { Vec::new() },
        sections: if is_screen { Vec::new() } else { sections() },
        method: if is_screen { Vec::new() } else { vec![method::costs(result), method::set_up(result)] },
        ..common
    }
}
