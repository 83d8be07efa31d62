//! Summaries (PREFIX.sum) written by the program of December 2001, or in its format: read, shown and compared. Values missing from them
//! stay unknown.

mod listed;
mod parse;
mod show;

pub use parse::{is_summary, LegacyPartition, LegacyRow, LegacySummary, LegacySummaryError};

use std::io;

use parse::{parse, TYPES};

use crate::b_eff_io::pattern_type::PatternType;
use crate::frame::records::AccessMethod;
use crate::frame::report::csv::{csv_table, Column, RunColumns};
use crate::frame::report::html;
use crate::frame::report::model::ReportModel;
use crate::frame::report::system_list::ListedValue;
use crate::frame::report::{DetailLevel, LoadedReport};
use crate::frame::values::comparable::QuantityUnit::MegabytesPerSecond;
use crate::frame::values::comparable::{ComparableRun, Fact, FactKind, Quantity, QuantityLevel as Depth};

/// The file does not name the MPI library; that program supported MPI-IO only.
const BACKEND: &str = "mpiio";

/// Reads a summary.
///
/// # Errors
/// [`LegacySummaryError`].
pub fn read(bytes: &[u8]) -> Result<Box<dyn LoadedReport>, LegacySummaryError> {
    Ok(Box::new(parse(&String::from_utf8_lossy(bytes))?))
}

struct LegacyCell<'a> {
    partition: &'a LegacyPartition,
    row: &'a LegacyRow,
    pattern_type: PatternType,
}

fn columns<'r>() -> [Column<LegacyCell<'r>>; 7] {
    [
        ("backend", |_| BACKEND.into()),
        ("ranks", |l| l.partition.ranks.into()),
        ("access", |l| l.row.access.name().into()),
        ("pattern_type", |l| l.pattern_type.number().into()),
        ("type_name", |l| l.pattern_type.name().into()),
        ("chunk_bytes", |l| l.row.chunk_bytes.into()),
        ("mb_per_second", |l| l.row.mb_per_second[l.pattern_type.index()].into()),
    ]
}

impl LegacySummary {
    fn fact(&self, name: &str) -> &str {
        self.system.iter().find(|(key, _)| key == name).map_or("", |(_, value)| value.as_str())
    }

    fn csv(&self) -> io::Result<Vec<u8>> {
        let lines = self.partitions.iter().flat_map(|partition| {
            let of_row =
                move |row| TYPES.into_iter().map(move |pattern_type| LegacyCell { partition, row, pattern_type });
            partition.rows.iter().flat_map(of_row)
        });
        Ok(csv_table(&RunColumns::from_text(&self.prefix, &self.date, self.fact("hostname"), ""), &columns(), lines)?)
    }

    fn json(&self) -> io::Result<Vec<u8>> {
        let mut bytes = serde_json::to_vec_pretty(self)?;
        bytes.push(b'\n');
        Ok(bytes)
    }
}

impl LoadedReport for LegacySummary {
    fn model(&self, level: DetailLevel) -> ReportModel {
        show::model(self, level)
    }

    fn format(&self, word: &str) -> Option<io::Result<Vec<u8>>> {
        match word {
            "json" => Some(self.json()),
            "csv" => Some(self.csv()),
            "sum" => Some(Ok(self.text.clone().into_bytes())),
            _ => None,
        }
    }

    fn listed(&self) -> Vec<ListedValue> {
        listed::listed(self, BACKEND)
    }

    fn records(&self, most_bytes: usize) -> Option<Vec<u8>> {
        html::records::compressed(most_bytes, |out| Ok(serde_json::to_writer(out, self)?))
    }

    fn comparable(&self) -> ComparableRun {
        let mut quantities = Vec::new();
        let best = self.partitions.iter().filter_map(|p| p.b_eff_io_mb_per_second).reduce(f64::max);
        quantities.extend(best.map(|value| {
            Quantity::new(Depth::Value, "b_eff_io (release 2.1)", "", MegabytesPerSecond, value)
                .with_backend(BACKEND, 0)
        }));
        for partition in &self.partitions {
            let of = |depth, access: AccessMethod, column: String, value: Option<f64>| {
                let quantity = Quantity::new(depth, access.name(), column, MegabytesPerSecond, value?);
                Some(quantity.with_backend(BACKEND, partition.ranks))
            };
            for (access, average) in AccessMethod::ALL.into_iter().zip(partition.averages_mb_per_second) {
                quantities.extend(of(Depth::Group, access, "mean".into(), average));
            }
            for row in &partition.rows {
                for (pattern_type, value) in TYPES.into_iter().zip(row.mb_per_second) {
                    let (depth, column) = match row.chunk_bytes {
                        None => (Depth::Group, pattern_type.name().to_owned()),
                        Some(bytes) => (Depth::Detail, format!("{bytes} bytes, {}", pattern_type.name())),
                    };
                    quantities.extend(of(depth, row.access, column, value));
                }
            }
        }
        let ranks: Vec<String> = self.partitions.iter().map(|p| p.ranks.to_string()).collect();
        let mut facts = vec![
            Fact::new(FactKind::Definition, "release", "2.1"),
            Fact::new(FactKind::Definition, "partitions (ranks)", ranks.join(", ")),
            Fact::new(FactKind::SetUp, "options", self.command.clone()),
        ];
        facts.extend(self.system.iter().map(|(key, value)| Fact::new(FactKind::SetUp, key.clone(), value.clone())));
        ComparableRun {
            identity: format!("{} {} {}", self.date, self.command, self.prefix),
            started_utc: self.date.clone(),
            troubles: Vec::new(),
            doubts: Vec::new(),
            is_corrupt: false,
            facts,
            quantities: quantities
                .into_iter()
                .map(|q| q.with_noise(crate::frame::values::comparable::NOISE_CACHED))
                .collect(),
        }
    }
}

#[cfg(test)]
mod tests;
