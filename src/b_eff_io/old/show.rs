//! A summary as data, as it is shown.

use super::parse::TYPES;
use super::{OldPartition, OldSummary};
use crate::frame::records::Access;
use crate::frame::report::model::{Block, Head, Model, Section, Tone, Value};
use crate::frame::report::table::Table;
use crate::frame::report::Level;
use crate::frame::units::{count, format_size};
use crate::frame::words::rate;

/// The summary; on a screen the table of the best partition alone.
pub(super) fn model(summary: &OldSummary, level: Level) -> Model {
    let of = |name: &str| summary.fact(name);
    let memory = summary.memory_mib.map_or(String::new(), |mib| format!(", {mib} MiB for each process"));
    let best = best(summary);
    let tables = |p: &OldPartition| tables(p).map(Block::Table);
    let missing = |p: &OldPartition| p.criteria.iter().filter(|text| text.contains("NOT")).cloned().collect();
    let shown = summary.partitions.iter().filter(|p| level == Level::Screen && Some(p.ranks) == best);
    Model {
        benchmark: "b_eff_io",
        head: Head {
            program: format!("b_eff_io of its own program, revision {}", summary.revision),
            started_utc: summary.date.clone(),
            ranks: format!("{} {} {}{memory}", of("hostname"), of("system name"), of("OS release")),
            about: vec![summary.command.clone()],
            ..Head::default()
        },
        values: summary.partitions.iter().map(value).collect(),
        summary: shown.flat_map(|p| [Block::List(missing(p))].into_iter().chain(tables(p))).collect(),
        sections: summary.partitions.iter().filter(|_| level != Level::Screen).map(section).collect(),
        ..Model::default()
    }
}

/// The number of processes with the largest value.
fn best(summary: &OldSummary) -> Option<u64> {
    let value = |p: &&OldPartition| p.b_eff_io_mb_per_second.unwrap_or(0.0);
    summary.partitions.iter().max_by(|a, b| value(a).total_cmp(&value(b))).map(|p| p.ranks)
}

fn value(partition: &OldPartition) -> Value {
    let (tone, word) = match partition.valid {
        Some(true) => (Tone::Good, "VALID"),
        Some(false) => (Tone::Bad, "NOT VALID"),
        None => (Tone::Plain, ""),
    };
    let value = partition.b_eff_io_mb_per_second.map_or("not told".to_owned(), shown);
    let on = count(partition.ranks, "process");
    let label = format!("b_eff_io (release 2.1) on {on}");
    let verdict = if word.is_empty() { String::new() } else { format!(", {word}") };
    let told = if partition.b_eff_io_mb_per_second.is_some() { format!("{value} MB/s") } else { value.clone() };
    let line = format!("b_eff_io (release 2.1) = {told} on {on}, T = {}", partition.scheduled);
    Value {
        label,
        value,
        unit: "MB/s",
        verdict: (tone, word.to_owned()),
        numbers: Vec::new(),
        closing: format!("{line}{verdict}"),
        line: vec![(Tone::Plain, line), (tone, verdict)],
    }
}

fn shown(value: f64) -> String {
    rate(value, None)
}

fn cells(values: impl IntoIterator<Item = Option<f64>>) -> impl Iterator<Item = String> {
    values.into_iter().map(|value| value.map_or("-".to_owned(), shown))
}

/// The types with their means, and the chunk sizes with the types.
fn tables(partition: &OldPartition) -> [Table; 2] {
    let names = || TYPES.into_iter().map(|pattern_type| pattern_type.name());
    let mut types = Table::new("MB/s by access and type", 1, ["MB/s"].into_iter().chain(names()).chain(["mean"]));
    for (access, mean) in Access::ALL.into_iter().zip(partition.averages_mb_per_second) {
        let total = partition.rows.iter().find(|row| row.access == access && row.chunk_bytes.is_none());
        let values = total.into_iter().flat_map(|row| row.mb_per_second).chain([mean]);
        types.row([access.name().to_owned()].into_iter().chain(cells(values)));
    }
    let head = ["access", "chunk"].into_iter().chain(names());
    let mut chunks = Table::new("MB/s by access, chunk size and type", 2, head);
    for access in Access::ALL {
        for row in partition.rows.iter().filter(|row| row.access == access) {
            let Some(bytes) = row.chunk_bytes else { continue };
            let chunk = if bytes % 1024 == 8 { format!("{}+8", format_size(bytes - 8)) } else { format_size(bytes) };
            chunks.row([access.name().to_owned(), chunk].into_iter().chain(cells(row.mb_per_second)));
        }
    }
    [types, chunks]
}

fn section(partition: &OldPartition) -> Section {
    let tables = tables(partition).map(Block::Table);
    Section {
        name: "summary",
        title: format!("Summary on {}", count(partition.ranks, "process")),
        note: String::new(),
        blocks: tables.into_iter().chain([Block::List(partition.criteria.clone())]).collect(),
    }
}
