//! Reports of b_eff: model, PREFIX.csv, PREFIX.json and the journal PREFIX.jsonl. Pure functions of the records and of the
//! values derived by [`crate::b_eff::values`].

mod comparable;
mod csv;
mod curves;
#[cfg(test)]
pub mod fixtures;
mod head;
#[cfg(test)]
mod journal_tests;
#[cfg(test)]
mod json_tests;
mod method;
mod patterns;
pub mod plan;
mod published;
mod summary;
#[cfg(test)]
mod tests;
mod values;

use super::records::{CommCorruption, CommResult};
use super::values::kinds::KINDS;
use super::values::standout::{findings, Finding};
use super::values::{derive, CommDerived};
use crate::frame::records::{JournaledResult, Warning, WarningKind};
use crate::frame::report::metrics::ResultMetric;
use crate::frame::report::model::{CorruptionReport, ReportModel, ValidityAssessment};
use crate::frame::report::picture::MeasuredPoint;
use crate::frame::report::text::{count, figure};
use crate::frame::report::{common, DetailLevel, Views};
use crate::frame::units::format_size;
use crate::frame::values::comparable::ComparableRun;

pub(super) const SUFFIXES: [&str; 2] = [".json", ".csv"];

impl Views for CommResult {
    type Derived = CommDerived;
    const TITLE: &'static str = "b_eff";
    const SCHEMA: &'static str = "docs/comm-schema.json";
    const KINDS: &'static [WarningKind] = KINDS;

    fn derived(&self) -> CommDerived {
        derive(self)
    }

    fn warnings(derived: &CommDerived) -> &[Warning] {
        &derived.warnings
    }

    fn model(&self, derived: &CommDerived, level: DetailLevel) -> ReportModel {
        model(self, derived, level)
    }

    fn over_ranks(&self, derived: &CommDerived) -> Vec<MeasuredPoint> {
        curves::over_ranks(self, derived)
    }

    fn metrics(&self, derived: &CommDerived) -> Vec<ResultMetric> {
        let value = &derived.value;
        let bounds = value.of_repetitions.b_eff.and_then(|of| of.interval_bytes_per_second);
        let rate = value.b_eff.map(|b_eff| {
            let rate = (b_eff.bytes_per_second, bounds);
            ResultMetric::rate(
                "b_eff",
                "Effective bandwidth b_eff; the bounds are of the mean of repetitions.",
                &[],
                rate,
            )
        });
        let valid = ResultMetric::valid(&[], derived.valid && value.b_eff.is_some());
        rate.into_iter().flatten().chain([valid]).collect()
    }

    fn set_rmax(&mut self, gflops: f64) -> bool {
        self.config.rmax_gflops = Some(gflops);
        true
    }

    fn comparable(&self, derived: &CommDerived) -> ComparableRun {
        comparable::comparable(self, derived)
    }

    fn csv(&self, derived: &CommDerived) -> Result<Vec<u8>, ::csv::Error> {
        csv::csv(self, derived)
    }
}

fn model(result: &CommResult, derived: &CommDerived, level: DetailLevel) -> ReportModel {
    let machine = &result.setup.machine;
    let common = common::common_model(
        result,
        derived,
        &common::ReportSubject {
            machine,
            storage: None,
            name: "b_eff",
            subject: "effective bandwidth (b_eff)",
            units: "sizes: 1 KiB = 1024 bytes, 1 MiB = 1024 KiB; bandwidth: 1 MB/s = 1 000 000 bytes/s",
            wrong_data: "DATA CORRUPTION: received messages differ from those sent.",
            real_seconds: result.ending.real_seconds,
        },
    );
    let is_screen = level == DetailLevel::Screen;
    let patterns = count(result.patterns.len() as u64, "pattern");
    let checked = format_size(result.bytes_checked());
    let sections = [values::section(result, derived), values::methods(derived), curves::section(derived)]
        .into_iter()
        .chain(patterns::sections(derived, level))
        .chain([Some(published::section(result, derived))]);
    let method = [method::bare(derived), Some(method::costs(result)), Some(method::set_up(result))];
    ReportModel {
        head: head::head(result, derived, common.head),
        corruption: result.is_corrupt().then(|| corruption(result)),
        values: vec![values::value(result, derived)],
        notes: vec![values::repetitions(derived)],
        assessments: vec![ValidityAssessment {
            name: "b_eff".into(),
            criteria: derived.criteria.clone(),
            caveats: Vec::new(),
            is_main: true,
        }],
        findings: findings(&derived.value, &derived.methods, &derived.sizes).iter().map(finding_text).collect(),
        verification: (result.bytes_checked() > 0).then(|| format!("{checked} received and compared: all correct")),
        summary: if is_screen { summary::blocks(derived) } else { Vec::new() },
        sections: if is_screen { Vec::new() } else { sections.flatten().collect() },
        method: if is_screen { Vec::new() } else { method.into_iter().flatten().collect() },
        complete: format!("Run complete: {patterns}, {checked} of received data compared."),
        ..common
    }
}

fn finding_text(finding: &Finding) -> String {
    match finding {
        Finding::Method { slow, fast, factor } => {
            format!("{}: {} times slower than {}", slow.name(), figure(*factor), fast.name())
        }
        Finding::Random { factor } => {
            format!("random rings: {} times slower than rings; neighbours in rings are closer", figure(*factor))
        }
        Finding::Drop { from_bytes, to_bytes, factor } => {
            let [from, to] = [from_bytes, to_bytes].map(|bytes| format_size(*bytes));
            format!(
                "messages of {to}: {} times slower than those of {from}; bandwidth should increase with the size",
                figure(*factor)
            )
        }
    }
}

fn corruption(result: &CommResult) -> CorruptionReport {
    let wrong = count(result.bytes_wrong(), "byte");
    let amount = format!("{wrong} of {} compared are wrong", format_size(result.bytes_checked()));
    let next_step = if result.config.inject {
        "One byte was changed by fault injection: this shows that it is detected."
    } else {
        "Do not trust this MPI library with this transport. Repeat with another transport or library to determine whether the network, \
         the library or the memory of a host is at fault."
    };
    CorruptionReport::of("DATA CORRUPTION", amount, &result.corruptions, corruption_text, next_step)
}

fn corruption_text(c: &CommCorruption) -> String {
    format!(
        "{}, {} of {}, repetition {}, iteration {}: from rank {} to rank {} at byte {}: {} ({} wrong; first: expected \
         {:02x}, actual {:02x})",
        c.pattern,
        c.method.name(),
        format_size(c.message_bytes),
        c.repetition,
        c.iteration,
        c.sender,
        c.receiver,
        c.offset_bytes,
        c.diagnosis,
        count(c.bytes_wrong, "byte"),
        c.expected,
        c.actual
    )
}
