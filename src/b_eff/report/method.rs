//! Costs and set-up of the measurement: information to repeat the run or to explain a number.

use std::collections::BTreeSet;

use crate::b_eff::records::{CommPatternRecord, CommResult, LoopRecord, MeasurementEffort};
use crate::b_eff::values::{
    BareValue, CommDerived, DEFINED_RANDOM_RINGS, DEFINED_SIZES, MAX_ITERATIONS, MIN_LOOP_SECONDS,
};
use crate::frame::config::RepetitionPolicy;
use crate::frame::report::common;
use crate::frame::report::costs::{bare_loop_cells, MeasurementCosts, BARE_LOOP_COLUMNS};
use crate::frame::report::model::{labelled_texts, ReportBlock, ReportSection};
use crate::frame::report::table::Table;
use crate::frame::report::text::{count, percent};
use crate::frame::units::{format_seconds, format_size};
use crate::frame::values::binding::unbound_ranks;
use crate::frame::values::BareLoopRatio;

use super::{comparable, head};

const MAX_SHOWN_CHANGES: usize = 3;

pub(super) fn bare(derived: &CommDerived) -> Option<ReportSection> {
    let of_a_message = |v: &BareValue| BareLoopRatio {
        harness_seconds: v.compared.harness_seconds / v.calls as f64,
        bare_seconds: v.compared.bare_seconds / v.calls as f64,
        ..v.compared
    };
    let row = |v: &BareValue| {
        let what = [v.pattern.clone(), v.method.name().to_owned(), format_size(v.message_bytes)];
        what.into_iter().chain(bare_loop_cells(of_a_message(v)))
    };
    let head = ["pattern", "calls", "message"].into_iter().chain(BARE_LOOP_COLUMNS);
    let table = Table::new("Time of a message, us", 2, head).with_words().with_rows(derived.bare.iter().map(row));
    let note = "In turns in one process, slowest rank; medians, the ratio over pairs. Ping-pong: half of the round-trip time; Sendrecv: \
                one call.";
    let blocks = if table.is_empty() { Vec::new() } else { vec![ReportBlock::Table(table)] };
    ReportSection::of("bare", "Harness loops compared with bare C loops", note, blocks)
}

pub(super) fn costs(result: &CommResult) -> ReportSection {
    let (setup, ending) = (&result.setup, &result.ending);
    let announced = result.announcement.as_ref();
    let own = labelled_texts([
        ("time", Some(head::time(result))),
        ("real time", Some(time_breakdown(result))),
        ("repetitions", Some(repetitions_text(result))),
        ("announced", announced.map(|estimate| effort_text(result, &estimate.effort))),
        ("pilot", announced.map(|estimate| format!("{} measured", count(estimate.pilot.len() as u64, "loop")))),
    ]);
    let change = |(at, to): &(u64, MeasurementEffort)| {
        format!("from {} on: {}", visit_text(result, *at), effort_text(result, to))
    };
    let more = ending.efforts.len().checked_sub(MAX_SHOWN_CHANGES).filter(|more| *more > 0);
    let more = more.map(|more| format!("and {} more; all are in the JSON document", count(more as u64, "change")));
    let changes =
        ending.efforts.iter().take(MAX_SHOWN_CHANGES).map(change).chain(more).map(|text| ("changed".to_owned(), text));
    let measured: Vec<&CommPatternRecord> = result.all_pattern_records().collect();
    let costs = MeasurementCosts {
        harness: &[
            ("clock step", setup.clock_resolution_ns),
            ("clock reading", setup.clock_read_ns),
            ("barrier", setup.barrier_ns),
        ],
        rank_memory_bytes: [ending.rank_memory_planned_bytes, ending.rank_memory_high_water_bytes],
        records: &measured,
        noun: "pattern",
        name: |p| p.pattern.clone(),
        allocations: |p| p.allocations_in_clock,
        interference: |p| p.interference.as_ref(),
    };
    let blocks = vec![ReportBlock::Pairs(own.into_iter().chain(changes).chain(costs.pairs()).collect())];
    ReportSection { name: "costs", title: "Schedule and costs".into(), note: String::new(), blocks }
}

/// Text of a visit: a pattern of the plan, counted on through the repetitions.
fn visit_text(result: &CommResult, at: u64) -> String {
    let patterns = result.setup.patterns.max(1);
    match (at % patterns, at / patterns) {
        (pattern, 0) => format!("pattern {pattern} of the plan"),
        (pattern, repetition) => format!("pattern {pattern} in repetition {}", repetition + 1),
    }
}

/// Breakdown of the recorded real time.
fn time_breakdown(result: &CommResult) -> String {
    let loops: Vec<&LoopRecord> = result.patterns.iter().flat_map(|p| &p.sizes).flat_map(|s| &s.loops).collect();
    let inside: f64 = loops.iter().map(|l| l.seconds).sum();
    let patterns: f64 = result.patterns.iter().map(|p| p.real_seconds).sum();
    let share = if patterns > 0.0 { format!(", {} of it", percent(inside / patterns)) } else { String::new() };
    format!(
        "{} for {}; in timed loops {}{share}, in {}; memory set-up and pilot {}; data comparison {}",
        format_seconds(patterns),
        count(result.patterns.len() as u64, "pattern"),
        format_seconds(inside),
        count(loops.len() as u64, "loop"),
        format_seconds(result.ending.pilot_seconds),
        format_seconds(result.ending.verify_seconds)
    )
}

fn repetitions_text(result: &CommResult) -> String {
    let config = &result.config;
    let asked = match (config.repeat, config.until_share) {
        (RepetitionPolicy::Off, _) => return "none: --repeat off, or not supported by the version".to_owned(),
        (RepetitionPolicy::Auto, None) => "in the remaining time".to_owned(),
        (RepetitionPolicy::Auto, Some(share)) => {
            format!("in the remaining time, until b_eff is known within {}", percent(share))
        }
        (RepetitionPolicy::Times(times), None) => format!("{} at most", count(times, "round")),
        (RepetitionPolicy::Times(times), Some(share)) => {
            format!("{} at most, until b_eff is known within {}", count(times, "round"), percent(share))
        }
    };
    let visits = |p: &CommPatternRecord| {
        let repetitions: BTreeSet<u32> = p.sizes.iter().flat_map(|s| &s.loops).map(|one| one.repetition).collect();
        repetitions.len() as u64
    };
    let number: u64 = result.repetitions.iter().map(visits).sum();
    let seconds: f64 = result.repetitions.iter().map(|p| p.real_seconds).sum();
    format!("{asked}; {} of single patterns in {}", count(number, "repetition"), format_seconds(seconds))
}

fn effort_text(result: &CommResult, effort: &MeasurementEffort) -> String {
    let size = |index: u64| usize::try_from(index).ok().and_then(|i| result.setup.sizes_bytes.get(i));
    let sizes = match size(effort.best_method_from) {
        None => format!("all {DEFINED_SIZES} sizes by all methods"),
        Some(bytes) => format!("sizes from {} on by the best method alone", format_size(*bytes)),
    };
    let once = match size(effort.unrepeated_from) {
        None => String::new(),
        Some(bytes) => format!(", from {} on without repetitions", format_size(*bytes)),
    };
    let extras = if effort.extras { "patterns outside the average too" } else { "no patterns outside the average" };
    format!(
        "loops of {}, {sizes}{once}, {} of {DEFINED_RANDOM_RINGS} random rings, {extras}",
        format_seconds(effort.loop_seconds),
        effort.random_rings
    )
}

pub(super) fn set_up(result: &CommResult) -> ReportSection {
    let setup = &result.setup;
    let loops = format!(
        "{MAX_ITERATIONS} iterations at most, at least one, of {} to {} by the definition; 3 repetitions of 3 methods; a barrier before \
         each loop; time of the slowest rank",
        format_seconds(MIN_LOOP_SECONDS),
        format_seconds(2.0 * MIN_LOOP_SECONDS)
    );
    let sizes: Vec<String> = setup.sizes_bytes.iter().map(u64::to_string).collect();
    let own = labelled_texts([
        ("patterns", Some(format!("{}: {}", count(setup.patterns, "pattern"), head::families(result)))),
        ("sizes", Some(format!("{} bytes", sizes.join(", ")))),
        ("memory", Some(head::buffer_pages(result))),
        ("loops", Some(loops)),
        ("ranks", Some(placement(result))),
        // Newer results record it with the machine.
        ("binding", setup.machine.binding.is_none().then(|| binding(result))),
    ]);
    common::set_up(&setup.machine, None, &comparable::comm_facts(result), own)
}

/// Maximum number of ranks whose placement is shown; all are in the JSON document.
const MAX_SHOWN_RANKS: usize = 16;

/// Binding of the ranks, and whether each has one core.
fn binding(result: &CommResult) -> String {
    let setup = &result.setup;
    let by = setup.binding.as_deref().unwrap_or("not reported by the launcher");
    match unbound_ranks(&setup.placement).len() as u64 {
        0 => format!("each rank on one core; {by}"),
        loose => format!("{} of {} NOT BOUND to one core; {by}", loose, count(setup.placement.len() as u64, "rank")),
    }
}

/// `numbered ...: 0 on node01 (CPUs 0), ...`.
fn placement(result: &CommResult) -> String {
    let setup = &result.setup;
    let host = |index: u64| usize::try_from(index).ok().and_then(|i| setup.machine.hosts.get(i));
    let places: Vec<String> = setup
        .placement
        .iter()
        .take(MAX_SHOWN_RANKS)
        .enumerate()
        .map(|(rank, p)| format!("{rank} {} CPUs {}", host(p.host).map_or("?", |h| &h.name), p.cpus))
        .collect();
    let more = setup.placement.len().saturating_sub(MAX_SHOWN_RANKS);
    let more = if more > 0 { format!("; and {more} more in the JSON document") } else { String::new() };
    format!("{}; {}{more}", head::numbering(setup.numbering), places.join("; "))
}
