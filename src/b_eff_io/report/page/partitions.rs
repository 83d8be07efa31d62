//! Several partitions: values over ranks, and every type on each of them.

use std::collections::BTreeMap;

use crate::b_eff_io::pattern_type::PatternType;
use crate::b_eff_io::records::RunResult;
use crate::b_eff_io::report::table::values::value;
use crate::b_eff_io::values::averages::OfTypes;
use crate::b_eff_io::values::Derived;
use crate::frame::records::Access;
use crate::frame::report::html::{over_ranks, Block, Section, Table};
use crate::frame::report::screen::rate;
use crate::frame::values::NULL_BACKEND;

use super::shown::access_label;

/// Nothing with one partition.
pub(super) fn sections(result: &RunResult, derived: &Derived) -> Option<Section> {
    if result.partitions.len() < 2 {
        return None;
    }
    // Of a run with some of the types only the tables are left.
    let mut section = over_ranks(&super::shown::over_ranks(result, derived), 1).unwrap_or_else(|| Section {
        name: "ranks",
        title: "Value over ranks".into(),
        note: "No partition has a value: not all that it is made of was measured.".into(),
        blocks: Vec::new(),
    });
    section.blocks.push(Block::Folded("Every type on each partition".into(), vec![Block::Table(types(derived))]));
    section.blocks.push(Block::Folded("Values by each definition".into(), vec![Block::Table(values(derived))]));
    Some(section)
}

fn number(value: Option<f64>) -> String {
    value.map_or_else(|| "-".to_owned(), |v| rate(v, None))
}

fn types(derived: &Derived) -> Table {
    let mut rows: BTreeMap<(u64, &str, Access), OfTypes> = BTreeMap::new();
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
        let begin = [ranks.to_string(), backend.to_owned(), access_label(access).to_owned()];
        table.row(begin.into_iter().chain(cells.map(number)));
    }
    table
}

fn values(derived: &Derived) -> Table {
    use crate::b_eff_io::config::Release;
    let releases = [Release::R0_5, Release::R1, Release::R2_1];
    let head = ["ranks", "backend"].map(str::to_owned).into_iter();
    let head = head.chain(releases.map(|r| format!("release {}", r.name())));
    let mut table = Table::new("b_eff_io by each definition, MB/s", 2, head);
    let mut partitions: Vec<_> = derived.partitions.iter().filter(|p| p.backend != NULL_BACKEND).collect();
    partitions.sort_by_key(|p| p.ranks);
    for p in partitions {
        let begin = [p.ranks.to_string(), p.backend.clone()];
        table.row(begin.into_iter().chain(releases.map(|release| number(value(&p.values, release)))));
    }
    table
}
