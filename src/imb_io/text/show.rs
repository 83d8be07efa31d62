//! Report of such a text.

use super::parse::sample_rate;
use super::{ImbText, TextSection};
use crate::frame::report::model::{ReportBlock, ReportHead, ReportModel, ReportSection};
use crate::frame::report::table::Table;
use crate::frame::report::DetailLevel;
use crate::frame::units::{count, format_size};
use crate::frame::words::{or_hyphen, rate};

/// Tables shown on one screen, by the space available.
const SCREEN_ROWS: [usize; 4] = [28, 28, 28, 28];
/// Reasons shown for each table.
const SHOWN_REASONS: usize = 3;
const SHOWN_FACTS: [&str; 5] = ["Date", "System", "Release", "MPI", "MPI Version"];

/// Smallest size and its time, largest size and its rate, of the sizes with a time.
fn smallest_and_largest(section: &TextSection) -> [String; 2] {
    let times: Vec<(Option<u64>, f64)> =
        section.times().into_iter().filter_map(|(bytes, us)| Some((bytes, us?))).collect();
    let size = |bytes: Option<u64>| bytes.map_or_else(String::new, |bytes| format!(" ({})", format_size(bytes)));
    let first = times.first().map(|(bytes, us)| format!("{us:.1} us{}", size(*bytes)));
    let last = times
        .last()
        .and_then(|(bytes, us)| Some(format!("{} MB/s{}", rate(sample_rate(*bytes, *us)?, None), size(*bytes))));
    [or_hyphen(first), last.unwrap_or_default()]
}

/// Sizes without a time, with the reasons up to their first semicolon.
fn rows_without_times(text: &ImbText) -> Vec<String> {
    let note = |section: &TextSection| {
        let rows = &section.without_times;
        let reason = |row: &String| row.split(';').next().unwrap_or_default().trim_end_matches('.').to_owned();
        let shown: Vec<String> = rows.iter().take(SHOWN_REASONS).map(reason).collect();
        let more = if rows.len() > SHOWN_REASONS { ", ..." } else { "" };
        let number = count(rows.len() as u64, "row");
        let (benchmark, mode) = (&section.benchmark, &section.mode);
        format!("{benchmark}, {mode}: {number} without a time: {}{more}", shown.join(", "))
    };
    text.sections.iter().filter(|section| !section.without_times.is_empty()).map(note).collect()
}

/// The text; on a screen a line for each table.
pub(super) fn model(text: &ImbText, level: DetailLevel) -> ReportModel {
    let known = SHOWN_FACTS.iter().filter_map(|name| text.facts.iter().find(|(key, _)| key == name));
    let facts = known.map(|(key, value)| format!("{key} {value}")).collect::<Vec<_>>().join("; ");
    let is_screen = level == DetailLevel::Screen;
    ReportModel {
        benchmark: "imb_io",
        head: ReportHead { program: "IMB-IO, released program".into(), about: vec![facts], ..ReportHead::default() },
        summary: if is_screen { with_reasons(text, summary(text)) } else { Vec::new() },
        sections: if is_screen { Vec::new() } else { vec![rows(text)] },
        ..ReportModel::default()
    }
}

/// A table, and what it does not show.
fn with_reasons(text: &ImbText, table: Table) -> Vec<ReportBlock> {
    let missing = rows_without_times(text);
    let notes = (!missing.is_empty()).then_some(ReportBlock::Notes(missing));
    [ReportBlock::Table(table)].into_iter().chain(notes).collect()
}

fn summary(text: &ImbText) -> Table {
    let row = |section: &TextSection| {
        let [least, largest] = smallest_and_largest(section);
        [section.benchmark.clone(), or_hyphen(section.ranks), section.mode.clone(), least, largest]
    };
    let head = ["benchmark", "ranks", "mode", "smallest", "largest"];
    Table::new("", 5, head).with_row_limits(SCREEN_ROWS).with_rows(text.sections.iter().map(row))
}

fn rows(text: &ImbText) -> ReportSection {
    let head = ["benchmark", "ranks", "mode", "bytes", "us", "MB/s"];
    let mut table = Table::new("Slowest process by table and size", 3, head);
    for section in &text.sections {
        for (bytes, us) in section.times() {
            let found = us.and_then(|us| sample_rate(bytes, us));
            table.row([
                section.benchmark.clone(),
                or_hyphen(section.ranks),
                section.mode.clone(),
                bytes.map_or_else(String::new, |bytes| bytes.to_string()),
                or_hyphen(us.map(|us| format!("{us:.2}"))),
                or_hyphen(found.map(|found| rate(found, None))),
            ]);
        }
        table.end_group();
    }
    ReportSection { name: "rows", title: "Rows".into(), note: String::new(), blocks: with_reasons(text, table) }
}
