//! The classic table of the paper, rows chunk sizes and columns pattern types, and its panels.

use crate::b_eff_io::pattern_type::PatternType;
use crate::b_eff_io::records::{PatternRecord, RunResult};
use crate::frame::records::Access;
use crate::frame::report::html::lines::{self, Abscissa, Curve, Look, Point};
use crate::frame::report::html::scale::Log;
use crate::frame::report::html::slug;
use crate::frame::report::marks::{self, Mark};
use crate::frame::report::model::{Block, Section};
use crate::frame::report::picture::Picture;
use crate::frame::report::table::{Cell, Table};
use crate::frame::report::text::{count, percent};
use crate::frame::report::Level;
use crate::frame::units::format_size;
use crate::frame::words::rate;

use super::cells::{full, in_words, pattern_cell, type_cell};
use super::layout::{access_label, chunk_label, classic_pattern, PATTERN_BESIDE_TABLE, ROWS, ROW_BYTES};
use super::shown::{Shown, Split};

/// Further partitions whose panels are folded below.
const OTHERS: usize = 7;

pub(super) fn section(shown: &Shown, level: Level) -> Section {
    let drawn =
        "Panels are logarithmic and have one scale. Point at a mark for calls, bytes and the share of the sync.";
    let drawn = if level == Level::Page { drawn } else { "" };
    let only = if let [backend] = shown.backends.as_slice() { format!("{backend}, ") } else { String::new() };
    Section {
        name: "bandwidth",
        title: format!("Bandwidth by chunk size, {only}{}", place(shown)),
        note: format!(
            "MB/s of all ranks by the contiguous bytes on disk; +8: eight bytes more, so nothing is aligned. A type total is all bytes of the \
             type / time from open to close, warm-up, fill-up and sync included. {drawn}"
        ),
        blocks: blocks(shown, level),
    }
}

/// `4 ranks, M_PART = 64 MiB`.
fn place(shown: &Shown) -> String {
    let ranks = count(shown.ranks, "rank");
    let Some(partition) = shown.result.partitions.first() else { return ranks };
    let reduced = if partition.m_part_bytes < partition.m_part_wanted_bytes {
        format!(" (definition: {})", format_size(partition.m_part_wanted_bytes))
    } else {
        String::new()
    };
    format!("{ranks}, M_PART = {}{reduced}", format_size(partition.m_part_bytes))
}

/// The panels of the next partitions, folded: a page has no room for all.
pub(super) fn others(result: &RunResult, split: &Split<'_>, shown: u64) -> Vec<Block> {
    let others: Vec<u64> = result.partitions.iter().map(|p| p.ranks).filter(|ranks| *ranks != shown).collect();
    let folded = |ranks: &u64| {
        let other = split.one(*ranks);
        Block::Folded(format!("The same on {}", place(&other)), blocks(&other, Level::Page))
    };
    let more = others.len().saturating_sub(OTHERS) as u64;
    let more = (more > 0).then(|| Block::List(vec![format!("{} are not drawn here.", count(more, "more partition"))]));
    others.iter().take(OTHERS).map(folded).chain(more).collect()
}

/// A picture for each backend, or the table of it where nothing is drawn.
fn blocks(shown: &Shown, level: Level) -> Vec<Block> {
    let curves = |backend: &String| -> Vec<Vec<Curve>> {
        Access::ALL.map(|access| of_access(shown, backend, access)).into_iter().collect()
    };
    let is_drawn = level == Level::Page;
    let all: Vec<(&String, Vec<Vec<Curve>>)> =
        shown.backends.iter().map(|b| (b, if is_drawn { curves(b) } else { Vec::new() })).collect();
    // One legend and one scale for all of them.
    let drawn: Vec<Curve> = all.iter().flat_map(|(_, panels)| panels.iter().flatten().cloned()).collect();
    let Some(scale) = Log::around(drawn.iter().flat_map(|c| c.points.iter().map(|p| p.y))) else {
        return shown.backends.iter().map(|backend| plain(shown, backend)).collect();
    };
    let types = PatternType::ALL.iter().map(|&t| lines::key(t.index(), t.label()));
    let keys: Vec<_> = types.chain(lines::keys_of_marks(&drawn)).collect();
    let axis = Abscissa::Names(sizes(shown));
    let picture = |(backend, panels): (&String, Vec<Vec<Curve>>)| {
        let frame = |(access, curves): (Access, &Vec<Curve>)| {
            let said = format!("{backend}, {}: MB/s over chunk sizes", access_label(access));
            lines::frame(access_label(access), said, "MB/s", &axis, scale, curves)
        };
        Block::Picture(Picture {
            name: format!("{}-{}-ranks-bandwidth", slug(backend), shown.ranks),
            title: backend.clone(),
            keys: keys.clone(),
            frames: Access::ALL.into_iter().zip(&panels).map(frame).collect(),
            table: table(shown, backend),
        })
    };
    all.into_iter().map(picture).collect()
}

fn plain(shown: &Shown, backend: &str) -> Block {
    if shown.result.patterns.iter().any(|p| p.backend == backend) {
        Block::Table(table(shown, backend))
    } else {
        Block::List(vec![format!("{backend}: nothing was measured")])
    }
}

/// `1k`, `1k+8`, ... and M_PART as it was.
fn sizes(shown: &Shown) -> Vec<String> {
    let m_part = shown.result.partitions.first().map_or(0, |p| p.m_part_bytes);
    let label = |bytes: u64| chunk_label(bytes).replace(' ', "").replace(['B', 'b'], "");
    ROW_BYTES.into_iter().chain([m_part]).map(label).collect()
}

fn of_access(shown: &Shown, backend: &str, access: Access) -> Vec<Curve> {
    let spot = shown.spot(backend, access);
    let curve = |t: PatternType| {
        let point = |row: usize| {
            let number = classic_pattern(row, t)?;
            let record = spot.record(&shown.result, number)?;
            let cell = pattern_cell(&shown.result, spot, number);
            let y = cell.mb_per_second?;
            Some(Point { x: row as f64, y, look: look(&cell.marks), said: said(record, &cell) })
        };
        Curve { style: t.index(), points: (0..ROWS.len()).filter_map(point).collect() }
    };
    PatternType::ALL.into_iter().map(curve).collect()
}

fn look(marks: &[Mark]) -> Look {
    if marks.contains(&Mark::Cache) {
        Look::Cached
    } else if marks.contains(&Mark::FewCalls) {
        Look::Few
    } else {
        Look::Known
    }
}

fn said(record: &PatternRecord, cell: &marks::Cell) -> String {
    let value = cell.mb_per_second.map(|v| rate(v, cell.known_digits)).unwrap_or_default();
    let sync = record.intervals.sync_seconds / record.seconds();
    let sync = if sync > 0.005 { format!(", sync {}", percent(sync)) } else { String::new() };
    let marks: Vec<&str> = cell.marks.iter().map(|m| brief(*m)).collect();
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

/// A mark in a word or two; the table behind the picture has the whole meaning.
fn brief(mark: Mark) -> &'static str {
    match mark {
        Mark::Wrong => "WRONG DATA",
        Mark::TimeGuard => "cut",
        Mark::Space => "ended by space",
        Mark::ShortTime => "short of time",
        Mark::FewCalls => "few calls",
        Mark::Cache => "from cache",
        Mark::CacheUnknown => "source not known",
        Mark::Shared => "busy",
        other => other.meaning(),
    }
}

fn table(shown: &Shown, backend: &str) -> Table {
    let names = PatternType::ALL.map(|t| format!("{}\ntype {t}", t.name()));
    let head = ["access".to_owned(), "chunk".to_owned()].into_iter().chain(names);
    let mut table = Table::new(format!("{backend}, MB/s"), 2, head);
    let result = &shown.result;
    let mut beside = Vec::new();
    for access in Access::ALL {
        let spot = shown.spot(backend, access);
        let row = |name: &str, cells: [Cell; PatternType::COUNT]| {
            [access.name().into(), name.into()].into_iter().chain(cells)
        };
        let extra = pattern_cell(result, spot, PATTERN_BESIDE_TABLE);
        table.note_marks(&extra.marks);
        beside.push(format!("{} {}", access.name(), in_words(&extra)));
        table.gap();
        if spot.records(result).next().is_none() {
            table.row([access.name(), "not measured"]);
            continue;
        }
        for (place, label) in ROWS.iter().enumerate() {
            let cell =
                |t| classic_pattern(place, t).map_or_else(Cell::default, |p| full(&pattern_cell(result, spot, p)));
            table.row(row(label, PatternType::ALL.map(cell)));
        }
        table.row(row("type total", PatternType::ALL.map(|t| full(&type_cell(result, &shown.derived, spot, t)))));
    }
    table.noted(format!("Beside the table: pattern 2 (1 MB chunks, 2 MB per call): {}", beside.join(", ")))
}
