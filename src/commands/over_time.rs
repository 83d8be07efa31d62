//! Several results of `report` as text or as one table: what all of them together show over time.

use std::path::PathBuf;

use super::results::short_names;
use crate::frame::benchmark::BenchmarkModule;
use crate::frame::report::over_time::{changes_by_file, text};
use crate::frame::report::LoadedReport;
use crate::frame::values::over_time::{series, DatedRun};

/// Columns of a terminal.
const WIDTH: usize = 80;
/// Column of a table of several results.
const CHANGE_COLUMN: &str = "set_up_change";

/// The results read so far; nothing is kept of a single one.
#[derive(Debug)]
pub(super) struct OverTime {
    names: Vec<String>,
    runs: Vec<DatedRun>,
}

impl OverTime {
    /// For these files, which are added in this order.
    pub(super) fn new(files: &[PathBuf]) -> Self {
        Self { names: if files.len() > 1 { short_names(files) } else { Vec::new() }, runs: Vec::new() }
    }

    /// Adds the next result.
    pub(super) fn add(&mut self, benchmark: &BenchmarkModule, report: &dyn LoadedReport) {
        if let Some(file) = self.names.get(self.runs.len()) {
            self.runs.push(DatedRun { benchmark: benchmark.title, file: file.clone(), run: report.comparable() });
        }
    }

    /// For a terminal; None if no two results are of one definition and from different times.
    pub(super) fn text(&self) -> Option<String> {
        text(&series(&self.runs), WIDTH)
    }

    /// Joins the tables of the results, whose lines have no line breaks inside, and adds the changes of the set-up as their last column.
    ///
    /// # Errors
    /// Those of the csv writer.
    pub(super) fn join_tables(&self, header: &[u8], tables: &[Vec<u8>]) -> anyhow::Result<Vec<u8>> {
        let mut all = Vec::new();
        append_column(&mut all, header, CHANGE_COLUMN)?;
        let changes = changes_by_file(&series(&self.runs), &self.names);
        for (table, change) in tables.iter().zip(&changes) {
            append_column(&mut all, table, change)?;
        }
        Ok(all)
    }
}

/// Appends lines with a further cell.
fn append_column(all: &mut Vec<u8>, lines: &[u8], text: &str) -> anyhow::Result<()> {
    let mut writer = ::csv::WriterBuilder::new().from_writer(Vec::new());
    let text = crate::frame::report::csv::without_formula(crate::frame::terminal_escape::line(text).into_owned());
    // Two cells, so that an empty one is not quoted.
    writer.write_record(["", &text])?;
    let cell = writer.into_inner().map_err(|e| e.into_error())?;
    for line in lines.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
        all.extend_from_slice(line);
        all.extend_from_slice(&cell);
    }
    Ok(())
}

#[cfg(test)]
#[path = "over_time_tests.rs"]
mod tests;
