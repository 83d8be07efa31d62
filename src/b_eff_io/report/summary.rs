//! The two tables of a screen: access methods by types, and by chunk sizes with bars.

use std::collections::BTreeSet;

use crate::b_eff_io::config::Release;
use crate::b_eff_io::pattern_type::PatternType;
use crate::b_eff_io::records::{PatternRecord, RunResult};
use crate::b_eff_io::values::{has_source, in_order, storage_bytes};
use crate::frame::digits::significant_digits;
use crate::frame::records::AccessMethod;
use crate::frame::report::bars::BarScale;
use crate::frame::report::model::ReportBlock;
use crate::frame::report::table::{Table, TableCell};
use crate::frame::report::terminal::pad_to;
use crate::frame::report::text::{count, list, percent};
use crate::frame::units::mb_per_second;
use crate::frame::words::rate;
use crate::frame::words::{or_hyphen, NO_VALUE};

use super::cells::{narrow_cell, narrow_rate, type_cell};
use super::coffee_cup;
use super::layout::{access_index, chunk_label, classic_pattern, partition_value, RecordSelector, ROWS, ROW_BYTES};
use super::orders;
use super::partition_view::PartitionView;
use super::variants;

const BACKEND_COLUMNS: usize = 6;
const RATE_COLUMNS: usize = 5;
/// Rows of other orders on a screen.
const ORDER_ROWS: usize = 4;

/// Meaning of the type names, in the words of the paper.
const TYPE_LEGEND: [&str; 2] = [
    "scatter: strided, collective; shared: one pointer, collective; separate: one",
    "file per rank; segment(ed): a segment per rank; seg-coll: that, collective",
];

/// Tables of one partition of a run with `partitions` of them.
pub(super) fn blocks(shown: &PartitionView, partitions: usize) -> Vec<ReportBlock> {
    let said = ReportBlock::Notes(TYPE_LEGEND.map(str::to_owned).into());
    let variants = variants::screen_block(shown);
    // Both would not fit onto a screen with more backends.
    let has_space = variants.is_none() || shown.backends.len() < 3;
    let by_chunk = by_chunk(shown).filter(|_| has_space).map(ReportBlock::Table);
    let by_order = by_order(shown);
    let coffee_cup = coffee_cup::screen_block(&shown.derived, shown.ranks);
    [ReportBlock::Table(by_type(shown, partitions)), said]
        .into_iter()
        .chain(variants)
        .chain(by_chunk)
        .chain(by_order)
        .chain(coffee_cup)
        .collect()
}

/// Names of a row; without the backend if there is only one.
fn names(shown: &PartitionView, access: &str, backend: &str) -> impl Iterator<Item = String> {
    let backend = (shown.backends.len() > 1).then(|| pad_to(backend, BACKEND_COLUMNS).trim_end().to_owned());
    [access.to_owned()].into_iter().chain(backend)
}

/// Rows of a table: access methods, and within each the backends.
fn selectors(shown: &PartitionView) -> impl Iterator<Item = RecordSelector<'_>> {
    AccessMethod::ALL.into_iter().flat_map(move |access| shown.backends.iter().map(move |b| shown.selector(b, access)))
}

fn by_type(shown: &PartitionView, partitions: usize) -> Table {
    let types = PatternType::ALL.map(|t| t.descriptor().short_name.to_owned());
    let head: Vec<String> =
        names(shown, "MB/s", "").chain(types).chain(["mean", "storage"].map(str::to_owned)).collect();
    let row = |spot: RecordSelector<'_>| {
        let names = names(shown, spot.access.name(), spot.backend).map(TableCell::from);
        let types = PatternType::ALL.map(|t| narrow_cell(&type_cell(&shown.result, &shown.derived, spot, t)));
        let value = partition_value(&shown.derived, spot.backend, shown.ranks);
        let mean = value.and_then(|v| v.access_mb_per_second[access_index(spot.access)]);
        let mean = or_hyphen(mean.map(|v| narrow_rate(v, None)));
        names.chain(types).chain([mean.into(), from_storage(&shown.result, spot).into()]).collect::<Vec<_>>()
    };
    let others = partitions.saturating_sub(1) as u64;
    let others = if others > 0 { format!(", {} in --full", count(others, "other partition")) } else { String::new() };
    Table::new("", if shown.backends.len() > 1 { 2 } else { 1 }, head)
        .with_rows(selectors(shown).map(row))
        .with_note(format!("{}; {}{others}", value_formula(shown.result.config.release), count(shown.ranks, "rank")))
        .with_note("storage: share of the bytes read from storage, not from a cache")
}

/// Formulas of the means and the value.
fn value_formula(release: Release) -> &'static str {
    match release {
        Release::R1 => "mean: scatter counts twice; value: (write + rewrite + 2 read) / 4",
        Release::R0_5 => "mean: scatter counts twice; value: all bytes / all time",
        Release::R2_1 => "mean: scatter counts twice; value: sqrt(writes * read)",
    }
}

fn from_storage(result: &RunResult, spot: RecordSelector<'_>) -> String {
    let reads: Vec<&PatternRecord> = spot.records(result).filter(|r| has_source(r)).collect();
    let read = reads.iter().map(|r| r.moved_bytes).fold(0, u64::saturating_add);
    let stored = reads.iter().try_fold(0_u64, |sum, r| Some(sum.saturating_add(storage_bytes(result, r)?)));
    match (read, stored) {
        (0, _) => String::new(),
        (_, None) => "?".to_owned(),
        (_, Some(stored)) => percent(stored as f64 / read as f64),
    }
}

/// Totals of all types with one chunk size.
#[derive(Clone, Copy, Default)]
struct ChunkTotals {
    bytes: u64,
    seconds: f64,
    calls: u64,
}

impl ChunkTotals {
    fn of(result: &RunResult, spot: RecordSelector<'_>, row: usize) -> Self {
        let numbers = PatternType::ALL.map(|t| classic_pattern(row, t));
        let records = spot.records(result).filter(|r| numbers.contains(&Some(r.pattern)) && r.was_run());
        records.fold(Self::default(), |sum, r| Self {
            bytes: sum.bytes.saturating_add(r.moved_bytes),
            seconds: sum.seconds + r.seconds(),
            calls: sum.calls.saturating_add(r.calls),
        })
    }

    fn rate(&self) -> Option<f64> {
        mb_per_second(self.bytes, self.seconds).filter(|_| self.bytes > 0)
    }

    fn cell(&self, scale: BarScale) -> String {
        let Some(value) = self.rate() else { return NO_VALUE.to_owned() };
        format!(
            "{}{:>RATE_COLUMNS$}",
            scale.bar(value),
            narrow_rate(value, Some(significant_digits(self.calls, self.bytes)))
        )
    }
}

/// Table with a bar before each number; None without rates.
fn by_chunk(shown: &PartitionView) -> Option<Table> {
    let sums = |spot| (0..ROWS.len()).map(|row| ChunkTotals::of(&shown.result, spot, row)).collect();
    let rows: Vec<(RecordSelector<'_>, Vec<ChunkTotals>)> = selectors(shown).map(|spot| (spot, sums(spot))).collect();
    let scale = BarScale::of(rows.iter().flat_map(|(_, sums)| sums.iter().filter_map(ChunkTotals::rate)))?;
    let m_part = shown.result.partitions.first().map_or(0, |p| p.m_part_bytes);
    let sizes = ROW_BYTES.into_iter().chain([m_part]).map(|bytes| chunk_label(bytes).replace(' ', ""));
    let row = |(spot, sums): &(RecordSelector<'_>, Vec<ChunkTotals>)| {
        let names = names(shown, spot.access.name(), spot.backend);
        names.chain(sums.iter().map(|sum| sum.cell(scale)).collect::<Vec<_>>()).collect::<Vec<_>>()
    };
    let [low, high] = [scale.low, scale.high].map(|v| rate(v, Some(2)));
    let head: Vec<String> = names(shown, "by chunk", "").chain(sizes).collect();
    let table = Table::new("", if shown.backends.len() > 1 { 2 } else { 1 }, head)
        .with_rows(rows.iter().map(row))
        .with_note(format!("MB/s of all five types together; bars: logarithmic, {low} to {high}"));
    Some(match two_phase_note(&shown.result) {
        Some(text) => table.with_note(text),
        None => table,
    })
}

/// The other orders, as a table where the screen has room for it; None without them.
fn by_order(shown: &PartitionView) -> Option<ReportBlock> {
    let m_part = shown.result.partitions.first().map_or(0, |p| p.m_part_bytes);
    let sizes = ROW_BYTES.into_iter().chain([m_part]).map(|bytes| chunk_label(bytes).replace(' ', ""));
    let mut rows = Vec::new();
    let orders = shown.result.config.call_orders();
    for &order in &orders {
        let own = in_order(&shown.result, order);
        for spot in selectors(shown).filter(|spot| spot.access != AccessMethod::Write && spot.records(&own).count() > 0)
        {
            let sums = (0..ROWS.len()).map(|row| ChunkTotals::of(&own, spot, row));
            let cells = sums.map(|sum| {
                let digits = Some(significant_digits(sum.calls, sum.bytes));
                or_hyphen(sum.rate().map(|value| narrow_rate(value, digits)))
            });
            let access = orders::access_name(spot.access, order);
            rows.push(
                [order.order.name().to_owned()]
                    .into_iter()
                    .chain(names(shown, &access, spot.backend))
                    .chain(cells)
                    .collect::<Vec<_>>(),
            );
        }
    }
    let head = ["order".to_owned()].into_iter().chain(names(shown, "by chunk", "")).chain(sizes);
    let table = Table::new("", if shown.backends.len() > 1 { 3 } else { 2 }, head)
        .with_note("types 0, 2 and 3, one chunk per call; not part of the value; patterns: --full");
    match rows.len() {
        0 => None,
        1..=ORDER_ROWS => Some(ReportBlock::Table(table.with_rows(rows))),
        _ => {
            let orders: Vec<String> = orders.iter().map(|order| order.name()).collect();
            Some(ReportBlock::Notes(vec![format!("other orders, in --full: {}", orders.join(", "))]))
        }
    }
}

/// Lists first writes that are two-phase while their rewrites are not: they are not comparable although in one column.
fn two_phase_note(result: &RunResult) -> Option<String> {
    let of = |access, p: &&PatternRecord| p.access == access && p.calls > 0;
    let is_other = |w: &&PatternRecord| {
        let mut again = result.patterns.iter().filter(|p| of(AccessMethod::Rewrite, p));
        again.any(|r| r.backend == w.backend && r.pattern == w.pattern && !r.is_two_phase())
    };
    let writes = result.patterns.iter().filter(|p| of(AccessMethod::Write, p) && p.is_two_phase()).filter(is_other);
    let (mut sizes, mut types) = (BTreeSet::new(), BTreeSet::new());
    writes.for_each(|w| {
        sizes.insert(w.chunk_bytes);
        types.insert(w.pattern_type);
    });
    let sizes: Vec<String> = sizes.into_iter().map(chunk_label).collect();
    let types: Vec<String> = types.into_iter().map(|t| t.descriptor().short_name.to_owned()).collect();
    (!sizes.is_empty()).then(|| format!("{}, {}: first writes are two-phase, rewrites not", list(&sizes), list(&types)))
}
