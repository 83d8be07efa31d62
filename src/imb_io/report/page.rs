//! A run of IMB-IO as a page for a browser: the verdict, a panel for each benchmark, backends beside each other, every row as numbers,
//! and what must be known of them.

use beff_backends::Direction;

use crate::frame::report::columns::or_none;
use crate::frame::report::html::lines::{self, Abscissa, Curve, Look, Point};
use crate::frame::report::html::scale::{size, Log};
use crate::frame::report::html::{
    facts, over_ranks as picture_over_ranks, Block, Cell, Headline, Picture, Run, Section, Table, Tone,
};
use crate::frame::report::screen::rate;
use crate::frame::report::{ending, picture};
use crate::frame::units::format_size;
use crate::imb_io::plan::Mode;
use crate::imb_io::records::{ImbResult, RowEnd};
use crate::imb_io::values::standout::findings;
use crate::imb_io::values::{ImbDerived, Verdict};

use super::blocks::{cause, is_wrong, usec, with_all_groups};
use super::table::{rows_by_end, verdict};
use super::{comparable, screen};

/// Alias of what the records call a block of sizes.
type Rows<'a> = super::blocks::Block<'a>;

/// Panels at most; a damaged file may name any number of benchmarks.
const PANELS: usize = 60;

/// The page of one run.
#[must_use]
pub(super) fn page(result: &ImbResult, derived: &ImbDerived) -> Run {
    let (machine, storage) = (&result.setup.machine, &result.setup.storage);
    let several = result.config.backends.len() > 1;
    let found = findings(result, &derived.rows);
    let words = [
        facts::stands_out(found.iter().filter_map(|f| screen::sentence(result, f, several)).collect()),
        Some(facts::trust(result, screen::checked(derived), &derived.warnings, several)),
    ];
    let blocks = with_all_groups(result, derived);
    let own =
        [bandwidth(result, &blocks), side_by_side(result, &blocks), ranks(result, derived), rows(result, &blocks)];
    let common = [facts::warnings(result, derived), facts::set_up(&comparable::facts(result))];
    Run {
        benchmark: "imb",
        title: facts::title("IMB-IO", machine, Some(storage)),
        facts: facts::line(machine, Some(storage), result.ending.outcome, result.ending.real_seconds),
        alarms: facts::alarms(result, "WRONG DATA: bytes read were not the bytes written."),
        headlines: vec![headline(result, derived)],
        findings: words.into_iter().flatten().collect(),
        sections: own.into_iter().flatten().chain(common).collect(),
    }
}

fn headline(result: &ImbResult, derived: &ImbDerived) -> Headline {
    let found = &derived.verdict;
    let tone = if found.verdict == Verdict::Verified { Tone::Good } else { Tone::Bad };
    let (crowded, outcome) = (ending::crowded(&result.setup.machine), ending::mark(result.ending.outcome));
    Headline {
        label: "IMB-IO, rows complete".into(),
        value: format!("{} of {}", found.rows_complete, found.rows),
        unit: "",
        verdict: Some((tone, format!("{}{crowded}{outcome}", verdict(found.verdict)))),
        numbers: rows_by_end(found).into_iter().skip(1).map(|text| (text, String::new())).collect(),
    }
}

/// What tells a curve from others in a panel.
fn curve_name(block: &Rows<'_>) -> String {
    let first = block.first;
    let groups = if first.groups > 1 { format!("{} x ", first.groups) } else { String::new() };
    let ranks = super::blocks::ranks(first.ranks);
    format!("{}, {groups}{ranks}{}", first.backend, sync(block))
}

/// Where the syncs of writes are; reads have none.
fn sync(block: &Rows<'_>) -> &'static str {
    let is_write = block.benchmark.is_none_or(|b| b.transfer().is_some_and(|t| t.direction == Direction::Write));
    match (is_write, block.first.mode) {
        (false, _) => "",
        (true, Mode::Aggregate) => ", sync behind all",
        (true, Mode::NonAggregate) => ", sync behind each",
    }
}

fn with_sizes<'b, 'a>(blocks: &'b [Rows<'a>]) -> Vec<&'b Rows<'a>> {
    blocks.iter().filter(|b| b.first.sample_bytes.is_some() && b.has_times()).collect()
}

/// A panel for each benchmark.
fn bandwidth(result: &ImbResult, blocks: &[Rows<'_>]) -> Option<Section> {
    let mut drawn = with_sizes(blocks);
    let names_of = |drawn: &[&Rows<'_>]| {
        let mut names: Vec<String> = Vec::new();
        drawn.iter().map(|b| curve_name(b)).for_each(|name| {
            if !names.contains(&name) {
                names.push(name)
            }
        });
        names
    };
    let mut names = names_of(&drawn);
    let most = drawn.iter().map(|b| b.first.ranks).max()?;
    let is_cut = names.len() > lines::STYLES;
    if is_cut {
        drawn.retain(|b| b.first.ranks == most);
        names = names_of(&drawn);
    }
    let sizes = drawn.iter().flat_map(|b| &b.rows).filter_map(|(row, _)| row.sample_bytes);
    let axis = Abscissa::log(sizes.map(|bytes| (bytes as f64, size(bytes))).collect())?;
    let curves: Vec<(&Rows<'_>, Curve)> = drawn
        .iter()
        .map(|b| (*b, curve(result, b, names.iter().position(|n| *n == curve_name(b)).unwrap_or(0))))
        .collect();
    let scale = Log::around(curves.iter().flat_map(|(_, c)| c.points.iter().map(|p| p.y)))?;
    let mut panels: Vec<(&str, Vec<Curve>)> = Vec::new();
    for (block, curve) in curves {
        match panels.iter_mut().find(|(name, _)| *name == block.first.benchmark) {
            Some((_, all)) => all.push(curve),
            None => panels.push((&block.first.benchmark, vec![curve])),
        }
    }
    let all: Vec<Curve> = panels.iter().flat_map(|(_, curves)| curves.iter().cloned()).collect();
    let keys = names.iter().enumerate().take(lines::STYLES).map(|(style, name)| lines::key(style, name.as_str()));
    let frame = |(name, curves): &(&str, Vec<Curve>)| {
        lines::frame(name, format!("{name}: MB/s over sizes"), "MB/s", &axis, scale, curves)
    };
    let picture = Picture {
        name: "bandwidth".into(),
        title: "A panel for each benchmark".into(),
        keys: keys.chain(lines::keys_of_marks(&all)).collect(),
        frames: panels.iter().take(PANELS).map(frame).collect(),
        table: largest(blocks),
    };
    let note = format!(
        "MB/s over the size of the sample, both logarithmic; all panels have one scale.{}",
        if is_cut { format!(" Drawn are the rows of {} only.", super::blocks::ranks(most)) } else { String::new() }
    );
    Some(Section { name: "bandwidth", title: "Bandwidth by size".into(), note, blocks: vec![Block::Picture(picture)] })
}

fn curve(result: &ImbResult, block: &Rows<'_>, style: usize) -> Curve {
    let point = |(row, value): &(&crate::imb_io::records::RowRecord, &crate::imb_io::values::RowValue)| {
        let (x, y) = (row.sample_bytes? as f64, value.groups.first()?.mb_per_second?);
        let cached = if value.cached { "; read from a cache" } else { "" };
        let wrong = if is_wrong(result, row) { "; WRONG DATA" } else { "" };
        let bytes = format_size(row.sample_bytes?);
        let said = format!("{}, {}, {bytes}: {} MB/s{cached}{wrong}", row.benchmark, curve_name(block), rate(y, None));
        Some(Point { x, y, look: if value.cached { Look::Cached } else { Look::Known }, said })
    };
    let mut points: Vec<Point> = block.rows.iter().filter_map(point).collect();
    points.sort_by(|a, b| a.x.total_cmp(&b.x));
    Curve { style, points }
}

/// Bandwidth with the largest size.
fn at_largest(block: &Rows<'_>) -> Option<f64> {
    let row = block.rows.iter().max_by_key(|(record, _)| record.sample_bytes);
    row.and_then(|(_, value)| value.groups.first()?.mb_per_second)
}

fn largest(blocks: &[Rows<'_>]) -> Table {
    let mut table = Table::new("MB/s with the largest size; every size is below", 2, ["benchmark", "of", "MB/s"]);
    for block in with_sizes(blocks) {
        let value = or_none(at_largest(block).map(|v| rate(v, None)));
        table.row([block.first.benchmark.clone(), curve_name(block), value]);
    }
    table
}

/// Backends beside each other with the largest size; None with one.
fn side_by_side(result: &ImbResult, blocks: &[Rows<'_>]) -> Option<Section> {
    let backends = &result.config.backends;
    if backends.len() < 2 {
        return None;
    }
    let head = ["benchmark", "ranks", "sync"].into_iter().chain(backends.iter().map(String::as_str));
    let mut table = Table::new("MB/s with the largest size", 3, head);
    let mut lines: Vec<(&Rows<'_>, Vec<Option<f64>>)> = Vec::new();
    for block in with_sizes(blocks) {
        let key = |b: &Rows<'_>| (b.first.benchmark.clone(), b.first.ranks, b.first.groups, sync(b));
        let Some(place) = backends.iter().position(|b| *b == block.first.backend) else { continue };
        let at = lines.iter().position(|(first, _)| key(first) == key(block)).unwrap_or_else(|| {
            lines.push((block, vec![None; backends.len()]));
            lines.len() - 1
        });
        lines[at].1[place] = at_largest(block);
    }
    for (block, values) in &lines {
        let best = values.iter().flatten().copied().fold(0.0, f64::max);
        let begin = [block.first.benchmark.clone(), block.first.ranks.to_string(), sync(block).replace(", sync ", "")];
        let cells = values.iter().map(|value| match value {
            Some(v) if best > 0.0 => Cell::from(rate(*v, None)).shaded(v / best).strong(*v == best),
            Some(v) => rate(*v, None).into(),
            None => "-".into(),
        });
        table.row(begin.into_iter().map(Cell::from).chain(cells));
    }
    Some(Section {
        name: "backends",
        title: "Backends side by side".into(),
        note: "The darker, the closer to the best of the row, which is bold.".into(),
        blocks: vec![Block::Table(table)],
    })
}

/// None with one number of ranks.
fn ranks(result: &ImbResult, derived: &ImbDerived) -> Option<Section> {
    picture_over_ranks(&over_ranks(result, derived), 1)
}

/// What the run adds to a picture over ranks: each benchmark with its largest size.
pub(super) fn over_ranks(result: &ImbResult, derived: &ImbDerived) -> Vec<picture::Point> {
    let point = |block: &Rows<'_>| {
        Some(picture::Point {
            row: block.first.benchmark.clone(),
            column: format!("largest size{}", sync(block)),
            curve: block.first.backend.clone(),
            is_reference: false,
            x: block.first.ranks.checked_mul(block.first.groups)?,
            y: at_largest(block)?,
        })
    };
    with_all_groups(result, derived).iter().filter(|b| b.first.sample_bytes.is_some()).filter_map(point).collect()
}

/// Every row as numbers.
fn rows(result: &ImbResult, blocks: &[Rows<'_>]) -> Option<Section> {
    let head = [
        "benchmark",
        "of",
        "bytes",
        "repetitions",
        "us, least",
        "us, most",
        "us, mean",
        "MB/s",
        "overlap %",
        "what else",
    ];
    let mut table = Table::new("Every row", 2, head).with_words();
    for block in blocks {
        for (row, value) in &block.rows {
            let group = value.groups.first();
            let time = |of: fn(&crate::imb_io::records::GroupTimes) -> f64| or_none(group.map(|g| usec(of(&g.times))));
            let words = match (&row.ended, cause(row)) {
                (RowEnd::NotRun(reason), _) => format!("not run: {reason}"),
                (_, Some(cause)) => cause,
                _ if is_wrong(result, row) => "WRONG DATA".to_owned(),
                _ if value.cached => "read from a cache".to_owned(),
                _ => String::new(),
            };
            table.row([
                row.benchmark.clone(),
                curve_name(block),
                or_none(row.sample_bytes),
                row.repetitions.to_string(),
                time(|t| t.min_seconds),
                time(|t| t.max_seconds),
                time(|t| t.mean_seconds),
                or_none(group.and_then(|g| g.mb_per_second).map(|v| rate(v, None))),
                or_none(value.overlap_percent.map(|p| format!("{p:.1}"))),
                words,
            ]);
        }
    }
    let blocks = vec![Block::Folded("Every row".into(), vec![Block::Table(table)])];
    (!result.rows.is_empty()).then_some(Section {
        name: "rows",
        title: "Rows".into(),
        note: "MB/s: the size of the sample by the time of the slowest rank.".into(),
        blocks,
    })
}

#[cfg(test)]
mod tests {
    use crate::frame::report::checks::assert_page;
    use crate::imb_io::report::fixtures;

    #[test]
    fn every_result_has_its_page() {
        for (name, result, derived) in fixtures::all() {
            assert_page(&result, &derived, name);
        }
    }

    #[test]
    fn hostile_names_stay_text() {
        let mut result = fixtures::complete();
        let bad = "</script><script>alert(1)</script>\u{1b}[31m'\"".to_owned();
        result.setup.storage.path.clone_from(&bad);
        for row in &mut result.rows {
            (row.benchmark, row.backend) = (bad.clone(), bad.clone());
        }
        result.config.backends = vec![bad.clone(), bad];
        let derived = crate::imb_io::values::derive(&result);
        assert_page(&result, &derived, "hostile");
    }
}
