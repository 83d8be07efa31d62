//! Reports of `tune`: model, PREFIX.csv, PREFIX.json, the journal PREFIX.jsonl, and the setting in the forms that programs take. Pure
//! functions of the records and of the values derived by [`crate::tune::values`].

mod comparable;
mod csv;
mod effects;
#[cfg(test)]
pub mod fixtures;
mod head;
mod summary;
#[cfg(test)]
mod tests;

use super::plan::apply;
use super::records::{TrialCorruption, TuneResult};
use super::values::kinds::KINDS;
use super::values::{derive, Conclusion, TuneDerived};
use crate::frame::backends;
use crate::frame::benchmark::ReportFormat;
use crate::frame::records::{JournaledResult, Warning, WarningKind};
use crate::frame::report::metrics::ResultMetric;
use crate::frame::report::model::{CorruptionReport, ReportModel};
use crate::frame::report::text::count;
use crate::frame::report::{common, DetailLevel, Views};
use crate::frame::values::comparable::ComparableRun;
use beff_tuning::trial::setting_text;

/// Formats of `report` of this benchmark alone.
pub(super) const FORMATS: &[ReportFormat] = &[
    format("hints", "hints file of a search, for io --hints"),
    format("romio", "file of a search for ROMIO_HINTS"),
    format("mca", "MCA parameter file of a search, for Open MPI"),
    format("txt", "setting of a search in source text and launches"),
];

const fn format(name: &'static str, help: &'static str) -> ReportFormat {
    ReportFormat { name, help, refusal: "a form of the setting that tune found" }
}

/// Suffixes of the output files.
pub(super) const SUFFIXES: [&str; 6] = [".json", ".csv", ".hints", ".romio", ".mca", ".txt"];

impl Views for TuneResult {
    type Derived = TuneDerived;
    const TITLE: &'static str = "tune";
    const SCHEMA: &'static str = "docs/tune-schema.json";
    const KINDS: &'static [WarningKind] = KINDS;

    fn derived(&self) -> TuneDerived {
        derive(self)
    }

    fn warnings(derived: &TuneDerived) -> &[Warning] {
        &derived.warnings
    }

    fn model(&self, derived: &TuneDerived, level: DetailLevel) -> ReportModel {
        model(self, derived, level)
    }

    fn metrics(&self, derived: &TuneDerived) -> Vec<ResultMetric> {
        let is_recommended = derived.conclusion == Conclusion::Recommended;
        vec![ResultMetric::valid(&[], is_recommended)]
    }

    fn comparable(&self, derived: &TuneDerived) -> ComparableRun {
        comparable::comparable(self, derived)
    }

    fn csv(&self, _derived: &TuneDerived) -> Result<Vec<u8>, ::csv::Error> {
        csv::csv(self)
    }

    fn own_suffixes(&self) -> Vec<String> {
        SUFFIXES[2..].iter().map(|suffix| (*suffix).to_owned()).collect()
    }

    fn own_file(&self, derived: &TuneDerived, suffix: &str) -> Option<String> {
        let trials = &self.config.trials;
        let is_recommended = derived.conclusion == Conclusion::Recommended;
        let setting = derived.best.clone().filter(|_| is_recommended).unwrap_or_default();
        let has_hints = backends::supports(&trials.backend, |row| row.has_hints);
        let head = format!("beff-raw tune, {}: {}", self.setup.work, summary::outcome_line(derived));
        // Options of a backend of this program are no hints.
        let hints = if has_hints { setting.as_slice() } else { &[] };
        Some(match suffix {
            ".hints" => apply::hints_file(&head, hints),
            ".romio" => apply::romio_file(&head, hints),
            ".mca" => apply::mca_file(&head, hints),
            ".txt" => apply::snippets(&head, &trials.backend, &setting, has_hints),
            _ => return None,
        })
    }
}

fn model(result: &TuneResult, derived: &TuneDerived, level: DetailLevel) -> ReportModel {
    let setup = &result.setup;
    let common = common::common_model(
        result,
        derived,
        &common::ReportSubject {
            machine: &setup.machine,
            storage: Some(&setup.storage),
            name: "tune",
            subject: "search for settings (tune)",
            units: "bandwidth: 1 MB/s = 1 000 000 bytes/s; sizes: 1 KiB = 1024 bytes",
            wrong_data: "DATA CORRUPTION: data read back differs from what was written with some settings.",
            real_seconds: result.ending.real_seconds,
        },
    );
    let is_screen = level == DetailLevel::Screen;
    let checked: u64 = result.trials.iter().map(|trial| trial.outcome.words_checked).sum();
    ReportModel {
        head: head::head(result, common.head),
        corruption: result.is_corrupt().then(|| corruption(result)),
        values: vec![summary::value(result, derived)],
        verification: (checked > 0).then(|| format!("{checked} words read back and compared: all correct")),
        summary: if is_screen { summary::blocks(result, derived) } else { Vec::new() },
        sections: if is_screen { Vec::new() } else { effects::sections(result, derived) },
        method: if is_screen { Vec::new() } else { vec![head::set_up(result)] },
        rerun: summary::continuation(result).or(common.rerun.clone()),
        complete: format!("Search complete: {}.", count(result.trials.len() as u64, "trial")),
        ..common
    }
}

fn corruption(result: &TuneResult) -> CorruptionReport {
    let place = |wrong: &TrialCorruption| {
        let (number, setting) = (wrong.trial + 1, setting_text(&wrong.setting));
        format!("trial {number}, {setting}: {} of {} words are wrong", wrong.words_wrong, wrong.words_checked)
    };
    let amount = format!("{} with wrong data, which are disqualified", count(result.corruptions.len() as u64, "trial"));
    let next_step = "Do not use these settings with this MPI library and file system; beff-raw io --variant with them names the places.";
    CorruptionReport::of("DATA CORRUPTION", amount, &result.corruptions, place, next_step)
}
