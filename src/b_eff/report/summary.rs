//! The tables of the screen: rings, random rings and ping-pong, and how they grow with the size.

use crate::b_eff::values::{CommDerived, Level, SizeAverage};
use crate::frame::report::bars::Scale;
use crate::frame::report::model::Block;
use crate::frame::report::table::Table;
use crate::frame::report::text::percent;
use crate::frame::units::format_size;
use crate::frame::words::or_none;
use crate::frame::words::rate;

/// Bars of sizes at most; a damaged file may have any number.
const BARS: usize = 24;

pub(super) fn blocks(derived: &CommDerived) -> Vec<Block> {
    [Some(numbers(derived)), curves(derived)].into_iter().flatten().map(Block::Table).collect()
}

/// Rings, random rings, ping-pong.
fn numbers(derived: &CommDerived) -> Table {
    let (value, latency) = (&derived.value, &derived.value.latency);
    let shown = |number: Option<f64>| or_none(number.map(|number| rate(number * 1e-6, None)));
    let all = |level: Option<Level>| shown(level.map(|l| l.bytes_per_second));
    let each = |level: Option<Level>| shown(level.map(|l| l.per_process_bytes_per_second));
    let us = |seconds: Option<f64>| shown(seconds.map(|s| s * 1e12));
    let none = String::new;
    let rings = [all(value.rings), each(value.rings), all(value.at_lmax_rings), us(latency.rings_seconds)];
    let random = [all(value.random), each(value.random), all(value.at_lmax_random), us(latency.random_seconds)];
    let ping_pong = [none(), none(), shown(value.ping_pong_bytes_per_second), us(latency.ping_pong_seconds)];
    let rows = [("rings", rings), ("random rings", random), ("ping-pong", ping_pong)];
    Table::new("", 1, ["MB/s", "mean", "a process", "at Lmax", "us at 1 B"])
        .with(rows.map(|(name, cells)| [name.to_owned()].into_iter().chain(cells)))
        .noted("rings: each rank exchanges with two neighbours; random: ranks in random order")
        .noted("mean: over all sizes, each by its best method; b_eff: mean of rings and random")
}

type Rate = fn(&SizeAverage) -> Option<f64>;

/// A bar for each size, and what each method alone would have given.
fn curves(derived: &CommDerived) -> Option<Table> {
    let lines: [(&str, Rate); 3] = [
        ("rings", |s| s.rings_bytes_per_second),
        ("random rings", |s| s.random_bytes_per_second),
        ("ping-pong", |s| s.ping_pong_bytes_per_second),
    ];
    let sizes = &derived.sizes[..derived.sizes.len().min(BARS)];
    let scale = Scale::of(lines.iter().flat_map(|(_, rate)| sizes.iter().filter_map(rate)))?;
    let ends = format!("{} to {}", format_size(sizes.first()?.message_bytes), format_size(sizes.last()?.message_bytes));
    let bars = |rate: Rate| sizes.iter().map(|s| rate(s).map_or(' ', |v| scale.bar(v))).collect::<String>();
    let [low, high] = [scale.low, scale.high].map(|v| rate(v / 1e6, Some(2)));
    let table = Table::new("", 2, ["by size", &ends])
        .with(lines.map(|(name, rate)| [name.to_owned(), bars(rate)]))
        .noted(format!("bars: logarithmic, {low} to {high} MB/s, a bar for each message size"));
    let rated = |m: &crate::b_eff::values::MethodValue| {
        let share = m.b_eff?.bytes_per_second / derived.value.b_eff?.bytes_per_second;
        Some(format!("{} {}", m.method.name(), percent(share)))
    };
    let rated: Vec<String> = derived.methods.iter().filter_map(rated).collect();
    Some(if rated.is_empty() { table } else { table.noted(format!("by method: {} of b_eff", rated.join(", "))) })
}
