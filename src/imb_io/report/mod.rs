//! Reports of IMB-IO: its model, PREFIX.csv, PREFIX.json, PREFIX.imb with the columns of the release, and the
//! journal PREFIX.jsonl. Pure functions of the records and of the values of [`crate::imb_io::values`].

mod blocks;
mod comparable;
mod csv;
mod curves;
#[cfg(test)]
pub mod fixtures;
mod grid;
mod head;
mod imb_format;
#[cfg(test)]
mod journal_tests;
#[cfg(test)]
mod json_tests;
mod method;
mod overview;
pub mod plan;
mod rows;
mod state;
#[cfg(test)]
mod tests;
mod value;
mod variants;

pub use imb_format::imb_format;

use super::records::{ImbCorruption, ImbResult};
use super::values::kinds::KINDS;
use super::values::standout::{findings, Finding, SlowdownReference};
use super::values::{derive, ImbDerived};
use crate::frame::records::{JournaledResult, Warning, WarningKind};
use crate::frame::report::html;
use crate::frame::report::model::{CorruptionReport, ReportModel};
use crate::frame::report::picture::MeasuredPoint;
use crate::frame::report::text::{count, figure};
use crate::frame::report::{common, DetailLevel, Views};
use crate::frame::units::format_size;
use crate::frame::values::comparable::ComparableRun;

/// Suffixes of the files in addition to the journal.
pub(super) const SUFFIXES: [&str; 3] = [".json", ".csv", ".imb"];

impl Views for ImbResult {
    type Derived = ImbDerived;
    const TITLE: &'static str = "IMB-IO";
    const SCHEMA: &'static str = "docs/imb-schema.json";
    const KINDS: &'static [WarningKind] = KINDS;

    fn derived(&self) -> ImbDerived {
        derive(self)
    }

    fn warnings(derived: &ImbDerived) -> &[Warning] {
        &derived.warnings
    }

    fn model(&self, derived: &ImbDerived, level: DetailLevel) -> ReportModel {
        model(self, derived, level)
    }

    fn csv(&self, derived: &ImbDerived) -> Result<Vec<u8>, ::csv::Error> {
        csv::csv(self, derived)
    }

    fn over_ranks(&self, derived: &ImbDerived) -> Vec<MeasuredPoint> {
        curves::over_ranks(self, derived)
    }

    fn comparable(&self, derived: &ImbDerived) -> ComparableRun {
        comparable::comparable(self, derived)
    }

    /// The format of the release.
    fn own_suffixes(&self) -> Vec<String> {
        SUFFIXES[2..].iter().map(ToString::to_string).collect()
    }

    fn own_file(&self, derived: &ImbDerived, suffix: &str) -> Option<String> {
        (suffix == SUFFIXES[2]).then(|| imb_format(self, derived))
    }
}

fn model(result: &ImbResult, derived: &ImbDerived, level: DetailLevel) -> ReportModel {
    let setup = &result.setup;
    let common = common::common_model(
        result,
        derived,
        &common::ReportSubject {
            machine: &setup.machine,
            storage: Some(&setup.storage),
            name: "IMB-IO",
            subject: "elementary MPI-IO benchmarks (IMB-IO)",
            units:
                "sizes: X in bytes over all ranks of a group; bandwidth: X / t_max, 1 Mbytes/sec = 1 000 000 bytes/s",
            wrong_data: "WRONG DATA: bytes read differ from the bytes written.",
            real_seconds: result.ending.real_seconds,
        },
    );
    let several = overview::backends(result).len() > 1;
    let blocks = blocks::blocks_of_all_groups(result, derived);
    let found = findings(result, &derived.rows);
    let model = ReportModel {
        benchmark: "imb",
        head: head::head(result, common.head),
        corruption: result.is_corrupt().then(|| corruption(result, derived)),
        values: vec![value::value(result, derived)],
        notes: value::repetitions(result, derived).into_iter().collect(),
        findings: found.iter().filter_map(|finding| finding_text(result, finding, several)).collect(),
        verification: value::verified(derived),
        has_several_backends: several,
        ..common
    };
    if level == DetailLevel::Screen {
        let summary = overview::summary(result, &blocks).into_iter().chain(variants::screen_block(derived));
        return ReportModel { summary: summary.collect(), ..model };
    }
    let over_ranks =
        (level == DetailLevel::Page).then(|| html::ranks_section(&curves::over_ranks(result, derived), 1)).flatten();
    let overview = overview::section(result, &blocks, level);
    let sections = [overview, variants::section(derived), over_ranks, rows::section(result, derived, level)];
    let method = [method::bare(derived), Some(method::costs(result, derived)), Some(method::set_up(result))];
    ReportModel {
        sections: sections.into_iter().flatten().collect(),
        method: method.into_iter().flatten().collect(),
        ..model
    }
}

fn finding_text(result: &ImbResult, finding: &Finding, several: bool) -> Option<String> {
    let record = result.rows.get(finding.row)?;
    let size = record.sample_bytes.map(|bytes| format!(", {}", format_size(bytes))).unwrap_or_default();
    let backend = if several { format!(", {}", record.backend) } else { String::new() };
    let factor = figure(finding.factor);
    let against = match &finding.reference {
        SlowdownReference::Backend(best) => format!("{factor} times slower than {best}"),
        SlowdownReference::Aggregate => {
            format!("{factor} times slower with a sync after each iteration than after all")
        }
        SlowdownReference::Median => format!("the slowest iteration took {factor} times the median"),
    };
    Some(format!("{}{size}, {}{backend}: {against}", record.benchmark, blocks::rank_count(record.ranks)))
}

fn corruption(result: &ImbResult, derived: &ImbDerived) -> CorruptionReport {
    let (wrong, checked) = (derived.verdict.bytes_wrong, derived.verdict.bytes_checked);
    let amount = format!("{wrong} of {} compared are wrong", count(checked, "byte"));
    let next_step = if result.config.inject {
        "One bit was flipped by fault injection: this shows that it is detected."
    } else {
        "If the file system is full, free space: some MPI libraries report success there. Otherwise do not trust this storage with this \
         backend. Repeat with another backend and on another file system to determine whether the storage, the MPI library or the \
         memory of a host is at fault."
    };
    CorruptionReport::of("WRONG DATA", amount, &result.corruptions, corruption_text, next_step)
}

fn corruption_text(c: &ImbCorruption) -> String {
    let repetition = c.iteration.map_or_else(String::new, |n| format!(", iteration {n}"));
    let offset = c.offset_bytes.map_or_else(String::new, |n| format!(" at byte {n}"));
    let byte = |byte: Option<u8>| byte.map_or_else(|| "unknown".to_owned(), |byte| format!("{byte:02x}"));
    format!(
        "{}, {}, {}, {}, {}{repetition}: rank {} in {}{offset}: {} ({} wrong; first: expected {}, actual {})",
        c.benchmark,
        c.backend,
        blocks::rank_count(c.ranks),
        blocks::mode_name(c.mode),
        format_size(c.sample_bytes),
        c.rank,
        c.file,
        c.diagnosis,
        count(c.bytes_wrong, "byte"),
        byte(c.expected),
        byte(c.actual)
    )
}
