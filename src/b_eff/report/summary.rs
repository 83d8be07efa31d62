//! Tables of the screen: rings, random rings and ping-pong, and their bandwidths by size.

use crate::b_eff::values::{AggregateBandwidth, CommDerived, SizeAverage};
use crate::frame::report::bars::BarScale;
use crate::frame::report::model::ReportBlock;
use crate::frame::report::table::Table;
use crate::frame::report::text::percent;
use crate::frame::units::format_size;
use crate::frame::words::or_hyphen;
use crate::frame::words::rate;

/// Maximum number of bars; a damaged file may have any number of sizes.
const MAX_BARS: usize = 24;

pub(super) fn blocks(derived: &CommDerived) -> Vec<ReportBlock> {
    [Some(numbers(derived)), curves(derived)].into_iter().flatten().map(ReportBlock::Table).collect()
}

fn numbers(derived: &CommDerived) -> Table {
    let (value, latency) = (&derived.value, &derived.value.latency);
    let shown = |number: Option<f64>| or_hyphen(number.map(|number| rate(number * 1e-6, None)));
    let all = |level: Option<AggregateBandwidth>| shown(level.map(|l| l.bytes_per_second));
    let each = |level: Option<AggregateBandwidth>| shown(level.map(|l| l.per_process_bytes_per_second));
    let us = |seconds: Option<f64>| shown(seconds.map(|s| s * 1e12));
    let none = String::new;
    let rings = [all(value.rings), each(value.rings), all(value.at_lmax_rings), us(latency.rings_seconds)];
    let random = [all(value.random), each(value.random), all(value.at_lmax_random), us(latency.random_seconds)];
    let ping_pong = [none(), none(), shown(value.ping_pong_bytes_per_second), us(latency.ping_pong_seconds)];
    let rows = [("rings", rings), ("random rings", random), ("ping-pong", ping_pong)];
    Table::new("", 1, ["MB/s", "mean", "a process", "at Lmax", "us at 1 B"])
        .with_rows(rows.map(|(name, cells)| [name.to_owned()].into_iter().chain(cells)))
        .with_note("rings: each rank exchanges with two neighbours; random: ranks in random order")
        .with_note("mean: over all sizes, each by its best method; b_eff: mean of rings and random")
}

type RateSelector = fn(&SizeAverage) -> Option<f64>;

/// A bar for each size, and b_eff by each method alone.
fn curves(derived: &CommDerived) -> Option<Table> {
    let lines: [(&str, RateSelector); 3] = [
        ("rings", |s| s.rings_bytes_per_second),
        ("random rings", |s| s.random_bytes_per_second),
        ("ping-pong", |s| s.ping_pong_bytes_per_second),
    ];
    let sizes = &derived.sizes[..derived.sizes.len().min(MAX_BARS)];
    let scale = BarScale::of(lines.iter().flat_map(|(_, rate)| sizes.iter().filter_map(rate)))?;
    let ends = format!("{} to {}", format_size(sizes.first()?.message_bytes), format_size(sizes.last()?.message_bytes));
    let bars = |rate: RateSelector| sizes.iter().map(|s| rate(s).map_or(' ', |v| scale.bar(v))).collect::<String>();
    let [low, high] = [scale.low, scale.high].map(|v| rate(v / 1e6, Some(2)));
    let table = Table::new("", 2, ["by size", &ends])
        .with_rows(lines.map(|(name, rate)| [name.to_owned(), bars(rate)]))
        .with_note(format!("bars: logarithmic, {low} to {high} MB/s, a bar for each message size"));
    let rated = |m: &crate::b_eff::values::MethodValue| {
        let share = m.b_eff?.bytes_per_second / derived.value.b_eff?.bytes_per_second;
        Some(format!("{} {}", m.method.name(), percent(share)))
    };
    let rated: Vec<String> = derived.methods.iter().filter_map(rated).collect();
    Some(if rated.is_empty() { table } else { table.with_note(format!("by method: {} of b_eff", rated.join(", "))) })
}
