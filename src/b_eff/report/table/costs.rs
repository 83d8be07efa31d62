//! Announced against real time, and what measuring itself cost.

use std::collections::BTreeSet;

use crate::b_eff::records::{CommPatternRecord, CommResult, Effort, LoopRecord};
use crate::b_eff::values::{RANDOM_RINGS, SIZES};
use crate::frame::config::Repeat;
use crate::frame::report::costs;
use crate::frame::report::text::{count, percent, Page};
use crate::frame::units::{format_seconds, format_size};

use super::header;

/// Changes of the effort shown.
const CHANGES: usize = 3;

pub(super) fn write(page: &mut Page, result: &CommResult) {
    let (setup, ending) = (&result.setup, &result.ending);
    page.heading("Schedule and costs");
    page.field("time", &header::time(result));
    page.field("real time", &parts(result));
    page.field("repeats", &repeats(result));
    if let Some(told) = &result.announcement {
        page.field("announced", &effort(result, &told.effort));
        page.field("pilot", &format!("{} measured", count(told.pilot.len() as u64, "loop")));
    }
    let changes = ending.efforts.iter().take(CHANGES);
    page.fields("changed", changes.map(|(at, to)| format!("from {} on: {}", visit(result, *at), effort(result, to))));
    if let Some(more) = ending.efforts.len().checked_sub(CHANGES).filter(|more| *more > 0) {
        page.field("", &format!("and {} more; all are in the JSON document", count(more as u64, "change")));
    }
    costs::machine(page, result.measured().filter_map(|p| p.machine.as_ref()));
    costs::harness(
        page,
        &[
            ("clock step", setup.clock_resolution_ns),
            ("clock reading", setup.clock_read_ns),
            ("barrier", setup.barrier_ns),
        ],
    );
    costs::rank_memory(page, ending.rank_memory_planned_bytes, ending.rank_memory_high_water_bytes);
    let measured: Vec<_> = result.measured().collect();
    costs::allocations(page, &measured, |p| p.allocations_in_clock, "pattern", |p| p.pattern.clone());
}

/// A pattern of the plan, counted on through the repetitions.
fn visit(result: &CommResult, at: u64) -> String {
    let patterns = result.setup.patterns.max(1);
    match (at % patterns, at / patterns) {
        (pattern, 0) => format!("pattern {pattern} of the plan"),
        (pattern, repetition) => format!("pattern {pattern} in repetition {}", repetition + 1),
    }
}

/// Where the real time went as far as it was recorded.
fn parts(result: &CommResult) -> String {
    let loops: Vec<&LoopRecord> = result.patterns.iter().flat_map(|p| &p.sizes).flat_map(|s| &s.loops).collect();
    let inside: f64 = loops.iter().map(|l| l.seconds).sum();
    let patterns: f64 = result.patterns.iter().map(|p| p.real_seconds).sum();
    let share = if patterns > 0.0 { format!(", {} of it", percent(inside / patterns)) } else { String::new() };
    format!(
        "{} for {}; inside the clock {}{share}, in {}; laying out memory and pilot {}; comparing data {}",
        format_seconds(patterns),
        count(result.patterns.len() as u64, "pattern"),
        format_seconds(inside),
        count(loops.len() as u64, "loop"),
        format_seconds(result.ending.pilot_seconds),
        format_seconds(result.ending.verify_seconds)
    )
}

/// What became of the time that was left.
fn repeats(result: &CommResult) -> String {
    let config = &result.config;
    let asked = match (config.repeat, config.until_share) {
        (Repeat::Off, _) => return "none: --repeat off, or from before there were any".to_owned(),
        (Repeat::Auto, None) => "in the time that is left".to_owned(),
        (Repeat::Auto, Some(share)) => {
            format!("in the time that is left, until b_eff is known within {}", percent(share))
        }
        (Repeat::Times(times), None) => format!("{} at most", count(times, "round")),
        (Repeat::Times(times), Some(share)) => {
            format!("{} at most, until b_eff is known within {}", count(times, "round"), percent(share))
        }
    };
    let visits = |p: &CommPatternRecord| {
        let repetitions: BTreeSet<u32> = p.sizes.iter().flat_map(|s| &s.loops).map(|one| one.repetition).collect();
        repetitions.len() as u64
    };
    let number: u64 = result.repeats.iter().map(visits).sum();
    let seconds: f64 = result.repeats.iter().map(|p| p.real_seconds).sum();
    format!("{asked}; {} of single patterns in {}", count(number, "repetition"), format_seconds(seconds))
}

fn effort(result: &CommResult, effort: &Effort) -> String {
    let size = |index: u64| usize::try_from(index).ok().and_then(|i| result.setup.sizes_bytes.get(i));
    let sizes = match size(effort.single_from) {
        None => format!("all {SIZES} sizes by all methods"),
        Some(bytes) => format!("sizes from {} on by the best method alone", format_size(*bytes)),
    };
    let once = match size(effort.once_from) {
        None => String::new(),
        Some(bytes) => format!(", from {} on without repetitions", format_size(*bytes)),
    };
    let extras = if effort.extras { "patterns outside the average too" } else { "no patterns outside the average" };
    format!(
        "loops of {}, {sizes}{once}, {} of {RANDOM_RINGS} random rings, {extras}",
        format_seconds(effort.loop_seconds),
        effort.random_rings
    )
}
