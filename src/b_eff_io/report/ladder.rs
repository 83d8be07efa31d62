//! Several backends beside each other, and what the differences are. The null backend is no rival and not shown.

use beff_statistics::bootstrap::{Ratio, MIN_ROUNDS};

use crate::b_eff_io::config::RepeatPolicy;
use crate::b_eff_io::pattern_type::PatternType;
use crate::b_eff_io::records::PatternRecord;
use crate::b_eff_io::values::ladder::Verdict;
use crate::b_eff_io::values::PartitionValue;
use crate::frame::records::Access;
use crate::frame::report::marks::{self, Mark};
use crate::frame::report::model::{Block, Section};
use crate::frame::report::table::{Cell, Table};
use crate::frame::report::text::{count, percent};
use crate::frame::report::Level;
use crate::frame::words::NONE;

use super::cells::{full, pattern_cell, type_cell};
use super::layout::{access_index, chunk_label, partition_value, Spot};
use super::shown::Shown;
use super::values::{value, RELEASES};
use super::verdicts::{about, sentence};

/// None with fewer than two backends.
pub(super) fn section(shown: &Shown, level: Level) -> Option<Section> {
    if shown.backends.len() < 2 {
        return None;
    }
    let (at_once, is_detailed) = match level {
        Level::Page => (shown.backends.len(), false),
        Level::Details => (3, true),
        Level::Full | Level::Screen => (4, false),
    };
    let all: Vec<usize> = (0..shown.backends.len()).collect();
    let tables = all.chunks(at_once).map(|columns| Block::Table(table(shown, columns, is_detailed)));
    let point = "The best of a row is bold, and the darker, the closer to it.";
    let point = if level == Level::Page { point } else { "" };
    Some(Section {
        name: "ladder",
        title: format!("Backends side by side, {}", count(shown.ranks, "rank")),
        note: format!(
            "MB/s of each type from open to close, and percent of the best backend. = equal to the best: the 95 % interval of the ratio contains \
             1. {point}"
        ),
        blocks: tables.chain(differences(shown)).collect(),
    })
}

/// A line: names, a cell for each backend, and ratios from the rounds; none for values that are averages.
struct Row {
    names: [String; 2],
    cells: Vec<marks::Cell>,
    ratios: Vec<Option<Ratio>>,
}

/// Of these backends, compared with all.
fn table(shown: &Shown, columns: &[usize], is_detailed: bool) -> Table {
    let of_backend = |place: &usize| {
        let interval = is_detailed.then(|| "95 %".to_owned());
        [shown.backends[*place].clone(), "%".to_owned()].into_iter().chain(interval)
    };
    let head = ["access".to_owned(), "type".to_owned()].into_iter().chain(columns.iter().flat_map(of_backend));
    let mut table = Table::new("MB/s, % of the best", 2, head);
    let mut marks_of_all = vec![Vec::new(); shown.backends.len()];
    for access in Access::ALL {
        if !shown.result.patterns.iter().any(|r| r.access == access) {
            continue;
        }
        let mut marks_of_access = vec![Vec::new(); shown.backends.len()];
        for t in PatternType::ALL {
            let row = of_type(shown, access, t);
            inherit(&mut marks_of_access, &row.cells);
            inherit(&mut marks_of_all, &row.cells);
            table.row(cells(shown, &row, columns, is_detailed));
            if is_detailed {
                of_patterns(shown, access, t).iter().for_each(|row| table.row(cells(shown, row, columns, true)));
            }
        }
        let average = |v: &PartitionValue| v.access_mb_per_second[access_index(access)];
        let names = [access.name().to_owned(), "weighted avg.".to_owned()];
        table.row(cells(shown, &of_values(shown, names, &marks_of_access, average), columns, is_detailed));
        table.gap();
    }
    for release in RELEASES {
        let names = ["b_eff_io".to_owned(), format!("release {}", release.name())];
        let row = of_values(shown, names, &marks_of_all, |v| value(&v.values, release));
        table.row(cells(shown, &row, columns, is_detailed));
    }
    table
}

fn cells(shown: &Shown, row: &Row, columns: &[usize], is_detailed: bool) -> Vec<Cell> {
    let rates = || row.cells.iter().filter_map(|cell| cell.mb_per_second);
    let best = rates().fold(0.0, f64::max);
    let mut cells: Vec<Cell> = row.names.iter().map(|name| name.as_str().into()).collect();
    for (place, cell) in columns.iter().filter_map(|place| Some((*place, row.cells.get(*place)?))) {
        let of_rounds = row.ratios.get(place).copied().flatten();
        let ratio = cell.mb_per_second.map(|rate| of_rounds.unwrap_or(Ratio::alone(rate / best, 0)));
        let mut rate = full(cell).strong(cell.mb_per_second == Some(best) && rates().count() > 1);
        if let Some(ratio) = ratio {
            let interval = ratio.interval.map(|i| format!(" ({} to {})", percent(i.low), percent(i.high)));
            rate = rate.shaded(ratio.value);
            let of = format!("{}: {} of the best", shown.backends[place], percent(ratio.value));
            rate = rate.said(format!("{of}{}", interval.unwrap_or_default()));
        }
        cells.push(rate);
        cells.push(of_best(ratio.as_ref()));
        if is_detailed {
            cells.push(ratio.and_then(|r| interval(&r)).unwrap_or_default().into());
        }
    }
    cells
}

/// The ratio in percent; a sign says that it is no difference.
pub(super) fn of_best(ratio: Option<&Ratio>) -> Cell {
    let Some(ratio) = ratio else { return NONE.into() };
    let equal = if ratio.equal == Some(true) { "=" } else { "" };
    Cell::from(in_percent(ratio.value)).beside(equal)
}

/// In percent: `35.9-36.1`.
pub(super) fn interval(ratio: &Ratio) -> Option<String> {
    ratio.interval.map(|i| format!("{}-{}", in_percent(i.low), in_percent(i.high)))
}

/// In percent, with as many digits as five columns hold.
fn in_percent(ratio: f64) -> String {
    let percent = ratio * 100.0;
    let decimals = match percent {
        p if p < 0.995 => 2,
        p if p < 999.5 => 1,
        _ => 0,
    };
    format!("{percent:.decimals$}")
}

fn of_type(shown: &Shown, access: Access, t: PatternType) -> Row {
    let spots: Vec<Spot<'_>> = shown.backends.iter().map(|backend| shown.spot(backend, access)).collect();
    Row {
        names: [access.name().to_owned(), t.label()],
        cells: spots.iter().map(|spot| type_cell(&shown.result, &shown.derived, *spot, t)).collect(),
        ratios: spots.iter().map(|spot| spot.type_rung(&shown.derived, t).and_then(|r| r.ratio)).collect(),
    }
}

fn of_patterns(shown: &Shown, access: Access, t: PatternType) -> Vec<Row> {
    let mut seen: Vec<&PatternRecord> = Vec::new();
    for r in shown.result.patterns.iter().filter(|r| r.pattern_type == t && r.access == access) {
        if !seen.iter().any(|s| s.pattern == r.pattern) {
            seen.push(r);
        }
    }
    let spots: Vec<Spot<'_>> = shown.backends.iter().map(|backend| shown.spot(backend, access)).collect();
    let row = |r: &&PatternRecord| Row {
        names: [access.name().to_owned(), format!("  {:>2} {}", r.pattern, chunk_label(r.chunk_bytes))],
        cells: spots.iter().map(|spot| pattern_cell(&shown.result, *spot, r.pattern)).collect(),
        ratios: spots.iter().map(|spot| spot.rung(&shown.derived, r.pattern).and_then(|rung| rung.ratio)).collect(),
    };
    seen.iter().map(row).collect()
}

/// Adds the marks of types that hold for an average of them too.
fn inherit(marks: &mut [Vec<Mark>], cells: &[marks::Cell]) {
    const OF_PARTS: [Mark; 6] =
        [Mark::Wrong, Mark::TimeGuard, Mark::Space, Mark::ShortTime, Mark::FewCalls, Mark::Cache];
    for (marks, cell) in marks.iter_mut().zip(cells) {
        marks.extend(cell.marks.iter().filter(|mark| OF_PARTS.contains(mark)));
        marks.sort();
        marks.dedup();
    }
}

fn of_values(
    shown: &Shown,
    names: [String; 2],
    marks: &[Vec<Mark>],
    value: impl Fn(&PartitionValue) -> Option<f64>,
) -> Row {
    let cell = |(backend, marks): (&String, &Vec<Mark>)| {
        let mb_per_second = partition_value(&shown.derived, backend, shown.ranks).and_then(&value);
        let marks = if mb_per_second.is_none() { vec![Mark::NotMeasured] } else { marks.clone() };
        marks::Cell { mb_per_second, known_digits: None, marks }
    };
    Row { names, cells: shown.backends.iter().zip(marks).map(cell).collect(), ratios: Vec::new() }
}

/// The verdicts in words.
fn differences(shown: &Shown) -> Option<Block> {
    let all = &shown.derived.ladder.verdicts;
    let types: Vec<&Verdict> = all.iter().filter(|v| v.pattern.is_none()).collect();
    let unknown = types.iter().filter(|v| v.ratio.interval.is_none()).count();
    let brackets =
        "In brackets: 95 % intervals. mpiio is compared with the best backend; where it is the best, the slowest is.";
    let brackets = all.iter().any(|v| v.ratio.interval.is_some()).then(|| brackets.to_owned());
    let no_interval = (unknown > 0).then(|| no_interval(shown.result.config.repeat, unknown, types.len()));
    let notes: Vec<String> = brackets.into_iter().chain(no_interval).collect();
    let sentence = |v: &Verdict| {
        let [about, text] = [about(&shown.result, v), sentence(&shown.result, &shown.derived, v)];
        format!("{}, {about}: {text}", v.access.name())
    };
    let of = |access| all.iter().filter(move |v: &&Verdict| v.access == access).map(sentence).collect::<Vec<_>>();
    let lists = Access::ALL.map(of).into_iter().filter(|list| !list.is_empty()).map(Block::List);
    let blocks = [Block::Notes(notes)].into_iter().chain(lists).collect();
    (!all.is_empty())
        .then(|| Block::Folded("What the differences are: types, and the patterns furthest behind".into(), blocks))
}

/// Why so many of the types have no interval, and what to do.
fn no_interval(repeat: RepeatPolicy, unknown: usize, types: usize) -> String {
    let (cause, next_step) = match repeat {
        RepeatPolicy::Off => ("were not measured again", "--repeat rounds measures them again."),
        RepeatPolicy::Rounds | RepeatPolicy::Auto => (
            "were not measured three times by both",
            "If they had no time: a longer T, or less --memory-per-process (shorter calls).",
        ),
    };
    format!(
        "{unknown} of {types} types have no interval, their difference may be chance: patterns with fewer than {MIN_ROUNDS} rounds {cause}. {next_step}"
    )
}
