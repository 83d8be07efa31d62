//! Variants compared with their backends.

use crate::frame::report::model::{ReportBlock, ReportSection};
use crate::frame::report::table::Table;
use crate::frame::report::variants::{cell, resolved, verdict, CELL_NOTE, DISQUALIFIED_NOTE};
use crate::frame::units::format_size;
use crate::frame::words::or_hyphen;
use crate::imb_io::values::{ImbDerived, ImbVariant};

use super::blocks::mode_name;

/// Rows on a screen, by verbosity.
const SCREEN_ROWS: [usize; 4] = [16, 12, 8, 6];

/// A line for each variant: all rows together, and how many benchmarks are faster, equal and slower. None without variants.
pub(super) fn screen_block(derived: &ImbDerived) -> Option<ReportBlock> {
    let mut whole: Vec<&ImbVariant> = derived.variants.iter().filter(|v| v.benchmark.is_none()).collect();
    // Wrong data is on a screen in any case.
    whole.sort_by_key(|v| !v.is_disqualified());
    let head = ["ratio to its backend", "all rows", "faster", "equal", "slower", "undecided"];
    let row = |v: &&ImbVariant| {
        let is_block = |b: &&ImbVariant| b.backend == v.backend && b.benchmark.is_some() && b.sample_bytes.is_none();
        let found: Vec<&str> = derived.variants.iter().filter(is_block).map(ImbVariant::verdict).collect();
        let number = |word: &str| found.iter().filter(|other| **other == word).count();
        let counts = ["faster", "equal", "slower"].map(number);
        let undecided = found.len() - counts.iter().sum::<usize>();
        let counts = counts.into_iter().chain([undecided]).map(|number| number.to_string());
        [v.backend.clone(), v.cell()].into_iter().chain(counts).collect::<Vec<_>>()
    };
    let table = Table::new("", 1, head).with_row_limits(SCREEN_ROWS).with_rows(whole.iter().map(row));
    let note = format!("geometric mean of the rows; {CELL_NOTE}; benchmarks on each number of ranks in each mode");
    let table = table.with_note(note);
    let is_disqualified = whole.iter().any(|v| v.is_disqualified());
    let table = if is_disqualified { table.with_note(DISQUALIFIED_NOTE) } else { table };
    (!whole.is_empty()).then_some(ReportBlock::Table(table))
}

/// Comparison by benchmark and size; None without variants.
pub(super) fn section(derived: &ImbDerived) -> Option<ReportSection> {
    let head = ["variant", "benchmark", "ranks", "sync", "size", "ratio", "95 %: from", "to", "rounds", ""];
    let mut table = Table::new("Rate divided by that of the backend", 5, head).with_words();
    for group in derived.variants.chunk_by(|a, b| (&a.backend, &a.benchmark) == (&b.backend, &b.benchmark)) {
        table = table.with_rows(group.iter().map(row));
        table.end_group();
    }
    let note = "equal: the 95 % interval of the ratio contains 1, which one of 20 intervals misses by chance. A variant with wrong data \
        is disqualified.";
    let blocks = if derived.variants.is_empty() { Vec::new() } else { vec![ReportBlock::Table(table)] };
    ReportSection::of("variants", "Variants and their backends", note, blocks)
}

fn row(v: &ImbVariant) -> [String; 10] {
    let number = |value: Option<f64>| or_hyphen(value.map(|value| format!("{value:.3}")));
    let interval = v.ratio.as_ref().and_then(resolved);
    [
        v.backend.clone(),
        v.benchmark.clone().unwrap_or_else(|| "all".to_owned()),
        or_hyphen(v.ranks),
        or_hyphen(v.mode.map(mode_name)),
        v.sample_bytes.map_or_else(|| "all".to_owned(), format_size),
        number(v.ratio.map(|ratio| ratio.value)),
        number(interval.map(|i| i.low)),
        number(interval.map(|i| i.high)),
        or_hyphen(v.ratio.map(|ratio| ratio.rounds)),
        v.verdict().to_owned(),
    ]
}

impl ImbVariant {
    fn is_disqualified(&self) -> bool {
        self.bytes_wrong > 0
    }

    fn verdict(&self) -> &'static str {
        verdict(self.ratio.as_ref(), self.is_disqualified())
    }

    fn cell(&self) -> String {
        cell(self.ratio.as_ref(), self.is_disqualified())
    }
}
