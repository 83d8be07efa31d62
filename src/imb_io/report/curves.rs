//! The pictures: a panel for each benchmark, and values over ranks.

use crate::frame::report::html::lines::{self, Abscissa, Curve, Look, Point};
use crate::frame::report::html::scale::{size, Log};
use crate::frame::report::picture;
use crate::frame::report::picture::Picture;
use crate::frame::report::table::Table;
use crate::frame::units::format_size;
use crate::frame::words::rate;
use crate::imb_io::records::{ImbResult, RowRecord};
use crate::imb_io::values::{ImbDerived, RowValue};

use super::blocks::{is_wrong, mb_per_second, ranks, with_all_groups, Block as Rows};

/// Panels at most; a damaged file may name any number of benchmarks.
const PANELS: usize = 60;

/// What tells a curve from others in a panel.
fn curve_name(block: &Rows<'_>) -> String {
    let first = block.first;
    let groups = if first.groups > 1 { format!("{} x ", first.groups) } else { String::new() };
    format!("{}, {groups}{}{}", first.backend, ranks(first.ranks), sync(block))
}

fn sync(block: &Rows<'_>) -> String {
    match block.sync() {
        "" => String::new(),
        what => format!(", sync behind {what}"),
    }
}

fn curve_names(drawn: &[&Rows<'_>]) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for name in drawn.iter().map(|block| curve_name(block)) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

/// A panel for each benchmark, with `table` as its numbers, and what one sees. Of more curves than can be told apart those of most ranks
/// are drawn.
pub(super) fn picture(result: &ImbResult, blocks: &[Rows<'_>], table: Table) -> Option<(Picture, String)> {
    let mut drawn: Vec<&Rows<'_>> = blocks.iter().filter(|b| b.first.sample_bytes.is_some() && b.has_times()).collect();
    let mut names = curve_names(&drawn);
    let most = drawn.iter().map(|b| b.first.ranks).max()?;
    let is_cut = names.len() > lines::STYLES;
    if is_cut {
        drawn.retain(|b| b.first.ranks == most);
        names = curve_names(&drawn);
    }
    let sizes = drawn.iter().flat_map(|b| &b.rows).filter_map(|(row, _)| row.sample_bytes);
    let axis = Abscissa::log(sizes.map(|bytes| (bytes as f64, size(bytes))).collect())?;
    let mut panels: Vec<(&str, Vec<Curve>)> = Vec::new();
    for block in drawn {
        let name = curve_name(block);
        let curve = curve(result, block, names.iter().position(|n| *n == name).unwrap_or(0));
        match panels.iter_mut().find(|(name, _)| *name == block.first.benchmark) {
            Some((_, all)) => all.push(curve),
            None => panels.push((&block.first.benchmark, vec![curve])),
        }
    }
    let all: Vec<Curve> = panels.iter().flat_map(|(_, curves)| curves.iter().cloned()).collect();
    let scale = Log::around(all.iter().flat_map(|c| c.points.iter().map(|p| p.y)))?;
    let keys = names.iter().enumerate().take(lines::STYLES).map(|(style, name)| lines::key(style, name.as_str()));
    let frame = |(name, curves): &(&str, Vec<Curve>)| {
        lines::frame(name, format!("{name}: MB/s over sizes"), "MB/s", &axis, scale, curves)
    };
    let picture = Picture {
        name: "bandwidth".into(),
        title: "A panel for each benchmark".into(),
        keys: keys.chain(lines::keys_of_marks(&all)).collect(),
        frames: panels.iter().take(PANELS).map(frame).collect(),
        table,
    };
    let cut = if is_cut { format!(" Drawn are the rows of {} only.", ranks(most)) } else { String::new() };
    let note = format!("MB/s over the size of the sample, both logarithmic; all panels have one scale.{cut}");
    Some((picture, note))
}

fn curve(result: &ImbResult, block: &Rows<'_>, style: usize) -> Curve {
    let point = |(row, value): &(&RowRecord, &RowValue)| {
        let (bytes, y) = (row.sample_bytes?, mb_per_second(value)?);
        let cached = if value.cached { "; read from a cache" } else { "" };
        let wrong = if is_wrong(result, row) { "; WRONG DATA" } else { "" };
        let what = format!("{}, {}, {}", row.benchmark, curve_name(block), format_size(bytes));
        let said = format!("{what}: {} MB/s{cached}{wrong}", rate(y, None));
        Some(Point { x: bytes as f64, y, look: if value.cached { Look::Cached } else { Look::Known }, said })
    };
    let mut points: Vec<Point> = block.rows.iter().filter_map(point).collect();
    points.sort_by(|a, b| a.x.total_cmp(&b.x));
    Curve { style, points }
}

/// What the run adds to a picture over ranks: each benchmark with its largest size.
pub(super) fn over_ranks(result: &ImbResult, derived: &ImbDerived) -> Vec<picture::Point> {
    let point = |block: &Rows<'_>| {
        Some(picture::Point {
            row: block.first.benchmark.clone(),
            column: format!("largest size{}", sync(block)),
            curve: block.first.backend.clone(),
            is_reference: false,
            x: block.first.ranks.checked_mul(block.first.groups)?,
            y: mb_per_second(block.largest()?.1)?,
        })
    };
    with_all_groups(result, derived).iter().filter(|b| b.first.sample_bytes.is_some()).filter_map(point).collect()
}
