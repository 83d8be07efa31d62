//! Report of such a text.

use super::{ImbText, TextSection};
use crate::frame::report::model::{ReportBlock, ReportHead, ReportModel, ReportSection};
use crate::frame::report::table::Table;
use crate::frame::report::DetailLevel;
use crate::frame::units::{format_size, mb_per_second};
use crate::frame::words::rate;

/// Tables shown on one screen, by the space available.
const SCREEN_ROWS: [usize; 4] = [28, 28, 28, 28];
const SHOWN_FACTS: [&str; 5] = ["Date", "System", "Release", "MPI", "MPI Version"];

/// Smallest size and its time, largest size and its rate.
fn smallest_and_largest(section: &TextSection) -> [String; 2] {
    let times = section.times();
    let size = |bytes: Option<u64>| bytes.map_or_else(String::new, |bytes| format!(" ({})", format_size(bytes)));
    let first = times.first().map_or(String::new(), |(bytes, us)| format!("{us:.1} us{}", size(*bytes)));
    let last = times.last().and_then(|(bytes, us)| {
        let found = mb_per_second((*bytes)?, us / 1e6).filter(|rate| *rate > 0.0)?;
        Some(format!("{} MB/s{}", rate(found, None), size(*bytes)))
    });
    [first, last.unwrap_or_default()]
}

/// The text; on a screen a line for each table.
pub(super) fn model(text: &ImbText, level: DetailLevel) -> ReportModel {
    let known = SHOWN_FACTS.iter().filter_map(|name| text.facts.iter().find(|(key, _)| key == name));
    let facts = known.map(|(key, value)| format!("{key} {value}")).collect::<Vec<_>>().join("; ");
    let is_screen = level == DetailLevel::Screen;
    ReportModel {
        benchmark: "imb_io",
        head: ReportHead { program: "IMB-IO, released program".into(), about: vec![facts], ..ReportHead::default() },
        summary: if is_screen { vec![ReportBlock::Table(summary(text))] } else { Vec::new() },
        sections: if is_screen { Vec::new() } else { vec![rows(text)] },
        ..ReportModel::default()
    }
}

fn summary(text: &ImbText) -> Table {
    let row = |section: &TextSection| {
        let [least, largest] = smallest_and_largest(section);
        [section.benchmark.clone(), section.ranks.to_string(), section.mode.clone(), least, largest]
    };
    let head = ["benchmark", "ranks", "mode", "smallest", "largest"];
    Table::new("", 5, head).with_row_limits(SCREEN_ROWS).with_rows(text.sections.iter().map(row))
}

fn rows(text: &ImbText) -> ReportSection {
    let head = ["benchmark", "ranks", "mode", "bytes", "us", "MB/s"];
    let mut table = Table::new("Slowest process by table and size", 3, head);
    for section in &text.sections {
        for (bytes, us) in section.times() {
            let found = bytes.and_then(|bytes| mb_per_second(bytes, us / 1e6)).filter(|rate| *rate > 0.0);
            table.row([
                section.benchmark.clone(),
                section.ranks.to_string(),
                section.mode.clone(),
                bytes.map_or_else(String::new, |bytes| bytes.to_string()),
                format!("{us:.2}"),
                found.map_or_else(|| "-".to_owned(), |found| rate(found, None)),
            ]);
        }
        table.end_group();
    }
    ReportSection { name: "rows", title: "Rows".into(), note: String::new(), blocks: vec![ReportBlock::Table(table)] }
}
