//! Overview with a line for each benchmark and a column for each backend: the table of the screen, and the first one in full.

use crate::frame::backends::is_variant;
use crate::frame::report::bars::BarScale;
use crate::frame::report::marks::QualityMark;
use crate::frame::report::model::{ReportBlock, ReportSection};
use crate::frame::report::table::{Table, TableCell};
use crate::frame::report::DetailLevel;
use crate::frame::units::format_size;
use crate::frame::values::NULL_BACKEND;
use crate::frame::words::rate;
use crate::frame::words::{or_hyphen, NO_VALUE};
use crate::imb_io::records::ImbResult;

use super::blocks::{marks, mb_per_second, RowBlock as Rows};
use super::curves;

/// Lines on a screen, by the space available.
const SCREEN_ROWS: [usize; 4] = [14, 12, 10, 9];
const SCREEN_ROWS_OF_SEVERAL: [usize; 4] = [34, 30, 28, 26];
/// Maximum backends on a screen; a damaged file may contain any number.
const MAX_BACKENDS: usize = 4;
/// Maximum characters of names on a screen: of benchmarks, and of backends in column heads.
pub(super) const NAME_WIDTH: usize = 18;
const BACKEND_WIDTH: usize = 7;
const MAX_BARS: usize = 24;

pub(super) fn backends(result: &ImbResult) -> Vec<&str> {
    let all: Vec<&str> = result.config.backends.iter().map(String::as_str).filter(|b| *b != NULL_BACKEND).collect();
    if all.is_empty() {
        return vec![NULL_BACKEND];
    }
    all
}

pub(super) fn summary(result: &ImbResult, blocks: &[Rows<'_>]) -> Vec<ReportBlock> {
    // On a screen, variants are compared with their backends only.
    let mut backends: Vec<&str> = backends(result).into_iter().filter(|name| !is_variant(name)).collect();
    backends.truncate(MAX_BACKENDS);
    let most = if backends.len() > 1 { SCREEN_ROWS_OF_SEVERAL } else { SCREEN_ROWS };
    table(result, blocks, &backends, [NAME_WIDTH, BACKEND_WIDTH])
        .into_iter()
        .map(|t| ReportBlock::Table(t.with_row_limits(most)))
        .collect()
}

/// The table in full, on a page with a panel for each benchmark.
pub(super) fn section(result: &ImbResult, blocks: &[Rows<'_>], level: DetailLevel) -> Option<ReportSection> {
    let backends = backends(result);
    let table = table(result, blocks, &backends, [usize::MAX; 2])?;
    let several = backends.len() > 1;
    let shades = if several { " The darker, the closer to the best of the row, which is bold." } else { "" };
    let drawn = (level == DetailLevel::Page).then(|| curves::picture(result, blocks, table.clone())).flatten();
    let (note, found) = match drawn {
        Some((picture, note)) if several => {
            (note + shades, vec![ReportBlock::Picture(picture), ReportBlock::Table(table)])
        }
        Some((picture, note)) => (note, vec![ReportBlock::Picture(picture)]),
        None => (String::new(), vec![ReportBlock::Table(table)]),
    };
    ReportSection::of("bandwidth", "Bandwidth by benchmark", note, found)
}

/// Lines of blocks that differ in the backend only.
fn lines<'b, 'a>(blocks: &'b [Rows<'a>], backends: &[&str]) -> Vec<Vec<&'b Rows<'a>>> {
    let mut lines: Vec<Vec<&Rows<'a>>> = Vec::new();
    for block in blocks.iter().filter(|block| backends.contains(&block.first.backend.as_str())) {
        let key = |b: &Rows<'a>| {
            let first = b.first;
            (&first.benchmark, first.ranks, first.groups, first.mode, first.sample_bytes.is_some())
        };
        match lines.iter_mut().find(|line| key(line[0]) == key(block)) {
            Some(line) => line.push(block),
            None => lines.push(vec![block]),
        }
    }
    lines
}

fn table(result: &ImbResult, blocks: &[Rows<'_>], backends: &[&str], cut: [usize; 2]) -> Option<Table> {
    let lines = lines(blocks, backends);
    let short = |text: &str, most: usize| text.chars().take(most).collect::<String>();
    let scale = BarScale::of(blocks.iter().flat_map(rates).flatten()).filter(|_| backends.len() < 2);
    let names = ["benchmark", "ranks", "sync"].into_iter().chain(scale.map(|_| "by size")).map(str::to_owned);
    let names: Vec<String> = names.collect();
    let numbers = match backends {
        [_] => ["us", "MB/s"].map(str::to_owned).to_vec(),
        several => several.iter().map(|name| short(name, cut[1])).collect(),
    };
    let mut table = Table::new("MB/s with the largest size", names.len(), names.iter().cloned().chain(numbers));
    for line in &lines {
        let first = line[0];
        let of = |backend: &&str| line.iter().find(|block| block.first.backend == **backend).copied();
        let groups = if first.first.groups > 1 { format!("{}x", first.first.groups) } else { String::new() };
        let begin = [
            short(&first.first.benchmark, cut[0]),
            format!("{groups}{}", first.first.ranks),
            first.sync_label().to_owned(),
        ];
        let bars =
            scale.map(|scale| rates(first).take(MAX_BARS).map(|rate| rate.map_or(' ', |v| scale.bar(v))).collect());
        let least = (backends.len() < 2).then(|| smallest_size_time(first));
        let begin = begin.into_iter().chain(bars).chain(least).map(TableCell::from);
        table.row(begin.chain(largest_size_rates(result, &backends.iter().map(of).collect::<Vec<_>>())));
    }
    (!table.is_empty()).then(|| add_notes(result, table, scale, backends.len() > 1))
}

fn add_notes(result: &ImbResult, table: Table, scale: Option<BarScale>, several: bool) -> Table {
    let sizes = &result.setup.sizes_bytes;
    let ends = sizes.iter().min().zip(sizes.iter().max()).map(|(a, b)| (format_size(*a), format_size(*b)));
    let text = ends.map(|(least, most)| {
        let least = if several { String::new() } else { format!("us at {least}, ") };
        format!("{least}MB/s at {most}; sync: once after all iterations, or after each")
    });
    let bars = scale.map(|scale| {
        let [low, high] = [scale.low, scale.high].map(|v| rate(v, Some(2)));
        format!("by size: bars, logarithmic, {low} to {high} MB/s, one for each size")
    });
    [text, bars].into_iter().flatten().fold(table, Table::with_note)
}

/// Bandwidth of the rows of a block, in MB/s.
fn rates<'b>(block: &'b Rows<'_>) -> impl Iterator<Item = Option<f64>> + 'b {
    block.rows.iter().map(|(_, value)| mb_per_second(value))
}

fn smallest_size_time(block: &Rows<'_>) -> String {
    let row = block.rows.iter().min_by_key(|(record, _)| record.sample_bytes);
    let group = row.and_then(|(_, value)| value.groups.first());
    or_hyphen(group.map(|group| rate(group.times.max_seconds * 1e6, None)))
}

/// Bandwidth with the largest size of each backend, and its first mark.
fn largest_size_rates(result: &ImbResult, blocks: &[Option<&Rows<'_>>]) -> Vec<TableCell> {
    let rows: Vec<_> = blocks.iter().map(|block| block.and_then(Rows::largest)).collect();
    let best = rows.iter().flatten().filter_map(|(_, value)| mb_per_second(value)).fold(0.0, f64::max);
    let cell = |row: &Option<_>| {
        let Some((record, value)) = *row else { return TableCell::from(NO_VALUE) };
        let marks: Vec<QualityMark> = marks(result, record, value).into_iter().take(1).collect();
        let found = mb_per_second(value);
        let cell = TableCell::number(found.map(|v| rate(v, None)), &marks);
        match found.filter(|_| rows.len() > 1 && best > 0.0) {
            Some(v) => cell.shaded(v / best).strong(v == best),
            None => cell,
        }
    };
    rows.iter().map(cell).collect()
}
