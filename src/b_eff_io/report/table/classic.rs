//! The classic table of the paper: rows = chunk sizes, columns = pattern types, one block per access method.

use crate::b_eff_io::plan::patterns::type_name;
use crate::b_eff_io::records::{PartitionRecord, RunResult};
use crate::b_eff_io::report::cells::{pattern_cell, type_cell};
use crate::b_eff_io::report::layout;
use crate::b_eff_io::report::layout::{ROWS, TYPES};
use crate::b_eff_io::values::Derived;
use crate::frame::records::Access;
use crate::frame::report::marks::{Cell, Legend};
use crate::frame::report::text::{count, Page};
use crate::frame::units::format_size;

/// Width of a number.
const NUMBER: usize = 11;
/// Width of the two label columns.
const LABEL: usize = 20;

pub(super) fn write(
    page: &mut Page,
    result: &RunResult,
    derived: &Derived,
    backend: &str,
    partition: &PartitionRecord,
) {
    page.heading(&title(backend, partition));
    if !result.patterns.iter().any(|r| r.backend == backend && r.ranks == partition.ranks) {
        page.line("  nothing was measured");
        return;
    }
    let names: String = TYPES.iter().map(|&t| format!("{:>NUMBER$}    ", type_name(t))).collect();
    let numbers: String = TYPES.iter().map(|t| format!("{:>NUMBER$}    ", format!("type {t}"))).collect();
    page.line(format!("  {:LABEL$}{names}", "access   chunk"));
    page.line(format!("  {:LABEL$}{numbers}", ""));
    let decimals = decimals(result, backend, partition.ranks);
    let mut legend = Legend::default();
    for access in Access::ALL {
        block(page, result, derived, (backend, partition.ranks, access), decimals, &mut legend);
    }
    beside_table(page, result, backend, partition.ranks, decimals, &mut legend);
    if let Some(text) = legend.text() {
        page.hanging("  marks: ", &text);
    }
}

fn title(backend: &str, partition: &PartitionRecord) -> String {
    let reduced = if partition.m_part_bytes < partition.m_part_wanted_bytes {
        format!(" (definition: {})", format_size(partition.m_part_wanted_bytes))
    } else {
        String::new()
    };
    format!(
        "{backend} on {}: MB/s; M_PART = {}{reduced}",
        count(partition.ranks, "rank"),
        format_size(partition.m_part_bytes)
    )
}

fn block(
    page: &mut Page,
    result: &RunResult,
    derived: &Derived,
    (backend, ranks, access): (&str, u64, Access),
    decimals: usize,
    legend: &mut Legend,
) {
    page.blank();
    if !result.patterns.iter().any(|r| r.access == access && r.ranks == ranks && r.backend == backend) {
        page.line(format!("  {:<9}not measured", access.name()));
        return;
    }
    for (row, label) in ROWS.iter().enumerate() {
        let name = if row == 0 { access.name() } else { "" };
        let cells = TYPES.map(|t| match layout::classic_pattern(row, t) {
            Some(pattern) => pattern_cell(result, backend, ranks, access, pattern),
            None => Cell::default(),
        });
        page.line(format!("  {:LABEL$}{}", format!("{name:<9}{label}"), show(&cells, decimals, legend)));
    }
    let totals = TYPES.map(|t| type_cell(result, derived, backend, ranks, access, t));
    page.line(format!("  {:LABEL$}{}", format!("{:<9}type total", ""), show(&totals, decimals, legend)));
}

fn show(cells: &[Cell], decimals: usize, legend: &mut Legend) -> String {
    cells
        .iter()
        .map(|cell| {
            legend.note(cell);
            cell.show(NUMBER, decimals)
        })
        .collect()
}

fn beside_table(page: &mut Page, result: &RunResult, backend: &str, ranks: u64, decimals: usize, legend: &mut Legend) {
    let shown: Vec<String> = Access::ALL
        .iter()
        .map(|&access| {
            let cell = pattern_cell(result, backend, ranks, access, layout::PATTERN_BESIDE_TABLE);
            legend.note(&cell);
            format!("{} {}", access.name(), cell.show(0, decimals).trim_end())
        })
        .collect();
    page.blank();
    page.line("  A type total is all bytes of the type / time from open to close, warm-up, fill-up and sync included.");
    page.hanging("  Beside the table: ", &format!("pattern 2 (1 MB chunks, 2 MB per call): {}", shown.join(", ")));
}

/// Three digits behind the point where small numbers would lose their meaning, else one.
fn decimals(result: &RunResult, backend: &str, ranks: u64) -> usize {
    let smallest = result
        .patterns
        .iter()
        .filter(|r| r.backend == backend && r.ranks == ranks)
        .filter_map(layout::rate)
        .fold(f64::INFINITY, f64::min);
    if smallest < 10.0 {
        3
    } else {
        1
    }
}
