//! Model of a summary for display.

use super::parse::TYPES;
use super::{LegacyPartition, LegacySummary};
use crate::frame::records::AccessMethod;
use crate::frame::report::model::{HeadlineValue, ReportBlock, ReportHead, ReportModel, ReportSection, TextStyle};
use crate::frame::report::table::Table;
use crate::frame::report::DetailLevel;
use crate::frame::units::{count, format_size};
use crate::frame::words::rate;

/// Summary; on a screen only the table of the best partition.
pub(super) fn model(summary: &LegacySummary, level: DetailLevel) -> ReportModel {
    let of = |name: &str| summary.fact(name);
    let memory = summary.memory_mib.map_or(String::new(), |mib| format!(", {mib} MiB for each process"));
    let best = best_partition(summary);
    let tables = |p: &LegacyPartition| tables(p).map(ReportBlock::Table);
    let missing = |p: &LegacyPartition| p.criteria.iter().filter(|text| text.contains("NOT")).cloned().collect();
    let shown = summary.partitions.iter().filter(|p| level == DetailLevel::Screen && Some(p.ranks) == best);
    ReportModel {
        benchmark: "b_eff_io",
        head: ReportHead {
            program: format!("b_eff_io of its own program, revision {}", summary.revision),
            started_utc: summary.date.clone(),
            ranks: format!("{} {} {}{memory}", of("hostname"), of("system name"), of("OS release")),
            about: vec![summary.command.clone()],
            ..ReportHead::default()
        },
        values: summary.partitions.iter().map(value).collect(),
        summary: shown.flat_map(|p| [ReportBlock::List(missing(p))].into_iter().chain(tables(p))).collect(),
        sections: summary.partitions.iter().filter(|_| level != DetailLevel::Screen).map(section).collect(),
        ..ReportModel::default()
    }
}

fn best_partition(summary: &LegacySummary) -> Option<u64> {
    let value = |p: &&LegacyPartition| p.b_eff_io_mb_per_second.unwrap_or(0.0);
    summary.partitions.iter().max_by(|a, b| value(a).total_cmp(&value(b))).map(|p| p.ranks)
}

fn value(partition: &LegacyPartition) -> HeadlineValue {
    let (tone, word) = match partition.valid {
        Some(true) => (TextStyle::Good, "VALID"),
        Some(false) => (TextStyle::Bad, "NOT VALID"),
        None => (TextStyle::Plain, ""),
    };
    let value = partition.b_eff_io_mb_per_second.map_or("unknown".to_owned(), format_rate);
    let on = count(partition.ranks, "process");
    let label = format!("b_eff_io (release 2.1) on {on}");
    let verdict = if word.is_empty() { String::new() } else { format!(", {word}") };
    let shown = if partition.b_eff_io_mb_per_second.is_some() { format!("{value} MB/s") } else { value.clone() };
    let line = format!("b_eff_io (release 2.1) = {shown} on {on}, T = {}", partition.scheduled);
    HeadlineValue {
        label,
        value,
        unit: "MB/s",
        verdict: (tone, word.to_owned()),
        numbers: Vec::new(),
        closing_line: format!("{line}{verdict}"),
        screen_line: vec![(TextStyle::Plain, line), (tone, verdict)],
    }
}

fn format_rate(value: f64) -> String {
    rate(value, None)
}

fn format_cells(values: impl IntoIterator<Item = Option<f64>>) -> impl Iterator<Item = String> {
    values.into_iter().map(|value| value.map_or("-".to_owned(), format_rate))
}

/// The tables by type with means, and by chunk size and type.
fn tables(partition: &LegacyPartition) -> [Table; 2] {
    let names = || TYPES.into_iter().map(|pattern_type| pattern_type.name());
    let mut types = Table::new("MB/s by access and type", 1, ["MB/s"].into_iter().chain(names()).chain(["mean"]));
    for (access, mean) in AccessMethod::ALL.into_iter().zip(partition.averages_mb_per_second) {
        let total = partition.rows.iter().find(|row| row.access == access && row.chunk_bytes.is_none());
        let values = total.into_iter().flat_map(|row| row.mb_per_second).chain([mean]);
        types.row([access.name().to_owned()].into_iter().chain(format_cells(values)));
    }
    let head = ["access", "chunk"].into_iter().chain(names());
    let mut chunks = Table::new("MB/s by access, chunk size and type", 2, head);
    for access in AccessMethod::ALL {
        for row in partition.rows.iter().filter(|row| row.access == access) {
            let Some(bytes) = row.chunk_bytes else { continue };
            let chunk = if bytes % 1024 == 8 { format!("{}+8", format_size(bytes - 8)) } else { format_size(bytes) };
            chunks.row([access.name().to_owned(), chunk].into_iter().chain(format_cells(row.mb_per_second)));
        }
    }
    [types, chunks]
}

fn section(partition: &LegacyPartition) -> ReportSection {
    let tables = tables(partition).map(ReportBlock::Table);
    ReportSection {
        name: "summary",
        title: format!("Summary on {}", count(partition.ranks, "process")),
        note: String::new(),
        blocks: tables.into_iter().chain([ReportBlock::List(partition.criteria.clone())]).collect(),
    }
}
