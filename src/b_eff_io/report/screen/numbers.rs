//! The two tables of a screen: access methods by types, and by chunk sizes with bars.

use std::collections::BTreeSet;

use crate::b_eff_io::config::Release;
use crate::b_eff_io::pattern_type::PatternType;
use crate::b_eff_io::records::{PatternRecord, RunResult};
use crate::b_eff_io::report::cells::type_cell;
use crate::b_eff_io::report::layout::{
    access_index, chunk_label, classic_pattern, partition_value, Spot, ROWS, ROW_BYTES,
};
use crate::b_eff_io::values::{has_source, storage_bytes, Derived};
use crate::frame::digits::known_digits;
use crate::frame::records::Access;
use crate::frame::report::bars::Scale;
use crate::frame::report::columns::NONE;
use crate::frame::report::marks::Legend;
use crate::frame::report::screen::{cell, legend, note, rate, MARKS};
use crate::frame::report::sheet::{fixed, right, span, Look, Room, Screen};
use crate::frame::report::text::{count, list, percent};
use crate::frame::units::mb_per_second;

/// Widths: access method, backend if there are several, a type, an average, a share, a chunk size.
const ACCESS: usize = 8;
const BACKEND: usize = 7;
const TYPE: usize = 10;
const TYPE_OF_SEVERAL: usize = 9;
const MEAN: usize = 8;
const SHARE: usize = 9;
const CHUNK: usize = 8;

/// What the names of the types mean, in the words of the paper.
const TYPES_SAID: [&str; 2] = [
    "scatter: strided, collective; shared: one pointer, collective; separate: one",
    "file a rank; segment(ed): a part of the file a rank; seg-coll: so, collective",
];

pub(super) fn write(page: &mut Screen, result: &RunResult, derived: &Derived, backends: &[&str], ranks: u64) {
    let several = backends.len() > 1;
    let others = result.partitions.len().saturating_sub(1) as u64;
    let others = if others > 0 { format!(", {} in --full", count(others, "other partition")) } else { String::new() };
    let mut legend_of_types = Legend::default();
    page.blank();
    let width = if several { TYPE_OF_SEVERAL } else { TYPE };
    let names: String = PatternType::ALL.iter().map(|t| above(t.descriptor().short_name, width)).collect();
    let head = format!("  {}{names}{}{}", label("MB/s", "", several), right("mean", MEAN), right("storage", SHARE));
    page.line([span(Look::Quiet, head)]);
    for access in Access::ALL {
        for (number, backend) in backends.iter().enumerate() {
            let spot = Spot { backend, ranks, access };
            let cells: String = PatternType::ALL
                .iter()
                .map(|t| fixed(&cell(&type_cell(result, derived, spot, *t), width, &mut legend_of_types), width))
                .collect();
            let mean =
                partition_value(derived, backend, ranks).and_then(|v| v.access_mb_per_second[access_index(access)]);
            let mean = right(&mean.map_or_else(|| NONE.to_owned(), |v| rate(v, None)), MEAN);
            let name = if number == 0 { access.name() } else { "" };
            let share = right(&from_storage(result, spot), SHARE);
            let (label, share) = (label(name, backend, several), share);
            page.line([
                span(Look::Plain, format!("  {label}{cells}")),
                span(Look::Strong, mean),
                span(Look::Plain, share),
            ]);
        }
    }
    legend(page, &legend_of_types);
    note(page, &format!("{}; {}{others}", average(result.config.release), count(ranks, "rank")));
    note(page, "storage: share of the bytes read that came from there, not from a cache");
    if page.room() != Room::Bare {
        TYPES_SAID.iter().for_each(|text| note(page, text));
    }
    chunks(page, result, backends, ranks);
}

/// Above a number with its marks behind it, if it is short enough.
fn above(name: &str, width: usize) -> String {
    let at = if name.len() < width - MARKS { width - MARKS } else { width };
    format!("{:<width$}", format!("{name:>at$}"))
}

fn label(access: &str, backend: &str, several: bool) -> String {
    format!("{access:ACCESS$}{}", if several { fixed(backend, BACKEND - 1) + " " } else { String::new() })
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
}

/// One row for each access method and backend, with a bar before each number.
fn chunks(page: &mut Screen, result: &RunResult, backends: &[&str], ranks: u64) {
    let mut rows = Vec::new();
    for access in Access::ALL {
        for (number, backend) in backends.iter().enumerate() {
            let spot = Spot { backend, ranks, access };
            let sums: Vec<Sum> = (0..ROWS.len()).map(|row| Sum::of(result, spot, row)).collect();
            rows.push((if number == 0 { access.name() } else { "" }, *backend, sums));
        }
    }
    let Some(scale) = Scale::of(rows.iter().flat_map(|(.., sums)| sums.iter().filter_map(Sum::rate))) else { return };
    let m_part = result.partitions.iter().find(|p| p.ranks == ranks).map_or(0, |p| p.m_part_bytes);
    let several = backends.len() > 1;
    page.blank();
    let sizes = ROW_BYTES.into_iter().chain([m_part]).map(|bytes| chunk_label(bytes).replace(' ', ""));
    let sizes: String = sizes.map(|size| right(&size, CHUNK)).collect();
    page.line([span(Look::Quiet, format!("  {}{sizes}", label("by chunk", "", several)))]);
    for (access, backend, sums) in rows {
        let cells: String = sums.iter().map(|sum| chunk(sum, scale)).collect();
        page.line([span(Look::Plain, format!("  {}{cells}", label(access, backend, several)))]);
    }
    let [low, high] = [scale.low, scale.high].map(|v| rate(v, Some(2)));
    note(page, &format!("MB/s of all five types together; bars: logarithmic, {low} to {high}"));
    ways_that_differ(result, ranks).iter().for_each(|text| note(page, text));
}

/// What was written by two-phase and written again without it: write and rewrite stand in one column, and do not compare.
fn ways_that_differ(result: &RunResult, ranks: u64) -> Option<String> {
    let of = |access, p: &&PatternRecord| p.access == access && p.ranks == ranks && p.calls > 0;
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

fn chunk(sum: &Sum, scale: Scale) -> String {
    let Some(value) = sum.rate() else { return right(NONE, CHUNK) };
    let text = rate(value, Some(known_digits(sum.calls, sum.bytes)));
    let room = CHUNK - 2 - text.chars().count().min(CHUNK - 2);
    format!(" {}{:room$}{text}", scale.bar(value), "")
}
