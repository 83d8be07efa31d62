//! Output of the released program, or in its format: reads, shows and compares its tables of rows.

mod parse;
mod show;
#[cfg(test)]
mod tests;

pub use parse::{is_text, ImbText, ImbTextError, TextSection};

use std::io;

use parse::{parse, sample_rate};

use crate::frame::report::csv::{csv_table, Column, RunColumns};
use crate::frame::report::html;
use crate::frame::report::model::ReportModel;
use crate::frame::report::{DetailLevel, LoadedReport};
use crate::frame::units::{count, format_size};
use crate::frame::values::comparable::QuantityUnit::{MegabytesPerSecond, Microseconds};
use crate::frame::values::comparable::{ComparableRun, Fact, FactKind, Quantity, QuantityLevel as Depth, NOISE_CACHED};

/// Parses such a text.
///
/// # Errors
/// [`ImbTextError`].
pub fn read(bytes: &[u8]) -> Result<Box<dyn LoadedReport>, ImbTextError> {
    Ok(Box::new(parse(&String::from_utf8_lossy(bytes))?))
}

struct SectionRow<'a> {
    section: &'a TextSection,
    row: &'a [Option<f64>],
}

impl SectionRow<'_> {
    fn number(&self, name: &str) -> Option<f64> {
        self.section.column_index(name).and_then(|at| self.row[at])
    }
}

fn columns<'r>() -> [Column<SectionRow<'r>>; 14] {
    [
        ("backend", |l| (&l.section.backend).into()),
        ("benchmark", |l| (&l.section.benchmark).into()),
        ("ranks", |l| l.section.ranks.into()),
        ("group", |l| l.number("Group").map(|n| n as u64).into()),
        ("mode", |l| (&l.section.mode).into()),
        ("sample_bytes", |l| l.number("#bytes").map(|n| n as u64).into()),
        ("iterations", |l| l.number("#repetitions").map(|n| n as u64).into()),
        ("t_min_us", |l| l.number("t_min[usec]").into()),
        ("t_max_us", |l| l.number("t_max[usec]").or_else(|| l.number("t[usec]")).into()),
        ("t_avg_us", |l| l.number("t_avg[usec]").into()),
        ("t_ovrl_us", |l| l.number("t_ovrl[usec]").into()),
        ("t_pure_us", |l| l.number("t_pure[usec]").into()),
        ("t_cpu_us", |l| l.number("t_CPU[usec]").into()),
        ("overlap_percent", |l| l.number("overlap[%]").into()),
    ]
}

impl ImbText {
    fn fact(&self, name: &str) -> &str {
        self.facts.iter().find(|(key, _)| key == name).map_or("", |(_, value)| value.as_str())
    }

    fn csv(&self) -> io::Result<Vec<u8>> {
        let lines =
            self.sections.iter().flat_map(|section| section.rows.iter().map(move |row| SectionRow { section, row }));
        Ok(csv_table(&RunColumns::from_text("", self.fact("Date"), "", self.fact("MPI")), &columns(), lines)?)
    }

    fn json(&self) -> io::Result<Vec<u8>> {
        let mut bytes = serde_json::to_vec_pretty(self)?;
        bytes.push(b'\n');
        Ok(bytes)
    }
}

impl LoadedReport for ImbText {
    fn model(&self, level: DetailLevel) -> ReportModel {
        show::model(self, level)
    }

    fn format(&self, word: &str) -> Option<io::Result<Vec<u8>>> {
        match word {
            "json" => Some(self.json()),
            "csv" => Some(self.csv()),
            "imb" => Some(Ok(self.text.clone().into_bytes())),
            _ => None,
        }
    }

    fn records(&self, most_bytes: usize) -> Option<Vec<u8>> {
        html::records::compressed(most_bytes, |out| Ok(serde_json::to_writer(out, self)?))
    }

    /// Names the rows as results of this program, so that both can be compared.
    fn comparable(&self) -> ComparableRun {
        let of_section = |section: &TextSection| {
            let row = format!("{}, {}", section.benchmark, section.mode);
            let ranks =
                section.ranks.map_or_else(|| "unknown number of ranks".to_owned(), |ranks| count(ranks, "rank"));
            let backend = section.backend.clone();
            let quantity = move |(bytes, us): (Option<u64>, Option<f64>)| {
                let us = us?;
                let (unit, value) =
                    sample_rate(bytes, us).map_or((Microseconds, us), |rate| (MegabytesPerSecond, rate));
                let size = bytes.map_or_else(|| "files".to_owned(), format_size);
                let quantity = Quantity::new(Depth::Detail, row.clone(), format!("{size}, {ranks}"), unit, value);
                Some(quantity.with_backend(&backend, 0).with_noise(NOISE_CACHED))
            };
            section.times().into_iter().filter_map(quantity).collect::<Vec<_>>()
        };
        ComparableRun {
            identity: self.text.clone(),
            started_utc: self.fact("Date").to_owned(),
            troubles: Vec::new(),
            doubts: Vec::new(),
            is_corrupt: false,
            facts: self
                .facts
                .iter()
                .map(|(key, value)| Fact::new(FactKind::SetUp, key.clone(), value.clone()))
                .collect(),
            quantities: self.sections.iter().flat_map(of_section).collect(),
        }
    }
}
