//! Several backends beside each other: MB/s and the ratio to the best of them. The null backend is no rival and not shown.

use std::ops::Range;

use crate::plan::patterns::type_name;
use crate::report::layout::{self, chunk_label, TYPES};
use crate::report::marks::{letters, pattern_cell, type_cell, Cell, Legend, Mark};
use crate::report::text::{count, Page};
use crate::results::{Access, PartitionRecord, PatternRecord, RunResult};
use crate::stats::{Derived, PartitionValue};

use super::measuring;
use super::values::{value, RELEASES};

/// Backends in one table; more continue in a further one.
const COLUMNS: usize = 4;
/// Width of the label column.
const LABEL: usize = 22;

pub(super) fn write(
    page: &mut Page,
    result: &RunResult,
    derived: &Derived,
    partition: &PartitionRecord,
    details: bool,
) {
    page.heading(&format!("Side by side on {}: MB/s, and ratio to the best backend", count(partition.ranks, "rank")));
    let backends: Vec<&String> = measuring(result).collect();
    let rows = rows(result, derived, &backends, partition.ranks, details);
    let mut legend = Legend::default();
    let digits = digits(&rows);
    for first in (0..backends.len()).step_by(COLUMNS) {
        let columns = first..backends.len().min(first + COLUMNS);
        let names: String = backends[columns.clone()].iter().map(|name| format!("{name:>10.10}  ratio    ")).collect();
        page.line(format!("  {:LABEL$}{names}", "type totals"));
        for row in &rows {
            page.line(show(row, columns.clone(), digits));
            row.cells.iter().for_each(|cell| legend.note(cell));
        }
    }
    if let Some(text) = legend.text() {
        page.hanging("  marks: ", &text);
    }
}

/// Three digits behind the point where small numbers would lose their meaning, else one.
fn digits(rows: &[Row]) -> usize {
    let values = rows.iter().flat_map(|row| &row.cells).filter_map(|cell| cell.mb_per_second);
    if values.fold(f64::INFINITY, f64::min) < 10.0 {
        3
    } else {
        1
    }
}

/// One line: a label and a cell for each backend; no cells for an empty line.
struct Row {
    label: String,
    cells: Vec<Cell>,
}

fn rows(result: &RunResult, derived: &Derived, backends: &[&String], ranks: u64, details: bool) -> Vec<Row> {
    let mut rows = Vec::new();
    // What must be known about a type must be known about the averages it is in.
    let mut marks_of_all = vec![Vec::new(); backends.len()];
    for access in Access::ALL {
        if !result.patterns.iter().any(|r| r.access == access && r.ranks == ranks) {
            continue;
        }
        let mut marks = vec![Vec::new(); backends.len()];
        for t in TYPES {
            let cells: Vec<Cell> = backends.iter().map(|b| type_cell(result, derived, b, ranks, access, t)).collect();
            inherit(&mut marks, &cells);
            inherit(&mut marks_of_all, &cells);
            rows.push(Row { label: format!("{:<8}{t} {}", access.name(), type_name(t)), cells });
            if details {
                rows.extend(pattern_rows(result, backends, ranks, access, t));
            }
        }
        let average = |v: &PartitionValue| v.access_mb_per_second[layout::access_index(access)];
        let label = format!("{:<8}weighted avg.", access.name());
        rows.push(value_row(label, derived, backends, ranks, &marks, average));
        rows.push(Row { label: String::new(), cells: Vec::new() });
    }
    for release in RELEASES {
        let label = format!("b_eff_io, release {}", release.name());
        rows.push(value_row(label, derived, backends, ranks, &marks_of_all, |v| value(&v.values, release)));
    }
    rows
}

/// Adds the marks of types that hold for an average of them too.
fn inherit(marks: &mut [Vec<Mark>], cells: &[Cell]) {
    for (marks, cell) in marks.iter_mut().zip(cells) {
        let new = cell.marks.iter().filter(|m| matches!(m, Mark::Wrong | Mark::TimeGuard | Mark::Space | Mark::Cache));
        for mark in new {
            if !marks.contains(mark) {
                marks.push(*mark);
            }
        }
        marks.sort();
    }
}

fn value_row(
    label: String,
    derived: &Derived,
    backends: &[&String],
    ranks: u64,
    marks: &[Vec<Mark>],
    value: impl Fn(&PartitionValue) -> Option<f64>,
) -> Row {
    let cell = |(backend, marks): (&&String, &Vec<Mark>)| {
        let mb_per_second = layout::partition_value(derived, backend, ranks).and_then(&value);
        let marks = if mb_per_second.is_none() { vec![Mark::NotMeasured] } else { marks.clone() };
        Cell { mb_per_second, marks }
    };
    Row { label, cells: backends.iter().zip(marks).map(cell).collect() }
}

fn pattern_rows(result: &RunResult, backends: &[&String], ranks: u64, access: Access, pattern_type: u8) -> Vec<Row> {
    let mut seen: Vec<&PatternRecord> = Vec::new();
    for r in &result.patterns {
        let same = r.ranks == ranks && r.access == access && r.pattern_type == pattern_type;
        if same && !seen.iter().any(|s| s.pattern == r.pattern) {
            seen.push(r);
        }
    }
    let cells = |pattern: u8| backends.iter().map(|b| pattern_cell(result, b, ranks, access, pattern)).collect();
    seen.iter()
        .map(|r| Row { label: format!("  {:>2} {}", r.pattern, chunk_label(r.chunk_bytes)), cells: cells(r.pattern) })
        .collect()
}

fn show(row: &Row, columns: Range<usize>, digits: usize) -> String {
    if row.cells.is_empty() {
        return String::new();
    }
    let best = row.cells.iter().filter_map(|cell| cell.mb_per_second).fold(0.0, f64::max);
    let cells: String = row.cells[columns]
        .iter()
        .map(|cell| match cell.mb_per_second {
            Some(value) => format!("{value:>10.digits$}{:>7.2} {:<3}", value / best, letters(&cell.marks)),
            None => format!("{}{:>7}", cell.show(10, digits), ""),
        })
        .collect();
    format!("  {:LABEL$}{cells}", row.label)
}
