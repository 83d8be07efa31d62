//! Several partitions: values over ranks, and every type on each partition.

use std::collections::BTreeMap;

use crate::b_eff_io::pattern_type::PatternType;
use crate::b_eff_io::records::RunResult;
use crate::b_eff_io::values::averages::RatesByType;
use crate::b_eff_io::values::Derived;
use crate::frame::records::AccessMethod;
use crate::frame::report::html;
use crate::frame::report::model::{ReportBlock, ReportSection};
use crate::frame::report::picture::MeasuredPoint;
use crate::frame::report::table::Table;
use crate::frame::values::NULL_BACKEND;
use crate::frame::words::or_hyphen;
use crate::frame::words::rate;

use super::layout::access_index;
use super::values::value;

/// None with one partition.
pub(super) fn section(result: &RunResult, derived: &Derived) -> Option<ReportSection> {
    if result.partitions.len() < 2 {
        return None;
    }
    // Without all types only the table remains.
    let mut section = html::ranks_section(&over_ranks(result, derived), 1).unwrap_or_else(|| ReportSection {
        name: "ranks",
        title: "Value over ranks".into(),
        note: "No partition has a value: not all of its components were measured.".into(),
        blocks: Vec::new(),
    });
    section
        .blocks
        .push(ReportBlock::Folded("Every type on each partition".into(), vec![ReportBlock::Table(types(derived))]));
    Some(section)
}

/// Points of a picture over ranks: the value and its averages.
pub(super) fn over_ranks(result: &RunResult, derived: &Derived) -> Vec<MeasuredPoint> {
    let release = result.config.release;
    let mut points = Vec::new();
    for partition in derived.partitions.iter().filter(|p| result.config.backends.contains(&p.backend)) {
        let own = [(format!("value (release {})", release.name()), value(&partition.values, release))];
        let averages = AccessMethod::ALL
            .map(|access| (access.name().to_owned(), partition.access_mb_per_second[access_index(access)]));
        for (column, y) in own.into_iter().chain(averages) {
            points.extend(y.map(|y| MeasuredPoint {
                row: "b_eff_io".into(),
                column,
                curve: partition.backend.clone(),
                run: String::new(),
                is_reference: false,
                x: partition.ranks,
                y,
            }));
        }
    }
    points
}

fn types(derived: &Derived) -> Table {
    let mut rows: BTreeMap<(u64, &str, AccessMethod), RatesByType> = BTreeMap::new();
    for v in derived.types.iter().filter(|v| v.backend != NULL_BACKEND) {
        let row = rows.entry((v.ranks, &v.backend, v.access)).or_default();
        if let Some(cell) = row.get_mut(v.pattern_type.index()) {
            *cell = v.mb_per_second;
        }
    }
    let head =
        ["ranks", "backend", "access"].map(str::to_owned).into_iter().chain(PatternType::ALL.map(PatternType::label));
    let mut table = Table::new("MB/s of each type, from open to close", 3, head);
    for ((ranks, backend, access), cells) in rows {
        let begin = [ranks.to_string(), backend.to_owned(), access.name().to_owned()];
        table.row(begin.into_iter().chain(cells.map(|v| or_hyphen(v.map(|v| rate(v, None))))));
    }
    table
}
