//! The two tables of a screen: access methods by types, and by chunk sizes with bars.

use std::collections::BTreeSet;

use crate::b_eff_io::config::Release;
use crate::b_eff_io::pattern_type::PatternType;
use crate::b_eff_io::records::{PatternRecord, RunResult};
use crate::b_eff_io::values::{has_source, storage_bytes};
use crate::frame::digits::known_digits;
use crate::frame::records::Access;
use crate::frame::report::bars::Scale;
use crate::frame::report::model::Block;
use crate::frame::report::sheet::fixed;
use crate::frame::report::table::{Cell, Table};
use crate::frame::report::text::{count, list, percent};
use crate::frame::units::mb_per_second;
use crate::frame::words::rate;
use crate::frame::words::{or_none, NONE};

use super::cells::{few_columns, short, type_cell};
use super::layout::{access_index, chunk_label, classic_pattern, partition_value, Spot, ROWS, ROW_BYTES};
use super::shown::Shown;

/// Columns of the name of a backend.
const BACKEND: usize = 6;
/// Columns of a rate behind its bar.
const RATE: usize = 5;

/// What the names of the types mean, in the words of the paper.
const TYPES_SAID: [&str; 2] = [
    "scatter: strided, collective; shared: one pointer, collective; separate: one",
    "file a rank; segment(ed): a part of the file a rank; seg-coll: so, collective",
];

/// Of a run with `partitions`, of which one is shown.
pub(super) fn blocks(shown: &Shown, partitions: usize) -> Vec<Block> {
    let said = Block::Notes(TYPES_SAID.map(str::to_owned).into());
    let by_chunk = by_chunk(shown).map(Block::Table);
    [Block::Table(by_type(shown, partitions)), said].into_iter().chain(by_chunk).collect()
}

/// The names of a row; no backend where there is one alone.
fn names(shown: &Shown, access: &str, backend: &str) -> impl Iterator<Item = String> {
    let backend = (shown.backends.len() > 1).then(|| fixed(backend, BACKEND).trim_end().to_owned());
    [access.to_owned()].into_iter().chain(backend)
}

/// The rows of a table: access methods, and within each the backends.
fn spots(shown: &Shown) -> impl Iterator<Item = Spot<'_>> {
    Access::ALL.into_iter().flat_map(move |access| shown.backends.iter().map(move |b| shown.spot(b, access)))
}

fn by_type(shown: &Shown, partitions: usize) -> Table {
    let types = PatternType::ALL.map(|t| t.descriptor().short_name.to_owned());
    let head: Vec<String> =
        names(shown, "MB/s", "").chain(types).chain(["mean", "storage"].map(str::to_owned)).collect();
    let row = |spot: Spot<'_>| {
        let names = names(shown, spot.access.name(), spot.backend).map(Cell::from);
        let types = PatternType::ALL.map(|t| short(&type_cell(&shown.result, &shown.derived, spot, t)));
        let value = partition_value(&shown.derived, spot.backend, shown.ranks);
        let mean = value.and_then(|v| v.access_mb_per_second[access_index(spot.access)]);
        let mean = or_none(mean.map(|v| few_columns(v, None)));
        names.chain(types).chain([mean.into(), from_storage(&shown.result, spot).into()]).collect::<Vec<_>>()
    };
    let others = partitions.saturating_sub(1) as u64;
    let others = if others > 0 { format!(", {} in --full", count(others, "other partition")) } else { String::new() };
    Table::new("", if shown.backends.len() > 1 { 2 } else { 1 }, head)
        .with(spots(shown).map(row))
        .noted(format!("{}; {}{others}", average(shown.result.config.release), count(shown.ranks, "rank")))
        .noted("storage: share of the bytes read that came from there, not from a cache")
}

/// How the means and the value come about.
fn average(release: Release) -> &'static str {
    match release {
        Release::R1 => "mean: scatter counts twice; value: (write + rewrite + 2 read) / 4",
        Release::R0_5 => "mean: scatter counts twice; value: all bytes / all time",
        Release::R2_1 => "mean: scatter counts twice; value: sqrt(writes * read)",
    }
}

/// Share of the bytes read that came from storage.
fn from_storage(result: &RunResult, spot: Spot<'_>) -> String {
    let reads: Vec<&PatternRecord> = spot.records(result).filter(|r| has_source(r)).collect();
    let read = reads.iter().map(|r| r.moved_bytes).fold(0, u64::saturating_add);
    let stored = reads.iter().try_fold(0_u64, |sum, r| Some(sum.saturating_add(storage_bytes(result, r)?)));
    match (read, stored) {
        (0, _) => String::new(),
        (_, None) => "?".to_owned(),
        (_, Some(stored)) => percent(stored as f64 / read as f64),
    }
}

/// What all types together moved with one chunk size.
#[derive(Clone, Copy, Default)]
struct Sum {
    bytes: u64,
    seconds: f64,
    calls: u64,
}

impl Sum {
    fn of(result: &RunResult, spot: Spot<'_>, row: usize) -> Self {
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

    fn cell(&self, scale: Scale) -> String {
        let Some(value) = self.rate() else { return NONE.to_owned() };
        format!("{}{:>RATE$}", scale.bar(value), few_columns(value, Some(known_digits(self.calls, self.bytes))))
    }
}

/// A bar before each number; None: there is none.
fn by_chunk(shown: &Shown) -> Option<Table> {
    let sums = |spot| (0..ROWS.len()).map(|row| Sum::of(&shown.result, spot, row)).collect();
    let rows: Vec<(Spot<'_>, Vec<Sum>)> = spots(shown).map(|spot| (spot, sums(spot))).collect();
    let scale = Scale::of(rows.iter().flat_map(|(_, sums)| sums.iter().filter_map(Sum::rate)))?;
    let m_part = shown.result.partitions.first().map_or(0, |p| p.m_part_bytes);
    let sizes = ROW_BYTES.into_iter().chain([m_part]).map(|bytes| chunk_label(bytes).replace(' ', ""));
    let row = |(spot, sums): &(Spot<'_>, Vec<Sum>)| {
        let names = names(shown, spot.access.name(), spot.backend);
        names.chain(sums.iter().map(|sum| sum.cell(scale)).collect::<Vec<_>>()).collect::<Vec<_>>()
    };
    let [low, high] = [scale.low, scale.high].map(|v| rate(v, Some(2)));
    let head: Vec<String> = names(shown, "by chunk", "").chain(sizes).collect();
    let table = Table::new("", if shown.backends.len() > 1 { 2 } else { 1 }, head)
        .with(rows.iter().map(row))
        .noted(format!("MB/s of all five types together; bars: logarithmic, {low} to {high}"));
    Some(match ways_that_differ(&shown.result) {
        Some(text) => table.noted(text),
        None => table,
    })
}

/// What was written by two-phase and written again without it: write and rewrite stand in one column, and do not compare.
fn ways_that_differ(result: &RunResult) -> Option<String> {
    let of = |access, p: &&PatternRecord| p.access == access && p.calls > 0;
    let is_other = |w: &&PatternRecord| {
        let mut again = result.patterns.iter().filter(|p| of(Access::Rewrite, p));
        again.any(|r| r.backend == w.backend && r.pattern == w.pattern && !r.is_two_phase())
    };
    let writes = result.patterns.iter().filter(|p| of(Access::Write, p) && p.is_two_phase()).filter(is_other);
    let (mut sizes, mut types) = (BTreeSet::new(), BTreeSet::new());
    writes.for_each(|w| {
        sizes.insert(w.chunk_bytes);
        types.insert(w.pattern_type);
    });
    let sizes: Vec<String> = sizes.into_iter().map(chunk_label).collect();
    let types: Vec<String> = types.into_iter().map(|t| t.descriptor().short_name.to_owned()).collect();
    (!sizes.is_empty()).then(|| format!("{}, {}: first writes are two-phase, rewrites not", list(&sizes), list(&types)))
}
