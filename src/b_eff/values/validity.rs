//! Whether a value of b_eff may be compared with that of another system.
//!
//! The paper asks for the patterns, sizes and methods of the definition; ours come on top: correct data, no errors, a
//! core for each process, and enough time. Numbering and binding of ranks are warnings: both ways are b_eff.

use super::curve::{of_average, Curve};
use super::{buffers, efforts, identical, RANDOM_RINGS, RINGS};
use crate::b_eff::plan::Family;
use crate::b_eff::records::{CommResult, Method};
use crate::frame::records::Outcome;
use crate::frame::units::{format_seconds, format_size};
use crate::frame::values::warning::number_and_first;
use crate::frame::values::Criterion;

/// Shortest time of a loop by the definition, which says 2.5 to 5 ms.
pub const LOOP_SECONDS: f64 = 0.0025;

/// Iterations of a loop at most.
pub const MOST_ITERATIONS: u64 = 300;

/// Sizes from this index on (above 4 kB) may be measured by the best method alone, in one loop: the program of the
/// authors does so where the time it predicts is too long.
pub const FREELY_SINGLE_FROM: usize = 13;

/// Repetitions of each loop.
const REPETITIONS: u64 = 3;

/// All criteria of a run.
pub(super) fn criteria(result: &CommResult, curves: &[Curve]) -> Vec<Criterion> {
    let allocations = result.measured().map(|p| p.allocations_in_clock);
    vec![
        complete(result),
        not_quick(result),
        not_oversubscribed(result),
        buffers::criterion(result),
        all_patterns(result, curves),
        all_methods(result, curves),
        identical::criterion(result, curves),
        loop_time(result),
        Criterion::no("errors", result.errors.len() as u64),
        data(result),
        Criterion::no("memory allocations inside the clock", allocations.fold(0, u64::saturating_add)),
    ]
}

/// What stops a run in its repeats takes nothing from the value.
fn complete(result: &CommResult) -> Criterion {
    match (&result.whole, result.ending.outcome) {
        (Some(_), Outcome::Interrupted) => Criterion::new("run complete (but for the repeats: interrupted)", true),
        (Some(_), Outcome::Killed) => Criterion::new("run complete (but for the repeats: killed)", true),
        (_, outcome) => Criterion::complete(outcome.how("interrupted by a signal"), outcome == Outcome::Complete),
    }
}

fn not_quick(result: &CommResult) -> Criterion {
    let how = if result.config.quick { "quick mode" } else { "full" };
    Criterion::new(format!("not the quick mode ({how})"), !result.config.quick).or("the quick mode")
}

fn not_oversubscribed(result: &CommResult) -> Criterion {
    let crowded = number_and_first(result.setup.machine.hosts.iter().filter(|h| h.ranks > h.cores));
    let which = crowded.map_or_else(
        || "none".to_owned(),
        |(hosts, h)| {
            let more = if hosts > 1 { format!(", and {} more", hosts - 1) } else { String::new() };
            format!("{}: {} ranks, cores {}{more}", h.name, h.ranks, h.cores)
        },
    );
    Criterion::new(format!("no host with more ranks than cores ({which})"), crowded.is_none())
        .or(format!("more ranks than cores ({which})"))
}

fn all_patterns(result: &CommResult, curves: &[Curve]) -> Criterion {
    let whole = |family: Family| {
        curves.iter().filter(|c| c.family == family && c.mean_bytes_per_second.is_some()).count() as u64
    };
    let (rings, random) = (whole(Family::Ring), whole(Family::Random));
    let sizes = result.setup.sizes_bytes.len();
    Criterion::new(
        format!("rings with all {sizes} sizes {rings} == {RINGS}, random rings {random} == {RANDOM_RINGS}"),
        rings == RINGS && random == RANDOM_RINGS,
    )
    .or(format!("{rings} of {RINGS} rings and {random} of {RANDOM_RINGS} random rings measured with all sizes"))
}

/// By (pattern of the average, size): which of them lack a method or a repetition.
fn all_methods(result: &CommResult, curves: &[Curve]) -> Criterion {
    let must_be_full = of_average(curves).flat_map(|c| c.points.iter().take(FREELY_SINGLE_FROM));
    let fewer = must_be_full.filter(|p| !is_full(p)).count();
    let limit = result.setup.sizes_bytes.get(FREELY_SINGLE_FROM - 1).copied().unwrap_or(4096);
    let fewer_text = if fewer == 0 { "all".to_owned() } else { format!("fewer at {fewer} sizes of patterns") };
    let above = match single_sizes(curves) {
        None => "larger ones too".to_owned(),
        Some((from, number)) => {
            format!("larger ones may be by one method or in one loop, as {number} are, from {} on", format_size(from))
        }
    };
    let limit = format_size(limit);
    Criterion::new(
        format!("three methods, {REPETITIONS} repetitions each, at sizes up to {limit} ({fewer_text}; {above})"),
        fewer == 0 && of_average(curves).next().is_some(),
    )
    .or(format!("fewer than three methods or {REPETITIONS} repetitions at {fewer} sizes"))
}

/// Sizes of patterns of the average that lack a method or a repetition: the smallest of the sizes for which the
/// definition allows it, and how many there are. None: none.
#[must_use]
pub fn single_sizes(curves: &[Curve]) -> Option<(u64, u64)> {
    let single = of_average(curves).flat_map(|c| c.points.iter().skip(FREELY_SINGLE_FROM)).filter(|p| !is_full(p));
    single.fold(None, |known: Option<(u64, u64)>, p| {
        let (from, number) = known.unwrap_or((p.message_bytes, 0));
        Some((from.min(p.message_bytes), number + 1))
    })
}

fn is_full(point: &super::Point) -> bool {
    Method::EXCHANGES.iter().all(|m| point.method(*m).is_some_and(|m| m.repetitions >= REPETITIONS))
}

/// By what was planned: a loop may well be shorter than planned when the machine was faster than it seemed.
fn loop_time(result: &CommResult) -> Criterion {
    let planned = efforts(result).map(|e| e.loop_seconds).reduce(f64::min);
    let short = result.loops().filter(|l| l.seconds < LOOP_SECONDS && l.iterations < MOST_ITERATIONS).count();
    let planned_text = planned.map_or_else(|| "not planned".to_owned(), |s| format!("planned {}", format_seconds(s)));
    let (least, of) = (format_seconds(LOOP_SECONDS), result.loops().count());
    Criterion::new(
        format!("loops of {least} or {MOST_ITERATIONS} iterations ({planned_text}; {short} of {of} were shorter)"),
        planned.is_some_and(|s| s >= LOOP_SECONDS),
    )
    .or(format!("loops {}, {least} needed", planned_text.replace("planned", "of")))
}

fn data(result: &CommResult) -> Criterion {
    let (wrong, checked) = (result.bytes_wrong(), result.bytes_checked());
    let found = Criterion::right_data("bytes", wrong, result.corruptions.len());
    let lack = if found.met { "no data compared" } else { found.lack() };
    Criterion::new(format!("{} ({} compared)", found.text, format_size(checked)), found.met && checked > 0).or(lack)
}
