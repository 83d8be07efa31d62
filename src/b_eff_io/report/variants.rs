//! Variants compared with their backends.

use beff_statistics::bootstrap::{Interval, Ratio};

use crate::b_eff_io::values::ladder::VariantComparison;
use crate::frame::records::AccessMethod;
use crate::frame::report::model::{ReportBlock, ReportSection};
use crate::frame::report::table::Table;
use crate::frame::report::text::count;
use crate::frame::words::{or_hyphen, rate, NO_VALUE};

use super::partition_view::PartitionView;

/// Rows on a screen, by verbosity.
const SCREEN_ROWS: [usize; 4] = [16, 12, 8, 6];
const DISQUALIFIED: &str = "WRONG DATA";

/// Comparison in one table of a screen; None without variants.
pub(super) fn screen_block(shown: &PartitionView) -> Option<ReportBlock> {
    let whole = || shown.derived.ladder.variants.iter().filter(|v| v.pattern_type.is_none());
    let mut names: Vec<&str> = whole().map(|v| v.backend.as_str()).collect();
    names.dedup();
    let head = ["ratio to its backend"].into_iter().chain(AccessMethod::ALL.map(AccessMethod::name));
    let row = |name: &&str| {
        let of_access = |access| whole().find(|v| v.backend == *name && v.access == access);
        [(*name).to_owned()].into_iter().chain(AccessMethod::ALL.map(|access| or_hyphen(of_access(access).map(cell))))
    };
    let table = Table::new("", 1, head).with_row_limits(SCREEN_ROWS);
    let table = table.with_rows(names.iter().map(|name| row(name).collect::<Vec<_>>()));
    let is_disqualified = whole().any(VariantComparison::is_disqualified);
    let note = "95 % interval, all types together; = equal: it contains 1; ? not resolved";
    let table = table.with_note(note);
    let disqualified = "WRONG DATA: disqualified, because it did not return what was written";
    let table = if is_disqualified { table.with_note(disqualified) } else { table };
    (!names.is_empty()).then_some(ReportBlock::Table(table))
}

/// `1.25 1.20-1.31`, with `=` if equal.
fn cell(v: &VariantComparison) -> String {
    if v.is_disqualified() {
        return DISQUALIFIED.to_owned();
    }
    let Some(ratio) = &v.ratio else { return NO_VALUE.to_owned() };
    match resolved(ratio) {
        Some(i) => {
            let equal = if ratio.equal == Some(true) { " =" } else { "" };
            format!("{:.2} {:.2}-{:.2}{equal}", ratio.value, i.low, i.high)
        }
        None => format!("{:.2} ?", ratio.value),
    }
}

fn resolved(ratio: &Ratio) -> Option<Interval> {
    ratio.interval.filter(Interval::is_resolved)
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
        verdict(v),
    ]
}

fn verdict(v: &VariantComparison) -> String {
    let word = match v.ratio {
        _ if v.is_disqualified() => "DISQUALIFIED: wrong data",
        None => "not measured",
        Some(Ratio { equal: None, .. }) => "no interval",
        Some(ratio) if resolved(&ratio).is_none() => "too much scatter",
        Some(Ratio { equal: Some(true), .. }) => "equal",
        Some(ratio) if ratio.value > 1.0 => "faster",
        Some(_) => "slower",
    };
    word.to_owned()
}
