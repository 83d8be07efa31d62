//! Reports of IMB-IO: its model, PREFIX.csv, PREFIX.json, PREFIX.imb with the columns of the release, and the
//! journal PREFIX.jsonl. Pure functions of the records and of what [`crate::imb_io::values`] derived from them.

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

pub use imb_format::imb_format;

use super::records::{ImbCorruption, ImbResult};
use super::values::kinds::KINDS;
use super::values::standout::{findings, Against, Finding};
use super::values::{derive, ImbDerived};
use crate::frame::records::{Kind, Record, Warning};
use crate::frame::report::html;
use crate::frame::report::model::{Corruption, Model};
use crate::frame::report::picture::Point;
use crate::frame::report::text::{count, figure};
use crate::frame::report::{common, Level, Views};
use crate::frame::units::format_size;
use crate::frame::values::comparable::Comparable;

/// Suffixes of the files beside the journal.
pub(super) const SUFFIXES: [&str; 3] = [".json", ".csv", ".imb"];

impl Views for ImbResult {
    type Derived = ImbDerived;
    const TITLE: &'static str = "IMB-IO";
    const SCHEMA: &'static str = "docs/imb-schema.json";
    const KINDS: &'static [Kind] = KINDS;

    fn derived(&self) -> ImbDerived {
        derive(self)
    }

    fn warnings(derived: &ImbDerived) -> &[Warning] {
        &derived.warnings
    }

    fn model(&self, derived: &ImbDerived, level: Level) -> Model {
        model(self, derived, level)
    }

    fn csv(&self, derived: &ImbDerived) -> Result<Vec<u8>, ::csv::Error> {
        csv::csv(self, derived)
    }

    fn over_ranks(&self, derived: &ImbDerived) -> Vec<Point> {
        curves::over_ranks(self, derived)
    }

    fn comparable(&self, derived: &ImbDerived) -> Comparable {
        comparable::comparable(self, derived)
    }

    /// The look of the release.
    fn own_suffixes(&self) -> Vec<String> {
        SUFFIXES[2..].iter().map(ToString::to_string).collect()
    }

    fn own_view(&self, derived: &ImbDerived, suffix: &str) -> Option<String> {
        (suffix == SUFFIXES[2]).then(|| imb_format(self, derived))
    }
}

fn model(result: &ImbResult, derived: &ImbDerived, level: Level) -> Model {
    let setup = &result.setup;
    let common = common::model(
        result,
        derived,
        &common::Of {
            machine: &setup.machine,
            storage: Some(&setup.storage),
            name: "IMB-IO",
            subject: "elementary MPI-IO benchmarks (IMB-IO)",
            units:
                "sizes: X in bytes over all ranks of a group; bandwidth: X / t_max, 1 Mbytes/sec = 1 000 000 bytes/s",
            wrong_data: "WRONG DATA: bytes read were not the bytes written.",
            real_seconds: result.ending.real_seconds,
        },
    );
    let several = overview::backends(result).len() > 1;
    let blocks = blocks::with_all_groups(result, derived);
    let found = findings(result, &derived.rows);
    let model = Model {
        benchmark: "imb",
        head: head::head(result, common.head),
        corruption: result.is_corrupt().then(|| corruption(result, derived)),
        values: vec![value::value(result, derived)],
        notes: value::repeats(result, derived).into_iter().collect(),
        findings: found.iter().filter_map(|finding| sentence(result, finding, several)).collect(),
        checked: value::checked(derived),
        has_several: several,
        ..common
    };
    if level == Level::Screen {
        return Model { summary: overview::summary(result, &blocks), ..model };
    }
    let over_ranks =
        (level == Level::Page).then(|| html::over_ranks(&curves::over_ranks(result, derived), 1)).flatten();
    let sections = [overview::section(result, &blocks, level), over_ranks, rows::section(result, derived, level)];
    let method = [method::bare(derived), Some(method::costs(result, derived)), Some(method::set_up(result))];
    Model {
        sections: sections.into_iter().flatten().collect(),
        method: method.into_iter().flatten().collect(),
        ..model
    }
}

fn sentence(result: &ImbResult, finding: &Finding, several: bool) -> Option<String> {
    let record = result.rows.get(finding.row)?;
    let size = record.sample_bytes.map(|bytes| format!(", {}", format_size(bytes))).unwrap_or_default();
    let backend = if several { format!(", {}", record.backend) } else { String::new() };
    let factor = figure(finding.factor);
    let against = match &finding.against {
        Against::Backend(best) => format!("{factor} times slower than {best}"),
        Against::Aggregate => format!("{factor} times slower with a sync behind each repetition than behind all"),
        Against::Median => format!("the slowest repetition took {factor} times the median one"),
    };
    Some(format!("{}{size}, {}{backend}: {against}", record.benchmark, blocks::ranks(record.ranks)))
}

fn corruption(result: &ImbResult, derived: &ImbDerived) -> Corruption {
    let (wrong, checked) = (derived.verdict.bytes_wrong, derived.verdict.bytes_checked);
    let amount = format!("{wrong} of {} compared are wrong", count(checked, "byte"));
    let next_step = if result.config.inject {
        "One bit was turned over on purpose: this shows that it is found."
    } else {
        "If the file system is full, free space: some MPI libraries report success there. Else do not trust this storage with this \
         backend. Repeat with another backend and on another file system to find out whether the storage, the MPI library or the memory \
         of a host is at fault."
    };
    Corruption::of("WRONG DATA", amount, &result.corruptions, place, next_step)
}

fn place(c: &ImbCorruption) -> String {
    let repetition = c.repetition.map_or_else(String::new, |n| format!(", repetition {n}"));
    let offset = c.offset_bytes.map_or_else(String::new, |n| format!(" at byte {n}"));
    let byte = |byte: Option<u8>| byte.map_or_else(|| "not known".to_owned(), |byte| format!("{byte:02x}"));
    format!(
        "{}, {}, {}, {}, {}{repetition}: rank {} in {}{offset}: {} ({} wrong; first: expected {}, found {})",
        c.benchmark,
        c.backend,
        blocks::ranks(c.ranks),
        blocks::mode(c.mode),
        format_size(c.sample_bytes),
        c.rank,
        c.file,
        c.looks_like,
        count(c.bytes_wrong, "byte"),
        byte(c.expected),
        byte(c.found)
    )
}
