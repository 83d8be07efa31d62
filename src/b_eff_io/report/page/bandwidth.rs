//! The papers' panels: bandwidth over the chunk sizes, a curve for each type, a panel for each access method.

use crate::b_eff_io::pattern_type::PatternType;
use crate::b_eff_io::records::{PatternRecord, RunResult};
use crate::b_eff_io::report::cells::pattern_cell;
use crate::b_eff_io::report::layout::{chunk_label, classic_pattern, Spot, ROWS, ROW_BYTES};
use crate::frame::records::Access;
use crate::frame::report::html::lines::{self, Abscissa, Curve, Look, Point};
use crate::frame::report::html::scale::Log;
use crate::frame::report::html::{slug, Block, Picture, Section, Table};
use crate::frame::report::marks::{letters, Cell, Legend, Mark};
use crate::frame::report::screen::rate;
use crate::frame::report::text::{count, percent};
use crate::frame::units::format_size;

use super::shown::{access_label, Shown};

/// Further partitions whose panels are folded below.
const OTHERS: usize = 7;

pub(super) fn section(result: &RunResult, shown: &Shown) -> Section {
    let mut blocks = pictures(shown);
    let others: Vec<u64> = result.partitions.iter().map(|p| p.ranks).filter(|ranks| *ranks != shown.ranks).collect();
    for ranks in others.iter().take(OTHERS) {
        let other = Shown::new(result, &shown.backends, *ranks);
        blocks.push(Block::Folded(format!("The same on {}", count(*ranks, "rank")), pictures(&other)));
    }
    if others.len() > OTHERS {
        let text = format!("{} are not drawn here.", count((others.len() - OTHERS) as u64, "more partition"));
        blocks.push(Block::List(vec![text]));
    }
    Section {
        name: "bandwidth",
        title: format!("Bandwidth by chunk size, {}", count(shown.ranks, "rank")),
        note: "MB/s of all ranks over the contiguous bytes on disk, logarithmic; a line for each pattern type. +8: eight bytes \
               more, so nothing is aligned. All panels have one scale. Point at a mark for calls, bytes and the share of the sync."
            .into(),
        blocks,
    }
}

fn pictures(shown: &Shown) -> Vec<Block> {
    let curves = |backend: &String, access| of_access(shown, backend, access);
    let all: Vec<(&String, Vec<Vec<Curve>>)> =
        shown.backends.iter().map(|b| (b, Access::ALL.map(|access| curves(b, access)).into())).collect();
    let values = all.iter().flat_map(|(_, panels)| panels.iter().flatten().flat_map(|c| c.points.iter().map(|p| p.y)));
    let Some(scale) = Log::around(values) else { return vec![Block::List(vec!["Nothing was measured.".into()])] };
    // One legend for all of them.
    let drawn: Vec<Curve> = all.iter().flat_map(|(_, panels)| panels.iter().flatten().cloned()).collect();
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

/// `1k`, `1k+8`, ... and M_PART as it was.
fn sizes(shown: &Shown) -> Vec<String> {
    let m_part = shown.result.partitions.first().map_or(0, |p| p.m_part_bytes);
    let label = |bytes: u64| chunk_label(bytes).replace(' ', "").replace(['B', 'b'], "");
    ROW_BYTES.into_iter().chain([m_part]).map(label).collect()
}

fn of_access(shown: &Shown, backend: &str, access: Access) -> Vec<Curve> {
    let spot = Spot { backend, ranks: shown.ranks, access };
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

fn said(record: &PatternRecord, cell: &Cell) -> String {
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
    let mut legend = Legend::default();
    let mut rows = Vec::new();
    for access in Access::ALL {
        let spot = Spot { backend, ranks: shown.ranks, access };
        for (row, size) in sizes(shown).into_iter().enumerate() {
            let cells = PatternType::ALL.map(|t| match classic_pattern(row, t) {
                Some(number) => text(&pattern_cell(&shown.result, spot, number), &mut legend),
                None => String::new(),
            });
            rows.push([access_label(access).to_owned(), size].into_iter().chain(cells).collect::<Vec<_>>());
        }
    }
    let marks = legend.text().map(|text| format!("; {text}")).unwrap_or_default();
    let head = ["access".to_owned(), "chunk".to_owned()].into_iter().chain(PatternType::ALL.map(PatternType::label));
    let mut table = Table::new(format!("{backend}, MB/s{marks}"), 2, head);
    rows.into_iter().for_each(|row| table.row(row));
    table
}

/// The number with the letters of its marks.
pub(super) fn text(cell: &Cell, legend: &mut Legend) -> String {
    legend.note_marks(&cell.marks);
    let marks = letters(&cell.marks);
    match cell.mb_per_second {
        Some(value) => format!("{} {marks}", rate(value, cell.known_digits)).trim_end().to_owned(),
        None => marks,
    }
}
