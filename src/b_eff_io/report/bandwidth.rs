//! The classic table of the paper (rows: chunk sizes, columns: pattern types), and its panels.

use crate::b_eff_io::pattern_type::PatternType;
use crate::b_eff_io::records::{PatternRecord, RunResult};
use crate::frame::records::AccessMethod;
use crate::frame::report::html::lines::{self, Abscissa, FrameCurve, FramePoint, MarkerStyle};
use crate::frame::report::html::scale::LogScale;
use crate::frame::report::html::slug;
use crate::frame::report::marks::{self, QualityMark};
use crate::frame::report::model::{ReportBlock, ReportSection};
use crate::frame::report::picture::Picture;
use crate::frame::report::table::{Table, TableCell};
use crate::frame::report::text::{count, percent};
use crate::frame::report::DetailLevel;
use crate::frame::units::format_size;
use crate::frame::words::rate;

use super::cells::{full_cell, inline_cell, pattern_cell, type_cell};
use super::layout::{access_label, chunk_label, classic_pattern, PATTERN_OUTSIDE_TABLE, ROWS, ROW_BYTES};
use super::partition_view::{PartitionIndex, PartitionView};

const MAX_FOLDED_PARTITIONS: usize = 7;

pub(super) fn section(shown: &PartitionView, level: DetailLevel) -> ReportSection {
    let drawn =
        "Panels are logarithmic with a common scale. Hover over a mark for calls, bytes and the share of the sync.";
    let drawn = if level == DetailLevel::Page { drawn } else { "" };
    let only = if let [backend] = shown.backends.as_slice() { format!("{backend}, ") } else { String::new() };
    ReportSection {
        name: "bandwidth",
        title: format!("Bandwidth by chunk size, {only}{}", partition_label(shown)),
        note: format!(
            "MB/s of all ranks by the contiguous bytes on disk; +8: eight bytes more, hence unaligned. A type total is all bytes of the \
             type / time from open to close, warm-up, fill-up and sync included. {drawn}"
        ),
        blocks: blocks(shown, level),
    }
}

/// `4 ranks, M_PART = 64 MiB`.
fn partition_label(shown: &PartitionView) -> String {
    let ranks = count(shown.ranks, "rank");
    let Some(partition) = shown.result.partitions.first() else { return ranks };
    let reduced = if partition.m_part_bytes < partition.m_part_defined_bytes {
        format!(" (definition: {})", format_size(partition.m_part_defined_bytes))
    } else {
        String::new()
    };
    format!("{ranks}, M_PART = {}{reduced}", format_size(partition.m_part_bytes))
}

/// A page cannot hold the panels of all partitions.
pub(super) fn folded_partitions(result: &RunResult, split: &PartitionIndex<'_>, shown: u64) -> Vec<ReportBlock> {
    let others: Vec<u64> = result.partitions.iter().map(|p| p.ranks).filter(|ranks| *ranks != shown).collect();
    let folded = |ranks: &u64| {
        let other = split.partition(*ranks);
        ReportBlock::Folded(format!("The same on {}", partition_label(&other)), blocks(&other, DetailLevel::Page))
    };
    let more = others.len().saturating_sub(MAX_FOLDED_PARTITIONS) as u64;
    let more = (more > 0).then(|| ReportBlock::List(vec![format!("{} are not drawn.", count(more, "more partition"))]));
    others.iter().take(MAX_FOLDED_PARTITIONS).map(folded).chain(more).collect()
}

/// A picture for each backend, or its table if nothing is drawn.
fn blocks(shown: &PartitionView, level: DetailLevel) -> Vec<ReportBlock> {
    let curves = |backend: &String| -> Vec<Vec<FrameCurve>> {
        AccessMethod::ALL.map(|access| access_curves(shown, backend, access)).into_iter().collect()
    };
    let is_drawn = level == DetailLevel::Page;
    let all: Vec<(&String, Vec<Vec<FrameCurve>>)> =
        shown.backends.iter().map(|b| (b, if is_drawn { curves(b) } else { Vec::new() })).collect();
    // A common legend and scale.
    let drawn: Vec<FrameCurve> = all.iter().flat_map(|(_, panels)| panels.iter().flatten().cloned()).collect();
    let Some(scale) = LogScale::around(drawn.iter().flat_map(|c| c.points.iter().map(|p| p.y))) else {
        return shown.backends.iter().map(|backend| table_or_note(shown, backend)).collect();
    };
    let types = PatternType::ALL.iter().map(|&t| lines::legend_entry(t.index(), t.label()));
    let keys: Vec<_> = types.chain(lines::marker_legend(&drawn)).collect();
    let axis = Abscissa::Names(chunk_labels(shown));
    let picture = |(backend, panels): (&String, Vec<Vec<FrameCurve>>)| {
        let frame = |(access, curves): (AccessMethod, &Vec<FrameCurve>)| {
            let said = format!("{backend}, {}: MB/s over chunk sizes", access_label(access));
            lines::frame(access_label(access), said, "MB/s", &axis, scale, curves)
        };
        ReportBlock::Picture(Picture {
            name: format!("{}-{}-ranks-bandwidth", slug(backend), shown.ranks),
            title: backend.clone(),
            keys: keys.clone(),
            frames: AccessMethod::ALL.into_iter().zip(&panels).map(frame).collect(),
            table: table(shown, backend),
        })
    };
    all.into_iter().map(picture).collect()
}

fn table_or_note(shown: &PartitionView, backend: &str) -> ReportBlock {
    if shown.result.patterns.iter().any(|p| p.backend == backend) {
        ReportBlock::Table(table(shown, backend))
    } else {
        ReportBlock::List(vec![format!("{backend}: nothing was measured")])
    }
}

/// `1k`, `1k+8`, ... and the M_PART of the run.
fn chunk_labels(shown: &PartitionView) -> Vec<String> {
    let m_part = shown.result.partitions.first().map_or(0, |p| p.m_part_bytes);
    let label = |bytes: u64| chunk_label(bytes).replace(' ', "").replace(['B', 'b'], "");
    ROW_BYTES.into_iter().chain([m_part]).map(label).collect()
}

fn access_curves(shown: &PartitionView, backend: &str, access: AccessMethod) -> Vec<FrameCurve> {
    let spot = shown.selector(backend, access);
    let curve = |t: PatternType| {
        let point = |row: usize| {
            let number = classic_pattern(row, t)?;
            let record = spot.record(&shown.result, number)?;
            let cell = pattern_cell(&shown.result, spot, number);
            let y = cell.mb_per_second?;
            Some(FramePoint {
                x: row as f64,
                y,
                marker: mark_style(&cell.marks),
                interval: None,
                tooltip: point_description(record, &cell),
            })
        };
        FrameCurve { style: t.index(), points: (0..ROWS.len()).filter_map(point).collect() }
    };
    PatternType::ALL.into_iter().map(curve).collect()
}

fn mark_style(marks: &[QualityMark]) -> MarkerStyle {
    if marks.contains(&QualityMark::Cache) {
        MarkerStyle::Cached
    } else if marks.contains(&QualityMark::FewCalls) {
        MarkerStyle::Few
    } else {
        MarkerStyle::Known
    }
}

fn point_description(record: &PatternRecord, cell: &marks::MarkedRate) -> String {
    let value = cell.mb_per_second.map(|v| rate(v, cell.significant_digits)).unwrap_or_default();
    let sync = record.intervals.sync_seconds / record.seconds();
    let sync = if sync > 0.005 { format!(", sync {}", percent(sync)) } else { String::new() };
    let marks: Vec<&str> = cell.marks.iter().map(|m| short_meaning(*m)).collect();
    let marks = if marks.is_empty() { String::new() } else { format!("; {}", marks.join("; ")) };
    format!(
        "{}, {}, {}: {value} MB/s; {}, {}{sync}{marks}",
        record.pattern_type.label(),
        access_label(record.access),
        chunk_label(record.chunk_bytes),
        count(record.calls, "call"),
        format_size(record.moved_bytes)
    )
}

/// A mark in a word or two; the table has the full meaning.
fn short_meaning(mark: QualityMark) -> &'static str {
    match mark {
        QualityMark::Wrong => "WRONG DATA",
        QualityMark::TimeGuard => "cut",
        QualityMark::Space => "ended by space",
        QualityMark::ShortTime => "short of time",
        QualityMark::FewCalls => "few calls",
        QualityMark::Cache => "from cache",
        QualityMark::CacheUnknown => "source unknown",
        QualityMark::Interference => "interference",
        other => other.meaning(),
    }
}

fn table(shown: &PartitionView, backend: &str) -> Table {
    let names = PatternType::ALL.map(|t| format!("{}\ntype {t}", t.name()));
    let head = ["access".to_owned(), "chunk".to_owned()].into_iter().chain(names);
    let mut table = Table::new(format!("{backend}, MB/s"), 2, head);
    let result = &shown.result;
    let mut beside = Vec::new();
    for access in AccessMethod::ALL {
        let spot = shown.selector(backend, access);
        let row = |name: &str, cells: [TableCell; PatternType::COUNT]| {
            [access.name().into(), name.into()].into_iter().chain(cells)
        };
        let extra = pattern_cell(result, spot, PATTERN_OUTSIDE_TABLE);
        table.note_marks(&extra.marks);
        beside.push(format!("{} {}", access.name(), inline_cell(&extra)));
        table.end_group();
        if spot.records(result).next().is_none() {
            table.row([access.name(), "not measured"]);
            continue;
        }
        for (place, label) in ROWS.iter().enumerate() {
            let cell = |t| {
                classic_pattern(place, t).map_or_else(TableCell::default, |p| full_cell(&pattern_cell(result, spot, p)))
            };
            table.row(row(label, PatternType::ALL.map(cell)));
        }
        table.row(row("type total", PatternType::ALL.map(|t| full_cell(&type_cell(result, &shown.derived, spot, t)))));
    }
    table.with_note(format!("Not in the table: pattern 2 (1 MB chunks, 2 MB per call): {}", beside.join(", ")))
}
