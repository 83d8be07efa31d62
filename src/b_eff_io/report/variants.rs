//! Variants compared with their backends.

use crate::b_eff_io::values::ladder::VariantComparison;
use crate::frame::records::AccessMethod;
use crate::frame::report::model::{ReportBlock, ReportSection};
use crate::frame::report::table::Table;
use crate::frame::report::text::count;
use crate::frame::report::variants::{cell, resolved, verdict, CELL_NOTE, DISQUALIFIED_NOTE};
use crate::frame::words::{or_hyphen, rate};

use super::partition_view::PartitionView;

/// Rows on a screen, by verbosity.
const SCREEN_ROWS: [usize; 4] = [16, 12, 8, 6];

/// Comparison in one table of a screen; None without variants.
pub(super) fn screen_block(shown: &PartitionView) -> Option<ReportBlock> {
    let whole = || shown.derived.ladder.variants.iter().filter(|v| v.pattern_type.is_none());
    let mut names: Vec<&str> = whole().map(|v| v.backend.as_str()).collect();
    names.dedup();
    let head = ["ratio to its backend"].into_iter().chain(AccessMethod::ALL.map(AccessMethod::name));
    let row = |name: &&str| {
        let of_access = |access| whole().find(|v| v.backend == *name && v.access == access);
        [(*name).to_owned()].into_iter().chain(
            AccessMethod::ALL
                .map(|access| or_hyphen(of_access(access).map(|v| cell(v.ratio.as_ref(), v.is_disqualified())))),
        )
    };
    let table = Table::new("", 1, head).with_row_limits(SCREEN_ROWS);
    let table = table.with_rows(names.iter().map(|name| row(name).collect::<Vec<_>>()));
    let is_disqualified = whole().any(VariantComparison::is_disqualified);
    let table = table.with_note(format!("all types together; {CELL_NOTE}"));
    let table = if is_disqualified { table.with_note(DISQUALIFIED_NOTE) } else { table };
    (!names.is_empty()).then_some(ReportBlock::Table(table))
}

/// Comparison type by type; None without variants.
pub(super) fn section(shown: &PartitionView) -> Option<ReportSection> {
    let all = &shown.derived.ladder.variants;
    let head = ["variant", "access", "type", "MB/s", "ratio", "95 %: from", "to", ""];
    let mut table = Table::new("Rate divided by that of the backend", 3, head).with_words();
    for group in all.chunk_by(|a, b| (&a.backend, a.access) == (&b.backend, b.access)) {
        table = table.with_rows(group.iter().map(row));
        table.end_group();
    }
    let title = format!("Variants and their backends, {}", count(shown.ranks, "rank"));
    let note = "equal: the 95 % interval of the ratio contains 1. A variant with wrong data is disqualified.";
    let blocks = if all.is_empty() { Vec::new() } else { vec![ReportBlock::Table(table)] };
    ReportSection::of("variants", title, note, blocks)
}

fn row(v: &VariantComparison) -> [String; 8] {
    let number = |value: Option<f64>| or_hyphen(value.map(|value| format!("{value:.3}")));
    let interval = v.ratio.as_ref().and_then(resolved);
    [
        v.backend.clone(),
        v.access.name().to_owned(),
        v.pattern_type.map_or_else(|| "all".to_owned(), |t| t.label()),
        or_hyphen(v.mb_per_second.map(|value| rate(value, None))),
        number(v.ratio.map(|ratio| ratio.value)),
        number(interval.map(|i| i.low)),
        number(interval.map(|i| i.high)),
        verdict(v.ratio.as_ref(), v.is_disqualified()).to_owned(),
    ]
}
