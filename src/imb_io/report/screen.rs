//! One screen of a run of IMB-IO: whether it is whole and its data right, a line for each benchmark, what stands out, what to trust,
//! and what to type next. At most 40 lines of 80 columns for one backend, 60 for several.

use beff_backends::Direction;

use crate::frame::report::bars::Scale;
use crate::frame::report::columns::NONE;
use crate::frame::report::marks::{letters, Legend, Mark};
use crate::frame::report::sheet::{fixed, span, Look, Room, Screen};
use crate::frame::report::text::{count, figure, percent};
use crate::frame::report::{ending, screen, Place};
use crate::frame::units::{format_seconds, format_size};
use crate::frame::values::NULL_BACKEND;
use crate::imb_io::plan::Mode;
use crate::imb_io::records::{ImbResult, RowEnd};
use crate::imb_io::values::standout::{findings, Against, Finding};
use crate::imb_io::values::{ImbDerived, Verdict};

use super::blocks::{is_wrong, mode, with_all_groups, Block};
use super::table::header;
use super::table::{rows_by_end, verdict};

/// Lines of benchmarks at most.
const ROWS: [usize; 4] = [14, 12, 10, 9];
const ROWS_OF_SEVERAL: [usize; 4] = [34, 30, 28, 26];
/// Widths: benchmark, ranks, mode, numbers.
const NAME: usize = 18;
const RANKS: usize = 6;
const MODE: usize = 6;
const NUMBER: usize = 10;
/// Bars of sizes at most.
const BARS: usize = 24;

/// The screen of one run.
#[must_use]
pub fn screen(result: &ImbResult, derived: &ImbDerived, place: &Place) -> Screen {
    let backends = backends(result).len();
    Screen::within(place.columns, screen::most_lines(backends), |page| write(page, result, derived, place))
}

fn write(page: &mut Screen, result: &ImbResult, derived: &ImbDerived, place: &Place) {
    let setup = &result.setup;
    screen::banner(page, result, "WRONG DATA: bytes read were not the bytes written.");
    screen::head(page, &setup.machine, "IMB-IO", Some(&setup.storage));
    let asked = match &result.announcement {
        Some(told) => format!("announced {}", format_seconds(told.expected_seconds)),
        None => "nothing announced".to_owned(),
    };
    screen::times(page, &asked, result.ending.outcome, result.ending.real_seconds);
    screen::settings(page, header::unusual(&result.config));
    verdict_line(page, result, derived);
    benchmarks(page, result, derived);
    repeats(page, result, derived);
    let found = findings(result, &derived.rows);
    let several = backends(result).len() > 1;
    let texts: Vec<String> = found.iter().filter_map(|finding| sentence(result, finding, several)).collect();
    screen::findings(page, result, &texts);
    screen::trust(page, result, checked(derived), &derived.warnings, several);
    screen::end(page, place, screen::has_failed(result), None);
}

/// How much of the data was compared.
pub(super) fn checked(derived: &ImbDerived) -> Option<String> {
    let found = &derived.verdict;
    (found.bytes_checked > 0 && found.bytes_wrong == 0)
        .then(|| format!("{} read back and compared: all as written", format_size(found.bytes_checked)))
}

/// Backends that move data.
fn backends(result: &ImbResult) -> Vec<&str> {
    let mut all: Vec<&str> = result.config.backends.iter().map(String::as_str).filter(|b| *b != NULL_BACKEND).collect();
    if all.is_empty() {
        all.push(NULL_BACKEND);
    }
    all.truncate(screen::BACKENDS);
    all
}

/// The line for grep.
fn verdict_line(page: &mut Screen, result: &ImbResult, derived: &ImbDerived) {
    let found = &derived.verdict;
    let parts = rows_by_end(found);
    let (crowded, outcome) = (ending::crowded(&result.setup.machine), ending::mark(result.ending.outcome));
    let look = if found.verdict == Verdict::Verified { Look::Good } else { Look::Bad };
    page.blank();
    page.line([
        span(Look::Plain, "IMB-IO = "),
        span(look, verdict(found.verdict)),
        span(Look::Plain, format!(": {}{crowded}{outcome}", parts.join(", "))),
    ]);
}

/// Blocks of all backends that differ in nothing else.
struct Line<'b, 'a> {
    blocks: Vec<&'b Block<'a>>,
}

impl<'a> Line<'_, 'a> {
    fn first(&self) -> &Block<'a> {
        self.blocks[0]
    }

    fn of(&self, backend: &str) -> Option<&Block<'a>> {
        self.blocks.iter().find(|block| block.first.backend == backend).copied()
    }
}

fn lines<'b, 'a>(blocks: &'b [Block<'a>], backends: &[&str]) -> Vec<Line<'b, 'a>> {
    let mut lines: Vec<Line<'b, 'a>> = Vec::new();
    for block in blocks.iter().filter(|block| backends.contains(&block.first.backend.as_str())) {
        let key = |b: &Block<'_>| {
            (
                b.first.benchmark.clone(),
                b.first.ranks,
                b.first.groups,
                mode(b.first.mode),
                b.first.sample_bytes.is_some(),
            )
        };
        match lines.iter_mut().find(|line| key(line.first()) == key(block)) {
            Some(line) => line.blocks.push(block),
            None => lines.push(Line { blocks: vec![block] }),
        }
    }
    lines
}

/// Bandwidth of the rows of a block, in MB/s.
fn rates(block: &Block<'_>) -> Vec<Option<f64>> {
    block.rows.iter().map(|(_, value)| value.groups.first().and_then(|group| group.mb_per_second)).collect()
}

fn benchmarks(page: &mut Screen, result: &ImbResult, derived: &ImbDerived) {
    let (blocks, backends) = (with_all_groups(result, derived), backends(result));
    let lines = lines(&blocks, &backends);
    let several = backends.len() > 1;
    let most = if several { ROWS_OF_SEVERAL } else { ROWS }[page.room() as usize];
    let scale = Scale::of(blocks.iter().flat_map(|block| rates(block).into_iter().flatten()));
    page.blank();
    let heads = if several {
        backends.iter().map(|name| format!(" {}", right(&fixed(name, NUMBER - 2)))).collect::<String>()
    } else {
        ["us, least", "MB/s, most"].map(|head| format!(" {}", right(head))).concat() + "   by size"
    };
    page.line([span(Look::Quiet, format!("  {:NAME$}{:>RANKS$} {:MODE$}{heads}", "benchmark", "ranks", "sync"))]);
    let mut legend = Legend::default();
    for line in lines.iter().take(most) {
        let first = line.first().first;
        let mut text =
            format!("  {}{:>RANKS$} {:MODE$}", fixed(&first.benchmark, NAME), first.ranks, sync(line.first()));
        let mut bars = None;
        if several {
            backends.iter().for_each(|backend| text.push_str(&largest(result, line.of(backend), &mut legend)));
        } else {
            text.push_str(&format!(" {}{}", least(line.first()), largest(result, Some(line.first()), &mut legend)));
            bars = scale.map(|scale| of_sizes(line.first(), scale));
        }
        let bars = bars.map(|bars| span(Look::Plain, format!(" {bars}")));
        page.line([Some(span(Look::Plain, text)), bars].into_iter().flatten());
    }
    screen::not_shown(page, lines.len().saturating_sub(most), "line");
    notes(page, result, scale.filter(|_| !several), several);
    screen::legend(page, &legend);
}

fn notes(page: &mut Screen, result: &ImbResult, scale: Option<Scale>, several: bool) {
    let sizes = &result.setup.sizes_bytes;
    let ends = sizes.iter().min().zip(sizes.iter().max()).map(|(a, b)| (format_size(*a), format_size(*b)));
    if let Some((least, most)) = ends {
        let text = if several { format!("MB/s at {most}") } else { format!("us at {least}, MB/s at {most}") };
        screen::note(page, &format!("{text}; sync: once after all repetitions, or after each"));
    }
    if let Some(scale) = scale.filter(|_| page.room() != Room::Bare) {
        let [low, high] = [scale.low, scale.high].map(|v| screen::rate(v, Some(2)));
        screen::note(page, &format!("bars: logarithmic, {low} to {high} MB/s, a bar for each size"));
    }
}

/// How sure the rows are that were measured again.
fn repeats(page: &mut Screen, result: &ImbResult, derived: &ImbDerived) {
    let again = result.rows.iter().zip(&derived.rows).filter_map(|(record, value)| Some((record, value.repeated?)));
    let again: Vec<_> = again.collect();
    if again.is_empty() {
        return;
    }
    let known: Vec<_> = again.iter().filter_map(|(record, found)| Some((*record, found.reach_share?))).collect();
    let text = match known.iter().max_by(|a, b| a.1.total_cmp(&b.1)) {
        None => format!("{} measured again, too few times for an interval", count(again.len() as u64, "row")),
        Some((record, reach)) => {
            let size = record.sample_bytes.map_or_else(String::new, |bytes| format!(" {}", format_size(bytes)));
            let number = count(again.len() as u64, "row");
            format!(
                "{number} measured again, 95 % within {} (least known: {}{size})",
                percent(*reach),
                record.benchmark
            )
        }
    };
    screen::note(page, &text);
}

fn right(text: &str) -> String {
    format!("{:>width$}", text.trim_end(), width = NUMBER - 1)
}

/// Where the syncs of writes are; reads have none.
fn sync(block: &Block<'_>) -> &'static str {
    let is_write = |b: &crate::imb_io::plan::Benchmark| b.transfer().is_some_and(|t| t.direction == Direction::Write);
    match (block.benchmark.is_none_or(is_write), block.first.mode) {
        (false, _) => "",
        (true, Mode::Aggregate) => "all",
        (true, Mode::NonAggregate) => "each",
    }
}

/// The time of a repetition with the smallest size.
fn least(block: &Block<'_>) -> String {
    let row = block.rows.iter().min_by_key(|(record, _)| record.sample_bytes);
    let seconds = row.and_then(|(_, value)| value.groups.first()).map(|group| group.times.max_seconds);
    right(&seconds.map_or_else(|| NONE.to_owned(), |s| screen::rate(s * 1e6, None)))
}

/// The bandwidth with the largest size, and its mark.
fn largest(result: &ImbResult, block: Option<&Block<'_>>, legend: &mut Legend) -> String {
    let row = block.and_then(|block| block.rows.iter().max_by_key(|(record, _)| record.sample_bytes));
    let Some((record, value)) = row else { return format!(" {} ", right(NONE)) };
    let mark = if is_wrong(result, record) {
        Some(Mark::Wrong)
    } else {
        match record.ended {
            RowEnd::Error(_) => Some(Mark::Error),
            RowEnd::Interrupted => Some(Mark::Interrupted),
            RowEnd::NotRun(_) => Some(Mark::NotRun),
            RowEnd::Complete if value.cached => Some(Mark::Cache),
            RowEnd::Complete if value.has_source && value.cached_share.is_none() => Some(Mark::CacheUnknown),
            RowEnd::Complete => None,
        }
    };
    let marks: Vec<Mark> = mark.into_iter().collect();
    legend.note_marks(&marks);
    let rate = value.groups.first().and_then(|group| group.mb_per_second);
    let letter = letters(&marks);
    format!(" {}{letter:1}", right(&rate.map_or_else(|| NONE.to_owned(), |v| screen::rate(v, None))))
}

/// A bar for each size.
fn of_sizes(block: &Block<'_>, scale: Scale) -> String {
    rates(block).into_iter().take(BARS).map(|rate| rate.map_or(' ', |v| scale.bar(v))).collect()
}

pub(super) fn sentence(result: &ImbResult, finding: &Finding, several: bool) -> Option<String> {
    let record = result.rows.get(finding.row)?;
    let size = record.sample_bytes.map(|bytes| format!(", {}", format_size(bytes))).unwrap_or_default();
    let backend = if several { format!(", {}", record.backend) } else { String::new() };
    let factor = figure(finding.factor);
    let against = match &finding.against {
        Against::Backend(best) => format!("{factor} times slower than {best}"),
        Against::Aggregate => format!("{factor} times slower with a sync behind each repetition than behind all"),
        Against::Median => format!("the slowest repetition took {factor} times the median one"),
    };
    Some(format!("{}{size}, {}{backend}: {against}", record.benchmark, count(record.ranks, "rank")))
}

#[cfg(test)]
mod tests;
