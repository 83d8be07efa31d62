//! Comparison of several backends, and the causes of the differences. The null backend is not shown.

use beff_statistics::bootstrap::{Interval, Ratio, MIN_ROUNDS};

use crate::b_eff_io::config::RepeatPolicy;
use crate::b_eff_io::pattern_type::PatternType;
use crate::b_eff_io::records::PatternRecord;
use crate::b_eff_io::values::ladder::BackendVerdict;
use crate::b_eff_io::values::PartitionValue;
use crate::frame::records::AccessMethod;
use crate::frame::report::marks::{self, QualityMark};
use crate::frame::report::model::{ReportBlock, ReportSection};
use crate::frame::report::table::{Table, TableCell};
use crate::frame::report::text::{count, percent};
use crate::frame::report::DetailLevel;
use crate::frame::words::NO_VALUE;

use super::cells::{full_cell, pattern_cell, type_cell};
use super::layout::{access_index, chunk_label, partition_value, RecordSelector};
use super::partition_view::PartitionView;
use super::values::{value, RELEASES};
use super::verdicts::{sentence, subject};

/// None with fewer than two backends.
pub(super) fn section(shown: &PartitionView, level: DetailLevel) -> Option<ReportSection> {
    if shown.backends.len() < 2 {
        return None;
    }
    let (at_once, is_detailed) = match level {
        DetailLevel::Page => (shown.backends.len(), false),
        DetailLevel::Details => (3, true),
        DetailLevel::Full | DetailLevel::Screen => (4, false),
    };
    let all: Vec<usize> = (0..shown.backends.len()).collect();
    let tables = all.chunks(at_once).map(|columns| ReportBlock::Table(table(shown, columns, is_detailed)));
    let point = "The best of a row is bold; darker cells are closer to it.";
    let point = if level == DetailLevel::Page { point } else { "" };
    Some(ReportSection {
        name: "ladder",
        title: format!("Backends side by side, {}", count(shown.ranks, "rank")),
        note: format!(
            "MB/s of each type from open to close, and percent of the best backend. = equal to the best: the 95 % interval of the ratio \
             contains 1. {point}"
        ),
        blocks: tables.chain(differences(shown)).collect(),
    })
}

/// A row: names, a cell for each backend, and ratios from the rounds; none for averages.
struct LadderRow {
    names: [String; 2],
    cells: Vec<marks::MarkedRate>,
    ratios: Vec<Option<Ratio>>,
}

fn table(shown: &PartitionView, columns: &[usize], is_detailed: bool) -> Table {
    let of_backend = |place: &usize| {
        let interval = is_detailed.then(|| "95 %".to_owned());
        [shown.backends[*place].clone(), "%".to_owned()].into_iter().chain(interval)
    };
    let head = ["access".to_owned(), "type".to_owned()].into_iter().chain(columns.iter().flat_map(of_backend));
    let mut table = Table::new("MB/s, % of the best", 2, head);
    let mut marks_of_all = vec![Vec::new(); shown.backends.len()];
    for access in AccessMethod::ALL {
        if !shown.result.patterns.iter().any(|r| r.access == access) {
            continue;
        }
        let mut marks_of_access = vec![Vec::new(); shown.backends.len()];
        for t in PatternType::ALL {
            let row = type_row(shown, access, t);
            inherit_marks(&mut marks_of_access, &row.cells);
            inherit_marks(&mut marks_of_all, &row.cells);
            table.row(cells(shown, &row, columns, is_detailed));
            if is_detailed {
                pattern_rows(shown, access, t).iter().for_each(|row| table.row(cells(shown, row, columns, true)));
            }
        }
        let average = |v: &PartitionValue| v.access_mb_per_second[access_index(access)];
        let names = [access.name().to_owned(), "weighted avg.".to_owned()];
        table.row(cells(shown, &value_row(shown, names, &marks_of_access, average), columns, is_detailed));
        table.end_group();
    }
    for release in RELEASES {
        let names = ["b_eff_io".to_owned(), format!("release {}", release.name())];
        let row = value_row(shown, names, &marks_of_all, |v| value(&v.values, release));
        table.row(cells(shown, &row, columns, is_detailed));
    }
    table
}

fn cells(shown: &PartitionView, row: &LadderRow, columns: &[usize], is_detailed: bool) -> Vec<TableCell> {
    let rates = || row.cells.iter().filter_map(|cell| cell.mb_per_second);
    let best = rates().fold(0.0, f64::max);
    let mut cells: Vec<TableCell> = row.names.iter().map(|name| name.as_str().into()).collect();
    for (place, cell) in columns.iter().filter_map(|place| Some((*place, row.cells.get(*place)?))) {
        let of_rounds = row.ratios.get(place).copied().flatten();
        let ratio = cell.mb_per_second.map(|rate| of_rounds.unwrap_or(Ratio::without_interval(rate / best, 0)));
        let mut rate = full_cell(cell).strong(cell.mb_per_second == Some(best) && rates().count() > 1);
        if let Some(ratio) = ratio {
            let interval = ratio
                .interval
                .filter(Interval::is_resolved)
                .map(|i| format!(" ({} to {})", percent(i.low), percent(i.high)));
            rate = rate.shaded(ratio.value);
            let of = format!("{}: {} of the best", shown.backends[place], percent(ratio.value));
            rate = rate.with_tooltip(format!("{of}{}", interval.unwrap_or_default()));
        }
        cells.push(rate);
        cells.push(percent_of_best(ratio.as_ref()));
        if is_detailed {
            cells.push(ratio.and_then(|r| percent_interval(&r)).unwrap_or_default().into());
        }
    }
    cells
}

/// The ratio in percent; `=` if the difference is not significant.
pub(super) fn percent_of_best(ratio: Option<&Ratio>) -> TableCell {
    let Some(ratio) = ratio else { return NO_VALUE.into() };
    let equal = if ratio.equal == Some(true) { "=" } else { "" };
    TableCell::from(format_percent(ratio.value)).with_letters(equal)
}

/// In percent: `35.9-36.1`.
pub(super) fn percent_interval(ratio: &Ratio) -> Option<String> {
    ratio.interval.map(|i| match i.is_resolved() {
        true => format!("{}-{}", format_percent(i.low), format_percent(i.high)),
        false => "wide".to_owned(),
    })
}

/// In percent, with the digits that fit into five columns.
fn format_percent(ratio: f64) -> String {
    let percent = ratio * 100.0;
    let decimals = match percent {
        p if p < 0.995 => 2,
        p if p < 999.5 => 1,
        _ => 0,
    };
    format!("{percent:.decimals$}")
}

fn type_row(shown: &PartitionView, access: AccessMethod, t: PatternType) -> LadderRow {
    let spots: Vec<RecordSelector<'_>> = shown.backends.iter().map(|backend| shown.selector(backend, access)).collect();
    LadderRow {
        names: [access.name().to_owned(), t.label()],
        cells: spots.iter().map(|spot| type_cell(&shown.result, &shown.derived, *spot, t)).collect(),
        ratios: spots.iter().map(|spot| spot.type_comparison(&shown.derived, t).and_then(|r| r.ratio)).collect(),
    }
}

fn pattern_rows(shown: &PartitionView, access: AccessMethod, t: PatternType) -> Vec<LadderRow> {
    let mut seen: Vec<&PatternRecord> = Vec::new();
    for r in shown.result.patterns.iter().filter(|r| r.pattern_type == t && r.access == access) {
        if !seen.iter().any(|s| s.pattern == r.pattern) {
            seen.push(r);
        }
    }
    let spots: Vec<RecordSelector<'_>> = shown.backends.iter().map(|backend| shown.selector(backend, access)).collect();
    let row = |r: &&PatternRecord| LadderRow {
        names: [access.name().to_owned(), format!("  {:>2} {}", r.pattern, chunk_label(r.chunk_bytes))],
        cells: spots.iter().map(|spot| pattern_cell(&shown.result, *spot, r.pattern)).collect(),
        ratios: spots
            .iter()
            .map(|spot| spot.pattern_comparison(&shown.derived, r.pattern).and_then(|rung| rung.ratio))
            .collect(),
    };
    seen.iter().map(row).collect()
}

/// Adds the marks of types that also apply to an average of them.
fn inherit_marks(marks: &mut [Vec<QualityMark>], cells: &[marks::MarkedRate]) {
    const OF_PARTS: [QualityMark; 6] = [
        QualityMark::Wrong,
        QualityMark::TimeGuard,
        QualityMark::Space,
        QualityMark::ShortTime,
        QualityMark::FewCalls,
        QualityMark::Cache,
    ];
    for (marks, cell) in marks.iter_mut().zip(cells) {
        marks.extend(cell.marks.iter().filter(|mark| OF_PARTS.contains(mark)));
        marks.sort();
        marks.dedup();
    }
}

fn value_row(
    shown: &PartitionView,
    names: [String; 2],
    marks: &[Vec<QualityMark>],
    value: impl Fn(&PartitionValue) -> Option<f64>,
) -> LadderRow {
    let cell = |(backend, marks): (&String, &Vec<QualityMark>)| {
        let mb_per_second = partition_value(&shown.derived, backend, shown.ranks).and_then(&value);
        let marks = if mb_per_second.is_none() { vec![QualityMark::NotMeasured] } else { marks.clone() };
        marks::MarkedRate { mb_per_second, significant_digits: None, marks }
    };
    LadderRow { names, cells: shown.backends.iter().zip(marks).map(cell).collect(), ratios: Vec::new() }
}

fn differences(shown: &PartitionView) -> Option<ReportBlock> {
    let all = &shown.derived.ladder.verdicts;
    let types: Vec<&BackendVerdict> = all.iter().filter(|v| v.pattern.is_none()).collect();
    let unknown = types.iter().filter(|v| v.ratio.interval.is_none()).count();
    let brackets =
        "In brackets: 95 % intervals. mpiio is compared with the best backend; if mpiio is the best, the slowest is.";
    let brackets = all.iter().any(|v| v.ratio.interval.is_some()).then(|| brackets.to_owned());
    let no_interval = (unknown > 0).then(|| missing_interval_note(shown.result.config.repeat, unknown, types.len()));
    let notes: Vec<String> = brackets.into_iter().chain(no_interval).collect();
    let sentence = |v: &BackendVerdict| {
        let [about, text] = [subject(&shown.result, v), sentence(&shown.result, &shown.derived, v)];
        format!("{}, {about}: {text}", v.access.name())
    };
    let of =
        |access| all.iter().filter(move |v: &&BackendVerdict| v.access == access).map(sentence).collect::<Vec<_>>();
    let lists = AccessMethod::ALL.map(of).into_iter().filter(|list| !list.is_empty()).map(ReportBlock::List);
    let blocks = [ReportBlock::Notes(notes)].into_iter().chain(lists).collect();
    (!all.is_empty())
        .then(|| ReportBlock::Folded("Causes of the differences: types, and the slowest patterns".into(), blocks))
}

/// Why types have no interval, and the remedy.
fn missing_interval_note(repeat: RepeatPolicy, unknown: usize, types: usize) -> String {
    let (cause, next_step) = match repeat {
        RepeatPolicy::Off => ("were not repeated", "--repeat rounds repeats them."),
        RepeatPolicy::Rounds | RepeatPolicy::Auto => (
            "were not measured three times with both",
            "Allow more time: a longer T, or less --memory-per-process (shorter calls).",
        ),
    };
    format!(
        "{unknown} of {types} types have no interval, their difference may be random: patterns with fewer than {MIN_ROUNDS} rounds \
         {cause}. {next_step}"
    )
}
