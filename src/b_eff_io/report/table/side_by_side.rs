//! Several backends beside each other: MB/s and the ratio to the best of them. The null backend is no rival and not shown.

use beff_statistics::bootstrap::Ratio;

use crate::b_eff_io::pattern_type::PatternType;
use crate::b_eff_io::records::{PartitionRecord, PatternRecord, RunResult};
use crate::b_eff_io::report::cells::{pattern_cell, type_cell};
use crate::b_eff_io::report::layout;
use crate::b_eff_io::report::layout::{chunk_label, Spot};
use crate::b_eff_io::values::{Derived, PartitionValue};
use crate::frame::records::Access;
use crate::frame::report::marks::{letters, Cell, Legend, Mark};
use crate::frame::report::text::{count, fit, fit_known, Page};

use super::ladder::in_percent;
use super::values::{value, RELEASES};
use crate::b_eff_io::report::layout::measuring;

/// How much is shown of each backend.
#[derive(Clone, Copy)]
enum Look {
    /// MB/s with this many digits behind the point, and the ratio.
    Short(usize),
    /// The ratio in percent, with its interval.
    Details,
}

pub(super) fn write(
    page: &mut Page,
    result: &RunResult,
    derived: &Derived,
    partition: &PartitionRecord,
    details: bool,
) {
    let of_best = if details { "percent of the best backend, 95 % interval" } else { "ratio to the best backend" };
    page.heading(&format!("Side by side on {}: MB/s, and {of_best}", count(partition.ranks, "rank")));
    let backends: Vec<&String> = measuring(result).collect();
    let rows = rows(result, derived, &backends, partition.ranks, details);
    let mut legend = Legend::default();
    let look = if details { Look::Details } else { Look::Short(digits(&rows)) };
    for first in (0..backends.len()).step_by(look.at_once()) {
        let columns = first..backends.len().min(first + look.at_once());
        page.line(look.line("type totals", backends[columns.clone()].iter().map(|name| look.name(name))));
        for row in &rows {
            page.line(look.line(&row.label, columns.clone().filter_map(|i| row.show(i, look))));
            row.cells.iter().for_each(|cell| legend.note(cell));
        }
    }
    if rows.iter().flat_map(|row| &row.ratios).any(is_equal) {
        page.line("  = equal to the best: the 95 % interval of the ratio contains 1");
    }
    legend.write(page);
}

/// Three digits behind the point where small numbers would lose their meaning, else one.
fn digits(rows: &[Row]) -> usize {
    let values = rows.iter().flat_map(|row| &row.cells).filter_map(|cell| cell.mb_per_second);
    if values.fold(f64::INFINITY, f64::min) < 10.0 {
        3
    } else {
        1
    }
}

/// One line: a label and a cell for each backend; no cells for an empty line.
#[derive(Default)]
struct Row {
    label: String,
    cells: Vec<Cell>,
    /// From the rounds; empty for values that are averages.
    ratios: Vec<Option<Ratio>>,
}

impl Look {
    /// Backends in one table; more continue in a further one.
    fn at_once(self) -> usize {
        match self {
            Self::Short(_) => 4,
            Self::Details => 3,
        }
    }

    /// In details the column of labels has no blank behind the longest.
    fn line(self, label: &str, cells: impl Iterator<Item = String>) -> String {
        let width = match self {
            Self::Short(_) => 22,
            Self::Details => 21,
        };
        format!("  {label:width$}{}", cells.collect::<String>())
    }

    fn name(self, backend: &str) -> String {
        match self {
            Self::Short(_) => format!("{backend:>10.10} ratio     "),
            Self::Details => format!("{backend:>8.8}          % interval"),
        }
    }

    fn cell(self, cell: &Cell, ratio: Option<Ratio>) -> String {
        let (marks, equal) = (letters(&cell.marks), if is_equal(&ratio) { '=' } else { ' ' });
        match (self, cell.mb_per_second.zip(ratio)) {
            (Self::Short(digits), Some((value, ratio))) => {
                format!("{}{:>6.2}{equal} {marks:<3}", cell.number(value, 10, digits), ratio.value)
            }
            (Self::Short(digits), None) => format!("{}{:>7}", cell.show(10, digits), ""),
            (Self::Details, Some((value, ratio))) => {
                let value = cell.known_digits.map_or_else(|| fit(value, 7), |digits| fit_known(value, digits, 7));
                let percent = in_percent(ratio.value);
                format!("{value:>8} {marks:<3}{percent:>6}{equal} {:<9}", interval(&ratio))
            }
            (Self::Details, None) => format!("{}{:17}", cell.show(8, 3), ""),
        }
    }
}

fn is_equal(ratio: &Option<Ratio>) -> bool {
    ratio.is_some_and(|r| r.equal == Some(true))
}

fn rows(result: &RunResult, derived: &Derived, backends: &[&String], ranks: u64, details: bool) -> Vec<Row> {
    let mut rows = Vec::new();
    // What must be known about a type must be known about the averages it is in.
    let mut marks_of_all = vec![Vec::new(); backends.len()];
    for access in Access::ALL {
        if !result.patterns.iter().any(|r| r.access == access && r.ranks == ranks) {
            continue;
        }
        let spots = backends.iter().map(|backend| Spot { backend, ranks, access });
        let mut marks = vec![Vec::new(); backends.len()];
        for t in PatternType::ALL {
            let cells: Vec<Cell> = spots.clone().map(|spot| type_cell(result, derived, spot, t)).collect();
            inherit(&mut marks, &cells);
            inherit(&mut marks_of_all, &cells);
            let ratios = spots.clone().map(|spot| spot.type_rung(derived, t).and_then(|r| r.ratio)).collect();
            rows.push(Row { label: format!("{:<8}{t} {}", access.name(), t.name()), cells, ratios });
            if details {
                rows.extend(pattern_rows(result, derived, &spots.clone().collect::<Vec<_>>(), t));
            }
        }
        let average = |v: &PartitionValue| v.access_mb_per_second[layout::access_index(access)];
        let label = format!("{:<8}weighted avg.", access.name());
        rows.push(value_row(label, derived, backends, ranks, &marks, average));
        rows.push(Row::default());
    }
    for release in RELEASES {
        let label = format!("b_eff_io, release {}", release.name());
        rows.push(value_row(label, derived, backends, ranks, &marks_of_all, |v| value(&v.values, release)));
    }
    rows
}

/// Adds the marks of types that hold for an average of them too.
fn inherit(marks: &mut [Vec<Mark>], cells: &[Cell]) {
    for (marks, cell) in marks.iter_mut().zip(cells) {
        let of_parts = [Mark::Wrong, Mark::TimeGuard, Mark::Space, Mark::ShortTime, Mark::FewCalls, Mark::Cache];
        let new = cell.marks.iter().filter(|mark| of_parts.contains(mark));
        for mark in new {
            if !marks.contains(mark) {
                marks.push(*mark);
            }
        }
        marks.sort();
    }
}

fn value_row(
    label: String,
    derived: &Derived,
    backends: &[&String],
    ranks: u64,
    marks: &[Vec<Mark>],
    value: impl Fn(&PartitionValue) -> Option<f64>,
) -> Row {
    let cell = |(backend, marks): (&&String, &Vec<Mark>)| {
        let mb_per_second = layout::partition_value(derived, backend, ranks).and_then(&value);
        let marks = if mb_per_second.is_none() { vec![Mark::NotMeasured] } else { marks.clone() };
        Cell { mb_per_second, known_digits: None, marks }
    };
    Row { label, cells: backends.iter().zip(marks).map(cell).collect(), ratios: Vec::new() }
}

fn pattern_rows(result: &RunResult, derived: &Derived, spots: &[Spot<'_>], pattern_type: PatternType) -> Vec<Row> {
    let mut seen: Vec<&PatternRecord> = Vec::new();
    for r in result.patterns.iter().filter(|r| r.pattern_type == pattern_type) {
        let same = spots.first().is_some_and(|spot| (r.ranks, r.access) == (spot.ranks, spot.access));
        if same && !seen.iter().any(|s| s.pattern == r.pattern) {
            seen.push(r);
        }
    }
    seen.iter()
        .map(|r| Row {
            label: format!("  {:>2} {}", r.pattern, chunk_label(r.chunk_bytes)),
            cells: spots.iter().map(|spot| pattern_cell(result, *spot, r.pattern)).collect(),
            ratios: spots.iter().map(|spot| spot.rung(derived, r.pattern).and_then(|rung| rung.ratio)).collect(),
        })
        .collect()
}

impl Row {
    /// Ratio of one backend to the best, as the rounds say, or else of what is shown.
    fn ratio(&self, backend: usize) -> Option<Ratio> {
        let best = self.cells.iter().filter_map(|cell| cell.mb_per_second).fold(0.0, f64::max);
        let shown = self.cells[backend].mb_per_second?;
        Some(self.ratios.get(backend).copied().flatten().unwrap_or(Ratio::alone(shown / best, 0)))
    }

    /// The cell of one backend; None in an empty line.
    fn show(&self, backend: usize, look: Look) -> Option<String> {
        self.cells.get(backend).map(|cell| look.cell(cell, self.ratio(backend)))
    }
}

/// In percent, in at most nine columns: above 100 the digit behind the point goes.
fn interval(ratio: &Ratio) -> String {
    let Some(interval) = ratio.interval else {
        return String::new();
    };
    let high = if interval.high < 0.9995 { in_percent(interval.high) } else { format!("{:.0}", interval.high * 100.0) };
    format!("{}-{high}", in_percent(interval.low))
}
