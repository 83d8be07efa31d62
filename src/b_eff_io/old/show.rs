//! A summary on a screen and on a page.

use super::parse::TYPES;
use super::{OldPartition, OldSummary};
use crate::frame::records::Access;
use crate::frame::report::html::{self, Block, Headline, Section, Table, Tone};
use crate::frame::report::sheet::{span, Look, Screen};
use crate::frame::report::{screen, Place, Sheet};
use crate::frame::units::{count, format_size};

/// Partitions whose tables are shown; of the others the value.
const TABLES: usize = 1;

/// One screen.
pub(super) fn sheet(summary: &OldSummary, place: &Place) -> Sheet {
    let mut page = Screen::new(place.columns);
    let mut line = |look, text: String| page.line([span(look, text)]);
    line(Look::Strong, format!("b_eff_io of its own program, revision {}", summary.revision));
    line(Look::Plain, format!("  {}", where_and_when(summary)));
    line(Look::Plain, format!("  {}", summary.command));
    line(Look::Plain, String::new());
    let best = best(summary);
    for partition in &summary.partitions {
        let (look, verdict) = verdict(partition);
        let value = partition.b_eff_io_mb_per_second.map_or("not told".to_owned(), |v| format!("{} MB/s", rate(v)));
        let on = count(partition.ranks, "process");
        line(look, format!("b_eff_io (release 2.1) = {value} on {on}, T = {}{verdict}", partition.scheduled));
    }
    let shown = summary.partitions.iter().filter(|p| Some(p.ranks) == best).take(TABLES);
    for partition in shown {
        partition
            .criteria
            .iter()
            .filter(|text| text.contains("NOT"))
            .for_each(|text| line(Look::Warn, format!("  {text}")));
        rows(partition).into_iter().for_each(|text| line(Look::Plain, text));
    }
    screen::end(&mut page, place, false, None);
    Sheet::Screen(page)
}

fn where_and_when(summary: &OldSummary) -> String {
    let of = |name: &str| summary.fact(name);
    let memory = summary.memory_mib.map_or(String::new(), |mib| format!(", {mib} MiB for each process"));
    format!("{} {} {}{memory}; {}", of("hostname"), of("system name"), of("OS release"), summary.date)
}

/// The number of processes with the largest value.
fn best(summary: &OldSummary) -> Option<u64> {
    let value = |p: &&OldPartition| p.b_eff_io_mb_per_second.unwrap_or(0.0);
    summary.partitions.iter().max_by(|a, b| value(a).total_cmp(&value(b))).map(|p| p.ranks)
}

fn verdict(partition: &OldPartition) -> (Look, &'static str) {
    match partition.valid {
        Some(true) => (Look::Good, ", VALID"),
        Some(false) => (Look::Bad, ", NOT VALID"),
        None => (Look::Plain, ""),
    }
}

fn rate(value: f64) -> String {
    screen::rate(value, None)
}

/// The types with their means, and the chunk sizes with the types.
fn rows(partition: &OldPartition) -> Vec<String> {
    let cell = |value: Option<f64>| format!("{:>10}", value.map_or("-".to_owned(), rate));
    let names: String = TYPES.into_iter().map(|pattern_type| format!("{:>10}", pattern_type.name())).collect();
    let mut out = vec![String::new(), format!("  {:<18}{names}      mean", "MB/s")];
    for (at, access) in Access::ALL.into_iter().enumerate() {
        let total = partition.rows.iter().find(|row| row.access == access && row.chunk_bytes.is_none());
        let mean = cell(partition.averages_mb_per_second[at]);
        let values: String = total.iter().flat_map(|row| row.mb_per_second).map(cell).collect();
        out.push(format!("  {:<18}{values}{mean}", access.name()));
    }
    for access in Access::ALL {
        for row in partition.rows.iter().filter(|row| row.access == access) {
            let Some(bytes) = row.chunk_bytes else { continue };
            let values: String = row.mb_per_second.into_iter().map(cell).collect();
            let chunk = if bytes % 1024 == 8 { format!("{}+8", format_size(bytes - 8)) } else { format_size(bytes) };
            out.push(format!("  {:<8}{chunk:<10}{values}", access.name()));
        }
    }
    out
}

fn section(partition: &OldPartition) -> Section {
    let names = TYPES.into_iter().map(|pattern_type| pattern_type.name().to_owned());
    let head: Vec<String> = ["access".to_owned(), "chunk, bytes".to_owned()].into_iter().chain(names).collect();
    let mut table = Table::new("MB/s by access, chunk size and type", 2, head);
    for row in &partition.rows {
        let chunk = row.chunk_bytes.map_or("all".to_owned(), |bytes| bytes.to_string());
        let values = row.mb_per_second.into_iter().map(|value| value.map_or("-".to_owned(), rate));
        table.row([row.access.name().to_owned(), chunk].into_iter().chain(values));
    }
    Section {
        name: "summary",
        title: format!("Summary on {}", count(partition.ranks, "process")),
        note: String::new(),
        blocks: vec![Block::Table(table), Block::List(partition.criteria.clone())],
    }
}

/// Its part of a page.
pub(super) fn page(summary: &OldSummary) -> html::Run {
    let headline = |p: &OldPartition| Headline {
        label: format!("b_eff_io (release 2.1) on {}", count(p.ranks, "process")),
        value: p.b_eff_io_mb_per_second.map_or("not told".to_owned(), rate),
        unit: "MB/s",
        verdict: p.valid.map(|valid| {
            let (tone, word) = if valid { (Tone::Good, "VALID") } else { (Tone::Bad, "NOT VALID") };
            (tone, word.to_owned())
        }),
        numbers: Vec::new(),
    };
    html::Run {
        benchmark: "b_eff_io",
        title: format!("b_eff_io of its own program, revision {}", summary.revision),
        facts: vec![where_and_when(summary), summary.command.clone()],
        alarms: Vec::new(),
        headlines: summary.partitions.iter().map(headline).collect(),
        findings: Vec::new(),
        sections: summary.partitions.iter().map(section).collect(),
    }
}
