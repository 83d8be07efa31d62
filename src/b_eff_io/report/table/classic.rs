//! The classic table of the paper: rows = chunk sizes, columns = pattern types, one block per access method.

use crate::b_eff_io::pattern_type::PatternType;
use crate::b_eff_io::records::{PartitionRecord, RunResult};
use crate::b_eff_io::report::cells::{pattern_cell, type_cell};
use crate::b_eff_io::report::layout;
use crate::b_eff_io::report::layout::{Spot, ROWS};
use crate::b_eff_io::values::{rate, Derived};
use crate::frame::records::Access;
use crate::frame::report::marks::{Cell, Legend};
use crate::frame::report::text::{count, Page};
use crate::frame::units::format_size;

/// Width of a number.
const NUMBER: usize = 11;
/// Width of the two label columns.
pub(super) const LABEL: usize = 20;

pub(super) fn write(
    page: &mut Page,
    result: &RunResult,
    derived: &Derived,
    backend: &str,
    partition: &PartitionRecord,
) {
    page.heading(&title(backend, partition));
    let Some(decimals) = decimals(result, backend, partition.ranks) else {
        return page.line("  nothing was measured");
    };
    let names: String = PatternType::ALL.iter().map(|&t| format!("{:>NUMBER$}    ", t.name())).collect();
    let numbers: String = PatternType::ALL.iter().map(|t| format!("{:>NUMBER$}    ", format!("type {t}"))).collect();
    page.line(format!("  {:LABEL$}{names}", "access   chunk"));
    page.line(format!("  {:LABEL$}{numbers}", ""));
    let mut legend = Legend::default();
    let spots = Access::ALL.map(|access| Spot { backend, ranks: partition.ranks, access });
    for spot in spots {
        page.blank();
        if spot.records(result).next().is_some() {
            block(page, result, derived, spot, decimals, &mut legend);
        } else {
            page.line(format!("  {:<9}not measured", spot.access.name()));
        }
    }
    let beside = spots.map(|spot| {
        let cell = pattern_cell(result, spot, layout::PATTERN_BESIDE_TABLE);
        legend.note(&cell);
        format!("{} {}", spot.access.name(), cell.show(0, decimals).trim_end())
    });
    page.blank();
    page.line("  A type total is all bytes of the type / time from open to close, warm-up, fill-up and sync included.");
    page.hanging("  Beside the table: ", &format!("pattern 2 (1 MB chunks, 2 MB per call): {}", beside.join(", ")));
    legend.write(page);
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

fn block(page: &mut Page, result: &RunResult, derived: &Derived, spot: Spot<'_>, decimals: usize, legend: &mut Legend) {
    let mut show = |cell: Cell| {
        legend.note(&cell);
        cell.show(NUMBER, decimals)
    };
    rows(page, spot, |pattern| show(pattern.map(|pattern| pattern_cell(result, spot, pattern)).unwrap_or_default()));
    let totals: String = PatternType::ALL.map(|t| show(type_cell(result, derived, spot, t))).concat();
    page.line(format!("  {:LABEL$}{totals}", format!("{:<9}type total", "")));
}

/// The rows of chunk sizes below an access method, one cell for the pattern of each type.
pub(super) fn rows(page: &mut Page, spot: Spot<'_>, mut cell: impl FnMut(Option<u8>) -> String) {
    for (row, label) in ROWS.iter().enumerate() {
        let name = if row == 0 { spot.access.name() } else { "" };
        let cells = PatternType::ALL.map(|t| cell(layout::classic_pattern(row, t))).concat();
        page.line(format!("  {:LABEL$}{cells}", format!("{name:<9}{label}")));
    }
}

/// Three digits behind the point where small numbers would lose their meaning, else one; None: nothing was measured.
fn decimals(result: &RunResult, backend: &str, ranks: u64) -> Option<usize> {
    let rates = layout::patterns(result, backend, ranks).map(rate);
    let smallest = rates.map(|rate| rate.unwrap_or(f64::INFINITY)).reduce(f64::min)?;
    Some(if smallest < 10.0 { 3 } else { 1 })
}
