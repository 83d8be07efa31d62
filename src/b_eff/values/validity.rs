//! Validity: criteria for a value of b_eff that is comparable with other systems.
//!
//! The paper requires the patterns, sizes and methods of the definition; additional criteria are correct data, no errors, a
//! core for each process, and enough time. Numbering and binding of ranks only raise warnings: every numbering is b_eff.

use super::curve::{averaged_curves, PatternCurve};
use super::{all_efforts, identical, message_source, DEFINED_RANDOM_RINGS, DEFINED_RINGS};
use crate::b_eff::plan::PatternFamily;
use crate::b_eff::records::{CommResult, MessageMethod};
use crate::frame::records::RunOutcome;
use crate::frame::units::{format_seconds, format_size};
use crate::frame::values::warning::count_and_first;
use crate::frame::values::Criterion;

/// Shortest time of a loop by the definition, which says 2.5 to 5 ms.
pub const MIN_LOOP_SECONDS: f64 = 0.0025;

/// Maximum number of iterations of a loop.
pub const MAX_ITERATIONS: u64 = 300;

/// Sizes from this index on (above 4 kB) may be measured by the best method alone, in one loop: the program of the authors
/// does so if the predicted time is too long.
pub const SINGLE_METHOD_ALLOWED_FROM: usize = 13;

const REPETITIONS: u64 = 3;

pub(super) fn criteria(result: &CommResult, curves: &[PatternCurve]) -> Vec<Criterion> {
    let allocations = result.all_pattern_records().map(|p| p.allocations_in_clock);
    vec![
        complete(result),
        not_quick(result),
        not_oversubscribed(result),
        message_source::criterion(result),
        all_patterns(result, curves),
        all_methods(result, curves),
        identical::criterion(result, curves),
        loop_time(result),
        Criterion::none_of("errors", result.errors.len() as u64),
        correct_data(result),
        Criterion::none_of("memory allocations inside the clock", allocations.fold(0, u64::saturating_add)),
    ]
}

/// A run that ends during further repetitions is complete.
fn complete(result: &CommResult) -> Criterion {
    match (&result.definition, result.ending.outcome) {
        (Some(_), RunOutcome::Interrupted) => Criterion::new("run complete (interrupted during repetitions)", true),
        (Some(_), RunOutcome::Limit) => {
            Criterion::new("run complete (ended by the time limit during repetitions)", true)
        }
        (Some(_), RunOutcome::Killed) => Criterion::new("run complete (killed during repetitions)", true),
        (_, outcome) => Criterion::complete(outcome.label("interrupted by a signal"), outcome == RunOutcome::Complete),
    }
}

fn not_quick(result: &CommResult) -> Criterion {
    let how = if result.config.quick { "quick mode" } else { "full" };
    Criterion::new(format!("not the quick mode ({how})"), !result.config.quick).with_lack("the quick mode")
}

fn not_oversubscribed(result: &CommResult) -> Criterion {
    let crowded = count_and_first(result.setup.machine.hosts.iter().filter(|h| h.ranks > h.cores));
    let which = crowded.map_or_else(
        || "none".to_owned(),
        |(hosts, h)| {
            let more = if hosts > 1 { format!(", and {} more", hosts - 1) } else { String::new() };
            format!("{}: {} ranks, cores {}{more}", h.name, h.ranks, h.cores)
        },
    );
    Criterion::new(format!("no host with more ranks than cores ({which})"), crowded.is_none())
        .with_lack(format!("more ranks than cores ({which})"))
}

fn all_patterns(result: &CommResult, curves: &[PatternCurve]) -> Criterion {
    let whole = |family: PatternFamily| {
        curves.iter().filter(|c| c.family == family && c.mean_bytes_per_second.is_some()).count() as u64
    };
    let (rings, random) = (whole(PatternFamily::Ring), whole(PatternFamily::Random));
    let sizes = result.setup.sizes_bytes.len();
    Criterion::new(
        format!(
            "rings with all {sizes} sizes {rings} == {DEFINED_RINGS}, random rings {random} == {DEFINED_RANDOM_RINGS}"
        ),
        rings == DEFINED_RINGS && random == DEFINED_RANDOM_RINGS,
    )
    .with_lack(format!(
        "{rings} of {DEFINED_RINGS} rings and {random} of {DEFINED_RANDOM_RINGS} random rings measured with all sizes"
    ))
}

/// Counts (pattern of the average, size) that lack a method or a repetition.
fn all_methods(result: &CommResult, curves: &[PatternCurve]) -> Criterion {
    let must_be_full = averaged_curves(curves).flat_map(|c| c.points.iter().take(SINGLE_METHOD_ALLOWED_FROM));
    let fewer = must_be_full.filter(|p| !has_all_loops(p)).count();
    let limit = result.setup.sizes_bytes.get(SINGLE_METHOD_ALLOWED_FROM - 1).copied().unwrap_or(4096);
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
        fewer == 0 && averaged_curves(curves).next().is_some(),
    )
    .with_lack(format!("fewer than three methods or {REPETITIONS} repetitions at {fewer} sizes"))
}

/// Sizes of patterns of the average that lack a method or a repetition where the definition allows it: the smallest such
/// size, and their number. None if there are none.
#[must_use]
pub fn single_sizes(curves: &[PatternCurve]) -> Option<(u64, u64)> {
    let single = averaged_curves(curves)
        .flat_map(|c| c.points.iter().skip(SINGLE_METHOD_ALLOWED_FROM))
        .filter(|p| !has_all_loops(p));
    single.fold(None, |known: Option<(u64, u64)>, p| {
        let (from, number) = known.unwrap_or((p.message_bytes, 0));
        Some((from.min(p.message_bytes), number + 1))
    })
}

fn has_all_loops(point: &super::SizePoint) -> bool {
    MessageMethod::EXCHANGES.iter().all(|m| point.method(*m).is_some_and(|m| m.repetitions >= REPETITIONS))
}

/// Checks the planned time: a loop may be shorter if the machine was faster than estimated.
fn loop_time(result: &CommResult) -> Criterion {
    let planned = all_efforts(result).map(|e| e.loop_seconds).reduce(f64::min);
    let short =
        result.definition_loops().filter(|l| l.seconds < MIN_LOOP_SECONDS && l.iterations < MAX_ITERATIONS).count();
    let planned_text = planned.map_or_else(|| "not planned".to_owned(), |s| format!("planned {}", format_seconds(s)));
    let (least, of) = (format_seconds(MIN_LOOP_SECONDS), result.definition_loops().count());
    Criterion::new(
        format!("loops of {least} or {MAX_ITERATIONS} iterations ({planned_text}; {short} of {of} were shorter)"),
        planned.is_some_and(|s| s >= MIN_LOOP_SECONDS),
    )
    .with_lack(format!("loops {}, {least} needed", planned_text.replace("planned", "of")))
}

fn correct_data(result: &CommResult) -> Criterion {
    let (wrong, checked) = (result.bytes_wrong(), result.bytes_checked());
    let found = Criterion::correct_data("bytes", wrong, result.corruptions.len());
    let lack = if found.met { "no data compared" } else { found.lack() };
    Criterion::new(format!("{} ({} compared)", found.text, format_size(checked)), found.met && checked > 0)
        .with_lack(lack)
}
