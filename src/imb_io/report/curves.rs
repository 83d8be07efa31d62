//! Pictures: a panel for each benchmark, and values over ranks.

use crate::frame::report::html::lines::{self, Abscissa, FrameCurve, FramePoint, MarkerStyle};
use crate::frame::report::html::scale::{size, LogScale};
use crate::frame::report::picture;
use crate::frame::report::picture::Picture;
use crate::frame::report::table::Table;
use crate::frame::units::format_size;
use crate::frame::words::rate;
use crate::imb_io::records::{ImbResult, RowRecord};
use crate::imb_io::values::{ImbDerived, RowValue};

use super::blocks::{blocks_of_all_groups, is_wrong, mb_per_second, rank_count, RowBlock as Rows};

/// Maximum number of panels; a damaged file may contain any number of benchmarks.
const MAX_PANELS: usize = 60;

fn curve_name(block: &Rows<'_>) -> String {
    let first = block.first;
    let groups = if first.groups > 1 { format!("{} x ", first.groups) } else { String::new() };
    format!("{}, {groups}{}{}", first.backend, rank_count(first.ranks), sync(block))
}

fn sync(block: &Rows<'_>) -> String {
    match block.sync_label() {
        "" => String::new(),
        what => format!(", sync after {what}"),
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

/// A panel for each benchmark, with the numbers in `table`, and a note. If there are more curves than styles, only those with the
/// most ranks are drawn.
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
    let mut panels: Vec<(&str, Vec<FrameCurve>)> = Vec::new();
    for block in drawn {
        let name = curve_name(block);
        let curve = curve(result, block, names.iter().position(|n| *n == name).unwrap_or(0));
        match panels.iter_mut().find(|(name, _)| *name == block.first.benchmark) {
            Some((_, all)) => all.push(curve),
            None => panels.push((&block.first.benchmark, vec![curve])),
        }
    }
    let all: Vec<FrameCurve> = panels.iter().flat_map(|(_, curves)| curves.iter().cloned()).collect();
    let scale = LogScale::around(all.iter().flat_map(|c| c.points.iter().map(|p| p.y)))?;
    let keys =
        names.iter().enumerate().take(lines::STYLES).map(|(style, name)| lines::legend_entry(style, name.as_str()));
    let frame = |(name, curves): &(&str, Vec<FrameCurve>)| {
        lines::frame(name, format!("{name}: MB/s over sizes"), "MB/s", &axis, scale, curves)
    };
    let picture = Picture {
        name: "bandwidth".into(),
        title: "A panel for each benchmark".into(),
        keys: keys.chain(lines::marker_legend(&all)).collect(),
        frames: panels.iter().take(MAX_PANELS).map(frame).collect(),
        table,
    };
    let cut = if is_cut { format!(" Drawn are the rows of {} only.", rank_count(most)) } else { String::new() };
    let note = format!("MB/s over the size of the sample, both logarithmic; all panels have one scale.{cut}");
    Some((picture, note))
}

fn curve(result: &ImbResult, block: &Rows<'_>, style: usize) -> FrameCurve {
    let point = |(row, value): &(&RowRecord, &RowValue)| {
        let (bytes, y) = (row.sample_bytes?, mb_per_second(value)?);
        let cached = if value.cached { "; read from a cache" } else { "" };
        let wrong = if is_wrong(result, row) { "; WRONG DATA" } else { "" };
        let what = format!("{}, {}, {}", row.benchmark, curve_name(block), format_size(bytes));
        let said = format!("{what}: {} MB/s{cached}{wrong}", rate(y, None));
        Some(FramePoint {
            x: bytes as f64,
            y,
            marker: if value.cached { MarkerStyle::Cached } else { MarkerStyle::Known },
            interval: None,
            tooltip: said,
        })
    };
    let mut points: Vec<FramePoint> = block.rows.iter().filter_map(point).collect();
    points.sort_by(|a, b| a.x.total_cmp(&b.x));
    FrameCurve { style, points }
}

/// Points of the run for a picture over ranks: each benchmark with its largest size.
pub(super) fn over_ranks(result: &ImbResult, derived: &ImbDerived) -> Vec<picture::MeasuredPoint> {
    let point = |block: &Rows<'_>| {
        Some(picture::MeasuredPoint {
            row: block.first.benchmark.clone(),
            column: format!("largest size{}", sync(block)),
            curve: block.first.backend.clone(),
            run: String::new(),
            is_reference: false,
            x: block.first.ranks.checked_mul(block.first.groups)?,
            y: mb_per_second(block.largest()?.1)?,
        })
    };
    blocks_of_all_groups(result, derived).iter().filter(|b| b.first.sample_bytes.is_some()).filter_map(point).collect()
}
